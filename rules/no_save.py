from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity, advice, settings_to
from ckptlint.run import NEVER, Run, Write, at


class NoSave(Rule):
    """A run that never writes its training state.

    ## What it does
    Reports a run of some length that writes no checkpoint while it trains, because nothing asks for one or because saving is
    switched off.

    ## Why it matters
    There is nothing to resume: a kill in the last minute loses the whole run.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_strategy: "no"
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_strategy: steps
    save_steps: 500
    ```

    ## Fix safety
    Unsafe: saving costs time and disk space, so the interval is yours to choose.

    ## References
    - transformers `TrainingArguments.save_strategy`; LLaMA-Factory v1 `TrainingArguments.save_steps`
    """

    code = "CKP101"
    name = "no-save"
    severity = Severity.ERROR
    fix = "unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        for write in run.writes:
            interval = write.interval
            if interval.every is not NEVER or interval.disabled or interval.at_end is True:
                continue
            why = f" ({interval.why})" if interval.why else ""
            cause = f"with `{interval.setting}`" if interval.setting.written else f"without `{interval.setting.name}`"
            message = f"{cause} no checkpoint is written while the run trains{why}: a kill at any point restarts it at step 0"
            message += advice(interval.repair) or _directory(write)
            fix = settings_to(interval.repair, safe=False)
            yield Finding(at(interval.setting, run), message, Severity.INFO if run.short else None, fix)


def _directory(write: Write) -> str:
    """What to do where the lack of a directory decides."""
    directory = write.directory.setting
    return f"; name a directory in `{directory.name}`" if directory.name == write.interval.setting.name else ""
