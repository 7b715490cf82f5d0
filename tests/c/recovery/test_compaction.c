/*
 * test_compaction.c - proves compaction.h: forgotten messages do not keep segments, they are the
 * same messages afterwards, nothing is written where there is nothing to move, and no crash finds a
 * message nowhere or twice.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/disk_states.h"
#include "fixtures/journal_fixture.h"
#include "format/segment.h"
#include "queue/stored.h"
#include "recovery/compaction.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
static struct psc_message before[FIXTURE_LISTED_MAX];

enum { SEGMENT = 32768, EVERY = 10 }; /* one message of so many is forgotten: one a segment */

#define FIXTURE(name)                                                                              \
    FIXTURE_OF(name, SEGMENT);                                                                     \
    CHECK_INT(fixture_flush(&name), 0)

/* Messages up to `last`, all but every tenth of which are got again. */
static int put_and_forget(struct journal_fixture *fixture, uint64_t first, uint64_t last)
{
    int status = 0;
    for (uint64_t number = first; number <= last && status == 0; number++) {
        status = fixture_put(fixture, 0, number, (int)(number % 10), 3000, NULL);
        if (status == 0 && number % EVERY != 0) {
            status = fixture_record(fixture, 0, PS_REC_GET, number, NULL);
        }
    }
    return status == 0 ? fixture_flush(fixture) : status;
}

static int compact(struct journal_fixture *fixture)
{
    struct mqx_region *region = &fixture->store.region;
    CHECK_INT(mqx_lock_take(region, &region->header->maintenance_lock), 0);
    const int status = mqx_compact(&fixture->store);
    mqx_lock_drop(region, &region->header->maintenance_lock);
    return status;
}

/* Forgotten messages that the index knows. */
static void leave_behind(struct journal_fixture *fixture, uint64_t last)
{
    CHECK_INT(put_and_forget(fixture, 1, last), 0);
    fixture_crash(fixture);
    CHECK_INT(fixture_open(fixture), 0);
}

/* The same, known to both checkpoints; what neither needs has become spares. */
static void forget(struct journal_fixture *fixture, uint64_t last)
{
    leave_behind(fixture, last);
    CHECK_INT(mqx_checkpoint_make_room(&fixture->store), 0);
    CHECK(mqx_journal_spare_count(&fixture->store) > 0);
}

static bool all_are_right(struct journal_fixture *fixture, uint32_t count)
{
    bool right = fixture_list(fixture, FIXTURE_QUEUE, listed) == count;
    for (uint32_t i = 0; i < count && right; i++) {
        right = fixture_verify(fixture, &listed[i]);
    }
    return right;
}

TEST(a_forgotten_message_in_each_segment_keeps_none_of_them)
{
    FIXTURE(fixture);
    leave_behind(&fixture, 400);
    struct mqx_journal *journal = fixture.store.region.journal;
    const uint32_t count = fixture_list(&fixture, FIXTURE_QUEUE, before);
    const uint64_t files = journal->used_bytes;
    const uint64_t goal =
        mqx_compaction_goal(journal, mqx_store_live_bytes(&fixture.store.region));
    CHECK_INT(count, 40);
    CHECK(files > goal);
    CHECK_INT(mqx_checkpoint_now(&fixture.store), 0); /* one round is enough */
    CHECK(journal->moved_messages >= 10);
    CHECK(mqx_journal_stream_bytes(journal) <= goal + SEGMENT);
    CHECK(journal->used_bytes <= goal + mqx_journal_interval(journal)); /* spares included */
    CHECK(all_are_right(&fixture, count));
    for (uint32_t i = 0; i < count; i++) {
        CHECK_INT(listed[i].number, before[i].number);
    }
    memcpy(before, listed, sizeof *listed * count);
    FIXTURE_REOPEN(fixture);
    CHECK(all_are_right(&fixture, count));
    CHECK_MEM(listed, before, sizeof *listed * count);
}

TEST(segments_before_the_begin_segment_are_a_set_with_holes)
{
    FIXTURE(fixture);
    forget(&fixture, 400);
    CHECK_INT(mqx_checkpoint_now(&fixture.store), 0);
    CHECK_INT(fixture_put(&fixture, 0, 1000, 4, 20, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    const struct mqx_journal *journal = fixture.store.region.journal;
    uint64_t lowest = UINT64_MAX, highest = 0, count = 0;
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        if (segment->state == MQX_SEG_ACTIVE || segment->state == MQX_SEG_FULL) {
            lowest = segment->number < lowest ? segment->number : lowest;
            highest = segment->number > highest ? segment->number : highest;
            count += 1;
        }
    }
    CHECK(count < highest - lowest + 1);
    CHECK(all_are_right(&fixture, 41));
}

TEST(a_listed_segment_that_is_missing_is_named)
{
    FIXTURE(fixture);
    forget(&fixture, 200);
    uint64_t lowest = UINT64_MAX;
    const uint32_t count = fixture_list(&fixture, FIXTURE_QUEUE, listed);
    for (uint32_t i = 0; i < count; i++) {
        lowest = listed[i].lsn / SEGMENT + 1 < lowest ? listed[i].lsn / SEGMENT + 1 : lowest;
    }
    char name[MQX_FILE_NAME_SIZE];
    mqx_file_name(name, MQX_FILE_SEGMENT, lowest);
    CHECK_INT(fixture.io->ops->unlink(fixture.io, fixture.store.journal_dir, name), 0);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "is missing") != NULL);
}

