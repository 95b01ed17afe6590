"""The worker's main loop: one `do_` method per command of the evaluator. The evaluator trusts no answer."""

import gc
import importlib.util
import json
import os
import re
import sys
import time
import traceback
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from harness.construction.calls import make_call
from harness.construction.weights import (
    ConstantWeights,
    DrawOnDevice,
    list_lazy,
    run_with_default,
    seed_generators,
)
from harness.domain import WorkerLost
from harness.protocol import GO, Channel, TensorSpec, add_state, count_kept_calls, flatten_value, rebuild_value
from harness.protocol.channel import PROGRAM_FILE, Doorbell, WorkerReply
from harness.protocol.descriptors import close_all
from harness.worker import compiled_files
from harness.worker.emulated.link import EmulatorLink
from harness.worker.instrumentation import Observer
from harness.worker.languages import Preparation, prepare_languages
from harness.worker.load_inline_hook import LoadInlineHook
from harness.worker.memory import (
    HeldState,
    SharedMemory,
    Window,
    WrongOutputs,
    address_of,
    count_released_bytes,
    describe,
    export_pages,
    read_outputs,
    require_dense,
)
from harness.worker.recorder.driver_calls import CallRecorder, NotRecordable
from harness.worker.recorder.replayer import ReplayServer
from harness.worker.triton_compilations import add_compilations

MODULE_NAME = "candidate"
COMPILED = "compiled"  # folder
MAX_TEXT = 4000
WAKING_ELEMENTS = 1 << 15  # per thread; makes torch use one more


def run_worker(evaluator: Channel, *, scratch: str, level: str) -> None:
    worker = Worker(evaluator, Path(scratch))
    evaluator.send({"kind": WorkerReply.UP, "level": level})
    while True:
        try:
            message, descriptors = evaluator.receive()
        except WorkerLost:
            return
        answer = _answer(worker, message, descriptors)
        shared = answer.pop("descriptors", ())
        evaluator.send(answer, shared)
        close_all(shared)


