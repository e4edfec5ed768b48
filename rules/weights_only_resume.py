from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import Run, at


class WeightsOnlyResume(Rule):
    """What is meant as resuming loads weights alone.

    ## What it does
    Reports a setting that loads weights (an adapter, a base model) from the run's own output directory, where the framework's
    full resume was surely meant.

    ## Why it matters
    Step counter, optimizer and learning-rate schedule start again: the run goes through its warm-up a second time, over all of
    its data.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    adapter_name_or_path: /data/run/checkpoint-900
    output_dir: /data/run
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    ```

    ## References
    - LLaMA-Factory `model/adapter.py`
    """

    code = "CKP213"
    name = "weights-only-resume"
    severity = Severity.ERROR

    def check(self, run: Run) -> Iterator[Finding]:
        for start in run.warm_starts:
            message = (
                f"`{start.setting.name}` loads the weights in this run's own `{start.path}` and nothing else: step, optimizer and "
                "learning-rate schedule start again; leave it to the resume setting"
            )
            yield Finding(at(start.setting, run), message)
