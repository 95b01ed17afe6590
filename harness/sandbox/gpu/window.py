"""Times GPU calls by the evaluator's clock, from before inputs are seen to copied outputs (docs/measurement.md)."""

import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from harness.domain import CandidateFailure, Outcome
from harness.protocol import HELD_US, Signal, TensorSpec, storage_bytes
from harness.protocol.tensor_layout import ALIGNMENT_BYTES, LARGE_OUTPUT_BYTES, MOST_KEPT
from harness.sandbox.arena_layout import Footprint, outline
from harness.sandbox.devices import INPUT_SLACK_BYTES, CudaDevice, Device, SharedArena
from harness.sandbox.gpu.recording import NotReplayable, Recording, make_recording
from harness.sandbox.gpu.worker_memory import Stretch, WorkerMemory, repeats_memory, view_bytes, view_outputs
from harness.sandbox.memory_probe import REPEATED_PAGES
from harness.sandbox.model_session import POISON, ModelSession, Run
from harness.sandbox.worker_client import Called, PlacedInputs, WorkerClient
from harness.tensors.outputs import FlatOutputs
from harness.tensors.values import count_bytes

LONGEST_INTERRUPTED = 4  # times HELD_US: longer calls are slow ones
IN_INPUTS = "an output shares memory with the inputs"
UNSHIFTED_SHARE = 0.25  # of calls
QUIET_S = 2.0  # for work that a worker left running on the device


@dataclass(frozen=True, slots=True)
class _Held:
    specs: tuple[TensorSpec, ...]
    stretches: tuple[Stretch, ...] | None


@dataclass(frozen=True, slots=True)
class _Taken:
    outputs: tuple[Tensor, ...]
    ended_ns: int
    held: _Held
    inputs_unchanged: bool | None = None


