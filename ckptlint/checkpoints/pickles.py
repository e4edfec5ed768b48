"""What a pickle holds, built from its opcodes and from nothing else: nothing that it names is imported or called.

``read`` follows the opcodes over a stack, as pickle's documentation describes them; wherever a pickle would import, call or
fetch something, an ``Inert`` stands instead, which remembers only its name, its state and its items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ckptlint.checkpoints import integrity
from ckptlint.checkpoints.listing import Listing

_MANY_OPCODES = 400_000
_ENOUGH = 1 << 19


@dataclass(eq=False)
class Inert:
    """What stands for an object of a pickle: ``name`` is its class or function ("argparse.Namespace"), "" where it has none."""

    name: str = ""
    state: Mapping[object, object] = field(default_factory=dict)
    items: dict[object, object] = field(default_factory=dict)


class _Mark:
    pass


_MARK = _Mark()
_DICTIONARIES = frozenset(("collections.OrderedDict", "collections.defaultdict", "collections.Counter"))


@dataclass(frozen=True)
class Top:
    """The dictionary at the top of a torch file. ``whole``: every key of it is there, not only those of its first bytes."""

    items: Mapping[object, object]
    whole: bool = True
    name: str = ""  # the class, where it is no dictionary but an object


def top(listing: Listing, path: str, size: int, limit: int = _ENOUGH) -> Top | None:
    """What a torch file holds: keys, with numbers, texts and nested dictionaries as values; tensors are ``Inert``.

    None where the file is not whole, or the listing does not know its content.
    """
    try:
        data = integrity.pickle_of(listing, path, size, limit)
    except OSError:
        return None
    if not data:
        return None
    value, whole = read(data), data.endswith(b".") and len(data) < limit
    if isinstance(value, Inert):
        return Top(value.items or value.state, whole, value.name or "object")
    return Top(value if isinstance(value, dict) else {}, whole)


def content(listing: Listing, path: str, size: int, limit: int = _ENOUGH) -> Mapping[object, object] | None:
    """The items alone; None where there are none."""
    found = top(listing, path, size, limit)
    return found.items if found is not None and found.items else None


def head(listing: Listing, path: str, length: int = 1024) -> bytes:
    """The first bytes of a torch file's data.pkl, which torch writes as the first member; b"" where they are not known."""
    try:
        data = listing.read(path, 0, length)
    except OSError:
        return b""
    if data[:4] != b"PK\x03\x04" or len(data) < 30:
        return b""
    name_length, extra_length = int.from_bytes(data[26:28], "little"), int.from_bytes(data[28:30], "little")
    if not data[30 : 30 + name_length].endswith(b"/data.pkl"):
        return b""
    return data[30 + name_length + extra_length :]


def attributes(value: object) -> Mapping[object, object]:
    """The fields of an object (an ``argparse.Namespace``), or the items of a dictionary; {} for anything else."""
    if isinstance(value, Inert):
        return value.state or value.items
    return value if isinstance(value, dict) else {}


def read(data: bytes) -> object:
    """What the pickle holds; as much as its bytes tell where they end early. None where they are no pickle."""
    import pickletools

    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if opcode.name == "STOP" or count > _MANY_OPCODES:
                break
            machine.step(opcode.name, argument)
    except Exception:  # pickletools raises ValueError, IndexError, UnicodeDecodeError … where the bytes end or are no pickle
        pass
    try:
        return machine.result()
    except Exception:  # what was gathered cannot be a key, or a mark is missing
        return None


class _Machine:
    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[object, object] = {}

    def step(self, name: str, argument: object) -> None:
        act = _ACTS.get(name)
        if act is not None:
            act(self, argument)
        elif name in _PUSHED:
            self.stack.append(argument)
        else:
            self.stack.append(Inert())

    def result(self) -> object:
        """The lowest object, after what was still being gathered for it has been put into it."""
        while _MARK in self.stack:
            gathered = self.gathered()
            holder = self.stack[-1] if self.stack else None
            if isinstance(holder, (dict, Inert)):
                _fill(holder, gathered)
        for above in reversed(range(1, len(self.stack))):
            key, value = self.stack[above - 1], self.stack[above]
            holder = self.stack[above - 2] if above >= 2 else None
            if isinstance(holder, dict) and isinstance(key, str):
                holder[key] = value
        return self.stack[0] if self.stack else None

    def gathered(self) -> list[object]:
        """What was pushed since the last mark, which is taken off as well."""
        at = max(place for place, value in enumerate(self.stack) if value is _MARK)
        taken = self.stack[at + 1 :]
        del self.stack[at:]
        return taken

    def called(self, function: object, *arguments: object) -> object:
        """What stands for the result of a call: a dictionary for one of Python's kinds of dictionaries, else an ``Inert``."""
        name = function.name if isinstance(function, Inert) else ""
        if name in _DICTIONARIES:
            return {}
        return Inert(name)


