"""The settings of axolotl's configurations that bear on checkpoints, and what pydantic makes of their values.

Read from the input schema (``utils/config/models/input`` up to 0.7, ``utils/schemas`` since 0.8) of the releases 0.5.0 to
0.18.0, each tag, of the wheel 0.19.0, and from ``utils/config/__init__.py`` (``normalize_config``) and the trainer builders of
0.4.0, 0.5.0, 0.7.0, 0.12.2, 0.18.0 and 0.19.0. Of the schema's 705 names in these releases none but the ones below lies near
one of them. ``extra`` is pydantic's default: keys that it does not know are dropped in silence.
"""

from __future__ import annotations

import re
from math import isfinite

from ckptlint.frameworks.trainer_keys import Key, kinds
from ckptlint.run import Unit

# What a configuration is read as where the project pins nothing: the newest that was read.
ASSUMED = "0.19.0"

DEFAULT_LIMIT = 4  # core/builders/base.py: save_total_limit where it is None or 0

FLAG = kinds("bool", "null")

AXOLOTL_KEYS: tuple[Key, ...] = (
    Key("output_dir", kinds("str"), "./model-out", note="schemas/model.py ModelOutputConfig"),
    Key("resume_from_checkpoint", kinds("str", "null"), None, note="`str | None`: a boolean or a number is refused"),
    Key("auto_resume_from_checkpoints", FLAG, None, note="utils/train.py determine_last_checkpoint"),
    Key("save_steps", kinds("int", "float", "null"), None, unit=Unit.STEP, note="beats save_strategy; 0 is as if not given"),
    Key("saves_per_epoch", kinds("int", "null"), None, note="save_steps = 1 / (this * num_epochs) if that is below 1"),
    Key(
        "save_strategy",
        kinds("str", "null"),
        "epoch",
        choices=("no", "steps", "epoch", "best", ""),
        note="core/builders/base.py: `epoch` where nothing else says; the choices are the Trainer's",
    ),
    Key("save_total_limit", kinds("int", "null"), DEFAULT_LIMIT, note="core/builders/base.py: None and 0 mean 4"),
    Key("save_only_model", FLAG, False, note="passed to the Trainer"),
    Key("save_first_step", FLAG, None, since="0.12", note="one save after the first step"),
    Key("num_epochs", kinds("int"), 1, until="0.7", unit=Unit.EPOCH, note="`num_epochs: int`"),
    Key("num_epochs", kinds("float"), 1.0, since="0.7", unit=Unit.EPOCH, note="`num_epochs: float`"),
    Key("max_steps", kinds("int", "null"), None, unit=Unit.STEP, note="above 0 it overrides num_epochs"),
    Key("load_best_model_at_end", FLAG, False, note="needs save_steps, eval_steps and an evaluation set"),
    Key("deepspeed", kinds("str", "map", "null"), None, note="a path or the configuration itself"),
    Key("base_model", kinds("str"), None),
    Key("lora_model_dir", kinds("str", "null"), None, note="an adapter to begin with"),
)

# `save_strategy` beside `saves_per_epoch` had to be `steps` before this release (utils/config/__init__.py of 0.5.0).
STRATEGY_BESIDE_SAVES_PER_EPOCH_SINCE = "0.5.2"

_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "off", "f", "false", "n", "no"})
_INTEGER = re.compile(r"[+-]?\d+(?:_\d+)*(?:\.0*)?")
_FLOAT = re.compile(r"[+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def coerced(key: Key, value: object) -> object:
    """What pydantic (2, lax mode) makes of a loaded YAML value; the value itself where it refuses it."""
    if "bool" in key.kinds:
        return _flag(value)
    if key.kinds & {"int", "float"}:
        return _number(value, whole="int" in key.kinds, fraction="float" in key.kinds)
    return value


def _flag(value: object) -> object:
    if isinstance(value, str):
        word = value.lower()
        return True if word in _TRUE else False if word in _FALSE else value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    return value


def _number(value: object, *, whole: bool, fraction: bool) -> object:
    if isinstance(value, bool):
        return int(value) if whole else float(value)
    if isinstance(value, str):
        text = value.strip()
        if whole and _INTEGER.fullmatch(text):
            return int(text.partition(".")[0])
        return float(text) if fraction and _FLOAT.fullmatch(text) else value
    if isinstance(value, float) and whole and not fraction:
        return int(value) if isfinite(value) and value == int(value) else value
    return float(value) if isinstance(value, int) and not whole else value
