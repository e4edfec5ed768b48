"""Checkpoints of one file each, as hand-written scripts save them with torch.save: ``step_100.pt``, ``epoch_9.pth``,
``latest.pt``.

Nothing fixes their names or keys; what is read here are the forms that occur in public training scripts (pytorch/examples,
timm, YOLOv5, nanoGPT, DiT, guided-diffusion, RETURNN …). The number in the name orders them, never its text (``step_1000`` is
above ``step_900``); a file without one is ordered by the step or epoch that it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ckptlint.checkpoints import pickles
from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Progress
from ckptlint.checkpoints.folder import Folder, Part, examined, number, whole_number
from ckptlint.checkpoints.listing import FileInfo, Listing
from ckptlint.checkpoints.placed import number_of
from ckptlint.run import State

_SUFFIX = re.compile(r"(?:\.(?:pth|pt|ckpt|checkpoint))?\.(?:pt|pth|th|ckpt|tar|checkpoint|pkl)$")

# Files that belong to another layout's folder, or to none.
_FOREIGN = re.compile(
    r"(?:optimizer|scheduler|scaler|training_args|meta|common|model_optim_rng|distrib_optim)\.(?:pt|bin)|rng_state.*\.pth"
    r"|.*_states\.pt|(?:model|optim|extra_state)_world_size_.*|extra_state_rank_\d+\.pt|random_states_\d+\.pkl"
    r"|custom_checkpoint_\d+\.pkl|consolidated.*\.pth|rank\d+-of-\d+-.*|.*_rank_?\d+\.(?:pt|pth)|pytorch_model.*|data(?:_\d+)?\.pt"
    r"|.*(?:dataset|embedding|vocab|tokenizer|cache|feature|history|metrics|stats).*",
    re.IGNORECASE,
)
# A directory with one of these is another layout's.
_OTHERS = re.compile(
    r"trainer_state\.json|scheduler\.bin|random_states_\d+\.pkl|.*_states\.pt|\.metadata|.*\.distcp|latest_checkpointed_iteration\.txt"
    r"|(?:model|optim|extra_state)_world_size_.*|CHECKPOINT_COMPLETE|model_index\.json"
)
_NAME = re.compile(
    r"last|latest|best|ckpt|checkpoint|snapshot|resume|model|net|state|current|final|backup|epoch|step|iter", re.I
)

_COUNTED = re.compile(
    r"(?:^|[^a-z])(global_?step|step|iteration|iter|epoch|ep|e|ckpt|checkpoint)s?[ ._=-]*(\d+)", re.IGNORECASE
)
_LAST_NUMBER = re.compile(r"(?<![\d.])(\d+)(?!\d*\.\d)(?!.*(?<![\d.])\d+(?!\d*\.\d))")
_EPOCHS = frozenset(("epoch", "ep", "e"))

# What part of a training state a file of its own holds, by a word of its name.
_PARTS = (
    (State.OPTIMIZER, re.compile(r"(?:^|[^a-z])(?:optimizer|optim|opt)(?![a-z])", re.IGNORECASE)),
    (State.EMA, re.compile(r"(?:^|[^a-z])ema(?![a-z])", re.IGNORECASE)),
    (State.SCHEDULER, re.compile(r"(?:^|[^a-z])(?:scheduler|sched|lr)(?![a-z])", re.IGNORECASE)),
)

# The same by the key of a dictionary: a word of it, or the whole of it.
_KEYS = (
    (State.OPTIMIZER, re.compile(r"optim|^opt(?:_|$)|^opts$|^opt[A-Z]|_opt$|trainer_state|opt_state", re.IGNORECASE)),
    (State.SCHEDULER, re.compile(r"sched|^lr_")),
    (State.SCALER, re.compile(r"scaler|^amp$", re.IGNORECASE)),
    (State.RNG, re.compile(r"rng|random", re.IGNORECASE)),
    (State.EMA, re.compile(r"(?:^|_)ema(?:$|_)", re.IGNORECASE)),
    (State.BEST_METRIC, re.compile(r"best", re.IGNORECASE)),
    (State.PROGRESS, re.compile(r"epoch|step|^iter|iteration|num_updates|samples", re.IGNORECASE)),
    (
        State.MODEL,
        re.compile(r"model|state_dict|net|weights|params|module|student|teacher|policy|actor|generator|encoder|^[GD]$"),
    ),
)
_STEP_KEYS = ("global_step", "step", "iteration", "iter", "iter_num", "n_iter", "num_updates", "steps", "train_step")
_EPOCH_KEYS = ("epoch", "epochs", "current_epoch", "EPOCHS_RUN", "epochs_run", "last_epoch")
# Two files that differ in one of these are of two runs.
_IDENTITY = ("config_hash", "config", "run_id", "run_name", "wandb_id", "wandb_run_id", "exp_name", "experiment", "uuid")

_FEW = 16  # files without a number in their name, of which the step is read
_SAME_TIME_SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class OneFile(Folder):
    """One file (and those that belong to it) as the folder that its checkpoint is."""

    info: FileInfo | None = None
    partners: tuple[str, ...] = ()

    def __init__(self, listing: Listing, path: str, info: FileInfo, deep: bool = False, partners: tuple[str, ...] = ()) -> None:
        super().__init__(listing, path, deep)
        object.__setattr__(self, "info", info)
        object.__setattr__(self, "partners", partners)

    def at(self, name: str) -> str:
        return name

    @cached_property
    def tree(self) -> dict[str, FileInfo]:
        """The file, and those that belong to it."""
        parent = self.path.rpartition("/")[0]
        beside = self.listing.files(parent)
        both = {self.path: self.info} if self.info else {}
        return both | {name: beside[name] for name in self.partners if name in beside}


@dataclass(frozen=True)
class Named:
    """A file name taken apart. ``form``: the name without its number and without the word for a part of the state."""

    name: str
    number: int | None
    epochs: bool
    form: str
    part: State | None


def named(name: str) -> Named | None:
    """What a file's name tells; None where it is not one of a checkpoint."""
    suffix = _SUFFIX.search(name)
    if suffix is None or _FOREIGN.fullmatch(name) or name.startswith("."):
        return None
    stem = name[: suffix.start()]
    part = next((part for part, word in _PARTS if word.search(stem)), None)
    counted = list(_COUNTED.finditer(stem))
    steps = [match for match in counted if match[1].lower() not in _EPOCHS]
    match = steps[-1] if steps else counted[-1] if counted else None
    plain = _LAST_NUMBER.search(stem) if match is None else None
    place = match.span(2) if match else plain.span(1) if plain else None
    value = number_of(stem[place[0] : place[1]]) if place else None
    if value is None and not _NAME.search(stem):
        return None
    rest = stem[: place[0]] + "#" + stem[place[1] :] if place else stem
    for _, word in _PARTS:
        rest = word.sub("", rest)
    epochs = match is not None and match[1].lower() in _EPOCHS
    return Named(name, value, epochs, re.sub(r"(?:model|net)|[\W_]+", "", rest.lower()), part)


