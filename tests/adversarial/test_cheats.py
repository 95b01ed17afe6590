"""Candidates that try to be taken for right, or for fast, without doing the work. Each is one mechanism; none may end
as `correct`, and none may carry a speedup. Beside them stand honest candidates in different styles, which must be
accepted.

On the CPU device, in plain Python: the mechanisms are those of the process, not of the kernel.
"""

import time
import uuid
from pathlib import Path

import pytest

HEAD = """
import ctypes, gc, json, os, socket, struct, sys, threading, time
import torch
from torch import nn
"""

LINEAR_PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(32, 48)]

def get_init_inputs():
    return [48]
"""

PRODUCT_PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(96, 128), torch.randn(128, 80)]

def get_init_inputs():
    return []
"""


def forward(body, before="", init=""):
    """A candidate for (a, b) -> a + b whose forward is `body`; `before` stands at module level."""
    constructor = f"    def __init__(self):\n        super().__init__()\n        {init}\n" if init else ""
    indented = body.strip().replace("\n", "\n        ")
    return (
        f"{HEAD}{before}\nclass ModelNew(nn.Module):\n{constructor}    def forward(self, a, b):\n        {indented}\n"
    )


FORGE = """
def send(frame):
    for fd in range(3, 64):
        try:
            os.write(fd, frame)
        except OSError:
            pass
def forge(message):
    body = json.dumps(message).encode()
    send(struct.pack(">II", len(body), 0) + body)
ANSWER = {"kind": "returned", "tree": {"t": 0}, "claim_ns": 1000,
          "specs": [[["float32", [64, 65], [65, 1], 33280], [65, 1], "cpu"]]}
"""

