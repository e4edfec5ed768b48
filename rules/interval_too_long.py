from __future__ import annotations

import re
from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, advice, setting_to, settings_to
from ckptlint.run import Amount, Interval, Run, Unit, at

# RunWhere's advice by model size: (billions of parameters below, steps between two checkpoints).
ADVICE = ((1.0, 100), (7.0, 500), (70.0, 1000), (float("inf"), 2000))
_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[bB](?![a-zA-Z0-9])")


class IntervalTooLong(Rule):
    """A save interval that the run never reaches, or that loses more than it need.

    ## What it does
    Reports an interval that is not shorter than the run. Where the size of the model stands in its name, it also reports (as a
    warning) an interval above what RunWhere advises: every 100 steps below 1 billion parameters, 500 below 7, 1000 below 70,
    2000 from there on.

    ## Why it matters
    An interval of 2000 in a run of 1000 steps saves nothing before the end: a kill restarts the run at step 0. A long interval
    loses as much at every kill.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_steps: 3000
    max_steps: 1000
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_steps: 100
    max_steps: 1000
    ```

    ## Fix safety
    Unsafe: more checkpoints cost time and disk space. The fix takes a tenth of the run, or the advice.

    ## References
    - RunWhere, checkpoint best practices: advice by model size
    """

    code = "CKP104"
    name = "interval-too-long"
    severity = Severity.ERROR
    fix = "unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        for write in run.writes:
            every = write.interval.every
            if not isinstance(every, Amount):
                continue
            if _single_step(run):
                continue
            if write.interval.as_long_as(run.length) and not _one_save_at_end(every, run):
                yield self._unreachable(write.interval, every, run)
            elif every.unit is Unit.STEP:
                yield from self._above_advice(write.interval, every, run)

    def _unreachable(self, interval: Interval, every: Amount, run: Run) -> Finding:
        tenth = _tenth(every, run)
        last = f"at step {run.length.value - 1:.0f}" if tenth and isinstance(run.length, Amount) else "before the end"
        changes = ((interval.setting, tenth),) if tenth else interval.repair
        message = f"a kill {last} restarts at 0: `{interval.setting}` is not below `{run.length_setting}`{advice(changes)}"
        fix = settings_to(changes, safe=False)
        return Finding(at(interval.setting, run), message, Severity.INFO if run.short else None, fix)

    def _above_advice(self, interval: Interval, every: Amount, run: Run) -> Iterator[Finding]:
        size = model_size(run.model)
        if size is None:
            return
        advised = next(steps for below, steps in ADVICE if size < below)
        if every.value <= advised or run.short:
            return
        message = (
            f"a kill loses up to {every}: `{interval.setting}`; for a model of {size:g} billion parameters "
            f"a save every {advised} is advised"
        )
        yield Finding(at(interval.setting, run), message, Severity.WARNING, setting_to(interval.setting, advised, safe=False))


def _tenth(every: Amount, run: Run) -> int | None:
    """A tenth of the run, where the run and the interval are counted in steps."""
    length = run.length
    if not isinstance(length, Amount) or length.unit is not Unit.STEP or every.unit is not Unit.STEP or length.value <= 1:
        return None
    return max(1, int(length.value) // 10)


def _single_step(run: Run) -> bool:
    """A run of one step has no moment to save at but its end."""
    return isinstance(run.length, Amount) and run.length.unit is Unit.STEP and run.length.value <= 1


def _one_save_at_end(every: Amount, run: Run) -> bool:
    """One save in the last moment is save-only-at-end's."""
    return every.unit is Unit.EPOCH and isinstance(run.length, Amount) and every.value == run.length.value


def model_size(name: str) -> float | None:
    """Billions of parameters as a model's name gives them (``Qwen3-30B-A3B``: 30); None where it names no size."""
    sizes = [float(size) for size in _SIZE.findall(name.rpartition("/")[2])]
    return sizes[0] if sizes else None
