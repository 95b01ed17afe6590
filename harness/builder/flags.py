"""Which compiler flags are refused: compiling happens on the judge's side, and a flag can run a program or read a file.

A list of what is not honest, not of what is known: any flag that only changes the code is passed on as it is.
"""

from __future__ import annotations

from harness.domain import BuildRequest

REFUSED_PREFIXES = (
    "@", "-fplugin", "-specs", "--specs", "-wrapper", "-B", "-iplugindir", "-ccbin", "--compiler-bindir", "-o",
    "--output", "-odir", "--output-directory", "-include", "-imacros", "-iprefix", "-isysroot", "--sysroot",
    "-fdump", "-save-temps", "--save-temps", "--keep", "-keep", "-optf", "--options-file", "-dryrun", "--dryrun",
    "-T", "-R", "--script", "-plugin", "--plugin", "-rpath", "--rpath", "-Map", "--Map", "-run", "--run", "-ldir",
    "--dynamic-list", "--version-script", "-version-script", "--retain-symbols-file", "--just-symbols",
    "--dependency-file", "--remap-inputs", "--section-ordering-file", "--out-implib", "--output-def",
    "-fauto-profile", "-fopt-info", "-aux-info", "-dumpdir", "-dumpbase", "-fcallgraph-info", "-fstack-usage",
    "-fsanitize-blacklist", "-fsanitize-ignorelist", "-gsplit-dwarf", "-M", "--dependency",
    "--generate-dependencies", "--gen_", "--create_pch", "--use_pch", "--pch", "-pch", "--stub_file_name",
    "--module_id_file", "--input-drive", "--load", "-load", "--compile-as-tools", "--libdevice-directory",
    "-fmodule", "-fdeps", "-time", "--time", "-fprofile", "-ftest-coverage", "--coverage", "-x", "-E", "-S", "-c",
)  # fmt: skip
PASS_THROUGH = (
    "-Xcompiler", "--compiler-options", "-Xlinker", "--linker-options", "-Xptxas", "--ptxas-options", "-Wl,",
    "-Wa,", "-Wp,", "-Xcudafe", "-Xcicc", "-Xfatbin", "-Xnvlink", "--nvlink-options", "-Xassembler",
    "-Xpreprocessor", "-Xarchive", "--archive-options",
)  # fmt: skip
# Allowed although a refused prefix begins like them.
HARMLESS = ("-Bsymbolic", "-time=", "--time=", "-compress")
SHELL_CHARACTERS = set(";|&`$<>\n\r\0")


def refuse_flags(request: BuildRequest) -> str | None:
    """Why a request's flags are refused, or None."""
    for flag in (*request.extra_cflags, *request.extra_cuda_cflags, *request.extra_ldflags):
        # The flag as it is, before it is split: a line break in it would be one in the build file too.
        if SHELL_CHARACTERS & set(flag):
            return f"the flag {flag!r} contains characters that a shell would act on"
        for part in _parts(flag):
            if part.startswith(REFUSED_PREFIXES) and not part.startswith(HARMLESS):
                return f"the flag {flag!r} is refused: it could run a program, or read or write files"
    return None


def _parts(flag: str) -> list[str]:
    """The words of a flag; what is passed through to another program counts as words of its own."""
    words = []
    for word in flag.replace('"', " ").replace("'", " ").split():
        for prefix in PASS_THROUGH:
            if word.startswith(prefix):
                words += [part for part in word[len(prefix) :].lstrip("=").split(",") if part]
                break
        else:
            words.append(word)
    return words
