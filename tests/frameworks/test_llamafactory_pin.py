"""What `ckptlint resume` writes into a LLaMA-Factory file, case by case."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from zipfile import is_zipfile

import pytest
from checkpoint_files import LONG_AGO, cut, safetensors_bytes, torch_bytes, write_checkpoint
from omegaconf import OmegaConf

from ckptlint.resume import CannotPlan, Plan, carry_out, plan
from ckptlint.source.text import SourceError

OUT = "saves/run"
HEAD = "model_name_or_path: Qwen/Qwen3-4B\nstage: sft\ndo_train: true\nfinetuning_type: full\ndataset: toy\ntemplate: qwen\n"


class Done(NamedTuple):
    """The plan that was carried out, and the file afterwards."""

    plan: Plan
    text: str

    @property
    def value(self) -> object:
        """What LLaMA-Factory's loader reads as resume value; "absent" where there is none."""
        return OmegaConf.to_container(OmegaConf.create(self.text)).get("resume_from_checkpoint", "absent")

    def told(self, name: str) -> str:
        return " ".join(notice.message for notice in self.plan.notices if notice.name == name)


def resumed(text: str | bytes, environment: Mapping[str, str] | None = None, *, save_dir: str | None = None) -> Done:
    """Write `run.yaml`, plan, carry out; whatever the case, a second time changes nothing."""
    config = Path("run.yaml")
    config.write_bytes(text if isinstance(text, bytes) else text.encode())

    def decide() -> Plan:
        return plan("run.yaml", environment or {}, save_dir=save_dir)

    done = carry_out(decide(), decide)
    after = config.read_bytes()
    assert after == done.after
    again = decide()
    assert again.after == after, "the second time changes something"
    assert again.chosen_path == done.chosen_path or (again.chosen is not None and done.chosen is not None)
    assert again.refused == done.refused
    return Done(done, after.decode())


def run(resume: str | None = None, *, output_dir: str = OUT, head: str = HEAD, more: str = "") -> str:
    """A training file; ``resume`` is the text behind the key, None: the key is not there."""
    key = "" if resume is None else f"resume_from_checkpoint:{' ' if resume else ''}{resume}\n"
    return f"{head}output_dir: {output_dir}\n{more}{key}save_steps: 500\nmax_steps: 5000\n"


def whole(*steps: int, directory: str = OUT, **more: object) -> None:
    for step in steps:
        write_checkpoint(directory, step, total=5000, **more)


def damaged(step: int, directory: str = OUT) -> None:
    whole(step, directory=directory)
    cut(f"{directory}/checkpoint-{step}/optimizer.pt", 100)


# ------------------------------------------------------------------------------------------------ how the value is written


def test_a_pin_moves_on_when_a_newer_checkpoint_is_complete(project: Path) -> None:
    whole(500, 900)
    done = resumed(run(f"{OUT}/checkpoint-500"))
    assert done.text == run(f"{OUT}/checkpoint-900")
    assert done.plan.chosen is not None
    assert done.plan.chosen.step == 900


def test_a_pin_stays_while_nothing_newer_is_complete(project: Path) -> None:
    whole(500)
    assert resumed(run(f"{OUT}/checkpoint-500")).text == run(f"{OUT}/checkpoint-500")


def test_numbers_are_compared_as_numbers(project: Path) -> None:
    whole(900, 1000)
    assert resumed(run()).value == f"{OUT}/checkpoint-1000"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("null", "PIN"),
        ("~", "PIN"),
        ("", "PIN"),
        ("Null", "PIN"),
        ("true", "PIN"),
        ("True", "PIN"),
        ("yes", "PIN"),
        ("false", "PIN"),
        ('""', '"PIN"'),
        ("''", "'PIN'"),
        ("auto", "PIN"),
        ("latest", "PIN"),
        ("1000", "PIN"),
        ('"1000"', '"PIN"'),
        (OUT, "PIN"),
        (f"{OUT}/", "PIN"),
        (f"./{OUT}", "./PIN"),
        (f'"{OUT}"  # our mount', '"PIN"  # our mount'),
        (f"{OUT}  # our mount", "PIN  # our mount"),
        (f"'{OUT}/checkpoint-500'\t# old", "'PIN'\t# old"),
        ("null # later", "PIN # later"),
        (f"\n  {OUT}", "\n  PIN"),
        (f"!!str {OUT}", "PIN"),
        (f">-\n  {OUT}/checkpoint-500", "PIN"),
        (f"{OUT}\n  more", "PIN"),
        (f"{OUT}/checkpoint-77", "PIN"),
        (f"{OUT}/checkpoint-500/", "PIN"),
    ],
)
def test_the_value_becomes_the_newest_checkpoint_and_all_else_stays(project: Path, before: str, after: str) -> None:
    whole(500, 900)
    done = resumed(run(before, more="# resume_from_checkpoint: commented\n"))
    expected = run(after.replace("PIN", f"{OUT}/checkpoint-900"), more="# resume_from_checkpoint: commented\n")
    assert done.text == expected


