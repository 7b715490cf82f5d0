/*
 * test_segment_pool.c - proves the segment files of journal.h: spares are made, used and made again
 * of retired segments; a roll or a retirement interrupted at any step is finished; with linear
 * logging a retired segment moves to the archive, and is whole in one place after a death or a
 * power cut.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/disk_states.h"
#include "fixtures/journal_fixture.h"
#include "format/segment.h"
#include "journal/journal_private.h"
#include "penstock/journal_scan.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
#define FIXTURE FIXTURE_OF

/* Leaves segments with nothing alive in them behind. */
static void fill_segments(struct journal_fixture *fixture, uint64_t upto)
{
    uint64_t number = 1000;
    while (fixture->store.region.journal->next_segment_no <= upto) {
        CHECK_INT(fixture_put(fixture, 0, number, 4, 3000, NULL), 0);
        CHECK_INT(fixture_record(fixture, 0, PS_REC_GET, number, NULL), 0);
        number += 1;
    }
    CHECK_INT(fixture_flush(fixture), 0);
}

/* A checkpoint that begins at the end of the journal, in that segment, and keeps what is alive. */
static int retire_before(struct journal_fixture *fixture, uint64_t begin, const uint32_t *alive)
{
    return mqx_journal_retire(&fixture->store, begin, fixture->store.region.journal->batch_start,
                              alive);
}

TEST(retired_segments_become_spares_with_another_generation_and_are_used_again)
{
    FIXTURE(fixture, 32768);
    struct mqx_journal *journal = fixture.store.region.journal;
    static const uint32_t nothing_alive[MQX_SEGMENT_MAX];
    fill_segments(&fixture, 12);
    const uint64_t used = journal->used_bytes;
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 0);
    CHECK_INT(retire_before(&fixture, journal->next_segment_no - 1, nothing_alive), 0);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 8);
    CHECK(journal->used_bytes < used);
    CHECK(!memory_io_remove(fixture.files, fixture_segment_path(1)));
    const uint64_t files_made = memory_io_calls(fixture.files, MEMORY_ALLOCATE);
    fill_segments(&fixture, 20);
    CHECK_INT(memory_io_calls(fixture.files, MEMORY_ALLOCATE), files_made);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 0);
}

TEST(as_many_spares_are_kept_as_the_journal_uses_between_two_checkpoints)
{
    static const uint32_t nothing_alive[MQX_SEGMENT_MAX];
    static const struct { uint64_t limit; uint32_t kept; } cases[] = {{16, 5}, {24, 7}, {40, 8}};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(cases); i++) {
        FIXTURE(fixture, 32768);
        struct mqx_journal *journal = fixture.store.region.journal;
        fill_segments(&fixture, 12);
        journal->limit = cases[i].limit * 32768;
        CHECK(journal->used_bytes <= journal->limit);
        CHECK_INT(mqx_journal_interval(journal), cases[i].limit * 32768 / 4);
        CHECK_INT(retire_before(&fixture, journal->next_segment_no - 1, nothing_alive), 0);
        CHECK_INT(mqx_journal_spare_count(&fixture.store), cases[i].kept);
    }
}

TEST(a_live_message_keeps_its_segment_and_no_other)
{
    FIXTURE(fixture, 32768);
    struct mqx_journal *journal = fixture.store.region.journal;
    static uint32_t alive[MQX_SEGMENT_MAX];
    fill_segments(&fixture, 6);
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        alive[i] = journal->segment[i].number == 3;
    }
    CHECK_INT(retire_before(&fixture, 5, alive), 0);
    for (uint64_t number = 1; number <= 6; number++) {
        const bool is_there =
            memory_io_bytes(fixture.files, fixture_segment_path(number), &(uint64_t){0}) != NULL;
        CHECK_INT(is_there, number == 3 || number >= 5); /* 5: a restart begins there */
    }
}

TEST(a_full_disk_stops_puts_and_space_lets_them_go_on)
{
    FIXTURE(fixture, 32768);
    int status = 0;
    uint64_t number = 1;
    memory_io_set_space(fixture.files, 100000, UINT64_MAX);
    while (status == 0) {
        status = fixture_put(&fixture, 0, number++, 4, 1000, NULL);
        CHECK(number < 1000);
    }
    CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, 1, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    memory_io_set_space(fixture.files, UINT64_MAX, UINT64_MAX);
    CHECK_INT(fixture_put(&fixture, 0, number, 4, 1000, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), number - 2);
}

