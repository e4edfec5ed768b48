"""Keys that look like a real one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ckptlint.frameworks.settings import Renames, Settings
from ckptlint.run import Release, StrangeKey

# difflib's ratio: `save_step`/`save_steps` 0.95, `overwrite_ouput_dir` 0.97, `checkpoint_dir`/`output_dir` 0.67.
_NEAR = 0.85


def strange_keys(settings: Settings, known: Collection[str], targets: Sequence[str], effect: str) -> Iterator[StrangeKey]:
    """Keys that are not known but nearly one of ``targets``; ``effect`` says what the framework does with them."""
    for name in settings.names():
        if name in known:
            continue
        place = settings.setting(name).key_span
        nearest = _nearest(name, targets)
        if place is not None and nearest is not None:
            rename = settings.rename(name, nearest) if isinstance(settings, Renames) else ()
            yield StrangeKey(name, place, nearest, effect, rename)


def keys_of_another_release(
    settings: Settings, others: Collection[str], bearing: Collection[str], release: Release, effect: str
) -> Iterator[StrangeKey]:
    """Keys that bear on checkpoints and exist, but not in the release that the project pins."""
    for name in settings.names():
        place = settings.setting(name).key_span
        if place is not None and name in others and name in bearing:
            yield StrangeKey(name, place, "", f"{release.text} does not have it: {effect}")


def _nearest(name: str, targets: Sequence[str]) -> str | None:
    plain = name.lower().replace("-", "_").lstrip("_")
    if plain in targets:
        return plain
    from difflib import get_close_matches

    near = get_close_matches(plain, targets, 1, _NEAR)
    return near[0] if near else None
