/*
 * test_life_lock.c - claims of life_lock.h: life locks and their owners, the attach lock among
 * threads, the one descriptor of a process, and the text about holders.
 */
#include "fixtures/store_fixture.h"

#include "process/life_lock.h"

static int32_t holder_of[MQX_PROCESS_MAX]; /* by slot; 0: none */
static int questions;

static int wrong_test_lock(struct mqx_io *io, int fd, uint64_t offset, uint64_t size, int32_t *pid)
{
    (void)io;
    (void)fd;
    questions++;
    *pid = 0;
    for (uint64_t at = offset; at < offset + size && *pid == 0; at++) {
        *pid = holder_of[at - MQX_LOCK_BYTE_LIFE];
    }
    return 0;
}

/* The text that results from examining each slot alone. */
static void name_each(struct mqx_life_lock *file, char *text, size_t size)
{
    uint32_t count = 0;
    size_t used = 0;
    snprintf(text, size, "none");
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX; slot++) {
        int32_t pid = 0;
        CHECK_INT(mqx_life_lock_holder(file, slot, &pid), 0);
        if (pid != 0 && count++ < 8) {
            used += (size_t)snprintf(text + used, size - used, "%s%d", used == 0 ? "" : ", ", pid);
        }
    }
    if (count > 8) {
        snprintf(text + used, size - used, " and %u more", count - 8);
    }
}

static void check_holders(struct mqx_life_lock *file)
{
    char expected[256], found[256];
    name_each(file, expected, sizeof expected);
    questions = 0;
    mqx_life_lock_holders(file, found, sizeof found);
    CHECK_STR(found, expected);
}

TEST(who_holds_which_slots_is_told_whole_by_few_questions)
{
    struct memory_io *files = fixture_new();
    struct fixture_process a;
    fixture_attach(files, &a);
    struct mqx_life_lock *file = mqx_life_lock_find(a.store->io, a.store->lock_fd);
    const struct mqx_io_ops *real = a.store->io->ops;
    struct mqx_io_ops wrong_ops = *real;
    wrong_ops.test_lock = wrong_test_lock;
    a.store->io->ops = &wrong_ops;
    memset(holder_of, 0, sizeof holder_of);
    check_holders(file);
    CHECK(questions <= 40); /* our own slot alone */
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX; slot++) {
        holder_of[slot] = 5000 + (int32_t)slot;
        check_holders(file);
        CHECK(questions <= 40);
        holder_of[slot] = 0;
    }
    for (uint32_t step = 1; step <= 512; step = step * 3 + 1) {
        for (uint32_t slot = 1; slot < MQX_PROCESS_MAX; slot++) {
            holder_of[slot] = slot % step == 0 ? 5000 + (int32_t)slot : 0;
        }
        check_holders(file);
    }
    a.store->io->ops = real;
    CHECK_INT(fixture_detach(&a, NULL), 0);
    memory_io_free(files);
}

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
    int32_t pid = 0;
    bool anyone = true;
    open_both(file);
    CHECK_INT(mqx_life_lock_is_any_held(file[0], 0, &anyone), 0);
    CHECK(!anyone);
    CHECK_INT(mqx_life_lock_claim(file[0], 5, &first), 0);
    CHECK_INT(mqx_life_lock_claim(file[0], 5, &second), MQX_BUSY);
    CHECK(mqx_life_lock_is_own(file[0], 5));
    CHECK_INT(mqx_life_lock_holder(file[0], 5, &pid), 0);
    CHECK_INT(pid, getpid());
    CHECK_INT(mqx_life_lock_is_any_held(file[0], 0, &anyone), 0);
    CHECK(anyone);
    CHECK_INT(mqx_life_lock_is_any_held(file[0], 5, &anyone), 0);
    CHECK(!anyone);
    mqx_life_lock_release(file[0], 5, &second);
    CHECK(mqx_life_lock_is_own(file[0], 5));
    mqx_life_lock_release(file[0], 5, &first);
    CHECK(!mqx_life_lock_is_own(file[0], 5));
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

TEST(a_disagreement_is_reported_once_a_process_and_only_when_it_lasts_a_second)
{
    struct mqx_life_lock *file[2];
    open_both(file);
    CHECK(!mqx_life_lock_is_missing(file[0], 7, 100));
    usleep(600000);
    CHECK(!mqx_life_lock_is_missing(file[0], 7, 100));
    usleep(500000);
    CHECK(mqx_life_lock_is_missing(file[0], 7, 100));
    CHECK(!mqx_life_lock_is_missing(file[0], 7, 100));
    CHECK(!mqx_life_lock_is_missing(file[0], 7, 200)); /* another process in the slot */
    mqx_life_lock_close(file[0]);
    mqx_life_lock_close(file[1]);
}

TEST_MAIN()
