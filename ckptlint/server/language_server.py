"""The server that an editor talks to: it keeps the open buffers checked, and answers with fixes and the rules' pages."""

from __future__ import annotations

import functools
import importlib.metadata
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from ckptlint.linter import DEBUG
from ckptlint.rule import Diagnostic, Severity, UnknownRule, rule_named
from ckptlint.server import actions
from ckptlint.server.buffers import Buffer, Checked, Surroundings, buffer_at
from ckptlint.server.positions import offset, span_range
from ckptlint.settings import OWN_FILE, PROJECT_FILE
from ckptlint.source.text import Edit

SOURCE = "ckptlint"
SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}
SETTINGS_FILES = f"**/{{{OWN_FILE},{PROJECT_FILE}}}"

P = TypeVar("P")
R = TypeVar("R")


class CkptlintServer(LanguageServer):
    """The buffers of one editor. A fault of ours is a line in the editor's log and never more."""

    def __init__(self) -> None:
        # The whole text comes with every change. Configurations are small, and pygls 2.1 takes a form feed or U+2028 for the
        # end of a line when it applies a partial change, which the protocol does not: from there on the text would be wrong.
        super().__init__(SOURCE, importlib.metadata.version(SOURCE), types.TextDocumentSyncKind.Full)
        self._surroundings = Surroundings()
        self._buffers: dict[str, Buffer] = {}
        self._checked: dict[str, Checked] = {}
        self._said: set[tuple[str, str]] = set()
        self._watching = False

    @property
    def encoding(self) -> str:
        """The unit of a character count that editor and server agreed upon."""
        return str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding))

    # -------------------------------------------------------------------------------------------- buffers

    def opened(self, document: types.TextDocumentItem) -> None:
        """Take up a buffer and check it."""
        buffer = buffer_at(document.uri, document.language_id)
        if buffer is None:
            return
        if not self._watching:
            self._surroundings.forget()
        self._buffers[document.uri] = buffer.holding(document.text, document.version)
        self._check([document.uri])

    def changed(self, document: types.VersionedTextDocumentIdentifier) -> None:
        """Check what a buffer holds now."""
        buffer = self._buffers.get(document.uri)
        if buffer is None:
            return
        text = self.workspace.get_text_document(document.uri).source
        self._buffers[document.uri] = buffer.holding(text, document.version)
        self._check([document.uri])

    def closed(self, uri: str) -> None:
        """Forget a buffer and what was said about it."""
        if self._buffers.pop(uri, None) is None:
            return
        self._checked.pop(uri, None)
        self._said = {said for said in self._said if said[0] != uri}
        self._publish(uri, [], None)

    def check_all(self) -> None:
        """Check every buffer beside what lies on the disk now."""
        self._surroundings.forget()
        self._check(self._buffers)

    def _check(self, uris: Iterable[str]) -> None:
        for uri in list(uris):
            buffer = self._buffers[uri]
            try:
                others = [other for other in self._buffers.values() if other is not buffer]
                checked = self._surroundings.check(buffer, others)
                self._checked[uri] = checked
                for trouble in checked.report.troubles if checked.report else ():
                    self._log_once(uri, f"{trouble}\n{trouble.detail}".rstrip())
                found = self._refusal(checked) if checked.refusal else self.diagnostics(checked)
            except Exception as error:
                self._checked.pop(uri, None)
                self._log_once(uri, fault(f"checking {buffer.path}", error))
                found = []
            self._publish(uri, found, buffer.version)

    def _publish(self, uri: str, diagnostics: list[types.Diagnostic], version: int | None) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))

    # -------------------------------------------------------------------------------------------- findings

    def diagnostics(self, checked: Checked) -> list[types.Diagnostic]:
        """The findings of a buffer."""
        return [self._diagnostic(diagnostic) for diagnostic in actions.own_diagnostics(checked)]

    def _diagnostic(self, diagnostic: Diagnostic) -> types.Diagnostic:
        place = span_range(diagnostic.span, self.encoding)
        message = f"{diagnostic.name}: {diagnostic.message}"
        return types.Diagnostic(place, message, SEVERITIES[diagnostic.severity], diagnostic.code, source=SOURCE)

    def _refusal(self, checked: Checked) -> list[types.Diagnostic]:
        """A file that cannot be checked must not look like one without findings."""
        first = checked.buffer.source.line_at(0)
        message = f"not checked, because the settings cannot be used: {checked.refusal}"
        return [types.Diagnostic(span_range(first, self.encoding), message, types.DiagnosticSeverity.Error, source=SOURCE)]

    def hover(self, uri: str, place: types.Position) -> types.Hover | None:
        """The pages of the rules whose findings are at a position."""
        checked = self._checked.get(uri)
        if checked is None or not checked.diagnostics:
            return None
        at = offset(checked.buffer.source, place, self.encoding)
        here = [found for found in actions.own_diagnostics(checked) if found.span.start <= at <= found.span.end]
        pages = [page for page in dict.fromkeys(_page(found.code) for found in here) if page]
        if not pages:
            return None
        return types.Hover(self._markup("\n\n---\n\n".join(pages)), span_range(here[0].span, self.encoding))

    def _markup(self, text: str) -> types.MarkupContent:
        hover = self.client_capabilities.text_document and self.client_capabilities.text_document.hover
        formats = hover.content_format if hover else None
        plain = formats is not None and types.MarkupKind.Markdown not in formats
        return types.MarkupContent(types.MarkupKind.PlainText if plain else types.MarkupKind.Markdown, text)

    # -------------------------------------------------------------------------------------------- actions

    def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """What can be done about a range."""
        checked = self._checked.get(params.text_document.uri)
        if checked is None or not checked.diagnostics:
            return []
        source = checked.buffer.source
        start, end = (offset(source, place, self.encoding) for place in (params.range.start, params.range.end))
        kinds = [str(getattr(kind, "value", kind)) for kind in params.context.only] if params.context.only else None
        return [self._code_action(checked, offer) for offer in actions.offers(checked, start, end, kinds)]

    def _code_action(self, checked: Checked, offer: actions.Action) -> types.CodeAction:
        return types.CodeAction(
            offer.title,
            kind=offer.kind,
            diagnostics=[self._diagnostic(offer.diagnostic)] if offer.diagnostic else None,
            is_preferred=True if offer.preferred else None,
            edit=self._workspace_edit(checked.buffer, offer.edits),
        )

    def _workspace_edit(self, buffer: Buffer, edits: Iterable[Edit]) -> types.WorkspaceEdit:
        """With the version where the editor can tell it: then it refuses an edit of a text that has moved on."""
        changes = [types.TextEdit(span_range(edit.span, self.encoding), edit.replacement) for edit in edits]
        workspace = self.client_capabilities.workspace
        if workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes:
            document = types.OptionalVersionedTextDocumentIdentifier(buffer.uri, buffer.version)
            return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, list(changes))])
        return types.WorkspaceEdit(changes={buffer.uri: changes})

    # -------------------------------------------------------------------------------------------- the editor's log

    def watch_settings(self) -> None:
        """Ask the editor to say when a settings file changes; one that cannot is served at the next open or save."""
        workspace = self.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace else None
        if not (watching and watching.dynamic_registration):
            return
        options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(SETTINGS_FILES)])
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        registration = types.Registration("ckptlint-settings", method, register_options=options)
        self._watching = True
        self.client_register_capability(types.RegistrationParams([registration]))

    def log(self, message: str) -> None:
        """A line in the editor's log."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))

    def _log_once(self, uri: str, message: str) -> None:
        """What is wrong with a buffer is said once, not at every key."""
        if (uri, message) not in self._said:
            self._said.add((uri, message))
            self.log(message)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """What pygls could not handle, such as a malformed message: a line in the log instead of a window."""
        self.log(f"{type(error).__name__}: {error}")


def _page(code: str) -> str:
    """A rule's page; the title of a fence is ours and would keep editors from colouring it."""
    try:
        rule = rule_named(code)
    except UnknownRule:
        return ""
    fix = f" · fix {rule.fix}" if rule.fix else ""
    page = re.sub(r"^([ \t]*`{3,}\w+)[ \t]+\S.*$", r"\1", rule.page(), flags=re.M)
    return f"**{rule.code} {rule.name}** · {rule.severity.value}{fix}\n\n{page}"


