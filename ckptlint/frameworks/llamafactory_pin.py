"""How a LLaMA-Factory run is pointed at a checkpoint.

Sources: ``hparams/parser.py`` (``get_train_args``) and ``train/ppo/trainer.py`` for what the normal trainer does with each
value, ``v1/core/utils/checkpoint.py`` (``find_latest_checkpoint``, ``resume``) for the new one. An explicit path is taken
whatever ``overwrite_output_dir`` says.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ckptlint.checkpoints.checkpoint import Checkpoint, Notice, Verdict
from ckptlint.checkpoints.llamafactory_v1 import MARKER
from ckptlint.frameworks.framework import Pin, PinRequest, SaveRoot
from ckptlint.frameworks.trainer import CHECKPOINT_NAME
from ckptlint.frameworks.trainer_pin import expanded, home, known, loads, same_place, same_spelling, world_size
from ckptlint.frameworks.trainer_start import about, other_backend, other_world_size
from ckptlint.run import Changing, PathExpr, Run, Setting, Unknown, UnsetVariable, shown
from ckptlint.source.text import CannotEdit

# Any of these in the output directory itself, without a checkpoint-N beside it, stops the launch (extras/constants.py
# CHECKPOINT_NAMES).
FINAL_WEIGHTS = frozenset(
    {
        "adapter_model.bin",
        "adapter_model.safetensors",
        "model.safetensors",
        "model.safetensors.index.json",
        "pytorch_model.bin",
        "pytorch_model.bin.index.json",
    }
)

# Environment switches and keys of other trainers behind the same YAML, whose checkpoints have Megatron's layouts.
_MEGATRON_SWITCHES = ("USE_MCA", "USE_MEGATRON_BRIDGE")
MEGATRON_KEYS = ("tensor_model_parallel_size", "pipeline_model_parallel_size")

# hparams/parser.py read_args merges key=value arguments into the YAML since this release.
_TAKES_ARGUMENTS_SINCE = "0.9.3"


# ------------------------------------------------------------------------------------------------ where to look


def roots(run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
    """The output directory; then, where the resume value names another place, that place.

    Raises:
        UnsetVariable: a path names a variable that is not set.
        ValueError: the directory cannot be known, or its checkpoints cannot be read.
    """
    _refuse_megatron(run, environment)
    save = _output_root(run, environment) if save_dir is None else _given_root(run, save_dir, environment)
    try:
        named = _named_root(run, environment)
    except UnsetVariable:
        if save_dir is None:
            raise
        named = None
    if named is None:
        return (save,)
    if same_place(save.directory, named.directory):
        # The author's own spelling of the same place.
        return (SaveRoot(save.path if save.edits else named.path, save.directory, save.edits),)
    return (save, named)


def _refuse_megatron(run: Run, environment: Mapping[str, str]) -> None:
    switched = [name for name in _MEGATRON_SWITCHES if environment.get(name, "").lower() in ("true", "y", "1")]
    keys = [name for name in MEGATRON_KEYS if name in run.settings]
    for name in (*switched, *keys):
        raise ValueError(
            f"{name} is set, so {run.title} saves in a Megatron layout, which is not read yet; launch without resume"
        )


def _output_root(run: Run, environment: Mapping[str, str]) -> SaveRoot:
    output, path = run.settings["output_dir"], run.writes[0].directory.path
    if isinstance(path, Unknown):
        raise ValueError(f"{path.why}; name the directory with --save-dir")  # noqa: TRY004 - not known, not of a wrong type
    if any(path.of(Changing)) and not output.written:
        raise ValueError("output_dir is not set, and the default is a new directory at every start; set it, or use --save-dir")
    replaced = expanded(path, environment)
    directory = home(replaced, environment)
    if path.written == replaced:
        return SaveRoot(directory, directory)
    return SaveRoot(directory, directory, output.set(_writable(directory)))


def _given_root(run: Run, save_dir: str, environment: Mapping[str, str]) -> SaveRoot:
    output, directory = run.settings["output_dir"], home(known(save_dir, "--save-dir"), environment)
    if isinstance(output.value, str) and same_spelling(home(output.value, environment), directory):
        return SaveRoot(directory, directory)
    return SaveRoot(directory, directory, output.set(_writable(directory)))


def _named_root(run: Run, environment: Mapping[str, str]) -> SaveRoot | None:
    """The directory that the resume value names, or that holds the checkpoint it names; None where it names none."""
    value = run.settings["resume_from_checkpoint"].value
    if not isinstance(value, str) or not value.strip():
        return None
    path = expanded(PathExpr.of_text(value, expanded=False), environment).rstrip("/") or "/"
    directory = home(path, environment)
    if "/" not in path and (path == "auto" or not os.path.isdir(directory)):  # noqa: PTH112
        return None
    parent, name = posixpath.split(directory)
    if CHECKPOINT_NAME.fullmatch(name):
        return SaveRoot(parent or ".", parent or ".", only=name)
    return SaveRoot(directory, directory)


def _writable(path: str) -> str:
    """OmegaConf takes ``${`` for an interpolation however it is quoted."""
    if "${" in path:
        raise ValueError(f"`{path}` holds `${{`, which no YAML can say to LLaMA-Factory")
    return path


# ------------------------------------------------------------------------------------------------ what a launch can take up


def unfit(run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
    """Why this run cannot take up a whole checkpoint: stage, backend, finetuning_type or number of processes; "" if it can."""
    if run.obstacles:
        return run.obstacles[0].why
    return (
        other_backend(run.settings["deepspeed"], checkpoint, environment)
        or _other_weights(run.settings["finetuning_type"], checkpoint)
        or other_world_size(checkpoint, world_size(environment))
    )


def unfit_v1(checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
    """The same for the new trainer: number of processes. Its backends stand in a mapping that is not read."""
    return other_world_size(checkpoint, world_size(environment))


def _other_weights(method: Setting, checkpoint: Checkpoint) -> str:
    if not method.written:
        return ""
    if checkpoint.adapter is True and method.value in ("full", "freeze"):
        return f"it holds an adapter, and `{method}` trains the model's own weights"
    if checkpoint.adapter is False and method.value in ("lora", "oft"):
        return f"it holds a whole model, and `{method}` trains an adapter"
    return ""


# ------------------------------------------------------------------------------------------------ what a start does


@dataclass(frozen=True)
class _Start:
    """What a start does with one resume value, as things lie: take a checkpoint up, stop, or neither and begin at step 0.

    ``at`` is the checkpoint it stops at, if it stops at one.
    """

    takes: Checkpoint | None = None
    stops: str = ""
    remedy: str = ""
    at: Checkpoint | None = None


@dataclass(frozen=True)
class _Launch:
    """A run, what lies on disk for it, and why it cannot take a checkpoint up ("": it can)."""

    run: Run
    request: PinRequest
    why_unfit: Callable[[Checkpoint], str]

    @property
    def resume(self) -> Setting:
        return self.run.settings["resume_from_checkpoint"]

    @property
    def directory(self) -> str:
        """The output directory as messages name it."""
        return self.request.save.root.path

    @property
    def found(self) -> tuple[Checkpoint, ...]:
        """The checkpoints in the output directory, newest first."""
        return self.request.save.found

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders in it that the trainer takes for checkpoints, whatever they hold."""
        return tuple(name for name in self.request.save.folders if CHECKPOINT_NAME.fullmatch(name))

    @property
    def unfit(self) -> tuple[Checkpoint, ...]:
        """Those in the output directory that are whole, but not for this launch."""
        return tuple(found for found in self.found if found.complete and self.why_unfit(found))

    @property
    def wants_another_run_s(self) -> bool:
        """Whether the resume value names one certain checkpoint outside the output directory."""
        return any(searched.root.only for searched in self.request.searched[1:])

    def path(self, checkpoint: Checkpoint) -> str:
        return self.request.save.root.checkpoint(checkpoint.path)

    def named(self, value: object) -> Checkpoint | None:
        """The checkpoint that a resume value names, if it is one that was looked at."""
        if not isinstance(value, str) or "\0" in value:
            return None
        for searched in self.request.searched:
            for checkpoint in searched.found:
                if same_place(value, posixpath.join(searched.root.directory, checkpoint.path)):
                    return checkpoint
        return None


def _start(launch: _Launch, value: object) -> _Start:
    """hparams/parser.py get_train_args, then Trainer.train (or ppo_train)."""
    stage, method = (launch.run.settings[name].value for name in ("stage", "finetuning_type"))
    overwrite = launch.run.settings["overwrite_output_dir"]
    if stage in ("rm", "ppo") and method in ("full", "freeze"):
        return _Start()
    if value is None:
        return _Start() if overwrite.value is True else _start_from_newest(launch, _start_without_checkpoint(launch))
    if stage == "ppo" and launch.run.obstacles:
        return _Start(stops=launch.run.obstacles[0].why, remedy=launch.run.obstacles[0].instead)
    if value is False:
        return _Start()
    if value is True:
        return _start_from_newest(launch, _Start(stops=f"there is no checkpoint in `{launch.directory}`"))
    return _start_from(launch, launch.named(value), f"{launch.resume.name}: {shown(value)}")


def _start_v1(launch: _Launch, value: object) -> _Start:
    """v1/core/utils/checkpoint.py resume: falsy is never, "auto" the newest with the marker, anything else a path."""
    if not value:
        return _Start()
    if value != "auto":
        return _start_from(launch, launch.named(value), f"{launch.resume.name}: {shown(value)}")
    marked = [found for found in launch.found if not any(reason.startswith(MARKER) for reason in found.reasons)]
    return _start_from(launch, marked[0], launch.path(marked[0])) if marked else _Start()


def _start_from_newest(launch: _Launch, otherwise: _Start) -> _Start:
    """transformers get_last_checkpoint: the highest number, whatever is in the folder."""
    if not launch.folders:
        return otherwise
    newest = max(launch.folders, key=lambda name: int(name.rpartition("-")[2]))
    there = next((found for found in launch.found if found.path == newest), None)
    return _start_from(launch, there, launch.request.save.root.checkpoint(newest))


def _start_from(launch: _Launch, checkpoint: Checkpoint | None, name: str) -> _Start:
    if checkpoint is None:
        return _Start(stops=f"`{name}` is no checkpoint that it can read", remedy="mend the path, or move what lies there away")
    if launch.run.obstacles:
        obstacle = launch.run.obstacles[0]
        return _Start(stops=f"`{name}`: {obstacle.why}", remedy=obstacle.instead, at=checkpoint)
    why = launch.why_unfit(checkpoint)
    if why:
        return _Start(stops=f"`{name}`: {why}", remedy=_AS_BEFORE, at=checkpoint)
    if not loads(checkpoint):
        return _Start(stops=f"`{name}`: {'; '.join(checkpoint.reasons)}", at=checkpoint)
    return _Start(takes=checkpoint)


def _start_without_checkpoint(launch: _Launch) -> _Start:
    """Final weights and no checkpoint stop the launch: Output directory already exists and is not empty."""
    weights = sorted(launch.request.save.files & FINAL_WEIGHTS)
    if not weights:
        return _Start()
    ended = ", and train_results.json of a run that has ended" if "train_results.json" in launch.request.save.files else ""
    return _Start(
        stops=f"`{launch.directory}` holds final weights ({weights[0]}){ended}, but no checkpoint: there is nothing to resume",
        remedy="name a new output_dir, or move the weights away (overwrite_output_dir would end resuming for all later starts)",
    )


_AS_BEFORE = "start it as it was started when it saved, or name a new output_dir"


# ------------------------------------------------------------------------------------------------ pinning


def pin(run: Run, request: PinRequest) -> Pin:
    """Name the chosen checkpoint; where there is none, leave a value with which the launch works."""
    launch = _Launch(run, request, lambda checkpoint: unfit(run, checkpoint, request.environment))
    if request.chosen is not None:
        return _pinned(launch, request.chosen, _named_or(launch, request.chosen, _writable(request.chosen_path or "")))
    return _unpinned(launch, _start, _values(launch))


def pin_v1(run: Run, request: PinRequest) -> Pin:
    """ "auto" where that finds the chosen checkpoint: it finds the newest at every start, and begins at step 0 without one."""
    launch = _Launch(run, request, lambda checkpoint: unfit_v1(checkpoint, request.environment))
    if request.chosen is not None:
        found_by_itself = _start_v1(launch, "auto").takes is request.chosen
        value = "auto" if found_by_itself else _writable(request.chosen_path or "")
        return _pinned(launch, request.chosen, _named_or(launch, request.chosen, value))
    return _unpinned(launch, _start_v1, (launch.resume.value, "auto", None))


def _named_or(launch: _Launch, chosen: Checkpoint, value: str) -> object:
    """What stands there, if it names the chosen checkpoint already."""
    written = launch.resume.value
    named = isinstance(written, str) and same_spelling(written, launch.request.chosen_path or "")
    return written if named and launch.named(written) is chosen else value


def _values(launch: _Launch) -> Iterator[object]:
    """What may stand there when nothing is complete, the best first."""
    named = launch.named(launch.resume.value)
    loadable = next((found for found in launch.found if loads(found) and not launch.why_unfit(found)), None)
    if named in launch.found and loadable is not None and named is not loadable and loads(named):
        # The author has pinned weights without an optimizer himself, and there are newer ones.
        yield launch.path(loadable)
    yield launch.resume.value
    yield None
    stumbles_at = _start(launch, None).at
    if stumbles_at is not None and stumbles_at.verdict in (Verdict.DAMAGED, Verdict.IN_PROGRESS) and not launch.run.obstacles:
        # null would make get_last_checkpoint take the damaged one; false begins at step 0 without looking.
        yield False


def _pinned(launch: _Launch, chosen: Checkpoint, value: object) -> Pin:
    return _set(launch, value, about(launch.run, chosen, world_size(launch.request.environment)))


def _unpinned(launch: _Launch, start: Callable[[_Launch, object], _Start], values: Iterable[object]) -> Pin:
    now = start(launch, launch.resume.value)
    if _leave_alone(launch, now):
        return _refused(launch, now)
    for value in values:
        begun = start(launch, value)
        if not begun.stops:
            return _set(launch, value, _about_unpinned(launch, value, begun))
    return _refused(launch, start(launch, None))


def _leave_alone(launch: _Launch, now: _Start) -> bool:
    """Whether to begin at step 0 is not for us to decide: there is something that a mended setting or launch could take up."""
    if launch.run.obstacles:
        return bool(now.stops and launch.folders)
    return bool(launch.unfit or (now.stops and launch.wants_another_run_s))


def _set(launch: _Launch, value: object, notices: Iterable[Notice]) -> Pin:
    resume = launch.resume
    same = value == resume.value and type(value) is type(resume.value)
    if not same and resume.joint == "=" and shlex.quote(shown(value)) != shown(value):  # launcher.py joins and splits them
        why = "cannot be given on the command line, where LLaMA-Factory tears it apart"
        raise CannotEdit(f"`{value}` {why}: take `{resume}` out")
    edits = () if same else resume.set(value)
    return Pin(edits, tuple(notices), _arguments(launch, value if edits else resume))


def _arguments(launch: _Launch, value: object) -> tuple[str, ...]:
    """key=value arguments behind the YAML; one with a blank is torn apart on the way (launcher.py joins and splits them)."""
    arguments = [] if value is launch.resume else [f"{launch.resume.name}={shown(value)}"]
    if launch.request.save.root.edits:
        arguments.insert(0, f"output_dir={launch.directory}")
    understood = not launch.run.release.before(_TAKES_ARGUMENTS_SINCE)
    return tuple(arguments) if understood and all(shlex.quote(argument) == argument for argument in arguments) else ()


# ------------------------------------------------------------------------------------------------ nothing to take up


def _refused(launch: _Launch, start: _Start) -> Pin:
    return Pin((), (Notice("launch-refused", _why_refused(launch, start)),))


def _why_refused(launch: _Launch, start: _Start) -> str:
    title = launch.run.title
    if start.stops:
        return f"{title} will stop: {start.stops}" + (f"; {start.remedy}" if start.remedy else "")
    newest = launch.unfit[0]
    lost = f"`{launch.path(newest)}`: {launch.why_unfit(newest)}"
    effect = "begin at step 0 and overwrite what is there" if start.takes is None else "go on without the optimizer"
    return f"{title} would {effect}, for no whole checkpoint fits this launch ({lost}); {_AS_BEFORE}"


def _about_unpinned(launch: _Launch, value: object, start: _Start) -> Iterator[Notice]:
    """What the generic words (first launch, nothing complete) would not say."""
    message = ""
    if start.takes is not None:
        lacks = "; ".join(start.takes.reasons)
        message = (
            f"{launch.run.title} goes on from the weights in `{launch.path(start.takes)}` with a new optimizer and "
            f"learning-rate schedule: {lacks}"
        )
    elif value is False and launch.resume.value is not False:
        message = (
            f"in `{launch.directory}` no checkpoint is complete: the run begins at step 0 and overwrites what is there; move "
            f"it away first if you need it (`false` keeps {launch.run.title} from stopping at the newest)"
        )
    elif launch.found and launch.run.obstacles:
        message = f"the run begins at step 0 and overwrites what is in `{launch.directory}`: {launch.run.obstacles[0].why}"
    elif not launch.found and value != launch.resume.value and _names_a_checkpoint(launch.resume.value):
        message = (
            f"`{launch.resume}` is not there any more, nor is any other checkpoint in `{launch.directory}`: the run begins at "
            "step 0; if there should be one, check that the storage is mounted"
        )
    elif not launch.found and launch.request.save.files & FINAL_WEIGHTS:
        message = f"`{launch.directory}` holds final weights and no checkpoint: the run begins at step 0 and overwrites them"
    if message:
        yield Notice("nothing-resumable", message)


def _names_a_checkpoint(value: object) -> bool:
    return isinstance(value, str) and CHECKPOINT_NAME.fullmatch(posixpath.basename(value.rstrip("/"))) is not None
