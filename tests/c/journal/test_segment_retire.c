/*
 * test_segment_retire.c - proves segment_retire.c: retired segments become spares and are used
 * again; with linear logging they move to the archive, and each is whole in one place after a death
 * or a power cut.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/disk_states.h"
#include "fixtures/journal_fixture.h"
#include "format/segment.h"
#include "journal/head_file.h"
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

/* Number of spares that there are, in the table and as files. */
static uint32_t spares(struct journal_fixture *fixture)
{
    const struct mqx_journal *journal = fixture->store.region.journal;
    uint32_t files = 0;
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        char path[MQX_FILE_NAME_SIZE + sizeof FIXTURE_HOME "/journal/"], name[MQX_FILE_NAME_SIZE];
        uint64_t size = 0;
        if (journal->segment[i].state == MQX_SEG_SPARE) {
            mqx_file_name(name, MQX_FILE_SPARE, journal->segment[i].number);
            (void)snprintf(path, sizeof path, "%s/journal/%s", FIXTURE_HOME, name);
            files += memory_io_bytes(fixture->files, path, &size) != NULL;
        }
    }
    CHECK_INT(files, mqx_journal_spare_count(&fixture->store));
    return files;
}

/* Durable puts until so much of the active segment is used. */
static void use(struct journal_fixture *fixture, uint64_t least, uint64_t most, uint64_t number)
{
    const struct mqx_journal *journal = fixture->store.region.journal;
    uint64_t used = 0;
    while (used < least || used > most) {
        CHECK_INT(fixture_put(fixture, 0, number++, 4, 1000, NULL), 0);
        CHECK_INT(fixture_flush(fixture), 0);
        used = journal->tail - journal->segment[journal->active - 1].base_lsn;
    }
}

