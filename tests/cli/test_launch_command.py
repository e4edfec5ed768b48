"""``ckptlint launch``: what it prints and runs, signals and exit status, trying again, and several nodes on one directory.

``python tests/cli/test_launch_command.py`` writes what the commands print now into docs/launch.md.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from checkpoint_files import cut, write_checkpoint
from click.testing import CliRunner, Result

from ckptlint.cli import cli

HEAD = "model_name_or_path: Qwen/Qwen3-4B\nstage: sft\ndo_train: true\nfinetuning_type: full\ndataset: toy\ntemplate: qwen\n"
TEXT = f"{HEAD}output_dir: out\nmax_steps: 5000\nresume_from_checkpoint: null\n"
HERE = Path(__file__).parents[1]

# A stand-in for the framework's own program: notes what it was given, and does what FAKE says.
FAKE = """#!{python}
import json, os, signal, sys
sys.path.insert(0, {tests!r})
with open("calls.jsonl", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
exec(os.environ.get("FAKE", ""))
"""


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli, ["launch", *arguments], env=env, prog_name="ckptlint", catch_exceptions=False)


def launched(
    arguments: Sequence[str], fake: str = "", env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """A real process, which becomes the job."""
    program = [sys.executable, "-m", "ckptlint", "launch", *arguments]
    return subprocess.run(program, capture_output=True, text=True, env=environment(fake, env), cwd=cwd, check=False)


def environment(fake: str = "", env: dict[str, str] | None = None) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in ("NODE_RANK", "NNODES", "RANK", "WORLD_SIZE")}
    return {**own, "PATH": f"{Path.cwd() / 'bin'}:{os.environ['PATH']}", "FAKE": fake, **(env or {})}


def calls() -> list[list[str]]:
    return [json.loads(line) for line in Path("calls.jsonl").read_text().splitlines()]


@pytest.fixture
def config(project: Path) -> Path:
    (project / "run.yaml").write_text(TEXT)
    program = project / "bin" / "llamafactory-cli"
    program.parent.mkdir()
    program.write_text(FAKE.format(python=sys.executable, tests=str(HERE)))
    program.chmod(0o755)
    return project / "run.yaml"


TRAIN = ("--", "llamafactory-cli", "train", "run.yaml")

# ------------------------------------------------------------------------------------------------ what it prints


def test_a_dry_run_prints_the_plan_and_the_command(config: Path) -> None:
    write_checkpoint("out", 500, total=5000)
    write_checkpoint("out", 900, total=5000)
    result = run("--dry-run", *TRAIN)
    assert result.stdout.splitlines() == [
        "llamafactory-cli train run.yaml (LLaMA-Factory): resume from out/checkpoint-900, step 900 (the newest)",
        "  would run: llamafactory-cli train run.yaml resume_from_checkpoint=out/checkpoint-900",
    ]
    assert config.read_text() == TEXT


def test_the_plan_of_a_dry_run_as_json(config: Path) -> None:
    write_checkpoint("out", 900, total=5000)
    (plan,) = json.loads(run("--dry-run", "--output-format", "json", *TRAIN).stdout)
    assert plan["command"] == ["llamafactory-cli", "train", "run.yaml", "resume_from_checkpoint=out/checkpoint-900"]
    assert plan["chosen"] == {"path": "out/checkpoint-900", "step": 900}
    assert plan["edits"] == []
    assert json.loads(run("--dry-run", "--output-format", "json", "--", "true").stdout) == []


def test_a_step_that_is_asked_for(config: Path) -> None:
    write_checkpoint("out", 500, total=5000)
    write_checkpoint("out", 900, total=5000)
    lines = run("--dry-run", "--step", "500", *TRAIN).stdout.splitlines()
    assert lines[0].endswith("resume from out/checkpoint-500, step 500 (as asked for)")
    assert lines[1] == "  not out/checkpoint-900: step 500 is asked for"
    result = run("--step", "700", *TRAIN)
    assert result.exit_code == 2
    assert result.stderr == "error: there is no checkpoint of step 700; complete are: 900, 500\n"


# ------------------------------------------------------------------------------------------------ what it runs


def test_the_process_becomes_the_job(config: Path) -> None:
    write_checkpoint("out", 900, total=5000)
    done = launched(TRAIN, fake="print(os.getpid()); sys.exit(7)")
    assert done.returncode == 7
    assert "resume from out/checkpoint-900" in done.stderr
    assert calls() == [["train", "run.yaml", "resume_from_checkpoint=out/checkpoint-900"]]


def test_the_job_s_process_is_the_one_that_was_started(config: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ckptlint", "launch", *TRAIN],
        env=environment("print(os.getpid(), flush=True); signal.pause()"),
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == f"{process.pid}\n"
    process.terminate()
    assert process.wait() == -signal.SIGTERM
    process.stdout.close()


def test_what_is_no_training_is_run_as_it_is_with_one_line(project: Path) -> None:
    done = launched(["--", "sh", "-c", "echo hi; exit 3"])
    assert (done.returncode, done.stdout) == (3, "hi\n")
    assert done.stderr == "no training of a known framework: the command is run as it is\n"


def test_a_pipe_that_is_closed_ends_the_job_as_without_us(project: Path) -> None:
    script = f"{sys.executable} -m ckptlint launch -- yes 2>/dev/null | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "y\n141\n"


def test_a_program_that_is_not_there_is_127(project: Path) -> None:
    done = launched(["--", "no-such-program"])
    assert done.returncode == 127
    assert done.stderr.endswith("error: no-such-program: no such file or directory\n")
    assert launched(["--retries", "1", "--", "no-such-program"]).returncode == 127
    (project / "file").write_text("")
    assert launched(["--", "./file"]).returncode == 126


def test_what_would_stop_or_lose_progress_is_not_started(config: Path) -> None:
    config.write_text(TEXT.replace("finetuning_type: full", "finetuning_type: lora"))
    write_checkpoint("out", 900, total=5000)
    done = launched(TRAIN)
    assert done.returncode == 1
    assert "launch-refused" in done.stderr
    assert not Path("calls.jsonl").exists()


# ------------------------------------------------------------------------------------------------ trying again

# Makes another checkpoint 100 steps on at each try, and fails until there are four.
PROGRESS = """
from checkpoint_files import write_checkpoint
n = len(open("calls.jsonl").readlines())
write_checkpoint("out", 100 * n, total=5000)
if n < 4: os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_failed_job_goes_on_from_its_newest_checkpoint(config: Path) -> None:
    done = launched(["--retries", "9", *TRAIN], fake=PROGRESS)
    assert done.returncode == 0
    assert [call[2:] for call in calls()] == [[], *([f"resume_from_checkpoint=out/checkpoint-{n}"] for n in (100, 200, 300))]
    assert done.stderr.count("the job failed (SIGKILL); try") == 3


def test_retries_are_used_up(config: Path) -> None:
    done = launched(["--retries", "2", *TRAIN], fake=PROGRESS)
    assert (done.returncode, len(calls())) == (-signal.SIGKILL, 3)


def test_a_job_that_gets_nowhere_is_given_up(config: Path) -> None:
    write_checkpoint("out", 100, total=5000)
    done = launched(["--retries", "9", *TRAIN], fake="sys.exit(5)")
    assert (done.returncode, len(calls())) == (5, 2)
    assert done.stderr.endswith(
        "the job failed (exit status 5); not started again: two tries have brought no newer checkpoint\n"
    )


def test_a_checkpoint_that_was_lost_is_no_progress(config: Path) -> None:
    write_checkpoint("out", 100, total=5000)
    write_checkpoint("out", 200, total=5000)
    cut("out/checkpoint-200/optimizer.pt", 50)
    fake = "import shutil; shutil.copytree('out/checkpoint-100', 'out/checkpoint-50', dirs_exist_ok=True); sys.exit(5)"
    assert launched(["--retries", "9", *TRAIN], fake=fake).returncode == 5
    assert len(calls()) == 2


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_job_that_is_asked_to_end_is_not_started_again(config: Path, name: str) -> None:
    wait = "signal.signal(signal.SIGINT, signal.SIG_DFL); print('up', os.getpgrp(), flush=True); signal.pause()"
    process = subprocess.Popen(
        [sys.executable, "-m", "ckptlint", "launch", "--retries", "9", *TRAIN],
        env=environment(wait), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    group = int(process.stdout.readline().split()[1])
    assert group != process.pid
    process.send_signal(getattr(signal, name))
    assert process.wait() == -getattr(signal, name)
    assert len(calls()) == 1
    process.stdout.close()


def test_a_signal_that_asks_to_save_reaches_the_job(config: Path) -> None:
    wait = "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0)); print('up', flush=True); signal.pause()"
    process = subprocess.Popen(
        [sys.executable, "-m", "ckptlint", "launch", "--retries", "9", *TRAIN],
        env=environment(wait), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGUSR1)
    assert process.wait() == 0
    process.stdout.close()


# ------------------------------------------------------------------------------------------------ several nodes


def test_processes_of_several_nodes_start_from_one_checkpoint(config: Path) -> None:
    """While they meet, the newest checkpoint is being damaged and another one comes up: they agree all the same."""
    for step in (100, 200, 300):
        write_checkpoint("out", step, total=5000)
    nodes = [
        subprocess.Popen(
            [sys.executable, "-m", "ckptlint", "launch", *TRAIN],
            env=environment(env={"NODE_RANK": str(rank), "NNODES": "6"}), stderr=subprocess.PIPE, text=True,
        )
        for rank in (5, 3, 0, 1, 4, 2)
    ]  # fmt: skip
    cut("out/checkpoint-300/optimizer.pt", 50)
    write_checkpoint("out", 400, total=5000)
    said = [node.communicate()[1] for node in nodes]
    assert [node.returncode for node in nodes] == [0] * 6, said
    assert len({tuple(call) for call in calls()}) == 1
    assert len(calls()) == 6


def test_a_node_alone_says_what_it_waits_for(config: Path) -> None:
    result = run("--decision-timeout", "0.3", "--node-rank", "1", "--nodes", "2", *TRAIN)
    assert result.exit_code == 2
    assert "node 0 has published no decision for node 1" in result.stderr


# ------------------------------------------------------------------------------------------------ the page

ROOT = HERE.parent
PAGE = ROOT / "docs" / "launch.md"
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.M | re.S)


def replayed(page: str, directory: Path) -> str:
    """The page with what its commands really print; between the first block and the second the job runs and is killed."""
    (directory / "run.yaml").write_bytes((ROOT / "samples/launch/run.yaml").read_bytes())
    texts = []
    for number, block in enumerate(BLOCK.findall(page)):
        if number == 1:
            for step in (500, 1000, 1500):
                write_checkpoint(directory / "out", step, total=6000, lora=True)
            cut(directory / "out/checkpoint-1500/optimizer.pt", 90)
        lines = []
        for command in re.findall(r"^\$ (.*)$", block, re.M):
            program = [sys.executable, "-m", "ckptlint", *shlex.split(command)[1:]]
            done = subprocess.run(
                program, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            lines.append(f"$ {command}\n{done.stdout.replace(str(directory), '/work')}")
        texts.append("".join(lines))
    return BLOCK.sub(lambda _: texts.pop(0), page)


def test_the_page_shows_what_really_happens(project: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert replayed(page, project) == page


@pytest.mark.parametrize("name", ["runwhere.yaml", "modelarts.sh"])
def test_the_page_shows_the_samples_whole(name: str) -> None:
    assert f"\n{(ROOT / 'samples/launch' / name).read_text()}```\n" in PAGE.read_text(encoding="utf-8")


def sample_command(project: Path) -> str:
    """The command of the RunWhere sample, with its mount below the project."""
    job = yaml.safe_load((ROOT / "samples/launch/runwhere.yaml").read_text())
    return str(job["environment"]["command"]).replace("/ckpts", f"{project}/ckpts")


def in_shell(command: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    (Path("bin") / "ckptlint").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ckptlint "$@"\n')
    (Path("bin") / "ckptlint").chmod(0o755)
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment(env=env), check=False)


def test_the_runwhere_job_resumes_what_its_mount_holds(config: Path, project: Path) -> None:
    config.write_bytes((ROOT / "samples/launch/run.yaml").read_bytes())
    output = f"output_dir={project}/ckpts/durable/tickets"
    assert in_shell(sample_command(project)).returncode == 0
    write_checkpoint("ckpts/durable/tickets", 500, total=6000, lora=True)
    assert in_shell(sample_command(project)).returncode == 0
    resume = f"resume_from_checkpoint={project}/ckpts/durable/tickets/checkpoint-500"
    assert calls() == [["train", "run.yaml", output], ["train", "run.yaml", output, resume]]


def test_the_modelarts_nodes_meet_in_the_training_output(config: Path, project: Path) -> None:
    config.write_bytes((ROOT / "samples/launch/run.yaml").read_bytes())
    write_checkpoint("output_0", 500, total=6000, lora=True)
    (Path("bin") / "ckptlint").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ckptlint "$@"\n')
    (Path("bin") / "ckptlint").chmod(0o755)
    nodes = [
        subprocess.Popen(
            ["bash", str(ROOT / "samples/launch/modelarts.sh")],
            env=environment(env={"train_output": "output_0", "VC_TASK_INDEX": str(rank), "MA_NUM_HOSTS": "2"}),
            stderr=subprocess.PIPE, text=True,
        )
        for rank in (1, 0)
    ]  # fmt: skip
    said = [node.communicate()[1] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    assert calls() == [["train", "run.yaml", "output_dir=output_0", "resume_from_checkpoint=output_0/checkpoint-500"]] * 2


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        PAGE.write_text(replayed(PAGE.read_text(encoding="utf-8"), Path(scratch).resolve()), encoding="utf-8")
