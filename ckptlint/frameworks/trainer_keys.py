"""The fields of transformers' ``TrainingArguments`` and ``Seq2SeqTrainingArguments``, by release.

Read from ``training_args.py`` and ``training_args_seq2seq.py`` of the released wheels 4.36.2, 4.37.2, 4.38.2, 4.39.3,
4.40.2, 4.41.2, 4.42.4, 4.43.4, 4.44.2, 4.45.2, 4.46.1, 4.46.3, 4.47.1, 4.48.3, 4.49.0, 4.50.3, 4.51.3, 4.52.4, 4.53.3, 4.55.4,
4.56.2, 4.57.1, 5.0.0, 5.1.0, 5.2.0, 5.4.0, 5.5.0, 5.6.0, 5.6.2, 5.8.0, 5.12.0, 5.13.0, 5.14.0, 5.15.0, 5.18.0, 5.20.0, 5.22.0,
5.23.0 and 5.24.0. ``since`` is the first of them with a field, ``until`` the first without, both written without the patch
number: no patch was seen to take a field away (one added one: average_tokens_across_devices came after 4.46.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from ckptlint.frameworks.releases import ALWAYS, Lifetime, by_name
from ckptlint.run import Unit

OLDEST_READ = "4.36.2"
NEWEST_READ = "5.24.0"

TRAINER_KEYS: Mapping[str, Lifetime] = by_name(
    {
        ALWAYS: """
            adam_beta1 adam_beta2 adam_epsilon auto_find_batch_size bf16 bf16_full_eval data_seed dataloader_drop_last
            dataloader_num_workers dataloader_persistent_workers dataloader_pin_memory ddp_backend ddp_broadcast_buffers
            ddp_bucket_cap_mb ddp_find_unused_parameters ddp_timeout debug deepspeed disable_tqdm do_eval do_predict
            do_train eval_accumulation_steps eval_delay eval_steps fp16 fp16_full_eval fsdp fsdp_config full_determinism
            generation_config generation_max_length generation_num_beams gradient_accumulation_steps
            gradient_checkpointing gradient_checkpointing_kwargs greater_is_better hub_always_push hub_model_id
            hub_private_repo hub_strategy hub_token ignore_data_skip include_num_input_tokens_seen label_names
            label_smoothing_factor learning_rate length_column_name load_best_model_at_end local_rank log_level
            log_level_replica log_on_each_node logging_first_step logging_nan_inf_filter logging_steps logging_strategy
            lr_scheduler_kwargs lr_scheduler_type max_grad_norm max_steps metric_for_best_model neftune_noise_alpha
            num_train_epochs optim optim_args output_dir per_device_eval_batch_size per_device_train_batch_size
            predict_with_generate prediction_loss_only push_to_hub remove_unused_columns report_to resume_from_checkpoint
            run_name save_on_each_node save_only_model save_steps save_strategy save_total_limit seed skip_memory_metrics
            sortish_sampler tf32 torch_compile torch_compile_backend torch_compile_mode use_cpu warmup_steps weight_decay
        """,
        # gone
        Lifetime(until="4.51"): "dispatch_batches evaluation_strategy split_batches",
        Lifetime(until="4.57"): "use_ipex",
        Lifetime(until="5.0"): """
            adafactor fp16_backend fp16_opt_level fsdp_min_num_params fsdp_transformer_layer_cls_to_wrap
            half_precision_backend include_inputs_for_metrics include_tokens_per_second jit_mode_eval mp_parameters
            no_cuda overwrite_output_dir past_index per_gpu_eval_batch_size per_gpu_train_batch_size push_to_hub_model_id
            push_to_hub_organization push_to_hub_token ray_scope save_safetensors torchdynamo tpu_metrics_debug
            tpu_num_cores use_legacy_prediction_loop use_mps_device
        """,
        Lifetime(until="5.2"): "group_by_length",
        Lifetime(until="5.15"): "logging_dir warmup_ratio",
        # come and gone
        Lifetime(since="4.50", until="4.52"): "tp_size",
        # come
        Lifetime(since="4.38"): "accelerator_config dataloader_prefetch_factor",
        Lifetime(since="4.39"): "optim_target_modules",
        Lifetime(since="4.40"): "eval_do_concat_batches",
        Lifetime(since="4.41"): "batch_eval_metrics eval_strategy restore_callback_states_from_checkpoint",
        Lifetime(since="4.42"): "eval_on_start",
        Lifetime(since="4.43"): "eval_use_gather_object torch_empty_cache_steps",
        Lifetime(since="4.45"): "use_liger_kernel",
        Lifetime(since="4.46"): "average_tokens_across_devices include_for_metrics",
        Lifetime(since="4.53"): "hub_revision liger_kernel_config",
        Lifetime(since="4.56"): "parallelism_config",
        Lifetime(since="4.57"): "project trackio_space_id",
        Lifetime(since="5.0"): "enable_jit_checkpoint use_cache",
        Lifetime(since="5.2"): "train_sampling_strategy",
        Lifetime(since="5.6"): "ddp_static_graph trackio_bucket_id trackio_static_space_id",
        Lifetime(since="5.15"): "dataloader_in_order dataloader_multiprocessing_context",
        Lifetime(since="5.23"): "activation_checkpointing activation_checkpointing_kwargs",
    }
)


# ------------------------------------------------------------------------------------------------ keys that bear on checkpoints

Kind = Literal["int", "float", "bool", "str", "null", "list", "map"]


def kind_of(value: object) -> Kind | None:
    """The YAML kind of a loaded value; None for what is none of them (a date, bytes)."""
    if value is None:
        return "null"
    if isinstance(value, bool):  # before int: True is an int
        return "bool"
    for kind, types in _TYPES.items():
        if isinstance(value, types):
            return kind
    return None


_TYPES: Mapping[Kind, type] = {"int": int, "float": float, "str": str, "list": list, "map": dict}


class NoDefault(Enum):
    """Instead of a default: the key must be given, or its default is drawn anew in every process."""

    REQUIRED = "required"
    RANDOM = "random"


REQUIRED = NoDefault.REQUIRED
RANDOM = NoDefault.RANDOM


@dataclass(frozen=True)
class Key:
    """One setting that bears on checkpoints, as it is in the releases from ``since`` up to, without, ``until``.

    ``kinds`` are the kinds of YAML values that work (``HfArgumentParser.parse_dict`` converts nothing), ``choices`` the only
    strings that do (() for any), ``unit`` what a number counts. ``note`` says where the facts come from and what to know.
    """

    name: str
    kinds: frozenset[Kind]
    default: object
    since: str | None = None
    until: str | None = None
    unit: Unit | None = None
    choices: tuple[str, ...] = ()
    note: str = ""

    @property
    def lifetime(self) -> Lifetime:
        return Lifetime(self.since, self.until)

    def accepts(self, value: object) -> bool:
        """Whether a loaded YAML value is of a kind, and one of the choices, that works. Says nothing about ranges."""
        kind = kind_of(value)
        if kind is None or kind not in self.kinds:
            return False
        return kind != "str" or not self.choices or value in self.choices


def find_key(keys: Iterable[Key], name: str, release: str) -> Key | None:
    """The key of this name as it is in a release; None where that release has none, or it is not in the table."""
    return next((key for key in keys if key.name == name and key.lifetime.holds(release)), None)


def kinds(*names: Kind) -> frozenset[Kind]:
    """A set of kinds, for the tables."""
    return frozenset(names)


# The dataclasses keep what YAML gave and test its truth later: null and numbers work, a string is true even if it says "false".
FLAG = kinds("bool", "int", "null")
# Compared with numbers, so a string raises TypeError (seen with 5.24.0); a bool counts as 0 or 1, which nobody means.
NUMBER = kinds("int", "float")
# A float raises TypeError in range() or in torch's DataLoader (seen with 5.24.0).
COUNT = kinds("int")

_BOOL_FIELD = "bool field of training_args.py"

TRAINER_CHECKPOINT_KEYS: tuple[Key, ...] = (
    # where
    Key("output_dir", kinds("str"), REQUIRED, until="4.49", note="`output_dir: str` without a default up to 4.48.3"),
    Key(
        "output_dir",
        kinds("str", "null"),
        None,
        since="4.49",
        note="training_args.py __post_init__: None becomes `trainer_output`; a leading `~` is expanded",
    ),
    Key(
        "overwrite_output_dir",
        FLAG,
        False,
        until="5.0",
        note="training_args.py; no code of Trainer reads it. LLaMA-Factory keeps a field of its own since 0.9.4",
    ),
    # when
    Key(
        "save_strategy",
        kinds("str"),
        "steps",
        until="4.47",
        choices=("no", "steps", "epoch"),
        note="__post_init__: IntervalStrategy(value) raises ValueError on all else, so on a bare `no` (false)",
    ),
    Key(
        "save_strategy",
        kinds("str"),
        "steps",
        since="4.47",
        choices=("no", "steps", "epoch", "best"),
        note="__post_init__: SaveStrategy(value), trainer_utils.py; ValueError as before",
    ),
    Key(
        "save_steps",
        NUMBER,
        500,
        unit=Unit.STEP,
        note="`save_steps: float`; __post_init__: above 1 it must be whole, below 1 it is a fraction of the run. "
        "Only looked at with save_strategy `steps`",
    ),
    Key(
        "enable_jit_checkpoint",
        FLAG,
        False,
        since="5.0",
        note=_BOOL_FIELD + " since 5.0.0: a checkpoint is written on SIGTERM",
    ),
    # how many, what
    Key(
        "save_total_limit",
        kinds("int", "null"),
        None,
        note="`Optional[int]`; None, 0 and negative keep all (trainer.py _rotate_checkpoints, in v5 trainer_utils.py)",
    ),
    Key("save_only_model", FLAG, False, note=_BOOL_FIELD + ": no optimizer, scheduler and random state in the checkpoint"),
    Key("save_on_each_node", FLAG, False, note=_BOOL_FIELD + ": the first process of every node writes"),
    Key("save_safetensors", FLAG, True, until="5.0", note=_BOOL_FIELD + " up to 4.57.1"),
    # the best one
    Key(
        "load_best_model_at_end",
        FLAG,
        False,
        note="__post_init__: save and eval strategy equal, save_steps a multiple of eval_steps, unless save_strategy is `best`",
    ),
    Key("metric_for_best_model", kinds("str", "null"), None, note="__post_init__: `loss` where load_best_model_at_end is set"),
    Key("greater_is_better", FLAG, None, note="__post_init__: derived from metric_for_best_model where None"),
    Key(
        "evaluation_strategy",
        kinds("str"),
        "no",
        until="4.41",
        choices=("no", "steps", "epoch"),
        note="the name of eval_strategy up to 4.40.2",
    ),
    Key(
        "evaluation_strategy",
        kinds("str", "null"),
        None,
        since="4.41",
        until="4.51",
        choices=("no", "steps", "epoch"),
        note="deprecated name of eval_strategy, which it overrides (4.41.2 __post_init__); gone in 4.51.3",
    ),
    Key(
        "eval_strategy",
        kinds("str"),
        "no",
        since="4.41",
        choices=("no", "steps", "epoch"),
        note="__post_init__: IntervalStrategy(value), as save_strategy",
    ),
    Key(
        "eval_steps",
        kinds("int", "float", "null"),
        None,
        unit=Unit.STEP,
        note="__post_init__: None and 0 become logging_steps where eval_strategy is `steps`; below 1 a fraction of the run",
    ),
    Key("logging_steps", NUMBER, 500, unit=Unit.STEP, note="`logging_steps: float`; below 1 a fraction of the run"),
    # taking up again
    Key(
        "resume_from_checkpoint",
        kinds("str", "bool", "null"),
        None,
        note="`Optional[str]`; Trainer never reads it, scripts pass it to train(), which takes a bool too",
    ),
    Key("ignore_data_skip", FLAG, False, note=_BOOL_FIELD + ": true starts the epoch's data again"),
    Key(
        "restore_callback_states_from_checkpoint",
        FLAG,
        False,
        since="4.41",
        note=_BOOL_FIELD + " since 4.41.2: false starts early stopping's count again",
    ),
    # how long
    Key("do_train", FLAG, False, note=_BOOL_FIELD + "; read by scripts, not by Trainer"),
    Key("max_steps", COUNT, -1, unit=Unit.STEP, note="`max_steps: int`; above 0 it overrides num_train_epochs"),
    Key("num_train_epochs", NUMBER, 3.0, unit=Unit.EPOCH, note="`num_train_epochs: float`"),
    Key("per_device_train_batch_size", COUNT, 8, unit=Unit.SAMPLE, note="`int` field of training_args.py"),
    Key("gradient_accumulation_steps", COUNT, 1, note="`int` field of training_args.py; batches a step"),
    # the layout of a checkpoint
    Key(
        "deepspeed",
        kinds("str", "map", "bool", "null"),
        None,
        note="a path or the configuration itself (_VALID_DICT_FIELDS); only looked at where true, so false is none",
    ),
    Key(
        "fsdp",
        kinds("str", "list", "bool"),
        "",
        until="4.57",
        note="options in one string or a list; __post_init__: true is full_shard, None raises TypeError up to 4.56.2",
    ),
    Key(
        "fsdp",
        kinds("str", "list", "bool", "null"),
        None,
        since="4.57",
        note="default None since 4.57.1, a mere switch since 5.12.0; false raises TypeError in 4.57.1",
    ),
    Key("fsdp_config", kinds("str", "map", "null"), None, note="a path or the configuration itself (_VALID_DICT_FIELDS)"),
    # copies elsewhere
    Key("push_to_hub", FLAG, False, note=_BOOL_FIELD),
    Key(
        "hub_strategy",
        kinds("str"),
        "every_save",
        choices=("end", "every_save", "checkpoint", "all_checkpoints"),
        note="__post_init__: HubStrategy(value), trainer_utils.py",
    ),
)


def trainer_key(name: str, transformers: str) -> Key | None:
    """A setting of the Trainer that bears on checkpoints, as it is in a release of transformers; None where there is none."""
    return find_key(TRAINER_CHECKPOINT_KEYS, name, transformers)
