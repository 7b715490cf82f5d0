/*
 * test_checkpoint.c - proves checkpoint.h: a checkpoint says what the index holds, the replay
 * begins low enough, nothing it needs is freed, and no crash finds the queue manager without one.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "fixtures/disk_states.h"

static struct psc_message listed[RIG_LISTED_MAX];
static struct psc_message before[RIG_LISTED_MAX];

#define RIG(name, segment) \
    RIG_OF(name, segment); \
    CHECK_INT(rig_flush(&name), 0)

static void put_many(struct rig *rig, uint64_t first, uint32_t count, uint32_t length)
{
    for (uint64_t number = first; number < first + count; number++) {
        CHECK_INT(rig_put(rig, 0, number, (int)(number % 10), length, NULL), 0);
    }
    CHECK_INT(rig_flush(rig), 0);
}

static bool exists(struct rig *rig, const char *path)
{
    uint64_t size = 0;
    return memory_io_bytes(rig->files, path, &size) != NULL;
}

TEST(after_a_checkpoint_the_same_messages_come_back_without_the_old_journal)
{
    RIG(rig, 1u << 20);
    put_many(&rig, 1, 12000, 20); /* more than one block of the checkpoint */
    RIG_REOPEN(rig);
    const uint32_t count = rig_list(&rig, RIG_QUEUE, before);
    CHECK_INT(count, 12000);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    RIG_REOPEN(rig);
    CHECK_INT(rig.report.messages, 12000);
    CHECK_INT(rig.report.records_replayed, 0);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), count);
    CHECK_MEM(listed, before, sizeof *listed * count);
    for (uint32_t i = 0; i < count; i += 611) {
        CHECK(rig_verify(&rig, &listed[i]));
    }
}

TEST(the_replay_begins_at_the_first_record_of_the_oldest_unit_in_flight)
{
    RIG(rig, 65536);
    RIG_REOPEN(rig);
    put_many(&rig, 1, 3, 20);
    const uint32_t unit = rig_unit(&rig);
    struct mqx_append first;
    CHECK_INT(rig_put(&rig, unit, 10, 4, 20, &first), 0);
    put_many(&rig, 20, 3, 20);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK_INT(rig.store.region.journal->checkpoint_begin, first.lsn);
    CHECK_INT(rig_commit(&rig, unit, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_INT(rig.report.begin_lsn, first.lsn);
    CHECK(rig_list(&rig, RIG_QUEUE, listed) >= 4); /* 1..3 are not in this rig's live index */
}

TEST(a_unit_that_straddles_the_begin_lsn_and_was_over_before_is_not_replayed_by_halves)
{
    RIG(rig, 65536);
    put_many(&rig, 1, 1, 20);
    RIG_REOPEN(rig);
    const uint32_t over = rig_unit(&rig), open = rig_unit(&rig);
    struct mqx_append begin;
    CHECK_INT(rig_record(&rig, over, PS_REC_GET, 1, NULL), 0);
    CHECK_INT(rig_put(&rig, open, 50, 4, 20, &begin), 0);
    CHECK_INT(rig_record(&rig, over, PS_REC_GET, 2, NULL), 0);
    CHECK_INT(rig_commit(&rig, over, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    rig_unit_over(&rig, over);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK_INT(rig.store.region.journal->checkpoint_begin, begin.lsn);
    RIG_REOPEN(rig); /* its COMMIT lies above, its first record below */
    CHECK_INT(rig.report.units_dropped, 1);
}

TEST(an_older_checkpoint_and_the_segments_that_only_it_needed_are_removed)
{
    RIG(rig, 32768);
    static char old_path[64];
    CHECK_INT(rig_end(&rig), 0);
    CHECK_INT(rig_open(&rig), 0);
    snprintf(old_path, sizeof old_path, "%s", rig_checkpoint_path(&rig));
    CHECK(exists(&rig, old_path));
    for (uint64_t number = 1; number <= 40; number++) {
        CHECK_INT(rig_put(&rig, 0, number, 4, 3000, NULL), 0);
        CHECK_INT(number <= 30 ? rig_record(&rig, 0, PS_REC_GET, number, NULL) : 0, 0);
    }
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 10);
    const uint64_t oldest = listed[0].lsn / 32768 + 1;
    CHECK(oldest > 2);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(!exists(&rig, old_path));
    CHECK(!exists(&rig, rig_segment_path(1)));
    CHECK(!exists(&rig, rig_segment_path(oldest - 1)));
    CHECK(exists(&rig, rig_segment_path(oldest)));
    RIG_REOPEN(rig);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 10);
    for (uint32_t i = 0; i < 10; i++) {
        CHECK(rig_verify(&rig, &listed[i]));
    }
}

TEST(a_chunked_message_keeps_all_segments_from_its_first_piece_on)
{
    RIG(rig, 32768);
    CHECK_INT(rig_put_chunked(&rig, 0, 1, 4, 150000, 12000, NULL), 0);
    put_many(&rig, 2, 1, 20);
    RIG_REOPEN(rig);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    for (uint32_t restart = 0; restart < 2; restart++) {
        CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 2);
        CHECK(rig_verify(&rig, &listed[0]));
        CHECK(rig_verify(&rig, &listed[1]));
        CHECK(exists(&rig, rig_segment_path(1)));
        RIG_REOPEN(rig);
    }
}

TEST(an_unchanged_queue_manager_takes_no_checkpoint)
{
    RIG(rig, 65536);
    put_many(&rig, 1, 5, 20);
    RIG_REOPEN(rig);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    memory_io_record(rig.files, RIG_HOME);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    TAKE_TRACE(trace, rig);
    CHECK_INT(trace->event_count, 0);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_CLEAN), 0); /* but it was not clean */
    RIG_REOPEN(rig);
    CHECK(rig.report.clean);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 5);
}

