/*
 * test_group_commit.c - proves group_commit.h: nothing counts as durable before it was flushed, one
 * write makes many records durable, a dead leader is replaced, a failure stops the store.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "journal/journal_private.h"
#include "penstock/engine.h"

#include <pthread.h>

static struct psc_message listed[FIXTURE_LISTED_MAX];
#define FIXTURE FIXTURE_OF

static uint32_t count_events(const struct memory_trace *trace, enum memory_event_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        count += trace->events[i].kind == kind;
    }
    return count;
}

TEST(a_flush_is_one_write_with_data_sync_however_many_records_it_carries)
{
    FIXTURE(fixture, 262144);
    struct mqx_append append = {0};
    CHECK_INT(fixture_flush(&fixture), 0);
    memory_io_record(fixture.files, FIXTURE_HOME);
    for (uint64_t number = 1; number <= 50; number++) {
        CHECK_INT(fixture_put(&fixture, 0, number, 4, 700, &append), 0);
    }
    CHECK(fixture.store.region.journal->durable < append.end_lsn);
    CHECK_INT(mqx_flush_to(&fixture.store, append.end_lsn), 0);
    CHECK(fixture.store.region.journal->durable >= append.end_lsn);
    CHECK_INT(mqx_flush_to(&fixture.store, append.end_lsn), 0); /* nothing to do */
    TAKE_TRACE(trace, fixture);
    CHECK_INT(trace->event_count, 1);
    CHECK_INT(trace->events[0].kind, MEMORY_EV_DWRITE);
    CHECK_INT(trace->events[0].offset % MQX_PAGE_SIZE, 0);
    CHECK_INT(trace->events[0].size % MQX_PAGE_SIZE, 0);
    CHECK(trace->events[0].size < 50 * 1100);
}

TEST(no_page_is_written_twice_once_it_is_durable)
{
    FIXTURE(fixture, 1u << 20);
    uint64_t end = 0;
    CHECK_INT(fixture_flush(&fixture), 0);
    memory_io_record(fixture.files, FIXTURE_HOME);
    for (uint64_t number = 1; number <= 20; number++) {
        CHECK_INT(fixture_put(&fixture, 0, number, 4, (uint32_t)(number * 211 % 5000), NULL), 0);
        CHECK_INT(fixture_flush(&fixture), 0);
        CHECK_INT(number % 5 == 0 ? mqx_flush_mark(&fixture.store) : 0, 0);
    }
    TAKE_TRACE(trace, fixture);
    CHECK_INT(count_events(trace, MEMORY_EV_DWRITE), trace->event_count);
    for (uint32_t i = 0; i < trace->event_count; i++) {
        CHECK(trace->events[i].offset >= end);
        end = trace->events[i].offset + trace->events[i].size;
    }
}

TEST(each_batch_carries_the_mark_of_the_ones_before_it)
{
    FIXTURE(fixture, 131072);
    uint64_t size = 0, durable = fixture.store.region.journal->durable;
    for (uint64_t number = 1; number <= 5; number++) {
        const uint64_t start = fixture.store.region.journal->batch_start;
        CHECK_INT(fixture_put(&fixture, 0, number, 4, 100, NULL), 0);
        CHECK_INT(fixture_flush(&fixture), 0);
        const uint8_t *bytes = memory_io_bytes(fixture.files, fixture_segment_path(1), &size);
        const struct psj_batch *batch = (const void *)(bytes + start);
        CHECK_INT(batch->magic, PS_BATCH_MAGIC);
        CHECK_INT(batch->lsn, start);
        CHECK_INT(batch->durable_lsn, durable);
        durable = fixture.store.region.journal->durable;
    }
}

TEST(a_mark_page_covers_the_newest_batch_and_is_written_once)
{
    FIXTURE(fixture, 131072);
    struct mqx_journal *journal = fixture.store.region.journal;
    uint64_t size = 0;
    CHECK_INT(fixture_flush(&fixture), 0);
    const uint64_t covered = journal->durable;
    CHECK_INT(mqx_flush_mark(&fixture.store), 0);
    const uint8_t *bytes = memory_io_bytes(fixture.files, fixture_segment_path(1), &size);
    const struct psj_batch *batch = (const void *)(bytes + covered);
    CHECK_INT(batch->magic, PS_BATCH_MAGIC);
    CHECK_INT(batch->record_count, 0);
    CHECK_INT(batch->length, sizeof *batch);
    CHECK_INT(batch->durable_lsn, covered);
    CHECK_INT(journal->marked, journal->durable);
    const uint64_t writes = memory_io_calls(fixture.files, MEMORY_WRITE);
    CHECK_INT(mqx_flush_mark(&fixture.store), 0);
    CHECK_INT(memory_io_calls(fixture.files, MEMORY_WRITE), writes);
}

