"""MindSpeed-RL's YAML: roles with Megatron's arguments."""

from __future__ import annotations

import pytest

from ckptlint.frameworks.mindspeed_rl import MindSpeedRL
from ckptlint.run import Amount, Choice, Run, State, Unit
from ckptlint.source.file import SourceFile

SHARED = "megatron_training:\n  train_iters: 1000\n  save_interval: 100\n"


def _run(text: str, shared: str = SHARED) -> Run:
    (run,) = MindSpeedRL().read(SourceFile("grpo.yaml", f"{shared}{text}".encode()))
    return run


def _section(name: str, *lines: str) -> str:
    return f"{name}:\n" + "".join(f"  {line}\n" for line in lines)


@pytest.mark.parametrize("text", ["actor_config:\n  load: x\n", "megatron_training: 5\n", "- megatron_training: {}\n", ""])
def test_a_file_without_the_shared_section_is_left_alone(text: str) -> None:
    assert MindSpeedRL().read(SourceFile("x.yaml", text.encode())) == ()


def test_a_role_takes_what_it_does_not_say_from_the_shared_section() -> None:
    run = _run(_section("actor_config", "load: /run", "save: /run"))
    assert run.length == Amount(1000, Unit.STEP)
    assert run.writes[0].interval.every == Amount(100, Unit.STEP)
    assert (run.writes[0].role, run.reads[0].choice) == ("actor", Choice.NEWEST)


def test_actor_and_critic_are_saved_apart() -> None:
    run = _run(_section("actor_config", "load: /a", "save: /a") + _section("critic_config", "load: /c", "save: /c"))
    assert [write.role for write in run.writes] == ["actor", "critic"]
    assert [str(write.directory.path) for write in run.writes] == ["/a", "/c"]


def test_ppo_does_not_save_at_the_end_and_grpo_does() -> None:
    actor = _section("actor_config", "load: /a", "save: /a")
    assert _run(actor).writes[0].interval.at_end is True
    assert _run(actor + _section("critic_config", "save: /c")).writes[0].interval.at_end is False


def test_hyphens_are_underscores() -> None:
    run = _run(_section("actor_config", "load: /run", "save: /run", "no-load-optim: true"))
    assert [drop.state for drop in run.reads[0].drops] == [State.OPTIMIZER]


def test_finetune_from_its_own_directory_restarts() -> None:
    run = _run(_section("actor_config", "load: ./ckpt", "save: ./ckpt", "finetune: true", "no_load_optim: true"))
    assert [switch.setting.name for switch in run.switches] == ["finetune"]
    assert [setting.name for setting, _ in run.switches[0].also] == ["no_load_optim"]
    assert run.reads[0].choice is Choice.NOTHING


def test_there_is_no_repair_with_an_argument_that_no_worker_reads() -> None:
    read = _run(_section("actor_config", "load: /base", "save: /run")).reads[0]
    assert (read.choice, read.repair) == (Choice.NOTHING, ())
    assert "pretrained" not in read.advice


def test_dpo_has_its_arguments_in_the_shared_section() -> None:
    shared = _section("megatron_training", "stage: dpo", "train_iters: 10", "save_interval: 50", "load: /b", "save: /r")
    run = _run("", shared)
    assert run.writes[0].interval.as_long_as(run.length)
    assert run.reads[0].choice is Choice.NOTHING


@pytest.mark.parametrize(
    ("rl", "lost"),
    [
        ("init_kl_coef: 0.1", True),
        ("init_kl_coef: 0.0", False),
        ("integrated_mode_config: {ref_model_load_path: /base}", False),
    ],
)
def test_the_reference_is_lost_where_it_counts_and_has_no_path(rl: str, lost: bool) -> None:
    run = _run(_section("actor_config", "load: /run", "save: /run") + _section("rl_config", rl))
    assert bool(run.lost_references) is lost