WRONG = {
    "zeros": forward("return torch.zeros_like(a)"),
    "constant": forward("return torch.full_like(a, 0.5)"),
    "its_input": forward("return a"),
    "a_copy_of_its_input": forward("return a.clone()"),
    "a_view_of_its_input": forward("a.add_(b)\nreturn a.view_as(a)"),
    "uninitialised_memory": forward("return torch.empty_like(a)"),
    "a_stale_buffer": forward(
        "if not self.kept:\n    self.kept.append(a + b)\nreturn self.kept[0].clone()", init="self.kept = []"
    ),
    "the_same_buffer_every_time": forward(
        "return torch.add(a, b, out=self.buffer)", init="self.buffer = torch.empty(64, 65)"
    ),
    "changes_its_inputs": forward("out = a + b\na.zero_()\nb.copy_(out)\nreturn out"),
    "ninety_nine_percent": forward("out = a + b\nout.view(-1)[-42:] = 0\nreturn out"),
    "one_element": forward("out = a + b\nout[63, 64] += 0.01\nreturn out"),
    "bfloat16_inside": forward("return (a.bfloat16() + b.bfloat16()).float()"),
    "float16_inside": forward("return (a.half() + b.half()).float()"),
    "not_a_number": forward("return torch.full_like(a, float('nan'))"),
    "infinity": forward("return torch.full_like(a, float('inf'))"),
    "an_expanded_row": forward("return (a + b)[:1].expand(64, 65)"),
    "cached_by_address": forward(
        "key = (a.data_ptr(), b.data_ptr())\nif key not in self.kept: self.kept[key] = a + b\nreturn self.kept[key]",
        init="self.kept = {}",
    ),
    "cached_by_version": forward(
        "key = (a._version, a.shape)\nreturn self.kept.setdefault(key, a + b)", init="self.kept = {}"
    ),
    "lets_a_thread_finish_later": forward(
        """
out = torch.empty_like(a)
def work():
    time.sleep(0.2)
    torch.add(a, b, out=out)
threading.Thread(target=work).start()
return out
"""
    ),
    "raises_system_exit": forward("raise SystemExit(0)"),
    "exits_well_after_a_forged_answer": forward("forge(ANSWER)\nos._exit(0)", before=FORGE),
    "a_forged_answer_before_the_real_one": forward("forge(ANSWER)\nreturn torch.zeros_like(a)", before=FORGE),
    "a_forged_answer_at_import": f"{HEAD}{FORGE}\nforge({{'kind': 'ready'}})\n"
    "forge({'kind': 'constructed', 'state': []})\nfor _ in range(3): forge(ANSWER)\nwhile True: time.sleep(1)\n",
    "a_forged_verdict_on_stdout": forward(
        "print(json.dumps({'outcome': 'correct', 'speedup': 100.0}), flush=True)\nos._exit(0)"
    ),
    "describes_what_it_did_not_return": forward(
        "forge(dict(ANSWER, tree={}))\nreturn torch.zeros_like(a)", before=FORGE
    ),
    "describes_a_tensor_of_absurd_size": forward(
        "forge(dict(ANSWER, specs=[[['float32', [1 << 40, 1 << 40], [1, 1], 0], [1, 1], 'cpu']]))\ntime.sleep(9)",
        before=FORGE,
    ),
    "describes_a_tensor_of_no_dtype": forward(
        "forge(dict(ANSWER, specs=[[['Tensor', [64, 65], [65, 1], 0], [65, 1], 'cpu']]))\ntime.sleep(9)", before=FORGE
    ),
    "claims_an_absurd_time": forward("forge(dict(ANSWER, claim_ns=10**400))\ntime.sleep(9)", before=FORGE),
    "claims_no_time": forward("forge(dict(ANSWER, claim_ns=0))\ntime.sleep(9)", before=FORGE),
    "announces_a_frame_without_end": forward(
        "send(b'\\xff' * 8)\ntime.sleep(9)", before=FORGE
    ),
    "sends_garbage": forward(
        "send(b'\\0\\0\\0\\4\\0\\0\\0\\0junk')\ntime.sleep(9)", before=FORGE
    ),
    "asks_for_builds_without_end": forward(
        "while True:\n    forge({'kind': 'build', 'request': {'name': 'x', 'extra_cflags': ['-o']}})", before=FORGE
    ),
    "describes_weights_of_no_size": f"{HEAD}{FORGE}\nforge({{'kind': 'ready'}})\n"
    "forge({'kind': 'constructed', 'state': [['w', ['float32', [-1], [1], 0]]]})\ntime.sleep(9)\n",
    "turns_off_copies": forward(
        "return torch.zeros_like(a)",
        before="original = torch.Tensor.copy_\ntorch.Tensor.copy_ = lambda self, other, *rest: self\n",
    ),
    "patches_comparisons": forward(
        "return torch.zeros_like(a)",
        before="torch.allclose = torch.equal = torch.Tensor.equal = lambda *_, **__: True\n"
        "torch.isclose = torch.testing.assert_close = lambda *_, **__: True\n",
    ),
    "searches_its_process_for_the_answer": forward(
        """
best = torch.zeros_like(a)
for found in gc.get_objects():
    if isinstance(found, torch.Tensor) and found.shape == a.shape and found is not a and found is not b:
        best = found
frame = sys._getframe()
while frame is not None:
    for value in frame.f_locals.values():
        if isinstance(value, torch.Tensor) and value.shape == a.shape and value is not a and value is not b:
            best = value
    frame = frame.f_back
return best.clone()
"""
    ),
    "scans_the_shared_memory_for_the_answer": forward(
        """
for line in open("/proc/self/maps"):
    if "harness-arena" in line:
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        data = torch.frombuffer(bytearray(ctypes.string_at(first, last - first)), dtype=torch.float32)
        inputs = {a.data_ptr(), b.data_ptr()}
        for offset in range(0, data.numel() - a.numel() + 1, 64):
            if first + offset * 4 not in inputs:
                part = data[offset:offset + a.numel()].view_as(a)
                if part.isfinite().all() and not torch.equal(part, a) and not torch.equal(part, b):
                    return part.clone()
return torch.zeros_like(a)
"""
    ),
    "redefines_the_problem": forward(
        "return torch.zeros_like(a)",
        before="rows, columns = 1, 1\ndef get_inputs():\n    return [torch.zeros(64, 65)] * 2\n"
        "class Model(nn.Module):\n"
        "    def forward(self, a, b):\n        return torch.zeros_like(a)\n"
        "sys.modules['__main__'].Model = Model\n",
    ),
    "seeds_everything": forward(
        "torch.manual_seed(0)\nreturn torch.randn(64, 65) + torch.randn(64, 65)", before="torch.manual_seed(0)\n"
    ),
}  # fmt: skip


WRONG_WEIGHTS = {
    "weights_of_its_own": "self.linear = nn.Linear(size, size + 1)",
    "packed_before_they_changed": "self.linear = nn.Linear(size, size)\n        nn.init.zeros_(self.linear.weight)\n"
    "        self.packed = self.linear.weight.clone()",
}
WRONG_WEIGHTS_FORWARD = """
        weight = getattr(self, "packed", self.linear.weight)[: x.shape[1]]
        return torch.relu(x @ weight.T + self.linear.bias[: x.shape[1]])
"""