TEST(bytes_streamed_to_make_room_are_flushed_with_their_file_before_anything_is_durable)
{
    FIXTURE(fixture, 4u << 20);
    struct mqx_journal *journal = fixture.store.region.journal;
    struct mqx_append append = {0};
    CHECK_INT(fixture_flush(&fixture), 0);
    memory_io_record(fixture.files, FIXTURE_HOME);
    for (uint64_t number = 1; journal->unsynced == 0; number++) { /* the ring has 256 KiB */
        CHECK_INT(fixture_put(&fixture, 0, number, 4, 20000, &append), 0);
        CHECK(number < 100);
    }
    CHECK(journal->durable < journal->written);
    CHECK_INT(mqx_flush_to(&fixture.store, append.end_lsn), 0);
    CHECK_INT(journal->unsynced, 0);
    CHECK_INT(journal->durable, journal->written);
    CHECK_INT(fixture_put(&fixture, 0, 999, 4, 100, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    TAKE_TRACE(trace, fixture);
    CHECK_INT(count_events(trace, MEMORY_EV_SYNC), 1);
    CHECK(count_events(trace, MEMORY_EV_WRITE) >= 1);
    CHECK_INT(trace->events[trace->event_count - 1].kind, MEMORY_EV_DWRITE);
    CHECK_INT(trace->events[trace->event_count - 2].kind, MEMORY_EV_SYNC);
}

TEST(the_first_write_in_a_segment_that_is_continued_is_synced_and_alone)
{
    FIXTURE(fixture, 1u << 20);
    struct mqx_journal *journal;
    CHECK_INT(fixture_end(&fixture), 0);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK(fixture.report.clean);
    journal = fixture.store.region.journal;
    memory_io_record(fixture.files, FIXTURE_HOME);
    for (uint64_t number = 1; journal->flushes < 3; number++) { /* streamed, not flushed */
        CHECK_INT(fixture_put(&fixture, 0, number, 4, 20000, NULL), 0);
        CHECK(number < 100);
    }
    TAKE_TRACE(trace, fixture);
    CHECK_INT(trace->events[0].kind, MEMORY_EV_DWRITE);
    CHECK_INT(trace->events[1].kind, MEMORY_EV_WRITE);
}

/* ---- failures ---- */

static void fail_with(struct journal_fixture *fixture, enum memory_fault_kind kind, uint32_t ops)
{
    const struct memory_fault fault = {.kind = kind, .at = 1, .ops = ops, .error = 5};
    memory_io_set_fault(fixture->files, &fault);
}

TEST(the_first_failed_write_stops_the_store_for_good_and_is_not_tried_again)
{
    static const enum memory_fault_kind kinds[] = {MEMORY_FAULT_ERROR, MEMORY_FAULT_FLUSH};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(kinds); i++) {
        FIXTURE(fixture, 131072);
        struct mqx_append append;
        CHECK_INT(fixture_flush(&fixture), 0);
        CHECK_INT(fixture_put(&fixture, 0, 1, 4, 100, &append), 0);
        fail_with(&fixture, kinds[i], 1u << MEMORY_WRITE);
        CHECK_INT(mqx_flush_to(&fixture.store, append.end_lsn), MQRC_CONNECTION_BROKEN);
        CHECK_INT(memory_io_fault_strikes(fixture.files), 1);
        CHECK(fixture.store.region.journal->durable < append.end_lsn);
        const uint64_t writes = memory_io_calls(fixture.files, MEMORY_WRITE);
        CHECK_INT(mqx_flush_to(&fixture.store, append.end_lsn), MQRC_CONNECTION_BROKEN);
        CHECK_INT(fixture_put(&fixture, 0, 2, 4, 100, &append), MQRC_CONNECTION_BROKEN);
        CHECK_INT(mqx_flush_mark(&fixture.store), MQRC_CONNECTION_BROKEN);
        CHECK_INT(memory_io_calls(fixture.files, MEMORY_WRITE), writes);
        memory_io_set_fault(fixture.files, NULL);
    }
}

TEST(a_failed_sync_of_streamed_bytes_stops_the_store)
{
    FIXTURE(fixture, 4u << 20);
    struct mqx_append append = {0};
    for (uint64_t number = 1; fixture.store.region.journal->unsynced == 0; number++) {
        CHECK_INT(fixture_put(&fixture, 0, number, 4, 20000, &append), 0);
    }
    fail_with(&fixture, MEMORY_FAULT_FLUSH, 1u << MEMORY_SYNC);
    CHECK_INT(mqx_flush_to(&fixture.store, append.end_lsn), MQRC_CONNECTION_BROKEN);
    CHECK(fixture.store.region.journal->durable < append.end_lsn);
}

TEST(every_failing_call_of_a_roll_gives_a_reason_and_loses_nothing_acknowledged)
{
    uint64_t strikes = 1;
    uint64_t at;
    for (at = 1; strikes != 0 && at < 400; at++) {
        FIXTURE(fixture, 32768);
        uint64_t acked = 0;
        const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = at, .error = 28};
        CHECK_INT(fixture_flush(&fixture), 0);
        memory_io_set_fault(fixture.files, &fault);
        int status = 0;
        for (uint64_t number = 1; number <= 12 && status == 0; number++) {
            status = fixture_put(&fixture, 0, number, 4, 3500, NULL);
            status = status == 0 ? fixture_flush(&fixture) : status;
            acked = status == 0 ? number : acked;
        }
        strikes = memory_io_fault_strikes(fixture.files);
        memory_io_set_fault(fixture.files, NULL);
        CHECK(status == 0 || status == MQRC_CONNECTION_BROKEN ||
              status == MQRC_STORAGE_MEDIUM_FULL || status == MQRC_ENVIRONMENT_ERROR);
        fixture_crash(&fixture);
        CHECK_INT(fixture_open(&fixture), 0);
        const uint32_t count = fixture_list(&fixture, FIXTURE_QUEUE, listed);
        CHECK(count >= acked);
        for (uint32_t i = 0; i < count; i++) {
            CHECK_INT(listed[i].number, i + 1);
            CHECK(fixture_verify(&fixture, &listed[i]));
        }
    }
    CHECK(at > 20);
    CHECK(at < 400);
}

