# Damage in the region: the core without assertions, no files. Two processes, each with half of the
# rounds: the first has SEED, the second SEED + 1.
#   make -j2 -C tests/crash -f region_fuzz.mk region-fuzz [ROUNDS=20000] [SEED=1]
ROOT ?= ../..
CC ?= gcc
FUZZ := $(ROOT)/build/crash/region
ROUNDS ?= 20000
SEED ?= 1
FUZZ_CORE := $(patsubst $(ROOT)/csrc/%.c,$(FUZZ)/core/%.o,$(wildcard $(ROOT)/csrc/*/*.c))
FUZZ_TESTS := $(patsubst %,$(FUZZ)/tests/%.o,crash/region_fuzz crash/layer c/fixtures/memory_io \
    c/fixtures/memory_control c/fixtures/memory_files c/fixtures/memory_trace)
FUZZ_INCLUDES := -I$(ROOT)/csrc -I$(ROOT)/csrc/include -I$(ROOT)/tests/c
FUZZ_FLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-result $(EXTRA_CFLAGS)

$(FUZZ)/core/%.o: $(ROOT)/csrc/%.c
	@mkdir -p $(@D)
	$(CC) $(FUZZ_FLAGS) $(FUZZ_INCLUDES) -MMD -MP -c $< -o $@

$(FUZZ)/tests/%.o: $(ROOT)/tests/%.c
	@mkdir -p $(@D)
	$(CC) $(FUZZ_FLAGS) $(FUZZ_INCLUDES) -MMD -MP -c $< -o $@

$(FUZZ)/region_fuzz: $(FUZZ_CORE) $(FUZZ_TESTS)
	$(CC) $(FUZZ_FLAGS) -o $@ $^ -lpthread

.PHONY: region-fuzz programs half-0 half-1
programs: $(FUZZ)/region_fuzz ## only build
region-fuzz: half-0 half-1 ## damaged words of the region: ROUNDS, SEED
half-0 half-1: half-%: $(FUZZ)/region_fuzz
	$< --count $$((($(ROUNDS) + 1 - $*) / 2)) --seed $$(($(SEED) + $*))

-include $(wildcard $(FUZZ)/core/*/*.d $(FUZZ)/tests/*/*.d $(FUZZ)/tests/*/*/*.d)
