"""Attributes time to custom kernels, torch and vendor libraries, and tests whether the custom kernels matter.

Separate untrusted workers run the candidate under torch's profiler, and with its functions disabled: they decide
nothing about speed. On a CPU, samples replace the shares that they report (`code_samples`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from harness.builder.symbols import demangle, list_functions, plain_signature
from harness.domain import BuildRequest, CandidateFailure, Finding, LaunchedKernels, Outcome, WithoutCustom, Work
from harness.evaluation.correctness.comparison import compare_outputs
from harness.evaluation.correctness.reference import Reference
from harness.evaluation.correctness.truth import trust_outputs
from harness.evaluation.integrity.code_images import Origin, find_origins
from harness.evaluation.integrity.code_samples import CodeSamples
from harness.evaluation.integrity.program_kernels import CompileAgain, ProgramKernels
from harness.evaluation.model_construction import construct_with_state
from harness.evaluation.results import Owner, ReplayedKernels, StepResult
from harness.protocol.channel import Mode
from harness.sandbox.gpu.recorded_code import RecordedFunction
from harness.sandbox.model_session import ModelSession
from harness.sandbox.replies import read_as
from harness.tensors.outputs import FlatOutputs, are_far_apart

OpenInMode = Callable[[Mode], AbstractContextManager[ModelSession]]

NOTHING = 0.001  # smaller shares count as zero
MAX_ROWS, MOST_US = 1000, 1e15
MAX_KERNELS = 50
MOST_NAMED = 3
PART_CHARACTERS = 200  # of the name of a kernel or an operator
MAX_NAME = 400  # characters; the worker program truncates at half of that
UNUSED = "candidate code does not run in the calls that count"
AFTER_SAMPLES = "its calls take longer once it was stopped to look what executes"
RECORDED_WORK = "its recorded GPU work"
LONGER_IN_PARTS = "the call takes longer where its parts are timed"
LONGER, EVENTS_US = 1.25, 4.0  # times the measured time, and in us per operation
FROM_LIBRARY = "aten::kernel"  # stands for the launcher of a kernel from one of the machine's libraries
CUSTOM_RANGE = "own::"  # see `harness.worker.instrumentation`

# Applied to untrusted sources, so each takes linear time on any input: an unclosed comment extends to the end, and the
# quantifiers after `__global__` are possessive.
_COMMENT = re.compile(r"(\"(?:[^\"\\\n]|\\.)*+\"|\\.)|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_GLOBAL = re.compile(
    r"\b__global__(?:\s++|\b(?:void|static|inline)\b|__\w+__\s*+(?:\((?:[^()]++|\([^()]*+\))*+\))?+){0,40}+"
    r"([A-Za-z_]\w*)\s*+[(<]"
)
_WORD = re.compile(r"[A-Za-z_]\w*+")
_BOUND = re.compile(r"\bm\w*\.def\(\s*\"(\w+)")
# CPU operators of torch that call oneDNN, MKL, BLAS or LAPACK.
_LIBRARY_OPERATOR = re.compile(
    r"aten::(_?mkldnn_\w+|_?mkl_\w+|onednn\w*|mm|addmm|bmm|baddbmm|addbmm|mv|addmv|addr|dot|vdot|_int_mm|_scaled_mm"
    r"|_fft_\w+|_?linalg_\w+|_weight_int8pack_mm)|(mkldnn|onednn|mkl)\w*::\w+"
)
_TORCH_OPERATOR = re.compile(r"(aten|prims?|quantized|quantized_decomposed|_c10d_functional|c10d)::\w+")
_COMPILED_REGION = re.compile(r"Torch-Compiled Region|## Call Compiled|CompiledF|TorchDynamo|Inductor|triton_")
_GENERATED_RANGE = re.compile(r"## Call Compiled")  # the rest of a compiled region is torch's overhead
_GENERATED_KERNEL = re.compile(r"triton_[a-z]+_fused")
_LIBRARY_KERNEL = re.compile(
    r"cublas|cudnn|cutlass|cute::|nvjet|xmma|cask|cufft|cusparse|cusolver|nccl|\bsm\d+_|(ampere|volta|turing|hopper"
    r"|maxwell)_|gemm|gemv|splitKreduce|convolve|winograd|nchwToNhwc|nhwcToNchw|\bdot_kernel|reduce_1Block"
    r"|(?<!at_cuda_detail::)\b(cub|thrust)::|fft|\b[ds]p(Radix|Vector)",
    re.IGNORECASE,
)
_FOREIGN_NAMESPACE = re.compile(r"(at|at_cuda_detail|c10|cub|thrust|cutlass|cute|cudnn|cublas\w*)::")
_VENDOR_NAME = re.compile(r"nvjet|sm\d+_|(ampere|volta|turing|hopper|blackwell|maxwell)_")
_TORCH_KERNEL = re.compile(
    r"\bat::|\bat_cuda_detail::|\bc10::|\bpytorch_|\(anonymous namespace\)::|\bcunn_|flash_fwd|flash_bwd|fmha|triton_"
    r"|^Mem(cpy|set)|^\[?CUDA mem"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """`host` (range or operator, us), `kernels` (launcher, kernel, us), `libraries`: the candidate's machine code."""

    total_us: float
    host: tuple[tuple[str, float], ...]
    kernels: tuple[tuple[str, str, float], ...]
    libraries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomKernels:
    """Plain names from sources, and full names in built `libraries`. `words`: all names in the program. `theirs`: code
    that torch compiles when the reference runs.
    """

    names: tuple[str, ...]
    functions: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    libraries: tuple[str, ...] = ()
    theirs: frozenset[RecordedFunction] = frozenset()
    generated: bool = False
    program: ProgramKernels | None = None

    def holds(self, name: str) -> bool:
        """`name` is a plain name. A stored name that ends with `*` matches a prefix."""
        return name in self.names or any(one.endswith("*") and name.startswith(one[:-1]) for one in self.names)


