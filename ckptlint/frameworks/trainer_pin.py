"""Pointing a run of the Hugging Face Trainer at a checkpoint, where the framework on it has an ``output_dir`` and takes one
checkpoint's path in ``resume_from_checkpoint``.

Sources: transformers 4.57.1 and 5.23.0 ``training_args.py`` (``output_dir`` and ``~``), ``trainer.py``
(``_load_from_checkpoint``).
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping

from ckptlint.checkpoints.checkpoint import Checkpoint, Notice, Verdict
from ckptlint.frameworks.framework import PinRequest, SaveRoot
from ckptlint.frameworks.trainer import CHECKPOINT_NAME
from ckptlint.frameworks.trainer_start import other_backend, other_world_size
from ckptlint.run import Literal, PathExpr, Placeholder, Run, Setting, State, UnsetVariable

# ------------------------------------------------------------------------------------------------ where to look


def roots(run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
    """The output directory; then, where the resume value names another place, that place.

    Raises:
        UnsetVariable: a path names a variable that is not set.
        ValueError: the directory cannot be known.
    """
    save = _output_root(run, environment) if save_dir is None else _given_root(run, save_dir, environment)
    try:
        named = _named_root(run, environment)
    except UnsetVariable:
        if save_dir is None:
            raise
        named = None
    if named is None or same_place(save.directory, named.directory):
        return (save,)
    return (save, named)


def _output_root(run: Run, environment: Mapping[str, str]) -> SaveRoot:
    output = run.settings["output_dir"]
    if output.path is None and not isinstance(output.value, str):
        raise ValueError(f"`{output}` is not a path that is known; name the directory with --save-dir")
    path = output.path or PathExpr.of_text(str(output.value), expanded=False)
    replaced = expanded(path, environment)
    directory = home(replaced, environment)
    edits = () if path.written == replaced or output.path is not None else output.set(directory)
    return SaveRoot(directory, directory, edits)


def _given_root(run: Run, save_dir: str, environment: Mapping[str, str]) -> SaveRoot:
    output, directory = run.settings["output_dir"], home(known(save_dir, "--save-dir"), environment)
    same = isinstance(output.value, str) and same_spelling(home(output.value, environment), directory)
    return SaveRoot(directory, directory, () if same else output.set(directory))


def _named_root(run: Run, environment: Mapping[str, str]) -> SaveRoot | None:
    """The directory that holds the checkpoint which the resume value names; None where it names none."""
    value = run.settings["resume_from_checkpoint"].value
    if not isinstance(value, str) or not value.strip():
        return None
    path = home(expanded(PathExpr.of_text(value, expanded=False), environment), environment).rstrip("/")
    parent, name = posixpath.split(path)
    return SaveRoot(parent or ".", parent or ".", only=name) if CHECKPOINT_NAME.fullmatch(name) else None


def expanded(path: PathExpr, environment: Mapping[str, str]) -> str:
    """A path with its variables replaced. What only looks like a placeholder is a folder's name to the framework."""
    parts = tuple(Literal(part.text) if isinstance(part, Placeholder) else part for part in path.parts)
    try:
        return known(PathExpr(parts, path.written).expand(environment), path.written)
    except ValueError as error:
        raise ValueError(f"{error}; write the path itself") from None


def known(path: str, written: str) -> str:
    """The path itself.

    Raises:
        ValueError: it is blank or holds a NUL character; names it as it is written.
    """
    if not path.strip():
        raise ValueError(f"`{written}` names no directory")
    if "\0" in path:
        raise ValueError(f"`{written!r}` holds a NUL character, which no path can")
    return path


def home(path: str, environment: Mapping[str, str]) -> str:
    """A path with a leading ``~`` replaced, as the Trainer does in output_dir."""
    own = environment.get("HOME", "")
    if own and (path == "~" or path.startswith("~/")):
        return own.rstrip("/") + path[1:] or "/"
    return os.path.expanduser(path)  # noqa: PTH111


def same_spelling(one: str, other: str) -> bool:
    """Whether two texts are one path but for dots and slashes."""
    return posixpath.normpath(one) == posixpath.normpath(other)


def same_place(one: str, other: str) -> bool:
    """Whether two paths lead to one directory, links followed."""
    return os.path.realpath(one) == os.path.realpath(other)


# ------------------------------------------------------------------------------------------------ what a start takes up


def unfit(run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
    """Why this run cannot take up a whole checkpoint: its backend or number of processes; "" if it can."""
    if run.obstacles:
        return run.obstacles[0].why
    world = world_size(environment)
    return other_backend(run.settings["deepspeed"], checkpoint, environment) or other_world_size(checkpoint, world)


def world_size(environment: Mapping[str, str]) -> int | None:
    """The processes of a launch by torchrun's or the platform's variables; None where they do not say."""
    per_node, nodes = environment.get("NPROC_PER_NODE", ""), environment.get("NNODES", "1")
    return int(per_node) * int(nodes) if per_node.isdecimal() and nodes.isdecimal() else None


def loads(checkpoint: Checkpoint) -> bool:
    """Whether the Trainer gets through: one with weights and a step goes on, if need be with a new optimizer."""
    held = {State.MODEL, State.PROGRESS} <= checkpoint.state
    return checkpoint.complete or (checkpoint.verdict is Verdict.WEIGHTS_ONLY and held)


def named(request: PinRequest, value: object) -> Checkpoint | None:
    """The checkpoint that a resume value names, if it is one that was looked at."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return None
    for searched in request.searched:
        for checkpoint in searched.found:
            if same_place(value, posixpath.join(searched.root.directory, checkpoint.path)):
                return checkpoint
    return None


def value_for(request: PinRequest, resume: Setting, chosen: Checkpoint) -> str:
    """The chosen checkpoint's path; what stands there already, where that names it."""
    path = request.chosen_path or ""
    written = resume.value
    return written if isinstance(written, str) and same_spelling(written, path) and named(request, written) is chosen else path


def misfit(run: Run, request: PinRequest) -> Notice | None:
    """What to say where whole checkpoints are there that this launch cannot take up; to begin anew is not for us to decide."""
    searched = request.save
    for found in searched.found:
        why = unfit(run, found, request.environment) if found.complete else ""
        if why:
            path = searched.root.checkpoint(found.path)
            advice = "start it as it was started when it saved, or name a new output_dir"
            return Notice("launch-refused", f"no whole checkpoint fits this launch (`{path}`: {why}); {advice}")
    return None


def goes_on_with_weights(run: Run, path: str, checkpoint: Checkpoint) -> Notice:
    """What to say of a start from weights alone."""
    lacks = "; ".join(checkpoint.reasons)
    effect = "goes on from the weights in"
    return Notice(
        "nothing-resumable", f"{run.title} {effect} `{path}` with a new optimizer and learning-rate schedule: {lacks}"
    )
