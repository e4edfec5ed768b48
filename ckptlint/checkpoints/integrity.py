"""Whether a checkpoint's file is whole, judged by its own directory, header and sizes.

Standard library only. Files are read in ranges (heads, tails, directories), never as a whole unless ``deep`` asks for
checksums, and never unpickled: ``pickletools`` walks the opcodes of a pickle and calls nothing. Each test answers None (whole)
or what is wrong in words that follow the file's name ("is cut short: no ZIP directory").
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import prod

from ckptlint.checkpoints.listing import FileInfo, Listing, UnknownContent

# The first bytes of torch.save before torch 1.6 (and of _use_new_zipfile_serialization=False): its magic number as a pickle.
OLD_TORCH_MAGIC = bytes.fromhex("80028a0a6cfc9c46f9206aa85019")

_TAIL = 1 << 16
_CHUNK = 1 << 22
_MAX_JSON = 1 << 28

# safetensors: bits of one element, by dtype name. An unknown name only loses the check of that tensor's length.
_BITS = {
    **dict.fromkeys(("F4",), 4),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
}
_MAX_SAFETENSORS_HEADER = 100_000_000  # the safetensors library refuses longer ones


class Broken(Exception):
    """What is wrong with a file, in words that follow its name."""


def fault(listing: Listing, path: str, info: FileInfo, *, deep: bool = False, ends: bool = False) -> str | None:
    """What is wrong with one file, judged by what its name says it is; None: whole, or nothing can be said.

    ``ends``: of a torch file only head and tail are read, some 150 bytes: enough for every cut and for a zero head or tail.
    """
    if info.size == 0:
        return "is empty"
    try:
        if ends and not deep and _is_torch_name(path.rpartition("/")[2]):
            torch_ends(listing, path, info.size)
        else:
            _examine(listing, path, info.size, deep)
    except Broken as broken:
        return str(broken)
    except UnknownContent:
        return None
    except OSError as error:
        return unreadable(error)
    return None


def unreadable(error: OSError) -> str:
    """Words for a file that is there and cannot be read."""
    return f"cannot be read: {(error.strerror or str(error)).lower()}"


def _examine(listing: Listing, path: str, size: int, deep: bool) -> None:
    name = path.rpartition("/")[2]
    if name.endswith(".safetensors"):
        safetensors_header(listing, path, size)
    elif name.endswith(".json"):
        json_object(listing, path)
    elif _is_torch_name(name):
        torch_file(listing, path, size, deep=deep)


def _is_torch_name(name: str) -> bool:
    return ".pt" in name or name.endswith((".bin", ".pth"))


# ------------------------------------------------------------------------------------------------ JSON


def json_object(listing: Listing, path: str) -> dict[str, object]:
    """A JSON file's object.

    Raises:
        Broken: it is not whole, or not an object.
        OSError: it cannot be read.
    """
    import json

    data = listing.read(path, 0, _MAX_JSON)
    if not data.strip(b"\0 \t\r\n"):
        raise Broken("holds nothing but zero bytes" if data.strip() else "is empty")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        cut = not data.rstrip().endswith(b"}")
        raise Broken("is cut short: the JSON does not end" if cut else "is not valid JSON") from None
    if not isinstance(value, dict):
        raise Broken("is not a JSON object")
    return value


# ------------------------------------------------------------------------------------------------ safetensors


def safetensors_header(listing: Listing, path: str, size: int) -> dict[str, object]:
    """The header of a whole safetensors file: tensor name to dtype, shape and offsets.

    The rules are those of the safetensors library: eight bytes of header length, the header, then tensors that lie side by side
    without gap or overlap up to the last byte of the file.

    Raises:
        Broken, OSError.
    """
    import json

    if size < 8:
        raise Broken("is cut short: no safetensors header")
    start = listing.read(path, 0, _TAIL)
    if len(start) < 8:
        raise Broken("is cut short: no safetensors header")
    (length,) = struct.unpack("<Q", start[:8])
    if length == 0:
        raise Broken("is not a safetensors file: it begins with zero bytes")
    if length > _MAX_SAFETENSORS_HEADER:
        raise Broken("is not a safetensors file")
    if 8 + length > size:
        raise Broken("is cut short: the safetensors header does not end")
    head = start[8 : 8 + length]
    if len(head) < length:
        head += listing.read(path, 8 + len(head), length - len(head))
    try:
        header = json.loads(head)
    except (ValueError, RecursionError):
        raise Broken("is damaged: its safetensors header is not JSON") from None
    if not isinstance(header, dict):
        raise Broken("is damaged: its safetensors header is not an object")
    end = _tensor_end(header)
    if size < 8 + length + end:
        raise Broken(f"is cut short: {8 + length + end} bytes by its header, {size} on disk")
    if size > 8 + length + end:
        raise Broken(f"is damaged: {8 + length + end} bytes by its header, {size} on disk")
    return header


def _tensor_end(header: dict[str, object]) -> int:
    """Where the last tensor ends; raises Broken on a gap, an overlap or a length that does not fit dtype and shape."""
    spans: list[tuple[int, int]] = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            begin, end = entry["data_offsets"]  # type: ignore[index]
            shape, dtype = entry["shape"], entry["dtype"]  # type: ignore[index]
            if not all(isinstance(number, int) and number >= 0 for number in (begin, end, *shape)):
                raise TypeError
            elements, bits = prod(shape), _BITS.get(dtype)
        except (TypeError, KeyError, ValueError):
            raise Broken(f"is damaged: its safetensors header describes `{name}` wrongly") from None
        if bits is not None and (elements * bits + 7) // 8 != end - begin:
            raise Broken(f"is damaged: `{name}` has another length than its shape says")
        spans.append((begin, end))
    at = 0
    for begin, end in sorted(spans):
        if begin != at or end < begin:
            raise Broken("is damaged: its tensors overlap or leave a gap")
        at = end
    return at


# ------------------------------------------------------------------------------------------------ torch.save


@dataclass(frozen=True)
class Member:
    """One entry of a ZIP directory. ``offset`` is its local header's, ``stored`` the bytes it takes up."""

    name: str
    offset: int
    stored: int
    size: int
    crc: int
    method: int
    least: int  # bytes of the local header, without an extra field


