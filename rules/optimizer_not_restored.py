from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, setting_to
from ckptlint.run import NEVER, Run, State, at


class OptimizerNotRestored(Rule):
    """The optimizer state is saved and never loaded.

    ## What it does
    Reports a run that takes up its own checkpoints without their optimizer state (`--no-load-optim`).

    ## Why it matters
    Step and data go on where they stood, and the optimizer's moments begin at zero: the loss jumps after every restart.
    Megatron leaves the learning-rate schedule behind with them, so that the run warms up again in the middle.

    ## Example
    ```yaml title=train.yaml
    megatron_training:
      stage: ray_grpo
      train_iters: 1000
      save_interval: 100
    actor_config:
      load: /data/run
      save: /data/run
      no_load_optim: true
    rl_config:
      integrated_mode_config:
        ref_model_load_path: /data/base
    ```

    ## Use instead
    ```yaml title=train.yaml
    megatron_training:
      stage: ray_grpo
      train_iters: 1000
      save_interval: 100
    actor_config:
      load: /data/run
      save: /data/run
      no_load_optim: false
    rl_config:
      integrated_mode_config:
        ref_model_load_path: /data/base
    ```

    ## Fix safety
    Safe where the base weights lie elsewhere (`--pretrained-checkpoint`). Else unsafe: converted base weights in the save
    directory itself have no optimizer state, and the first launch would stop.

    ## References
    - Megatron-LM `megatron/training/checkpointing.py`, `load_checkpoint`
    """

    code = "CKP311"
    name = "optimizer-not-restored"
    severity = Severity.ERROR
    fix = "safe or unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        if all(write.interval.every is NEVER and write.interval.at_end is not True for write in run.writes):
            return  # there is nothing to restore
        for read in run.reads:
            for dropped in read.drops:
                if dropped.state is State.OPTIMIZER:
                    message = (
                        f"with `{dropped.setting}` a restart leaves the optimizer state in the checkpoint: {dropped.effect}"
                    )
                    fix = setting_to(dropped.setting, dropped.off, safe=dropped.safe)
                    yield Finding(at(dropped.setting, run), message, Severity.INFO if run.short else None, fix)