class OwnedFunction(NamedTuple):
    name: str  # demangled
    owner: Owner
    is_verified: bool = True  # otherwise a worker compiled or unpacked it, and only names tell whose it is


def describe_custom_kernels(
    requests: Sequence[BuildRequest],
    *,
    source: str,
    libraries: Sequence[str] = (),
    kernels: Sequence[str] = (),
    compile_again: CompileAgain | None = None,
) -> CustomKernels:
    built = list_custom_kernels(requests)
    custom = name_custom_kernels((*kernels, *built)[:MAX_KERNELS], libraries)
    program = ProgramKernels(source, compile_again, built) if compile_again else None
    return replace(custom, libraries=tuple(libraries), words=frozenset(_WORD.findall(source)), program=program)


def find_owners(functions: Sequence[RecordedFunction], custom: CustomKernels) -> list[OwnedFunction]:
    names = demangle([one.name for one in functions])
    origins = find_origins(functions, custom.libraries, custom.theirs, custom.program)
    return [
        OwnedFunction(name, _find_owner(name, origin, custom), custom.generated or origin not in ("said", "unknown"))
        for name, origin in zip(names, origins, strict=True)
    ]


def _find_owner(name: str, origin: Origin, custom: CustomKernels) -> Owner:
    """Names decide for code that the evaluator built. For other code that a worker compiled or unpacked they do not if
    torch or a library has such names, too. What the evaluator built of a library's templates is the candidate's.
    """
    if origin == "compiled":
        return "custom"
    is_usual = _LIBRARY_KERNEL.search(name) or _TORCH_KERNEL.search(name)
    is_ambiguous = name_kernel(name) in custom.names and is_usual
    is_foreign = origin == "machine" or (origin == "unknown" and is_ambiguous)
    owner = classify_kernel(FROM_LIBRARY if is_foreign else "", name, custom)
    return "custom" if origin == "built" and owner == "library" else owner


def attribute_replayed(
    replayed: ReplayedKernels, reference: Reference, custom: CustomKernels, *, has_kernel: bool
) -> StepResult:
    """Share the device time of the recorded call."""
    rows, total_us = _limit_own(replayed)
    generated = dict.fromkeys(name for _, name, _ in rows if _GENERATED_KERNEL.match(name))
    own = tuple(generated)[:MAX_KERNELS] if custom.generated else custom.names
    work = replace(_share(rows, total_us, launched=_count_kernels(rows)), custom_kernels=own)
    if custom.generated and work.custom < NOTHING:
        return StepResult(work=work)
    if has_kernel and work.launched is not None and not work.launched.custom:
        return _reject_where_required(work, reference, "unused_kernel", UNUSED)
    if has_kernel or custom.generated:
        work = replace(work, without_custom=replayed.without_custom)
    return _conclude(
        work,
        reference,
        libraries=(),
        findings=_doubt_replayed(replayed, work),
        has_kernel=has_kernel or custom.generated,
    )


