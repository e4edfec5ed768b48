"""Fixtures that several folders use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ckptlint import frameworks
from ckptlint.rule import all_rules


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory that is the working directory and the top of a repository."""
    place = tmp_path / "project"
    (place / ".git").mkdir(parents=True)
    monkeypatch.chdir(place)
    return place


def install_rule_pack(directory: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip leaves behind of a distribution that declares a rule pack."""
    metadata = directory / "toy_pack-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-pack\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[ckptlint.rules]\ntoy = {package}\n")
    monkeypatch.syspath_prepend(directory)
    all_rules.cache_clear()


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy framework alone, and its rule pack besides the rules of ours."""
    from toy_framework import ToyFramework

    install_rule_pack(tmp_path / "site", "toy_rules", monkeypatch)
    monkeypatch.setattr(frameworks, "all_frameworks", lambda: (ToyFramework(),))
    yield
    monkeypatch.undo()
    all_rules.cache_clear()
