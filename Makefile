# Rankbook: `make book` builds the pages, `make test` checks everything. See `make help`.
# Needs python3 (3.11 to 3.13) with venv; the tests of the pages also need chromium.

PYTHON ?= python3
JOBS ?= 2
PORT ?= 8000
OUTPUT ?= graded
VENV := .venv
BENCH := .venv-bench
MINIMUM := .venv-minimum
BIN := $(VENV)/bin
PAGE := _build/html/book/index.html

# One thread a process: the work is spread over processes, and times stay comparable.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export RANKBOOK_JOBS := $(JOBS)
# A kernel must find the interpreter of this environment before any other.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYDEVD_DISABLE_FILE_VALIDATION := 1

.DEFAULT_GOAL := help
.PHONY: help book test test-package test-notebooks test-book test-minimum test-grading bench-grading serve \
	notebooks bench coursework grade coverage mutants lint clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

$(VENV)/.installed: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(not (3, 11) <= v < (3, 14) and "Python 3.11 to 3.13 is needed, this is %d.%d: make PYTHON=python3.11" % v[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(BENCH)/.installed: requirements-bench.txt pyproject.toml
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.txt
	@touch $@

$(MINIMUM)/.installed: requirements-minimum.txt pyproject.toml
	test -x $(MINIMUM)/bin/python || $(PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-minimum.txt
	@touch $@

book: $(VENV)/.installed ## build the book, strictly, into _build/html
	$(BIN)/jupyter-book build . --keep-going -W -n
	@echo
	@echo "Open $(CURDIR)/$(PAGE)"

test: lint test-package book test-notebooks test-book ## check everything: code, chapters, pages

test-package: $(VENV)/.installed ## the package's tests and doctests
	$(BIN)/python -m pytest -n $(JOBS) --ignore=tests/book -m "not thorough"

# One process: each submission of these tests starts processes of its own.
test-grading: $(VENV)/.installed ## the grader against every hostile submission, in a real sandbox
	$(BIN)/python -m pytest tests/grading

# SECRET, ROSTER, WORKSHEET and the like go into OPTIONS: see `python -m rankbook.grading --help`.
grade: $(VENV)/.installed ## grade SUBMISSIONS=dir or zip with CHECKS=file, into OUTPUT=graded
	@test -n "$(SUBMISSIONS)" -a -n "$(CHECKS)" || { echo "make grade SUBMISSIONS=dir CHECKS=checks.py"; exit 2; }
	$(BIN)/python -m rankbook.grading "$(CHECKS)" "$(SUBMISSIONS)" --output "$(OUTPUT)" $(OPTIONS)

test-notebooks: $(VENV)/.installed ## run the built reader's notebooks in an empty folder, from the wheel
	$(BIN)/python tests/book/run_reader_notebooks.py _build/notebooks -n $(JOBS)

test-book: $(VENV)/.installed ## the chapters' sources, and the built pages in a browser
	$(BIN)/python -m pytest tests/book -n $(JOBS) --dist loadscope

# The pages are built anew only if something that they are made of is newer.
$(PAGE): $(VENV)/.installed $(shell find book rankbook _config.yml _toc.yml -type f -not -name '*.pyc' 2>/dev/null)
	$(MAKE) book
	@touch $@

serve: $(PAGE) ## serve the pages to this machine, http://localhost:8000/book/ (PORT=)
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

notebooks: $(PAGE) ## open the chapters in JupyterLab, as copies of your own in my-notebooks/
	$(BIN)/python book/_ext/my_notebooks.py _build/notebooks my-notebooks
	$(BIN)/jupyter lab my-notebooks

coursework: $(VENV)/.installed ## releases, solutions, checks and rubrics of the problem sets, in _build/coursework
	$(BIN)/python book/coursework/convert.py _build/coursework

bench: $(BENCH)/.installed ## measure the package against its peers
	PYTHONPATH=$(CURDIR) $(BENCH)/bin/python -m benchmarks

bench-grading: $(VENV)/.installed ## grade a class of 200, set by set, and print the seconds
	$(BIN)/python -m tests.grading.run_class

# Without what needs nbgrader, and a study whose numbers are those of pinned scikit-learn and LightGBM.
test-minimum: $(MINIMUM)/.installed ## the package's tests with the oldest versions it admits
	PYTHONPATH=$(CURDIR) $(MINIMUM)/bin/python -m pytest -n $(JOBS) --ignore=tests/book --ignore=tests/coursework \
		--ignore=tests/grading/test_problem_sets.py --ignore=tests/studies/test_learning_to_rank.py -m "not thorough"

coverage: $(VENV)/.installed ## which statements and branches of the package the tests run
	$(BIN)/python -m pytest -n $(JOBS) --ignore=tests/book -m "not thorough" --cov --cov-report=term-missing:skip-covered

mutants: $(VENV)/.installed ## plant known errors in a copy; the tests must notice each
	$(BIN)/python -m tests.run_mutants

lint: $(VENV)/.installed ## check the style and the types of the code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean: ## remove what was built (the environments stay; remove .venv by hand)
	rm -rf _build .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage dist
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +
