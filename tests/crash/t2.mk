# T2: the core compiled with -fsanitize=thread and linked with store_hook.c instead of the sanitizer's library.
#   make -C tests/crash -f t2.mk t2 [COUNT=10000] [PAIRS=2000] [SEED=1]
ROOT ?= ../..
CC ?= gcc
T2 := $(ROOT)/build/crash/t2
COUNT ?= 10000
PAIRS ?= 2000
SEED ?= 1
T2_CORE := $(patsubst $(ROOT)/csrc/%.c,$(T2)/core/%.o,$(wildcard $(ROOT)/csrc/*/*.c))
T2_INCLUDES := -I$(ROOT)/csrc -I$(ROOT)/csrc/include -I$(ROOT)/tests/c
T2_FLAGS := -std=gnu11 -O1 -g -Wall -Wextra -DMQX_ASSERTIONS
T2_WRAP := -Wl,--wrap=memcpy,--wrap=mmap,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_trylock \
    -Wl,--wrap=pthread_mutex_unlock,--wrap=pthread_mutex_consistent

$(T2)/core/%.o: $(ROOT)/csrc/%.c
	@mkdir -p $(@D)
	$(CC) $(T2_FLAGS) $(T2_INCLUDES) -fsanitize=thread -fno-builtin-memcpy -MMD -MP -c $< -o $@

$(T2)/tests/%.o: $(ROOT)/tests/crash/%.c
	@mkdir -p $(@D)
	$(CC) $(T2_FLAGS) $(T2_INCLUDES) -MMD -MP -c $< -o $@

$(T2)/store_points: $(T2_CORE) $(T2)/tests/store_points.o $(T2)/tests/store_scenarios.o $(T2)/tests/store_hook.o $(T2)/tests/crash_fixture.o \
    $(T2)/tests/audit.o $(T2)/tests/dynamic.o
	$(CC) $^ $(T2_WRAP) -lpthread -o $@

.PHONY: t2 points
points: $(T2)/store_points ## only build
t2: $(T2)/store_points ## store crash points: COUNT, PAIRS, SEED
	$(T2)/store_points --count $(COUNT) --pairs $(PAIRS) --seed $(SEED)

-include $(wildcard $(T2)/core/*/*.d $(T2)/tests/*.d)
