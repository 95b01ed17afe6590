"""Which errors of ptxas are final; texts as nvcc 13.0 gives them, no compiler is run."""

import pytest

from harness.builder.fast.final_errors import has_final_assembler_error

PTX = """.version 9.0
.target sm_90a
.extern .func  (.param .b32 func_retval0) _Z6helperf
.func  (.param .b32 func_retval0) _Z5innerf(
	.param .b32 _Z5innerf_param_0
)
{ first; }
.visible .entry KERNEL(
	.param .u64 .ptr .align 1 KERNEL_param_0
)
{ second; }
"""
IN_FUNCTION, IN_KERNEL = 7, 11
PLAIN = ("scale", "_Z5scalePf", "_ZL5scalePKfPfif", "_ZN4mine5scaleEPf", "_ZN4mineL5scaleEPf")
INSTANCES = ("_Z5scaleIfEvPT_", "_ZN4mine5scaleIfEEvPT_", "_ZN4mine3BoxIfE5scaleEPf", "_ZZ3runvENKUlvE_clEv")


def ask(error, kernel="_Z5scalePf", known=frozenset({"known"})):
    return has_final_assembler_error(
        f"{error}\nptxas fatal   : Ptx assembly aborted due to errors\n", PTX.replace("KERNEL", kernel), known
    )


def at(line):
    return f"ptxas cuda.ptx, line {line}; error   : Instruction 'wgmma.fence' not supported on .target 'sm_90'"


@pytest.mark.parametrize("kernel", PLAIN)
def test_an_error_in_a_kernel_is_final(kernel):
    assert ask(at(IN_KERNEL), kernel)
    assert ask(
        f"ptxas error   : Entry function '{kernel}' uses too much shared data (0x61a80 bytes, 0x38c00 max)", kernel
    )


@pytest.mark.parametrize("kernel", INSTANCES)
def test_an_error_in_an_instance_of_a_template_is_not(kernel):
    assert not ask(at(IN_KERNEL), kernel)
    assert not ask(
        f"ptxas error   : Entry function '{kernel}' uses too much shared data (0x61a80 bytes, 0x38c00 max)", kernel
    )


def test_error_in_a_function_without_callers_is_final():
    assert ask(at(IN_FUNCTION))
    assert not ask(at(IN_FUNCTION), INSTANCES[0])


def test_a_function_that_nobody_defines_is_final_unless_a_header_may():
    assert ask("ptxas fatal   : Unresolved extern function '_Z6helperf'")
    assert not ask("ptxas fatal   : Unresolved extern function '_Z6helperf'", INSTANCES[0])
    assert not ask("ptxas fatal   : Unresolved extern function '_ZN2at5knownEf'")


@pytest.mark.parametrize(
    "text", ["ptxas fatal   : Memory allocation failure", "cuda.cu(3): error: expected a \";\"", "Killed", ""]
)  # fmt: skip
def test_assembler_error_caused_by_machine_or_headers_is_not_final(text):
    assert not has_final_assembler_error(text, PTX.replace("KERNEL", "scale"), frozenset())
