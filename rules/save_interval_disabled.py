from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, advice, settings_to
from ckptlint.run import NEVER, Run, at


class SaveIntervalDisabled(Rule):
    """A save interval with a value that means never.

    ## What it does
    Reports an interval that is zero or negative where the framework takes that for "do not save".

    ## Why it matters
    The run looks as if it saved, and writes nothing before it ends; a kill restarts it at step 0.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_steps: 0
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_steps: 500
    ```

    ## Fix safety
    Unsafe: saving costs time and disk space, so the interval is yours to choose. The fix takes the framework's own default, or
    a tenth of a run that is shorter.

    ## References
    - transformers `TrainingArguments.save_steps`; verl `trainer.save_freq`
    """

    code = "CKP102"
    name = "save-interval-disabled"
    severity = Severity.ERROR
    fix = "unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        for write in run.writes:
            interval = write.interval
            if interval.every is not NEVER or not interval.disabled:
                continue
            end = "nothing is saved before the run ends" if interval.at_end is True else "nothing is ever saved"
            message = f"`{interval.setting}` means never, so {end}: a kill restarts the run at step 0"
            message += advice(interval.repair)
            fix = settings_to(interval.repair, safe=False)
            yield Finding(at(interval.setting, run), message, Severity.INFO if run.short else None, fix)