def _doubt_replayed(replayed: ReplayedKernels, work: Work) -> tuple[Finding, ...]:
    if work.custom < NOTHING:
        return ()
    if not replayed.is_general:
        return (_doubt_share(f"{RECORDED_WORK} is right for its own inputs only"),)
    doubts = (*replayed.doubts, *((LONGER_IN_PARTS,) if _takes_longer(replayed) else ()))
    if doubts:
        return (_doubt_share("; ".join(doubts)),)
    if not replayed.unverified:
        return ()
    names = ", ".join(replayed.unverified[:MOST_NAMED])
    return (_doubt_share(f"the worker compiled {names}, which the program's text alone does not give"),)


def _limit_own(replayed: ReplayedKernels) -> tuple[list[tuple[Owner, str, float]], float]:
    """Return rows and the time of all in us. The candidate's share is at most that of the measured time beyond the time
    that the others take without its kernels, and if the call takes longer where its parts are timed, beyond the time
    that they take there. What its kernels copy is not theirs.
    """
    beside_us = sum(us for _, owner, us in replayed.rows if owner != "custom")
    own_us = left_us = sum(us for _, owner, us in replayed.rows if owner == "custom")
    if replayed.measured_us and beside_us:
        others_us = max(replayed.others_us or 0.0, beside_us if _takes_longer(replayed) else 0.0)
        share = min(others_us / replayed.measured_us, 1.0)
        left_us = min(own_us, beside_us * (1 / share - 1)) if share else own_us
    factor = left_us / own_us * replayed.computed if own_us else 0.0
    rows = [(owner, name[:MAX_NAME], us * factor if owner == "custom" else us) for name, owner, us in replayed.rows]
    return rows, left_us + beside_us


def _takes_longer(replayed: ReplayedKernels) -> bool:
    """Return whether the call takes longer where its parts are timed than events between them explain."""
    most_us = (replayed.measured_us or 0.0) * LONGER + replayed.operations * EVENTS_US
    return bool(replayed.measured_us) and sum(us for *_, us in replayed.rows) > most_us


def attribute_work(
    open_in: OpenInMode, reference: Reference, inputs: Sequence[Any], custom: CustomKernels, *, has_kernel: bool
) -> StepResult:
    """torch's compiled kernels count if `custom` are generated. If profiling fails, time is `other`, with a note.
    Shares of time on the emulated device would say nothing: there, custom kernels are only left out.
    """
    work = Work(custom=0.0, torch=0.0, library=0.0, other=1.0, custom_kernels=custom.names)
    outputs: FlatOutputs | None = None
    libraries: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    if reference.device.is_timed or custom.generated or not has_kernel:
        try:
            outputs, profile = _profile(open_in, reference, inputs)
        except CandidateFailure as failure:
            message = f"could not be profiled: {failure.message[:300]}"
            findings = (Finding(check="profile", severity="note", message=message),)
        else:
            if custom.generated:
                return _attribute_generated(open_in, reference, inputs, outputs, profile)
            work, libraries = replace(share_work(profile, custom), custom_kernels=custom.names), profile.libraries
    if has_kernel and not custom.generated:
        expected = reference.outputs_of(inputs) if outputs is None else outputs
        work = replace(work, without_custom=_call_without_custom_code(open_in, "ablate", reference, inputs, expected))
    return _conclude(work, reference, libraries=libraries, findings=findings, has_kernel=has_kernel)


def _attribute_generated(
    open_in: OpenInMode, reference: Reference, inputs: Sequence[Any], outputs: FlatOutputs, profile: Profile
) -> StepResult:
    names = dict.fromkeys(name for _, name, _ in profile.kernels if _GENERATED_KERNEL.match(name))
    custom = CustomKernels(names=tuple(names)[:MAX_KERNELS], generated=True)
    work = replace(share_work(profile, custom), custom_kernels=custom.names)
    if work.custom < NOTHING:
        return StepResult(work=work)
    without_custom = _call_without_custom_code(open_in, "ablate_generated", reference, inputs, outputs)
    work = replace(work, without_custom=without_custom)
    return _conclude(work, reference, libraries=profile.libraries, findings=(), has_kernel=True)


def confirm_recorded_code(
    result: StepResult, functions: Sequence[RecordedFunction] | None, reference: Reference, custom: CustomKernels
) -> StepResult:
    """A worker's own profile counts only if its recording, which cannot be replayed, has code of the candidate."""
    work = result.work
    if work is None or result.outcome is not None or work.custom < NOTHING:
        return result
    if functions is not None and all(one.owner != "custom" for one in find_owners(functions, custom)):
        work = replace(work, custom=0.0, other=work.custom + work.other)
        return _reject_where_required(work, reference, "unused_kernel", UNUSED)
    return replace(result, findings=(*result.findings, _doubt_share(f"{RECORDED_WORK} cannot be replayed")))


