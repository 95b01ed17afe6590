# `make demo` and `make test` work on a fresh Linux machine with Python 3.11 to 3.13 and a C++ compiler.
# TORCH chooses the build of PyTorch: `make demo TORCH=torch==2.13.0`.
PYTHON ?= python3
TORCH ?= torch
DEMO_CPP := embedding max_pool2d softmax
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.demo-installed

# Without bytecode each test process parses all modules, and pytest rewrites all tests, again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo demo-cpp demo-cuda demo-triton test test-quick test-slow test-all check lint types imports system-packages rl-packages dist clean

# Recorded answers, evaluated for real: C++ candidates are timed on this CPU; CUDA and Triton candidates are timed on a GPU
# where there is one, and otherwise emulated: checked on the CPU. Without a GPU the three commands run at once, since the
# timing of one waits for the builds and the emulated kernels of the others, and nvcc, which takes a minute of CPU time per
# program, is not asked. The demo takes a part of the recordings; without --problem the same commands take all of them.
GPU := $(wildcard /dev/nvidia0)
RUN := $(BIN)/harness run --provider recorded

demo: $(DEMO_STAMP)
	mkdir -p results
	$(MAKE) --no-print-directory --jobs $(if $(GPU),1,3) demo-cpp demo-cuda demo-triton
	$(BIN)/harness results --run "demo-*"
	$(BIN)/harness show demo-cuda/softmax/0 | sed -n "1,/^$$/p; /^Findings/,/^$$/p"
	$(BIN)/harness leaderboard --run "demo-*"

# stdout of all, and stderr of those beside the first, is in results/demo-*.log.
demo-cpp: $(DEMO_STAMP)
	$(RUN) --language cpp --workload small $(DEMO_CPP:%=--problem %) --run $@ > results/$@.log

demo-cuda: $(DEMO_STAMP)
	$(if $(GPU),,CUDA_HOME=none )$(RUN) --language cuda --recording recordings/repair --turns 2 --problem softmax \
	    --run $@ > results/$@.log 2>&1 || { cat results/$@.log; exit 1; }

demo-triton: $(DEMO_STAMP)
	$(RUN) --language triton --problem layer_norm --problem softmax --run $@ > results/$@.log 2>&1 || \
	    { cat results/$@.log; exit 1; }

# Each of two processes begins with one half of the tests, in order, and takes from the other's rest when it is done.
PYTEST := $(BIN)/pytest -q -n 2 --dist worksteal

# The type checker has one thread, so it runs beside the tests.
test: lint imports
	$(MAKE) --jobs 2 types test-quick

test-quick: $(STAMP)
	$(PYTEST) -m "not slow"

test-slow: $(STAMP)
	$(PYTEST) -m slow

test-all: rl-packages test test-slow

check: lint types imports

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

# A browser and a C++ compiler, on Debian and Ubuntu: tests that lack what they need are skipped.
system-packages:
	.ci/system-packages

# RL frameworks, in environments of their own (verifiers needs another openai): without them their tests are skipped. That
# of verl shares torch and ray.
rl-packages: $(VENV)/.rl-installed

$(VENV)/.rl-installed: Makefile $(STAMP)
	$(PYTHON) -m venv $(VENV)/rl
	$(VENV)/rl/bin/python -m pip install --quiet verifiers==0.4.0 skyrl-gym==0.4.0 openevolve==0.4.0
	$(PYTHON) -m venv $(VENV)/rl-v0
	$(VENV)/rl-v0/bin/python -m pip install --quiet verifiers==0.1.14 typer jinja2
	$(PYTHON) -m venv $(VENV)/rl-openenv
	$(VENV)/rl-openenv/bin/python -m pip install --quiet openenv-core==0.3.0
	$(BIN)/python -m venv $(VENV)/rl-verl
	for folder in $(VENV)/rl-verl/lib/python*/site-packages; do \
	    $(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" > $$folder/harness.pth; done
	$(VENV)/rl-verl/bin/python -m pip install --quiet verl==0.9.1
	touch $@

# pip writes bytecode with one core, for two minutes; this writes it with all. Sandboxed processes cannot write it. What they
# never import is left to the processes that do.
NOT_COMPILED := tests?|torch/testing|ray|mlflow|databricks|openai|sklearn|wandb|matplotlib|fontTools|debugpy|mypyc?|pip

define install
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/pip install --quiet --no-compile "$(TORCH)"
	$(BIN)/pip install --quiet --no-compile --editable ".[$(1)]"
	$(BIN)/python -m compileall -q -j 0 -x "/($(NOT_COMPILED))/" harness $(VENV)/lib > /dev/null || true  # some are templates
	touch $(2)
endef

$(STAMP): pyproject.toml
	$(call install,dev,$(STAMP) $(DEMO_STAMP))

$(DEMO_STAMP): pyproject.toml
	$(call install,triton,$@)

# The sdist, and the wheel from it, as they would be uploaded.
dist:
	rm -rf dist
	$(PYTHON) -m venv $(VENV)/dist
	$(VENV)/dist/bin/pip install --quiet build twine
	$(VENV)/dist/bin/python -m build
	$(VENV)/dist/bin/twine check --strict dist/*

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
