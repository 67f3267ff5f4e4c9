# Every target makes .venv when it is missing or older than what it was made from.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.made
PEERS := .venv-peers/.made

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

bench: $(STAMP) $(PEERS)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'o2pl needs Python 3.11 or newer, this is ' + sys.version)"
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,bench]"
	touch $@

# The libraries that the bench runs beside ours; one that does not install is named, and left out.
$(PEERS): benchmarks/peers-constraints.txt benchmarks/peer_environment.py | $(STAMP)
	$(PYTHON) benchmarks/peer_environment.py .venv-peers
	touch $@

clean:
	rm -rf .venv .venv-peers out .pytest_cache .mypy_cache .ruff_cache .hypothesis
