from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, settings_to
from ckptlint.run import Run, at


class WeightsOnlyResume(Rule):
    """What is meant as resuming loads weights alone.

    ## What it does
    Reports a setting that loads weights (an adapter, a base model) from the run's own output directory or a checkpoint in it,
    where the framework's full resume was surely meant. Weights of another run are an ordinary start and are not reported.

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

    ## Fix safety
    Unsafe: the run then resumes where it stood, which changes what it computes. Where a base model is named by the setting,
    there is no fix.

    ## References
    - LLaMA-Factory `model/adapter.py`
    """

    code = "CKP213"
    name = "weights-only-resume"
    severity = Severity.ERROR
    fix = "unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        for start in run.warm_starts:
            message = (
                f"`{start.setting.name}` loads the weights in this run's own `{start.path}` and nothing else: step, optimizer "
                f"and learning-rate schedule start again; {start.instead}"
            )
            fix = settings_to(start.repair, safe=False)
            yield Finding(at(start.setting, run), message, Severity.INFO if run.short else None, fix)
