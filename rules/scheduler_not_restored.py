from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, setting_to
from ckptlint.run import NEVER, Run, State, at


class SchedulerNotRestored(Rule):
    """The learning-rate schedule is saved and never loaded.

    ## What it does
    Reports a run whose restart goes on at the step it had reached with the schedule's first learning rates, such as verl with
    Megatron and a warm-up or decay, unless `use_checkpoint_opt_param_scheduler` is true.

    ## Why it matters
    The run warms up again after every restart, or begins its decay anew.

    ## Example
    ```yaml title=train.yaml
    actor_rollout_ref:
      actor:
        strategy: megatron
        optim:
          lr_warmup_steps: 50
          use_checkpoint_opt_param_scheduler: false
    trainer:
      total_epochs: 15
      save_freq: 20
      default_local_dir: /data/run
    ```

    ## Use instead
    ```yaml title=train.yaml
    actor_rollout_ref:
      actor:
        strategy: megatron
        optim:
          lr_warmup_steps: 50
          use_checkpoint_opt_param_scheduler: true
    trainer:
      total_epochs: 15
      save_freq: 20
      default_local_dir: /data/run
    ```

    ## Fix safety
    Safe: the first launch, and a run that is never killed, compute the same.

    ## References
    - verl `utils/checkpoint/megatron_checkpoint_manager.py`
    """

    code = "CKP312"
    name = "scheduler-not-restored"
    severity = Severity.WARNING
    fix = "safe"

    def check(self, run: Run) -> Iterator[Finding]:
        if all(write.interval.every is NEVER and write.interval.at_end is not True for write in run.writes):
            return  # there is nothing to restore
        for read in run.reads:
            for dropped in read.drops:
                if dropped.state is State.SCHEDULER:
                    message = f"with `{dropped.setting}` a restart leaves the schedule in the checkpoint: {dropped.effect}"
                    fix = setting_to(dropped.setting, dropped.off, safe=dropped.safe)
                    yield Finding(at(dropped.setting, run), message, Severity.INFO if run.short else None, fix)
