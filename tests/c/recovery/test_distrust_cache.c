/*
 * test_distrust_cache.c - proves distrust_cache.h: after a failed flush a restart builds only on
 * what the medium has.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "fixtures/disk_states.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
#define FIXTURE FIXTURE_OF

/* After a failed flush the cache may show what the medium does not have, and believes it clean. */
struct poisoned {
    struct journal_fixture fixture;
    uint64_t states;
};

static int after_poison(void *arg, const struct disk_state *state)
{
    struct poisoned *poisoned = arg;
    struct journal_fixture *fixture = &poisoned->fixture;
    fixture->files = state->files;
    fixture->io = state->io;
    poisoned->states += 1;
    int status = fixture_open(fixture);
    const uint32_t count = status == 0 ? fixture_list(fixture, FIXTURE_QUEUE, listed) : 0;
    bool seen[4] = {false};
    for (uint32_t i = 0; i < count; i++) {
        seen[listed[i].number % 4] = fixture_verify(fixture, &listed[i]);
    }
    bool right = status == 0;
    for (uint32_t i = 0; i < state->ack_count; i++) {
        right = right && seen[state->acks[i] % 4];
    }
    if (!right) {
        printf("\n    %d, %u messages: %s", status, count, mqx_error_text());
    }
    fixture_crash(fixture);
    return right ? 0 : 1;
}

TEST(what_is_found_after_a_failed_flush_is_made_durable_before_it_is_believed)
{
    FIXTURE(fixture, 32768);
    const struct memory_fault fault = {.kind = MEMORY_FAULT_FLUSH, .at = 1, .error = 5,
                                       .ops = 1u << MEMORY_WRITE};
    CHECK_INT(fixture_flush(&fixture), 0);
    memory_io_record(fixture.files, FIXTURE_HOME);
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 5000, NULL), 0);
    memory_io_set_fault(fixture.files, &fault);
    CHECK_INT(fixture_flush(&fixture), MQRC_CONNECTION_BROKEN);
    memory_io_set_fault(fixture.files, NULL);
    fixture_crash(&fixture);
    fixture.distrust = true;
    CHECK_INT(fixture_open(&fixture), 0);
    const uint32_t found = fixture_list(&fixture, FIXTURE_QUEUE, listed);
    for (uint32_t i = 0; i < found; i++) { /* it was visible once: it must stay */
        memory_io_ack(fixture.files, listed[i].number);
    }
    CHECK_INT(fixture_put(&fixture, 0, 2, 4, 100, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    memory_io_ack(fixture.files, 2);
    TAKE_TRACE(trace, fixture);
    struct poisoned poisoned = {.fixture = {.plan = fixture.plan}};
    struct disk_states_counts counts;
    const struct disk_states_options options = {.sector = 4096,
                                                .cap = 60,
                                                .seed = test_seed(),
                                                .prepare = fixture_prepare_state,
                                                .arg = &poisoned};
    CHECK_INT(disk_states_run(trace, &options, after_poison, &counts), 0);
    printf("%" PRIu64 " ", poisoned.states);
    CHECK(poisoned.states > 10);
}

TEST(a_header_page_that_reads_wrong_is_refused_and_the_file_stays_as_it_is)
{
    FIXTURE(fixture, 32768);
    const struct memory_fault flip = {.kind = MEMORY_FAULT_FLIP, .at = 1, .for_ever = true,
                                      .ops = 1u << MEMORY_READ, .detail = 8 * 60 + 1};
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 5000, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_crash(&fixture);
    fixture.distrust = true;
    memory_io_set_fault(fixture.files, &flip);
    CHECK_INT(fixture_open(&fixture), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "header page") != NULL);
    memory_io_set_fault(fixture.files, NULL);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "1");
}

TEST_MAIN()