def _answer(worker: "Worker", message: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
    try:
        command = f"do_{message['kind']}"
        answer = getattr(worker if hasattr(worker, command) else worker.replays, command)(message, *descriptors)
    except WorkerLost:
        raise
    except BaseException as error:  # noqa: BLE001 - candidates may raise anything, SystemExit too
        text = "".join(traceback.format_exception(error))
        out_of_memory = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in text
        return {
            "kind": WorkerReply.FAILED,
            "error": type(error).__name__,
            "message": str(error)[:MAX_TEXT],
            "traceback": text[-MAX_TEXT:],
            "out_of_memory": out_of_memory,
            "wrong_outputs": isinstance(error, WrongOutputs),
        }
    return {"kind": message["kind"], **(answer or {})}


class Worker:
    def __init__(self, evaluator: Channel, scratch: Path) -> None:
        self._evaluator = evaluator
        self._scratch = scratch
        self._outputs: deque[list[torch.Tensor]] = deque([[], []])  # of recent calls, newest first
        self._pins: list[list[torch.Tensor]] = []  # kept until the end
        self._emulators = EmulatorLink()
        self._place_on_device: Callable[[list[torch.Tensor]], None] = lambda _: None  # for the emulated device
        self._target: dict[str, Any] | None = None  # the emulated GPU
        self.replays = ReplayServer()

    def do_warm(self, message: dict[str, Any]) -> None:
        device = torch.device(message["device"])
        torch.ones(1, device=device)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    def do_settle(self, message: dict[str, Any], descriptor: int, doorbell: int | None = None) -> dict[str, Any]:
        self._cores = os.sched_getaffinity(0)
        self._device = torch.device(message["device"])
        self._memory = SharedMemory(descriptor, message["size_bytes"], self._device)
        self._most_kept = message["most_kept"]
        torch.set_num_threads(message["threads"])
        if self._device.type == "cpu":
            _spread_threads()
        allowed = message["allow_tf32"]
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed
        if doorbell is not None:
            self._window = Window(doorbell, self._device)
        else:
            self._waking = torch.ones(message["threads"] * WAKING_ELEMENTS)
        self._seen_device = self._device  # as seen by the candidate
        if message.get("emulates") is not None:
            self._emulate(message["emulates"])
        return {"address": self._memory.address}

    def do_start(self, message: dict[str, Any]) -> None:
        compiles = message["mode"] in ("compile", "compile_all")
        self._observer = Observer("plain" if compiles else message["mode"], self._scratch)
        LoadInlineHook(self._evaluator, self._scratch, self._observer, self._emulators).install()
        compiled_files.place(self._scratch / COMPILED, message["compiled"])
        preparation = Preparation(
            observer=self._observer,
            link=self._emulators,
            target=self._target,
            compiles=compiles,
            compiles_all=message["mode"] == "compile_all",
        )
        prepare_languages(message["languages"], preparation)
        self._observer.watch_compiled_graphs()
        module = self._import_source(message["source"])
        entry = getattr(module, message["entry"], None)
        if not isinstance(entry, type):
            raise AttributeError(f"the program defines no class {message['entry']}")
        self._entry = entry

    def do_construct(self, message: dict[str, Any]) -> dict[str, Any]:
        own = [view.clone() for view in self._receive_tensors(message)]  # the module may keep them
        self._place_on_device(own)
        arguments = rebuild_value(message["tree"], own)
        on_gpu = self._device.type == "cuda"
        constants = ConstantWeights(message["seed"], [(size, value) for size, value in message["constants"]])
        draws = DrawOnDevice(self._device) if on_gpu else nullcontext()

        def construct(default: torch.device) -> Any:
            seed_generators(message["seed"], self._seen_device)
            with default, draws, constants.replaced():
                return self._entry(*arguments)

        model = run_with_default(self._seen_device, construct)
        _refuse_lazy(model)
        constants.replace_in(model)
        constants.search(model)
        dtype = getattr(torch, message["dtype"]) if message["dtype"] else None
        self._model = model.to(device=self._seen_device, dtype=dtype).train(message["training"])
        self._model.requires_grad_(False)
        mode = message["compile_mode"]
        forward = torch.compile(self._model, mode=mode) if mode else self._model
        self._forward = make_call(message["call"], forward, self._model, message["returned_inputs"], message["frozen"])
        self._plain_forward = self._forward
        self._state = HeldState(self._model, ())
        if self._device.type == "cuda":
            _freeze_garbage()  # prevents that collections reveal which calls are timed
        state = {name: tensor for name, tensor in self._model.state_dict().items() if torch.is_tensor(tensor)}
        return {"state": [[name, describe(tensor).to_json()] for name, tensor in state.items()]}

    def do_dump_state(self, message: dict[str, Any]) -> dict[str, Any]:
        state = self._model.state_dict()
        tensors = [state[name] for name in message["names"]]
        specs = self._memory.store(tensors, message["offset"], message["size_bytes"])
        self._synchronize()
        return {"specs": [spec.to_json() for spec in specs]}

    def do_load_state(self, message: dict[str, Any]) -> None:
        """Load weights through `load_state_dict`, whose hooks may repack them."""
        state = self._model.state_dict()
        # Tensors made in inference mode can be written only there.
        is_inference = any(tensor.is_inference() for tensor in state.values() if torch.is_tensor(tensor))
        state.update({name: self._memory.view(TensorSpec.from_json(spec)) for name, spec in message["entries"]})
        with torch.inference_mode() if is_inference else torch.no_grad():
            self._model.load_state_dict(state, strict=False)
        self._synchronize()

    def do_hold_state(self, message: dict[str, Any]) -> None:
        """Calls then begin with given values of this state and return copies of it."""
        entries = [(name, own, TensorSpec.from_json(spec)) for name, own, spec in message["entries"]]
        self._state = HeldState(self._model, entries)

    def do_call(self, message: dict[str, Any]) -> dict[str, Any]:
        """Answer `armed`; after GO make the call and answer `called`, otherwise `disarmed`.

        Between GO and the clock's start only the given state is copied.
        """
        views = self._receive_call(message)
        self._forget_outputs()
        with torch.no_grad():
            self._pin_to_core()
            self._wake()
            self._evaluator.send({"kind": WorkerReply.ARMED})
            signal = self._evaluator.await_signal()
            self._unpin()
            if signal != GO:
                return {"kind": WorkerReply.DISARMED}
            inputs, state = self._divide(message, views, self._evaluator.await_words(message["words"]))
            loading_ns = time.perf_counter_ns()
            self._state.load(state)
            began_ns = time.perf_counter_ns()
            result = self._forward(*inputs)
            self._synchronize()
            reported_ns = time.perf_counter_ns() - began_ns
        described = self._describe_call(reported_ns, *read_outputs(result), self._state.copy())
        return described | {"kind": WorkerReply.CALLED, "loading_ns": began_ns - loading_ns if state else 0}

    def do_window(self, message: dict[str, Any]) -> dict[str, Any]:
        """The signal carries the place of inputs and state, and values among inputs."""
        specs = [TensorSpec.from_json(spec) for spec in message["specs"]]
        empty = self._memory.prepare(specs)
        self._forget_outputs()
        gc.collect(1)

        def place_inputs(bell: Doorbell) -> tuple[Any, list[list[torch.Tensor]]]:
            tensors = self._memory.fill(empty, specs, bell.read_shift())
            return self._divide(message, tensors, bell.read_words(message["words"]))

        self._unpin()
        self._evaluator.send({"kind": WorkerReply.ARMED})
        with torch.no_grad():
            call = self._window.await_call(self._forward, place_inputs, self._state)
        if call is None:
            return {"kind": WorkerReply.DISARMED}
        released_bytes = count_released_bytes(self._device)
        described = self._describe_call(call.reported_ns, call.tree, call.tensors, call.state)
        return described | {"kind": WorkerReply.CALLED, "released_bytes": released_bytes}

    def do_record(self, message: dict[str, Any]) -> dict[str, Any]:
        specs = [TensorSpec.from_json(spec) for spec in message["specs"]]
        inputs, parts = self._divide(message, self._memory.fill(self._memory.prepare(specs), specs, 0))
        self._outputs = deque([[], []])
        begins: list[torch.Tensor] = []
        torch.cuda.empty_cache()  # less memory to map elsewhere

        def reset() -> None:
            self._state.load(parts)
            begins[:] = self._state.read()
            self._synchronize()

        try:
            recorder = CallRecorder(str(self._scratch))
            with torch.no_grad():
                outputs, recording, descriptors = recorder.record(reset, lambda: read_outputs(self._forward(*inputs)))
        except NotRecordable as reason:
            return {"unsupported": [str(reason)]}
        add_compilations(descriptors[0], [one["name"] for one in recording["functions"]])
        described = self._describe_call(1, outputs[0], outputs[1], self._state.read())
        facts = {name: recording[name] for name in ("memory", "unsupported", "has_fixed_addresses")}
        facts["is_parallel"] = len(recording["streams"]) > 1 or bool(recording["graphs"])
        facts["state"] = [one.data_ptr() if one.is_contiguous() else 0 for one in begins]
        return described | facts | {"descriptors": descriptors}

    def do_export(self, message: dict[str, Any]) -> dict[str, Any]:
        pages = export_pages(message["address"])
        descriptors = [descriptor for _, _, descriptor in pages]
        return {"pages": [page[:2] for page in pages], "descriptors": descriptors}

    def _describe_call(
        self, reported_ns: int, tree: dict[str, Any], tensors: list[torch.Tensor], state: list[torch.Tensor]
    ) -> dict[str, Any]:
        require_dense(tensors)
        if state:
            tree = add_state(tree, len(tensors), self._state.names)
            tensors = [*tensors, *state]
        self._outputs.appendleft(tensors)
        outputs = [_describe_output(tensor) for tensor in tensors]
        return {"reported_ns": reported_ns, "tree": tree, "outputs": outputs}

    def do_store(self, message: dict[str, Any]) -> None:
        """Copy the outputs of the last call, of the call `age` earlier, or pinned ones."""
        self._pin_to_core()
        tensors = self._outputs[message["age"]] if message["pin"] is None else self._pins[message["pin"]]
        self._memory.store(tensors, message["offset"], message["size_bytes"])
        self._synchronize()
        self._unpin()

    def do_pin(self, _: dict[str, Any]) -> None:
        self._pins.append(self._outputs[0])

    def do_profile(self, message: dict[str, Any]) -> dict[str, Any]:
        inputs, state = self._divide(message, self._receive_call(message))

        def call() -> None:
            self._forward(*inputs)
            self._synchronize()

        with torch.no_grad():
            self._state.load(state)
            return self._observer.profile(call, self._device)

    def do_describe_ablation(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"everything": self._observer.ablates_everything()}

    def do_configure_emulators(self, message: dict[str, Any]) -> None:
        """`own_inputs` copies each call's inputs: adjacent ones in shared memory hide out-of-bounds accesses."""
        self._emulators.configure(message["settings"])
        if message["own_inputs"]:

            def call(*inputs: Any) -> Any:
                tree, tensors = flatten_value(inputs, torch.is_tensor)
                return self._plain_forward(*rebuild_value(tree, [tensor.clone() for tensor in tensors]))

            self._forward = call

    def do_take_kernel_findings(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"findings": self._emulators.take_findings()}

    def do_read_compiled(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"files": compiled_files.read(self._scratch / COMPILED)}

    def do_compile_again(self, message: dict[str, Any]) -> dict[str, Any]:
        os.sched_setaffinity(0, message["cores"])
        compiled_files.place(self._scratch / COMPILED, {})
        from harness.worker.triton_rebuild import compile_again  # imports Triton

        return {"code": b64encode(compile_again(json.loads(message["description"]))).decode()}

    def do_collect(self, _: dict[str, Any]) -> None:
        """Collect garbage between blocks, so that it does not happen inside a timed call."""
        _freeze_garbage()

    def _emulate(self, emulates: dict[str, Any]) -> None:
        from harness.worker.emulated.cuda import install
        from harness.worker.emulated.tensors import GPU, mark_as_gpu

        install(emulates["target"])
        self._target = emulates["target"]
        self._seen_device, self._place_on_device = GPU, mark_as_gpu
        self._emulators.configure(emulates["settings"])

    def _seed_call(self, seed: int) -> None:
        torch.default_generator.manual_seed(seed)
        if self._device.type == "cuda":
            torch.cuda.manual_seed_all(seed)

    def _forget_outputs(self) -> None:
        """Releasing them after the call would delay the answer."""
        last = self._outputs[0] if self._outputs else []
        size_bytes = sum(tensor.numel() * tensor.element_size() for tensor in last)
        del last
        while len(self._outputs) >= count_kept_calls(size_bytes, self._most_kept):
            self._outputs.pop()

    def _receive_call(self, message: dict[str, Any]) -> list[torch.Tensor]:
        """Return views of memory that is written before GO, as inputs and state."""
        views = self._receive_tensors(message)
        self._place_on_device(views)
        return views

    def _receive_tensors(self, message: dict[str, Any]) -> list[torch.Tensor]:
        return [self._memory.view(TensorSpec.from_json(spec)) for spec in message["specs"]]

    def _divide(
        self, message: dict[str, Any], tensors: list[torch.Tensor], words: Sequence[int] = ()
    ) -> tuple[Any, list[list[torch.Tensor]]]:
        """Return inputs and parts of the state. `words` are the seed of a call that has one, and values."""
        if message.get("seeded") and words:
            self._seed_call(words[0])
            words = words[1:]
        first = len(tensors) - message["state_tensors"]
        return rebuild_value(message["tree"], tensors[:first], words=words), self._state.split(tensors[first:])

    def _import_source(self, source: str) -> Any:
        path = self._scratch / PROGRAM_FILE
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[MODULE_NAME] = module
        spec.loader.exec_module(module)
        return module

    def _wake(self) -> None:
        """Threads that have slept are slow at first."""
        self._waking.add_(1.0)

    def _pin_to_core(self) -> None:
        """Use the core without torch's threads (see `_spread_threads`): waking beside a spinning one is slow."""
        self._cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(self._cores)})

    def _unpin(self) -> None:
        os.sched_setaffinity(0, self._cores)

    def _synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        elif self._seen_device.type == "cuda":
            self._emulators.raise_error()


