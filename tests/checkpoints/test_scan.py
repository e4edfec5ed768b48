"""What a directory's checkpoints mean for a restart."""

from pathlib import Path

from checkpoint_files import LONG_AGO, OPTIMIZER, cut, safetensors_bytes, torch_bytes, write_checkpoint
from hypothesis import given
from hypothesis import strategies as st

from ckptlint.checkpoints.listing import LocalListing
from ckptlint.checkpoints.manifest import ManifestListing
from ckptlint.checkpoints.scan import scan
from ckptlint.run import State

LISTINGS = Path(__file__).parents[2] / "fixtures" / "listings"


def only(where, **options):
    (found,) = scan(where if isinstance(where, ManifestListing) else LocalListing(where), **options)
    return found


def names(found):
    return [notice.name for notice in found.notices]


def message(found, name):
    return next(notice.message for notice in found.notices if notice.name == name)


def test_the_layout_is_told_from_the_directory_alone(tmp_path):
    write_checkpoint(tmp_path, 500)
    write_checkpoint(tmp_path, 1000)
    found = only(tmp_path)
    assert (found.directory, found.title) == (str(tmp_path), "Hugging Face Trainer")
    assert found.restart == found.checkpoints[0] and found.restart.step == 1000
    assert found.notices == ()


def test_a_directory_without_checkpoints_is_nobody_s(tmp_path):
    (tmp_path / "runs").mkdir()
    assert scan(LocalListing(tmp_path)) == ()
    assert scan(LocalListing(tmp_path / "nothing")) == ()
    assert scan(ManifestListing.of_file(LISTINGS / "C002-final-weights-only.txt", "out/train_a")) == ()


def test_two_layouts_in_one_directory_are_both_found(tmp_path):
    write_checkpoint(tmp_path, 500)
    (tmp_path / "checkpoint-900").mkdir()
    (tmp_path / "checkpoint-900" / "CHECKPOINT_COMPLETE").write_bytes(b"")
    assert [found.layout.name for found in scan(LocalListing(tmp_path))] == ["huggingface", "llamafactory-v1"]


def test_a_newer_damaged_one_is_named_with_its_reason(tmp_path):
    write_checkpoint(tmp_path, 400)
    write_checkpoint(tmp_path, 500)
    cut(write_checkpoint(tmp_path, 600) / "optimizer.pt", 50)
    found = only(tmp_path)
    assert found.restart.step == 500 and names(found) == ["newer-damaged"]
    expected = "checkpoint-600 is newer than checkpoint-500 but damaged: optimizer.pt is cut short: no ZIP directory"
    assert message(found, "newer-damaged") == expected


def test_an_older_damaged_one_is_not_worth_a_notice(tmp_path):
    cut(write_checkpoint(tmp_path, 400) / "optimizer.pt", 50)
    write_checkpoint(tmp_path, 500)
    write_checkpoint(tmp_path, 600)
    assert only(tmp_path).notices == ()


def test_newer_weights_are_passed_over_and_named(tmp_path):
    write_checkpoint(tmp_path, 400)
    write_checkpoint(tmp_path, 500)
    write_checkpoint(tmp_path, 600, optimizer=False, scheduler=False)
    found = only(tmp_path)
    assert found.restart.step == 500 and names(found) == ["weights-only-skipped"]
    assert "checkpoint-600 cannot be resumed exactly: optimizer.pt is missing" in message(found, "weights-only-skipped")


def test_nothing_complete_says_that_the_next_run_overwrites_what_is_there(tmp_path):
    cut(write_checkpoint(tmp_path, 400) / "model.safetensors", 50)
    write_checkpoint(tmp_path, 300, optimizer=False, scheduler=False)
    found = only(tmp_path)
    assert found.restart is None and names(found) == ["nothing-resumable", "weights-only-skipped"]
    assert "none of the 2 checkpoints is complete (checkpoint-400: model.safetensors is cut short" in found.notices[0].message


def test_the_only_one_left_is_worth_a_notice_but_a_run_s_first_is_not(tmp_path):
    write_checkpoint(tmp_path / "first", 500, save_steps=500)
    assert only(tmp_path / "first").notices == ()
    write_checkpoint(tmp_path / "later", 1500, save_steps=500)
    assert names(only(tmp_path / "later")) == ["retention-window"]
    write_checkpoint(tmp_path / "ratio", 1500, save_steps=0.1)
    assert only(tmp_path / "ratio").notices == ()


