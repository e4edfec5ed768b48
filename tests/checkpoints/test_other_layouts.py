"""What is special to one layout: weights alone, partitions, leftovers, and the ways its newest is chosen."""

from __future__ import annotations

import json

import pytest
from checkpoint_files import LONG_AGO, OPTIMIZER, safetensors_bytes, torch_bytes
from layout_files import (
    FAMILIES,
    MemoryListing,
    accelerate,
    arguments,
    dcp,
    deepspeed_moe,
    deepspeed_pipeline,
    deepspeed_stage_2,
    deepspeed_stage_3,
    directory,
    lightning,
    megatron_legacy,
    megatron_torch_dist,
    mindspeed_fsdp2,
    mindspeed_rl,
    mindspore_bytes,
    torchtitan,
    under,
    verl_fsdp,
    verl_megatron_v2,
)

from ckptlint.checkpoints.checkpoint import Verdict
from ckptlint.checkpoints.scan import layouts, scan
from ckptlint.run import State


def only(files, times=None, root="run"):
    (found,) = scan(MemoryListing(files, times, root), now=LONG_AGO + 1e6)
    return found


def newest(files, times=None, root="run"):
    return only(files, times, root).checkpoints[0]


def without(files, *parts):
    return {path: data for path, data in files.items() if not any(part in path for part in parts)}


# ------------------------------------------------------------------------------------------------ all


@pytest.mark.parametrize(
    "name", [name for name, family in FAMILIES.items() if family.layout not in ("single-file", "lightning")]
)
def test_a_checkpoint_named_itself_is_read_too(name):
    family = FAMILIES[name]
    files = family.build(100)
    folders = {path.split("/")[0] for path in files}
    if len(folders) > 1 or family.layout in ("mindspeed-rl", "mindspeed-fsdp2", "mindspore", "ms-swift", "megatron-swift"):
        pytest.skip("its files lie in folders of several roles, or deeper")
    (folder,) = folders
    checkpoint = newest({path.partition("/")[2]: data for path, data in files.items()}, root=f"/runs/{folder}")
    assert (checkpoint.path, checkpoint.verdict) == ("", Verdict.COMPLETE)
    assert checkpoint.step in (100, 1) or family.layout == "rank-files"


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "ms-swift"])  # it begins each of its versions
def test_walking_to_the_newest_reads_no_older_one(name):
    files, times = directory(FAMILIES[name], *range(100, 1100, 100))
    listing = MemoryListing(files, times)
    looked = set()
    read = listing.read
    listing.read = lambda path, start=0, length=None: looked.add(path) or read(path, start, length)
    (layout,) = [layout for layout in layouts() if layout.recognises(MemoryListing(files, times))]
    assert next(layout.walk(listing, now=LONG_AGO + 1e6)).complete
    oldest = set(FAMILIES[name].build(100))
    assert (
        not {path for path in looked & oldest if path.endswith((".pt", ".distcp", ".safetensors", ".bin"))} or len(oldest) <= 2
    )


def test_the_newest_is_the_highest_number_and_not_the_last_name():
    for name in ("verl FSDP", "DeepSpeed ZeRO-2", "Accelerate", "torchtitan", "single file", "Lightning", "rank files"):
        files, times = directory(FAMILIES[name], 200, 900, 1000)
        assert only(files, times).restart.step == 1000, name


# ------------------------------------------------------------------------------------------------ verl


def test_verl_keeps_husks_of_retention_apart():
    files = {**verl_fsdp(300), **{f"global_step_{step}/data.pt": torch_bytes({}) for step in (100, 200)}}
    found = only(files)
    assert found.restart.step == 300
    assert {one.reasons[0] for one in found.checkpoints[1:]} == {
        "only data.pt is left: the rest was deleted by the retention limit"
    }


def test_verl_files_of_another_world_size_are_remarked_upon():
    foreign = {f"global_step_200/actor/model_world_size_4_rank_{rank}.pt": torch_bytes({}) for rank in range(2)}
    checkpoint = newest({**verl_fsdp(200), **foreign})
    assert (checkpoint.verdict, checkpoint.world_size, checkpoint.same_world_size) == (Verdict.COMPLETE, 2, True)
    assert "actor also holds files of a save with 4 ranks" in checkpoint.reasons


