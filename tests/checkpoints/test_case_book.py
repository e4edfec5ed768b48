"""Every listing of the case book that is not a Hugging Face one: what a restart takes, and what has to be said."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoint_files import OPTIMIZER, torch_bytes

from ckptlint.checkpoints.manifest import ManifestListing
from ckptlint.checkpoints.scan import scan

LISTINGS = Path(__file__).parents[2] / "fixtures" / "listings"


def case(name, root, **contents):
    text = next(LISTINGS.glob(f"{name}-*.txt")).read_text(encoding="utf-8")
    return scan(ManifestListing(text, root, contents.get("contents")), now=2e9)


def said(found):
    reasons = [reason for checkpoint in found.checkpoints for reason in checkpoint.reasons]
    return " | ".join([*reasons, *(f"{notice.name}: {notice.message}" for notice in found.notices)])


@pytest.mark.parametrize(
    ("name", "root", "layout", "restart", "says"),
    [
        ("C012", "ckpts/proj/exp", "verl", None, "actor/dist_ckpt is empty: nothing was saved"),
        ("C026", "run", "accelerate", "checkpoint_7", ""),
        ("C029", "ck", "deepspeed", None, "zero_pp_rank_1_mp_rank_00_model_states.pt is missing, as those of 2 more ranks"),
        ("C030", "ck", "deepspeed", "step900", ""),
        ("C035", "ck", "lightning", "epoch=5460-step=60071.ckpt", "a later attempt began again at a lower step"),
        ("C036", "ck", "dcp", "m--consumed_samples=4800.0-last", "6224.0-last-unfinished lies beside it"),
        ("C037", "ck", "dcp", "epoch_0_step_69999", "LATEST says 'epoch_0_step_59999'"),
        ("C038", "ck", "verl", "global_step_40", "critic/ is missing, which earlier checkpoints hold"),
        ("C050", "exp", "single-file", "model_epoch_10.th", "mixed-runs: model_epoch_6.th is older than model_epoch_5.th"),
        ("C051", "run/checkpoints", "dcp", "step_200", ""),
        ("C056", "ck", "rank-files", "step_300", ""),
        ("C057", "net-model", "single-file", "epoch.011.pt", "the optimizer's file of 12 is missing"),
        ("C070", "ck", "mindspore", "resnet50-60_195.ckpt", "optim_resnet50.ckpt, was saved with resnet50-60_195.ckpt"),
        ("C071", "output/checkpoint", "mindformers", None, "no common step: rank 3, which stopped at step 100"),
        ("C074", "s3/ckpt", "single-file", "epoch_18.pt", ""),
    ],
)
def test_a_listing(name, root, layout, restart, says):
    (found,) = case(name, root)
    assert found.layout.name == layout
    assert (found.restart and found.restart.path) == restart
    assert says in said(found)


def test_the_world_size_is_that_of_the_ranks_that_wrote():
    assert [case(name, "ck")[0].restart.world_size for name in ("C030", "C056")] == [4, 4]


def test_the_step_inside_decides_where_the_name_holds_none():
    """C035 with its files: ``last.ckpt`` is the older life's, and further than any other."""
    steps = {"last.ckpt": 63095, "last-v1.ckpt": 528, "epoch=5460-step=60071.ckpt": 60071, "epoch=47-step=528.ckpt": 528}
    told = {"epoch": 1, "pytorch-lightning_version": "2.1.0", "state_dict": {}, "optimizer_states": [OPTIMIZER]}
    contents = {f"ck/{name}": torch_bytes({"global_step": step, **told}) for name, step in steps.items()}
    (found,) = case("C035", "ck", contents=contents)
    assert (found.restart.path, found.restart.step) == ("last.ckpt", 63095)


def test_a_file_of_another_run_is_not_taken():
    """C050 with its files: the configuration of each stands in it."""
    runs = {4: "B", 5: "B", 6: "A", 9: "A", 10: "A"}
    told = {"model": {"weight": 1}, "optimizer": OPTIMIZER}
    contents = {f"exp/model_epoch_{epoch}.th": torch_bytes({"config": run, **told}) for epoch, run in runs.items()}
    (found,) = case("C050", "exp", contents=contents)
    assert found.restart.path == "model_epoch_5.th"
    assert "mixed-runs: model_epoch_10.th is passed over: another run wrote it: its `config` is 'A'" in said(found)


def test_a_finished_run_s_stripped_files_are_called_finished_and_nothing_worse():
    """C042 with its files: YOLOv5 takes the optimizer out at the end."""
    told = torch_bytes({"epoch": -1, "best_fitness": None, "model": {"weight": 1}, "optimizer": None})
    contents = {f"runs/train/exp/weights/{name}.pt": told for name in ("last", "best")}
    (found,) = case("C042", "runs/train/exp/weights", contents=contents)
    assert found.restart is None and "it is a finished run's" in said(found)


def test_what_only_the_trainer_marks_is_not_asked_of_the_orchestrator():
    """C051: the orchestrator's folders hold no distributed checkpoint and no mark; nothing is said against them."""
    assert all("STABLE" not in said(found) for found in case("C051", "run/orchestrator/checkpoints"))
