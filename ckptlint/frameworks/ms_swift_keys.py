"""The settings of ms-swift's commands that bear on checkpoints, by release, and what argparse makes of their values.

Read from ``swift/llm/utils/argument.py`` (wheels 1.5.4, 1.6.1, 1.7.2, 1.7.3, 2.0.0, 2.0.5, 2.2.5, 2.3.2.post1, 2.4.2, 2.6.1),
``swift/llm/argument``, ``swift/trainers/arguments.py`` and ``swift/megatron/argument`` (3.0.3, 3.2.2, 3.4.1, 3.6.4, 3.8.3,
3.9.0, 3.10.3, 3.11.3, 3.12.6), ``swift/arguments`` and ``swift/megatron/arguments`` (4.0.0, 4.0.4, 4.1.0, 4.2.3, 4.4.2, 4.6.0)
and the repository at 3602360a (4.6.0.dev0). ``since`` is the first of them with a setting, ``until`` the first without.
"""

from __future__ import annotations

from collections.abc import Mapping

from ckptlint.frameworks.trainer_keys import Key, kinds
from ckptlint.run import Unit

# What a command or a configuration is read as where the project pins nothing: the newest that is released.
ASSUMED = "4.6.0"

# cli/main.py: `--config x.yaml` through OmegaConf up to 4.0.4, `swift sft x.yaml` through yaml.safe_load from 4.1.0.
POSITIONAL_FILE_SINCE = "4.1"

TEXT, FLAG, WHOLE, NUMBER = kinds("str"), kinds("bool"), kinds("int"), kinds("float")

# swift sft, pt, rlhf: on the Hugging Face Trainer.
TRAINER_KEYS: tuple[Key, ...] = (
    Key("output_dir", TEXT, None, note="None: output/<model>; 1.x and 2.x put the model type behind it"),
    Key("add_output_dir_suffix", FLAG, True, until="3.0", note="None counts as true: adds <model type>/v<N>-<time>"),
    Key("add_version", FLAG, True, since="3.0", note="adds v<N>-<time>; off by itself in a PAI job"),
    Key("resume_from_checkpoint", TEXT, None, note="to_abspath(check_path_exist=True): FileNotFoundError for what is no path"),
    Key("resume_only_model", FLAG, False, since="2.2", note="no optimizer, schedule and random state"),
    Key("ignore_data_skip", FLAG, False),
    Key("use_flash_ckpt", FLAG, False, since="3.8", note="resumes from the version directory right before this one"),
    Key("save_strategy", TEXT, "steps", choices=("no", "steps", "epoch", "best")),
    Key("save_steps", WHOLE, None, until="3.0", unit=Unit.STEP, note="None: eval_steps"),
    Key("save_steps", NUMBER, 500, since="3.0", unit=Unit.STEP, note="the Trainer's"),
    Key("eval_steps", NUMBER, None, unit=Unit.STEP, note="1.x and 2.x: 50, or 200 for sft_type full (50 in 1.x)"),
    Key("save_total_limit", WHOLE, 2, until="3.0", note="-1 keeps all"),
    Key("save_total_limit", WHOLE, None, since="3.0", note="the Trainer's"),
    Key("save_only_model", FLAG, None, until="2.3", note="None: true for sft_type full, and under DeepSpeed up to 2.0.0"),
    Key("save_only_model", FLAG, False, since="2.3", note="2.3.2: `save_only_model: bool = False`"),
    Key("create_checkpoint_symlink", FLAG, False, since="3.0"),
    Key("load_best_model_at_end", FLAG, False),
    Key("eval_strategy", TEXT, None, choices=("no", "steps", "epoch"), note="None: save_strategy, if there is data to test on"),
    Key("max_steps", WHOLE, -1, unit=Unit.STEP),
    Key("num_train_epochs", WHOLE, 1, until="3.0", unit=Unit.EPOCH),
    Key("num_train_epochs", NUMBER, 3.0, since="3.0", unit=Unit.EPOCH, note="the Trainer's"),
    Key("deepspeed", kinds("str", "map"), None, note="a name (zero2), a path or JSON"),
    Key("sft_type", TEXT, "lora", until="3.0"),
    Key("train_type", TEXT, "lora", since="3.0", until="4.0"),
    Key("tuner_type", TEXT, "lora", since="4.0"),
)

# megatron sft, pt, rlhf.
MEGATRON_KEYS: tuple[Key, ...] = (
    Key("save", TEXT, None, until="4.0", note="None: megatron_output/<model>"),
    Key("output_dir", TEXT, None, since="4.0", note="None: megatron_output/<model>"),
    Key("add_version", FLAG, True, note="adds v<N>-<time>"),
    Key("save_interval", WHOLE, 500, until="4.0", unit=Unit.STEP),
    Key("save_steps", WHOLE, 500, since="4.0", unit=Unit.STEP, note="0: not while training (callbacks/default_flow.py)"),
    Key("save_strategy", TEXT, "steps", choices=("steps", "epoch"), since="4.0"),
    Key("save_total_limit", WHOLE, None, since="4.0", note="below 2, or with async_save: ValueError"),
    Key("async_save", FLAG, False),
    Key("load", TEXT, None, until="4.0"),
    Key("mcore_model", TEXT, None, since="4.0"),
    Key("mcore_adapter", TEXT, None, since="4.0"),
    Key("finetune", FLAG, False, until="4.0"),
    Key("finetune", FLAG, True, since="4.0", note="true: iteration 0, no optimizer and random state (load_mcore_checkpoint)"),
    Key("no_save_optim", FLAG, False),
    Key("no_save_rng", FLAG, False),
    Key("no_load_optim", FLAG, False),
    Key("no_load_rng", FLAG, False),
    Key("train_iters", WHOLE, None, unit=Unit.STEP),
    Key("max_epochs", WHOLE, None, until="4.0", unit=Unit.EPOCH),
    Key("num_train_epochs", WHOLE, None, since="4.0", unit=Unit.EPOCH),
    Key("tuner_type", TEXT, "full", since="4.0"),
)


def keys_of(table: tuple[Key, ...], release: str) -> Mapping[str, Key]:
    """The settings of a table as one release has them, by name."""
    return {key.name: key for key in table if key.lifetime.holds(release)}


_TRUE = frozenset({"yes", "true", "t", "y", "1"})
_FALSE = frozenset({"no", "false", "f", "n", "0"})


def parsed(key: Key, value: object) -> object:
    """What argparse makes of a value: cli/main.py turns each into a string, HfArgumentParser that into the field's type.

    The value itself where it is refused (false for `no`, too), and for lists and mappings.
    """
    if isinstance(value, (list, dict)) or (value is False and "no" in key.choices):
        return value
    text = str(value)
    if key.kinds == FLAG:
        word = text.lower()
        return True if word in _TRUE else False if word in _FALSE else value
    if key.kinds in (WHOLE, NUMBER):
        try:
            return int(text) if key.kinds == WHOLE else float(text)
        except ValueError:
            return value if not isinstance(value, (int, float)) or isinstance(value, bool) else text
    return text
