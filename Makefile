# `make demo` and `make test` need Python 3.11 or newer, make and gcc; they set up .venv on the first run.

PYTHON ?= python3
SEED ?= 0
BIN := .venv/bin
comma := ,
READY := .venv/.ready
DEMO_READY := .venv/.demo

# The test workers share the cores, so every library keeps to one thread.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# Some hundred processes load the package: it is compiled for all of them once, also where containers forbid it.
unexport PYTHONDONTWRITEBYTECODE
# MkDocs tells of its successors at every build.
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo test core lint types imports unit browser fuzz mutants test-slow dist test-dist docs site screenshots notebooks clean

demo: $(DEMO_READY)  ## solve bundled examples: by the network alone, then by all there is, with a picture
	mkdir -p out
	$(BIN)/chainroute solve chainroute/examples/parcels.vrp --solver neural
	$(BIN)/chainroute solve chainroute/examples/dairy.json --time-limit 5 --plot out/demo.png
	@echo "The picture is in out/demo.png"

test: lint types imports unit  ## everything CI checks

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

unit: $(READY) browser
	$(BIN)/pytest -n 2 --dist worksteal

# Problems, plans, formats and what all stand on: no browser, no kernels in the interpreter, no solver that takes its time.
CORE := $(addprefix tests/,problem plan formats generate options runtime search/test_construct.py \
	search/test_pieces.py search/test_scaling.py)

core: $(READY)  ## what proves most in the least time: less than three minutes
	$(BIN)/pytest -n 2 --dist worksteal $(CORE)

# For the tests of the page, which are skipped without it. Debian's, as the page's tests look for that name.
browser:
	@command -v chromium > /dev/null || { test "$$(id -u)" = 0 && apt-get update -qq \
		&& apt-get install -y -qq --no-install-recommends chromium > /dev/null; } \
		|| echo "No chromium: the page is not tested. Install it, or run make as root on Debian."

SECONDS ?= 600

fuzz: $(READY)  ## mutated files of every format, for SECONDS, by SEED; finds go to out/fuzz
	$(BIN)/python tests/fuzz.py --seconds $(SECONDS) --seed $(SEED)

mutants: $(READY)  ## whether the tests of core modules notice small faults: a sample of them, by SEED
	$(BIN)/python tests/mutants.py --seed $(SEED)

test-slow: $(READY)  ## what takes minutes, and the property tests with ten times as many examples
	$(BIN)/pytest -m 'slow or hypothesis' --hypothesis-profile thorough

dist: $(READY)  ## an sdist and a wheel in dist/
	$(BIN)/hatchling build -d dist

test-dist: $(READY)  ## both of them, installed in bare environments; with torch, gigabytes and minutes
	$(BIN)/pytest -m slow tests/project/test_dist.py

docs: $(READY)  ## the pages that are made from the code and from stored results
	$(BIN)/python -m website.errors
	$(BIN)/python -m website.attributes
	$(BIN)/chainroute evaluate report

site: $(READY)  ## the documentation as a site in out/site; what is broken in it ends the build
	$(BIN)/mkdocs build --quiet

screenshots: $(READY) browser  ## the pictures of the page in docs/images, from the page as it is
	$(BIN)/python -m website.screenshots

notebooks: $(READY)  ## what the notebooks in docs/notebooks show, from running them
	$(BIN)/python -m website.notebooks

clean:
	rm -rf .venv out dist

# The constraints decide every version, so that the same commit installs the same way next year.
define INSTALL
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "ChainRoute needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(1)]'
	touch $@
endef

$(READY): pyproject.toml constraints.txt
	$(call INSTALL,dev)
	touch $(DEMO_READY)

# What the demo needs, and not what tests and documentation do: those take gigabytes.
$(DEMO_READY): pyproject.toml constraints.txt
	$(call INSTALL,neural$(comma)large$(comma)plot)
