# T9: schedules of two processes, on the core that t2.mk builds (calls at each store).
#   make -C tests/crash -f t9.mk t9 [COUNT=20000] [SEED=1]
include $(dir $(lastword $(MAKEFILE_LIST)))t2.mk
SCHEDULES = $(if $(filter file,$(origin COUNT)),20000,$(COUNT))
T9_WRAP := -Wl,--wrap=syscall,--wrap=pthread_mutex_timedlock,--wrap=mqx_clock_sleep_us

$(T2)/schedules: $(T2_CORE) $(patsubst %,$(T2)/tests/%.o,schedules operations turns store_hook \
    crash_fixture audit dynamic)
	$(CC) $^ $(T2_WRAP) $(T9_WRAP) -lpthread -o $@

.PHONY: t9 schedules
schedules: $(T2)/schedules ## only build
t9: $(T2)/schedules ## schedules: COUNT, SEED
	$(T2)/schedules --count $(SCHEDULES) --seed $(SEED)
