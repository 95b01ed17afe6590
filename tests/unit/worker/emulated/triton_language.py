"""Calls functions of `triton.language` in the interpreter, over dtypes, and compares them with exact results.

Run as a program: prints what differs, and the functions that `triton_cases` does not call, as JSON.
"""

import json
import sys
import warnings
from types import ModuleType

import numpy as np
import torch

from harness.worker.emulated.cuda import install as install_cuda
from harness.worker.emulated.link import EmulatorLink
from harness.worker.languages.triton import emulate

TARGET = {"name": "NVIDIA H100", "major": 9, "minor": 0, "total_memory": 1 << 30, "multi_processor_count": 132,
          "warp_size": 32, "max_threads_per_block": 1024, "regs_per_multiprocessor": 65536,
          "shared_memory_per_block_optin": 232448, "clock_rate": 1410000}  # fmt: skip
LANES = 32
DIGITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52, "float8_e4m3fn": 3, "float8_e5m2": 2}
NAMES = {"fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32",
         "fp64": "float64", "int1": "bool"}  # fmt: skip


def draw(kind, seed, low=None, high=None):
    """Integers of the whole range with its ends, floats about 0."""
    source = np.random.default_rng(seed)
    if kind == "bool":
        return torch.from_numpy(source.integers(0, 2, LANES) > 0)
    if kind in DIGITS:
        values = source.normal(size=LANES) if low is None else source.uniform(low, high, LANES)
        return torch.from_numpy(values).to(getattr(torch, kind))
    limits = np.iinfo(kind)
    low, high = limits.min if low is None else low, limits.max if high is None else high
    values = source.integers(low, high, LANES, dtype=kind, endpoint=True)
    values[:4] = np.clip(np.array([low, high, 0, 1], dtype=object), low, high)
    return torch.from_numpy(source.permutation(values))


def make_exact(values):
    """As Python integers, or float64."""
    return values.double().numpy() if values.dtype.is_floating_point else values.numpy().astype(object)


def read(result):
    """The values of a kernel's tensor, and its dtype. Raises AssertionError if it is not stored as its type says."""
    data, name = np.asarray(result.handle.data), result.dtype.scalar.name
    kind = NAMES.get(name, name)
    stored = {"bfloat16": "uint16"}.get(kind, "uint8" if kind.startswith("float8") else kind)
    assert data.dtype == np.dtype(stored), f"a tensor of {name} is stored as {data.dtype}"
    assert not result.type.is_block() or tuple(result.type.shape) == data.shape, f"{result.type} has {data.shape}"
    values = torch.from_numpy(np.array(data))
    return make_exact(values if kind == "bool" else values.view(getattr(torch, kind))), kind


def round_as(values, kind):
    """As the dtype holds them; integers modulo their range."""
    values = np.asarray(values)
    if kind == "bool":
        return np.asarray(values != 0, dtype=object)
    if kind in DIGITS:
        return torch.from_numpy(np.array(values, dtype=np.float64)).to(getattr(torch, kind)).double().numpy()
    width, signed = np.dtype(kind).itemsize * 8, kind.startswith("i")
    half = signed << width - 1
    return np.vectorize(lambda one: (int(one) + half) % (1 << width) - half, otypes=[object])(values)


def find_difference(result, expected, last_digits):
    """ "" if there is none within so many units of the dtype's last digit."""
    found, kind = read(result)
    expected = round_as(expected, kind)
    if found.size != expected.size:
        return f"{found.shape} elements, not {expected.shape}"
    found = found.reshape(expected.shape)
    wrong = np.asarray(found != expected)
    if kind in DIGITS:
        allowed = last_digits * 2.0 ** -DIGITS[kind] * np.maximum(np.abs(expected), 2.0**-6)
        wrong = wrong & ~(np.abs(found - expected) <= allowed) & ~(np.isnan(found) & np.isnan(expected))
    if not wrong.any():
        return ""
    at = int(np.flatnonzero(wrong)[0])
    return f"{found.reshape(-1)[at]}, not {expected.reshape(-1)[at]}, in lane {at}; {int(wrong.sum())} wrong"


def list_kinds(kinds):
    """The dtypes of the arguments: those with the same tuple of dtypes have the same one."""
    choices = list({id(one): one for one in kinds}.values())
    for chosen in np.ndindex(*map(len, choices)):
        of = {id(one): one[at] for one, at in zip(choices, chosen, strict=True)}
        yield tuple(of[id(one)] for one in kinds)


def check_case(call, case):
    """What is wrong, by dtypes. `call`: the kernel, which calls a function with its loaded inputs."""
    for kinds in list_kinds(case.kinds):
        ranges = [case.ranges[min(at, len(case.ranges) - 1)] for at in range(len(kinds))]
        inputs = [draw(kind, at, *limits) for at, (kind, limits) in enumerate(zip(kinds, ranges, strict=True))]
        results = []

        def keep(*values, kept=results):
            kept.append(case.function(*values))

        try:
            call[(1,)](tuple(one.cuda() for one in inputs), keep, LANES)
            with np.errstate(all="ignore"):
                found, expected = results[0], case.expected(*map(make_exact, inputs))
                pairs = [(found, expected)] if hasattr(found, "handle") else zip(found, expected, strict=True)
                wrong = [text for one, right in pairs if (text := find_difference(one, right, case.last_digits))]
        except Exception as error:  # noqa: BLE001 - one of many cases
            wrong = [f"{type(error).__name__}: {str(error)[:200]}"]
        for text in wrong:
            yield f"{case.name} of {', '.join(kinds)}: {text}"


def list_functions(tl):
    """Names of what kernels can call, without types."""
    for holder in (tl, tl.math, tl.tensor, tl.extra.cuda):
        for name, value in vars(holder).items():
            is_private = name.startswith("_") and not name.endswith("__")
            is_other = isinstance(value, type | ModuleType | tl.dtype) or value.__class__.__module__ == "typing"
            if callable(value) and not is_private and not is_other:
                yield name


def main():
    warnings.simplefilter("ignore")
    install_cuda(TARGET)
    emulate(EmulatorLink(), TARGET, compiles=False)
    import triton.language as tl
    import triton_cases

    names = set(list_functions(tl))
    missing = {case.name.partition(" ")[0] for case in triton_cases.CASES} - names
    wrong = [
        text for case in triton_cases.CASES if case.name.partition(" ")[0] not in missing
        for text in check_case(triton_cases.call, case)
    ]  # fmt: skip
    wrong += triton_cases.run_kernels()
    print(json.dumps({"wrong": wrong, "unknown": sorted(names - triton_cases.CALLED), "missing": sorted(missing)}))


if __name__ == "__main__":
    sys.exit(main())
