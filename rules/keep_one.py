from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, setting_to
from ckptlint.run import Run, at

ENOUGH = 2


class KeepOne(Rule):
    """Only one checkpoint is kept.

    ## What it does
    Reports a limit of one checkpoint, unless the best one is kept besides.

    ## Why it matters
    If the one is damaged (a kill while writing, a full disk, a node that loses power), nothing is left to resume from.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_total_limit: 1
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_total_limit: 2
    ```

    ## Fix safety
    Safe: the run computes the same; one more checkpoint stays on disk.

    ## References
    - transformers `trainer_utils.py`, `rotate_checkpoints`
    """

    code = "CKP406"
    name = "keep-one"
    severity = Severity.WARNING
    fix = "safe"

    def check(self, run: Run) -> Iterator[Finding]:
        for write in run.writes:
            retention = write.retention
            if retention.keep != 1 or retention.keeps_best:
                continue
            danger = (
                "if it is damaged, nothing is left"
                if retention.writes_before_deleting is True
                else "and it is deleted before the next one is written"
            )
            message = f"`{retention.setting}` keeps a single checkpoint: {danger}; keep {ENOUGH}"
            fix = setting_to(retention.setting, ENOUGH, safe=True)
            yield Finding(at(retention.setting, run), message, Severity.INFO if run.short else None, fix)