TEST(where_there_is_nothing_to_move_nothing_is_written)
{
    FIXTURE(fixture);
    CHECK_INT(put_and_forget(&fixture, 1, 30), 0);
    FIXTURE_REOPEN(fixture);
    const struct mqx_journal *journal = fixture.store.region.journal;
    const uint64_t tail = journal->tail;
    CHECK_INT(compact(&fixture), 0);
    CHECK_INT(mqx_checkpoint_now(&fixture.store), 0);
    CHECK_INT(compact(&fixture), 0);
    CHECK_INT(journal->moved_messages, 0);
    CHECK(journal->tail < tail + 2 * MQX_PAGE_SIZE); /* the checkpoint's mark page */
}

TEST(a_message_in_pieces_moves_as_a_whole_and_is_read_back)
{
    FIXTURE(fixture);
    CHECK_INT(fixture_put_chunked(&fixture, 0, 5000, 4, 100000, 20000, NULL), 0);
    forget(&fixture, 400);
    const uint32_t count = fixture_list(&fixture, FIXTURE_QUEUE, before);
    fixture.store.region.journal->limit = 20 * SEGMENT; /* so that nearly everything moves */
    CHECK_INT(mqx_checkpoint_now(&fixture.store), 0);
    CHECK(all_are_right(&fixture, count));
    FIXTURE_REOPEN(fixture);
    CHECK(all_are_right(&fixture, count));
    for (uint32_t i = 0; i < count; i++) {
        if (listed[i].number == 5000) {
            CHECK_INT(listed[i].chunk_count, 5);
        }
    }
    CHECK_INT(mqx_compact_now(&fixture.store), 0);
    CHECK(mqx_journal_segment_of(&fixture.store.region, 2 * MQX_PAGE_SIZE) < 0);
    CHECK(all_are_right(&fixture, count));
}

/* Messages of units are short records, which move with the COMMON record that they refer to. */
TEST(short_records_of_units_move_in_their_length_and_are_read_back)
{
    FIXTURE(fixture);
    for (uint64_t number = 1; number <= 400; number += EVERY) {
        const uint32_t unit = fixture_unit(&fixture);
        for (uint64_t k = number; k < number + EVERY; k++) {
            CHECK_INT(fixture_put_short(&fixture, unit, k, (int)(k % 10), 3000, NULL), 0);
        }
        CHECK_INT(fixture_commit(&fixture, unit, NULL), 0);
        CHECK_INT(fixture_flush(&fixture), 0);
        fixture_unit_over(&fixture, unit);
        for (uint64_t k = number; k + 1 < number + EVERY; k++) {
            CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, k, NULL), 0);
        }
    }
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    const uint32_t count = fixture_list(&fixture, FIXTURE_QUEUE, before);
    CHECK_INT(count, 40);
    for (int round = 0; round < 2; round++) { /* moved ones move again */
        CHECK_INT(mqx_compact_now(&fixture.store), 0);
        for (int restart = 0; restart < 2; restart++) {
            uint32_t moved = 0;
            CHECK(all_are_right(&fixture, count));
            for (uint32_t i = 0; i < count; i++) {
                moved += listed[i].lsn != before[i].lsn;
                CHECK_INT(listed[i].number, before[i].number);
                CHECK_INT(listed[i].record_length, before[i].record_length);
                CHECK(listed[i].record_length < 3000 + 100); /* a short one */
            }
            CHECK(moved > 30);
            if (restart == 0) {
                FIXTURE_REOPEN(fixture);
            }
        }
        memcpy(before, listed, sizeof *listed * count);
        CHECK_INT(put_and_forget(&fixture, 1001, 1009), 0); /* so that the tail is another one */
        FIXTURE_REOPEN(fixture);
    }
}

/* The entries have the LSNs again that they had before: how many changes that are. */
static uint32_t undo_moves(struct journal_fixture *fixture, uint32_t count)
{
    struct mqx_stored stored[MQX_LOCKED_STEPS_MAX];
    struct mqx_cursor cursor = {0};
    uint32_t found = 0, undone = 0;
    bool done = false;
    CHECK_INT(mqx_stored_list(&fixture->store, FIXTURE_QUEUE, &cursor, stored, &found, &done), 0);
    CHECK_INT(found, count);
    for (uint32_t i = 0; i < found; i++) {
        struct mqx_message *message = mqx_message(&fixture->store.region, stored[i].slot);
        for (uint32_t k = 0; k < count; k++) {
            message->lsn = before[k].number == message->number ? before[k].lsn : message->lsn;
        }
        undone += message->lsn != stored[i].lsn;
    }
    return undone;
}

/* As a process that dies after the flush leaves it: the record is there, the entry does not
 * know. */
