"""Verdicts on checkpoints of the Hugging Face Trainer."""

import json
import os
from pathlib import Path

import pytest
from checkpoint_files import (
    LONG_AGO,
    OPTIMIZER,
    cut,
    safetensors_bytes,
    torch_bytes,
    trainer_state,
    write_checkpoint,
    zero_tail,
)

from ckptlint.checkpoints.checkpoint import Verdict, newest_complete
from ckptlint.checkpoints.huggingface import HuggingFaceLayout
from ckptlint.checkpoints.listing import LocalListing, Unreachable
from ckptlint.checkpoints.manifest import ManifestListing
from ckptlint.run import State

LISTINGS = Path(__file__).parents[2] / "fixtures" / "listings"
LAYOUT = HuggingFaceLayout()


def scan(where, **options):
    listing = where if isinstance(where, ManifestListing) else LocalListing(where)
    return LAYOUT.scan(listing, **options)


def only(where, **options):
    (checkpoint,) = scan(where, **options)
    return checkpoint


def case(name, root):
    return ManifestListing.of_file(LISTINGS / f"{name}.txt", root)


def manifest(text, root=""):
    return ManifestListing(text, root)


# ------------------------------------------------------------------------------------------------ the case book


def test_c002_final_weights_at_the_top_are_no_checkpoint():
    listing = case("C002-final-weights-only", "out/train_a")
    assert not LAYOUT.recognises(listing)
    assert scan(listing) == ()


def test_c005_how_far_the_run_was_is_read():
    checkpoint = only(case("C005-finished", "saves"))
    assert checkpoint.complete
    assert (checkpoint.progress.step, checkpoint.progress.epoch, checkpoint.progress.total_epochs) == (5748, 1.0, 1.0)


def test_c008_a_save_on_a_full_disk_is_passed_over():
    newer, older = scan(case("C008-disk-full", "out"))
    assert (newer.path, newer.verdict) == ("checkpoint-500", Verdict.DAMAGED)
    assert "latest is missing: DeepSpeed then finds nothing to load" in newer.reasons
    assert any(reason.startswith("trainer_state.json is missing") for reason in newer.reasons)
    assert (older.path, older.verdict, older.reasons, older.world_size) == ("checkpoint-400", Verdict.COMPLETE, (), 2)
    assert newest_complete((newer, older)) == older
    assert older.backend == "DeepSpeed ZeRO-1/2" and older.same_world_size


def test_c016_the_best_and_the_newest_are_both_whole_and_the_newest_is_taken():
    checkpoints = scan(case("C016-limit-one-and-best", "out"))
    assert [checkpoint.verdict for checkpoint in checkpoints] == [Verdict.COMPLETE] * 2
    assert newest_complete(checkpoints).path == "checkpoint-900"


def test_c017_an_adapter_is_weights():
    checkpoint = only(case("C017-adapter", "out"))
    assert checkpoint.complete and checkpoint.adapter and checkpoint.world_size == 1
    assert checkpoint.bytes == 732 + 16794200 + 33662074 + 1064 + 14244 + 4801


def test_c019_the_stored_interval_is_read():
    checkpoint = only(case("C019-stored-interval", "runs/llm"))
    assert (checkpoint.progress.save_steps, checkpoint.progress.total_steps) == (1000, 5000)


def test_c020_the_stored_number_of_epochs_is_read():
    checkpoint = only(case("C020-more-epochs", "runs/mlm"))
    assert checkpoint.complete and checkpoint.progress.total_epochs == 9


def test_c021_the_world_that_wrote_it_is_counted():
    checkpoint = only(case("C021-eight-ranks", "runs/gpt"))
    assert checkpoint.complete and checkpoint.world_size == 8 and not checkpoint.same_world_size


INTERRUPTED = {
    "checkpoint-100": "the folder is empty",
    "checkpoint-110": "there are no model weights",
    "checkpoint-120": ".tmpA1b2C3 is the rest of an interrupted save",
    "checkpoint-130": "model.safetensors is not a safetensors file: it begins with zero bytes",
    "checkpoint-140": "optimizer.pt is not a file that torch.save wrote",
    "checkpoint-150": "trainer_state.json is missing",
    "checkpoint-160": "trainer_state.json is empty",
    "checkpoint-170": "trainer_state.json is cut short: the JSON does not end",
    "tmp-checkpoint-180": "the folder still has its temporary name",
    "checkpoint-190": "checkpoint-is-incomplete.txt: a save on a signal was interrupted",
}