def test_a_missing_key_is_written_right_behind_the_output_directory(project: Path) -> None:
    whole(900)
    done = resumed(run())
    assert done.text == run(more=f"resume_from_checkpoint: {OUT}/checkpoint-900\n")
    assert [(change.line, change.before, change.after) for change in done.plan.changes] == [
        (8, "", f"resume_from_checkpoint: {OUT}/checkpoint-900")
    ]


def test_a_commented_key_stays_a_comment(project: Path) -> None:
    whole(900)
    text = run(more="# resume_from_checkpoint: saves/old\n  # resume_from_checkpoint: null\n")
    done = resumed(text)
    assert done.text == text.replace(f"{OUT}\n", f"{OUT}\nresume_from_checkpoint: {OUT}/checkpoint-900\n")


@pytest.mark.parametrize(
    "other",
    [
        "eval:\n  resume_from_checkpoint: null\n",
        "notes: |\n  resume_from_checkpoint: put the path here\n",
        "notes: >\n  resume_from_checkpoint: put the path here\n\n",
        "list:\n- resume_from_checkpoint: x\n",
    ],
)
def test_the_same_words_elsewhere_are_not_touched(project: Path, other: str) -> None:
    whole(900)
    assert resumed(other + run("null")).text == other + run(f"{OUT}/checkpoint-900")
    assert resumed(run(more=other)).text == run(more=f"resume_from_checkpoint: {OUT}/checkpoint-900\n{other}")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("my run", "{}"),
        ("my run #1", "'{}'"),
        ("a: b", "'{}'"),
        ("it's", "{}"),
        ('say "hi"', "{}"),
        ("[x]", "'{}'"),
        ("@work", "'{}'"),
        ("100%", "{}"),
        ("模型", "{}"),
        ("- x", "'{}'"),
        ("&a", "'{}'"),
    ],
)
def test_names_that_yaml_would_misread_are_quoted(project: Path, name: str, written: str) -> None:
    whole(900, directory=name)
    quoted = "'" + name.replace("'", "''") + "'"
    done = resumed(run(output_dir=quoted))
    assert done.value == f"{name}/checkpoint-900"
    assert f"resume_from_checkpoint: {written.format(name + '/checkpoint-900')}\n" in done.text
    assert resumed(run(quoted, output_dir=quoted)).value == f"{name}/checkpoint-900"


@pytest.mark.parametrize("key", ['"resume_from_checkpoint": x', "resume_from_checkpoint : x", "? resume_from_checkpoint\n: x"])
def test_the_key_is_found_however_it_is_spelt(project: Path, key: str) -> None:
    whole(900)
    done = resumed(run(more=f"{key}\n"))
    assert done.text == run(more=key.replace(" x", f" {OUT}/checkpoint-900") + "\n")


def test_a_flow_mapping_is_edited_in_its_braces(project: Path) -> None:
    whole(900)
    done = resumed(f"{{stage: sft, do_train: true, output_dir: {OUT}, max_steps: 5000}}\n")
    assert done.text == (
        f"{{stage: sft, do_train: true, output_dir: {OUT}, resume_from_checkpoint: {OUT}/checkpoint-900, max_steps: 5000}}\n"
    )
    assert len(done.plan.changes) == 1


def test_an_alias_is_replaced_and_its_anchor_stays(project: Path) -> None:
    whole(900)
    done = resumed(run("*out", output_dir=f"&out {OUT}"))
    assert done.text == run(f"{OUT}/checkpoint-900", output_dir=f"&out {OUT}")


def test_an_anchored_value_moves_its_anchor_to_the_alias(project: Path) -> None:
    whole(900)
    done = resumed(f"{HEAD}resume_from_checkpoint: &out {OUT}\noutput_dir: *out\nmax_steps: 5000\n")
    assert done.text == f"{HEAD}resume_from_checkpoint: {OUT}/checkpoint-900\noutput_dir: &out {OUT}\nmax_steps: 5000\n"


def test_a_merged_key_is_overridden_and_its_source_stays(project: Path) -> None:
    whole(900)
    base = f"base: &base\n  output_dir: {OUT}\n  resume_from_checkpoint: null\n"
    done = resumed(f"{base}{HEAD}<<: *base\nmax_steps: 5000\n")
    assert done.value == f"{OUT}/checkpoint-900"
    assert done.text == f"{base}{HEAD}<<: *base\nmax_steps: 5000\nresume_from_checkpoint: {OUT}/checkpoint-900\n"


@pytest.mark.parametrize("key", [None, "null", OUT])
def test_line_ends_mark_and_missing_last_newline_stay(project: Path, key: str | None) -> None:
    whole(900)
    text = "\ufeff" + run(key).rstrip("\n").replace("\n", "\r\n")
    done = resumed(text.encode())
    pin = f"resume_from_checkpoint: {OUT}/checkpoint-900"
    assert done.text == (
        text.replace(f"{OUT}\r\n", f"{OUT}\r\n{pin}\r\n", 1)
        if key is None
        else text.replace(f"resume_from_checkpoint: {key}", pin)
    )


