"""verl's configurations and command lines: what each value does, by release and trainer."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_lines import TextEditor, edited, last_command

from ckptlint.frameworks.verl import Verl, read_launch
from ckptlint.frameworks.verl_keys import KEYS, RELEASES_READ, Trainer, defaults
from ckptlint.run import NEVER, Amount, Changing, Choice, PathExpr, Release, Run, State, Unit, Unknown
from ckptlint.source.file import SourceFile

BASE = "actor_rollout_ref:\n  model:\n    path: Qwen/Qwen3-8B\n"


def _yaml(trainer: str, rest: str = BASE, path: str = "train.yaml") -> tuple[Run, ...]:
    lines = "".join(f"  {line}\n" for line in trainer.split("\n"))
    return Verl().read(SourceFile(path, f"{rest}trainer:\n{lines}".encode()))


def _run(trainer: str, rest: str = BASE) -> Run:
    (run,) = _yaml(trainer, rest)
    return run


def _launch(overrides: str, release: str = "0.9.1", module: str = "verl.trainer.main_ppo") -> Run:
    command = last_command(f"python3 -m {module} {overrides}")
    run = read_launch(command.argv, command.span, Release(release), TextEditor(command))
    assert run is not None
    return run


# ------------------------------------------------------------------------------------------------ which files


@pytest.mark.parametrize(
    "text",
    [
        "trainer:\n  nnodes: 1\n  n_gpus_per_node: 8\nactor_rollout_ref:\n  x: 1\n",  # generation.yaml
        "trainer:\n  max_epochs: 3\n  default_root_dir: /data\ndata:\n  path: x\n",  # Lightning
        "defaults:\n  - ppo_trainer\n  - _self_\ndata:\n  max_prompt_length: 1024\n",  # a fragment
        "trainer: verl\nactor_rollout_ref:\n  x: 1\n",
        "stage: sft\ndo_train: true\noutput_dir: /data\n",
        "- trainer:\n    save_freq: 1\n",
        "",
    ],
)
def test_a_file_that_describes_no_run_of_verl_is_left_alone(text: str) -> None:
    assert Verl().read(SourceFile("x.yaml", text.encode())) == ()


def test_the_frameworks_own_configurations_are_no_runs() -> None:
    assert _yaml("save_freq: -1", path="site-packages/verl/trainer/config/ppo_trainer.yaml") == ()


def test_a_run_that_only_validates_is_none() -> None:
    assert _yaml("save_freq: -1\nval_only: true\ntotal_epochs: 1") == ()


@pytest.mark.parametrize(
    ("rest", "name"),
    [
        (BASE, Trainer.PPO),
        ("defaults:\n  - ppo_trainer\n", Trainer.PPO),
        ("data:\n  train_files: x\nmodel:\n  partial_pretrain: m\n", Trainer.SFT),
        ("data:\n  train_files: x\nengine:\n  strategy: fsdp\noptim:\n  lr: 1\n", Trainer.ENGINE_SFT),
    ],
)
def test_the_trainer_is_told_by_the_sections_beside_it(rest: str, name: Trainer) -> None:
    epochs = {Trainer.PPO: 30, Trainer.SFT: 4, Trainer.ENGINE_SFT: 4}
    run = _run("save_freq: 10\ndefault_local_dir: /data/run\nproject_name: p", rest)
    assert run.length == Amount(epochs[name], Unit.EPOCH)
    assert (run.settings.keys() >= {"critic.enable"}) == (name is Trainer.PPO)


# ------------------------------------------------------------------------------------------------ saving


@pytest.mark.parametrize("written", ["save_freq: -1", "save_freq: 0", "total_epochs: 3"])
def test_ppo_never_saves_unless_the_frequency_is_positive(written: str) -> None:
    interval = _run(written).writes[0].interval
    assert (interval.every, interval.at_end, interval.disabled) == (NEVER, False, True)


def test_sft_saves_at_the_end_all_the_same() -> None:
    run = _run("save_freq: -1", "data:\n  x: 1\nmodel:\n  partial_pretrain: m\n")
    assert (run.writes[0].interval.every, run.writes[0].interval.at_end) == (NEVER, True)


def test_after_each_epoch_is_an_interval_of_the_engine_trainer_alone() -> None:
    engine = _launch("trainer.save_freq=after_each_epoch", module="verl.trainer.sft_trainer")
    assert engine.writes[0].interval.every == Amount(1, Unit.EPOCH)
    assert [refusal.setting.name for refusal in _launch("trainer.save_freq=after_each_epoch").refusals] == ["trainer.save_freq"]


def test_null_and_text_stop_the_first_step() -> None:
    for written in ("save_freq: null", "save_freq: '20'"):
        (refusal,) = _run(written).refusals
        assert "TypeError" in refusal.effect


def test_a_frequency_of_zero_divides_by_zero_in_sft() -> None:
    (refusal,) = _launch("trainer.save_freq=0", module="verl.trainer.sft_trainer").refusals
    assert "ZeroDivisionError" in refusal.effect


def test_the_suggested_frequency_comes_before_the_end() -> None:
    assert [value for _, value in _run("save_freq: -1\ntotal_training_steps: 100").writes[0].interval.repair] == [10]
    assert [value for _, value in _run("save_freq: -1").writes[0].interval.repair] == [20]


def test_the_default_directory_is_made_of_project_and_experiment() -> None:
    path = _run("save_freq: 5\nproject_name: math\nexperiment_name: qwen").writes[0].directory.path
    assert str(path) == "checkpoints/math/qwen"
    assert isinstance(path, PathExpr)
    assert path.absolute is False


def test_a_time_in_the_experiment_makes_a_new_directory_at_every_start() -> None:
    for run in (
        _run("save_freq: 5\nexperiment_name: qwen-${now:%Y%m%d}"),
        _launch("trainer.save_freq=5 trainer.experiment_name=q-$(date +%s)"),
    ):
        path = run.writes[0].directory.path
        assert isinstance(path, PathExpr)
        assert any(path.of(Changing))


def test_a_shell_variable_in_a_yaml_is_not_replaced_and_an_environment_resolver_is() -> None:
    for written, expanded in (("$HOME/x", False), ("${oc.env:HOME}/x", True)):
        path = _run(f"save_freq: 5\ndefault_local_dir: {written}").writes[0].directory.path
        assert isinstance(path, PathExpr)
        assert [part.expanded for part in path.parts if hasattr(part, "expanded")] == [expanded]


def test_the_role_that_keeps_the_fewest_decides() -> None:
    kept = "save_freq: 5\nmax_actor_ckpt_to_keep: 3\nmax_critic_ckpt_to_keep: 1"
    assert _run(kept).writes[0].retention.keep == 1
    assert _run(kept, f"{BASE}algorithm:\n  adv_estimator: grpo\n").writes[0].retention.keep == 3
    assert _run("save_freq: 5\nmax_actor_ckpt_to_keep: 0").writes[0].retention.keep is None


def test_up_to_0_7_0_the_old_checkpoint_goes_first() -> None:
    overrides = "trainer.save_freq=5 trainer.max_actor_ckpt_to_keep=1"
    for release, after in (("0.7.0", False), ("0.7.1", True)):
        assert _launch(overrides, release).writes[0].retention.writes_before_deleting is after


def test_contents_without_model_lose_the_weights_of_the_step() -> None:
    name = "actor_rollout_ref.actor.checkpoint.save_contents"
    grpo = "algorithm.adv_estimator=grpo"
    missing = _launch(f"{grpo} {name}=[hf_model]").writes[0].missing
    assert {part.state for part in missing} == {State.MODEL, State.OPTIMIZER, State.SCHEDULER, State.RNG}
    assert missing[0].safe_value == ["model", "optimizer", "extra", "hf_model"]
    assert not _launch(f"{grpo} {name}=[model,optimizer,extra,hf_model]").writes[0].missing


# ------------------------------------------------------------------------------------------------ resuming


@pytest.mark.parametrize(
    ("trainer", "choice"),
    [
        ("save_freq: 5", Choice.NEWEST),
        ("save_freq: 5\nresume_mode: auto", Choice.NEWEST),
        ("save_freq: 5\nresume_mode: disable", Choice.NOTHING),
        ("save_freq: 5\nresume_mode: resume_path\nresume_from_path: /d/global_step_10", Choice.FIXED),
        ("save_freq: 5\nresume_mode: auto\nresume_from_path: /d/global_step_10", Choice.NEWEST),
        ("save_freq: 5\nresume_mode: resume_path", Choice.UNKNOWN),
        ("save_freq: 5\nresume_mode: newest", Choice.UNKNOWN),
    ],
)
def test_what_a_start_of_ppo_takes_up(trainer: str, choice: Choice) -> None:
    assert _run(trainer).reads[0].choice is choice


def test_a_path_in_the_mode_auto_pins_sft_and_means_nothing_to_ppo() -> None:
    trainer = "save_freq: 5\nresume_from_path: /d/global_step_10"
    assert [unused.setting.name for unused in _run(trainer).unused_settings] == ["resume_from_path"]
    sft = _run(trainer, "data:\n  x: 1\nmodel:\n  partial_pretrain: m\n")
    assert (sft.reads[0].choice, sft.unused_settings) == (Choice.FIXED, ())


@pytest.mark.parametrize("path", ["/d/global_step_10/", "/d/global_step_10/actor", "/d", "/d/step_10"])
def test_a_path_at_which_verl_stops_is_no_checkpoint(path: str) -> None:
    (misfit,) = _run(f"save_freq: 5\nresume_mode: resume_path\nresume_from_path: {path}").misfits
    assert "stops" in misfit.why


def test_hdfs_stops_the_start_up_to_0_8_and_in_the_old_loop() -> None:
    hdfs = "trainer.save_freq=5 trainer.default_hdfs_dir=hdfs://x/y"
    assert _launch(hdfs, "0.8.0").refusals
    assert not _launch(hdfs, "0.9.1").refusals
    assert _launch(f"{hdfs} trainer.use_v1=False", "0.9.1").refusals
    assert not _launch(f"{hdfs} trainer.resume_mode=disable", "0.8.0").refusals


@pytest.mark.parametrize(
    ("release", "strategy", "broken"),
    [
        ("0.4.1", "megatron", True),
        ("0.6.1", "megatron", True),
        ("0.6.1", "fsdp", False),
        ("0.7.0", "fsdp2", True),
        ("0.7.1", "megatron", False),
        ("0.8.0", "megatron", True),
        ("0.9.1", "fsdp", True),
    ],
)
def test_asynchronous_saving_is_an_obstacle_where_it_is_broken(release: str, strategy: str, broken: bool) -> None:
    actor = "actor_rollout_ref.actor"
    run = _launch(f"{actor}.strategy={strategy} {actor}.checkpoint.async_save=True trainer.save_freq=5", release)
    assert bool(run.obstacles) is broken


def test_the_sft_trainer_before_0_5_resumes_nothing() -> None:
    run = _launch("trainer.save_freq=5 trainer.total_epochs=3", "0.4.1", "verl.trainer.fsdp_sft_trainer")
    assert run.obstacles
    assert not _launch("trainer.save_freq=5", "0.5.0", "verl.trainer.fsdp_sft_trainer").obstacles


def test_megatron_drops_the_schedule_unless_it_is_told_to_load_it() -> None:
    actor = "actor_rollout_ref.actor"
    base = f"{actor}.strategy=megatron trainer.save_freq=5 {actor}.optim.lr_warmup_steps=10"
    assert [drop.state for drop in _launch(base).reads[0].drops] == [State.SCHEDULER]
    assert not _launch(f"{base} {actor}.optim.use_checkpoint_opt_param_scheduler=True").reads[0].drops


# ------------------------------------------------------------------------------------------------ composition


def test_a_configuration_beside_the_file_is_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("trainer:\n  save_freq: 7\n  resume_mode: disable\n")
    child = "defaults:\n  - base\n  - _self_\nactor_rollout_ref:\n  x: 1\ntrainer:\n  resume_mode: auto\n"
    (run,) = Verl().read(SourceFile(str(tmp_path / "child.yaml"), child.encode()))
    assert run.writes[0].interval.every == Amount(7, Unit.STEP)
    assert run.reads[0].choice is Choice.NEWEST


def test_the_order_in_the_defaults_list_decides(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("trainer:\n  save_freq: 7\n")
    child = "defaults:\n  - _self_\n  - base\nactor_rollout_ref:\n  x: 1\ntrainer:\n  save_freq: 9\n"
    (run,) = Verl().read(SourceFile(str(tmp_path / "child.yaml"), child.encode()))
    assert run.writes[0].interval.every == Amount(7, Unit.STEP)


def test_what_a_missing_configuration_would_say_is_unknown() -> None:
    run = _run("total_epochs: 3", f"defaults:\n  - somewhere_else\n{BASE}")
    assert isinstance(run.writes[0].interval.every, Unknown)
    assert run.reads[0].choice is Choice.UNKNOWN


# ------------------------------------------------------------------------------------------------ command lines


@pytest.mark.parametrize(
    "script",
    [
        "python3 -m verl.trainer.main_generation trainer.nnodes=1",
        "python3 -m verl.model_merger merge --local_dir x",
        "python3 -m verl.trainer.main_eval data.path=x",
        "python3 train.py trainer.save_freq=1",
        "ray start --head",
        "python3 -m verl.trainer.main_ppo trainer.val_only=True",
    ],
)
def test_a_command_that_trains_nothing_with_verl_is_no_run(script: str) -> None:
    command = last_command(script)
    assert read_launch(command.argv, command.span, Release("0.9.1")) is None


def test_a_recipe_is_known_by_its_overrides() -> None:
    run = _launch("actor_rollout_ref.a=1 actor_rollout_ref.b=2 trainer.save_freq=3", module="my.own.main_thing")
    assert run.writes[0].interval.every == Amount(3, Unit.STEP)


def test_an_override_is_changed_in_place_and_a_new_one_goes_behind_the_last() -> None:
    text = "python3 -m verl.trainer.main_ppo trainer.resume_mode=disable a.b=c"
    command = last_command(text)
    run = read_launch(command.argv, command.span, Release("0.9.1"), TextEditor(command))
    assert run is not None
    (setting, value), *_ = run.writes[0].interval.repair
    assert edited(command, setting.set(value)) == f"{text} trainer.save_freq=20"
    assert edited(command, run.reads[0].setting.set("auto")).endswith("trainer.resume_mode=auto a.b=c")


def test_the_configuration_that_a_command_names_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("defaults:\n  - ppo_trainer\n  - _self_\ntrainer:\n  save_freq: 11\n")
    command = last_command("python3 -m verl.trainer.main_ppo --config-path=$PWD --config-name=mine a.b=c")
    run = read_launch(command.argv, command.span, Release("0.9.1"), None, [str(tmp_path)])
    assert run is not None
    assert run.writes[0].interval.every == Amount(11, Unit.STEP)
    elsewhere = read_launch(command.argv, command.span, Release("0.9.1"), None, [])
    assert elsewhere is not None
    assert isinstance(elsewhere.writes[0].interval.every, Unknown)


# ------------------------------------------------------------------------------------------------ tables


def test_no_release_has_two_defaults_for_one_key() -> None:
    for trainer in Trainer:
        for release in RELEASES_READ:
            names = [key.name for key in KEYS[trainer] if key.lifetime.holds(release)]
            assert len(names) == len(set(names)), (trainer, release)


def test_in_every_release_ppo_saves_nothing_by_default() -> None:
    assert {defaults(Trainer.PPO, release)["trainer.save_freq"] for release in RELEASES_READ} == {-1}


def test_megatron_in_0_2_does_not_resume_by_default() -> None:
    assert defaults(Trainer.PPO, "0.2.0", megatron=True)["trainer.resume_mode"] == "disable"
    assert defaults(Trainer.PPO, "0.3.0", megatron=True)["trainer.resume_mode"] == "auto"