TEST(a_large_checkpoint_is_flushed_every_mebibyte)
{
    RIG(rig, 1u << 20);
    put_many(&rig, 1, 14000, 8);
    RIG_REOPEN(rig);
    memory_io_record(rig.files, RIG_HOME "/checkpoint");
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    TAKE_TRACE(trace, rig);
    uint64_t unflushed = 0, largest = 0;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct memory_event *event = &trace->events[i];
        unflushed = event->kind == MEMORY_EV_SYNC ? 0 : unflushed;
        unflushed += event->kind == MEMORY_EV_WRITE ? event->size : 0;
        largest = unflushed > largest ? unflushed : largest;
    }
    CHECK(largest > 500000);
    CHECK(largest < 2200000);
}

TEST(a_checkpoint_is_due_when_the_tail_has_grown)
{
    RIG(rig, 32768);
    rig.store.region.journal->limit = 256u << 10;
    CHECK(!mqx_checkpoint_due(&rig.store));
    put_many(&rig, 1, 20, 3000);
    CHECK(mqx_checkpoint_due(&rig.store));
}

TEST(a_full_disk_fails_the_checkpoint_and_keeps_the_old_one)
{
    RIG(rig, 65536);
    put_many(&rig, 1, 100, 20);
    RIG_REOPEN(rig);
    for (uint64_t at = 1; at < 12; at++) {
        const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = at, .error = 28,
                                           .ops = 1u << MEMORY_WRITE | 1u << MEMORY_SYNC |
                                                  1u << MEMORY_OPEN | 1u << MEMORY_RENAME};
        memory_io_set_fault(rig.files, &fault);
        int status = mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY);
        const bool struck = memory_io_fault_strikes(rig.files) != 0;
        memory_io_set_fault(rig.files, NULL);
        CHECK(struck == (status != 0));
        CHECK_INT(status != 0 && mqx_comp_code(status) != MQCC_FAILED, 0);
        if (status == 0) {
            CHECK(at > 5);
            break;
        }
        RIG_REOPEN(rig);
        CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 100);
    }
}

/* ---- power cuts ---- */

struct power_cut {
    struct rig rig;
    uint64_t states;
};

static int after_power_cut(void *arg, const struct disk_state *state)
{
    struct power_cut *cut = arg;
    struct rig *rig = &cut->rig;
    rig->files = state->files;
    rig->io = state->io;
    cut->states += 1;
    int status = rig_open(rig);
    const uint32_t count = status == 0 ? rig_list(rig, RIG_QUEUE, listed) : 0;
    bool right = status == 0 && count == 12;
    for (uint32_t i = 0; i < count && right; i++) {
        right = rig_verify(rig, &listed[i]);
    }
    right = right && rig_put(rig, 0, 900, 4, 3000, NULL) == 0 && rig_flush(rig) == 0;
    rig_crash(rig);
    right = right && rig_open(rig) == 0 && rig_list(rig, RIG_QUEUE, listed) == 13;
    if (!right) {
        printf("\n    %d, %u messages: %s", status, count, mqx_error_text());
    }
    rig_crash(rig);
    return right ? 0 : 1;
}

TEST(a_power_cut_between_any_two_steps_of_checkpoints_and_retirement_finds_everything)
{
    RIG(rig, 32768);
    CHECK_INT(rig_fill_and_crash(&rig), 0);
    memory_io_record(rig.files, RIG_HOME);
    CHECK_INT(rig_open(&rig), 0);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(!exists(&rig, rig_segment_path(1)));
    CHECK(mqx_journal_spare_count(&rig.store) >= 2);
    for (uint64_t number = 100; number <= 112; number++) { /* into the recycled segments */
        const uint32_t unit = rig_unit(&rig);
        CHECK_INT(rig_put(&rig, unit, number, 4, 9000, NULL), 0); /* never committed */
        CHECK_INT(rig_flush(&rig), 0);
    }
    TAKE_TRACE(trace, rig);
    static const uint32_t sectors[] = {4096, 512};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(sectors); i++) {
        struct power_cut cut = {.rig = {.plan = rig.plan}};
        struct disk_states_counts counts;
        const struct disk_states_options options = {.sector = sectors[i],
                                                    .cap = 40,
                                                    .seed = test_seed(),
                                                    .prepare = rig_prepare_state,
                                                    .arg = &cut};
        CHECK_INT(disk_states_run(trace, &options, after_power_cut, &counts), 0);
        printf("%" PRIu64 " ", cut.states);
        CHECK(cut.states > 50);
    }
}

TEST_MAIN()
