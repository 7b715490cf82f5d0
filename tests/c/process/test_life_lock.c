/*
 * test_life_lock.c - claims of life_lock.h: life locks and their owners, the attach lock among
 * threads, the one descriptor of a process, and what becomes of one that the program closed.
 */
#include "fixtures/store_fixture.h"

#include "process/life_lock.h"
#include "os/interrupt.h"
#include "penstock/engine.h"

#include <fcntl.h>

/* ---- one object a process and directory ---- */

static struct memory_io *files;

static void open_both(struct mqx_life_lock *out[2])
{
    struct mqx_io_stat facts;
    memory_io_free(files);
    files = fixture_new();
    struct mqx_io *io = memory_io_process(files, 3000);
    const int dir = io->ops->open_dir(io, FIXTURE_PATH);
    CHECK_INT(io->ops->stat(io, dir, &facts), 0);
    CHECK_INT(mqx_life_lock_open(io, dir, &facts, &out[0]), 0);
    CHECK_INT(mqx_life_lock_open(io, dir, &facts, &out[1]), 0);
    CHECK_INT(io->ops->close(io, dir), 0);
}

TEST(two_users_of_a_process_share_one_descriptor_until_the_last_one_closes)
{
    struct mqx_life_lock *file[2];
    open_both(file);
    CHECK(file[0] == file[1]);
    CHECK_INT(memory_io_open_count(files), 1);
    mqx_life_lock_close(file[0]);
    CHECK_INT(memory_io_open_count(files), 1);
    mqx_life_lock_close(file[1]);
    CHECK_INT(memory_io_open_count(files), 0);
}

TEST(a_life_lock_has_one_owner_and_only_that_one_releases_it)
{
    struct mqx_life_lock *file[2];
    int first = 0, second = 0;
    bool anyone = true;
    open_both(file);
    CHECK_INT(mqx_life_lock_is_any_held(file[0], 0, &anyone), 0);
    CHECK(!anyone);
    CHECK_INT(mqx_life_lock_claim(file[0], 5, &first), 0);
    CHECK_INT(mqx_life_lock_claim(file[0], 5, &second), MQX_BUSY);
    CHECK_INT(mqx_life_lock_is_any_held(file[0], 0, &anyone), 0);
    CHECK(anyone);
    CHECK_INT(mqx_life_lock_is_any_held(file[0], 5, &anyone), 0);
    CHECK(!anyone);
    mqx_life_lock_release(file[0], 5, &second);
    CHECK_INT(mqx_life_lock_is_any_held(file[0], 0, &anyone), 0);
    CHECK(anyone);
    mqx_life_lock_release(file[0], 5, &first);
    CHECK_INT(mqx_life_lock_is_any_held(file[0], 0, &anyone), 0);
    CHECK(!anyone);
    CHECK_INT(mqx_life_lock_claim(file[0], 5, &second), 0);
    mqx_life_lock_release(file[0], 5, &second);
    mqx_life_lock_close(file[0]);
    mqx_life_lock_close(file[1]);
}

TEST(the_attach_lock_excludes_threads_of_the_same_process_and_names_the_holder_after_the_patience)
{
    struct mqx_life_lock *file[2];
    char expected[40];
    open_both(file);
    CHECK_INT(mqx_life_lock_enter(file[0], 1000000), 0);
    CHECK_INT(mqx_life_lock_enter(file[1], 5000), MQRC_Q_MGR_NOT_AVAILABLE);
    snprintf(expected, sizeof expected, "process %d ", getpid());
    CHECK(strstr(mqx_error_text(), expected) != NULL);
    mqx_life_lock_leave(file[0]);
    CHECK_INT(mqx_life_lock_enter(file[1], 5000), 0);
    mqx_life_lock_leave(file[1]);
    mqx_life_lock_close(file[0]);
    mqx_life_lock_close(file[1]);
}

TEST(a_wait_for_the_attach_lock_may_be_interrupted_and_its_patience_goes_on_counting)
{
    struct mqx_life_lock *file[2];
    int status = MQE_INTERRUPTED, interrupted = -1;
    open_both(file);
    CHECK_INT(mqx_life_lock_enter(file[0], 1000000), 0);
    for (int i = 0; i < 20 && status == MQE_INTERRUPTED; i++) {
        mqx_interrupt_allow(true);
        status = mqx_life_lock_enter(file[1], 1800000);
        interrupted += 1;
    }
    CHECK_INT(status, MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(interrupted >= 1 && interrupted <= 3); /* after half a second each */
    mqx_interrupt_allow(false);
    mqx_life_lock_leave(file[0]);
    CHECK_INT(mqx_life_lock_enter(file[1], 5000), 0);
    mqx_life_lock_leave(file[1]);
    mqx_life_lock_close(file[0]);
    mqx_life_lock_close(file[1]);
}

/* ---- a descriptor that the program closed ---- */

TEST(a_descriptor_that_the_program_closed_and_used_again_is_refused_and_left_alone)
{
    struct fixture_dirs place;
    struct mqx_io_stat facts;
    struct mqx_life_lock *file = NULL;
    bool anyone = false;
    int owner = 0;
    fixture_make_dirs(&place);
    struct mqx_io *real = mqx_io_posix();
    const int dir = real->ops->open_dir(real, place.path);
    CHECK_INT(real->ops->stat(real, dir, &facts), 0);
    CHECK_INT(mqx_life_lock_open(real, dir, &facts, &file), 0);
    CHECK_INT(mqx_life_lock_claim(file, 3, &owner), 0);
    const int fd = mqx_life_lock_fd(file);
    CHECK(mqx_life_lock_is_usable(file));
    CHECK_INT(dup2(dir, fd), fd);
    CHECK(!mqx_life_lock_is_usable(file));
    CHECK_INT(mqx_life_lock_enter(file, 1000), MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "has closed the queue manager's descriptor") != NULL);
    CHECK_INT(mqx_life_lock_is_any_held(file, 3, &anyone), MQRC_ENVIRONMENT_ERROR);
    CHECK_INT(mqx_life_lock_claim(file, 4, &owner), MQRC_ENVIRONMENT_ERROR);
    CHECK_INT(mqx_life_lock_take_log(file), MQRC_ENVIRONMENT_ERROR);
    mqx_life_lock_release(file, 3, &owner);
    mqx_life_lock_close(file);
    CHECK(fcntl(fd, F_GETFD) >= 0); /* the program's own by now */
    CHECK_INT(close(fd), 0);
    CHECK_INT(close(dir), 0);
    fixture_remove_dirs(&place);
}

TEST(one_process_at_a_time_has_the_turn_to_log)
{
    struct mqx_life_lock *file[2], *other = NULL;
    struct mqx_io_stat facts;
    open_both(file);
    struct mqx_io *io = memory_io_process(files, 3001);
    const int dir = io->ops->open_dir(io, FIXTURE_PATH);
    CHECK_INT(io->ops->stat(io, dir, &facts), 0);
    CHECK_INT(mqx_life_lock_open(io, dir, &facts, &other), 0);
    CHECK_INT(mqx_life_lock_take_log(file[0]), 0);
    CHECK_INT(mqx_life_lock_take_log(other), MQX_BUSY);
    mqx_life_lock_give_log(file[0]);
    CHECK_INT(mqx_life_lock_take_log(other), 0);
    mqx_life_lock_give_log(other);
    mqx_life_lock_close(other);
    mqx_life_lock_close(file[0]);
    mqx_life_lock_close(file[1]);
}

TEST_MAIN()
