from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import DATE, Changing, Choice, PathExpr, Run, at


class FreshOutputDir(Rule):
    """Every start saves into a new directory.

    ## What it does
    Reports a save directory whose name holds a time, a process number, a random part or a version counter. Where the framework
    itself adds that and never looks for checkpoints (ms-swift), no-resume speaks.

    ## Why it matters
    A restart looks for checkpoints in its own directory, which is new and empty, and begins at step 0.

    ## Example
    ```yaml title=train.yaml
    model: Qwen/Qwen3-4B
    model_class: llm
    train_dataset: data/sft.yaml
    save_steps: 500
    resume_from_checkpoint: auto
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

    ## References
    - LLaMA-Factory `v1/config/training_args.py`: `output_dir` is `outputs/<random>` by default
    """

    code = "CKP503"
    name = "fresh-output-dir"
    severity = Severity.ERROR

    def check(self, run: Run) -> Iterator[Finding]:
        if not any(read.choice is not Choice.FIXED for read in run.reads):
            return  # where it saves and where it looks are two things: stale-pin's
        for write in run.writes:
            path, setting = write.directory.path, write.directory.setting
            if not isinstance(path, PathExpr):
                continue
            for part in path.of(Changing):
                if part.by and not any(read.choice is Choice.NEWEST for read in run.reads):
                    continue  # the framework looks for nothing there, and no-resume says so
                named = f"`{setting}`" if setting.written else f"without `{setting.name}` the run saves to `{path}`, which"
                cause = f"{part.by} puts {part.what} behind `{setting.value}`" if part.by else f"{named} holds {part.what}"
                starts = "a start on another day" if part.what == DATE else "every start"
                message = f"{cause}, so {starts} has a directory of its own and finds no checkpoint; "
                message += "switch that off" if part.by else "name one that stays the same"
                yield Finding(at(setting, run), message, Severity.INFO if run.short else None)
                break
