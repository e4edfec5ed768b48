"""Several nodes take the same checkpoint: who leads, how they meet, and that nothing old is believed."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ckptlint import meeting
from ckptlint.decision import Agreed, CannotPlan
from ckptlint.meeting import Meeting, Nodes, nodes_of

# ------------------------------------------------------------------------------------------------ which node this is


@pytest.mark.parametrize(
    ("environment", "nodes"),
    [
        ({}, Nodes(0, 1)),
        ({"NODE_RANK": "2", "NNODES": "4"}, Nodes(2, 4)),
        ({"PET_NODE_RANK": "1", "PET_NNODES": "2"}, Nodes(1, 2)),
        ({"SLURM_NODEID": "3", "SLURM_NNODES": "4", "SLURM_JOB_ID": "77"}, Nodes(3, 4, "77-0")),
        ({"SLURM_NODEID": "0", "SLURM_NNODES": "4", "SLURM_JOB_ID": "77", "SLURM_RESTART_COUNT": "2"}, Nodes(0, 4, "77-2")),
        ({"VC_TASK_INDEX": "1", "MA_NUM_HOSTS": "2"}, Nodes(1, 2)),
        ({"RANK": "1", "WORLD_SIZE": "2"}, Nodes(1, 2)),
        ({"NODE_RANK": "1", "RANK": "9", "WORLD_SIZE": "16"}, Nodes(1, None)),
        ({"NODE_RANK": "0", "NNODES": "1:4"}, Nodes(0, None)),
        ({"SLURM_NODEID": "0", "SLURM_NNODES": "1"}, Nodes(0, 1)),
    ],
)
def test_the_platform_s_variables_say_which_node_this_is(environment: Mapping[str, str], nodes: Nodes) -> None:
    assert nodes_of(environment) == nodes


def test_what_is_given_wins_over_the_variables() -> None:
    assert nodes_of({"NODE_RANK": "2", "NNODES": "4"}, 0, 2, "b") == Nodes(0, 2, "b")


def test_a_job_id_that_every_job_has_tells_no_attempt_apart() -> None:
    environment = {"NODE_RANK": "0", "NNODES": "2", "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0"}
    assert nodes_of(environment).attempt == ""


def test_ranks_that_do_not_go_with_the_count_are_an_error() -> None:
    with pytest.raises(CannotPlan, match="--node-rank"):
        nodes_of({"NODE_RANK": "4", "NNODES": "4"})
    with pytest.raises(CannotPlan, match="which one this is"):
        nodes_of({"NNODES": "4"})


# ------------------------------------------------------------------------------------------------ meeting


class Clock:
    """Time that passes when somebody pauses, so that nobody waits for long."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def pause(self, seconds: float) -> None:
        self.time += seconds
        threading.Event().wait(0.001)


def at(directory: Path, rank: int, count: int | None, attempt: str = "", timeout: float = 400.0) -> Meeting:
    clock = Clock()
    return Meeting(str(directory), Nodes(rank, count, attempt), timeout, clock.now, clock.pause)


def choice(directory: Path, step: int | None) -> Agreed:
    return Agreed({str(directory): None if step is None else (str(directory), f"checkpoint-{step}")})


