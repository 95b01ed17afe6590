"""Explains outcomes, verdicts, clocks, columns, settings of problems and checks. Tests compare them with docs/."""

from __future__ import annotations

from dataclasses import dataclass

from harness.domain import Baseline, Clock, Outcome, TimingVerdict


@dataclass(frozen=True, slots=True)
class Explanation:
    """`page` is a page of docs/, with its section."""

    meaning: str
    remedy: str
    page: str


def _explain(page: str, meaning: str, remedy: str = "") -> Explanation:
    return Explanation(meaning, remedy, page)


def _outcome(meaning: str, remedy: str) -> Explanation:
    return _explain("correctness.md#outcomes", meaning, remedy)


OUTCOMES = {
    Outcome.CORRECT: _outcome(
        "every output was accepted",
        "the column `verdict` says how fast it is: `faster`, `slower`, `tie`, or not ranked",
    ),
    Outcome.WRONG_SHAPE: _outcome(
        "the outputs differ from the reference's in number, structure or sizes", "return what the reference returns"
    ),
    Outcome.WRONG_DTYPE: _outcome(
        "an output has another dtype, or is on another device, than the reference's",
        "allocate outputs with the dtype and device of the reference's",
    ),
    Outcome.WRONG_VALUE: _outcome(
        "values differ from the float64 truth by more than the tolerance, or a kernel has a race",
        "`harness show ID` names elements, inputs and case that are wrong; check tails, types of sums, barriers",
    ),
    Outcome.NO_CODE: _outcome(
        "the answer contains no program", "check token limit and reasoning parser; `harness extract ANSWER` says why"
    ),
    Outcome.REJECTED: _outcome(
        "not an admissible answer: another language, no custom kernel where the suite requires one, refused compiler "
        "flags",
        "write the kernel in the language asked for; for plain PyTorch use `--language torch`",
    ),
    Outcome.BUILD_ERROR: _outcome("an extension or kernel does not compile", "`harness show ID --log` prints the log"),
    Outcome.LOAD_ERROR: _outcome(
        "importing the program, or constructing `ModelNew`, fails",
        "`harness show ID` has the traceback; `ModelNew` takes the constructor arguments of `Model`",
    ),
    Outcome.RUNTIME_ERROR: _outcome(
        "a call raises an error or ends the process, or a kernel does what a GPU does not allow",
        "`harness show ID` has the traceback and the kernel's line",
    ),
    Outcome.TIMEOUT: _outcome(
        "a call, an import or a kernel exceeded its time limit",
        "look for endless loops; limits: `--call-timeout`, `--first-call-timeout`, `--load-timeout`",
    ),
    Outcome.OUT_OF_MEMORY: _outcome(
        "the program exceeded the memory of the device or sandbox", "allocate less; free what a call no longer needs"
    ),
    Outcome.SUSPECT: _outcome(
        "never ranked: behaviour that legitimate programs do not show",
        "the fatal finding names it; a false positive is a bug of harness, which docs/red-team.md says how to report",
    ),
    Outcome.NOT_RUN: _outcome(
        "not evaluated: no suitable device, compiler or feature; does not count against the model",
        "the message names what is missing; `harness doctor` lists what this machine can evaluate",
    ),
    Outcome.PROBLEM_ERROR: _outcome(
        "not evaluated: a fault of the problem's file; does not count against the model",
        "`harness problems check FILE`, then the same command again",
    ),
    Outcome.HARNESS_ERROR: _outcome(
        "not evaluated: harness itself failed; does not count against the model",
        "the same command evaluates it again; report it if it stays",
    ),
}


def _timing(meaning: str, remedy: str = "") -> Explanation:
    return _explain("measurement.md#interval-and-verdict", meaning, remedy)


VERDICTS: dict[TimingVerdict | str, Explanation] = {
    "faster": _timing("the interval of the speedup lies above 1"),
    "slower": _timing("the interval of the speedup lies below 1"),
    "tie": _timing("the interval of the speedup contains 1; the speedup counts as 1"),
    "unreliable": _timing(
        "not ranked: the machine was disturbed in every measurement",
        "stop other programs, and evaluate again with `--again`",
    ),
    "unconfirmed": _timing(
        "not ranked: a call is too short for the evaluator's clock", "use larger sizes, or `timed: False` for the case"
    ),
    "untimed": _timing("only correctness was asked for (`--no-time`)", "evaluate again without this option"),
}


