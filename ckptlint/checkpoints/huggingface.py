"""The checkpoints of the Hugging Face Trainer and of all that build on it (TRL, LLaMA-Factory, ms-swift, axolotl).

What a ``checkpoint-N`` must hold is what ``Trainer.train(resume_from_checkpoint=…)`` reads (transformers 4.20 to 5.24), in
``_load_from_checkpoint``, ``_load_optimizer_and_scheduler``, ``_load_rng_state``, ``_load_scaler`` and ``TrainerState``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ckptlint.checkpoints import deepspeed, integrity
from ckptlint.checkpoints.checkpoint import Checkpoint, Layout, Progress, Verdict
from ckptlint.checkpoints.folder import Folder, Part, number, verdict, whole_number
from ckptlint.checkpoints.listing import Listing, Unreachable
from ckptlint.run import State

CHECKPOINT = re.compile(r"checkpoint-(\d+)")  # transformers trainer_utils._re_checkpoint
UNFINISHED = re.compile(r"tmp-checkpoint-(\d+)")  # transformers 4.36 to 4.38 write here and rename


@dataclass(frozen=True)
class Harmless:
    """A file that a resume does without.

    ``damaged``: also when it is there and damaged. ``exact``: the resumed run then computes the same as with the file.
    """

    pattern: str
    why: str
    damaged: bool = True
    exact: bool = True


# The one place that says which files a resume does without. tests/drills/test_huggingface_checkpoints.py proves every entry
# that the Trainer writes by taking the file away, or damaging it, and really resuming.
HARMLESS = (
    Harmless("README.md", "the model card"),
    Harmless("training_args.bin", "written for the record; the Trainer never reads it back"),
    Harmless("generation_config.json", "read by generate(), not by the Trainer"),
    Harmless("adapter_config.json", "the adapter exists already when the Trainer loads its weights"),
    Harmless("tokenizer*", "the tokenizer comes from the base model"),
    Harmless("special_tokens_map.json", "the tokenizer comes from the base model"),
    Harmless("added_tokens.json", "the tokenizer comes from the base model"),
    Harmless("vocab.*", "the tokenizer comes from the base model"),
    Harmless("merges.txt", "the tokenizer comes from the base model"),
    Harmless("chat_template*", "the tokenizer comes from the base model"),
    Harmless("*processor_config.json", "the processor comes from the base model"),
    Harmless("zero_to_fp32.py", "a script of DeepSpeed"),
    Harmless("zero_to_torch.py", "a script of DeepSpeed"),
    # A start fails on a damaged one of these, so only their absence is harmless.
    Harmless("config.json", "only its release is compared with the running one", damaged=False),
    Harmless("rng_state*.pth", "the run goes on with other random numbers", damaged=False, exact=False),
    Harmless("scaler.pt", "the loss scale starts anew and settles within some steps", damaged=False, exact=False),
)


def harmless(name: str) -> Harmless | None:
    """What is known of a file that a resume does without; None: it is needed, or nothing is known of it."""
    return next((entry for entry in HARMLESS if fnmatchcase(name, entry.pattern)), None)


class HuggingFaceLayout(Layout):
    """Folders ``checkpoint-N`` in the output directory."""

    name = "huggingface"
    title = "Hugging Face Trainer"

    def recognises(self, listing: Listing) -> bool:
        return next(_places(listing), None) is not None

    def scan(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> tuple[Checkpoint, ...]:
        return tuple(self.walk(listing, deep=deep, now=now))

    def walk(self, listing: Listing, *, deep: bool = False, now: float | None = None) -> Iterator[Checkpoint]:
        for path, step, finished in _places(listing):
            yield _examine(Folder(listing, path, deep), step, finished, now)

    def examine(self, listing: Listing, path: str, step: int, deep: bool, now: float | None) -> Checkpoint:
        """One folder ``checkpoint-N``, wherever it lies."""
        return _examine(Folder(listing, path, deep), step, True, now)

    def same_run(self, listing: Listing, one: Checkpoint, other: Checkpoint) -> bool | None:
        """By the log in trainer_state.json: what the earlier checkpoint logged last stands in the later one's log."""
        earlier, later = sorted((one, other), key=lambda checkpoint: checkpoint.step or 0)
        logs = [_log(Folder(listing, checkpoint.path)) for checkpoint in (earlier, later)]
        if not logs[0] or not logs[1]:
            return None
        return logs[0][-1] in logs[1]


