/*
 * test_checkpoint_reserve.c - proves checkpoint_reserve.h: on a full disk checkpoints go on, over a
 * file whose blocks are there, and no crash in between costs a message or a checkpoint.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/disk_states.h"
#include "fixtures/journal_fixture.h"
#include "recovery/checkpoint_file.h"
#include "recovery/checkpoint_reserve.h"

#define RESERVE FIXTURE_HOME "/checkpoint/" MQX_CHECKPOINT_RESERVE

enum { MESSAGES = 1200 };
static struct psc_message listed[FIXTURE_LISTED_MAX];

static uint64_t size_of(struct journal_fixture *fixture, const char *path)
{
    uint64_t size = 0;
    return memory_io_bytes(fixture->files, path, &size) != NULL ? size : 0;
}

static void put_many(struct journal_fixture *fixture, uint64_t first, uint32_t count)
{
    for (uint64_t number = first; number < first + count; number++) {
        CHECK_INT(fixture_put(fixture, 0, number, 4, 20, NULL), 0);
    }
    CHECK_INT(fixture_flush(fixture), 0);
}

static void get_many(struct journal_fixture *fixture, uint64_t first, uint32_t count)
{
    for (uint64_t number = first; number < first + count; number++) {
        CHECK_INT(fixture_record(fixture, 0, PS_REC_GET, number, NULL), 0);
    }
    CHECK_INT(fixture_flush(fixture), 0);
}

static int keep(struct journal_fixture *fixture)
{
    struct mqx_region *region = &fixture->store.region;
    int status = mqx_lock_take(region, &region->header->maintenance_lock);
    if (status == MQX_OK) {
        status = mqx_checkpoint_reserve_keep(&fixture->store);
        mqx_lock_drop(region, &region->header->maintenance_lock);
    }
    return status;
}

static void fill_disk(struct journal_fixture *fixture, bool full)
{
    memory_io_set_space(fixture->files, full ? memory_io_space_used(fixture->files) : UINT64_MAX,
                        UINT64_MAX);
}

static int checkpoint(struct journal_fixture *fixture)
{
    return mqx_checkpoint(&fixture->store, MQX_CHECKPOINT_FUZZY);
}

/* While the disk is full. What comes between checkpoints has room here: it is not what is asked. */
static int full_checkpoint(struct journal_fixture *fixture)
{
    fill_disk(fixture, true);
    const int status = checkpoint(fixture);
    fill_disk(fixture, false);
    return status;
}

/* Messages, known to the index, and a reserve. */
#define FIXTURE(name)                                                                              \
    FIXTURE_OF(name, 1u << 20);                                                                    \
    put_many(&name, 1, MESSAGES);                                                                  \
    FIXTURE_REOPEN(name);                                                                          \
    CHECK_INT(keep(&name), 0)

TEST(a_queue_manager_without_messages_has_no_reserve)
{
    FIXTURE_OF(fixture, 65536);
    CHECK_INT(fixture_flush(&fixture), 0);
    CHECK_INT(keep(&fixture), 0);
    CHECK(mqx_journal_checkpoint_reserve(&fixture.store.region) == 0);
    CHECK_INT(size_of(&fixture, RESERVE), 0);
}

TEST(the_reserve_is_longer_than_a_checkpoint_of_what_is_present_and_grows_with_it)
{
    FIXTURE(fixture);
    const uint64_t first = size_of(&fixture, RESERVE);
    CHECK(first == fixture.store.region.journal->checkpoint_reserve);
    CHECK_INT(checkpoint(&fixture), 0);
    CHECK(first > fixture.store.region.journal->checkpoint_bytes);
    put_many(&fixture, 1000, 4000);
    FIXTURE_REOPEN(fixture);
    CHECK(size_of(&fixture, RESERVE) < mqx_journal_checkpoint_reserve(&fixture.store.region));
    CHECK_INT(keep(&fixture), 0);
    CHECK(size_of(&fixture, RESERVE) >= mqx_journal_checkpoint_reserve(&fixture.store.region));
    CHECK_INT(checkpoint(&fixture), 0);
    CHECK(size_of(&fixture, RESERVE) > fixture.store.region.journal->checkpoint_bytes);
}

