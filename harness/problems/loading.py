"""Executes a trusted problem file for one workload, and makes its models and inputs on a device under a seed.

Workload sizes are assigned again after each module-level assignment of the name, so that derived sizes follow. CUDA
devices are redirected to the target device, and tensors created on others are moved at the end.
"""

import ast
import copy
import linecache
import operator
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Self

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from harness.construction.calls import adapt_call, select_differentiable
from harness.construction.weights import (
    HOST,
    ConstantWeights,
    DrawOnDevice,
    Kind,
    keep_default_dtype,
    list_lazy,
    run_with_default,
    seed_generators,
)
from harness.domain import (
    LIBRARY_CLASS,
    CallKind,
    InputContract,
    Problem,
    ProblemError,
    SizeValue,
    UsageError,
    WorkloadName,
)
from harness.problems.arguments import read_arguments
from harness.problems.contracts import StatedInputs
from harness.problems.discovery import bound_names, parse_source
from harness.problems.inputs.kind import GIVEN
from harness.problems.inputs.kinds import change_inputs, find_kind
from harness.problems.inputs.traits import InputTraits
from harness.problems.operators import replace_compiler
from harness.problems.watched_process import limit_reference
from harness.protocol import flatten_value, rebuild_value
from harness.syntax import parse_python
from harness.tensors.values import has_same_bits, map_tensors, memory_of

SEEDS_TRIED = 6
Inputs = tuple[dict[str, Any], list[torch.Tensor]]  # form and tensors
MakeWatches = Callable[[], Sequence[AbstractContextManager[object]]]