def _log(folder: Folder) -> list[object]:
    state = folder.json("trainer_state.json") if "trainer_state.json" in folder.listing.files(folder.path) else None
    log = state.get("log_history") if isinstance(state, dict) else None
    return log if isinstance(log, list) else []


def _places(listing: Listing) -> Iterator[tuple[str, int | None, bool]]:
    """Path, step and whether the name is a finished one's, of every checkpoint; newest first."""
    found: list[tuple[int, bool, str]] = []
    for name in listing.directories():
        match, unfinished = CHECKPOINT.fullmatch(name), UNFINISHED.fullmatch(name)
        if match:
            found.append((int(match[1]), True, name))
        elif unfinished:
            found.append((int(unfinished[1]), False, name))
    places = [(name, step, finished) for step, finished, name in sorted(found, reverse=True)]
    if _all_foreign(listing, [name for name, _, _ in places]):
        return
    mine = (place for place in places if not is_foreign(listing, place[0]))
    first = next(mine, None)
    if first is not None:
        yield first
        yield from mine
        return
    match, unfinished = CHECKPOINT.fullmatch(listing.name), UNFINISHED.fullmatch(listing.name)
    holds = (match and (listing.files() or listing.directories())) or _is_checkpoint(listing)
    if holds and not is_foreign(listing, ""):
        yield "", int(match[1]) if match else None, True
    elif unfinished:
        yield "", int(unfinished[1]), False


def _is_checkpoint(listing: Listing) -> bool:
    """Whether the root, whatever its name, holds what only a checkpoint holds. A finished run's final files are not enough."""
    names = set(listing.files())
    return "trainer_state.json" in names and bool(names & {"optimizer.pt", "optimizer.bin", "scheduler.pt", "latest"})


_FOREIGN_FILES = re.compile(
    r"random_states_\d+\.pkl|scheduler\.bin|latest_checkpointed_iteration\.txt|CHECKPOINT_COMPLETE|metadata\.json|_CHECKPOINT_METADATA"
)


def holds_trainer_state(listing: Listing, path: str) -> bool:
    """Whether a folder holds trainer_state.json."""
    try:
        return "trainer_state.json" in listing.files(path)
    except Unreachable:
        return False


_ENOUGH = 32


def _all_foreign(listing: Listing, names: list[str]) -> bool:
    """Whether folders of these names are another layout's, those included that do not tell (an interrupted save)."""
    newest = names[:_ENOUGH]
    return any(is_foreign(listing, name) for name in newest) and not any(holds_trainer_state(listing, name) for name in newest)


def is_foreign(listing: Listing, path: str) -> bool:
    """Whether a folder of this name belongs to another layout: Accelerate's save_state, Megatron, LLaMA-Factory v1, Orbax."""
    try:
        names = listing.files(path)
    except Unreachable:
        return False
    return "trainer_state.json" not in names and any(_FOREIGN_FILES.fullmatch(name) for name in names)


def _examine(folder: Folder, step: int | None, finished: bool, now: float | None) -> Checkpoint:
    try:
        return _judged(folder, step, finished, now)
    except Unreachable as error:
        return Checkpoint(folder.path, step, Verdict.DAMAGED, (str(error),))


