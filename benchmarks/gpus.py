"""Whether several GPUs of a machine evaluate as many times faster: the local executor, and Ray's.

Run on a machine with several GPUs: python benchmarks/gpus.py [--programs 12] [--fidelity quick] [--executors local ray]
The programs are those of fidelity.py of 0.16 ms a call. They are built first; then each executor evaluates one program
per GPU, which starts everything, and all programs, on the first GPU alone and on all. Prints seconds, verdicts per
hour, and the ratio. Goals: 1.8 times as fast on two GPUs, and 1.9 times with Ray.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from fidelity import FIDELITIES, describe, make_tasks, measure

from harness.executors.cluster.connection import LOCAL, ClusterSettings
from harness.executors.cluster.executor import RayExecutor
from harness.executors.local import LocalExecutor
from harness.executors.settings import LocalSettings
from harness.hardware.host import list_gpus

SIDE = 1024


def open_executor(name: str, settings: LocalSettings, *, all_gpus: bool) -> LocalExecutor | RayExecutor:
    """Ray counts the GPUs that CUDA_VISIBLE_DEVICES names when it starts; the driver in this process read it before."""
    if name == "local":
        return LocalExecutor(settings if all_gpus else replace(settings, device="cuda:0"))
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    if not all_gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    return RayExecutor(ClusterSettings(address=LOCAL), settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=12, choices=range(1, 17), metavar="N")
    parser.add_argument("--fidelity", default="quick", choices=FIDELITIES)
    parser.add_argument("--executors", nargs="*", default=["local", "ray"], choices=["local", "ray"])
    options = parser.parse_args()
    tasks = make_tasks(SIDE, options.programs)
    with tempfile.TemporaryDirectory() as cache:
        settings = LocalSettings(cache=Path(cache), device="cuda", fidelity="correctness")
        with LocalExecutor(settings) as executor:
            print(f"built, {measure(executor, tasks)[1]:.0f} s", flush=True)
        settings = replace(settings, fidelity=options.fidelity)
        for name in options.executors:
            taken_s: list[float] = []
            for all_gpus in (False, True):
                with open_executor(name, settings, all_gpus=all_gpus) as executor:
                    gpus = len(list_gpus()) if all_gpus else 1
                    executor.devices("cuda")
                    measure(executor, tasks[:gpus])
                    evaluations, spent_s = measure(executor, tasks)
                rate = f"{3600 * len(evaluations) / spent_s:6.0f} an hour"
                print(f"{name:6} {gpus} GPUs {spent_s:6.1f} s {rate}  {describe(evaluations)}", flush=True)
                taken_s.append(spent_s)
            print(f"{name:6} {taken_s[0] / taken_s[1]:.2f} times as fast", flush=True)


if __name__ == "__main__":
    main()