def _clock(meaning: str, remedy: str = "") -> Explanation:
    return _explain("report.md#in-a-terminal", meaning, remedy)


def _inputs(meaning: str) -> Explanation:
    return _explain("correctness.md#inputs", meaning)


INPUT_KINDS: dict[str, Explanation] = {
    "as_given": _inputs("the output of `get_inputs`"),
    "normal": _inputs("standard normal"),
    "uniform": _inputs("between -1 and 1"),
    "large": _inputs("as given, times 1000 (float16: 100)"),
    "tiny": _inputs("as given, times 0.001"),
    "scale_3": _inputs("as given, times 3"),
    "scale_0.01": _inputs("as given, times 0.01"),
    "scale_-1": _inputs("as given, times -1"),
    "scale_1e6": _inputs("as given, times 1e6 (float16: 100)"),
    "scale_1e-12": _inputs("as given, times 1e-12 (float16: 0.001)"),
    "zeros": _inputs("all zero"),
    "ties": _inputs("four distinct values"),
    "alternating": _inputs("as given, with signs + - + -, so that sums cancel"),
    "integers": _inputs("zeros and ones, compared exactly where every summation order is exact"),
    "padded": _inputs("as given, in a view with NaN between the rows, so that tensors are not contiguous"),
    "mixed": _inputs("as given, with elements or slices of declared stress distributions at secret positions"),
    "ordered": _inputs("opposite sign, or other distances, which keeps or reverses the order of values"),
    "biased": _inputs("low digits such that rounding to a narrower format errs in one direction"),
    "varied": _inputs("values inside or outside a secret stretch are 4 or 8 times as large"),
    "signed": _inputs("as `varied`, and every tensor has both signs"),
    "scaled": _inputs("tensors or slices times a power of two from 1/2 to 2^-24, or larger ones if declared"),
    "contrasted": _inputs(
        "slices that keep their values, or are larger if declared, beside others up to 2^24 times smaller"
    ),
    "shifted": _inputs("smaller or larger by 128, mostly in secret slices of the first dimension"),
    "peaked": _inputs("one element of a row exceeds the others, whose softmax is small, but not its sum"),
    "sparse": _inputs("few elements of one argument keep their values, the others are nearly zero"),
    "general": _inputs("other values that the contract of the inputs allows, and the ends of stated ranges"),
    "rare": _inputs("elements and slices of each random draw have its least and its largest value"),
}

CLOCKS: dict[Clock, Explanation] = {
    "device": _clock("device time: replays of both programs' GPU work, without host code"),
    "call": _clock("call time: whole calls of both programs, by the evaluator's clock"),
    "bound": _clock(
        "whole calls of the candidate against device time of the baseline: the speedup (`>=1.23x`) is a lower bound",
        "the finding `not_replayable` says why the candidate's work cannot be replayed",
    ),
    "mixed": _clock("the cases were timed by different clocks (`~1.23x`)", "`harness show ID` has each case's time"),
}


def _baseline(meaning: str, remedy: str = "") -> Explanation:
    return _explain("profiling.md#baselines", meaning, remedy)


BASELINES: dict[Baseline, Explanation] = {
    "eager": _baseline("the reference as it is written"),
    "eager-tf32": _baseline("the reference with TF32 products, on a GPU that has them"),
    "compile": _baseline("the reference through `torch.compile`"),
    "compile-max-autotune": _baseline("the reference through `torch.compile` that searches the fastest kernels"),
    "library": _baseline("the best library call: the class `Library` of the problem's file"),
}


def _severity(meaning: str) -> Explanation:
    return _explain("report.md#findings", meaning)


SEVERITIES = {
    "fatal": _severity("a finding that decided the outcome"),
    "warning": _severity("a finding that does not change the outcome, but deserves attention"),
    "note": _severity("a finding that does not change the outcome"),
}


def _ranking(meaning: str, remedy: str = "") -> Explanation:
    return _explain("getting-started.md#the-leaderboard", meaning, remedy)


