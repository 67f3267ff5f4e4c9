# Every target makes its environment when that is missing or older than what it was made from.
ifeq ($(OS),Windows_NT)
PYTHON ?= python
SCRIPTS := Scripts
else
PYTHON ?= python3
SCRIPTS := bin
endif
BIN := .venv/$(SCRIPTS)
STAMP := .venv/.made
DEMO := .venv-demo/.product
REPRODUCE := .venv-demo/.made
PEERS := .venv-peers/.made
CLIENTS := .venv-javascript/.made

.PHONY: demo reproduce guarantees test test-fast test-levels coverage contracts faults check docs bench peers clients build stubs fuzz sanitize clean

# The wheel with the compiled core, keyed by its sources: built once, installed into every environment.
SOURCES := pyproject.toml README.md LICENSE $(shell find native src -type f -not -name '*.so' -not -path '*/__pycache__/*')
STUDIES := reproduction/pyproject.toml $(shell find reproduction/src -type f -not -path '*/__pycache__/*')

# A light environment, about a minute of work; prints the page's path.
demo: $(DEMO)
	.venv-demo/$(SCRIPTS)/o2pl demo --out out/demo

# Every experiment of the paper at a small size, in minutes. `o2pl-reproduction reproduce --full` decides; it takes hours.
reproduce: $(REPRODUCE)
	.venv-demo/$(SCRIPTS)/o2pl-reproduction reproduce --quick --out out/reproduction

test: $(STAMP)
	$(BIN)/python -m pytest

# The core alone: from contexts to decisions. Under three minutes on two idle cores; `test` is everything.
FAST := $(addprefix tests/,theory data encode features policies objectives oracles engine explaining learners) \
    $(addprefix tests/test_,contracts.py decisions.py layout.py native.py storage.py validation.py)

test-fast: $(STAMP)
	$(BIN)/python -m pytest $(FAST)

# Folders whose results are numbers, and numbers alone; the rest takes longer than it tells here.
NUMERICAL := $(addprefix tests/,theory features policies objectives oracles kernels engine explaining learners evaluation) tests/test_contracts.py

# The numerical tests at the CPU level below this machine's (`LEVEL=plain`: the lowest), where sums round otherwise; minutes.
test-levels: $(STAMP)
	$(BIN)/python tests/at_level.py $(LEVEL) -m pytest $(NUMERICAL)

# The same tests, with the share of lines and branches of their folders that they run: the number is the last line.
coverage: $(STAMP)
	rm -f out/coverage
	$(BIN)/python tests/at_level.py $(LEVEL) -m coverage run -m pytest $(NUMERICAL)
	if [ -f out/coverage ]; then $(BIN)/python -m coverage report; fi

# Every kernel beside the parts it stands for, over the whole product of the settings: hours. `test` covers all pairs.
contracts: $(STAMP)
	O2PL_CONTRACTS=full $(BIN)/python -m pytest tests/test_kernel_contracts.py

# Servers, writers, trainers and PostgreSQL are killed fifty times each under load, fifty backups restored, fifty disks
# filled, fifty hostile files sent: half an hour. `test` does each a few times. FAULTS: how often, instead of fifty.
FAULTS ?= 50
faults: $(STAMP)
	O2PL_FAULTS=$(FAULTS) $(BIN)/python -m pytest $(addprefix tests/serving/test_,damage.py faults.py trainer.py) -k "killed or full or away or restored or hostile"

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Every parser on changed events, under sanitizers, for FUZZ_SECONDS; then what failed, if anything.
FUZZ_SECONDS ?= 240
fuzz: $(STAMP)
	$(BIN)/python native/fuzz/run.py --seconds $(FUZZ_SECONDS)

# The tests of the compiled core with everything compiled under the address and undefined-behaviour sanitizers: an hour.
sanitize: $(STAMP)
	$(BIN)/python native/sanitize.py

# The types of the compiled core, for mypy: after its functions have changed.
stubs: $(STAMP)
	$(BIN)/python -m nanobind.stubgen -q -D -m o2pl._core -o src/o2pl/_core.pyi

# The site, under out/site; a warning, or something that a user can type and nobody documents, is an error.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo out/site/index.html

# The environment of the libraries that the bench and some tests run beside ours.
peers: $(PEERS)

# The published JavaScript clients that tests of the service run, unmodified, with the machine's Node.
clients: $(CLIENTS)

# Every door that says "better", in worlds whose truth is known: an hour or two on few cores; docs/guarantees.md is made from it.
guarantees: $(STAMP)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.guarantees

bench: $(STAMP) $(PEERS)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

.venv/.packages: EXTRAS := dev
.venv-demo/.packages: EXTRAS := experiments,serve,vw
.venv-demo/.packages: FASTER := --no-compile  # Python compiles what is imported, and only that
.venv/.product .venv-demo/.product: %/.product: %/.packages $(SOURCES)
	$*/$(SCRIPTS)/python native/wheel.py --install
	touch $@
# The package of the reproduction, beside the product.
$(STAMP) $(REPRODUCE): %/.made: %/.product $(STUDIES)
	$*/$(SCRIPTS)/python native/wheel.py --install reproduction
	touch $@
.venv/.packages .venv-demo/.packages: %/.packages: pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'o2pl needs Python 3.11 or newer, this is ' + sys.version)"
	@echo "$*: installing packages, once"
	$(PYTHON) -m venv --clear $*
	$*/$(SCRIPTS)/python native/wheel.py --requirements "$(EXTRAS)" > $*/requirements.txt
	$*/$(SCRIPTS)/python -m pip install $(FASTER) --quiet --disable-pip-version-check -c constraints.txt -r $*/requirements.txt
	touch $@

# The libraries that the bench runs beside ours; one that does not install is named, and left out.
$(PEERS): benchmarks/peers-constraints.txt benchmarks/peer_environment.py | $(STAMP)
	$(PYTHON) benchmarks/peer_environment.py .venv-peers
	touch $@

$(CLIENTS): tests/serving/javascript/package.json tests/serving/javascript/package-lock.json
	rm -rf .venv-javascript && mkdir .venv-javascript
	cp $^ .venv-javascript
	cd .venv-javascript && npm ci --silent --no-fund --no-audit
	touch $@

# Wheel and sdist, under dist. The wheel is installed where nothing else is, and README's example runs there.
build:
	$(PYTHON) -m venv --clear out/build
	out/build/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check build
	rm -rf dist
	out/build/$(SCRIPTS)/python -m build --outdir dist .
	$(PYTHON) -m venv --clear out/clean
	out/clean/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd out && clean/$(SCRIPTS)/python -I ../tests/readme_example.py ../README.md

clean:
	rm -rf .venv .venv-demo .venv-javascript .venv-peers out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
