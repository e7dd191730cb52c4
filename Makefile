# The two commands of the README are `make demo` and `make test`. Each builds its own virtual environment, so that
# a machine with Python 3.11, pip and make is enough.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
# Tests run on as many workers as there are cores.
WORKERS ?= auto

# Interpreters on which `make dist-check` installs the packages.
PYTHONS ?= python3.11 python3.12 python3.13

.PHONY: help demo test docs docs-serve notebooks changelog dist-check release-check install-size check unit coverage mutants fault slurm bench bench-cost bench-pool bench-workers bench-gate bench-run bench-ledger bench-model bench-report bench-dashboard bench-quality bench-search bench-start size trace bench-made-up screenshots experiments peers measure-minisat-fuzz measure-highs-auction measure-highs-cascade measure-cplex-auction dist clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# One stamp per set of requirements: editing pyproject.toml or the pins rebuilds the environment.
$(VENV)/stamp: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "captime needs Python 3.11 or newer; use make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e research
	@touch $@

# The demo has an environment of its own, with nothing in it that the demo does not need.
.venv-demo/stamp: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "captime needs Python 3.11 or newer; use make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo]'
	@touch $@

demo: .venv-demo/stamp  ## a real solver, configured in about a minute: certificate, independent check, picture
	.venv-demo/bin/python -m captime demo --out demo-out

test: check unit  ## everything CI runs: lint, types, layers, tests

check: $(VENV)/stamp  ## lint, types, import contracts, spelling and words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/word_list.py
	$(BIN)/codespell src research tests docs benchmarks examples experiments README.md CONTRIBUTING.md CHANGELOG.md changelog.d

unit: $(VENV)/stamp  ## the tests
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q

coverage: $(VENV)/stamp  ## the statistical suites at full size, and the error rates they observed
	$(BIN)/pytest -n $(WORKERS) -q -m slow -o junit_family=xunit1 --junitxml=bench-out/rates.xml
	$(BIN)/python tests/coverage_rates.py bench-out/rates.xml

mutants: $(VENV)/stamp  ## plant one-line faults in the package, one at a time, and print those that no test notices (half an hour)
	PYTHONPATH=tests $(BIN)/python -m mutants.run $(MUTANTS)

fault: $(VENV)/stamp  ## fault injection at full size: kills, hostile programs, damaged ledgers (about an hour)
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m fault

slurm: $(VENV)/stamp  ## campaigns on a real Slurm that is started for them (root; Debian: apt-get install slurm-wlm munge)
	$(BIN)/pytest -q -m slurm tests/slurm

bench: $(VENV)/stamp  ## speed against a plain per-run loop, ratios measured in one run
	$(BIN)/python benchmarks/speed.py

bench-cost: $(VENV)/stamp bench-pool  ## what a certificate costs, by procedure, on lists and spaces (some hours; needs ASlib folders for the real solvers)
	cd benchmarks && ../$(BIN)/python cost.py --out ../bench-out/cost.csv
	$(BIN)/python benchmarks/fixed_sets.py --out bench-out/fixed_sets.csv

bench-pool: $(VENV)/stamp  ## what (epsilon, gamma) costs on spaces, against COUP as published
	$(BIN)/python benchmarks/pool_cost.py

bench-run: $(VENV)/stamp  ## what running a program costs beside the program: overhead per run, cap latency, utilisation
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/utilisation.py
	$(BIN)/python benchmarks/campaign.py

bench-ledger: $(VENV)/stamp  ## rows per second, replay, bytes per run
	$(BIN)/python benchmarks/ledger.py

bench-model: $(VENV)/stamp  ## what the model's proposals are worth, and what they cost
	$(BIN)/python benchmarks/model.py

bench-start: $(VENV)/stamp  ## CPU time of starting commands, as multiples of `import numpy`
	$(BIN)/python benchmarks/startup.py

size: $(VENV)/stamp  ## files and lines in the wheel, by part
	$(BIN)/python benchmarks/house.py size

trace: $(VENV)/stamp  ## files in which one `captime run` executes functions, by part
	$(BIN)/python benchmarks/house.py trace

bench-quality: $(VENV)/stamp .venv-peers/stamp  ## incumbents at 1 to 10 CPU minutes against random search, Optuna and SMAC3 (hours; can be stopped)
	$(BIN)/python examples/kissat/prepare.py
	$(BIN)/python examples/highs-auctions/prepare.py
	.venv-peers/bin/python benchmarks/quality.py --jobs 2

