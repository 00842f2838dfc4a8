# Two commands do everything on a fresh machine with Python 3.11 or later, a C++ compiler and make:
#   make demo   installs into .venv and runs the main job on a data set in this repository
#   make test   installs with the test tools and runs the whole suite
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt constraints.txt $(wildcard cpp/*)
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: demo test lint bench web clean

demo: $(VENV)/.installed
	@mkdir -p demo-output
	@$(BIN)/foldwise explore examples/penguins.csv --label species --out demo-output/report.html
	@echo
	@echo "Open this page in a browser: $(CURDIR)/demo-output/report.html"

test: $(VENV)/.installed-test $(VENV)/.chromium
	$(BIN)/python -m pytest -n 2 $(ARGS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks $(ARGS)

# The scripts of report pages are in the repository: only who changes web/ needs Node, and this.
web:
	cd web && npm ci --ignore-scripts && npm run build

# Without a browser its tests are skipped, but never where CI is true.
$(VENV)/.chromium: scripts/install-chromium | $(VENV)/bin/python
	@if scripts/install-chromium; then touch $@; else [ "$$CI" != true ]; fi

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Foldwise needs Python 3.11 or later; say which with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip

$(VENV)/.installed: $(SOURCES) | $(VENV)/bin/python
	@echo "Installing Foldwise into $(VENV) (this compiles its kernels: one to three minutes) ..."
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-test: $(SOURCES) | $(VENV)/bin/python
	@echo "Installing Foldwise and its test tools into $(VENV) ..."
	$(PIP) install -c constraints.txt -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(SOURCES) | $(VENV)/bin/python
	@echo "Installing Foldwise, its test tools and the libraries that it is compared with into $(VENV) (some minutes) ..."
	$(PIP) install -c constraints.txt -e '.[test,bench]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build demo-output
