/*
 * test_journal.c - proves journal.h: what an append does, that records come back from the files,
 * that segments are left, taken into use and retired as they should be, also after a death between
 * two steps.
 */
#include "fixtures/harness.h"

#include "base/checksum.h"
#include "base/error.h"
#include "journal/journal_files.h"
#include "fixtures/journal_fixture.h"
#include "format/segment.h"

static struct psc_message listed[RIG_LISTED_MAX];
#define RIG RIG_OF

TEST(an_append_changes_context_message_and_object_together)
{
    RIG(rig, 32768);
    struct mqx_journal *journal = rig.store.region.journal;
    const uint32_t unit = rig_unit(&rig);
    struct mqx_context *context = mqx_context(&rig.store.region, unit);
    struct mqx_append first, second, commit;
    const uint64_t tail = journal->tail;

    CHECK_INT(rig_put(&rig, unit, 1, 4, 100, &first), 0);
    CHECK_INT(first.lsn, tail);
    CHECK_INT(context->first_lsn, first.lsn);
    CHECK_INT(context->record_count, 1);
    CHECK_INT(context->state, MQX_CTX_ACTIVE);
    CHECK_INT(rig_put(&rig, unit, 2, 4, 100, &second), 0);
    CHECK_INT(second.lsn, first.end_lsn);
    CHECK_INT(context->first_lsn, first.lsn);
    CHECK_INT(context->record_count, 2);
    const struct psj_record *put = (const void *)mqx_ring_at(&rig.store.region, first.lsn);
    uint32_t crc = mqx_crc32c(0, &put->crc, 4);
    put = (const void *)mqx_ring_at(&rig.store.region, second.lsn);
    crc = mqx_crc32c(crc, &put->crc, 4);
    CHECK_INT(context->running_crc, crc);
    CHECK_INT(rig_commit(&rig, unit, &commit), 0);
    CHECK_INT(context->state, MQX_CTX_DECIDED);
    CHECK_INT(context->decided_lsn, commit.end_lsn);
    CHECK_INT(journal->durable < commit.end_lsn, 1); /* nothing was flushed */
}

TEST(records_of_all_sizes_come_back_across_many_segments_and_ring_turns)
{
    RIG(rig, 131072);
    struct test_random random = {test_seed()};
    uint64_t bytes = 0;
    for (uint64_t number = 1; number <= 120; number++) {
        const uint32_t length = (uint32_t)test_below(&random, number % 3 == 0 ? 30000 : 900);
        CHECK_INT(rig_put(&rig, 0, number, (int)(number % 10), length, NULL), 0);
        bytes += length;
        if (number % 7 == 0) {
            CHECK_INT(rig_flush(&rig), 0);
        }
    }
    CHECK(bytes > 2 * rig.plan.ring_size);
    CHECK_INT(rig_flush(&rig), 0);
    CHECK(rig.store.region.journal->next_segment_no > 5);
    rig_crash(&rig);
    CHECK_INT(rig_open(&rig), 0);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 120);
    for (uint32_t i = 0; i < 120; i++) {
        CHECK(rig_verify(&rig, &listed[i]));
    }
}

