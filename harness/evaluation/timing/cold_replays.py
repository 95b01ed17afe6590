"""Replays recorded GPU work on fresh inputs and with a cold cache, without the time of an empty graph."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness.evaluation.correctness.reference import Reference
from harness.sandbox.gpu.recording import Clock, Graph, KernelTimes, Place, Recording, Replayer
from harness.sandbox.model_session import Run
from harness.sandbox.worker_client import PlacedInputs

LEAST_US, CALIBRATIONS = 0.05, 11  # a call's least time; replays of each graph
CLEAN_BYTES = 256 << 20  # read before each replay, which leaves no modified lines in the cache


@dataclass(slots=True)
class Side:
    """`empty_us` is the time of an empty graph, `nothing_us` that of one empty kernel beyond it."""

    recording: Recording
    replayer: Replayer
    empty_us: float = 0.0
    nothing_us: float = 0.0

    def replay(self, clock: Clock, places: Sequence[Place], graph: Graph = "call") -> tuple[float, list[str]]:
        time_us, read = self.replayer.replay(graph, clock, places)
        return max(time_us + (self.nothing_us if clock == "host" else -self.empty_us), LEAST_US), read


def calibrate(sides: Sequence[Side]) -> None:
    """Both graphs are equal for all sides, so the side that takes longer is disturbed. The first replays are slower."""

    def measure(graph: Graph) -> float:
        times = [[side.replayer.replay(graph)[0] for _ in range(CALIBRATIONS)] for side in sides]
        return min(statistics.median(some[CALIBRATIONS // 3 :]) for some in times)

    empty_us = measure("empty")
    nothing_us = measure("nothing") - empty_us
    for side in sides:
        side.empty_us, side.nothing_us = empty_us, nothing_us


class ColdReplays:
    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self._clean: torch.Tensor | None = None

    def close(self) -> None:
        self._clean = None

    def lay_out(self, recording: Recording, seed: int) -> PlacedInputs:
        return recording.client.lay_out(self._reference.make_timed_inputs(seed))

    def prepare(self, sides: Sequence[Side], seed: int) -> PlacedInputs:
        """Write the inputs of `seed` for the next replay of each."""
        state = self._reference.make_timed_state(seed) or self._reference.changing
        placed = self.lay_out(sides[0].recording, seed)
        for side in sides:
            side.recording.write_inputs(placed, state.values())
        return placed

    def replay(
        self, side: Side, clock: Clock = "device", places: Sequence[Place] = (), graph: Graph = "call"
    ) -> tuple[float, list[str]]:
        self._clean_cache()
        return side.replay(clock, places, graph)

    def replay_alone(self, side: Side, seed: int, graph: Graph = "call") -> tuple[float, Run]:
        placed = self.prepare([side], seed)
        time_us, _ = self.replay(side, graph=graph)
        return time_us, side.recording.describe_run(placed)

    def time_kernels(self, side: Side, seed: int, own: Sequence[int]) -> tuple[KernelTimes, Run]:
        """See `Replayer.time_kernels`."""
        placed = self.prepare([side], seed)
        self._clean_cache()
        times = side.replayer.time_kernels(own)
        return times, side.recording.describe_run(placed)

    def _clean_cache(self) -> None:
        """This process flushes the cache, which a candidate's device code cannot affect."""
        device = self._reference.device
        if self._clean is None:
            self._clean = torch.zeros(CLEAN_BYTES // 4, device=device.torch_device)
        device.reset_persisting_lines()
        self._clean.sum()
        device.synchronize()
