"""Which errors are final without asking the plain lane; texts only, no compiler is run."""

import pytest

from harness.build.proof import UnbalancedError, count_names, is_final, split_declarations

LEAN = "int printf(const char*); float expf(float); namespace at { class Tensor; }\n"
# As after torch's own headers: more in their namespaces, and some more at file scope.
REAL = count_names(LEAN + "namespace at { class More; } namespace c10 {} float index(float); struct THPThing {};")
KERNEL = """
__attribute__((global)) void k(const float* x, float* y, int n) {
  int i = threadIdx.x;
  if (i < n) { y[i] = WHAT; }
}
"""
HOST = "at::Tensor run(at::Tensor x) { k<<<1, 2>>>(x.data<float>()); return x; }\n"


def ask(own, line, message='identifier "missing" is undefined', more="", words=None):
    log = f"/f/cuda.cu({line}): error: {message}\n    the line\n{more}\n\n1 error detected.\n"
    return is_final(log, "/f/cuda.cu", f'# 1 "/f/cuda.cu"\n{own}', LEAN, REAL, words=words)


def test_an_error_in_a_kernel_that_names_nothing_of_torchs_is_final():
    assert ask(KERNEL.replace("WHAT", "missing(x[i])") + HOST, 4)


@pytest.mark.parametrize(
    "own",
    [
        KERNEL.replace("WHAT", "at::missing(x[i])"), KERNEL.replace("WHAT", "std::missing(x[i])") + "namespace std {}",
        KERNEL.replace("WHAT", "index(x[i])"), KERNEL.replace("WHAT", "THPThing()"),
        "\n\n\n" + HOST,
    ],
    ids=["torch", "std", "a name that more headers declare", "a type that more headers declare", "host code"],
)  # fmt: skip
def test_an_error_beside_a_word_of_other_headers_is_the_plain_lanes_to_find(own):
    real = dict(REAL)
    real["std"] = 7
    log = '/f/cuda.cu(4): error: identifier "missing" is undefined\n\n'
    assert not is_final(log, "/f/cuda.cu", f'# 1 "/f/cuda.cu"\n{own}', LEAN, real)


@pytest.mark.parametrize(
    "before",
    [
        "struct Args { at::Tensor t; }; struct Outer { Args a; }; extern Outer own;",
        "using own = at::Half;", "typedef at::Half own;", "namespace own = at;", "auto own() { return at::Half(); }",
        "template <typename T> at::Half own(T v);", "enum Kind { own = at::kFloat };", "at::Half (*own)(int);",
        "struct Args { at::Tensor t; } own;",
    ],
)  # fmt: skip
def test_what_a_kernel_takes_from_another_declaration_counts_as_its_own(before):
    own = before + KERNEL.replace("WHAT", "missing(own)") + HOST
    assert not ask(own, 4)
    assert ask("struct Other { at::Tensor t; };" + KERNEL.replace("WHAT", "missing(own)"), 4)


@pytest.mark.parametrize("directive", ["using namespace at;", "using at::Tensor;"])
def test_with_torchs_names_in_scope_nothing_is_final(directive):
    assert not ask(directive + KERNEL.replace("WHAT", "missing(x[i])"), 4)


def test_a_kernel_in_a_namespace_of_torchs_is_the_plain_lanes():
    kernel = KERNEL.replace("WHAT", "missing(x[i])")
    assert not ask("namespace at {" + kernel + "}", 4)
    assert ask("namespace mine {" + kernel + "}", 4)
    assert ask("namespace {" + kernel + "}" + HOST, 4)


def test_an_instance_that_host_code_asked_for_is_the_plain_lanes():
    kernel = "template <typename T>" + KERNEL.replace("WHAT", "T::missing()")
    assert not ask(kernel, 4, more='          detected during instantiation of "void k<T>(T) [with T=at::Half]"')
    assert ask(kernel, 4)