def _doubt_share(reason: str) -> Finding:
    message = f"how much of the time its kernels take is not verified, since {reason}"
    return Finding(check="unverified_share", severity="note", message=message)


def name_custom_kernels(names: tuple[str, ...], libraries: Sequence[str]) -> CustomKernels:
    return CustomKernels(names=names, functions=frozenset().union(*map(list_functions, libraries)))


def confirm_custom_code(
    reference: Reference, work: Work, sampled: Work | None, samples: CodeSamples | None
) -> StepResult:
    """Replace the shares that a worker reported by those of `samples`, None if unknown. CPU only."""
    if samples is not None and samples.is_unused:
        return _reject_where_required(sampled or work, reference, "unused_kernel", UNUSED)
    reason = "only its worker reports it" if sampled is None else AFTER_SAMPLES
    is_doubtful = (sampled or work).custom >= NOTHING and (sampled is None or bool(samples and samples.is_changed))
    return StepResult(work=sampled, findings=(_doubt_share(reason),) if is_doubtful else ())


def _profile(open_in: OpenInMode, reference: Reference, inputs: Sequence[Any]) -> tuple[FlatOutputs, Profile]:
    with open_in("profile") as session:
        construct_with_state(session, reference)
        outputs = session.call(inputs, reference.device).outputs
        return outputs, parse_profile(session.profile(inputs))


def _call_without_custom_code(
    open_in: OpenInMode, mode: Mode, reference: Reference, inputs: Sequence[Any], expected: FlatOutputs
) -> WithoutCustom:
    try:
        with open_in(mode) as session:
            construct_with_state(session, reference)
            outputs = session.call(inputs, reference.device).outputs
            everything = session.client.has_ablated_everything()
    except CandidateFailure:
        return "failed"
    if are_far_apart(expected.tensors, outputs.tensors):
        return "changed"
    truth = trust_outputs(expected, compared_on=reference.computes_on)
    wrong, _ = compare_outputs(truth, outputs, reference.loaded.problem.tolerance, "ablation")
    if wrong is not None:
        return "changed"
    return "unchanged" if everything else "not_tried"


def _conclude(
    work: Work, reference: Reference, *, libraries: Sequence[str], findings: tuple[Finding, ...], has_kernel: bool
) -> StepResult:
    check, message = "", ""
    if not has_kernel and not libraries and work.custom < NOTHING:
        check, message = (
            "no_own_kernel",
            "the candidate has no custom kernel: it built no extension and loaded no other machine code; "
            "--language torch evaluates plain PyTorch, on a GPU too",
        )
    elif work.without_custom == "unchanged":
        check, message = "decoy_kernel", "the custom kernels do not affect the result, or only copy it"
    if not check:
        return StepResult(work=work, findings=findings)
    result = _reject_where_required(work, reference, check, message)
    return replace(result, findings=(*findings, *result.findings))


def _reject_where_required(work: Work, reference: Reference, check: str, message: str) -> StepResult:
    required = reference.loaded.problem.requires_kernel
    lightly: Literal["note", "warning"] = "note" if check == "no_own_kernel" else "warning"
    finding = Finding(check=check, severity="fatal" if required else lightly, message=message)
    return StepResult(
        work=work,
        findings=(finding,),
        outcome=Outcome.REJECTED if required else None,
        message=f"{message}, and this suite requires one" if required else "",
    )


def list_custom_kernels(requests: Iterable[BuildRequest]) -> tuple[str, ...]:
    """Return the `__global__` functions, or else the functions bound to Python."""
    kernels: dict[str, None] = {}
    bound: dict[str, None] = {}
    for request in requests:
        bound |= dict.fromkeys(name for name, _ in request.functions or ())
        files = [text for _, text in (*request.files, *request.headers)]
        texts = (*request.cpp_sources, *request.cuda_sources, *files)
        for source in [_COMMENT.sub(lambda found: found[1] or " ", text) for text in texts]:
            kernels |= dict.fromkeys(_GLOBAL.findall(source))
            bound |= dict.fromkeys(_BOUND.findall(source))
    return tuple(kernels or bound)[:MAX_KERNELS]


def share_work(profile: Profile, custom: CustomKernels) -> Work:
    """Count kernel time on a GPU; the rest of a call is `other`."""
    kernels = [(classify_kernel(by, name, custom), name, each_us) for by, name, each_us in profile.kernels]
    if kernels:
        return _share(kernels, profile.total_us, launched=_count_kernels(kernels))
    ranges = [(classify_range(name, custom), name, each_us) for name, each_us in profile.host]
    return _share(ranges, profile.total_us, has_libraries=bool(profile.libraries))


