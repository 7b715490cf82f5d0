/* Claims of manager.c: one attachment a process, ends of all kinds, what a restart keeps. */
#include "fixtures/engine_fixture.h"
#include "process/maintenance.h"

TEST(a_directory_is_created_once_and_bad_sizes_are_refused)
{
    struct mqe_settings settings = engine_settings();
    engine_begin();
    CHECK_INT(mqx_manager_create(engine.io, engine.path, &settings), MQRC_OBJECT_ALREADY_EXISTS);
    memory_io_make_dirs(engine.files, "/home/QM2");
    settings.segment_size = 5000;
    CHECK_INT(mqx_manager_create(engine.io, "/home/QM2", &settings), MQRC_UNEXPECTED_ERROR);
    settings.segment_size = 4096;
    CHECK_INT(mqx_manager_create(engine.io, "/home/QM2", &settings), MQRC_UNEXPECTED_ERROR);
    settings = engine_settings();
    settings.journal_limit = settings.first_segment_size;
    CHECK_INT(mqx_manager_create(engine.io, "/home/QM2", &settings), MQRC_UNEXPECTED_ERROR);
    settings = engine_settings();
    CHECK_INT(mqx_manager_create(engine.io, "/home/QM2", &settings), 0);
    CHECK(mqx_manager_create(engine.io, "/home/QM3", &settings) != 0);
}

TEST(attaches_of_one_process_share_one_attachment_until_the_last_detach)
{
    mqe_manager *second = NULL;
    struct mqe_attach_info info;
    struct mqe_manager_status status;
    uint64_t lost = 0;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "np"), 0);
    CHECK_INT(mqx_manager_attach(engine.io, engine.path, &engine.settings, &second, &info), 0);
    CHECK(second == engine.manager && info.first == 0);
    CHECK_INT(mqe_status(second, &status), 0);
    CHECK_INT(status.attached, 1);
    CHECK_INT(mqe_detach(second, MQE_DETACH_ORDERLY, &lost), 0);
    CHECK_INT(lost, 0);
    CHECK_STR(TAKE(q), "np");
    CHECK_INT(PUT(q, .text = "np"), 0);
    CHECK_INT(engine_detach(MQE_DETACH_ORDERLY, &lost), 0);
    CHECK_INT(lost, 1);
}

TEST(discarded_messages_are_counted_at_the_end_or_at_the_restart)
{
    uint64_t lost = 0;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < 7; i++) {
        CHECK_INT(PUT(q, .text = "x", .persistent = i < 2), 0);
    }
    CHECK_INT(engine_detach(MQE_DETACH_ORDERLY, &lost), 0);
    CHECK_INT(lost, 5);
    CHECK_INT(engine_attach(), 0);
    CHECK(engine.info.first == 1 && engine.info.clean == 1);
    CHECK_INT(engine.info.messages, 2);
    CHECK_INT(engine.info.np_discarded, 0);
    q = engine_find("Q");
    CHECK_INT(PUT(q, .text = "x"), 0);
    engine_kill_and_restart();
    CHECK_INT(engine.info.first, 1);
    CHECK_INT(engine.info.messages, 2);
    CHECK_INT(engine.info.np_discarded, 1);
}

static void fill_high(struct queue high, struct queue normal)
{
    static char body[90000];
    CHECK_INT(PUT(high, .text = "one", .priority = 1, .correl = 5), 0);
    CHECK_INT(PUT(high, .text = "two", .priority = 8, .group = 6), 0);
    CHECK_INT(PUT(high, .text = "three", .persistent = 1, .priority = 8), 0);
    CHECK_INT(PUT(normal, .text = "normal"), 0);
    CHECK_INT(PUT(high, .body = body, .length = sizeof body), 0);
}

TEST(npmclass_high_is_kept_by_an_orderly_end_and_by_nothing_else)
{
    uint64_t lost = 0;
    engine_begin();
    fill_high(QUEUE("HIGH", NPMCLASS, 10), QUEUE("NORMAL", 0));
    CHECK_INT(engine_detach(MQE_DETACH_ORDERLY, &lost), 0);
    CHECK_INT(lost, 1);
    CHECK_INT(engine_attach(), 0);
    struct queue high = engine_find("HIGH");
    CHECK_STR(TAKE(engine_find("NORMAL")), "(2033)");
    CHECK_INT(depth(high), 4);
    CHECK_STR(TAKE(high), "two");
    CHECK_INT(got.group, 6);
    CHECK_STR(TAKE(high), "three");
    CHECK_STR(TAKE(high), "one");
    CHECK_INT(got.correl, 5);
    TAKE(high);
    CHECK_INT(got.length, 90000);
    CHECK_INT(PUT(high, .text = "gone"), 0);
    engine_kill_and_restart();
    CHECK_STR(TAKE(engine_find("HIGH")), "(2033)");
}

