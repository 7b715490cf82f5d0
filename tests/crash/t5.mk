# T5: every allocation of the core fails.
#   make -C tests/crash -f t5.mk t5 [VARIANT=asan]
include $(dir $(lastword $(MAKEFILE_LIST)))Makefile
.DEFAULT_GOAL := t5
T5_WRAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=free \
    -Wl,--wrap=mqx_pages_alloc,--wrap=mqx_pages_free

$(BUILD)/no_memory: $(patsubst %,$(BUILD)/crash/%.o,no_memory failing_alloc crash_fixture audit) \
    $(CRASH_CORE)
	$(CC) $(CRASH_FLAGS) $(T5_WRAP) -o $@ $^ -lpthread

.PHONY: t5 no-memory
no-memory: $(BUILD)/no_memory ## only build
t5: $(BUILD)/no_memory ## every allocation fails, once and from then on
	$(BUILD)/no_memory
