/*
 * test_restart_read.c - proves restart_read.h: reading changes nothing, and a journal is read up to
 * an LSN. What a whole restart makes of it: test_restart.c.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "recovery/restart_read.h"

static void put_and_flush(struct journal_fixture *fixture, uint64_t first, uint32_t count)
{
    for (uint64_t number = first; number < first + count; number++) {
        CHECK_INT(fixture_put(fixture, 0, number, 4, 2000, NULL), 0);
    }
    CHECK_INT(fixture_flush(fixture), 0);
}

static size_t effective(const struct mqx_replay *replay)
{
    size_t count = 0;
    for (size_t i = 0; i < replay->put_count; i++) {
        count += replay->puts[i].state == MQX_PUT_EFFECTIVE;
    }
    return count;
}

TEST(a_journal_at_work_is_read_up_to_an_lsn_and_not_beyond)
{
    FIXTURE_OF(fixture, 32768);
    uint64_t until[4] = {0};
    for (uint32_t i = 0; i < 4; i++) { /* several segments */
        put_and_flush(&fixture, 1 + 20 * i, 20);
        until[i] = mqx_journal_durable(fixture.store.region.journal);
    }
    for (uint32_t i = 0; i < 4; i++) {
        struct mqx_restart restart;
        mqx_restart_begin(&restart, &fixture.store);
        restart.until_lsn = until[i];
        CHECK_INT(mqx_restart_read(&restart, NULL), 0);
        CHECK_INT(effective(&restart.replay), 20 * (i + 1));
        mqx_restart_end(&restart);
    }
}

TEST(an_lsn_that_the_batches_do_not_reach_is_damage)
{
    FIXTURE_OF(fixture, 65536);
    struct mqx_restart restart;
    put_and_flush(&fixture, 1, 3);
    mqx_restart_begin(&restart, &fixture.store);
    restart.until_lsn = mqx_journal_durable(fixture.store.region.journal) + MQX_PAGE_SIZE;
    CHECK_INT(mqx_restart_read(&restart, NULL), MQRC_OBJECT_DAMAGED);
    mqx_restart_end(&restart);
}

static int count_records(struct mqx_store *store)
{
    store->name[0] = (char)(store->name[0] + 1);
    return store->name[0] < 3 ? MQX_OK : MQRC_RESOURCE_PROBLEM;
}

TEST(the_hook_is_called_between_records_and_ends_the_reading)
{
    FIXTURE_OF(fixture, 1u << 20);
    struct mqx_restart restart;
    put_and_flush(&fixture, 1, 3);
    fixture.store.maintenance_hook = count_records;
    mqx_restart_begin(&restart, &fixture.store);
    restart.until_lsn = mqx_journal_durable(fixture.store.region.journal);
    restart.hook_records = 65535; /* the next record calls it */
    CHECK_INT(mqx_restart_read(&restart, NULL), 0);
    CHECK_INT(fixture.store.name[0], 1);
    mqx_restart_end(&restart);
    fixture.store.name[0] = 2;
    mqx_restart_begin(&restart, &fixture.store);
    restart.until_lsn = mqx_journal_durable(fixture.store.region.journal);
    restart.hook_records = 65535;
    CHECK_INT(mqx_restart_read(&restart, NULL), MQRC_RESOURCE_PROBLEM);
    mqx_restart_end(&restart);
}

TEST(ending_what_was_never_begun_does_nothing)
{
    struct mqx_restart restart = {.store = NULL};
    mqx_restart_end(&restart);
    CHECK(restart.segments == NULL);
}

TEST_MAIN()