def test_verl_without_its_data_state_is_passed_over_only_where_others_have_it():
    both = {**verl_fsdp(100), **without(verl_fsdp(200), "data.pt")}
    assert only(both).restart.step == 100 and newest(both).verdict is Verdict.WEIGHTS_ONLY
    alone = without(verl_fsdp(200), "data.pt")
    assert only(alone).restart.step == 200
    assert "data.pt is missing: a start would begin the data anew, without a word" in newest(alone).reasons


def test_verl_without_an_optimizer_is_weights_only():
    checkpoint = newest(without(verl_fsdp(200), "optim_world"))
    assert checkpoint.verdict is Verdict.WEIGHTS_ONLY and "the optimizer was not saved" in checkpoint.reasons[0]


def test_verl_s_weights_of_transformers_alone_are_weights_only():
    files = {"global_step_50/config.json": b"{}", "global_step_50/model.safetensors": safetensors_bytes()}
    found = only(files)
    assert (found.layout.name, found.checkpoints[0].verdict) == ("verl", Verdict.WEIGHTS_ONLY)


def test_verl_s_list_of_contents_must_be_of_this_step():
    files = {path.replace("global_step_100", "global_step_200"): data for path, data in verl_megatron_v2(100).items()}
    assert "ckpt_contents.json is of step 100, not 200" in " ".join(newest(files).reasons)


# ------------------------------------------------------------------------------------------------ Megatron


def test_megatron_s_partition_and_world_size_are_those_of_the_saved_arguments():
    for build in (megatron_legacy, megatron_torch_dist):
        checkpoint = newest(build(100))
        assert (checkpoint.world_size, checkpoint.parallel["tensor"], checkpoint.parallel["pipeline"]) == (8, 2, 2)
    assert newest(megatron_legacy(100)).progress.total_steps == 1000


def test_megatron_s_folder_of_a_rank_is_missed():
    checkpoint = newest(without(megatron_legacy(100), "mp_rank_01_001"))
    assert checkpoint.reasons == ("mp_rank_01_001/ is missing",)


def test_megatron_s_ranks_are_told_by_their_names_where_the_arguments_are_not_known():
    told = torch_bytes(
        {"iteration": 100, "model": {}, "optimizer": {"a": 1}, "opt_param_scheduler": {"a": 1}, "rng_state": [1]}
    )
    files = {f"iter_0000100/mp_rank_{tensor:02}/model_optim_rng.pt": told for tensor in (0, 1, 3)}
    assert newest(files).reasons == ("mp_rank_02/ is missing",)


def test_a_converted_megatron_model_is_weights_only():
    told = torch_bytes(
        {"args": arguments(pipeline_model_parallel_size=1), "iteration": 1, "model": {}, "checkpoint_version": 3.0}
    )
    files = {f"iter_0000001/mp_rank_{tensor:02}/model_optim_rng.pt": told for tensor in range(2)}
    files["latest_checkpointed_iteration.txt"] = b"1"
    found = only(files)
    assert found.restart is None and found.checkpoints[0].verdict is Verdict.WEIGHTS_ONLY
    assert "converted from another format" in found.checkpoints[0].reasons[0]


def test_torch_dist_without_optimizer_state_is_weights_only():
    files = under(
        "iter_0000100", {**dcp(keys=("model.weight", "common_state/shard_0_1")), "metadata.json": b'{"sharded_backend": "x"}'}
    )
    assert newest(files).verdict is Verdict.WEIGHTS_ONLY


def test_release_is_never_what_a_restart_takes():
    files = {path.replace("iter_0000100", "release"): data for path, data in megatron_torch_dist(100).items()}
    found = only({**files, "latest_checkpointed_iteration.txt": b"release"})
    assert found.restart is None and found.checkpoints[0].verdict is Verdict.WEIGHTS_ONLY


def test_non_persistent_checkpoints_are_listed_with_what_finds_them():
    files = {**megatron_torch_dist(100), **under("non_persistent", megatron_torch_dist(150))}
    files["latest_checkpointed_iteration.txt"] = b"100"
    found = only(files)
    assert [one.path for one in found.checkpoints] == ["non_persistent/iter_0000150", "iter_0000100"]
    assert "--non-persistent-ckpt-type global" in found.checkpoints[0].reasons[0]
    assert found.notices == ()


def test_temporary_and_saved_folders_beside_iterations_are_none():
    files = {**megatron_torch_dist(100), "iter_0000200_tmp/x": b"1", "iter_0000300.bak/__0_0.distcp": b"1"}
    assert [one.step for one in only(files).checkpoints] == [100]