def _judged(folder: Folder, step: int | None, finished: bool, now: float | None) -> Checkpoint:
    progress = _progress(folder, step)
    written = progress.progress is not None and not progress.broken
    backend = _backend(folder)
    held = weights(folder)
    if backend.startswith("DeepSpeed"):
        parts = [_not_needed(held), *_deepspeed(folder, written)]
    elif backend.startswith("FSDP"):
        parts = [*_fsdp(folder, held, backend), _scheduler(folder)]
    elif backend == "XLA FSDP":
        parts = [*_xla(folder, held), _scheduler(folder)]
    elif backend == "SageMaker":
        parts = [held, _sagemaker(folder), _scheduler(folder)]
    else:
        parts = [held, _optimizer(folder, "optimizer.pt"), _scheduler(folder)]
    parts = [_marks(folder, finished), *parts, progress, _random(folder), _scaler(folder), _config(folder), _value_head(folder)]
    parts += [_by_products(folder), _order(folder)]
    modified = folder.modified
    judged, reasons = verdict(parts, modified, now)
    return Checkpoint(
        folder.path,
        step if step is not None else (progress.progress or Progress()).step,
        judged,
        reasons,
        next((part.world_size for part in parts if part.world_size is not None), None),
        folder.bytes,
        modified,
        frozenset().union(*(part.state for part in parts)),
        progress.progress or Progress(step),
        deepspeed.stage(folder) if backend == "DeepSpeed" else backend,
        backend.startswith("DeepSpeed") or backend in ("FSDP local", "XLA FSDP"),
        _adapter(folder),
    )


def _backend(folder: Folder) -> str:
    if "latest" in folder.names or any(name.startswith("global_step") for name in folder.folders):
        return "DeepSpeed"
    if any(name.startswith("pytorch_model_fsdp") for name in folder.folders):
        return "FSDP sharded"
    if "pytorch_model_fsdp.bin" in folder.names:
        return "FSDP full"
    if any(name.startswith("pytorch_model_fsdp") for name in folder.names):
        return "FSDP local"
    if any(_XLA_OPTIMIZER.fullmatch(name) for name in folder.names):
        return "XLA FSDP"
    if "user_content.pt" in folder.names or any(name.startswith("optimizer.pt_") for name in folder.names):
        return "SageMaker"
    return "plain"


# ------------------------------------------------------------------------------------------------ trainer_state.json


def _progress(folder: Folder, step: int | None) -> Part:
    if not folder.tree:
        return Part(broken=("the folder is empty",), unfinished=True)
    if "trainer_state.json" not in folder.names:
        # Written last since transformers 4.36, and before the random-number files alone in older releases.
        why = "trainer_state.json is missing, so the save was interrupted or is another tool's"
        return Part(absent=(why,), unfinished=True)
    state = folder.json("trainer_state.json")
    if isinstance(state, str):
        return Part(broken=(state,), unfinished=True)
    if state is None:
        return Part(state=frozenset({State.PROGRESS, State.DATA}), progress=Progress(step))
    progress = Progress(
        whole_number(state.get("global_step")),
        number(state.get("epoch")),
        whole_number(state.get("max_steps")),
        number(state.get("num_train_epochs")),
        number(state.get("save_steps")),
    )
    if progress.step is None:
        return Part(broken=("trainer_state.json holds no step: `global_step` is not a number",), progress=progress)
    if step is not None and progress.step != step:
        why = f"trainer_state.json is of step {progress.step}, not {step}: the folder was renamed, or holds files of two saves"
        return Part(broken=(why,), progress=progress)
    held = {State.PROGRESS, State.DATA}
    if isinstance(state.get("best_metric"), (int, float)):
        held.add(State.BEST_METRIC)
    callbacks = state.get("stateful_callbacks")
    if isinstance(callbacks, dict) and set(callbacks) - {"TrainerControl"}:
        held.add(State.CALLBACKS)
    return Part(state=frozenset(held), progress=progress)


# ------------------------------------------------------------------------------------------------ weights

_SHARD = re.compile(r"(model|pytorch_model)-(\d{5})-of-(\d{5})\.(safetensors|bin)")
_WHOLE = ("model.safetensors", "pytorch_model.bin")
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_ADAPTERS = ("adapter_model.safetensors", "adapter_model.bin")


