"""Which files are whose. Those under fixtures/configs are small ones of our own, in the shape of real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptlint.frameworks.llamafactory import LlamaFactory
from ckptlint.frameworks.llamafactory_v1 import LlamaFactoryV1
from ckptlint.linter import FileReport, Linter, read_file
from ckptlint.settings import SettingsFinder
from ckptlint.source.file import SourceFile

FRAMEWORKS = (LlamaFactory(), LlamaFactoryV1())
CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"
NO_YAML = {"helm.yaml", "jinja.yaml"}  # templates: what they are made into is YAML


def _files(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((CONFIGS / folder).glob("*.yaml"))]
    assert found
    return found


def _owners(path: Path, data: bytes | None = None) -> list[str]:
    file = SourceFile(str(path), path.read_bytes() if data is None else data)
    return [run.framework for run in read_file(file, FRAMEWORKS, named=False).runs]


def _name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("path", _files("llamafactory"), ids=_name)
def test_a_v0_training_file_is_read_as_one_run_of_llamafactory(path: Path) -> None:
    assert _owners(path) == ["llamafactory"]


@pytest.mark.parametrize("path", _files("llamafactory-v1"), ids=_name)
def test_a_v1_training_file_is_read_as_one_run_of_llamafactory_v1(path: Path) -> None:
    assert _owners(path) == ["llamafactory-v1"]


@pytest.mark.parametrize("path", _files("others"), ids=_name)
def test_a_file_of_another_kind_is_nobodys(path: Path) -> None:
    assert _owners(path) == []


def test_a_directory_of_other_files_is_read_without_a_word() -> None:
    result = Linter(SettingsFinder(), frameworks=FRAMEWORKS).check_paths([str(CONFIGS / "others")])
    assert result.files_read == len(_files("others"))
    assert (result.diagnostics, result.runs, result.troubles) == ([], [], ())


def _named(path: Path) -> FileReport:
    return Linter(SettingsFinder(), frameworks=FRAMEWORKS).check_paths([str(path)]).reports[0]


@pytest.mark.parametrize("path", _files("others"), ids=_name)
def test_a_file_of_another_kind_that_is_named_must_only_be_yaml(path: Path) -> None:
    codes = [diagnostic.code for diagnostic in _named(path).diagnostics]
    assert codes == (["CKP900"] if path.name in NO_YAML else [])


@pytest.mark.parametrize(
    ("line", "owners"),
    [
        ("do_train: true", ["llamafactory"]),
        ("do_train: True", ["llamafactory"]),
        ("do_train: yes", ["llamafactory"]),
        ("do_train: 'true'", ["llamafactory"]),  # text is true, and it trains
        ("do_train: false", []),
        ("do_train: null", []),
        ("do_train:", []),
        ("# do_train: true", []),
        ("train:\n  do_train: true", []),
    ],
)
def test_only_what_trains_is_a_run(line: str, owners: list[str]) -> None:
    data = f"stage: sft\n{line}\nfinetuning_type: lora\noutput_dir: out\n".encode()
    assert _owners(Path("run.yaml"), data) == owners


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".YAML"])
def test_the_suffix_may_be_spelled_either_way(suffix: str) -> None:
    data = b"stage: sft\ndo_train: true\noutput_dir: out\n"
    assert _owners(Path("run" + suffix), data) == ["llamafactory"]


@pytest.mark.parametrize("data", [b"", b"\n", b"# do_train stage\n", b"do_train stage", b"\xef\xbb\xbf# do_train stage"])
def test_a_file_without_a_mapping_is_nobodys(data: bytes) -> None:
    assert _owners(Path("run.yaml"), data) == []


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_a_byte_order_mark_and_other_line_ends_do_not_hide_a_run(mark: bytes, line_end: bytes) -> None:
    data = mark + b"stage: sft\ndo_train: true\noutput_dir: out\n".replace(b"\n", line_end)
    assert _owners(Path("run.yaml"), data) == ["llamafactory"]


def test_a_run_that_cannot_be_parsed_is_reported_although_nobody_named_it(project: Path) -> None:
    (project / "run.yaml").write_text("stage: sft\ndo_train: true\nsave_steps:500\noutput_dir: out\n")
    (project / "notes.yaml").write_text("a word about do_train and stage\nthat: is: no: yaml\n")
    diagnostics = Linter(SettingsFinder(), frameworks=FRAMEWORKS).check_paths(["."]).diagnostics
    assert [(diagnostic.span.path, diagnostic.code, diagnostic.framework) for diagnostic in diagnostics] == [
        ("run.yaml", "CKP900", "llamafactory")
    ]
