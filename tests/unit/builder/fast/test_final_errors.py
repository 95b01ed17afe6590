"""Which errors are final without asking the plain strategy; texts only, no compiler is run."""

import pytest

from harness.builder.fast.final_errors import find_final_errors, list_words

SOURCE = "/f/cuda.cu"
HOST = "at::Tensor run(at::Tensor x) {\n  k<<<1, 2>>>(x.data<float>());\n  MISSING_CHECK();\n  return x;\n}\n"
KNOWN = {"at", "Tensor", "index", "LATER_CHECK"}


def block(line, message, file=SOURCE):
    return f"{file}({line}): error{message}\n      the line\n      ^\n\n"


def ask(log, own=HOST, known=KNOWN):
    return find_final_errors(f"{log}1 error detected.\n", SOURCE, f'# 1 "{SOURCE}"\n{own}', known)


def test_macro_of_a_missing_header_is_a_final_compiler_error():
    log = block(3, ': identifier "MISSING_CHECK" is undefined')
    assert ask(log) == log


def test_name_from_an_included_header_is_left_to_the_plain_strategy():
    assert ask(block(3, ': identifier "MISSING_CHECK" is undefined'), known=KNOWN | {"MISSING_CHECK"}) is None


def test_the_same_unknown_name_counts_at_every_place():
    own = HOST + "void more() {\n  MISSING_CHECK();\n}\n"
    log = block(3, ': identifier "MISSING_CHECK" is undefined') + block(7, ': identifier "MISSING_CHECK" is undefined')
    assert ask(log, own) == log


def test_errors_that_may_come_from_the_facade_are_left_out_and_counted():
    first = block(3, ': identifier "MISSING_CHECK" is undefined')
    found = ask(first + block(4, ": no instance of overloaded function matches"))
    assert found.startswith(first)
    assert "no instance" not in found
    assert "1 more error" in found


