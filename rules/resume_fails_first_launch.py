from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Applicability, Finding, Fix, Rule, Severity
from ckptlint.run import Choice, Read, Run, at
from ckptlint.source.text import CannotEdit


class ResumeFailsFirstLaunch(Rule):
    """Resuming is demanded even where there is nothing yet.

    ## What it does
    Reports a resume setting that stops the very first launch, because no checkpoint exists then.

    ## Why it matters
    The first start dies; people then take the setting out by hand, and the restart after a kill begins at step 0.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    resume_from_checkpoint: true
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    ```

    ## Fix safety
    Safe: without the setting the framework looks for the newest checkpoint itself, and starts anew where there is none. Unsafe
    where another run that was checked saves into the same directory.

    ## References
    - transformers `Trainer.train`: "No valid checkpoint found in output directory"
    """

    code = "CKP204"
    name = "resume-fails-first-launch"
    severity = Severity.ERROR
    fix = "safe or unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        for read in run.reads:
            if read.choice is Choice.NEWEST and read.raises_when_missing is True:
                where = run.writes[0].directory.path if run.writes else "the save directory"
                message = (
                    f"`{read.setting}` stops the first launch, when `{where}` holds no checkpoint yet; "
                    f"{read.advice or 'leave it out: the newest checkpoint is then found at every start'}"
                )
                yield Finding(at(read.setting, run), message, fix=None if read.advice else _without(read, run))


def _without(read: Read, run: Run) -> Fix | None:
    """Take the setting out, and turn what would then switch resuming off."""
    try:
        edits = read.setting.remove()
        for guard in read.needs_off:
            edits += guard.set(False)
    except CannotEdit:
        return None
    also = "".join(f" and set `{guard.name}` to `false`" for guard in read.needs_off)
    safe = Applicability.UNSAFE if run.neighbours else Applicability.SAFE
    return Fix(f"remove `{read.setting.name}`{also}", edits, safe) if edits else None
