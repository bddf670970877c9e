# Everything a checkout needs, from Python 3.11 or newer alone:
#
#   make demo              install into .venv, run `corefw demo`
#   make test              install the checks into .venv, run lint, types and tests
#   make test ORACLE=1     the same, and compare with PyTorch where it can be installed
#   make test ARGS="-k softmax"    arguments for pytest
#   make lint              the linters and the type checker alone
#   make bench             the benchmarks
#   make kernels           install the C backend into .venv, if there is a C compiler (the targets above do)
#   make stubs             regenerate the type stubs from the op declarations
#   make clean             remove .venv and the caches
#
# PYTHON=... names the interpreter; pip's own configuration names the index.

VENV ?= .venv
ORACLE ?=
ARGS ?=
JOBS ?= auto

# The first interpreter on the path that is new enough.
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; break; }; done)

KERNELS := $(addprefix backends/c_backend/,pyproject.toml setup.py levels.py) $(wildcard backends/c_backend/corefw_c/source/*)

BIN := $(VENV)/bin
RUN := $(BIN)/python
PIP := $(RUN) -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test check lint bench kernels stubs clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.demo $(VENV)/.kernels
	$(BIN)/corefw demo

test: $(VENV)/.dev $(VENV)/.kernels $(if $(filter 1,$(ORACLE)),$(VENV)/.oracle)
	$(MAKE) --no-print-directory check

# What `make test` runs once the environment stands.
check: lint
	$(RUN) -m pytest -n $(JOBS) $(ARGS)

lint: $(VENV)/.dev
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy

# The two OpenBLAS variables pin kernels and cache sizes; with them NumPy may be measured below its speed.
bench: $(VENV)/.dev $(VENV)/.kernels
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE \
	    $(RUN) -m pytest benchmarks --benchmark-enable --benchmark-only -p no:xdist $(ARGS)

kernels: $(VENV)/.kernels

stubs: $(VENV)/.dev
	$(RUN) scripts/make_stubs

clean:
	rm -rf $(VENV) .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache build *.egg-info

# Stamps: an environment is made once, and installed again when pyproject.toml changes.
$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "corefw needs Python 3.11 or newer; none found (set PYTHON=...)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.made
	$(PIP) install --quiet --editable '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml backends/cupy_backend/pyproject.toml $(VENV)/.made
	$(PIP) install --quiet --editable '.[demo,dev]' --editable ./backends/cupy_backend
	@touch $@ $(VENV)/.demo

# The C backend, wherever a C compiler can build it: an optional part, without which everything works, slower.
$(VENV)/.kernels: $(KERNELS) $(VENV)/.made | $(VENV)/.demo
	@if command -v $(CC) > /dev/null && $(PIP) install --quiet --editable ./backends/c_backend; then touch $@; \
	else echo "The C backend was not built (no working C compiler '$(CC)'): NumPy computes"; fi

$(VENV)/.oracle: $(VENV)/.dev
	@if $(PIP) install --quiet --editable '.[oracle]'; then touch $@; \
	else echo "PyTorch could not be installed here: the tests that compare with it are skipped"; fi
