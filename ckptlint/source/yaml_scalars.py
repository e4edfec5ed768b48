"""What a YAML scalar means to a loader, and how a value is written so that every loader reads it back."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import PurePath
from typing import cast

import yaml

from ckptlint.source.text import CannotEdit

STRING = "tag:yaml.org,2002:str"
MERGE = "tag:yaml.org,2002:merge"
_FLOAT = "tag:yaml.org,2002:float"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_SCALAR_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "binary", "timestamp", "str"))


class Schema:
    """How a loader resolves plain scalars. One instance a loader."""

    def __init__(self, name: str, loader: type[yaml.SafeLoader]) -> None:
        self.name = name
        self._loader = loader("")
        self._resolve = cast("Callable[[type[yaml.Node], str, tuple[bool, bool]], str]", self._loader.resolve)
        self._constructors = loader.yaml_constructors
        self.tag = lru_cache(maxsize=4096)(self._tag)

    def _tag(self, text: str) -> str:
        """The tag of a plain scalar."""
        return self._resolve(yaml.ScalarNode, text, (True, False))

    def value(self, tag: str, text: str) -> object:
        """The Python value of a scalar; the text itself where the loader would refuse it."""
        if tag == STRING or tag not in _SCALAR_TAGS:
            return text
        try:
            return self._constructors[tag](self._loader, yaml.ScalarNode(tag, text))
        except (yaml.YAMLError, ValueError, OverflowError, LookupError, AttributeError, TypeError):
            return text


class _SafeLoad(yaml.SafeLoader):
    """What PyYAML's ``yaml.safe_load`` uses."""


class _OmegaConfLoad(yaml.SafeLoader):
    """OmegaConf 2.3 and 2.4 get_yaml_loader: floats without a dot or sign are floats, dates stay strings."""


_OmegaConfLoad.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"""^(?:[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
        |[-+]?[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)
        |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?
        |[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*
        |[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$""",
        re.X,
    ),
    list("-+0123456789."),
)
_OmegaConfLoad.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in _OmegaConfLoad.yaml_implicit_resolvers.items()
}


class _JsonLoad(yaml.SafeLoader):
    """What ``json.load`` makes of the words and numbers of its grammar; the parser lets no others through."""


_JsonLoad.yaml_implicit_resolvers = {
    "t": [("tag:yaml.org,2002:bool", re.compile("true"))],
    "f": [("tag:yaml.org,2002:bool", re.compile("false"))],
    "n": [("tag:yaml.org,2002:null", re.compile("null"))],
    **{first: [("tag:yaml.org,2002:int", re.compile(r"-?\d+$")), (_FLOAT, re.compile(""))] for first in "-0123456789NI"},
}

SAFE_LOAD = Schema("yaml.safe_load", _SafeLoad)
OMEGACONF = Schema("OmegaConf", _OmegaConfLoad)
JSON = Schema("json.load", _JsonLoad)


# ------------------------------------------------------------------------------------------------ writing


@lru_cache(maxsize=1)
def _escaped() -> re.Pattern[str]:
    """What libyaml's reader refuses, and what it takes for a line break or drops: such text stands in double quotes, escaped.

    Compiled when somebody writes YAML: it takes longer than to read a file.
    """
    return re.compile("[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_NOT_FIRST = "-?:,[]{}#&*!|>'\"%@`="


def render(value: object, *, flow: bool = False, quote: str | None = None) -> str:
    """A value as YAML text on one line that every loader reads back as that very value.

    Text with ``${`` is the exception: OmegaConf takes it for an interpolation however it is quoted.

    Args:
        flow: the text will stand inside ``{}`` or ``[]``.
        quote: the quote the author used before; it is kept where it can hold the text.

    Raises:
        CannotEdit: the text is not Unicode (an undecodable file name), so that no YAML can hold it.
        TypeError: the value is of no kind that YAML has.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, (str, PurePath)):
        return _text(str.__str__(value) if isinstance(value, str) else str(value), flow, quote)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(render(item, flow=True) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{render(key, flow=True)}: {render(item, flow=True)}" for key, item in value.items()) + "}"
    raise TypeError(f"YAML has no {type(value).__name__}")


def _float(value: float) -> str:
    """With a dot and a signed exponent; ``1e-05`` would be a string to PyYAML (YAML 1.1)."""
    text = repr(float(value))
    if text.lstrip("-") in ("inf", "nan"):
        return text.replace("inf", ".inf").replace("nan", ".nan")
    mantissa, e, exponent = text.partition("e")
    return text if not e or "." in mantissa else f"{mantissa}.0e{exponent}"


def _text(text: str, flow: bool, quote: str | None) -> str:
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise CannotEdit(f"{text!r} is not Unicode text, which no YAML can hold")
    if quote == '"' or _escaped().search(text):
        return '"' + "".join(_ESCAPES.get(char) or (_escape(char) if _escaped().match(char) else char) for char in text) + '"'
    if quote == "'" or not _is_plain(text, flow):
        return "'" + text.replace("'", "''") + "'"
    return text


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _is_plain(text: str, flow: bool) -> bool:
    if not text or text != text.strip() or text[0] in _NOT_FIRST or text.startswith("..."):
        return False
    if ": " in text or " #" in text or text.endswith(":"):
        return False
    # Inside braces an older libyaml (before 0.2.3) also stops at `:` and `?`.
    if flow and any(char in text for char in ",[]{}:?"):
        return False
    return SAFE_LOAD.tag(text) == STRING == OMEGACONF.tag(text)
