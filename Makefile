# Every target makes its environment when that is missing or older than what it was made from.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.made
DEMO := .venv-demo/.made
PEERS := .venv-peers/.made

.PHONY: demo test contracts faults check docs bench clean

demo: $(DEMO)
	.venv-demo/bin/o2pl reproduce --quick --out out/demo

test: $(STAMP)
	$(BIN)/python -m pytest

# Every kernel beside the parts it stands for, over the whole product of the settings: hours. `test` covers all pairs.
contracts: $(STAMP)
	O2PL_CONTRACTS=full $(BIN)/python -m pytest tests/test_kernel_contracts.py

# Servers, writers and PostgreSQL are killed fifty times each, under load: a quarter of an hour. `test` kills a few times.
faults: $(STAMP)
	O2PL_FAULTS=full $(BIN)/python -m pytest tests/serving/test_faults.py

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, under out/site; a warning, or something that a user can type and nobody documents, is an error.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo out/site/index.html

bench: $(STAMP) $(PEERS)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

$(STAMP): EXTRAS := dev
$(DEMO): EXTRAS := experiments,vw
$(STAMP) $(DEMO): %/.made: pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'o2pl needs Python 3.11 or newer, this is ' + sys.version)"
	$(PYTHON) -m venv --clear $*
	$*/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	touch $@

# The libraries that the bench runs beside ours; one that does not install is named, and left out.
$(PEERS): benchmarks/peers-constraints.txt benchmarks/peer_environment.py | $(STAMP)
	$(PYTHON) benchmarks/peer_environment.py .venv-peers
	touch $@

clean:
	rm -rf .venv .venv-demo .venv-peers out .pytest_cache .mypy_cache .ruff_cache .hypothesis
