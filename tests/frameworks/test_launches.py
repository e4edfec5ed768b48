"""From commands to launches: program, arguments, processes."""

from __future__ import annotations

import pytest

from ckptlint.frameworks.launches import Launch, Tool, file_name, launches, named_file, option
from ckptlint.source.shell import read
from ckptlint.source.text import SourceText


def all_of(script: str) -> list[Launch]:
    return list(launches(read(SourceText("run.sh", script))))


def one(script: str) -> Launch:
    (launch,) = all_of(script)
    return launch


def words(launch: Launch) -> list[str]:
    return [argument.template() for argument in launch.arguments]


@pytest.mark.parametrize(
    ("command", "launcher", "processes"),
    [
        ("python train.py --a 1", "python", 1),
        ("python3.11 -u train.py --a 1", "python", 1),
        ("/opt/conda/bin/python train.py --a 1", "python", 1),
        ("torchrun train.py --a 1", "torchrun", 1),
        ("torchrun --nproc_per_node 8 train.py --a 1", "torchrun", 8),
        ("torchrun --nproc-per-node=8 --nnodes=4 train.py --a 1", "torchrun", 32),
        ("torchrun --nnodes 2:4 --nproc_per_node 8 train.py --a 1", "torchrun", None),
        ("torchrun --nproc_per_node gpu train.py --a 1", "torchrun", None),
        ("torchrun --nproc_per_node $N train.py --a 1", "torchrun", None),
        ("python -m torch.distributed.run --nproc_per_node 4 train.py --a 1", "torchrun", 4),
        ("python -m torch.distributed.launch --nproc_per_node 4 --nnodes 2 train.py --a 1", "torchrun", 8),
        ("msrun --worker_num 16 --local_worker_num 8 train.py --a 1", "msrun", 16),
        ("deepspeed --num_gpus 4 --num_nodes 2 train.py --a 1", "deepspeed", 8),
        ("deepspeed --hostfile hosts train.py --a 1", "deepspeed", None),
        ("accelerate launch --num_processes 6 --config_file c.yaml train.py --a 1", "accelerate", 6),
        ("python -m accelerate.commands.launch --num_processes 6 train.py --a 1", "accelerate", 6),
        ("mpirun -np 8 -x PATH --map-by slot -mca btl tcp python train.py --a 1", "mpirun", 8),
        ("horovodrun -np 4 -H a:2,b:2 python train.py --a 1", "horovodrun", 4),
        ("nohup torchrun --nproc_per_node 2 train.py --a 1 > log 2>&1 &", "torchrun", 2),
        ("uv run --extra gpu torchrun --nproc_per_node 2 train.py --a 1", "torchrun", 2),
        ("conda run -n env python train.py --a 1", "python", 1),
        ("nsys profile -o x python train.py --a 1", "python", 1),
        ('sh -c "torchrun --nproc_per_node 2 train.py --a 1"', "torchrun", 2),
        ('N=8; CMD="torchrun --nproc_per_node $N"; $CMD train.py --a 1', "torchrun", 8),
    ],
)
def test_a_launcher_gives_its_program_its_arguments_and_the_number_of_processes(
    command: str, launcher: str, processes: int | None
) -> None:
    launch = one(command)
    assert (launch.program, launch.launcher, launch.world_size) == ("train.py", launcher, processes)
    assert words(launch) == ["--a", "1"]


@pytest.mark.parametrize(
    ("command", "tool", "arguments"),
    [
        ("llamafactory-cli train x.yaml a=b", Tool("llamafactory-cli", "train"), ["x.yaml", "a=b"]),
        ("lmf train x.yaml", Tool("llamafactory-cli", "train"), ["x.yaml"]),
        ("torchrun src/llamafactory/launcher.py x.yaml", Tool("llamafactory-cli", "train"), ["x.yaml"]),
        ("swift sft --model m", Tool("swift", "sft"), ["--model", "m"]),
        ("swift rlhf --rlhf_type dpo", Tool("swift", "rlhf"), ["--rlhf_type", "dpo"]),
        ("python -m swift.cli.sft --model m", Tool("swift", "sft"), ["--model", "m"]),
        ("torchrun $ROOT/swift/cli/pt.py --model m", Tool("swift", "pt"), ["--model", "m"]),
        ("megatron sft --model m", Tool("megatron", "sft"), ["--model", "m"]),
        ("python -m swift.cli._megatron.sft --model m", Tool("megatron", "sft"), ["--model", "m"]),
        ("axolotl train x.yml --debug", Tool("axolotl", "train"), ["x.yml", "--debug"]),
        ("accelerate launch -m axolotl.cli.train x.yml", Tool("axolotl", "train"), ["x.yml"]),
        ("trl sft --config x.yaml", Tool("trl", "sft"), ["--config", "x.yaml"]),
        ("python -m trl.scripts.dpo --output_dir o", Tool("trl", "dpo"), ["--output_dir", "o"]),
    ],
)
def test_a_tool_is_known_by_any_of_its_names(command: str, tool: Tool, arguments: list[str]) -> None:
    launch = one(command)
    assert launch.tool == tool
    assert words(launch) == arguments


@pytest.mark.parametrize(
    "command",
    [
        "llamafactory-cli export x.yaml",
        "llamafactory-cli chat x.yaml",
        "swift infer --model m",
        "swift export --model m",
        "megatron export --model m",
        "axolotl preprocess x.yml",
        "axolotl merge-lora x.yml",
        "trl vllm-serve --model m",
        "trl env",
        "python -c 'import torch'",
        "pip install torch",
        "echo torchrun train.py",
        "X=$(python count.py)",
        "uv pip install x",
        "swift",
    ],
)
def test_what_starts_no_training_is_no_launch(command: str) -> None:
    assert all_of(command) == []


def test_several_launches_come_in_order() -> None:
    script = "python a.py\nif [ $X ]; then\n python b.py\nelse\n python c.py\nfi\n"
    assert [launch.program for launch in all_of(script)] == ["a.py", "b.py", "c.py"]


def test_tools_that_start_torchrun_themselves_take_the_number_of_processes_from_the_environment() -> None:
    assert one("NPROC_PER_NODE=4 NNODES=2 swift sft --model m").world_size == 8
    assert one("export NPROC_PER_NODE=4\nswift sft --model m").world_size == 4
    assert one("swift sft --model m").world_size is None


def test_a_switch_in_the_environment_is_seen_by_the_launch() -> None:
    assert one("USE_V1=1 llamafactory-cli train x.yaml").is_set("USE_V1")
    assert one("export USE_V1=true\nllamafactory-cli train x.yaml").is_set("USE_V1")
    assert not one("USE_V1=0 llamafactory-cli train x.yaml").is_set("USE_V1")
    assert not one("USE_V1=1\nllamafactory-cli train x.yaml").is_set("USE_V1")


def test_a_file_is_named_by_the_first_argument_or_an_option() -> None:
    launch = one("D=conf; llamafactory-cli train $D/x.yaml --config=a.yaml --config $HOME/b.yaml")
    first = named_file(launch, (".yaml",))
    assert first is not None
    assert file_name(first) == "conf/x.yaml"
    assert named_file(launch, (".json",)) is None
    last = option(launch, "--config")
    assert last is not None
    assert file_name(last) == "b.yaml"
    assert option(launch, "--other") is None
