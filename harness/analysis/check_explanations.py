"""Explains each check that a finding may name: `harness explain`. docs/report.md has the same table."""

from __future__ import annotations

from harness.analysis.explanations import Explanation

_OUTPUTS = {
    "correctness": ("outputs are wrong", "compare with the reference at the element, inputs and case that it names"),
    "nondeterministic": (
        "repeated inputs gave other outputs",
        "wrong only with `DETERMINISTIC = True`: sum in a fixed order instead of with atomics",
    ),
    "reuses_output": (
        "note: a later call returns the memory of an earlier output again",
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
    "build": (
        "a build failed; the program may have caught the error",
        "`harness show ID --log` prints the log",
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
    "screen": (
        "the source contains calls that kernels rarely need, or was evaluated at some sizes only",
        "nothing, if they are intended: behaviour decides",
    ),
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
    "operations": (
        "fewer operations than the reference's, for its time",
        "nothing, if the algorithm needs fewer",
    ),
    "roofline": ("faster than memory allows", "report it if the program does all of the work"),
    "contaminated": ("equal to a known solution, in whole or in one kernel", ""),
    "near_duplicate": ("equal to an earlier program of another model, in whole or in one kernel", ""),
}
_TIMES = {
    "clock": ("a call is too short for the evaluator's clock", "use larger sizes"),
    "slower_inputs": (
        "the candidate is slower with one kind of inputs, the baseline is not; the slower time counts",
        "avoid branches that depend on values",
    ),
    "device_events": ("calls took longer by the host's clock than by device events: the difference is added", ""),
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