TEST(spares_are_made_ahead_within_the_limit)
{
    FIXTURE(fixture, 65536);
    struct mqx_journal *journal = fixture.store.region.journal;
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 65536);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 65536), 0);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 1);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
    journal->limit = journal->used_bytes;
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 65536), MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 1);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0); /* and they are found again */
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 1);
}

enum { SMALL = 65536, FULL = 8 * SMALL };

/* A new queue manager whose first segment is smaller than the others will be. */
static void make_small(struct journal_fixture *fixture)
{
    struct mqx_region_plan plan = fixture_plan(FULL);
    plan.first_segment_size = SMALL;
    fixture_create(fixture, &plan);
    CHECK_INT(fixture_open(fixture), 0);
    CHECK_INT(fixture_define(fixture, FIXTURE_QUEUE, FIXTURE_GENERATION), 0);
}

/* Durable puts while the active segment has less than that many bytes. */
static void fill_to(struct journal_fixture *fixture, uint64_t bytes, uint64_t number)
{
    const struct mqx_journal *journal = fixture->store.region.journal;
    const uint64_t base = journal->segment[journal->active - 1].base_lsn;
    while (journal->tail - base < bytes) {
        CHECK_INT(fixture_put(fixture, 0, number++, 4, 1000, NULL), 0);
        CHECK_INT(fixture_flush(fixture), 0);
    }
}

TEST(a_new_journal_wants_a_full_size_spare_once_half_of_its_first_segment_is_used)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
    fill_to(&fixture, SMALL / 2 - 4096, 100);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
    fill_to(&fixture, SMALL / 2 + 1, 200);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), FULL);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, FULL), 0);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), 0);
}

TEST(a_journal_that_lacks_its_reserve_wants_a_spare_however_little_is_used)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    struct mqx_journal *journal = fixture.store.region.journal;
    mqx_store_release(&journal->reserve_bytes, (uint64_t)SMALL / 2);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), SMALL);
    mqx_store_release(&journal->reserve_bytes, (uint64_t)SMALL);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), FULL);
}

TEST(a_first_segment_closed_by_a_restart_wants_a_small_spare)
{
    __attribute__((cleanup(fixture_free))) struct journal_fixture fixture;
    make_small(&fixture);
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 1000, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    const struct mqx_journal *journal = fixture.store.region.journal;
    CHECK_INT(journal->segment[journal->active - 1].state, MQX_SEG_FULL);
    CHECK_INT(mqx_journal_spare_wanted(&fixture.store), SMALL);
}

TEST(a_roll_that_takes_the_last_spare_rings_the_maintenance_thread)
{
    FIXTURE(fixture, 32768);
    const struct mqx_region *region = &fixture.store.region;
    const uint32_t *doorbell = &mqx_process_slot(region, region->process)->doorbell;
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 32768), 0);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, 32768), 0);
    const uint32_t before = *doorbell;
    fill_segments(&fixture, 2);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 1);
    CHECK_INT(*doorbell, before);
    fill_segments(&fixture, 3);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 0);
    CHECK_INT(*doorbell, before + 1);
}

/* A hook that leaves at the n-th call of the file table, as if the process had died there. */
struct leaving {
    uint64_t at;
    uint64_t calls;
    jmp_buf out;
};

static void leave(void *arg, enum memory_op op, uint64_t number)
{
    struct leaving *leaving = arg;
    (void)op;
    (void)number;
    if (++leaving->calls == leaving->at) {
        longjmp(leaving->out, 1);
    }
}

/* Locks that the dead owner held are repaired as EOWNERDEAD would do it. */
static void repair(struct mqx_region *region, struct mqx_lock *lock)
{
    if (lock->holder == region->process + 1) {
        mqx_undo_rollback(region, lock);
        mqx_lock_drop(region, lock);
    }
}

