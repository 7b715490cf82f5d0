/*
 * test_leadership.c - claims of leadership.h: what keeps one process from writing the journal stays
 * in that process; a failed disk stops everybody, whoever meets it; the stop says why.
 *
 * Processes are numbers of the files in memory. The sufferer is the first to attach; the helper has
 * a maintenance thread, as every attached process has.
 */
#include "fixtures/store_fixture.h"

#include "journal/leadership.h"
#include "process/maintenance.h"

static struct memory_io *files;
static struct fixture_process sufferer;
static struct fixture_process helper;
static struct mqx_maintenance *thread; /* of the helper; NULL: it has none */
static struct fixture_queue queue;

enum { AN_INSTANT_US = 100000 };

static void begin(bool with_helper)
{
    memory_io_free(files);
    files = fixture_new();
    mqx_leadership_patience_us = 5000000;
    fixture_attach(files, &sufferer);
    CHECK_INT(fixture_define(&sufferer, "Q", NULL, &queue), 0);
    thread = NULL;
    if (with_helper) {
        fixture_attach(files, &helper);
        CHECK_INT(mqx_maintenance_start(helper.store, &thread), 0);
    }
}

static void fail_sufferer(enum memory_fault_kind kind, uint32_t ops, int error)
{
    const struct memory_fault fault = {.kind = kind, .at = 1, .for_ever = true, .ops = ops,
                                       .error = error, .pid = sufferer.pid};
    memory_io_set_fault(files, &fault);
}

static void end(bool running)
{
    uint64_t ignored = 0;
    memory_io_set_fault(files, NULL);
    CHECK_INT(mqx_region_stopped(&sufferer.store->region) == MQX_RUNNING, running);
    if (thread != NULL) {
        mqx_maintenance_stop(thread);
        CHECK_INT(fixture_detach(&helper, &ignored), 0);
    }
    CHECK_INT(fixture_detach(&sufferer, &ignored), 0);
}

static int put_durably(void)
{
    return fixture_put(&sufferer, NULL, queue, true, "a message", -1);
}

static const struct mqx_object *object(void)
{
    return mqx_object(&sufferer.store->region, queue.slot);
}

/* ---- with another process ---- */

TEST(a_write_that_this_process_may_not_make_is_made_by_another_one)
{
    static const int errors[] = {EFBIG, EBADF};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(errors); i++) {
        begin(true);
        fail_sufferer(MEMORY_FAULT_ERROR, 1u << MEMORY_WRITE, errors[i]);
        for (int n = 0; n < 20; n++) {
            CHECK_INT(put_durably(), 0);
        }
        CHECK(memory_io_fault_strikes(files) >= 20);
        CHECK_INT(object()->present, 20);
        const struct mqx_journal *journal = sufferer.store->region.journal;
        CHECK_INT(journal->written, journal->durable);
        end(true);
    }
}

TEST(a_segment_that_this_process_cannot_open_is_left_and_written_by_another_one)
{
    static const int errors[] = {EMFILE, ENFILE, EACCES, ENOMEM};
    static char body[60000];
    memset(body, 'b', sizeof body - 1);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(errors); i++) {
        begin(true);
        const uint64_t number = sufferer.store->region.journal->next_segment_no;
        fail_sufferer(MEMORY_FAULT_ERROR, 1u << MEMORY_OPEN, errors[i]);
        for (int n = 0; n < 40; n++) {
            CHECK_INT(fixture_put(&sufferer, NULL, queue, true, body, -1), 0);
        }
        CHECK(sufferer.store->region.journal->next_segment_no > number + 1);
        CHECK_INT(object()->present, 40);
        end(true);
    }
}

TEST(a_failed_disk_stops_everybody_whatever_its_errno_and_says_so)
{
    static const struct {
        enum memory_fault_kind kind;
        int error;
    } faults[] = {
        {MEMORY_FAULT_ERROR, EIO},    {MEMORY_FAULT_ERROR, ENOSPC}, {MEMORY_FAULT_ERROR, ENOMEM},
        {MEMORY_FAULT_ERROR, EDQUOT}, {MEMORY_FAULT_FLUSH, EIO},    {MEMORY_FAULT_FLUSH, EDQUOT},
    };
    for (size_t i = 0; i < MQX_ARRAY_COUNT(faults); i++) {
        char cause[MQX_STOP_TEXT], expected[64];
        begin(true);
        fail_sufferer(faults[i].kind, 1u << MEMORY_WRITE, faults[i].error);
        CHECK_INT(put_durably(), MQRC_CONNECTION_BROKEN);
        CHECK_INT(memory_io_fault_strikes(files), 1);
        CHECK(mqx_region_stop_cause(&helper.store->region, cause));
        (void)snprintf(expected, sizeof expected, "(errno %d), in process %d (", faults[i].error,
                       (int)getpid());
        CHECK(strncmp(cause, "writing the journal: ", 21) == 0);
        CHECK(strstr(cause, expected) != NULL);
        end(false);
    }
}