def fault(doing: str, error: Exception) -> str:
    """An error of ours in words; with the environment variable CKPTLINT_DEBUG also where it was raised."""
    words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    message = f"internal error in {doing}: {words}. This is a fault of ckptlint; please report it with the file"
    if not os.environ.get(DEBUG):
        return message
    import traceback

    return message + "\n" + "".join(traceback.format_exception(error))


def _guarded(server: CkptlintServer, handler: Callable[[P], R | None]) -> Callable[[P], R | None]:
    """A handler whose errors are logged; the editor gets an empty answer."""

    @functools.wraps(handler)
    def guarded(params: P) -> R | None:
        try:
            return handler(params)
        except Exception as error:
            server.log(fault(f"answering {handler.__name__}", error))
            return None

    return guarded


def build() -> CkptlintServer:
    """A server that listens to nothing yet."""
    server = CkptlintServer()

    def initialized(_: types.InitializedParams) -> None:
        server.watch_settings()

    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        server.opened(params.text_document)

    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document)

    def did_save(_: types.DidSaveTextDocumentParams) -> None:
        server.check_all()

    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.closed(params.text_document.uri)

    def files_changed(_: types.DidChangeWatchedFilesParams) -> None:
        server.check_all()

    def hover(params: types.HoverParams) -> types.Hover | None:
        return server.hover(params.text_document.uri, params.position)

    def code_action(params: types.CodeActionParams) -> list[types.CodeAction] | None:
        return server.code_actions(params)

    kinds: list[types.CodeActionKind | str] = [actions.QUICK_FIX, actions.FIX_ALL]
    server.feature(types.INITIALIZED)(_guarded(server, initialized))
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(_guarded(server, did_open))
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_guarded(server, did_change))
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(_guarded(server, did_save))
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_guarded(server, did_close))
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(_guarded(server, files_changed))
    server.feature(types.TEXT_DOCUMENT_HOVER)(_guarded(server, hover))
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(kinds))(_guarded(server, code_action))
    return server


def serve() -> None:
    """Serve one editor on standard input and output until it says goodbye or goes away.

    Standard output belongs to the protocol alone: whatever else is printed, by a plug-in for example, goes to standard error.
    """
    debug = bool(os.environ.get(DEBUG))
    logging.basicConfig(level=logging.INFO if debug else logging.CRITICAL, stream=sys.stderr)
    output: BinaryIO = sys.stdout.buffer
    sys.stdout = sys.stderr
    build().start_io(sys.stdin.buffer, output)
