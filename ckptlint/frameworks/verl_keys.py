"""The keys of verl's trainers that bear on checkpoints, with their defaults by release.

Read from ``verl/trainer/config/`` of the released wheels 0.2.0.post2, 0.3.0.post1, 0.4.0, 0.4.1, 0.5.0, 0.6.1, 0.7.0, 0.7.1,
0.8.0, 0.9.0 and 0.9.1: ``ppo_trainer.yaml``, ``ppo_megatron_trainer.yaml`` (up to 0.4.1 whole files, from 0.5.0 on as Hydra
composes them, ``_generated_ppo_trainer.yaml``), ``sft_trainer.yaml`` (0.2 to 0.7.0) and ``sft_trainer_engine.yaml`` (from
0.6.1 on).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ckptlint.frameworks.trainer_keys import FLAG, Key, kinds
from ckptlint.run import Unit

RELEASES_READ = ("0.2.0", "0.3.0", "0.4.0", "0.4.1", "0.5.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1")

# What a configuration is read as where the project pins nothing: the newest that is released.
ASSUMED = "0.9.1"


class Trainer(str, Enum):
    """Which of verl's programs a configuration is for."""

    PPO = "main_ppo"
    SFT = "fsdp_sft_trainer"
    ENGINE_SFT = "sft_trainer"


# The same three names under which Hydra finds the framework's own configurations.
CONFIG_NAMES: Mapping[str, Trainer] = {
    "ppo_trainer": Trainer.PPO,
    "ppo_megatron_trainer": Trainer.PPO,
    "sft_trainer": Trainer.SFT,
    "sft_trainer_engine": Trainer.ENGINE_SFT,
}

RESUME_MODES = ("auto", "disable", "resume_path")
CONTENTS = ("model", "optimizer", "extra")
DEFAULT_DIRECTORY = "checkpoints/${trainer.project_name}/${trainer.experiment_name}"

_COUNT = kinds("int")
_COUNT_OR_NULL = kinds("int", "null")
_PATH = kinds("str", "null")
_LIST = kinds("list")

_SHARED = (
    Key(
        "trainer.total_training_steps",
        _COUNT_OR_NULL,
        None,
        unit=Unit.STEP,
        note="null: the length of the dataloader times total_epochs",
    ),
    Key("trainer.nnodes", _COUNT, 1),
    Key(
        "trainer.del_local_ckpt_after_load", FLAG, False, note="removes nothing: guarded by is_non_local, false of a local file"
    ),
)

PPO_KEYS: tuple[Key, ...] = (
    *_SHARED,
    Key(
        "trainer.save_freq",
        _COUNT,
        -1,
        unit=Unit.STEP,
        note="ray_trainer.py fit: `save_freq > 0 and (is_last_step or step % save_freq == 0 or esi)`; null is a TypeError",
    ),
    Key("trainer.total_epochs", _COUNT, 30, unit=Unit.EPOCH),
    Key("trainer.project_name", kinds("str"), "verl_examples"),
    Key("trainer.experiment_name", kinds("str"), "gsm8k"),
    Key("trainer.n_gpus_per_node", _COUNT, 8),
    Key(
        "trainer.default_local_dir",
        kinds("str"),
        DEFAULT_DIRECTORY,
        note="made absolute with the working directory of the TaskRunner actor; `~` and variables are not expanded",
    ),
    Key(
        "trainer.default_hdfs_dir",
        _PATH,
        None,
        note="_load_checkpoint up to 0.8.0, and with use_v1 false: NotImplementedError unless resume_mode is disable",
    ),
    Key("trainer.resume_mode", kinds("str"), "auto", choices=RESUME_MODES, note="Megatron in 0.2: disable"),
    Key("trainer.resume_from_path", kinds("str", "bool"), False, until="0.3.0"),
    Key("trainer.resume_from_path", _PATH, None, since="0.3.0", note="read with resume_mode resume_path only"),
    Key("trainer.remove_previous_ckpt_in_save", FLAG, False, until="0.3.0", note="later a deprecated alias of keeping one"),
    Key(
        "trainer.max_actor_ckpt_to_keep",
        _COUNT_OR_NULL,
        None,
        since="0.3.0",
        note="not a number, or not positive: all are kept. Deleted before the new one is written up to 0.7.0",
    ),
    Key("trainer.max_critic_ckpt_to_keep", _COUNT_OR_NULL, None, since="0.3.0"),
    Key("trainer.esi_redundant_time", kinds("int", "float"), 0, since="0.5.0", note="seconds; needs save_freq above 0"),
    Key("trainer.val_only", FLAG, False, since="0.4.1", note="true: validates and returns before training"),
    Key("trainer.use_v1", FLAG, True, since="0.9.0"),
    Key("trainer.v1.trainer_mode", kinds("str"), "sync", since="0.9.0", choices=("sync", "colocate_async", "separate_async")),
    Key("algorithm.adv_estimator", kinds("str"), "gae"),
    Key("critic.enable", FLAG, None, since="0.6.1", note="null: whether adv_estimator is gae"),
    Key(
        "actor_rollout_ref.actor.checkpoint.contents",
        _LIST,
        ["model", "hf_model", "optimizer", "extra"],
        since="0.3.0",
        until="0.4.0",
    ),
    Key("actor_rollout_ref.actor.checkpoint.contents", _LIST, list(CONTENTS), since="0.4.0", until="0.4.1"),
    Key("critic.checkpoint.contents", _LIST, ["model", "hf_model", "optimizer", "extra"], since="0.3.0", until="0.4.0"),
    Key("critic.checkpoint.contents", _LIST, list(CONTENTS), since="0.4.0", until="0.4.1"),
    Key("actor_rollout_ref.actor.checkpoint.save_contents", _LIST, list(CONTENTS), since="0.4.1"),
    Key("actor_rollout_ref.actor.checkpoint.load_contents", _LIST, "${.save_contents}", since="0.4.1"),
    Key("actor_rollout_ref.actor.checkpoint.async_save", FLAG, False, since="0.4.1"),
    Key("critic.checkpoint.save_contents", _LIST, list(CONTENTS), since="0.4.1"),
    Key("critic.checkpoint.load_contents", _LIST, "${.save_contents}", since="0.4.1"),
    Key("critic.checkpoint.async_save", FLAG, False, since="0.4.1"),
    Key("actor_rollout_ref.actor.strategy", kinds("str"), "fsdp", note="megatron in ppo_megatron_trainer.yaml"),
    Key(
        "actor_rollout_ref.actor.optim.use_checkpoint_opt_param_scheduler",
        FLAG,
        False,
        since="0.4.1",
        note="Megatron: the schedule is saved, and loaded only with true",
    ),
    Key("actor_rollout_ref.actor.optim.lr_warmup_steps", _COUNT_OR_NULL, -1),
    Key("actor_rollout_ref.actor.optim.lr_decay_style", kinds("str"), "constant"),
)