def weights(folder: Folder) -> Part:
    """Full weights in one file, in shards with an index, or an adapter (also in sub-folders): what is there must be whole."""
    files = [name for name in (*_WHOLE, *_ADAPTERS) if name in folder.names]
    broken = list(folder.faults(files))
    for index in (name for name in _INDEXES if name in folder.names):
        names, faults = _indexed(folder, index)
        files += names
        broken += faults
    broken += _shards_without_index(folder)
    for name in folder.folders:
        inside = folder.inside(name)
        found = [f"{name}/{adapter}" for adapter in _ADAPTERS if adapter in inside]
        if not found and "adapter_config.json" in inside:
            broken.append(f"{name}/adapter_model.safetensors is missing")
        files += found
        broken += folder.faults(found)
    if broken:
        return Part(broken=tuple(broken), unfinished=True)
    if not files:
        return Part(broken=("there are no model weights",) if folder.tree else (), unfinished=True)
    old = folder.old_torch(name for name in files if name.endswith(".bin"))
    remarks = tuple(f"{name} is in torch's old format, which cannot be verified" for name in old)
    return Part(remarks=remarks, state=frozenset({State.MODEL}))


def _indexed(folder: Folder, index: str) -> tuple[list[str], list[str]]:
    """The shards that an index names, and what is wrong with it or with them."""
    content = folder.json(index)
    if isinstance(content, str):
        return [], [content]
    if content is None:
        return [name for name in folder.names if _SHARD.fullmatch(name)], []
    places = content.get("weight_map")
    if not isinstance(places, dict) or not places or not all(isinstance(file, str) for file in places.values()):
        return [], [f"{index} names no weights"]
    files = sorted(set(places.values()))
    outside = [file for file in files if "/" in file or "\\" in file or file not in folder.tree]
    if outside:
        return [], [f"{file} is missing, and {index} names it" for file in outside]
    tensors = {file: folder.tensors(file) if file.endswith(".safetensors") else folder.fault(file) for file in files}
    faults = [held for held in tensors.values() if isinstance(held, str)]
    return files, faults or _tensors_elsewhere(index, places, tensors)


def _tensors_elsewhere(index: str, places: Mapping[str, str], tensors: Mapping[str, object]) -> list[str]:
    """Shards that lack a tensor which the index promises: files of two saves."""
    for tensor, file in sorted(places.items()):
        held = tensors[file]
        if isinstance(held, dict) and tensor not in held:
            return [f"{file} does not hold `{tensor}`, as {index} says: files of two saves"]
    return []


def _shards_without_index(folder: Folder) -> list[str]:
    faults = []
    for stem, suffix in (("model", "safetensors"), ("pytorch_model", "bin")):
        index, whole = f"{stem}.{suffix}.index.json", f"{stem}.{suffix}"
        matches = filter(None, map(_SHARD.fullmatch, folder.names))
        shards = [match for match in matches if match[1] == stem and match[4] == suffix]
        if not shards or index in folder.names or whole in folder.names:
            continue
        count = max(int(shard[3]) for shard in shards)
        have = {int(shard[2]) for shard in shards}
        gaps = [number for number in range(1, min(count, 100_000) + 1) if number not in have]
        faults += [f"{stem}-{number:05}-of-{count:05}.{suffix} is missing" for number in gaps[:3]]
        faults.append(f"{index} is missing")
        faults += folder.faults(shard[0] for shard in shards)
    return faults


def _adapter(folder: Folder) -> bool | None:
    if any(name in folder.names for name in (*_WHOLE, *_INDEXES)):
        return False
    if any(name.rpartition("/")[2] in (*_ADAPTERS, "adapter_config.json") for name in folder.tree if name.count("/") <= 1):
        return True
    return None


def _not_needed(weights: Part) -> Part:
    """Under DeepSpeed the consolidated weights are a by-product: what is wrong with them does not touch a resume."""
    remarks = tuple(f"{reason} (not needed to resume)" for reason in weights.broken if reason != "there are no model weights")
    return Part(remarks=(*remarks, *weights.remarks), state=weights.state)


