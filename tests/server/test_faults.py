"""Errors of our own: a line in the editor's log, an empty answer, and no stack."""

from __future__ import annotations

from typing import Any

import pytest
from lsprotocol import types

from ckptlint.server import actions
from ckptlint.server.buffers import Surroundings
from ckptlint.server.language_server import CkptlintServer, build

RUN = "stage: sft\ndo_train: true\nfinetuning_type: lora\noutput_dir: /data/run\nsave_total_limit: 1\n"
URI = "untitled:run"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What a server sends by itself."""
    sent: list[tuple[str, Any]] = []
    monkeypatch.delenv("CKPTLINT_DEBUG", raising=False)
    monkeypatch.setattr(CkptlintServer, "encoding", "utf-16")
    monkeypatch.setattr(CkptlintServer, "window_log_message", lambda _, params: sent.append(("log", params.message)))
    monkeypatch.setattr(
        CkptlintServer,
        "text_document_publish_diagnostics",
        lambda _, params: sent.append(("findings", [found.code for found in params.diagnostics])),
    )
    return sent


def fail(*_: object, **__: object) -> None:
    raise KeyError("fault")


def test_a_check_that_fails_is_logged_once_and_leaves_no_old_findings(
    said: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = build()
    server.opened(types.TextDocumentItem(URI, "yaml", 1, RUN))
    assert said == [("findings", ["CKP406"])]
    monkeypatch.setattr(Surroundings, "check", fail)
    server.check_all()
    server.check_all()
    message = (
        "internal error in checking run.yaml: KeyError: 'fault'. This is a fault of ckptlint; please report it with the file"
    )
    assert said[1:] == [("log", message), ("findings", []), ("findings", [])]


def test_a_request_that_fails_gets_an_empty_answer(said: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    server = build()
    server.opened(types.TextDocumentItem(URI, "yaml", 1, RUN))
    monkeypatch.setattr(actions, "offers", fail)
    answer = server.protocol.fm.features[types.TEXT_DOCUMENT_CODE_ACTION](
        types.CodeActionParams(
            types.TextDocumentIdentifier(URI),
            types.Range(types.Position(4, 0), types.Position(4, 20)),
            types.CodeActionContext([]),
        )
    )
    assert answer is None
    kind, message = said[-1]
    assert kind == "log"
    assert message.startswith("internal error in answering code_action: KeyError: 'fault'.")
    assert "Traceback" not in message


def test_with_the_debug_variable_the_log_has_the_stack(said: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CKPTLINT_DEBUG", "1")
    monkeypatch.setattr(Surroundings, "check", fail)
    build().opened(types.TextDocumentItem(URI, "yaml", 1, RUN))
    assert 'raise KeyError("fault")' in said[0][1]
