"""Settings are found near the file, validated, and wrong ones are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptlint.rule import UnknownRule, rule_named
from ckptlint.run import Storage
from ckptlint.settings import DEFAULTS, Choice, Settings, SettingsError, SettingsFinder, read

KEEP_ONE, RESUME_DISABLED = "CKP406", "CKP202"


def own(project: Path, text: str) -> Settings:
    path = project / "ckptlint.toml"
    path.write_text(text)
    settings = read(str(path))
    assert settings is not None
    return settings


def refusal(project: Path, text: str, name: str = "ckptlint.toml") -> str:
    (project / name).write_text(text)
    with pytest.raises(SettingsError) as error:
        read(name)
    return str(error.value)


def test_without_a_file_every_rule_is_on(project: Path) -> None:
    settings = SettingsFinder().of(project)
    assert settings == DEFAULTS
    assert {KEEP_ONE, RESUME_DISABLED} <= settings.enabled()


def test_every_key_is_read(project: Path) -> None:
    settings = own(
        project,
        """
        select = ["CKP2", "keep-one"]
        ignore = ["stale-pin"]
        extend-select = ["CKP900"]
        exclude = ["old/"]
        durable-paths = ["/mnt/durable"]
        ephemeral-paths = ["/scratch"]
        [per-file-ignores]
        "smoke/*.yaml" = ["CKP4"]
        """,
    )
    assert {KEEP_ONE, RESUME_DISABLED, "CKP900"} <= settings.enabled()
    assert not {rule_named("stale-pin").code, rule_named("no-save").code} & settings.enabled()
    assert settings.exclude == ("old/",)
    assert settings.storage == Storage(("/mnt/durable",), ("/scratch",))
    assert KEEP_ONE in settings.ignored_for("smoke/a.yaml")
    assert KEEP_ONE not in settings.ignored_for("a.yaml")


def test_per_file_ignores_start_at_the_settings_file_wherever_the_check_runs(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = own(project, 'per-file-ignores = { "/sub/*.yaml" = ["keep-one"] }')
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    assert settings.ignored_for("a.yaml") == {KEEP_ONE}
    assert settings.ignored_for("../a.yaml") == frozenset()
    assert settings.ignored_for("../../sub/a.yaml") == frozenset()


def test_the_nearest_file_upwards_decides(project: Path) -> None:
    (project / "ckptlint.toml").write_text('exclude = ["outer"]')
    inner = project / "team" / "configs"
    inner.mkdir(parents=True)
    (project / "team" / "pyproject.toml").write_text('[tool.ckptlint]\nexclude = ["inner"]')
    finder = SettingsFinder()
    assert finder.of(inner).exclude == ("inner",)
    assert finder.of(project).exclude == ("outer",)


def test_a_file_of_our_own_goes_before_pyproject(project: Path) -> None:
    (project / "ckptlint.toml").write_text('exclude = ["own"]')
    (project / "pyproject.toml").write_text('[tool.ckptlint]\nexclude = ["project"]')
    assert SettingsFinder().of(project).exclude == ("own",)


def test_a_pyproject_without_our_table_is_passed_over(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.ckptlint]\nignore = ["keep-one"]')
    (project / "sub").mkdir()
    (project / "sub" / "pyproject.toml").write_text('[project]\ndependencies = ["ckptlint"]')
    assert SettingsFinder().of(project / "sub").ignore == ("keep-one",)


def test_a_pyproject_that_is_broken_but_does_not_mention_us_is_nobodys_business_here(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.other\n")
    assert SettingsFinder().of(project) == DEFAULTS


def test_the_search_ends_at_the_top_of_the_repository(project: Path) -> None:
    (project.parent / "ckptlint.toml").write_text('ignore = ["keep-one"]')
    assert SettingsFinder().of(project) == DEFAULTS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('selct = ["ALL"]', "ckptlint.toml:1: no setting is called `selct`; did you mean `select`?"),
        (
            "\nper_file_ignores = {}",
            "ckptlint.toml:2: no setting is called `per_file_ignores`; did you mean `per-file-ignores`?",
        ),
        ("frobnicate = 1", "no setting is called `frobnicate`; there are: select, ignore,"),
        ('select = "ALL"', "ckptlint.toml:1: select must be a list of strings, such as"),
        ('select = "ALL"', "found a string"),
        ("exclude = [1]", 'exclude must be a list of strings, such as ["third_party/"]; found a number'),
        ("durable-paths = true", 'durable-paths must be a list of strings, such as ["/mnt/durable"]; found true or false'),
        ('per-file-ignores = ["a"]', "per-file-ignores must be a table of glob = list of rules"),
        ('[per-file-ignores]\n"a" = "keep-one"', "ckptlint.toml:1: per-file-ignores must be a table of glob = list of rules"),
        ('ignore = ["keep-won"]', "ckptlint.toml:1: ignore: no rule is called `keep-won`; did you mean `keep-one`?"),
        ('[per-file-ignores]\n"a" = ["CKP99"]', "ckptlint.toml:1: per-file-ignores: no rule is called `CKP99`"),
        ('exclude = ["!"]', "ckptlint.toml:1: exclude: `!` is not a pattern; write it as in .gitignore"),
        ("select = [", "ckptlint.toml: not valid TOML"),
    ],
)
def test_what_is_wrong_is_refused_with_its_name_place_and_remedy(project: Path, text: str, words: str) -> None:
    assert words in refusal(project, text)


def test_errors_in_pyproject_name_the_table(project: Path) -> None:
    text = '[project]\nname = "x"\n\n[tool.ckptlint]\nselect = 1\n'
    assert refusal(project, text, "pyproject.toml").startswith(
        "pyproject.toml:5: [tool.ckptlint] select must be a list of strings"
    )


def test_a_settings_file_that_is_not_utf_8_is_named_with_the_line(project: Path) -> None:
    (project / "ckptlint.toml").write_bytes(b'# ok\nexclude = ["\xff"]\n')
    with pytest.raises(SettingsError, match=r"^ckptlint\.toml:2: not UTF-8"):
        SettingsFinder().of(project)


def test_the_command_line_adds_to_the_settings_and_its_select_starts_anew(project: Path) -> None:
    enabled = own(project, 'select = ["CKP4"]\nignore = ["keep-one"]').enabled()
    assert KEEP_ONE not in enabled
    assert Choice().apply(enabled) == enabled
    assert Choice(extend_select=("resume-disabled",)).apply(enabled) == enabled | {RESUME_DISABLED}
    assert Choice(select=("CKP406", "CKP202"), ignore=("resume-disabled",)).apply(enabled) == {KEEP_ONE}
    with pytest.raises(UnknownRule):
        Choice(ignore=("nothing",)).apply(enabled)
