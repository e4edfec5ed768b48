"""Directories on this machine."""

import os
import sys

import pytest

from ckptlint.checkpoints.listing import LocalListing, Unreachable


def test_files_and_directories_are_listed_with_size_and_time(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "x.pt").write_bytes(b"12345")
    os.utime(tmp_path / "x.pt", (1000, 2000))
    listing = LocalListing(tmp_path)
    assert listing.directories() == ("a", "b")
    assert listing.files()["x.pt"].size == 5
    assert listing.files()["x.pt"].modified == 2000
    assert listing.exists("x.pt") and listing.exists("a") and not listing.exists("c")
    assert listing.read("x.pt", 1, 2) == b"23"
    assert listing.read("x.pt", 3) == b"45"


def test_a_directory_is_read_once(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"1")
    looked_at = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looked_at.append(str(path)) or scandir(path))
    listing = LocalListing(tmp_path)
    for _ in range(3):
        listing.tree()
        listing.files("a")
    assert sorted(looked_at) == sorted([str(tmp_path), str(tmp_path / "a")])


def test_only_what_is_asked_for_is_looked_at(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    looked_at = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looked_at.append(str(path)) or scandir(path))
    LocalListing(tmp_path).files("b")
    assert looked_at == [str(tmp_path / "b")]


def test_what_does_not_exist_is_empty(tmp_path):
    listing = LocalListing(tmp_path / "nothing")
    assert listing.files() == {} and listing.directories() == () and listing.tree() == {}
    assert LocalListing(tmp_path).files("a/b") == {}


def test_a_path_through_a_file_is_empty(tmp_path):
    (tmp_path / "x").write_bytes(b"")
    assert LocalListing(tmp_path).files("x/y") == {}


def test_a_file_as_root_is_named_as_such(tmp_path):
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(Unreachable, match="is a file, not a directory"):
        LocalListing(tmp_path / "x").files()


def test_a_refused_directory_says_so_and_what_to_do(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(Unreachable, match=r"permission denied; run as a user who may read it"):
        LocalListing(tmp_path).directories()


def test_a_storage_that_does_not_answer_says_so(tmp_path, monkeypatch):
    def fail(path):
        raise OSError(107, "Transport endpoint is not connected")

    monkeypatch.setattr(os, "scandir", fail)
    with pytest.raises(Unreachable, match=r"not connected; check that the storage is mounted"):
        LocalListing(tmp_path).directories()


def test_links_are_followed_and_broken_ones_left_out(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_bytes(b"123")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").symlink_to("real/x")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "self").symlink_to("self")
    listing = LocalListing(tmp_path)
    assert listing.directories() == ("link", "real")
    assert dict(listing.files()).keys() == {"file"}
    assert listing.files("link")["x"].size == 3


def test_a_link_to_a_directory_above_ends(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"1")
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "here").symlink_to(".")
    assert set(LocalListing(tmp_path).tree()) == {"a/x"}


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_pipes_are_left_out_because_reading_one_waits_for_ever(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert LocalListing(tmp_path).files() == {}


def test_the_name_is_the_last_part_of_the_path(tmp_path, monkeypatch):
    (tmp_path / "checkpoint-5").mkdir()
    assert LocalListing(tmp_path / "checkpoint-5").name == "checkpoint-5"
    assert LocalListing(f"{tmp_path}/checkpoint-5/").name == "checkpoint-5"
    monkeypatch.chdir(tmp_path / "checkpoint-5")
    assert LocalListing(".").name == "checkpoint-5"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert LocalListing("~/checkpoint-5").exists("") is False
    assert LocalListing("~").directories() == ("checkpoint-5",)
