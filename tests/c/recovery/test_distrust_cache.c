/*
 * test_distrust_cache.c - proves distrust_cache.h: after a failed flush a restart builds only on
 * what the medium has.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "fixtures/disk_states.h"

static struct psc_message listed[RIG_LISTED_MAX];
#define RIG RIG_OF

/* After a failed flush the cache may show what the medium does not have, and believes it clean. */
struct poisoned {
    struct rig rig;
    uint64_t states;
};

static int after_poison(void *arg, const struct disk_state *state)
{
    struct poisoned *poisoned = arg;
    struct rig *rig = &poisoned->rig;
    rig->files = state->files;
    rig->io = state->io;
    poisoned->states += 1;
    int status = rig_open(rig);
    const uint32_t count = status == 0 ? rig_list(rig, RIG_QUEUE, listed) : 0;
    bool seen[4] = {false};
    for (uint32_t i = 0; i < count; i++) {
        seen[listed[i].number % 4] = rig_verify(rig, &listed[i]);
    }
    bool right = status == 0;
    for (uint32_t i = 0; i < state->ack_count; i++) {
        right = right && seen[state->acks[i] % 4];
    }
    if (!right) {
        printf("\n    %d, %u messages: %s", status, count, mqx_error_text());
    }
    rig_crash(rig);
    return right ? 0 : 1;
}

TEST(what_is_found_after_a_failed_flush_is_made_durable_before_it_is_believed)
{
    RIG(rig, 32768);
    const struct memory_fault fault = {.kind = MEMORY_FAULT_FLUSH, .at = 1, .error = 5,
                                       .ops = 1u << MEMORY_WRITE};
    CHECK_INT(rig_flush(&rig), 0);
    memory_io_record(rig.files, RIG_HOME);
    CHECK_INT(rig_put(&rig, 0, 1, 4, 5000, NULL), 0);
    memory_io_set_fault(rig.files, &fault);
    CHECK_INT(rig_flush(&rig), MQRC_CONNECTION_BROKEN);
    memory_io_set_fault(rig.files, NULL);
    rig_crash(&rig);
    rig.distrust = true;
    CHECK_INT(rig_open(&rig), 0);
    const uint32_t found = rig_list(&rig, RIG_QUEUE, listed);
    for (uint32_t i = 0; i < found; i++) { /* somebody sees it: it must stay */
        memory_io_ack(rig.files, listed[i].number);
    }
    CHECK_INT(rig_put(&rig, 0, 2, 4, 100, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    memory_io_ack(rig.files, 2);
    TAKE_TRACE(trace, rig);
    struct poisoned poisoned = {.rig = {.plan = rig.plan}};
    struct disk_states_counts counts;
    const struct disk_states_options options = {.sector = 4096, .cap = 60, .seed = test_seed(),
                                                .prepare = rig_prepare_state, .arg = &poisoned};
    CHECK_INT(disk_states_run(trace, &options, after_poison, &counts), 0);
    printf("%" PRIu64 " ", poisoned.states);
    CHECK(poisoned.states > 10);
}

TEST_MAIN()
