"""Checkpoints that torch.save, DCP, Accelerate, Lightning, Orbax and flax really wrote: what is called complete loads, and what
is called damaged does not.

For each file of the newest checkpoint: missing, empty, cut at several places, a zero tail. Both kinds of error are counted.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ckptlint.checkpoints.checkpoint import Verdict
from ckptlint.checkpoints.listing import LocalListing
from ckptlint.checkpoints.scan import scan

pytestmark = [pytest.mark.drill, pytest.mark.filterwarnings("ignore")]

torch = pytest.importorskip("torch")


def trained() -> tuple[object, object, object]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for _ in range(2):
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
        scheduler.step()
    return model, optimizer, scheduler


# ------------------------------------------------------------------------------------------------ writers and loaders


def write_single(directory: Path, step: int) -> None:
    model, optimizer, scheduler = trained()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()}
    torch.save({**state, "step": step, "rng": torch.get_rng_state()}, directory / f"step_{step}.pt")


def load_single(directory: Path, step: int) -> None:
    model, optimizer, scheduler = trained()
    state = torch.load(directory / f"step_{step}.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    assert state["step"] == step


def write_dcp(directory: Path, step: int) -> None:
    import torch.distributed.checkpoint as dcp

    model, optimizer, _ = trained()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()["state"], "step": torch.tensor(step)}
    dcp.save(state, checkpoint_id=directory / f"step-{step}", no_dist=True)


def load_dcp(directory: Path, step: int) -> None:
    import torch.distributed.checkpoint as dcp

    model, optimizer, _ = trained()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()["state"], "step": torch.tensor(0)}
    try:
        dcp.load(state, checkpoint_id=directory / f"step-{step}", no_dist=True)
    except BaseException as error:  # CheckpointException is none of Exception's
        raise RuntimeError("dcp.load failed") from error
    assert int(state["step"]) == step


def prepared() -> object:
    accelerate = pytest.importorskip("accelerate")
    accelerate.state.AcceleratorState._reset_state(True)
    accelerator = accelerate.Accelerator(cpu=True)
    model, optimizer, scheduler = trained()
    loader = torch.utils.data.DataLoader(list(range(8)), batch_size=2)
    accelerator.prepare(model, optimizer, scheduler, loader)
    return accelerator


def write_accelerate(directory: Path, step: int) -> None:
    prepared().save_state(str(directory / f"checkpoint_{step}"))


def load_accelerate(directory: Path, step: int) -> None:
    prepared().load_state(str(directory / f"checkpoint_{step}"))


def lightning_trainer(directory: Path, step: int) -> tuple[object, object, object]:
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def training_step(self, batch: object, number: int) -> object:
            return self.layer(batch).sum()

        def configure_optimizers(self) -> object:
            return torch.optim.Adam(self.parameters())

    callback = lightning.pytorch.callbacks.ModelCheckpoint(
        dirpath=directory, filename="{epoch}-{step}", every_n_train_steps=2, save_top_k=-1
    )
    trainer = lightning.Trainer(
        max_steps=step,
        accelerator="cpu",
        logger=False,
        callbacks=[callback],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    return trainer, Module(), torch.utils.data.DataLoader(torch.ones(16, 4), batch_size=2)


def write_lightning(directory: Path, step: int) -> None:
    if step == NEW:
        trainer, module, loader = lightning_trainer(directory, step)
        trainer.fit(module, loader)


def load_lightning(directory: Path, step: int) -> None:
    trainer, module, loader = lightning_trainer(directory, step + 1)
    trainer.fit(module, loader, ckpt_path=str(directory / f"epoch=0-step={step}.ckpt"), weights_only=False)
    assert trainer.global_step == step + 1


def write_orbax(directory: Path, step: int) -> None:
    ocp = pytest.importorskip("orbax.checkpoint")
    with ocp.CheckpointManager(directory) as manager:
        manager.save(step, args=ocp.args.StandardSave({"weights": _arrays(), "step": step}))


def _arrays() -> object:
    return pytest.importorskip("numpy").arange(64, dtype="float32")


def load_orbax(directory: Path, step: int) -> None:
    ocp = pytest.importorskip("orbax.checkpoint")
    with ocp.CheckpointManager(directory) as manager:
        state = manager.restore(step, args=ocp.args.StandardRestore({"weights": _arrays(), "step": 0}))
    assert state["step"] == step and (state["weights"] == _arrays()).all()


def verl_files(directory: Path, step: int) -> list[Path]:
    """The files of verl's FSDP manager (fsdp_checkpoint_manager.py), as two ranks name them."""
    role = directory / f"global_step_{step}" / "actor"
    kinds = [role / f"{kind}_world_size_2_rank_{rank}.pt" for kind in ("model", "optim", "extra_state") for rank in range(2)]
    return [*kinds, directory / f"global_step_{step}" / "data.pt"]


