"""Scripts in, runs out: whose launch it is, which files take part, and what the script does to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptlint.frameworks.launch_scripts import LaunchScripts
from ckptlint.run import NEVER, Amount, Choice, PathExpr, Run, Unit, Unknown
from ckptlint.source.file import SourceFile
from ckptlint.source.text import SourceError

MEGATRON = "pretrain_gpt.py --train-iters 2000 --global-batch-size 8 --micro-batch-size 1"


def runs(script: str, path: str = "run.sh") -> tuple[Run, ...]:
    reader = LaunchScripts()
    file = SourceFile(path, script.encode())
    return reader.read(file) if reader.mentions(file.data) else ()


def one(script: str) -> Run:
    (run,) = runs(script)
    return run


def saved(run: Run) -> str:
    path = run.writes[0].directory.path
    assert isinstance(path, PathExpr)
    return str(path)


# ------------------------------------------------------------------------------------------------ whose launch


@pytest.mark.parametrize(
    ("command", "framework"),
    [
        ("python3 -m verl.trainer.main_ppo trainer.save_freq=20", "verl"),
        ("ray job submit --no-wait -- python3 -m verl.trainer.main_ppo trainer.save_freq=20", "verl"),
        (f"torchrun --nproc_per_node 8 {MEGATRON} --save a --save-interval 5", "megatron"),
        (f"msrun --worker_num 8 {MEGATRON} --stage sft --tokenizer-type PretrainedFromHF", "mindspeed-llm"),
        (f"torchrun {MEGATRON.replace('gpt', 'sora')} --mm-model m.json --mm-data d.json", "mindspeed-mm"),
        ("torchrun train_fsdp2.py x.yaml --training.output_dir out", "mindspeed-fsdp2"),
        ("llamafactory-cli train --stage sft --do_train --finetuning_type lora --output_dir o", "llamafactory"),
        ("accelerate launch src/train_bash.py --stage sft --do_train --finetuning_type lora --output_dir o", "llamafactory"),
        ("swift sft --model m --output_dir o", "ms-swift"),
        ("megatron sft --model m --output_dir o", "megatron-swift"),
        (
            "torchrun run_clm.py --do_train --output_dir o --save_steps 5 --save_strategy steps --learning_rate 1e-4"
            " --per_device_train_batch_size 1 --bf16",
            "transformers",
        ),
    ],
)
def test_a_launch_belongs_to_the_framework_that_its_program_and_options_tell(command: str, framework: str) -> None:
    assert one(command).framework == framework


@pytest.mark.parametrize(
    "command",
    [
        "python3 -m verl.trainer.main_generation trainer.nnodes=1 data.path=x",
        "python3 -m verl.trainer.main_eval data.path=x",
        "python3 -m verl.model_merger merge --backend fsdp",
        "torchrun convert_ckpt.py --load a --save b --tensor-model-parallel-size 2 --micro-batch-size 1",
        "torchrun evaluation.py --load a --tensor-model-parallel-size 2 --micro-batch-size 1",
        "torchrun inference.py --load a --tensor-model-parallel-size 2 --micro-batch-size 1",
        "torchrun preprocess_data.py --input a --output-prefix train --save-interval 5",
        f"torchrun {MEGATRON} --skip-train --load a",
        "llamafactory-cli export x.yaml",
        "llamafactory-cli train --stage sft --do_eval --finetuning_type lora --output_dir o",
        "swift infer --model m --output_dir o",
        "swift export --model m --output_dir o",
        "python run_glue.py --do_eval --output_dir o --save_strategy no --learning_rate 1 --bf16 --max_steps 1 --report_to x",
        "python train.py --output_dir o --lr 1",
        "python train_text_to_image.py --output_dir o --checkpointing_steps 5 --learning_rate 1 --max_steps 5 --report_to x",
        "python run_clm_no_trainer.py --output_dir o --save_strategy no --learning_rate 1 --bf16 --max_steps 1 --report_to x",
        "echo torchrun train_fsdp2.py x.yaml",
        "cat > run.sh <<EOF\npython3 -m verl.trainer.main_ppo trainer.save_freq=20\nEOF",
        "# python3 -m verl.trainer.main_ppo trainer.save_freq=20",
    ],
)
def test_a_script_that_launches_no_training_describes_no_run(command: str) -> None:
    assert runs(command) == ()


def test_an_empty_script_and_one_that_is_no_shell_are_read_without_a_word() -> None:
    assert runs("") == ()
    assert runs("\x00\x01 train python\n((") == ()
    assert runs("if then python train_nothing; trainer.save_freq=1") == ()


def test_a_launch_inside_a_string_is_a_launch() -> None:
    script = 'CMD="python3 -m verl.trainer.main_ppo trainer.save_freq=20 trainer.default_local_dir=/data/run"\n'
    for line in ("eval $CMD", 'bash -c "$CMD"', 'srun bash -c "$CMD"', "$CMD"):
        assert saved(one(script + line + "\n")) == "/data/run"


def test_a_run_stands_at_the_first_word_of_its_launch() -> None:
    run = one("\n\nOUT=/data/run \\\n  torchrun \\\n  " + MEGATRON + " --save /a --save-interval 5\n")
    assert run.where.line == 4
    assert run.where.text == "torchrun"


def test_a_script_that_bash_does_not_read_up_to_its_launch_is_refused() -> None:
    with pytest.raises(SourceError, match="bash stops reading here"):
        runs(f"MASTER_ADDR=<ip>\ntorchrun {MEGATRON}\n")
    assert runs("MASTER_ADDR=<ip>\ntorchrun evaluate.py\n# torchrun train.py\n") == ()


def test_trl_resumes_nothing_whatever_its_options_say(project: Path) -> None:
    (project / "a.yaml").write_text("model_name_or_path: m\ndataset_name: d\noutput_dir: /data/yaml\nsave_steps: 50\n")
    run = one("trl sft --config a.yaml --resume_from_checkpoint /data/yaml/checkpoint-50\n")
    assert (run.framework, saved(run), run.writes[0].interval.every) == ("trl", "/data/yaml", Amount(50, Unit.STEP))
    assert run.reads[0].choice is Choice.NOTHING
    assert [unused.setting.name for unused in run.unused_settings] == ["--resume_from_checkpoint"]
    assert runs("trl sft --config missing.yaml\n") == ()


def test_modelarts_output_is_a_directory_that_the_environment_names() -> None:
    run = one(f"torchrun {MEGATRON} --save-interval 1000 --save ${{train_output}} --load ${{train_output}}\n")
    assert run.reads[0].choice is Choice.NEWEST
    path = run.writes[0].directory.path
    assert isinstance(path, PathExpr)
    assert path.expand({"train_output": "/home/ma-user/modelarts/outputs/train_output_0"}).startswith("/home/ma-user")


# ------------------------------------------------------------------------------------------------ values


def test_a_value_is_followed_through_variables_to_where_it_is_written() -> None:
    script = f'STEPS=500\nARGS="\n  --save-interval ${{STEPS}} \\\n"\ntorchrun {MEGATRON} --save /a $ARGS\n'
    interval = one(script).writes[0].interval
    assert interval.every == Amount(500, Unit.STEP)
    assert interval.setting.span is not None
    assert interval.setting.span.line == 1


def test_a_path_of_the_environment_keeps_its_variable_and_default() -> None:
    run = one(f"torchrun {MEGATRON} --save ${{OUT:-/data}}/$NAME --load ${{OUT:-/data}}/$NAME --save-interval 5")
    assert saved(run) == "${OUT:-/data}/$NAME"
    assert run.reads[0].choice is Choice.NEWEST


def test_the_processes_of_a_launch_are_those_of_its_run() -> None:
    assert one(f"torchrun --nproc_per_node 8 --nnodes 2 {MEGATRON} --save /a --save-interval 5").world_size == 16


def test_arguments_that_only_the_launch_knows_make_what_is_not_written_unknown() -> None:
    assert runs("swift sft --model m $(cat more) --output_dir o") == ()
    (run,) = runs(f"torchrun {MEGATRON} $(cat more)")
    assert isinstance(run.writes[0].interval.every, Unknown)
    assert one("swift sft --model m --output_dir o $@").framework == "ms-swift"


def test_the_value_of_an_option_may_be_unknown_without_hiding_others() -> None:
    assert one("swift sft --model m --max_length $(expr 1 + 2) --output_dir o").framework == "ms-swift"
    run = one(f"torchrun {MEGATRON} --lr $(cat lr.txt) --save /a --save-interval 5")
    assert run.reads[0].choice is Choice.NOTHING


@pytest.mark.parametrize(
    "written", ["--save_only_model", "--save_only_model true", "--save_only_model=True", "--save-only-model"]
)
def test_a_truth_value_may_stand_alone_on_a_command_line(written: str) -> None:
    run = one(f"llamafactory-cli train --stage sft --do_train --finetuning_type lora --output_dir o {written}")
    assert run.writes[0].missing


def test_a_switch_that_is_on_by_default_is_written_out_to_switch_it_off() -> None:
    run = one("swift sft --model m --output_dir o --save_steps 5 --add_version true")
    edits = run.settings["add_version"].set(False)
    assert [(edit.span.text, edit.replacement) for edit in edits] == [("true", "false")]


# ------------------------------------------------------------------------------------------------ files that it names


def test_a_yaml_and_the_arguments_behind_it_are_one_run_and_the_arguments_win(project: Path) -> None:
    (project / "conf").mkdir()
    (project / "conf" / "a.yaml").write_text(
        "stage: sft\ndo_train: true\nfinetuning_type: lora\noutput_dir: /data/yaml\nsave_steps: 0\noverwrite_output_dir: true\n"
    )
    run = one("llamafactory-cli train conf/a.yaml save_steps=50 resume_from_checkpoint=/data/x/checkpoint-5\n")
    assert saved(run) == "/data/yaml"
    directory = run.writes[0].directory.setting.span
    assert directory is not None
    assert (directory.path, directory.line) == ("conf/a.yaml", 4)
    interval = run.writes[0].interval
    assert interval.every == Amount(50, Unit.STEP)
    assert interval.setting.span is not None
    assert interval.setting.span.path == "run.sh"
    assert str(interval.setting) == "save_steps=50"
    assert run.reads[0].choice is Choice.FIXED


@pytest.mark.parametrize("place", ["scripts/a.yaml", "conf/a.yaml", "a.yaml"])
def test_a_file_is_looked_for_beside_the_script_in_the_working_directory_and_up_to_the_repository(
    project: Path, place: str
) -> None:
    for name in ("scripts", "conf"):
        (project / name).mkdir()
    (project / place).write_text("stage: sft\ndo_train: true\nfinetuning_type: lora\noutput_dir: /data/run\n")
    named = "conf/a.yaml" if place.startswith("conf") else "a.yaml"
    (run,) = runs(f"llamafactory-cli train {named}\n", "scripts/run.sh")
    assert run.where.path == "scripts/run.sh"
    assert run.writes[0].directory.setting.span is not None
    assert run.writes[0].directory.setting.span.path == place


def test_a_file_that_is_not_there_leaves_the_launch_unknown(project: Path) -> None:
    assert not list(project.glob("*.yaml"))
    assert runs("llamafactory-cli train a.yaml\n") == ()
    assert runs("axolotl train a.yaml\n") == ()
    assert runs("swift sft a.yaml\n") == ()


def test_a_yaml_of_the_new_trainer_is_read_as_such_where_the_environment_asks_for_it(project: Path) -> None:
    (project / "a.yaml").write_text(
        "model: m\nmodel_class: llm\ntrain_dataset: d.yaml\noutput_dir: /data/run\nsave_steps: 5\nmax_steps: 500\n"
    )
    assert one("USE_V1=1 llamafactory-cli train a.yaml\n").framework == "llamafactory-v1"
    assert runs("llamafactory-cli train a.yaml\n") == ()


def test_swift_and_axolotl_take_options_over_their_files(project: Path) -> None:
    (project / "s.yaml").write_text("model: m\ndataset: d\nsave_steps: 5\noutput_dir: /data/yaml\nadd_version: false\n")
    (project / "a.yaml").write_text(
        "base_model: m\ndatasets:\n  - path: d\n    type: alpaca\nmicro_batch_size: 1\nnum_epochs: 1\nlearning_rate: 1e-4\n"
        "sequence_len: 512\nadapter: lora\nval_set_size: 0\ngradient_accumulation_steps: 1\n"
        "output_dir: /data/yaml\nsave_steps: 5\n"
    )
    assert saved(one("swift sft s.yaml --output_dir /data/cli\n")) == "/data/cli"
    assert saved(one("swift sft --config s.yaml\n")) == "/data/yaml"
    assert saved(one("axolotl train a.yaml --output-dir /data/cli\n")) == "/data/cli"
    assert saved(one("accelerate launch -m axolotl.cli.train a.yaml\n")) == "/data/yaml"


def test_mindspeeds_yamls_are_read_through_the_script_that_names_them(project: Path) -> None:
    (project / "configs").mkdir()
    (project / "configs" / "grpo.yaml").write_text(
        "megatron_training:\n  train_iters: 100\n  save_interval: 10\nactor_config:\n"
        "  save: ./ckpt\n  load: ./base\nrl_config: {}\n"
    )
    (project / "mm.yaml").write_text(
        "parallel: {fsdp_plan: {}}\nmodel: {}\ntraining:\n  save: /data/yaml\n  save_interval: 5\n  train_iters: 100\n"
    )
    (project / "gpt.yaml").write_text(
        "MM_TOOL_PATH: x\ngpt_args:\n  save: /data/yaml\n  save_interval: 5\n  train_iters: 100\n"
    )
    run = one("YAML=${1:-grpo}\npython cli/train_grpo.py --config-name $YAML megatron_training.save_interval=50 | tee x\n")
    assert (run.framework, run.writes[0].interval.every) == ("mindspeed-rl", Amount(50, Unit.STEP))
    run = one("config=mm.yaml\ntorchrun mindspeed_mm/fsdp/train/trainer.py ${config} training.save=/data/cli\n")
    assert saved(run) == "/data/cli"
    assert saved(one("torchrun pretrain_transformers.py gpt.yaml --save /data/cli\n")) == "/data/yaml"


def test_hydras_configuration_of_the_project_stands_below_the_overrides(project: Path) -> None:
    (project / "config").mkdir()
    (project / "config" / "mine.yaml").write_text(
        "defaults:\n  - ppo_trainer\n  - _self_\ntrainer:\n  save_freq: 5\n  default_local_dir: /data/yaml\n"
    )
    script = "python3 -m verl.trainer.main_ppo --config-path=config --config-name='mine' trainer.save_freq=7\n"
    run = one(script)
    assert (saved(run), run.writes[0].interval.every) == ("/data/yaml", Amount(7, Unit.STEP))


def test_a_sourced_neighbour_defines_what_the_launch_uses(project: Path) -> None:
    (project / "env.sh").write_text("SAVE_DIR=/data/run\n")
    assert saved(one(f"source ./env.sh\ntorchrun {MEGATRON} --save $SAVE_DIR --save-interval 5\n")) == "/data/run"


# ------------------------------------------------------------------------------------------------ several ways


def test_ways_to_one_launch_are_one_run_that_is_first_as_the_script_is_shipped() -> None:
    script = f'DIR=/data/a\nif [ "$FAST" = 1 ]; then\n  DIR=/data/b\nfi\ntorchrun {MEGATRON} --save $DIR --save-interval 5\n'
    run = one(script)
    assert saved(run) == "/data/a"
    assert [saved(way) for way in run.ways] == ["/data/b"]


def test_launches_at_different_places_are_runs_of_their_own() -> None:
    script = f'if [ "$FAST" = 1 ]; then\n  torchrun {MEGATRON}\nelse\n  torchrun {MEGATRON} --save /a --save-interval 5\nfi\n'
    first, second = runs(script)
    assert first.writes[0].interval.every is NEVER
    assert second.writes[0].interval.every == Amount(5, Unit.STEP)
