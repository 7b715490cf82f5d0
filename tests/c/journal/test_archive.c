/*
 * test_archive.c - linear logging: a retired segment moves to the archive, and is in one place and
 * whole after a death or a power cut at any step.
 */
#include "fixtures/harness.h"

#include "fixtures/disk_states.h"
#include "base/error.h"
#include "journal/journal.h"
#include "fixtures/journal_fixture.h"
#include "penstock/journal_scan.h"
#include "format/segment.h"

enum { SEGMENT = 32768 };

static struct psc_message listed[RIG_LISTED_MAX];
static const uint32_t nothing_alive[MQX_SEGMENT_MAX];

static void start(struct rig *rig)
{
    struct mqx_region_plan plan = rig_plan(SEGMENT);
    plan.linear = 1;
    rig_create(rig, &plan);
    CHECK_INT(rig_open(rig), 0);
    CHECK_INT(rig_define(rig, RIG_QUEUE, RIG_GENERATION), 0);
}
#define RIG(name) \
    __attribute__((cleanup(rig_free))) struct rig name = {0}; \
    start(&name)

static void fill(struct rig *rig, uint64_t from, uint64_t to)
{
    for (uint64_t number = from; number < to; number++) {
        CHECK_INT(rig_put(rig, 0, number, 4, 3000, NULL), 0);
        CHECK_INT(rig_record(rig, 0, PS_REC_GET, number, NULL), 0);
    }
    CHECK_INT(rig_flush(rig), 0);
}

static const char *path_of(const char *folder, uint64_t number)
{
    static char path[96];
    snprintf(path, sizeof path, RIG_HOME "/%s/%010llu.psj", folder, (unsigned long long)number);
    return path;
}

static const uint8_t *bytes_of(struct rig *rig, const char *folder, uint64_t number,
                               uint64_t *size)
{
    return memory_io_bytes(rig->files, path_of(folder, number), size);
}

TEST(retired_segments_move_to_the_archive_whole_and_count_against_no_limit)
{
    RIG(rig);
    struct mqx_journal *journal = rig.store.region.journal;
    uint64_t size = 0;
    fill(&rig, 1, 60);
    const uint64_t newest = journal->segment[journal->active - 1].number;
    CHECK(newest > 5);
    uint8_t *const before = malloc(SEGMENT);
    memcpy(before, bytes_of(&rig, "journal", 2, &size), SEGMENT);
    CHECK_INT(mqx_journal_retire(&rig.store, journal->batch_start, nothing_alive), 0);
    CHECK_INT(mqx_journal_spare_count(&rig.store), 0); /* none is used again */
    CHECK_INT(journal->used_bytes, SEGMENT);
    for (uint64_t number = 1; number < newest; number++) {
        CHECK(bytes_of(&rig, "journal", number, &size) == NULL);
        CHECK(bytes_of(&rig, "archive", number, &size) != NULL);
        CHECK_INT(size, SEGMENT);
    }
    CHECK(memcmp(before, bytes_of(&rig, "archive", 2, &size), SEGMENT) == 0);
    free(before);
    CHECK(bytes_of(&rig, "journal", newest, &size) != NULL);
    fill(&rig, 60, 120);
    CHECK_INT(mqx_journal_retire(&rig.store, journal->batch_start, nothing_alive), 0);
    CHECK(bytes_of(&rig, "archive", newest, &size) != NULL);
}

TEST(a_segment_that_was_moved_before_a_death_is_taken_out_of_the_table_by_the_next_retirement)
{
    RIG(rig);
    uint64_t size = 0;
    char name[MQX_FILE_NAME_SIZE];
    fill(&rig, 1, 30);
    mqx_file_name(name, MQX_FILE_SEGMENT, 1);
    CHECK_INT(rig.io->ops->move(rig.io, rig.store.journal_dir, name, rig.store.archive_dir), 0);
    const uint64_t syncs = memory_io_calls(rig.files, MEMORY_SYNC_DIR);
    CHECK_INT(mqx_journal_retire(&rig.store, 2 * SEGMENT, nothing_alive), 0);
    CHECK(memory_io_calls(rig.files, MEMORY_SYNC_DIR) >= syncs + 2); /* nobody had flushed it */
    CHECK(mqx_journal_segment_of(&rig.store.region, SEGMENT / 2) < 0);
    CHECK(bytes_of(&rig, "archive", 1, &size) != NULL);
}