def torch_file(listing: Listing, path: str, size: int, *, deep: bool = False) -> tuple[Member, ...]:
    """The members of a whole torch.save file; () for the format before torch 1.6, which holds no directory to check.

    Raises:
        Broken, OSError.
    """
    if _torch_head(listing, path):
        return ()
    members = _zip_directory(listing, path, size)
    if not any(member.name.endswith("/data.pkl") for member in members):
        raise Broken("is damaged: it holds no data.pkl")
    for member in members if deep else (members[-1],):
        _check_member(listing, path, member, deep)
    return members


def torch_ends(listing: Listing, path: str, size: int) -> None:
    """Judge a torch file by its first and last bytes: the ZIP directory must begin where its end says, and end with the file.

    Raises:
        Broken, OSError.
    """
    if _torch_head(listing, path):
        return
    tail = listing.read(path, max(0, size - 98), min(98, size))
    _, start, _ = _directory_place(tail, size)
    if listing.read(path, start, 4) != b"PK\x01\x02":
        raise Broken("is damaged: its ZIP directory is not readable")


def _torch_head(listing: Listing, path: str) -> bool:
    """Whether a file begins as torch's old format, which holds no directory to check; raises Broken if it begins as neither."""
    head = listing.read(path, 0, 16)
    if head.startswith(OLD_TORCH_MAGIC):
        return True
    if OLD_TORCH_MAGIC.startswith(head) and len(head) < len(OLD_TORCH_MAGIC):
        raise Broken("is cut short: no ZIP directory")
    if not head.startswith(b"PK\x03\x04"[: len(head)]):
        zeros = not head.strip(b"\0")
        raise Broken("is not a torch file: it begins with zero bytes" if zeros else "is not a file that torch.save wrote")
    return False


def is_old_torch(listing: Listing, path: str) -> bool:
    """Whether a file is in torch's format before 1.6, which cannot be verified."""
    try:
        return listing.read(path, 0, len(OLD_TORCH_MAGIC)) == OLD_TORCH_MAGIC
    except OSError:
        return False


def _zip_directory(listing: Listing, path: str, size: int) -> tuple[Member, ...]:
    """The central directory. It must end at the file's last byte and every entry must lie before it, none over another.

    Own reading instead of ``zipfile``: that one opens a file with bytes missing in front or added at the end, and reads entry
    by entry where two ranged reads are enough.
    """
    base = max(0, size - _TAIL)
    tail = listing.read(path, base, size - base)
    count, start, end = _directory_place(tail, size)
    directory = tail[start - base : end - base] if start >= base else listing.read(path, start, end - start)
    members = tuple(_members(directory))
    if len(members) != count:
        raise Broken("is damaged: its ZIP directory does not list every entry")
    at = 0
    for member in sorted(members, key=lambda member: member.offset):
        if member.offset < at:
            raise Broken("is damaged: entries of its ZIP directory overlap")
        at = member.offset + member.least + member.stored
    if at > start:
        raise Broken("is damaged: an entry lies outside the file")
    return members


