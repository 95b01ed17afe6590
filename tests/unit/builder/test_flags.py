import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.builder.builder import refuse_flags
from harness.domain import BuildRequest

KINDS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")


def refuse(*flags, kind="extra_cflags"):
    return refuse_flags(BuildRequest(name="x", **{kind: flags}))


@pytest.mark.parametrize(
    "flag",
    [
        "-fplugin=./evil.so", "-specs=my.specs", "--specs=x", "-wrapper gdb", "-B/tmp", "-o /tmp/x", "@options",
        "-include /etc/passwd", "-imacros /etc/passwd", "-isysroot /x", "--sysroot=/x", "-save-temps=obj", "-MF x",
        "-fdump-tree-all", "-ccbin=/tmp/cc", "--compiler-bindir /tmp", "--options-file x", "-optf x", "--keep",
        "-run", "-x c", "-E", "-S", "-c", "-fprofile-use=/x", "--coverage", "-odir /tmp",
        "-Wl,-rpath,/tmp", "-Wl,-T,script", "-Wl,--script=x", "-Wl,-plugin,x.so", "-Wl,-Map=x", "-Wl,@x",
        "-Wl,--version-script=/etc/passwd", "-Wl,--dynamic-list=/x", "-fauto-profile=/x", "-fopt-info-all=/tmp/x",
        "-aux-info /tmp/x", "-Xcudafe --gen_c_file_name=/tmp/x", "-Xcicc --create_pch=x", "-Xnvlink --options-file=x",
        "-Xpreprocessor -include -Xpreprocessor /etc/passwd", "-MT x", "-M", "-fstack-usage", "-gsplit-dwarf",
        "-Wl,-O1,--plugin=x.so", "-Wl,--as-needed,-rpath,/tmp", "-Xlinker -plugin=x.so", "-Xlinker -rpath",
        "-Xcompiler -fplugin=x.so", "-Xcompiler=-O3,-fplugin=x.so", "-Xcompiler '-B/tmp'",
        "--compiler-options=-fplugin=x.so", "-O3 -fplugin=x.so",
        "-DX=$(id)", "-DX=`id`", "-O3; rm x", "-O3 | tee x", "-O3 > x", "-O3\nrm x", "-DA&&B", "-DX=${HOME}",
    ],
)  # fmt: skip
def test_flag_that_runs_a_program_or_touches_a_file_is_refused(flag):
    assert [kind for kind in KINDS if refuse(flag, kind=kind) is None] == []


@pytest.mark.parametrize(
    "flag",
    [
        "", "-O3", "-O2 -march=native", "-ffast-math", "-fopenmp", "-std=c++20", "-DNAME=1", "-Wall", "-g", "-fPIC",
        "-mavx512f", "-funroll-loops", "-I/usr/include", "-lcublas", "-L/usr/lib", "-lgomp", "-w", "-pthread",
        "--use_fast_math", "-use_fast_math", "-lineinfo", "--expt-relaxed-constexpr", "--expt-extended-lambda",
        "-gencode=arch=compute_90,code=sm_90", "-arch=sm_90a", "-maxrregcount=64", "--ptxas-options=-v", "-Xptxas -O3",
        "-Xcompiler -fopenmp", "-Xcompiler=-O3,-march=native", "-rdc=true", "--threads 4", "-Wl,--no-as-needed",
        "-Wl,-Bsymbolic", "-Xcudafe --diag_suppress=20012", "-Xfatbin -compress-all",
        "-Bsymbolic", "-flto", "-fno-exceptions", "-Wno-unused",
    ],
)  # fmt: skip
def test_a_flag_that_only_changes_the_code_is_passed_on(flag):
    assert refuse(flag) is None


@given(st.text())
def test_any_text_is_either_refused_with_its_own_words_or_passed_on(flag):
    reason = refuse(flag)
    assert reason is None or repr(flag) in reason