TEST(a_chunked_body_is_gathered_from_several_segments)
{
    RIG(rig, 65536);
    CHECK_INT(rig_put_chunked(&rig, 0, 5, 4, 300001, 20000, NULL), 0);
    CHECK_INT(rig_put_chunked(&rig, 0, 6, 4, 20000, 20000, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    rig_crash(&rig);
    CHECK_INT(rig_open(&rig), 0);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 2);
    CHECK_INT(listed[0].chunk_count, 16);
    CHECK(listed[0].first_lsn <= listed[0].lsn);
    CHECK(rig_verify(&rig, &listed[0]));
    CHECK(rig_verify(&rig, &listed[1]));
    uint64_t first = 0;
    CHECK_INT(mqx_journal_first_lsn(&rig.store, listed[0].lsn, listed[0].record_length, &first), 0);
    CHECK(first < listed[0].lsn - 200000);
}

TEST(fetching_a_body_makes_no_read_call_and_truncates_to_the_buffer)
{
    RIG(rig, 65536);
    CHECK_INT(rig_put(&rig, 0, 5, 4, 20000, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    rig_crash(&rig);
    CHECK_INT(rig_open(&rig), 0);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 1);
    const uint64_t reads = memory_io_calls(rig.files, MEMORY_READ);
    CHECK(rig_verify(&rig, &listed[0]));
    CHECK_INT(memory_io_calls(rig.files, MEMORY_READ), reads);
    const struct mqx_message m = {.number = 5, .lsn = listed[0].lsn, .length = 20000,
                                  .record_length = listed[0].record_length};
    unsigned char small[101];
    small[100] = 0x5a;
    CHECK_INT(mqx_journal_fetch(&rig.store, &m, NULL, NULL, small, 100), 0);
    CHECK_INT(small[99], rig_byte(5, 99));
    CHECK_INT(small[100], 0x5a);
}

TEST(a_damaged_body_is_refused_with_file_and_offset)
{
    RIG(rig, 65536);
    struct mqx_append append;
    CHECK_INT(rig_put(&rig, 0, 5, 4, 5000, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    const struct mqx_message m = {.number = 5, .lsn = append.lsn, .length = 5000,
                                  .record_length = append.length};
    struct mqx_message other = m;
    unsigned char body[5000];
    CHECK_INT(mqx_journal_fetch(&rig.store, &m, NULL, NULL, body, sizeof body), 0);
    other.number = 6;
    CHECK_INT(mqx_journal_fetch(&rig.store, &other, NULL, NULL, body, 0), MQRC_OBJECT_DAMAGED);
    other = m;
    other.record_length += 8;
    CHECK_INT(mqx_journal_fetch(&rig.store, &other, NULL, NULL, body, 0), MQRC_OBJECT_DAMAGED);
    other = m;
    other.lsn = 1u << 30;
    CHECK_INT(mqx_journal_fetch(&rig.store, &other, NULL, NULL, body, 0), MQRC_OBJECT_DAMAGED);
    memory_io_flip_bit(rig.files, rig_segment_path(1), (append.lsn + 1000) * 8 + 3);
    CHECK_INT(mqx_journal_fetch(&rig.store, &m, NULL, NULL, body, sizeof body),
              MQRC_OBJECT_DAMAGED);
    char offset[40];
    snprintf(offset, sizeof offset, "0000000001.psj, offset %" PRIu64, append.lsn);
    CHECK(strstr(mqx_error_text(), offset) != NULL);
}

TEST(a_bad_sector_under_the_mapping_is_a_reason_code)
{
    RIG(rig, 65536);
    struct mqx_append append;
    CHECK_INT(rig_put(&rig, 0, 5, 4, 5000, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    const struct mqx_message m = {.number = 5, .lsn = append.lsn, .length = 5000,
                                  .record_length = append.length};
    const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = 1, .error = 5,
                                       .ops = 1u << MEMORY_POPULATE};
    memory_io_set_fault(rig.files, &fault);
    CHECK_INT(mqx_journal_fetch(&rig.store, &m, NULL, NULL, NULL, 0), MQRC_OBJECT_DAMAGED);
    CHECK_INT(mqx_journal_fetch(&rig.store, &m, NULL, NULL, NULL, 0), 0);
}

/* Leaves segments with nothing alive in them behind. */
static void fill_segments(struct rig *rig, uint64_t upto)
{
    uint64_t number = 1000;
    while (rig->store.region.journal->next_segment_no <= upto) {
        CHECK_INT(rig_put(rig, 0, number, 4, 3000, NULL), 0);
        CHECK_INT(rig_record(rig, 0, PS_REC_GET, number, NULL), 0);
        number += 1;
    }
    CHECK_INT(rig_flush(rig), 0);
}

TEST(retired_segments_become_spares_with_another_generation_and_are_used_again)
{
    RIG(rig, 32768);
    struct mqx_journal *journal = rig.store.region.journal;
    static const uint32_t nothing_alive[MQX_SEGMENT_MAX];
    fill_segments(&rig, 12);
    const uint64_t used = journal->used_bytes;
    CHECK_INT(mqx_journal_spare_count(&rig.store), 0);
    CHECK_INT(mqx_journal_retire(&rig.store, journal->batch_start, nothing_alive), 0);
    CHECK_INT(mqx_journal_spare_count(&rig.store), 8);
    CHECK(journal->used_bytes < used);
    CHECK(!memory_io_remove(rig.files, rig_segment_path(1)));
    const uint64_t files_made = memory_io_calls(rig.files, MEMORY_ALLOCATE);
    fill_segments(&rig, 20);
    CHECK_INT(memory_io_calls(rig.files, MEMORY_ALLOCATE), files_made);
    CHECK_INT(mqx_journal_spare_count(&rig.store), 0);
}

TEST(as_many_spares_are_kept_as_the_journal_uses_between_two_checkpoints)
{
    static const uint32_t nothing_alive[MQX_SEGMENT_MAX];
    static const struct { uint64_t limit; uint32_t kept; } cases[] = {{16, 5}, {24, 7}, {40, 8}};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(cases); i++) {
        RIG(rig, 32768);
        struct mqx_journal *journal = rig.store.region.journal;
        fill_segments(&rig, 12);
        journal->limit = cases[i].limit * 32768;
        CHECK(journal->used_bytes <= journal->limit);
        CHECK_INT(mqx_journal_interval(journal), cases[i].limit * 32768 / 4);
        CHECK_INT(mqx_journal_retire(&rig.store, journal->batch_start, nothing_alive), 0);
        CHECK_INT(mqx_journal_spare_count(&rig.store), cases[i].kept);
    }
}

TEST(a_live_message_keeps_its_segment_and_all_after_it)
{
    RIG(rig, 32768);
    struct mqx_journal *journal = rig.store.region.journal;
    static uint32_t alive[MQX_SEGMENT_MAX];
    fill_segments(&rig, 6);
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        alive[i] = journal->segment[i].number == 3;
    }
    CHECK_INT(mqx_journal_retire(&rig.store, journal->batch_start, alive), 0);
    CHECK(memory_io_bytes(rig.files, rig_segment_path(2), &(uint64_t){0}) == NULL);
    for (uint64_t number = 3; number <= 6; number++) {
        CHECK(memory_io_bytes(rig.files, rig_segment_path(number), &(uint64_t){0}) != NULL);
    }
}

TEST(a_mapping_of_a_recycled_segment_is_not_believed)
{
    RIG(rig, 32768);
    struct mqx_journal *journal = rig.store.region.journal;
    static const uint32_t nothing_alive[MQX_SEGMENT_MAX];
    struct mqx_append append;
    unsigned char body[3000];
    CHECK_INT(rig_put(&rig, 0, 5, 4, 3000, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    const struct mqx_message m = {.number = 5, .lsn = append.lsn, .length = 3000,
                                  .record_length = append.length};
    CHECK_INT(mqx_journal_fetch(&rig.store, &m, NULL, NULL, body, sizeof body), 0);
    fill_segments(&rig, 3);
    CHECK_INT(mqx_journal_fetch(&rig.store, &m, NULL, NULL, body, sizeof body), 0);
    const uint32_t maps = memory_io_map_count(rig.files);
    CHECK_INT(mqx_journal_retire(&rig.store, journal->batch_start, nothing_alive), 0);
    CHECK_INT(mqx_journal_fetch(&rig.store, &m, NULL, NULL, body, sizeof body),
              MQRC_OBJECT_DAMAGED);
    CHECK_INT(memory_io_map_count(rig.files), maps - 1); /* and it is let go */
}

TEST(at_most_64_segments_are_mapped_at_a_time)
{
    RIG(rig, 32768);
    struct mqx_append appends[80];
    rig.store.region.journal->limit = 1u << 30;
    for (uint32_t i = 0; i < 80; i++) {
        CHECK_INT(rig_put(&rig, 0, i + 1, 4, 20000, &appends[i]), 0);
    }
    CHECK_INT(rig_flush(&rig), 0);
    const uint32_t before = memory_io_map_count(rig.files);
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < 80; i++) {
            const struct mqx_message m = {.number = i + 1, .lsn = appends[i].lsn, .length = 20000,
                                          .record_length = appends[i].length};
            CHECK_INT(mqx_journal_fetch(&rig.store, &m, NULL, NULL, NULL, 0), 0);
            CHECK(memory_io_map_count(rig.files) - before <= MQX_MAPPED_MAX);
        }
    }
}

TEST(puts_stop_at_the_limit_while_gets_and_commits_go_on)
{
    RIG(rig, 32768);
    struct mqx_journal *journal = rig.store.region.journal;
    const uint32_t unit = rig_unit(&rig);
    int status = 0;
    journal->limit = 4 * 32768;
    uint64_t number = 1;
    CHECK_INT(rig_put(&rig, unit, number++, 4, 1000, NULL), 0);
    while (status == 0) {
        status = rig_put(&rig, 0, number++, 4, 1000, NULL);
        CHECK(number < 1000);
    }
    CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
    const uint64_t tail = journal->tail;
    CHECK_INT(rig_put(&rig, 0, number, 4, 1000, NULL), MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(journal->tail, tail); /* refused before anything was written */
    CHECK(journal->used_bytes <= journal->limit);
    for (uint64_t i = 2; i < 40; i++) {
        CHECK_INT(rig_record(&rig, 0, PS_REC_GET, i, NULL), 0);
    }
    CHECK_INT(rig_commit(&rig, unit, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    CHECK(journal->used_bytes <= journal->limit); /* the reserve was enough */
}

TEST(a_full_disk_stops_puts_and_space_lets_them_go_on)
{
    RIG(rig, 32768);
    int status = 0;
    uint64_t number = 1;
    memory_io_set_space(rig.files, 100000, UINT64_MAX);
    while (status == 0) {
        status = rig_put(&rig, 0, number++, 4, 1000, NULL);
        CHECK(number < 1000);
    }
    CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(rig_record(&rig, 0, PS_REC_GET, 1, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    memory_io_set_space(rig.files, UINT64_MAX, UINT64_MAX);
    CHECK_INT(rig_put(&rig, 0, number, 4, 1000, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    rig_crash(&rig);
    CHECK_INT(rig_open(&rig), 0);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), number - 2);
}

TEST(spares_are_made_ahead_within_the_limit)
{
    RIG(rig, 65536);
    struct mqx_journal *journal = rig.store.region.journal;
    CHECK(mqx_journal_spare_wanted(&rig.store));
    CHECK_INT(mqx_journal_make_spare(&rig.store, true), 0);
    CHECK_INT(mqx_journal_spare_count(&rig.store), 1);
    CHECK(!mqx_journal_spare_wanted(&rig.store));
    journal->limit = journal->used_bytes;
    CHECK_INT(mqx_journal_make_spare(&rig.store, true), MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(mqx_journal_spare_count(&rig.store), 1);
    rig_crash(&rig);
    CHECK_INT(rig_open(&rig), 0); /* and they are found again */
    CHECK_INT(mqx_journal_spare_count(&rig.store), 1);
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
        RIG(rig, 32768);
        CHECK_INT(mqx_journal_make_spare(&rig.store, true), 0);
        struct mqx_journal *journal = rig.store.region.journal;
        for (uint64_t number = 1; number <= 6; number++) {
            CHECK_INT(rig_put(&rig, 0, number, 4, 3500, NULL), 0);
        }
        CHECK_INT(rig_flush(&rig), 0);
        leaving = (struct leaving){.at = at};
        memory_io_set_hook(rig.files, leave, &leaving);
        volatile int status = 0;
        if (setjmp(leaving.out) == 0) {
            for (uint64_t number = 7; number <= 12 && status == 0; number++) {
                status = rig_put(&rig, 0, number, 4, 3500, NULL);
            }
        }
        memory_io_set_hook(rig.files, NULL, NULL);
        CHECK_INT(status, 0);
        repair(&rig.store.region, &journal->ring_lock);
        repair(&rig.store.region, &journal->roll_lock);
        repair(&rig.store.region, &journal->flush_lock);
        CHECK_INT(rig_put(&rig, 0, 13, 4, 20000, NULL), 0);
        CHECK_INT(rig_flush(&rig), 0);
        rig_crash(&rig);
        CHECK_INT(rig_open(&rig), 0);
        const uint32_t count = rig_list(&rig, RIG_QUEUE, listed);
        CHECK(count >= 7);
        for (uint32_t i = 0; i < count; i++) {
            CHECK(rig_verify(&rig, &listed[i]));
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

TEST_MAIN()
