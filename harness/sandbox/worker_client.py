"""The judge's side of the conversation with one worker. Everything that comes back is checked before it is used.

A worker that fails, dies, is late or breaks the protocol raises CandidateFailure, which is the judge's own way to carry
a verdict up to `harness.evaluation.evaluator`; it never leaves this room.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from harness.domain import (
    Finding,
    HarnessError,
    Outcome,
    WireError,
    WorkerLost,
    WorkerTimeout,
)
from harness.protocol import (
    GO,
    REST,
    Doorbell,
    Region,
    Signal,
    TensorSpec,
    flatten_value,
    make_doorbell,
    place_contiguous,
    storage_bytes,
)
from harness.protocol.tensor_layout import MOST_KEPT, place_strided
from harness.sandbox.build_requests import AnswerBuild, BuildDesk
from harness.sandbox.devices import SharedArena
from harness.sandbox.failure import CandidateFailure, explain_failure, protocol_failure
from harness.sandbox.memory_probe import Place
from harness.sandbox.replies import parse_outputs, parse_pages, parse_spec, read_list, read_pairs
from harness.sandbox.seeding import read_seed
from harness.sandbox.tensors.outputs import has_same_bits
from harness.sandbox.worker_process import StillRunning, Stopped, WorkerProcess

EXIT_GRACE_S = 2.0  # for a worker that closed its line: the way it ends says why
MAX_CLAIM_NS = 10**15
BETWEEN_CALLS_S = 0.2  # memory is looked after more often while a call takes longer
WORD_BYTES = 8
LOOKS = 4000  # at the doorbell between two looks at everything else: about 0.2 ms

# What the worker was doing, by the answer that was due.
STEPS = {
    "settled": "start", "ready": "start", "constructed": "construct",
    "armed": "call", "disarmed": "call", "called": "call", "returned": "call", "exported": "sharing outputs",
    "dumped": "reading weights", "loaded": "loading weights",
    "recopied": "copying outputs", "pinned": "keeping outputs", "collected": "collecting", "profiled": "profiling",
    "ablation": "describing the ablation", "configured": "configuring emulators",
    "kernel_findings": "telling what was found in kernels",
}  # fmt: skip
Mode = Literal["plain", "profile", "ablate"]  # see `harness.worker.instrumentation`


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedInputs:
    """The arguments of a call as they lie in shared memory, and the judge's own copies of the tensors. `seed`: what
    the worker sets torch to before the call; None: nothing."""

    tree: dict[str, Any]
    specs: tuple[TensorSpec, ...]
    tensors: tuple[Tensor, ...]
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A worker's answer to one call: its own time, when the answer was there, and what the outputs are.

    `specs` have the strides that the outputs have in the worker; `addresses` are where they lie there.
    """

    claim_us: float
    at_ns: int  # the judge's clock, which is the same in all of our processes
    tree: dict[str, Any]
    specs: tuple[TensorSpec, ...]
    devices: tuple[str, ...]
    addresses: tuple[int, ...]
    released_bytes: int = 0  # of device memory, given back by the worker so far


