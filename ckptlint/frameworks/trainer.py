"""What Hugging Face's Trainer makes of its arguments: shared by every framework that is built on it.

Sources: transformers 4.57.1 and 5.23.0 ``training_args.py`` (``__post_init__``), ``trainer.py``, ``trainer_callback.py``
(``DefaultFlowCallback``), ``trainer_utils.py`` (``get_last_checkpoint``, ``rotate_checkpoints``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ckptlint.frameworks.settings import Settings
from ckptlint.frameworks.trainer_keys import FLAG, Key
from ckptlint.run import (
    NEVER,
    Amount,
    Fact,
    Interval,
    Missing,
    Refusal,
    Retention,
    Setting,
    State,
    Unit,
    Unknown,
    shown,
)

SAVE_STRATEGIES = ("no", "steps", "epoch", "best")
EVAL_STRATEGIES = ("no", "steps", "epoch")

# get_last_checkpoint: re.compile(r"^checkpoint\-(\d+)$"), and it must be a directory.
CHECKPOINT_NAME = re.compile(r"checkpoint-(\d+)")

# output_dir where it is None, since 4.49 (training_args.py __post_init__).
DEFAULT_OUTPUT_DIR = "trainer_output"

# Beyond it no number of steps is meant, and a float no longer counts them.
_LARGEST = 2**53

# The default of save_steps, in every release read.
USUAL_INTERVAL = 500

# trainer_callback.py DefaultFlowCallback.on_step_end: the last step is saved too since this release.
SAVES_LAST_STEP_SINCE = "4.42"


def number(value: object) -> float | None:
    """A value the Trainer can compute with; a bool is none, and neither is infinity."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or abs(value) > _LARGEST or value != value:
        return None
    return float(value)


def is_on(value: object) -> bool:
    """A flag as Python takes it: any text is true, "false" too."""
    return value is True or (isinstance(value, str) and value != "")


def length(settings: Settings) -> tuple[Fact[Amount], Setting]:
    """How long the run is: ``max_steps`` if positive, else the epochs."""
    steps = settings.setting("max_steps")
    count = number(steps.value)
    if count is None and steps.written:
        return Unknown(f"`{steps}` is not a number"), steps
    if count is not None and count > 0:
        return Amount(count, Unit.STEP), steps
    epochs = settings.setting("num_train_epochs")
    count = number(epochs.value)
    if count is None:
        return Unknown(f"`{epochs}` is not a number"), epochs
    return Amount(count, Unit.EPOCH), epochs


def eval_strategy(settings: Settings) -> Setting:
    """``eval_strategy``, or ``evaluation_strategy`` as it was called before 4.41."""
    return settings.setting("eval_strategy" if "evaluation_strategy" not in settings else "evaluation_strategy")


def interval(settings: Settings, *, saves_at_end: bool) -> Interval:
    """How often the Trainer saves. ``saves_at_end``: this release saves once more at the last step (since 4.42)."""
    strategy, steps = settings.setting("save_strategy"), settings.setting("save_steps")
    if strategy.value in ("no", False):
        return Interval(NEVER, False, strategy, repair=_by_steps(settings))
    if strategy.value == "epoch":
        return Interval(Amount(1, Unit.EPOCH), True, strategy, repair=_by_steps(settings))
    if strategy.value == "best":
        if eval_strategy(settings).value in ("no", False):
            why = "nothing is ever evaluated, so no step is ever the best"
            return Interval(NEVER, False, strategy, why=why, repair=_by_steps(settings))
        return Interval(Unknown("a checkpoint is written only when the metric improves"), False, strategy)
    if strategy.value != "steps":
        return Interval(Unknown(f"`{strategy}` is no save strategy"), saves_at_end, strategy)
    every = number(steps.value)
    if every is None or (every > 1 and every != int(every)):
        return Interval(Unknown(f"`{steps}` is not a number of steps"), saves_at_end, steps)
    if every <= 0:
        return Interval(NEVER, saves_at_end, steps, disabled=True, repair=by_usual_interval(steps, length(settings)[0]))
    unit = Unit.FRACTION if every < 1 else Unit.STEP
    return Interval(Amount(every, unit), saves_at_end, steps)