def test_a_checkpoint_being_written_means_a_live_run(tmp_path):
    write_checkpoint(tmp_path, 400)
    write_checkpoint(tmp_path, 500)
    folder = write_checkpoint(tmp_path, 600)
    (folder / "trainer_state.json").unlink()
    written = LONG_AGO + 600 * 60
    found = only(tmp_path, now=written + 20)
    assert names(found) == ["live-run"] and found.restart.step == 500
    assert "live-run" not in names(only(tmp_path, now=written + 3000))


def test_a_second_attempt_in_the_directory_of_the_first_is_noticed(tmp_path):
    write_checkpoint(tmp_path, 4, modified=LONG_AGO + 90_000, log_history=[{"step": 4, "loss": 2.5}])
    write_checkpoint(tmp_path, 6, modified=LONG_AGO, log_history=[{"step": 4, "loss": 2.0}, {"step": 6, "loss": 1.9}])
    found = only(tmp_path)
    assert names(found) == ["mixed-runs"]
    expected = (
        "checkpoint-6 is older than checkpoint-4: a later attempt began again at a lower step, "
        "so two attempts lie in one directory, and a restart takes the older attempt's"
    )
    assert message(found, "mixed-runs") == expected


def test_a_copy_that_reversed_the_times_is_no_second_attempt(tmp_path):
    log = [{"step": 4, "loss": 2.0}]
    write_checkpoint(tmp_path, 4, modified=LONG_AGO + 90_000, log_history=log)
    write_checkpoint(tmp_path, 6, modified=LONG_AGO, log_history=[*log, {"step": 6, "loss": 1.9}])
    assert only(tmp_path).notices == ()


def test_c008_the_disk_full_case_falls_back_and_says_why():
    found = only(ManifestListing.of_file(LISTINGS / "C008-disk-full.txt", "out"))
    assert found.restart.path == "checkpoint-400"
    assert names(found) == ["newer-damaged", "retention-window"]


def test_c016_two_folders_under_a_limit_of_one_are_no_finding():
    assert only(ManifestListing.of_file(LISTINGS / "C016-limit-one-and-best.txt", "out")).notices == ()


def test_the_checkpoint_itself_can_be_scanned(tmp_path):
    folder = write_checkpoint(tmp_path, 600)
    cut(folder / "optimizer.pt", 50)
    found = only(folder)
    assert found.restart is None and "checkpoint-600: optimizer.pt is cut short" in found.notices[0].message


ODD = [
    b"",
    b"\0" * 40,
    b"\xff" * 40,
    b"{}",
    b"[]",
    b'{"global_step": 1e400, "epoch": [], "weight_map": {"a": "model.safetensors"}}',
    b"global_step5",
]
FILES = [
    "model.safetensors",
    "model-00001-of-00002.safetensors",
    "model.safetensors.index.json",
    "adapter_model.bin",
    "second/adapter_config.json",
    "optimizer.pt",
    "optimizer.pt_0",
    "optimizer_0/.metadata",
    "optimizer_0_rank1.bin",
    "pytorch_model_fsdp_0/__99999999999_0.distcp",
    "pytorch_model_fsdp.bin",
    "rank3-of-99999999999-optimizer.pt",
    "scheduler.pt",
    "scaler.pt",
    "rng_state_99999999999.pth",
    "trainer_state.json",
    "training_args.bin",
    "config.json",
    "latest",
    "global_step5/zero_pp_rank_99999999999_mp_rank_07_model_states.pt",
    "global_step5/mp_rank_00_model_states.pt",
    "value_head.safetensors",
    "metadata.json",
    "CHECKPOINT_COMPLETE",
    "dataloader/rank_99999999999.pt",
    "checkpoint-is-incomplete.txt",
    ".tmpABCDEF",
]


@given(
    st.dictionaries(st.sampled_from(FILES), st.sampled_from([*ODD, torch_bytes(OPTIMIZER), safetensors_bytes()])), st.booleans()
)
def test_no_folder_however_odd_makes_it_crash_and_none_without_weights_and_optimizer_is_complete(files, deep):
    contents = {f"checkpoint-5/{name}": data for name, data in files.items()}
    for found in scan(ManifestListing("", contents=contents), deep=deep):
        for checkpoint in found.checkpoints:
            assert checkpoint.complete or checkpoint.reasons
            assert not checkpoint.complete or {State.MODEL, State.PROGRESS} <= checkpoint.state