TEST(it_is_written_not_only_allocated)
{
    FIXTURE_OF(fixture, 1u << 20);
    put_many(&fixture, 1, MESSAGES);
    FIXTURE_REOPEN(fixture);
    memory_io_record(fixture.files, FIXTURE_HOME "/checkpoint");
    CHECK_INT(keep(&fixture), 0);
    TAKE_TRACE(trace, fixture);
    uint64_t written = 0, synced = 0;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        written += trace->events[i].kind == MEMORY_EV_WRITE ? trace->events[i].size : 0;
        synced = trace->events[i].kind == MEMORY_EV_SYNC ? written : synced;
    }
    CHECK(written == size_of(&fixture, RESERVE));
    CHECK(synced == written);
}

TEST(what_is_long_enough_is_not_touched)
{
    FIXTURE(fixture);
    const uint64_t calls = memory_io_calls(fixture.files, MEMORY_OP_COUNT);
    CHECK_INT(keep(&fixture), 0);
    CHECK(memory_io_calls(fixture.files, MEMORY_OP_COUNT) == calls);
}

/* The reserve, of 32 MiB. */
static void make_long(struct journal_fixture *fixture)
{
    void *bytes = calloc(1, 32u << 20);
    CHECK(bytes != NULL);
    memory_io_put(fixture->files, RESERVE, bytes, 32u << 20);
    free(bytes);
}

TEST(a_reserve_that_is_far_too_long_is_shortened)
{
    FIXTURE(fixture);
    make_long(&fixture);
    fixture.store.region.journal->checkpoint_reserve = 0;
    CHECK_INT(keep(&fixture), 0);
    CHECK(size_of(&fixture, RESERVE) < 1u << 20);
    CHECK(size_of(&fixture, RESERVE) >= mqx_journal_checkpoint_reserve(&fixture.store.region));
}

TEST(a_reserve_that_was_wanted_lately_is_shortened_after_two_checkpoints_without_a_need_for_it)
{
    FIXTURE(fixture);
    struct mqx_journal *journal = fixture.store.region.journal;
    const struct psc_end few = {.message_count = 10};
    make_long(&fixture);
    journal->reserve_peak[0] = 24u << 20;
    for (int i = 0; i < 3; i++) {
        journal->checkpoint_reserve = 0;
        CHECK_INT(keep(&fixture), 0);
        CHECK((size_of(&fixture, RESERVE) == 32u << 20) == (i < 2));
        mqx_journal_learn(journal, &few, 8192);
    }
}

TEST(on_a_full_disk_the_checkpoint_is_written_over_the_reserve)
{
    FIXTURE(fixture);
    const uint64_t begin = fixture.store.region.journal->checkpoint_begin;
    fill_disk(&fixture, true);
    CHECK_INT(checkpoint(&fixture), 0);
    CHECK(fixture.store.region.journal->checkpoint_begin > begin);
    CHECK(size_of(&fixture, RESERVE) > 0); /* of what was cut */
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture.report.records_replayed, 0);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), MESSAGES);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        CHECK(fixture_verify(&fixture, &listed[i]));
    }
}

TEST(on_a_full_disk_without_a_reserve_the_checkpoint_is_refused)
{
    FIXTURE_OF(fixture, 1u << 20);
    put_many(&fixture, 1, MESSAGES);
    FIXTURE_REOPEN(fixture);
    fill_disk(&fixture, true);
    CHECK_INT(checkpoint(&fixture), MQRC_STORAGE_MEDIUM_FULL);
    CHECK(strstr(mqx_error_text(), "checkpoint") != NULL);
    CHECK_INT(keep(&fixture), MQRC_STORAGE_MEDIUM_FULL);
    fill_disk(&fixture, false);
    CHECK_INT(keep(&fixture), 0);
    CHECK_INT(checkpoint(&fixture), 0);
}