def _refuse_lazy(model: torch.nn.Module) -> None:
    if lazy := list_lazy(model):
        why = "so they cannot get the reference's values; set their sizes in __init__"
        raise TypeError(f"the weights {', '.join(lazy[:5])} have no shape until the first call (lazy modules), {why}")


def _describe_output(tensor: torch.Tensor) -> list[Any]:
    return [describe(tensor).to_json(), str(tensor.device), address_of(tensor)]


def _freeze_garbage() -> None:
    gc.collect()
    gc.freeze()
    gc.disable()


def _spread_threads() -> None:
    """Pin each of torch's threads to a core, leaving the first core to the calling thread.

    The scheduler tends to wake a short-lived thread on its waker's core, which doubles its time. The candidate's
    threads run anywhere.
    """
    before = _thread_ids()
    torch.ones(torch.get_num_threads() * WAKING_ELEMENTS).add_(1.0)
    cores = sorted(os.sched_getaffinity(0))[1:]
    for thread, core in zip(sorted(_thread_ids() - before), cores, strict=False):
        os.sched_setaffinity(thread, {core})


def _thread_ids() -> set[int]:
    """Return ids in this PID namespace; /proc may show an outer one."""
    states = (entry / "status" for entry in Path("/proc/self/task").iterdir())
    return {int(re.search(r"^NSpid:.*?(\d+)$", state.read_text(), re.MULTILINE)[1]) for state in states}  # type: ignore[index]
