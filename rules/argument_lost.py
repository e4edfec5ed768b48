from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Applicability, Finding, Fix, Rule, Severity
from ckptlint.run import Run


class ArgumentLost(Rule):
    """Arguments that the script shows and the program never gets.

    ## What it does
    Reports what the shell's syntax takes away from a launch: a comment inside a continued command, a blank behind a
    backslash, a missing backslash, words behind `| tee`, a variable that is set just before its own default, lines that end
    with carriage returns.

    ## Why it matters
    The lost arguments are often the last ones, and those about saving and resuming stand there. The run starts without a word
    and saves by other rules than the script shows.

    ## Example
    ```bash title=run.sh
    python3 -m verl.trainer.main_ppo \\
        trainer.default_local_dir=/data/run \\
        # trainer.val_before_train=False \\
        trainer.save_freq=20
    ```

    ## Use instead
    ```bash title=run.sh
    python3 -m verl.trainer.main_ppo \\
        trainer.default_local_dir=/data/run \\
        trainer.save_freq=20
    ```

    ## Fix safety
    Unsafe: the program then gets arguments that it did not get before.

    ## References
    - bash manual, "Comments", "Escape Character" and "Pipelines"
    """

    code = "CKP703"
    name = "argument-lost"
    severity = Severity.ERROR
    fix = "unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        for loss in run.lost_arguments:
            what = f"`{_short(loss.lost)}` does not reach the launch" if loss.lost else "arguments do not reach the launch"
            fix = Fix("mend the line", loss.repair, Applicability.UNSAFE) if loss.repair else None
            yield Finding(loss.span, f"{what}: {loss.why}; {loss.instead}", None, fix)


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:118]} …"
