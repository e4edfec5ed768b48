from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, advice, settings_to
from ckptlint.run import Amount, Run, Unit, at


class SaveOnlyAtEnd(Rule):
    """The only checkpoint is written when the run is over.

    ## What it does
    Reports a run whose first save coincides with its end, such as one save per epoch in a run of one epoch.

    ## Why it matters
    A checkpoint is there to survive a kill; one that is written last survives none.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_strategy: epoch
    num_train_epochs: 1.0
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_strategy: steps
    save_steps: 500
    num_train_epochs: 1.0
    ```

    ## Fix safety
    Unsafe: more checkpoints cost time and disk space.

    ## References
    - transformers `TrainingArguments.save_strategy`
    """

    code = "CKP103"
    name = "save-only-at-end"
    severity = Severity.WARNING
    fix = "unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        for write in run.writes:
            every = write.interval.every
            if not isinstance(every, Amount) or every.unit is not Unit.EPOCH or not isinstance(run.length, Amount):
                continue
            if run.length.unit is Unit.EPOCH and every.value == run.length.value:
                message = (
                    f"`{write.interval.setting}` with `{run.length_setting}` writes the only checkpoint when the run ends: "
                    f"a kill before that restarts it at step 0{advice(write.interval.repair)}"
                )
                fix = settings_to(write.interval.repair, safe=False)
                yield Finding(at(write.interval.setting, run), message, Severity.INFO if run.short else None, fix)
