"""``ckptlint resume``: what it prints, its exit codes, the ModelArts recipe, and what that recipe's own script gets wrong.

``python tests/cli/test_resume_command.py`` writes what the commands print now into docs/resume.md.
"""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from checkpoint_files import cut, write_checkpoint
from click.testing import CliRunner, Result

from ckptlint.cli import cli

HEAD = "model_name_or_path: Qwen/Qwen3-4B\nstage: sft\ndo_train: true\nfinetuning_type: full\ndataset: toy\ntemplate: qwen\n"
TEXT = f"{HEAD}output_dir: out\nmax_steps: 5000\nresume_from_checkpoint: null\n"
PINNED = TEXT.replace("null", "out/checkpoint-900")


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli, ["resume", *arguments], env=env, prog_name="ckptlint", catch_exceptions=False)


@pytest.fixture
def config(project: Path) -> Path:
    (project / "run.yaml").write_text(TEXT)
    return project / "run.yaml"


# ------------------------------------------------------------------------------------------------ what it prints


def test_the_plan_says_which_why_and_which_line(config: Path) -> None:
    for step in (500, 900, 1400):
        write_checkpoint("out", step, total=5000)
    cut("out/checkpoint-1400/optimizer.pt", 50)
    result = run("run.yaml")
    assert result.stdout.splitlines() == [
        "run.yaml (LLaMA-Factory): resume from out/checkpoint-900, step 900 (the newest that can be resumed)",
        "  not out/checkpoint-1400: damaged; optimizer.pt is cut short: no ZIP directory",
        "      9 - resume_from_checkpoint: null",
        "      9 + resume_from_checkpoint: out/checkpoint-900",
    ]
    assert config.read_text() == PINNED
    assert run("run.yaml").stdout.splitlines()[2:] == ["  nothing to change"]


def test_the_first_launch_is_said_with_the_place_that_was_looked_at(config: Path) -> None:
    result = run("run.yaml")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "run.yaml (LLaMA-Factory): nothing to resume",
        f"  first-launch: there is no checkpoint in `out` ({config.parent}/out) yet: the run begins at step 0",
        "  nothing to change",
    ]


def test_checkpoints_skipped_for_one_reason_share_a_line(config: Path) -> None:
    for step in (500, 900):
        write_checkpoint("out", step, total=5000, lora=True)
    result = run("run.yaml")
    assert result.exit_code == 1
    assert "  not out/checkpoint-900, out/checkpoint-500: it holds an adapter" in result.stdout
    assert "run.yaml (LLaMA-Factory): do not launch it as things are" in result.stdout


def test_a_dry_run_writes_nothing_and_says_so(config: Path) -> None:
    write_checkpoint("out", 500, total=5000)
    write_checkpoint("out", 900, total=5000)
    result = run("--dry-run", "run.yaml")
    assert result.stdout.endswith("+ resume_from_checkpoint: out/checkpoint-900\n  not written (dry run)\n")
    assert config.read_text() == TEXT


def test_diff_prints_a_patch_that_does_what_resume_does(config: Path) -> None:
    write_checkpoint("out", 900, total=5000)
    patch = run("--diff", "run.yaml").stdout
    assert config.read_text() == TEXT
    subprocess.run(["patch", "-p0", "--quiet"], input=patch, text=True, check=True)
    assert config.read_text() == PINNED
    assert run("--diff", "run.yaml").stdout == ""


