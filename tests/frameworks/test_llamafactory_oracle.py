"""`ckptlint resume` against a re-statement of what LLaMA-Factory does with a file and a disk, over the whole product of both.

The oracle knows nothing of ckptlint: it follows ``hparams/parser.py`` get_train_args and transformers' ``Trainer.train``, reads
the file with OmegaConf as LLaMA-Factory does, and looks at the checkpoints with the standard library.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from checkpoint_files import cut, safetensors_bytes, write_checkpoint
from omegaconf import OmegaConf

from ckptlint.resume import Plan, plan


class Outcome(NamedTuple):
    """What a start does: `resumes` or goes on from `weights` of a step, starts `fresh`, or `raises` with these words."""

    what: str
    step: int | None = None
    words: str = ""


# ------------------------------------------------------------------------------------------------ what LLaMA-Factory does

FINAL = ("adapter_model", "model", "pytorch_model")
FINAL_NAMES = [
    f"{stem}{end}" for stem in FINAL for end in (".safetensors", ".bin", ".safetensors.index.json", ".bin.index.json")
]


def get_last_checkpoint(folder: str) -> str | None:
    """transformers trainer_utils.py."""
    numbered = re.compile(r"^checkpoint\-(\d+)$")
    found = [name for name in os.listdir(folder) if numbered.search(name) and os.path.isdir(os.path.join(folder, name))]
    return os.path.join(folder, max(found, key=lambda name: int(name.split("-")[1]))) if found else None


def what_llamafactory_does(config: Path) -> Outcome:
    """hparams/parser.py get_train_args, then the stage's workflow."""
    values = OmegaConf.to_container(OmegaConf.load(config))
    assert isinstance(values, dict)
    stage, method = values["stage"], values["finetuning_type"]
    output_dir = os.path.expanduser(values["output_dir"])
    resume = values.get("resume_from_checkpoint")
    can_resume = not (stage in ("rm", "ppo") and method in ("full", "freeze"))
    if not can_resume:
        resume = None
    looks = resume is None and os.path.isdir(output_dir) and not values.get("overwrite_output_dir", False)
    if looks and can_resume:
        last = get_last_checkpoint(output_dir)
        if last is None and any(os.path.isfile(os.path.join(output_dir, name)) for name in FINAL_NAMES):
            return Outcome("raises", words="Output directory already exists and is not empty.")
        resume = last
    if stage == "ppo":
        return Outcome("fresh") if resume is None else Outcome("raises", words="will be supported in the future version")
    return train(resume, output_dir, values)


def train(resume: object, output_dir: str, values: dict[object, object]) -> Outcome:
    """Trainer.train and what it calls."""
    if resume is False:
        resume = None
    if resume is True:
        resume = get_last_checkpoint(output_dir) if os.path.isdir(output_dir) else None
        if resume is None:
            return Outcome("raises", words="No valid checkpoint found in output directory")
    if resume is None:
        return Outcome("fresh")
    folder = Path(str(resume))
    adapter = values["finetuning_type"] == "lora"
    names = ["adapter_model.safetensors"] if adapter else ["model.safetensors"]
    if values["stage"] == "rm" or not any((folder / name).is_file() for name in names):
        return Outcome("raises", words=f"Can't find a valid checkpoint at {folder}")
    if not whole_safetensors(folder / names[0]):
        return Outcome("raises", words="SafetensorError")
    try:
        step = json.loads((folder / "trainer_state.json").read_bytes())["global_step"]
    except (OSError, ValueError):
        return Outcome("raises", words="trainer_state.json")
    optimizer, scheduler = folder / "optimizer.pt", folder / "scheduler.pt"
    if not (optimizer.is_file() and scheduler.is_file()):
        return Outcome("weights", step)
    if not (zipfile.is_zipfile(optimizer) and zipfile.is_zipfile(scheduler)):
        return Outcome("raises", words="failed finding central directory")
    return Outcome("resumes", step)


def whole_safetensors(path: Path) -> bool:
    data = path.read_bytes()
    if len(data) < 8:
        return False
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length]) if len(data) >= 8 + length else {}
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return bool(ends) and len(data) == 8 + length + max(ends)


# ------------------------------------------------------------------------------------------------ what lies on disk


class Disk(NamedTuple):
    """A directory below the working directory, and the newest complete checkpoint in it."""

    name: str
    newest: int | None
    lora: bool


