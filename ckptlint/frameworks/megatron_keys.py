"""The arguments of Megatron-LM and of MindSpeed-LLM on it that bear on checkpoints, by release of Megatron core.

Read from ``megatron/training/arguments.py`` and ``megatron/training/config/`` of the tags core_r0.8.0, core_v0.9.0, 0.10.0,
0.11.0, 0.12.1, 0.13.0, 0.14.0, 0.15.0, 0.16.0, 0.17.0, 0.18.0, 0.19.0 and of d98e8a64 (0.20.0); MindSpeed-LLM's own from
``mindspeed_llm/features_manager/`` at c77308a1, which runs on core 0.12.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ckptlint.frameworks.releases import Lifetime

RELEASES_READ = tuple(f"0.{minor}" for minor in range(8, 21))

# What is assumed where the project pins nothing: the newest, and what the Ascend repositories ask for.
ASSUMED = "0.20.0"
ASSUMED_BY_MINDSPEED = "0.12.1"

# How a value is read: `on` and `off` are flags without one.
Kind = Literal["int", "float", "str", "bool", "on", "off"]


@dataclass(frozen=True)
class Flag:
    """One argument: ``name`` is its argparse destination, ``options`` its spellings, ``many``: it takes several values."""

    name: str
    options: tuple[str, ...]
    kind: Kind = "str"
    default: object = None
    since: str | None = None
    until: str | None = None
    choices: tuple[str, ...] = ()
    many: bool = False
    note: str = ""

    @property
    def lifetime(self) -> Lifetime:
        return Lifetime(self.since, self.until)


def _flag(
    name: str,
    kind: Kind = "str",
    default: object = None,
    *more: str,
    since: str | None = None,
    choices: tuple[str, ...] = (),
    many: bool = False,
    note: str = "",
) -> Flag:
    return Flag(name, ("--" + name.replace("_", "-"), *more), kind, default, since, None, choices, many, note)


CHECKPOINT_FLAGS: tuple[Flag, ...] = (
    # where and when
    _flag("save", note="without it nothing is written, and nothing is said"),
    _flag(
        "save_interval",
        "int",
        None,
        "--persistent-save-interval",
        note="training.py: `iteration % save_interval == 0`, and once more behind the loop where the last one was not saved; "
        "validate_args asserts that it is set with --save, since 0.20 that it is positive",
    ),
    _flag(
        "save_retain_interval",
        "int",
        since="0.14",
        note="checkpoints that are no multiple of it go when a newer one is written",
    ),
    _flag("non_persistent_save_interval", "int", since="0.9"),
    _flag("non_persistent_ckpt_type", since="0.9", choices=("global", "local", "in_memory")),
    _flag("non_persistent_global_ckpt_dir", since="0.9"),
    _flag("non_persistent_local_ckpt_dir", since="0.9"),
    _flag(
        "ckpt_format", "str", "torch_dist", since="0.9", choices=("torch", "torch_dist", "zarr", "torch_dcp", "fsdp_dtensor")
    ),
    _flag("async_save", "on", note="only with torch_dist: else NotImplementedError at the first save"),
    _flag("use_persistent_ckpt_worker", "on", since="0.12"),
    _flag("no_save_optim", "on", note="leaves the optimizer and the learning-rate schedule out"),
    _flag("no_save_rng", "on"),
    # what a start takes up
    _flag("load"),
    _flag("pretrained_checkpoint", note="load_checkpoint: used where --load has no tracker, and then as with --finetune"),
    _flag("finetune", "on", note="load_checkpoint: iteration 0, no optimizer, schedule, random state, consumed samples"),
    _flag("no_load_optim", "on", note="the schedule is loaded in the same branch as the optimizer"),
    _flag("no_load_rng", "on"),
    _flag("ckpt_step", "int", note="0.9 to 0.11: parsed, and read by no code"),
    _flag("override_ckpt_iteration", "int", since="0.19"),
    _flag("exit_on_missing_checkpoint", "on", note="up to 0.19 with exit status 0"),
    _flag("use_checkpoint_args", "on"),
    _flag("moe_use_upcycling", "on", since="0.9", note="asserts that --save holds no checkpoint"),
    # how long
    _flag("train_iters", "int"),
    _flag("train_samples", "int"),
    _flag("exit_interval", "int"),
    _flag("exit_duration_in_mins", "int"),
    _flag("exit_signal_handler", "on"),
    _flag("skip_train", "on"),
    # what is trained
    _flag("use_distributed_optimizer", "on"),
    _flag("tokenizer_model"),
)

# mindspeed_llm/features_manager: convert_checkpoint.py, lora.py, dpo.py, ...
MINDSPEED_LLM_FLAGS: tuple[Flag, ...] = (
    _flag("enable_hf2mg_convert", "on", note="initialize_megatron_wrapper: --load is converted, and replaced, at every start"),
    _flag("enable_mg2hf_convert", "on"),
    _flag("hf_cfg_dir", note="where mg2hf takes the model's configuration from; --load where it is not given"),
    _flag("mg_save_dir"),
    _flag("hf_save_dir"),
    _flag("lora_load"),
    _flag("lora_ckpt_filter", "on"),
    _flag("lora_target_modules", many=True),
    _flag("stage"),
    _flag("ref_model", note="dpo_trainer.py _init_reference_model: --load where it is not given"),
    _flag("refer_model_iter", "int", 1),
    _flag("load_checkpoint_loosely", "on"),
    _flag("tokenizer_name_or_path"),
    _flag("prompt_type"),
)

# Arguments that look like one of the above and are others, in some release: no misspellings.
_LOOK_ALIKES = """
    --adlr-autoresume --bert-load --ict-load --load-optim --load-rng --save-optim --save-rng --ckpt-convert-save
    --ckpt-convert-format --dist-ckpt-format --dist-ckpt-strictness --lr-warmup-iters --lr-decay-iters --lr-decay-samples
    --lr-warmup-samples --eval-iters --eval-interval --log-interval --wandb-save-dir --save-config-filepath
    --save-params-interval --save-wgrads-interval --save-dgrads-interval --save-activations-interval
    --exit-signal-handler-for-dataloader --exit-signal-handler-for-training --exit-signal --logits-load-dir --logits-save-dir
    --save-lora-to-hf --profile-save-path --use-dist-ckpt --use-checkpoint-opt_param-scheduler
    --override-opt_param-scheduler --retro-cyclic-train-iters --dataloader-save --load-main-params-from-ckpt
"""
LOOK_ALIKES = frozenset(_LOOK_ALIKES.split())


def defaults(flags: tuple[Flag, ...], release: str) -> Mapping[str, object]:
    """What a release takes for each argument that is not given."""
    return {flag.name: flag.default for flag in flags if flag.lifetime.holds(release)}
