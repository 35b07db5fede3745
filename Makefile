# make run     the studio at http://127.0.0.1:8501
# make test    everything that must hold: format, lint, types, tests, browser, a second provider, hosts
# make quick   the same without the browser and what tests/slow.txt names: for every change
# make fuzz    mutated files of every kind and fresh examples of properties; the seed is printed
#              (ROUNDS=100: as often as that, or until something is found)
# make setup-hosts   what Ray clusters need, too (python -m placement hosts)
# make test-hosts    all that is over two Ray nodes on this computer; a part of it ends make test
# make setup   only the environment of `make run`
# make pictures   every page in docs/screenshots, taken anew

PYTHON ?= python3
VENV = .venv
WEBGPU = .venv-webgpu
PIP = -m pip --disable-pip-version-check --quiet
TESTS =

SUPPORTED = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))

# $(call make_venv,FOLDER): a virtual environment, unless a working one is there.
make_venv = \
	$(PYTHON) -c "$(SUPPORTED)" 2>/dev/null || { \
		echo "$(PYTHON) is no Python 3.11 to 3.14; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; \
		exit 1; \
	}; \
	$(1)/bin/python -c "import pip; $(SUPPORTED)" 2>/dev/null || { \
		rm -rf $(1) && $(PYTHON) -m venv $(1); \
	}

FAST = $(wildcard placement/compiled/*.py placement/*/compiled/*.py placement/*/*_compiled.py placement/*/*/*_compiled.py profiling/*/*_compiled.py)

# Tests start hundreds of processes: what one has compiled of the sources, the next one loads.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run setup setup-hosts test test-hosts quick fuzz check lint types collected tests-in-turn computing-tests quick-tests slow browser webgpu pictures clean

run: setup
	$(VENV)/bin/python -m streamlit run app.py

setup: $(VENV)/ready-to-run $(VENV)/compiled

setup-hosts: setup $(VENV)/ready-for-hosts

test: check

PYTEST = $(VENV)/bin/python -m pytest -q
# Processes that take tests from one another, so that a new file needs no place in a list.
WORKERS = 3
SIDE_BY_SIDE = -n $(WORKERS) --dist worksteal

# What runs only where nothing else wants a core; Ray's own processes step back a little, too.
STEP_BACK = $(shell chrt --idle 0 true 2>/dev/null && echo chrt --idle 0 || echo nice -n 19)

# Tests take both cores. What collects or compiles takes one, which leaves room for the second
# provider; what is over hosts waits for clocks, which leaves room for types and for as many tests that
# do nothing but compute as end with it, if they step back.
COMPUTING = tests/loaders
BESIDE_HOSTS = $(addprefix --ignore=,tests/hosts $(COMPUTING))
ifeq ($(TESTS),)
check: lint $(VENV)/ready-for-hosts $(WEBGPU)/ready-to-test browser
	$(MAKE) -j2 webgpu tests-in-turn
	$(MAKE) -j3 types computing-tests test-hosts TRY_ALL= NICE="$(STEP_BACK)"
else
check: lint $(VENV)/compiled browser
	$(PYTEST) $(TESTS)
endif

quick: lint
	$(MAKE) -j2 types quick-tests

lint: $(VENV)/ready-to-test
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m ruff format --check .

types: $(VENV)/ready-to-test
	$(NICE) $(VENV)/bin/python -m mypy

# Once, so that not each process prepares all test files at its start; what is wrong with one is
# told by the tests themselves.
collected: $(VENV)/ready-to-test
	@$(PYTEST) --collect-only --ignore=tests/hosts >/dev/null 2>&1 || true

# A test in the browser may come too late beside the others. Where only such ones have failed
# (status 20, tests/conftest.py), they must pass by themselves afterwards.
tests-in-turn: $(VENV)/compiled collected
	$(PYTEST) $(SIDE_BY_SIDE) $(BESIDE_HOSTS) || { [ $$? -eq 20 ] && $(PYTEST) --last-failed tests/browser; }

computing-tests: $(VENV)/ready-to-test $(VENV)/compiled
	$(NICE) $(PYTEST) -p no:cacheprovider $(COMPUTING)

quick-tests: $(VENV)/compiled
	$(PYTEST) $(SIDE_BY_SIDE) --quick --ignore=tests/hosts

# Write tests/slow.txt anew, on a quiet computer.
slow: $(VENV)/ready-to-test $(VENV)/compiled
	$(PYTEST) $(SIDE_BY_SIDE) --note-slow --ignore=tests/browser --ignore=tests/hosts

# FUZZ="--seed 7 --kind onnx --case 3" brings one case back. The examples of properties are fresh, too.
FUZZ =
ROUNDS = 1

fuzz: $(VENV)/ready-to-test $(VENV)/compiled
	for round in $$(seq $(ROUNDS)); do \
		$(VENV)/bin/python -m tests.fuzz $(FUZZ) && \
		HYPOTHESIS_PROFILE=fresh $(PYTEST) --ignore=tests/hosts -m "hypothesis or thorough or only_thorough" || exit 1; \
	done

# The command line on another execution provider, whose package takes the place of onnxruntime.
webgpu: $(WEBGPU)/ready-to-test $(VENV)/compiled browser
	$(WEBGPU)/bin/python -m pytest -q -p no:cacheprovider tests/webgpu

# After all else: what is lost when a host ends is noticed by the clock. Each of two processes has a
# cluster of its own, for much of the time one waits.
test-hosts: TRY_ALL = 1
test-hosts: $(VENV)/ready-to-test $(VENV)/ready-for-hosts $(VENV)/compiled
	TRY_ALL=$(TRY_ALL) $(PYTEST) -n 2 --dist worksteal tests/hosts

browser:
	@sh tests/browser/find_chromium.sh

pictures: $(VENV)/ready-to-test $(VENV)/compiled browser
	$(VENV)/bin/python -m docs.screenshots.take

$(VENV)/ready-to-run: requirements.txt
	@$(call make_venv,$(VENV))
	@echo "Installing Python packages (some GB with PyTorch; some minutes, once)"
	$(VENV)/bin/python $(PIP) install -r requirements.txt
	@touch $@

# Once, and again when their source has changed: so that no one waits for it later.
$(VENV)/compiled: $(FAST) | $(VENV)/ready-to-run
	@echo "Compiling the methods for this computer (a minute or two, once)"
	@$(VENV)/bin/python -m placement.advice.warming >$@.txt
	@$(VENV)/bin/python -c "from profiling.devices import lanes; lanes.warm_up()"
	@$(VENV)/bin/python -c "from profiling.measuring import siblings; siblings.warm_up()"
	@touch $@

$(VENV)/ready-to-test: $(VENV)/ready-to-run requirements-dev.txt
	$(VENV)/bin/python $(PIP) install -r requirements-dev.txt
	@touch $@

$(VENV)/ready-for-hosts: requirements-hosts.txt | $(VENV)/ready-to-run
	$(VENV)/bin/python $(PIP) install -r requirements-hosts.txt
	@touch $@

$(WEBGPU)/ready-to-test: tests/webgpu/requirements.txt
	@$(call make_venv,$(WEBGPU))
	$(WEBGPU)/bin/python $(PIP) install -r tests/webgpu/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) $(WEBGPU)
