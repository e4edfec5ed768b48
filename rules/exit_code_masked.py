from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Applicability, Finding, Fix, Rule, Severity
from ckptlint.run import Run


class ExitCodeMasked(Rule):
    """A launch that fails, and a script that says it went well.

    ## What it does
    Reports a launch whose failure does not become the exit status of its script: its output goes through a pipe without
    `pipefail`, `|| true` stands behind it, it runs in the background and nobody waits for it, or other commands follow and the
    last one decides.

    ## Why it matters
    Platforms retry a job that fails. One that ends with status 0 counts as finished: after a kill nobody starts it again, and
    the checkpoints lie there unused.

    ## Example
    ```bash title=run.sh
    torchrun --nproc_per_node 8 pretrain_gpt.py --train-iters 2000 --global-batch-size 8 --micro-batch-size 1 \\
        --save /data/run --load /data/run --save-interval 200 2>&1 | tee train.log
    ```

    ## Use instead
    ```bash title=run.sh
    set -o pipefail
    torchrun --nproc_per_node 8 pretrain_gpt.py --train-iters 2000 --global-batch-size 8 --micro-batch-size 1 \\
        --save /data/run --load /data/run --save-interval 200 2>&1 | tee train.log
    ```

    ## Fix safety
    Safe: what is run, and in which order, stays the same; the script ends with the status of the launch. There is a fix only
    for a pipe whose status is that of the script, in a script that bash runs.

    ## References
    - bash manual, "Pipelines" and "The Set Builtin"
    """

    code = "CKP209"
    name = "exit-code-masked"
    severity = Severity.WARNING
    fix = "safe"

    def check(self, run: Run) -> Iterator[Finding]:
        for mask in run.exit_masks:
            effect = (
                "a failed launch ends this script with status 0, and no platform starts it again"
                if mask.succeeds
                else "the status of a failed launch is lost, so that a platform may take the job for finished"
            )
            message = f"{effect}: {mask.why}; {mask.instead}"
            title = "write `set -o pipefail` at the top"
            fix = Fix(title, mask.repair, Applicability.SAFE) if mask.repair else None
            yield Finding(mask.span, message, Severity.INFO if run.short else None, fix)