def all_meet(directory: Path, count: int, step: int | None, before: Callable[[int], None] = lambda _: None) -> list[Agreed]:
    """Every node in a thread of its own; what each of them takes."""
    taken: list[Agreed | None] = [None] * count

    def node(rank: int) -> None:
        before(rank)
        here = at(directory, rank, count)
        taken[rank] = here.lead(lambda: choice(directory, step)) if rank == 0 else here.follow()

    threads = [threading.Thread(target=node, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one is not None for one in taken)
    return [one for one in taken if one is not None]


@pytest.mark.parametrize("step", [500, None])
def test_all_nodes_take_what_the_leader_has_decided(tmp_path: Path, step: int | None) -> None:
    directory = tmp_path / "out"
    assert all_meet(directory, 12, step) == [choice(directory, step)] * 12


def test_nodes_that_come_late_or_early_agree_attempt_after_attempt(tmp_path: Path) -> None:
    """The files of each attempt stay there for the next one, in which the leader comes last, or first, or in between."""
    directory = tmp_path / "out"
    order = random.Random(4)
    for step in range(100, 700, 100):
        delays = [order.random() * 0.05 for _ in range(6)]
        agreed = all_meet(directory, 6, step, lambda rank, delays=delays: threading.Event().wait(delays[rank]) and None)  # type: ignore[misc]
        assert agreed == [choice(directory, step)] * 6


def test_a_stale_look_at_the_storage_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read shows the file of a moment before, half of the time: what caches of network file systems do."""
    directory = tmp_path / "out"
    all_meet(directory, 4, 100)
    really, seen, dice = meeting._read, dict[Path, Mapping[str, object]](), random.Random(1)

    def late(path: Path) -> Mapping[str, object]:
        old = seen.get(path)
        if old is None or dice.random() < 0.5:
            seen[path] = really(path)
        return old if old is not None else {}

    monkeypatch.setattr(meeting, "_read", late)
    for step in (200, 300):
        assert all_meet(directory, 4, step) == [choice(directory, step)] * 4


def test_the_decision_of_an_earlier_attempt_is_not_this_one_s(tmp_path: Path) -> None:
    directory = tmp_path / "out"
    all_meet(directory, 2, 100)
    with pytest.raises(CannotPlan, match=r"node 0 has published no decision for node 1 in 2 seconds.*--decision-timeout"):
        at(directory, 1, 2, timeout=2).follow()


def test_a_leader_names_the_nodes_that_do_not_come(tmp_path: Path) -> None:
    with pytest.raises(CannotPlan, match="node 1, 2 of 3 did not answer in 2 seconds"):
        at(tmp_path / "out", 0, 3, timeout=2).lead(lambda: choice(tmp_path, 1))


def test_a_leader_that_cannot_decide_says_so_to_the_others(tmp_path: Path) -> None:
    directory, said = tmp_path / "out", list[str]()

    def follower() -> None:
        try:
            at(directory, 1, 2).follow()
        except CannotPlan as error:
            said.append(str(error))

    def refuse() -> Agreed:
        raise CannotPlan("no such step")

    thread = threading.Thread(target=follower)
    thread.start()
    with pytest.raises(CannotPlan, match="no such step"):
        at(directory, 0, 2).lead(refuse)
    thread.join()
    assert said == ["node 0 does not start the job: no such step"]


def test_without_a_count_the_attempt_tells_decisions_apart(tmp_path: Path) -> None:
    directory = tmp_path / "out"
    at(directory, 0, None, "77-0").lead(lambda: choice(directory, 100))
    assert at(directory, 1, None, "77-0").follow() == choice(directory, 100)
    with pytest.raises(CannotPlan, match="no decision"):
        at(directory, 1, None, "77-1", timeout=1).follow()
    with pytest.raises(CannotPlan, match="give --nodes"):
        at(directory, 1, None).follow()


def test_a_new_save_directory_is_left_alone(tmp_path: Path) -> None:
    """Scripts that refuse a directory with anything in it still start."""
    directory = tmp_path / "runs" / "out"
    all_meet(directory, 2, None)
    assert not directory.exists()
    directory.mkdir()
    all_meet(directory, 2, None)
    assert not list(directory.iterdir())
    (directory / "checkpoint-1").mkdir()
    all_meet(directory, 2, 1)
    assert json.loads((directory / ".ckptlint-decision-of-out.json").read_text())["choices"] == {
        str(directory): [str(directory), "checkpoint-1"]
    }


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotPlan, match="must be writable"):
        at(tmp_path / "file" / "out" / "run", 0, 2).lead(lambda: choice(tmp_path, 1))
