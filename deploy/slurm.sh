#!/bin/bash
# Starts a Ray cluster on the nodes of a job, and the evaluation service on the first one. See docs/containers.md.
#     sbatch deploy/slurm.sh                                   # the service; its address is in the log
#     sbatch deploy/slurm.sh evaluate my-run --results-dir DIR # a run
# HARNESS_VENV: the environment with kernel-harness[ray,serve], on a file system that all nodes see.
#SBATCH --job-name=harness
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --exclusive
#SBATCH --signal=B:TERM@120
set -euo pipefail

venv=${HARNESS_VENV:-$PWD/.venv}
# shellcheck disable=SC1091
source "$venv/bin/activate"
port=${HARNESS_RAY_PORT:-6379}
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]}
address=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --ip-address | awk '{print $1}'):$port

# Other jobs of this user may have a cluster on the same nodes: each job has a folder of its own.
export RAY_TMPDIR=/tmp/ray-$SLURM_JOB_ID
export RAY_ADDRESS=$address
# Without it, whoever reaches the cluster's ports can run code on its nodes.
export RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(python -c "import secrets; print(secrets.token_hex(32))")
export RAY_AUTH_TOKEN
common=(--num-gpus="${SLURM_GPUS_ON_NODE:-1}" --num-cpus="$SLURM_CPUS_PER_TASK" --disable-usage-stats --block)

srun --overlap --nodes=1 --ntasks=1 --nodelist="$head" \
    ray start --head --port="$port" --include-dashboard=false "${common[@]}" &
for node in "${nodes[@]:1}"; do
    srun --overlap --nodes=1 --ntasks=1 --nodelist="$node" ray start --address="$address" "${common[@]}" &
done
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

for _ in $(seq 60); do
    if ray status --address="$address" >/dev/null 2>&1; then break; fi
    sleep 2
done
harness doctor --executor ray --address "$address"

if [ $# -gt 0 ]; then
    harness "$@" --executor ray --address "$address"
    exit
fi
HARNESS_SERVICE_TOKEN=${HARNESS_SERVICE_TOKEN:?set a token for the clients}
export HARNESS_SERVICE_TOKEN
echo "the service listens at http://$(hostname):8700"
harness serve --executor ray --address "$address" --device cuda --host 0.0.0.0
