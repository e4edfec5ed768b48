"""What a script does to the launch in it, whichever framework is launched: exit status, arguments it loses, what it deletes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

from ckptlint.frameworks.flags import path_of
from ckptlint.frameworks.launches import Launch
from ckptlint.run import NEVER, LostArguments, MaskedExit, PathExpr, Run, Setting, UnusedSetting, Wipe
from ckptlint.source.shell import Command, Known, Loss, Mask, Notice, ShellSource, insert_line
from ckptlint.source.shell.parser import parse
from ckptlint.source.shell.syntax import Assignment, Simple
from ckptlint.source.text import CannotEdit, Edit, EditConflict, SourceText, Span


def with_facts(run: Run, launch: Launch) -> Run:
    """A run with all that its script says about it."""
    lost = tuple(lost_arguments(launch))
    return run._replace(
        # what is lost is run as a command of its own, and then there is one behind the launch
        exit_masks=() if lost and Mask.LATER in launch.command.failure.masks else tuple(exit_masks(launch)),
        lost_arguments=lost,
        wipes=tuple(wipes(launch, run)),
        unused_settings=(*run.unused_settings, *unused_variables(launch, run)),
        world_size=run.world_size or launch.world_size,
    )


# ------------------------------------------------------------------------------------------------ exit status

_SH = re.compile(r"#!\s*\S*/(?:env\s+)?(?:sh|dash|ash)\b")
PIPEFAIL = "set -o pipefail"


def exit_masks(launch: Launch) -> Iterator[MaskedExit]:
    """Why the script ends with status 0 although the launch failed; nothing where it does not, or may not."""
    failure = launch.command.failure
    if failure.reaches_exit or Mask.CONDITION in failure.masks or Mask.SUBSTITUTION in failure.masks:
        return
    if Mask.PIPE in failure.masks:
        yield _piped(launch)
    elif Mask.ALTERNATIVE in failure.masks:
        yield MaskedExit(launch.place, "what stands behind `||` takes a failure away", "end it with `exit 1`, or take it out")
    elif Mask.BACKGROUND in failure.masks:
        why = "the launch goes on in the background, and the script ends without its status"
        yield MaskedExit(launch.place, why, 'end the script with `wait "$!"`')
    elif Mask.LATER in failure.masks and not launch.command.place.loops:
        why = "the script goes on behind the launch, and ends with the status of its last command"
        yield MaskedExit(launch.place, why, _LATER, succeeds=False)


_LATER = "write `set -e` at the top, or keep the status: `status=$?` behind the launch and `exit $status` at the end"


def _piped(launch: Launch) -> MaskedExit:
    words = launch.command.piped_into[0] if launch.command.piped_into else ()
    program = f"`{words[0].template()}`" if words else "its last program"
    same_text = bool(words) and words[0].span.source is launch.command.span.source
    place = words[0].span if same_text else launch.place
    shown = f"`| {' '.join(word.template() for word in words)}`" if words else "the pipe"
    why = f"behind {shown} the status is that of {program}"
    source = launch.shell.source
    if _SH.match(source.text):
        return MaskedExit(place, why, "have the script run by bash (`#!/bin/bash`) and write `set -o pipefail` at its top")
    if launch.command.failure.pipefail:
        return MaskedExit(place, why, f"write `{PIPEFAIL}` at the top", (insert_line(launch.shell, PIPEFAIL),))
    return MaskedExit(place, why, "write `set -eo pipefail` at the top: other commands follow, too", succeeds=False)


# ------------------------------------------------------------------------------------------------ arguments lost to syntax

_WORDS: dict[Loss, tuple[str, str]] = {
    Loss.COMMENT: ("the comment ends the command, and what follows it is run as another one", "take the comment out"),
    Loss.BLANK: ("the blank behind the backslash ends the command", "take the blank out"),
    Loss.MISSING_BACKSLASH: ("no backslash ends this line, so the command ends here", "write ` \\` at its end"),
    Loss.AFTER_PIPE: ("what stands behind the pipe goes to the other program", "write it in front of the pipe"),
    Loss.CARRIAGE_RETURN: (
        "lines end with carriage returns, which bash takes into the last word of each",
        "save with LF line ends",
    ),
}


def lost_arguments(launch: Launch) -> Iterator[LostArguments]:
    """What the launch seems to get and does not."""
    for notice in launch.shell.notices:
        if notice.loss is Loss.DEFEATED_DEFAULT:
            yield from _defeated(notice, launch)
        elif notice.loss in _WORDS and _concerns(notice, launch):
            why, instead = _WORDS[notice.loss]
            if notice.loss is Loss.BLANK and _comment_behind(notice):
                why, instead = "the blank behind the backslash ends the command", "take the blank and the comment behind it out"
            lost = " ".join(" ".join(span.text.replace("\\\n", " ").split()) for span in notice.lost)
            yield LostArguments(notice.span, why, instead, lost, _mended(notice, launch.shell))


def _comment_behind(notice: Notice) -> bool:
    line = notice.span.source.line_at(notice.span.start)
    return notice.span.source.text[notice.span.end : line.end].lstrip().startswith("#")


def _concerns(notice: Notice, launch: Launch) -> bool:
    command = launch.command
    if notice.span.source is not command.span.source:
        return False
    if notice.loss is Loss.CARRIAGE_RETURN:
        return True
    if notice.loss is Loss.AFTER_PIPE:
        return any(words and words[0].span == notice.span for words in command.piped_into)
    if command.span.start <= notice.span.start < command.span.end:
        return True
    if not notice.lost or notice.lost[0].start < command.span.end:
        return False
    before = [one.span.end for one in launch.shell.commands if one.span.source is notice.span.source]
    return command.span.end == max((end for end in before if end <= notice.lost[0].start), default=-1)


def _defeated(notice: Notice, launch: Launch) -> Iterator[LostArguments]:
    """``SAVE_FREQ=-1`` in front of ``SAVE_FREQ=${SAVE_FREQ:-50}``."""
    used = any(
        piece.span is not None and _within(piece.span, notice.span)
        for word in launch.command.words
        for piece in word.pieces
        if isinstance(piece, Known)
    )
    default = notice.lost[0].text if notice.lost else ""
    if used and notice.span.text.partition("=")[2].strip("\"'") != default.strip("\"'"):
        default_of = f"`${{{notice.detail}:-{default}}}`"
        why = f"`{notice.span.text}` is set here, so that the default in {default_of} is never used"
        yield LostArguments(notice.span, why, "take one of the two out", default)


def _within(inner: Span, outer: Span) -> bool:
    return inner.source is outer.source and outer.start <= inner.start and inner.end <= outer.end


def _mended(notice: Notice, shell: ShellSource) -> tuple[Edit, ...]:
    """Edits after which the script is read without this loss; () where there are none, or they change more."""
    edit = _candidate(notice)
    if edit is None:
        return ()
    try:
        again = shell.reread((edit,))
    except (CannotEdit, EditConflict):
        return ()
    fewer = sum(one.loss is notice.loss for one in again.notices) < sum(one.loss is notice.loss for one in shell.notices)
    return (edit,) if fewer and len(again.commands) < len(shell.commands) else ()


def _candidate(notice: Notice) -> Edit | None:
    span = notice.span
    source = span.source
    line = source.line_at(span.start)
    if notice.loss is Loss.MISSING_BACKSLASH:
        return Edit(source.span(span.end, span.end), " \\")
    if notice.loss is Loss.BLANK and not source.text[span.start + 1 : line.end].strip():
        return Edit(source.span(span.start + 1, line.end), "")
    if notice.loss is Loss.COMMENT and not source.text[line.start : span.start].strip():
        return Edit(source.span(line.start, min(line.end + len(source.line_break_at(line.end)), len(source.text))), "")
    return None


# ------------------------------------------------------------------------------------------------ deleting


def wipes(launch: Launch, run: Run) -> Iterator[Wipe]:
    """Commands in front of the launch that delete the directory it saves into, on the way that an empty environment takes."""
    saved = [write.directory.path for write in run.writes]
    names = {path.written.rstrip("/") for path in saved if isinstance(path, PathExpr) and path.written.strip("/.")}
    for command in launch.shell.commands:
        if command.name != "rm" or not _recursive(command) or not _runs_before(command, launch.command):
            continue
        for argument in command.argv[1:]:
            target = path_of(argument).written
            if (argument.glob or not target.endswith("*")) and _deletes(target, names):
                yield Wipe(argument.span, str(command), target)


def _runs_before(command: Command, launch: Command) -> bool:
    if not command.as_shipped or command.place.background or command.number >= launch.number:
        return False
    return command.span.source is not launch.span.source or command.span.start < launch.span.start


def _recursive(command: Command) -> bool:
    texts = [word.text or "" for word in command.argv[1:]]
    return any(text == "--recursive" or re.fullmatch(r"-\w*[rR]\w*", text) is not None for text in texts)


def _deletes(target: str, names: Iterable[str]) -> bool:
    if target.startswith("-"):
        return False
    whole = target.removesuffix("/*").rstrip("/")
    return bool(whole.strip("/.")) and any(name == whole or name.startswith(whole + "/") for name in names)


# ------------------------------------------------------------------------------------------------ variables nobody uses

_SAVE_NAME = re.compile(r"(?:^|_)SAVE(?:_|$)|SAVE_?(?:DIR|PATH|INTERVAL|FREQ|STEPS)", re.I)
_SAVE_ARGUMENTS = re.compile(
    r"(?:^|[\s\"'(])(--save(?:-interval)?|--save_steps|--output_dir|trainer\.save_freq|trainer\.default_local_dir)\b"
)
_NO_SOURCE = re.compile(r"set_env|setenv|env_config|activate|bashrc|profile|conda|\benv\b|vars?\.sh", re.I)


def unused_variables(launch: Launch, run: Run) -> Iterator[UnusedSetting]:
    """Variables about saving that the script defines and nothing in it looks at again."""
    source = launch.shell.source
    if launch.command.span.source is not source or _reads_other_scripts(launch.shell):
        return
    text = _without_comments(launch.shell)
    for name, assignments in _assignments(source).items():
        block = _SAVE_ARGUMENTS.search(assignments[0].span.text)
        if _SAVE_NAME.search(name) is None and block is None:
            continue
        if len(re.findall(rf"(?<![\w]){re.escape(name)}(?![\w])", text)) > len(assignments):
            continue
        first = assignments[0]
        if re.search(r"\b(?:export|declare|typeset|local|readonly)\b[^\n;]*$", text[: first.span.start].rpartition("\n")[2]):
            continue
        if re.search(r"^\s*set\s+-\w*a|^\s*set\s+-o\s+allexport", text, re.M):
            return
        yield _unused(first, name, block, run)


def _unused(first: Assignment, name: str, block: re.Match[str] | None, run: Run) -> UnusedSetting:
    value = first.value.span if first.value is not None else first.span
    end = first.name_span.end
    setting = Setting(name, first.span.source.text[end + 1 : first.span.end], value, first.name_span, joint="=")
    nothing = all(write.interval.every is NEVER and write.interval.at_end is not True for write in run.writes)
    what = f"`{block[1]}` in it does not reach the launch" if block else "it does not reach the launch"
    why = f"nothing in the script uses `${name}`, so {what}" + (", which saves nothing" if nothing else "")
    where = ", ".join(str(write.directory.setting) for write in run.writes if write.directory.setting.written)
    instead = f"give it to the launch as `{run.writes[0].directory.setting.name}`" if nothing and run.writes else "take it out"
    if nothing and block:
        instead = f"give `${name}` to the launch"
    if where and not nothing:
        instead = f"the launch saves by `{where}`; take the variable out, or use it there"
    return UnusedSetting(setting, "save", why, instead)


def _reads_other_scripts(shell: ShellSource) -> bool:
    """Whether the script reads in another one that is not here and may use its variables."""
    for command in shell.commands:
        sources = command.name in ("source", ".") and len(command.argv) > 1
        if sources and _NO_SOURCE.search(command.argv[1].template()) is None:
            return True
        if command.span.source is not shell.source and command.place.carrier is not None:
            return True
    return False


def _without_comments(shell: ShellSource) -> str:
    text = shell.source.text
    for comment in shell.comments:
        if comment.span.source is shell.source:
            text = text[: comment.span.start] + " " * (comment.span.end - comment.span.start) + text[comment.span.end :]
    return text


def _assignments(source: SourceText) -> dict[str, list[Assignment]]:
    """The assignments of variables by name, without those that hold for one command alone."""
    found: dict[str, list[Assignment]] = {}
    stack: list[object] = [*reversed(parse(source).items)]
    while stack:
        node = stack.pop()
        if isinstance(node, Assignment):
            found.setdefault(node.name, []).append(node)
        if isinstance(node, Simple) and node.words:
            stack += reversed(node.words)
            continue
        if isinstance(node, (list, tuple)):
            stack += reversed(node)
        elif is_dataclass(node) and not isinstance(node, (Span, SourceText)):
            stack += [getattr(node, one.name) for one in reversed(fields(node))]
    return found
