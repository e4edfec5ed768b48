#!/usr/bin/env bash
# The start command of a ModelArts training job on several nodes: bash modelarts.sh
# The platform names the mounted training output in $train_output, this node in $VC_TASK_INDEX, the nodes in $MA_NUM_HOSTS.
set -euo pipefail

export NNODES=${MA_NUM_HOSTS:-1} NODE_RANK=${VC_TASK_INDEX:-0}

exec ckptlint launch -- \
    llamafactory-cli train run.yaml "output_dir=$train_output"