MISTAKES = {
    "a misspelled function": (': identifier "tensro" is undefined', "return tensro(x);", True),
    "a member that there is not": (': class "at::Tensor" has no member "tensro"', "return x.tensro();", True),
    "a member of a namespace": (': namespace "at" has no member "tensro"', "return at::tensro(x);", True),
    "a word of some header": (': class "at::Tensor" has no member "index"', "return x.index();", False),
    "an error of another kind": (": no instance of function matches", "return tensro(x);", False),
    "one that a pragma turns off": (' #20-D: identifier "tensro" is undefined', "return tensro(x);", False),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_name_that_nobody_knows_is_final(mistake):
    message, body, decided = MISTAKES[mistake]
    assert (ask(block(2, message), f"at::Tensor run(at::Tensor x) {{\n{body}\n}}\n") is not None) == decided


def test_name_used_earlier_may_depend_on_an_earlier_error():
    own = "at::Tensor run(at::Tensor x) {\nauto mine = x.size();\nreturn mine;\n}\n"
    assert ask(block(3, ': identifier "mine" is undefined'), own) is None


def test_only_what_the_first_error_says_makes_it_final():
    log = block(2, ": no member") + block(3, ': identifier "MISSING_CHECK" is undefined')
    assert ask(log) is None


def test_an_error_in_a_header_is_left_to_the_plain_strategy():
    log = block(4, ': identifier "x" is undefined', "/usr/include/x.h")
    assert ask(log + block(3, ': identifier "MISSING_CHECK" is undefined')) is None


def test_instance_requested_by_host_code_is_left_to_the_plain_strategy():
    log = block(3, ': identifier "MISSING_CHECK" is undefined').replace(
        "\n\n", '\n          detected during instantiation of "void k<T>(T) [with T=at::Half]"\n\n'
    )
    assert ask(log) is None


@pytest.mark.parametrize("own", [HOST.replace("}", ""), HOST + "}", HOST.replace(");", "];")])
def test_brackets_that_do_not_match_are_final(own):
    assert ask(block(1, ': expected a "}"'), own) is not None


@pytest.mark.parametrize(
    "text",
    ["const char* s = \"}}\"; char c = '{';", 'auto s = R"x(}})" )x";', "int n = 1'000; f(n);", "char c = u8'(';"],
)
def test_brackets_in_texts_are_none(text):
    assert ask(block(1, ': expected a "}"'), HOST.replace("return x;", f"{text} return x;")) is None


def test_a_file_that_is_nowhere_is_final():
    log = f"{SOURCE}:5:10: fatal error: nowhere.h: No such file or directory\n    5 | #include\n"
    assert ask(log, "") is not None
    assert ask(log.replace(SOURCE, "/f/other.cu"), "") is None


def test_a_log_without_an_error_proves_nothing():
    assert ask("Segmentation fault\n") is None


def test_lines_are_counted_from_the_last_marker():
    own = f'# 1 "/usr/include/x.h" 3\nint x;\n\n# 20 "{SOURCE}" 2\nvoid f() {{\n  missing();\n}}\n'
    assert ask(block(21, ': identifier "missing" is undefined'), own) is not None
    assert ask(block(2, ': identifier "missing" is undefined'), own) is None


def test_words_of_macros_count():
    assert list_words("#define A(x) do { b2(x); } while (0)\n") == ["A", "b2", "define", "do", "while", "x"]


KERNEL = "__global__ void k(const float* x, float* y, int n) {\n  float v = x[0]\n  y[0] = v;\n}\n"
SEMICOLON = block(3, ': expected a ";"')
BESIDE = {
    "alone": ("", "", True),
    "host code that uses torch": (HOST, "", True),
    "a type of the candidate": ("struct Pair { float a, b; };\nusing Two = Pair;\n", "Two t;", True),
    "a header's function": ("", "y[0] = fmaxf(v, 0.f);", True),
    "torch itself": ("", "y[0] = at::kPi;", False),
    "a member that is called like a namespace": ("", "y[0] = box.at(0);", True),
    "an alias of a type of torch": ("using Two = at::Half;\n", "Two t;", False),
    "an alias of such an alias": ("using Two = at::Half;\ntypedef Two Three;\n", "Three t;", False),
    "a class that contains one": ("struct Pair { at::Tensor t; };\n", "Pair* p;", False),
    "an alias of a namespace": ("namespace t = torch;\n", "y[0] = t::one;", False),
    "a using directive": ("using namespace torch;\n", "", False),
    "a using directive in a namespace": ("inline namespace mine { using namespace at; }\n", "", False),
    "a function in a namespace": ("namespace { at::Half half_of(float); }\n", "half_of(v);", False),
    "a value of an enumeration": ("enum { FIRST = at::kLong };\n", "v = FIRST;", False),
    "a macro of a header that is not read here": ("", "HIDDEN_MACRO(v);", False),
}


@pytest.mark.parametrize("beside", BESIDE)
def test_a_syntax_error_is_final_where_torch_cannot_give_names_another_meaning(beside):
    before, statement, decided = BESIDE[beside]
    kernel = KERNEL.replace("y[0] = v;", f"y[0] = v; {statement}")
    own = f'# 1 "other.h"\n{before}# 1 "{SOURCE}"\n{kernel}'
    found = find_final_errors(SEMICOLON, SOURCE, own, KNOWN, frozenset({"HIDDEN_MACRO"}))
    assert (found == SEMICOLON) == decided
    assert (found is None) != decided


def test_syntax_error_in_torch_host_code_is_left_to_the_plain_strategy():
    assert ask(SEMICOLON) is None


def test_other_errors_in_a_kernel_are_left_to_the_plain_strategy():
    assert ask(block(3, ': argument of type "float" is incompatible'), KERNEL) is None


def test_errors_after_a_syntax_error_are_counted():
    found = ask(SEMICOLON + block(4, ': expected a ")"'), KERNEL)
    assert found == f"{SEMICOLON}1 more errors are omitted: they may follow from these, or from the stub headers.\n"