/* The reserve, the checkpoint that is needed no more, and so on. */
TEST(while_messages_are_got_three_files_take_turns_however_long_the_disk_is_full)
{
    FIXTURE(fixture); /* both older checkpoints are shorter than the next */
    for (uint64_t first = 1; first + 20 <= MESSAGES; first += 20) {
        get_many(&fixture, first, 20);
        FIXTURE_REOPEN(fixture); /* the index knows it */
        const uint64_t begin = fixture.store.region.journal->checkpoint_begin;
        CHECK_INT(full_checkpoint(&fixture), 0);
        CHECK(fixture.store.region.journal->checkpoint_begin > begin);
    }
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 20);
    CHECK_INT(keep(&fixture), 0);
    CHECK(size_of(&fixture, RESERVE) >= mqx_journal_checkpoint_reserve(&fixture.store.region));
}

/* An orderly end, with the reserve far too long. */
static void end_and_start(struct journal_fixture *fixture)
{
    struct mqx_region *region = &fixture->store.region;
    make_long(fixture);
    region->journal->checkpoint_reserve = 32u << 20;
    CHECK_INT(mqx_checkpoint(&fixture->store, MQX_CHECKPOINT_CLEAN), 0);
    CHECK_INT(mqx_lock_take(region, &region->header->maintenance_lock), 0);
    mqx_checkpoint_reserve_cut(&fixture->store);
    mqx_lock_drop(region, &region->header->maintenance_lock);
    FIXTURE_REOPEN(*fixture);
}

TEST(an_orderly_end_cuts_the_reserve_and_the_start_needs_no_longer_one)
{
    FIXTURE(fixture);
    CHECK_INT(checkpoint(&fixture), 0);
    end_and_start(&fixture);
    const uint64_t cut = size_of(&fixture, RESERVE);
    CHECK(cut < 1u << 20);
    CHECK(cut >= fixture.store.region.journal->checkpoint_bytes);
    fill_disk(&fixture, true);
    CHECK_INT(keep(&fixture), 0);
    CHECK_INT(size_of(&fixture, RESERVE), cut);
    CHECK_INT(mqx_journal_checkpoint_reserve(&fixture.store.region), cut);
}

TEST(over_a_reserve_that_was_cut_every_message_can_be_got_on_a_full_disk)
{
    FIXTURE(fixture);
    CHECK_INT(checkpoint(&fixture), 0);
    end_and_start(&fixture);
    for (uint64_t first = 1; first + 20 <= MESSAGES; first += 20) {
        get_many(&fixture, first, 20);
        FIXTURE_REOPEN(fixture);
        const uint64_t begin = fixture.store.region.journal->checkpoint_begin;
        CHECK_INT(full_checkpoint(&fixture), 0);
        CHECK(fixture.store.region.journal->checkpoint_begin > begin);
    }
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 20);
}

TEST(without_messages_an_orderly_end_keeps_no_long_reserve)
{
    FIXTURE(fixture);
    get_many(&fixture, 1, MESSAGES);
    FIXTURE_REOPEN(fixture);
    end_and_start(&fixture);
    CHECK(size_of(&fixture, RESERVE) <= 65536);
}

/* Its length is asked anew: a checkpoint that failed may have cut it. */
TEST(a_checkpoint_that_fails_on_the_reserve_leaves_it_and_both_older_ones)
{
    FIXTURE(fixture);
    CHECK_INT(checkpoint(&fixture), 0);
    get_many(&fixture, 1, 20);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(keep(&fixture), 0);
    fill_disk(&fixture, true);
    const struct memory_fault fault = {
        .kind = MEMORY_FAULT_ERROR, .at = 1, .error = 28, .ops = 1u << MEMORY_RENAME};
    memory_io_set_fault(fixture.files, &fault);
    CHECK_INT(checkpoint(&fixture), MQRC_STORAGE_MEDIUM_FULL);
    CHECK(memory_io_fault_strikes(fixture.files) == 1);
    memory_io_set_fault(fixture.files, NULL);
    CHECK(size_of(&fixture, RESERVE) > 0);
    CHECK_INT(fixture.store.region.journal->checkpoint_reserve, 0);
    CHECK_INT(checkpoint(&fixture), 0); /* there is one still */
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), MESSAGES - 20);
}