def test_a_key_on_the_last_line_without_newline(project: Path) -> None:
    whole(900)
    assert resumed(f"{HEAD}max_steps: 5000\noutput_dir: {OUT}").text == (
        f"{HEAD}max_steps: 5000\noutput_dir: {OUT}\nresume_from_checkpoint: {OUT}/checkpoint-900"
    )


def test_a_duplicate_key_is_an_error_that_names_both_lines(project: Path) -> None:
    whole(900)
    text = run("null", more="resume_from_checkpoint: x\n")
    with pytest.raises(SourceError, match=r"run\.yaml:9:.*first at line 8"):
        resumed(text)
    assert Path("run.yaml").read_text() == text


def test_of_a_duplicate_key_an_older_release_takes_the_last(project: Path) -> None:
    Path("requirements.txt").write_text("llamafactory==0.9.3\n")
    whole(900)
    text = run("null", more="resume_from_checkpoint: x\n")
    assert resumed(text).text == text.replace(": null", f": {OUT}/checkpoint-900")


# ------------------------------------------------------------------------------------------------ paths


def test_an_absolute_directory_stays_absolute(project: Path) -> None:
    whole(900)
    assert resumed(run(output_dir=f"{project}/{OUT}")).value == f"{project}/{OUT}/checkpoint-900"


@pytest.mark.parametrize(
    ("output_dir", "pinned"),
    [
        ("saves/run", "saves/run/checkpoint-900"),
        ("./saves/run", "./saves/run/checkpoint-900"),
        ("saves/run/", "saves/run/checkpoint-900"),
        ("saves//run", "saves/run/checkpoint-900"),
        ("../project/saves/run", "../project/saves/run/checkpoint-900"),
    ],
)
def test_a_relative_directory_keeps_its_style(project: Path, output_dir: str, pinned: str) -> None:
    whole(500, 900)
    done = resumed(run(output_dir=output_dir))
    assert done.value == pinned
    assert f"output_dir: {output_dir}\n" in done.text


def test_the_authors_own_spelling_of_the_same_place_is_kept(project: Path) -> None:
    whole(500, 900)
    assert resumed(run(f"{project}/{OUT}/checkpoint-500")).value == f"{project}/{OUT}/checkpoint-900"
    assert resumed(run(f"./{OUT}/checkpoint-500/", output_dir=f"{project}/{OUT}")).value == f"./{OUT}/checkpoint-900"


def test_relative_paths_are_those_of_the_launch_not_of_the_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(900)
    (project / "configs").mkdir()
    (project / "configs/run.yaml").write_text(run())
    assert plan("configs/run.yaml", {}).chosen_path == f"{OUT}/checkpoint-900"
    monkeypatch.chdir(project / "configs")
    elsewhere = plan("run.yaml", {})
    assert elsewhere.chosen is None
    assert str(project / "configs" / OUT) in elsewhere.notices[0].message


def test_a_tilde_is_written_out_for_the_resume_path_alone(project: Path) -> None:
    whole(900, directory=f"{project}/home/x")
    done = resumed(run(output_dir="~/x"), {"HOME": f"{project}/home"})
    assert done.value == f"{project}/home/x/checkpoint-900"
    assert "output_dir: ~/x\n" in done.text
    done = resumed(run("~/x/checkpoint-500", output_dir="~/x"), {"HOME": f"{project}/home"})
    assert done.value == f"{project}/home/x/checkpoint-900"


@pytest.mark.parametrize(
    "spelling", ["${CKPT}", "$CKPT", "${oc.env:CKPT}", "${oc.env:CKPT,/nowhere}", "${CKPT:-/nowhere}", '"${CKPT}"']
)
def test_a_variable_gets_the_environments_value_in_both_keys(project: Path, spelling: str) -> None:
    whole(900)
    done = resumed(run(spelling, output_dir=spelling), {"CKPT": OUT})
    quote = '"' if spelling.startswith('"') else ""
    assert done.text == run(f"{quote}{OUT}/checkpoint-900{quote}", output_dir=f"{quote}{OUT}{quote}")
    assert [change.line for change in done.plan.changes] == [7, 8]
    assert [change.after for change in done.plan.changes] == done.text.splitlines()[6:8]


@pytest.mark.parametrize("spelling", ["${CKPT:-saves/run}", "${oc.env:CKPT,saves/run}"])
def test_an_unset_variable_with_a_default_gets_that(project: Path, spelling: str) -> None:
    whole(900)
    assert resumed(run(output_dir=spelling)).text == run(more=f"resume_from_checkpoint: {OUT}/checkpoint-900\n")


def test_a_variable_may_be_a_part(project: Path) -> None:
    whole(500, 900)
    done = resumed(run("${ROOT}/run/checkpoint-500", output_dir="$ROOT/run"), {"ROOT": "saves"})
    assert done.text == run(f"{OUT}/checkpoint-900")


