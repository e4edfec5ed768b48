"""torchtune's recipes; the rules' pages hold what is reported about them."""

from __future__ import annotations

import pytest

from ckptlint.frameworks.torchtune import Torchtune
from ckptlint.run import NEVER, Amount, Choice, Run, Unit, Unknown
from ckptlint.source.file import SourceFile

RECIPE = """\
output_dir: /data/tune
epochs: 3
optimizer: {_component_: torch.optim.AdamW}
resume_from_checkpoint: false
checkpointer:
  _component_: torchtune.training.FullModelHFCheckpointer
  output_dir: ${output_dir}
  recipe_checkpoint: null
"""


def runs(text: str) -> tuple[Run, ...]:
    return Torchtune().read(SourceFile("train.yaml", text.encode()))


def test_a_recipe_saves_at_the_end_of_each_epoch_and_begins_anew_unless_told() -> None:
    (run,) = runs(RECIPE)
    (write,), (read,) = run.writes, run.reads
    assert (run.length, write.interval.every) == (Amount(3, Unit.EPOCH), Amount(1, Unit.EPOCH))
    assert (str(write.directory.path), read.choice, run.obstacles) == ("/data/tune", Choice.NOTHING, ())


def test_one_epoch_never_writes_what_a_restart_needs() -> None:
    (run,) = runs(RECIPE.replace("epochs: 3", "epochs: 1"))
    assert [obstacle.setting.name for obstacle in run.obstacles] == ["epochs"]
    assert run.writes[0].interval.every is NEVER


def test_the_checkpointers_own_directory_is_where_it_saves() -> None:
    (run,) = runs(RECIPE.replace("${output_dir}", "/data/own"))
    assert str(run.writes[0].directory.path) == "/data/own"


def test_an_epoch_of_a_few_steps_is_a_smoke_test() -> None:
    (run,) = runs(RECIPE.replace("epochs: 3", "epochs: 1\nmax_steps_per_epoch: 10"))
    assert run.short


def test_a_recipe_that_saves_by_steps_is_newer_than_what_was_read() -> None:
    (run,) = runs(RECIPE.replace("epochs: 3", "epochs: 1\nsave_every_n_steps: 100"))
    assert isinstance(run.writes[0].interval.every, Unknown)
    assert run.obstacles == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("resume_from_checkpoint: false\n", ""),
        ("resume_from_checkpoint: false", "resume_from_checkpoint: ${resume}"),
        ("resume_from_checkpoint: false", "resume_from_checkpoint: true\nenable_async_checkpointing: true"),
    ],
)
def test_what_a_start_takes_up_is_unknown(old: str, new: str) -> None:
    (run,) = runs(RECIPE.replace(old, new))
    assert run.reads[0].choice is Choice.UNKNOWN


def test_a_recipe_state_that_is_named_may_be_there_at_the_first_launch() -> None:
    (run,) = runs(RECIPE.replace("point: false", "point: true").replace("recipe_checkpoint: null", "recipe_checkpoint: r.pt"))
    assert run.reads[0].choice is Choice.UNKNOWN


@pytest.mark.parametrize(
    "text",
    [
        RECIPE.replace("epochs: 3\n", ""),  # evaluation, generation, quantization
        RECIPE.replace("torchtune.training.", "mine."),
        RECIPE.replace("  _component_: torchtune", "  name: torchtune"),
        RECIPE.replace("optimizer", "loss").replace("resume_from_checkpoint", "other"),
        "- epochs: 3\n- checkpointer: torchtune.\n",
        "checkpointer: torchtune.\nepochs: 3\noptimizer: {}\n",
        "",
    ],
)
def test_other_files_describe_no_run(text: str) -> None:
    assert runs(text) == ()