@dataclass(slots=True, kw_only=True, eq=False)
class LoadedProblem:
    """The first calls determine the last fields. `differentiable` are shape and dtype of outputs with a gradient.
    `constants` are weights that get other values. `returned_inputs` are inputs that count as outputs (`IN_PLACE`),
    `frozen` inputs and parameters whose gradients are not asked for. `kept` are addresses of inputs that are the same
    memory in each call.
    """

    problem: Problem
    workload: WorkloadName
    init_inputs: tuple[Any, ...]
    module: ModuleType
    stated: StatedInputs
    differentiable: Sequence[tuple[torch.Size, torch.dtype]] = ()
    constants: Sequence[Kind] = ()
    returned_inputs: Sequence[int] = ()
    frozen: Sequence[int | str] | None = None
    returns_nothing: bool = False
    kept: frozenset[int] = frozenset()

    @property
    def call(self) -> CallKind:
        return "only_in_place" if self.returns_nothing else self.problem.call

    @property
    def has_library(self) -> bool:
        library = getattr(self.module, LIBRARY_CLASS, None)
        return isinstance(library, type) and issubclass(library, self.module.Model)

    @property
    def dtype(self) -> torch.dtype | None:
        """Dtype of floating inputs and weights; None keeps the file's."""
        return getattr(torch, self.problem.dtype) if self.problem.dtype else None

    def make_model(self, seed: int, device: torch.device, *, entry: str = "Model") -> nn.Module:
        """Seed and construct the reference or another class, in the problem's mode. Gradients only for backward."""
        model = self._construct(seed, device, entry)
        if self.problem.backward and self.frozen is None and device.type != "meta":
            self.frozen = self._find_frozen(model, device)
        model.requires_grad_(False)
        if self.problem.in_place and not self.returned_inputs and device.type != "meta":
            self.returned_inputs = self._find_returned_inputs(model, device)
        return adapt_call(model, self.call, self.returned_inputs, self.frozen or ())

    def _construct(self, seed: int, device: torch.device, entry: str = "Model") -> nn.Module:
        return run_with_default(device, lambda default: self._construct_with(default, seed, device, entry))

    def _construct_with(self, default: torch.device, seed: int, device: torch.device, entry: str) -> nn.Module:
        on_gpu = DrawOnDevice(device) if device.type == "cuda" else nullcontext()
        constants = ConstantWeights(seed)
        with run_user_code(self.problem, f"{entry}(*get_init_inputs())", seed, device, default), on_gpu:
            with constants.replaced():
                model = getattr(self.module, entry)(*_move(copy.deepcopy(self.init_inputs), device))
            if not isinstance(model, nn.Module):
                raise ProblemError(f"{_where(self.problem)}: {entry} is a {type(model).__name__}, not an nn.Module")
            _require_sizes(model, self.problem)
            constants.replace_in(model)
            self.constants = constants.list_kinds(model) or self.constants
            model = model.to(device=device, dtype=self.dtype)
        return model.train(self.problem.training)

    def make_inputs(
        self,
        seed: int,
        device: torch.device,
        distribution: str = GIVEN.name,
        *,
        traits: InputTraits | None = None,
    ) -> tuple[Any, ...]:
        """With `backward`, gradients follow the arguments. Other kinds need `traits`."""
        kind, base = find_kind(distribution), find_kind(self.problem.draws or GIVEN.name)
        given = self.draw_arguments(seed, device, lambda: [kind.watch_draws(seed, traits)])
        if traits is not None and kind.changes_any_draws(traits) and not traits.keeps_structure(given):
            given = self.draw_arguments(seed, device)
        with replace_compiler(device), seeded(seed, device), torch.no_grad():
            inputs = _cast(tuple(_move(value, device) for value in given), self.dtype, self.problem)
            inputs = self._copy_kept(inputs)
            generator = None if device.type == "meta" else torch.Generator(device=device).manual_seed(seed)
            gradients: tuple[Any, ...] = (self._draw_gradients(inputs, device),) if self.problem.backward else ()
            if generator is None:  # there are no values to change
                return (*inputs, *gradients)
            traits = traits or self.describe_unwatched(inputs)
            if kind.changes_gradients or base.changes_gradients:
                inputs, gradients = (*inputs, *gradients), ()
            inputs = change_inputs(kind, base, inputs, traits, generator)
            if kind is not GIVEN or base is not GIVEN:
                traits.keep_bounds(inputs)
            return (*inputs, *gradients)

    def draw_arguments(self, seed: int, device: torch.device, make_watches: MakeWatches = list) -> tuple[Any, ...]:
        """Return what `get_inputs` makes, as it is. Each attempt has its own watches."""
        return run_with_default(device, lambda default: self._get_inputs(seed, device, default, make_watches()))

    def _copy_kept(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Copy the memory of `kept` tensors, so that no change of inputs reaches the next ones."""
        copies: dict[int, torch.UntypedStorage] = {}

        def copy_if_kept(tensor: torch.Tensor) -> torch.Tensor:
            memory = memory_of(tensor)
            if memory not in self.kept:
                return tensor
            if memory not in copies:
                copies[memory] = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]
            return tensor.new_empty(0).set_(copies[memory], tensor.storage_offset(), tensor.shape, tensor.stride())

        return map_tensors(inputs, copy_if_kept) if self.kept else inputs

    def list_contracts(self, inputs: Sequence[Any]) -> list[InputContract]:
        """Return one for each value: what the problem states, or any real numbers."""
        return self.stated.list_for(inputs)

    def describe_unwatched(self, inputs: Sequence[Any]) -> InputTraits:
        return InputTraits(problem=self.problem, contracts=tuple(self.list_contracts(inputs)))

    def _get_inputs(
        self, seed: int, device: torch.device, default: torch.device, watches: Sequence[AbstractContextManager[object]]
    ) -> tuple[Any, ...]:
        with ExitStack() as stack:
            stack.enter_context(run_user_code(self.problem, "get_inputs()", seed, device, default))
            for one in (torch.no_grad(), *watches):
                stack.enter_context(one)
            forward = partial(self.module.Model.forward, None)  # of no module
            return _read_arguments(self.module.get_inputs(), self.problem, "get_inputs()", forward, "forward")

    def _draw_gradients(self, inputs: tuple[Any, ...], device: torch.device) -> list[torch.Tensor]:
        if not self.differentiable:
            model, copies = self._construct(0, device), map_tensors(inputs, torch.clone)
            with limit_reference(_where(self.problem), "forward"), seeded(0, device):
                outputs = flatten_value(model(*copies), torch.is_tensor, by_name=True)[1]
            self.differentiable = [(output.shape, output.dtype) for output in select_differentiable(outputs)]
        if not self.differentiable:
            raise ProblemError(f"{_where(self.problem)}: BACKWARD = True, but no output is floating-point")
        return [torch.randn(shape, dtype=dtype, device=device) for shape, dtype in self.differentiable]

    def _find_returned_inputs(self, model: nn.Module, device: torch.device) -> list[int]:
        """Return all input tensors if any of several calls changes one: a flag may be set rarely."""
        changes_any, self.returns_nothing = False, True
        for seed in range(SEEDS_TRIED):
            inputs = map_tensors(self.make_inputs(seed, device), torch.clone)
            tree, tensors = flatten_value(inputs, torch.is_tensor)
            before, memory = [tensor.clone() for tensor in tensors], [tensor.detach() for tensor in tensors]
            with run_user_code(self.problem, "forward", seed, device), torch.no_grad():
                self.returns_nothing &= copy.deepcopy(model)(*inputs) is None
            if not _are_the_same(flatten_value(inputs, torch.is_tensor), (tree, tensors), memory):
                why = "forward replaces entries or memory of its inputs; write into them, or return the new tensors"
                raise ProblemError(f"{_where(self.problem)}: IN_PLACE = True, but {why}")
            changes_any |= not all(map(has_same_bits, before, memory))
        if not changes_any:
            raise ProblemError(f"{_where(self.problem)}: IN_PLACE = True, but forward changes no input")
        return [at for at, tensor in enumerate(memory) if tensor.layout is torch.strided]

    def _find_frozen(self, model: nn.Module, device: torch.device) -> list[int | str]:
        """Return positions of floating inputs that `forward` detaches, and parameters without a gradient."""
        tree, tensors = flatten_value(self.make_inputs(0, device)[:-1], torch.is_tensor)
        sources = [tensor.requires_grad_(True) for tensor in tensors if tensor.is_floating_point()]
        with run_user_code(self.problem, "forward", 0, device), torch.enable_grad():
            outputs = flatten_value(copy.deepcopy(model)(*rebuild_value(tree, tensors)), torch.is_tensor)[1]
            roots = [output for output in outputs if output.requires_grad]
            weights = list(map(torch.ones_like, roots))
            found = torch.autograd.grad(roots, sources, weights, allow_unused=True) if roots and sources else ()
        parameters = [name for name, value in model.named_parameters() if not value.requires_grad]
        return [at for at, gradient in enumerate(found) if gradient is None] + parameters

    def describe_inputs(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return (dtype, shape) of each input tensor on the meta device; () if the file needs real values."""
        try:
            inputs = self.make_inputs(0, torch.device("meta"))
        except ProblemError:
            return ()
        tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
        return tuple((str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)) for tensor in tensors)


