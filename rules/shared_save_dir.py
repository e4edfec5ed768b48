from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import PathExpr, Run, Write, at, same_directory


class SharedSaveDir(Rule):
    """Two models of one run are saved into the same directory.

    ## What it does
    Reports a run with several models that are saved apart (actor and critic) whose save directories are one and the same, in a
    framework that does not put each into a folder of its own.

    ## Why it matters
    Both write the same file names: the one that saves last is all that is left, and a restart loads the critic as the actor.

    ## Example
    ```yaml title=train.yaml
    megatron_training:
      stage: ray_ppo
      train_iters: 1000
      save_interval: 100
    actor_config:
      load: /data/run
      save: /data/run
    critic_config:
      load: /data/run
      save: /data/run
    rl_config:
      integrated_mode_config:
        ref_model_load_path: /data/base
    ```

    ## Use instead
    ```yaml title=train.yaml
    megatron_training:
      stage: ray_ppo
      train_iters: 1000
      save_interval: 100
    actor_config:
      load: /data/run/actor
      save: /data/run/actor
    critic_config:
      load: /data/run/critic
      save: /data/run/critic
    rl_config:
      integrated_mode_config:
        ref_model_load_path: /data/base
    ```

    ## References
    - MindSpeed-RL `configs/ppo_qwen25_32b_A3.yaml`: actor and critic under Megatron's `iter_N/mp_rank_*` names
    """

    code = "CKP407"
    name = "shared-save-dir"
    severity = Severity.ERROR

    def check(self, run: Run) -> Iterator[Finding]:
        for place, write in enumerate(run.writes):
            other = next((earlier for earlier in run.writes[:place] if _one_directory(earlier, write)), None)
            if other is not None:
                setting = write.directory.setting
                message = (
                    f"the {other.role} is saved to `{write.directory.path}`, too, under the same file names: the {write.role} "
                    "overwrites it; give each a directory of its own"
                )
                yield Finding(at(setting, run), message, Severity.INFO if run.short else None)


def _one_directory(one: Write, other: Write) -> bool:
    first, second = one.directory.path, other.directory.path
    if not isinstance(first, PathExpr) or not isinstance(second, PathExpr) or one.role == other.role:
        return False
    return first.written == second.written or same_directory(first.written, second.written)
