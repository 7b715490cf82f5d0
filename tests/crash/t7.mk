# T7: kill storms. C workers by storm.c, Python processes by python_storm.py, event loops by
# task_storm.py, what the queue manager makes itself by report_storm.py.
#   make -C tests/crash -f t7.mk checkpoint-storm [ROUNDS=100] [SEED=1]   all killed, each time
#   make -C tests/crash -f t7.mk t7 [KILLS=4700] [PYTHON_KILLS=300] [TASK_KILLS=150]
#                                   [REPORT_KILLS=150] [WORKERS=10] [SEED=1]
#                                   [TIME=seconds for each]
# The Python half and the second reader need PYTHON to be one that can import penstock.
ROOT ?= ../..
CC ?= gcc
T7 := $(ROOT)/build/crash/t7
KILLS ?= 4700
PYTHON_KILLS ?= 300
TASK_KILLS ?= 150
REPORT_KILLS ?= 150
PYTHON ?= python3
WORKERS ?= 10
SEED ?= 1
ROUNDS ?= 100
T7_CORE := $(patsubst $(ROOT)/csrc/%.c,$(T7)/core/%.o,$(wildcard $(ROOT)/csrc/*/*.c))
T7_WORKERS := $(patsubst %,$(T7)/tests/%.o,storm_workers storm_accounts storm_processes \
    crash_fixture audit dynamic)
T7_INCLUDES := -I$(ROOT)/csrc -I$(ROOT)/csrc/include -I$(ROOT)/tests/c
T7_FLAGS := -std=gnu11 -DMQX_ASSERTIONS -O2 -g -Wall -Wextra -Wconversion -Werror

$(T7)/core/%.o: $(ROOT)/csrc/%.c
	@mkdir -p $(@D)
	$(CC) $(T7_FLAGS) $(T7_INCLUDES) -MMD -MP -c $< -o $@

$(T7)/tests/%.o: $(ROOT)/tests/crash/%.c
	@mkdir -p $(@D)
	$(CC) $(T7_FLAGS) $(T7_INCLUDES) -MMD -MP -c $< -o $@

$(T7)/storm: $(T7_CORE) $(T7_WORKERS) $(T7)/tests/storm.o
	$(CC) $^ -lpthread -o $@

$(T7)/checkpoint_storm: $(T7_CORE) $(T7_WORKERS) $(T7)/tests/checkpoint_storm.o
	$(CC) $^ -lpthread -o $@

.PHONY: t7 checkpoint-storm
t7: $(T7)/storm ## kill storms: KILLS, PYTHON_KILLS, TASK_KILLS, REPORT_KILLS, WORKERS, SEED, TIME
	$(T7)/storm --kills $(KILLS) --workers $(WORKERS) --seed $(SEED) \
	    $(if $(TIME),--time $(TIME)) --keep $(abspath $(T7))/kept
	$(PYTHON) $(ROOT)/tests/crash/second_reader.py $(T7)/kept
	rm -rf $(T7)/kept-copy $(T7)/kept-found.txt
	$(PYTHON) $(ROOT)/tests/crash/python_storm.py --kills $(PYTHON_KILLS) \
	    --workers $(WORKERS) --seed $(SEED) $(if $(TIME),--time $(TIME))
	$(PYTHON) $(ROOT)/tests/crash/task_storm.py --kills $(TASK_KILLS) \
	    --workers $(WORKERS) --seed $(SEED) $(if $(TIME),--time $(TIME))
	$(PYTHON) $(ROOT)/tests/crash/report_storm.py --kills $(REPORT_KILLS) --seed $(SEED)

checkpoint-storm: $(T7)/checkpoint_storm ## storms of checkpoints, all killed each time: ROUNDS, SEED
	$(T7)/checkpoint_storm --rounds $(ROUNDS) --seed $(SEED) --keep $(abspath $(T7))/kept-storm
	$(PYTHON) $(ROOT)/tests/crash/second_reader.py $(T7)/kept-storm
	rm -rf $(T7)/kept-storm-copy $(T7)/kept-storm-found.txt

-include $(wildcard $(T7)/core/*/*.d $(T7)/tests/*.d)
