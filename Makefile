# `make demo` and `make test` work on a fresh Linux machine with Python 3.11 to 3.13 and a C++ compiler.
# TORCH chooses the build of PyTorch: `make demo TORCH=torch==2.13.0`.
PYTHON ?= python3
TORCH ?= torch
DEMO_CUDA := conv2d_relu_bias rms_norm
DEMO_TRITON := layer_norm softmax
DEMO_CPP := embedding group_norm linear_bias_relu matmul max_pool2d rms_norm softmax top_k
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-quick test-slow test-all check lint types imports system-packages rl-packages clean

# Recorded answers, judged for real: C++ candidates are timed on this CPU; CUDA and Triton candidates are timed on a GPU
# where there is one, and otherwise emulated: checked on the CPU, and by nvcc or Triton's compiler where that is installed.
# A build takes half a minute of one core, so the demo takes a part of the recording; without --problem the same commands
# take all of it.
demo: $(STAMP)
	$(BIN)/harness run --provider recorded --language cuda --run demo-cuda $(DEMO_CUDA:%=--problem %)
	$(BIN)/harness run --provider recorded --language triton --run demo-triton $(DEMO_TRITON:%=--problem %)
	$(BIN)/harness run --provider recorded --language cpp --run demo-cpp --samples 2 --workload small \
	    $(DEMO_CPP:%=--problem %)

# Each of two processes begins with one half of the tests, in order, and takes from the other's rest when it is done.
PYTEST := $(BIN)/pytest -q -n 2 --dist worksteal

# The type checker has one thread, so it runs beside the tests.
test: lint imports
	$(MAKE) --jobs 2 types test-quick

test-quick: $(STAMP)
	$(PYTEST) -m "not slow"

test-slow: $(STAMP)
	$(PYTEST) -m slow

test-all: test test-slow

check: lint types imports

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

# A browser, bubblewrap and a C++ compiler, on Debian and Ubuntu: tests that lack what they need are skipped.
system-packages:
	.ci/system-packages

# RL frameworks, in an environment of their own (verifiers needs another openai): without them their tests are skipped.
rl-packages:
	$(PYTHON) -m venv $(VENV)/rl
	$(VENV)/rl/bin/python -m pip install --quiet verifiers==0.4.0 skyrl-gym==0.4.0 openevolve==0.4.0
	$(PYTHON) -m venv $(VENV)/rl-v0
	$(VENV)/rl-v0/bin/python -m pip install --quiet verifiers==0.1.14 typer jinja2

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/pip install --quiet "$(TORCH)"
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
