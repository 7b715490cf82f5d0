/*
 * test_checkpoint_begin.c - proves checkpoint_begin.h: the replay of a checkpoint begins at the
 * tail, below a unit that is decided and not shown, and, when units cannot be carried, at the first
 * of them.
 */
#include "fixtures/harness.h"

#include "fixtures/journal_fixture.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];

#define FIXTURE(name, segment)                                                                     \
    FIXTURE_OF(name, segment);                                                                     \
    CHECK_INT(fixture_flush(&name), 0)

static void put_many(struct journal_fixture *fixture, uint64_t first, uint32_t count,
                     uint32_t length)
{
    for (uint64_t number = first; number < first + count; number++) {
        CHECK_INT(fixture_put(fixture, 0, number, (int)(number % 10), length, NULL), 0);
    }
    CHECK_INT(fixture_flush(fixture), 0);
}

TEST(the_replay_begins_at_the_tail_whatever_unit_is_in_flight)
{
    FIXTURE(fixture, 65536);
    put_many(&fixture, 1, 3, 20);
    FIXTURE_REOPEN(fixture);
    const uint32_t unit = fixture_unit(&fixture);
    struct mqx_append first, commit;
    CHECK_INT(fixture_put(&fixture, unit, 10, 4, 20, &first), 0);
    CHECK_INT(fixture_record(&fixture, unit, PS_REC_GET, 2, NULL), 0);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(fixture.store.region.journal->checkpoint_begin > first.lsn);
    CHECK_INT(fixture_put(&fixture, unit, 11, 4, 20, NULL), 0);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0); /* both carry it */
    CHECK_INT(fixture_commit(&fixture, unit, &commit), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK(fixture.report.begin_lsn > first.lsn);
    CHECK(fixture.report.begin_lsn <= commit.lsn);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 4);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(listed[i].number != 2);
        CHECK(fixture_verify(&fixture, &listed[i]));
    }
}

TEST(a_unit_that_is_decided_and_not_shown_yet_is_replayed)
{
    FIXTURE(fixture, 65536);
    put_many(&fixture, 1, 3, 20);
    FIXTURE_REOPEN(fixture);
    const uint32_t unit = fixture_unit(&fixture);
    struct mqx_append commit;
    CHECK_INT(fixture_put(&fixture, unit, 10, 4, 20, NULL), 0);
    CHECK_INT(fixture_commit(&fixture, unit, &commit), 0);
    CHECK_INT(mqx_context(&fixture.store.region, unit)->state, MQX_CTX_DECIDED);
    CHECK_INT(fixture_flush(&fixture), 0);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(fixture.store.region.journal->checkpoint_begin <= commit.lsn);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 4);
}

TEST(the_replay_begins_at_the_first_record_of_a_unit_that_cannot_be_carried)
{
    FIXTURE(fixture, 65536);
    put_many(&fixture, 1, 3, 20);
    FIXTURE_REOPEN(fixture);
    const uint32_t unit = fixture_unit(&fixture);
    struct mqx_append first;
    CHECK_INT(fixture_put(&fixture, unit, 10, 4, 20, &first), 0);
    CHECK_INT(fixture_record(&fixture, unit, PS_REC_OBJECT_DELETE, 0, NULL), 0);
    put_many(&fixture, 20, 3, 20);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK_INT(fixture.store.region.journal->checkpoint_begin, first.lsn - PS_ALIGN);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0); /* both can begin there */
    CHECK_INT(fixture.store.region.journal->checkpoint_begin, first.lsn);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK_INT(fixture.store.region.journal->checkpoint_begin, first.lsn);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture.report.begin_lsn, first.lsn);
    CHECK_INT(fixture.report.units_dropped, 1);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 6);
}

TEST(a_unit_that_straddles_the_begin_lsn_and_was_over_before_is_not_replayed_by_halves)
{
    FIXTURE(fixture, 65536);
    put_many(&fixture, 1, 1, 20);
    FIXTURE_REOPEN(fixture);
    const uint32_t over = fixture_unit(&fixture), open = fixture_unit(&fixture);
    struct mqx_append begin;
    CHECK_INT(fixture_record(&fixture, over, PS_REC_GET, 91, NULL), 0);
    CHECK_INT(fixture_put(&fixture, open, 50, 4, 20, &begin), 0);
    CHECK_INT(fixture_record(&fixture, open, PS_REC_OBJECT_DELETE, 0, NULL), 0); /* bounds it */
    CHECK_INT(fixture_record(&fixture, over, PS_REC_GET, 92, NULL), 0);
    CHECK_INT(fixture_commit(&fixture, over, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_unit_over(&fixture, over);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK_INT(fixture.store.region.journal->checkpoint_begin, begin.lsn - PS_ALIGN);
    FIXTURE_REOPEN(fixture); /* its COMMIT lies above, its first record below */
    CHECK_INT(fixture.report.units_dropped, 1);
}

TEST_MAIN()