def _fill(holder: object, values: list[object]) -> None:
    target = holder.items if isinstance(holder, Inert) else holder
    if not isinstance(target, dict):
        return
    for key, value in zip(values[::2], values[1::2], strict=False):
        if isinstance(key, (str, int, float, bool, tuple, type(None), bytes)):
            try:
                target[key] = value
            except TypeError:  # a tuple that holds a list
                continue


def _build(machine: _Machine) -> None:
    state = machine.stack.pop()
    holder = machine.stack[-1]
    if isinstance(state, tuple) and len(state) == 2:
        state = state[0] if isinstance(state[0], dict) else state[1]
    if isinstance(holder, Inert) and isinstance(state, dict):
        holder.state = state


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _fill(machine.stack[-1], [key, value])


def _set_items(machine: _Machine) -> None:
    values = machine.gathered()
    _fill(machine.stack[-1], values)


def _append(machine: _Machine, values: list[object]) -> None:
    holder = machine.stack[-1]
    if isinstance(holder, list):
        holder.extend(values)


def _dictionary(values: list[object]) -> dict[object, object]:
    made: dict[object, object] = {}
    _fill(made, values)
    return made


def _pop(machine: _Machine, count: int) -> list[object]:
    values = machine.stack[len(machine.stack) - count :]
    if len(values) < count:
        raise IndexError
    del machine.stack[len(machine.stack) - count :]
    return values


def _push(made: Callable[[_Machine, object], object]) -> Callable[[_Machine, object], None]:
    return lambda machine, argument: machine.stack.append(made(machine, argument))


def _remember(machine: _Machine, key: object) -> None:
    machine.memo[key] = machine.stack[-1]


def _drop(value: object) -> None:
    """A value that the pickle takes off its stack."""


def _global(argument: object) -> Inert:
    return Inert(str(argument).replace(" ", "."))


def _stack_global(machine: _Machine) -> Inert:
    return Inert(".".join(part for part in _pop(machine, 2) if isinstance(part, str)))


def _object(machine: _Machine) -> object:
    values = machine.gathered()
    return machine.called(values[0] if values else None)


_ACTS: dict[str, Callable[[_Machine, object], None]] = {
    **dict.fromkeys(("PROTO", "FRAME", "NEXT_BUFFER", "READONLY_BUFFER"), lambda *_: None),
    "MARK": lambda machine, _: machine.stack.append(_MARK),
    "NONE": _push(lambda *_: None),
    "NEWTRUE": _push(lambda *_: True),
    "NEWFALSE": _push(lambda *_: False),
    "EMPTY_DICT": _push(lambda *_: {}),
    "EMPTY_LIST": _push(lambda *_: []),
    "EMPTY_TUPLE": _push(lambda *_: ()),
    "EMPTY_SET": _push(lambda *_: []),
    "TUPLE": _push(lambda machine, _: tuple(machine.gathered())),
    "TUPLE1": _push(lambda machine, _: tuple(_pop(machine, 1))),
    "TUPLE2": _push(lambda machine, _: tuple(_pop(machine, 2))),
    "TUPLE3": _push(lambda machine, _: tuple(_pop(machine, 3))),
    "LIST": _push(lambda machine, _: machine.gathered()),
    "FROZENSET": _push(lambda machine, _: machine.gathered()),
    "DICT": _push(lambda machine, _: _dictionary(machine.gathered())),
    "APPEND": lambda machine, _: _append(machine, _pop(machine, 1)),
    "APPENDS": lambda machine, _: _append(machine, machine.gathered()),
    "ADDITEMS": lambda machine, _: _append(machine, machine.gathered()),
    "SETITEM": lambda machine, _: _set_item(machine),
    "SETITEMS": lambda machine, _: _set_items(machine),
    "POP": lambda machine, _: _drop(machine.stack.pop()),
    "POP_MARK": lambda machine, _: _drop(machine.gathered()),
    "DUP": _push(lambda machine, _: machine.stack[-1]),
    "GLOBAL": _push(lambda _, argument: _global(argument)),
    "STACK_GLOBAL": _push(lambda machine, _: _stack_global(machine)),
    "INST": _push(lambda machine, argument: machine.called(_global(argument), *machine.gathered())),
    "OBJ": _push(lambda machine, _: _object(machine)),
    "REDUCE": _push(lambda machine, _: machine.called(*_pop(machine, 2))),
    "NEWOBJ": _push(lambda machine, _: machine.called(*_pop(machine, 2))),
    "NEWOBJ_EX": _push(lambda machine, _: machine.called(*_pop(machine, 3))),
    "BUILD": lambda machine, _: _build(machine),
    "BINPERSID": _push(lambda machine, _: machine.called(None, *_pop(machine, 1))),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _remember),
    "MEMOIZE": lambda machine, _: _remember(machine, len(machine.memo)),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _push(lambda machine, argument: machine.memo.get(argument, Inert()))),
}
_PUSHED = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING", "SHORT_BINSTRING"),
    )
)
