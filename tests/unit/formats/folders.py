"""Small folders in the formats of others, written for these tests."""

import json
import struct

SCALE = {
    "name": "scale_rows_k8",
    "op_type": "elementwise",
    "description": "Multiply rows by a factor.",
    "tags": ["status:verified"],
    "axes": {"M": {"type": "var"}, "K": {"type": "const", "value": 8}},
    "inputs": {
        "x": {"shape": ["M", "K"], "dtype": "float32"},
        "rows": {"shape": ["M"], "dtype": "int32"},
        "factor": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["M", "K"], "dtype": "float32"}},
    "reference": "import torch\n\n\ndef run(x, rows, factor):\n    return (x * factor)[rows.long().abs() % len(x)]\n",
}
RIGHT = """\
import torch
from helper import scale


def run(x, rows, factor, y):
    scale(x[rows.long().abs() % len(x)], factor, y)
"""
HELPER = "import torch\n\n\ndef scale(x, factor, y):\n    torch.mul(x, factor, out=y)\n\n\ndef unused():\n    pass\n"
WRONG = "def run(x, rows, factor):\n    return {'y': x * factor}\n"


def workload_of(uuid="w1", rows=4, **changes):
    """A workload of SCALE with random and scalar inputs."""
    inputs = {"x": {"type": "random"}, "rows": {"type": "random"}, "factor": {"type": "scalar", "value": 1.5}}
    return {"uuid": uuid, "axes": {"M": rows}, "inputs": inputs} | changes


def solution_of(name, sources, definition="scale_rows_k8", **spec):
    file = next(iter(sources))
    return {
        "name": name,
        "definition": definition,
        "author": "someone",
        "spec": {"language": "python", "target_hardware": ["cpu"], "entry_point": f"{file}::run"} | spec,
        "sources": [{"path": path, "content": content} for path, content in sources.items()],
    }


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def write_lines(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


def write_trace_set(folder, definition=SCALE, workloads=None, solutions=()):
    """A folder of flashinfer-bench."""
    name = definition["name"]
    write_json(folder / "definitions" / "op" / f"{name}.json", definition)
    lines = [{"definition": name, "workload": one} for one in workloads or [workload_of(), workload_of("w2", 6)]]
    write_lines(folder / "workloads" / "op" / f"{name}.jsonl", lines)
    for one in solutions:
        write_json(folder / "solutions" / "op" / f"{one['name']}.json", one)
    return folder


def write_sol_problem(folder, definition=SCALE, workloads=None, solutions=()):
    """A problem folder of SOL-ExecBench."""
    write_json(folder / "definition.json", definition)
    write_lines(folder / "workload.jsonl", workloads or [workload_of(), workload_of("w2", 6)])
    for one in solutions:
        write_json(folder / f"solution_{one['name']}.json", one)
    return folder


def write_tensors(path, tensors):
    """A safetensors file of int32 vectors."""
    header, content = {}, b""
    for name, values in tensors.items():
        part = struct.pack(f"<{len(values)}i", *values)
        place = [len(content), len(content) + len(part)]
        header[name] = {"dtype": "I32", "shape": [len(values)], "data_offsets": place}
        content += part
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)


TASK_YML = """\
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
lang: "py"
description: |
  Add two vectors.
tests:
  - {"size": 7, "seed": 1}
  - {"size": 9, "seed": 2}
benchmarks:
  - {"size": 64, "seed": 3}
"""
TASK_PY = "import torch\n\ninput_t = tuple\noutput_t = torch.Tensor\n\n\nclass TestSpec:\n    size: int\n"
UTILS_PY = "def make_match_reference(reference, **kwargs):\n    return reference\n\n\ndef twice(x):\n    return 2 * x\n"
REFERENCE_PY = """\
from utils import make_match_reference, twice
import torch
from task import input_t, output_t


def ref_kernel(data: input_t) -> output_t:
    a, b, output = data
    output[...] = a + twice(b)
    return output


def generate_input(size: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    a, b = (torch.randn(size, device="cuda", generator=gen) for _ in range(2))
    output = torch.empty(size, device="cuda")
    return a, b, output


check_implementation = make_match_reference(ref_kernel, rtol=1e-4, atol=1e-5)
"""
SUBMISSION_PY = """\
from task import input_t, output_t
from utils import twice


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    output.copy_(a).add_(twice(b))
    return output
"""
WRONG_PY = "def custom_kernel(data):\n    return data[2].copy_(data[0])\n"


def write_task(folder, **changes):
    """A task of gpu-mode; `changes` replace files by stem, "" removes one."""
    files = {"task.yml": TASK_YML, "task.py": TASK_PY, "reference.py": REFERENCE_PY, "submission.py": SUBMISSION_PY}
    files |= {"../utils.py": UTILS_PY, "solutions/wrong/half.py": WRONG_PY}
    files |= {next(file for file in files if file.partition(".")[0] == stem): text for stem, text in changes.items()}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text:
            path.write_text(text)
    return folder
