"""Which release of a framework a project pins, and where it says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckptlint.frameworks import releases
from ckptlint.frameworks.releases import ALWAYS, LARGEST, Lifetime, by_name, number, pinned_release
from ckptlint.source.text import decode

NAMES = ("llamafactory", "transformers")


@pytest.fixture(autouse=True)
def fresh() -> None:
    releases.forget()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.yaml").write_text("stage: sft\n")
    return tmp_path


def pin(directory: Path, *names: str, config: str = "train.yaml") -> str | None:
    found = pinned_release(str(directory / config), names or NAMES)
    return found[0] if found else None


# ------------------------------------------------------------------------------------------------ comparing


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("0.9.3", (0, 9, 3)),
        ("v5.0", (5,)),
        ("5.0.0", (5,)),
        ("2.10.0rc1", (2, 10)),
        ("0.9.6.dev0", (0, 9, 6)),
        ("2.4.0+cu121", (2, 4)),
        ("1!3.1", (3, 1)),
        ("main", ()),
        ("", ()),
    ],
)
def test_a_release_compares_by_its_numbers(release: str, expected: tuple[int, ...]) -> None:
    assert number(release) == expected


def test_a_version_of_ten_thousand_digits_is_a_number_like_any_other() -> None:
    assert len(number("9" * 10_000)) == 1


def test_releases_compare_as_numbers_not_as_text() -> None:
    assert number("4.9") < number("4.10") < number("4.10.1") < number("5.0.0")


def test_a_lifetime_holds_from_its_first_release_to_the_one_before_its_last() -> None:
    lifetime = Lifetime(since="4.50", until="4.52")
    assert [lifetime.holds(release) for release in ("4.49.9", "4.50.0", "4.51.3", "4.52.0", "5.0")] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert ALWAYS.holds("0.0.1")


@pytest.mark.parametrize(
    ("oldest", "newest", "expected"),
    [
        ("4.41.2", "4.46.1", False),
        ("4.41.2", "4.50.0", True),
        ("4.51", "5.0", True),
        ("4.52", "5.0", False),
        ("4.41.2", None, True),
    ],
)
def test_a_lifetime_overlaps_a_range_if_one_release_of_it_has_it(oldest: str, newest: str | None, expected: bool) -> None:
    assert Lifetime(since="4.50", until="4.52").overlaps(oldest, newest) is expected


def test_groups_of_names_become_a_table_by_name() -> None:
    assert by_name({ALWAYS: " a b\n c", Lifetime(since="2"): "d"}) == {
        "a": ALWAYS,
        "b": ALWAYS,
        "c": ALWAYS,
        "d": Lifetime("2"),
    }


# ------------------------------------------------------------------------------------------------ what is a pin


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("llamafactory==0.9.3", "0.9.3"),
        ("llamafactory[torch,metrics]==0.9.3", "0.9.3"),
        ("LLaMA.Factory == 0.9.3 ; python_version > '3.9'", None),  # another distribution: llama-factory
        ("LlamaFactory === 0.9.3", "0.9.3"),
        ("torch\r\nllamafactory==0.9.3\r\n", "0.9.3"),
        ("llamafactory==0.9.3 --hash=sha256:00", "0.9.3"),
        ("llamafactory==0.9.4.dev0", "0.9.4.dev0"),
        ("llamafactory>=0.9,==0.9.3", "0.9.3"),
        ("llamafactory~=0.9.3", "0.9.3"),
        ("llamafactory @ git+https://example.org/llamafactory.git@v0.9.3", "0.9.3"),
        ("llamafactory @ git+https://example.org/llamafactory.git@0f3b1c2", None),
        ("llamafactory @ git+https://example.org/llamafactory.git@main", None),
        ("llamafactory", None),
        ("llamafactory<=0.9.3", None),
        ("llamafactory>=0.9.1,<=0.9.3", None),
        ("llamafactory!=0.9.3", None),
        ("llamafactory==0.9.*", None),
        ("llamafactory~=0.9", None),
        ("# llamafactory==0.9.3", None),
        ("torch==2.6.0  # for llamafactory==0.9.3", None),
        ("my-llamafactory==0.9.3", None),
        ("llamafactory-tools==0.9.3", None),
        ("llamafactory_tools==0.9.3", None),
        ("", None),
    ],
)
def test_a_requirement_pins_only_if_it_leaves_one_release(project: Path, line: str, expected: str | None) -> None:
    (project / "requirements.txt").write_bytes(line.encode())
    assert pin(project, "llamafactory") == expected


@pytest.mark.parametrize("written", ["llama-factory", "llama_factory", "LLaMA.Factory", "Llama--Factory"])
def test_a_distribution_is_the_same_however_its_name_is_spelt(project: Path, written: str) -> None:
    (project / "requirements.txt").write_text(f"{written}==0.9.3\n")
    assert pin(project, "llama_factory") == "0.9.3"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("requirements-train.txt", "transformers==4.57.1\n"),
        ("requirements.in", "transformers==4.57.1\n"),
        ("constraints.txt", "transformers==4.57.1\n"),
        (
            "pyproject.toml",
            '[project]\ndependencies = [\n  "torch",\n  "transformers[torch]==4.57.1",  # "transformers==4.1.0"\n]\n',
        ),
        ("pyproject.toml", "[project]\ndependencies = ['transformers==4.57.1']\n"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = "4.57.1"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = {version = "4.57.1", extras = ["torch"]}\n'),
        ("pyproject.toml", '[tool.uv.sources]\ntransformers = { git = "https://example.org/t", tag = "v4.57.1" }\n'),
        ("setup.cfg", "[options]\ninstall_requires =\n    torch\n    transformers==4.57.1\n"),
        ("environment.yml", "dependencies:\n  - python=3.11\n  - transformers=4.57.1\n"),
        ("environment.yaml", "dependencies:\n  - conda-forge::transformers=4.57.1=pyhd8ed1ab_0\n"),
        ("environment.yml", "dependencies:\n  - pip:\n    - transformers==4.57.1\n"),
        ("uv.lock", '[[package]]\nname = "transformers"\nversion = "4.57.1"\nsource = { registry = "x" }\n'),
        ("poetry.lock", '[[package]]\r\nname = "transformers"\r\nversion = "4.57.1"\r\ndescription = ""\r\n'),
        ("pylock.toml", '[[packages]]\nname = "transformers"\nversion = "4.57.1"\n'),
        ("Pipfile", '[packages]\ntransformers = "==4.57.1"\n'),
        ("Pipfile.lock", '{"default": {"transformers": {"hashes": ["sha256:0"], "version": "==4.57.1"}}}'),
    ],
)
def test_a_pin_is_found_in_every_kind_of_dependency_file(project: Path, file: str, content: str) -> None:
    (project / file).write_bytes(content.encode())
    assert pin(project, "transformers") == "4.57.1"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = "^4.57.1"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = "*"\n'),
        ("pyproject.toml", '[project]\ndependencies = ["transformers>=4.55.0,<=5.6.0,!=4.57.0"]\n'),
        ("environment.yml", "dependencies:\n  - transformers=4.57\n"),
        ("environment.yml", "dependencies:\n  - transformers>=4.57.1\n"),
        ("uv.lock", '[[package]]\nname = "adapter-transformers"\nversion = "4.57.1"\n'),
        ("notes.txt", "transformers==4.57.1\n"),
    ],
)
def test_what_leaves_the_release_open_is_no_pin(project: Path, file: str, content: str) -> None:
    (project / file).write_text(content)
    assert pin(project, "transformers") is None


# ------------------------------------------------------------------------------------------------ several pins, and none


def test_a_project_without_any_dependency_file_pins_nothing(project: Path) -> None:
    assert pin(project) is None


def test_files_that_agree_pin_and_the_first_is_shown(project: Path) -> None:
    (project / "requirements.txt").write_text("transformers==5.0.0\n")
    (project / "constraints.txt").write_text("transformers==5.0\n")
    found = pinned_release(str(project / "train.yaml"), ["transformers"])
    assert found is not None
    assert found[1].path.endswith("constraints.txt")


def test_files_that_disagree_leave_the_release_open(project: Path) -> None:
    (project / "requirements.txt").write_text("transformers==4.57.1\n")
    (project / "requirements-npu.txt").write_text("transformers==4.51.3\n")
    assert pin(project) is None


def test_an_exact_pin_counts_before_a_compatible_one(project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\ndependencies = ["transformers~=4.57.0"]\n')
    (project / "uv.lock").write_text('[[package]]\nname = "transformers"\nversion = "4.57.3"\n')
    assert pin(project) == "4.57.3"


def test_one_distribution_is_not_taken_for_another(project: Path) -> None:
    (project / "requirements.txt").write_text("transformers==4.57.1\nllamafactory==0.9.5\n")
    assert (pin(project, "transformers"), pin(project, "llamafactory"), pin(project, "verl")) == ("4.57.1", "0.9.5", None)


# ------------------------------------------------------------------------------------------------ where it is looked for


@pytest.mark.parametrize(
    "comment",
    [
        "# transformers==4.57.1",
        "stage: sft  # transformers==4.57.1",
        "# framework: transformers==4.57.1",
        "\ufeff# transformers==4.57.1",
    ],
)
def test_a_comment_of_the_configuration_pins(project: Path, comment: str) -> None:
    (project / "train.yaml").write_text(comment + "\n", encoding="utf-8")
    (project / "requirements.txt").write_text("transformers==4.1.0\n")
    assert pin(project, "transformers") == "4.57.1"


def test_a_comment_that_warns_of_a_release_does_not_pin_it(project: Path) -> None:
    (project / "train.yaml").write_text("# broken with transformers==4.52.0\n# do not use transformers==4.46.0\n")
    assert pin(project, "transformers") is None


def test_a_value_that_looks_like_a_pin_is_none(project: Path) -> None:
    (project / "train.yaml").write_text("run_name: transformers==4.57.1\ntag: a#transformers==4.57.1\n")
    assert pin(project, "transformers") is None


def test_comments_that_disagree_leave_it_to_the_project(project: Path) -> None:
    (project / "train.yaml").write_text("# transformers==4.57.1\n# transformers==4.51.3\n")
    (project / "requirements.txt").write_text("transformers==4.55.4\n")
    assert pin(project, "transformers") == "4.55.4"


def test_the_text_in_an_editor_counts_rather_than_the_file(project: Path) -> None:
    text = decode("train.yaml", b"# transformers==4.57.1\n")
    found = pinned_release(str(project / "train.yaml"), NAMES, text)
    assert found is not None
    assert (found[0], found[1].source) == ("4.57.1", text)


def test_the_nearest_directory_that_pins_decides(project: Path) -> None:
    (project / "a" / "b").mkdir(parents=True)
    (project / "requirements.txt").write_text("transformers==4.1.0\n")
    (project / "a" / "requirements.txt").write_text("transformers==4.57.1\n")
    assert pin(project, config="a/b/train.yaml") == "4.57.1"


def test_a_nearer_file_without_this_distribution_hides_nothing(project: Path) -> None:
    (project / "a").mkdir()
    (project / "requirements.txt").write_text("transformers==4.57.1\n")
    (project / "a" / "requirements.txt").write_text("torch==2.6.0\n")
    assert pin(project, config="a/train.yaml") == "4.57.1"


def test_the_search_ends_at_the_root_of_the_repository(project: Path) -> None:
    (project / "requirements.txt").write_text("transformers==4.57.1\n")
    (project / "vendored" / ".git").mkdir(parents=True)
    assert pin(project, config="vendored/train.yaml") is None


def test_a_worktree_whose_git_is_a_file_is_a_root_too(project: Path) -> None:
    (project / "requirements.txt").write_text("transformers==4.57.1\n")
    (project / "tree").mkdir()
    (project / "tree" / ".git").write_text("gitdir: elsewhere\n")
    assert pin(project, config="tree/train.yaml") is None


def test_outside_a_repository_the_search_ends_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "requirements.txt").write_text("transformers==4.1.0\n")
    inner = tmp_path / "job" / "conf"
    inner.mkdir(parents=True)
    (tmp_path / "job" / "requirements.txt").write_text("transformers==4.57.1\n")
    monkeypatch.chdir(tmp_path / "job")
    assert pin(Path("conf")) == "4.57.1"
    (tmp_path / "job" / "requirements.txt").unlink()
    releases.forget()
    assert pin(Path("conf")) is None


def test_outside_both_only_its_own_directory_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("elsewhere", "job/conf"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "job" / "requirements.txt").write_text("transformers==4.57.1\n")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pin(tmp_path / "job" / "conf") is None
    assert pin(tmp_path / "job") == "4.57.1"


def test_the_pin_is_shown_where_it_is_written(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    (project / "requirements.txt").write_text("torch\nllamafactory[torch]==0.9.3  # trained with it\n")
    found = pinned_release("train.yaml", ["llamafactory"])
    assert found is not None
    _, span = found
    assert (span.path, span.start_position, span.text) == ("requirements.txt", (2, 1), "llamafactory[torch]==0.9.3")


def test_a_changed_requirement_is_seen_after_forgetting(project: Path) -> None:
    (project / "requirements.txt").write_text("transformers==4.57.1\n")
    assert pin(project) == "4.57.1"
    (project / "requirements.txt").write_text("transformers==5.0.0\n")
    releases.forget()
    assert pin(project) == "5.0.0"


# ------------------------------------------------------------------------------------------------ what cannot be read


def test_files_that_cannot_be_read_are_passed_over(project: Path) -> None:
    (project / "requirements.txt").write_bytes("transformers==4.1.0\n".encode("utf-16"))
    (project / "requirements-large.txt").write_bytes(b"transformers==4.1.0\n" + b"#" * LARGEST)
    (project / "requirements-link.txt").symlink_to("nowhere.txt")
    (project / "requirements-directory.txt").mkdir()
    os.mkfifo(project / "requirements-pipe.txt")
    (project / "constraints.txt").write_text("transformers==4.57.1\n")
    assert pin(project) == "4.57.1"


@pytest.mark.parametrize("config", ["missing/train.yaml", "<stdin>", "-", "", "a\0b.yaml", "x" * 5000])
def test_a_configuration_that_is_not_on_disk_does_no_harm(project: Path, monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    monkeypatch.chdir(project)
    (project / "requirements.txt").write_text("torch==2.6.0\n")
    assert pinned_release(config, NAMES) is None


def test_a_working_directory_that_is_gone_does_no_harm(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert pinned_release("train.yaml", NAMES) is None


@pytest.mark.parametrize(
    "line",
    [
        "transformers" + " " * 900_000,
        "transformers[ " * 60_000,
        "transformers >=1," * 50_000,
        '"' * 500_000,
        "'\"" * 400_000,
        "#" * 900_000,
    ],
    ids=["blanks", "brackets", "bounds", "quotes", "mixed quotes", "comments"],
)
def test_a_line_without_end_is_passed_over_in_linear_time(project: Path, line: str) -> None:
    (project / "train.yaml").write_text(f"# {line}\n")
    (project / "pyproject.toml").write_text(f"{line}\n")
    (project / "requirements.txt").write_text(f"{line}\ntransformers==4.57.1\n")
    assert pin(project) == "4.57.1"
