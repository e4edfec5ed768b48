"""Which files a check reads."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ckptlint.discovery import Found, find
from ckptlint.settings import SettingsFinder

YAML = frozenset({".yaml", ".yml"})


def write(path: Path, text: str = "a: 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def found(*paths: str) -> list[str]:
    result = look(*paths)
    assert result.troubles == ()
    return [target.path for target in result.targets]


def look(*paths: str) -> Found:
    return find(paths, YAML, SettingsFinder())


def test_a_directory_gives_the_files_that_a_framework_reads_in_order(project: Path) -> None:
    for name in ("b.yaml", "a.yml", "sub/deep/c.YAML", "notes.txt", "train.py", "Makefile"):
        write(project / name)
    assert found(".") == ["a.yml", "b.yaml", "sub/deep/c.YAML"]


def test_a_named_file_is_read_whatever_it_is_called(project: Path) -> None:
    write(project / "train.conf")
    assert found("train.conf") == ["train.conf"]
    assert look("train.conf").targets[0].named


def test_a_file_that_is_named_and_found_is_read_once_and_counts_as_named(project: Path) -> None:
    write(project / "a.yaml")
    (target,) = look(".", "./a.yaml", str(project / "a.yaml")).targets
    assert (target.path, target.named) == ("a.yaml", True)


def test_a_path_that_does_not_exist_is_named_and_the_others_are_still_found(project: Path) -> None:
    write(project / "a.yaml")
    result = look("no/such.yaml", "a.yaml")
    assert [str(trouble) for trouble in result.troubles] == ["no/such.yaml: no such file or directory"]
    assert [target.path for target in result.targets] == ["a.yaml"]


def test_a_named_link_to_nothing_is_told_apart_from_a_missing_file(project: Path) -> None:
    (project / "a.yaml").symlink_to("gone.yaml")
    assert [str(trouble) for trouble in look("a.yaml").troubles] == [
        "a.yaml: is a symbolic link to something that does not exist"
    ]


def test_hidden_and_generated_directories_are_left_out_unless_they_are_named(project: Path) -> None:
    for directory in (".git", ".venv", ".github", "node_modules/x", "__pycache__"):
        write(project / directory / "a.yaml")
    write(project / ".hidden.yaml")
    write(project / "kept" / "a.yaml")
    assert found(".") == ["kept/a.yaml"]
    assert found(".github") == [".github/a.yaml"]


@pytest.mark.parametrize("target", [".", "..", "sub"])
def test_a_link_that_leads_round_in_a_circle_is_followed_once(project: Path, target: str) -> None:
    write(project / "sub" / "a.yaml")
    (project / "sub" / "loop").symlink_to(target, target_is_directory=True)
    assert found(".") == ["sub/a.yaml"]


def test_a_linked_directory_outside_is_followed_and_one_inside_is_known_by_its_own_name(project: Path) -> None:
    write(project.parent / "outside" / "a.yaml")
    write(project / "zz" / "b.yaml")
    (project / "aa").symlink_to("zz", target_is_directory=True)
    (project / "linked").symlink_to(project.parent / "outside", target_is_directory=True)
    assert found(".") == ["linked/a.yaml", "zz/b.yaml"]


def test_a_linked_file_is_read_once_under_its_own_name(project: Path) -> None:
    write(project / "real.yaml")
    (project / "alias.yaml").symlink_to("real.yaml")
    (project / "outside.yaml").symlink_to(write(project.parent / "elsewhere.yaml"))
    assert found(".") == ["outside.yaml", "real.yaml"]


def test_links_to_nothing_and_what_is_no_file_are_passed_over_in_a_walk(project: Path) -> None:
    (project / "gone.yaml").symlink_to("nowhere")
    (project / "directory.yaml").mkdir()
    os.mkfifo(project / "pipe.yaml")
    assert found(".") == []


def test_gitignore_counts_at_every_level_and_the_innermost_word_wins(project: Path) -> None:
    write(project / ".gitignore", "outputs/\n*.local.yaml\n/top.yaml\n")
    write(project / "sub" / ".gitignore", "!keep.local.yaml\nonly-here.yaml\n")
    for name in ("outputs/a.yaml", "x.local.yaml", "top.yaml", "sub/top.yaml", "sub/keep.local.yaml", "sub/only-here.yaml"):
        write(project / name)
    write(project / "only-here.yaml")
    assert found(".") == ["only-here.yaml", "sub/keep.local.yaml", "sub/top.yaml"]


def test_gitignore_above_the_walked_directory_counts_up_to_the_top_of_the_repository(project: Path) -> None:
    write(project.parent / ".gitignore", "*.yaml\n")
    write(project / ".gitignore", "/sub/ignored.yaml\n")
    write(project / "sub" / "ignored.yaml")
    write(project / "sub" / "a.yaml")
    assert found("sub") == ["sub/a.yaml"]


def test_an_ignored_file_is_read_when_it_is_named(project: Path) -> None:
    write(project / ".gitignore", "*.yaml\n")
    write(project / "a.yaml")
    assert found("a.yaml") == ["a.yaml"]


def test_a_gitignore_that_is_no_text_does_not_stop_the_walk(project: Path) -> None:
    (project / ".gitignore").write_bytes(b"\xff\xfe\n!\n!!!\n\\\nb.yaml\n")
    write(project / "a.yaml")
    write(project / "b.yaml")
    assert found(".") == ["a.yaml"]


def test_exclude_leaves_out_what_the_settings_name_relative_to_their_file(project: Path) -> None:
    write(project / "ckptlint.toml", 'exclude = ["third_party/", "*.tmp.yaml", "/a.yaml"]\n')
    for name in ("third_party/x.yaml", "x.tmp.yaml", "a.yaml", "sub/a.yaml"):
        write(project / name)
    assert found(".") == ["sub/a.yaml"]
    assert found("sub", "a.yaml") == ["a.yaml", "sub/a.yaml"]


def test_paths_are_relative_to_the_working_directory_with_slashes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project / "sub" / "a.yaml")
    outside = write(project.parent / "outside.yaml")
    assert found(str(project)) == ["sub/a.yaml"]
    assert found(str(outside)) == [str(outside)]
    monkeypatch.chdir(project / "sub")
    assert found("..") == ["../sub/a.yaml"]
    assert found(str(project / "sub")) == ["a.yaml"]


def test_a_dot_dot_behind_a_link_is_not_taken_out_of_the_path(project: Path) -> None:
    write(project / "real" / "deep" / "x.yaml")
    target = write(project / "real" / "a.yaml")
    (project / "link").symlink_to("real/deep", target_is_directory=True)
    (path,) = found("link/../a.yaml")
    assert Path(path).samefile(target)


def test_a_directory_that_may_not_be_read_is_named_and_the_others_are_walked(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project / "closed" / "a.yaml")
    write(project / "open" / "a.yaml")
    scan = os.scandir

    def refuse_one(path: str) -> object:  # directory modes mean nothing to root
        if Path(path).name == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse_one)
    result = look(".")
    assert [str(trouble) for trouble in result.troubles] == ["closed: cannot be read: Permission denied"]
    assert [target.path for target in result.targets] == ["open/a.yaml"]