def test_hugging_face_weights_in_an_iteration_are_weights_only():
    files = {"latest_checkpointed_iteration.txt": b"100", "iter_0000100/model.safetensors": safetensors_bytes()}
    assert newest(files).verdict is Verdict.WEIGHTS_ONLY


def test_mindspeed_rl_needs_one_step_of_both_roles():
    files = {**mindspeed_rl(100), **mindspeed_rl(200)}
    found = only(without(files, "critic/iter_0000200"))
    assert (found.restart.step, found.restart.path) == (100, "actor/iter_0000100")
    assert found.checkpoints[0].reasons == ("the critic has no checkpoint of this step",)


def test_mindspeed_s_weights_alone_would_start_at_step_0():
    checkpoint = newest(without(mindspeed_fsdp2(100), "extra_state"))
    assert checkpoint.verdict is Verdict.WEIGHTS_ONLY and "a start would begin at step 0" in checkpoint.reasons[0]


# ------------------------------------------------------------------------------------------------ DeepSpeed


def test_deepspeed_tells_how_many_ranks_wrote_and_files_of_more_are_left_over():
    checkpoint = newest(
        {**deepspeed_stage_2(100), "global_step100/bf16_zero_pp_rank_7_mp_rank_00_optim_states.pt": torch_bytes({})}
    )
    assert (checkpoint.verdict, checkpoint.world_size, checkpoint.backend) == (Verdict.COMPLETE, 2, "DeepSpeed ZeRO-1/2")
    assert newest(deepspeed_stage_3(100)).backend == "DeepSpeed ZeRO-3"


def test_deepspeed_tags_of_any_name_are_ordered_by_number_and_step_inside():
    files = {
        path.replace("global_step", "epoch"): data for path, data in {**deepspeed_stage_2(9), **deepspeed_stage_2(10)}.items()
    }
    found = only({**files, "latest": b"epoch10"})
    assert [(one.path, one.step) for one in found.checkpoints] == [("epoch10", 10), ("epoch9", 9)] and found.notices == ()


def test_a_tag_that_latest_names_and_nothing_is_in_is_shown():
    files = {**deepspeed_stage_2(100), "latest": b"global_step200", "global_step200/": b""}
    found = only(files)
    assert found.restart.step == 100 and "tracker-wrong" in [notice.name for notice in found.notices]


def test_layers_and_experts_that_the_tag_before_has_are_missed():
    for build, part in ((deepspeed_pipeline, "layer_01-model"), (deepspeed_moe, "expert_2"), (deepspeed_moe, "expert_0")):
        files = {**build(100), **without(build(200), part)}
        assert only(files).restart.step == 100, part


def test_universal_checkpoints_are_known_and_need_their_setting():
    parts = {f"zero/{name}/{kind}.pt": torch_bytes({}) for name in ("a", "b") for kind in ("fp32", "exp_avg", "exp_avg_sq")}
    files = {**deepspeed_stage_2(100), **under("global_step100_universal", parts), "latest": b"global_step100"}
    found = only(files)
    assert found.restart.path == "global_step100"
    assert found.checkpoints[1].verdict is Verdict.COMPLETE and "load_universal" in found.checkpoints[1].reasons[0]
    broken = without(files, "zero/b/exp_avg.pt")
    assert only(broken).checkpoints[1].reasons[0] == "zero/b/exp_avg.pt is missing"


# ------------------------------------------------------------------------------------------------ Accelerate, DCP


def test_accelerate_says_how_many_ranks_left_random_numbers():
    checkpoint = newest(without(accelerate(7), "random_states_0"))
    assert checkpoint.world_size == 2 and checkpoint.verdict is Verdict.COMPLETE
    assert checkpoint.reasons == ("random-number state is missing for rank 0",)


def test_accelerate_with_deepspeed_and_with_fsdp():
    states = {f"random_states_{rank}.pkl": torch_bytes({}) for rank in range(2)}
    tag = {path.replace("global_step100", "pytorch_model"): data for path, data in deepspeed_stage_2(100).items()}
    found = only(under("checkpoint_3", {**states, **tag, "latest": b"pytorch_model"}))
    assert (found.layout.name, found.restart.backend) == ("accelerate", "DeepSpeed ZeRO-1/2")
    shards = {**under("pytorch_model_fsdp_0", dcp()), **under("optimizer_0", dcp())}
    found = only(under("checkpoint_3", {**states, **shards}))
    assert (found.layout.name, found.restart.backend, found.restart.world_size) == ("accelerate", "FSDP sharded", 2)
    assert only(under("checkpoint_3", {**states, **without(shards, "optimizer_0/")})).restart is None


