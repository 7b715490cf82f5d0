/*
 * test_checkpoint_round.c - proves checkpoint_round.h: a checkpoint is due when it should be, and a
 * second one is taken where the older one keeps what must be freed.
 */
#include "fixtures/harness.h"

#include "fixtures/journal_fixture.h"
#include "recovery/compaction.h"

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

static bool exists(struct journal_fixture *fixture, const char *path)
{
    uint64_t size = 0;
    return memory_io_bytes(fixture->files, path, &size) != NULL;
}

TEST(a_checkpoint_is_due_when_the_tail_has_grown)
{
    FIXTURE(fixture, 32768);
    fixture.store.region.journal->limit = 256u << 10;
    CHECK(!mqx_checkpoint_due(&fixture.store));
    put_many(&fixture, 1, 20, 3000);
    CHECK(mqx_checkpoint_due(&fixture.store));
}

/* A thread reads the tail, and a checkpoint ends before it reads the begin of the newest one. */
TEST(a_checkpoint_that_begins_behind_the_tail_that_was_read_makes_none_due)
{
    FIXTURE(fixture, 32768);
    struct mqx_journal *journal = fixture.store.region.journal;
    const uint64_t begin = journal->checkpoint_begin;
    journal->checkpoint_begin = journal->tail + 8;
    CHECK(!mqx_checkpoint_due(&fixture.store));
    journal->checkpoint_begin = begin;
}

/* The bound falls with the messages: what they took is not kept until an interval is over. */
TEST(a_round_is_wanted_early_when_the_files_are_about_to_exceed_their_bound)
{
    FIXTURE(fixture, 32768);
    struct mqx_journal *journal = fixture.store.region.journal;
    const uint64_t interval = mqx_journal_interval(journal);
    const uint64_t bound =
        interval + mqx_compaction_goal(journal, mqx_store_live_bytes(&fixture.store.region));
    uint64_t number = 1;
    for (; journal->tail - journal->checkpoint_begin < interval / 4; number++) {
        put_many(&fixture, number, 1, 3000);
    }
    CHECK(!mqx_checkpoint_due(&fixture.store));
    CHECK(!mqx_checkpoint_wanted(&fixture.store));
    const uint64_t used = journal->used_bytes;
    journal->used_bytes = bound + 1;
    CHECK(!mqx_checkpoint_due(&fixture.store));
    CHECK(mqx_checkpoint_wanted(&fixture.store));
    const uint64_t begin = journal->checkpoint_begin;
    journal->checkpoint_begin = journal->tail - interval / 8; /* one was just taken */
    CHECK(!mqx_checkpoint_wanted(&fixture.store));
    journal->checkpoint_begin = begin;
    journal->used_bytes = used;
    put_many(&fixture, number, (uint32_t)(interval / 3000), 3000);
    CHECK(mqx_checkpoint_due(&fixture.store) && mqx_checkpoint_wanted(&fixture.store));
}

TEST(files_are_spares_or_hold_a_stretch_of_the_stream)
{
    FIXTURE(fixture, 32768);
    const struct mqx_journal *journal = fixture.store.region.journal;
    put_many(&fixture, 1, 40, 3000);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 32768), 0);
    const uint64_t spares = mqx_journal_spare_count(&fixture.store);
    CHECK(spares > 0);
    CHECK_INT(mqx_journal_stream_bytes(journal) + 32768 * spares, journal->used_bytes);
}

/* A put that finds the journal full has what both kept checkpoints held back. */
TEST(room_is_made_by_two_checkpoints_when_one_is_not_enough)
{
    FIXTURE(fixture, 32768);
    FIXTURE_REOPEN(fixture);
    const struct mqx_journal *journal = fixture.store.region.journal;
    for (uint64_t number = 1; number <= 40; number++) {
        CHECK_INT(fixture_put(&fixture, 0, number, 4, 3000, NULL), 0);
        CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, number, NULL), 0);
    }
    CHECK_INT(fixture_flush(&fixture), 0);
    const uint64_t used = journal->used_bytes;
    const uint32_t spares = mqx_journal_spare_count(&fixture.store);
    CHECK_INT(mqx_checkpoint_now(&fixture.store), 0);
    CHECK_INT(journal->used_bytes, used); /* all kept for the older one */
    CHECK_INT(mqx_journal_spare_count(&fixture.store), spares);
    CHECK(exists(&fixture, fixture_segment_path(1)));
    CHECK_INT(mqx_checkpoint_make_room(&fixture.store), 0);
    CHECK(journal->used_bytes < used || mqx_journal_spare_count(&fixture.store) > spares);
    CHECK(!exists(&fixture, fixture_segment_path(1)));
    while (journal->older_keeps != 0) { /* each turn frees a segment */
        CHECK_INT(mqx_checkpoint_make_room(&fixture.store), 0);
    }
    const uint64_t tail = journal->tail;
    CHECK_INT(mqx_checkpoint_make_room(&fixture.store), 0);
    CHECK_INT(mqx_checkpoint_make_room(&fixture.store), 0);
    CHECK(journal->tail - tail <= MQX_PAGE_SIZE); /* a mark at most */
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 0);
}

TEST_MAIN()