TEST(an_image_is_consumed_by_the_first_start_whatever_it_gets_and_however_it_ends)
{
    engine_begin();
    fill_high(QUEUE("HIGH", NPMCLASS, 10), QUEUE("NORMAL", 0));
    engine_restart();
    CHECK_STR(TAKE(engine_find("HIGH")), "two");
    engine_kill_and_restart();
    CHECK_STR(drain(engine_find("HIGH")), "three");
    engine_restart();
    CHECK_STR(drain(engine_find("HIGH")), "");
}

TEST(a_preemptive_detach_writes_no_image)
{
    uint64_t lost = 0;
    engine_begin();
    fill_high(QUEUE("HIGH", NPMCLASS, 10), QUEUE("NORMAL", 0));
    CHECK_INT(engine_detach(MQE_DETACH_DISCARD, &lost), 0);
    CHECK_INT(lost, 4);
    CHECK_INT(engine_attach(), 0);
    CHECK_STR(drain(engine_find("HIGH")), "three");
}

/* Rule 13: the old handles answer with a reason, a new attach recovers beside them. */
TEST(after_a_stop_the_next_attach_recovers_while_old_handles_are_still_open)
{
    uint64_t lost = 0;
    engine_begin();
    struct queue old = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    mqe_manager *stopped = engine.manager;
    CHECK_INT(PUT(old, .text = "kept", .persistent = 1), 0);
    CHECK_INT(PUT(old, .text = "never", .persistent = 1, .unit = unit), 0);
    mqx_region_stop(engine_region(), MQX_STOP_BROKEN);
    CHECK_INT(PUT(old, .text = "x"), MQRC_CONNECTION_BROKEN);
    CHECK_INT(mqx_manager_attach(engine.io, engine.path, &engine.settings, &engine.manager,
                                 &engine.info), 0);
    CHECK(engine.manager != stopped && engine.info.first == 1);
    const uint32_t handles = engine.handle_count, units = engine.unit_count;
    struct queue q = engine_find("Q");
    CHECK_STR(TAKE(q), "kept");
    CHECK_STR(TAKE(q), "(2033)");
    CHECK_INT(mqe_commit(unit), MQRC_CONNECTION_BROKEN);
    CHECK_INT(handles, 1);
    CHECK_INT(units, 1);
    CHECK_INT(engine_close(old.handle), MQRC_CONNECTION_BROKEN);
    mqe_unit_free(unit);
    engine.unit_count = 0;
    mqx_ignore(mqe_detach(stopped, MQE_DETACH_ORDERLY, &lost));
    CHECK_INT(PUT(q, .text = "on"), 0);
    CHECK_STR(TAKE(q), "on");
}

/* ---- ends that other processes see ---- */

struct other { /* of the child: its ends of two pipes */
    int say, hear;
    struct queue q;
    struct mqe_settings settings;
};

/* Attaches with a maintenance thread, reports it, waits in a get until something ends it. */
static int attached_child(void *arg)
{
    const struct other *other = arg;
    mqe_manager *manager = NULL;
    mqe_queue *handle = NULL;
    char text[8];
    uint64_t lost;
    struct mqe_attach_info info;
    struct mqe_get get = {.flags = MQE_GET_WAIT | MQE_GET_FAIL_IF_QUIESCING, .wait_us = 60000000,
                          .buffer = text, .capacity = 8};
    if (mqe_attach(engine.path, &other->settings, &manager, &info) != 0 ||
        mqe_open_direct(manager, other->q.slot, other->q.generation, 2, &handle) != 0 ||
        write(other->say, "a", 1) != 1) {
        return 255;
    }
    const int reason = mqe_get(manager, NULL, handle, &get);
    (void)mqe_close(handle, MQE_CLOSE_KEEP);
    (void)mqe_detach(manager, MQE_DETACH_ORDERLY, &lost);
    return reason == MQRC_Q_MGR_QUIESCING ? 61 : reason == MQRC_Q_MGR_STOPPING ? 62
           : reason == MQRC_CONNECTION_BROKEN ? 9 : 254;
}

