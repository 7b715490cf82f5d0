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

/* The newest segment is full to its last page, so no page behind it could be read, either. */
TEST(a_batch_that_is_read_wrong_at_the_very_end_of_a_full_segment_is_damage_and_no_torn_tail)
{
    enum { SEGMENT = 32768 };
    FIXTURE_OF(fixture, SEGMENT);
    const struct mqx_journal *journal = fixture.store.region.journal;
    uint64_t number = 1;
    for (; mqx_journal_durable(journal) < SEGMENT; number++) { /* a page each */
        put_and_flush(&fixture, number, 1);
    }
    CHECK_INT(mqx_journal_durable(journal), SEGMENT);
    CHECK_INT(journal->next_segment_no, 2);
    const uint64_t last = (uint64_t)SEGMENT - MQX_PAGE_SIZE + sizeof(struct psj_batch) + 40;
    for (int i = 0; i < 3; i++) {
        struct mqx_restart restart;
        mqx_restart_begin(&restart, &fixture.store);
        restart.until_lsn = SEGMENT + (i == 2 ? MQX_PAGE_SIZE : 0); /* 2: the next one is gone */
        if (i == 1) {
            memory_io_flip_bit(fixture.files, fixture_segment_path(1), 8 * last);
        }
        CHECK_INT(mqx_restart_read(&restart, NULL), i == 0 ? 0 : MQRC_OBJECT_DAMAGED);
        CHECK(i != 0 || effective(&restart.replay) == number - 1);
        mqx_restart_end(&restart);
        if (i == 1) {
            memory_io_flip_bit(fixture.files, fixture_segment_path(1), 8 * last);
        }
    }
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
