"""Listings written down as text."""

from pathlib import Path

import pytest

from ckptlint.checkpoints.listing import UnknownContent
from ckptlint.checkpoints.manifest import ManifestError, ManifestListing

LISTINGS = Path(__file__).parents[2] / "fixtures" / "listings"

TEXT = """\
# bytes  mtime             path
14       2025-06-01T10:00  out/checkpoint-400/latest      (content: global_step400)
31022    1748772000        out/checkpoint-400/trainer_state.json   ("global_step": 400)
900      -                 out/checkpoint-400/model.safetensors
80       -                 out/checkpoint-400/optimizer.pt  (zeros)
0        -                 out/empty/
-        -                 out/newest -> checkpoint-400
"""


def test_sizes_times_folders_and_links_are_taken_from_the_columns():
    listing = ManifestListing(TEXT, "out")
    assert listing.directories() == ("checkpoint-400", "empty", "newest")
    assert listing.files("checkpoint-400")["model.safetensors"].size == 900
    assert listing.files("checkpoint-400")["latest"].modified == 1748772000.0
    assert listing.files("checkpoint-400")["trainer_state.json"].modified == 1748772000.0
    assert listing.files("checkpoint-400")["model.safetensors"].modified is None
    assert listing.files("newest") == listing.files("checkpoint-400")
    assert listing.read("newest/latest") == b"global_step400"
    assert listing.files("empty") == {} and listing.name == "out"


def test_content_in_parentheses_is_what_a_read_gives():
    listing = ManifestListing(TEXT, "out/checkpoint-400")
    assert listing.read("latest") == b"global_step400"
    assert listing.read("latest", 6, 5) == b"_step"
    assert listing.read("trainer_state.json") == b'{"global_step": 400}'
    assert listing.read("optimizer.pt", 10, 1000) == bytes(70)


def test_content_that_is_not_given_is_unknown_and_not_empty():
    with pytest.raises(UnknownContent):
        ManifestListing(TEXT, "out").read("checkpoint-400/model.safetensors")
    with pytest.raises(FileNotFoundError):
        ManifestListing(TEXT, "out").read("checkpoint-400/nothing")


def test_bytes_can_be_given_by_path():
    listing = ManifestListing(TEXT, "out", {"out/checkpoint-400/model.safetensors": b"abc", "out/new/x": b"y"})
    assert listing.files("checkpoint-400")["model.safetensors"].size == 3
    assert listing.read("new/x") == b"y"


@pytest.mark.parametrize("line", ["nonsense", "12 yesterday path", "12 - "])
def test_a_line_that_is_none_is_named(line):
    with pytest.raises(ManifestError, match="line 2"):
        ManifestListing(f"# bytes\n{line}\n")


@pytest.mark.parametrize("path", sorted(LISTINGS.glob("*.txt")), ids=lambda path: path.stem)
def test_the_listings_of_the_fixtures_can_be_read(path):
    listing = ManifestListing.of_file(path)
    assert listing.tree() or listing.directories()  # C012 has empty folders alone
