from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptlint.server.actions import Action, differences, offers
from ckptlint.server.buffers import Buffer, Checked, Surroundings, buffer_at
from ckptlint.source.text import SourceText, apply

LINES = st.lists(st.sampled_from(["a\n", "b\r\n", "c\r", "\n", "d"]), max_size=12).map("".join)


@given(before=LINES, after=LINES)
def test_differences_lead_from_one_text_to_the_other(before: str, after: str) -> None:
    source = SourceText("x.yaml", before)
    assert apply(source, differences(source, after)) == after


def test_lines_that_stay_are_in_no_difference() -> None:
    before = "".join(f"{number}\n" for number in range(100))
    after = before.replace("\n3\n", "\nthree\n").replace("\n95\n", "\n95\nmore\n")
    edits = differences(SourceText("x.yaml", before), after)
    assert [(edit.span.text, edit.replacement) for edit in edits] == [("3\n", "three\n"), ("", "more\n")]


def check(text: str) -> Checked:
    return Surroundings().check(Buffer("untitled:x", "x.yaml", "", text), ())


def suppressed(text: str, word: str) -> str | None:
    """The text after the suppression that is offered at a word; None where none is."""
    checked = check(text)
    at = text.index(word)
    found = [action for action in offers(checked, at, at, ["quickfix"]) if action.title.startswith("Suppress")]
    return apply(checked.file.text, found[0].edits) if found else None


RUN = "stage: sft\ndo_train: true\nfinetuning_type: lora\noutput_dir: /data/run\n"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("save_total_limit: 1", "save_total_limit: 1  # ckptlint: ignore[keep-one]"),
        ("save_total_limit: 1 \t", "save_total_limit: 1  # ckptlint: ignore[keep-one]"),
        ("save_total_limit: 1 # mine", "save_total_limit: 1 # mine  # ckptlint: ignore[keep-one]"),
        ("save_total_limit: 1 # ckptlint: ignore", "save_total_limit: 1 # ckptlint: ignore[keep-one]"),
        ("save_total_limit: 1 # ckptlint: ignore[] why", "save_total_limit: 1 # ckptlint: ignore[keep-one] why"),
        ("# ckptlint: ignore[no-save]\nsave_total_limit: 1", "# ckptlint: ignore[no-save, keep-one]\nsave_total_limit: 1"),
    ],
)
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_suppression_goes_behind_what_the_line_says(line: str, wanted: str, end: str) -> None:
    assert suppressed(RUN + line + end, "save_total_limit") is None  # the finding is about the value alone
    assert suppressed(RUN + line + end, "1") == RUN + wanted + end


@pytest.mark.parametrize("value", ["/tmp/a\n  b", '"/tmp/\\\n  run"', "'/tmp/a\n\n  b'"])
def test_inside_of_a_value_over_several_lines_the_suppression_stands_above(value: str) -> None:
    text = RUN.replace("/data/run", value)
    assert suppressed(text, value) == text.replace("output_dir", "# ckptlint: ignore[ephemeral-path]\noutput_dir")


def test_a_block_scalar_takes_the_suppression_in_its_header() -> None:
    text = RUN.replace("/data/run", "|-\n  /tmp/run")
    assert suppressed(text, "|-") == text.replace("|-", "|-  # ckptlint: ignore[ephemeral-path]")


def test_a_syntax_error_and_an_unused_suppression_cannot_be_suppressed() -> None:
    assert suppressed(RUN + "report_to: [none\n", "") is None
    text = RUN + "seed: 1  # ckptlint: ignore[keep-one]\n"
    assert [found.code for found in check(text).diagnostics] == ["CKP901"]
    assert suppressed(text, "# ckptlint") is None


def test_a_finding_that_two_runs_share_is_offered_once() -> None:
    found = list(offers(check(RUN + "save_total_limit: 1\n"), 0, 10_000, None))
    assert [action.kind for action in found] == ["quickfix", "quickfix", "source.fixAll.ckptlint"]
    assert all(isinstance(action, Action) and action.edits for action in found)


# ------------------------------------------------------------------------------------------------ what is beside a buffer


def test_a_link_to_the_buffers_own_file_is_no_neighbour(tmp_path: Path) -> None:
    text = RUN + "overwrite_output_dir: true\n"
    (tmp_path / "train.yaml").write_text(text)
    (tmp_path / "latest.yaml").symlink_to("train.yaml")
    for name in ("train.yaml", "latest.yaml"):
        buffer = buffer_at((tmp_path / name).as_uri(), "yaml")
        assert buffer is not None
        (found,) = Surroundings().check(buffer.holding(text, 1), ()).diagnostics
        assert "saves there too" not in found.message


def test_an_open_buffer_stands_for_its_file(tmp_path: Path) -> None:
    text = RUN + "overwrite_output_dir: true\n"
    (tmp_path / "other.yaml").write_text(RUN.replace("/data/run", "/data/elsewhere"))
    own, other = (buffer_at((tmp_path / name).as_uri(), "yaml") for name in ("train.yaml", "other.yaml"))
    assert own is not None and other is not None
    (found,) = Surroundings().check(own.holding(text, 1), ()).diagnostics
    assert "other.yaml" not in found.message
    (found,) = Surroundings().check(own.holding(text, 1), [other.holding(RUN, 1)]).diagnostics
    assert "other.yaml saves there too" in found.message


def test_files_that_cannot_be_read_are_no_neighbours(tmp_path: Path) -> None:
    (tmp_path / "directory.yaml").mkdir()
    (tmp_path / "latin.yaml").write_bytes(b"do_train: true\nstage: sft\nname: \xe9\n")
    (tmp_path / "broken.yaml").write_text("do_train: true\nstage: [sft\n")
    buffer = buffer_at((tmp_path / "train.yaml").as_uri(), "yaml")
    assert buffer is not None
    assert [found.code for found in Surroundings().check(buffer.holding(RUN + "save_total_limit: 1", 1), ()).diagnostics] == [
        "CKP406"
    ]
