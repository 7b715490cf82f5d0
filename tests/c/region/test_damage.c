/* Claims of damage.c: damage stops the queue manager for every process, with a text that names the
 * first structure that was found damaged, and never ends the process that finds it. */
#include "fixtures/region_fixture.h"

TEST(damage_returns_a_reason_names_the_structure_and_stops_the_queue_manager)
{
    region_begin();
    CHECK(mqx_region_damage_text(&region) == NULL);
    CHECK(!mqx_region_damaged());
    CHECK_INT(mqx_region_damage(&region, "a list of widgets", 4711), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(strstr(mqx_error_text(), "a list of widgets (4711)") != NULL);
    CHECK_STR(mqx_region_damage_text(&region), "a list of widgets (4711)");
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    CHECK_INT(mqx_region_stop_reason(&region), MQRC_CONNECTION_BROKEN);
}

TEST(a_thread_is_asked_once_whether_it_met_damage)
{
    region_begin();
    (void)mqx_region_damage(&region, "something", 0);
    CHECK(mqx_region_damaged());
    CHECK(!mqx_region_damaged());
}

static void *find_more(void *arg)
{
    (void)mqx_region_damage(&region, "a later find", 1);
    *(bool *)arg = mqx_region_damaged();
    return NULL;
}

TEST(the_first_text_stays_and_a_thread_answers_for_itself)
{
    pthread_t thread;
    bool seen = false;
    region_begin();
    CHECK_INT(mqx_region_damage_header(region.header, "the first find", 7),
              MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(mqx_region_damaged());
    CHECK_INT(pthread_create(&thread, NULL, find_more, &seen), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK(seen);
    CHECK(!mqx_region_damaged());
    CHECK_STR(mqx_region_damage_text(&region), "the first find (7)");
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
}

static void find_and_die(void *arg)
{
    (void)arg;
    (void)mqx_region_damage(&region, "found by a process that died", 3);
}

TEST(another_process_reads_the_text)
{
    region_begin();
    killed_after(find_and_die, NULL);
    CHECK_STR(mqx_region_damage_text(&region), "found by a process that died (3)");
    CHECK(!mqx_region_damaged());
}

TEST(a_text_that_is_being_written_or_is_damaged_itself_is_not_given)
{
    region_begin();
    struct mqx_header *header = region.header;
    header->damage_claim = MQX_DAMAGE_CLAIMED;
    CHECK(mqx_region_damage_text(&region) == NULL);
    (void)mqx_region_damage(&region, "the claim belongs to another process", 1);
    CHECK(mqx_region_damaged());
    CHECK(mqx_region_damage_text(&region) == NULL);
    header->damage_claim = MQX_DAMAGE_WRITTEN;
    memset(header->damage_text, 'x', sizeof header->damage_text);
    CHECK(mqx_region_damage_text(&region) == NULL);
    header->damage_text[MQX_DAMAGE_TEXT - 1] = '\0';
    CHECK_INT(strlen(mqx_region_damage_text(&region)), MQX_DAMAGE_TEXT - 1);
}

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