@pytest.mark.parametrize(
    ("resume", "output_dir"), [(None, "${CKPT}/x"), ("${CKPT}", OUT), ("$CKPT", "${CKPT}"), (None, "${oc.env:CKPT}")]
)
def test_an_unset_variable_is_named_and_the_file_stays(project: Path, resume: str | None, output_dir: str) -> None:
    text = run(resume, output_dir=output_dir)
    with pytest.raises(CannotPlan, match=r"CKPT, which is not set.*export CKPT=.*--save-dir"):
        resumed(text)
    assert Path("run.yaml").read_text() == text


def test_the_save_directory_can_be_named_instead_of_a_variable(project: Path) -> None:
    whole(900)
    done = resumed(run("${CKPT}", output_dir="${CKPT}"), save_dir=OUT)
    assert done.text == run(f"{OUT}/checkpoint-900")
    assert resumed(run(), save_dir=OUT + "/").value == f"{OUT}/checkpoint-900"


def test_a_variable_whose_value_no_yaml_can_say_is_an_error(project: Path) -> None:
    with pytest.raises(CannotPlan, match="no YAML can say"):
        resumed(run(output_dir="$CKPT"), {"CKPT": "/x/${y}"})


@pytest.mark.parametrize("output_dir", ['""', "' '", '"a\\0b"', "[a]", "null", "12"])
def test_an_output_directory_that_is_none_is_an_error_in_words(project: Path, output_dir: str) -> None:
    text = run(output_dir=output_dir)
    with pytest.raises(CannotPlan, match=r"run\.yaml: "):
        resumed(text)
    assert Path("run.yaml").read_text() == text


@pytest.mark.parametrize("value", ["[a]", "{a: b}", "[]"])
def test_a_resume_value_that_is_no_single_value_is_an_error(project: Path, value: str) -> None:
    whole(900)
    with pytest.raises(CannotPlan, match=r"not a single value.*by hand"):
        resumed(run(value))


def test_a_tilde_that_stands_for_nobody_is_a_folders_name(project: Path) -> None:
    whole(900, directory="~nobody-of-this-name/x")
    assert resumed(run(output_dir="~nobody-of-this-name/x")).value == "~nobody-of-this-name/x/checkpoint-900"


def test_what_only_looks_like_a_placeholder_is_a_folders_name(project: Path) -> None:
    whole(900, directory="saves/your_model")
    assert resumed(run(output_dir="saves/your_model")).value == "saves/your_model/checkpoint-900"


def test_an_output_directory_that_is_a_file_is_an_error_in_words(project: Path) -> None:
    Path("saves").mkdir()
    Path(OUT).write_text("")
    with pytest.raises(CannotPlan, match="is a file, not a directory"):
        resumed(run())


# ------------------------------------------------------------------------------------------------ another directory


def test_the_output_directorys_own_newest_wins_over_a_pin_elsewhere(project: Path) -> None:
    whole(300)
    whole(500, directory="other")
    assert resumed(run("other/checkpoint-500")).value == f"{OUT}/checkpoint-300"


def test_a_pin_elsewhere_stays_until_the_run_has_a_checkpoint_of_its_own(project: Path) -> None:
    whole(500, 900, directory="other")
    done = resumed(run("other/checkpoint-500"))
    assert done.text == run("other/checkpoint-500")
    assert done.plan.chosen_path == "other/checkpoint-500"
    damaged(100)
    done = resumed(run("other/checkpoint-500"))
    assert done.text == run("other/checkpoint-500")
    assert [skipped.path for skipped in done.plan.skipped] == [f"{OUT}/checkpoint-100"]


def test_a_directory_elsewhere_gives_its_newest(project: Path) -> None:
    whole(500, 900, directory="other")
    assert resumed(run("other")).value == "other/checkpoint-900"


def test_variables_are_written_out_when_the_checkpoint_lies_elsewhere(project: Path) -> None:
    whole(500, directory="other")
    done = resumed(run("other/checkpoint-500", output_dir="${CKPT}"), {"CKPT": OUT})
    assert done.text == run("other/checkpoint-500")


@pytest.mark.parametrize("there", [False, True])
def test_a_pin_elsewhere_that_is_gone_or_damaged_is_not_replaced_by_step_0(project: Path, there: bool) -> None:
    if there:
        damaged(500, directory="other")
    done = resumed(run("other/checkpoint-500"))
    assert done.text == run("other/checkpoint-500")
    assert done.plan.refused
    assert "will stop" in done.told("launch-refused")


def test_weights_only_elsewhere_stay_where_the_author_named_them(project: Path) -> None:
    whole(500, directory="other", optimizer=False, scheduler=False)
    done = resumed(run("other/checkpoint-500"))
    assert done.text == run("other/checkpoint-500")
    assert not done.plan.refused
    assert "new optimizer" in done.told("nothing-resumable")


# ------------------------------------------------------------------------------------------------ what lies on disk


