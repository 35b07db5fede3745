# make run     the studio at http://127.0.0.1:8501
# make test    everything that must hold: format, lint, types, tests, browser, a second provider
# make fuzz    mutated files of every kind and fresh examples of properties; the seed is printed
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

FAST = $(wildcard placement/compiled/*.py placement/*/compiled/*.py placement/*/*_compiled.py placement/*/*/*_compiled.py)

.PHONY: run setup test fuzz check tests-browser-and-pages tests-others webgpu browser pictures clean

run: setup
	$(VENV)/bin/python -m streamlit run app.py

setup: $(VENV)/ready-to-run $(VENV)/compiled

test: check webgpu

check: $(VENV)/ready-to-test $(VENV)/compiled browser
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m ruff format --check .
	$(VENV)/bin/python -m mypy
ifeq ($(TESTS),)
	$(MAKE) -j2 tests-browser-and-pages tests-others
	$(BROWSER_TESTS) --last-failed --last-failed-no-failures none || [ $$? -eq 5 ]
else
	$(VENV)/bin/python -m pytest $(TESTS)
endif

# Side by side, because a browser mostly waits. What came too late beside the others (status 1) must
# pass by itself afterwards; with nothing to repeat pytest answers 5.
BROWSER_TESTS = $(VENV)/bin/python -m pytest -q -o cache_dir=.pytest_cache/browser tests/browser

# Two halves that take about as long.
tests-browser-and-pages:
	$(BROWSER_TESTS) || [ $$? -eq 1 ]
	$(VENV)/bin/python -m pytest -q tests/pages tests/exporters tests/hostile

tests-others:
	$(VENV)/bin/python -m pytest -q $(addprefix --ignore=tests/,browser pages exporters hostile)

# FUZZ="--seed 7 --kind onnx --case 3" brings one case back. The examples of properties are fresh, too.
FUZZ =

fuzz: $(VENV)/ready-to-test $(VENV)/compiled
	$(VENV)/bin/python -m tests.fuzz $(FUZZ)
	HYPOTHESIS_PROFILE=fresh $(VENV)/bin/python -m pytest -q -m hypothesis tests

# The command line on another execution provider, whose package takes the place of onnxruntime.
webgpu: $(WEBGPU)/ready-to-test browser
	$(WEBGPU)/bin/python -m pytest tests/webgpu

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
	@$(VENV)/bin/python -m placement.search.warming >$@.txt
	@touch $@

$(VENV)/ready-to-test: $(VENV)/ready-to-run requirements-dev.txt
	$(VENV)/bin/python $(PIP) install -r requirements-dev.txt
	@touch $@

$(WEBGPU)/ready-to-test: tests/webgpu/requirements.txt
	@$(call make_venv,$(WEBGPU))
	$(WEBGPU)/bin/python $(PIP) install -r tests/webgpu/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) $(WEBGPU)
