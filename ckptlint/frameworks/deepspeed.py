"""DeepSpeed's configuration: a JSON file of its own, or a mapping under ``deepspeed`` in a run's YAML or JSON.

It says nothing about when and where a run saves, so it is read as a partial run: only what is wrong in itself.

Sources: DeepSpeed at 38327e07 (0.16.5) and 0.19.8 ``runtime/constants.py``, ``runtime/config.py``
(``get_checkpoint_tag_validation_mode``, ``get_checkpoint_parallel_write_pipeline``),
``runtime/model_checkpointing/constants.py`` (``writer``, ``checkpoint_serialization``: 0.19.8). The ``checkpoint`` section has
no schema: keys are taken out of it by name, and the others are dropped. DeepSpeed itself reads Hjson, so what is no JSON is no
error of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ckptlint.frameworks.framework import NotPinned, release_of
from ckptlint.frameworks.yaml_settings import YamlSettings
from ckptlint.run import Refusal, Release, Run, Setting, StrangeKey, Unknown, shown
from ckptlint.source.file import SourceFile
from ckptlint.source.text import CannotEdit, Edit, SourceError
from ckptlint.source.yaml import SAFE_LOAD, Entry, Mapping, Scalar

TITLE = "DeepSpeed"
ASSUMED = "0.19.8"

CHECKPOINT_KEYS = (
    "tag_validation",
    "load_universal",
    "use_node_local_storage",
    "parallel_write",
    "writer",
    "checkpoint_serialization",
)
TAG_VALIDATIONS = ("Ignore", "Warn", "Fail")  # compared in upper case

_DROPPED = "it is dropped without a word"
_NO_INTERVAL = f"{_DROPPED}, and {TITLE} has no setting for an interval: whatever calls save_checkpoint decides when"
_NO_DIRECTORY = (
    f"{_DROPPED}, and {TITLE} has no setting for a directory: whatever calls save_checkpoint and load_checkpoint names it"
)
_NO_RETENTION = f"{_DROPPED}, and {TITLE} never deletes a checkpoint: whatever runs it must"
_NO_RESUME = f"{_DROPPED}, and {TITLE} resumes nothing by itself: whatever runs it must call load_checkpoint"

# What people write, and what to know instead.
INVENTED: dict[str, str] = {
    "tag_latest": f"{_DROPPED}; the file `latest` is written at every save anyway",
    "save_latest": f"{_DROPPED}; the file `latest` is written at every save anyway",
    "save_on_each_node": f"{_DROPPED}: it is an argument of Hugging Face's Trainer; {TITLE}'s own is `use_node_local_storage`",
    **dict.fromkeys(
        ("save_interval", "interval", "save_steps", "save_every", "checkpoint_interval", "every_n_steps"), _NO_INTERVAL
    ),
    **dict.fromkeys(("save_dir", "load_dir", "path", "dir", "directory", "checkpoint_dir", "output_dir"), _NO_DIRECTORY),
    **dict.fromkeys(("keep_last", "keep_last_n", "max_to_keep", "save_total_limit", "num_checkpoints", "keep"), _NO_RETENTION),
    **dict.fromkeys(("resume", "auto_resume", "resume_from_checkpoint", "load", "load_checkpoint"), _NO_RESUME),
}


class DeepSpeed(NotPinned):
    """``zero_optimization``, ``train_micro_batch_size_per_gpu`` …, and in it ``checkpoint``."""

    name = "deepspeed"
    title = TITLE
    suffixes = (".json", ".yaml", ".yml")

    def mentions(self, data: bytes) -> bool:
        return b"checkpoint" in data and (
            b"zero_optimization" in data or b"train_micro_batch" in data or b"train_batch" in data
        )

    def read(self, file: SourceFile) -> tuple[Run, ...]:
        root = _root(file)
        if root is None:
            return ()
        nested = root.get("deepspeed")
        for mapping in (root, nested.value if nested is not None else None):
            section = mapping.get("checkpoint") if isinstance(mapping, Mapping) and _is_config(mapping) else None
            if section is not None and isinstance(section.value, Mapping):
                release = release_of(file, (TITLE.lower(),), ASSUMED)
                return (_Reader(_settings(file, section.value, release), section, release).run(),)
        return ()


def _root(file: SourceFile) -> Mapping | None:
    try:
        node = file.json.root if file.suffix == ".json" else file.yaml.documents[0].root if file.yaml.documents else None
    except SourceError:
        return None
    return node if isinstance(node, Mapping) else None


def _is_config(mapping: Mapping) -> bool:
    """A configuration for training; autotuning's and inference's own files have none of these."""
    zero = mapping.get("zero_optimization")
    if zero is not None and isinstance(zero.value, Mapping):
        return True
    names = {name for name, _ in mapping.items()}
    if "train_micro_batch_size_per_gpu" in names:
        return True
    return "train_batch_size" in names and bool(names & {"fp16", "bf16", "gradient_clipping", "steps_per_print"})


def _settings(file: SourceFile, section: Mapping, release: Release) -> YamlSettings:
    source = f"default of {TITLE} {release.text}"
    if file.suffix == ".json":
        from ckptlint.source.json import JSON, write

        return YamlSettings(file.json, section, JSON, {}, source, write=write)
    return YamlSettings(file.yaml, section, SAFE_LOAD, {}, source)


class _Reader:
    """The ``checkpoint`` section."""

    def __init__(self, settings: YamlSettings, section: Entry, release: Release) -> None:
        self.settings = settings
        self.section = section
        self.release = release

    def run(self) -> Run:
        return Run(
            framework=DeepSpeed.name,
            title=TITLE,
            release=self.release,
            where=self.section.key.span,
            length=Unknown("the configuration does not say it"),
            length_setting=Setting("", None),
            writes=(),
            reads=(),
            refusals=tuple(self._refusals()),
            strange_keys=tuple(self._strange_keys()),
            partial=True,
        )

    def _refusals(self) -> Iterator[Refusal]:
        validation = self.settings.setting("tag_validation")
        value = validation.value
        if validation.written and not (isinstance(value, str) and value.upper() in {word.upper() for word in TAG_VALIDATIONS}):
            error = "a DeepSpeedConfigError" if isinstance(value, str) else "an AttributeError"
            effect = f"{TITLE} stops with {error}"
            yield Refusal(validation, effect, f"write one of {', '.join(TAG_VALIDATIONS)}", removes=value is None)
        parallel = self.settings.mapping.get("parallel_write")
        stage = parallel.value.get("pipeline_stage") if parallel is not None and isinstance(parallel.value, Mapping) else None
        if stage is None or not isinstance(stage.value, Scalar):
            return
        value = stage.value.value(self.settings.schema)
        if value not in (True, False):
            setting = Setting("pipeline_stage", value, stage.value.span, stage.key.span)
            yield Refusal(setting, f"{shown(value)} stops {TITLE} with a DeepSpeedConfigError", "write true or false")

    def _strange_keys(self) -> Iterator[StrangeKey]:
        for name, entry in self.settings.mapping.items():
            if name in CHECKPOINT_KEYS or not name:
                continue
            nearest = "" if name in INVENTED else _nearest(name)
            effect = INVENTED.get(name, _DROPPED)
            rename = self.settings.rename(name, nearest) if nearest else ()
            yield StrangeKey(
                f"checkpoint.{name}", entry.key.span, nearest, effect, rename, () if nearest else self._remove(name)
            )

    def _remove(self, name: str) -> tuple[Edit, ...]:
        try:
            return self.settings.setting(name).remove()
        except CannotEdit:
            return ()


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name.lower().replace("-", "_"), CHECKPOINT_KEYS, 1, 0.8)), "")