TEST(a_roll_is_finished_by_the_next_process_whatever_step_the_first_one_died_at)
{
    static struct leaving leaving; /* survives the longjmp */
    static uint64_t at;
    for (at = 1; at < 40; at++) {
        FIXTURE(fixture, 32768);
        CHECK_INT(mqx_journal_make_spare(&fixture.store, 32768), 0);
        struct mqx_journal *journal = fixture.store.region.journal;
        for (uint64_t number = 1; number <= 6; number++) {
            CHECK_INT(fixture_put(&fixture, 0, number, 4, 3500, NULL), 0);
        }
        CHECK_INT(fixture_flush(&fixture), 0);
        leaving = (struct leaving){.at = at};
        memory_io_set_hook(fixture.files, leave, &leaving);
        volatile int status = 0;
        if (setjmp(leaving.out) == 0) {
            for (uint64_t number = 7; number <= 12 && status == 0; number++) {
                status = fixture_put(&fixture, 0, number, 4, 3500, NULL);
            }
        }
        memory_io_set_hook(fixture.files, NULL, NULL);
        CHECK_INT(status, 0);
        repair(&fixture.store.region, &journal->ring_lock);
        repair(&fixture.store.region, &journal->roll_lock);
        repair(&fixture.store.region, &journal->flush_lock);
        CHECK_INT(fixture_put(&fixture, 0, 13, 4, 20000, NULL), 0);
        CHECK_INT(fixture_flush(&fixture), 0);
        fixture_crash(&fixture);
        CHECK_INT(fixture_open(&fixture), 0);
        const uint32_t count = fixture_list(&fixture, FIXTURE_QUEUE, listed);
        CHECK(count >= 7);
        for (uint32_t i = 0; i < count; i++) {
            CHECK(fixture_verify(&fixture, &listed[i]));
        }
        CHECK_INT(listed[count - 1].number, 13);
        if (leaving.calls < at) {
            break; /* nothing was interrupted any more */
        }
    }
    CHECK(at > 6); /* flush; open, header, close, name, directory */
    CHECK(at < 40);
}

TEST(file_names_are_recognised_only_in_their_own_spelling)
{
    uint64_t number = 0;
    CHECK_INT(mqx_file_kind_of("0000000012.psj", &number), MQX_FILE_SEGMENT);
    CHECK_INT(number, 12);
    CHECK_INT(mqx_file_kind_of("spare-0000000003.psj", &number), MQX_FILE_SPARE);
    CHECK_INT(mqx_file_kind_of("spare-0000000003.tmp", &number), MQX_FILE_HALF_MADE);
    CHECK_INT(mqx_file_kind_of("12.psj", &number), MQX_FILE_OTHER);
    CHECK_INT(mqx_file_kind_of("00000000012.psj", &number), MQX_FILE_OTHER);
    CHECK_INT(mqx_file_kind_of("0000000012.psjx", &number), MQX_FILE_OTHER);
    CHECK_INT(mqx_file_kind_of("spare-.psj", &number), MQX_FILE_OTHER);
    CHECK_INT(mqx_file_kind_of("-000000012.psj", &number), MQX_FILE_OTHER);
    CHECK_INT(mqx_file_kind_of("", &number), MQX_FILE_OTHER);
}

/* ---- linear logging ---- */

enum { SEGMENT = 32768 };

static const uint32_t nothing_alive[MQX_SEGMENT_MAX];

static void start_linear(struct journal_fixture *fixture)
{
    struct mqx_region_plan plan = fixture_plan(SEGMENT);
    plan.linear = 1;
    fixture_create(fixture, &plan);
    CHECK_INT(fixture_open(fixture), 0);
    CHECK_INT(fixture_define(fixture, FIXTURE_QUEUE, FIXTURE_GENERATION), 0);
}
#define LINEAR_FIXTURE(name)                                                                       \
    __attribute__((cleanup(fixture_free))) struct journal_fixture name = {0};                      \
    start_linear(&name)

static void put_and_get(struct journal_fixture *fixture, uint64_t from, uint64_t to)
{
    for (uint64_t number = from; number < to; number++) {
        CHECK_INT(fixture_put(fixture, 0, number, 4, 3000, NULL), 0);
        CHECK_INT(fixture_record(fixture, 0, PS_REC_GET, number, NULL), 0);
    }
    CHECK_INT(fixture_flush(fixture), 0);
}

static const char *path_of(const char *folder, uint64_t number)
{
    static char path[96];
    snprintf(path, sizeof path, FIXTURE_HOME "/%s/%010llu.psj", folder, (unsigned long long)number);
    return path;
}

static const uint8_t *bytes_of(struct journal_fixture *fixture, const char *folder, uint64_t number,
                               uint64_t *size)
{
    return memory_io_bytes(fixture->files, path_of(folder, number), size);
}

