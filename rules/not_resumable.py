from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import Run, at


class NotResumable(Rule):
    """This stage, engine or release cannot resume at all.

    ## What it does
    Reports a combination of settings for which the framework has no way to take training up again, such as LLaMA-Factory's
    reward-model and PPO stages.

    ## Why it matters
    No setting helps: a kill costs the whole run, and a restart that finds checkpoints may even stop with an error every time.

    ## Example
    ```yaml title=train.yaml
    stage: ppo
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: dpo
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    ```

    ## References
    - LLaMA-Factory `hparams/parser.py` and `train/ppo/trainer.py`: "will be supported in the future version"
    """

    code = "CKP211"
    name = "not-resumable"
    severity = Severity.ERROR

    def check(self, run: Run) -> Iterator[Finding]:
        for obstacle in run.obstacles:
            message = f"`{obstacle.setting}` cannot resume: {obstacle.why}; {obstacle.instead}"
            yield Finding(at(obstacle.setting, run), message, Severity.INFO if run.short else None)
