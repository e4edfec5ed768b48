"""How a verl run is pointed at a checkpoint.

``resume_mode=auto`` finds the one that the tracker names, whatever is in it. In a file it stays auto and the tracker is put
right, so that every later start finds the newest by itself; a command line, which is planned for at every start, names the
checkpoint. A ``resume_path`` is never left in a file.

Sources: verl 0.2.0 to 0.9.1 ``trainer/ppo/ray_trainer.py`` (``_load_checkpoint``), ``utils/checkpoint/checkpoint_handler.py``,
``trainer/fsdp_sft_trainer.py`` (``load_checkpoint``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ckptlint.checkpoints.checkpoint import Checkpoint, Notice
from ckptlint.frameworks.framework import Pin, PinRequest, SaveRoot
from ckptlint.frameworks.hydra import spelled
from ckptlint.frameworks.tracker_pin import aside_where_nothing_loads, repaired, save_root, tracker_of
from ckptlint.frameworks.trainer_pin import world_size
from ckptlint.frameworks.trainer_start import other_world_size
from ckptlint.frameworks.verl import path_of
from ckptlint.run import Amount, PathExpr, Run, Setting, Unit
from ckptlint.source.text import Edit

MODE, PATH, DIRECTORY = "trainer.resume_mode", "trainer.resume_from_path", "trainer.default_local_dir"


def roots(run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
    """The directory it saves into.

    Raises:
        UnsetVariable, ValueError: it is not known.
    """
    setting = run.settings[DIRECTORY]
    path = path_of(setting)
    return (save_root(setting, path if isinstance(path, PathExpr) else None, environment, save_dir),)


def unfit(run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
    """Rank files are not resharded; and there are releases that resume nothing."""
    return _loads_nothing(run) or other_world_size(checkpoint, _world_size(run, environment))


def _loads_nothing(run: Run) -> str:
    """Why this release takes nothing up. What asynchronous saving left behind is judged by what lies on disk instead."""
    return next((obstacle.why for obstacle in run.obstacles if not obstacle.setting.name.endswith("async_save")), "")


def _is_ppo(run: Run) -> bool:
    return (
        "trainer.max_actor_ckpt_to_keep" in run.settings or "actor_rollout_ref.actor.checkpoint.save_contents" in run.settings
    )


def _world_size(run: Run, environment: Mapping[str, str]) -> int | None:
    """Ray starts as many processes as the configuration says; supervised training is started by torchrun.

    Where the configuration does not say how many GPUs a node has, the launch may; the default is not believed.
    """
    if not _is_ppo(run):
        return world_size(environment)
    nodes, of_node = (run.settings.get(name) for name in ("trainer.nnodes", "trainer.n_gpus_per_node"))
    if nodes is None or of_node is None or not of_node.written:
        return None
    return nodes.value * of_node.value if isinstance(nodes.value, int) and isinstance(of_node.value, int) else None


def pin(run: Run, request: PinRequest) -> Pin:
    """Have the start take the chosen checkpoint; where there is none, keep it from stopping at one that is not whole."""
    return _unpinned(run, request) if request.chosen is None else _pinned(run, request, request.chosen)


def _pinned(run: Run, request: PinRequest, chosen: Checkpoint) -> Pin:
    tracker = tracker_of(request)
    disk = () if tracker.step == chosen.step else (repaired(request, tracker),)
    edits = tuple(_edits(run))
    place = Path(request.save.root.directory, chosen.path).absolute()
    arguments = (f"{MODE}=resume_path", f"{PATH}={spelled(str(place))}") if edits or disk else ()
    return Pin(edits, tuple(_about(run, chosen)), arguments, disk)


def _edits(run: Run) -> Iterator[Edit]:
    """``auto``, and no path that the supervised trainers would take in auto as well."""
    mode, path = run.settings[MODE], run.settings.get(PATH)
    if mode.value != "auto":
        yield from mode.set("auto")
    pins = mode.value == "resume_path" or not _is_ppo(run)
    if path is not None and pins and _is_given(path):
        yield from path.set(None)


def _is_given(path: Setting) -> bool:
    return path.written and path.value not in (None, "", False)


def _about(run: Run, chosen: Checkpoint) -> Iterator[Notice]:
    length = run.length
    if isinstance(length, Amount) and length.unit is Unit.STEP and chosen.step is not None and chosen.step >= length.value:
        yield Notice("finished", f"no steps remain: the checkpoint is at step {chosen.step}, and the run takes {length}")


def _unpinned(run: Run, request: PinRequest) -> Pin:
    for found in request.save.found:
        why = unfit(run, found, request.environment) if found.complete else ""
        if why and not _loads_nothing(run):
            path = request.save.root.checkpoint(found.path)
            advice = "start it on as many GPUs as it was saved by, or name a new directory"
            return Pin((), (Notice("launch-refused", f"no whole checkpoint fits this launch (`{path}`: {why}); {advice}"),))
    if run.settings[MODE].value != "auto":
        return Pin()
    return Pin(disk=aside_where_nothing_loads(request, "verl stops at every start"))