def load_problem(problem: Problem, workload: WorkloadName, device: torch.device = HOST) -> LoadedProblem:
    chosen = problem.workload(workload)
    if chosen is None:
        raise UsageError(
            f"problem {problem.name} has no {workload} workload; "
            "add SMALL = {...} to its file or use the full workload"
        )
    module = _execute(problem, workload, dict(chosen.overrides), device)
    with run_user_code(problem, "get_init_inputs()", 0, HOST):
        given = module.get_init_inputs()
        init_inputs = _read_arguments(given, problem, "get_init_inputs()", module.Model, "Model")
    with run_user_code(problem, "INPUTS", 0, HOST):
        stated = StatedInputs(problem.inputs, module.Model.forward, module.__dict__)
    return LoadedProblem(problem=problem, workload=workload, init_inputs=init_inputs, module=module, stated=stated)


@contextmanager
def run_user_code(
    problem: Problem, call: str, seed: int, device: torch.device, default: torch.device | None = None
) -> Iterator[None]:
    """Use a seed and default device (None: `device`), and restore torch's. Raises ProblemError, ReferenceStopped."""
    with (
        limit_reference(_where(problem), call),
        replace_compiler(device),
        seeded(seed, device),
        _OnDevice(device),
        _generators_on(device),
        default or device,
        _keep_defaults(),
    ):
        yield


def _are_the_same(found: Inputs, usual: Inputs, memory: Sequence[torch.Tensor]) -> bool:
    (tree, tensors), (usual_tree, usual_tensors) = found, usual
    if tree != usual_tree or not all(map(operator.is_, tensors, usual_tensors)):
        return False
    places = [[(one.data_ptr(), one.shape, one.stride()) for one in kind] for kind in (tensors, memory)]
    return places[0] == places[1]


@contextmanager
def _keep_defaults() -> Iterator[None]:
    """Defaults are process-wide and would affect the next problem."""
    is_deterministic = torch.are_deterministic_algorithms_enabled()
    with torch.set_grad_enabled(torch.is_grad_enabled()), keep_default_dtype():
        try:
            yield
        finally:
            if torch.are_deterministic_algorithms_enabled() != is_deterministic:  # the call imports torch._inductor
                torch.use_deterministic_algorithms(is_deterministic)
            torch.set_default_device(None)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch (CPU and `device`), `random` and numpy, and restore their states."""
    import numpy

    python_state, numpy_state = random.getstate(), numpy.random.get_state()
    on_cuda = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_cuda else []):
        seed_generators(seed, device)
        try:
            yield
        finally:
            random.setstate(python_state)
            numpy.random.set_state(numpy_state)


class _OnDevice(TorchFunctionMode):
    """Meta tensors get no values."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0].to(self.device)
        if _names_cuda(kwargs.get("device")):
            kwargs["device"] = self.device
        if func is torch.Tensor.to:
            args = tuple(self.device if _names_cuda(arg) else arg for arg in args)
        if self.device.type == "meta" and func in _WITHOUT_VALUES:
            kwargs.pop("generator", None)
            return _WITHOUT_VALUES[func](*args, **kwargs)
        return func(*args, **kwargs)


