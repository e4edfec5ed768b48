from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, settings_to
from ckptlint.run import Run, State, at

# Without these a run goes on where it stood, and is not quite the same run.
_MINOR = frozenset({State.DATA, State.RNG})


class ResumeDisabled(Rule):
    """A switch makes every restart begin again.

    ## What it does
    Reports a setting that keeps the framework from taking up its own checkpoints: LLaMA-Factory's `overwrite_output_dir: true`
    without a resume path, `resume_from_checkpoint: false`, or `ignore_data_skip: true` (which loses the data position only).

    ## Why it matters
    The job is killed, the platform starts it again, and it trains from step 0, over the checkpoints it had written.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    overwrite_output_dir: true
    resume_from_checkpoint: null
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    overwrite_output_dir: false
    ```

    ## Fix safety
    Safe where the first launch, in a directory without checkpoints, stays as it is. Unsafe where another run that was checked
    saves into the same directory: the run would then take up the other's checkpoint.

    ## References
    - LLaMA-Factory `hparams/parser.py`, `get_train_args`
    """

    code = "CKP202"
    name = "resume-disabled"
    severity = Severity.ERROR
    fix = "safe or unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        for switch in run.switches:
            message = f"{switch.effect}; {switch.advice}" if switch.advice else switch.effect
            if run.neighbours and not switch.loses <= _MINOR:
                message += f" (give it a directory of its own first: {_named(run.neighbours)} saves there too)"
            changes = ((switch.setting, switch.off), *switch.also)
            fix = settings_to(changes, safe=switch.safe and not run.neighbours)
            yield Finding(at(switch.setting, run), message, _severity(run, switch.loses), fix)


def _named(neighbours: tuple[str, ...]) -> str:
    """One of them by name, and how many more."""
    more = len(neighbours) - 1
    return neighbours[0] + (f" (and {more} more)" if more else "")


def _severity(run: Run, loses: frozenset[State]) -> Severity | None:
    return Severity.INFO if run.short or loses <= _MINOR else None