def test_a_damaged_newest_is_passed_over_with_the_reason(project: Path) -> None:
    whole(500)
    damaged(900)
    done = resumed(run())
    assert done.value == f"{OUT}/checkpoint-500"
    assert [(skipped.step, skipped.verdict.value) for skipped in done.plan.skipped] == [(900, "damaged")]
    assert "optimizer.pt is cut short" in done.plan.skipped[0].reason
    assert "checkpoint-900" in done.told("newer-damaged")


@pytest.mark.parametrize("value", [None, "null", "true", f"{OUT}/checkpoint-900", OUT])
def test_only_damaged_ones_leave_a_value_that_starts_and_later_pins(project: Path, value: str | None) -> None:
    damaged(900)
    done = resumed(run(value))
    assert done.value is False
    assert "overwrites" in done.told("nothing-resumable")
    whole(500)
    assert resumed(done.text).value == f"{OUT}/checkpoint-500"


def test_only_damaged_ones_need_no_word_where_nobody_looks_for_them(project: Path) -> None:
    damaged(900)
    done = resumed(run(more="overwrite_output_dir: true\n"))
    assert done.value == "absent"
    assert "overwrites" in done.told("nothing-resumable")


def test_a_weights_only_newest_is_passed_over(project: Path) -> None:
    whole(500)
    whole(900, optimizer=False, scheduler=False)
    done = resumed(run())
    assert done.value == f"{OUT}/checkpoint-500"
    assert done.told("weights-only-skipped")


@pytest.mark.parametrize("value", [None, "true", f"{OUT}/checkpoint-900"])
def test_only_weights_are_not_pinned_and_not_thrown_away_either(project: Path, value: str | None) -> None:
    whole(900, optimizer=False, scheduler=False)
    done = resumed(run(value))
    assert done.text == run(value)
    assert "goes on from the weights" in done.told("nothing-resumable")


def test_weights_that_the_author_pinned_himself_move_on_too(project: Path) -> None:
    whole(500, 900, optimizer=False, scheduler=False)
    done = resumed(run(f"{OUT}/checkpoint-500", more="overwrite_output_dir: true\n"))
    assert done.value == f"{OUT}/checkpoint-900"


@pytest.mark.parametrize(
    "value", ["null", "true", '""', "auto", "latest", "1000", OUT, f"{OUT}/checkpoint-500", "${CKPT}", "nowhere/x"]
)
@pytest.mark.parametrize("overwrite", ["", "overwrite_output_dir: true\n"])
def test_a_first_launch_gets_a_value_that_works(project: Path, value: str, overwrite: str) -> None:
    done = resumed(run(value, more=overwrite), {"CKPT": OUT})
    assert done.value is None
    assert not done.plan.refused


def test_a_pin_that_is_gone_is_worth_a_warning(project: Path) -> None:
    done = resumed(run(f"{OUT}/checkpoint-500"))
    assert done.value is None
    assert "storage is mounted" in done.told("nothing-resumable")


def test_a_save_that_may_still_be_going_on_is_passed_over(project: Path) -> None:
    whole(500)
    damaged(900)
    (Path(OUT) / "checkpoint-900/trainer_state.json").unlink()
    os.utime(f"{OUT}/checkpoint-900/optimizer.pt")
    done = resumed(run())
    assert done.value == f"{OUT}/checkpoint-500"
    assert done.plan.skipped[0].verdict.value == "in-progress"
    assert done.told("live-run")


def test_final_weights_without_a_checkpoint_stop_the_launch_and_nothing_is_edited(project: Path) -> None:
    Path(OUT).mkdir(parents=True)
    (Path(OUT) / "model.safetensors").write_bytes(safetensors_bytes())
    for value in (None, "null", "true", f"{OUT}/checkpoint-500"):
        done = resumed(run(value))
        assert done.text == run(value)
        assert "model.safetensors" in done.told("launch-refused")
        assert not done.told("first-launch")
    assert not resumed(run(more="overwrite_output_dir: true\n")).plan.refused
    assert not resumed(run("false")).plan.refused


def test_final_weights_beside_checkpoints_do_not_matter(project: Path) -> None:
    whole(900)
    (Path(OUT) / "model.safetensors").write_bytes(safetensors_bytes())
    assert resumed(run()).value == f"{OUT}/checkpoint-900"


def test_the_checkpoint_of_another_tool_is_not_overwritten(project: Path) -> None:
    folder = Path(OUT) / "checkpoint-900"
    folder.mkdir(parents=True)
    (folder / "latest_checkpointed_iteration.txt").write_text("900")
    done = resumed(run())
    assert done.text == run()
    assert "no checkpoint that it can read" in done.told("launch-refused")


def test_a_younger_attempt_below_an_older_one_is_told(project: Path) -> None:
    whole(900)
    whole(500, modified=1_760_000_000.0)
    assert "checkpoint-900 is older" in resumed(run()).told("mixed-runs")


# ------------------------------------------------------------------------------------------------ what fits the launch