/* ---- dead leaders ---- */

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

static void repair(struct mqx_region *region, struct mqx_lock *lock)
{
    if (lock->holder == region->process + 1) {
        mqx_undo_rollback(region, lock);
        mqx_lock_drop(region, lock);
    }
}

TEST(a_successor_of_a_dead_leader_writes_the_same_batches)
{
    static struct leaving leaving;
    static uint64_t at;
    for (at = 1; at < 5; at++) {
        FIXTURE(fixture, 131072);
        struct mqx_append append = {0};
        CHECK_INT(fixture_put(&fixture, 0, 1, 4, 100, &append), 0);
        leaving = (struct leaving){.at = at};
        memory_io_set_hook(fixture.files, leave, &leaving);
        if (setjmp(leaving.out) == 0) {
            CHECK_INT(mqx_flush_to(&fixture.store, append.end_lsn), 0);
        }
        memory_io_set_hook(fixture.files, NULL, NULL);
        repair(&fixture.store.region, &fixture.store.region.journal->ring_lock);
        repair(&fixture.store.region, &fixture.store.region.journal->flush_lock);
        CHECK_INT(fixture_put(&fixture, 0, 2, 4, 100, &append), 0);
        CHECK_INT(mqx_flush_to(&fixture.store, append.end_lsn), 0);
        CHECK_INT(fixture.store.region.journal->sealed_count, 0);
        fixture_crash(&fixture);
        CHECK_INT(fixture_open(&fixture), 0);
        CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 2);
        if (leaving.calls < at) {
            break;
        }
    }
    CHECK(at > 2);
}

