"""The language server as editors meet it: a process that speaks over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
import pytest_asyncio
import pytest_lsp
from editor import applied, edits_of, text_at
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

T = TypeVar("T")

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVER = [sys.executable, "-m", "ckptlint", "server", "--stdio"]
RUN = """\
stage: sft
do_train: true
finetuning_type: lora
output_dir: /data/run
overwrite_output_dir: true
save_steps: 500
save_total_limit: 1
"""
HEALTHY = RUN.replace("overwrite_output_dir: true\n", "").replace("limit: 1", "limit: 3")
RULE_PACK = '''
"""Rules of a plug-in that misbehave."""
from ckptlint.rule import Finding, Rule, Severity


class Crashing(Rule):
    """Raises for files called crash.yaml."""

    code = "BAD101"
    name = "crashing"
    severity = Severity.INFO

    def check(self, run):
        if run.where.path.endswith("crash.yaml"):
            raise ZeroDivisionError("the rule is at fault")
        return iter(())


class Printing(Rule):
    """Prints where only the protocol may be spoken."""

    code = "BAD102"
    name = "printing"
    severity = Severity.INFO

    def check(self, run):
        print("this is no JSON-RPC")
        return iter(())
'''


class Editor:
    """An editor with one server."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.answer: types.InitializeResult | None = None
        self.registered: list[types.Registration] = []
        self.opened: set[str] = set()

    async def start(self, capabilities: types.ClientCapabilities, workspace: Path | None = None) -> None:
        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            self.registered += params.registrations

        folders = [types.WorkspaceFolder(workspace.as_uri(), workspace.name)] if workspace else None
        params = types.InitializeParams(capabilities=capabilities, workspace_folders=folders)
        self.answer = await soon(self.client.initialize_session(params))

    async def settle(self) -> None:
        """Return when the server has dealt with everything sent so far."""
        nowhere = types.TextDocumentIdentifier("file:///nowhere.yaml")
        await soon(self.client.text_document_hover_async(types.HoverParams(nowhere, types.Position(0, 0))))

    async def open(self, uri: str, text: str, language: str = "yaml") -> list[types.Diagnostic] | None:
        document = types.TextDocumentItem(uri, language, 1, text)
        self.opened.add(uri)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        return await self.diagnostics(uri)

    async def change(self, uri: str, text: str, version: int = 2) -> list[types.Diagnostic] | None:
        document = types.VersionedTextDocumentIdentifier(version, uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        return await self.diagnostics(uri)

    async def save(self, uri: str) -> list[types.Diagnostic] | None:
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
        return await self.diagnostics(uri)

    async def close(self, uri: str) -> list[types.Diagnostic] | None:
        self.opened.discard(uri)
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
        return await self.diagnostics(uri)

    async def changed_on_disk(self, path: Path) -> None:
        event = types.FileEvent(path.as_uri(), types.FileChangeType.Changed)
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
        await self.settle()

    async def diagnostics(self, uri: str) -> list[types.Diagnostic] | None:
        """What the server says of a document; None where it never said anything."""
        await self.settle()
        found = self.client.diagnostics.get(uri)
        return None if found is None else list(found)

    async def actions(self, uri: str, place: types.Range, *kinds: str) -> list[types.CodeAction]:
        context = types.CodeActionContext([], only=list(kinds) or None)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), place, context)
        found = await soon(self.client.text_document_code_action_async(params))
        return [action for action in found or () if isinstance(action, types.CodeAction)]

    async def hover(self, uri: str, line: int, character: int) -> types.Hover | None:
        params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        return await soon(self.client.text_document_hover_async(params))


async def soon(answer: Awaitable[T]) -> T:
    """The answer; a server that has died must not hang the tests."""
    return await asyncio.wait_for(answer, 30)


async def session(client: LanguageClient, capabilities: types.ClientCapabilities) -> AsyncIterator[None]:
    client.editor = Editor(client)  # type: ignore[attr-defined]
    await client.editor.start(capabilities)  # type: ignore[attr-defined]
    yield
    await soon(client.shutdown_session())


@pytest_lsp.fixture(config=ClientServerConfig(server_command=SERVER), scope="module")
async def vscode_client(client: LanguageClient) -> AsyncIterator[None]:
    async for _ in session(client, client_capabilities("visual-studio-code")):
        yield


