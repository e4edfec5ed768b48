from __future__ import annotations

from collections.abc import Iterator

from ckptlint.rule import Finding, Rule, Severity
from ckptlint.run import NEVER, PathExpr, Placeholder, Platform, Run, Variable, at, inside


class PlatformPathMismatch(Rule):
    """The job keeps one directory, and the run saves into another.

    ## What it does
    Compares the directory that a job's description declares to outlive it (RunWhere: `storage.checkpoint.path`) with the one
    that the command in it saves into. Reports a job that declares none, too.

    ## Why it matters
    What lies outside of the declared directory is gone with the container. RunWhere also retries a failed training only where a
    checkpoint path is declared.

    ## Example
    ```yaml title=job.yaml
    kind: Training
    environment:
      command: llamafactory-cli train --stage sft --do_train --finetuning_type lora --output_dir /workspace/run
    storage:
      checkpoint:
        path: /ckpts
    ```

    ## Use instead
    ```yaml title=job.yaml
    kind: Training
    environment:
      command: llamafactory-cli train --stage sft --do_train --finetuning_type lora --output_dir /ckpts/durable/run
    storage:
      checkpoint:
        path: /ckpts
    ```

    ## References
    - RunWhere, checkpoint best practices
    """

    code = "CKP704"
    name = "platform-path-mismatch"
    severity = Severity.WARNING

    def check(self, run: Run) -> Iterator[Finding]:
        platform = run.platform
        if platform is None:
            return
        if platform.mount is None:
            message = (
                f"this {platform.name} job declares no checkpoint directory (`{platform.setting.name}`), so that nothing it "
                f"saves outlives its container and a failure is not retried; declare one"
            )
            severity = Severity.INFO if run.short else None
            yield Finding(at(platform.setting, run), message, severity)
            return
        for write in run.writes:
            path = write.directory.path
            if isinstance(path, PathExpr) and write.interval.every is not NEVER and _outside(path, platform, run):
                message = (
                    f"the run saves into `{path}`, and {platform.name} keeps `{platform.mount}` only (`{platform.setting}`); "
                    f"save below `{platform.durable}`"
                )
                yield Finding(at(write.directory.setting, run), message, Severity.INFO if run.short else None)


def _outside(path: PathExpr, platform: Platform, run: Run) -> bool:
    """Whether a path surely lies outside of the mount. A relative one starts in the image's working directory."""
    mount = platform.mount.literal if platform.mount is not None else None
    if mount is None or path.absolute is None or any(path.of(Placeholder)) or run.storage.dies_below(path) is not None:
        return False
    if not path.absolute:
        return not any(not part.expanded for part in path.of(Variable))
    return not inside(path.known_directory, mount) and not inside(mount, path.known_directory)
