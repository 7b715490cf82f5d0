/* Claims of stop_flag.c: a stop is seen by everybody, wakes every sleeper, and its worse reason
 * wins. */
#include "fixtures/region_fixture.h"

#include "os/futex.h"

TEST(a_stop_is_seen_by_all_and_the_worse_reason_wins)
{
    region_begin();
    uint32_t slot = 0;
    CHECK_INT(mqx_slot_take(&region, MQX_AREA_CONTEXTS, NULL, &slot), 0);
    CHECK_INT(mqx_region_stop_reason(&region), 0);
    mqx_region_stop(&region, MQX_STOP_ENDED);
    CHECK_INT(mqx_region_stop_reason(&region), MQRC_Q_MGR_STOPPING);
    CHECK_INT(mqx_context(&region, slot)->wait_word, 1);
    region.ending = true; /* the process that runs the end continues */
    CHECK_INT(mqx_region_stop_reason(&region), 0);
    mqx_region_stop(&region, MQX_STOP_BROKEN);
    CHECK_INT(mqx_region_stop_reason(&region), MQRC_CONNECTION_BROKEN);
    mqx_region_stop(&region, MQX_STOP_ENDED);
    CHECK_INT(mqx_region_stop_reason(&region), MQRC_CONNECTION_BROKEN);
}

struct sleeper {
    uint32_t *word;
    int result;
};

static void *sleep_on(void *arg)
{
    struct sleeper *sleeper = arg;
    sleeper->result = mqx_futex_wait(sleeper->word, 0, 30 * UINT64_C(1000000));
    return NULL;
}

TEST(a_stop_wakes_contexts_flush_waiters_and_the_doorbells_of_attached_processes)
{
    uint32_t slot = 0;
    pthread_t threads[3];
    region_begin();
    CHECK_INT(mqx_slot_take(&region, MQX_AREA_CONTEXTS, NULL, &slot), 0);
    region.header->process[5].state = MQX_PROC_LIVE;
    struct sleeper sleepers[3] = {
        {.word = &mqx_context(&region, slot)->wait_word, .result = -1},
        {.word = &region.journal->flush_word, .result = -1},
        {.word = &region.header->process[5].doorbell, .result = -1},
    };
    for (int i = 0; i < 3; i++) {
        CHECK_INT(pthread_create(&threads[i], NULL, sleep_on, &sleepers[i]), 0);
    }
    mqx_region_stop(&region, MQX_STOP_ENDED);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
        CHECK_INT(sleepers[i].result, 0);
        CHECK_INT(*sleepers[i].word, 1);
    }
    CHECK_INT(region.header->process[6].doorbell, 0);
}

TEST(a_stop_says_which_call_failed_with_which_errno_in_which_process)
{
    char text[MQX_STOP_TEXT], expected[MQX_STOP_TEXT];
    region_begin();
    CHECK(!mqx_region_stop_cause(&region, text));
    CHECK_STR(text, "");
    mqx_region_stop_because(&region, "writing the journal", EIO);
    mqx_region_stop_because(&region, "something that follows from it", ENOSPC);
    CHECK(mqx_region_stop_cause(&region, text));
    (void)snprintf(expected, sizeof expected,
                   "writing the journal: %s (errno 5), in process %d (%s)", strerror(EIO),
                   (int)getpid(), program_invocation_short_name);
    CHECK_STR(text, expected);
    CHECK_INT(mqx_region_stop_reason(&region), MQRC_CONNECTION_BROKEN);
    CHECK(strstr(mqx_error_text(), expected) != NULL);
}

TEST(a_stop_without_more_to_say_names_the_process_and_an_orderly_one_leaves_no_cause)
{
    char text[MQX_STOP_TEXT];
    region_begin();
    mqx_region_stop(&region, MQX_STOP_ENDED);
    CHECK(!mqx_region_stop_cause(&region, text));
    mqx_region_stop(&region, MQX_STOP_BROKEN);
    CHECK(mqx_region_stop_cause(&region, text));
    CHECK(strncmp(text, "in process ", 11) == 0);
}

TEST(a_cause_that_cannot_be_true_is_not_shown)
{
    char text[MQX_STOP_TEXT];
    for (int what = 0; what < 4; what++) {
        region_begin();
        mqx_region_stop_because(&region, "writing the journal", EIO);
        struct mqx_stop_cause *cause = &region.header->stop_cause;
        switch (what) {
        case 0: memset(cause->call, 'x', sizeof cause->call); break;
        case 1: memset(cause->program, 'x', sizeof cause->program); break;
        case 2: cause->pid = -1; break;
        default: cause->claim = 77; break;
        }
        CHECK(!mqx_region_stop_cause(&region, text));
        CHECK_INT(mqx_region_stop_reason(&region), MQRC_CONNECTION_BROKEN);
    }
}

TEST(a_stop_ends_when_the_count_of_contexts_is_damaged)
{
    region_begin();
    region.header->area[MQX_AREA_CONTEXTS].used = UINT64_MAX;
    mqx_region_stop(&region, MQX_STOP_BROKEN);
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
}

TEST(a_stop_by_the_header_alone_sets_the_flag_and_wakes_nobody)
{
    region_begin();
    mqx_region_stop_header(region.header, MQX_STOP_ENDED);
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_ENDED);
    mqx_region_stop_header(region.header, MQX_STOP_BROKEN);
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    mqx_region_stop_header(region.header, MQX_STOP_ENDED);
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    CHECK_INT(region.journal->flush_word, 0);
}

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