_SFT_SHARED = (
    *_SHARED,
    Key("trainer.total_epochs", _COUNT, 4, unit=Unit.EPOCH),
    Key("trainer.project_name", kinds("str"), "gsm8k-sft"),
    Key("trainer.experiment_name", kinds("str"), "test"),
    Key("trainer.resume_mode", kinds("str"), "auto", since="0.5.0", choices=RESUME_MODES),
    Key("trainer.resume_from_path", _PATH, None, since="0.5.0", note="pins in the mode auto, too"),
    Key("trainer.max_ckpt_to_keep", _COUNT_OR_NULL, None, since="0.4.0", note="without effect before 0.5.0"),
)

SFT_KEYS: tuple[Key, ...] = (
    *_SFT_SHARED,
    Key(
        "trainer.save_freq",
        _COUNT,
        -1,
        since="0.4.0",
        unit=Unit.STEP,
        note="fsdp_sft_trainer.py fit: `is_last_step or (save_freq > 0 and step % save_freq == 0)`",
    ),
    Key("trainer.default_local_dir", kinds("str"), "/tmp/sft_model", until="0.4.0"),
    Key("trainer.default_local_dir", kinds("str"), DEFAULT_DIRECTORY, since="0.4.0"),
    Key("trainer.default_hdfs_dir", _PATH, "hdfs://tmp/experiments/gsm8k/gemma-1.1-7b-it/", until="0.4.0"),
    Key("trainer.default_hdfs_dir", _PATH, None, since="0.4.0"),
    Key("trainer.resume_path", _PATH, None, until="0.5.0", note="no code reads it"),
    Key("trainer.checkpoint.save_contents", _LIST, list(CONTENTS), since="0.5.0"),
    Key("trainer.checkpoint.load_contents", _LIST, "${.save_contents}", since="0.5.0"),
)

ENGINE_SFT_KEYS: tuple[Key, ...] = (
    *_SFT_SHARED,
    Key(
        "trainer.save_freq",
        kinds("int", "str"),
        -1,
        unit=Unit.STEP,
        choices=("after_each_epoch",),
        note="sft_trainer.py: `is_last_step or step % save_freq == 0` behind `save_freq > 0`; 0 is a ZeroDivisionError",
    ),
    Key("trainer.default_local_dir", kinds("str"), DEFAULT_DIRECTORY),
    Key("trainer.default_hdfs_dir", _PATH, None),
    Key("checkpoint.save_contents", _LIST, list(CONTENTS)),
    Key("checkpoint.load_contents", _LIST, "${.save_contents}"),
    Key("checkpoint.async_save", FLAG, False),
)

KEYS: Mapping[Trainer, tuple[Key, ...]] = {
    Trainer.PPO: PPO_KEYS,
    Trainer.SFT: SFT_KEYS,
    Trainer.ENGINE_SFT: ENGINE_SFT_KEYS,
}


def defaults(trainer: Trainer, release: str, *, megatron: bool = False) -> dict[str, object]:
    """What a release takes for each key of the table that is not written."""
    found = {key.name: key.default for key in KEYS[trainer] if key.lifetime.holds(release)}
    if megatron and trainer is Trainer.PPO:
        found["actor_rollout_ref.actor.strategy"] = "megatron"
        if release.startswith("0.2"):
            found["trainer.resume_mode"] = "disable"
    return found