TEST(retired_segments_move_to_the_archive_whole_and_count_against_no_limit)
{
    LINEAR_FIXTURE(fixture);
    struct mqx_journal *journal = fixture.store.region.journal;
    uint64_t size = 0;
    put_and_get(&fixture, 1, 60);
    const uint64_t newest = journal->segment[journal->active - 1].number;
    CHECK(newest > 5);
    uint8_t *const before = malloc(SEGMENT);
    memcpy(before, bytes_of(&fixture, "journal", 2, &size), SEGMENT);
    CHECK_INT(retire_before(&fixture, journal->next_segment_no - 1, nothing_alive), 0);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 0); /* none is used again */
    CHECK_INT(journal->used_bytes, SEGMENT);
    for (uint64_t number = 1; number < newest; number++) {
        CHECK(bytes_of(&fixture, "journal", number, &size) == NULL);
        CHECK(bytes_of(&fixture, "archive", number, &size) != NULL);
        CHECK_INT(size, SEGMENT);
    }
    CHECK(memcmp(before, bytes_of(&fixture, "archive", 2, &size), SEGMENT) == 0);
    free(before);
    CHECK(bytes_of(&fixture, "journal", newest, &size) != NULL);
    put_and_get(&fixture, 60, 120);
    CHECK_INT(retire_before(&fixture, journal->next_segment_no - 1, nothing_alive), 0);
    CHECK(bytes_of(&fixture, "archive", newest, &size) != NULL);
}

TEST(a_segment_that_was_moved_before_a_death_is_taken_out_of_the_table_by_the_next_retirement)
{
    LINEAR_FIXTURE(fixture);
    uint64_t size = 0;
    char name[MQX_FILE_NAME_SIZE];
    put_and_get(&fixture, 1, 30);
    mqx_file_name(name, MQX_FILE_SEGMENT, 1);
    CHECK_INT(fixture.io->ops->move(fixture.io, fixture.store.journal_dir, name,
                                    fixture.store.archive_dir),
              0);
    const uint64_t syncs = memory_io_calls(fixture.files, MEMORY_SYNC_DIR);
    CHECK_INT(mqx_journal_retire(&fixture.store, 2, 2 * SEGMENT, nothing_alive), 0);
    CHECK(memory_io_calls(fixture.files, MEMORY_SYNC_DIR) >= syncs + 2); /* not flushed yet */
    CHECK(mqx_journal_segment_of(&fixture.store.region, SEGMENT / 2) < 0);
    CHECK(bytes_of(&fixture, "archive", 1, &size) != NULL);
}

