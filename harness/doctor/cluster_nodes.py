"""Describes the nodes of a cluster for `harness doctor`."""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from harness.builder.cache import find_machine_folder
from harness.doctor.machine import find_isolation
from harness.evaluation.certificate import check_standing
from harness.executors.cluster.connection import (
    ClusterSettings,
    Versions,
    connect,
    make_version_reader,
    read_own_versions,
)
from harness.executors.settings import LocalSettings
from harness.sandbox.devices import open_device
from harness.sandbox.policy import probe_isolation

LIMIT_S = 300.0  # a GPU may be in use


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport:
    name: str
    chip: str
    isolation: str
    certificate: str
    is_certified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    node: str
    devices: tuple[DeviceReport, ...] = field(default=())
    obstacle: str = ""


def examine_cluster(cluster: ClusterSettings, settings: LocalSettings) -> list[NodeReport]:
    """Waits for GPUs that are in use. Raises UsageError and DeviceError."""
    ray, is_own = connect(cluster.address)
    try:
        return [_examine_node(ray, node, settings) for node in ray.nodes() if node["Alive"]]
    finally:
        if is_own:
            ray.shutdown()


def _examine_node(ray: Any, node: dict[str, Any], settings: LocalSettings) -> NodeReport:
    name, resources = f"{node['NodeManagerAddress']}/{node['NodeID'][:6]}", node["Resources"]
    strategies = import_module("ray.util.scheduling_strategies")
    here = {"scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)}

    def call(function: Any, *arguments: object, gpus: int = 0) -> Any:
        remote = ray.remote(num_cpus=0, num_gpus=gpus, max_retries=0, max_calls=1)(function)  # frees the GPU's context
        return ray.get(remote.options(**here).remote(*arguments), timeout=LIMIT_S)

    try:
        difference = read_own_versions().explain_difference(Versions(**call(make_version_reader())))
        if difference:
            return NodeReport(node=name, obstacle=f"refused: {difference}")
        devices = [call(examine_device, settings, "cpu")] if resources.get("CPU", 0) >= 1 else []
        devices += [call(examine_device, settings, "cuda:0", gpus=1) for _ in range(int(resources.get("GPU", 0)))]
    except ray.exceptions.RayError as error:
        return NodeReport(node=name, obstacle=explain(error))
    return NodeReport(node=name, devices=tuple(devices))


def explain(error: Exception) -> str:
    """Return the first line of a task's error, without the frames that Ray adds."""
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}"


def examine_device(settings: LocalSettings, name: str) -> DeviceReport:
    device, isolation = open_device(name), find_isolation(probe_isolation(settings.isolation))
    standing = check_standing(find_machine_folder(settings.cache), device, isolation)
    return DeviceReport(
        name=name,
        chip=device.chip,
        isolation=isolation,
        certificate=standing.certificate.digest if standing.certificate else standing.reason,
        is_certified=standing.certificate is not None,
    )
