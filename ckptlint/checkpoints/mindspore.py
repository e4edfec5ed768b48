"""The checkpoints of MindSpore: ``prefix-<epoch>_<step in epoch>.ckpt``, and of MindFormers one such file a rank.

A file is a protobuf message ``Checkpoint`` (mindspore/train/_checkpoint.proto): a list of parameters, each a name and a tensor.
``ModelCheckpoint`` saves the training network, so the optimizer's moments and its ``global_step`` are parameters too; it
renames the prefix to ``prefix_1`` where files of the prefix exist already, and epochs then count from 1 again
(``_chg_ckpt_file_name_if_same_exist``). Order is therefore by attempt and by the step inside, never by the epoch alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ckptlint.checkpoints import integrity
from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Progress
from ckptlint.checkpoints.folder import Folder, Part, examined, whole_number
from ckptlint.checkpoints.listing import Listing, UnknownContent
from ckptlint.checkpoints.placed import files, number_of
from ckptlint.checkpoints.single_file import OneFile
from ckptlint.run import State

_NAME = re.compile(r"(.+?)(?:_(\d+))?-(\d+)_(\d+)\.ckpt")
_OPTIMIZER = re.compile(r"(?:optim|opt)[_-].*\.ckpt|.*[_-](?:optim|optimizer)\.ckpt")
_MOMENT = re.compile(rb"moment|adam_|accum|velocity|exp_avg|mean_square")
_PEEK = 160  # bytes of a parameter's head: name, dimensions and type
_MOST = 6000  # parameters that are looked at
_SAME_SAVE_SECONDS = 600.0


class _NotMindSpore(Exception):
    pass


@dataclass(frozen=True)
class Parameters:
    """What a file holds: the names of its parameters, ``global_step`` where it is one, and whether its last byte was
    reached."""

    names: frozenset[bytes]
    step: int | None
    whole: bool
    known: bool = True


def parameters(listing: Listing, path: str, size: int) -> Parameters:
    """The parameters of a file, by the head of each; the tensors themselves are passed over.

    Raises:
        integrity.Broken: the file is no MindSpore checkpoint, or ends within a parameter.
        OSError: it cannot be read.
    """
    if size == 0:
        raise integrity.Broken("is empty")
    names: set[bytes] = set()
    step = None
    at = 0
    while at < size and len(names) < _MOST:
        head = listing.read(path, at, _PEEK)
        if not head.strip(b"\0"):
            raise integrity.Broken("is damaged: it holds zero bytes where a parameter should begin")
        if head.startswith(b"crc_num"):  # save_checkpoint(crc_check=True) adds it at the end
            break
        try:
            end, name, value = _parameter(head)
        except (_NotMindSpore, IndexError):
            what = "is damaged: no parameter where one should begin" if names else "is not a MindSpore checkpoint"
            raise integrity.Broken(what) from None
        names.add(name)
        step = value if name == b"global_step" and value is not None else step
        at += end
        if at > size:
            raise integrity.Broken(f"is cut short: a parameter ends at byte {at}, the file at {size}")
    return Parameters(frozenset(names), step, at >= size or len(names) < _MOST)


def _parameter(head: bytes) -> tuple[int, bytes, int | None]:
    """The length of the field that begins here, the parameter's name, and a small integer tensor's value."""
    length, at = _field(head, 0, 1)
    end = at + length
    length, at = _field(head, at, 1)
    name = head[at : at + length]
    if not name or length > _PEEK or not all(32 <= byte < 127 for byte in name):
        raise _NotMindSpore
    return end, name, _small_integer(head, at + length, end) if name == b"global_step" else None


def _small_integer(head: bytes, at: int, end: int) -> int | None:
    """The content of a tensor that lies whole in these bytes: its last field, of four or eight bytes."""
    if end > len(head):
        return None
    for length in (4, 8):
        if head[end - length - 2 : end - length] == bytes((3 << 3 | 2, length)) and at < end - length:
            return int.from_bytes(head[end - length : end], "little")
    return None


def _field(data: bytes, at: int, number: int) -> tuple[int, int]:
    """The length of a length-delimited field and where its content begins."""
    if data[at] != number << 3 | 2:
        raise _NotMindSpore
    length, shift, at = 0, 0, at + 1
    while True:
        byte = data[at]
        length, shift, at = length | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return length, at
        if shift > 63:
            raise _NotMindSpore


def is_mindspore(listing: Listing, name: str) -> bool:
    """Whether a file of this name is MindSpore's: by its first bytes, or by its name where they cannot be read."""
    if not name.endswith(".ckpt"):
        return False
    try:
        head = listing.read(name, 0, _PEEK)
    except UnknownContent:
        return _NAME.fullmatch(name) is not None or (_OPTIMIZER.fullmatch(name) is not None and _beside(listing))
    except OSError:
        return _NAME.fullmatch(name) is not None
    if _NAME.fullmatch(name) and not head.startswith((b"PK", b"\x80")):  # else torch's
        return True
    try:
        _parameter(head)
    except (_NotMindSpore, IndexError):
        return False
    return True