TEST(batches_that_a_dead_leader_had_published_are_never_written_again)
{
    FIXTURE(fixture, 131072);
    struct mqx_journal *journal = fixture.store.region.journal;
    struct mqx_append append = {0};
    CHECK_INT(fixture_flush(&fixture), 0);
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 100, &append), 0);
    CHECK_INT(mqx_lock_take(&fixture.store.region, &journal->ring_lock), 0);
    CHECK_INT(mqx_journal_seal(&fixture.store), 0);
    mqx_undo_commit(&journal->ring_lock);
    mqx_lock_drop(&fixture.store.region, &journal->ring_lock);
    mqx_journal_set_durable(journal, journal->batch_start); /* and died right after that */
    const uint64_t writes = memory_io_calls(fixture.files, MEMORY_WRITE);
    CHECK_INT(fixture_put(&fixture, 0, 2, 4, 100, &append), 0);
    memory_io_record(fixture.files, FIXTURE_HOME);
    CHECK_INT(mqx_flush_to(&fixture.store, append.end_lsn), 0);
    TAKE_TRACE(trace, fixture);
    CHECK_INT(memory_io_calls(fixture.files, MEMORY_WRITE), writes + 1);
    CHECK_INT(trace->events[0].size, MQX_PAGE_SIZE);
    CHECK_INT(trace->events[0].offset, append.lsn - sizeof(struct psj_batch));
}

/* ---- threads ---- */

struct producer {
    struct journal_fixture *fixture;
    uint64_t first;
    uint32_t count;
    bool ok;
};

static void *produce(void *arg)
{
    struct producer *producer = arg;
    producer->ok = true;
    for (uint32_t i = 0; i < producer->count && producer->ok; i++) {
        struct mqx_append append;
        producer->ok =
            fixture_put(producer->fixture, 0, producer->first + i, (int)(i % 10), i % 600,
                        &append) == 0 &&
            mqx_flush_to(&producer->fixture->store, append.end_lsn) == 0 &&
            mqx_load_acquire(&producer->fixture->store.region.journal->durable) >= append.end_lsn;
    }
    return NULL;
}

TEST(threads_that_commit_at_once_share_flushes_and_lose_nothing)
{
    enum { THREADS = 8, EACH = 300 };
    FIXTURE(fixture, 262144);
    pthread_t threads[THREADS];
    struct producer producers[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        producers[i] = (struct producer){&fixture, 1 + i * 10000, EACH, false};
        CHECK_INT(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        CHECK(producers[i].ok);
    }
    CHECK(fixture.store.region.journal->flushes <= THREADS * EACH + 1);
    CHECK_INT(fixture.store.region.journal->flushed_records, THREADS * EACH + 1);
    fixture_crash(&fixture);
    CHECK_INT(fixture_open(&fixture), 0);
    const uint32_t count = fixture_list(&fixture, FIXTURE_QUEUE, listed);
    CHECK_INT(count, THREADS * EACH);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(fixture_verify(&fixture, &listed[i]));
    }
}

struct leader { /* a thread that has the flush lock and does not flush, as one that is stopped */
    struct mqx_region *region;
    pthread_t thread;
    uint32_t step;
};

static void *lead_and_stop(void *arg)
{
    struct leader *leader = arg;
    struct mqx_lock *lock = &leader->region->journal->flush_lock;
    CHECK_INT(mqx_lock_take(leader->region, lock), 0);
    __atomic_store_n(&leader->step, 1u, __ATOMIC_RELEASE);
    while (__atomic_load_n(&leader->step, __ATOMIC_ACQUIRE) == 1) {
        usleep(1000);
    }
    mqx_lock_drop(leader->region, lock);
    return NULL;
}

static uint32_t long_waits; /* atomic */

static void count_long_wait(struct mqx_region *region, struct mqx_lock *lock, uint64_t since_us)
{
    CHECK(lock == &region->journal->flush_lock && since_us != 0);
    mqx_add_relaxed(&long_waits, 1u);
}

static void *end_leader(void *arg)
{
    struct leader *leader = arg;
    for (int i = 0; i < 60000 && mqx_load_relaxed(&long_waits) < 3; i++) {
        usleep(1000);
    }
    __atomic_store_n(&leader->step, 2u, __ATOMIC_RELEASE);
    return NULL;
}