def _share(
    rows: Sequence[tuple[Owner, str, float]],
    total_us: float,
    *,
    launched: LaunchedKernels | None = None,
    has_libraries: bool = False,
) -> Work:
    spent_us: dict[Owner, float] = dict.fromkeys(("custom", "torch", "library", "other"), 0.0)
    by_name: dict[str, float] = defaultdict(float)
    for owner, name, each_us in rows:
        spent_us[owner] += each_us
        by_name[name[:PART_CHARACTERS]] += each_us
    spent_us["other"] += max(total_us - sum(spent_us.values()), 0.0)
    if has_libraries:
        # Code called without torch is invisible to its profiler: it accounts for the time outside of torch.
        spent_us["custom"], spent_us["other"] = spent_us["custom"] + spent_us["other"], 0.0
    total_us = sum(spent_us.values())
    mine, torch, library = (spent_us[owner] / total_us if total_us else 0.0 for owner in ("custom", "torch", "library"))
    other = max(1.0 - mine - torch - library, 0.0)
    parts = sorted(by_name.items(), key=itemgetter(1), reverse=True)
    return Work(
        custom=mine, torch=torch, library=library, other=other, launched=launched, parts=tuple(parts[:MAX_KERNELS])
    )


def _count_kernels(rows: Sequence[tuple[Owner, str, float]]) -> LaunchedKernels | None:
    if not rows:
        return None
    mine = [row for row in rows if row[0] == "custom"]
    return LaunchedKernels(
        custom=len({kernel for _, kernel, _ in mine}),
        total=len({kernel for _, kernel, _ in rows}),
        custom_us=sum(each_us for _, _, each_us in mine),
        total_us=sum(each_us for _, _, each_us in rows),
    )


def classify_range(name: str, custom: CustomKernels) -> Owner:
    if name.startswith(CUSTOM_RANGE) or (custom.generated and _GENERATED_RANGE.match(name)):
        return "custom"
    if _LIBRARY_OPERATOR.fullmatch(name):
        return "library"
    return "torch" if _TORCH_OPERATOR.fullmatch(name) or _COMPILED_REGION.match(name) else "other"


def classify_kernel(launcher: str, kernel: str, custom: CustomKernels) -> Owner:
    """Use its name and its launcher ("" if unknown). A kernel in a namespace of torch or a library is the candidate's
    only if its library holds that exact function, no template instance; others if it names or launches them.
    """
    if custom.generated and _GENERATED_KERNEL.match(kernel):
        return "custom"
    by_torch = bool(_TORCH_OPERATOR.fullmatch(launcher) or _COMPILED_REGION.match(launcher))
    signature = plain_signature(kernel)
    is_foreign = bool(_FOREIGN_NAMESPACE.match(signature)) and ("<" in signature or signature not in custom.functions)
    if not by_torch and not is_foreign and not _VENDOR_NAME.match(signature) and custom.holds(name_kernel(kernel)):
        return "custom"
    if _LIBRARY_KERNEL.search(kernel):
        return "library"
    if by_torch or _TORCH_KERNEL.search(kernel):
        return "torch"
    names_it = launcher.startswith(CUSTOM_RANGE) or signature in custom.functions or name_kernel(kernel) in custom.words
    return "custom" if names_it else "other"


def name_kernel(kernel: str) -> str:
    """Return the plain name: `f` for `void a::f<float, 4>(float*)`."""
    plain = kernel.replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", plain, maxsplit=1)[0].strip().rpartition(" ")[2].rpartition("::")[2]


def parse_profile(answer: dict[str, Any]) -> Profile:
    """Raises CandidateFailure for a malformed profile."""
    profile: Profile = read_as(Profile, {one.name: answer.get(one.name) for one in fields(Profile)}, "profile")
    host, kernels = profile.host, profile.kernels
    names = [*(name for name, _ in host), *(name for by, kernel, _ in kernels for name in (by, kernel))]
    times_us = (profile.total_us, *(time_us for _, time_us in host), *(time_us for _, _, time_us in kernels))
    if max(len(host), len(kernels)) > MAX_ROWS or any(len(name) > MAX_NAME for name in names):
        raise CandidateFailure.of_protocol(
            f"profile: more than {MAX_ROWS} rows, or a name of more than {MAX_NAME} characters"
        )
    if not all(0 <= time_us < MOST_US for time_us in times_us):
        raise CandidateFailure.of_protocol("profile: expected times in us")
    return profile
