from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Applicability, Finding, Fix, Rule, Severity
from ckptlint.run import Run, StrangeKey


class KeyMisspelt(Rule):
    """A checkpoint key is a near miss of a real one.

    ## What it does
    Reports a key that the framework does not know and that looks like one that decides about saving or resuming.

    ## Why it matters
    The setting that was meant has its default: the run does not save where, or as often, as the file seems to say. Some
    frameworks stop at an unknown key, others ignore it in silence.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_step: 100
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    save_steps: 100
    ```

    ## Fix safety
    Unsafe: the run then does what the key says. A key that resembles nothing, in a file where it does nothing (DeepSpeed's
    `checkpoint` section), is taken out.

    ## References
    - LLaMA-Factory `hparams/parser.py`: ALLOW_EXTRA_ARGS
    """

    code = "CKP701"
    name = "key-misspelt"
    severity = Severity.WARNING
    fix = "unsafe"

    def check(self, run: Run) -> Iterator[Finding]:
        for key in run.strange_keys:
            hint = f"; did you mean `{key.nearest}`?" if key.nearest else ":"
            message = f"`{key.name}` is no key of {run.title}{hint} {key.effect}"
            yield Finding(key.span, message, fix=_fix(key))


def _fix(key: StrangeKey) -> Fix | None:
    if key.rename:
        return Fix(f"rename it to `{key.nearest}`", key.rename, Applicability.UNSAFE)
    return Fix(f"remove `{key.name}`", key.remove, Applicability.UNSAFE) if key.remove else None
