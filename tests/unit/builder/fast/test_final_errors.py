"""Which errors are final without asking the plain lane; texts only, no compiler is run."""

import pytest

from harness.builder.fast.final_errors import find_final_errors, list_words

SOURCE = "/f/cuda.cu"
HOST = "at::Tensor run(at::Tensor x) {\n  k<<<1, 2>>>(x.data<float>());\n  MISSING_CHECK();\n  return x;\n}\n"
KNOWN = {"at", "Tensor", "index", "LATER_CHECK"}


def block(line, message, file=SOURCE):
    return f"{file}({line}): error{message}\n      the line\n      ^\n\n"


def ask(log, own=HOST, known=KNOWN):
    return find_final_errors(f"{log}1 error detected.\n", SOURCE, f'# 1 "{SOURCE}"\n{own}', known)


def test_a_macro_whose_header_was_not_included_is_final_in_the_compilers_words():
    log = block(3, ': identifier "MISSING_CHECK" is undefined')
    assert ask(log) == log


def test_a_name_of_any_header_that_is_included_is_the_plain_lanes():
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


def test_a_name_that_the_text_has_before_may_depend_on_what_went_wrong_there():
    own = "at::Tensor run(at::Tensor x) {\nauto mine = x.size();\nreturn mine;\n}\n"
    assert ask(block(3, ': identifier "mine" is undefined'), own) is None


def test_only_what_the_first_error_says_makes_it_final():
    log = block(2, ": no member") + block(3, ': identifier "MISSING_CHECK" is undefined')
    assert ask(log) is None


def test_an_error_in_a_header_is_the_plain_lanes():
    log = block(4, ': identifier "x" is undefined', "/usr/include/x.h")
    assert ask(log + block(3, ': identifier "MISSING_CHECK" is undefined')) is None


def test_an_instance_that_host_code_asked_for_is_the_plain_lanes():
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