TEST(a_move_that_fails_changes_nothing_and_a_flush_that_fails_stops_the_store)
{
    RIG(rig);
    struct mqx_journal *journal = rig.store.region.journal;
    uint64_t size = 0;
    const struct memory_fault no_move = {.kind = MEMORY_FAULT_ERROR, .at = 1, .error = 28,
                                         .ops = 1u << MEMORY_MOVE};
    const struct memory_fault no_flush = {.kind = MEMORY_FAULT_FLUSH, .at = 2, .error = 5,
                                          .ops = 1u << MEMORY_SYNC_DIR};
    fill(&rig, 1, 30);
    const uint64_t used = journal->used_bytes;
    memory_io_set_fault(rig.files, &no_move);
    CHECK_INT(mqx_journal_retire(&rig.store, journal->batch_start, nothing_alive),
              MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(journal->used_bytes, used);
    CHECK(bytes_of(&rig, "journal", 1, &size) != NULL);
    memory_io_set_fault(rig.files, &no_flush);
    CHECK_INT(mqx_journal_retire(&rig.store, journal->batch_start, nothing_alive),
              MQRC_CONNECTION_BROKEN);
    CHECK(mqx_region_stopped(&rig.store.region) != MQX_RUNNING);
    memory_io_set_fault(rig.files, NULL);
}

/* ---- power cuts ---- */

struct power_cut {
    struct rig rig;
    uint64_t states, archived;
};

/* Every segment since the first is in the journal or in the archive, whole, and in one of them. */
static bool all_in_one_place(struct rig *rig, uint64_t *archived)
{
    uint64_t size = 0, last_archived = 0, last = 0;
    for (uint64_t number = 1; number < 64; number++) {
        struct mqe_journal_scan scan;
        const uint8_t *here = bytes_of(rig, "journal", number, &size);
        const uint8_t *there = bytes_of(rig, "archive", number, &size);
        if (here != NULL && there != NULL) {
            printf("\n    segment %" PRIu64 " is in both folders", number);
            return false;
        }
        if (here == NULL && there == NULL) {
            continue;
        }
        if (number != last + 1 || (there != NULL && last_archived != last)) {
            printf("\n    segment %" PRIu64 " is gone", last + 1);
            return false;
        }
        last = number;
        last_archived = there != NULL ? number : last_archived;
        if (there != NULL && mqe_journal_scan_open(&scan, there, size, NULL, number) != MQX_OK) {
            printf("\n    archived segment %" PRIu64 ": %s", number, mqx_error_text());
            return false;
        }
    }
    *archived += last_archived;
    return last > 0;
}

static const char *after_restart(struct rig *rig, struct power_cut *cut)
{
    uint64_t size = 0;
    if (!all_in_one_place(rig, &cut->archived)) {
        return "before the restart";
    }
    if (rig_open(rig) != 0 || rig_list(rig, RIG_QUEUE, listed) != 12) {
        return "the restart";
    }
    for (uint32_t i = 0; i < 12; i++) {
        if (!rig_verify(rig, &listed[i])) {
            return "a message";
        }
    }
    /* a checkpoint that begins where the last one did would have nothing to do */
    if (rig_put(rig, 0, 900, 4, 3000, NULL) != 0 || rig_flush(rig) != 0 ||
        mqx_checkpoint(&rig->store, MQX_CHECKPOINT_FUZZY) != 0) {
        return "the checkpoint";
    }
    if (bytes_of(rig, "archive", 1, &size) == NULL) {
        return "segment 1 has not been retired";
    }
    return all_in_one_place(rig, &cut->archived) ? NULL : "after the restart";
}

static int after_power_cut(void *arg, const struct disk_state *state)
{
    struct power_cut *cut = arg;
    struct rig *rig = &cut->rig;
    rig->files = state->files;
    rig->io = state->io;
    cut->states += 1;
    const char *wrong = after_restart(rig, cut);
    if (wrong != NULL) {
        printf("\n    after event %u: %s; last error: %s", state->event, wrong, mqx_error_text());
    }
    rig_crash(rig);
    return wrong == NULL ? 0 : 1;
}

/* A file system may bring the two names of a move to the medium one after the other. */
TEST(a_moved_name_is_flushed_in_the_archive_before_it_is_in_the_journal)
{
    RIG(rig);
    uint32_t moves = 0;
    fill(&rig, 1, 40);
    memory_io_record(rig.files, RIG_HOME);
    CHECK_INT(mqx_journal_retire(&rig.store, rig.store.region.journal->batch_start,
                                 nothing_alive), 0);
    TAKE_TRACE(trace, rig);
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct memory_event *move = &trace->events[i];
        if (move->kind != MEMORY_EV_MOVE) {
            continue;
        }
        moves += 1;
        CHECK(i + 2 < trace->event_count);
        CHECK(move[1].kind == MEMORY_EV_DIRSYNC && move[1].dir == move->value);
        CHECK(move[2].kind == MEMORY_EV_DIRSYNC && move[2].dir == move->dir);
    }
    CHECK(moves > 2);
}

TEST(a_power_cut_at_any_step_of_a_retirement_leaves_each_segment_whole_in_one_place)
{
    RIG(rig);
    uint64_t size = 0;
    CHECK_INT(rig_fill_and_crash(&rig), 0);
    memory_io_record(rig.files, RIG_HOME);
    CHECK_INT(rig_open(&rig), 0);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(bytes_of(&rig, "archive", 2, &size) != NULL);
    TAKE_TRACE(trace, rig);
    struct power_cut cut = {.rig = {.plan = rig.plan}};
    struct disk_states_counts counts;
    const struct disk_states_options options = {.sector = 4096, .cap = 40, .seed = test_seed(),
                                                .prepare = rig_prepare_state, .arg = &cut};
    CHECK_INT(disk_states_run(trace, &options, after_power_cut, &counts), 0);
    printf("%" PRIu64 " ", cut.states);
    CHECK(cut.states > 20 && cut.archived > 0);
}

TEST_MAIN()