def test_json_is_a_list_of_plans_with_exactly_the_promised_fields(config: Path) -> None:
    write_checkpoint("out", 900, total=5000)
    write_checkpoint("out", 1400, total=5000, optimizer=False, scheduler=False)
    (found,) = json.loads(run("--dry-run", "--output-format", "json", "run.yaml").stdout)
    assert list(found) == ["target", "framework", "chosen", "skipped", "edits", "command", "notices"]
    assert found["target"] == "run.yaml"
    assert found["framework"] == "llamafactory"
    assert found["chosen"] == {"path": "out/checkpoint-900", "step": 900}
    assert [(skipped["path"], skipped["step"], skipped["verdict"]) for skipped in found["skipped"]] == [
        ("out/checkpoint-1400", 1400, "weights-only")
    ]
    assert list(found["skipped"][0]) == ["path", "step", "verdict", "reason"]
    assert found["edits"] == [
        {
            "path": "run.yaml",
            "line": 9,
            "before": "resume_from_checkpoint: null",
            "after": "resume_from_checkpoint: out/checkpoint-900",
        }
    ]
    assert found["command"] is None
    assert all(list(notice) == ["name", "message"] for notice in found["notices"])
    assert "weights-only-skipped" in [notice["name"] for notice in found["notices"]]


def test_json_of_a_first_launch_has_no_choice(config: Path) -> None:
    (found,) = json.loads(run("--output-format", "json", "run.yaml").stdout)
    assert (found["chosen"], found["skipped"], found["edits"]) == (None, [], [])


def test_a_patch_and_json_exclude_each_other(config: Path) -> None:
    result = run("--diff", "--output-format", "json", "run.yaml")
    assert result.exit_code == 2
    assert "choose one" in result.stderr


# ------------------------------------------------------------------------------------------------ exit codes


def test_exit_0_go_on_1_do_not_launch_2_an_error(config: Path) -> None:
    write_checkpoint("out", 900, total=5000)
    Path("rm.yaml").write_text(TEXT.replace("sft", "rm").replace("full", "lora"))
    assert run("run.yaml").exit_code == 0
    assert run("rm.yaml").exit_code == 1
    assert run("missing.yaml").exit_code == 2
    assert run().exit_code == 2


def test_an_error_in_one_target_does_not_stop_the_others(config: Path) -> None:
    write_checkpoint("out", 900, total=5000)
    result = run("missing.yaml", "run.yaml")
    assert result.exit_code == 2
    assert result.stderr == "error: missing.yaml: no such file or directory\n"
    assert config.read_text() == PINNED


def test_an_unset_variable_is_named_with_what_to_do(config: Path) -> None:
    config.write_text(TEXT.replace("output_dir: out", "output_dir: ${train_output}"))
    before = config.read_bytes()
    result = run("run.yaml", env={"train_output": ""})
    assert result.exit_code == 2
    assert "train_output, which is not set; set it (export train_output=...)" in result.stderr
    assert config.read_bytes() == before
    assert run("--save-dir", "out", "run.yaml", env={"train_output": ""}).exit_code == 0
    assert config.read_text() == TEXT