def test_a_plain_checkpoint_does_not_fit_deepspeed(project: Path) -> None:
    whole(500, deepspeed=2, world_size=2)
    whole(900)
    done = resumed(run(more="deepspeed: ds_z2.json\n"))
    assert done.value == f"{OUT}/checkpoint-500"
    assert "without DeepSpeed" in done.plan.skipped[0].reason


def test_a_deepspeed_checkpoint_does_not_fit_a_plain_run(project: Path) -> None:
    whole(500)
    whole(900, deepspeed=2)
    assert resumed(run()).value == f"{OUT}/checkpoint-500"
    assert resumed(run(), {"ACCELERATE_USE_DEEPSPEED": "true"}).value == f"{OUT}/checkpoint-900"


@pytest.mark.parametrize(
    ("setting", "stage", "fits"),
    [
        ("ds.json", 3, False),
        ("ds.json", 2, True),
        ("ds.json", 1, True),
        ("ds.json", "auto", True),
        ("missing.json", 3, True),
        ("{zero_optimization: {stage: 3}}", 2, False),
        ("{zero_optimization: {stage: 2}}", 3, True),
    ],
)
def test_a_zero_3_run_cannot_read_a_zero_2_checkpoint(project: Path, setting: str, stage: object, fits: bool) -> None:
    Path("ds.json").write_text(json.dumps({"zero_optimization": {"stage": stage}}))
    whole(500, deepspeed=3)
    whole(900, deepspeed=2)
    done = resumed(run(more=f"deepspeed: {setting}\n"))
    assert done.value == f"{OUT}/checkpoint-{900 if fits else 500}"


@pytest.mark.parametrize(("key", "deepspeed"), [("deepspeed: ds_z2.json\n", 0), ("", 2)])
@pytest.mark.parametrize("overwrite", ["", "overwrite_output_dir: true\n"])
@pytest.mark.parametrize("value", [None, "true", f"{OUT}/checkpoint-900"])
def test_whole_checkpoints_that_do_not_fit_are_not_lost(
    project: Path, key: str, deepspeed: int, overwrite: str, value: str | None
) -> None:
    whole(900, deepspeed=deepspeed)
    text = run(value, more=key + overwrite)
    done = resumed(text)
    assert done.text == text
    assert done.plan.chosen is None
    assert "DeepSpeed" in done.told("launch-refused")


@pytest.mark.parametrize(("method", "lora"), [("lora", False), ("oft", False), ("full", True), ("freeze", True)])
def test_adapters_and_whole_models_do_not_fit_each_other(project: Path, method: str, lora: bool) -> None:
    head = HEAD.replace("full", method)
    whole(500, lora=not lora)
    whole(900, lora=lora)
    done = resumed(run(head=head))
    assert done.value == f"{OUT}/checkpoint-500"
    assert method in done.plan.skipped[0].reason
    shutil.rmtree(f"{OUT}/checkpoint-500")
    done = resumed(run(head=head))
    assert done.text == run(head=head)
    assert done.plan.refused


def test_deepspeed_needs_as_many_processes(project: Path) -> None:
    text = run(more="deepspeed: ds_z2.json\n")
    whole(500, deepspeed=2, world_size=4)
    whole(900, deepspeed=2, world_size=2)
    assert resumed(text, {"NPROC_PER_NODE": "2", "NNODES": "2"}).value == f"{OUT}/checkpoint-500"
    assert resumed(text, {"NPROC_PER_NODE": "2"}).value == f"{OUT}/checkpoint-900"
    assert resumed(text).value == f"{OUT}/checkpoint-900"
    assert "2 processes wrote it, this launch has 8" in resumed(text, {"NPROC_PER_NODE": "8"}).told("launch-refused")


def test_weights_only_under_deepspeed_stop_the_launch(project: Path) -> None:
    whole(125, optimizer=False, scheduler=False)
    done = resumed(run("true", more="deepspeed: ds_z3.json\nsave_only_model: true\n"))
    assert "DeepSpeed" in done.told("launch-refused")


def test_a_plain_run_may_have_another_number_of_processes(project: Path) -> None:
    whole(900, world_size=2)
    done = resumed(run(), {"NPROC_PER_NODE": "8"})
    assert done.value == f"{OUT}/checkpoint-900"
    assert "2 processes wrote the checkpoint, 8" in done.told("world-size-changed")
    assert not resumed(run(), {"NPROC_PER_NODE": "2"}).told("world-size-changed")
    assert not resumed(run()).told("world-size-changed")


@pytest.mark.parametrize("backend", [{"USE_MCA": "1"}, {"USE_MEGATRON_BRIDGE": "true"}, {}])
def test_a_run_whose_layout_is_not_read_is_left_alone(project: Path, backend: dict[str, str]) -> None:
    damaged(900)
    text = run(more="" if backend else "tensor_model_parallel_size: 2\n")
    with pytest.raises(CannotPlan, match="Megatron"):
        resumed(text, backend)
    assert Path("run.yaml").read_text() == text


