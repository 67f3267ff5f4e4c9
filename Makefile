# Every target makes .venv when it is missing or older than what it was made from.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.made

.PHONY: demo test check bench clean

demo: $(STAMP)
	$(BIN)/o2pl reproduce --quick --out out/demo

test: $(STAMP)
	$(BIN)/python -m pytest

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'o2pl needs Python 3.11 or newer, this is ' + sys.version)"
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,bench]"
	touch $@

clean:
	rm -rf .venv out .pytest_cache .mypy_cache .ruff_cache .hypothesis
