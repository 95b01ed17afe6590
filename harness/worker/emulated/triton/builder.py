"""Checks every memory access in Triton's interpreter, which runs a kernel's operations one by one for all lanes."""

import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.compiler.compiler import make_backend
from triton.runtime.driver import driver
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from harness.worker.emulated.link import EmulatorLink
from harness.worker.emulated.triton import arithmetic
from harness.worker.emulated.triton.arithmetic import NotCovered
from harness.worker.emulated.triton.assembly import interpret
from harness.worker.emulated.triton.memory import Access, IllegalAccess, LaunchMemory, Turns, find_unwritten

_ACQUIRING = (ir.MEM_SEMANTIC.ACQUIRE, ir.MEM_SEMANTIC.ACQUIRE_RELEASE)
_RELEASING = (ir.MEM_SEMANTIC.RELEASE, ir.MEM_SEMANTIC.ACQUIRE_RELEASE)


class TimeLimit(RuntimeError): ...


@dataclass(frozen=True, slots=True)
class Results:
    handles: list[TensorHandle]

    def get_result(self, number: int) -> TensorHandle:
        return self.handles[number]


class CheckedBuilder(InterpreterBuilder):  # type: ignore[misc]
    """`memory`, `kernel`, `file` and `deadline_s` belong to the running launch."""

    def __init__(self, link: EmulatorLink) -> None:
        super().__init__()
        self.options = replace(
            make_backend(driver.active.get_current_target()).parse_options({}), sanitize_overflow=False
        )
        self.memory: LaunchMemory | None = None
        self.kernel = self.file = ""
        self.deadline_s = 0.0
        self.grid_idx: tuple[int, int, int] | None = None
        self.turns: Turns | None = None
        self._link = link
        self._ordered = False

    def report(
        self, check: str, message: str, *, lane: int | None = None, other: int = -1, decides: bool = True, line: int = 0
    ) -> None:
        line = line or _find_line(sys._getframe(1), self.file)
        block = list(self.grid_idx or (0, 0, 0))
        self._link.report({
            "check": check, "severity": "error" if decides else "warning",
            "message": message.replace("{other}", str(self.locate_program(other))),
            "file": self.file.rpartition("/")[2], "line": line, "kernel": self.kernel, "block": block,
            "thread": "" if lane is None else f"lane {lane}",
        })  # fmt: skip

    def locate_program(self, number: int) -> tuple[int, int, int]:
        _, ny, nz = self.grid_dim
        return number // (ny * nz), number // nz % ny, number % nz

    def __getattr__(self, name: str) -> Any:
        """Called for methods that the interpreter lacks."""
        if name.startswith("_") or not hasattr(ir.builder, name):
            raise AttributeError(name)
        if name.startswith("create_grid_dependency"):
            return lambda *_: None  # one launch after another
        return partial(self._covering, self._refuse, name)

    def _refuse(self, name: str, *_: Any) -> Any:
        raise NotCovered(f"{name.removeprefix('create_')} of Triton is not covered by the emulated device")

    def get_bf16(self, value: float) -> TensorHandle:
        return arithmetic.narrow(self.get_fp32(value))

    def get_all_ones_value(self, kind: Any) -> TensorHandle:
        return TensorHandle(~np.zeros(1, dtype=arithmetic.find_numpy_dtype(kind)), kind.scalar)

    def watch_time(self) -> None:
        if time.monotonic() > self.deadline_s:
            message = "the kernel exceeded its time limit; it may only be too slow for a CPU"
            self.report("time_limit", message)
            raise TimeLimit(message)

    def create_get_program_id(self, axis: int) -> TensorHandle:
        self.watch_time()
        return super().create_get_program_id(axis)

    def binary_op(self, lhs: TensorHandle, rhs: TensorHandle, op: Any) -> TensorHandle:
        self.watch_time()
        if arithmetic.is_bfloat16(lhs):
            return arithmetic.narrow(super().binary_op(arithmetic.widen(lhs), arithmetic.widen(rhs), op))
        if lhs.data.dtype == bool and op in (np.add, np.subtract):
            op = np.bitwise_xor  # modulo 2
        result = super().binary_op(lhs, rhs, op)
        # The interpreter gives comparisons the type of their operands, by which it broadcasts them.
        return TensorHandle(result.data, tl.int1) if result.data.dtype == bool else result

    def unary_op(self, arg: TensorHandle, op: Any) -> TensorHandle:
        if arithmetic.is_bfloat16(arg):
            return arithmetic.narrow(super().unary_op(arithmetic.widen(arg), op))
        return super().unary_op(arg, op)

    def create_fma(self, x: TensorHandle, y: TensorHandle, z: TensorHandle) -> TensorHandle:
        if arithmetic.is_bfloat16(z):
            return arithmetic.narrow(arithmetic.fuse(*map(arithmetic.widen, (x, y, z))))
        return arithmetic.fuse(x, y, z)

    def create_minnumf(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        """Ignores NaN, unlike Triton 3.6 and older."""
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(self, arg: TensorHandle, lo: TensorHandle, hi: TensorHandle, nans: Any) -> TensorHandle:
        if arithmetic.is_bfloat16(arg):
            return arithmetic.narrow(super().create_clampf(*map(arithmetic.widen, (arg, lo, hi)), nans))
        return super().create_clampf(arg, lo, hi, nans)

    def create_gather(self, src: TensorHandle, indices: TensorHandle, axis: int) -> TensorHandle:
        size, outside = src.data.shape[axis], indices.data.reshape(-1)
        if outside.min() < 0 or outside.max() >= size:
            message = f"gathers from index {outside[(outside < 0) | (outside >= size)][0]} of a block of {size}"
            self.report("out_of_bounds", message)
            raise IllegalAccess(message)
        return super().create_gather(src, indices, axis)

    def create_umulhi(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        return arithmetic.multiply_high(lhs, rhs)

    def create_histogram(self, data: TensorHandle, bins: int, mask: TensorHandle | None) -> TensorHandle:
        return arithmetic.count(data, bins, mask)

    def create_masked_load(
        self, ptrs: TensorHandle, mask: TensorHandle, other: Any, *how: Any, **named: Any
    ) -> TensorHandle:
        """`how` and `named` hold the cache policy (two arguments before Triton 3.9) and the volatile flag."""
        how = (*how, *named.values())
        access, is_volatile = self._find_access(ptrs, mask), how[-1]
        if access is not None:
            self._memory.note_load(access, ordered=self._ordered or is_volatile)
        loaded = super().create_masked_load(ptrs, mask, other, *how)
        if access is not None:
            self._find_uninitialised(loaded, mask, "reads")
            if self._ordered or is_volatile:
                self._let_others_run(access, loaded)
        return loaded

    def create_masked_store(
        self, ptrs: TensorHandle, value: TensorHandle, mask: TensorHandle, *how: Any, **named: Any
    ) -> Any:
        how = (*how, *named.values())
        access = self._find_access(ptrs, mask)
        if access is not None:
            old = super().create_masked_load(ptrs, mask, None, *how, False).data
            chosen = np.broadcast_to(mask.data, ptrs.data.shape)
            old, new = (_find_bits(one, chosen, old.dtype) for one in (old, value.data))
            self._memory.note_store(access, old != new, new, ordered=self._ordered)
        return super().create_masked_store(ptrs, value, mask, *how)

    def create_atomic_load(self, ptr: Any, mask: Any, sem: Any, scope: Any) -> TensorHandle:
        return self._in_order(super().create_atomic_load, ptr, mask, mask, sem, scope)

    def create_atomic_store(self, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        return self._in_order(super().create_atomic_store, ptr, mask, val, mask, sem, scope)

    def create_atomic_rmw(self, operation: Any, ptr: Any, val: Any, mask: Any, *how: Any) -> TensorHandle:
        access = self._note_atomic(ptr, mask, how[0])
        if arithmetic.is_bfloat16(val) and operation == ir.ATOMIC_OP.FADD:
            old = arithmetic.add_bfloat16(ptr, val, mask)
        elif operation == ir.ATOMIC_OP.XCHG and val.dtype.scalar.is_floating():
            bits = TensorHandle(val.data.view(f"i{val.data.dtype.itemsize}"), val.dtype)
            found = super().create_atomic_rmw(operation, ptr, bits, mask, *how)
            old = TensorHandle(found.data.view(val.data.dtype), val.dtype.scalar)
        else:
            old = super().create_atomic_rmw(operation, ptr, val, mask, *how)
        return self._check_old(access, old, mask)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> TensorHandle:
        every = TensorHandle(np.ones_like(ptr.data, dtype=bool), tl.int1)
        access = self._note_atomic(ptr, every, sem)
        return self._check_old(access, super().create_atomic_cas(ptr, cmp, val, sem, scope), every)

    def create_descriptor_reduce(self, kind: Any, descriptor: Any, value: TensorHandle, indices: Any) -> None:
        places, inside = descriptor.materialize_pointers(indices)
        is_float, is_unsigned = value.dtype.scalar.is_floating(), value.dtype.scalar.is_int_unsigned()
        names = {"ADD": "FADD"} if is_float else {"MIN": "UMIN", "MAX": "UMAX"} if is_unsigned else {}
        operation = getattr(ir.ATOMIC_OP, names.get(kind.name, kind.name))
        mask = inside if isinstance(inside, TensorHandle) else TensorHandle(inside, tl.int1)  # before Triton 3.9
        self.create_atomic_rmw(operation, places, value, mask, ir.MEM_SEMANTIC.RELAXED, ir.MEM_SYNC_SCOPE.GPU)

    def create_barrier(self) -> None:
        self._memory.program.barrier += 1

    def create_int_to_ptr(self, src: TensorHandle, dst_type: Any) -> TensorHandle:
        self._memory.add_live_tensors()
        return super().create_bitcast(src, dst_type)

    def cast_impl(self, src: TensorHandle, dst_type: Any) -> TensorHandle:
        converted = arithmetic.convert(src, dst_type)
        return super().cast_impl(src, dst_type) if converted is None else converted

    def create_fp_to_fp(self, src: TensorHandle, dst_type: Any, rounding_mode: Any) -> TensorHandle:
        converted = arithmetic.convert(src, dst_type) if rounding_mode in (None, ir.ROUNDING_MODE.RTNE) else None
        return super().create_fp_to_fp(src, dst_type, rounding_mode) if converted is None else converted

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> TensorHandle:
        product = arithmetic.multiply(a, b, d, input_precision)
        return super().create_dot(a, b, d, input_precision, max_num_imprecise_acc) if product is None else product

    def create_extern_elementwise(self, *call: Any) -> TensorHandle:
        return self._covering(arithmetic.call_libdevice, *call[2:5])

    def create_inline_asm(
        self, text: str, constraints: str, operands: list[TensorHandle], kinds: list[Any], _is_pure: bool, pack: int
    ) -> Results:
        arguments = [one.data for one in operands]
        types = [arithmetic.find_numpy_dtype(one.scalar) for one in kinds]
        found = self._covering(interpret, text, constraints, arguments, types, pack)
        return Results([TensorHandle(one, kind.scalar) for one, kind in zip(found, kinds, strict=True)])

    def _covering(self, compute: Any, *args: Any) -> Any:
        try:
            return compute(*args)
        except NotCovered as error:
            self.report("uncovered", str(error))
            raise

    def _in_order(self, operation: Any, ptr: Any, mask: Any, *args: Any) -> Any:
        access, sem = self._find_access(ptr, mask), args[-2]
        if access is not None:
            acquires, releases = sem in _ACQUIRING, sem in _RELEASING
            self._memory.order(access, acquires=acquires, releases=releases)
        self._ordered = True
        try:
            return operation(ptr, *args)
        finally:
            self._ordered = False

    def _note_atomic(self, ptr: TensorHandle, mask: TensorHandle, sem: Any) -> Access | None:
        self.watch_time()
        access = self._find_access(ptr, mask)
        if access is not None:
            self._memory.note_atomic(access, acquires=sem in _ACQUIRING, releases=sem in _RELEASING)
        return access

    def _check_old(self, access: Access | None, old: TensorHandle, mask: TensorHandle) -> TensorHandle:
        if access is not None:
            self._find_uninitialised(old, mask, "updates")
            self._let_others_run(access, old)
        return old

    def _let_others_run(self, access: Access, values: TensorHandle) -> None:
        """Switch to another program if this one polls a value that another one has to write."""
        program, memory = self._memory.program, self._memory
        if self.turns is None or not program.is_waiting(int(access.addresses[0]), values.data.tobytes()):
            return
        own = self.grid_idx, self._ordered
        self._ordered = False
        self.turns.give_away()
        memory.program = program
        self.grid_idx, self._ordered = own

    def _find_uninitialised(self, loaded: TensorHandle, mask: TensorHandle, what: str) -> None:
        kind = loaded.dtype.scalar
        unwritten = find_unwritten(np.ascontiguousarray(loaded.data), is_floating=kind.is_floating())
        unwritten = unwritten & np.broadcast_to(mask.data, unwritten.shape)
        if unwritten.any():
            message = f"{what} uninitialised memory, in {int(unwritten.sum())} of {int(mask.data.sum())} lanes"
            self.report("uninitialised_global", message, lane=int(np.flatnonzero(unwritten)[0]), decides=False)

    def _find_access(self, ptrs: TensorHandle, mask: TensorHandle) -> Access | None:
        self.watch_time()
        addresses = ptrs.data.reshape(-1)
        lanes = np.flatnonzero(np.broadcast_to(mask.data, ptrs.data.shape).reshape(-1))
        if not len(lanes):
            return None
        chosen = addresses if len(lanes) == len(addresses) else addresses[lanes]
        size_bytes = max(1, ptrs.get_element_ty().primitive_bitwidth // 8)
        return Access(addresses=chosen, lanes=lanes, width=len(addresses), size_bytes=size_bytes)

    @property
    def _memory(self) -> LaunchMemory:
        if self.memory is None:
            raise RuntimeError("memory is accessed outside of a kernel")
        return self.memory


def _find_bits(values: np.ndarray, chosen: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Bit patterns make NaN equal NaN."""
    taken = np.broadcast_to(values, chosen.shape)[chosen].astype(kind, copy=False)
    return np.ascontiguousarray(taken).view(f"u{kind.itemsize}")


def _find_line(frame: FrameType | None, file: str) -> int:
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return 0 if frame is None else frame.f_lineno