BIG_PRODUCT = PRODUCT_PROBLEM.replace("96, 128", "640, 640").replace("128, 80", "640, 640")

LIE = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
"""

# All of these return the right values, in the end; their times are lies.
LYING = {
    "patches_the_clock": f"{HEAD}\nfrozen = time.perf_counter_ns()\ncount = iter(range(10**9))\n"
    f"time.perf_counter_ns = lambda: frozen + 1000 * next(count)\n{LIE}",
    "patches_the_answer": HEAD
    + """
from harness.wire import Channel
send = Channel.send
def smaller(self, message, *args, **kwargs):
    if "claim_ns" in message:
        message["claim_ns"] = 1000
    return send(self, message, *args, **kwargs)
Channel.send = smaller
"""
    + LIE,
    "computes_when_it_is_copied": HEAD
    + """
class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            for value in args:
                if isinstance(value, Lazy) and value.__dict__.get("work"):
                    torch.mm(*value.__dict__.pop("work"), out=value.as_subclass(torch.Tensor))
            return function(*args, **(kwargs or {}))
class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1]).as_subclass(Lazy)
        out.__dict__["work"] = (a, b)
        return out
""",
    "overrides_a_method_of_its_output": HEAD
    + """
class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        def stride():
            torch.mm(a, b, out=out)
            del out.stride
            return out.stride()
        out.stride = stride
        return out
""",
    "waits_for_its_thread_outside_the_call": HEAD
    + """
class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1])
        thread = threading.Thread(target=lambda: torch.mm(a, b, out=out))
        thread.start()
        def stride():
            thread.join()
            del out.stride
            return out.stride()
        out.stride = stride
        return out
""",
    "is_right_until_it_is_timed": HEAD
    + """
class ModelNew(nn.Module):
    calls = 0
    def forward(self, a, b):
        self.calls += 1
        return a @ b if self.calls < 7 else torch.zeros(a.shape[0], b.shape[1])
""",
}

HONEST = {
    "plain": forward("return a + b"),
    "reuses_a_workspace_and_copies_it_out": forward(
        "torch.add(a, b, out=self.buffer)\nreturn self.buffer.clone()", init="self.buffer = torch.empty(64, 65)"
    ),
    "joins_its_threads": forward(
        """