class SingleFileLayout(Layout):
    """Files that torch.save wrote, in the directory itself."""

    name = "single-file"
    title = "single-file PyTorch"

    def recognises(self, listing: Listing) -> bool:
        found = _groups(listing)
        if not found:
            return False
        if any(group.main.number is not None and group.numbered for group in found):
            return True
        return any(_is_training_state(listing, group.main.name) for group in found[:_FEW])

    def scan(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> tuple[Checkpoint, ...]:
        return tuple(self.walk(listing, deep=deep, now=now))

    def walk(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> Iterator[Checkpoint]:
        groups = _groups(listing)
        newest = _newest(listing, groups)
        latest = _identity(_top(listing, newest[0])) if newest else {}
        paired = {group.main.form: group for group in groups if group.partners}
        for group in groups:
            found = _top(listing, group.main.name)
            checkpoint = _examine(listing, group, found, paired.get(group.main.form), deep, now)
            yield _superseded(checkpoint, _identity(found), newest, latest) if newest else checkpoint

    def same_run(self, listing: Listing, one: Checkpoint, other: Checkpoint) -> bool | None:
        marks = [_identity(_top(listing, checkpoint.path)) for checkpoint in (one, other)]
        shared = marks[0].keys() & marks[1].keys()
        return all(marks[0][key] == marks[1][key] for key in shared) if shared else None


@dataclass(frozen=True)
class Group:
    """A file and those of the same number that hold further parts of the state. ``numbered``: its name counts steps or
    epochs."""

    main: Named
    step: int | None
    partners: tuple[Named, ...] = ()
    numbered: bool = False


def _groups(listing: Listing) -> list[Group]:
    """The checkpoints of a directory, highest number first."""
    from ckptlint.checkpoints.lightning import is_lightning
    from ckptlint.checkpoints.mindspore import is_mindspore

    files = listing.files()
    if any(map(_OTHERS.fullmatch, files)):
        return []
    names = [
        each
        for name in files
        if (each := named(name))
        and not (name.endswith(".ckpt") and (is_lightning(listing, name) or is_mindspore(listing, name)))
    ]
    mains = [each for each in names if each.part is None]
    alone = not mains
    groups = []
    unnumbered = 0
    units = {each.epochs for each in mains if each.number is not None}
    epochs = units == {True}
    newest_first = sorted(names if alone else mains, key=lambda each: (each.number is not None, -(each.number or 0)))
    for main in newest_first:
        partners = tuple(
            each
            for each in names
            if not alone and each.part is not None and (each.form, each.number) == (main.form, main.number)
        )
        step = main.number
        other = len(units) > 1 and main.epochs  # epochs beside steps are ordered by the steps that they hold
        if (step is None or other) and unnumbered < _FEW:
            inside, unnumbered = _inside(listing, main.name, epochs), unnumbered + 1
            step = inside if inside is not None else step
        groups.append(Group(main, step, partners, _counts(main)))
    return sorted(groups, key=lambda group: _order(listing, group), reverse=True)


def _counts(main: Named) -> bool:
    """Whether the number of a name surely counts steps or epochs: ``step_100``, ``epoch9``, or a name that is nothing else."""
    stem = main.name[: main.name.index(".")] if "." in main.name else main.name
    return main.number is not None and bool(_COUNTED.search(main.name) or _NAME.search(main.name) or stem.isdigit())


def _order(listing: Listing, group: Group) -> tuple[int, float, str]:
    info = listing.files().get(group.main.name)
    return group.step if group.step is not None else -2, (info.modified if info else None) or 0.0, group.main.name


def _top(listing: Listing, name: str) -> pickles.Top | None:
    info = listing.files().get(name)
    return pickles.top(listing, name, info.size) if info else None


def _progress(items: Mapping[object, object]) -> Progress:
    step = next((value for key in _STEP_KEYS if (value := whole_number(items.get(key))) is not None), None)
    epoch = next((at for key in _EPOCH_KEYS if (at := number(items.get(key))) is not None), None)
    return Progress(step, epoch)


def _inside(listing: Listing, name: str, epochs: bool) -> int | None:
    """The number that a file holds, in the unit that the names beside it count."""
    found = _top(listing, name)
    if found is None:
        return None
    progress = _progress(_flat(found.items))
    epoch = int(progress.epoch) if progress.epoch is not None else None
    first, second = (epoch, progress.step) if epochs else (progress.step, epoch)
    return first if first is not None else second


def _is_training_state(listing: Listing, name: str) -> bool:
    """Whether a file without a number holds more than weights, or cannot tell and has the name of a checkpoint."""
    found = _top(listing, name)
    if found is None:
        return bool(re.search(r"last|latest|ckpt|checkpoint|snapshot", name, re.IGNORECASE))
    held = _state(found.items)
    return State.OPTIMIZER in held or (State.MODEL in held and State.PROGRESS in held) or "optimizer" in found.items


def _flat(items: Mapping[object, object]) -> Mapping[object, object]:
    """The items, and where they tell nothing of a model those of the only dictionary among them."""
    inner = [value for value in items.values() if isinstance(value, dict)]
    if len(items) <= 3 and len(inner) == 1 and State.MODEL not in _state(items):
        return {**items, **inner[0]}
    return items


def _state(items: Mapping[object, object]) -> frozenset[State]:
    """Which parts of a training state keys with a value stand for. A key counts for the first part that its name fits."""
    held = set()
    for key, value in items.items():
        if isinstance(key, str) and value is not None and value != {}:
            part = next((part for part, words in _KEYS if words.search(key)), None)
            if part is not None:
                held.add(part)
    return frozenset(held)


def _examine(
    listing: Listing, group: Group, found: pickles.Top | None, paired: Group | None, deep: bool, now: float | None
) -> Checkpoint:
    main, info = group.main, listing.files()[group.main.name]
    folder = OneFile(listing, main.name, info, deep, tuple(each.name for each in group.partners))
    broken = tuple(fault for name in (main.name, *folder.partners) if (fault := folder.torch_fault(name)))
    held = frozenset(each.part for each in group.partners if each.part)
    if broken:
        return examined(folder, group.step, [Part(broken=broken, unfinished=True)], now)
    lost = {each.part: each for each in paired.partners} if paired else {}
    absent = [_lost(each, main) for part, each in lost.items() if part is State.OPTIMIZER and part not in held]
    if found is None:  # the listing does not know, or the format is torch's old one
        old = folder.old_torch([main.name])
        remarks = tuple(f"{name} is in torch's old format, which cannot be verified" for name in old)
        part = Part(absent=tuple(absent), remarks=remarks, state=held | {State.MODEL}, unfinished=bool(absent))
        return examined(folder, group.step, [part], now)
    return examined(folder, group.step, [_told(found, held, absent, group)], now)


def _lost(partner: Named, main: Named) -> str:
    number = str(main.number) if main.number is not None else "it"
    return f"the optimizer's file of {number} is missing; others have one ({partner.name})"


def _told(found: pickles.Top, held: frozenset[State], absent: list[str], group: Group) -> Part:
    items = _flat(found.items)
    inside = _state(items)
    tensors = found.whole and not found.name and items and _all_tensors(items)
    if tensors:
        inside = frozenset({State.MODEL})
    state = inside | held
    if not absent and State.OPTIMIZER not in state and found.whole:
        absent = [_without_optimizer(found, items, bool(tensors))]
    progress = _progress(items)
    if group.step is not None:
        if group.main.epochs:
            progress = replace(progress, epoch=float(group.step) if progress.epoch is None else progress.epoch)
        else:
            progress = replace(progress, step=group.step)
        state |= {State.PROGRESS}
    remarks = () if State.PROGRESS in state else ("neither its name nor its content tells a step",)
    unfinished = any(text.startswith("the optimizer's file") for text in absent)
    return Part(absent=tuple(absent), remarks=remarks, state=state, progress=progress, unfinished=unfinished)


def _all_tensors(items: Mapping[object, object]) -> bool:
    values = list(items.values())
    return all(isinstance(value, pickles.Inert) and "rebuild" in value.name for value in values)


def _without_optimizer(found: pickles.Top, items: Mapping[object, object], tensors: bool) -> str:
    if found.name and found.name not in ("object", "argparse.Namespace"):
        return f"it is a whole object ({found.name[:60]}) without optimizer state"
    if tensors:
        return "it holds the model's weights alone"
    if items.get("epoch") == -1 and "optimizer" in items:  # YOLOv5 strip_optimizer
        return "it is a finished run's: the optimizer was taken out on purpose (epoch -1), so there is nothing to go on with"
    empty = [key for key in items if isinstance(key, str) and _KEYS[0][1].search(key)]
    return f"its `{empty[0]}` is empty: no optimizer state" if empty else "it holds no optimizer state"


# ------------------------------------------------------------------------------------------------ two runs in one directory


def _newest(listing: Listing, groups: Iterable[Group]) -> tuple[str, float] | None:
    """The file that was written last, and when."""
    times = [
        (info.modified, name) for group in groups if (info := listing.files().get(name := group.main.name)) and info.modified
    ]
    return (max(times)[1], max(times)[0]) if times else None


def _identity(found: pickles.Top | None) -> dict[str, object]:
    """What a file says of the run that wrote it."""
    items = found.items if found else {}
    return {key: items[key] for key in _IDENTITY if isinstance(items.get(key), (str, int)) and items[key] not in ("", None)}


def _superseded(
    checkpoint: Checkpoint, mine: Mapping[str, object], newest: tuple[str, float], latest: Mapping[str, object]
) -> Checkpoint:
    """The checkpoint, marked where another run wrote it before the newest file was written."""
    if checkpoint.modified is None or checkpoint.path == newest[0] or not checkpoint.complete:
        return checkpoint
    if checkpoint.modified + _SAME_TIME_SECONDS >= newest[1]:
        return checkpoint
    differ = [key for key in mine.keys() & latest.keys() if mine[key] != latest[key]]
    if not differ:
        return checkpoint
    key = differ[0]
    here, there = (repr(str(marks[key])[:40]) for marks in (mine, latest))
    why = f"another run wrote it: its `{key}` is {here}, and that of {newest[0]}, which is newer in time, {there}"
    return replace(checkpoint, superseded=True, reasons=(why, *checkpoint.reasons))
