from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, settings_to
from ckptlint.run import Run, at


class ReferenceModelLost(Rule):
    """After a restart the policy is its own reference model.

    ## What it does
    Reports a run of preference or reinforcement learning (DPO, GRPO, PPO) whose reference model has no path of its own and is
    loaded from the directory the policy is resumed from.

    ## Why it matters
    The distance to the original model no longer holds the policy back: after every restart it is measured from where the policy
    stood, so a run that was killed often drifts further than one that was not.

    ## Example
    ```yaml title=train.yaml
    megatron_training:
      stage: ray_grpo
      train_iters: 1000
      save_interval: 100
    actor_config:
      load: /data/run
      save: /data/run
    rl_config:
      init_kl_coef: 0.01
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
    rl_config:
      init_kl_coef: 0.01
      integrated_mode_config:
        ref_model_load_path: /data/base
    ```

    ## Fix safety
    Unsafe: offered where the original weights are named elsewhere in the run (`--pretrained-checkpoint`), it takes those.

    ## References
    - MindSpeed-RL `docs/zh/algorithms/grpo.md`; MindSpeed-LLM `dpo_trainer.py`, `_init_reference_model`
    """

    code = "CKP212"
    name = "reference-model-lost"
    severity = Severity.WARNING
    fix = "unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        for lost in run.lost_references:
            message = f"{lost.why}: a start that finds a checkpoint there has the policy as its own reference; {lost.instead}"
            fix = settings_to(lost.repair, safe=False)
            yield Finding(at(lost.setting, run), message, Severity.INFO if run.short else None, fix)