MISTAKES = {
    "a misspelled function": ('identifier "tensro" is undefined', "return tensro(x);", True),
    "a member that there is not": ('class "at::Tensor" has no member "tensro"', "return x.tensro();", True),
    "a member of a namespace": ('namespace "at" has no member "tensro"', "return at::tensro(x);", True),
    "a word of some header": ('class "at::Tensor" has no member "index"', "return x.index();", False),
    "an error of another kind": ("no instance of function matches", "return tensro(x);", False),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_name_that_nobody_knows_is_final_in_host_code(mistake):
    message, body, decided = MISTAKES[mistake]
    own = f"at::Tensor run(at::Tensor x) {{\n{body}\n}}\n"
    assert ask(own, 2, message, words={"at", "Tensor", "index"}) == decided
    assert not ask(own, 2, message)


def test_a_name_that_the_text_has_before_may_depend_on_what_went_wrong_there():
    own = "at::Tensor run(at::Tensor x) {\nauto mine = x.size();\nreturn mine;\n}\n"
    assert not ask(own, 3, 'identifier "mine" is undefined', words={"at", "Tensor", "size"})


def test_an_error_that_could_be_turned_off_is_the_plain_lanes():
    log = "/f/cuda.cu(4): error #20-D: this is so\n\n"
    own = KERNEL.replace("WHAT", "missing(x[i])")
    assert not is_final(log, "/f/cuda.cu", f'# 1 "/f/cuda.cu"\n{own}', LEAN, REAL)


def test_only_the_first_error_counts():
    own = HOST + KERNEL.replace("WHAT", "missing(x[i])")
    log = "/f/cuda.cu(1): error: no member\n\n/f/cuda.cu(5): error: undefined\n\n"
    assert not is_final(log, "/f/cuda.cu", f'# 1 "/f/cuda.cu"\n{own}', LEAN, REAL)


def test_an_error_in_a_header_is_the_plain_lanes():
    log = "/usr/include/x.h(4): error: undefined\n\n/f/cuda.cu(5): error: undefined\n\n"
    assert not is_final(log, "/f/cuda.cu", KERNEL, LEAN, REAL)


@pytest.mark.parametrize("own", [HOST.replace("}", ""), HOST + "}", HOST.replace(");", "];")])
def test_brackets_that_do_not_match_are_final_wherever_they_are(own):
    assert ask(own, 1, 'expected a "}"')


def test_brackets_in_texts_are_none():
    own = HOST.replace("return x", "const char* s = \"}}\"; char c = '{'; return x")
    assert not ask(own, 1)
    assert not ask(HOST.replace("return x", 'auto s = R"(}})"; return x'), 1)


def test_a_file_that_is_nowhere_is_final():
    log = "/f/cuda.cu:5:10: fatal error: nowhere.h: No such file or directory\n    5 | #include\n"
    assert is_final(log, "/f/cuda.cu", "", LEAN, REAL)
    assert not is_final(log, "/f/other.cu", "", LEAN, REAL)


def test_a_log_without_an_error_proves_nothing():
    assert not is_final("Segmentation fault\n", "/f/cuda.cu", KERNEL, LEAN, REAL)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("int f(int x, float* y);", {"f"}), ("void f() { int inner; }", {"f"}),
        ("struct A { int inner; } a;", {"A", "a"}), ("namespace n::m { int inner; }", {"n"}),
        ('extern "C" { int f(int); int g(); }', {"f", "g"}), ("enum { A, B };", {"A", "B"}),
        ("typedef void (*handler)(int);", {"handler"}), ("template <typename T, int N = 3> T f(T v);", {"T", "f"}),
        ("template <bool B = (1 < 2)> int f();", {"f"}), ("int a = f(1), b[2] = {1, 2};", {"a", "f", "b"}),
        ("void f() try { inner(); } catch (int) { inner(); }", {"f"}), ("namespace { int f(); }", {"f"}),
        ("A::A(T t) : x{1} { inner(); }", {"A", "x"}),
    ],
)  # fmt: skip
def test_names_at_file_scope_are_found(text, names):
    assert {name for name, count in count_names(text).items() if count} == names


def test_a_body_after_initialisers_belongs_to_its_function():
    declarations = list(split_declarations("A::A(T t) : x{1} { body(); }\nint f();", enter_namespaces=True))
    assert ["body" in one.words for one in declarations] == [True, False]
    assert declarations[0].words >= {"A", "T", "t", "x", "body"}


def test_unbalanced_headers_are_no_ground_for_a_proof():
    with pytest.raises(UnbalancedError):
        count_names("namespace at { ")
