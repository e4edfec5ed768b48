from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Fix, Rule, Severity, setting_to, settings_to
from ckptlint.run import NEVER, Choice, Read, Run, at


class NoResume(Rule):
    """Checkpoints are written and nothing takes them up.

    ## What it does
    Reports a run that saves and that, as configured, begins at step 0 at every start although the framework could resume.

    ## Why it matters
    The checkpoints cost time and space and save nothing: a kill loses the whole run.

    ## Example
    ```yaml title=train.yaml
    model: Qwen/Qwen3-4B
    model_class: llm
    train_dataset: data/sft.yaml
    output_dir: /data/run
    save_steps: 500
    ```

    ## Use instead
    ```yaml title=train.yaml
    model: Qwen/Qwen3-4B
    model_class: llm
    train_dataset: data/sft.yaml
    output_dir: /data/run
    save_steps: 500
    resume_from_checkpoint: auto
    ```

    ## Fix safety
    Safe where the framework has a value that finds the newest checkpoint and starts anew where there is none. Unsafe where
    another run that was checked saves into the same directory: the run would then take up the other's checkpoint.

    ## References
    - LLaMA-Factory `v1/core/utils/checkpoint.py`, `resolve_resume_checkpoint_path`
    """

    code = "CKP201"
    name = "no-resume"
    severity = Severity.ERROR
    fix = "safe or unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        if all(write.interval.every is NEVER for write in run.writes):
            return
        settings = [switch.setting for switch in run.switches] + [start.setting for start in run.warm_starts]
        switched = {setting.name for setting in settings}  # reported there, with what to do
        for read in run.reads:
            if read.choice is not Choice.NOTHING or read.setting.name in switched or run.obstacles:
                continue
            yield Finding(at(read.setting, run), _message(read), Severity.INFO if run.short else None, _fix(read, run))


def _message(read: Read) -> str:
    cause = f"with `{read.setting}`" if read.setting.written else f"without `{read.setting.name}`"
    effect = f"{cause} every start begins at step 0, whatever checkpoints there are"
    if read.why:
        effect = f"{read.why}: every start begins where the first one did, whatever checkpoints there are"
    advice = f"write `{read.setting.spelled(read.auto)}`" if read.auto is not None else read.advice
    return f"{effect}; {advice}" if advice else effect


def _fix(read: Read, run: Run) -> Fix | None:
    if read.auto is not None:
        return setting_to(read.setting, read.auto, safe=not run.neighbours)
    return settings_to(read.repair, safe=False)