def by_usual_interval(setting: Setting, run: Fact[Amount]) -> tuple[tuple[Setting, object], ...]:
    """An interval where the author has not chosen any: the Trainer's own 500 steps, or a tenth of a shorter run.

    () for a run of one step.
    """
    if not isinstance(run, Amount) or run.unit is not Unit.STEP:
        return ((setting, USUAL_INTERVAL),)
    return ((setting, max(1, min(USUAL_INTERVAL, int(run.value) // 10))),) if run.value > 1 else ()


def _by_steps(settings: Settings) -> tuple[tuple[Setting, object], ...]:
    """What to write for a checkpoint every so many steps; ``save_steps`` only where what it says would not do."""
    strategy, steps = settings.setting("save_strategy"), settings.setting("save_steps")
    run = length(settings)[0]
    every = number(steps.value)
    far = isinstance(run, Amount) and run.unit is Unit.STEP and every is not None and every >= run.value
    if every is None or every <= 0 or far:
        return ((strategy, "steps"), *by_usual_interval(steps, run))
    return ((strategy, "steps"),)


def retention(settings: Settings) -> Retention:
    """``save_total_limit``: None, 0 and negative keep all. The new checkpoint is whole before an old one goes."""
    limit = settings.setting("save_total_limit")
    best = is_on(settings.value("load_best_model_at_end"))
    count = number(limit.value)
    if limit.value is not None and count is None:
        return Retention(Unknown(f"`{limit}` is not a number"), limit, best)
    return Retention(int(count) if count is not None and count > 0 else None, limit, best)


def missing_state(settings: Settings) -> Iterator[Missing]:
    """What ``save_only_model`` leaves out of the checkpoints."""
    """``save_only_model``. A plain Trainer then goes on silently; DeepSpeed finds no ``global_step`` folder and raises."""
    only_model = settings.setting("save_only_model")
    stops = (
        "a start from one of them stops, because DeepSpeed finds no `global_step` folder" if settings.value("deepspeed") else ""
    )
    if is_on(only_model.value):
        for state in (State.OPTIMIZER, State.SCHEDULER, State.RNG):
            yield Missing(state, only_model, safe_value=False, effect=stops)


def refusals(settings: Settings, keys: Iterable[Key], title: str) -> Iterator[Refusal]:
    """Values of checkpoint keys that stop the Trainer before the first step, or that it takes for something else."""
    for key in keys:
        setting = settings.setting(key.name)
        if setting.written and not key.accepts(setting.value):
            refusal = _misread(setting, key, title)
            if refusal is not None:
                yield refusal
    steps = settings.setting("save_steps")
    every = number(steps.value)
    if every is not None and every > 1 and every != int(every):
        yield Refusal(steps, f"above 1 it must be whole, and {title} stops with a ValueError", f"write {int(every)}")
    yield from _best_model_refusals(settings, title)


def _misread(setting: Setting, key: Key, title: str) -> Refusal | None:
    """What happens to a value of a kind or with a content that the key does not take."""
    value = setting.value
    if key.choices:
        options = ", ".join(key.choices)
        if value is False and "no" in key.choices:
            effect = f"the bare word is the YAML boolean false, and {title} stops with a ValueError"
            return Refusal(setting, effect, 'write "no" in quotes', "no")
        return Refusal(setting, f"{title} stops with a ValueError", f"write one of {options}")
    if key.kinds == FLAG:
        if not isinstance(value, str):
            return None
        meant = {"true": True, "false": False}.get(value.strip().lower())
        effect = "text in quotes counts as true, whatever it says"
        return Refusal(setting, effect, "write true or false without quotes", meant, stops=False)
    if key.kinds & {"int", "float"}:
        return _no_number(setting, key, title)
    if isinstance(value, (int, float)) and key.kinds & {"str"}:
        return Refusal(
            setting, f"{shown(value)} is not text, and {title} stops with a TypeError", "put it in quotes", str(setting.value)
        )
    return None


def _no_number(setting: Setting, key: Key, title: str) -> Refusal | None:
    value = setting.value
    if isinstance(value, (bool, list, dict)):
        return None
    if isinstance(value, float):
        effect = f"{shown(value)} is no whole number, and {title} stops with a TypeError"
        return Refusal(setting, effect, "write a whole number", int(value) if value.is_integer() else None)
    if isinstance(value, str) and re.fullmatch(r"\s*\d+(\.\d+)?\s*", value):
        meant = float(value) if "." in value else int(value)
        effect = f"a number in quotes is text, and {title} stops with a TypeError"
        return Refusal(setting, effect, "write it without quotes", meant if key.accepts(meant) else None)
    return Refusal(setting, f"this is no number, and {title} stops with a TypeError", "write a number")


def _best_model_refusals(settings: Settings, title: str) -> Iterator[Refusal]:
    best = settings.setting("load_best_model_at_end")
    save, evaluate = settings.setting("save_strategy"), eval_strategy(settings)
    if not is_on(best.value) or save.value == "best":
        return
    if save.value in SAVE_STRATEGIES and evaluate.value in EVAL_STRATEGIES and save.value != evaluate.value:
        wants = f"`load_best_model_at_end` needs `{evaluate.name}` and `save_strategy` to be the same"
        yield Refusal(
            best, f"{wants} ({evaluate.value} and {save.value}), and {title} stops with a ValueError", "make them equal"
        )
        return
    save_steps, eval_steps = settings.setting("save_steps"), settings.setting("eval_steps")
    if eval_steps.value is None:
        eval_steps = settings.setting("logging_steps")
    every, tested = number(save_steps.value), number(eval_steps.value)
    if save.value != "steps" or every is None or tested is None or min(every, tested) < 1:
        return
    if every % tested:
        effect = (
            f"with `load_best_model_at_end` {save_steps.name} ({every:g}) must be a multiple of {eval_steps.name} ({tested:g})"
        )
        yield Refusal(
            save_steps, f"{effect}; {title} stops with a ValueError", f"write {max(1, round(every / tested)) * tested:g}"
        )