# ------------------------------------------------------------------------------------------------ stages that cannot resume


@pytest.mark.parametrize("stage", ["rm", "ppo"])
@pytest.mark.parametrize("value", [None, "null", f"{OUT}/checkpoint-900"])
def test_a_stage_that_resets_the_value_is_left_alone(project: Path, stage: str, value: str | None) -> None:
    whole(900, value_head=True, optimizer=stage == "rm")
    text = run(value, head=HEAD.replace("sft", stage))
    done = resumed(text)
    assert done.text == text
    assert not done.plan.refused
    assert "begins at step 0" in done.told("nothing-resumable")
    assert done.plan.chosen is None


@pytest.mark.parametrize("stage", ["rm", "ppo"])
@pytest.mark.parametrize("value", [None, "null", "true", f"{OUT}/checkpoint-900"])
def test_a_stage_that_would_crash_at_every_start_is_refused(project: Path, stage: str, value: str | None) -> None:
    whole(900, lora=True, value_head=True, optimizer=stage == "rm")
    text = run(value, head=HEAD.replace("sft", stage).replace("full", "lora"))
    done = resumed(text)
    assert done.text == text
    assert "adapter_name_or_path" in done.told("launch-refused")


@pytest.mark.parametrize("stage", ["rm", "ppo"])
def test_such_a_stage_gets_through_its_first_launch(project: Path, stage: str) -> None:
    head = HEAD.replace("sft", stage).replace("full", "lora")
    done = resumed(run("${CKPT}", output_dir="${CKPT}", head=head), {"CKPT": OUT})
    assert done.text == run("null", head=head)
    assert not done.plan.refused


# ------------------------------------------------------------------------------------------------ what to know about the start


def test_a_finished_run_says_so(project: Path) -> None:
    whole(5000)
    assert "no steps remain" in resumed(run()).told("finished")
    whole(5500)
    assert resumed(run()).told("finished")


@pytest.mark.parametrize(
    ("epochs", "epoch", "step", "finished"),
    [
        ("3.0", 3.0, 300, True),
        ("3.0", 2.995, 300, True),
        ("3.0", 2.0, 200, False),
        ("3.0", 2.99, 299, False),
        ("1.5", 1.5, 300, True),
        ("3", 3.2, 320, True),
        ("2.0", 1.5, 300, False),
    ],
)
def test_a_run_finished_by_epochs_says_so(project: Path, epochs: str, epoch: float, step: int, finished: bool) -> None:
    total_epochs = 2 if epochs in ("1.5", "2.0") else 3
    write_checkpoint(OUT, step, total=300, epoch=epoch, num_train_epochs=total_epochs)
    text = f"{HEAD}output_dir: {OUT}\nnum_train_epochs: {epochs}\n"
    assert bool(resumed(text).told("finished")) is finished


@pytest.mark.parametrize(
    ("length", "stored", "changed"),
    [
        ("max_steps: 6000", {"total": 5000}, True),
        ("max_steps: 5000", {"total": 5000}, False),
        ("num_train_epochs: 15", {"num_train_epochs": 9}, True),
        ("num_train_epochs: 9.0", {"num_train_epochs": 9}, False),
        ("num_train_epochs: 0.5", {"num_train_epochs": 1}, False),
    ],
)
def test_a_changed_length_makes_the_learning_rate_jump(
    project: Path, length: str, stored: dict[str, int], changed: bool
) -> None:
    write_checkpoint(OUT, 100, epoch=0.1, **stored)
    done = resumed(f"{HEAD}output_dir: {OUT}\n{length}\n")
    assert bool(done.told("schedule-changed")) is changed


@pytest.mark.parametrize("length", ["num_train_epochs: .inf", "num_train_epochs: .nan", "max_steps: .inf", "max_steps: x"])
def test_a_length_that_is_no_number_says_nothing_about_the_end(project: Path, length: str) -> None:
    whole(500, 900)
    done = resumed(f"{HEAD}output_dir: {OUT}\n{length}\n")
    assert done.value == f"{OUT}/checkpoint-900"
    assert done.plan.notices == ()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("save_steps: 100\n", True),
        ("save_steps: 1000\n", False),
        ("save_steps: 0.1\n", False),
        ("save_strategy: epoch\nsave_steps: 100\n", False),
        ("", False),
    ],
)
def test_the_interval_stored_in_the_checkpoint_wins(project: Path, keys: str, said: bool) -> None:
    write_checkpoint(OUT, 2000, total=5000, save_steps=1000)
    done = resumed(f"{HEAD}output_dir: {OUT}\nmax_steps: 5000\n{keys}")
    assert ("every 1000 steps" in done.told("schedule-changed")) is said


