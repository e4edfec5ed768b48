from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ckptlint.frameworks import REGISTRY, all_frameworks, framework_named

FIXTURES = Path(__file__).parents[2] / "fixtures" / "configs"


def test_the_registry_says_the_same_as_each_framework() -> None:
    for framework in all_frameworks():
        real = framework.framework  # type: ignore[attr-defined]
        assert (framework.title, set(framework.suffixes)) == (real.title, set(real.suffixes))


def test_names_are_unique_and_find_their_framework() -> None:
    names = [framework.name for framework in all_frameworks()]
    assert len(names) == len(set(names)) == len({(entry.module, entry.class_name) for entry in REGISTRY})
    assert [framework_named(name).name for name in names] == names


@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.*")), ids=lambda path: path.name)
def test_marks_never_hide_a_file_that_the_framework_itself_would_take(path: Path) -> None:
    data = path.read_bytes()
    for framework in all_frameworks():
        assert framework.mentions(data) == framework.framework.mentions(data), framework.name  # type: ignore[attr-defined]


def test_a_file_of_one_framework_imports_no_other(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text("stage: sft\ndo_train: true\nfinetuning_type: lora\noutput_dir: /data/x\n")
    code = (
        "import sys; from ckptlint.cli import cli\n"
        f"try: cli(['check', {str(path)!r}])\n"
        "except SystemExit: pass\n"
        "print(*sorted(m.rpartition('.')[2] for m in sys.modules if m.startswith('ckptlint.frameworks.')), file=sys.stderr)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()
    assert "llamafactory" in loaded
    assert not {"verl", "axolotl", "ms_swift", "deepspeed", "megatron", "mindspeed_mm"} & set(loaded)