TEST(behind_a_stopped_leader_only_what_is_not_decided_is_interrupted_and_who_waits_is_heard)
{
    FIXTURE(fixture, 262144);
    struct mqx_append append;
    pthread_t ender;
    struct leader leader = {.region = &fixture.store.region};
    CHECK_INT(fixture_put(&fixture, 0, 1, 1, 100, &append), 0);
    long_waits = 0;
    fixture.store.region.long_wait = count_long_wait;
    CHECK_INT(pthread_create(&leader.thread, NULL, lead_and_stop, &leader), 0);
    for (int i = 0; i < 60000 && __atomic_load_n(&leader.step, __ATOMIC_ACQUIRE) != 1; i++) {
        usleep(1000);
    }
    mqx_interrupt_allow(true);
    CHECK_INT(mqx_flush_to(&fixture.store, append.end_lsn), MQE_INTERRUPTED);
    CHECK_INT(mqx_load_relaxed(&long_waits), 1);
    mqx_interrupt_allow(true);
    CHECK_INT(mqx_flush_room(&fixture.store), MQE_INTERRUPTED);
    CHECK_INT(pthread_create(&ender, NULL, end_leader, &leader), 0);
    mqx_interrupt_allow(true);
    mqx_flush_is_decided();
    CHECK_INT(mqx_flush_to(&fixture.store, append.end_lsn), MQX_OK);
    CHECK(mqx_load_relaxed(&long_waits) >= 3);
    CHECK_INT(pthread_join(ender, NULL), 0);
    CHECK_INT(pthread_join(leader.thread, NULL), 0);
    fixture.store.region.long_wait = NULL;
}

/* What frees the journal has waited, and was interrupted. */
static int interrupted_freeing(struct mqx_store *store)
{
    CHECK(store->free_journal == interrupted_freeing);
    return mqx_interrupt_take(0) ? MQE_INTERRUPTED : MQX_OK;
}

TEST(an_append_that_was_interrupted_while_it_freed_the_journal_waits_for_nothing_else)
{
    FIXTURE(fixture, 65536);
    struct mqx_journal *journal = fixture.store.region.journal;
    CHECK_INT(fixture_put(&fixture, 0, 1, 1, 100, NULL), 0);
    const uint64_t writes = memory_io_calls(fixture.files, MEMORY_WRITE);
    fixture.store.free_journal = interrupted_freeing;
    mqx_store_relaxed(&journal->disk_full, 1u);
    CHECK(mqx_journal_is_out_of_files(&fixture.store));
    mqx_interrupt_allow(true);
    CHECK_INT(mqx_journal_wait_for_room(&fixture.store, 32, MQX_NEED_SEGMENT), MQE_INTERRUPTED);
    CHECK_INT(memory_io_calls(fixture.files, MEMORY_WRITE), writes);
    mqx_interrupt_allow(false);
    fixture.store.free_journal = NULL;
}

TEST(a_queue_of_batches_that_cannot_be_true_stops_the_store_and_writes_nothing)
{
    for (uint32_t what = 0; what < 4; what++) {
        FIXTURE(fixture, 65536);
        struct mqx_journal *journal = fixture.store.region.journal;
        CHECK_INT(fixture_put(&fixture, 0, 1, 4, 100, NULL), 0);
        CHECK_INT(mqx_lock_take(&fixture.store.region, &journal->ring_lock), 0);
        CHECK_INT(mqx_journal_seal(&fixture.store), 0);
        mqx_undo_commit(&journal->ring_lock);
        mqx_lock_drop(&fixture.store.region, &journal->ring_lock);
        CHECK_INT(journal->sealed_count, 1);
        struct mqx_sealed *sealed = &journal->sealed[journal->sealed_first];
        switch (what) {
        case 0: journal->sealed_first = MQX_SEALED_MAX; break;
        case 1: journal->sealed_count = MQX_SEALED_MAX + 1; break;
        case 2: sealed->segment = MQX_SEGMENT_MAX; break;
        default: sealed->start += 8; break;
        }
        const uint64_t writes = memory_io_calls(fixture.files, MEMORY_WRITE);
        CHECK(mqx_flush_to(&fixture.store, journal->batch_start) != 0);
        CHECK_INT(fixture.store.region.header->stopped, MQX_STOP_BROKEN);
        CHECK_INT(memory_io_calls(fixture.files, MEMORY_WRITE), writes);
    }
}

TEST_MAIN()
