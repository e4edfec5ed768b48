from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, setting_to
from ckptlint.run import Run, State, Write, at


class RngNotSaved(Rule):
    """The checkpoints hold no random-number state.

    ## What it does
    Reports a setting that leaves the random-number state, and no more, out of the checkpoints (`--no-save-rng`). Where the
    optimizer is missing as well, weights-only-checkpoint speaks.

    ## Why it matters
    After a restart dropout and augmentation draw other numbers than the run would have: it goes on, and is not the same run.
    Megatron stops (with exit status 0) where it wants to load a state that is not there.

    ## Example
    ```yaml title=train.yaml
    gpt_args:
      train_iters: 10000
      save_interval: 500
      save: /data/run
      load: /data/run
      no_save_rng: true
    MM_TOOL_PATH: ./mindspeed_mm/tools/tools.json
    ```

    ## Use instead
    ```yaml title=train.yaml
    gpt_args:
      train_iters: 10000
      save_interval: 500
      save: /data/run
      load: /data/run
    MM_TOOL_PATH: ./mindspeed_mm/tools/tools.json
    ```

    ## Fix safety
    Safe: the run computes the same; the checkpoints become a little larger.

    ## References
    - Megatron-LM `megatron/training/checkpointing.py`, `save_checkpoint`
    """

    code = "CKP306"
    name = "rng-not-saved"
    severity = Severity.INFO
    fix = "safe"

    def check(self, run: Run) -> Iterator[Finding]:
        for write in run.writes:
            for missing in write.missing:
                if missing.state is State.RNG and not _said_elsewhere(write):
                    effect = missing.effect or "a start from one of them draws other random numbers"
                    message = f"with `{missing.setting}` the checkpoints hold no random-number state: {effect}"
                    fix = setting_to(missing.setting, missing.safe_value, safe=True) if missing.safe_value is not None else None
                    yield Finding(at(missing.setting, run), message, fix=fix)


def _said_elsewhere(write: Write) -> bool:
    """Whether the optimizer is left out, too: weights-only-checkpoint then names, and mends, both."""
    return any(missing.state is State.OPTIMIZER for missing in write.missing)
