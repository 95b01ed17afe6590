"""Validates a worker's replies about tensors; raises CandidateFailure."""

from itertools import pairwise
from math import prod
from typing import Any

import torch

from harness.domain import CandidateFailure, WireError
from harness.domain.records import make_value
from harness.protocol import TensorSpec, flatten_value, rebuild_value

MAX_ELEMENTS = 1 << 48
MAX_ADDRESS = 1 << 64
LEAST_PAGE_BYTES = 2 << 20
MAX_NODES = 1 << 16  # of the structure of an output


def parse_outputs(answer: dict[str, Any]) -> dict[str, Any]:
    specs, devices, addresses = [], [], []
    for entry in read_list(answer.get("outputs")):
        if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[1], str) or type(entry[2]) is not int:
            raise CandidateFailure.of_protocol("an output is not described as [tensor, device, address]")
        if not 0 <= entry[2] < MAX_ADDRESS:
            raise CandidateFailure.of_protocol("an output has an invalid address")
        specs.append(parse_spec(entry[0]))
        devices.append(entry[1][:40])
        addresses.append(entry[2])
    return {
        "tree": _check_tree(answer.get("tree"), len(specs)),
        "specs": tuple(specs),
        "devices": tuple(devices),
        "addresses": tuple(addresses),
    }


def read_as(kind: Any, value: object, what: str) -> Any:
    """Return the value if it and its parts have the declared types."""
    try:
        return make_value(kind, value, checks=True)
    except (TypeError, ValueError, OverflowError) as error:
        raise CandidateFailure.of_protocol(f"{what}: {error}") from error


def parse_spec(value: object) -> TensorSpec:
    try:
        spec = TensorSpec.from_json(value)
    except WireError as error:
        raise CandidateFailure.of_protocol(str(error)) from error
    if prod(spec.shape) > MAX_ELEMENTS or not isinstance(getattr(torch, spec.dtype, None), torch.dtype):
        raise CandidateFailure.of_protocol(f"invalid tensor description {spec}"[:300])
    return spec


def _check_tree(tree: object, tensors: int) -> dict[str, Any]:
    """Every tensor must occur once, in order."""
    if not _has_few_nodes(tree):
        raise CandidateFailure.of_protocol(f"the structure of an output has more than {MAX_NODES} parts")
    leaves = [object() for _ in range(tensors)]
    try:
        found = flatten_value(rebuild_value(tree, leaves), lambda value: type(value) is object)[1]
    except WireError as error:
        raise CandidateFailure.of_protocol(str(error)) from error
    if not isinstance(tree, dict) or found != leaves:
        raise CandidateFailure.of_protocol("the structure of an output does not match its tensors")
    return tree


def _has_few_nodes(tree: object) -> bool:
    waiting, count = [tree], 0
    while waiting and count <= MAX_NODES:
        node = waiting.pop()
        inner = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
        count += len(inner)
        waiting += inner[: MAX_NODES + 1]
    return count <= MAX_NODES


def parse_pages(value: object, count: int) -> list[tuple[int, int]]:
    pages: list[tuple[int, int]] = list(read_as(tuple[tuple[int, int], ...], value, "memory pages"))
    if len(pages) != count:
        raise CandidateFailure.of_protocol("memory pages are missing")
    if not all(0 <= base < MAX_ADDRESS and LEAST_PAGE_BYTES <= size < MAX_ADDRESS for base, size in pages):
        raise CandidateFailure.of_protocol("a memory page has an invalid address or size")
    if any(sum(page) != base for page, (base, _) in pairwise(pages)):
        raise CandidateFailure.of_protocol("memory pages are not consecutive")
    return pages


def read_list(value: object) -> list[Any]:
    if not isinstance(value, list) or len(value) > 4096:
        raise CandidateFailure.of_protocol("expected a list of up to 4096 entries")
    return value


def read_pairs(value: object) -> list[tuple[Any, Any]]:
    pairs = read_list(value)
    if any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
        raise CandidateFailure.of_protocol("expected a list of pairs")
    return [(pair[0], pair[1]) for pair in pairs]
