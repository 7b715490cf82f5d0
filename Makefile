# `make` or `make help` lists the targets. Everything is built and run in a virtual environment in
# the checkout (VENV, default .venv); what is needed besides is Python >= 3.10 with its headers, a
# C compiler and make.

PYTHON ?= python3
VENV ?= .venv
CC ?= gcc
BUILD ?= build
JOBS ?= 2
FILES_AT_ONCE ?= 3

BIN := $(VENV)/bin
RUN := $(BIN)/python
CORE := $(wildcard csrc/*/*.c csrc/*/*.h csrc/*/*/*.h csrc/*/*.def)
BINDING := $(shell find pyext -type f)
PACKAGE := $(shell find python/penstock -name '*.py*' -not -path '*/__pycache__/*')
TOOLS := $(VENV)/.tools
BUILT := $(VENV)/.built

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' \
	    $(MAKEFILE_LIST)

# ---- set-up ----

$(TOOLS): pyproject.toml tools/requirements.txt tools/make_venv.sh
	sh tools/make_venv.sh $(PYTHON) $(VENV) tools/requirements.txt
	@touch $@

$(BUILT): $(TOOLS) setup.py $(CORE) $(BINDING)
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	    --editable '.[test]'
	@touch $@

.PHONY: venv build hooks
venv: $(TOOLS) ## make the virtual environment with all tools
build: $(BUILT) ## build the extension and install the package into the environment
hooks: $(TOOLS) ## install the pre-commit hooks
	$(BIN)/pre-commit install

# ---- use ----

.PHONY: demo
demo: $(BUILT) ## move real input through a queue while processes are killed
	$(BIN)/penstock demo $(FILES)

# log files for `make pipeline`; without any, the project makes up its own
LOGS ?= $(wildcard ../shared/data/loghub/*.log)

.PHONY: pipeline
pipeline: $(BUILT) ## log lines through queues and Spark, counted by grep, too (LOGS="FILE...")
	PYTHONPATH=examples $(RUN) -m pipeline_proof $(LOGS)

# ---- tests ----

.PHONY: test py-test thorough test-again surroundings ext-asan c-test c-build c-asan c-tsan style lint typecheck docs constants format
test: c-test py-test ## everything that takes minutes, style included
py-test: $(BUILT) ## the Python tests, three files side by side: they wait much (FILES_AT_ONCE=, WITHOUT="soak")
	$(RUN) -m pytest -q -n $(FILES_AT_ONCE) $(addprefix --ignore=tests/,$(WITHOUT)) tests
thorough: $(BUILT) ## the Python tests with all cases of those that go through many
	PENSTOCK_THOROUGH=1 $(RUN) -m pytest -q -n $(FILES_AT_ONCE) tests
test-again: $(BUILT) ## the Python tests that failed last, one after the other
	@echo "FLAKY, if these pass now: they failed beside others, and are to be mended"
	$(RUN) -m pytest -q --last-failed --last-failed-no-failures none tests
surroundings: $(BUILT) ## limits, users, signals, memory, the interpreter (T13)
	$(RUN) -m pytest -q tests/surroundings
c-test: ## the C tests, plain build (another compiler: CC=clang BUILD=build/c/clang)
	$(MAKE) -j$(JOBS) -C tests/c check \
	    $(if $(filter command,$(word 1,$(origin BUILD))),BUILD=$(abspath $(BUILD)))
c-build: ## compile core and C tests with all warnings as errors (CC=, BUILD= as c-test)
	$(MAKE) -j$(JOBS) -C tests/c c-tests \
	    $(if $(filter command,$(word 1,$(origin BUILD))),BUILD=$(abspath $(BUILD)))
c-asan: ## the C tests under address and undefined-behaviour sanitizers (T10)
	$(MAKE) -j$(JOBS) -C tests/c check VARIANT=asan
c-tsan: ## the C tests under the thread sanitizer (T10)
	$(MAKE) -j$(JOBS) -C tests/c check VARIANT=tsan
ext-asan: $(TOOLS) ## callbacks in the middle of calls of the binding, under the address sanitizer (T10; PART=1/3)
	PART=$(PART) sh tests/surroundings/ext_asan.sh $(RUN) $(BUILD) $(CC)
style: $(BUILT) ## sizes, layers, banned calls
	$(RUN) tests/style/counts.py
	$(RUN) -m pytest -q tests/style
lint: $(TOOLS) ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
typecheck: $(BUILT) ## mypy --strict; pyright on penstock.asyncio and on users' programs
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(RUN)
docs: $(BUILT) ## links and examples of the documents
	$(RUN) -m pytest -q tests/test_docs.py
constants: $(TOOLS) ## write MQ's constants in C, Cython and Python from the table in tools/mqi
	$(RUN) tools/make_mqi.py

DOCS := $(VENV)/.docs
$(DOCS): $(TOOLS) tools/requirements-docs.txt
	$(RUN) -m pip install --quiet --disable-pip-version-check \
	    --requirement tools/requirements-docs.txt
	@touch $@

.PHONY: site
site: $(BUILT) $(DOCS) ## build the documents into a site, build/site/html
	$(RUN) tools/make_site.py

format: $(TOOLS) ## format the Python files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# ---- crash layers: COUNT=, TIME= (seconds), SEED= reach them by themselves ----

CRASH := $(MAKE) -j$(JOBS) -C tests/crash PYTHON=$(abspath $(RUN))

.PHONY: crash crash-programs checkpoint-storm t2 t3 t4 t5 t7 t9 t11 t12 region-fuzz region-damage flight-storm full-disk spark-kill spark-remote spark-remote-storm mutation
REMOTE := abandoned aside browse browse_choices gathering once order properties queues several sink \
    sink_dead_letters sink_rows sql stream stream_errors write_once
crash: t2 t3 t4 t5 t7 checkpoint-storm t9 t11 t12 region-fuzz region-damage c-asan c-tsan flight-storm spark-kill spark-remote-storm ## all at CI size
crash-programs: ## build the programs of T2, T3, T4, T9, T12
	$(CRASH) programs
	$(CRASH) -f t2.mk points
	$(CRASH) -f t9.mk schedules
t2: ## SIGKILL before every store into the region, and in the repair
	$(CRASH) -f t2.mk t2
t3: ## every legal state of the disk after a power cut
	$(CRASH) t3
t4: ## I/O errors at every call of the file table
	$(CRASH) t4
crash-asan: ## T3, T4 and T12 under the sanitizers of c-asan (T10)
	$(CRASH) t3 VARIANT=asan COUNT=1500
	$(CRASH) t4 VARIANT=asan COUNT=150
	$(CRASH) t12 VARIANT=asan COUNT=1999
t5: $(BUILT) ## no memory: each allocation of core and binding fails
	$(CRASH) -f t5.mk t5
	$(RUN) tests/crash/python_no_memory.py
t7: $(BUILT) ## kill storms with an invariant checker
	$(CRASH) -f t7.mk t7
checkpoint-storm: $(BUILT) ## checkpoints without a pause, everybody killed at once, recovered each time: ROUNDS, SEED
	$(CRASH) -f t7.mk checkpoint-storm
t9: ## pairs of operations of two processes, interleaved at stores, with kills
	$(CRASH) -f t9.mk t9
t11: $(BUILT) ## the second reader agrees with the core on sampled disk states
	$(CRASH) programs
	$(RUN) tests/crash/t11.py build/crash/plain/run_t3 \
	    $(if $(COUNT),--images $(COUNT)) $(if $(SEED),--seed $(SEED))
t12: ## damage: each bit, truncation, swap, zeroed sector
	$(CRASH) t12
region-fuzz: ## damaged words of the shared region, without files: ROUNDS, SEED
	$(CRASH) -f region_fuzz.mk region-fuzz
region-damage: $(BUILT) ## the same under Python workers: ROUNDS, SEED
	$(RUN) tests/crash/region_damage.py $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED))
flight-storm: $(BUILT) ## exactly once through Arrow Flight: servers and clients killed, links cut (KILLS=, SEED=)
	$(RUN) tests/crash/flight_storm.py $(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED))
full-disk: $(BUILT) ## queue managers on full file systems, tmpfs and ext4, emptied: ONLY=
	$(RUN) tests/crash/full_disk.py $(if $(ONLY),--only "$(ONLY)")
spark-remote: $(BUILT) ## the data source's tests of queues, through a server (REMOTE="sink stream": these)
	PENSTOCK_THROUGH_A_SERVER=1 $(RUN) -m pytest -q -n $(FILES_AT_ONCE) \
	    $(addprefix tests/spark/test_,$(addsuffix .py,$(REMOTE)))
SPARK_STORM = $(if $(RANDOM),--random $(RANDOM)) $(if $(TASKS),--tasks $(TASKS)) $(if $(PART),--part $(PART)) \
    $(if $(SEED),--seed $(SEED))
spark-remote-storm: $(BUILT) ## exactly once through Spark on another host: kills, cut links (RANDOM=, TASKS=, PART=1/3, SEED=, SHORT=1)
	$(RUN) tests/crash/spark_remote_storm.py $(SPARK_STORM) $(if $(SHORT),--short)
spark-kill: $(BUILT) ## exactly once through Spark: full disks, kills of drivers and workers (RANDOM=, TASKS=, PART=1/3, SEED=)
	$(RUN) tests/crash/spark_full.py
	$(RUN) tests/crash/spark_storm.py $(SPARK_STORM)
	$(RUN) tests/crash/spark_journal_storm.py $(SPARK_STORM)
mutation: $(BUILT) ## planted faults, each caught by a named layer
	$(CRASH) mutation

.PHONY: soak year
soak: $(BUILT) ## ordinary work whose memory, descriptors and rate must stay flat (MINUTES=120)
	$(RUN) tests/soak/soak.py --minutes $(or $(MINUTES),120) $(if $(SEED),--seed $(SEED)) \
	    --home $(BUILD)

# ---- what takes a night: the layers at length, what fails is named at the end ----

NIGHT := "t2 COUNT=1000000 PAIRS=100000" "t3 COUNT=20000000" "t4 COUNT=1000000" "t5" \
    "t7 KILLS=50000 PYTHON_KILLS=3000 TASK_KILLS=3000 REPORT_KILLS=3000" "checkpoint-storm ROUNDS=10000" \
    "t9 COUNT=400000" \
    "t11 COUNT=20000" "t12" "region-fuzz ROUNDS=400000" "region-damage ROUNDS=3000" \
    "c-asan" "c-tsan" "c-test CC=clang BUILD=build/c/clang" "ext-asan" "crash-asan" "thorough" \
    "mutation" "model STEPS=300000" "flight-storm KILLS=5000" "spark-kill RANDOM=100" "spark-remote" "spark-remote-storm RANDOM=200" "soak MINUTES=120" "year" \
    "wheels" "smoke-wheels" "spark-versions"

.PHONY: night
night: $(BUILT) ## hours of every layer (NIGHT="t3 t7": these, at CI size)
	@failed=; for layer in $(NIGHT); do \
	    echo "== $$layer"; $(MAKE) $$layer || failed="$$failed, $$layer"; \
	done; test -z "$$failed" || { echo "FAILED: $${failed#, }"; exit 1; }

year: $(BUILT) ## a year of traffic, scaled, within the bounds of files, restarts and memory (DAYS=365)
	$(RUN) tests/soak/year.py $(if $(DAYS),--days $(DAYS)) $(if $(SEED),--seed $(SEED)) \
	    --home $(BUILD)

# ---- the reference model: STEPS=, SEED= ----

.PHONY: model
model: $(BUILT) ## random calls against the reference model (STEPS=1000000, SEED=)
	STEPS=$(or $(STEPS),1000000) $(if $(SEED),SEED=$(SEED)) $(RUN) -m pytest -q -s \
	    tests/model/test_against_model.py

# ---- benchmarks ----

BENCHED := $(VENV)/.bench
$(BENCHED): $(BUILT)
	$(RUN) -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	    --editable '.[bench]'
	@touch $@

.PHONY: bench
bench: $(BENCHED) ## figures as ratios against raw limits, interleaved
	$(RUN) bench/run.py

# ---- packages ----

.PHONY: dist sdist wheel wheels smoke smoke-wheels smoke-aarch64 spark-versions
dist: sdist wheel ## source distribution and wheel, into dist/
sdist: $(TOOLS) ## source distribution
	$(RUN) -m build --sdist --no-isolation
wheel: dist/.wheel ## wheel for this machine
dist/.wheel: $(TOOLS) setup.py MANIFEST.in README.md LICENSE $(CORE) $(BINDING) $(PACKAGE)
	$(RUN) -m build --wheel
	@touch $@
wheels: ## wheels of a release, x86-64 and aarch64 (VERSIONS="3.11", ARCHES=x86_64)
	$(PYTHON) tools/wheels.py $(if $(VERSIONS),--versions $(VERSIONS)) \
	    $(if $(ARCHES),--arches $(ARCHES))
smoke: wheel ## install the wheel alone in a new environment and use it
	sh tools/smoke_wheel.sh $(PYTHON) $(BUILD)/smoke
smoke-wheels: ## install each x86-64 wheel of a release alone and use it
	$(PYTHON) tools/wheels.py --smoke $(if $(VERSIONS),--versions $(VERSIONS))
smoke-aarch64: ## use the aarch64 wheel for Python 3.11 under qemu-user
	sh tools/smoke_aarch64.sh $(BUILD)/smoke-aarch64

spark-versions: wheel ## the data source with each version of PySpark (VERSIONS="4.0 4.2", FEATURES=1)
	$(PYTHON) tools/spark_versions.py $(if $(VERSIONS),--versions $(VERSIONS)) \
	    $(if $(FEATURES),--features)

# ---- cleaning ----

.PHONY: ci clean distclean
ci: ## what continuous integration runs
	.ci/run
clean: ## remove what was built
	rm -rf $(BUILD) dist *.egg-info python/*.egg-info .mypy_cache .pytest_cache .ruff_cache
	rm -f python/penstock/_engine*.so $(BUILT)
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
distclean: clean ## remove the environment too
	rm -rf $(VENV)