def test_the_change_can_be_said_on_the_command_line(project: Path) -> None:
    whole(900)
    assert resumed(run("null")).plan.arguments == (f"resume_from_checkpoint={OUT}/checkpoint-900",)
    assert resumed(run(output_dir="$D"), {"D": OUT}).plan.arguments == (
        f"output_dir={OUT}",
        f"resume_from_checkpoint={OUT}/checkpoint-900",
    )
    assert resumed(run(f"{OUT}/checkpoint-900")).plan.arguments == ()
    whole(900, directory="my run")
    assert resumed(run(output_dir="my run")).plan.arguments == ()  # the launcher would tear the path apart


def test_a_release_that_takes_no_arguments_is_offered_none(project: Path) -> None:
    Path("requirements.txt").write_text("llamafactory==0.9.1\n")
    whole(900)
    assert resumed(run("null")).plan.arguments == ()


# ------------------------------------------------------------------------------------------------ the new trainer

V1 = "model: Qwen/Qwen3-4B\ntrain_dataset: toy.yaml\nmodel_class: llm\noutput_dir: saves/v1\n"


def whole_v1(*steps: int, marked: bool = True, directory: str = "saves/v1") -> None:
    """Checkpoints as v1/core/utils/checkpoint.py writes them, one process."""
    for step in steps:
        files = {
            "metadata.json": json.dumps({"global_step": step, "epoch": 0, "num_training_steps": 5000}).encode(),
            "model/config.json": b"{}",
            "model/model.safetensors": safetensors_bytes(),
            "optimizer/state_dict.pt": torch_bytes(),
            "scheduler.pt": torch_bytes(),
            "dataloader/rank_0.pt": torch_bytes(),
            "rng_state/rank_0.pt": torch_bytes(),
            **({"CHECKPOINT_COMPLETE": b""} if marked else {}),
        }
        for name, data in files.items():
            path = Path(directory) / f"checkpoint-{step}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            os.utime(path, (LONG_AGO + step, LONG_AGO + step))


def v1(value: str | None) -> str:
    return V1 + ("" if value is None else f"resume_from_checkpoint: {value}\n") + "max_steps: 5000\n"


def does_v1(done: Done) -> tuple[str, int | None]:
    """v1/core/utils/checkpoint.py resolve_resume_checkpoint_path and resume, re-stated."""
    value = OmegaConf.to_container(OmegaConf.create(done.text)).get("resume_from_checkpoint")
    if not value:
        return "fresh", None
    if value == "auto":
        folders = [path for path in Path("saves/v1").glob("checkpoint-*") if (path / "CHECKPOINT_COMPLETE").exists()]
        if not folders:
            return "fresh", None
        value = max(folders, key=lambda path: int(path.name.split("-")[-1]))
    folder = Path(str(value))
    if not folder.is_dir() or not is_zipfile(folder / "optimizer/state_dict.pt"):
        return "raises", None
    return "resumes", json.loads((folder / "metadata.json").read_text())["global_step"]


V1_VALUES = [None, "null", "auto", "false", '""', "true", "1000", "latest", "saves/v1", "${CKPT}", "saves/v1/checkpoint-500",
             "saves/v1/checkpoint-900", "saves/v1/checkpoint-77"]  # fmt: skip


@pytest.mark.parametrize("value", V1_VALUES)
def test_v1_resumes_from_the_newest_complete_whatever_stands_there(project: Path, value: str | None) -> None:
    env = {"CKPT": "saves/v1"}
    first = resumed(v1(value), env)
    assert does_v1(first) == ("fresh", None)
    whole_v1(500)
    assert does_v1(resumed(first.text, env)) == ("resumes", 500)
    whole_v1(900)
    second = resumed(v1(value), env)
    assert does_v1(second) == ("resumes", 900)
    assert second.value in ("auto", "saves/v1/checkpoint-900")
    whole_v1(1300, marked=False)
    assert does_v1(resumed(second.text, env)) == ("resumes", 900)
    whole_v1(1300)
    cut("saves/v1/checkpoint-1300/optimizer/state_dict.pt", 40)
    third = resumed(second.text, env)
    assert does_v1(third) == ("resumes", 900)
    assert third.value == "saves/v1/checkpoint-900"  # auto would take the marked, damaged one
    shutil.rmtree("saves/v1/checkpoint-500")
    shutil.rmtree("saves/v1/checkpoint-900")
    assert does_v1(resumed(third.text, env)) == ("fresh", None)
    assert does_v1(resumed(v1(value), env)) == ("fresh", None)


def test_v1_needs_no_edit_where_auto_finds_the_newest(project: Path) -> None:
    whole_v1(500, 900)
    done = resumed(v1("auto"))
    assert done.text == v1("auto")
    assert done.plan.chosen_path == "saves/v1/checkpoint-900"


def test_v1_without_an_output_directory_has_a_new_one_at_every_start(project: Path) -> None:
    text = v1(None).replace("output_dir: saves/v1\n", "")
    with pytest.raises(CannotPlan, match="a new directory at every start; set it"):
        resumed(text)
    whole_v1(500)
    assert resumed(text, save_dir="saves/v1").text == text + "output_dir: saves/v1\nresume_from_checkpoint: auto\n"
