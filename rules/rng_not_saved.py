from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, setting_to
from ckptlint.run import Missing, Run, State, Write, at


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
                if missing.state is State.RNG and not _said_elsewhere(missing, write):
                    effect = missing.effect or "after a restart other random numbers are drawn"
                    message = f"with `{missing.setting}` the checkpoints hold no random-number state: {effect}"
                    fix = setting_to(missing.setting, missing.safe_value, safe=True) if missing.safe_value is not None else None
                    yield Finding(at(missing.setting, run), message, fix=fix)


def _said_elsewhere(missing: Missing, write: Write) -> bool:
    """Whether the same setting leaves out the optimizer, too: then the random numbers are the least of it."""
    return any(other.state is State.OPTIMIZER for other in write.missing if other.setting.name == missing.setting.name)