def test_where_the_file_cannot_be_written_the_launch_can_be_told_instead(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint("out", 900, total=5000)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        result = run("run.yaml")
    assert result.exit_code == 2
    assert "the file system is read-only" in result.stderr
    assert result.stderr.endswith("add to the launch's command line: resume_from_checkpoint=out/checkpoint-900\n")
    assert config.read_text() == TEXT


def test_colours_stay_out_of_pipes(config: Path) -> None:
    assert "\x1b" not in run("run.yaml").stdout


# ------------------------------------------------------------------------------------------------ the ModelArts recipe

RECIPE = f"""\
### model
{HEAD}
### output
output_dir: ${{train_output}}
save_steps: 500

### train
max_steps: 5000
resume_from_checkpoint: ${{train_output}}
"""


def test_the_modelarts_recipe_survives_first_start_and_restarts(project: Path, tmp_path: Path) -> None:
    output = str(tmp_path / "outputs/train_output_0")
    env = {"train_output": output}
    Path("run.yaml").write_text(RECIPE)

    def recipe(resume: str) -> str:
        return RECIPE.replace("resume_from_checkpoint: ${train_output}", f"resume_from_checkpoint: {resume}").replace(
            "${train_output}", output
        )

    assert run("run.yaml", env=env).exit_code == 0
    assert Path("run.yaml").read_text() == recipe("null")

    write_checkpoint(output, 500, total=5000)
    assert run("run.yaml", env=env).exit_code == 0
    assert Path("run.yaml").read_text() == recipe(f"{output}/checkpoint-500")

    write_checkpoint(output, 1000, total=5000)
    write_checkpoint(output, 1500, total=5000)
    cut(f"{output}/checkpoint-1500/model.safetensors", 30)
    assert run("run.yaml", env=env).exit_code == 0
    assert Path("run.yaml").read_text() == recipe(f"{output}/checkpoint-1000")

    # A platform that lays the code out anew at each start brings the template back.
    Path("run.yaml").write_text(RECIPE)
    assert run("run.yaml", env=env).exit_code == 0
    assert Path("run.yaml").read_text() == recipe(f"{output}/checkpoint-1000")


def test_two_nodes_on_one_file_both_get_through_and_leave_one_pin(project: Path) -> None:
    write_checkpoint("out", 500, total=5000)
    env = {**os.environ, "train_output": "out"}
    for _ in range(3):
        Path("run.yaml").write_text(RECIPE)
        command = [sys.executable, "-m", "ckptlint", "resume", "run.yaml"]
        nodes = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        answers = [node.communicate()[0] for node in nodes]
        assert [node.returncode for node in nodes] == [0, 0]
        assert all("resume from out/checkpoint-500" in answer for answer in answers)
        assert Path("run.yaml").read_text() == RECIPE.replace(
            "resume_from_checkpoint: ${train_output}", "resume_from_checkpoint: out/checkpoint-500"
        ).replace("${train_output}", "out")


# ------------------------------------------------------------------------------------------------ its script's faults

STEPS = (500, 1000, 1500)
NEWEST = "out/checkpoint-1500"
BODY = f"{HEAD}output_dir: out\nmax_steps: 5000\n"
PIN = f"{BODY}resume_from_checkpoint: {NEWEST}\n"


def resumed(text: str | bytes, code: int = 0) -> str:
    """What is left of a file; a second time leaves the same."""
    Path("run.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    for _ in range(2):
        result = run("run.yaml", env={"HOME": str(Path.cwd())})
        assert result.exit_code == code, result.output
        assert result.output, "silent"
        after = Path("run.yaml").read_bytes()
        assert run("run.yaml", env={"HOME": str(Path.cwd())}).exit_code == code
        assert Path("run.yaml").read_bytes() == after
    return after.decode("utf-8", "surrogateescape")


@pytest.fixture
def three(project: Path) -> Path:
    for step in STEPS:
        write_checkpoint("out", step, total=5000)
    return project


@pytest.mark.parametrize(
    ("written", "left"),
    [
        pytest.param("out", NEWEST, id="1 a second run"),
        pytest.param("out  # our mount", f"{NEWEST}  # our mount", id="5 inline comment"),
        pytest.param('"out"  # x', f'"{NEWEST}"  # x', id="6 quote and comment"),
        pytest.param("true", NEWEST, id="8 true"),
        pytest.param("~", NEWEST, id="8 tilde"),
        pytest.param("Null", NEWEST, id="8 Null"),
        pytest.param("~/out", "HOME/out/checkpoint-1500", id="8 home"),
        pytest.param("\n  out", f"\n  {NEWEST}", id="13 value on the next line"),
        pytest.param("!!str out", NEWEST, id="15 tag"),
        pytest.param("out\n  more", NEWEST, id="30 several lines"),
        pytest.param("out/checkpoint-77", NEWEST, id="31 rotated away"),
    ],
)
def test_the_scripts_faulty_values_get_the_right_pin(three: Path, written: str, left: str) -> None:
    left = left.replace("HOME", str(three))
    assert resumed(f"{BODY}resume_from_checkpoint: {written}\n".replace(": \n", ":\n")) == (
        f"{BODY}resume_from_checkpoint: {left}\n".replace(": \n", ":\n")
    )


def test_fault_2_a_first_start_does_not_disable_resuming_for_good(project: Path) -> None:
    first = resumed(f"{BODY}resume_from_checkpoint: out\n")
    assert first == f"{BODY}resume_from_checkpoint: null\n"
    write_checkpoint("out", 500, total=5000)
    assert resumed(first) == f"{BODY}resume_from_checkpoint: out/checkpoint-500\n"


def test_fault_4_a_checkpoint_with_an_empty_file_is_passed_over(three: Path) -> None:
    write_checkpoint("out", 2000, total=5000)
    cut("out/checkpoint-2000/model.safetensors", 0)
    assert resumed(f"{BODY}resume_from_checkpoint: out\n") == PIN


def test_fault_9_to_11_the_words_elsewhere_are_left_alone(three: Path) -> None:
    for other in (
        "eval:\n  resume_from_checkpoint: null\n",
        "a:\n  resume_from_checkpoint: nope\n",
        "notes: |\n  resume_from_checkpoint: put the path here\n",
    ):
        assert resumed(f"{other}{BODY}resume_from_checkpoint: out\n") == other + PIN


def test_fault_12_every_spelling_of_the_key_is_found(three: Path) -> None:
    for key in ('"resume_from_checkpoint": out', "resume_from_checkpoint : out", "? resume_from_checkpoint\n: out"):
        assert resumed(f"{BODY}{key}\n") == f"{BODY}{key.replace(' out', f' {NEWEST}')}\n"
    flow = "{stage: sft, do_train: true, output_dir: out, max_steps: 5000, resume_from_checkpoint: out}\n"
    assert resumed(flow) == flow.replace("checkpoint: out", f"checkpoint: {NEWEST}")


def test_fault_14_anchors_stay_whole(three: Path) -> None:
    anchored = f"{HEAD}output_dir: &o out\nmax_steps: 5000\nresume_from_checkpoint: "
    assert resumed(f"{anchored}*o\n") == f"{anchored}{NEWEST}\n"
    swapped = f"{HEAD}max_steps: 5000\nresume_from_checkpoint: &o out\noutput_dir: *o\n"
    assert resumed(swapped) == swapped.replace("&o out", NEWEST).replace("*o", "&o out")


@pytest.mark.parametrize("name", ["my run #1", "a: b", "it's"])
def test_fault_16_to_18_names_keep_their_meaning(project: Path, name: str) -> None:
    from omegaconf import OmegaConf

    write_checkpoint(name, 5, total=5000)
    quoted = "'" + name.replace("'", "''") + "'"
    after = resumed(f"{HEAD}output_dir: {quoted}\nmax_steps: 5000\nresume_from_checkpoint: {quoted}\n")
    values = OmegaConf.to_container(OmegaConf.create(after))
    assert isinstance(values, dict)
    assert values["resume_from_checkpoint"] == f"{name}/checkpoint-5"
    assert values["output_dir"] == name


def test_fault_19_20_22_line_ends_mark_and_lone_returns_stay(three: Path) -> None:
    text = f'\ufeffresume_from_checkpoint: out\n{BODY}note: "a\rb"\n'.replace("\n", "\r\n")
    assert resumed(text) == text.replace("checkpoint: out", f"checkpoint: {NEWEST}")


def test_fault_21_a_file_in_another_encoding_is_an_error_before_the_launch(three: Path) -> None:
    data = f"# 训练\n{BODY}resume_from_checkpoint: out\n".encode("gbk")
    assert resumed(data, code=2).encode("utf-8", "surrogateescape") == data


def test_fault_23_a_duplicate_key_is_an_error(three: Path) -> None:
    text = f"{BODY}resume_from_checkpoint: null\nresume_from_checkpoint: out\n"
    assert resumed(text, code=2) == text


def test_fault_24_an_absent_key_is_written(three: Path) -> None:
    assert resumed(BODY) == BODY.replace("output_dir: out\n", f"output_dir: out\nresume_from_checkpoint: {NEWEST}\n")


def test_fault_27_a_switch_that_disables_resuming_does_not_matter_to_a_pin(three: Path) -> None:
    text = f"{BODY}overwrite_output_dir: true\nresume_from_checkpoint: null\n"
    assert resumed(text) == text.replace("null", NEWEST)


def test_fault_29_a_stage_that_would_refuse_the_pin_is_left_alone(three: Path) -> None:
    text = f"{BODY}resume_from_checkpoint: null\n".replace("sft", "ppo")
    assert resumed(text) == text


def test_fault_32_another_world_size_is_told(project: Path) -> None:
    write_checkpoint("out", 500, total=5000, world_size=8)
    Path("run.yaml").write_text(BODY)
    assert "world-size-changed: 8 processes wrote" in run("run.yaml", env={"NPROC_PER_NODE": "4"}).stdout


# ------------------------------------------------------------------------------------------------ the page and its samples

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/resume.md"
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.M | re.S)


def replayed(page: str, directory: Path) -> str:
    """The page with what its console blocks really print, in one shell; between the first two the job runs and is killed."""
    (directory / "modelarts.yaml").write_bytes((ROOT / "samples/llama-factory/modelarts.yaml").read_bytes())
    output = directory / "outputs/train_output_0"
    texts, exports = [], {"PATH": os.environ["PATH"], "PYTHON": sys.executable}
    for number, block in enumerate(BLOCK.findall(page)):
        if number == 1:
            for step in (500, 1000, 1500):
                write_checkpoint(output, step, total=6000, lora=True)
            cut(output / "checkpoint-1500/optimizer.pt", 90)
        lines = []
        for command in re.findall(r"^\$ (.*)$", block, re.M):
            lines.append(f"$ {command}\n")
            program, *arguments = command.split()
            if program == "export":
                exports.update([arguments[0].split("=")])
            elif program == "unset":
                del exports[arguments[0]]
            elif program == "git":
                (directory / "modelarts.yaml").write_bytes((ROOT / "samples/llama-factory/modelarts.yaml").read_bytes())
            else:
                lines.append(_printed(arguments, directory, exports))
        texts.append("".join(lines))
    return BLOCK.sub(lambda _: texts.pop(0), page)


def _printed(arguments: list[str], directory: Path, env: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ckptlint", *arguments],
        cwd=directory, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stdout
    return done.stdout.replace(str(directory), "/work")


def test_the_page_shows_what_really_happens(project: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert replayed(page, project) == page


def test_every_file_that_the_page_links_exists() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", PAGE.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (PAGE.parent / target).exists()] == []


@pytest.mark.parametrize(("step", "words"), [(None, "null"), (500, "out/checkpoint-500")])
def test_the_start_script_pins_and_then_launches(config: Path, step: int | None, words: str) -> None:
    config.write_text(TEXT.replace("null", "out"))
    if step is not None:
        write_checkpoint("out", step, total=5000)
    done = start("run.yaml", "seed=1")
    assert done.returncode == 0
    assert done.stdout.endswith(f"resume_from_checkpoint: {words}\ntrain run.yaml seed=1\n")


def test_the_start_script_does_not_launch_what_would_stop_or_lose(config: Path) -> None:
    write_checkpoint("out", 500, total=5000, lora=True)
    assert start("run.yaml").returncode == 1
    assert start("missing.yaml").returncode == 2
    assert "train" not in start("run.yaml").stdout.splitlines()[-1]


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the sample with a launcher that shows what it was given."""
    tools = Path("tools")
    tools.mkdir(exist_ok=True)
    for name, text in (
        ("llamafactory-cli", 'grep resume_from_checkpoint "$2"\necho "$@"\n'),
        ("ckptlint", f'exec "{sys.executable}" -m ckptlint "$@"\n'),
    ):
        (tools / name).write_text(f"#!/bin/sh\n{text}")
        (tools / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tools.absolute()}:{os.environ['PATH']}"}
    script = ROOT / "samples/llama-factory/start.sh"
    return subprocess.run(["bash", str(script), *arguments], env=env, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        PAGE.write_text(replayed(PAGE.read_text(encoding="utf-8"), Path(scratch).resolve()), encoding="utf-8")
