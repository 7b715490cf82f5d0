/*
 * test_error.c - proves error.h: the table of reasons and the text of a thread.
 */
#include "base/error.h"
#include "fixtures/harness.h"

#include <pthread.h>

#define MQX_REASON(code, name, cc, text) {code, "MQRC_" #name, cc, text},
static const struct {
    int code;
    const char *name;
    int comp_code;
    const char *text;
} table[] = {
#include "base/reason_codes.def"
};
#undef MQX_REASON

TEST(the_table_is_ascending_and_its_texts_are_single_clauses)
{
    CHECK_INT(table[0].code, 0);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(table); i++) {
        size_t length = strlen(table[i].text);
        CHECK(i == 0 || table[i].code > table[i - 1].code);
        CHECK(length > 8 && length < 90);
        CHECK(table[i].text[length - 1] != '.');
        CHECK(strlen(table[i].name) < 40);
    }
}

TEST(every_code_gives_its_name_text_and_completion_code)
{
    for (size_t i = 0; i < MQX_ARRAY_COUNT(table); i++) {
        CHECK_STR(mqx_reason_name(table[i].code), table[i].name);
        CHECK_STR(mqx_reason_text(table[i].code), table[i].text);
        CHECK_INT(mqx_comp_code(table[i].code), table[i].comp_code);
    }
    CHECK_STR(mqx_reason_name(MQRC_Q_FULL), "MQRC_Q_FULL");
    CHECK_INT(mqx_comp_code(0), MQCC_OK);
    CHECK_INT(mqx_comp_code(MQRC_PRIORITY_EXCEEDS_MAXIMUM), MQCC_WARNING);
    CHECK_INT(mqx_comp_code(MQRC_NO_MSG_AVAILABLE), MQCC_FAILED);
}

TEST(an_unknown_code_is_a_failure_called_unknown)
{
    CHECK_STR(mqx_reason_name(2015), "MQRC_UNKNOWN");
    CHECK_STR(mqx_reason_name(MQX_TORN), "MQRC_UNKNOWN");
    CHECK_INT(mqx_comp_code(-1), MQCC_FAILED);
    CHECK(mqx_reason_text(1)[0] != '\0');
}

TEST(fail_returns_the_reason_and_keeps_the_text)
{
    mqx_error_clear();
    CHECK_STR(mqx_error_text(), "");
    CHECK_INT(mqx_fail(MQRC_Q_FULL, "queue holds %d, MAXDEPTH is %d", 7, 7), 2053);
    CHECK_STR(mqx_error_text(), "queue holds 7, MAXDEPTH is 7");
    CHECK_INT(mqx_fail(MQRC_Q_FULL, "put: %s", mqx_error_text()), 2053);
    CHECK_STR(mqx_error_text(), "put: queue holds 7, MAXDEPTH is 7");
}

TEST(a_text_that_is_too_long_is_cut_not_overrun)
{
    char longer[2000];

    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    CHECK_INT(mqx_fail(MQRC_UNEXPECTED_ERROR, "%s", longer), 2195);
    CHECK_INT(strlen(mqx_error_text()), 511);
}

static void *fail_elsewhere(void *arg)
{
    char *seen = arg;
    (void)mqx_fail(MQRC_Q_FULL, "other thread");
    snprintf(seen, 32, "%s", mqx_error_text());
    return NULL;
}

TEST(the_text_belongs_to_the_thread)
{
    pthread_t thread;
    char seen[32] = "";

    (void)mqx_fail(MQRC_Q_FULL, "this thread");
    CHECK_INT(pthread_create(&thread, NULL, fail_elsewhere, seen), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_STR(seen, "other thread");
    CHECK_STR(mqx_error_text(), "this thread");
}

TEST_MAIN()