LEADERBOARD = {
    "correct": _ranking("share of all problems with a correct candidate, averaged over the samples of a problem"),
    "fast_p": _ranking(
        "share of all problems with a correct candidate that is more than p times as fast as the baseline"
    ),
    "pass@k": _ranking("estimated share of problems that k different programs solve", "`-k 5` adds pass@5"),
    "problems": _ranking("number of problems that the model was asked, and of those with a result"),
    "speedup": _ranking(
        "geometric mean over the correct candidates with a confirmed time; their number in parentheses"
    ),
    "[low, high]": _ranking("interval of the mean speedup, noise floor included"),
    "own": _ranking("median share of a correct candidate's time that is spent in its own compiled code"),
    "cert": _ranking("whether all results were made under a valid certificate of the red team"),
    "turns": _ranking("mean number of turns per sample"),
    "best@turn": _ranking("median turn of the result that counts, from 0"),
    "tokens": _ranking("tokens per correct sample"),
    "cost": _ranking("cost per correct sample", "`--price` sets prices"),
}
_SETTINGS = {
    "SMALL": "sizes of the workload `small`; `full` has the sizes of the file and is scored",
    "TAGS": "for filters only",
    "TOLERANCE": "an output may deviate by `factor` times the reference's own error, or by atol + rtol * magnitude; "
    "null: the default of the dtype; `matched`: the share of elements that must be within it",
    "DISTRIBUTIONS": "distributions of the input values that a program must compute correctly",
    "INPUTS": "what each argument of `forward` may be; a program must be correct for all such inputs, for no others",
    "CASES": "sizes, dtypes and distributions that a program must compute correctly; the score is the geometric mean "
    "of the speedups of those without ranges. `small`: sizes in the workload `small`",
    "RANGES": "sizes drawn in secret for each evaluation: they add the case `secret`",
    "ALLOW_TF32": "whether the reference's matrix products may be computed in TF32",
    "DETERMINISTIC": "whether equal inputs must give bitwise equal outputs",
    "TRAINING": "whether the model is in training mode, and its buffers are compared too",
    "BACKWARD": "whether a call is forward and backward, and the gradients of floating inputs and parameters are "
    "compared too",
    "IN_PLACE": "whether calls change their inputs, which are compared too",
    "SEEDED_CALLS": "whether torch is seeded before each call, so that random numbers must be those of the reference",
    "DYNAMIC_SHAPES": "whether the program must be correct at nearby shapes",
    "DYNAMIC_WEIGHTS": "whether the program must be correct after a change of its weights",
    "FRESH_OUTPUTS": "whether each call must return new memory, so that outputs of earlier calls never change",
}
SETTINGS = {name: _explain("problems.md", meaning) for name, meaning in _SETTINGS.items()}

