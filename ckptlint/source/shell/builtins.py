"""The commands bash runs itself, as far as they matter to what other commands are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ckptlint.source.shell.state import FAILURE, SUCCESS, State, Status, Variable, literal
from ckptlint.source.shell.syntax import Assignment, Parameter, Word
from ckptlint.source.shell.values import (
    Argument,
    Kind,
    Known,
    Piece,
    Unknown,
    Value,
    computed,
    default_text,
    shown,
    text_of,
)

if TYPE_CHECKING:
    from ckptlint.source.shell.interpret import Context, Interpreter

Words = Sequence[Argument]
NAME = re.compile(r"[A-Za-z_]\w*$")
ESCAPE = re.compile(r"\\(n|t|r|a|b|e|f|v|\\|0[0-7]{0,3}|x[0-9a-fA-F]{1,2}|c)")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v", "\\": "\\"}
DIRECTIVE = re.compile(r"%(%|[-0 +#]{0,5}[0-9]{0,3}(?:\.[0-9]{1,3})?[sdiq])")
TRAPS_ERRORS = "errtrap"  # no option of bash: `trap ... ERR` ends the script as `set -e` does
NUMBER = re.compile("[0-9]{1,4}")


class Unprintable(Exception):
    """The command runs, but what it prints is not known."""


def prints(state: State, context: Context, value: Value) -> None:
    if context.captured:
        state.output = (*state.output, *value)


# ------------------------------------------------------------------------------------------------ nothing, and output


def succeed(_: Interpreter, __: Words, state: State, ___: Context) -> None:
    state.status = SUCCESS


def fail(_: Interpreter, __: Words, state: State, ___: Context) -> None:
    state.status = FAILURE


def asked(_: Interpreter, __: Words, state: State, ___: Context) -> None:
    """A command that answers by its status, which only a run can know."""
    state.status = Status(None, None)
    raise Unprintable


def echo(_: Interpreter, words: Words, state: State, context: Context) -> None:
    if not context.captured:
        return
    at, newline, escapes = 1, True, False
    while at < len(words) and re.fullmatch("-[neE]+", words[at].text or ""):
        newline = newline and "n" not in (words[at].text or "")
        escapes = "e" in (words[at].text or "")
        at += 1
    pieces: list[Piece] = []
    for place, word in enumerate(words[at:]):
        pieces += [Known(" ")] if place else []
        pieces += word.pieces
    if escapes:
        pieces = [unescaped(piece) for piece in pieces]
    prints(state, context, (*pieces, *literal("\n" if newline else "")))


def unescaped(piece: Piece) -> Piece:
    if not isinstance(piece, Known) or "\\" not in piece.text:
        return piece
    return computed(ESCAPE.sub(escape, piece.text), (piece,))


def escape(found: re.Match[str]) -> str:
    code = found.group(1)
    if code[0] == "0" and code:
        return chr(int(code[1:] or "0", 8) & 0xFF)
    if code[0] == "x":
        return chr(int(code[1:], 16))
    return ESCAPES.get(code, "")


def printf(_: Interpreter, words: Words, state: State, context: Context) -> None:
    at = 1
    name = None
    if len(words) > 2 and words[1].text == "-v":
        name, at = words[2].text, 3
    if len(words) > at and words[at].text == "--":
        at += 1
    if name is None and not context.captured:
        return
    value = formatted(words[at:]) if len(words) > at else ()
    if name is not None:
        state.variables[name] = Variable(value if value is not None else (Unknown(Kind.COMMAND, f"${name}"),))
        return
    if value is None:
        raise Unprintable
    prints(state, context, value)


def formatted(words: Words) -> Value | None:
    """What ``printf`` makes of its words; None where that is not known."""
    form = words[0].text
    if form is None or any(word.may_split for word in words):
        return None
    pieces: list[Piece] = []
    rest = list(words[1:])
    while True:
        before = len(rest)
        at = 0
        for found in DIRECTIVE.finditer(form):
            pieces.append(Known(ESCAPE.sub(escape, form[at : found.start()])))
            at = found.end()
            if found.group(1) == "%":
                pieces.append(Known("%"))
                continue
            value = directive(found.group(1), rest.pop(0).pieces if rest else ())
            if value is None:
                return None
            pieces += value
        if "%" in DIRECTIVE.sub("", form):
            return None
        pieces.append(Known(ESCAPE.sub(escape, form[at:])))
        if not rest or len(rest) == before or len(pieces) > 2000:
            return tuple(piece for piece in pieces if not (isinstance(piece, Known) and not piece.text))


def directive(form: str, value: Value) -> Value | None:
    if form == "s":
        return value
    text = text_of(value)
    if text is None or form[-1] == "q":
        return None
    try:
        number = int(text or "0", 0) if form[-1] in "di" else 0
        return (computed(f"%{form.replace('i', 'd')}" % (number if form[-1] in "di" else text), value),)
    except (ValueError, TypeError, OverflowError, MemoryError):
        return None


def cat(_: Interpreter, words: Words, state: State, context: Context) -> None:
    state.status = Status(None, 0)
    if len(words) > 1 and not (len(words) == 2 and words[1].text == "-"):
        raise Unprintable
    if context.stdin is None:
        raise Unprintable
    prints(state, context, context.stdin)


def basename(_: Interpreter, words: Words, state: State, context: Context) -> None:
    if len(words) not in (2, 3):
        raise Unprintable
    suffix = words[2].text if len(words) == 3 else ""
    path, default = words[1].text, words[1].default
    if suffix is None or (path is None and default is None):
        raise Unprintable
    if path is not None:
        prints(state, context, (computed(last_part(path, suffix), words[1].pieces), Known("\n")))
        return
    piece = next(piece for piece in words[1].pieces if isinstance(piece, Unknown))
    name = (computed(last_part(default or "", suffix), words[1].pieces),)
    prints(state, context, (Unknown(piece.kind, f"$(basename {words[1].template()})", piece.name, name), Known("\n")))


def last_part(path: str, suffix: str) -> str:
    name = path.rstrip("/").rpartition("/")[2] or ("/" if path else "")
    return name[: -len(suffix)] if suffix and name.endswith(suffix) and name != suffix else name


def dirname(_: Interpreter, words: Words, state: State, context: Context) -> None:
    if len(words) != 2:
        raise Unprintable
    pieces = words[1].pieces
    path, default = words[1].text, words[1].default
    if len(pieces) == 1 and isinstance(pieces[0], Unknown) and pieces[0].kind is Kind.SCRIPT:
        piece = pieces[0]
        up = piece._replace(name="folder") if piece.name == "path" else None
        parent = (up,) if up else (piece, Known("/.."))
        prints(state, context, (*parent, Known("\n")))
    elif path is not None:
        prints(state, context, (computed(folder(path), pieces), Known("\n")))
    elif default is not None:
        piece = next(piece for piece in pieces if isinstance(piece, Unknown))
        name = (computed(folder(default), pieces),)
        prints(state, context, (Unknown(piece.kind, f"$(dirname {words[1].template()})", piece.name, name), Known("\n")))
    elif isinstance(pieces[-1], Known) and "/" in pieces[-1].text.rstrip("/"):
        head = pieces[-1].text.rstrip("/").rpartition("/")[0]
        prints(state, context, (*pieces[:-1], *literal(head), Known("\n")))
    else:
        raise Unprintable


def folder(path: str) -> str:
    stripped = path.rstrip("/")
    if not stripped:
        return "/" if path else "."
    head, slash, _ = stripped.rpartition("/")
    return head.rstrip("/") or "/" if slash else "."


def readlink(_: Interpreter, words: Words, state: State, context: Context) -> None:
    """The place of a path is unknown, but not which path it is."""
    state.status = Status(None, 0)
    last = words[-1].pieces
    if len(words) > 1 and last and isinstance(last[0], Unknown) and last[0].kind is Kind.SCRIPT:
        prints(state, context, (*last, Known("\n")))
        return
    raise Unprintable


def pwd(_: Interpreter, __: Words, state: State, context: Context) -> None:
    if state.directory and isinstance(state.directory[0], Unknown) and state.directory[0].kind is Kind.SCRIPT:
        prints(state, context, (*state.directory, Known("\n")))
        return
    here = Unknown(Kind.SHELL, "$(pwd)", "PWD")
    path = text_of(state.directory)
    if path is None:
        raise Unprintable
    if path.startswith("/"):
        prints(state, context, (*state.directory, Known("\n")))
        return
    prints(state, context, (here, *literal(f"/{path}" if path else ""), Known("\n")))


def seq(_: Interpreter, words: Words, state: State, context: Context) -> None:
    try:
        numbers = [int(word.text or "") for word in words[1:]]
    except ValueError:
        raise Unprintable from None
    if not 1 <= len(numbers) <= 3:
        raise Unprintable
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) == 3 else 1
    if step == 0 or abs(numbers[-1] - first) > 1000:
        raise Unprintable
    found = range(first, numbers[-1] + (1 if step > 0 else -1), step)
    prints(state, context, literal("".join(f"{number}\n" for number in found)))


# ------------------------------------------------------------------------------------------------ variables


def declare(interpreter: Interpreter, words: Words, state: State, context: Context) -> None:
    """``export``, ``declare``, ``typeset``, ``local``, ``readonly``."""
    options = "".join((word.text or "")[1:] for word in words[1:] if (word.text or "").startswith("-"))
    name = words[0].text
    local = name == "local" or (name in ("declare", "typeset") and "g" not in options)
    change = Attributes(
        exported=(name == "export" and "n" not in options) or "x" in options,
        readonly=name == "readonly" or "r" in options,
        named="A" in options,
        array="a" in options,
        attribute="".join(char for char in options if char in "iul"),
        local=local and bool(state.frames),
    )
    assigned = [word for word in interpreter.current.words if isinstance(word, Assignment)]
    for assignment in assigned:
        change.keep(assignment.name, state)
        interpreter.assign(assignment, state, context)
        change.apply(assignment.name, state, written=True)
    names = {assignment.name for assignment in assigned}
    for word in words[1:]:
        text = word.template()
        found = text.partition("=")[0]
        if found in names or not NAME.match(found):
            continue
        change.keep(found, state)
        if "=" in text:
            state.variables[found] = Variable(behind_equals(word))
            state.unset -= {found}
        change.apply(found, state, written="=" in text)


def behind_equals(word: Argument) -> Value:
    from ckptlint.source.shell.interpret import value_of

    return value_of(word)


class Attributes:
    """What a declaration does to each of its names."""

    def __init__(self, exported: bool, readonly: bool, named: bool, array: bool, attribute: str, local: bool) -> None:
        self.exported, self.readonly, self.named, self.array = exported, readonly, named, array
        self.attribute, self.local = attribute, local

    def keep(self, name: str, state: State) -> None:
        """A local name gives way to the outer one at the end of the function."""
        if self.local and name not in state.frames[-1]:
            state.frames[-1][name] = state.variables.get(name)
            state.variables.pop(name, None)
            state.unset |= {name}

    def apply(self, name: str, state: State, written: bool) -> None:
        variable = state.variables.get(name)
        if variable is None:
            if self.local and not (self.named or self.array):
                return
            if not (self.named or self.array):
                return  # `export X` of a variable from the environment
            variable = Variable(items={})
        items = variable.items
        if (self.named or self.array) and items is None:
            items = {"0": variable.value} if variable.value else {}
        value = variable.value
        text = text_of(value)
        if written and text is not None and self.attribute:
            value = (
                (computed(text.upper() if "u" in self.attribute else text.lower(), value),)
                if "i" not in self.attribute
                else value
            )
        state.variables[name] = variable._replace(
            value=value,
            items=items,
            named=variable.named or self.named,
            exported=variable.exported or self.exported,
            readonly=variable.readonly or self.readonly,
            attribute=variable.attribute + self.attribute,
        )


def unset(_: Interpreter, words: Words, state: State, __: Context) -> None:
    for word in words[1:]:
        text = word.text or ""
        if text.startswith("-"):
            continue
        element = re.fullmatch(r"([A-Za-z_]\w*)\[(.+)\]", text)
        if element:
            variable = state.variables.get(element.group(1))
            if variable is not None and variable.items is not None:
                kept = {key: value for key, value in variable.items.items() if key != element.group(2).strip("\"'")}
                state.variables[element.group(1)] = variable._replace(items=kept)
            continue
        state.variables.pop(text, None)
        state.unset |= {text}


def shift(_: Interpreter, words: Words, state: State, __: Context) -> None:
    text = words[1].text if len(words) > 1 else "1"
    if text is None or not NUMBER.fullmatch(text):
        state.positional = None
        return
    if state.positional is None:
        state.shifted += int(text)
    elif int(text) <= len(state.positional):
        state.positional = state.positional[int(text) :]
    else:
        state.status = FAILURE


def set_(_: Interpreter, words: Words, state: State, __: Context) -> None:
    letters = {"e": "errexit", "u": "nounset", "x": "xtrace", "f": "noglob"}
    at = 1
    while at < len(words):
        text = words[at].text
        if text is None:
            break
        if text in ("--", "-"):
            at += 1
            state.positional = tuple(word.pieces for word in words[at:])
            return
        if text[:1] not in ("-", "+"):
            break
        names = [letters[char] for char in text[1:] if char in letters]
        at += 1
        if "o" in text[1:] and at < len(words):
            names.append(words[at].text or "")
            at += 1
        state.options = state.options | set(names) if text[0] == "-" else state.options - set(names)
    if at < len(words):
        rest = words[at:]
        state.positional = None if any(word.may_split for word in rest) else tuple(word.pieces for word in rest)


def read(interpreter: Interpreter, words: Words, state: State, context: Context) -> None:
    names, array, at, delimited = list[str](), False, 1, False
    while at < len(words):
        text = words[at].text or ""
        if not text.startswith("-"):
            names.append(text)
        elif text[-1] in "dnNpitu":
            delimited = delimited or text[-1] == "d"
            at += 1
        array = array or (text.startswith("-") and "a" in text)
        at += 1
    known = context.stdin is not None and not context.place.loops and text_of(context.stdin) is not None
    state.status = SUCCESS if known else Status(None, None)
    if not known or context.stdin is None:
        for name in names or ["REPLY"]:
            unknown = Unknown(Kind.COMMAND, f"${name}", name)
            items = {"0": (unknown._replace(name=f"@{name}"),)} if array else None
            state.variables[name] = Variable((unknown,), items)
        return
    value = context.stdin if delimited else first_line(context.stdin)
    fields = interpreter.split_value(value, state)
    if array and names:
        state.variables[names[0]] = Variable((), {str(place): field for place, field in enumerate(fields)})
        return
    if names in ([], ["REPLY"]) or len(names) == 1:
        state.variables[(names or ["REPLY"])[0]] = Variable(value)
        return
    for place, name in enumerate(names):
        found = fields[place] if place < len(fields) else ()
        if place == len(names) - 1 and len(fields) > len(names):
            found = (computed(" ".join(shown(field) for field in fields[place:]), value),)
        state.variables[name] = Variable(found)


def first_line(value: Value) -> Value:
    from ckptlint.source.shell.expand import cut

    text = text_of(value) or ""
    end = text.find("\n")
    return value if end < 0 else cut(value, 0, end)


def mapfile(_: Interpreter, words: Words, state: State, __: Context) -> None:
    name = words[-1].text if len(words) > 1 else "MAPFILE"
    if name and NAME.match(name):
        state.variables[name] = Variable((), {"0": (Unknown(Kind.COMMAND, f"${{{name}[@]}}", "@"),)})


def getopts(_: Interpreter, words: Words, state: State, __: Context) -> None:
    name = words[2].text if len(words) > 2 else None
    if name:
        state.variables[name] = Variable((Unknown(Kind.POSITIONAL, f"${name}", f"option {name}"),))
    state.variables["OPTARG"] = Variable((Unknown(Kind.POSITIONAL, "$OPTARG", "OPTARG"),))
    state.status = Status(None, 1)


def let(interpreter: Interpreter, words: Words, state: State, __: Context) -> None:
    number = None
    for word in words[1:]:
        number = interpreter.number(word.pieces, state, text_of)
    state.status = Status(None, None) if number is None else Status(int(not number), int(not number))


# ------------------------------------------------------------------------------------------------ the way things go


def leave(_: Interpreter, words: Words, state: State, __: Context) -> None:
    """``exit``."""
    state.status = given_status(words, state, state.previous)
    state.flow = "exit"


def return_(_: Interpreter, words: Words, state: State, __: Context) -> None:
    state.status = given_status(words, state, state.previous)
    state.flow = "return"


def given_status(words: Words, state: State, last: Status) -> Status:
    """The status a script ends with, and whose failure it tells."""
    if len(words) < 2:
        return last
    commands = frozenset[int]().union(*[piece.commands for piece in words[1].pieces if isinstance(piece, Unknown)])
    text, default = words[1].text, words[1].default
    code = int(text) & 255 if text and NUMBER.fullmatch(text.removeprefix("-")) else None
    shipped = int(default) & 255 if default and NUMBER.fullmatch(default.removeprefix("-")) else None
    return Status(code, shipped, commands | (state.failed if code else frozenset()))


def jump(_: Interpreter, words: Words, state: State, context: Context) -> None:
    """``break`` and ``continue``."""
    if not context.place.loops:
        return
    text = words[1].text if len(words) > 1 else "1"
    state.flow = words[0].text or "break"
    state.levels = int(text) if text and NUMBER.fullmatch(text) else 1


def cd(_: Interpreter, words: Words, state: State, __: Context) -> None:
    state.status = Status(None, 0)
    targets = [word for word in words[1:] if not (word.text or "").startswith("-") or word.text == "-"]
    if not targets or targets[0].text == "-":
        state.directory = (Unknown(Kind.SHELL, "$OLDPWD" if targets else "$HOME", "OLDPWD" if targets else "HOME"),)
        return
    path = targets[0].pieces
    absolute = (path and isinstance(path[0], Known) and path[0].text.startswith("/")) or (path and isinstance(path[0], Unknown))
    if absolute or not state.directory:
        state.directory = path
    else:
        state.directory = (*state.directory, Known("/"), *path)


def wait(_: Interpreter, words: Words, state: State, __: Context) -> None:
    state.status = Status(None, 0, state.jobs) if len(words) > 1 else SUCCESS


def trap(_: Interpreter, words: Words, state: State, __: Context) -> None:
    names = {(word.text or "").upper().removeprefix("SIG") for word in words[2:]}
    if "ERR" in names and "exit" in words[1].template():
        state.options |= {TRAPS_ERRORS}


def eval_(interpreter: Interpreter, words: Words, state: State, context: Context) -> list[State]:
    pieces: list[Piece] = []
    for place, word in enumerate(words[1:]):
        pieces += [Known(" ")] if place else []
        pieces += word.pieces
    if len(context.calls) > 8:
        return [state]
    inner = context._replace(calls=(*context.calls, "eval"))
    return interpreter.text(tuple(pieces), state, inner)


def source(interpreter: Interpreter, words: Words, state: State, context: Context) -> list[State] | None:
    state.status = Status(None, 0)
    if len(words) < 2 or len(context.calls) > 8:
        return None
    found = interpreter.neighbouring(words[1], state)
    if found is None:
        return None
    outer = state.positional, state.shifted
    if len(words) > 2:
        state.positional, state.shifted = interpreter.positionals(words[2:], state), 0
    program = interpreter.program(found)
    inner = context._replace(calls=(*context.calls, "source"))
    states = interpreter.items(program.items, [state], inner)
    for one in states:
        one.flow = "" if one.flow == "return" else one.flow
        if len(words) > 2:
            one.positional, one.shifted = outer
    return states


def test(interpreter: Interpreter, words: Words, state: State, _: Context) -> list[State]:
    written = interpreter.current.words
    parameter = None
    if len(written) > 1 and isinstance(written[1], Word) and len(written[1].parts) == 1:
        part = written[1].parts[0]
        if isinstance(part, Parameter) and not part.operator and part.index is None and not part.length:
            parameter = part
    return interpreter.test_command(words, state, parameter)


def command(interpreter: Interpreter, words: Words, state: State, context: Context) -> None:
    """``command -v``: only then it comes here."""
    asked(interpreter, words, state, context)


def date(_: Interpreter, words: Words, state: State, context: Context) -> None:
    state.status = Status(None, 0)
    text = "$(" + " ".join(word.template() for word in words) + ")"
    prints(state, context, (Unknown(Kind.TIME, text), Known("\n")))


Builtin = Callable[["Interpreter", Words, State, "Context"], "list[State] | None"]
BUILTINS: dict[str, Builtin] = {
    ".": source,
    ":": succeed,
    "[": test,
    "alias": succeed,
    "basename": basename,
    "break": jump,
    "cat": cat,
    "cd": cd,
    "command": command,
    "continue": jump,
    "date": date,
    "declare": declare,
    "dirname": dirname,
    "echo": echo,
    "eval": eval_,
    "exit": leave,
    "export": declare,
    "false": fail,
    "getopts": getopts,
    "hash": asked,
    "let": let,
    "local": declare,
    "mapfile": mapfile,
    "popd": cd,
    "printf": printf,
    "pushd": cd,
    "pwd": pwd,
    "read": read,
    "readarray": mapfile,
    "readlink": readlink,
    "readonly": declare,
    "realpath": readlink,
    "return": return_,
    "seq": seq,
    "set": set_,
    "shift": shift,
    "shopt": succeed,
    "source": source,
    "test": test,
    "trap": trap,
    "true": succeed,
    "type": asked,
    "typeset": declare,
    "ulimit": succeed,
    "umask": succeed,
    "unset": unset,
    "wait": wait,
}
__all__ = ["BUILTINS", "Unprintable", "default_text"]