def test_every_picture_of_an_interrupted_save_is_recognised_and_the_whole_one_is_taken():
    checkpoints = scan(case("interrupted-saves", ""))
    assert newest_complete(checkpoints).path == "checkpoint-50"
    assert {checkpoint.path for checkpoint in checkpoints if not checkpoint.complete} == INTERRUPTED.keys()
    for checkpoint in checkpoints:
        if not checkpoint.complete:
            told = "; ".join(checkpoint.reasons)
            assert INTERRUPTED[checkpoint.path] in told, checkpoint.path
    weights_only = {checkpoint.path for checkpoint in checkpoints if checkpoint.verdict is Verdict.WEIGHTS_ONLY}
    assert weights_only == {"checkpoint-150"}  # everything that is there is whole


def test_every_picture_counts_as_being_written_while_it_is_young():
    now = ManifestListing.of_file(LISTINGS / "interrupted-saves.txt").files("checkpoint-150")["optimizer.pt"].modified + 60
    young = [checkpoint for checkpoint in scan(case("interrupted-saves", ""), now=now) if checkpoint.path == "checkpoint-150"]
    assert young[0].verdict is Verdict.IN_PROGRESS
    assert any("a save may be going on" in reason for reason in young[0].reasons)


# ------------------------------------------------------------------------------------------------ whole ones


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"lora": True},
        {"shards": 3},
        {"world_size": 4},
        {"scaler": True},
        {"deepspeed": 2, "world_size": 4},
        {"deepspeed": 3, "world_size": 2},
        {"deepspeed": 3, "world_size": 2, "lora": True},
    ],
    ids=str,
)
def test_what_the_trainer_writes_is_complete_without_a_reason(how, tmp_path):
    write_checkpoint(tmp_path, 500, total=2000, **how)
    checkpoint = only(tmp_path)
    assert (checkpoint.verdict, checkpoint.reasons) == (Verdict.COMPLETE, ())
    assert only(tmp_path, deep=True).complete
    assert checkpoint.step == 500 and checkpoint.world_size == how.get("world_size", 1)
    assert {State.MODEL, State.OPTIMIZER, State.SCHEDULER, State.PROGRESS, State.DATA, State.RNG} <= checkpoint.state
    assert checkpoint.progress.total_steps == 2000
    assert checkpoint.bytes == sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert checkpoint.modified == LONG_AGO + 500 * 60


