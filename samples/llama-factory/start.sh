#!/usr/bin/env bash
# The start command of a LLaMA-Factory run that its platform starts again whenever it dies: start.sh RUN.yaml [KEY=VALUE...]
set -euo pipefail

run=$1

# Ends with 1 where LLaMA-Factory would refuse to start or lose what is there, with 2 where the file or a variable is at fault.
# Then this script ends as well, so that the job fails where somebody sees it instead of beginning again at step 0.
ckptlint resume "$run"

exec llamafactory-cli train "$@"
