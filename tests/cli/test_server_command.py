from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from ckptlint.cli import cli


@pytest.mark.parametrize("missing", ["pygls.lsp.server", "lsprotocol"])
def test_without_its_extra_the_server_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name in [name for name in sys.modules if name.startswith(("ckptlint.server", "pygls", "lsprotocol", "cattrs"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    result = CliRunner().invoke(cli, ["server"])
    assert result.exit_code == 2
    assert result.output == f"error: the language server needs {missing}: pip install 'ckptlint[server]'\n"


def test_no_other_command_loads_what_the_server_needs() -> None:
    code = (
        "import sys, importlib, pathlib, ckptlint.cli\n"
        "for path in pathlib.Path(ckptlint.cli.__file__).parent.glob('[a-z]*.py'):\n"
        "    importlib.import_module(f'ckptlint.cli.{path.stem}')\n"
        "print(sorted({'pygls', 'lsprotocol', 'cattrs', 'asyncio'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_server_ends_when_the_editor_goes_away() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "ckptlint", "server"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