# By check: its meaning and its remedy.
_OUTPUTS = {
    "correctness": ("outputs are wrong", "compare with the reference at the element, inputs and case that it names"),
    "nondeterministic": (
        "repeated inputs gave other outputs",
        "wrong only with `DETERMINISTIC = True`: sum in a fixed order instead of with atomics",
    ),
    "reuses_output": (
        "note: a later call uses the memory of an earlier output again",
        "forbidden only by `FRESH_OUTPUTS = True`: allocate outputs in each call",
    ),
    "alias_input": ("an output shares memory with the inputs", "return new memory where the reference does"),
    "state": (
        "weights or state differ from the reference's after a call",
        "change buffers as the reference does, and no weights",
    ),
    "stream_order": (
        "the current stream does not wait for the outputs",
        "launch on the current stream, or make it wait for yours",
    ),
    "weights": (
        "weights that hardly affect the outputs cannot be set, so they cannot be tested",
        "keep the names and shapes of the reference's parameters",
    ),
    "strides": ("note: strides of an output differ from the reference's", ""),
    "containers": ("note: a list where the reference returns a tuple, or the reverse", ""),
    "reference_varies": ("note: the reference is not bitwise repeatable", ""),
}
_WARNINGS = {
    "weights_packed": (
        "the program ignores weights that change after its construction",
        "pack weights in each call; required only by `DYNAMIC_WEIGHTS`",
    ),
    "input_specialised": (
        "wrong on distributions that the problem does not declare",
        "test for zeros, large and tiny values; required only for `DISTRIBUTIONS`",
    ),
    "layout_specialised": ("wrong on inputs that are not contiguous", "call `x.contiguous()` before taking a pointer"),
    "shape_specialised": (
        "wrong on inputs of a nearby shape",
        "take sizes from the inputs; required only by `DYNAMIC_SHAPES`",
    ),
    "narrow_format": (
        "the program names a narrower format than the problem's",
        "make sure that the fewer digits are intended",
    ),
    "probes": ("note: robustness tests that were skipped, for lack of time or memory", ""),
}
_PROGRAM = {
    "exception": ("the program raised an error, or its process ended", "`harness show ID` has the traceback"),
    "address_sanitizer": (
        "with `--asan`: an invalid access of a C++ program, or a note that one call made none or was not checked",
        "the message has the line; take sizes from the inputs, and test every index",
    ),
    "build": ("a build failed; the program may have caught the error", "`harness show ID --log` prints the log"),
    "gpu_target": (
        "the program requests GPU targets that this GPU cannot run, so it was compiled for this one",
        "add the GPU's target to `TORCH_CUDA_ARCH_LIST` or `-gencode`, or name none",
    ),
    "language": ("note: how the language was detected", "choose another one with `--language`"),
    "sandbox": (
        "the program failed because of the sandbox: it has no network and none of your files or modules",
        "put all code and data into the one file",
    ),
    "output": ("the program printed a lot, which takes time", "remove prints"),
    "autotuned": ("note: the configurations that autotuning chose", ""),
    "removed_interface": (
        "the program uses block pointers, which later versions lack; they were compiled as earlier ones do",
        "use tensors of pointers, or tensor descriptors",
    ),
    "repeated": ("note: evaluated a second time, since the first one was disturbed", ""),
    "comparison": ("note: the program was not timed against an earlier turn", ""),
}
_INTEGRITY = {
    "screen": ("note: evaluated by `--screen` only", "evaluate it again without `--screen`"),
    "no_own_kernel": (
        "no custom kernel: neither an extension nor other machine code of the program",
        "write a kernel, or use `--language torch` where the suite requires none",
    ),
    "decoy_kernel": ("outputs do not depend on the custom kernel", "use what the kernel computes, or remove it"),
    "unused_kernel": ("the custom kernel does not run in the calls that count", "call it for all inputs"),
    "profile": ("the program could not be profiled, so its time is not attributed to code", ""),
    "protocol": (
        "the worker process sent an invalid message",
        "programs must not write to file descriptors that they did not open",
    ),
    "timed_call": ("a timed call was wrong", "compute each call anew: timed calls are verified, too"),
    "device_busy": ("work was left on the device after a call", "wait for the program's own streams and threads"),
    "pause": ("processes of the candidate do not stop when they are told to", "start no processes or threads"),
    "operations": ("fewer operations than the reference's, for its time", "nothing, if the algorithm needs fewer"),
    "roofline": ("faster than memory allows", "report it if the program does all of the work"),
    "contaminated": ("equal to a known solution, in whole or in one kernel", ""),
    "near_duplicate": ("equal to an earlier program of another model, in whole or in one kernel", ""),
}
_TIMES = {
    "baseline": (
        "nothing was timed against this baseline: it failed, its outputs were wrong, or problem or device lack it",
        "the message has the reason; another `--baseline` may do",
    ),
    "clock": ("a call is too short for the evaluator's clock", "use larger sizes"),
    "slower_inputs": (
        "the candidate is slower with one kind of inputs, the baseline is not; the slower time counts",
        "avoid branches that depend on values",
    ),
    "device_events": ("calls took longer by the host's clock than by device events: the difference is added", ""),
    "memory_use": (
        "a call holds at least twice as much device memory as the baseline's",
        "write partial results in place, and free what a call does not need",
    ),
    "conditions": ("the machine was disturbed", "stop other programs, and evaluate again with `--again`"),
    "not_replayable": (
        "note: timed by whole calls, since the GPU work of a call cannot be replayed; it names the reason",
        "avoid what it names, such as reading results on the host",
    ),
}
_HARNESS = {
    "memory": ("the evaluation was repeated after a failed allocation", ""),
    "memory_plan": ("checks that were reduced to fit in memory", "use a device with more free memory"),
    "memory_hoarding": (
        "an allocation failed since the candidate's process holds the memory",
        "free what calls do not need",
    ),
    "confinement": ("an isolation layer is missing", "`harness doctor` says why, and how to enable it"),
    "harness": ("harness itself failed", "report it with its evidence; the same command evaluates again"),
    "evaluator_lost": ("the evaluator's process ended", "the same command evaluates again; check the machine's memory"),
    "device_lost": ("the device failed during the evaluation", "check the device with `harness doctor`"),
    "problem": ("the problem's file failed", "`harness problems check FILE`"),
    "reference_stopped": (
        "the reference ended its process or exceeded its time limit",
        "`harness problems check FILE`; limit: `--reference-timeout`",
    ),
}
_ANSWERS = {
    "extraction": ("note: which program was taken from an answer with several", "`harness extract` lists them"),
    "in_reasoning": (
        "note: only text that counts as reasoning defines `ModelNew`",
        "check the reasoning parser of the server",
    ),
    "only_reasoning": ("note: the answer has reasoning and no content", "check the reasoning parser of the server"),
    "empty_answer": ("note: the answer is empty", "ask again, or check model and endpoint"),
    "truncated": ("note: the token limit cut the answer off", "raise `--max-tokens`"),
    "filtered": ("note: a content filter or a refusal ended the answer", "change the prompt, or ask another model"),
    "no_finish_reason": ("note: the endpoint gave no `finish_reason`: the answer may be cut off", "ask again"),
}
_SIZES = "take sizes from the inputs, and mask or test every index"
_EMULATED = {
    "out_of_bounds": ("a kernel reads or writes beyond a tensor or shared memory", _SIZES),
    "misaligned": ("a vector access at an address that is no multiple of its size", "treat unaligned rows separately"),
    "shared_race": (
        "threads of a block access an element of shared memory in no defined order",
        "add the missing `__syncthreads()`",
    ),
    "global_race": (
        "threads, blocks or programs access an element of global memory in no defined order",
        "give each element one writer, or use atomics",
    ),
    "uninitialised_shared": (
        "a kernel reads shared memory that nothing has written",
        "write the whole tile, with zeros outside of the inputs",
    ),
    "uninitialised_global": ("a kernel reads memory that nothing has written", "initialise it, e.g. `torch.zeros`"),
    "order": (
        "the result depends on the order of blocks and threads",
        "look for races, and for values that one block takes from another",
    ),
    "barrier_divergence": ("not all threads of a block reach a barrier", "move it out of conditions and loops"),
    "absent_lanes": ("the mask of a `*_sync` operation does not fit the lanes that reach it", "name the lanes that do"),
    "undefined_lane": ("a shuffle reads a lane that its mask does not name", "do not use that lane's value"),
    "cooperative_launch": (
        "a grid waits for itself without a cooperative launch, or has more blocks than fit at once",
        "launch it cooperatively, with fewer blocks",
    ),
    "invalid_launch": ("a size of a launch is zero", "return early for empty inputs"),
    "too_many_threads": ("more threads per block than the GPU, or the launch bounds, allow", "use smaller blocks"),
    "too_many_blocks": ("more blocks than a grid may have", "use another dimension, or a loop in the kernel"),
    "too_much_shared": ("more shared memory than the GPU has, or than was requested", "use smaller tiles"),
    "host_access": ("host code of the extension reads or writes a GPU tensor", "copy it to the host first"),
    "host_memory": ("a kernel accesses a host tensor", "move it to the GPU first"),
    "assertion": ("an `assert` of a kernel failed", "the message has its condition"),
    "trap": ("a kernel stopped itself, or made an error of arithmetic", "the message has its line"),
    "stack_overflow": ("a thread of a kernel used up its stack", "use smaller local arrays, or less recursion"),
    "time_limit": ("kernels did not end in time on the emulated device", "look for endless loops; use smaller sizes"),
    "uncovered": ("the program uses what the emulated device lacks (`not_run`)", "evaluate it on a GPU"),
    "interpreter": (
        "the interpreter failed where the compiler accepts the kernel",
        "evaluate it on a GPU, or write the line differently",
    ),
    "compile_error": ("a kernel does not compile for the GPU", "the message quotes the compiler"),
    "compile": ("note: which kernels were compiled for the GPU, or why not", ""),
    "kernels": ("note: kernels that could not be checked", ""),
    "launches": ("note: launches at the full sizes that were not compared with the GPU's limits", ""),
    "nvcc": ("note: whether nvcc accepts the program, too", "install nvcc (`harness doctor`) for this check"),
    "size_specialised": ("wrong at other sizes of an emulated run, or not tried there", _SIZES),
}
_PAGES = {
    "correctness.md#memory-weights-state-and-streams": _OUTPUTS,
    "correctness.md#warnings": _WARNINGS,
    "report.md#findings": _PROGRAM | _HARNESS | _ANSWERS,
    "red-team.md": _INTEGRITY,
    "measurement.md": _TIMES,
    "emulated.md#the-sanitizer-pass": _EMULATED,
}
CHECKS = {
    name: Explanation(meaning, remedy, page)
    for page, checks in _PAGES.items()
    for name, (meaning, remedy) in checks.items()
}
