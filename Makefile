# Everything a checkout needs, from Python 3.11 or newer alone:
#
#   make demo              install into .venv, run `corefw demo`
#   make test              install the checks into .venv, run lint, types and tests
#   make test ORACLE=1     the same, and compare with PyTorch where it can be installed
#   make test ARGS="-k softmax"    arguments for pytest
#   make lint              the linters and the type checker alone
#   make bench             the benchmarks
#   make docs              the site, build/site/index.html; a broken link is an error
#   make kernels           install the C backend into .venv, if there is a C compiler, for this machine's level of
#                          instructions (as `make demo` does; `make test` compiles all levels)
#   make test-libraries    libraries that build on PyTorch, in environments of their own; writes docs/libraries.md
#   make test-xla          JAX as a device, the example: installs JAX (600 MB), which `make test` does without
#   make generated         write every generated file again: type stubs, loops and structs in C, the golden files of the tests
#   make clean             remove .venv and the caches
#
# PYTHON=... names the interpreter, CC=... the C compiler; pip's own configuration names the index.

VENV ?= .venv
ORACLE ?=
ARGS ?=
JOBS ?= auto

# The first interpreter on the path that is new enough.
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; break; }; done)

C := backends/c_backend
KERNELS := $(addprefix $(C)/,pyproject.toml setup.py) $(wildcard $(C)/building/*.py $(C)/corefw_c/source/* $(C)/corefw_c/source/*/*)

BIN := $(VENV)/bin
RUN := $(BIN)/python
# Python compiles what is imported when it is; to compile all that is installed would take half of pip's time.
INSTALL := $(RUN) -m pip --disable-pip-version-check install --quiet --no-compile
# The tests start hundreds of programs: bytecode is kept, in the environment, wherever the caller keeps none.
TEST := env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(abspath $(VENV))/bytecode $(RUN) -m pytest
# What building the C backend needs: installed once, so that pip makes no environment for each build.
TOOLS := 'setuptools>=77' 'cffi>=1.16'
# The C compiler works while pip downloads.
TOGETHER := --no-print-directory -j2

.DEFAULT_GOAL := help
.PHONY: help demo test check lint docs test-libraries test-xla bench kernels generated clean python ready-best ready-all

help:
	@sed -n 's/^#   //p' Makefile

demo: kernels
	$(BIN)/corefw demo

test:
	@$(MAKE) $(TOGETHER) ready-all
	@$(MAKE) --no-print-directory $(if $(filter 1,$(ORACLE)),$(VENV)/.oracle) check

# What `make test` runs once the environment stands.
check: lint
	$(TEST) -n $(JOBS) --dist worksteal $(ARGS)

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

lint: $(VENV)/.dev
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy

test-libraries: $(VENV)/.made
	$(RUN) scripts/test_libraries $(ARGS)

test-xla: $(VENV)/.dev
	$(INSTALL) --editable '.[jax]'
	$(RUN) -m pytest tests/test_examples.py -k xla -rs $(ARGS)

# The two OpenBLAS variables pin kernels and cache sizes; with them NumPy may be measured below its speed.
bench: $(VENV)/.dev kernels
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE \
	    $(RUN) -m pytest benchmarks --benchmark-enable --benchmark-only -p no:xdist $(ARGS)

kernels:
	@$(MAKE) $(TOGETHER) ready-best

# What an environment needs, with the kernels for this machine or for all levels.
ready-best: $(VENV)/.demo $(VENV)/.kernels-best
	@:
ready-all: $(VENV)/.dev $(VENV)/.kernels-all
	@:

generated: $(VENV)/.dev
	$(RUN) scripts/make_expressions
	$(RUN) scripts/make_steps
	$(RUN) scripts/make_stubs
	$(RUN) scripts/make_golden
	$(RUN) scripts/make_plugin_api

clean:
	rm -rf $(VENV) .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist *.egg-info $(C)/build

python:
	@test -n "$(PYTHON)" || { echo "corefw needs Python 3.11 or newer; none found (set PYTHON=...)" >&2; exit 1; }

# Stamps: an environment is made once, and installed again when pyproject.toml changes.
$(VENV)/.made: | python
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) $(TOOLS)
	@touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.made
	$(INSTALL) --editable '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml backends/cupy_backend/pyproject.toml backends/mpi_backend/pyproject.toml $(VENV)/.made
	$(INSTALL) --editable '.[demo,dev]' --editable ./backends/cupy_backend --editable ./backends/mpi_backend
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(VENV)/.dev
	$(INSTALL) --editable '.[docs]'
	@touch $@

# The C backend for the machine's best level, or for all: an optional part, without which everything works, slower.
# Without a compiler (status 3) the script says so, and nothing is installed; what a compiler refuses is an error.
$(C)/build/.%: $(KERNELS) | python
	@rm -f $@
	@$(PYTHON) scripts/build_c $* --objects && touch $@ || test $$? = 3

$(VENV)/.kernels-best: $(C)/build/.best | $(VENV)/.demo
$(VENV)/.kernels-all: $(C)/build/.all | $(VENV)/.dev
$(VENV)/.kernels-%:
	@if [ -e $< ]; then COREFW_C_LEVELS=$* $(INSTALL) --no-build-isolation --editable ./$(C) && \
	touch $(C)/build/.best $(VENV)/.kernels-best $@; fi # all levels include the best

$(VENV)/.oracle: $(VENV)/.dev
	@if $(INSTALL) --editable '.[oracle]'; then touch $@; \
	else echo "PyTorch could not be installed here: the tests that compare with it are skipped"; fi
