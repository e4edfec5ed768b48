from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import PathExpr, Placeholder, Run, Setting, Variable, at


class PlaceholderPath(Rule):
    """The path is not the one that will be used.

    ## What it does
    Reports a save or resume path that still holds a template's placeholder, or a variable that this framework's loader does not
    replace.

    ## Why it matters
    `output_dir: ${train_output}` in a LLaMA-Factory YAML becomes a folder of that very name in the container's working
    directory: the checkpoints are not where the platform keeps them.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: ${train_output}
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /home/ma-user/modelarts/outputs/train_output_0
    ```

    `ckptlint resume train.yaml` writes the environment's value there just before the launch; so does
    `llamafactory-cli train train.yaml output_dir="$train_output"`.

    ## References
    - LLaMA-Factory `hparams/parser.py`, `read_args`: `OmegaConf.to_container` without `resolve`
    """

    code = "CKP504"
    name = "placeholder-path"
    severity = Severity.ERROR

    def check(self, run: Run) -> Iterator[Finding]:
        for write in run.writes:
            if isinstance(write.directory.path, PathExpr):
                yield from _open_parts(write.directory.path, write.directory.setting, run)
        for read in run.reads:
            if read.path is not None:
                yield from _open_parts(read.path, read.setting, run)


def _open_parts(path: PathExpr, setting: Setting, run: Run) -> Iterator[Finding]:
    placeholder = next(path.of(Placeholder), None)
    if placeholder is not None:
        message = f"`{setting.name}` still holds the placeholder `{placeholder.text}`; write the real path"
        yield Finding(at(setting, run), message)
        return
    variable = next((part for part in path.of(Variable) if not part.expanded), None)
    if variable is not None:
        message = (
            f"{run.title} does not replace `{variable.text}`: it is taken for a folder of that very name; "
            "write the path itself, or let `ckptlint resume` write the environment's value before the launch"
        )
        yield Finding(at(setting, run), message)