def _directory_place(tail: bytes, size: int) -> tuple[int, int, int]:
    """How many entries a ZIP directory has, and where in the file it begins and ends, by the last bytes of the file."""
    if len(tail) < 22 or tail[-22:-18] != b"PK\x05\x06":
        raise Broken("is cut short: no ZIP directory")
    count, length, start = struct.unpack("<HII", tail[-12:-2])
    end = size - 22
    if tail[-42:-38] == b"PK\x06\x07":
        if tail[-98:-94] != b"PK\x06\x06":
            raise Broken("is damaged: its ZIP directory has no ZIP64 record")
        count, length, start = struct.unpack("<QQQ", tail[-66:-42])
        end = size - 98
    if start + length != end:
        raise Broken(
            "is damaged: bytes are missing" if start + length > end else "is damaged: it holds more than its ZIP directory says"
        )
    return count, start, end


def _members(directory: bytes) -> Iterator[Member]:
    at = 0
    while at < len(directory):
        if directory[at : at + 4] != b"PK\x01\x02" or at + 46 > len(directory):
            raise Broken("is damaged: its ZIP directory is not readable")
        fields = struct.unpack("<4x4xHH4xIIIHHH8xI", directory[at : at + 46])
        _, method, crc, stored, size, name_length, extra_length, comment_length, offset = fields
        name = directory[at + 46 : at + 46 + name_length]
        extra = directory[at + 46 + name_length : at + 46 + name_length + extra_length]
        size, stored, offset = _zip64(extra, size, stored, offset)
        yield Member(name.decode("utf-8", "replace"), offset, stored, size, crc, method, 30 + name_length)
        at += 46 + name_length + extra_length + comment_length


def _zip64(extra: bytes, *values: int) -> list[int]:
    """Size, stored size and offset, taken from the ZIP64 field where they do not fit 32 bits."""
    if 0xFFFFFFFF not in values:
        return list(values)
    at, wide = 0, b""
    while at + 4 <= len(extra):
        kind, length = struct.unpack("<HH", extra[at : at + 4])
        if kind == 1:
            wide = extra[at + 4 : at + 4 + length]
        at += 4 + length
    result = []
    for value in values:
        if value == 0xFFFFFFFF and len(wide) >= 8:
            value, wide = struct.unpack("<Q", wide[:8])[0], wide[8:]
        result.append(value)
    return result


