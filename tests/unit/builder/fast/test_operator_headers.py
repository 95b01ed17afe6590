"""Headers without operators that a source does not name."""

from harness.builder.fast.operators import ALL_OPERATORS, MACRO, NARROW, narrow_operators, write_narrow_lists

LIST = "#pragma once\n#include <ATen/ops/add.h>\n#include <ATen/ops/from_blob.h>\n#include <ATen/ops/sum.h>\n"


def write_headers(include):
    (include / "ATen" / "ops").mkdir(parents=True)
    (include / "ATen" / "Functions.h").write_text(f"{LIST}inline void f() {{ at::from_blob(0); }}\n")
    (include / "ATen" / "NativeFunctions.h").write_text("#include <ATen/ops/sum_native.h>\n")
    for name in ("add", "sum"):
        (include / "ATen" / "ops" / f"{name}.h").touch()


def test_a_list_keeps_the_operators_that_its_own_functions_call(tmp_path):
    write_headers(tmp_path / "torch")
    write_narrow_lists(tmp_path, tmp_path / "torch", all_operators=True)
    narrow = (tmp_path / NARROW / "ATen" / "Functions.h").read_text()
    assert "from_blob.h" in narrow
    assert "sum.h" not in narrow
    names = [
        line[len("#include <ATen/ops/") : -1] for line in (tmp_path / NARROW / ALL_OPERATORS).read_text().split("\n")
    ]
    assert names == ["add.h", "from_blob.h", "sum.h", "sum_native.h"]


def test_operators_named_by_a_source_are_included_and_no_others(tmp_path):
    write_headers(tmp_path)
    flags = narrow_operators(tmp_path / "kit", {"sum", "return", "../sum"}, tmp_path).split()
    assert flags == [f"-I{tmp_path}/kit/{NARROW}", f"-D{MACRO}", "-include", "ATen/ops/sum.h"]