def _value_head(folder: Folder) -> Part:
    """LLaMA-Factory's reward and PPO stages rewrite the weights after the save; no release of it can resume them."""
    if "value_head.safetensors" not in folder.names:
        return Part()
    fault = folder.fault("value_head.safetensors")
    if fault:
        return Part(broken=(fault,), unfinished=True)
    return Part(absent=("value_head.safetensors: a reward or PPO model of LLaMA-Factory, which cannot be resumed",))


# ------------------------------------------------------------------------------------------------ optimizer, schedule, the rest


def _optimizer(folder: Folder, name: str) -> Part:
    if name not in folder.names:
        return Part(absent=(f"{name} is missing",))
    fault = folder.fault(name)
    if fault:
        return Part(broken=(fault,), unfinished=True)
    if integrity.optimizer_is_empty(folder.listing, folder.at(name), folder.tree[name].size):
        why = "the optimizer has none (plain SGD), or keeps it elsewhere and loses it (layer-wise GaLore, APOLLO, BAdam)"
        return Part(remarks=(f"{name} holds no state: {why}",))
    old = folder.old_torch([name])
    remarks = tuple(f"{name} is in torch's old format, which cannot be verified" for name in old)
    return Part(remarks=remarks, state=frozenset({State.OPTIMIZER}))


def _scheduler(folder: Folder) -> Part:
    if "scheduler.pt" not in folder.names:
        has_optimizer = any(name.startswith(("optimizer", "rank")) for name in (*folder.names, *folder.folders))
        effect = ": the Trainer then starts the optimizer anew as well, without a word" if has_optimizer else ""
        return Part(absent=(f"scheduler.pt is missing{effect}",))
    fault = folder.fault("scheduler.pt")
    if fault:
        return Part(broken=(fault,), unfinished=True)
    return Part(state=frozenset({State.SCHEDULER}))


_RANDOM = re.compile(r"rng_state_(\d+)\.pth")


def _random(folder: Folder) -> Part:
    """One file a rank. A missing one costs reproducibility alone; a damaged one stops its rank."""
    single = [name for name in folder.names if name == "rng_state.pth"]
    ranks = {int(match[1]): name for name in folder.names if (match := _RANDOM.fullmatch(name))}
    faults = folder.faults([*single, *ranks.values()])
    if faults:
        return Part(broken=faults, unfinished=True)
    if not ranks:
        if single:
            return Part(state=frozenset({State.RNG}), world_size=1)
        why = "there is no rng_state file: random numbers start anew"
        return Part(remarks=(why,) if "optimizer.pt" in folder.names else ())
    world = max(ranks) + 1
    lost = [rank for rank in range(min(world, 100_000)) if rank not in ranks]
    if lost:
        listed = ", ".join(map(str, lost[:8])) + (", …" if len(lost) > 8 else "")
        why = f"random-number state is missing for rank{'s' if len(lost) > 1 else ''} {listed}"
        return Part(remarks=(why,), world_size=world)
    return Part(state=frozenset({State.RNG}), world_size=world)


def _scaler(folder: Folder) -> Part:
    if "scaler.pt" not in folder.names:
        return Part(
            remarks=("scaler.pt is missing, and the run used fp16: the loss scale starts anew",) if _used_fp16(folder) else ()
        )
    fault = folder.fault("scaler.pt")
    return Part(broken=(fault,), unfinished=True) if fault else Part(state=frozenset({State.SCALER}))


# Weights this many seconds younger than trainer_state.json are remarked upon.
_LATE_SECONDS = 60.0


def _order(folder: Folder) -> Part:
    """A save into a folder that was there before, killed half-way, leaves new weights under an old step counter.

    The counter is written last, so weights are never younger; but copies change times, so it is a remark and no verdict.
    """
    state = folder.tree.get("trainer_state.json")
    if state is None or state.modified is None:
        return Part()
    for name in (*_WHOLE, *_ADAPTERS, *filter(_SHARD.fullmatch, folder.names), "optimizer.pt"):
        info = folder.tree.get(name)
        if info and info.modified is not None and info.modified > state.modified + _LATE_SECONDS:
            why = "which is written last: unless it was copied so, a later save into this folder was interrupted"
            return Part(remarks=(f"{name} is younger than trainer_state.json, {why}",))
    return Part()


