from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, setting_to
from ckptlint.run import Run, at


class ValueInvalid(Rule):
    """A value that the framework refuses or misreads.

    ## What it does
    Reports a checkpoint setting whose value stops the launch, or is taken for something else: a bare `no` (the boolean false in
    YAML 1.1), a number in quotes, save and evaluation intervals that `load_best_model_at_end` rejects.

    ## Why it matters
    The job waits in the queue for hours and stops in its first second.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_steps: "500"
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
    Safe where only one value can have been meant; otherwise there is no fix.

    ## References
    - transformers `TrainingArguments.__post_init__`
    """

    code = "CKP702"
    name = "value-invalid"
    severity = Severity.ERROR
    fix = "safe"

    def check(self, run: Run) -> Iterator[Finding]:
        for refusal in run.refusals:
            message = f"`{refusal.setting}`: {refusal.effect}; {refusal.instead}"
            meant = refusal.removes or refusal.replacement is not None
            fix = setting_to(refusal.setting, refusal.replacement, safe=True) if meant else None
            yield Finding(at(refusal.setting, run), message, fix=fix)
