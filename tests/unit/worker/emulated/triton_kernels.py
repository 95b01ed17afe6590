"""Kernels for `triton_cases`: memory, atomics, launches, and Python as Triton compiles it."""

import torch
import triton
import triton.language as tl

LANES = 32
ATOMICS = {"add": lambda a, b: a + b, "max": max, "min": min, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
           "xor": lambda a, b: a ^ b, "xchg": lambda _, b: b}  # fmt: skip
INTEGERS, FLOATS = ("int32", "int64", "uint32", "uint64"), ("float16", "bfloat16", "float32", "float64")
KERNELS = {
    "load", "store", "arange", "program_id", "num_programs", "range", "static_range", "static_assert", "static_print",
    "device_assert", "assume", "debug_barrier", "multiple_of", "max_contiguous", "max_constancy",
    "make_tensor_descriptor",
    "load_tensor_descriptor", "store_tensor_descriptor", "make_block_ptr", "advance", "inline_asm_elementwise",
    "gdc_wait", "gdc_launch_dependents", "smid", "globaltimer", "num_warps", "num_threads", "atomic_cas", "condition",
    "randint4x", "rand4x", "randn", "randn4x", "philox_impl", *(f"atomic_{name}" for name in ATOMICS),
}  # fmt: skip


@triton.jit
def update(operation: tl.constexpr, cells, values, old, lanes: tl.constexpr):
    at = tl.arange(0, lanes)
    tl.store(old + at, operation(cells + at % 4, tl.load(values + at), mask=at != 3), mask=at != 3)


@triton.jit
def exchange(cells, expected, values, old, lanes: tl.constexpr):
    at = tl.arange(0, lanes)
    tl.store(old + at, tl.atomic_cas(cells + at, tl.load(expected + at), tl.load(values + at)))


@triton.jit
def describe(x, out, rows, columns, BLOCK: tl.constexpr):  # noqa: N803
    source = tl.make_tensor_descriptor(x, shape=[rows, columns], strides=[columns, 1], block_shape=[BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(out, shape=[rows, columns], strides=[columns, 1], block_shape=[BLOCK, BLOCK])
    target.store([0, 0], tl.load_tensor_descriptor(source, [0, 0]))
    target.atomic_add([0, 0], source.load([0, 0]))
    target.atomic_max([0, 0], source.load([0, 0]) * 3)


@triton.jit
def run_python(out, count, flag, BLOCK: tl.constexpr):  # noqa: N803
    total = 0
    for row in tl.range(0, count, num_stages=2):
        total += row.to(tl.int64)  # 10
    for row in range(count - 1, -1, -1):
        total += row.to(tl.int64)  # 10
    for number in tl.static_range(3):
        total += number  # 3
    first, second = 1, 2.5
    total += first.to(tl.int64) + second.to(tl.int64)  # 3
    third: tl.int32 = 3
    total += third.to(tl.int64) + min(third, count) + max(third, count, 7)  # 13
    at = tl.max_constancy(tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), 1), 1), 1)
    total += tl.sum(min(at, 3), axis=0)  # 42
    half: tl.constexpr = max(BLOCK // 2, 1)
    total += tl.sum(tl.arange(0, half), axis=0)  # 28
    quarter: tl.constexpr
    quarter = BLOCK // 4
    total += tl.sum(tl.arange(0, quarter), axis=0)  # 6
    if flag and not count > 5:
        total += 1
    while total > 10**6:
        total -= 1
    total += tl.cdiv(count, 3) + tl.extra.cuda.num_warps() + tl.extra.cuda.num_threads()  # 2 + 8 + 256
    if tl.target_info.cuda_capability_geq(9, 0):
        total += 1
    total += tl.num_programs(0) + tl.program_id(0) + tl.extra.cuda.smid()  # 1
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    tl.debug_barrier()
    tl.static_assert(BLOCK == 16)
    tl.static_print("compiled for", BLOCK)
    tl.device_assert(count > 0)
    tl.assume(count > 0)
    tl.store(out, total + (tl.extra.cuda.globaltimer() < 0))


@triton.jit
def use_annotations(out, wide: tl.int64, narrow: tl.uint8, unsigned: tl.uint32, plain):
    tl.store(out, wide * 2147483647)
    tl.store(out + 1, narrow + narrow)
    tl.store(out + 2, (0 - unsigned).to(tl.int64))
    tl.store(out + 3, plain * 2147483647)


def draw(kind, count, seed):
    source = torch.Generator().manual_seed(seed)
    if kind in FLOATS:
        return torch.randn(count, generator=source).to(getattr(torch, kind)).cuda()
    signed = torch.randint(-(2**62), 2**62, (count,), generator=source)
    return (signed if "64" in kind else signed.to(torch.int32)).view(getattr(torch, kind)).cuda()


def wrap(value, kind):
    if kind in FLOATS:
        return torch.tensor(value, dtype=torch.float64).to(getattr(torch, kind)).item()
    bits, signed = int(kind[-2:]), kind.startswith("i")
    return (value + (signed << bits - 1)) % 2**bits - (signed << bits - 1)


def check_atomic(name, kind):
    cells, values = draw(kind, 4, 1), draw(kind, LANES, 2)
    old, known, expected = torch.zeros_like(values), [one.item() for one in cells], []
    for lane, value in enumerate(values):
        expected.append(known[lane % 4] if lane != 3 else 0)
        known[lane % 4] = wrap(ATOMICS[name](known[lane % 4], value.item()), kind) if lane != 3 else known[lane % 4]
    update[(1,)](getattr(tl, f"atomic_{name}"), cells, values, old, LANES)
    is_split = name in ("max", "min") and kind in FLOATS  # by sign, as on a GPU: old values are those of its own part
    return [one.item() for one in cells] == known and (is_split or [one.item() for one in old] == expected)


def check_exchange(kind):
    cells, values = draw(kind, LANES, 1), draw(kind, LANES, 2)
    before = cells.clone()
    expected, old = torch.cat([before[:16], values[:16]]), torch.zeros_like(values)
    exchange[(1,)](cells, expected, values, old, LANES)
    return [one.item() for one in cells] == [one.item() for one in (*values[:16], *before[16:])] and [
        one.item() for one in old
    ] == [one.item() for one in before]


def run_kernels():
    """What is wrong."""
    wrong = []
    for name in ATOMICS:
        kinds = INTEGERS + (FLOATS if name == "add" else () if name in ("and", "or", "xor") else FLOATS[2:])
        wrong += [f"atomic_{name} of {kind}" for kind in kinds if not check_atomic(name, kind)]
    wrong += [f"atomic_cas of {kind}" for kind in INTEGERS + FLOATS if not check_exchange(kind)]
    x, out, total = (
        torch.arange(64, dtype=torch.int32).cuda(),
        torch.zeros(64, dtype=torch.int32).cuda(),
        torch.zeros(4, dtype=torch.int64).cuda(),
    )
    describe[(1,)](x, out, 8, 8, 8)
    wrong += [] if torch.equal(out, x * 3) else ["descriptors"]
    run_python[(1,)](total, 5, True, 16, num_warps=8)
    wrong += [] if total[0].item() == 384 else [f"Python: {total[0].item()}"]
    use_annotations[(1,)](total, 5, 200, 1, 5)
    expected = [5 * 2147483647, 144, 2**32 - 1, 2147483643]
    wrong += [] if total.tolist() == expected else [f"annotations: {total.tolist()}"]
    return wrong
