"""Observes and replaces a reference's operators without torch._dynamo, whose import takes seconds."""

import math
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.tensors.values import list_tensors, memory_of

COMPILER = "torch._dynamo"


class _StandIn(ModuleType):
    """Meta operators import torch._dynamo only to call its `disable`. Any other attribute imports it."""

    @staticmethod
    def disable(function: Callable[..., Any] | None = None, *_: object, **__: object) -> Callable[..., Any]:
        return function or (lambda decorated: decorated)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # asked of every module by `inspect`
            raise AttributeError(name)
        self.withdraw()
        return getattr(import_module(COMPILER), name)

    def withdraw(self) -> None:
        if sys.modules.get(COMPILER) is self:
            del sys.modules[COMPILER], torch._dynamo


@contextmanager
def replace_compiler(device: torch.device) -> Iterator[None]:
    """Keep operators on the meta device from importing torch._dynamo."""
    if device.type != "meta" or COMPILER in sys.modules:
        yield
        return
    stand_in = _StandIn(COMPILER)
    sys.modules[COMPILER] = torch._dynamo = stand_in
    try:
        yield
    finally:
        stand_in.withdraw()


class OperatorMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Code inside must not be compiled."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: True would import torch._dynamo at the first operator."""
        return False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]


class OperatorWatch(OperatorMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with self:  # operators that consist of others, which torch.inference_mode leaves whole
            result = func.decompose(*args, **kwargs)
        if result is NotImplemented:
            result = func(*args, **kwargs)
            self.note(func, args, kwargs, result)
        return result

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        raise NotImplementedError


def name_operator(operator: Any) -> str:
    return str(operator.name()).removeprefix("aten::").split(".")[0]


INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
VARIANCES = {
    "var", "var_mean", "std", "std_mean", "native_layer_norm", "native_group_norm", "native_batch_norm",
    "_native_batch_norm_legit", "_batch_norm_with_update", "cudnn_batch_norm",
}  # fmt: skip
REDUCING = VARIANCES | {
    "sum", "mean", "norm", "linalg_vector_norm", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
    "soft_margin_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "nll_loss_forward",
}  # fmt: skip

MOVING = {
    "clone", "copy_", "_to_copy", "_unsafe_view", "cat", "stack", "index", "index_select", "gather", "embedding",
    "flip", "roll", "repeat", "constant_pad_nd", "masked_select", "tril", "triu", "sort", "topk",
}  # fmt: skip
# Their results have no rounding of their own.
EXACT = MOVING | {
    "neg", "abs", "sign", "sgn", "round", "floor", "ceil", "trunc", "relu", "threshold", "threshold_backward", "where",
    "masked_fill", "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "max", "min", "amax", "amin", "empty_like",
    "zeros_like", "ones_like", "full_like",
}  # fmt: skip

# Of larger values their results are as much larger, or a multiple.
FOLLOWING = MOVING | {
    "add", "sub", "mul", "div", "where", "masked_fill", "maximum", "max", "amax", "cummax", "scatter_reduce",
}  # fmt: skip
RAISED = {
    "_softmax", "_log_softmax", "_safe_softmax", "logsumexp", "logcumsumexp", "logaddexp", "logaddexp2", "amin", "min",
    "cummin",
}  # fmt: skip
SUBTRACTED = {"maximum", "max", "amax", "cummax", "scatter_reduce"}  # before exponentials
EXPONENTIALS = {"exp", "exp2"}
EXPONENTIATING = {"softmax", "exp", "logsumexp", "logcumsumexp", "logaddexp", "attention"}  # words of names

# Operators on probabilities or rates, which assert on a GPU: overloads.
VALUE_RESTRICTED = {
    "multinomial", "bernoulli", "bernoulli.p", "bernoulli_.Tensor", "poisson", "binomial", "binary_cross_entropy",
}  # fmt: skip
INDEXING = {
    "index", "index_put", "_index_put_impl", "index_select", "index_copy", "index_add", "index_fill", "index_reduce",
    "gather", "scatter", "scatter_add", "scatter_reduce", "take", "put", "embedding", "_embedding_bag",
}  # fmt: skip
# Their results depend on which of two close values is larger.
ORDERING = {
    "sort", "argsort", "topk", "argmax", "argmin", "kthvalue", "median", "mode", "searchsorted", "bucketize", "histc",
    "unique_dim", "_unique2", "multinomial", "bernoulli", "poisson", "binomial",
}  # fmt: skip
COMPARISONS = {"gt", "ge", "lt", "le"}
COMPARING = COMPARISONS | {"eq", "ne"}
SIGNS = {"sign", "sgn"}
IN_A_SORTED_ROW = {"searchsorted", "bucketize"}  # undefined for others
DROPOUT = "bernoulli_.float"  # an overload
# Words of names: hardware may approximate these; of others a program may lose digits beside 1.
APPROXIMATED = {"tanh", "sigmoid", "gelu", "silu", "mish", "lstm", "gru", "rnn"}
FUNCTIONS = APPROXIMATED | {"softplus", "elu", "expm1", "log1p"}
BESIDE_ONE = 1 / 12  # values of this size, or smaller ones, lose as much as an approximated function
# Where legitimate programs add a small eps that the reference lacks, or subtract two sums of which a mean is the
# difference.
DIVIDING = {
    "div", "reciprocal", "rsqrt", "mean", "avg_pool1d", "avg_pool2d", "avg_pool3d", "mkldnn_avg_pool2d",
    "mkldnn_avg_pool3d", "adaptive_avg_pool1d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
}  # fmt: skip
# Of a sum near 1 they have its roundings: words of names.
LOGARITHMS = {"log", "log2", "log10", "logsumexp", "logcumsumexp", "logaddexp", "logaddexp2"}
LIMITING = {"add", "sub", "clamp", "clamp_min", "clamp_max", "maximum", "gt", "ge", "lt", "le"}
FARTHEST = 1000.0  # mean / deviation
MULTIPLYING = ("mm", "mv", "dot", "conv", "linear", "attention", "lstm", "gru", "rnn", "fft")
# Positions of the arguments whose last dimension is summed over.
PRODUCTS = {"mm": 0, "bmm": 0, "mv": 0, "dot": 0, "addmm": 1, "baddbmm": 1, "addbmm": 1, "addmv": 1, "_int_mm": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCall:
    """`overload` is such as `bernoulli.p`. With `on_input`, an argument is an input of the reference; with
    `follows_input` it is one, or was made of one by sums and factors (`FOLLOWING`). `terms` of one sum, in reductions
    without products, also before them. `dim` is None for all dimensions. With `is_narrow` results have 8 bits.
    """

    name: str
    overload: str
    on_input: bool
    converts_to_integers: bool
    terms: int
    dim: int | None = None
    is_narrow: bool = False
    follows_input: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Counts of the arithmetic that an output may depend on, over all calls: operators, those that hardware may
    approximate or that lose digits beside 1 (`approximated`: weighted by their errors), logarithms, terms that sums
    add, products among them, and terms that may all err in one direction. With `are_alike`, most terms of a sum may be
    nearly equal, so that their roundings do not cancel. Without `are_usual` terms may have any size.
    """

    operators: int = 0
    functions: int = 0
    approximated: float = 0.0
    logarithms: int = 0
    added: int = 0
    multiplied: int = 0
    truncated: int = 0
    are_alike: bool = False
    are_usual: bool = True

    @property
    def has_sums(self) -> bool:
        return self.added > self.operators


@dataclass(frozen=True, slots=True)
class OperatorUse:
    """`above_constants`: powers of two by which values exceed constants in sums and comparisons. With `fills_infinity`
    minus infinity stands for values that do not count, as in a mask. `raised`: places of the inputs that softmax, or a
    maximum before exponentials, is applied to. `converted`, `restricted`, `ordered`: of those that values depend on
    which become integers, must be probabilities, or are ordered. `compared`: (place, constant) of inputs whose own
    values are compared with a constant; `pairs`: places of two, perhaps the same, that are compared with each other.
    """

    calls: frozenset[OperatorCall]
    terms: Terms = Terms()
    above_constants: tuple[int, ...] = ()
    fills_infinity: bool = False
    raised: frozenset[int] = frozenset()
    converted: frozenset[int] = frozenset()
    restricted: frozenset[int] = frozenset()
    ordered: frozenset[int] = frozenset()
    compared: frozenset[tuple[int, float]] = frozenset()
    pairs: frozenset[tuple[int, int]] = frozenset()

    def has(self, names: Collection[str], *, on_input: bool = False, follows_input: bool = False) -> bool:
        """Include in-place variants; with `on_input`, require an input as argument."""
        calls = (call for call in self.calls if call.name.removesuffix("_") in names)
        return any((call.on_input or not on_input) and (call.follows_input or not follows_input) for call in calls)

    def list_dims(self, names: Collection[str]) -> set[int | None]:
        return {call.dim for call in self.calls if call.name.removesuffix("_") in names}

    @property
    def most_terms(self) -> int:
        return max((call.terms for call in self.calls), default=0)

    @property
    def restricts_values(self) -> bool:
        return any(call.overload in VALUE_RESTRICTED for call in self.calls)

    @property
    def converts_to_integers(self) -> bool:
        return any(call.converts_to_integers for call in self.calls)

    @property
    def limits_values(self) -> bool:
        return self.restricts_values or self.converts_to_integers

    @property
    def exponentiates(self) -> bool:
        return any(not EXPONENTIATING.isdisjoint(call.name.split("_")) for call in self.calls)

    @property
    def orders_values(self) -> bool:
        return any(call.name.removesuffix("_") in ORDERING and call.overload != DROPOUT for call in self.calls)


NO_USE = OperatorUse(frozenset())


class OperatorCalls(OperatorWatch):  # type: ignore[no-untyped-call]
    """`inputs` must live as long as the watched run: they are not kept, since a second set may not fit beside them."""

    def __init__(self, inputs: Sequence[Any] = ()) -> None:
        super().__init__()
        self._places: dict[int, frozenset[int]] = {}  # several inputs may be parts of one memory
        for at, tensor in enumerate(list_tensors(inputs)):
            self._places[memory_of(tensor)] = self._places.get(memory_of(tensor), frozenset()) | {at}
        self._following = dict(self._places)  # memory -> inputs
        self._moved = dict(self._places)  # the same of values that were selected or moved only
        self._compared: set[tuple[int, float]] = set()
        self._pairs: set[tuple[int, int]] = set()
        self._sources = dict(self._places)  # the same through all operators
        self._products: set[int] = set()  # memory of what depends on products
        self._raised: set[int] = set()
        self._converted: set[int] = set()
        self._restricted: set[int] = set()
        self._ordered: set[int] = set()
        self._has_maximum: set[int] = set()
        self._calls: set[OperatorCall] = set()
        self._operators = self._functions = self._logarithms = self._added = self._multiplied = 0
        self._approximated = 0.0
        self._above: set[int] = set()
        self._fills_infinity = False

    @property
    def use(self) -> OperatorUse:
        terms = Terms(
            operators=self._operators,
            functions=self._functions,
            approximated=self._approximated,
            logarithms=self._logarithms,
            added=self._added,
            multiplied=self._multiplied,
            truncated=self._multiplied,
        )
        has_exponentials = any(call.name.removesuffix("_") in EXPONENTIALS for call in self._calls)
        raised = self._raised | (self._has_maximum if has_exponentials else set())
        return OperatorUse(
            frozenset(self._calls),
            terms,
            above_constants=tuple(sorted(self._above)),
            fills_infinity=self._fills_infinity,
            raised=frozenset(raised),
            converted=frozenset(self._converted),
            restricted=frozenset(self._restricted),
            ordered=frozenset(self._ordered),
            compared=frozenset(self._compared),
            pairs=frozenset(self._pairs),
        )

    def note(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        name, read, made = name_operator(operator), list_tensors(args), list_tensors(result)
        places = {place for one in read for place in self._following.get(memory_of(one), ())}
        converts = name == "_to_copy" and kwargs.get("dtype") in INTEGERS and args[0].is_floating_point()
        has_products = any(memory_of(one) in self._products for one in read)
        call = OperatorCall(
            name=name,
            overload=operator.name().removeprefix("aten::"),
            on_input=any(memory_of(value) in self._places for value in args if isinstance(value, torch.Tensor)),
            converts_to_integers=converts,
            terms=_count_terms(args[0], result) if name in REDUCING and not has_products else 0,
            dim=find_dim(operator, args, kwargs) if name in ORDERING else None,
            is_narrow=any(one.element_size() == 1 and one.dtype is not torch.bool for one in made),
            follows_input=bool(places),
        )
        self._calls.add(call)
        self._fills_infinity |= any(isinstance(one, float) and one == -math.inf for one in args)
        if name.removesuffix("_") in LIMITING:
            self._above.update(_compare_constants(args, kwargs))
        if name.removesuffix("_") in COMPARING | SIGNS:
            self._note_compared(args)
        multiplies = any(word in name for word in MULTIPLYING)
        self._follow(name, places, read, made, is_view=operator.is_view)
        self._trace(call, list_tensors([args, kwargs]), made, is_product=has_products or multiplies)
        if not operator.is_view and any(one.is_floating_point() or one.is_complex() for one in made):
            added = _count_products(name, args) or _count_added(operator, name, read, made)
            self._operators += 1
            if not FUNCTIONS.isdisjoint(name.split("_")):
                self._functions += 1
                self._approximated += 1.0 if not APPROXIMATED.isdisjoint(name.split("_")) else _weigh_digits(made[0])
            self._logarithms += not LOGARITHMS.isdisjoint(name.split("_"))
            self._added += (
                int(added * _weigh_squares(_split_groups(name, args)))
                if name in VARIANCES and args[0].numel()
                else added
            )
            self._multiplied += added if multiplies else 0

    def _note_compared(self, args: tuple[Any, ...]) -> None:
        """A sign is a comparison with zero."""
        mine, other = self._moved.get(memory_of(args[0]), ()), args[1] if len(args) > 1 else 0.0
        if isinstance(other, torch.Tensor):
            self._pairs |= set(product(mine, self._moved.get(memory_of(other), ())))
        else:
            self._compared |= {(place, float(other)) for place in mine}

    def _follow(
        self, name: str, places: set[int], read: list[torch.Tensor], made: list[torch.Tensor], *, is_view: bool
    ) -> None:
        plain, moved = name.removesuffix("_"), {at for one in read for at in self._moved.get(memory_of(one), ())}
        self._raised |= places if plain in RAISED else set()
        self._has_maximum |= places if plain in SUBTRACTED else set()
        follows = is_view or name in FOLLOWING or plain in FOLLOWING
        self._following |= {memory_of(one): frozenset(places if follows else ()) for one in made}
        self._moved |= {memory_of(one): frozenset(moved if is_view or plain in MOVING else ()) for one in made}

    def _trace(
        self, call: OperatorCall, read: list[torch.Tensor], made: list[torch.Tensor], *, is_product: bool
    ) -> None:
        sources = frozenset(place for one in read for place in self._sources.get(memory_of(one), ()))
        self._converted |= sources if call.converts_to_integers else frozenset()
        self._restricted |= sources if call.overload in VALUE_RESTRICTED else frozenset()
        if call.name.removesuffix("_") in ORDERING and read:
            self._ordered |= self._sources.get(memory_of(read[0]), frozenset())
        results = set(map(memory_of, made))
        self._sources |= dict.fromkeys(results, sources)
        self._products = self._products | results if is_product else self._products - results


def _compare_constants(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[int]:
    value = args[0]
    constants = [abs(one) for one in (*args[1:], kwargs.get("min"), kwargs.get("max")) if isinstance(one, float)]
    if not constants or not isinstance(value, torch.Tensor) or not value.numel() or not value.is_floating_point():
        return
    largest = max(map(abs, map(float, value.detach().aminmax())))
    yield from (math.ceil(math.log2(largest / one)) for one in constants if 0 < one < largest < math.inf)


def names_dim(operator: Any) -> bool:
    return any(one.name == "dim" for one in operator._schema.arguments)


def find_dim(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
    for place, one in enumerate(operator._schema.arguments):
        if one.name == "dim":
            found = args[place] if place < len(args) else kwargs.get("dim", one.default_value)
            return found if isinstance(found, int) else None
    return None


def _count_products(name: str, args: tuple[Any, ...]) -> int:
    """Return the number of products in one sum; 0 if unknown."""
    if name == "convolution":
        weight, transposed, groups = args[1], args[6], args[8]
        return int(weight.numel() // (weight.shape[1] * groups if transposed else weight.shape[0]))
    return int(args[PRODUCTS[name]].shape[-1]) if name in PRODUCTS else 0


def _count_added(operator: Any, name: str, read: list[torch.Tensor], made: list[torch.Tensor]) -> int:
    """Return an upper bound of the number of terms in one sum."""
    if torch.Tag.pointwise in operator.tags or name in MOVING or not read:
        return 1
    fewest = min((one.numel() for one in made if one.numel()), default=1)
    reduced = max(read[0].numel() // fewest, 1)
    return reduced if name in REDUCING else max(*(max(one.shape, default=1) for one in read), reduced)


def _split_groups(name: str, args: Sequence[Any]) -> torch.Tensor:
    """Return the values of which an operator of `VARIANCES` computes variances, a row for each."""
    values: torch.Tensor = args[0].detach()
    if name == "native_group_norm":
        return values.reshape(values.shape[0] * args[6], -1)
    if name == "native_layer_norm":
        return values.reshape(-1, math.prod(args[1]))
    if "batch_norm" in name:
        return values.transpose(0, 1).reshape(values.shape[1], -1)
    chosen = args[1] if len(args) > 1 and isinstance(args[1], list | tuple) else ()
    dims = [dim % values.dim() for dim in chosen or range(values.dim())]
    others = [dim for dim in range(values.dim()) if dim not in dims]
    return values.permute(*others, *dims).reshape(-1, math.prod(values.shape[dim] for dim in dims))


def _weigh_squares(groups: torch.Tensor) -> float:
    """Return how many times as many terms err as much as a sum of squares whose mean is then subtracted."""
    deviations, means = torch.std_mean(groups, dim=1, correction=0)
    far = (means.abs() / deviations)[deviations > 0].double().clamp(max=FARTHEST)
    return float(((1 + far**2) ** 2).mean()) if far.numel() else 1.0


def _weigh_digits(values: torch.Tensor) -> float:
    """Return how many approximated functions err as much, beside such values, as the roundings of numbers near 1."""
    mean = float(values.detach().abs().mean())
    return min(BESIDE_ONE / mean, 1.0) ** 2 if mean > 0 else 1.0


def _count_terms(reduced: torch.Tensor, result: Any) -> int:
    results = result if isinstance(result, list | tuple) else (result,)
    counts = [one.numel() for one in results if isinstance(one, torch.Tensor) and one.numel()]
    return reduced.numel() // min(counts) if counts else 0
