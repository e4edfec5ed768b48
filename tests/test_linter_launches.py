"""Findings of runs that several files, or several ways through a script, describe."""

from __future__ import annotations

from pathlib import Path

from ckptlint.linter import Linter
from ckptlint.settings import SettingsFinder

_RUN = "stage: sft\ndo_train: true\nfinetuning_type: lora\noutput_dir: /data/run\nsave_steps: 0{comment}\n"


def _script_and_yaml(project: Path, comment: str = "") -> None:
    (project / "run.sh").write_text("llamafactory-cli train a.yaml save_total_limit=1\n")
    (project / "a.yaml").write_text(_RUN.format(comment=comment))


def check(*paths: str) -> list[str]:
    result = Linter(SettingsFinder()).check_paths(paths)
    return [f"{entry.span.path}:{entry.span.line} {entry.name}" for entry in result.diagnostics]


def test_a_finding_stands_in_the_file_whose_text_decides_and_is_reported_once(project: Path) -> None:
    _script_and_yaml(project)
    both = ["a.yaml:5 save-interval-disabled", "run.sh:1 keep-one"]
    assert check(".") == both
    assert check("run.sh") == both
    assert check("run.sh", "./a.yaml") == both


def test_a_comment_silences_what_another_file_leads_to(project: Path) -> None:
    _script_and_yaml(project, "  # ckptlint: ignore[save-interval-disabled]")
    assert check("run.sh") == check(".") == ["run.sh:1 keep-one"]


def test_a_script_and_the_yaml_that_it_launches_do_not_share_a_directory_as_two_runs_do(project: Path) -> None:
    _script_and_yaml(project)
    assert all(not entry.run.neighbours for entry in Linter(SettingsFinder()).check_paths(["."]).runs)


def test_what_holds_on_some_ways_to_a_launch_only_is_not_reported(project: Path) -> None:
    launch = "python3 -m verl.trainer.main_ppo trainer.save_freq=$FREQ trainer.default_local_dir=/data/run\n"
    (project / "some.sh").write_text(f'FREQ=-1\nif [ "$SAVE" = 1 ]; then\n  FREQ=5\nfi\n{launch}')
    (project / "each.sh").write_text(f'FREQ=-1\nif [ "$SAVE" = 1 ]; then\n  FREQ=0\nfi\n{launch}')
    assert check(".") == ["each.sh:1 save-interval-disabled", "each.sh:3 save-interval-disabled"]


def test_a_setting_that_two_launches_hang_on_is_reported_once(project: Path) -> None:
    launch = "python3 -m verl.trainer.main_ppo trainer.save_freq=$FREQ trainer.default_local_dir=/data"
    (project / "run.sh").write_text(f"set -e\nFREQ=-1\n{launch}/a\n{launch}/b\n")
    assert check("run.sh") == ["run.sh:2 save-interval-disabled"]
    assert len(Linter(SettingsFinder()).check_paths(["run.sh"]).runs) == 2