@pytest_asyncio.fixture(loop_scope="module")
async def vscode(vscode_client: LanguageClient) -> AsyncIterator[Editor]:
    """An editor without open buffers and without a workspace."""
    editor: Editor = vscode_client.editor  # type: ignore[attr-defined]
    vscode_client.log_messages.clear()
    yield editor
    for uri in sorted(editor.opened):
        await editor.close(uri)
    vscode_client.diagnostics.clear()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A configuration that is not on the disk yet, in a directory of its own."""
    return (tmp_path / "train.yaml").as_uri()


def codes(diagnostics: Sequence[types.Diagnostic] | None) -> list[Any]:
    assert diagnostics is not None
    return [diagnostic.code for diagnostic in diagnostics]


def line(number: int) -> types.Range:
    return types.Range(types.Position(number, 0), types.Position(number + 1, 0))


def titled(actions: list[types.CodeAction], start: str) -> types.CodeAction:
    (action,) = [action for action in actions if action.title.startswith(start)]
    return action


# ------------------------------------------------------------------------------------------------ findings


async def test_an_opened_buffer_is_checked_with_its_severities_and_places(vscode: Editor, uri: str) -> None:
    resume, keep = await vscode.open(uri, RUN) or ()
    assert (resume.code, resume.severity, resume.source) == ("CKP202", types.DiagnosticSeverity.Error, "ckptlint")
    assert (keep.code, keep.severity) == ("CKP406", types.DiagnosticSeverity.Warning)
    assert resume.message.startswith("resume-disabled: `overwrite_output_dir: true`")
    assert (text_at(RUN, resume.range), text_at(RUN, keep.range)) == ("true", "1")
    assert (resume.range.start.line, keep.range.start.line) == (4, 6)


async def test_a_change_is_checked_before_it_is_saved(vscode: Editor, tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(HEALTHY)
    assert await vscode.open(path.as_uri(), HEALTHY) == []
    assert codes(await vscode.change(path.as_uri(), RUN)) == ["CKP202", "CKP406"]
    assert await vscode.change(path.as_uri(), HEALTHY, version=3) == []
    assert path.read_text() == HEALTHY


async def test_a_buffer_that_differs_from_the_disk_is_what_is_checked(vscode: Editor, tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(RUN)
    assert await vscode.open(path.as_uri(), HEALTHY) == []
    assert await vscode.save(path.as_uri()) == []


async def test_a_closed_buffer_has_no_findings(vscode: Editor, uri: str) -> None:
    assert await vscode.open(uri, RUN)
    assert await vscode.close(uri) == []
    assert await vscode.actions(uri, line(4)) == []


async def test_yaml_that_is_broken_in_mid_edit_is_one_syntax_error_until_it_is_mended(vscode: Editor, uri: str) -> None:
    assert codes(await vscode.open(uri, RUN)) == ["CKP202", "CKP406"]
    assert codes(await vscode.change(uri, RUN + "report_to: [none\n")) == ["CKP900"]
    assert await vscode.actions(uri, line(7)) == []
    assert codes(await vscode.change(uri, RUN + "report_to: [none]\n", version=3)) == ["CKP202", "CKP406"]


async def test_broken_yaml_of_no_framework_is_left_to_others(vscode: Editor, uri: str) -> None:
    assert await vscode.open(uri, "{{ if .Values.enabled }}\nkind: [Deployment\n") == []


async def test_other_languages_are_ignored(vscode: Editor, tmp_path: Path) -> None:
    assert await vscode.open((tmp_path / "notes.md").as_uri(), RUN, "markdown") is None
    assert await vscode.open((tmp_path / "data.csv").as_uri(), "a,b", "csv") is None


async def test_yaml_under_another_suffix_is_checked_where_the_editor_calls_it_yaml(vscode: Editor, tmp_path: Path) -> None:
    uri = (tmp_path / "train.conf").as_uri()
    assert codes(await vscode.open(uri, RUN)) == ["CKP202", "CKP406"]


async def test_a_text_without_a_file_is_checked_with_the_defaults(vscode: Editor) -> None:
    assert codes(await vscode.open("untitled:Untitled-1", RUN)) == ["CKP202", "CKP406"]
    assert codes(await vscode.open("file://", RUN)) == ["CKP202", "CKP406"]
    (fix, *_) = await vscode.actions("untitled:Untitled-1", line(4), "source.fixAll")
    assert "overwrite_output_dir: false" in applied(RUN, edits_of(fix, "untitled:Untitled-1"))
    assert await vscode.close("untitled:Untitled-1") == []


@pytest.mark.parametrize(
    "uri", ["git:/x/train.yaml?ref=HEAD", "vscode-vfs://github/a/train.yaml", "file:///a%00.yaml", "http://["]
)
async def test_texts_that_lie_nowhere_we_know_are_ignored(vscode: Editor, uri: str) -> None:
    assert await vscode.open(uri, RUN) is None
    assert not await vscode.change(uri, HEALTHY)
    assert await vscode.close(uri) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ufeff",
        "\x00\x01\x1b",
        "\t\n\t- x",
        "%YAML 9.9\n---\n",
        "a: &a\n  b: *a\n",
        "? [do_train, stage]\n: !!python/object:os.system {}\n",
        "do_train: true\nstage: sft\n" + "[" * 3000,
        "do_train: true\nstage: sft\nx: " + "{a: " * 3000,
        "do_train: true\nstage: *nothing\n",
        "do_train: true\nstage: sft\n\x85\u2028\u2029\x0c",
        "do_train: true\rstage: sft\r\noverwrite_output_dir: true\r",
        "do_train: true\nstage: sft\nname: \ud800\n",
        "# ckptlint: ignore[[[\ndo_train: true\nstage: # ckptlint: ignore\n",
        "do_train: true\n---\nstage: sft\n",
    ],
)
async def test_no_buffer_brings_the_server_down(vscode: Editor, uri: str, text: str) -> None:
    assert await vscode.open(uri, text) is not None
    everything = types.Range(types.Position(0, 0), types.Position(99_999, 99_999))
    await vscode.actions(uri, everything)
    await vscode.hover(uri, 2, 0)
    assert codes(await vscode.change(uri, RUN)) == ["CKP202", "CKP406"]
    assert not [message for message in vscode.client.log_messages if "answering" in message.message]


# ------------------------------------------------------------------------------------------------ places


CHINESE = '{stage: sft, do_train: true, finetuning_type: lora, output_dir: "/数据/运行😀", overwrite_output_dir: true}  # 🚀\n'


async def test_characters_are_utf16_code_units_by_default(vscode: Editor, uri: str) -> None:
    assert vscode.answer is not None
    assert vscode.answer.capabilities.position_encoding == "utf-16"
    (found,) = await vscode.open(uri, CHINESE) or ()
    assert text_at(CHINESE, found.range) == "true"
    assert found.range.start.character == CHINESE.index("true}") + 1  # one emoji before it, two units wide
    suppress = titled(await vscode.actions(uri, found.range), "Suppress")
    assert applied(CHINESE, edits_of(suppress, uri)) == CHINESE.replace("🚀", "🚀  # ckptlint: ignore[resume-disabled]")
    assert await vscode.hover(uri, 0, found.range.start.character) is not None
    assert await vscode.hover(uri, 0, found.range.start.character - 1) is None


async def test_a_byte_order_mark_in_the_buffer_is_a_character_of_its_first_line(vscode: Editor, uri: str) -> None:
    text = "\ufeff" + CHINESE
    (found,) = await vscode.open(uri, text) or ()
    assert text_at(text, found.range) == "true"


async def test_carriage_returns_end_lines_and_other_separators_do_not(vscode: Editor, uri: str) -> None:
    text = 'run_name: "a\u2028b\x85c"\n' + RUN
    found = await vscode.open(uri, text) or ()
    assert [diagnostic.range.start.line for diagnostic in found] == [5, 7]
    found = await vscode.change(uri, RUN.replace("\n", "\r\n")) or ()
    assert [diagnostic.range.start.line for diagnostic in found] == [4, 6]


async def test_an_editor_can_ask_for_utf8_and_for_files_outside_of_its_workspace(tmp_path: Path) -> None:
    uri, workspace = (tmp_path / "elsewhere" / "train.yaml").as_uri(), tmp_path / "workspace"
    workspace.mkdir()
    client = pytest_lsp.make_test_lsp_client()
    await client.start_io(*SERVER)
    editor = Editor(client)
    capabilities = client_capabilities("neovim")
    assert capabilities.general is not None
    capabilities.general.position_encodings = ["utf-7", "utf-8", "utf-16"]
    await editor.start(capabilities, workspace)
    assert editor.answer is not None
    assert editor.answer.capabilities.position_encoding == "utf-8"
    (found,) = await editor.open(uri, CHINESE) or ()
    assert text_at(CHINESE, found.range, "utf-8") == "true"
    fix, suppress, _ = await editor.actions(uri, found.range)
    assert applied(CHINESE, edits_of(fix, uri), "utf-8") == CHINESE.replace("dir: true", "dir: false")
    assert applied(CHINESE, edits_of(suppress, uri), "utf-8").endswith("# 🚀  # ckptlint: ignore[resume-disabled]\n")
    assert fix.edit is not None and fix.edit.changes is not None  # this editor knows no document changes
    assert editor.registered == []  # and does not watch files for others
    await soon(client.shutdown_session())
    await client.stop()


# ------------------------------------------------------------------------------------------------ actions


async def test_a_safe_fix_is_preferred_and_speaks_of_the_version_that_was_checked(vscode: Editor, uri: str) -> None:
    await vscode.open(uri, RUN)
    await vscode.change(uri, RUN + "logging_steps: 1\n", version=7)
    fix, suppress = await vscode.actions(uri, line(4), "quickfix")
    assert (fix.title, fix.kind, fix.is_preferred) == ("CKP202: set `overwrite_output_dir` to `false`", "quickfix", True)
    assert [diagnostic.code for diagnostic in fix.diagnostics or ()] == ["CKP202"]
    assert suppress.is_preferred is None
    assert fix.edit is not None and fix.edit.document_changes is not None
    (change,) = fix.edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document.version == 7
    assert applied(RUN, edits_of(fix, uri)) == RUN.replace("dir: true", "dir: false")


async def test_a_fix_that_two_runs_make_unsafe_says_so_and_is_left_out_of_fix_all(vscode: Editor, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(HEALTHY)
    uri = (tmp_path / "train.yaml").as_uri()
    await vscode.open(uri, RUN)
    fix, *_ = await vscode.actions(uri, line(4), "quickfix")
    assert (fix.title, fix.is_preferred) == ("CKP202: set `overwrite_output_dir` to `false` (unsafe)", None)
    (fix_all,) = await vscode.actions(uri, line(0), "source.fixAll.ckptlint")
    assert applied(RUN, edits_of(fix_all, uri)) == RUN.replace("limit: 1", "limit: 2")


async def test_the_neighbour_is_noticed_while_its_directory_is_typed(vscode: Editor, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(HEALTHY.replace("/data/run", "/data/other"))
    uri = (tmp_path / "train.yaml").as_uri()
    await vscode.open(uri, RUN)
    assert (await vscode.actions(uri, line(4), "quickfix"))[0].is_preferred
    await vscode.change(uri, RUN.replace("/data/run", "/data/other"))
    assert not (await vscode.actions(uri, line(4), "quickfix"))[0].is_preferred


async def test_fix_all_applies_all_safe_fixes_and_touches_nothing_else(vscode: Editor, uri: str) -> None:
    text = "# 😀 运行\n" + RUN.replace("\n", "   # 注\n") + "seed: 1"
    await vscode.open(uri, text)
    for kinds in ((), ("source",), ("source.fixAll",), ("source.fixAll.ckptlint",)):
        fix_all = (await vscode.actions(uri, line(0), *kinds))[-1]
        assert fix_all.kind == "source.fixAll.ckptlint"
        edits = edits_of(fix_all, uri)
        assert applied(text, edits) == text.replace("dir: true", "dir: false").replace("limit: 1", "limit: 2")
        assert sorted(edit.range.start.line for edit in edits) == [5, 7]
    assert await vscode.actions(uri, line(0), "source.organizeImports", "refactor") == []
    assert await vscode.change(uri, applied(text, edits)) == []
    assert await vscode.actions(uri, line(5)) == []


async def test_a_suppression_is_appended_and_silences_the_line(vscode: Editor, uri: str) -> None:
    await vscode.open(uri, RUN)
    suppress = titled(await vscode.actions(uri, line(4), "quickfix"), "Suppress")
    assert suppress.title == "Suppress CKP202 resume-disabled on this line"
    text = applied(RUN, edits_of(suppress, uri))
    assert text == RUN.replace("dir: true", "dir: true  # ckptlint: ignore[resume-disabled]")
    assert codes(await vscode.change(uri, text)) == ["CKP406"]


async def test_an_existing_suppression_is_extended(vscode: Editor, uri: str) -> None:
    text = RUN.replace("dir: true", "dir: true  # mine  # ckptlint: ignore[keep-one] because")
    await vscode.open(uri, text)
    suppress = titled(await vscode.actions(uri, line(4)), "Suppress CKP202")
    text = applied(text, edits_of(suppress, uri))
    assert "dir: true  # mine  # ckptlint: ignore[keep-one, resume-disabled] because\n" in text
    assert "CKP202" not in codes(await vscode.change(uri, text))


# ------------------------------------------------------------------------------------------------ hover


async def test_hovering_over_a_finding_shows_the_page_of_its_rule(vscode: Editor, uri: str) -> None:
    await vscode.open(uri, RUN)
    hover = await vscode.hover(uri, 6, RUN.splitlines()[6].index("1"))
    assert hover is not None and isinstance(hover.contents, types.MarkupContent) and hover.range is not None
    assert hover.contents.kind == types.MarkupKind.Markdown
    assert hover.contents.value.startswith("**CKP406 keep-one** · warning · fix safe\n\nOnly one checkpoint is kept.")
    assert "\n```yaml\nstage: sft" in hover.contents.value
    assert text_at(RUN, hover.range) == "1"
    assert await vscode.hover(uri, 0, 0) is None


# ------------------------------------------------------------------------------------------------ settings


async def test_settings_hold_for_buffers_and_are_read_again_when_they_change(vscode: Editor, tmp_path: Path) -> None:
    settings, uri = tmp_path / "ckptlint.toml", (tmp_path / "runs" / "train.yaml").as_uri()
    settings.write_text('ignore = ["keep-one"]\n')
    (watched,) = vscode.registered
    assert watched.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    assert codes(await vscode.open(uri, RUN)) == ["CKP202"]
    settings.write_text('ignore = ["CKP2"]\n')
    await vscode.changed_on_disk(settings)
    assert codes(await vscode.diagnostics(uri)) == ["CKP406"]
    settings.unlink()
    await vscode.changed_on_disk(settings)
    assert codes(await vscode.diagnostics(uri)) == ["CKP202", "CKP406"]


async def test_settings_that_cannot_be_used_are_said_in_the_buffer_and_not_taken_for_health(
    vscode: Editor, tmp_path: Path
) -> None:
    settings, uri = tmp_path / "ckptlint.toml", (tmp_path / "train.yaml").as_uri()
    settings.write_text('selct = ["ALL"]\n')
    (found,) = await vscode.open(uri, RUN) or ()
    assert "ckptlint.toml:1: no setting is called `selct`; did you mean `select`?" in found.message
    assert found.severity == types.DiagnosticSeverity.Error
    assert await vscode.open((tmp_path / "compose.yaml").as_uri(), "services: {}\n") == []
    settings.write_text('select = ["keep-one"]\n')
    assert codes(await vscode.save(uri)) == ["CKP406"]


async def test_a_file_that_the_settings_exclude_is_left_alone(vscode: Editor, tmp_path: Path) -> None:
    (tmp_path / "ckptlint.toml").write_text('exclude = ["third_party/"]\n')
    assert await vscode.open((tmp_path / "third_party" / "deep" / "train.yaml").as_uri(), RUN) == []
    assert await vscode.open((tmp_path / "train.yaml").as_uri(), RUN) != []


# ------------------------------------------------------------------------------------------------ faults


async def test_a_rule_at_fault_is_logged_once_and_the_others_go_on(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "bad_rules").mkdir(parents=True)
    (site / "bad_rules" / "__init__.py").touch()
    (site / "bad_rules" / "bad.py").write_text(RULE_PACK)
    metadata = site / "bad_pack-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-pack\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[ckptlint.rules]\nbad = bad_rules\n")
    environment = {name: value for name, value in os.environ.items() if name != "CKPTLINT_DEBUG"} | {"PYTHONPATH": str(site)}
    client = pytest_lsp.make_test_lsp_client()
    await client.start_io(*SERVER, env=environment)
    editor = Editor(client)
    await editor.start(client_capabilities("emacs"))
    uri = (tmp_path / "crash.yaml").as_uri()
    (found,) = await editor.open(uri, CHINESE) or ()
    assert (found.code, text_at(CHINESE, found.range, "utf-32")) == ("CKP202", "true")  # the unit that Emacs prefers
    assert await editor.change(uri, HEALTHY) == []
    (said,) = [message.message for message in client.log_messages]
    assert "internal error in rule BAD101 crashing: ZeroDivisionError: the rule is at fault" in said
    assert "Traceback" not in said
    await soon(client.shutdown_session())
    assert client._server is not None
    assert client._server.returncode == 0
    await client.stop()