bench-made-up: .venv-peers/stamp  ## the same methods on made-up targets in the same spaces: many seeds in minutes
	.venv-peers/bin/python benchmarks/quality_made_up.py

bench-search: .venv-peers/stamp  ## incumbents at 1 to 100 simulated CPU hours against SMAC3, irace, Optuna, Hyperband and random search (hours; can be stopped)
	.venv-peers/bin/python benchmarks/search.py --jobs 2

bench-workers: $(VENV)/stamp  ## utilisation and epsilon against wall time for 1 to 1,000 virtual workers
	$(BIN)/python benchmarks/workers.py

bench-gate: $(VENV)/stamp  ## verdicts of `captime compare --not-worse-by` on 200 made-up pull requests, beside two habits of CI jobs
	$(BIN)/python benchmarks/gate.py
	$(BIN)/python benchmarks/gate.py --margin 0.02 --budget 14400

bench-report: $(VENV)/stamp  ## a report on a million runs: time and size
	$(BIN)/python benchmarks/report.py

bench-dashboard: $(VENV)/stamp  ## what fifty open dashboard pages cost a campaign: commits with and without them
	$(BIN)/python benchmarks/dashboard.py

docs: $(VENV)/stamp  ## the documentation site, built strictly into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

docs-serve: $(VENV)/stamp  ## the site at http://127.0.0.1:8000, built again when a page changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

notebooks: $(VENV)/stamp  ## execute the notebooks of docs/notebooks again and store their outputs
	$(BIN)/python docs/notebooks/run.py

screenshots: $(VENV)/stamp  ## pictures of README and docs, from a demo campaign (needs Chromium)
	$(BIN)/python docs/screenshots.py

experiments: $(VENV)/stamp  ## every figure and number of the experiments from the shipped tables
	$(BIN)/python experiments/run_all.py

# SMAC3 and Optuna with all they need, apart from everything else; irace is R's.
.venv-peers/stamp: pyproject.toml experiments/peers/requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r experiments/peers/requirements.txt -e '.[plot,model]' -e research
	@command -v Rscript > /dev/null || echo "irace needs R: on Debian, apt-get install r-cran-irace"
	@touch $@

peers: .venv-peers/stamp  ## the configurators that captime is compared with, for `make experiments` (some 400 MB)

measure-minisat-fuzz: $(VENV)/stamp  ## measure that table (idle machine; needs Debian's minisat)
	$(BIN)/python experiments/measure/measure.py minisat-fuzz

measure-highs-auction: $(VENV)/stamp  ## measure that table (idle machine; needs the wheel highsbox)
	$(BIN)/python experiments/measure/measure.py highs-auction

measure-highs-cascade: $(VENV)/stamp  ## measure that table (idle machine; needs the wheel highsbox)
	$(BIN)/python experiments/measure/measure.py highs-cascade

# Not among the requirements: installing the wheel cplex means accepting IBM's licence for its community edition.
measure-cplex-auction: $(VENV)/stamp  ## measure CPLEX on auctions (idle machine; needs the wheel cplex, with a licence of its own)
	$(BIN)/python experiments/measure/measure.py cplex-auction --out experiments/measure/out

dist: $(VENV)/stamp  ## wheel and sdist, and their hashes
	$(BIN)/python -m build
	sha256sum dist/*

dist-check:  ## install wheel and sdist of dist/ in clean environments, one for each of PYTHONS, and try them
	$(PYTHON) packaging/check_dist.py dist $(PYTHONS)

install-size:  ## what a bare installation of the wheel in dist/ takes, package by package
	$(PYTHON) packaging/check_dist.py dist $(PYTHON) --size

changelog: $(VENV)/stamp  ## collect the fragments of changelog.d into CHANGELOG.md under the version of the package
	$(BIN)/python packaging/changelog.py

release-check: $(VENV)/stamp  ## is TAG the version of the package, of CITATION.cff, of the recipe and of the changelog?
	$(BIN)/python packaging/release_check.py "$(TAG)"

clean:  ## forget everything that can be made again
	rm -rf $(VENV) .venv-peers .venv-demo build dist site demo-out bench-out .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