def _used_fp16(folder: Folder) -> bool:
    """Whether the arguments say so, in a run whose loss scale scaler.pt would hold (DeepSpeed keeps it with its own state)."""
    if "training_args.bin" not in folder.names or _backend(folder) == "DeepSpeed" or "optimizer.pt" not in folder.names:
        return False
    try:
        pickle = integrity.pickle_of(folder.listing, folder.at("training_args.bin"), folder.tree["training_args.bin"].size)
    except OSError:
        return False
    return integrity.values(pickle, ("fp16",)).get("fp16") is True


def _by_products(folder: Folder) -> Part:
    """Files that came out empty although a resume does not need them: a hint that the disk was full."""
    empty = [name for name in folder.names if folder.tree[name].size == 0]
    known = [(name, entry) for name in empty if (entry := harmless(name)) and entry.damaged]
    return Part(remarks=tuple(f"{name} is empty (not needed to resume: {entry.why})" for name, entry in known))


def _config(folder: Folder) -> Part:
    """config.json: the Trainer parses it before the weights, so one that is no JSON stops the start."""
    fault = folder.fault("config.json") if "config.json" in folder.names else None
    return Part(broken=(fault,), unfinished=True) if fault else Part()


_SAFETENSORS_TEMPORARY = re.compile(r"\.tmp[A-Za-z0-9]{6}")  # safetensors 0.8


def _marks(folder: Folder, finished: bool) -> Part:
    """Traces of a save that was interrupted."""
    broken = []
    if not finished:
        broken.append("the folder still has its temporary name: the save was interrupted")
    if "checkpoint-is-incomplete.txt" in folder.names:
        broken.append("checkpoint-is-incomplete.txt: a save on a signal was interrupted")
    done = folder.tree.get("trainer_state.json")
    for name, info in folder.tree.items():
        last = name.rpartition("/")[2]
        if last != ".metadata.tmp" and not _SAFETENSORS_TEMPORARY.fullmatch(last):
            continue
        # A later save into the same folder leaves the rest of the interrupted one behind; its trainer_state.json is newer.
        if done and done.modified is not None and info.modified is not None and done.modified > info.modified:
            continue
        broken.append(f"{name} is the rest of an interrupted save")
    return Part(broken=tuple(broken), unfinished=bool(broken))


# ------------------------------------------------------------------------------------------------ DeepSpeed


def _deepspeed(folder: Folder, written: bool) -> list[Part]:
    """What ``latest`` names, and the schedule.

    ``written``: trainer_state.json is there, and DeepSpeed's save ends with a barrier before it is written.
    """
    tag, wrong = deepspeed.tag(folder)
    if tag is None:
        return [Part(broken=(wrong,), unfinished=True)]
    return [deepspeed.states(folder, tag), _deepspeed_scheduler(folder, deepspeed.told(folder, tag), written)]


def _deepspeed_scheduler(folder: Folder, told: Mapping[str, object], written: bool) -> Part:
    """scheduler.pt is written only where DeepSpeed does not hold the schedule itself; then the start fails without it."""
    if "scheduler.pt" in folder.names:
        return _scheduler(folder)
    if "lr_scheduler" not in told:
        return Part() if written else Part(absent=("scheduler.pt is missing",), unfinished=True)
    if told["lr_scheduler"] is None:
        return Part(broken=("scheduler.pt is missing, and DeepSpeed holds no schedule either",), unfinished=not written)
    return Part(state=frozenset({State.SCHEDULER}))


# ------------------------------------------------------------------------------------------------ FSDP, XLA, SageMaker

_DISTCP = re.compile(r"__(\d+)_\d+\.distcp")
_RANK_FILE = re.compile(r"(pytorch_model_fsdp|optimizer)(?:_\d+)?_rank(\d+)\.bin")
_XLA_OPTIMIZER = re.compile(r"rank(\d+)-of-(\d+)-optimizer\.pt")
_XLA_WEIGHTS = re.compile(r"rank(\d+)-of-(\d+)-(?:pytorch_)?model\.(?:bin|safetensors)")


