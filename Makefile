# The project's verbs. `make run` and `make test` need nothing but Python 3.11+ and make.

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
DATA   ?= data
KEEP    = $(VENV)/.made

# The suite starts many processes, each of which would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test check format compat long soak history simulate bench docs wheel clean

help: ## Say what each verb does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(KEEP)/run: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli]'
	@mkdir -p $(KEEP) && touch $@

$(KEEP)/dev: $(KEEP)/run
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli,spark]' --group test --group check --group bench
	@touch $@

run: $(KEEP)/run ## Start a durable broker on 127.0.0.1:9092, data in ./data
	@exec $(BIN)/barnabas serve --dev --log-dir $(DATA)

test: $(KEEP)/dev wheel ## Run the suite; its compat tests start the built wheel, installed in a bare environment
	BARNABAS_COMPAT_PYTHON=$(abspath $(VENV)-wheel)/bin/python $(BIN)/python -m pytest -n 4 --dist loadgroup

check: $(KEEP)/dev ## Format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(KEEP)/dev ## Put the source into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

compat: $(KEEP)/dev ## Other people's clients, and Apache Kafka itself, against us
	$(BIN)/python -m pytest compat_tests -n 3 --dist loadgroup

long: $(KEEP)/dev ## What the suite leaves out for its length: Spark on clusters, as commands and killed, the pipeline's tutorial, quorums of both kinds of controllers whose leaders are killed, more seeds and histories, a failure at each operation, lengths that lie at every place of every message, a million frames and 100,000 handshakes of strangers, the console's accessibility by axe-core (npm install --no-save axe-core)
	$(BIN)/python -m pytest -m long -n 2 --dist loadgroup

wheel: $(KEEP)/dev ## Build the wheel and install it, and nothing else, into an environment of its own
	@rm -rf $(VENV)-wheel build/wheel && mkdir -p build/wheel
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
	@$(PYTHON) -m venv $(VENV)-wheel
	@$(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check build/wheel/*.whl

soak: $(KEEP)/dev ## kill -9 under load, and while partitions move, 200 rounds; and 500 of any node of three
	BARNABAS_SOAK_ROUNDS=200 $(BIN)/python -m pytest compat_tests/test_kill.py compat_tests/test_moving.py \
		compat_tests/groups/test_restart.py compat_tests/groups/test_share_kill.py
	BARNABAS_KILLS=500 $(BIN)/python -m pytest compat_tests/apache_kafka/test_random_kills.py

simulate: $(KEEP)/dev ## Whole clusters under a virtual clock, with faults by seeds: SEEDS=1-100, or HOURS=2
	$(BIN)/python -m tests.simulation $(or $(SEEDS),$(if $(HOURS),1-1000000,1-100)) $(if $(HOURS),--hours $(HOURS)) $(OPTIONS)

history: $(KEEP)/dev ## Random clients under kills, cuts and pauses for 30 minutes, and a judge of what they saw
	$(BIN)/python -m tests.history.pieces --seconds $(or $(SECONDS),1800) --seed $(or $(SEED),7) --level $(or $(LEVEL),2) $(OPTIONS)

bench: $(KEEP)/dev ## Measure the budgets, beside their baselines
	$(BIN)/python -m benchmarks

docs: $(KEEP)/dev ## Write docs/reference, and tables of other pages, from the code
	$(BIN)/python docs/generate.py

clean: ## Remove what the verbs made, but no data
	rm -rf $(VENV) $(VENV)-wheel build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