@pytest.mark.parametrize(
    "how", [{}, {"shards": 2}, {"lora": True}, {"deepspeed": 2, "world_size": 2}, {"deepspeed": 3}], ids=str
)
def test_without_any_one_needed_file_it_is_not_complete(how, tmp_path):
    folder = write_checkpoint(tmp_path, 5, **how)
    by_products = ("README.md", "config.json", "generation_config.json", "training_args.bin", "adapter_config.json", "zero_to")
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name.startswith((*by_products, "rng_state")) or ("deepspeed" in how and path.name == "model.safetensors"):
            continue
        data = path.read_bytes()
        path.unlink()
        assert not only(tmp_path, now=0.0).complete, f"{path.name} missing"
        path.write_bytes(data[: len(data) // 2])
        checkpoint = only(tmp_path, now=0.0)
        assert checkpoint.verdict is Verdict.DAMAGED, f"{path.name} cut"
        assert any(path.name in reason for reason in checkpoint.reasons)
        path.write_bytes(data)


def test_checkpoints_come_by_number_and_not_by_name(tmp_path):
    for step in (900, 1000, 20):
        write_checkpoint(tmp_path, step)
    assert [checkpoint.step for checkpoint in scan(tmp_path)] == [1000, 900, 20]
    assert newest_complete(scan(tmp_path)).path == "checkpoint-1000"


def test_other_names_are_not_looked_at(tmp_path):
    write_checkpoint(tmp_path, 5)
    for name in ("checkpoint-best", "checkpoint-5-backup", "damaged-checkpoint-9", "runs", "checkpoint-"):
        write_checkpoint(tmp_path, 9, name=name)
    (tmp_path / "checkpoint-77").write_bytes(b"a file")
    assert [checkpoint.path for checkpoint in scan(tmp_path)] == ["checkpoint-5"]


def test_the_root_can_be_the_checkpoint_itself(tmp_path):
    folder = write_checkpoint(tmp_path, 5)
    checkpoint = only(folder)
    assert (checkpoint.path, checkpoint.step, checkpoint.complete) == ("", 5, True)
    renamed = folder.rename(tmp_path / "best")
    assert only(renamed).step == 5


def test_a_finished_run_s_final_files_beside_its_checkpoints_are_not_one(tmp_path):
    write_checkpoint(tmp_path, 5)
    write_checkpoint(tmp_path.parent, 10, name=tmp_path.name, optimizer=False, scheduler=False)
    assert [checkpoint.path for checkpoint in scan(tmp_path)] == ["checkpoint-5"]


def test_walking_stops_where_the_caller_stops(tmp_path):
    for step in (1, 2, 3):
        write_checkpoint(tmp_path, step)
    looked_at = []
    listing = LocalListing(tmp_path)
    read = listing.read
    listing.read = lambda path, start=0, length=None: looked_at.append(path) or read(path, start, length)
    assert next(LAYOUT.walk(listing)).step == 3
    assert all(path.startswith("checkpoint-3/") for path in looked_at)


def test_linked_checkpoints_are_checkpoints(tmp_path):
    write_checkpoint(tmp_path / "fast", 7)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "checkpoint-7").symlink_to("../fast/checkpoint-7")
    assert only(tmp_path / "out").complete


# --------------------------------------------------------------------------------- damaged, weights only, in progress


def test_a_checkpoint_that_may_not_be_listed_does_not_stop_the_others(tmp_path, monkeypatch):
    write_checkpoint(tmp_path, 5)
    write_checkpoint(tmp_path, 9)
    look = LocalListing._look

    def refuse(self, path):
        if path == "checkpoint-9":
            raise Unreachable("checkpoint-9 cannot be listed: permission denied")
        return look(self, path)

    monkeypatch.setattr(LocalListing, "_look", refuse)
    newer, older = scan(tmp_path)
    assert newer.verdict is Verdict.DAMAGED and "permission denied" in newer.reasons[0]
    assert older.complete


def test_a_renamed_folder_is_not_what_it_says(tmp_path):
    write_checkpoint(tmp_path, 5, name="checkpoint-900")
    checkpoint = only(tmp_path)
    assert checkpoint.verdict is Verdict.DAMAGED
    assert "trainer_state.json is of step 5, not 900: the folder was renamed, or holds files of two saves" in checkpoint.reasons


@pytest.mark.parametrize("step", [None, "five", True, 5.5])
def test_a_step_that_is_no_number_is_noticed(step, tmp_path):
    folder = write_checkpoint(tmp_path, 5)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    checkpoint = only(tmp_path, now=0.0)
    assert checkpoint.verdict is Verdict.DAMAGED and "holds no step" in checkpoint.reasons[0]
    (folder / "trainer_state.json").write_text("{}")  # the Trainer would go on at step 0
    assert "holds no step" in only(tmp_path, now=0.0).reasons[0]


def test_strange_values_in_the_state_are_left_out(tmp_path):
    write_checkpoint(tmp_path, 5, total=0, epoch="x", num_train_epochs=float("nan"), save_steps=10**400)
    checkpoint = only(tmp_path)
    assert checkpoint.complete and checkpoint.progress.save_steps is None and checkpoint.progress.total_epochs is None


def test_saved_without_optimizer_on_purpose_is_weights_only_however_young_it_is(tmp_path):
    write_checkpoint(tmp_path, 5, optimizer=False, scheduler=False)
    for now in (None, LONG_AGO + 310):
        checkpoint = only(tmp_path, now=now)
        assert checkpoint.verdict is Verdict.WEIGHTS_ONLY
        assert checkpoint.reasons == ("optimizer.pt is missing", "scheduler.pt is missing")


def test_without_the_schedule_the_optimizer_is_lost_too_and_the_reason_says_so(tmp_path):
    write_checkpoint(tmp_path, 5, scheduler=False)
    checkpoint = only(tmp_path)
    assert checkpoint.verdict is Verdict.WEIGHTS_ONLY
    assert checkpoint.reasons == (
        "scheduler.pt is missing: the Trainer then starts the optimizer anew as well, without a word",
    )


def test_a_young_folder_with_a_cut_file_may_still_be_being_written(tmp_path):
    folder = write_checkpoint(tmp_path, 5, modified=1000.0)
    cut(folder / "optimizer.pt", -30)
    assert only(tmp_path, now=1100.0).verdict is Verdict.IN_PROGRESS
    assert only(tmp_path, now=1000.0 + 301).verdict is Verdict.DAMAGED


def test_a_young_folder_that_is_whole_is_complete(tmp_path):
    write_checkpoint(tmp_path, 5, modified=1000.0)
    assert only(tmp_path, now=1001.0).complete


def test_zeros_at_the_end_are_noticed(tmp_path):
    folder = write_checkpoint(tmp_path, 5)
    zero_tail(folder / "optimizer.pt", 4096)
    assert only(tmp_path).verdict is Verdict.DAMAGED


def test_the_rest_of_an_interrupted_save_under_a_later_whole_one_is_harmless(tmp_path):
    folder = write_checkpoint(tmp_path, 5, modified=2000.0)
    rest = folder / ".tmpAbC123"
    rest.write_bytes(b"x")
    os.utime(rest, (1000.0, 1000.0))
    assert only(tmp_path).complete
    os.utime(rest, (3000.0, 3000.0))
    assert only(tmp_path).reasons == (".tmpAbC123 is the rest of an interrupted save",)


def test_weights_younger_than_the_step_counter_are_remarked_upon(tmp_path):
    folder = write_checkpoint(tmp_path, 5, modified=2000.0)
    os.utime(folder / "trainer_state.json", (1000.0, 1000.0))
    checkpoint = only(tmp_path)
    assert checkpoint.complete and "model.safetensors is younger than trainer_state.json" in checkpoint.reasons[0]
    os.utime(folder / "trainer_state.json", (1990.0, 1990.0))
    assert only(tmp_path).reasons == ()


def test_a_missing_shard_is_named(tmp_path):
    folder = write_checkpoint(tmp_path, 5, shards=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    reason = "model-00002-of-00003.safetensors is missing, and model.safetensors.index.json names it"
    assert only(tmp_path).reasons == (reason,)


def test_shards_of_another_save_are_noticed(tmp_path):
    folder = write_checkpoint(tmp_path, 5, shards=2)
    (folder / "model-00002-of-00002.safetensors").write_bytes(safetensors_bytes({"layer.7.weight": [1.0]}))
    assert "does not hold `layer.2.weight`" in only(tmp_path, now=0.0).reasons[0]


def test_shards_without_index_cannot_be_loaded(tmp_path):
    folder = write_checkpoint(tmp_path, 5, shards=3)
    (folder / "model.safetensors.index.json").unlink()
    (folder / "model-00003-of-00003.safetensors").unlink()
    missing = ("model-00003-of-00003.safetensors is missing", "model.safetensors.index.json is missing")
    assert only(tmp_path).reasons == missing


@pytest.mark.parametrize(
    "index", ["{}", '{"weight_map": {}}', '{"weight_map": {"a": 5}}', '{"weight_map": {"a": "../../x"}}', "nul"]
)
def test_an_index_that_names_nothing_usable_is_noticed(index, tmp_path):
    folder = write_checkpoint(tmp_path, 5, shards=2)
    (folder / "model.safetensors.index.json").write_text(index)
    assert only(tmp_path, now=0.0).verdict is Verdict.DAMAGED


def test_weights_in_torch_s_old_format_are_taken_but_said_to_be_unverified(tmp_path):
    folder = write_checkpoint(tmp_path, 5)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(bytes.fromhex("80028a0a6cfc9c46f9206aa85019") + b"more")
    os.utime(folder / "pytorch_model.bin", (LONG_AGO, LONG_AGO))
    checkpoint = only(tmp_path)
    assert checkpoint.complete
    assert checkpoint.reasons == ("pytorch_model.bin is in torch's old format, which cannot be verified",)


def test_named_adapters_in_sub_folders_are_weights(tmp_path):
    folder = write_checkpoint(tmp_path, 5, lora=True)
    (folder / "adapter_model.safetensors").rename(folder / "moved")
    (folder / "second").mkdir()
    (folder / "moved").rename(folder / "second" / "adapter_model.safetensors")
    checkpoint = only(tmp_path)
    assert checkpoint.complete and checkpoint.adapter
    cut(folder / "second" / "adapter_model.safetensors", -1)
    assert only(tmp_path).reasons[0].startswith("second/adapter_model.safetensors is cut short")
    (folder / "second" / "adapter_model.safetensors").unlink()
    (folder / "second" / "adapter_config.json").write_text("{}")
    assert "second/adapter_model.safetensors is missing" in only(tmp_path, now=0.0).reasons


def test_missing_random_numbers_of_some_ranks_only_degrade(tmp_path):
    folder = write_checkpoint(tmp_path, 5, world_size=8)
    for rank in (1, 6):
        (folder / f"rng_state_{rank}.pth").unlink()
    checkpoint = only(tmp_path)
    assert checkpoint.complete and checkpoint.world_size == 8 and State.RNG not in checkpoint.state
    assert checkpoint.reasons == ("random-number state is missing for ranks 1, 6",)


def test_damaged_random_numbers_stop_their_rank(tmp_path):
    folder = write_checkpoint(tmp_path, 5, world_size=2)
    cut(folder / "rng_state_1.pth", 100)
    assert only(tmp_path).reasons == ("rng_state_1.pth is cut short: no ZIP directory",)


def test_an_optimizer_that_holds_nothing_is_told(tmp_path):
    folder = write_checkpoint(tmp_path, 5)
    (folder / "optimizer.pt").write_bytes(torch_bytes({"state": {}, "param_groups": [{"lr": 0.1}]}))
    checkpoint = only(tmp_path)
    assert checkpoint.complete and State.OPTIMIZER not in checkpoint.state
    assert "optimizer.pt holds no state" in checkpoint.reasons[0]


def test_reward_and_ppo_models_cannot_be_resumed(tmp_path):
    write_checkpoint(tmp_path, 5, lora=True, value_head=True)
    checkpoint = only(tmp_path)
    assert checkpoint.verdict is Verdict.WEIGHTS_ONLY
    assert "a reward or PPO model of LLaMA-Factory, which cannot be resumed" in checkpoint.reasons[0]


def test_a_by_product_that_is_empty_is_told_and_no_more(tmp_path):
    folder = write_checkpoint(tmp_path, 5)
    cut(folder / "training_args.bin", 0)
    checkpoint = only(tmp_path)
    assert checkpoint.complete and "training_args.bin is empty (not needed to resume" in checkpoint.reasons[0]


def test_callbacks_and_best_metric_are_state(tmp_path):
    write_checkpoint(tmp_path, 5, best_metric=0.5, stateful_callbacks={"TrainerControl": {}, "EarlyStoppingCallback": {}})
    assert {State.BEST_METRIC, State.CALLBACKS} <= only(tmp_path).state


# ------------------------------------------------------------------------------------------------ DeepSpeed


def test_a_gap_in_the_optimizer_shards_is_named(tmp_path):
    folder = write_checkpoint(tmp_path, 5, deepspeed=2, world_size=4)
    (folder / "global_step5" / "bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt").unlink()
    assert only(tmp_path).reasons == ("global_step5/…zero_pp_rank_2_mp_rank_00_optim_states.pt is missing",)


def test_the_last_rank_s_shard_is_missed_because_rank_0_knows_the_world(tmp_path):
    folder = write_checkpoint(tmp_path, 5, deepspeed=3, world_size=4)
    for name in ("bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt", "zero_pp_rank_3_mp_rank_00_model_states.pt"):
        (folder / "global_step5" / name).unlink()
    checkpoint = only(tmp_path)
    assert checkpoint.verdict is Verdict.DAMAGED and checkpoint.world_size == 4
    assert checkpoint.reasons[0] == "global_step5/…zero_pp_rank_3_mp_rank_00_optim_states.pt is missing"


def test_fewer_model_states_than_optimizer_states_under_zero_3_are_noticed():
    # Case book C029, below a Trainer's folder
    shards = "".join(
        f"6100000000 - checkpoint-5/global_step5/bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt\n" for rank in range(4)
    )
    text = f"""\
12 - checkpoint-5/latest (content: global_step5)
900 - checkpoint-5/trainer_state.json
900 - checkpoint-5/scheduler.pt
120000000 - checkpoint-5/global_step5/zero_pp_rank_0_mp_rank_00_model_states.pt
{shards}"""
    checkpoint = only(manifest(text))
    assert checkpoint.verdict is Verdict.DAMAGED
    assert checkpoint.reasons == (
        "global_step5/…zero_pp_rank_1_mp_rank_00_model_states.pt is missing, as those of 2 more ranks",
    )


@pytest.mark.parametrize(
    ("latest", "words"),
    [
        ("global_step7", "latest names 'global_step7', which is not there"),
        ("", "latest is empty"),
        ("../x", "latest names '../x'"),
    ],
)
def test_a_latest_that_names_nothing_is_noticed(latest, words, tmp_path):
    folder = write_checkpoint(tmp_path, 5, deepspeed=2)
    (folder / "latest").write_text(latest)
    assert words in only(tmp_path, now=0.0).reasons[0]


def test_optimizer_states_that_were_never_written_are_noticed(tmp_path):
    folder = write_checkpoint(tmp_path, 5, deepspeed=2)
    (folder / "global_step5" / "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt").unlink()
    assert only(tmp_path).reasons == ("global_step5 holds no optimizer states",)


def test_consolidated_weights_are_not_needed_under_deepspeed(tmp_path):
    folder = write_checkpoint(tmp_path, 5, deepspeed=3)
    cut(folder / "model.safetensors", -1)
    checkpoint = only(tmp_path)
    assert checkpoint.complete and "(not needed to resume)" in checkpoint.reasons[0]
    (folder / "model.safetensors").unlink()
    assert (only(tmp_path).complete, only(tmp_path).reasons) == (True, ())


def test_scheduler_pt_is_needed_only_where_deepspeed_does_not_hold_the_schedule(tmp_path):
    folder = write_checkpoint(tmp_path, 5, deepspeed=2, scheduler=False)
    assert only(tmp_path).reasons == ("scheduler.pt is missing, and DeepSpeed holds no schedule either",)
    told = {"module": {}, "optimizer": None, "lr_scheduler": {"last_batch_iteration": 5}, "dp_world_size": 1}
    (folder / "global_step5" / "mp_rank_00_model_states.pt").write_bytes(torch_bytes(told))
    checkpoint = only(tmp_path)
    assert checkpoint.complete and State.SCHEDULER in checkpoint.state


def test_saving_weights_only_under_deepspeed_leaves_nothing_to_resume(tmp_path):
    write_checkpoint(tmp_path, 5, deepspeed=2, optimizer=False, scheduler=False)
    assert only(tmp_path).verdict is Verdict.WEIGHTS_ONLY


# ------------------------------------------------------------------------------------------------ FSDP, XLA, SageMaker

REST = "900 - checkpoint-5/scheduler.pt\n900 - checkpoint-5/trainer_state.json\n"


def test_fsdp_shards_are_complete_and_world_size_is_counted_from_them():
    shards = "".join(
        f"900 - checkpoint-5/{part}_0/__{rank}_0.distcp\n" for part in ("pytorch_model_fsdp", "optimizer") for rank in range(4)
    )
    metadata = "".join(f"900 - checkpoint-5/{part}_0/.metadata\n" for part in ("pytorch_model_fsdp", "optimizer"))
    checkpoint = only(manifest(REST + shards + metadata))
    assert (checkpoint.verdict, checkpoint.reasons, checkpoint.world_size) == (Verdict.COMPLETE, (), 4)
    assert checkpoint.backend == "FSDP sharded" and not checkpoint.same_world_size
    broken = only(manifest(REST + shards + metadata.replace("optimizer_0/.metadata", "optimizer_0/.metadata.tmp")))
    assert broken.verdict is Verdict.DAMAGED
    assert "optimizer_0/.metadata is missing: the save did not finish" in broken.reasons
    weights = only(manifest(REST + shards.replace("optimizer_0", "other") + metadata.replace("optimizer_0", "other")))
    assert weights.verdict is Verdict.WEIGHTS_ONLY and weights.reasons == ("optimizer_0 is missing",)


def test_full_fsdp_state_is_two_files():
    text = REST + "900 - checkpoint-5/model.safetensors\n900 - checkpoint-5/pytorch_model_fsdp.bin\n"
    assert only(manifest(text + "900 - checkpoint-5/optimizer.bin\n")).backend == "FSDP full"
    assert only(manifest(text + "900 - checkpoint-5/optimizer.bin\n")).complete
    assert only(manifest(text)).verdict is Verdict.WEIGHTS_ONLY
    assert only(manifest(text + "0 - checkpoint-5/optimizer.bin\n")).reasons == ("optimizer.bin is empty",)


def test_files_of_each_rank_are_counted_and_bind_the_world_size():
    files = [f"900 - checkpoint-5/{part}_0_rank{rank}.bin" for part in ("pytorch_model_fsdp", "optimizer") for rank in range(3)]
    checkpoint = only(manifest(REST + "\n".join(files)))
    assert (checkpoint.complete, checkpoint.world_size, checkpoint.same_world_size) == (True, 3, True)
    assert only(manifest(REST + "\n".join(files[:4] + files[5:]))).reasons == ("optimizer of rank 1 is missing",)


def test_xla_files_name_the_world_themselves():
    files = [
        f"900 - checkpoint-5/rank{rank}-of-3-{part}" for part in ("optimizer.pt", "pytorch_model.bin") for rank in range(3)
    ]
    checkpoint = only(manifest(REST + "\n".join(files)))
    assert (checkpoint.complete, checkpoint.world_size, checkpoint.backend) == (True, 3, "XLA FSDP")
    assert only(manifest(REST + "\n".join(files[1:]))).reasons == ("rank0-of-3-optimizer.pt is missing",)
    assert only(manifest(REST + "\n".join(files[:-1]))).reasons == ("weights of rank 2 are missing",)


def test_sagemaker_s_partial_optimizer_is_one():
    text = (
        REST + "900 - checkpoint-5/pytorch_model.bin\n900 - checkpoint-5/optimizer.pt_0_0\n5 - checkpoint-5/user_content.pt\n"
    )
    checkpoint = only(manifest(text))
    assert (checkpoint.complete, checkpoint.backend) == (True, "SageMaker")


# ------------------------------------------------------------------------------------------------ whose folder it is


@pytest.mark.parametrize(
    "files",
    [
        ["model.safetensors", "optimizer.bin", "scheduler.bin", "random_states_0.pkl"],
        ["latest_checkpointed_iteration.txt"],
        ["CHECKPOINT_COMPLETE", "metadata.json"],
    ],
)
def test_folders_of_other_layouts_are_left_to_them(files):
    listing = manifest("".join(f"9 - checkpoint-5/{name}\n" for name in files))
    assert not LAYOUT.recognises(listing) and scan(listing) == ()


@pytest.mark.parametrize(
    "files",
    [[], ["out.log"], ["global_step_5/data.pt"], ["checkpoint_5/model.safetensors"], ["config.json", "model.safetensors"]],
)
def test_other_directories_are_not_recognised(files):
    assert not LAYOUT.recognises(manifest("".join(f"9 - {name}\n" for name in files)))


# ------------------------------------------------------------------------------------------------ one run or two


def test_two_checkpoints_of_one_run_share_their_log_and_of_two_do_not(tmp_path):
    first = [{"step": 5, "loss": 2.0}]
    write_checkpoint(tmp_path, 5, log_history=first)
    write_checkpoint(tmp_path, 10, log_history=[*first, {"step": 10, "loss": 1.5}])
    write_checkpoint(tmp_path, 15, log_history=[{"step": 5, "loss": 2.1}, {"step": 10, "loss": 1.6}])
    write_checkpoint(tmp_path, 20, log_history=[])
    listing = LocalListing(tmp_path)
    newest, other, second, one = LAYOUT.scan(listing)
    assert LAYOUT.same_run(listing, one, second) is True
    assert LAYOUT.same_run(listing, other, second) is False
    assert LAYOUT.same_run(listing, newest, one) is None


def test_the_builders_make_the_state_file_that_they_say(tmp_path):
    assert json.loads(trainer_state(7, total=9))["max_steps"] == 9
    assert OPTIMIZER["state"]