def _fsdp(folder: Folder, weights: Part, backend: str) -> list[Part]:
    by_product = _not_needed(weights)
    if backend == "FSDP full":
        fault = folder.fault("pytorch_model_fsdp.bin")
        model = Part(broken=(fault,), unfinished=True) if fault else Part(state=frozenset({State.MODEL}))
        return [by_product, model, _optimizer(folder, "optimizer.bin")]
    if backend == "FSDP local":
        return [by_product, *_rank_files(folder)]
    parts = [by_product]
    for prefix, state in (("pytorch_model_fsdp", State.MODEL), ("optimizer", State.OPTIMIZER)):
        shards = [name for name in folder.folders if re.fullmatch(rf"{prefix}(_\d+)?", name)]
        faults = tuple(fault for name in shards if (fault := integrity.dcp_fault(folder.listing, folder.at(name), name)))
        ranks = {int(match[1]) for name in shards for file in folder.inside(name) if (match := _DISTCP.fullmatch(file))}
        if faults:
            parts.append(Part(broken=faults, unfinished=True))
        elif shards:
            parts.append(Part(state=frozenset({state}), world_size=max(ranks) + 1 if ranks else None))
        else:
            parts.append(Part(absent=(f"{prefix}_0 is missing",)))
    return parts


def _rank_files(folder: Folder) -> list[Part]:
    """One file a rank for the weights and one for the optimizer."""
    found: dict[str, dict[int, str]] = {"pytorch_model_fsdp": {}, "optimizer": {}}
    for name in folder.names:
        match = _RANK_FILE.fullmatch(name)
        if match:
            found[match[1]][int(match[2])] = name
    world = max(max(ranks, default=-1) for ranks in found.values()) + 1
    parts = []
    for prefix, state in (("pytorch_model_fsdp", State.MODEL), ("optimizer", State.OPTIMIZER)):
        ranks = found[prefix]
        if not ranks:
            parts.append(Part(absent=(f"{prefix}_0_rank0.bin is missing",)))
            continue
        lost = [f"{prefix} of rank {rank} is missing" for rank in range(min(world, 100_000)) if rank not in ranks]
        broken = (*lost, *folder.faults(ranks.values()))
        held = frozenset() if broken else frozenset({state})
        parts.append(Part(broken=broken, state=held, world_size=world, unfinished=bool(broken)))
    return parts


def _xla(folder: Folder, weights: Part) -> list[Part]:
    optimizers = {int(match[1]): match for name in folder.names if (match := _XLA_OPTIMIZER.fullmatch(name))}
    shards = {int(match[1]): match[0] for name in folder.names if (match := _XLA_WEIGHTS.fullmatch(name))}
    world = max(int(match[2]) for match in optimizers.values())
    ranks = range(min(world, 100_000))
    lost = [f"rank{rank}-of-{world}-optimizer.pt is missing" for rank in ranks if rank not in optimizers]
    broken = (*lost, *folder.faults(match[0] for match in optimizers.values()))
    state = frozenset() if broken else frozenset({State.OPTIMIZER})
    optimizer = Part(broken=broken, state=state, world_size=world, unfinished=bool(broken))
    if not shards:
        return [weights, optimizer]
    lost = [f"weights of rank {rank} are missing" for rank in ranks if rank not in shards]
    broken = (*lost, *folder.faults(shards.values()))
    return [Part(broken=broken, state=frozenset() if broken else frozenset({State.MODEL}), unfinished=bool(broken)), optimizer]


def _sagemaker(folder: Folder) -> Part:
    files = [name for name in folder.names if name.startswith("optimizer.pt")]
    if not files:
        return Part(absent=("optimizer.pt_* is missing",))
    faults = folder.faults(files)
    return Part(broken=faults, unfinished=True) if faults else Part(state=frozenset({State.OPTIMIZER}))
