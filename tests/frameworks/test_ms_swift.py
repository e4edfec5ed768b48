"""ms-swift: arguments as argparse reads them, defaults by release, both commands, and pins across versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from checkpoint_files import write_checkpoint

from ckptlint.checkpoints.listing import LocalListing
from ckptlint.checkpoints.ms_swift import MsSwiftLayout
from ckptlint.frameworks.ms_swift import MegatronSwift, MsSwift, read_megatron_run, read_run
from ckptlint.outcome import Kind, outcome
from ckptlint.resume import CannotPlan, Plan, carry_out, plan
from ckptlint.run import Changing, Choice, PathExpr, Release, Run, Setting, State
from ckptlint.source.file import SourceFile
from ckptlint.source.text import SourceText, Span

CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"
BASE = """\
model: Qwen/Qwen2.5-7B-Instruct
dataset:
  - data/train.jsonl
tuner_type: lora
split_dataset_ratio: 0.01
num_train_epochs: 3
per_device_train_batch_size: 1
"""
MEGATRON = """\
model: Qwen/Qwen3-30B-A3B
dataset: data/train.jsonl
tuner_type: full
split_dataset_ratio: 0.01
micro_batch_size: 1
global_batch_size: 16
num_train_epochs: 2
lr: 1e-5
"""
VERSION = "v0-20260101-120000"


@dataclass(frozen=True)
class Flags:
    """The settings of a command line, as text."""

    values: dict[str, str]
    source: SourceText = field(default_factory=lambda: SourceText("run.sh", "swift sft"))

    @property
    def where(self) -> Span:
        return self.source.whole

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def names(self) -> Iterator[str]:
        return iter(self.values)

    def setting(self, name: str) -> Setting:
        span = self.where if name in self.values else None
        return Setting(name, self.values.get(name), span, span, joint=" ")

    def value(self, name: str) -> object:
        return self.values.get(name)


def swift(release: str = "4.6.0", **values: str) -> Run:
    return read_run(Flags(values), Release(release))


def megatron(release: str = "4.6.0", **values: str) -> Run:
    return read_megatron_run(Flags(values), Release(release))


def frameworks_of(text: str, path: str = "run.yaml") -> list[str]:
    file = SourceFile(path, text.encode())
    return [run.framework for one in (MsSwift(), MegatronSwift()) if one.mentions(file.data) for run in one.read(file)]


# ------------------------------------------------------------------------------------------------ whose it is


def test_the_two_commands_are_told_apart_by_their_arguments() -> None:
    assert frameworks_of(BASE) == ["ms-swift"]
    assert frameworks_of(MEGATRON) == ["megatron-swift"]


def test_json_is_read_as_yaml_is() -> None:
    text = '{"model": "a/b", "dataset": ["d"], "tuner_type": "lora", "split_dataset_ratio": 0, "save_steps": 50}'
    assert frameworks_of(text, "run.json") == ["ms-swift"]
    assert frameworks_of(text + ",", "run.json") == []


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*/*.*")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_of_another_tool_is_not_ms_swift_s(path: Path) -> None:
    found = frameworks_of(path.read_text(encoding="utf-8", errors="replace"), str(path))
    assert found == (["ms-swift"] if path.name == "ms_swift.yaml" else [])


@pytest.mark.parametrize(
    "text",
    [
        "model: a/b\nmax_new_tokens: 512\ninfer_backend: vllm\ndataset: d\ntorch_dtype: bfloat16\nuse_hf: true\n",
        "sampler_type: distill\nmodel: qwen-max\ndataset: d#16\nnum_return_sequences: 4\ntorch_dtype: float16\nuse_hf: true\n",
        "model:\n  _component_: torchtune.models.llama3\ndataset:\n  _component_: x\nval_dataset: y\ntarget_modules: z\n",
        "model: a\ndataset: d\ntuner_type: lora\nuse_hf: true\n",  # nothing that trains
        "model: a\ndataset: d\nnum_train_epochs: 3\nlearning_rate: 1\nval_dataset: e\n",  # anybody's
        "swift_version: 4.6.0\nmodel: a\ndataset: d\ntuner_type: lora\nsave_steps: 3\n",  # args.json of a run that has begun
        "model_name_or_path: a\nmodel: a\ndataset: d\ntorch_dtype: auto\ntarget_modules: x\nlearning_rate: 1\n",  # TRL
    ],
)
def test_what_does_not_train_with_ms_swift_is_nobody_s(text: str) -> None:
    assert frameworks_of(text) == []


def test_the_group_of_the_trainer_is_read_over_what_all_roles_share() -> None:
    text = (
        "rlhf_type: grpo\nmodel: a/b-7B\ndataset: d\nmicro_batch_size: 2\nglobal_batch_size: 16\nlr: 5e-5\n"
        "split_dataset_ratio: 0\ntrain_iters: 120\nsave_steps: 1000\nsave_total_limit:\n"
        "train:\n  gpus: 4\n  save_steps: 50\n  output_dir: out\nrollout:\n  gpus: 4\n"
    )
    (run,) = MegatronSwift().read(SourceFile("ray.yaml", text.encode()))
    assert run.settings["save_steps"].value == 50
    assert run.settings["train_iters"].value == 120
    assert str(run.writes[0].directory.path) == "out/v<N>-<time>"
    assert run.refusals == ()  # a null is dropped there


# ------------------------------------------------------------------------------------------------ the Trainer's commands


def test_every_start_has_a_version_of_its_own_and_resumes_nothing() -> None:
    run = swift(model="Qwen/Qwen2.5-7B-Instruct")
    path = run.writes[0].directory.path
    assert isinstance(path, PathExpr)
    assert str(path) == "output/Qwen2.5-7B-Instruct/v<N>-<time>"
    assert len(list(path.of(Changing))) == 1
    assert run.reads[0].choice is Choice.NOTHING
    assert outcome(run).kind is Kind.RESTARTS


@pytest.mark.parametrize("word", ["false", "False", "no", "0", "f"])
def test_a_version_is_switched_off_by_any_word_for_false(word: str) -> None:
    path = swift(output_dir="/data/run", add_version=word).writes[0].directory.path
    assert str(path) == "/data/run"


def test_a_pinned_run_resumes_although_it_saves_elsewhere() -> None:
    run = swift(output_dir="out/pt", resume_from_checkpoint="out/pt/checkpoint-1200")
    assert run.reads[0].choice is Choice.FIXED
    assert outcome(run).kind is Kind.LOSING
    assert not any(missing.state is State.DATA for missing in run.writes[0].missing)


@pytest.mark.parametrize("value", ["None", "False"])
def test_a_null_that_became_text_is_taken_out(value: str) -> None:
    (refusal,) = swift(resume_from_checkpoint=value).refusals
    assert refusal.removes
    assert "FileNotFoundError" in refusal.effect


@pytest.mark.parametrize("value", ["latest", "True", "auto", "500", "output/a", "output/a/" + VERSION])
def test_what_names_no_checkpoint_is_a_misfit(value: str) -> None:
    run = swift(output_dir="output/a", resume_from_checkpoint=value)
    assert [misfit.setting.name for misfit in run.misfits] == ["resume_from_checkpoint"]


def test_weights_of_another_run_are_an_ordinary_start() -> None:
    run = swift(output_dir="out/dpo", resume_from_checkpoint="out/sft/v0/checkpoint-9", resume_only_model="true")
    assert run.warm_starts == ()
    assert outcome(run).kind is Kind.RESTARTS


def test_flash_checkpoints_are_found_in_the_version_before() -> None:
    run = swift(output_dir="out", use_flash_ckpt="true")
    assert (run.reads[0].choice, str(run.writes[0].directory.path)) == (Choice.NEWEST, "out")
    assert swift(output_dir="out", use_flash_ckpt="true", add_version="false").reads[0].choice is Choice.NOTHING


@pytest.mark.parametrize(
    ("release", "values", "weights_only"),
    [
        ("1.7.2", {"deepspeed": "default-zero3"}, True),
        ("1.7.2", {}, False),
        ("1.7.2", {"sft_type": "full"}, True),
        ("2.2.5", {"deepspeed": "default-zero3"}, False),  # asks for transformers, of which nothing is known
        ("2.2.5", {"sft_type": "full"}, True),
        ("2.4.2", {"sft_type": "full", "deepspeed": "default-zero3"}, False),
        ("4.6.0", {"deepspeed": "zero3"}, False),
        ("4.6.0", {"deepspeed": "zero3", "save_only_model": "true"}, True),
    ],
)
def test_the_default_of_save_only_model_is_the_release_s(release: str, values: dict[str, str], weights_only: bool) -> None:
    states = {missing.state for missing in swift(release, model_type="qwen-7b-chat", **values).writes[0].missing}
    assert (State.OPTIMIZER in states) is weights_only


def test_an_old_release_saves_with_its_evaluation_and_keeps_two() -> None:
    (write,) = swift("1.7.2", model_type="qwen-7b-chat", output_dir="/data").writes
    assert (str(write.interval.every), write.retention.keep) == ("50 steps", 2)
    assert str(write.directory.path) == "/data/qwen-7b-chat/v<N>-<time>"
    (write,) = swift("2.6.1", model_type="qwen-7b-chat", sft_type="full").writes
    assert str(write.interval.every) == "200 steps"


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("save_steps", "500", False),
        ("save_steps", "0.1", False),
        ("save_steps", "often", True),
        ("save_total_limit", "3", False),
        ("save_total_limit", "3.5", True),
        ("save_only_model", "maybe", True),
        ("save_strategy", "never", True),
        ("save_strategy", "epoch", False),
    ],
)
def test_what_argparse_or_the_trainer_does_not_take_is_refused(name: str, value: str, refused: bool) -> None:
    assert bool(swift(**{name: value}).refusals) is refused


def test_a_null_for_a_number_stops_the_launch_and_is_taken_out() -> None:
    (run,) = MsSwift().read(SourceFile("run.yaml", (BASE + "save_total_limit: null\n").encode()))
    assert [(refusal.setting.name, refusal.removes) for refusal in run.refusals] == [("save_total_limit", True)]


# ------------------------------------------------------------------------------------------------ Megatron's commands


def test_megatron_resumes_a_checkpoint_that_is_loaded_without_finetune() -> None:
    own = "/data/mcore/v0/checkpoint-600"
    run = megatron(mcore_model=own, finetune="false", output_dir="/data/mcore", save_steps="200")
    assert run.reads[0].choice is Choice.FIXED
    assert run.switches == ()
    run = megatron(mcore_model=own, output_dir="/data/mcore", save_steps="200")
    assert [switch.setting.name for switch in run.switches] == ["finetune"]
    assert outcome(run).kind is Kind.RESTARTS


def test_before_4_0_megatron_s_own_names_and_defaults_hold() -> None:
    run = megatron("3.12.6", load="/data/run/v0", save="/data/run", save_interval="100", max_epochs="2")
    assert run.reads[0].choice is Choice.FIXED
    assert str(run.writes[0].interval.every) == "100 steps"
    assert str(run.length) == "2 epochs"


def test_a_base_model_in_megatron_s_format_is_no_resume() -> None:
    run = megatron(mcore_model="/models/qwen-mcore", output_dir="/data/run")
    assert run.reads[0].choice is Choice.NOTHING
    assert run.switches == ()


@pytest.mark.parametrize(
    ("values", "names"), [({"save_total_limit": "1"}, ["save_total_limit"]), ({"save_total_limit": "2"}, [])]
)
def test_megatron_keeps_two_or_all(values: dict[str, str], names: list[str]) -> None:
    assert [refusal.setting.name for refusal in megatron(**values).refusals] == names
    assert megatron(async_save="true", **values).refusals


# ------------------------------------------------------------------------------------------------ the disk, and pins

AT = BASE + "output_dir: out\n"


def pinned(project: Path, text: str) -> tuple[Plan, str]:
    (project / "sft.yaml").write_text(text)
    decided = plan("sft.yaml", {})
    carry_out(decided, lambda: plan("sft.yaml", {}))
    assert plan("sft.yaml", {}).changes == ()
    return decided, (project / "sft.yaml").read_text()


def test_the_highest_step_of_all_versions_is_taken_not_the_newest_version(project: Path) -> None:
    write_checkpoint("out/v1-20260101-120000", 900)
    write_checkpoint("out/v3-20260103-120000", 50)
    decided, text = pinned(project, AT)
    assert decided.chosen_path == "out/v1-20260101-120000/checkpoint-900"
    assert "resume_from_checkpoint: out/v1-20260101-120000/checkpoint-900\n" in text
    assert decided.arguments == ("--resume_from_checkpoint", "out/v1-20260101-120000/checkpoint-900")


def test_a_damaged_one_is_passed_over_for_one_in_another_version(project: Path) -> None:
    write_checkpoint("out/v0-20260101-120000", 500)
    (project / "out/v1-20260102-120000/checkpoint-900").mkdir(parents=True)
    decided, _ = pinned(project, AT)
    assert decided.chosen_path == "out/v0-20260101-120000/checkpoint-500"
    assert [skipped.path for skipped in decided.skipped] == ["out/v1-20260102-120000/checkpoint-900"]


def test_versions_of_another_model_are_left_out(project: Path) -> None:
    write_checkpoint("out/v0-20260101-120000", 500)
    write_checkpoint("out/v1-20260102-120000", 900)
    (project / "out/v1-20260102-120000/args.json").write_text(json.dumps({"model": "meta-llama/Llama-3.1-8B"}))
    (project / "out/v0-20260101-120000/args.json").write_text(json.dumps({"model": "/models/Qwen2.5-7B-Instruct"}))
    assert pinned(project, AT)[0].chosen_path == "out/v0-20260101-120000/checkpoint-500"
    assert [found.step for found in MsSwiftLayout().scan(LocalListing("out"))] == [900, 500]
    assert MsSwiftLayout().recognises(LocalListing("out"))
    assert not MsSwiftLayout().recognises(LocalListing("."))


def test_without_a_version_the_directory_itself_is_looked_through(project: Path) -> None:
    write_checkpoint("out", 500)
    assert pinned(project, AT + "add_version: false\n")[0].chosen_path == "out/checkpoint-500"


def test_a_first_launch_loses_a_null_that_would_stop_it(project: Path) -> None:
    decided, text = pinned(project, AT + "resume_from_checkpoint: null\n")
    assert text == AT
    assert [notice.name for notice in decided.notices] == ["first-launch"]


def test_json_is_pinned_as_json(project: Path) -> None:
    write_checkpoint(f"out/{VERSION}", 500)
    keys = '\t"model": "a/b",\n\t"dataset": ["d"],\n\t"tuner_type": "lora",\n\t"use_hf": true,\n\t"save_steps": 50,\n'
    text = f'{{\n{keys}\t"output_dir": "out"\n}}\n'
    (project / "sft.json").write_text(text)
    carry_out(plan("sft.json", {}), lambda: plan("sft.json", {}))
    pin = f'"output_dir": "out",\n\t"resume_from_checkpoint": "out/{VERSION}/checkpoint-500"'
    assert (project / "sft.json").read_text() == text.replace('"output_dir": "out"', pin)


def test_megatron_s_checkpoints_are_not_pinned_yet(project: Path) -> None:
    (project / "sft.yaml").write_text(MEGATRON)
    with pytest.raises(CannotPlan, match="Megatron-SWIFT run cannot be pinned yet"):
        plan("sft.yaml", {})
