"""The engine of resume plans: targets, searching, notices, changes as lines, and writing while others write or kill."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

import pytest
from checkpoint_files import cut, write_checkpoint
from toy_framework import ToyFramework

from ckptlint import fixing, resume
from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Notice
from ckptlint.checkpoints.huggingface import HuggingFaceLayout
from ckptlint.fixing import CannotWrite
from ckptlint.frameworks.framework import Framework, Pin, PinRequest, SaveRoot
from ckptlint.resume import CannotPlan, Plan, carry_out, plan
from ckptlint.run import Run
from ckptlint.source.text import CannotEdit, Edit, SourceError

TEXT = """\
stage: sft
do_train: true
finetuning_type: full
# where
output_dir: out
resume_from_checkpoint: null  # ours
max_steps: 5000
"""
PINNED = TEXT.replace("null", "out/checkpoint-900")


@pytest.fixture
def config(project: Path) -> Path:
    """A run with two complete checkpoints."""
    (project / "run.yaml").write_text(TEXT)
    for step in (500, 900):
        write_checkpoint("out", step, total=5000)
    return Path("run.yaml")


def decide(target: str = "run.yaml") -> Plan:
    return plan(target, {})


# ------------------------------------------------------------------------------------------------ targets


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("nothing.yaml", None, "no such file or directory"),
        ("run.txt", TEXT.encode(), "no training run that can be pinned"),
        ("empty.yaml", b"", "no training run that can be pinned"),
        ("list.yaml", b"- do_train\n- stage\n", "no training run that can be pinned"),
        ("infer.yaml", b"model_name_or_path: x\ninfer_backend: huggingface\n", "no training run that can be pinned"),
    ],
)
def test_what_is_no_training_run_is_an_error_in_words(project: Path, name: str, data: bytes | None, words: str) -> None:
    if data is not None:
        Path(name).write_bytes(data)
    with pytest.raises(CannotPlan, match=words) as error:
        decide(name)
    assert str(error.value).startswith(f"{name}: ")


def test_a_directory_is_an_error_that_asks_for_the_file(project: Path) -> None:
    with pytest.raises(CannotPlan, match="name the configuration file"):
        decide(".")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (TEXT.replace("where", "输出").encode("gbk"), "run.yaml:4:3: byte 0xca is not UTF-8"),
        (TEXT.encode() + b"bad: [\n", "run.yaml:.*not valid YAML"),
        (TEXT.encode() + b"---\n" + TEXT.encode(), "run.yaml:8:1: .*one YAML document"),
        (TEXT.encode() + b"\tx: 1\n", "run.yaml:8:1: not valid YAML"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_with_its_line(project: Path, data: bytes, words: str) -> None:
    Path("run.yaml").write_bytes(data)
    with pytest.raises(SourceError, match=words):
        decide()
    assert Path("run.yaml").read_bytes() == data


# ------------------------------------------------------------------------------------------------ the plan


def test_planning_writes_nothing_and_carrying_out_writes_what_was_planned(config: Path) -> None:
    decided = decide()
    assert config.read_text() == TEXT
    assert carry_out(decided, decide) is decided
    assert config.read_text() == PINNED
    assert [(change.line, change.before, change.after) for change in decided.changes] == [
        (6, "resume_from_checkpoint: null  # ours", "resume_from_checkpoint: out/checkpoint-900  # ours")
    ]


def test_a_plan_that_changes_nothing_does_not_touch_the_file(config: Path) -> None:
    config.write_text(PINNED)
    before = config.stat()
    carry_out(decide(), decide)
    assert config.stat() == before


def test_nothing_is_deleted_or_written_beside_the_file(config: Path) -> None:
    cut("out/checkpoint-900/model.safetensors", 20)
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.name != "run.yaml" and path != Path()}
    carry_out(decide(), decide)
    after = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.name != "run.yaml" and path != Path()}
    assert after == before


def test_edits_on_one_line_are_one_change(project: Path) -> None:
    write_checkpoint("out", 900, total=5000)
    Path("run.yaml").write_text("{do_train: true, stage: sft, output_dir: $D, resume_from_checkpoint: null, max_steps: 5000}\n")
    decided = plan("run.yaml", {"D": "out"})
    assert [change.after for change in decided.changes] == [decided.after.decode().rstrip("\n")]


def test_the_directory_with_the_only_checkpoint_left_is_told(project: Path) -> None:
    Path("run.yaml").write_text(TEXT)
    write_checkpoint("out", 900, total=5000, save_steps=100)
    assert [notice.name for notice in decide().notices] == ["retention-window"]
    write_checkpoint("out", 800, total=5000, save_steps=100)
    assert [notice.name for notice in decide().notices] == []


def test_deep_reads_the_checkpoint_whole(config: Path) -> None:
    weights = Path("out/checkpoint-900/optimizer.pt")
    data = bytearray(weights.read_bytes())
    data[data.index(bytes(range(10)))] ^= 0xFF
    weights.write_bytes(data)
    os.utime(weights, (1_760_000_000, 1_760_000_000))
    assert decide().chosen_path == "out/checkpoint-900"
    assert plan("run.yaml", {}, deep=True).chosen_path == "out/checkpoint-500"


# ------------------------------------------------------------------------------------------------ any framework


class _Pinned(ToyFramework, Framework):
    """A framework of a few lines that can be pinned: `resume` takes a path, `no` for none, and `fits` may exclude a step."""

    def layout(self, run: Run) -> Layout:
        return HuggingFaceLayout()

    def roots(self, run: Run, environment: Mapping[str, str], save_dir: str | None) -> tuple[SaveRoot, ...]:
        return (SaveRoot("saves", "saves"),)

    def unfit(self, run: Run, checkpoint: Checkpoint, environment: Mapping[str, str]) -> str:
        return "it does not fit" if str(checkpoint.step) == environment.get("UNFIT") else ""

    def pin(self, run: Run, request: PinRequest) -> Pin:
        if request.environment.get("BREAK") == "yaml":
            return Pin(tuple(Edit(edit.span, "[") for edit in run.settings["resume"].set("x")))
        if request.environment.get("BREAK") == "edit":
            raise CannotEdit("its value is shared")
        return Pin(run.settings["resume"].set(request.chosen_path or "no"), (Notice("reference-model", "toy"),))


@pytest.fixture
def toy_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(resume, "all_frameworks", lambda: (_Pinned(),))
    Path("run.yaml").write_text("toy: true\nresume: old\n")
    return Path("run.yaml")


def test_the_engine_pins_any_framework(toy_run: Path) -> None:
    write_checkpoint("saves", 5)
    write_checkpoint("saves", 10)
    decided = plan("run.yaml", {"UNFIT": "10"})
    assert decided.after == b"toy: true\nresume: saves/checkpoint-5\n"
    assert [(skipped.step, skipped.reason) for skipped in decided.skipped] == [(10, "it does not fit")]
    assert [notice.name for notice in decided.notices] == ["reference-model"]


def test_what_a_framework_does_not_say_of_its_start_the_engine_says(toy_run: Path) -> None:
    assert [notice.name for notice in decide().notices] == ["first-launch", "reference-model"]
    write_checkpoint("saves", 5)
    cut("saves/checkpoint-5/optimizer.pt", 10)
    decided = decide()
    assert [notice.name for notice in decided.notices] == ["nothing-resumable", "reference-model"]
    assert "the only checkpoint is not complete" in decided.notices[0].message
    assert decided.skipped[0].verdict.value == "damaged"


@pytest.mark.parametrize(("how", "words"), [("yaml", "would spoil the file"), ("edit", "its value is shared; .*by hand")])
def test_an_edit_that_cannot_be_made_is_an_error_and_nothing_is_written(toy_run: Path, how: str, words: str) -> None:
    with pytest.raises(CannotPlan, match=words):
        plan("run.yaml", {"BREAK": how})
    assert toy_run.read_text() == "toy: true\nresume: old\n"


# ------------------------------------------------------------------------------------------------ writing


def test_a_symbolic_link_stays_and_its_target_is_changed(config: Path) -> None:
    Path("shared").mkdir()
    config.rename("shared/real.yaml")
    config.symlink_to("shared/real.yaml")
    carry_out(decide(), decide)
    assert config.is_symlink()
    assert Path("shared/real.yaml").read_text() == PINNED


def test_the_files_mode_stays(config: Path) -> None:
    config.chmod(0o640)
    carry_out(decide(), decide)
    assert stat.S_IMODE(config.stat().st_mode) == 0o640


@pytest.mark.parametrize("step", ["replace", "open"])
@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_directory_that_cannot_be_written_is_an_error_and_nothing_is_lost(
    config: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    real = getattr(os, step)

    def refuse(*args: object, **more: object) -> object:
        if ".ckptlint-" in str(args[0]):
            raise OSError(number, os.strerror(number))
        return real(*args, **more)

    decided = decide()
    with monkeypatch.context() as patch:
        patch.setattr(os, step, refuse)
        with pytest.raises(CannotWrite, match=r"run\.yaml: "):
            carry_out(decided, decide)
    assert config.read_text() == TEXT
    assert [path.name for path in Path().iterdir() if path.name.startswith(".ckptlint")] == []


def test_a_change_made_meanwhile_is_kept_and_the_plan_is_made_anew(config: Path) -> None:
    decided = decide()
    config.write_text(TEXT + "seed: 1\n")
    carry_out(decided, decide)
    assert config.read_text() == PINNED + "seed: 1\n"


def test_two_that_decided_the_same_both_succeed(config: Path) -> None:
    mine, other = decide(), decide()
    for decided in (mine, other):
        assert carry_out(decided, decide).chosen_path == "out/checkpoint-900"
        assert config.read_text() == PINNED


def test_who_was_overtaken_by_a_newer_pin_plans_anew(config: Path) -> None:
    decided = decide()
    write_checkpoint("out", 1300, total=5000)
    carry_out(decide(), decide)
    assert carry_out(decided, decide).chosen_path == "out/checkpoint-1300"
    assert config.read_text() == TEXT.replace("null", "out/checkpoint-1300")


def test_a_file_that_never_rests_is_an_error_at_last(config: Path) -> None:
    def restless() -> Plan:
        decided = decide()
        config.write_text(config.read_text() + "# again\n")
        return decided

    with pytest.raises(CannotPlan, match="other processes keep changing"):
        carry_out(restless(), restless)


def _one_start(ready: object) -> None:
    ready.wait(10)  # type: ignore[attr-defined]
    carry_out(decide(), decide)


@pytest.mark.parametrize(("processes", "rounds"), [(2, 15), (8, 4)])
def test_processes_that_start_at_once_all_succeed_and_leave_one_whole_file(config: Path, processes: int, rounds: int) -> None:
    context = multiprocessing.get_context("fork")
    for _ in range(rounds):
        config.write_text(TEXT)
        ready = context.Barrier(processes)
        starts = [context.Process(target=_one_start, args=(ready,)) for _ in range(processes)]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        assert [start.exitcode for start in starts] == [0] * processes
        assert config.read_text() == PINNED
    assert [path.name for path in Path().iterdir() if path.name.startswith(".ckptlint")] == []


def _killed_at(line: int, write: Callable[[], object]) -> bool:
    """Whether a process that dies in front of the n-th executed line of fixing.py died there."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    try:
        left = [line]

        def trace(frame: FrameType, event: str, arg: object) -> object:
            if frame.f_code.co_filename != fixing.__file__:
                return None
            if event == "line":
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
            return trace

        sys.settrace(trace)  # type: ignore[arg-type]
        write()
    finally:
        os._exit(0)


def test_whenever_a_process_is_killed_the_file_is_the_old_or_the_new_one(config: Path) -> None:
    seen = []
    line = 0
    while True:
        config.write_text(TEXT)
        decided = decide()
        died = _killed_at(line, lambda decided=decided: carry_out(decided, decide))  # type: ignore[misc]
        seen.append(config.read_text())
        assert seen[-1] in (TEXT, PINNED)
        if not died:
            break
        assert carry_out(decide(), decide).chosen_path == "out/checkpoint-900"  # the next start is not in the way of the rest
        assert config.read_text() == PINNED
        line += 1
    assert seen[0] == TEXT
    assert seen[-1] == PINNED
    assert line > 20
    assert seen == sorted(seen, key=lambda text: text == PINNED)


def test_no_pickle_is_ever_loaded(config: Path) -> None:
    """A pickle in a checkpoint is never loaded: this one would make a directory."""

    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (os.mkdir, ("bombed",))

    Path("out/checkpoint-900/training_args.bin").write_bytes(pickle.dumps(Bomb()))
    decide()
    assert not Path("bombed").exists()
