from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import NEVER, Run, at


class SaveSettingUnused(Rule):
    """A setting about saving that nothing reads.

    ## What it does
    Reports a save interval without a directory to save into, a key that this release no longer reads, and a variable or a block
    of arguments about saving that the script defines and never hands to the launch.

    ## Why it matters
    The script looks as if it saved where and how often it says. It saves somewhere else, or nothing at all.

    ## Example
    ```bash title=run.sh
    CKPT_SAVE_DIR=/data/run
    torchrun --nproc_per_node 8 pretrain_gpt.py --train-iters 2000 --global-batch-size 8 --micro-batch-size 1 \\
        --load /data/base
    ```

    ## Use instead
    ```bash title=run.sh
    CKPT_SAVE_DIR=/data/run
    torchrun --nproc_per_node 8 pretrain_gpt.py --train-iters 2000 --global-batch-size 8 --micro-batch-size 1 \\
        --save $CKPT_SAVE_DIR --save-interval 200 --load $CKPT_SAVE_DIR
    ```

    ## References
    - Megatron-LM `training.py`: nothing is written without `--save`
    """

    code = "CKP105"
    name = "save-setting-unused"
    severity = Severity.ERROR

    def check(self, run: Run) -> Iterator[Finding]:
        nothing = all(write.interval.every is NEVER and write.interval.at_end is not True for write in run.writes)
        severity = Severity.INFO if run.short else None if nothing else Severity.WARNING
        for unused in run.unused_settings:
            if unused.topic == "save":
                message = f"`{unused.setting}` has no effect: {unused.why}; {unused.instead}"
                yield Finding(at(unused.setting, run), message, severity)
