from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, settings_to
from ckptlint.run import Missing, Run, State, Write, at, shown


class WeightsOnlyCheckpoint(Rule):
    """The checkpoints lack optimizer state by configuration.

    ## What it does
    Reports a setting that leaves the optimizer out of the checkpoints (`save_only_model`), or an optimizer whose state the
    framework does not save (layer-wise GaLore and APOLLO, BAdam).

    ## Why it matters
    A restart begins with an empty optimizer and, where the schedule is left out too, at the first learning rate; under
    DeepSpeed it stops with an error.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_only_model: true
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_only_model: false
    ```

    ## Fix safety
    Safe: the run computes the same; the checkpoints become larger.

    ## References
    - transformers `TrainingArguments.save_only_model`
    """

    code = "CKP321"
    name = "weights-only-checkpoint"
    severity = Severity.ERROR
    fix = "safe"

    def check(self, run: Run) -> Iterator[Finding]:
        for write in run.writes:
            for missing in write.missing:
                if missing.state is State.OPTIMIZER:
                    yield _finding(missing, write, run)


def _finding(missing: Missing, write: Write, run: Run) -> Finding:
    beside = [other for other in write.missing if _beside(other, missing)]
    lost = [other.state.value for other in write.missing if other.setting is missing.setting or other in beside]
    named = " and ".join(dict.fromkeys(f"`{one.setting}`" for one in (missing, *beside)))
    effect = missing.effect or "a start from one of them goes on without"
    message = f"with {named} the checkpoints hold no {_listed(lost)}: {effect}"
    if missing.safe_value is None:
        return Finding(at(missing.setting, run), message, Severity.INFO if run.short else Severity.WARNING)
    fix = settings_to([(one.setting, one.safe_value) for one in (missing, *beside)], safe=True)
    advice = missing.advice or f"set it to {shown(missing.safe_value)}"
    if beside:
        advice = advice.replace(" it ", " both ")
    return Finding(at(missing.setting, run), f"{message}; {advice}", Severity.INFO if run.short else None, fix)


def _beside(other: Missing, missing: Missing) -> bool:
    """Whether a second switch leaves out the random numbers (``--no-save-rng``), and can be turned like the first."""
    both = missing.safe_value is not None and other.safe_value is not None
    return both and other.state is State.RNG and other.setting.name != missing.setting.name


def _listed(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