def test_a_last_save_of_weights_alone_stands_out_from_those_before():
    files = {**torchtitan(100), **under("step-200", dcp(keys=("model.weight",)))}
    found = only(files)
    assert found.restart.step == 100 and found.checkpoints[0].verdict is Verdict.WEIGHTS_ONLY


# ------------------------------------------------------------------------------------------------ Lightning


def test_lightning_without_optimizer_states_is_weights_only():
    told = {"epoch": 1, "global_step": 5, "pytorch-lightning_version": "2.6.2", "state_dict": {"weight": 1}}
    assert newest({"epoch=1-step=5.ckpt": torch_bytes(told)}).verdict is Verdict.WEIGHTS_ONLY


def test_lightning_s_sharded_folders_are_read():
    told = torch_bytes({"epoch": 1, "global_step": 70, "pytorch-lightning_version": "2.6.2"})
    checkpoint = newest(under("epoch=1-step=70.ckpt", {**dcp(), "meta.pt": told}))
    assert (checkpoint.verdict, checkpoint.step, checkpoint.backend) == (Verdict.COMPLETE, 70, "FSDP sharded")
    tag = {path.replace("global_step100", "checkpoint"): data for path, data in deepspeed_stage_2(100).items()}
    checkpoint = newest(under("epoch=1-step=70.ckpt", {**tag, "latest": b"checkpoint"}))
    assert (checkpoint.verdict, checkpoint.backend) == (Verdict.COMPLETE, "DeepSpeed ZeRO-1/2")


def test_lightning_s_versions_are_searched_for_the_highest_step():
    """Without a fixed dirpath each start makes a new version; the newest may have been killed early."""
    files = {**under("version_0/checkpoints", lightning(900)), **under("version_1/checkpoints", lightning(30))}
    assert only(files).restart.path == "version_0/checkpoints/epoch=1-step=900.ckpt"
    assert only(under("lightning_logs", files)).restart.step == 900


def test_of_two_lightning_files_of_one_step_the_younger_is_taken():
    files = {**lightning(5), "last.ckpt": lightning(5)["epoch=1-step=5.ckpt"]}
    assert only(files, {"last.ckpt": LONG_AGO + 1}).restart.path == "last.ckpt"


# ------------------------------------------------------------------------------------------------ single files


def state(**more):
    return torch_bytes({"model": {"weight": 1}, "optimizer": OPTIMIZER, **more})


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (("step_900.pt", "step_1000.pt"), "step_1000.pt"),
        (("epoch_9.pth", "epoch_10.pth"), "epoch_10.pth"),
        (("checkpoint-9.pth.tar", "checkpoint-10.pth.tar"), "checkpoint-10.pth.tar"),
        (("ckpt_0000900.pt", "ckpt_0001000.pt"), "ckpt_0001000.pt"),
        (("0050000.pt", "0100000.pt"), "0100000.pt"),
        (("model_e3_acc0.95.pth", "model_e12_acc0.10.pth"), "model_e12_acc0.10.pth"),
        (("iter-5-ckpt.pth", "iter-40-ckpt.pth"), "iter-40-ckpt.pth"),
    ],
)
def test_numbers_in_names_count_and_their_text_does_not(names, taken):
    assert only({name: state() for name in names}).restart.path == taken


def test_a_file_without_a_number_is_ordered_by_what_it_holds():
    files = {"epoch_9.pt": state(epoch=9, step=9000), "latest.pt": state(epoch=12, step=12000), "best.pt": state(epoch=3)}
    assert [(one.path, one.step) for one in only(files).checkpoints] == [("latest.pt", 12), ("epoch_9.pt", 9), ("best.pt", 3)]


def test_epochs_beside_steps_are_ordered_by_the_steps_that_they_hold():
    files = {"epoch_3.pt": state(epoch=3, step=6000), "step_5000.pt": state(step=5000), "epoch_2.pt": state(epoch=2, step=4000)}
    assert [one.path for one in only(files).checkpoints] == ["epoch_3.pt", "step_5000.pt", "epoch_2.pt"]


