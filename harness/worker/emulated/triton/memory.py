"""Checks the memory of one kernel launch: bounds of its tensors, uninitialised values, and races between programs.

Programs run one after another, so an access races with an earlier one of another program unless atomic operations at
the same address order both. A program that waits for another's memory lets others run, in threads of their own, one at
a time.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import torch

# Fills new tensors; NaN as float16, bfloat16 and float32. Widths at which no computed value is mistaken for it.
FILL = 0x7FC5
_FILLS = {4: 0x7FC57FC5, 8: 0x7FC57FC57FC57FC5}
MOST_ORDERING_LANES = 8  # wider atomic operations accumulate, and order nothing
POLLS = 8  # of a program that waits, until another one runs
Report = Callable[..., None]
# Earlier accesses: their name, and who made them when in a Shadow.
_WRITE = ("write", "writer", "write_clock")
_UPDATE = ("atomic operation", "updater", "update_clock")
_READS = (("read", "first_reader", "first_read_clock"), ("read", "last_reader", "last_read_clock"))
WRITES = (_WRITE, _UPDATE)
PLAIN_ACCESSES = (_WRITE, *_READS)
ACCESSES = (*PLAIN_ACCESSES, _UPDATE)


class IllegalAccess(RuntimeError):
    pass


@dataclass(slots=True, kw_only=True)
class Region:
    name: str
    start: int
    end: int
    cell_bytes: int
    shadow: "Shadow | None" = None


class Shadow:
    """Per cell: program (from 1) and clock of the last write, reads, last atomic; barriers and lane of the write."""

    def __init__(self, cells: int) -> None:
        def zeros() -> np.ndarray:
            return np.zeros(cells, dtype=np.int32)

        self.writer, self.write_clock = zeros(), zeros()
        self.first_reader, self.first_read_clock = zeros(), zeros()
        self.last_reader, self.last_read_clock = zeros(), zeros()
        self.updater, self.update_clock = zeros(), zeros()
        self.write_barrier, self.write_lane = zeros(), zeros()


@dataclass(slots=True)
class Program:
    """`synced` holds the clocks up to which accesses of other programs are ordered before this one's. `polled` is the
    address and values of the last atomic or volatile access, repeated `polls` times.
    """

    number: int = 0
    clock: int = 0
    barrier: int = 0
    synced: np.ndarray | None = None
    polled: tuple[int, bytes] | None = None
    polls: int = 0

    def is_waiting(self, address: int, values: bytes) -> bool:
        self.polls = self.polls + 1 if self.polled == (address, values) else 0
        self.polled = address, values
        return self.polls > 0 and self.polls % POLLS == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    addresses: np.ndarray
    lanes: np.ndarray
    width: int  # lanes in all
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    region: Region
    shadow: Shadow
    chosen: np.ndarray  # of the access's lanes
    cells: np.ndarray
    lanes: np.ndarray
    size_bytes: int

    @property
    def is_narrow(self) -> bool:
        """Return True if the pointer's type is narrower than the tensor's; such accesses are not checked."""
        return self.size_bytes < self.region.cell_bytes

    def describe(self, where: int) -> str:
        return f"element {int(self.cells[where])} of {self.region.name}"


@dataclass(slots=True)
class LaunchMemory:
    tensors: Iterable[tuple[str, torch.Tensor]]
    programs: int
    report: Report
    regions: list[Region] = field(default_factory=list)
    program: Program = field(default_factory=Program)
    released: dict[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, tensor in self.tensors:
            self.add(name, tensor)

    def add(self, name: str, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        start, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        known = next((one for one in self.regions if one.start <= start and end <= one.end), None)
        if known is not None:
            known.cell_bytes = min(known.cell_bytes, tensor.element_size())
        elif end > start:
            self.regions.append(Region(name=name, start=start, end=end, cell_bytes=tensor.element_size()))

    def add_live_tensors(self) -> None:
        """Support kernels that make pointers from integers."""
        import gc

        for one in gc.get_objects():
            if type(one) is torch.Tensor and one.layout is torch.strided and not one.is_meta:
                self.add("a tensor", one)

    def begin(self, number: int) -> None:
        self.program = Program(number + 1)

    def locate(self, access: Access, what: str) -> list[Part]:
        """Raises IllegalAccess outside the tensors of the launch."""
        low, high = int(access.addresses.min()), int(access.addresses.max()) + access.size_bytes
        for region in self.regions:
            if region.start <= low and high <= region.end:
                return [self._cut(region, access, np.ones(len(access.addresses), dtype=bool))]
        ends = access.addresses + np.uint64(access.size_bytes)
        inside = [(access.addresses >= region.start) & (ends <= region.end) for region in self.regions]
        outside = ~np.logical_or.reduce([np.zeros(len(ends), dtype=bool), *inside])
        if outside.any():
            self._refuse(access, outside, what)
        pairs = zip(self.regions, inside, strict=True)
        return [self._cut(region, access, chosen) for region, chosen in pairs if chosen.any()]

    def _refuse(self, access: Access, outside: np.ndarray, what: str) -> None:
        where = int(np.flatnonzero(outside)[0])
        address, lane = int(access.addresses[where]), int(access.lanes[where])
        message = f"{what} {_describe_place(self.regions, address, access.size_bytes)}"
        more = int(outside.sum()) - 1
        self.report("out_of_bounds", message + (f", and {more} more lanes" if more else ""), lane=lane)
        raise IllegalAccess(f"CUDA error: an illegal memory access was encountered ({message})")

    def _cut(self, region: Region, access: Access, chosen: np.ndarray) -> Part:
        addresses = access.addresses[chosen]
        cells = ((addresses - np.uint64(region.start)) // np.uint64(region.cell_bytes)).astype(np.int64)
        if region.shadow is None:
            region.shadow = Shadow(-(-(region.end - region.start) // region.cell_bytes))
        return Part(
            region=region, shadow=region.shadow, chosen=chosen, cells=cells, lanes=access.lanes[chosen],
            size_bytes=access.size_bytes,
        )  # fmt: skip

    def note_load(self, access: Access, *, ordered: bool) -> None:
        program = self.program
        for part in self.locate(access, "reads"):
            shadow, cells = part.shadow, part.cells
            if part.is_narrow:
                continue
            if not ordered:
                self._find_race(part, "read", WRITES)
                self._find_missing_barrier(part)
            new = cells[shadow.first_reader[cells] == 0]
            shadow.first_reader[new], shadow.first_read_clock[new] = program.number, program.clock
            shadow.last_reader[cells], shadow.last_read_clock[cells] = program.number, program.clock

    def note_store(self, access: Access, changed: np.ndarray, values: np.ndarray, *, ordered: bool) -> None:
        """`changed` holds the lanes whose written value differs from memory."""
        program = self.program
        for part in self.locate(access, "writes"):
            shadow, cells = part.shadow, part.cells
            if part.is_narrow:
                continue
            if ordered:
                shadow.updater[cells], shadow.update_clock[cells] = program.number, program.clock
                continue
            self._find_race(part, "write", ACCESSES, changed[part.chosen])
            self._find_overlap(part, values[part.chosen])
            shadow.writer[cells], shadow.write_clock[cells] = program.number, program.clock
            shadow.write_barrier[cells], shadow.write_lane[cells] = program.barrier, part.lanes

    def note_atomic(self, access: Access, *, acquires: bool, releases: bool) -> None:
        for part in self.locate(access, "updates"):
            if not part.is_narrow:
                self._find_race(part, "atomic operation", PLAIN_ACCESSES)
                part.shadow.updater[part.cells] = self.program.number
                part.shadow.update_clock[part.cells] = self.program.clock
        self.order(access, acquires=acquires, releases=releases)

    def order(self, access: Access, *, acquires: bool, releases: bool) -> None:
        """Make an atomic operation acquire accesses of earlier programs and publish its own to later ones."""
        program = self.program
        if access.width > MOST_ORDERING_LANES:
            return
        if acquires or releases:
            program.barrier += 1  # the operation's result is shared through a barrier
        for address in map(int, access.addresses):
            published = self.released.get(address)
            if acquires and published is not None:
                program.synced = published if program.synced is None else np.maximum(program.synced, published)
        if releases:
            self._publish(access)

    def _publish(self, access: Access) -> None:
        program = self.program
        program.clock += 1
        own = np.zeros(self.programs + 1, dtype=np.int32) if program.synced is None else program.synced.copy()
        own[program.number] = program.clock
        for address in map(int, access.addresses):
            before = self.released.get(address)
            self.released[address] = own if before is None else np.maximum(before, own)

    def _find_race(
        self, part: Part, what: str, kinds: Iterable[tuple[str, str, str]], counted: np.ndarray | None = None
    ) -> None:
        for kind, programs, clocks in kinds:
            others = getattr(part.shadow, programs)[part.cells]
            racing = (others != 0) & (others != self.program.number)
            if counted is not None:
                racing &= counted
            if racing.any() and self.program.synced is not None:
                racing &= getattr(part.shadow, clocks)[part.cells] >= self.program.synced[others]
            if racing.any():
                where = int(np.flatnonzero(racing)[0])
                text = f"race: this {what} and the {kind} by program {{other}} of {part.describe(where)}"
                message = f"{text} are not ordered"
                self.report("global_race", message, lane=int(part.lanes[where]), other=int(others[where]) - 1)
                return

    def _find_overlap(self, part: Part, values: np.ndarray) -> None:
        order = np.argsort(part.cells, kind="stable")
        same = part.cells[order][1:] == part.cells[order][:-1]
        if not same.any():
            return
        different = same & (values[order][1:] != values[order][:-1])
        if different.any():
            where = int(order[1:][different][0])
            message = f"race: several lanes of this write have different values for {part.describe(where)}"
            self.report("global_race", message, lane=int(part.lanes[where]))

    def _find_missing_barrier(self, part: Part) -> None:
        shadow, cells = part.shadow, part.cells
        mine = (shadow.writer[cells] == self.program.number) & (shadow.write_barrier[cells] == self.program.barrier)
        mine &= shadow.write_lane[cells] != part.lanes
        if mine.any():
            where = int(np.flatnonzero(mine)[0])
            writer = int(shadow.write_lane[cells][where])
            message = (
                f"race: this read and the write by lane {writer} of the same program of {part.describe(where)} are not "
                "ordered: a barrier (tl.debug_barrier) is missing"
            )
            self.report("global_race", message, lane=int(part.lanes[where]))


def fill_new(tensor: torch.Tensor) -> None:
    if tensor.is_meta or tensor.layout is not torch.strided or tensor.dtype is torch.bool:
        return
    size_bytes = tensor.untyped_storage().nbytes()
    flat = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage(), 0, (size_bytes,), (1,))
    flat[: size_bytes // 2 * 2].view(torch.int16).fill_(FILL)


def find_unwritten(values: np.ndarray, *, is_floating: bool) -> np.ndarray:
    width = values.dtype.itemsize
    if width == 2 and is_floating:
        return np.asarray(values.view(np.uint16) == FILL)
    return (
        np.asarray(values.view(f"uint{8 * width}") == _FILLS[width])
        if width in _FILLS
        else np.zeros(values.shape, bool)
    )


def _describe_place(regions: list[Region], address: int, size_bytes: int) -> str:
    if not regions:
        return "memory, but the kernel was launched without tensors"
    near = min(regions, key=lambda one: max(one.start - address, address - one.end, 0))
    if address < near.start:
        return f"{near.start - address} bytes before the start of {near.name}"
    beyond = address + size_bytes - near.end
    size = near.end - near.start
    return f"beyond the end of {near.name}: byte {address - near.start} of {size} ({beyond} bytes past its end)"


STACK_BYTES = 1 << 20


class OtherProgramFailed(RuntimeError): ...


class Turns:
    def __init__(self, run_next: Callable[[], bool]) -> None:
        """`run_next` runs the next program and returns False if none is left."""
        self._run_next = run_next
        self._waiting: deque[threading.Event] = deque()
        self._error: BaseException | None = None
        self._all_started = False

    def run(self) -> None:
        """Raises the first error of a program."""
        self._work()
        while self._waiting:
            self._wait(self._waiting.popleft().set)
        if self._error is not None:
            raise self._error

    def give_away(self) -> None:
        """Let the next program run, or the one that has waited longest."""
        if not self._all_started:
            self._wait(self._start_thread)
        elif self._waiting:
            self._wait(self._waiting.popleft().set)
        if self._error is not None:
            raise OtherProgramFailed("another program of this launch failed")

    def _wait(self, hand_over: Callable[[], None]) -> None:
        turn = threading.Event()
        self._waiting.append(turn)
        hand_over()
        turn.wait()

    def _work(self) -> None:
        try:
            while self._error is None and self._run_next():
                pass
            self._all_started = True
        except BaseException as error:  # noqa: BLE001 - raised by the thread of the launch
            self._error = self._error or error

    def _start_thread(self) -> None:
        before = threading.stack_size(STACK_BYTES)
        try:
            threading.Thread(target=self._work_in_thread, daemon=True).start()
        finally:
            threading.stack_size(before)

    def _work_in_thread(self) -> None:
        with np.errstate(all="ignore"):
            self._work()
        self._waiting.popleft().set()