def _beside(listing: Listing) -> bool:
    return any(map(_NAME.fullmatch, listing.files()))


@dataclass(frozen=True)
class _File:
    name: str
    prefix: str
    attempt: int
    epoch: int
    within: int  # step within the epoch


class MindSporeLayout(Layout):
    """Files ``prefix-E_S.ckpt`` in the directory, with the optimizer inside or in one file beside them."""

    name = "mindspore"
    title = "MindSpore"

    def recognises(self, listing: Listing) -> bool:
        return bool(_files(listing))

    def scan(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> tuple[Checkpoint, ...]:
        return tuple(self.walk(listing, deep=deep, now=now))

    def walk(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> Iterator[Checkpoint]:
        found = _files(listing)
        steps = _steps(listing, found)
        optimizer = _optimizer_file(listing)
        owner = _owner(listing, found, optimizer)
        for file in sorted(found, key=lambda one: (steps[one.name], one.name), reverse=True):
            partner = (optimizer,) if optimizer and owner == file.name else ()
            yield _examine(listing, file, steps[file.name], partner, optimizer, owner, deep, now)


def _read(listing: Listing, name: str, size: int) -> Parameters | str:
    """A file's parameters, or what is wrong with it."""
    try:
        return parameters(listing, name, size)
    except integrity.Broken as error:
        return str(error)
    except UnknownContent:
        return Parameters(frozenset(), None, False, known=False)
    except OSError as error:
        return integrity.unreadable(error)


def _files(listing: Listing) -> list[_File]:
    found = []
    for name in listing.files():
        match = _NAME.fullmatch(name)
        numbers = [number_of(match[group]) for group in (3, 4)] if match else []
        if match and numbers[0] is not None and numbers[1] is not None and is_mindspore(listing, name):
            found.append(_File(name, match[1], number_of(match[2]) or 0, numbers[0], numbers[1]))
    return found


def _steps(listing: Listing, found: list[_File]) -> dict[str, int]:
    """Each file's step: epochs before x steps of an epoch + step, moved to where ``global_step`` says that an attempt is."""
    most = max((file.within for file in found), default=1)
    plain = {file.name: (file.epoch - 1) * most + file.within for file in found}
    shift: dict[tuple[str, int], int] = {}
    for key in {(file.prefix, file.attempt) for file in found}:
        last = max((file for file in found if (file.prefix, file.attempt) == key), key=lambda file: plain[file.name])
        inside = _inside(listing, last.name)
        shift[key] = inside - plain[last.name] if inside is not None and inside > plain[last.name] else 0
    return {file.name: plain[file.name] + shift[file.prefix, file.attempt] for file in found}


def _inside(listing: Listing, name: str) -> int | None:
    try:
        return parameters(listing, name, listing.files()[name].size).step
    except (integrity.Broken, OSError):
        return None


def _optimizer_file(listing: Listing) -> str | None:
    """MindCV keeps the optimizer in one file beside the weights, overwritten with each save."""
    names = [name for name in listing.files() if _OPTIMIZER.fullmatch(name) and not _NAME.fullmatch(name)]
    return names[0] if len(names) == 1 and is_mindspore(listing, names[0]) else None


def _owner(listing: Listing, found: list[_File], optimizer: str | None) -> str | None:
    """The weights that an optimizer's file was saved with: those next to it in time."""
    here = listing.files()
    saved = here[optimizer].modified if optimizer else None
    if saved is None:
        return max(found, key=lambda file: (file.attempt, file.epoch, file.within)).name if optimizer and found else None
    gaps = [(abs((here[file.name].modified or 0.0) - saved), -file.epoch, file.name) for file in found]
    return min(gaps)[2] if gaps and min(gaps)[0] < _SAME_SAVE_SECONDS else None


def _examine(
    listing: Listing,
    file: _File,
    step: int,
    partner: tuple[str, ...],
    optimizer: str | None,
    owner: str | None,
    deep: bool,
    now: float | None,
) -> Checkpoint:
    folder = OneFile(listing, file.name, listing.files()[file.name], deep, partner)
    read = {name: _read(listing, name, info.size) for name, info in folder.tree.items()}
    broken = [f"{name} {each}" for name, each in read.items() if isinstance(each, str)]
    known = [each for each in read.values() if isinstance(each, Parameters)]
    progress = Part(progress=Progress(step, float(file.epoch)))
    if broken:
        return examined(folder, step, [Part(broken=tuple(broken), unfinished=True), progress], now)
    names = b" ".join(name for each in known for name in each.names)
    inside = bool(_MOMENT.search(names)) or b"global_step" in names or not known[0].known
    absent: tuple[str, ...] = ()
    if optimizer and not partner:
        why = f"was saved with {owner}" if owner else "was saved at another time"
        absent = (f"the only optimizer file, {optimizer}, {why}: with these weights it would be of another step",)
    elif not inside and not partner:
        absent = ("it holds the model's weights alone: no optimizer parameters",)
    state = frozenset({State.MODEL, State.PROGRESS}) | (frozenset({State.OPTIMIZER}) if not absent else frozenset())
    return examined(folder, step, [Part(absent=absent, state=state), progress], now)


# ------------------------------------------------------------------------------------------------ one folder a rank

_RANK = re.compile(r"rank_(\d+)")
_RANK_FILE = re.compile(r".*-(\d+)_(\d+)\.(?:ckpt|safetensors)")


class MindFormersLayout(Layout):
    """Folders ``rank_R``, each with files of several steps and meta.json, which names the last one that is whole.

    A restart needs one step that every rank holds. A checkpoint's path is the file of rank 0.
    """

    name = "mindformers"
    title = "MindSpore Transformers"

    def recognises(self, listing: Listing) -> bool:
        return bool(_ranks(listing))

    def scan(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> tuple[Checkpoint, ...]:
        return tuple(self.walk(listing, deep=deep, now=now))

    def walk(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> Iterator[Checkpoint]:
        ranks = _ranks(listing)
        held = {rank: _rank_files(listing, folder) for rank, folder in ranks.items()}
        last = {rank: _meta(listing, folder) for rank, folder in ranks.items()}
        for key in sorted(set().union(*held.values()), reverse=True):
            yield _of_ranks(listing, key, held, last, deep, now)


def _ranks(listing: Listing) -> dict[int, str]:
    matches = [match for name in listing.directories() if (match := _RANK.fullmatch(name)) and len(match[1]) < 7]
    found = {int(match[1]): match[0] for match in matches}
    mine = any("meta.json" in files(listing, folder) or _rank_files(listing, folder) for folder in list(found.values())[:8])
    return found if mine else {}


def _rank_files(listing: Listing, folder: str) -> dict[tuple[int, int], str]:
    found = {}
    for name in files(listing, folder):
        match = _RANK_FILE.fullmatch(name)
        first, second = (number_of(match[1]), number_of(match[2])) if match else (None, None)
        if first is not None and second is not None:
            found[first, second] = f"{folder}/{name}"
    return found


def _meta(listing: Listing, folder: str) -> Mapping[str, object]:
    if "meta.json" not in files(listing, folder):
        return {}
    content = Folder(listing, folder).json("meta.json")
    return content if isinstance(content, dict) else {}


def _of_ranks(
    listing: Listing,
    key: tuple[int, int],
    held: Mapping[int, Mapping[tuple[int, int], str]],
    last: Mapping[int, Mapping[str, object]],
    deep: bool,
    now: float | None,
) -> Checkpoint:
    world = max(held) + 1
    have = {rank: each[key] for rank, each in held.items() if key in each}
    first = have[min(have)]
    folder = OneFile(listing, first, files(listing, first.rpartition("/")[0])[first.rpartition("/")[2]], deep, ())
    step = _step_of(key, have, last)
    broken = _behind(key, held, last, range(min(world, 100_000)))
    broken += [fault for path in have.values() if (fault := _fault(listing, path, deep))]
    part = Part(tuple(broken), state=frozenset({State.MODEL, State.PROGRESS}), world_size=world, unfinished=bool(broken))
    return examined(folder, step, [part, *([] if broken else [_rank_optimizer(listing, first)])], now, same_world_size=True)


def _step_of(key: tuple[int, int], have: Mapping[int, str], last: Mapping[int, Mapping[str, object]]) -> int:
    """The step that meta.json gives for the file; else the larger number of its name."""
    for rank, path in have.items():
        meta = last[rank]
        if meta.get("last_ckpt_file") == path.rpartition("/")[2]:
            return whole_number(meta.get("last_step")) or max(key)
    return max(key)


def _behind(
    key: tuple[int, int],
    held: Mapping[int, Mapping[tuple[int, int], str]],
    last: Mapping[int, Mapping[str, object]],
    ranks: Iterable[int],
) -> list[str]:
    lost = [rank for rank in ranks if key not in held.get(rank, {})]
    texts = []
    for rank in lost[:3]:
        stopped = whole_number(last.get(rank, {}).get("last_step"))
        at = f", which stopped at step {stopped}," if stopped is not None else ""
        texts.append(f"no common step: rank {rank}{at} has no file of this one")
    if len(lost) > 3:
        texts.append(f"nor have {len(lost) - 3} more ranks")
    return texts


def _fault(listing: Listing, path: str, deep: bool) -> str | None:
    info = files(listing, path.rpartition("/")[0])[path.rpartition("/")[2]]
    if path.endswith(".safetensors"):
        wrong = integrity.fault(listing, path, info, deep=deep)
        return f"{path} {wrong}" if wrong else None
    found = _read(listing, path, info.size)
    return f"{path} {found}" if isinstance(found, str) else None


def _rank_optimizer(listing: Listing, path: str) -> Part:
    """Whether a rank's file holds the optimizer; unknown counts as yes."""
    info = files(listing, path.rpartition("/")[0])[path.rpartition("/")[2]]
    try:
        if path.endswith(".safetensors"):
            names = " ".join(integrity.safetensors_header(listing, path, info.size)).encode()
        else:
            names = b" ".join(parameters(listing, path, info.size).names)
    except (integrity.Broken, OSError):
        return Part(state=frozenset({State.OPTIMIZER}))
    if _MOMENT.search(names) or b"global_step" in names:
        return Part(state=frozenset({State.OPTIMIZER}))
    return Part(absent=("it holds the model's weights alone: no optimizer parameters",))
