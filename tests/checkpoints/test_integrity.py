"""Whether a file is whole."""

import json
import pickle
import struct
from pathlib import Path

import pytest
from checkpoint_files import OPTIMIZER, is_zip, safetensors_bytes, torch_bytes
from hypothesis import given
from hypothesis import strategies as st

from ckptlint.checkpoints import integrity
from ckptlint.checkpoints.listing import FileInfo, LocalListing
from ckptlint.checkpoints.manifest import ManifestListing


def fault(name, data, *, deep=False):
    listing = ManifestListing("", contents={name: data})
    return integrity.fault(listing, name, FileInfo(len(data)), deep=deep)


WHOLE = {
    "optimizer.pt": torch_bytes(OPTIMIZER),
    "rng_state.pth": torch_bytes({"python": [1]}),
    "pytorch_model.bin": torch_bytes({"weight": 1}),
    "model.safetensors": safetensors_bytes({"a": [1.0], "b": [], "c": [2.0, 3.0]}),
    "trainer_state.json": b'{"global_step": 5}',
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_files_pass(name):
    assert fault(name, WHOLE[name]) is None
    assert fault(name, WHOLE[name], deep=True) is None


@pytest.mark.parametrize("name", WHOLE)
def test_every_cut_is_noticed(name):
    for length in range(len(WHOLE[name])):
        assert fault(name, WHOLE[name][:length]) is not None, length


@pytest.mark.parametrize("name", WHOLE)
def test_a_missing_front_and_added_bytes_are_noticed(name):
    data = WHOLE[name]
    assert fault(name, data[1:]) and fault(name, data[len(data) // 2 :])
    assert fault(name, data + b"\0") and fault(name, data + data)


@pytest.mark.parametrize("name", WHOLE)
def test_nothing_but_zeros_is_noticed(name):
    assert fault(name, bytes(len(WHOLE[name])))


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("optimizer.pt", b"", "is empty"),
        ("optimizer.pt", WHOLE["optimizer.pt"][:-1], "is cut short: no ZIP directory"),
        ("optimizer.pt", WHOLE["optimizer.pt"][:2], "is cut short: no ZIP directory"),
        ("optimizer.pt", bytes(500), "is not a torch file: it begins with zero bytes"),
        ("optimizer.pt", b"<html>" * 90, "is not a file that torch.save wrote"),
        ("model.safetensors", WHOLE["model.safetensors"][:-4], "is cut short"),
        ("model.safetensors", WHOLE["model.safetensors"][:5], "is cut short: no safetensors header"),
        ("model.safetensors", b"<html>" * 90, "is not a safetensors file"),
        ("trainer_state.json", b'{"global_step": 5, "lo', "is cut short: the JSON does not end"),
        ("trainer_state.json", b"[1, 2]", "is not a JSON object"),
        ("trainer_state.json", b"\0" * 9, "holds nothing but zero bytes"),
        ("trainer_state.json", b"[" * 100_000, "is cut short: the JSON does not end"),
        ("trainer_state.json", b'{"a": 1]}', "is not valid JSON"),
    ],
)
def test_the_reason_says_what_is_wrong(name, data, words):
    assert words in (fault(name, data) or "")


def test_deep_finds_a_changed_byte_in_every_member():
    data = WHOLE["optimizer.pt"]
    at = data.index(bytes(range(64))) + 30
    changed = data[:at] + b"\xff" + data[at + 1 :]
    assert fault("optimizer.pt", changed) is None
    assert "the checksum of `archive/data/0` is wrong" in fault("optimizer.pt", changed, deep=True)


def test_files_of_the_old_torch_format_are_neither_broken_nor_called_verified(tmp_path):
    data = integrity.OLD_TORCH_MAGIC + b"more"
    (tmp_path / "pytorch_model.bin").write_bytes(data)
    assert fault("pytorch_model.bin", data) is None
    assert integrity.is_old_torch(LocalListing(tmp_path), "pytorch_model.bin")
    assert not integrity.is_old_torch(LocalListing(tmp_path), "nothing")
    assert "cut short" in fault("pytorch_model.bin", data[:9])


def tensors(**entries):
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + bytes(16)


def entry(begin, end, *, shape=None, dtype="F32"):
    return {"dtype": dtype, "shape": shape if shape is not None else [(end - begin) // 4], "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"a": entry(0, 8), "b": entry(4, 16)}, "overlap or leave a gap"),
        ({"a": entry(0, 4), "b": entry(8, 16)}, "overlap or leave a gap"),
        ({"a": entry(0, 16, shape=[5])}, "another length than its shape says"),
        ({"a": {"dtype": "F32"}}, "describes `a` wrongly"),
        ({"a": {"dtype": "F32", "shape": 4, "data_offsets": [0, 16]}}, "describes `a` wrongly"),
        ({"a": {"dtype": [], "shape": [4], "data_offsets": [0, 16]}}, "describes `a` wrongly"),
        ({"a": entry(0, 12)}, "is damaged: "),
    ],
)
def test_a_safetensors_header_that_does_not_describe_the_file_is_noticed(header, words):
    assert words in (fault("model.safetensors", tensors(**header)) or "")


def test_a_data_type_of_the_future_passes():
    assert fault("model.safetensors", tensors(a=entry(0, 16, shape=[3], dtype="F6_E9"))) is None


def test_content_that_is_not_known_passes_and_a_size_of_zero_does_not():
    listing = ManifestListing("900 - optimizer.pt\n0 - scheduler.pt\n")
    assert integrity.fault(listing, "optimizer.pt", FileInfo(900)) is None
    assert integrity.fault(listing, "scheduler.pt", FileInfo(0)) == "is empty"


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    def refuse(self, path, start=0, length=None):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(LocalListing, "read", refuse)
    listing = LocalListing(tmp_path)
    assert integrity.fault(listing, "model.safetensors", FileInfo(9)) == "cannot be read: permission denied"


def test_nothing_in_a_pickle_is_called(tmp_path):
    touched = tmp_path / "touched"

    class Trap:
        def __reduce__(self):
            return (open, (str(touched), "w"))

    data = torch_bytes({"state": Trap(), "dp_world_size": 4})
    assert fault("optimizer.pt", data, deep=True) is None
    listing = ManifestListing("", contents={"optimizer.pt": data})
    assert integrity.values(integrity.pickle_of(listing, "optimizer.pt", len(data)), ["dp_world_size"]) == {"dp_world_size": 4}
    assert not touched.exists()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_values_of_a_pickle_are_read_without_unpickling(protocol):
    written = {"count": 70000, "few": 3, "none": None, "yes": True, "text": "abc", "many": [1, 2], "rate": 0.5, "big": 1 << 80}
    found = integrity.values(pickle.dumps(written, protocol), [*written, "absent"])
    assert found == {**written, "many": integrity.SOMETHING}


def test_an_optimizer_without_state_is_told_from_one_with_a_single_entry():
    for state, empty in (({}, True), ({0: {"step": 1.0}}, False), ({"a": {}}, False), (OPTIMIZER["state"], False)):
        data = torch_bytes({"state": state, "param_groups": [{"lr": 0.1}]})
        listing = ManifestListing("", contents={"optimizer.pt": data})
        assert integrity.optimizer_is_empty(listing, "optimizer.pt", len(data)) is empty


@given(st.sampled_from(sorted(WHOLE)), st.data())
def test_no_bytes_make_it_crash(name, draw):
    data = bytearray(WHOLE[name])
    for _ in range(draw.draw(st.integers(1, 6))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    answer = fault(name, bytes(data), deep=True)
    assert answer is None or isinstance(answer, str)
    pickled = bytes(data)
    assert isinstance(integrity.values(pickled, ["state", "param_groups"]), dict)


@given(st.binary(max_size=300), st.sampled_from(sorted(WHOLE)))
def test_no_made_up_file_makes_it_crash(data, name):
    answer = fault(name, data, deep=True)
    assert answer is None or isinstance(answer, str)


def test_the_test_files_are_what_the_standard_library_reads_too():
    assert is_zip(WHOLE["optimizer.pt"]) and not is_zip(WHOLE["optimizer.pt"][:-1])


# ------------------------------------------------------------------------------------------------ torch.distributed.checkpoint

# Written by torch 2.13: three tensors and a number in one shard (tests/drills writes such folders afresh).
METADATA = (Path(__file__).parents[2] / "fixtures" / "checkpoints" / "torch-2.13.metadata").read_bytes()
SHARD = "model/__0_0.distcp"


def dcp(metadata, shard_size):
    contents = {"model/.metadata": metadata} | ({SHARD: bytes(shard_size)} if shard_size is not None else {})
    return integrity.dcp_fault(ManifestListing("", contents=contents), "model", "model")


def least():
    return integrity.dcp_files(ManifestListing("", contents={"m": METADATA}), "m")["__0_0.distcp"]


def test_metadata_names_the_files_and_the_bytes_that_they_must_have():
    assert least() > 3 * 4
    assert dcp(METADATA, least()) is None
    assert dcp(METADATA, least() - 1) == f"{SHARD} is cut short: {least()} bytes by .metadata, {least() - 1} on disk"
    assert dcp(METADATA, None) == f"{SHARD} is missing"


def test_every_cut_of_the_metadata_is_noticed():
    for length in range(len(METADATA)):
        assert dcp(METADATA[:length], least()), length
    assert dcp(bytes(len(METADATA)), least()) == "model/.metadata holds nothing but zero bytes"


def test_without_metadata_the_save_did_not_finish():
    assert (
        integrity.dcp_fault(ManifestListing(f"100 - {SHARD}\n"), "model", "model")
        == "model/.metadata is missing: the save did not finish"
    )


def test_an_empty_shard_is_noticed_even_where_the_metadata_is_not_known():
    assert integrity.dcp_fault(ManifestListing(f"9 - model/.metadata\n0 - {SHARD}\n"), "model", "model") == f"{SHARD} is empty"