TEST(of_the_spares_the_orderly_end_leaves_at_most_one_that_the_next_start_would_make)
{
    static const uint32_t nothing_alive[MQX_SEGMENT_MAX];
    for (uint32_t kept = 0; kept <= 1; kept++) {
        FIXTURE(fixture, 32768);
        struct mqx_journal *journal = fixture.store.region.journal;
        fill_segments(&fixture, 12);
        use(&fixture, kept == 0 ? 0 : 32768 / 2 + 1, kept == 0 ? 32768 / 2 : 32768, 10000);
        CHECK_INT(retire_before(&fixture, journal->next_segment_no - 1, nothing_alive), 0);
        const uint64_t used = journal->used_bytes;
        CHECK_INT(spares(&fixture), 8);
        CHECK_INT(mqx_journal_end_spares(&fixture.store), 0);
        CHECK_INT(spares(&fixture), kept);
        CHECK_INT(journal->used_bytes, used - (8 - kept) * 32768);
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
    const char *form = strcmp(folder, "archive") == 0 ? FIXTURE_HOME "/%s/0000000000-%010llu.psj"
                                                      : FIXTURE_HOME "/%s/%010llu.psj";
    snprintf(path, sizeof path, form, folder, (unsigned long long)number);
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
    char name[MQX_FILE_NAME_SIZE], archived[MQX_FILE_NAME_SIZE];
    put_and_get(&fixture, 1, 30);
    mqx_file_name(name, MQX_FILE_SEGMENT, 1);
    mqx_archive_name(archived, 0, 1, 0);
    CHECK_INT(fixture.io->ops->move(fixture.io, fixture.store.journal_dir, name,
                                    fixture.store.archive_dir, archived),
              0);
    const uint64_t syncs = memory_io_calls(fixture.files, MEMORY_SYNC_DIR);
    CHECK_INT(mqx_journal_retire(&fixture.store, 2, 2 * SEGMENT, nothing_alive), 0);
    CHECK(memory_io_calls(fixture.files, MEMORY_SYNC_DIR) >= syncs + 2); /* not flushed yet */
    CHECK(mqx_journal_segment_of(&fixture.store.region, SEGMENT / 2) < 0);
    CHECK(bytes_of(&fixture, "archive", 1, &size) != NULL);
}

/* Whether a file of the archive holds that text. */
static bool archive_has(struct journal_fixture *fixture, uint32_t copy, const char *text)
{
    char path[96], name[MQX_FILE_NAME_SIZE];
    uint64_t size = 0;
    mqx_archive_name(name, 0, 1, copy);
    snprintf(path, sizeof path, FIXTURE_HOME "/archive/%s", name);
    const uint8_t *bytes = memory_io_bytes(fixture->files, path, &size);
    return bytes != NULL && size >= strlen(text) && memcmp(bytes, text, strlen(text)) == 0;
}

static void put_in_archive(struct journal_fixture *fixture, uint32_t copy, const char *text)
{
    char path[96], name[MQX_FILE_NAME_SIZE];
    mqx_archive_name(name, 0, 1, copy);
    snprintf(path, sizeof path, FIXTURE_HOME "/archive/%s", name);
    memory_io_put(fixture->files, path, text, strlen(text));
}

TEST(an_archived_file_is_never_replaced_the_segment_gets_a_name_that_is_free)
{
    LINEAR_FIXTURE(fixture);
    uint64_t size = 0;
    put_and_get(&fixture, 1, 30);
    put_in_archive(&fixture, 0, "of the history that was given up");
    put_in_archive(&fixture, 1, "of another one");
    CHECK_INT(mqx_journal_retire(&fixture.store, 2, 2 * SEGMENT, nothing_alive), 0);
    CHECK(archive_has(&fixture, 0, "of the history that was given up"));
    CHECK(archive_has(&fixture, 1, "of another one"));
    CHECK(archive_has(&fixture, 2, PSJ_MAGIC));
    CHECK(bytes_of(&fixture, "journal", 1, &size) == NULL);
}

TEST(a_segment_stays_in_the_journal_when_all_its_names_in_the_archive_are_taken)
{
    LINEAR_FIXTURE(fixture);
    uint64_t size = 0;
    put_and_get(&fixture, 1, 30);
    for (uint32_t copy = 0; copy < MQX_ARCHIVE_COPIES; copy++) {
        put_in_archive(&fixture, copy, "taken");
    }
    CHECK(mqx_journal_retire(&fixture.store, 2, 2 * SEGMENT, nothing_alive) != 0);
    CHECK(bytes_of(&fixture, "journal", 1, &size) != NULL);
    CHECK(archive_has(&fixture, MQX_ARCHIVE_COPIES - 1, "taken"));
    CHECK_INT(mqx_region_stopped(&fixture.store.region), MQX_RUNNING);
}

TEST(the_timeline_of_head_is_in_every_new_segment_in_head_and_in_archived_names)
{
    LINEAR_FIXTURE(fixture);
    const struct mqx_head restored = {.segment_no = 1, .generation = 1, .timeline = 3};
    struct mqx_head head = {0};
    bool unknown = false;
    uint64_t size = 0;
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(mqx_head_write(fixture.io, fixture.store.dir, fixture.store.qm_id, &restored,
                             &unknown),
              0);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    put_and_get(&fixture, 1, 30);
    struct mqx_journal *journal = fixture.store.region.journal;
    const uint64_t newest = journal->segment[journal->active - 1].number;
    const struct psj_segment *header = (const void *)bytes_of(&fixture, "journal", newest, &size);
    CHECK_INT(header->timeline, 3);
    CHECK_INT(mqx_head_read(fixture.io, fixture.store.dir, fixture.store.qm_id, MQX_IO_READ, &head),
              0);
    CHECK_INT(head.timeline, 3);
    CHECK_INT(head.segment_no, newest);
    CHECK_INT(retire_before(&fixture, newest, nothing_alive), 0);
    CHECK(memory_io_bytes(fixture.files, FIXTURE_HOME "/archive/0000000003-0000000002.psj",
                          &size) != NULL);
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
