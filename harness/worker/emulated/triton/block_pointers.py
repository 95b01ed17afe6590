"""Implements block pointers, which Triton 3.9 removed, with pointers and masks, as earlier versions did."""

from collections.abc import Callable, Sequence
from typing import Any

import triton.language as tl
from triton._C.libtriton import ir
from triton.language.core import _unwrap_if_constexpr as unwrap
from triton.language.core import builtin

_PADDINGS = {"zero": 0.0, "nan": float("nan")}


class _BlockPointer:
    base: tl.tensor
    shape: tl.tuple
    strides: tl.tuple
    offsets: tl.tuple
    block_shape: tl.tuple


def install(note_use: Callable[[], None]) -> None:
    """Must run before kernels are compiled or interpreted; nothing if Triton has block pointers."""
    if hasattr(ir.builder, "create_make_block_ptr") or hasattr(tl.core, "_block_ptr"):
        return
    load, store = tl.load, tl.store

    block_pointer: Any = tl.core._aggregate(_BlockPointer)

    def make_block_ptr(  # noqa: PLR0917 - as in Triton
        base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any, _semantic: Any = None
    ) -> Any:
        note_use()
        wide = (_as_integers(values, tl.int64, _semantic) for values in (shape, strides))
        block = tl.tuple([tl.constexpr(unwrap(size)) for size in unwrap(block_shape)])
        return block_pointer(base, *wide, _as_integers(offsets, tl.int32, _semantic), block)

    def advance(base: Any, offsets: Any, _semantic: Any = None) -> Any:
        steps = _as_integers(offsets, tl.int32, _semantic)
        moved = [_semantic.add(old, step, False) for old, step in zip(base.offsets, steps, strict=True)]
        return block_pointer(base.base, base.shape, base.strides, tl.tuple(moved), base.block_shape)

    def load_either(
        pointer: Any, mask: Any = None, other: Any = None, *, boundary_check: Any = (), padding_option: Any = "",
        _semantic: Any = None, **how: Any,
    ) -> Any:  # fmt: skip
        if not isinstance(pointer, block_pointer):
            return load(pointer, mask, other, _semantic=_semantic, **how)
        places, inside = _find_places(pointer, boundary_check, _semantic)
        padding = _PADDINGS.get(unwrap(padding_option)) if inside is not None else None
        return load(places, inside, padding, _semantic=_semantic, **how)

    def store_either(
        pointer: Any, value: Any, mask: Any = None, *, boundary_check: Any = (), _semantic: Any = None, **how: Any
    ) -> Any:
        if isinstance(pointer, block_pointer):
            pointer, mask = _find_places(pointer, boundary_check, _semantic)
        return store(pointer, value, mask, _semantic=_semantic, **how)

    replaced = {"make_block_ptr": make_block_ptr, "advance": advance, "load": load_either, "store": store_either}
    for name, function in replaced.items():
        for module in (tl, tl.core):
            setattr(module, name, builtin(function))


def _as_integers(values: Any, kind: Any, semantic: Any) -> Any:
    return tl.tuple([semantic.cast(semantic.to_tensor(unwrap(one)), kind) for one in unwrap(values)])


def _find_places(pointer: Any, checked: Sequence[Any], semantic: Any) -> tuple[Any, Any]:
    """Return a block of pointers and the mask of those within the tensor (None without checked dimensions)."""
    checked = [unwrap(one) for one in unwrap(checked) or ()]
    places, inside = pointer.base, None
    sizes = [unwrap(size) for size in pointer.block_shape]
    for axis, size in enumerate(sizes):
        index = semantic.add(semantic.cast(pointer.offsets[axis], tl.int64), semantic.arange(0, size), False)
        for other in range(len(sizes)):
            index = index if other == axis else semantic.expand_dims(index, other)
        places = semantic.add(places, semantic.mul(index, pointer.strides[axis], False), False)
        if axis in checked:
            low = semantic.greater_equal(index, semantic.to_tensor(0))
            valid = semantic.and_(low, semantic.less_than(index, pointer.shape[axis]))
            inside = valid if inside is None else semantic.and_(inside, valid)
    return places, inside