def write_verl(directory: Path, step: int) -> None:
    model, optimizer, scheduler = trained()
    parts = {"model": model.state_dict(), "optim": optimizer.state_dict(), "data": {"_snapshot": step}}
    parts["extra"] = {"lr_scheduler": scheduler.state_dict(), "rng": torch.get_rng_state()}
    for path in verl_files(directory, step):
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(next(part for name, part in parts.items() if path.name.startswith(name)), path)
    (directory / f"global_step_{step}" / "actor" / "fsdp_config.json").write_text('{"FSDP_version": 1, "world_size": 2}')
    (directory / "latest_checkpointed_iteration.txt").write_text(str(step))


def load_verl(directory: Path, step: int) -> None:
    for path in verl_files(directory, step):
        torch.load(path, weights_only=False)


OLD, NEW = 2, 4

# Files that a resume does without, or whose damage a loader passes over with a message.
WRITERS: dict[str, tuple[Callable[[Path, int], None], Callable[[Path, int], None], str, tuple[str, ...]]] = {
    "single-file": (write_single, load_single, "step_4.pt", ()),
    "dcp": (write_dcp, load_dcp, "step-4", ()),
    "verl": (write_verl, load_verl, "global_step_4", ("data.pt",)),  # verl goes on without data.pt
    "accelerate": (write_accelerate, load_accelerate, "checkpoint_4", ("random_states_0.pkl",)),
    "lightning": (write_lightning, load_lightning, "epoch=0-step=4.ckpt", ()),
}
EVERY = pytest.mark.parametrize("name", WRITERS)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            directory = tmp_path_factory.mktemp(name)
            for step in (OLD, NEW):
                WRITERS[name][0](directory, step)  # skips the test where its library is missing
            for path in directory.rglob("*"):
                os.utime(path, (1.7e9, 1.7e9))
            made[name] = directory
        return made[name]

    return get


def restart(directory: Path, layout: str) -> int | None:
    found = [one for one in scan(LocalListing(directory), now=2e9) if one.layout.name == layout]
    return found[0].restart.step if found and found[0].restart else None


def loads(name: str, directory: Path) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            WRITERS[name][1](directory, NEW)
    except Exception:
        return False
    return True


