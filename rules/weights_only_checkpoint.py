from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, setting_to
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
    lost = [other.state.value for other in write.missing if other.setting is missing.setting]
    effect = missing.effect or "a restart goes on without"
    message = f"with `{missing.setting}` the checkpoints hold no {_listed(lost)}: {effect}"
    if missing.safe_value is None:
        return Finding(at(missing.setting, run), message, Severity.INFO if run.short else Severity.WARNING)
    fix = setting_to(missing.setting, missing.safe_value, safe=True)
    advice = f"; {missing.advice or f'set it to {shown(missing.safe_value)}'}"
    return Finding(at(missing.setting, run), message + advice, Severity.INFO if run.short else None, fix)


def _listed(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
