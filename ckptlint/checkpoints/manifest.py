"""A listing written down as text: how fixtures and reports describe what lay on a disk."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from ckptlint.checkpoints.listing import FileInfo, Listing, UnknownContent

_LINE = re.compile(r"(?P<bytes>\d+|-)\s+(?P<time>-|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?Z?|\d+(?:\.\d+)?)\s+(?P<rest>\S.*)")
_CONTENT = re.compile(r"\s+\((?P<content>.*)\)$")

# What a file holds where the manifest says only of what kind it is, as bytes repeated up to its size.
KINDS = {"zeros": b"\0", "garbage": b"\xff"}


class ManifestError(ValueError):
    """A line that is no line of a manifest; names it."""


class ManifestListing(Listing):
    """A listing read from text, one file a line: bytes, modification time (or ``-``), path.

    After a path, ``(content: step200)`` or ``("global_step": 500)`` gives what a small file holds (the second is put into
    braces), ``(zeros)`` and ``(garbage)`` a file of that kind at full size; ``contents`` gives bytes by path. Of all other
    files only the size is known. A trailing ``/`` is an empty directory, ``a -> b`` a symbolic link, ``#`` begins a comment.
    Times are UTC, as ``2025-01-31T12:00``, or seconds.
    """

    def __init__(self, text: str, root: str = "", contents: Mapping[str, bytes] | None = None) -> None:
        """``root``: the directory of the manifest to take as the listing's root; what lies beside it is left out.

        Raises:
            ManifestError: names the line.
        """
        self.root = root or "."
        self._infos: dict[str, dict[str, FileInfo]] = {"": {}}
        self._folders: dict[str, set[str]] = {"": set()}
        self._contents: dict[str, bytes] = {}
        self._kinds: dict[str, bytes] = {}
        links: list[tuple[str, str]] = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.lstrip().startswith("#"):
                self._take(number, line.strip(), links)
        for path, data in (contents or {}).items():
            self._give(path, data)
        for link, target in links:
            self._link(link, target)
        self._prefix = root.strip("/")

    @classmethod
    def of_file(cls, path: str | Path, root: str = "") -> ManifestListing:
        return cls(Path(path).read_text(encoding="utf-8"), root)

    def _take(self, number: int, line: str, links: list[tuple[str, str]]) -> None:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ManifestError(f"line {number} of the manifest is not `bytes time path`: {line}")
        path, content = match["rest"], None
        note = _CONTENT.search(path)
        if note:
            path, content = path[: note.start()], note["content"]
        if " -> " in path:
            link, target = path.split(" -> ", 1)
            links.append((link, str(PurePosixPath(link).parent / target) if not target.startswith("/") else target))
            return
        if path.endswith("/"):
            self._folder(path.strip("/"))
            return
        info = FileInfo(0 if match["bytes"] == "-" else int(match["bytes"]), _seconds(match["time"]))
        self._file(path, info)
        if content in KINDS:
            self._kinds[path] = KINDS[content]
        elif content is not None:
            self._contents[path] = _content(content)

    def _file(self, path: str, info: FileInfo) -> None:
        parent, _, name = path.rpartition("/")
        self._folder(parent)
        self._infos[parent][name] = info

    def _folder(self, path: str) -> None:
        if path in self._folders:
            return
        parent, _, name = path.rpartition("/")
        self._folder(parent)
        self._folders[parent].add(name)
        self._folders[path] = set()
        self._infos[path] = {}

    def _give(self, path: str, data: bytes) -> None:
        parent, _, name = path.rpartition("/")
        before = self._infos.get(parent, {}).get(name)
        self._file(path, FileInfo(len(data), before.modified if before else None))
        self._contents[path] = data

    def _link(self, link: str, target: str) -> None:
        for path in [path for path in self._folders if path == target or path.startswith(target + "/")]:
            self._folder(link + path[len(target) :])
            for name, info in self._infos[path].items():
                self._infos[link + path[len(target) :]][name] = info
        parent, _, name = target.rpartition("/")
        if name in self._infos.get(parent, {}):
            self._file(link, self._infos[parent][name])
        for held in (self._contents, self._kinds):
            held.update({link + path[len(target) :]: data for path, data in list(held.items()) if _under(path, target)})

    def _whole(self, path: str) -> str:
        return f"{self._prefix}/{path}".strip("/") if self._prefix else path

    def directories(self, path: str = "") -> tuple[str, ...]:
        return tuple(sorted(self._folders.get(self._whole(path), ())))

    def files(self, path: str = "") -> Mapping[str, FileInfo]:
        return self._infos.get(self._whole(path), {})

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        place = self._whole(path)
        parent, _, name = place.rpartition("/")
        info = self._infos.get(parent, {}).get(name)
        if info is None:
            raise FileNotFoundError(2, "No such file or directory", path)
        end = info.size if length is None else min(info.size, start + length)
        if place in self._kinds:
            return self._kinds[place] * max(0, end - start)
        if place in self._contents:
            return self._contents[place][start : None if length is None else start + length]
        if info.size == 0:
            return b""
        raise UnknownContent(f"the manifest does not say what {path} holds")


def _under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _content(text: str) -> bytes:
    if text.startswith("content:"):
        text = text[len("content:") :].strip()
    elif re.match(r'"[^"]*"\s*:', text):
        text = "{" + text + "}"
    return text.encode()


def _seconds(text: str) -> float | None:
    if text == "-":
        return None
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    text = text.rstrip("Z").replace(" ", "T")
    return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S" if text.count(":") == 2 else "%Y-%m-%dT%H:%M")))