static void end_with(int mode, int expected)
{
    int ends[2], status = 0;
    char letter;
    engine_begin_real();
    struct queue q = QUEUE("Q", NPMCLASS, 10);
    CHECK_INT(PUT(q, .text = "p", .persistent = 1, .correl = 1), 0);
    CHECK_INT(TAKE(q, .correl = 1)[0], 'p');
    CHECK_INT(pipe(ends), 0);
    struct other other = {.say = ends[1], .q = q, .settings = engine.settings};
    other.settings.no_maintenance = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        _exit(attached_child(&other));
    }
    CHECK_INT(read(ends[0], &letter, 1), 1);
    CHECK(await_waiters(q, 1));
    CHECK_INT(mqe_end(engine.manager, mode), 0);
    CHECK_INT(waitpid(child, &status, 0), child);
    close(ends[0]);
    close(ends[1]);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), expected);
    engine_close_all();
    CHECK_INT(engine_detach(MQE_DETACH_ORDERLY, NULL), 0);
    CHECK_INT(engine_attach(), 0);
    CHECK_INT(engine.info.first, 1);
}

TEST(a_controlled_end_tells_waiters_2161_an_immediate_one_2162_a_preemptive_one_2009)
{
    end_with(MQE_END_CONTROLLED, 61);
    CHECK_INT(engine.info.clean, 1);
    end_with(MQE_END_WAIT, 61);
    CHECK_INT(engine.info.clean, 1);
    end_with(MQE_END_IMMEDIATE, 62);
    CHECK_INT(engine.info.clean, 1);
    end_with(MQE_END_PREEMPTIVE, 9);
    CHECK_INT(engine.info.clean, 0);
}

TEST(an_immediate_end_keeps_npmclass_high_and_its_own_process_goes_on_to_write_it)
{
    engine_begin();
    fill_high(QUEUE("HIGH", NPMCLASS, 10), QUEUE("NORMAL", 0));
    CHECK_INT(mqe_end(engine.manager, MQE_END_IMMEDIATE), 0);
    CHECK_INT(engine_detach(MQE_DETACH_ORDERLY, NULL), 0);
    CHECK_INT(engine_attach(), 0);
    CHECK_INT(engine.info.clean, 1);
    CHECK_INT(depth(engine_find("HIGH")), 4);
}

TEST(calls_can_be_asked_for_before_they_are_made)
{
    engine_begin();
    CHECK_INT(mqe_usable(engine.manager, 0), 0);
    CHECK_INT(mqe_usable(engine.manager, 1), 0);
    CHECK_INT(mqe_end(engine.manager, MQE_END_CONTROLLED), 0);
    CHECK_INT(mqe_usable(engine.manager, 0), 0);
    CHECK_INT(mqe_usable(engine.manager, 1), MQRC_Q_MGR_QUIESCING);
}

/* Of a process that attaches now. */
static int attach_anew(void *arg)
{
    const struct mqe_settings *settings = arg;
    mqe_manager *manager = NULL;
    struct mqe_attach_info info;
    uint64_t lost;
    const int reason = mqe_attach(engine.path, settings, &manager, &info);
    const int ended = reason == 0 ? mqe_end(manager, MQE_END_CONTROLLED) : 0;
    if (reason == 0) {
        (void)mqe_detach(manager, MQE_DETACH_ORDERLY, &lost);
    }
    return ended != 0 ? 99 : reason - (reason != 0 ? 2100 : 0);
}

