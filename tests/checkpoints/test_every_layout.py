"""What holds of every layout: the directory alone tells it, and where the newest one is damaged the older is taken."""

from __future__ import annotations

import random

import pytest
from checkpoint_files import LONG_AGO
from layout_files import FAMILIES, MemoryListing, directory

from ckptlint.checkpoints.checkpoint import Verdict
from ckptlint.checkpoints.listing import Unreachable
from ckptlint.checkpoints.scan import scan
from ckptlint.checkpoints.tracker import WRONG
from ckptlint.run import State

OLD, NEW = 100, 200
EVERY = pytest.mark.parametrize("name", FAMILIES)


def only(files, times=None, **options):
    (found,) = scan(MemoryListing(files, times), now=LONG_AGO + 1e6, **options)
    return found


def newest(name, files):
    """The files of the newest checkpoint alone."""
    made = FAMILIES[name].build(NEW)
    return [path for path in files if path in made]


def needed(name, files):
    return [path for path in newest(name, files) if not any(part in path for part in FAMILIES[name].harmless)]


def taken(found):
    return None if found.restart is None else found.restart.step // (10 if found.layout.name == "mindspore" else 1)


@EVERY
def test_one_layout_claims_it_and_calls_what_is_whole_complete(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    found = only(files, times)
    assert found.layout.name == FAMILIES[name].layout
    assert [checkpoint.verdict for checkpoint in found.checkpoints] == [Verdict.COMPLETE] * 2
    assert taken(found) == NEW and found.notices == ()
    assert State.MODEL in found.restart.state and State.OPTIMIZER in found.restart.state


@EVERY
def test_checksums_of_what_is_whole_are_right(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    assert taken(only(files, times, deep=True)) == NEW


@EVERY
def test_a_missing_file_of_the_newest_makes_a_restart_take_the_older(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    for path in needed(name, files):
        left = {other: data for other, data in files.items() if other != path}
        assert taken(only(left, times)) == OLD, path


@EVERY
def test_an_empty_file_of_the_newest_makes_a_restart_take_the_older(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    for path in needed(name, files):
        if not path.endswith("_complete"):  # a mark is there or not
            assert taken(only({**files, path: b""}, times)) == OLD, path


@EVERY
def test_a_file_cut_anywhere_makes_a_restart_take_the_older(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    chance = random.Random(name)
    for path in needed(name, files):
        data = files[path]
        for length in {1, len(data) // 2, len(data) - 1, *(chance.randrange(len(data)) for _ in range(3))}:
            if 0 < length < len(data):
                assert taken(only({**files, path: data[:length]}, times)) == OLD, (path, length)


@EVERY
def test_a_zero_tail_makes_a_restart_take_the_older(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    for path in needed(name, files):
        data = files[path]
        if len(data) > 64 and not path.endswith(".safetensors") and FAMILIES[name].layout != "mindspore":
            assert taken(only({**files, path: data[:-48] + bytes(48)}, times)) == OLD, path
        if len(data) > 1:
            assert taken(only({**files, path: bytes(len(data))}, times)) == OLD, path


@EVERY
def test_harmless_files_are_harmless(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    for path in set(newest(name, files)) - set(needed(name, files)):
        left = {other: data for other, data in files.items() if other != path}
        assert taken(only(left, times)) == NEW, path


@EVERY
def test_an_interrupted_save_of_this_minute_is_in_progress(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    for path in needed(name, files):
        left = {other: data for other, data in files.items() if other != path}
        (found,) = scan(MemoryListing(left, times), now=LONG_AGO + 3600.0 + 60)
        verdict = found.checkpoints[0].verdict
        assert found.checkpoints[0].step == found.restart.step or verdict is not Verdict.COMPLETE, path


TRACKED = pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.tracker])


@TRACKED
@pytest.mark.parametrize("text", [None, b"", b"\0\0\0", b"nonsense", "old", "ahead"])
def test_a_wrong_tracker_changes_nothing_and_is_named(name, text):
    files, times = directory(FAMILIES[name], OLD, NEW)
    tracker, form = FAMILIES[name].tracker
    written = {"old": OLD, "ahead": 300}.get(text)
    if text is None:
        del files[tracker]
    else:
        files[tracker] = text if written is None else form.format(written).encode()
    times[tracker] = LONG_AGO + 1  # before the newest was written: the crash came in between
    found = only(files, times)
    assert taken(found) == NEW
    assert [notice.name for notice in found.notices] == [WRONG], found.notices


@TRACKED
def test_what_is_above_a_tracker_set_back_later_is_an_earlier_run_s(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    tracker, form = FAMILIES[name].tracker
    files[tracker], times[tracker] = form.format(OLD).encode(), LONG_AGO + 7200.0
    times |= dict.fromkeys(FAMILIES[name].build(OLD), LONG_AGO + 7199.0)
    found = only(files, times)
    assert taken(found) == OLD and found.checkpoints[0].superseded
    assert "mixed-runs" in [notice.name for notice in found.notices]


RESAVED = pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.mark])


def resaved(name, files, times, step):
    """Half of the files of a step written anew an hour later, their mark not."""
    family = FAMILIES[name]
    mine = [path for path in family.build(step) if family.payload in path and family.mark not in path]
    return times | dict.fromkeys(mine[: max(1, len(mine) // 2)], max(times.values()) + 3600.0)


@RESAVED
def test_a_save_into_an_old_folder_that_stopped_half_way_is_noticed(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    found = only(files, resaved(name, files, times, NEW))
    assert taken(found) == OLD, found.checkpoints[0]
    assert "a later save into this folder was interrupted" in " ".join(found.checkpoints[0].reasons)


@RESAVED
def test_copies_whose_times_are_all_like_that_are_not_called_damaged(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    if FAMILIES[name].mark.startswith("latest"):
        pytest.skip("the tracker is one for all")
    times = resaved(name, files, resaved(name, files, times, OLD), NEW)
    assert taken(only(files, times)) == NEW


@RESAVED
def test_a_single_copied_checkpoint_is_not_called_damaged(name):
    files, times = directory(FAMILIES[name], NEW)
    if FAMILIES[name].mark.startswith("latest"):
        pytest.skip("a tracker that is older than what it names tells of a save")
    found = only(files, resaved(name, files, times, NEW))
    assert taken(found) == NEW and "or it was copied so" in found.restart.reasons[-1]


@EVERY
def test_no_damage_to_several_files_at_once_makes_it_fail(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    chance = random.Random(name)
    paths = sorted(files)
    for _ in range(40):
        broken = dict(files)
        for path in chance.sample(paths, chance.randint(1, len(paths))):
            data = files[path]
            kind = chance.randrange(5)
            if kind == 0:
                del broken[path]
            elif kind == 1:
                broken[path] = data[: chance.randrange(len(data) + 1)]
            elif kind == 2:
                broken[path] = bytes(len(data))
            elif kind == 3:
                broken[path] = chance.randbytes(len(data))
            else:
                at = chance.randrange(len(data)) if data else 0
                broken[path] = data[:at] + chance.randbytes(3) + data[at + 3 :]
        for found in scan(MemoryListing(broken, times), now=0.0):
            assert all(checkpoint.verdict in Verdict for checkpoint in found.checkpoints)


def test_no_mixture_of_the_layouts_makes_it_fail():
    everything = {path: data for family in FAMILIES.values() for path, data in directory(family, OLD, NEW)[0].items()}
    paths = sorted(everything)
    chance = random.Random(0)
    for _ in range(150):
        mixed = {}
        for path in chance.sample(paths, chance.randint(1, 40)):
            parts = path.split("/")
            place = "/".join(parts[chance.randrange(len(parts)) :])
            mixed[place] = everything[path]
        files = {path: data for path, data in mixed.items() if not any(other.startswith(path + "/") for other in mixed)}
        for found in scan(MemoryListing(files, root=chance.choice(("run", "checkpoint-5", "step_9", "iter_0000007"))), now=0.0):
            assert found.checkpoints


@EVERY
def test_a_folder_that_cannot_be_listed_stops_nothing_else(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    folders = {path.rsplit("/", depth)[0] for path in newest(name, files) for depth in range(1, path.count("/") + 1)}
    for shut in folders:
        listing = MemoryListing(files, times)
        inside, below = listing.files, listing.directories

        def refused(path, shut=shut):
            if path == shut:
                raise Unreachable(f"{path} cannot be listed: permission denied; run as a user who may read it")

        listing.files = lambda path="", inside=inside, refused=refused: refused(path) or inside(path)
        listing.directories = lambda path="", below=below, refused=refused: refused(path) or below(path)
        for found in scan(listing, now=2e9):
            assert found.restart is None or taken(found) <= NEW


@EVERY
def test_files_that_cannot_be_read_are_never_called_whole(name):
    files, times = directory(FAMILIES[name], OLD, NEW)
    for path in needed(name, files):
        if path.endswith("_complete"):
            continue
        listing = MemoryListing(files, times)
        read = listing.read

        def failing(other, start=0, length=None, path=path, read=read):
            if other == path:
                raise OSError(5, "Input/output error", path)
            return read(other, start, length)

        listing.read = failing
        for found in scan(listing, now=2e9):
            assert taken(found) == OLD, path
