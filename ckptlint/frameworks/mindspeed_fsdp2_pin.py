"""How a run of MindSpeed-LLM's FSDP2 trainer is pointed at a checkpoint: by the path of that very one, which is all it knows.

Source: Ascend/MindSpeed-LLM c77308a1 ``fsdp2/train/trainer.py``, ``fsdp2/checkpoint/checkpoint_manager.py`` (``extra_state`` of
every rank is read, so as many ranks must start as have saved).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ckptlint.checkpoints.checkpoint import Checkpoint, Notice
from ckptlint.frameworks.framework import Pin, PinRequest, SaveRoot
from ckptlint.frameworks.tracker_pin import save_root
from ckptlint.frameworks.trainer_pin import named, same_spelling, world_size
from ckptlint.frameworks.trainer_start import other_world_size
from ckptlint.run import Amount, PathExpr, Run, Unit

RESUME = "training.resume_from_checkpoint"


def roots(run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
    """The directory it saves into.

    Raises:
        UnsetVariable, ValueError: it is not known.
    """
    location = run.writes[0].directory
    path = location.path if isinstance(location.path, PathExpr) else None
    return (save_root(location.setting, path, environment, save_dir),)


def unfit(checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
    """Why a whole checkpoint cannot be taken up; "" where nothing says so."""
    return other_world_size(checkpoint, world_size(environment))


def pin(run: Run, request: PinRequest) -> Pin:
    """Name the chosen checkpoint; where there is none, take out the name of one of this run's that is of no use."""
    return _unpinned(run, request) if request.chosen is None else _pinned(run, request, request.chosen)


def _pinned(run: Run, request: PinRequest, chosen: Checkpoint) -> Pin:
    resume, path = run.settings[RESUME], request.chosen_path or ""
    if isinstance(resume.value, str) and same_spelling(resume.value, path):
        return Pin((), tuple(_about(run, chosen)))
    return Pin(resume.set(path), tuple(_about(run, chosen)), (f"--{RESUME}", path))


def _about(run: Run, chosen: Checkpoint) -> Iterator[Notice]:
    length = run.length
    if isinstance(length, Amount) and length.unit is Unit.STEP and chosen.step is not None and chosen.step >= length.value:
        yield Notice("finished", f"no steps remain: the checkpoint is at step {chosen.step}, and the run takes {length}")


def _unpinned(run: Run, request: PinRequest) -> Pin:
    for found in request.save.found:
        why = unfit(found, request.environment) if found.complete else ""
        if why:
            path = request.save.root.checkpoint(found.path)
            advice = "start it on as many processes as saved it, or name a new output_dir"
            return Pin((), (Notice("launch-refused", f"no whole checkpoint fits this launch (`{path}`: {why}); {advice}"),))
    resume = run.settings[RESUME]
    if not isinstance(resume.value, str) or not resume.value:
        return Pin()
    own = same_spelling(resume.value.rpartition("/checkpoints/")[0] or "/", request.save.root.directory)
    if named(request, resume.value) is None and not own:
        return Pin()  # another run's checkpoint, with which the author begins
    place = request.save.root.path
    message = f"`{resume}` cannot be loaded, nor can any other checkpoint in `{place}`: the run begins at step 0"
    return Pin(resume.remove(), (Notice("nothing-resumable", message),))