@contextmanager
def _generators_on(device: torch.device) -> Iterator[None]:
    """Generators for a GPU are made for `device`."""
    usual = torch.Generator

    class Redirected(usual):  # type: ignore[misc, valid-type]
        def __new__(cls, device: Any = "cpu") -> Self:
            made: Redirected = super().__new__(cls, place if _names_cuda(device) else device)
            return made

    place = "cpu" if device.type == "meta" else device
    torch.Generator = Redirected  # type: ignore[misc]
    try:
        yield
    finally:
        torch.Generator = usual  # type: ignore[misc]


def _make_integers(*args: Any, dtype: torch.dtype = torch.int64, **options: Any) -> torch.Tensor:
    size = options.pop("size", args[-1] if args else ())
    others = {name: value for name, value in options.items() if name not in ("low", "high")}
    return torch.zeros(size, dtype=dtype, **others)


# For the meta device, where torch draws these in Python, and imports symbolic shapes for that: half a second.
_WITHOUT_VALUES: dict[Callable[..., Any], Callable[..., Any]] = {torch.randn: torch.rand, torch.randint: _make_integers}


def _cast(inputs: tuple[Any, ...], dtype: torch.dtype | None, problem: Problem) -> tuple[Any, ...]:
    """Keep strides. Raises ProblemError for integers that the dtype rounds: they may be indices or counts."""

    def cast(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        given = tensor.to(dtype)
        if _holds_integers(tensor) and not torch.equal(given.to(tensor.dtype), tensor):
            name = str(dtype).removeprefix("torch.")
            raise ProblemError(f"{_where(problem)}: an input holds integers, such as indices, that {name} would round")
        return given

    return inputs if dtype is None else map_tensors(inputs, cast)


def _holds_integers(tensor: torch.Tensor) -> bool:
    if tensor.is_meta or tensor.layout is not torch.strided or tensor.element_size() < 2 or not tensor.numel():
        return False
    first = tensor[(slice(0, 8),) * tensor.dim()]  # most inputs are decided by a few elements
    return all(bool((part == part.round()).all()) for part in (first, tensor))


def _names_cuda(value: Any) -> bool:
    if isinstance(value, str):
        return value.startswith("cuda")
    return isinstance(value, torch.device) and value.type == "cuda"


def _execute(
    problem: Problem, workload: WorkloadName, overrides: dict[str, SizeValue], device: torch.device
) -> ModuleType:
    where = _where(problem)
    tree = _override_sizes(parse_source(problem.source, where), overrides)
    linecache.cache[where] = (len(problem.source), None, problem.source.splitlines(keepends=True), where)
    module = ModuleType(f"harness_problem_{problem.name}_{workload}_{problem.digest}")
    module.__file__ = where
    sys.modules[module.__name__] = module  # torch.compile and dataclasses look up modules by name
    with run_user_code(problem, "module level", 0, device, HOST):
        usual = torch.get_default_dtype()
        exec(compile(tree, where, "exec"), module.__dict__)
        if torch.get_default_dtype() != usual:
            raise ProblemError(f"{where}: the module sets torch's default dtype; state dtypes where tensors are made")
    return module


def _override_sizes(tree: ast.Module, overrides: dict[str, SizeValue]) -> ast.Module:
    body: list[ast.stmt] = []
    for statement in tree.body:
        body.append(statement)
        for name in sorted(bound_names(statement).intersection(overrides)):
            assignment = parse_python(f"{name} = {overrides[name]!r}").body[0]
            for node in ast.walk(assignment):
                ast.copy_location(node, statement)
            body.append(assignment)
    return ast.Module(body=body, type_ignores=tree.type_ignores)


def _require_sizes(model: nn.Module, problem: Problem) -> None:
    if lazy := list_lazy(model):
        raise ProblemError(
            f"{_where(problem)}: the weights {', '.join(lazy[:5])} have no shape until the first call (lazy modules); "
            "set the sizes in __init__, so that candidates can receive the same weights"
        )


def _read_arguments(value: Any, problem: Problem, call: str, taker: Callable[..., Any], name: str) -> tuple[Any, ...]:
    return read_arguments(value, f"{_where(problem)}: {call}", taker, name)


def _move(value: Any, device: torch.device) -> Any:
    return map_tensors(value, lambda tensor: tensor.to(device))


def _where(problem: Problem) -> str:
    return f"{problem.suite}/{problem.name}.py"


def workload_source(loaded: LoadedProblem) -> str:
    """Insert the workload's sizes into the source, for a baseline process."""
    overrides = dict(chosen.overrides) if (chosen := loaded.problem.workload(loaded.workload)) else {}
    tree = _override_sizes(parse_source(loaded.problem.source, _where(loaded.problem)), overrides)
    return ast.unparse(ast.fix_missing_locations(tree))