TEST(a_move_that_fails_changes_nothing_and_a_flush_that_fails_stops_the_store)
{
    LINEAR_FIXTURE(fixture);
    struct mqx_journal *journal = fixture.store.region.journal;
    uint64_t size = 0;
    const struct memory_fault no_move = {.kind = MEMORY_FAULT_ERROR, .at = 1, .error = 28,
                                         .ops = 1u << MEMORY_MOVE};
    const struct memory_fault no_flush = {.kind = MEMORY_FAULT_FLUSH, .at = 2, .error = 5,
                                          .ops = 1u << MEMORY_SYNC_DIR};
    put_and_get(&fixture, 1, 30);
    const uint64_t used = journal->used_bytes;
    memory_io_set_fault(fixture.files, &no_move);
    CHECK_INT(retire_before(&fixture, journal->next_segment_no - 1, nothing_alive),
              MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(journal->used_bytes, used);
    CHECK(bytes_of(&fixture, "journal", 1, &size) != NULL);
    memory_io_set_fault(fixture.files, &no_flush);
    CHECK_INT(retire_before(&fixture, journal->next_segment_no - 1, nothing_alive),
              MQRC_CONNECTION_BROKEN);
    CHECK(mqx_region_stopped(&fixture.store.region) != MQX_RUNNING);
    memory_io_set_fault(fixture.files, NULL);
}

/* ---- power cuts ---- */

struct power_cut {
    struct journal_fixture fixture;
    uint64_t states, archived;
};

/* Every segment since the first is in the journal or in the archive, whole, and in one of them. */
static bool all_in_one_place(struct journal_fixture *fixture, uint64_t *archived)
{
    uint64_t size = 0, last = 0;
    for (uint64_t number = 1; number < 64; number++) {
        struct mqe_journal_scan scan;
        const uint8_t *here = bytes_of(fixture, "journal", number, &size);
        const uint8_t *there = bytes_of(fixture, "archive", number, &size);
        if (here != NULL && there != NULL) {
            printf("\n    segment %" PRIu64 " is in both folders", number);
            return false;
        }
        if (here == NULL && there == NULL) {
            continue;
        }
        if (number != last + 1) {
            printf("\n    segment %" PRIu64 " is gone", last + 1);
            return false;
        }
        last = number;
        *archived += there != NULL;
        if (there != NULL && mqe_journal_scan_open(&scan, there, size, NULL, number) != MQX_OK) {
            printf("\n    archived segment %" PRIu64 ": %s", number, mqx_error_text());
            return false;
        }
    }
    return last > 0;
}

/* What stayed in front of an archived segment holds a message: all these have one size. */
static bool only_messages_keep_segments(struct journal_fixture *fixture)
{
    bool needed[64] = {false};
    uint64_t size = 0, newest = 0;
    for (uint32_t i = 0; i < 12; i++) {
        needed[listed[i].lsn / SEGMENT + 1] = true;
    }
    for (uint64_t number = 1; number < 64; number++) {
        newest = bytes_of(fixture, "archive", number, &size) != NULL ? number : newest;
    }
    for (uint64_t number = 1; number < newest; number++) {
        if (bytes_of(fixture, "archive", number, &size) == NULL && !needed[number]) {
            printf("\n    segment %" PRIu64 " was left behind", number);
            return false;
        }
    }
    return true;
}

static const char *after_restart(struct journal_fixture *fixture, struct power_cut *cut)
{
    uint64_t size = 0;
    if (!all_in_one_place(fixture, &cut->archived)) {
        return "before the restart";
    }
    if (fixture_open(fixture) != 0 || fixture_list(fixture, FIXTURE_QUEUE, listed) != 12) {
        return "the restart";
    }
    for (uint32_t i = 0; i < 12; i++) {
        if (!fixture_verify(fixture, &listed[i])) {
            return "a message";
        }
    }
    for (int i = 0; i < 2; i++) { /* the first one keeps what the one before it needs */
        /* a checkpoint that begins where the last one did would have nothing to do */
        if (fixture_record(fixture, 0, PS_REC_GET, 900, NULL) != 0 || fixture_flush(fixture) != 0 ||
            mqx_checkpoint(&fixture->store, MQX_CHECKPOINT_FUZZY) != 0) {
            return "the checkpoint";
        }
    }
    if (bytes_of(fixture, "archive", 1, &size) == NULL) {
        return "segment 1 has not been retired";
    }
    return all_in_one_place(fixture, &cut->archived) && only_messages_keep_segments(fixture)
               ? NULL
               : "after the restart";
}

static int after_power_cut(void *arg, const struct disk_state *state)
{
    struct power_cut *cut = arg;
    struct journal_fixture *fixture = &cut->fixture;
    fixture->files = state->files;
    fixture->io = state->io;
    cut->states += 1;
    const char *wrong = after_restart(fixture, cut);
    if (wrong != NULL) {
        printf("\n    after event %u: %s; last error: %s", state->event, wrong, mqx_error_text());
    }
    fixture_crash(fixture);
    return wrong == NULL ? 0 : 1;
}

/* A file system may bring the two names of a move to the medium one after the other. */
TEST(a_moved_name_is_flushed_in_the_archive_before_it_is_in_the_journal)
{
    LINEAR_FIXTURE(fixture);
    uint32_t moves = 0;
    put_and_get(&fixture, 1, 40);
    memory_io_record(fixture.files, FIXTURE_HOME);
    CHECK_INT(mqx_journal_retire(&fixture.store, fixture.store.region.journal->next_segment_no - 1,
                                 fixture.store.region.journal->batch_start, nothing_alive),
              0);
    TAKE_TRACE(trace, fixture);
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
    LINEAR_FIXTURE(fixture);
    uint64_t size = 0;
    CHECK_INT(fixture_fill_and_crash(&fixture), 0);
    memory_io_record(fixture.files, FIXTURE_HOME);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    put_and_get(&fixture, 900, 901); /* the second one begins later, and needs less */
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(bytes_of(&fixture, "archive", 2, &size) != NULL);
    TAKE_TRACE(trace, fixture);
    struct power_cut cut = {.fixture = {.plan = fixture.plan}};
    struct disk_states_counts counts;
    const struct disk_states_options options = {.sector = 4096,
                                                .cap = 40,
                                                .seed = test_seed(),
                                                .prepare = fixture_prepare_state,
                                                .arg = &cut};
    CHECK_INT(disk_states_run(trace, &options, after_power_cut, &counts), 0);
    printf("%" PRIu64 " ", cut.states);
    CHECK(cut.states > 20 && cut.archived > 0);
}

TEST_MAIN()
