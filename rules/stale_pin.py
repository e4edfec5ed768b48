from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import Choice, Run, at


class StalePin(Rule):
    """Every restart goes back to one and the same checkpoint.

    ## What it does
    Reports a resume setting that names one checkpoint in a file that is launched again after every kill.

    ## Why it matters
    The run is killed at step 9000 and takes up checkpoint-500 again, and again after the next kill.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    resume_from_checkpoint: /data/run/checkpoint-500
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    ```

    Or keep the pin and let `ckptlint resume train.yaml` move it to the newest complete checkpoint before each launch.

    ## References
    - LLaMA-Factory `hparams/parser.py`: an explicit path switches the search for the newest off
    """

    code = "CKP206"
    name = "stale-pin"
    severity = Severity.WARNING

    def check(self, run: Run) -> Iterator[Finding]:
        for read in run.reads:
            if read.choice is Choice.FIXED:
                message = (
                    f"every restart goes back to `{read.path}`, however far the run has come since; "
                    "run `ckptlint resume` before each launch to move it to the newest complete checkpoint"
                )
                yield Finding(at(read.setting, run), message, Severity.INFO if run.short else None)
