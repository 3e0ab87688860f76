# Every target runs in .venv/ beside this file and creates it first when it is missing, incomplete, copied from another
# place, or older than pyproject.toml and constraints.txt.  `make PYTHON=python3.12 test` chooses the interpreter.

PYTHON ?= python3
JOBS ?= 2

# Programs that the tests start many times are compiled once.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
# Written last, so an interrupted installation is resumed; holds the folder the environment was made for.
STAMP := $(VENV)/.installed-for

LOWEST := build/lowest
LOWEST_TESTS := tests/cli/test_check.py tests/cli/test_bad_input.py tests/cli/test_help.py tests/cli/test_prove.py \
  tests/cli/test_outputs.py tests/unit/test_explicit_verdicts.py tests/unit/test_digraph.py tests/unit/test_symbolic_proof.py \
  tests/agreement/test_explicit_agreement.py tests/agreement/test_smt_agreement.py tests/certificates/test_accepted.py \
  tests/runtime/test_processes.py tests/pipeline/test_report.py

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-long test-durations test-lowest test-wheel lint lint-code lint-format lint-types lint-layers bench proofs certificates mutants site lock clean FORCE

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP)  ## create .venv/ with streamproof and its tools in it

demo:  ## check, break, prove and conform, then write an HTML report to build/demo/
	@echo "The tour takes about a minute; setting up a new environment takes another one before it."
	@$(MAKE) --no-print-directory venv
	@$(BIN)/python tools/demo.py

test: $(STAMP)  ## the tests that run on every push
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -m "not long"

test-long: $(STAMP)  ## every test, those that take minutes included
	$(BIN)/pytest -n $(JOBS) --dist loadgroup --timeout 3600

test-durations: $(STAMP)  ## every test, or those of the files TESTS; writes tests/durations.tsv, prints the seconds of each folder
	$(BIN)/pytest -n $(JOBS) --dist loadgroup --timeout 3600 --write-durations $(TESTS)

test-lowest: $(LOWEST)/.installed  ## some tests of each kind with the lowest versions of pyproject.toml, in build/lowest/
	$(LOWEST)/bin/pytest -p no:cacheprovider -n $(JOBS) --dist loadgroup -m "not long" $(LOWEST_TESTS)

test-wheel: $(STAMP)  ## the wheel in a fresh environment outside of this folder, without extras
	$(BIN)/pytest -n 0 tests/unit/test_packaging.py

$(LOWEST)/.installed: pyproject.toml tools/lowest.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python tools/lowest.py > $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip install -qq --requirement $(LOWEST)/requirements.txt --editable .
	@touch $@

lint: lint-code lint-format lint-types lint-layers  ## ruff, mypy --strict, import-linter

lint-code: $(STAMP)
	$(BIN)/ruff check .

lint-format: $(STAMP)
	$(BIN)/ruff format --check .

lint-types: $(STAMP)
	$(BIN)/mypy

lint-layers: $(STAMP)
	$(BIN)/lint-imports --no-logo

bench: $(STAMP)  ## run every benchmark, Spin beside the explorer; each prints its table; writes docs/performance.md
	@for file in benchmarks/[!_]*.py; do \
	  case $$file in */proofs.py|*/beside.py) continue ;; esac; \
	  printf '\n== %s\n' "$$file"; \
	  case $$file in */explorer.py) more='--huge --write' ;; *) more= ;; esac; \
	  $(BIN)/python "$$file" $$more || exit; \
	done

proofs: $(STAMP)  ## prove every bundled model and variant, which takes half an hour; writes docs/proofs.md
	$(BIN)/python benchmarks/proofs.py --write

certificates: $(STAMP)  ## measure the certificates of some models; writes a table of docs/how-to-certify.md
	$(BIN)/python tools/certificates.py --write

mutants: $(STAMP)  ## mutation testing of the code that decides verdicts, which takes an hour; goes on where it ended
	$(BIN)/python tools/mutants.py $(MUTANTS)

site: $(STAMP)  ## render the documents to build/site/; a broken link stops it
	$(BIN)/sphinx-build -q -W --keep-going -c docs/site . build/site
	@echo "file://$(CURDIR)/build/site/docs/site/index.html"

lock:  ## rewrite constraints.txt with the newest versions that pyproject.toml allows
	$(PYTHON) -m venv --clear build/lock
	build/lock/bin/python -m pip install -qq --upgrade pip
	build/lock/bin/python -m pip install -qq --editable '.[runtime,spark]' --group dev
	grep '^#' constraints.txt > build/lock/constraints.txt
	build/lock/bin/python -m pip freeze --all --exclude-editable --exclude setuptools --exclude wheel >> build/lock/constraints.txt
	mv build/lock/constraints.txt constraints.txt

clean:  ## remove what the targets wrote, .venv/ included
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
$(STAMP): FORCE
endif

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "streamproof needs Python 3.11 or newer; '$(PYTHON)' is '$$($(PYTHON) --version 2>&1)'." >&2; \
	  echo "  Install one and name it: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@if [ -e $(STAMP) ] && [ "$$(cat $(STAMP))" != "$(CURDIR)" ] || \
	  ! $(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  echo "creating $(VENV)"; \
	  $(PYTHON) -m venv --clear $(VENV) || { \
	    echo "No virtual environment could be made; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }; \
	fi
	@echo "installing streamproof and its tools into $(VENV)"
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --upgrade pip
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --build-constraint constraints.txt \
	  --editable '.[runtime,spark]' --group dev
	@echo '$(CURDIR)' > $(STAMP)