/* From the failing call on nothing reaches the files: a death there. What a dead process had cut
 * from the reserve is free, and nobody else takes it. */
TEST_SERIAL(a_death_at_any_call_of_a_checkpoint_on_the_reserve_leaves_a_way_out)
{
    for (uint64_t at = 1; at < 200; at++) {
        FIXTURE(fixture);
        CHECK_INT(checkpoint(&fixture), 0);
        get_many(&fixture, 1, 10);
        FIXTURE_REOPEN(fixture);
        CHECK_INT(checkpoint(&fixture), 0); /* two as long as the next one: that frees little */
        get_many(&fixture, 11, 10);
        FIXTURE_REOPEN(fixture);
        struct mqx_journal *journal = fixture.store.region.journal;
        journal->older_bytes = journal->checkpoint_bytes; /* as without the restart */
        CHECK_INT(keep(&fixture), 0);
        CHECK_INT(mqx_journal_make_spare(&fixture.store, 1u << 20), 0); /* for the record below */
        fill_disk(&fixture, true);
        const struct memory_fault fault = {
            .kind = MEMORY_FAULT_ERROR, .at = at, .error = 5, .for_ever = true};
        const uint64_t calls = memory_io_calls(fixture.files, MEMORY_OP_COUNT);
        memory_io_set_fault(fixture.files, &fault);
        (void)checkpoint(&fixture);
        const bool struck = memory_io_fault_strikes(fixture.files) != 0;
        memory_io_set_fault(fixture.files, NULL);
        FIXTURE_REOPEN(fixture);
        CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), MESSAGES - 20);
        get_many(&fixture, 21, 20);
        FIXTURE_REOPEN(fixture);
        const uint64_t begin = fixture.store.region.journal->checkpoint_begin;
        CHECK_INT(checkpoint(&fixture), 0);
        CHECK(fixture.store.region.journal->checkpoint_begin > begin);
        if (!struck) {
            CHECK(memory_io_calls(fixture.files, MEMORY_OP_COUNT) > calls + 20);
            printf("%" PRIu64 " ", at - 1);
            return;
        }
    }
    CHECK(false);
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
    const int status = fixture_open(fixture);
    const uint32_t count = status == 0 ? fixture_list(fixture, FIXTURE_QUEUE, listed) : 0;
    bool right = status == 0 && count == MESSAGES && fixture->report.damaged_checkpoint == 0;
    for (uint32_t i = 0; i < count && right; i += 37) {
        right = fixture_verify(fixture, &listed[i]);
    }
    right = right && checkpoint(fixture) == 0;
    fixture_crash(fixture);
    right = right && fixture_open(fixture) == 0 &&
            fixture_list(fixture, FIXTURE_QUEUE, listed) == MESSAGES;
    if (!right) {
        printf("\n    %d, %u messages: %s", status, count, mqx_error_text());
    }
    fixture_crash(fixture);
    return right ? 0 : 1;
}

/* Every file of the three is overwritten once, with a message that comes and goes in between. */
TEST_SERIAL(a_power_cut_between_any_two_steps_finds_every_message_and_no_damaged_checkpoint)
{
    FIXTURE(fixture);
    CHECK_INT(checkpoint(&fixture), 0);
    memory_io_record(fixture.files, FIXTURE_HOME);
    for (uint64_t number = 1000; number < 1004; number++) {
        const uint32_t unit = fixture_unit(&fixture);
        CHECK_INT(fixture_put(&fixture, unit, number, 4, 20, NULL), 0); /* never committed */
        CHECK_INT(fixture_flush(&fixture), 0);
        CHECK_INT(full_checkpoint(&fixture), 0);
    }
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
    CHECK(cut.states > 50);
}

TEST_MAIN()
