"""Fixes go together or not at all, and a file is replaced as one step or not at all."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ckptlint.fixing as fixing
from ckptlint.fixing import CannotWrite, ChangedMeanwhile, compatible, fixed_text, repair, replace_file
from ckptlint.rule import Applicability, Diagnostic, Fix, Severity
from ckptlint.source.file import SourceFile
from ckptlint.source.text import Edit, SourceError, SourceText

OLD = b"save_steps: 500\n" * 4000
NEW = b"save_steps: 100\n" * 5000


# ------------------------------------------------------------------------------------------------ which fixes go together


def fix(source: SourceText, *edits: tuple[int, int, str], applicability: Applicability = Applicability.SAFE) -> Fix:
    return Fix("a fix", tuple(Edit(source.span(start, end), text) for start, end, text in edits), applicability)


def test_fixes_that_do_not_touch_are_applied_together() -> None:
    source = SourceText("x", "abcdef")
    assert fixed_text(source, [fix(source, (4, 5, "E")), fix(source, (0, 1, "A"))]) == "AbcdEf"


def test_of_two_fixes_in_each_others_way_the_first_in_the_text_wins() -> None:
    source = SourceText("x", "abcdef")
    assert fixed_text(source, [fix(source, (2, 5, "")), fix(source, (1, 3, "-"))]) == "a-def"


def test_a_fix_with_several_edits_is_applied_whole_or_not_at_all() -> None:
    source = SourceText("x", "abcdef")
    first, second = fix(source, (1, 2, "B")), fix(source, (1, 2, "-"), (5, 6, "-"))
    assert fixed_text(source, [first, second]) == "aBcdef"
    assert compatible(source, [first, second]) == (first,)


def test_two_fixes_never_insert_at_the_same_place_in_one_round() -> None:
    source = SourceText("x", "ab")
    assert fixed_text(source, [fix(source, (1, 1, "one")), fix(source, (1, 1, "two"))]) == "aoneb"


def test_one_fix_may_insert_twice_at_a_place_and_keeps_the_order() -> None:
    source = SourceText("x", "ab")
    assert fixed_text(source, [fix(source, (1, 1, "one"), (1, 1, "two"))]) == "aonetwob"


def test_an_insertion_right_behind_a_replacement_is_not_in_its_way() -> None:
    source = SourceText("x", "abc")
    assert fixed_text(source, [fix(source, (0, 1, "A")), fix(source, (1, 1, "+"))]) == "A+bc"


def test_a_fix_of_another_text_is_left_alone() -> None:
    source, other = SourceText("x", "abc"), SourceText("x", "abc")
    assert fixed_text(source, [fix(other, (0, 1, "A"))]) == "abc"


# ------------------------------------------------------------------------------------------------ until nothing changes


class Words:
    """A check made of regular expressions: name, pattern, replacement (None: no fix)."""

    def __init__(self, *rules: tuple[str, str, str | None], unsafe: tuple[str, ...] = ()) -> None:
        self.rules = rules
        self.unsafe = unsafe

    def __call__(self, file: SourceFile) -> list[Diagnostic]:
        text = file.text.text
        if "BROKEN" in text:
            at = text.index("BROKEN")
            raise SourceError(file.text.span(at, at + 6), "not a word")
        return [self._diagnostic(file, *rule, match) for rule in self.rules for match in re.finditer(rule[1], text)]

    def _diagnostic(self, file: SourceFile, name: str, _: str, replacement: str | None, match: re.Match[str]) -> Diagnostic:
        span = file.text.span(*match.span())
        applicability = Applicability.UNSAFE if name in self.unsafe else Applicability.SAFE
        fix = None if replacement is None else Fix(name, (Edit(span, match.expand(replacement)),), applicability)
        return Diagnostic("CKP000", name, Severity.ERROR, f"{match[0]} is wrong", span, "fake", fix)


def repaired(text: str, check: Words, unsafe: bool = False) -> str:
    result = repair(SourceFile("f.txt", text.encode()), check, unsafe)
    again = repair(result.file, check, unsafe)
    assert again.file.data == result.file.data, "fixing twice must equal fixing once"
    assert not again.applied
    assert [(d.name, why) for d, why in again.refused] == [(d.name, why) for d, why in result.refused]
    return result.file.text.text


def test_all_fixes_of_a_file_are_applied() -> None:
    assert repaired("bad worse bad", Words(("a", "bad", "good"), ("b", "worse", "better"))) == "good better good"


def test_the_applied_diagnostics_are_named_and_the_rest_remains() -> None:
    result = repair(SourceFile("f.txt", b"bad odd"), Words(("a", "bad", "good"), ("b", "odd", None)), unsafe=False)
    assert [diagnostic.name for diagnostic in result.applied] == ["a"]
    assert [diagnostic.name for diagnostic in result.remaining] == ["b"]
    assert result.refused == ()


def test_unsafe_fixes_need_to_be_asked_for() -> None:
    check = Words(("a", "bad", "good"), unsafe=("a",))
    assert repaired("bad", check) == "bad"
    assert repaired("bad", check, unsafe=True) == "good"


def test_overlapping_fixes_are_applied_in_turn() -> None:
    assert repaired("aab", Words(("x", "aa", "c"), ("y", "a?b", "d"))) == "cd"


def test_a_file_without_findings_stays_the_very_same() -> None:
    file = SourceFile("f.txt", b"fine\r\n")
    assert repair(file, Words(("a", "bad", "good")), unsafe=True).file is file


def test_a_fix_that_makes_the_file_unreadable_is_rolled_back_and_the_others_stay() -> None:
    check = Words(("a", "bad", "good"), ("b", "worse", "BROKEN"))
    assert repaired("bad worse bad", check) == "good worse good"
    result = repair(SourceFile("f.txt", b"bad worse bad"), check, unsafe=False)
    ((diagnostic, why),) = result.refused
    assert diagnostic.name == "b"
    assert why.startswith("the file could not be read afterwards: f.txt:1:")


def test_a_fix_that_raises_another_finding_is_rolled_back_with_its_words() -> None:
    check = Words(("a", "bad", "odd"), ("b", "odd", None), ("c", "worse", "better"))
    assert repaired("bad worse", check) == "bad better"
    ((_, why),) = repair(SourceFile("f.txt", b"bad worse"), check, unsafe=False).refused
    assert why == "it would raise b: odd is wrong"


def test_a_finding_that_was_there_before_does_not_count_as_new() -> None:
    assert repaired("odd bad", Words(("a", "bad", "good"), ("b", "odd", None))) == "odd good"


def test_a_syntax_error_that_a_fix_causes_rolls_it_back() -> None:
    check = Words(("a", "bad", "{"), ("syntax-error", r"\{", None))
    assert repaired("bad", check) == "bad"


def test_a_fix_that_leaves_its_own_finding_is_refused() -> None:
    check = Words(("a", "ba+d", "baad"))
    assert repaired("bad", check) == "bad"
    ((_, why),) = repair(SourceFile("f.txt", b"bad"), check, unsafe=False).refused
    assert why == "the finding would still be there afterwards"


def test_two_fixes_that_undo_each_other_end() -> None:
    assert repaired("ping", Words(("a", "ping", "pong"), ("b", "pong", "ping"))) == "ping"


def test_a_refused_fix_gives_way_to_one_it_overlapped() -> None:
    check = Words(("a", "xy", "BROKEN"), ("b", "y", "z"))
    assert repaired("xy", check) == "xz"


def test_a_suppression_that_a_fix_makes_needless_is_taken_out_next() -> None:
    check = Words(("a", "bad", "good"), ("unused-suppression", "good !", "good"))
    assert repaired("bad !", check) == "good"


def test_more_fixes_than_rounds_are_applied_when_one_of_them_is_guilty() -> None:
    check = Words(("a", "bad", "good"), ("b", "worse", "BROKEN"))
    assert repaired("bad " * 30 + "worse", check) == "good " * 30 + "worse"


def test_a_replacement_that_is_no_utf8_is_refused() -> None:
    assert repaired("bad", Words(("a", "bad", "\udce9"))) == "bad"


def test_a_fix_that_also_edits_another_file_is_left_to_whoever_reads_both() -> None:
    other = SourceText("other.txt", "bad")

    def check(file: SourceFile) -> list[Diagnostic]:
        edits = (Edit(file.text.span(0, 3), "good"), Edit(other.span(0, 3), "good"))
        span = file.text.span(0, 3)
        return [Diagnostic("CKP000", "a", Severity.ERROR, "", span, "fake", Fix("", edits, Applicability.SAFE))]

    assert repair(SourceFile("f.txt", b"bad"), check, unsafe=True).file.data == b"bad"


def test_bytes_that_no_fix_touches_stay() -> None:
    assert repaired("\ufeffbad\r\nx\ry\x85\nno end", Words(("a", "bad", "good"))) == "\ufeffgood\r\nx\ry\x85\nno end"


# ------------------------------------------------------------------------------------------------ replacing a file


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_bytes(OLD)
    return path


def leftovers(directory: Path) -> list[str]:
    return [entry.name for entry in directory.iterdir() if "ckptlint" in entry.name]


def test_a_file_is_replaced_and_nothing_else_is_left(config: Path) -> None:
    assert replace_file(config, NEW, OLD) is True
    assert config.read_bytes() == NEW
    assert [entry.name for entry in config.parent.iterdir()] == ["run.yaml"]


def test_the_same_data_is_not_written_again(config: Path) -> None:
    before = config.stat()
    assert replace_file(config, OLD) is False
    assert (config.stat().st_ino, config.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_file_that_is_not_there_yet_is_made_with_the_usual_mode(tmp_path: Path) -> None:
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert replace_file(tmp_path / "new.yaml", NEW) is True
    assert (tmp_path / "new.yaml").read_bytes() == NEW
    assert (tmp_path / "new.yaml").stat().st_mode == ordinary.stat().st_mode


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_the_mode_is_kept(config: Path, mode: int) -> None:
    config.chmod(mode)
    replace_file(config, NEW)
    assert stat.S_IMODE(config.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owner_and_group_are_kept(config: Path) -> None:
    os.chown(config, 1234, 2345)
    replace_file(config, NEW)
    assert (config.stat().st_uid, config.stat().st_gid) == (1234, 2345)


def test_an_owner_that_may_not_be_kept_does_not_stop_the_edit(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fchown", refuse(errno.EPERM))
    assert replace_file(config, NEW) is True
    assert config.read_bytes() == NEW


def test_extended_attributes_are_kept_where_there_are_any(config: Path) -> None:
    try:
        os.setxattr(config, "user.note", b"mine")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    replace_file(config, NEW)
    assert os.getxattr(config, "user.note") == b"mine"


@pytest.mark.parametrize("absolute", [True, False])
def test_a_symbolic_link_stays_one_and_its_target_is_replaced(tmp_path: Path, absolute: bool) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "links").mkdir()
    target, link, outer = tmp_path / "real" / "a.yaml", tmp_path / "links" / "b.yaml", tmp_path / "outer.yaml"
    target.write_bytes(OLD)
    link.symlink_to(target if absolute else "../real/a.yaml")
    outer.symlink_to(link if absolute else "links/b.yaml")
    replace_file(outer, NEW, OLD)
    assert link.is_symlink()
    assert outer.is_symlink()
    assert target.read_bytes() == NEW
    assert leftovers(tmp_path / "real") == leftovers(tmp_path / "links") == leftovers(tmp_path) == []


def test_a_relative_path_is_taken_from_the_working_directory(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(config.parent)
    replace_file(Path("run.yaml"), NEW, OLD)
    assert config.read_bytes() == NEW


def test_a_link_that_leads_in_a_circle_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(CannotWrite, match="circle"):
        replace_file(tmp_path / "a", NEW)


def test_a_directory_in_the_files_place_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").mkdir()
    with pytest.raises(CannotWrite, match="not a regular file"):
        replace_file(tmp_path / "run.yaml", NEW)


def test_a_file_that_turns_into_a_directory_meanwhile_is_an_error(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fixing._lock

    def turn(directory: int | None) -> None:
        real(directory)
        config.unlink()
        config.mkdir()

    monkeypatch.setattr(fixing, "_lock", turn)
    with pytest.raises(CannotWrite, match="directory"):
        replace_file(config, NEW)
    assert leftovers(config.parent) == []


def test_a_pipe_is_an_error_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CannotWrite, match="not a regular file"):
        replace_file(tmp_path / "pipe", NEW)


def test_a_missing_directory_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match=r"nowhere does not exist; make it first"):
        replace_file(tmp_path / "nowhere" / "run.yaml", NEW)


def test_a_file_of_which_more_hard_links_exist_leaves_the_others_alone(config: Path) -> None:
    os.link(config, config.parent / "other")
    replace_file(config, NEW)
    assert (config.parent / "other").read_bytes() == OLD


# ------------------------------------------------------------------------------------------------ what goes wrong


def refuse(number: int) -> Callable[..., object]:
    def call(*arguments: object, **options: object) -> object:
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize(
    ("step", "number", "words"),
    [
        ("open", errno.EACCES, "does not let files be replaced; make it writable"),
        ("open", errno.EROFS, "read-only; work on a copy"),
        ("write", errno.ENOSPC, "no space is left"),
        ("write", errno.EDQUOT, "quota"),
        ("fsync", errno.EIO, "Input/output error"),
        ("fsync", errno.ENOSPC, "no space is left"),
        ("fchmod", errno.EPERM, "does not let files be replaced"),
        ("replace", errno.EBUSY, "mount of its own"),
        ("replace", errno.EACCES, "does not let files be replaced"),
    ],
)
def test_a_refusal_is_said_in_words_and_the_file_is_as_it_was(
    config: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, words: str
) -> None:
    # Root is refused nothing by permission bits, so the operating system's answer is given in its place.
    refusal = only_new_files(os.open, refuse(number)) if step == "open" else refuse(number)
    monkeypatch.setattr(os, step, refusal)
    with pytest.raises(CannotWrite, match=words) as caught:
        replace_file(config, NEW, OLD)
    monkeypatch.undo()
    assert str(caught.value).startswith(str(config))
    assert config.read_bytes() == OLD
    assert leftovers(config.parent) == []


def only_new_files(real: Callable[..., object], instead: Callable[..., object]) -> Callable[..., object]:
    def call(path: object, flags: int, *arguments: object, **options: object) -> object:
        return instead() if flags & os.O_CREAT else real(path, flags, *arguments, **options)

    return call


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_an_error_and_nothing_is_lost(config: Path) -> None:
    config.parent.chmod(0o555)
    try:
        with pytest.raises(CannotWrite, match="does not let files be replaced"):
            replace_file(config, NEW)
    finally:
        config.parent.chmod(0o755)
    assert config.read_bytes() == OLD


def test_a_read_only_file_is_not_replaced_behind_its_owners_back(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(CannotWrite, match="may not be read and written"):
        replace_file(config, NEW)
    assert config.read_bytes() == OLD


def test_a_file_system_without_fsync_or_locks_is_good_enough(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", refuse(errno.EINVAL))
    monkeypatch.setattr("fcntl.flock", refuse(errno.ENOLCK))
    assert replace_file(config, NEW, OLD) is True
    assert config.read_bytes() == NEW


def test_short_writes_are_carried_on(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, bytes(data[:1000])))
    replace_file(config, NEW)
    assert config.read_bytes() == NEW


def test_a_file_that_changed_since_it_was_read_is_not_overwritten(config: Path) -> None:
    with pytest.raises(ChangedMeanwhile):
        replace_file(config, NEW, b"what was read")
    assert config.read_bytes() == OLD
    assert leftovers(config.parent) == []


def test_a_file_that_vanished_since_it_was_read_is_not_brought_back(config: Path) -> None:
    config.unlink()
    with pytest.raises(ChangedMeanwhile):
        replace_file(config, NEW, OLD)
    assert not config.exists()


# ------------------------------------------------------------------------------------------------ killed in between

STEPS = ["open", "write", "fchown", "fchmod", "fsync", "close", "replace"]
REAL = {step: getattr(os, step) for step in STEPS}


def calls(step: str) -> Iterator[tuple[str, int]]:
    """A step that happens several times is tried at each time."""
    for nth in range(1, 5):
        yield step, nth


def killing(real: Callable[..., object], nth: int, after: bool) -> Callable[..., object]:
    left = [nth]

    def call(*arguments: object, **options: object) -> object:
        left[0] -= 1
        if left[0] == 0 and not after:
            os._exit(9)
        result = real(*arguments, **options)
        if left[0] == 0:
            os._exit(9)
        return result

    return call


def raising(real: Callable[..., object], nth: int) -> Callable[..., object]:
    left = [nth]

    def call(*arguments: object, **options: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            if real is REAL["close"]:
                real(*arguments, **options)  # a close that fails has closed all the same
            raise OSError(errno.EIO, "simulated")
        return real(*arguments, **options)

    return call


def in_a_child(action: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            action()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_leaves_the_old_file_or_the_new_one(config: Path, step: str, after: bool) -> None:
    real_write = os.write

    def action(nth: int) -> None:
        # Half of the data at a time, so that a kill also falls between two writes.
        os.write = lambda handle, data: real_write(handle, bytes(data[: len(NEW) // 2]))  # type: ignore[assignment]
        setattr(os, step, killing(REAL[step], nth, after))
        replace_file(config, NEW, OLD)

    for _, nth in calls(step):
        config.write_bytes(OLD)
        killed = in_a_child(lambda nth=nth: action(nth)) == 9  # type: ignore[misc]
        assert config.read_bytes() in ((OLD, NEW) if killed else (NEW,))
        assert all(re.fullmatch(r"\.ckptlint-\d+-[0-9a-f]{16}\.tmp", name) for name in leftovers(config.parent))
        if not killed:
            return
        assert replace_file(config, NEW) or config.read_bytes() == NEW, "what a kill left behind must not be in the way"


@pytest.mark.parametrize("step", ["open", "write", "fchmod", "fsync", "close", "replace"])
def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_else(
    config: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    for _, nth in calls(step):
        config.write_bytes(OLD)
        with monkeypatch.context() as patched:
            patched.setattr(os, step, raising(REAL[step], nth))
            try:
                replace_file(config, NEW, OLD)
            except CannotWrite:
                assert config.read_bytes() == OLD
            else:
                assert config.read_bytes() == NEW
        assert leftovers(config.parent) == []


# ------------------------------------------------------------------------------------------------ two at once


def add_lines(path: Path, name: str, rounds: int) -> None:
    for number in range(rounds):
        while True:
            old = path.read_bytes()
            try:
                replace_file(path, old + f"{name} {number}\n".encode(), old)
                break
            except ChangedMeanwhile:
                continue


def test_two_processes_on_one_file_lose_nothing_of_each_other(config: Path) -> None:
    config.write_bytes(b"")
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=add_lines, args=(config, name, 50)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert sorted(config.read_text().splitlines()) == sorted(f"{name} {number}" for name in "ab" for number in range(50))
    assert leftovers(config.parent) == []
