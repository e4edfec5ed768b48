from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import Run, at


class ResumePathNotACheckpoint(Rule):
    """The resume value cannot be a checkpoint of this framework.

    ## What it does
    Reports a resume value that names no checkpoint: the output directory itself, a bare step number, a word such as `latest`
    that this framework does not know.

    ## Why it matters
    The launch stops with "Can't find a valid checkpoint", at every restart.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    resume_from_checkpoint: /data/run
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    ```

    `ckptlint resume train.yaml`, run just before each launch, writes the newest complete checkpoint there.

    ## References
    - transformers `Trainer._load_from_checkpoint`
    """

    code = "CKP205"
    name = "resume-path-not-a-checkpoint"
    severity = Severity.ERROR

    def check(self, run: Run) -> Iterator[Finding]:
        for misfit in run.misfits:
            message = f"`{misfit.setting}` names no checkpoint: {misfit.why}; {misfit.instead}"
            yield Finding(at(misfit.setting, run), message)
