"""What a pickle holds, read opcode by opcode: nothing that it names is called."""

import argparse
import collections
import os
import pickle
import random

import pytest
from checkpoint_files import torch_bytes

from ckptlint.checkpoints import pickles
from ckptlint.checkpoints.manifest import ManifestListing

VALUE = {
    "epoch": 3,
    "nested": {"a": [1, 2.5, ("x", None)], "b": True},
    "ordered": collections.OrderedDict([("k", 1)]),
    "default": collections.defaultdict(int, {"d": 2}),
    "none": None,
}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_come_back_as_they_were(protocol):
    assert pickles.read(pickle.dumps(VALUE, protocol)) == VALUE


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_the_fields_of_an_object_are_its_attributes(protocol):
    held = pickles.read(pickle.dumps({"args": argparse.Namespace(tensor=2, name="x")}, protocol))
    assert pickles.attributes(held["args"]) == {"tensor": 2, "name": "x"}


class Trap:
    def __reduce__(self):
        return os.abort, ()


def test_nothing_is_called():
    held = pickles.read(pickle.dumps({"trap": Trap(), "after": 1}))
    assert held["after"] == 1 and held["trap"].name.endswith("abort")


def test_of_a_pickle_that_ends_early_the_first_keys_are_told():
    data = pickle.dumps({"epoch": 3, "weights": list(range(1000)), "last": 1}, 2)
    held = pickles.read(data[: len(data) // 2])
    assert held["epoch"] == 3 and "last" not in held


def test_no_bytes_make_it_fail():
    chance = random.Random(0)
    data = pickle.dumps({**VALUE, "args": argparse.Namespace(a=1)}, 4)
    for _ in range(500):
        at, other = chance.randrange(len(data)), chance.randbytes(chance.randint(1, 4))
        pickles.read(data[:at] + other + data[at + len(other) :])
        pickles.read(chance.randbytes(60))


def test_a_file_tells_its_keys_and_whether_these_are_all():
    data = torch_bytes({"epoch": 3, "optimizer": {"state": {}}})
    listing = ManifestListing("", contents={"a.pt": data})
    assert pickles.top(listing, "a.pt", len(data)) == pickles.Top({"epoch": 3, "optimizer": {"state": {}}}, True)
    assert pickles.top(listing, "a.pt", len(data), limit=20).whole is False
    assert b"epoch" in pickles.head(listing, "a.pt") and pickles.head(listing, "b.pt") == b""
    assert pickles.top(listing, "a.pt", len(data) - 1) is None
