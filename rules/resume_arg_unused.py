from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, settings_to
from ckptlint.run import Run, at


class ResumeArgUnused(Rule):
    """Resuming is asked for where nothing reads it.

    ## What it does
    Reports a setting that names what to resume and that the framework, as configured, does not look at: verl's
    `resume_from_path` without `resume_mode=resume_path`, Megatron's `--ckpt-step` in the releases that ignore it.

    ## Why it matters
    The start takes up something else, or begins at step 0, and says nothing.

    ## Example
    ```yaml title=train.yaml
    actor_rollout_ref:
      model:
        path: Qwen/Qwen3-8B
    trainer:
      total_epochs: 15
      save_freq: 20
      default_local_dir: /data/run
      resume_mode: auto
      resume_from_path: /data/run/global_step_100
    ```

    ## Use instead
    ```yaml title=train.yaml
    actor_rollout_ref:
      model:
        path: Qwen/Qwen3-8B
    trainer:
      total_epochs: 15
      save_freq: 20
      default_local_dir: /data/run
      resume_mode: auto
    ```

    ## Fix safety
    Safe: what nothing reads is taken out, and the run stays as it is.

    ## References
    - verl `trainer/ppo/ray_trainer.py`, `_load_checkpoint`
    """

    code = "CKP203"
    name = "resume-arg-unused"
    severity = Severity.ERROR
    fix = "safe"

    def check(self, run: Run) -> Iterator[Finding]:
        for unused in run.unused_settings:
            if unused.topic != "resume":
                continue
            message = f"`{unused.setting}` has no effect: {unused.why}; {unused.instead}"
            fix = settings_to(unused.repair, safe=unused.safe)
            yield Finding(at(unused.setting, run), message, Severity.INFO if run.short else None, fix)