TEST(a_moved_record_that_no_entry_names_is_harmless)
{
    FIXTURE(fixture);
    forget(&fixture, 100);
    struct mqx_journal *journal = fixture.store.region.journal;
    const uint32_t count = fixture_list(&fixture, FIXTURE_QUEUE, before);
    CHECK_INT(count, 10);
    journal->limit = 8 * SEGMENT;
    for (int i = 0; i < 2; i++) { /* twice, so that a message has two of them */
        journal->compacted = 0;
        CHECK_INT(compact(&fixture), 0);
        CHECK(undo_moves(&fixture, count) > 0);
    }
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0); /* no false alarm */
    CHECK_INT(mqx_region_stopped(&fixture.store.region), MQX_RUNNING);
    CHECK(all_are_right(&fixture, count));
    FIXTURE_REOPEN(fixture);
    CHECK(all_are_right(&fixture, count));
    CHECK_INT(mqx_checkpoint_now(&fixture.store), 0);
    CHECK(all_are_right(&fixture, count));
}

TEST(a_moved_record_of_a_message_that_is_gone_brings_nothing_back)
{
    FIXTURE(fixture);
    forget(&fixture, 100);
    fixture.store.region.journal->limit = 8 * SEGMENT;
    CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, 10, NULL), 0);
    CHECK_INT(compact(&fixture), 0); /* the index does not know of the GET: it moves message 10 */
    CHECK(fixture.store.region.journal->moved_messages > 0);
    CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, 20, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK(all_are_right(&fixture, 8));
    for (uint32_t i = 0; i < 8; i++) {
        CHECK(listed[i].number > 20);
    }
}

TEST(a_segment_stays_for_a_put_of_an_open_unit_that_was_not_moved)
{
    FIXTURE(fixture);
    CHECK_INT(put_and_forget(&fixture, 1, 300), 0);
    FIXTURE_REOPEN(fixture);
    const uint32_t unit = fixture_unit(&fixture);
    struct mqx_append first;
    CHECK_INT(fixture_put(&fixture, unit, 5000, 4, 3000, &first), 0);
    CHECK_INT(mqx_checkpoint_now(&fixture.store), 0);
    fixture.store.region.journal->limit = 8 * SEGMENT;
    CHECK_INT(mqx_compact_now(&fixture.store), 0);
    CHECK_INT(mqx_checkpoint_now(&fixture.store), 0);
    CHECK(mqx_journal_segment_of(&fixture.store.region, first.lsn) >= 0);
    CHECK_INT(fixture_commit(&fixture, unit, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK(all_are_right(&fixture, 31));
}

/* ---- power cuts ---- */

struct power_cut {
    struct journal_fixture fixture;
    uint64_t states;
};

static int after_power_cut(void *arg, const struct disk_state *state)
{
    struct power_cut *cut = arg;
    struct journal_fixture *fixture = &cut->fixture;
    fixture->files = state->files;
    fixture->io = state->io;
    cut->states += 1;
    bool right = fixture_open(fixture) == 0 && all_are_right(fixture, 13) &&
                 fixture_put(fixture, 0, 900, 4, 3000, NULL) == 0 && fixture_flush(fixture) == 0;
    if (!right) {
        printf("\n    %s", mqx_error_text());
    }
    fixture_crash(fixture);
    right = right && fixture_open(fixture) == 0 && all_are_right(fixture, 14) &&
            mqx_checkpoint_now(&fixture->store) == 0;
    fixture_crash(fixture);
    return right ? 0 : 1;
}

TEST(a_power_cut_between_any_two_steps_of_a_compaction_finds_each_message_once)
{
    FIXTURE(fixture);
    CHECK_INT(fixture_put_chunked(&fixture, 0, 5000, 4, 30000, 9000, NULL), 0);
    forget(&fixture, 120);
    memory_io_record(fixture.files, FIXTURE_HOME);
    fixture.store.region.journal->limit = 10 * SEGMENT;
    CHECK_INT(mqx_checkpoint_now(&fixture.store), 0);
    CHECK(fixture.store.region.journal->moved_messages > 4);
    for (uint64_t number = 200; number <= 204; number++) { /* into the recycled segments */
        const uint32_t unit = fixture_unit(&fixture);
        CHECK_INT(fixture_put(&fixture, unit, number, 4, 9000, NULL), 0); /* never committed */
        CHECK_INT(fixture_flush(&fixture), 0);
    }
    TAKE_TRACE(trace, fixture);
    static const uint32_t sectors[] = {4096, 512};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(sectors); i++) {
        struct power_cut cut = {.fixture = {.plan = fixture.plan}};
        struct disk_states_counts counts;
        const struct disk_states_options options = {.sector = sectors[i],
                                                    .cap = 40,
                                                    .seed = test_seed(),
                                                    .prepare = fixture_prepare_state,
                                                    .arg = &cut};
        CHECK_INT(disk_states_run(trace, &options, after_power_cut, &counts), 0);
        printf("%" PRIu64 " ", cut.states);
        CHECK(cut.states > 50);
    }
}

TEST_MAIN()