def test_what_the_keys_stand_for_is_told():
    checkpoint = newest(
        {"ckpt.pt": state(iter_num=5, best_val_loss=1.0, scaler={"scale": 2.0}, rng_state=[1], lr_sched={"a": 1})}
    )
    held = {State.MODEL, State.OPTIMIZER, State.PROGRESS, State.SCALER, State.RNG, State.SCHEDULER, State.BEST_METRIC}
    assert (checkpoint.state, checkpoint.step) == (held, 5)


def test_parts_in_files_of_their_own_belong_together_by_number():
    files = {}
    for step in (100, 200):
        files |= {f"model{step:06}.pt": torch_bytes({"weight": 1}), f"opt{step:06}.pt": torch_bytes(OPTIMIZER)}
        files[f"ema_0.9999_{step:06}.pt"] = torch_bytes({"weight": 1})
    found = only(files)
    assert found.restart.path == "model000200.pt" and State.OPTIMIZER in found.restart.state
    assert only(without(files, "opt000200")).restart.path == "model000100.pt"


def test_plain_weights_and_whole_models_are_weights_only():
    for content in (
        {"layer.weight": 1, "layer.bias": 2},
        {"model": {"weight": 1}, "epoch": 3},
        {"model": {"w": 1}, "optimizer": None},
    ):
        assert newest({"epoch_3.pt": torch_bytes(content)}).verdict is Verdict.WEIGHTS_ONLY


def test_files_that_are_no_checkpoints_are_nobody_s():
    files = {"data.pt": torch_bytes({"x": 1}), "vocab.pt": torch_bytes({"a": 1}), "model.pt": torch_bytes({"weight": 1})}
    files |= {"dataset_1.pt": torch_bytes({}), "optimizer.pt": torch_bytes(OPTIMIZER), "consolidated.00.pth": torch_bytes({})}
    assert scan(MemoryListing(files)) == ()


def test_two_kinds_of_ckpt_files_in_one_directory_are_told_apart():
    files = {
        **lightning(5),
        "resnet-3_10.ckpt": mindspore_bytes({"global_step": (30).to_bytes(4, "little")}),
        "last.ckpt": state(step=7),
    }
    assert [found.layout.name for found in scan(MemoryListing(files))] == ["lightning", "mindspore", "single-file"]


# ------------------------------------------------------------------------------------------------ MindSpore


def mindspore_file(step, **more):
    return mindspore_bytes(
        {"conv.weight": bytes(40), "moments.w": bytes(40), "global_step": step.to_bytes(4, "little"), **more}
    )


def test_a_renamed_prefix_is_a_later_attempt_whose_step_stands_inside():
    """After a restart epochs count from 1 again under ``net_1``; global_step tells that it went on at 400."""
    files = {
        "net-3_100.ckpt": mindspore_file(300),
        "net-4_100.ckpt": mindspore_file(400),
        "net_1-1_100.ckpt": mindspore_file(500),
    }
    assert [(one.path, one.step) for one in only(files).checkpoints][:2] == [("net_1-1_100.ckpt", 500), ("net-4_100.ckpt", 400)]


def test_a_renamed_prefix_that_began_anew_is_behind():
    files = {"net-4_100.ckpt": mindspore_file(400), "net_1-1_100.ckpt": mindspore_file(100)}
    assert only(files).restart.path == "net-4_100.ckpt"


def test_mindspore_weights_alone_are_weights_only():
    assert newest({"net-4_100.ckpt": mindspore_bytes({"conv.weight": bytes(40)})}).verdict is Verdict.WEIGHTS_ONLY


def test_mindformers_takes_the_last_step_that_all_ranks_hold():
    files = {}
    for rank, steps in ((0, (100, 200)), (1, (100, 200)), (2, (100,))):
        for step in steps:
            files[f"rank_{rank}/llm_rank_{rank}-{step}_2.safetensors"] = safetensors_bytes({"adam_m.w": [1.0]})
        meta = {"last_step": steps[-1], "last_ckpt_file": f"llm_rank_{rank}-{steps[-1]}_2.safetensors"}
        files[f"rank_{rank}/meta.json"] = json.dumps(meta).encode()
    found = only(files)
    assert (found.restart.step, found.restart.world_size) == (100, 3)
    assert found.checkpoints[0].reasons[0] == "no common step: rank 2, which stopped at step 100, has no file of this one"