def faults(directory: Path, checkpoint: str, seed: str) -> Iterator[tuple[str, Path, bytes | None]]:
    """What can happen to each file of a checkpoint: a name, the file, and what it then holds (None: it is gone)."""
    chance = random.Random(seed)
    place = directory / checkpoint
    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if not path.is_file():
            continue
        data = path.read_bytes()
        yield "missing", path, None
        yield "empty", path, b""
        yield "all zero", path, bytes(len(data))
        yield "zero tail", path, data[:-64] + bytes(64)
        for length in sorted({1, 20, len(data) // 2, len(data) - 1, *(chance.randrange(len(data)) for _ in range(4))}):
            if length < len(data):
                yield f"cut at {length}", path, data[:length]


@EVERY
def test_what_is_whole_is_complete_and_loads(name, written):
    assert restart(written(name), name) == NEW
    assert loads(name, written(name))


@EVERY
def test_what_is_called_complete_loads_and_what_is_called_damaged_does_not(name, written, tmp_path):
    source, (_, _, checkpoint, harmless) = written(name), WRITERS[name]
    wrongly_complete, wrongly_damaged, count = [], [], 0
    for fault, path, data in faults(source, checkpoint, name):
        copy = shutil.copytree(source, tmp_path / str(count), copy_function=shutil.copy2)
        count += 1
        target = copy / path.relative_to(source)
        target.unlink() if data is None else target.write_bytes(data)
        os.utime(target.parent, (1.7e9, 1.7e9))
        if data is not None:
            os.utime(target, (1.7e9, 1.7e9))
        taken, works = restart(copy, name) == NEW, loads(name, copy)
        label = f"{fault}: {path.relative_to(source)}"
        if taken and not works:
            wrongly_complete.append(label)
        if not taken and works and not path.name.startswith(harmless or "\0"):
            wrongly_damaged.append(label)
        shutil.rmtree(copy)
    assert count >= 8
    tails = [label for label in wrongly_damaged if label.startswith("zero tail") and label.endswith(".safetensors")]
    assert (wrongly_complete, sorted(set(wrongly_damaged) - set(tails))) == ([], []), f"of {count}"


RANKS = """
import os, sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

rank, world, store, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
weight = distribute_tensor(torch.arange(64.0).reshape(8, 8), init_device_mesh("cpu", (world,)), [Shard(0)])
dcp.save({"model": {"weight": weight}, "optimizer": {"exp_avg": weight}}, checkpoint_id=path)
dist.barrier()
os._exit(0)  # taking the process group down races with the other rank
"""


def save_on_ranks(directory: Path, world: int, step: int) -> None:
    store = directory.parent / f"{directory.name}-{world}.store"
    arguments = [str(world), str(store), str(directory / f"step-{step}")]
    ranks = [subprocess.Popen([sys.executable, "-c", RANKS, str(rank), *arguments]) for rank in range(world)]
    assert [rank.wait(120) for rank in ranks] == [0] * world


def test_shards_of_two_ranks_and_those_left_of_them_by_a_save_of_one(tmp_path):
    directory = tmp_path / "run"
    save_on_ranks(directory, 2, 5)
    (found,) = scan(LocalListing(directory), now=2e10)
    assert (found.restart.step, found.restart.world_size) == (5, 2)
    (directory / "step-5" / "__1_0.distcp").rename(tmp_path / "second")
    (found,) = scan(LocalListing(directory), now=2e10)
    assert "__1_0.distcp is missing, and .metadata names it" in found.checkpoints[0].reasons
    (tmp_path / "second").rename(directory / "step-5" / "__1_0.distcp")
    save_on_ranks(directory, 1, 5)
    (found,) = scan(LocalListing(directory), now=2e10)
    assert (found.restart.step, found.restart.world_size) == (5, 1)


def test_orbax_folders_are_recognised_and_temporary_ones_refused(tmp_path):
    for step in (OLD, NEW):
        write_orbax(tmp_path, step)
    load_orbax(tmp_path, NEW)
    (found,) = scan(LocalListing(tmp_path), now=2e9)
    assert (found.layout.name, found.restart.step, found.restart.verdict) == ("orbax", NEW, Verdict.COMPLETE)
    (tmp_path / str(NEW)).rename(tmp_path / f"{NEW}.orbax-checkpoint-tmp-1")
    (found,) = scan(LocalListing(tmp_path), now=2e9)
    assert found.restart.step == OLD and "temporary name" in found.checkpoints[0].reasons[0]


def test_orbax_s_own_altered_checkpoints_are_judged_as_orbax_does():
    """The package brings folders with a part taken away, sorted by whether a restore needs it."""
    ocp = pytest.importorskip("orbax.checkpoint")
    below = Path(ocp.__file__).parent / "experimental/v1/_src/testing/compatibility/checkpoints"
    verdicts: dict[str, set[Verdict]] = {}
    for path in below.glob("*/*/*_metadata_alterations/*"):
        (found,) = scan(LocalListing(path), now=2e9)
        verdicts.setdefault(path.parent.name, set()).update(one.verdict for one in found.checkpoints)
    if not verdicts:
        pytest.skip("this release of Orbax brings none")
    assert verdicts == {
        "critical_metadata_alterations": {Verdict.DAMAGED},
        "non_critical_metadata_alterations": {Verdict.COMPLETE},
    }


def test_flax_files_are_recognised(tmp_path):
    checkpoints = pytest.importorskip("flax.training.checkpoints")
    for step in (OLD, NEW):
        checkpoints.save_checkpoint(tmp_path, {"weights": _arrays(), "step": step}, step, keep=2, overwrite=True)
    (found,) = scan(LocalListing(tmp_path), now=2e9)
    assert (found.layout.name, found.restart.step) == ("orbax", NEW)