class WindowSession(ModelSession):
    def __init__(
        self,
        client: WorkerClient,
        arena: SharedArena,
        footprint: Footprint,
        device: CudaDevice,
        *,
        keeps_on_host: bool = False,
    ) -> None:
        super().__init__(client, arena, footprint, keeps_on_host=keeps_on_host)
        self._device = device
        self._source = random.SystemRandom()
        self._memory = WorkerMemory(
            client.export_pages,
            device=device.torch_device.index or 0,
            arena_start=client.arena_address,
            arena_local=arena.address,
            arena_bytes=arena.size_bytes,
        )
        self._last: Called | None = None
        self._released_bytes = 0
        self._recent: deque[_Held] = deque(maxlen=MOST_KEPT)  # newest first
        self._held_for_good: list[_Held] = []

    def close(self) -> None:
        """Unmap the worker's memory: the mapping keeps it allocated after the worker has ended."""
        self._memory.forget()
        self._recent.clear()
        self._held_for_good.clear()

    def place(self, inputs: Sequence[Any]) -> None:
        outputs = self._footprint.output
        self._arena.bytes_view(0, outputs.offset + outputs.size_bytes).fill_(POISON)

    def call(self, inputs: Sequence[Any], device: Device, *, look: bool = True, hold_streams: bool = False) -> Run:
        """Raises CandidateFailure (suspect) if the device is busy."""
        torch.cuda.set_device(device.torch_device)
        announced = self._lay_out(inputs)
        shift_bytes = self._draw_shift()
        placed = shift_inputs(announced, shift_bytes)
        self.client.arm(announced, in_window=True)
        self._bytes_of(self._footprint.output).fill_(POISON)
        self._choose_sample(self._source)
        usual = self._last
        require_quiet(device)
        signal = Signal.GO_AHEAD_OF_STREAMS if hold_streams else Signal.GO
        began_ns, woken_ns = self._exchange_signals(placed, shift_bytes, signal)
        addresses = self._restore_addresses(self.client.read_addresses(), placed)
        taken = None if usual is None else self._take_known(usual, addresses)
        called = self._restore_inputs(self.client.await_called(), placed)
        if called.released_bytes != self._released_bytes:  # addresses may be remapped
            self._memory.forget()
            self._released_bytes, taken = called.released_bytes, None
        if not self._note_call(called):
            return Run(outputs=outline(called), called=called)
        if self._is_in_inputs(called, placed):
            raise CandidateFailure.of_check(Outcome.WRONG_VALUE, "alias_input", IN_INPUTS)
        self.saw_new_memory = taken is None or usual is None or not _is_as_described(called, usual, addresses)
        if taken is None or self.saw_new_memory:
            taken = self._take_anew(called, placed)
        self._last = called
        self._recent.appendleft(taken.held)
        run = self._describe(called, placed, taken, began_ns, woken_ns)
        self.outlasted_hold = hold_streams and _outlasts_hold(run.call_us)
        return run

    def record(self, inputs: Sequence[Any], *, may_read_back: bool = False) -> Recording:
        """For `may_read_back` see `make_recording`. Raises NotReplayable."""
        self.reset_state()
        placed = self._lay_out(inputs)
        if placed.seed is not None:
            raise NotReplayable("its calls draw random numbers")
        self.client.write(placed)  # without a shift: the same alignment for every program

        def check(called: Called) -> Called:
            called = self._restore_inputs(called, placed)
            if not self._footprint.has_form(called):
                raise NotReplayable("the recorded call returned outputs of another form")
            if self._is_in_inputs(called, placed):
                raise NotReplayable(IN_INPUTS)
            return called

        return make_recording(
            self.client,
            placed,
            self._footprint,
            self._device,
            state=list(self._held.values()),
            check=check,
            may_read_back=may_read_back,
        )

    def _is_in_inputs(self, called: Called, placed: PlacedInputs) -> bool:
        """Return True if an output that needs memory of its own has that of inputs or given state."""
        start = self.client.arena_address
        given = [(start + spec.offset, start + spec.offset + storage_bytes(spec)) for spec in placed.specs]
        for at, (spec, first) in enumerate(zip(called.specs, called.addresses, strict=True)):
            last = first + storage_bytes(spec)
            if at not in self._footprint.views and any(max(first, begin) < min(last, end) for begin, end in given):
                return True
        return False

    def _restore_inputs(self, called: Called, placed: PlacedInputs) -> Called:
        restored = super()._restore_inputs(called, placed)
        if not self._returned_inputs:
            return restored
        return replace(restored, addresses=self._restore_addresses(called.addresses, placed))

    def _restore_addresses(self, addresses: tuple[int, ...], placed: PlacedInputs) -> tuple[int, ...]:
        """Replace addresses of outputs that are inputs by those that the evaluator chose."""
        if not self._returned_inputs:
            return addresses
        inputs = (self.client.arena_address + placed.specs[at].offset for at in self._returned_inputs)
        return (*inputs, *addresses[len(self._returned_inputs) :])

    def _draw_shift(self) -> int:
        """Return none for some calls, so that programs cannot tell by it which call is recorded."""
        if self._source.random() < UNSHIFTED_SHARE:
            return 0
        return self._source.randrange(INPUT_SLACK_BYTES // ALIGNMENT_BYTES) * ALIGNMENT_BYTES

    def _exchange_signals(self, placed: PlacedInputs, shift_bytes: int, signal: Signal) -> tuple[int, int]:
        """Return monotonic ns before the inputs are written and after the wake-up, whose time the worker controls. It
        follows the writing, since a switch from the evaluator's context to the worker's takes 150 us.
        """
        began_ns = time.monotonic_ns()
        self.client.write(placed)
        self._device.reset_persisting_lines()
        self._device.flush_cache()
        self._device.synchronize()
        self.client.ring(Signal.WAKE)
        woken_ns = time.monotonic_ns()
        self.client.ring(signal, shift_bytes, placed.announced.words)
        return began_ns, woken_ns

    def _describe(self, called: Called, placed: PlacedInputs, taken: _Taken, began_ns: int, woken_ns: int) -> Run:
        unchanged = taken.inputs_unchanged
        return Run(
            outputs=FlatOutputs(tree=called.tree, tensors=taken.outputs),
            called=called,
            evaluator_us=(taken.ended_ns - began_ns) / 1e3,
            taken=True,
            inputs_unchanged=self.client.inputs_unchanged(placed) if unchanged is None else unchanged,
            sample=self._sample,
            call_us=(taken.ended_ns - woken_ns) / 1e3,
        )

    def _read_again(self, age: int, pin: int | None) -> list[torch.Tensor]:
        held = self._recent[age] if pin is None else self._held_for_good[pin]
        if held.stretches is None:
            return super()._read_again(age, pin)
        return list(view_outputs(held.stretches, held.specs, self._device))

    def pin(self, outputs: FlatOutputs, views: frozenset[int] = frozenset()) -> None:
        self._require_distinct_pages(self._recent[0], views)
        if count_bytes(outputs.tensors) < LARGE_OUTPUT_BYTES:
            self._held_for_good.append(self._recent[0])
        super().pin(outputs, views)

    def _require_distinct_pages(self, held: _Held, views: frozenset[int]) -> None:
        """Raises CandidateFailure (wrong_value) if parts of an output are the same memory at several addresses."""
        for at, stretch in enumerate(held.stretches or ()):
            if at not in views and repeats_memory(view_bytes(stretch, self._device)):
                raise CandidateFailure.of_check(Outcome.WRONG_VALUE, "alias_output", REPEATED_PAGES)

    def _take_known(self, usual: Called, addresses: tuple[int, ...]) -> _Taken | None:
        if len(addresses) != len(usual.specs):
            return None
        stretches = self._locate(usual.specs, addresses)
        return None if stretches is None else self._copy_from(stretches, _Held(usual.specs, stretches))

    def _take_anew(self, called: Called, placed: PlacedInputs) -> _Taken:
        for spec, address in zip(called.specs, called.addresses, strict=True):
            if storage_bytes(spec):
                self._memory.map(address, storage_bytes(spec))
        stretches = self._locate(called.specs, called.addresses)
        if stretches is not None:
            return self._copy_from(stretches, _Held(called.specs, stretches))
        unchanged = self.client.inputs_unchanged(placed)  # outputs may overwrite them
        self.client.store(self._footprint.output)
        specs = self._footprint.output_specs
        stored = [Stretch(self._arena.address + spec.offset, storage_bytes(spec)) for spec in specs]
        return self._copy_from(stored, _Held(specs, None), unchanged)

    def _copy_from(self, stretches: Sequence[Stretch], held: _Held, unchanged: bool | None = None) -> _Taken:
        """Copy in random order. The window ends with the last copy."""
        order = self._source.sample(range(len(stretches)), len(stretches))
        views = list(view_outputs(stretches, held.specs, self._device))
        copies = {index: self._copy(index, views[index]) for index in order}
        self._device.synchronize()
        ended_ns = time.monotonic_ns()
        return _Taken(tuple(copies[index] for index in range(len(views))), ended_ns, held, unchanged)

    def _locate(self, specs: Sequence[TensorSpec], addresses: Sequence[int]) -> tuple[Stretch, ...] | None:
        stretches = []
        for spec, address in zip(specs, addresses, strict=True):
            size_bytes = storage_bytes(spec)
            found = self._memory.locate(address, size_bytes) if size_bytes else Stretch(0, 0)
            if found is None:
                return None
            stretches.append(found)
        return tuple(stretches)


def require_quiet(device: Device) -> None:
    """Raises CandidateFailure (suspect) if the device stays busy."""
    if not device.await_quiet(QUIET_S):
        message = f"its work on the device still ran {QUIET_S:g} s after its call"
        raise CandidateFailure.of_check(Outcome.SUSPECT, "device_busy", message)


def _outlasts_hold(call_us: float | None) -> bool:
    """A call that takes little longer than the hold of other streams has waited for one, or was interrupted."""
    return call_us is not None and HELD_US < call_us < LONGEST_INTERRUPTED * HELD_US


def shift_inputs(placed: PlacedInputs, by_bytes: int) -> PlacedInputs:
    return replace(placed, specs=tuple(replace(spec, offset=spec.offset + by_bytes) for spec in placed.specs))


def _is_as_described(called: Called, usual: Called, addresses: Sequence[int]) -> bool:
    return (called.specs, called.tree, called.addresses) == (usual.specs, usual.tree, tuple(addresses))
