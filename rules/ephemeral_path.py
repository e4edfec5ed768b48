from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import PathExpr, Placeholder, Run, at


class EphemeralPath(Rule):
    """The checkpoints die with the container.

    ## What it does
    Reports a save directory below `/tmp`, `/var/tmp`, `/dev/shm` or `/run`, or below a path that the settings declare as
    `ephemeral-paths`, or where a Kubernetes job mounts no volume, or an `emptyDir`. Where `durable-paths` are declared, any
    other directory is reported as a warning.

    ## Why it matters
    The platform starts the job again in a new container, and the directory is empty.

    ## Example
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /tmp/run
    ```

    ## Use instead
    ```yaml title=train.yaml
    stage: sft
    do_train: true
    finetuning_type: lora
    output_dir: /data/run
    ```

    ## References
    - RunWhere and ModelArts: only mounted storage outlives a container
    - Kubernetes, "Volumes": an `emptyDir` is deleted with its pod
    """

    code = "CKP501"
    name = "ephemeral-path"
    severity = Severity.ERROR

    def check(self, run: Run) -> Iterator[Finding]:
        for write in run.writes:
            path = write.directory.path
            if not isinstance(path, PathExpr) or not path.known_directory:
                continue
            message, severity = _judge(path, run, write.directory.dies)
            if message:
                yield Finding(at(write.directory.setting, run), message, Severity.INFO if run.short else severity)


def _judge(path: PathExpr, run: Run, dies: str) -> tuple[str, Severity | None]:
    storage, directory = run.storage, path.known_directory
    root = storage.dies_below(path)
    if root is not None:
        return f"`{path}` lies below `{root}`, which dies with the container: a restart finds nothing there", None
    if storage.outlives(path):
        return "", None
    if dies:
        return f"`{path}` dies with its container, for {dies}: a restart finds nothing there; mount a lasting volume", None
    if not storage.durable or "://" in directory or any(path.of(Placeholder)):
        return "", None
    roots = ", ".join(f"`{root}`" for root in storage.durable)
    where = "lies outside" if path.absolute else "is relative to where the job is started, not below"
    message = f"`{path}` {where} {roots}, declared to outlive a job: a restart may find nothing there"
    return message, Severity.WARNING
