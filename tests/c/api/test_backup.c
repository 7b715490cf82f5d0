/* Claims of api/backup.c: begin, advance and end, in this process and in one that dies. */
#include "fixtures/death_fixture.h"

TEST(a_backup_is_in_the_status_until_it_ends_and_there_is_one_at_a_time)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct mqe_backup backup = {0}, other = {0};
    struct mqe_manager_status now;
    uint64_t slowest = 0;
    PUT(q, .persistent = true, .text = "kept");
    CHECK_INT(mqe_backup_begin(engine.manager, &backup), 0);
    CHECK(backup.first_segment >= 1 && backup.last_segment >= backup.first_segment);
    CHECK(backup.end_lsn > 0 && backup.checkpoint_lsn <= backup.end_lsn);
    CHECK_INT(backup.timeline, 0);
    CHECK_INT(mqe_backup_begin(engine.manager, &other), MQRC_OBJECT_IN_USE);
    CHECK_INT(mqe_status(engine.manager, &now), 0);
    CHECK_INT(now.backup_pid, getpid());
    CHECK(now.backup_bytes > 0);
    CHECK_INT(mqe_backup_advance(engine.manager, backup.last_segment + 1, &slowest), 0);
    CHECK_INT(mqe_status(engine.manager, &now), 0);
    CHECK_INT(now.backup_bytes, 0);
    CHECK_INT(mqe_backup_end(engine.manager), 0);
    CHECK_INT(mqe_status(engine.manager, &now), 0);
    CHECK_INT(now.backup_pid, 0);
}

TEST(the_slowest_flush_since_the_last_question_is_told_once)
{
    struct mqe_backup backup = {0};
    uint64_t slowest = 0;
    CHECK_INT(mqe_backup_begin(engine.manager, &backup), 0);
    mqx_store_relaxed(&engine_region()->journal->slowest_flush_us, 777);
    CHECK_INT(mqe_backup_advance(engine.manager, 1, &slowest), 0);
    CHECK_INT(slowest, 777);
    CHECK_INT(mqe_backup_advance(engine.manager, 1, &slowest), 0);
    CHECK_INT(slowest, 0);
    CHECK_INT(mqe_backup_end(engine.manager), 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

static int begin_and_die(const struct part *part)
{
    struct mqe_backup backup = {0};
    (void)part;
    return mqe_backup_begin(engine.manager, &backup) == 0 ? 0 : 4;
}

TEST(the_pin_of_a_dead_process_is_released_by_maintenance)
{
    engine_begin_real();
    struct queue q = QUEUE("Q", 0);
    struct mqe_backup backup = {0};
    struct mqe_manager_status now;
    PUT(q, .persistent = true, .text = "kept");
    after_death_in(begin_and_die, q, 0);
    CHECK_INT(mqe_status(engine.manager, &now), 0);
    CHECK(now.backup_pid != 0);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(mqe_status(engine.manager, &now), 0);
    CHECK_INT(now.backup_pid, 0);
    CHECK_INT(mqe_backup_begin(engine.manager, &backup), 0);
    CHECK_INT(mqe_backup_end(engine.manager), 0);
    engine_end();
}

TEST_MAIN()
