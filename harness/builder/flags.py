"""Rejects compiler flags that could run programs or access files, by a deny list."""

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
# Exceptions from a refused prefix.
HARMLESS = ("-Bsymbolic", "-time=", "--time=", "-compress")
SHELL_CHARACTERS = set(";|&`$<>\n\r\0")


def refuse_flags(request: BuildRequest) -> str | None:
    """Return the reason for refusing the request's flags, or None."""
    for flag in (*request.extra_cflags, *request.extra_cuda_cflags, *request.extra_ldflags):
        # Before splitting: a line break would be one in the build file too.
        if SHELL_CHARACTERS & set(flag):
            return f"the flag {flag!r} contains shell metacharacters"
        for part in _parts(flag):
            if part.startswith(REFUSED_PREFIXES) and not part.startswith(HARMLESS):
                return f"the flag {flag!r} is refused: it could run a program, or read or write files"
    return None


def _parts(flag: str) -> list[str]:
    words = []
    for word in flag.replace('"', " ").replace("'", " ").split():
        for prefix in PASS_THROUGH:
            if word.startswith(prefix):
                words += [part for part in word[len(prefix) :].lstrip("=").split(",") if part]
                break
        else:
            words.append(word)
    return words
