from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import PathExpr, Run, Storage, at

# Directories that hold mounts and are none themselves: /mnt/fast is a fast disk, not a tier of a mount.
NO_MOUNTS = frozenset({"mnt", "media", "home", "srv", "opt", "usr", "var", "scratch"})


class FastPathOnly(Rule):
    """The platform's scratch tier holds the only copy.

    ## What it does
    Reports a run that saves only into the `fast` directory of a RunWhere checkpoint mount.

    ## Why it matters
    `fast` is meant for frequent saves within one run and does not outlive it; `durable` beside it survives retries and manual
    resuming.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /ckpts/fast
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /ckpts/durable
    ```

    ## References
    - RunWhere, checkpoint best practices: two-tier saving
    """

    code = "CKP502"
    name = "fast-path-only"
    severity = Severity.WARNING

    def check(self, run: Run) -> Iterator[Finding]:
        paths = [write.directory.path for write in run.writes]
        if not paths or not all(isinstance(path, PathExpr) and _is_fast(path, run.storage) for path in paths):
            return
        for write in run.writes:
            path = write.directory.path
            message = (
                f"`{path}` is the platform's scratch tier, which does not outlive the job, and no place for the only copy; "
                f"save below `{_durable(str(path))}`"
            )
            yield Finding(at(write.directory.setting, run), message, Severity.INFO if run.short else None)


def _is_fast(path: PathExpr, storage: Storage) -> bool:
    """The first directory below a mount at the root, as in /ckpts/fast/run."""
    parts = path.known_directory.split("/")
    if len(parts) < 3 or parts[0] or parts[1] in NO_MOUNTS or parts[2] != "fast":
        return False
    return not storage.outlives(path)


def _durable(path: str) -> str:
    parts = path.split("/")
    return "/".join([*parts[:2], "durable", *parts[3:]])