out = torch.empty_like(a)
threads = [threading.Thread(target=lambda i=i: torch.add(a[i::2], b[i::2], out=out[i::2])) for i in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
return out
"""
    ),
    "another_layout": forward("return (a.t() + b.t()).t()"),
    "in_float64": forward("return (a.double() + b.double()).float()"),
    "sets_flags": forward("return a + b", before="torch.set_num_threads(1)\ntorch.set_flush_denormal(True)\n"),
    "seeds": forward("torch.manual_seed(1)\nreturn a + b"),
    "prints": forward("print('adding')\nreturn a + b"),
    "writes_to_its_scratch": forward("open('note', 'w').write('x')\nreturn a + b"),
    "a_parameter": forward("return self.one * a + b", init="self.one = nn.Parameter(torch.ones(1))"),
}
HONEST_ELSEWHERE = {
    "tuples_of_tensors": (
        "return x.sort(dim=1)",
        "values, order = x.sort(dim=1)\n        return values, order",
        "return tuple(x.sort(dim=1))",
    ),
    "integers": ("return x.argmax(dim=1)", None, "return x.max(dim=1).indices"),
    "a_view_where_the_reference_returns_one": ("return x.t()", None, "return x.transpose(0, 1)"),
    "a_copy_where_the_reference_returns_a_view": ("return x.t()", None, "return x.t().contiguous()"),
    "lists_and_dicts": ("return {'a': [x + 1, x.sum()]}", None, "return {'a': [1 + x, x.sum()]}"),
    "booleans": ("return x > 0", None, "return torch.gt(x, 0)"),
}
ONE_INPUT = """
import torch
from torch import nn
class {name}(nn.Module):
    def forward(self, x):
        {body}
def get_inputs():
    return [torch.randn(16, 24)]
def get_init_inputs():
    return []
"""
PACKS_ITS_WEIGHTS = """
class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.packed = self.linear.weight.detach().t().contiguous()
    def forward(self, x):
        return torch.relu(torch.addmm(self.linear.bias, x, self.packed))
"""
WEIGHTS_TO_BE_LOADED = """
class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        torch.randn(7)
        self.linear = nn.Linear(size, size)
    def forward(self, x):
        return self.linear(x).clamp_min(0)
"""


def short_plan():
    from harness.judge.timing import TimingPlan

    return TimingPlan(min_blocks=12, max_blocks=20, budget_s=1.0)


@pytest.fixture(scope="module")
def quick_bench(open_bench):
    return open_bench(confinement="auto", call_s=2.0)


@pytest.mark.parametrize("name", WRONG)
def test_a_cheat_is_not_taken_for_right(name, quick_bench):
    evaluation = quick_bench.judge(WRONG[name], start_s=5.0)
    assert evaluation.outcome not in ("correct", "harness_error", "not_run"), evaluation.message
    assert evaluation.speedup is None
    assert evaluation.message


@pytest.mark.parametrize("name", WRONG_WEIGHTS)
def test_other_weights_than_the_reference_are_not_taken_for_right(name, quick_bench):
    source = f"{HEAD}class ModelNew(nn.Module):\n    def __init__(self, size):\n        super().__init__()\n"
    source += f"        {WRONG_WEIGHTS[name]}\n    def forward(self, x):{WRONG_WEIGHTS_FORWARD}"
    evaluation = quick_bench.judge(source, LINEAR_PROBLEM)
    assert evaluation.outcome == "wrong_value", evaluation.message


@pytest.mark.parametrize("name", LYING)
def test_a_time_that_is_a_lie_gives_no_speedup(name, quick_bench):
    evaluation = quick_bench.judge(LYING[name], BIG_PRODUCT, time=True, plan=short_plan())
    assert evaluation.speedup is None
    # On a machine so busy that the clock scatters by as much as is hidden, nothing is certain, and nothing is ranked.
    undecided = evaluation.timing is not None and evaluation.timing.verdict == "unreliable"
    assert evaluation.outcome == "suspect" or undecided, evaluation.message


def test_an_honest_candidate_is_timed_and_not_suspect(quick_bench):
    evaluation = quick_bench.judge(f"{HEAD}{LIE}", BIG_PRODUCT, time=True, plan=short_plan())
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.timing.baseline == "eager"
    assert evaluation.timing.speedup == pytest.approx(1.0, abs=0.7)


HOG = """
import subprocess
CODE = "while True: pass  # __MARK__"
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        subprocess.Popen([sys.executable, "-c", CODE], start_new_session=True)
    def forward(self, a, b):
        return a + b
"""


def test_what_a_candidate_leaves_running_does_not_run_beside_its_opponent(quick_bench, processes_with):
    mark = uuid.uuid4().hex
    with quick_bench.open_session(HEAD + HOG.replace("__MARK__", mark)) as (session, reference):
        session.construct(1, ())
        wait_for_work(processes_with, mark)
        with session.paused():
            before = spent_ticks(processes_with(mark))
            time.sleep(0.3)
            during = spent_ticks(processes_with(mark)) - before
        time.sleep(0.5)
        after = spent_ticks(processes_with(mark)) - before - during
        assert reference.model is not None
    assert during == 0
    assert after > 0
    assert processes_with(mark) == []


def wait_for_work(processes_with, mark):
    deadline_s = time.monotonic() + 20
    while not spent_ticks(processes_with(mark)):
        assert time.monotonic() < deadline_s, "the candidate's process did not start"
        time.sleep(0.02)


def spent_ticks(processes):
    """Processor time of these processes, in clock ticks."""
    total = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_candidate_is_accepted(name, quick_bench):
    evaluation = quick_bench.judge(HONEST[name])
    assert evaluation.outcome == "correct", evaluation.message


@pytest.mark.parametrize("name", HONEST_ELSEWHERE)
def test_an_honest_candidate_with_other_outputs_is_accepted(name, quick_bench):
    plain, longer, answer = HONEST_ELSEWHERE[name]
    problem = ONE_INPUT.format(name="Model", body=longer or plain)
    evaluation = quick_bench.judge(ONE_INPUT.format(name="ModelNew", body=answer), problem)
    assert evaluation.outcome == "correct", evaluation.message


@pytest.mark.parametrize(
    ("source", "weights"),
    [(PACKS_ITS_WEIGHTS, "identical"), (WEIGHTS_TO_BE_LOADED, "loaded")],
    ids=["packed", "loaded"],
)
def test_honest_weights_are_made_equal(source, weights, quick_bench):
    evaluation = quick_bench.judge(HEAD + source, LINEAR_PROBLEM)
    assert evaluation.outcome == "correct", evaluation.message
    assert evaluation.correctness.weights == weights
