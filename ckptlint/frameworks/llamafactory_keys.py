"""The keys of LLaMA-Factory's configurations, by release.

Read from ``hparams/`` (v0) and ``v1/config/`` (v1) of the released wheels 0.8.3, 0.9.0, 0.9.1, 0.9.2, 0.9.3, 0.9.4 and 0.9.5,
and of the repository at ff6d4d12, whose version 0.9.6.dev0 stands here as 0.9.6. A v0 training configuration takes
LLaMA-Factory's own keys (``V0_KEYS``) and those of transformers' ``Seq2SeqTrainingArguments`` (``trainer_keys``);
``hparams/parser.py`` refuses any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ckptlint.frameworks.releases import ALWAYS, Lifetime, by_name, number
from ckptlint.frameworks.trainer_keys import COUNT, FLAG, RANDOM, REQUIRED, TRAINER_KEYS, Key, find_key, kinds, trainer_key
from ckptlint.run import Unit

RELEASES_READ = ("0.8.3", "0.9.0", "0.9.1", "0.9.2", "0.9.3", "0.9.4", "0.9.5", "0.9.6")

# What a configuration is read as where the project pins nothing: the newest that is released.
ASSUMED = "0.9.5"


# ------------------------------------------------------------------------------------------------ v0

# ModelArguments, DataArguments, FinetuningArguments, GeneratingArguments, RayArguments, ProfilerArguments, Fp8Arguments and
# TrainingArguments with all their bases; fields with init=False (compute_dtype, device_map, ...) are no keys.
TRAIN_KEYS: Mapping[str, Lifetime] = by_name(
    {
        ALWAYS: """
            adapter_folder adapter_name_or_path additional_target badam_mask_mode badam_mode badam_start_block
            badam_switch_interval badam_switch_mode badam_update_ratio badam_verbose buffer_size cache_dir
            compute_accuracy create_new_adapter cutoff_len dataset dataset_dir default_system
            disable_gradient_checkpointing do_sample double_quantization dpo_label_smoothing eval_dataset eval_num_beams
            export_device export_dir export_hub_model_id export_legacy_format export_quantization_bit
            export_quantization_dataset export_quantization_maxlen export_quantization_nsamples export_size
            finetuning_type flash_attn freeze_extra_modules freeze_trainable_layers freeze_trainable_modules
            freeze_vision_tower galore_layerwise galore_proj_type galore_rank galore_scale galore_target
            galore_update_interval hf_hub_token ignore_pad_token_for_loss infer_backend infer_dtype interleave_probs
            kto_chosen_weight kto_rejected_weight length_penalty lora_alpha lora_dropout lora_rank lora_target
            loraplus_lr_embedding loraplus_lr_ratio low_cpu_mem_usage mask_history max_length max_new_tokens max_samples
            mix_strategy mixture_of_depths model_name_or_path model_revision moe_aux_loss_coef ms_hub_token neat_packing
            num_beams offload_folder overwrite_cache packing pissa_convert pissa_init pissa_iter plot_loss ppo_buffer_size
            ppo_epochs ppo_score_norm ppo_target ppo_whiten_rewards pref_beta pref_ftx pref_loss preprocessing_num_workers
            print_param_status pure_bf16 quantization_bit quantization_device_map quantization_method quantization_type
            ref_model ref_model_adapters ref_model_quantization_bit repetition_penalty resize_vocab reward_model
            reward_model_adapters reward_model_quantization_bit reward_model_type rope_scaling shift_attn simpo_gamma
            split_special_tokens stage streaming temperature template tokenized_path tool_format top_k top_p
            train_from_scratch train_on_prompt upcast_layernorm upcast_lmhead_output use_badam use_dora use_fast_tokenizer
            use_galore use_llama_pro use_rslora use_unsloth val_size vllm_enforce_eager vllm_gpu_util vllm_max_lora_rank
            vllm_maxlen
        """,
        # gone
        Lifetime(until="0.9.0"): "visual_inputs",
        Lifetime(until="0.9.2"): "train_mm_proj_only",
        Lifetime(until="0.9.3"): "new_special_tokens",
        Lifetime(until="0.9.4"): "use_cache",
        # come and gone
        Lifetime(since="0.9.0", until="0.9.2"): "image_resolution video_resolution",
        Lifetime(since="0.9.1", until="0.9.2"): "image_dir",
        Lifetime(since="0.9.2", until="0.9.5"): "placement_strategy ray_run_name ray_storage_path resources_per_worker",
        Lifetime(since="0.9.3", until="0.9.5"): "ray_storage_filesystem",
        Lifetime(since="0.9.4", until="0.9.5"): """
            chunk_size cpu_infer kt_force_think kt_maxlen kt_mode kt_optimize_rule kt_use_cuda_graph mode
        """,
        # come
        Lifetime(since="0.9.0"): """
            enable_liger_kernel preprocessing_batch_size use_adam_mini use_unsloth_gc video_fps video_maxlen
        """,
        Lifetime(since="0.9.1"): "include_effective_tokens_per_second om_hub_token vllm_config",
        Lifetime(since="0.9.2"): """
            apollo_layerwise apollo_proj apollo_proj_type apollo_rank apollo_scale apollo_scale_front apollo_scale_type
            apollo_target apollo_update_interval disable_shuffling freeze_language_model freeze_multi_modal_projector
            image_max_pixels image_min_pixels media_dir ray_num_workers skip_special_tokens swanlab_api_key swanlab_logdir
            swanlab_mode swanlab_project swanlab_run_name swanlab_workspace trust_remote_code use_apollo use_reentrant_gc
            use_swanlab video_max_pixels video_min_pixels
        """,
        Lifetime(since="0.9.3"): """
            add_special_tokens add_tokens audio_sampling_rate crop_to_patches data_shared_file_system early_stopping_steps
            enable_thinking eval_on_each_dataset image_do_pan_and_scan ld_alpha ray_init_kwargs sglang_config
            sglang_lora_backend sglang_maxlen sglang_mem_fraction sglang_tp_size swanlab_lark_secret
            swanlab_lark_webhook_url use_audio_in_video use_muon
        """,
        Lifetime(since="0.9.4"): """
            fp8 fp8_backend fp8_enable_fsdp_float8_all_gather init_special_tokens module_dropout new_special_tokens_config
            oft_block_size oft_rank oft_target overwrite_output_dir pref_bco_weight use_dft_loss use_kt use_kv_cache
            use_mca use_v1_kernels
        """,
        Lifetime(since="0.9.5"): """
            asft_alpha eaft_alpha enable_torch_profiler hyper_parallel_args kt_expert_checkpoint_path
            kt_lora_expert_intermediate_size kt_lora_expert_num kt_use_lora_experts kt_weight_path master_addr master_port
            preserve_thinking profile_modules profiler_active_steps profiler_output_dir profiler_profile_memory
            profiler_record_shapes profiler_repeat profiler_wait_steps profiler_warmup_steps profiler_with_stack
            use_asft_loss use_eaft_loss use_hyper_parallel
        """,
        Lifetime(since="0.9.6"): "hyper_parallel_cp_size kt_cpu_activation kt_non_expert_weight_path use_megatron_bridge",
    }
)

# MegatronBridgeArguments: keys of a configuration that is started with USE_MEGATRON_BRIDGE=1 (parser.py get_train_args).
BRIDGE_KEYS: Mapping[str, Lifetime] = by_name(
    {
        Lifetime(since="0.9.6"): """
            account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split apply_rope_fusion
            bias_activation_fusion calculate_per_token_loss context_parallel_size cross_entropy_loss_fusion
            expert_model_parallel_size export_hf_on_finish extra_config masked_softmax_fusion
            megatron_pretrained_checkpoint mixed_precision moe_grouped_gemm moe_token_dispatcher_type overlap_grad_reduce
            overlap_param_gather pipeline_model_parallel_size recompute_granularity recompute_method recompute_num_layers
            sequence_parallel tensor_model_parallel_size use_distributed_optimizer use_packed_sequences
            virtual_pipeline_model_parallel_size
        """,
    }
)

# mcore_adapter's TrainingArguments without those of transformers: keys of a configuration that is started with USE_MCA=1.
# alibaba/ROLL at 1bc12057, mcore_adapter/training_args.py; its releases are not told apart here.
MCA_KEYS: Mapping[str, Lifetime] = by_name(
    {
        Lifetime(since="0.9.4"): """
            account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split accumulate_allreduce_grads_in_fp32
            additional_configs apply_rope_fusion bias_activation_fusion calculate_per_token_loss
            check_for_nan_in_loss_and_grad ckpt_d2h_non_blocking ckpt_format compile_warmup context_parallel_size
            cross_entropy_loss_fusion cuda_graph_impl cuda_graph_scope ddp_average_in_collective ddp_bucket_size
            delay_grad_reduce distrib_optim_fully_reshardable distrib_optim_fully_reshardable_mem_efficient
            expert_model_parallel_size expert_tensor_parallel_size fp8_format fp8_param fp8_recipe micro_batch_size
            moe_aux_loss_coeff moe_enable_routing_replay moe_expert_capacity_factor moe_grouped_gemm moe_layer_recompute
            moe_pad_expert_input_to_capacity moe_router_dtype moe_shared_expert_overlap moe_token_dispatcher_type
            moe_token_drop_policy mtp_num_layers optimizer optimizer_cpu_offload optimizer_offload_fraction
            overlap_grad_reduce overlap_p2p_comm overlap_param_gather pipeline_model_parallel_layout
            pipeline_model_parallel_size recompute_granularity recompute_method recompute_modules recompute_num_layers
            save_hf_model save_merged_model sequence_packing sequence_parallel tensor_model_parallel_size transformer_impl
            use_distributed_optimizer use_flash_attn use_flash_attn_npu_batch_invariant variable_seq_lengths
            virtual_pipeline_model_parallel_size
        """,
    }
)

# kt_config: a field that KTransformers' build of transformers adds to TrainingArguments (examples/ktransformers/train_lora).
KTRANSFORMERS_KEYS: Mapping[str, Lifetime] = by_name({Lifetime(since="0.9.5"): "kt_config"})

# EvaluationArguments: keys of `llamafactory-cli eval`; of these a training configuration takes `seed` alone, as the Trainer's.
EVAL_KEYS: Mapping[str, Lifetime] = by_name({ALWAYS: "batch_size download_mode lang n_shot save_dir seed task task_dir"})

# LLaMA-Factory's own keys of a v0 training configuration, under any backend; where two know a key, the older one counts.
V0_KEYS: Mapping[str, Lifetime] = {**BRIDGE_KEYS, **MCA_KEYS, **KTRANSFORMERS_KEYS, **TRAIN_KEYS}


# ------------------------------------------------------------------------------------------------ v1

# v1/config/{model,data,training,sample}_args.py. 0.9.4 had no resume and no save key at all.
V1_LIFETIMES: Mapping[str, Lifetime] = by_name(
    {
        Lifetime(since="0.9.4"): """
            bf16 cutoff_len dist_config global_batch_size kernel_config learning_rate max_new_tokens micro_batch_size
            model model_class output_dir peft_config quant_config sample_backend trust_remote_code
        """,
        Lifetime(since="0.9.4", until="0.9.5"): "dataset use_fast_processor",
        Lifetime(since="0.9.5", until="0.9.6"): "template",
        Lifetime(since="0.9.5"): """
            batching_strategy batching_workers enable_activation_checkpointing eval_dataset flash_attn full_determinism
            init_config logging_steps lr_scheduler_config max_grad_norm max_steps num_train_epochs optim_config
            resume_from_checkpoint save_ckpt_as_hf save_epochs save_steps save_total_limit seed train_dataset
        """,
        Lifetime(since="0.9.6"): """
            cp_mode cp_size custom_chat_template dist_timeout dp_size dpo_label_smoothing ld_alpha mp_replicate_size
            mp_shard_size pref_beta pref_ftx pref_loss simpo_gamma
        """,
    }
)

V1_KEYS = frozenset(V1_LIFETIMES)


# ------------------------------------------------------------------------------------------------ the transformers beneath


@dataclass(frozen=True)
class Transformers:
    """The releases of transformers that a release of LLaMA-Factory allows; ``newest`` None: it sets no upper end."""

    oldest: str
    newest: str | None
    assumed: str


# Requires-Dist of the wheels (pyproject.toml at ff6d4d12), which extras/misc.py check_dependencies checks again at every start
# unless DISABLE_VERSION_CHECK is set; single releases that they exclude are left out here. Assumed: the newest allowed. 0.8.3
# sets no upper end; the newest on its day (wheel of 2024-07-18) was 4.42.4.
TRANSFORMERS: Mapping[str, Transformers] = {
    "0.8.3": Transformers("4.41.2", None, "4.42.4"),
    "0.9.0": Transformers("4.41.2", "4.45.0", "4.45.0"),
    "0.9.1": Transformers("4.41.2", "4.46.1", "4.46.1"),
    "0.9.2": Transformers("4.41.2", "4.49.0", "4.49.0"),
    "0.9.3": Transformers("4.45.0", "4.52.4", "4.52.4"),  # 4.51.3 on macOS
    "0.9.4": Transformers("4.51.0", "4.57.1", "4.57.1"),
    "0.9.5": Transformers("4.55.0", "5.6.0", "5.6.0"),
    "0.9.6": Transformers("4.55.0", "5.8.0", "5.8.0"),
}


@lru_cache(maxsize=64)
def transformers_of(llamafactory: str) -> Transformers:
    """What a release allows: its own row, else that of the newest read before it, else that of the oldest read."""
    rows = [row for release, row in TRANSFORMERS.items() if number(release) <= number(llamafactory)]
    return rows[-1] if rows else TRANSFORMERS[RELEASES_READ[0]]


def v0_keys(llamafactory: str, transformers: str | None = None) -> frozenset[str]:
    """The keys that a release takes in a v0 training configuration, under any backend.

    ``transformers`` None: those that it takes with any of the transformers it allows.
    """
    allowed = transformers_of(llamafactory)
    oldest, newest = (transformers, transformers) if transformers else (allowed.oldest, allowed.newest)
    own = {name for name, lifetime in V0_KEYS.items() if lifetime.holds(llamafactory)}
    return frozenset(own | {name for name, lifetime in TRAINER_KEYS.items() if lifetime.overlaps(oldest, newest)})


def v1_keys(llamafactory: str) -> frozenset[str]:
    """The keys that a release takes in a v1 configuration; empty before 0.9.4, which had no v1."""
    return frozenset(name for name, lifetime in V1_LIFETIMES.items() if lifetime.holds(llamafactory))


# ------------------------------------------------------------------------------------------------ keys that bear on checkpoints

_STAGES = ("pt", "sft", "rm", "ppo", "dpo", "kto")
_TUNER = "train/tuner.py _training_function raises ValueError (`Unknown task`) on any other"

V0_CHECKPOINT_KEYS: tuple[Key, ...] = (
    Key(
        "overwrite_output_dir",
        FLAG,
        False,
        since="0.9.4",
        note="hparams/training_args.py; before 0.9.4 it is the Trainer's. True: get_train_args does not look for a checkpoint",
    ),
    Key("stage", kinds("str"), "sft", choices=_STAGES, note="hparams/finetuning_args.py; " + _TUNER),
    Key(
        "finetuning_type",
        kinds("str"),
        "lora",
        until="0.9.4",
        choices=("lora", "freeze", "full"),
        note="hparams/finetuning_args.py __post_init__ asserts it",
    ),
    Key(
        "finetuning_type",
        kinds("str"),
        "lora",
        since="0.9.4",
        choices=("lora", "oft", "freeze", "full"),
        note="hparams/finetuning_args.py __post_init__ asserts it",
    ),
    Key(
        "model_name_or_path",
        kinds("str"),
        REQUIRED,
        note="hparams/model_args.py __post_init__: ValueError where None (before 0.9.0: no default)",
    ),
    Key(
        "adapter_name_or_path",
        kinds("str", "null"),
        None,
        note="hparams/model_args.py __post_init__ splits at commas, a list is an AttributeError; weights only",
    ),
    Key(
        "create_new_adapter",
        FLAG,
        False,
        note="hparams/finetuning_args.py; merges adapter_name_or_path, then starts a new adapter",
    ),
    Key("reward_model", kinds("str", "null"), None, note="hparams/finetuning_args.py __post_init__: stage ppo needs it"),
    Key(
        "ref_model",
        kinds("str", "null"),
        None,
        note="hparams/finetuning_args.py; None: the policy as it is when the run starts",
    ),
    # optimizers that live outside the Trainer's, which saves a DummyOptimizer (train/trainer_utils.py)
    Key("use_badam", FLAG, False, note="hparams/finetuning_args.py"),
    Key("use_galore", FLAG, False, note="hparams/finetuning_args.py"),
    Key("galore_layerwise", FLAG, False, note="hparams/finetuning_args.py; without use_galore it does nothing"),
    Key("use_apollo", FLAG, False, since="0.9.2", note="hparams/finetuning_args.py"),
    Key("apollo_layerwise", FLAG, False, since="0.9.2", note="hparams/finetuning_args.py; without use_apollo it does nothing"),
    # adapters whose first state is needed later
    Key(
        "pissa_init",
        FLAG,
        False,
        note="hparams/finetuning_args.py; refused in stages ppo and kto, and dpo with a reference model",
    ),
    Key("pissa_convert", FLAG, False, note="hparams/finetuning_args.py; train/callbacks.py PissaConvertCallback"),
    Key(
        "early_stopping_steps",
        kinds("int", "null"),
        None,
        since="0.9.3",
        note="hparams/finetuning_args.py; evaluations without improvement, train/tuner.py adds EarlyStoppingCallback",
    ),
    # data
    Key("dataset", kinds("str", "list", "null"), None, note="hparams/data_args.py __post_init__: a string is split at commas"),
    Key("streaming", FLAG, False, note="hparams/data_args.py; parser.py get_train_args: needs max_steps"),
    # Ray
    Key("ray_num_workers", COUNT, 1, since="0.9.2", note="hparams/training_args.py RayArguments"),
    Key(
        "ray_run_name",
        kinds("str", "null"),
        None,
        since="0.9.2",
        until="0.9.5",
        note="hparams/training_args.py RayArguments: results go to <ray_storage_path>/<ray_run_name>",
    ),
    Key(
        "ray_storage_path",
        kinds("str"),
        "./saves",
        since="0.9.2",
        until="0.9.5",
        note="hparams/training_args.py RayArguments",
    ),
    Key(
        "ray_storage_filesystem",
        kinds("str", "null"),
        None,
        since="0.9.3",
        until="0.9.5",
        choices=("s3", "gs", "gcs"),
        note="hparams/training_args.py RayArguments",
    ),
    # backends
    Key(
        "use_mca",
        FLAG,
        False,
        since="0.9.4",
        note="hparams/finetuning_args.py; only the environment's USE_MCA counts, get_train_args sets it back to false without",
    ),
    Key(
        "use_megatron_bridge",
        FLAG,
        False,
        since="0.9.6",
        note="hparams/finetuning_args.py; only USE_MEGATRON_BRIDGE counts, get_train_args sets it back to false without",
    ),
    Key("use_hyper_parallel", FLAG, False, since="0.9.5", note="hparams/finetuning_args.py"),
    Key("use_kt", FLAG, False, since="0.9.4", note="hparams/model_args.py KTransformersArguments"),
)

# v1/config/training_args.py, unless a note names another file.
V1_CHECKPOINT_KEYS: tuple[Key, ...] = (
    Key(
        "output_dir",
        kinds("str"),
        RANDOM,
        since="0.9.4",
        note="default outputs/<uuid4>, drawn when the module is imported, so anew in every process",
    ),
    Key(
        "resume_from_checkpoint",
        kinds("str", "null"),
        None,
        since="0.9.5",
        note="None: never; `auto`: the newest with its marker; else a path (core/utils/checkpoint.py resume)",
    ),
    Key(
        "save_steps",
        kinds("int", "null"),
        None,
        since="0.9.5",
        unit=Unit.STEP,
        note="None and 0: no checkpoint (core/base_trainer.py fit: `if self.args.save_steps and ...`)",
    ),
    Key(
        "save_epochs",
        kinds("int", "float", "null"),
        None,
        since="0.9.5",
        unit=Unit.EPOCH,
        note="overrides save_steps, at least every step, so 0 too (core/base_trainer.py __init__); not with dynamic_batching",
    ),
    Key("save_ckpt_as_hf", FLAG, False, since="0.9.5", note="adds hf_model/ to a checkpoint"),
    Key("save_total_limit", kinds("int", "null"), None, since="0.9.5", note="core/utils/checkpoint.py; None: all stay"),
    Key(
        "max_steps",
        kinds("int", "null"),
        None,
        since="0.9.5",
        unit=Unit.STEP,
        note="above 0 it overrides num_train_epochs; batching_strategy dynamic_batching needs it",
    ),
    Key("num_train_epochs", COUNT, 3, since="0.9.5", unit=Unit.EPOCH, note="`int` field"),
    Key("micro_batch_size", COUNT, 1, since="0.9.4", unit=Unit.SAMPLE, note="`int` field"),
    Key("global_batch_size", COUNT, 1, since="0.9.4", until="0.9.5", unit=Unit.SAMPLE, note="`int` field"),
    Key(
        "global_batch_size",
        kinds("int", "null"),
        None,
        since="0.9.5",
        unit=Unit.SAMPLE,
        note="None: data-parallel size times micro_batch_size",
    ),
    Key("logging_steps", COUNT, 1, since="0.9.5", unit=Unit.STEP, note="`int` field"),
    Key(
        "model",
        kinds("str"),
        REQUIRED,
        since="0.9.4",
        until="0.9.5",
        note="v1/config/model_args.py",
    ),
    Key("model", kinds("str"), "Qwen/Qwen3-4B-Instruct-2507", since="0.9.5", note="v1/config/model_args.py"),
    Key("train_dataset", kinds("str", "null"), None, since="0.9.5", note="v1/config/data_args.py"),
)


def v0_key(name: str, llamafactory: str, transformers: str | None = None) -> Key | None:
    """A v0 setting that bears on checkpoints, as it is in a release; None where that release has none.

    ``transformers`` None: the one that ``TRANSFORMERS`` assumes beneath this release.
    """
    own = find_key(V0_CHECKPOINT_KEYS, name, llamafactory)
    return own or trainer_key(name, transformers or transformers_of(llamafactory).assumed)


def v1_key(name: str, llamafactory: str) -> Key | None:
    """A v1 setting that bears on checkpoints, as it is in a release; None where that release has none."""
    return find_key(V1_CHECKPOINT_KEYS, name, llamafactory)
