"""Checkpoints that the real Trainer wrote: every cut of every file is noticed, or the file is proven harmless by resuming.

A tiny model with random weights on the CPU; nothing is downloaded.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from ckptlint.checkpoints.checkpoint import Verdict
from ckptlint.checkpoints.huggingface import HARMLESS, HuggingFaceLayout, harmless
from ckptlint.checkpoints.listing import LocalListing
from ckptlint.checkpoints.manifest import ManifestListing
from ckptlint.run import State

pytestmark = pytest.mark.drill

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

STEP, TOTAL = 2, 4
WEEK = 7 * 86400.0


def tiny_model() -> object:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=16,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        max_position_embeddings=16,
    )
    return transformers.LlamaForCausalLM(config)


def sharded_model() -> object:
    model = tiny_model()
    model.save_pretrained = partial(model.save_pretrained, max_shard_size=1000)  # type: ignore[attr-defined]
    return model


def lora_model() -> object:
    peft = pytest.importorskip("peft")
    return peft.get_peft_model(tiny_model(), peft.LoraConfig(r=1, target_modules=["q_proj"]))


def tokenizer() -> object:
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.models.WordLevel({f"w{number}": number for number in range(16)}, unk_token="w0")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(words), pad_token="w0")


def trainer(out: Path, build: Callable[[], object], **more: object) -> object:
    rows = [{"input_ids": [number, (number * 7 + 1) % 16, 3, 4], "labels": [number, 2, 3, 4]} for number in range(16)]
    scaler = more.pop("scaler", False)
    named = more.pop("named", False)
    arguments = transformers.TrainingArguments(
        output_dir=str(out),
        max_steps=TOTAL,
        save_steps=STEP,
        logging_steps=1,
        per_device_train_batch_size=2,
        learning_rate=0.01,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        **more,
    )
    words = {"processing_class": tokenizer()} if named else {}
    made = transformers.Trainer(model=build(), args=arguments, train_dataset=rows, **words)
    if scaler:  # on the CPU the Trainer makes none; with one in place it saves and restores it as on a GPU
        made.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
    return made


def final_weights(made: object) -> dict[str, object]:
    return {name: value.detach().clone() for name, value in made.model.state_dict().items()}  # type: ignore[attr-defined]


def equal(one: dict[str, object], other: dict[str, object]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@dataclass(frozen=True)
class Written:
    """A run that wrote ``checkpoint-2`` and went on to its end."""

    folder: Path
    again: Callable[[Path], object]
    final: dict[str, object]

    @property
    def files(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()
        }

    def resume(self, out: Path, change: Callable[[Path], None] = lambda folder: None) -> dict[str, object]:
        """The final weights of a start from a copy of the checkpoint, after a change to it."""
        copy = out / self.folder.name
        shutil.copytree(self.folder, copy)
        change(copy)
        made = self.again(out)
        made.train(resume_from_checkpoint=str(copy))  # type: ignore[attr-defined]
        return final_weights(made)


KINDS: dict[str, tuple[Callable[[], object], dict[str, object]]] = {
    "plain": (tiny_model, {"named": True}),
    "sharded": (sharded_model, {}),
    "lora": (lora_model, {}),
    "bf16": (tiny_model, {"bf16": True}),
    "scaler": (tiny_model, {"fp16": True, "scaler": True}),
    "bin": (tiny_model, {}),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Written]:
    made: dict[str, Written] = {}

    def write(kind: str) -> Written:
        if kind not in made:
            build, more = KINDS[kind]
            out = tmp_path_factory.mktemp(kind)
            first = trainer(out, build, **more)
            first.train()  # type: ignore[attr-defined]
            folder = out / f"checkpoint-{STEP}"
            if kind == "bin":
                weights = first.model.state_dict()  # type: ignore[attr-defined]
                stored = __import__("safetensors.torch").torch.load_file(folder / "model.safetensors")
                torch.save({name: stored[name] for name in weights}, folder / "pytorch_model.bin")
                (folder / "model.safetensors").unlink()
            for path in folder.rglob("*"):  # long enough ago that nothing looks as if it were being written
                os.utime(path, (path.stat().st_mtime - WEEK,) * 2)
            made[kind] = Written(folder, lambda out: trainer(out, build, **more), final_weights(first))
        return made[kind]

    return write


def listing_of(files: dict[str, bytes]) -> ManifestListing:
    return ManifestListing("", contents={f"checkpoint-{STEP}/{name}": data for name, data in files.items()})


def verdict(files: dict[str, bytes]) -> Verdict:
    (checkpoint,) = HuggingFaceLayout().scan(listing_of(files))
    return checkpoint.verdict


def loads_the_same(name: str, damaged: bytes, whole: bytes) -> bool:
    """Whether the library that reads the file gets from the damaged bytes exactly what it gets from the whole ones."""
    try:
        if name.endswith(".json"):
            return bool(json.loads(damaged) == json.loads(whole))
        values = [torch.load(io.BytesIO(data), weights_only=False) for data in (damaged, whole)]
        return repr(values[0]) == repr(values[1])
    except Exception:
        return False


def needed(files: dict[str, bytes]) -> Iterator[str]:
    """The files whose damage is not known to be harmless."""
    for name in sorted(files):
        known = harmless(name)
        if known is None or not known.damaged:
            yield name


# What the other kinds add to the plain one; the files they share with it are the same in form.
ONLY_THERE = {"plain": "", "sharded": "model", "lora": "adapter_model", "scaler": "scaler", "bin": "pytorch_model"}


@pytest.mark.parametrize("kind", list(KINDS))
def test_what_is_called_complete_resumes_to_the_weights_of_the_uninterrupted_run(kind, written, tmp_path):
    run = written(kind)
    newest, oldest = HuggingFaceLayout().scan(LocalListing(run.folder.parent))
    assert (newest.step, oldest.step) == (TOTAL, STEP)
    assert (newest.verdict, oldest.verdict) == (Verdict.COMPLETE, Verdict.COMPLETE)
    assert {State.MODEL, State.OPTIMIZER, State.SCHEDULER, State.PROGRESS, State.RNG} <= oldest.state
    assert (State.SCALER in oldest.state) == (kind == "scaler")
    assert oldest.adapter == (kind == "lora")
    assert oldest.progress.total_steps == TOTAL and oldest.progress.save_steps == STEP
    assert HuggingFaceLayout().scan(LocalListing(run.folder), deep=True)[0].complete
    assert equal(run.resume(tmp_path), run.final)


@pytest.mark.parametrize("kind", list(ONLY_THERE))
def test_every_cut_of_a_needed_file_at_every_byte_is_noticed(kind, written):
    files = written(kind).files
    assert verdict(files) is Verdict.COMPLETE
    for name in needed(files):
        if not name.startswith(ONLY_THERE[kind]):
            continue
        whole = files[name]
        for length in range(len(whole)):
            if verdict({**files, name: whole[:length]}) is Verdict.COMPLETE:
                assert loads_the_same(name, whole[:length], whole), f"{name} cut to {length} of {len(whole)} bytes passed"


@pytest.mark.parametrize("kind", list(ONLY_THERE))
def test_a_needed_file_that_is_missing_or_empty_is_noticed(kind, written):
    files = written(kind).files
    for name in sorted(files):
        known = harmless(name)
        without = {other: data for other, data in files.items() if other != name}
        if known is None:
            assert verdict(without) is not Verdict.COMPLETE, f"{name} missing"
        if known is None or not known.damaged:
            assert verdict({**files, name: b""}) is not Verdict.COMPLETE, f"{name} empty"
            assert verdict({**files, name: bytes(len(files[name]))}) is not Verdict.COMPLETE, f"{name} all zeros"


@pytest.mark.parametrize("kind", list(ONLY_THERE))
def test_a_tail_of_zeros_is_noticed_in_every_file_that_has_a_directory_or_an_end(kind, written):
    """safetensors has neither checksum nor end mark: zeros within its tensors are tensors, and nobody can tell."""
    files = written(kind).files
    for name in needed(files):
        if name.endswith(".safetensors"):
            continue
        whole = files[name]
        for length in [*range(1, min(len(whole), 300)), len(whole) // 2, len(whole) - 1]:
            damaged = whole[:-length] + bytes(length)
            if verdict({**files, name: damaged}) is Verdict.COMPLETE:
                assert loads_the_same(name, damaged, whole), f"{length} zeros at the end of {name} passed"


def test_cuts_on_the_real_file_system_are_noticed_too(written, tmp_path):
    run = written("plain")
    copy = tmp_path / run.folder.name
    for name in needed(run.files):
        for length in (0, 1, len(run.files[name]) // 2, len(run.files[name]) - 2):
            shutil.copytree(run.folder, copy)
            data = (copy / name).read_bytes()
            (copy / name).write_bytes(data[:length])
            os.utime(copy / name, ((run.folder / name).stat().st_mtime,) * 2)
            (checkpoint,) = HuggingFaceLayout().scan(LocalListing(tmp_path))
            shutil.rmtree(copy)
            assert checkpoint.verdict is Verdict.DAMAGED
            assert any(name in reason for reason in checkpoint.reasons)


# How a harmless file may be harmed: by name, and what is done to it.
HARM: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
}


@pytest.mark.parametrize("kind", ["plain", "lora", "scaler"])
def test_without_a_harmless_file_the_resumed_run_ends_with_the_same_weights(kind, written, tmp_path):
    run = written(kind)
    for name in sorted(run.files):
        known = harmless(name)
        if known is None or (kind != "plain" and name in written("plain").files):
            continue
        for harm in ["missing", "empty", "cut"] if known.damaged else ["missing"]:
            ended = run.resume(tmp_path / f"{name}-{harm}", lambda folder, harm=harm, name=name: HARM[harm](folder / name))
            assert equal(ended, run.final) or not known.exact, f"{name} {harm}"


def test_the_loss_of_what_makes_a_resume_exact_is_told(written):
    for kind, name, word in (("plain", "rng_state.pth", "random numbers"), ("scaler", "scaler.pt", "loss scale")):
        files = {other: data for other, data in written(kind).files.items() if other != name}
        (checkpoint,) = HuggingFaceLayout().scan(listing_of(files))
        assert checkpoint.complete
        assert any(word in reason for reason in checkpoint.reasons)


def test_files_called_harmless_that_this_release_does_not_write_are_not_read_either(written, tmp_path):
    run = written("plain")
    others = [entry.pattern.replace("*", "x") for entry in HARMLESS if entry.damaged]

    def litter(folder: Path) -> None:
        for name in others:
            (folder / name).write_bytes(b"\xff garbage \0")

    assert equal(run.resume(tmp_path, litter), run.final)


@pytest.mark.parametrize("kind", list(ONLY_THERE))
def test_what_is_called_damaged_would_really_have_stopped_the_start(kind, written, tmp_path):
    run = written(kind)
    for name in needed(run.files):
        if name.startswith(ONLY_THERE[kind]):
            with pytest.raises(Exception):  # noqa: B017  (SafetensorError, RuntimeError, JSONDecodeError, ValueError …)
                run.resume(tmp_path / f"{name}-cut", lambda folder, name=name: HARM["cut"](folder / name))


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt"])
def test_what_is_called_weights_only_resumes_silently_to_other_weights(name, written, tmp_path):
    run = written("plain")
    files = {other: data for other, data in run.files.items() if other != name}
    assert verdict(files) is Verdict.WEIGHTS_ONLY
    assert not equal(run.resume(tmp_path, lambda folder: (folder / name).unlink()), run.final)