def write_disks(lora: bool) -> Iterator[Disk]:
    """Every state of an output directory, each in one of its own."""
    prefix = "lora" if lora else "full"
    weights = "adapter_model.safetensors" if lora else "model.safetensors"

    def disk(name: str, newest: int | None = None, *steps: int) -> Path:
        directory = Path(prefix) / name
        for step in steps:
            write_checkpoint(directory, step, lora=lora, total=5000)
        disks.append(Disk(str(directory), newest, lora))
        return directory

    disks: list[Disk] = []
    disk("nothing")
    disk("empty").mkdir(parents=True)
    logs = disk("logs")
    logs.mkdir()
    (logs / "trainer_log.jsonl").write_text("{}\n")
    final = disk("final-weights")
    final.mkdir()
    (final / weights).write_bytes(safetensors_bytes())
    disk("one", 500, 500)
    disk("two", 1000, 500, 1000)
    both = disk("final-and-checkpoint", 500, 500)
    (both / weights).write_bytes(safetensors_bytes())
    cut(disk("torn-optimizer", 500, 500, 1000) / "checkpoint-1000/optimizer.pt", 50)
    cut(disk("torn-weights", 500, 500, 1000) / f"checkpoint-1000/{weights}", -4)
    (disk("no-state", 500, 500, 1000) / "checkpoint-1000/trainer_state.json").unlink()
    (disk("newest-empty", 500, 500) / "checkpoint-1000").mkdir()
    (disk("temporary", 500, 500) / "tmp-checkpoint-1000").mkdir()
    (disk("only-temporary") / "tmp-checkpoint-1000").mkdir(parents=True)
    only = disk("only-torn", None, 500, 1000)
    for step in (500, 1000):
        cut(only / f"checkpoint-{step}/optimizer.pt", 50)
    (disk("only-empty") / "checkpoint-1000").mkdir(parents=True)
    write_checkpoint(disk("weights-newest", 500, 500), 1000, lora=lora, optimizer=False, scheduler=False)
    write_checkpoint(disk("only-weights"), 1000, lora=lora, optimizer=False, scheduler=False)
    torn = disk("weights-under-torn", None, 1000)
    cut(torn / "checkpoint-1000/optimizer.pt", 50)
    write_checkpoint(torn, 500, lora=lora, optimizer=False, scheduler=False)
    yield from disks


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Disk]]:
    """Written once: no plan touches a checkpoint."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("disks"))
    written = [*write_disks(lora=False), *write_disks(lora=True)]
    write_checkpoint("elsewhere", 700, total=5000)
    write_checkpoint("elsewhere-lora", 700, total=5000, lora=True)
    yield written
    os.chdir(before)


# ------------------------------------------------------------------------------------------------ the product

ABSENT = "absent"
VALUES = (
    ABSENT, "null", "~", "", "false", "true", '""', "auto", "latest", "1000", "OUT", "OUT/", "./OUT", "OUT/checkpoint-500",
    "OUT/checkpoint-1000", "OUT/checkpoint-1000/", "OUT/checkpoint-77", "OUT/checkpoint-x", "nowhere", "nowhere/else", "$ROOT",
    "${ROOT}/checkpoint-500", "elsewhere/checkpoint-700", "elsewhere", "gone/checkpoint-3",
)  # fmt: skip
OVERWRITE = ("", "overwrite_output_dir: false\n", "overwrite_output_dir: true\n")
STAGES = ("sft", "dpo", "rm", "ppo")


def config(disk: Disk, value: str, overwrite: str, stage: str) -> str:
    where = "elsewhere-lora" if disk.lora else "elsewhere"
    value = value.replace("OUT", disk.name).replace("elsewhere", where)
    key = "" if value == ABSENT else f"resume_from_checkpoint: {value}\n"
    method = "lora" if disk.lora else "full"
    return (
        f"stage: {stage}\ndo_train: true\nfinetuning_type: {method}\nmax_steps: 5000\n{overwrite}{key}output_dir: {disk.name}\n"
    )


# Files that a second plan leaves alone, and what LLaMA-Factory does with them. The disks stay, so each is asked once.
STABLE: dict[bytes, Outcome] = {}


def check(disk: Disk, value: str, overwrite: str, stage: str) -> None:
    text = config(disk, value, overwrite, stage)
    file = Path("run.yaml")
    file.write_text(text)
    decided = plan("run.yaml", {"ROOT": disk.name})
    file.write_bytes(decided.after)
    case = f"{text!r} -> {decided.after!r}"
    if decided.after not in STABLE:
        assert plan("run.yaml", {"ROOT": disk.name}).after == decided.after, case
        STABLE[decided.after] = what_llamafactory_does(file)
    judge(disk, value, stage, text, decided, case)


def judge(disk: Disk, value: str, stage: str, text: str, decided: Plan, case: str) -> None:
    outcome = STABLE[decided.after]
    resumable = stage in ("sft", "dpo")
    elsewhere = value.startswith("elsewhere") and resumable
    if resumable and disk.newest is not None:
        assert outcome == Outcome("resumes", disk.newest), case
        assert decided.chosen is not None, case
    elif elsewhere:
        assert outcome == Outcome("resumes", 700), case
    elif decided.refused:
        assert decided.after == text.encode(), case
        assert outcome.what == "raises", case
        assert may_be_refused(disk, value, stage), case
    else:
        assert outcome.what != "raises", case
    if decided.chosen is None and not decided.refused:
        told = {notice.name for notice in decided.notices}
        assert told & {"first-launch", "nothing-resumable"}, case


def may_be_refused(disk: Disk, value: str, stage: str) -> bool:
    """Final weights alone; a checkpoint of another directory that is gone; a stage that no release can resume."""
    directory = Path(disk.name)
    has_checkpoints = directory.is_dir() and any(name.startswith("checkpoint-") for name in os.listdir(directory))
    return directory.name == "final-weights" or value.startswith("gone") or (stage in ("rm", "ppo") and has_checkpoints)


@pytest.mark.parametrize("overwrite", [OVERWRITE[0], OVERWRITE[2]])
def test_every_value_on_every_disk_resumes_from_the_newest_or_starts(disks: list[Disk], overwrite: str) -> None:
    for disk, value in product((disk for disk in disks if not disk.lora), VALUES):
        check(disk, value, overwrite, "sft")


# Each kind of value once, and each kind of disk.
KINDS = (ABSENT, "false", "true", "OUT", "OUT/checkpoint-1000", "gone/checkpoint-3", "$ROOT")
STATES = ("nothing", "final-weights", "two", "torn-optimizer", "only-torn", "only-temporary", "only-weights")


@pytest.mark.parametrize("overwrite", OVERWRITE)
def test_so_does_every_kind_of_value_for_adapters(disks: list[Disk], overwrite: str) -> None:
    for disk, value in product((disk for disk in disks if disk.lora), KINDS):
        check(disk, value, overwrite, "sft")


@pytest.mark.parametrize("stage", STAGES[1:])
def test_every_stage_resumes_or_starts_or_is_refused(disks: list[Disk], stage: str) -> None:
    for disk, value, overwrite in product(disks, KINDS, OVERWRITE[::2]):
        if Path(disk.name).name in STATES:
            check(disk, value, overwrite, stage)


def test_the_oracle_says_what_was_seen_with_the_real_one(disks: list[Disk]) -> None:
    """The rows of the table that was recorded by running LLaMA-Factory 0.9.5's get_train_args."""

    def does(name: str, value: str, overwrite: str = "", stage: str = "sft") -> str:
        disk = next(disk for disk in disks if disk.name == name)
        Path("run.yaml").write_text(config(disk, value, overwrite, stage))
        outcome = what_llamafactory_does(Path("run.yaml"))
        return f"{outcome.what} {outcome.step}" if outcome.step else outcome.what

    assert does("full/two", "null") == "resumes 1000"
    assert does("full/newest-empty", "null") == "raises"
    assert does("full/temporary", "null") == "resumes 500"
    assert does("full/final-weights", "null") == "raises"
    assert does("full/logs", "null") == "fresh"
    assert does("full/one", "null", OVERWRITE[2]) == "fresh"
    assert does("full/one", "OUT/checkpoint-500", OVERWRITE[2]) == "resumes 500"
    assert does("full/one", "OUT") == "raises"
    assert does("full/one", "true") == "resumes 500"
    assert does("full/nothing", "true") == "raises"
    assert does("full/one", "false") == "fresh"
    assert (
        does("full/one", "auto") == does("full/one", '""') == does("full/one", "1000") == does("full/one", "$ROOT") == "raises"
    )
    assert does("full/only-weights", "null") == "weights 1000"
    assert does("full/one", "null", stage="rm") == does("full/one", "null", stage="ppo") == "fresh"
    assert does("lora/one", "null", stage="rm") == does("lora/one", "null", stage="ppo") == "raises"