TEST(a_quiescing_queue_manager_lets_in_nobody_but_who_looks_after_it_until_it_has_ended)
{
    mqe_manager *second = NULL;
    struct mqe_attach_info info;
    uint64_t lost;
    engine_begin_real();
    struct queue q = QUEUE("Q", 0);
    struct mqe_settings control = engine.settings;
    control.control = 1;
    CHECK_INT(in_child(attach_anew, &control), 0); /* and ends it */
    CHECK_INT(in_child(attach_anew, &engine.settings), 61);
    CHECK_INT(mqe_attach(engine.path, &engine.settings, &second, &info), MQRC_Q_MGR_QUIESCING);
    CHECK(strstr(mqe_error_text(), "quiescing") != NULL);
    CHECK_INT(mqe_attach(engine.path, &control, &second, &info), 0);
    CHECK_INT(mqe_detach(second, MQE_DETACH_ORDERLY, &lost), 0);
    CHECK_INT(in_child(attach_anew, &control), 0);
    CHECK_INT(PUT(q, .text = "who is there goes on", .persistent = 1), 0);
    struct mqe_manager_status status;
    CHECK_INT(mqe_status(engine.manager, &status), 0);
    CHECK_INT(status.attached, 1); /* nothing is left of the refused attempts */
    engine_close_all();
    CHECK_INT(engine_detach(MQE_DETACH_ORDERLY, NULL), 0);
    CHECK_INT(engine_attach(), 0);
    CHECK_INT(engine.info.first, 1);
    CHECK_STR(TAKE(engine_find("Q")), "who is there goes on");
}

TEST(an_unknown_way_to_end_is_refused)
{
    engine_begin();
    CHECK_INT(mqe_end(engine.manager, 99), MQRC_OPTIONS_ERROR);
    CHECK_INT(PUT(QUEUE("Q", 0), .text = "x"), 0);
}

TEST(an_unchanged_queue_manager_ends_without_a_byte_of_journal)
{
    engine_begin();
    (void)QUEUE("Q", 0);
    engine_restart();
    struct memory_image *before = memory_image_take(engine.files, ENGINE_HOME "/journal");
    CHECK_INT(engine_detach(MQE_DETACH_ORDERLY, NULL), 0);
    struct memory_image *after = memory_image_take(engine.files, ENGINE_HOME "/journal");
    bool same = before->count == after->count;
    for (uint32_t i = 0; same && i < before->count; i++) {
        same = before->files[i].size == after->files[i].size &&
               memcmp(before->files[i].data, after->files[i].data, before->files[i].size) == 0;
    }
    memory_image_free(before);
    memory_image_free(after);
    CHECK(same);
    CHECK_INT(engine_attach(), 0);
    CHECK_INT(engine.info.clean, 1);
}

/* Finds Q, takes a message, puts another one, leaves. */
static int take_and_reply(void *arg)
{
    struct mqe_manager_status status;
    (void)arg;
    engine.handle_count = 0;
    if (mqe_attach(engine.path, &engine.settings, &engine.manager, &engine.info) != 0 ||
        engine.info.first != 0) {
        return 2;
    }
    struct queue q = engine_find("Q");
    if (strcmp(TAKE(q), "request") != 0 || PUT(q, .text = "reply") != 0 ||
        mqe_status(engine.manager, &status) != 0 || status.attached != 2) {
        return 3;
    }
    return engine_detach(MQE_DETACH_ORDERLY, NULL);
}

TEST(a_second_process_works_on_the_same_queues_and_leaves_them_to_the_first)
{
    struct mqe_manager_status status;
    engine_begin_real();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "request"), 0);
    CHECK_INT(in_child(take_and_reply, NULL), 0);
    CHECK_INT(mqe_status(engine.manager, &status), 0);
    CHECK_INT(status.attached, 1);
    CHECK_INT(status.objects, 1);
    CHECK_STR(TAKE(q), "reply");
}

/* Each restart begins a segment, and nobody lives long enough for a round of maintenance. */
TEST(processes_killed_one_after_the_other_on_a_full_disk_do_not_use_up_what_is_reserved)
{
    enum { MESSAGES = 600, LIVES = 9, GETS = 3 };
    char text[16];
    engine_begin();
    struct queue q = QUEUE("Q");
    for (int i = 0; i < MESSAGES; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        CHECK_INT(PUT(q, .text = text, .persistent = 1), 0);
    }
    CHECK_INT(mqe_maintain(engine.manager), 0);
    memory_io_set_space(engine.files, memory_io_space_used(engine.files), UINT64_MAX);
    for (int life = 0; life < LIVES; life++) {
        engine_kill_and_restart();
        q = engine_find("Q");
        CHECK_INT(mqx_maintenance_refill(&engine.manager->store), 0); /* an attach does it */
        for (int i = life * GETS; i < (life + 1) * GETS; i++) {
            (void)snprintf(text, sizeof text, "%d", i);
            CHECK_STR(TAKE(q), text);
        }
    }
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