class WorkerClient:
    """Commands to one worker. Without `answer_build` the program is our own: its failures are HarnessErrors."""

    def __init__(self, worker: WorkerProcess, arena: SharedArena, answer_build: AnswerBuild | None) -> None:
        self._worker = worker
        self._arena = arena
        self._desk = None if answer_build is None else BuildDesk(worker, answer_build)
        self._arrived_ns = 0  # when the last answer was there, before anything was done with it
        self._bell: Doorbell | None = None  # on a GPU
        self._early: dict[str, Any] | None = None  # the description of a call that came while its answer was awaited
        self.arena_address = 0  # of the arena on a GPU, as the worker has it

    def start(
        self,
        source: str,
        entry: str,
        *,
        device: str,
        threads: int,
        allow_tf32: bool,
        timeout_s: float,
        mode: Mode = "plain",
        emulates: dict[str, Any] | None = None,
        most_kept: int = MOST_KEPT,
    ) -> None:
        """Imports a program, which may ask for builds. Raises CandidateFailure (load_error, ...). `emulates`: see
        `JudgeDevice.describe_emulation`; `most_kept`: see `Footprint`."""
        message = {
            "kind": "settle", "device": device, "threads": threads, "allow_tf32": allow_tf32,
            "size_bytes": self._arena.size_bytes, "emulates": emulates, "most_kept": most_kept,
        }  # fmt: skip
        with ExitStack() as stack:
            descriptors = [self._arena.descriptor]
            if device.startswith("cuda"):
                descriptors.append(make_doorbell())
                stack.callback(os.close, descriptors[1])
                self._bell = Doorbell(descriptors[1])
            answer = self._ask(message, "settled", Outcome.LOAD_ERROR, timeout_s, tuple(descriptors))
        self.arena_address = int(answer["address"])  # nothing of a candidate has run yet
        self._worker.find_itself()
        message = {"kind": "start", "source": source, "entry": entry, "mode": mode}
        self._ask(message, "ready", Outcome.LOAD_ERROR, timeout_s)

    def construct(
        self, seed: int, init_inputs: Sequence[Any], *, compiled: bool, training: bool, timeout_s: float
    ) -> dict[str, TensorSpec]:
        """Builds the module under a seed, in training or evaluation mode; its state dict's names with shapes and
        dtypes."""
        placed = self.place(tuple(init_inputs))
        message = {
            "kind": "construct", "seed": seed, "compiled": compiled, "training": training, **_value_message(placed),
        }  # fmt: skip
        answer = self._ask(message, "constructed", Outcome.LOAD_ERROR, timeout_s)
        return {str(name): parse_spec(spec) for name, spec in read_pairs(answer.get("state"))}

    def read_state(self, names: Sequence[str], expected: Sequence[TensorSpec], *, timeout_s: float) -> list[Tensor]:
        """The tensors of those names, as the arena's views: copy what is to be kept."""
        message = {"kind": "dump_state", "names": list(names), "offset": 0, "size_bytes": self._arena.size_bytes}
        answer = self._ask(message, "dumped", Outcome.RUNTIME_ERROR, timeout_s)
        specs = tuple(parse_spec(spec) for spec in read_list(answer.get("specs")))
        if specs != place_contiguous(expected)[0]:
            changed = "its weights have other shapes or dtypes than after construction"
            finding = Finding(check="state", severity="fatal", message=changed)
            raise CandidateFailure(Outcome.WRONG_VALUE, changed, (finding,))
        return [self._arena.view(spec) for spec in specs]

    def write_state(self, state: dict[str, Tensor], *, only_copies: bool, timeout_s: float) -> None:
        """`only_copies`: straight into the tensors, and not the way in which users load weights."""
        placed = self.place(tuple(state.values()))
        entries = [[name, spec.to_json()] for name, spec in zip(state, placed.specs, strict=True)]
        message = {"kind": "load_state", "entries": entries, "only_copies": only_copies}
        self._ask(message, "loaded", Outcome.RUNTIME_ERROR, timeout_s)

    def lay_out(self, values: Sequence[Any]) -> PlacedInputs:
        """Where the tensors of some arguments are to lie, from the beginning of the arena, with their own strides."""
        tree, tensors = flatten_value(tuple(values), torch.is_tensor)
        specs, _ = place_strided([describe(tensor) for tensor in tensors])
        return PlacedInputs(tree=tree, specs=specs, tensors=tuple(tensors), seed=read_seed(values))

    def write(self, placed: PlacedInputs) -> None:
        for spec, tensor in zip(placed.specs, placed.tensors, strict=True):
            self._storage_bytes(spec).copy_(flat_bytes(tensor))

    def place(self, values: Sequence[Any]) -> PlacedInputs:
        """Lays arguments out and writes them."""
        placed = self.lay_out(values)
        self.write(placed)
        return placed

    def inputs_unchanged(self, placed: PlacedInputs) -> bool:
        """Whether the arena still holds, bit for bit, what `place` wrote."""
        pairs = zip(placed.specs, placed.tensors, strict=True)
        return all(_are_same(self._storage_bytes(spec), flat_bytes(tensor)) for spec, tensor in pairs)

    def arm(self, placed: PlacedInputs, *, timeout_s: float) -> None:
        """Tells the worker where the inputs of the next call will lie, and has it wake its threads and its device and
        wait for a signal: to `go` or to `disarm`."""
        self._ask(
            {"kind": "call", "seed": placed.seed, **_value_message(placed)}, "armed", Outcome.RUNTIME_ERROR, timeout_s
        )

    def disarm(self, *, timeout_s: float) -> None:
        self._ask(REST, "disarmed", Outcome.RUNTIME_ERROR, timeout_s)

    def tell_go(self, *, timeout_s: float) -> int:
        """Has an armed worker, which may be stopped, make the call; the judge's clock then, in ns. `await_called` comes
        next."""
        self._arena.synchronize()
        began_ns = time.monotonic_ns()
        self._tell(GO, "called", Outcome.RUNTIME_ERROR, timeout_s)
        return began_ns

    def await_called(self, *, timeout_s: float, stop: bool = False) -> Called:
        """What the worker says when it is done. `stop`: it is stopped the moment that it says so, for `pause` or
        `let_go` to follow."""
        answer, self._early = self._early or self._hear("called", Outcome.RUNTIME_ERROR, timeout_s, stop=stop), None
        claim_ns, released_bytes = answer.get("claim_ns"), answer.get("released_bytes", 0)
        if type(claim_ns) is not int or not 0 < claim_ns < MAX_CLAIM_NS or type(released_bytes) is not int:
            raise protocol_failure("an answer has no time, or an absurd one")
        outputs = parse_outputs(answer)
        return Called(claim_us=claim_ns / 1e3, at_ns=self._arrived_ns, released_bytes=released_bytes, **outputs)

    def arm_window(self, placed: PlacedInputs, *, timeout_s: float) -> None:
        """On a GPU: tells the worker where the inputs of the next call will lie, and has it watch the doorbell."""
        self._ask(
            {"kind": "window", "seed": placed.seed, **_value_message(placed)}, "armed", Outcome.RUNTIME_ERROR, timeout_s
        )

    def ring(self, kind: Signal, shift_bytes: int = 0, *, timeout_s: float) -> None:
        """Gives a signal to a worker that watches the doorbell, and returns when it has been obeyed. Time spent
        building is not counted. `shift_bytes`: with GO, how much further on than announced the inputs lie."""
        if self._bell is None:
            raise HarnessError("a worker without a doorbell cannot make a call in a window")
        signal, deadline_s = self._bell.ring(kind, shift_bytes), time.monotonic() + timeout_s
        with self._explaining("called", Outcome.RUNTIME_ERROR, timeout_s):
            while not self._bell.has_answered(signal, looks=LOOKS):
                self._watch_memory(BETWEEN_CALLS_S)
                if self._worker.line.is_readable():
                    deadline_s += self._answer_within_call(timeout_s)
                if time.monotonic() > deadline_s:
                    raise WorkerTimeout("the doorbell was not answered")

    def _answer_within_call(self, timeout_s: float) -> float:
        """Reads what a worker says in the middle of a call: that it failed, that it is over, or what it needs to have
        built. The seconds that building took."""
        message, began_s = self._receive(timeout_s), time.monotonic()
        if message["kind"] == "build":
            self._build(message)
            return time.monotonic() - began_s
        if message["kind"] == "failed":
            raise explain_failure(message, Outcome.RUNTIME_ERROR)
        if message["kind"] != "called" or self._early is not None:
            raise protocol_failure(f"within a call came {message['kind']!r}")
        self._early = message
        return 0.0

    def read_addresses(self) -> tuple[int, ...]:
        """Where the outputs of the call lie that was just made in a window, as the worker has it."""
        return () if self._bell is None else self._bell.read_call()

    def export_pages(self, address: int, *, timeout_s: float) -> list[tuple[int, int, int]]:
        """Consecutive pages of the worker's device memory from the one on in which `address` lies: (first address,
        size in bytes, descriptor, which the caller closes). None if they cannot be shared."""
        self._tell({"kind": "export", "address": address}, "exported", Outcome.RUNTIME_ERROR, timeout_s)
        with self._explaining("exported", Outcome.RUNTIME_ERROR, timeout_s):
            answer, descriptors = self._worker.line.receive(timeout_s=timeout_s)
            try:
                if answer["kind"] == "failed":
                    raise explain_failure(answer, Outcome.RUNTIME_ERROR)
                if answer["kind"] != "exported":
                    raise protocol_failure(f"expected the answer 'exported', found {answer['kind']!r}")
                pages = parse_pages(answer.get("pages"), len(descriptors))
            except BaseException:
                for descriptor in descriptors:
                    os.close(descriptor)
                raise
        return [(*page, descriptor) for page, descriptor in zip(pages, descriptors, strict=True)]

    def store(self, output: Region, *, timeout_s: float) -> int:
        """Has the outputs of the call copied to a place that the worker learns now; the judge's clock then, in ns."""
        message = {"kind": "store", "offset": output.offset, "size_bytes": output.size_bytes}
        self._ask(message, "returned", Outcome.RUNTIME_ERROR, timeout_s)
        return self._arrived_ns

    def pin(self, *, timeout_s: float) -> None:
        """Has the outputs of the last call kept for good."""
        self._ask({"kind": "pin"}, "pinned", Outcome.RUNTIME_ERROR, timeout_s)

    def recopy(self, output: Region, *, age: int = 0, pin: int | None = None, timeout_s: float) -> None:
        """Has the outputs of the last call, of one that was `age` calls before it, or of one of those that were pinned,
        copied to the arena again."""
        place = {"offset": output.offset, "size_bytes": output.size_bytes}
        message = {"kind": "recopy", "age": age, "pin": pin, **place}
        self._ask(message, "recopied", Outcome.RUNTIME_ERROR, timeout_s)

    def profile(self, inputs: Sequence[Any], *, timeout_s: float) -> dict[str, Any]:
        """What a worker in mode "profile" says of a few calls, unchecked: see `integrity.attribution`."""
        message = {"kind": "profile", **_value_message(self.place(tuple(inputs)))}
        return self._ask(message, "profiled", Outcome.RUNTIME_ERROR, timeout_s)

    def has_ablated_everything(self, *, timeout_s: float) -> bool:
        """Whether a worker in mode "ablate" took its effect from all of the candidate's own code."""
        answer = self._ask({"kind": "describe_ablation"}, "ablation", Outcome.RUNTIME_ERROR, timeout_s)
        return answer.get("everything") is True

    def check_kernels(self, settings: dict[str, Any], *, timeout_s: float, own_inputs: bool = True) -> None:
        """Changes how an emulated device runs kernels from now on. `own_inputs`: on inputs whose ends it knows; the
        module must have been constructed."""
        message = {"kind": "configure_emulators", "settings": settings, "own_inputs": own_inputs}
        self._ask(message, "configured", Outcome.RUNTIME_ERROR, timeout_s)

    def take_kernel_findings(self, *, timeout_s: float) -> object:
        """What an emulated device has noticed in kernels since the last time, unchecked."""
        message = {"kind": "take_kernel_findings"}
        return self._ask(message, "kernel_findings", Outcome.RUNTIME_ERROR, timeout_s).get("findings")

    def collect_garbage(self, *, timeout_s: float) -> None:
        self._ask({"kind": "collect"}, "collected", Outcome.RUNTIME_ERROR, timeout_s)

    def find_processes(self) -> None:
        """Notes what `stop_at_once`, and `go`, are to stop. The worker must be stopped."""
        self._worker.find_processes()

    def let_go(self) -> None:
        """Takes `stop_at_once` back."""
        self._worker.let_go()

    def pause(self, places: Sequence[Place] = ()) -> Stopped:
        """Stops the worker, and all that it started, until `resume`; what it has used so far, and what lies at these
        places in its memory."""
        return self.begin_pause(places)()

    def begin_pause(self, places: Sequence[Place] = ()) -> Callable[[], Stopped]:
        """The same, without waiting for it: the worker is stopped before anybody else is let go on after this. Gives
        what waits."""
        where = [(place.address, place.size_bytes) for place in places]
        finish = self._worker.begin_pause(where, uses_gpu=self._bell is not None)

        def await_stopped() -> Stopped:
            try:
                return finish()
            except StillRunning as error:
                finding = Finding(check="pause", severity="fatal", message=str(error))
                message = f"it does not let itself be stopped: {error}"
                raise CandidateFailure(Outcome.SUSPECT, message, (finding,)) from error

        return await_stopped

    def resume(self, core: int | None = None) -> None:
        """`core`: where its main thread goes on, until the worker takes that back for its next call in a window."""
        self._worker.resume(core)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing of the worker runs meanwhile, nor of what it started."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def forget_use(self) -> bool:
        """Begins to note what machine code of its own a stopped worker uses; False where that cannot be known."""
        return self._worker.forget_use()

    def count_used_bytes(self) -> int | None:
        """How much of it was used since; it must be stopped again."""
        return self._worker.count_used_bytes()

    def server_used_s(self) -> float:
        return self._worker.server_used_s()

    def _storage_bytes(self, spec: TensorSpec) -> Tensor:
        return self._arena.bytes_view(spec.offset, storage_bytes(spec))

    def _ask(
        self,
        message: dict[str, Any] | bytes,
        expected: str,
        failure: Outcome,
        timeout_s: float,
        descriptors: tuple[int, ...] = (),
    ) -> dict[str, Any]:
        """Sends a command or a signal; returns the answer, which must be of the expected kind."""
        self._tell(message, expected, failure, timeout_s, descriptors)
        return self._hear(expected, failure, timeout_s)

    def _tell(
        self,
        message: dict[str, Any] | bytes,
        expected: str,
        failure: Outcome,
        timeout_s: float,
        descriptors: tuple[int, ...] = (),
    ) -> None:
        with self._explaining(expected, failure, timeout_s):
            if isinstance(message, bytes):
                self._worker.line.send_signal(message, timeout_s=timeout_s)
                return
            self._watch_memory(BETWEEN_CALLS_S)
            self._arena.synchronize()  # what the judge wrote or still reads is done before the worker goes on
            self._worker.line.send(message, descriptors, timeout_s=timeout_s)

    def _hear(self, expected: str, failure: Outcome, timeout_s: float, *, stop: bool = False) -> dict[str, Any]:
        with self._explaining(expected, failure, timeout_s):
            answer = self._await_answer(timeout_s, stop=stop)
            if answer["kind"] == "failed":
                raise explain_failure(answer, failure)
            if answer["kind"] != expected:
                raise protocol_failure(f"expected the answer {expected!r}, found {answer['kind']!r}")
            return answer

    @contextmanager
    def _explaining(self, expected: str, failure: Outcome, timeout_s: float) -> Iterator[None]:
        """Raises what went wrong inside as the candidate's failure; our own program's is the harness's."""
        try:
            yield
            return
        except CandidateFailure as error:
            raised, cause = error, error.__cause__
        except WorkerTimeout as error:
            self._worker.end()
            message = f"no answer to {STEPS[expected]} within {timeout_s:g} s"
            raised, cause = CandidateFailure(Outcome.TIMEOUT, message), error
        except WorkerLost as error:
            raised, cause = self._explain_loss(STEPS[expected], failure), error
        except WireError as error:
            raised, cause = protocol_failure(str(error)), error
        if self._desk is None:
            raise HarnessError(f"the baseline failed: {raised.message}") from raised
        raise raised from cause

    def _await_answer(self, timeout_s: float, *, stop: bool) -> dict[str, Any]:
        """The next answer that is not a build request; time spent building is the judge's, not the candidate's. `stop`:
        the worker is stopped when it is there."""
        remaining_s = timeout_s
        while True:
            began_s = time.monotonic()
            answer = self._receive(remaining_s, stop=stop)
            if answer["kind"] != "build":
                return answer
            remaining_s = max(remaining_s - (time.monotonic() - began_s), 1.0)
            if stop:
                self._worker.let_go()
            self._build(answer)

    def _receive(self, timeout_s: float, *, stop: bool = False) -> dict[str, Any]:
        """The next message, whose descriptors are closed."""

        def on_arrival() -> None:
            self._arrived_ns = time.monotonic_ns()
            if stop:
                self._worker.stop_at_once()

        answer, descriptors = self._worker.line.receive(
            timeout_s=timeout_s, while_waiting=self._watch_memory, on_arrival=on_arrival
        )
        for descriptor in descriptors:
            os.close(descriptor)
        return answer

    def _build(self, request: dict[str, Any]) -> None:
        if self._desk is None:
            raise HarnessError("the baseline asked for an extension to be built; a reference is plain PyTorch")
        self._desk.answer(request)

    def _watch_memory(self, every_s: float = 0.0) -> None:
        """Ends a worker that takes more memory than it may; does nothing if somebody looked `every_s` ago or later."""
        overuse = self._worker.find_overuse(self._arena.descriptor, every_s)
        if overuse is not None:
            self._worker.end()
            raise CandidateFailure(Outcome.OUT_OF_MEMORY, overuse)

    def _explain_loss(self, command: str, failure: Outcome) -> CandidateFailure:
        status = self._worker.end(grace_s=EXIT_GRACE_S)
        printed = self._worker.printed().strip()
        words = f"; it printed: {printed[-1500:]}" if printed else ""
        if status is None:
            return CandidateFailure(failure, f"the process closed its line to the judge during {command}{words}")
        if status > 128:
            name = _signal_name(status - 128)
            # How the kernel ends a process when memory runs out; a candidate may also send it to itself.
            outcome = Outcome.OUT_OF_MEMORY if name == "SIGKILL" and self._worker.has_seen_oom_kill() else failure
            return CandidateFailure(outcome, f"the process was ended by {name} during {command}{words}")
        return CandidateFailure(failure, f"the process exited with code {status} during {command}{words}")


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"


def describe(tensor: Tensor) -> TensorSpec:
    """Shape, dtype and strides of one of the judge's own tensors."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorSpec(dtype=dtype, shape=tuple(tensor.shape), stride=tuple(tensor.stride()))


def flat_bytes(tensor: Tensor) -> Tensor:
    """The bytes of a strided tensor from its first to its last element, as uint8 without a copy."""
    size = storage_bytes(describe(tensor)) // tensor.element_size()
    return tensor.as_strided((size,), (1,)).view(torch.uint8)


def _are_same(found: Tensor, written: Tensor) -> bool:
    """Whether bytes are equal: word by word where they can be taken so, which is several times faster."""
    if found.device != written.device:
        return has_same_bits(found, written)
    if written.numel() % WORD_BYTES or written.data_ptr() % WORD_BYTES or found.data_ptr() % WORD_BYTES:
        return torch.equal(found, written)
    return torch.equal(found.view(torch.int64), written.view(torch.int64))


def _value_message(placed: PlacedInputs) -> dict[str, Any]:
    return {"tree": placed.tree, "specs": [spec.to_json() for spec in placed.specs]}