def _member_start(listing: Listing, path: str, member: Member) -> int:
    """Where a member's bytes begin; raises Broken where its local header is not there."""
    header = listing.read(path, member.offset, 30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise Broken(f"is damaged: no header where `{member.name}` begins")
    name_length, extra_length = struct.unpack("<HH", header[26:30])
    return int(member.offset + 30 + name_length + extra_length)


def _check_member(listing: Listing, path: str, member: Member, deep: bool) -> None:
    start = _member_start(listing, path, member)
    if not deep or member.method != 0 or not member.crc:
        return  # torch stores without compressing; a crc of 0 is what torch writes with set_crc32_options(False)
    import zlib

    crc = 0
    for at in range(start, start + member.stored, _CHUNK):
        crc = zlib.crc32(listing.read(path, at, min(_CHUNK, start + member.stored - at)), crc)
    if crc != member.crc:
        raise Broken(f"is damaged: the checksum of `{member.name}` is wrong")


# ------------------------------------------------------------------------------------------------ what a pickle says


def pickle_of(listing: Listing, path: str, size: int, limit: int = 1 << 26) -> bytes:
    """The bytes of a torch file's data.pkl (its first ``limit``): the structure, without the tensors. b"" where there is none.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        members = torch_file(listing, path, size)
        member = next((member for member in members if member.name.endswith("/data.pkl")), None)
        if member is None or member.method != 0:
            return b""
        start = _member_start(listing, path, member)
    except Broken:
        return b""
    return listing.read(path, start, min(limit, member.stored))


class Something:
    """What a pickle holds where it is neither a number, a text, None nor an empty container."""


SOMETHING = Something()
END = Something()  # the opcode that ends a pickle


def values(pickle: bytes, names: Iterable[str]) -> Mapping[str, object]:
    """What a pickle gives for dictionary keys: int, float, bool, str or None; SOMETHING for anything larger.

    The walk begins at the first place a key is written in, so that a large pickle costs a search and a few opcodes.
    """
    found: dict[str, object] = {}
    for name in names:
        text = name.encode()
        for key in (b"X" + struct.pack("<I", len(text)) + text, b"\x8c" + bytes([len(text)]) + text):
            at = pickle.find(key)
            if at >= 0:
                value = next(islice(_atoms(pickle[at : at + len(key) + 4096]), 1, None), SOMETHING)
                found[name] = value if value is None or isinstance(value, (int, float, str)) else SOMETHING
                break
    return found


def _atoms(pickle: bytes) -> Iterator[object]:
    """What a pickle's opcodes push, in order: numbers, texts (also by memo), None, {}, [], else SOMETHING; at last END.

    Stops in silence where the bytes end or are no pickle.
    """
    import pickletools

    memo: dict[object, object] = {}
    last: object = SOMETHING
    try:
        for opcode, argument, _ in pickletools.genops(pickle):
            name = opcode.name
            if name in ("PUT", "BINPUT", "LONG_BINPUT"):
                memo[argument] = last
                continue
            if name == "MEMOIZE":
                memo[len(memo)] = last
                continue
            if name in ("GET", "BINGET", "LONG_BINGET"):
                last = memo.get(argument, SOMETHING)
            elif name in _NUMBERS or name in _TEXTS:
                last = argument
            elif name in _FIXED:
                last = _FIXED[name]
            elif name in ("PROTO", "FRAME", "MARK"):
                continue
            elif name == "STOP":
                last = END
            else:
                last = SOMETHING
            yield last
    except Exception:  # pickletools raises ValueError, IndexError, UnicodeDecodeError … on bytes that are no pickle
        return


_NUMBERS = frozenset(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"))
_TEXTS = frozenset(("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING", "SHORT_BINSTRING"))
_FIXED: dict[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_DICT": {}, "EMPTY_LIST": []}


def optimizer_is_empty(listing: Listing, path: str, size: int) -> bool:
    """Whether an optimizer's state dict surely holds no per-parameter state (a dummy optimizer, or SGD without momentum)."""
    try:
        atoms = list(islice(_atoms(pickle_of(listing, path, size, 512)), 4))
    except OSError:
        return False
    return atoms == [{}, "state", {}, "param_groups"]  # an item of the inner {} would stand before the next key


# ------------------------------------------------------------------------------------------------ torch.distributed.checkpoint


def dcp_files(listing: Listing, path: str) -> Mapping[str, int]:
    """The files that a DCP folder's ``.metadata`` names, and how many bytes each must have at least.

    ``.metadata`` is a pickle of torch.distributed.checkpoint.metadata.Metadata; each stored item is a ``_StorageInfo`` with
    ``relative_path``, ``offset`` and ``length`` (torch filesystem.py).

    Raises:
        Broken: it is not whole.
        OSError: it cannot be read.
    """
    return dcp_needed(listing.read(path))


_LONG = 1 << 22
_DCP_NAME = re.compile(rb"__\d+_\d+\.distcp")


def dcp_needed(data: bytes) -> Mapping[str, int]:
    """The same from the bytes of a ``.metadata``. Of one that is longer than 4 MiB the names alone, with one byte each.

    Raises:
        Broken: it is not whole.
    """
    if not data.strip(b"\0"):
        raise Broken("holds nothing but zero bytes")
    needed: dict[str, int] = {}
    if len(data) > _LONG:  # opcode by opcode it would take seconds
        needed = dict.fromkeys((name.decode() for name in _DCP_NAME.findall(data)), 1)
        ends = data.endswith(b".")
    else:
        needed, ends = _dcp_items(data)
    if not ends:
        raise Broken("is cut short: the pickle does not end")
    if not needed:
        raise Broken("is damaged: it names no file")
    return needed


def _dcp_items(data: bytes) -> tuple[dict[str, int], bool]:
    """The files and their least sizes, and whether the pickle comes to its end."""
    needed: dict[str, int] = {}
    atoms = _atoms(data)
    atom: object = None
    for atom in atoms:
        if atom != "relative_path":
            continue
        file, first, offset, second, length = (*islice(atoms, 5), *[None] * 5)[:5]
        if (first, second) != ("offset", "length"):
            continue
        if isinstance(file, str) and isinstance(offset, int) and isinstance(length, int):
            needed[file] = max(needed.get(file, 0), offset + length)
    return needed, atom is END


def dcp_fault(listing: Listing, folder: str, label: str) -> str | None:
    """What is wrong with a DCP folder, as a whole sentence; None: whole, or its content is not known."""
    files = listing.files(folder)
    if ".metadata" not in files:
        return f"{label}/.metadata is missing: the save did not finish"
    if files[".metadata"].size == 0:
        return f"{label}/.metadata is empty"
    try:
        needed = dcp_files(listing, f"{folder}/.metadata")
    except Broken as broken:
        return f"{label}/.metadata {broken}"
    except UnknownContent:
        empty = next((name for name, info in files.items() if name.endswith(".distcp") and info.size == 0), None)
        return f"{label}/{empty} is empty" if empty else None
    except OSError as error:
        return f"{label}/.metadata {unreadable(error)}"
    for name, least in sorted(needed.items()):
        if name not in files:
            return f"{label}/{name} is missing"
        if files[name].size < least:
            return f"{label}/{name} is cut short: {least} bytes by .metadata, {files[name].size} on disk"
    return None