TEST(a_mark_page_that_this_process_cannot_write_is_refused_and_stops_nobody)
{
    begin(false);
    CHECK_INT(put_durably(), 0);
    fail_sufferer(MEMORY_FAULT_ERROR, 1u << MEMORY_WRITE, EFBIG);
    CHECK_INT(mqx_flush_mark(sufferer.store), MQRC_STORAGE_MEDIUM_FULL);
    CHECK(strstr(mqx_error_text(), "writing the journal") != NULL);
    memory_io_set_fault(files, NULL);
    CHECK_INT(mqx_flush_mark(sufferer.store), 0);
    end(true);
}

/* ---- without one ---- */

TEST(a_decided_unit_that_nobody_else_can_write_stops_the_queue_manager_at_once)
{
    char cause[MQX_STOP_TEXT];
    begin(false);
    fail_sufferer(MEMORY_FAULT_ERROR, 1u << MEMORY_WRITE, EFBIG);
    CHECK_INT(put_durably(), MQRC_CONNECTION_BROKEN);
    CHECK(strstr(mqx_error_text(), "no other process writes the journal") != NULL);
    CHECK_INT(memory_io_fault_strikes(files), 1);
    CHECK(mqx_region_stop_cause(&sufferer.store->region, cause));
    CHECK(strstr(cause, "(errno 27)") != NULL);
    end(false);
}

TEST(a_decided_unit_that_nobody_writes_in_time_stops_the_queue_manager)
{
    begin(false);
    fixture_attach(files, &helper); /* has no maintenance thread: rings in vain */
    mqx_leadership_patience_us = AN_INSTANT_US;
    fail_sufferer(MEMORY_FAULT_ERROR, 1u << MEMORY_WRITE, EFBIG);
    CHECK_INT(put_durably(), MQRC_CONNECTION_BROKEN);
    CHECK(mqx_load_relaxed(&mqx_process_slot(&helper.store->region,
                                             helper.store->region.process)->doorbell) > 1);
    uint64_t ignored = 0;
    CHECK_INT(fixture_detach(&helper, &ignored), 0);
    end(false);
}

TEST(what_is_not_decided_is_refused_and_works_once_the_failure_is_over)
{
    static char body[60000];
    int status = 0, done = 0;
    memset(body, 'b', sizeof body - 1);
    begin(false);
    fail_sufferer(MEMORY_FAULT_ERROR, 1u << MEMORY_OPEN, EMFILE);
    for (; done < 100 && status == 0; done += status == 0) {
        status = fixture_put(&sufferer, NULL, queue, true, body, -1);
    }
    CHECK_INT(status, MQRC_RESOURCE_PROBLEM);
    CHECK(strstr(mqx_error_text(), "Too many open files") != NULL);
    CHECK_INT(object()->present, done);
    memory_io_set_fault(files, NULL);
    CHECK_INT(fixture_put(&sufferer, NULL, queue, true, body, -1), 0);
    CHECK_INT(object()->present, done + 1);
    end(true);
}

/* ---- the request ---- */

TEST(a_request_is_taken_by_one_process_and_does_no_harm_when_it_is_nonsense)
{
    uint64_t lsn = 0;
    begin(false);
    CHECK(!mqx_journal_lead_for_others(sufferer.store));
    CHECK(!mqx_leadership_take_request(sufferer.store, &lsn));
    mqx_store_release(&sufferer.store->region.journal->lead_wanted, UINT64_C(77));
    CHECK(mqx_leadership_take_request(sufferer.store, &lsn));
    CHECK_INT(lsn, 77);
    CHECK(!mqx_leadership_take_request(sufferer.store, &lsn));
    mqx_store_release(&sufferer.store->region.journal->lead_wanted, UINT64_MAX - 1);
    CHECK(mqx_journal_lead_for_others(sufferer.store));
    CHECK_INT(put_durably(), 0);
    end(true);
}

TEST(which_failure_it_was_is_known_to_the_log)
{
    char text[200];
    begin(true);
    CHECK(!mqx_journal_cannot_lead(sufferer.store, text, sizeof text));
    fail_sufferer(MEMORY_FAULT_ERROR, 1u << MEMORY_WRITE, EFBIG);
    CHECK_INT(put_durably(), 0);
    CHECK(mqx_journal_cannot_lead(sufferer.store, text, sizeof text));
    CHECK(strstr(text, "writing the journal") != NULL);
    CHECK(!mqx_journal_cannot_lead(helper.store, text, sizeof text));
    end(true);
}

TEST(the_fixture_is_removed)
{
    memory_io_free(files);
    files = NULL;
}

TEST_MAIN()
