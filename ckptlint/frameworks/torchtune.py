"""torchtune's recipes (``tune run RECIPE --config run.yaml key=value``).

Source: the wheel of torchtune 0.6.1: ``recipes/*.py`` (``train``: one ``save_checkpoint`` at the end of each epoch),
``training/checkpointing/_checkpoint_client.py`` (``intermediate_checkpoint = epoch + 1 < total_epochs``: optimizer and
progress are saved with these only), ``_checkpointer.py`` (``recipe_state/recipe_state.pt``), ``_utils.py``
(``get_recipe_checkpoint_path``: a ValueError where the file is missing).
"""

from __future__ import annotations

from collections.abc import Iterator

from ckptlint.frameworks.framework import NotPinned, release_of
from ckptlint.frameworks.nested_settings import NestedSettings
from ckptlint.run import (
    NEVER,
    Amount,
    Choice,
    Fact,
    Interval,
    Location,
    Obstacle,
    PathExpr,
    Read,
    Release,
    Retention,
    Run,
    Setting,
    Unit,
    Unknown,
    Write,
)
from ckptlint.source.file import SourceFile
from ckptlint.source.yaml import OMEGACONF, Mapping

NAME = "torchtune"
TITLE = "torchtune"
READ_AT = "0.6.1"

RECIPE_STATE = "recipe_state/recipe_state.pt"
# Saves by steps came after 0.6.1; a recipe that writes the key is not what was read.
BY_STEPS = "save_every_n_steps"


class Torchtune(NotPinned):
    """The YAML of a training recipe; those of evaluation, generation and quantization have no ``epochs``."""

    name = NAME
    title = TITLE
    suffixes = (".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return b"checkpointer:" in data and b"torchtune." in data and b"epochs:" in data

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        documents = file.yaml.documents
        if len(documents) != 1 or not isinstance(documents[0].root, Mapping):
            return ()
        settings = NestedSettings(file.yaml, documents[0].root, OMEGACONF, {}, f"default of {TITLE}")
        if not _is_recipe(settings):
            return ()
        return (_Reader(settings, release_of(file, ("torchtune",), READ_AT)).run(),)


def _is_recipe(settings: NestedSettings) -> bool:
    component = settings.value("checkpointer._component_")
    trains = "optimizer" in settings or "resume_from_checkpoint" in settings
    return isinstance(component, str) and component.startswith("torchtune.") and "epochs" in settings and trains


class _Reader:
    def __init__(self, settings: NestedSettings, release: Release) -> None:
        self.settings = settings
        self.release = release
        self.epochs = settings.setting("epochs")
        self.resume = settings.setting("resume_from_checkpoint")
        self.recipe_checkpoint = settings.setting("checkpointer.recipe_checkpoint")
        self.by_steps = BY_STEPS in settings

    def run(self) -> Run:
        directory = self._directory()
        length, length_setting = self._length()
        write = Write(Location(_path(directory), directory), self._interval(), Retention(None, self.epochs))
        return Run(
            framework=NAME,
            title=TITLE,
            release=self.release,
            where=self.settings.where,
            length=length,
            length_setting=length_setting,
            writes=(write,),
            reads=(self._read(),),
            obstacles=tuple(self._obstacles()),
        )

    def _directory(self) -> Setting:
        """The checkpointer's own ``output_dir``, which the recipes take from the one at the top."""
        inner, outer = self.settings.setting("checkpointer.output_dir"), self.settings.setting("output_dir")
        return outer if not inner.written or inner.value == "${output_dir}" else inner

    def _length(self) -> tuple[Fact[Amount], Setting]:
        """In steps where ``max_steps_per_epoch`` bounds it, so that a smoke test is known for one."""
        epochs, most = _count(self.epochs), self.settings.setting("max_steps_per_epoch")
        steps = _count(most)
        if epochs is None:
            return Unknown(f"`{self.epochs}` is not a number of epochs"), self.epochs
        return (Amount(epochs * steps, Unit.STEP), most) if steps else (Amount(epochs, Unit.EPOCH), self.epochs)

    def _interval(self) -> Interval:
        if self.by_steps:
            return Interval(Unknown(f"`{BY_STEPS}` is newer than what was read of {TITLE}"), True, self.epochs)
        if _count(self.epochs) == 1:  # the obstacle below says what that means
            return Interval(NEVER, True, self.epochs)
        return Interval(Amount(1, Unit.EPOCH), True, self.epochs)

    def _obstacles(self) -> Iterator[Obstacle]:
        if _count(self.epochs) == 1 and not self.by_steps:
            why = f"{TITLE} writes optimizer state and progress (`{RECIPE_STATE}`) only between two epochs"
            instead = "train several epochs, each bounded by `max_steps_per_epoch`: a kill then costs one of them"
            yield Obstacle(self.epochs, why, instead)

    def _read(self) -> Read:
        value = self.resume.value
        if not self.resume.written or not isinstance(value, bool):
            return Read(Choice.UNKNOWN, self.resume, why="the command line may say whether to resume")
        if not value:
            advice = f"add `resume_from_checkpoint=True` to the command once `{self._directory().value}/{RECIPE_STATE}` exists"
            return Read(Choice.NOTHING, self.resume, advice=advice)
        if self.settings.value("enable_async_checkpointing"):
            return Read(Choice.UNKNOWN, self.resume, why="what an asynchronous checkpointer finds was not read")
        if self.recipe_checkpoint.value is not None:
            return Read(Choice.UNKNOWN, self.resume, why=f"`{self.recipe_checkpoint}` may be there before the first launch")
        advice = f"{TITLE} stops with a ValueError where `{RECIPE_STATE}` is missing: "
        if _count(self.epochs) == 1 and not self.by_steps:
            advice += f"with `{self.epochs}` it is never written; write `{self.resume.spelled(False)}`"
        else:
            advice += "write false, and add `resume_from_checkpoint=True` to the command once it exists"
        return Read(Choice.NEWEST, self.resume, raises_when_missing=True, advice=advice)


def _path(directory: Setting) -> Fact[PathExpr]:
    if isinstance(directory.value, str) and directory.value:
        return PathExpr.of_text(directory.value, expanded=False)
    return Unknown("the recipe names no `output_dir`, so the command line does", "name it in the recipe")


def _count(setting: Setting) -> int | None:
    value = setting.value
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
