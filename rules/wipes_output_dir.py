from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import Run


class WipesOutputDir(Rule):
    """The start deletes the directory that a restart would read.

    ## What it does
    Reports `rm -r` of the save directory, or of one above it, in front of the launch.

    ## Why it matters
    A platform restarts the job with the same script. Its first act is to delete all that the run before has saved.

    ## Example
    ```bash title=run.sh
    rm -rf /data/run
    torchrun --nproc_per_node 8 pretrain_gpt.py --train-iters 2000 --global-batch-size 8 --micro-batch-size 1 \\
        --save /data/run --load /data/run --save-interval 200
    ```

    ## Use instead
    ```bash title=run.sh
    torchrun --nproc_per_node 8 pretrain_gpt.py --train-iters 2000 --global-batch-size 8 --micro-batch-size 1 \\
        --save /data/run --load /data/run --save-interval 200
    ```

    ## References
    - ckptlint never deletes anything itself
    """

    code = "CKP210"
    name = "wipes-output-dir"
    severity = Severity.ERROR

    def check(self, run: Run) -> Iterator[Finding]:
        for wipe in run.wipes:
            message = (
                f"`{wipe.command}` deletes what the run has saved in `{wipe.directory}` at every start, so a restart begins at "
                "step 0; take it out, or delete by hand what is no longer needed"
            )
            yield Finding(wipe.span, message, Severity.INFO if run.short else None)
