"""Several nodes start one job: all must take the same checkpoint, so one decides and the others do as it says.

The nodes meet in small files beside the checkpoints, on the storage that they share. The leader (node 0) writes a *call* with a
random mark of its own; every other node *answers* it with a random mark; when all have answered, the leader decides and
publishes the *decision* with all the marks. A node believes only a decision that holds the mark it has just made up, so that
what an earlier attempt has left behind is never taken for this one's, whatever the clocks say and however late a listing is.

Where the number of nodes is not known, the decision belongs to an attempt that the platform (or ``--attempt``) names.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ckptlint.decision import Agreed, CannotPlan

# Variables of launchers and platforms, the most telling first: torchrun's own and Kubeflow's (PET_*), SLURM, Volcano
# (ModelArts), and RANK with WORLD_SIZE as Kubeflow's PyTorchJob sets them for a pod.
RANKS = ("NODE_RANK", "PET_NODE_RANK", "GROUP_RANK", "SLURM_NODEID", "VC_TASK_INDEX", "MACHINE_RANK", "RANK")
COUNTS = ("NNODES", "PET_NNODES", "GROUP_WORLD_SIZE", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", "MA_NUM_HOSTS", "NUM_MACHINES")
# Which attempt of a job this is: the variable that counts, and the one that names the job. Both must be there.
ATTEMPTS = (("TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID"), ("SLURM_RESTART_COUNT", "SLURM_JOB_ID"))

_PAUSE = 0.2  # seconds between two looks at the shared storage


@dataclass(frozen=True)
class Nodes:
    """This node among those of the job. ``count`` and ``attempt`` may not be known."""

    rank: int = 0
    count: int | None = 1
    attempt: str = ""

    @property
    def several(self) -> bool:
        return self.count != 1 and (self.count is not None or self.rank > 0 or bool(self.attempt))


def nodes_of(
    environment: Mapping[str, str], rank: int | None = None, count: int | None = None, attempt: str | None = None
) -> Nodes:
    """The nodes by the variables of the platform; what is given besides wins.

    Raises:
        CannotPlan: the rank does not go with the number of nodes.
    """
    if rank is None:
        rank = _first_number(environment, RANKS)
    if count is None:
        count = _first_number(environment, COUNTS)
        if count is None and "RANK" in environment and not any(name in environment for name in RANKS[:-1]):
            count = _first_number(environment, ("WORLD_SIZE",))
    if rank is None and count not in (None, 1):
        raise CannotPlan(f"the job has {count} nodes, and nothing says which one this is; give --node-rank")
    if rank is None:
        return Nodes(0, 1, attempt or "")
    if count is not None and not 0 <= rank < max(count, 1):
        raise CannotPlan(f"node rank {rank} does not go with {count} nodes; give --node-rank and --nodes")
    return Nodes(rank, count, _attempt(environment) if attempt is None else attempt)


def _first_number(environment: Mapping[str, str], names: Iterable[str]) -> int | None:
    """``NNODES=1:4`` of an elastic launch is no number."""
    return next((int(environment[name]) for name in names if environment.get(name, "").isdecimal()), None)


def _attempt(environment: Mapping[str, str]) -> str:
    for counter, job in ATTEMPTS:
        name = environment.get(job, "")
        if name and name != "none" and (counter in environment or job == "SLURM_JOB_ID"):
            return f"{name}-{environment.get(counter, '0')}"
    return ""


# ------------------------------------------------------------------------------------------------ meeting


@dataclass(frozen=True)
class Meeting:
    """Where and with whom: the directories that the runs save into, whose first one (or its parent) holds the files."""

    directory: str
    nodes: Nodes
    timeout: float
    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep

    def lead(self, decide: Callable[[], Agreed]) -> Agreed:
        """Call the other nodes, decide when all are there, and publish what was decided, or why nothing was.

        Raises:
            CannotPlan: not all of them come in time, or the files cannot be written.
        """
        place = self._place()
        mine, answers = secrets.token_hex(8), dict[str, str]()
        if self.nodes.count is not None:
            self._publish(place / self._name("call"), {"leader": mine, "nodes": self.nodes.count})
            answers = self._answers(place, mine)
        try:
            agreed = decide()
        except CannotPlan as error:
            refusal = {"leader": mine, "attempt": self.nodes.attempt, "nodes": answers, "refused": str(error)}
            self._publish(place / self._decision_name(), refusal)
            raise
        choices = {directory: None if choice is None else list(choice) for directory, choice in agreed.choices.items()}
        decision = {"leader": mine, "attempt": self.nodes.attempt, "nodes": answers, "choices": choices}
        self._publish(place / self._decision_name(), decision)
        return agreed

    def follow(self) -> Agreed:
        """Answer the leader's call, and wait for its decision.

        Raises:
            CannotPlan: there is none in time, or nothing tells this attempt from an earlier one.
        """
        if self.nodes.count is None and not self.nodes.attempt:
            raise CannotPlan("how many nodes the job has is not known; give --nodes (or --attempt, another one at each start)")
        mine, answered = secrets.token_hex(8), set[tuple[Path, str]]()
        until = self.now() + self.timeout
        while True:
            for place in self._places():
                call = _read(place / self._name("call")) if self.nodes.count is not None else {}
                leader = str(call.get("leader", ""))
                if leader and (place, leader) not in answered:
                    self._publish(place / self._name(f"answer-{self.nodes.rank}"), {"leader": leader, "node": mine})
                    answered.add((place, leader))
                decision = _read(place / self._decision_name())
                if self._is_for_us(decision, mine):
                    return _agreed(decision)
            if self.now() >= until:
                raise CannotPlan(self._nothing_came())
            self.pause(_PAUSE)

    def _answers(self, place: Path, leader: str) -> dict[str, str]:
        until = self.now() + self.timeout
        found: dict[str, str] = {}
        while True:
            for rank in range(1, self.nodes.count or 1):
                answer = _read(place / self._name(f"answer-{rank}"))
                if answer.get("leader") == leader:
                    found[str(rank)] = str(answer.get("node"))
            missing = [str(rank) for rank in range(1, self.nodes.count or 1) if str(rank) not in found]
            if not missing:
                return found
            if self.now() >= until:
                raise CannotPlan(
                    f"node {', '.join(missing)} of {self.nodes.count} did not answer in {self.timeout:g} seconds in {place}; "
                    "check that it was started, and that all nodes see one directory (--decision-timeout waits longer)"
                )
            self.pause(_PAUSE)

    def _is_for_us(self, decision: Mapping[str, object], mine: str) -> bool:
        if self.nodes.count is None:
            return bool(decision) and decision.get("attempt") == self.nodes.attempt
        answered = decision.get("nodes")
        return isinstance(answered, dict) and answered.get(str(self.nodes.rank)) == mine

    def _nothing_came(self) -> str:
        return (
            f"node 0 has published no decision for node {self.nodes.rank} in {self.timeout:g} seconds in {self._places()[0]}; "
            "check that it was started, and that all nodes see one directory (--decision-timeout waits longer)"
        )

    def _places(self) -> tuple[Path, Path]:
        own = Path(self.directory).absolute()
        return own, own.parent

    def _place(self) -> Path:
        """A directory that is new or empty stays so: some frameworks refuse one with anything in it."""
        own, parent = self._places()
        try:
            if any(own.iterdir()):
                return own
        except OSError:
            pass
        writable = next((place for place in (parent, *parent.parents) if place.exists()), parent)
        return parent if os.access(writable, os.W_OK) else own

    def _name(self, kind: str) -> str:
        return f".ckptlint-{kind}-of-{Path(self.directory).absolute().name}.json"

    def _decision_name(self) -> str:
        attempt = "".join(char if char.isalnum() or char in "-_." else "_" for char in self.nodes.attempt)
        return self._name(f"decision-{attempt}" if attempt else "decision")

    def _publish(self, path: Path, content: Mapping[str, object]) -> None:
        """All at once: a reader sees the whole file or none."""
        temporary = path.with_name(f"{path.name}.{self.nodes.rank}.{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("w") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise CannotPlan(f"{path}: {why}; the nodes agree on a checkpoint there, so it must be writable") from None


def _read(path: Path) -> Mapping[str, object]:
    """What a file says; {} where it is not there, not whole, or not ours."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _agreed(decision: Mapping[str, object]) -> Agreed:
    if "refused" in decision:
        raise CannotPlan(f"node 0 does not start the job: {decision['refused']}")
    choices = decision.get("choices")
    found: dict[str, tuple[str, str] | None] = {}
    for directory, choice in choices.items() if isinstance(choices, dict) else ():
        found[str(directory)] = (str(choice[0]), str(choice[1])) if isinstance(choice, list) and len(choice) == 2 else None
    return Agreed(found)
