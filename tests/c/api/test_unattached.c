/*
 * test_unattached.c - claims of unattached.c: who is attached, asked without attaching, and keeping
 * everybody out.
 */
#include "fixtures/store_fixture.h"

#include "penstock/engine.h"
#include "process/liveness.h"

static int32_t pids[MQE_PROCESSES_MAX];
static uint32_t count;

TEST(attached_processes_are_listed_this_one_included_and_asking_changes_nothing)
{
    struct fixture_dirs place;
    struct fixture_process a;
    char lock[128];
    fixture_make_dirs(&place);
    snprintf(lock, sizeof lock, "%s/lock", place.path);
    CHECK_INT(mqe_attached(place.path, pids, MQE_PROCESSES_MAX, &count), 0);
    CHECK_INT(count, 0);
    CHECK(access(lock, F_OK) != 0); /* no file was made */
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(mqe_attached(place.path, pids, MQE_PROCESSES_MAX, &count), 0);
        CHECK_INT(count, 1);
        CHECK_INT(pids[0], getpid());
    }
    CHECK_INT(fixture_detach(&a, NULL), 0);
    CHECK_INT(mqe_attached(place.path, pids, MQE_PROCESSES_MAX, &count), 0);
    CHECK_INT(count, 0);
    CHECK(mqe_attached("/proc/none", pids, 1, &count) != 0);
    fixture_remove_dirs(&place);
}

static void copy_bytes(const char *from, const char *to)
{
    static char data[1 << 20];
    FILE *source = fopen(from, "r"), *copy = fopen(to, "w");
    CHECK(source != NULL && copy != NULL);
    const size_t length = fread(data, 1, sizeof data, source);
    CHECK(length > 0 && length < sizeof data);
    CHECK(fwrite(data, 1, length, copy) == length);
    CHECK(fclose(source) == 0 && fclose(copy) == 0);
}

TEST(a_copy_does_not_claim_the_processes_of_its_original_but_one_of_hard_links_does)
{
    struct fixture_dirs place;
    struct fixture_process a;
    char lock[128], copied[128], copy[] = "/tmp/penstock-test-XXXXXX";
    fixture_make_dirs(&place);
    CHECK(mkdtemp(copy) != NULL);
    snprintf(lock, sizeof lock, "%s/lock", place.path);
    snprintf(copied, sizeof copied, "%s/lock", copy);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), 0);
    copy_bytes(lock, copied);
    CHECK_INT(mqe_attached(copy, pids, MQE_PROCESSES_MAX, &count), 0);
    CHECK_INT(count, 0);
    CHECK_INT(unlink(copied), 0);
    CHECK_INT(link(lock, copied), 0); /* the lock on it is seen through both names */
    CHECK_INT(mqe_attached(copy, pids, MQE_PROCESSES_MAX, &count), 0);
    CHECK_INT(count, 1);
    CHECK_INT(pids[0], getpid());
    CHECK_INT(unlink(copied), 0);
    CHECK_INT(mqe_attached(place.path, pids, MQE_PROCESSES_MAX, &count), 0);
    CHECK_INT(count, 1);
    CHECK_INT(fixture_detach(&a, NULL), 0);
    fixture_remove_tree(copy, 1);
    fixture_remove_dirs(&place);
}

static int exclude(const struct fixture_dirs *place, struct mqe_exclusion **out)
{
    struct mqe_settings settings = {.region_dir = place->regions};
    strcpy(settings.name, "QM1");
    return mqe_exclude(place->path, &settings, out);
}

static int try_attach(void *arg)
{
    struct fixture_process mine;
    mqx_attach_timeout_us = 20000;
    return fixture_attach_real(arg, mqx_io_posix(), &mine) == MQRC_Q_MGR_NOT_AVAILABLE ? 0 : 1;
}

TEST(nobody_attaches_during_an_exclusion_and_everybody_may_after_it)
{
    struct fixture_dirs place;
    struct fixture_process a;
    struct mqe_exclusion *exclusion = NULL;
    fixture_make_dirs(&place);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), 0);
    CHECK_INT(exclude(&place, &exclusion), MQRC_OBJECT_IN_USE);
    char expected[64];
    snprintf(expected, sizeof expected, "process %d is connected", (int)getpid());
    CHECK(strstr(mqx_error_text(), expected) != NULL);
    CHECK_INT(fixture_detach(&a, NULL), 0);
    CHECK_INT(exclude(&place, &exclusion), 0);
    CHECK_INT(fixture_wait(fixture_child(try_attach, &place)), 0);
    mqe_exclude_end(exclusion);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), 0);
    CHECK_INT(fixture_detach(&a, NULL), 0);
    fixture_remove_dirs(&place);
}

static int attach_and_die(void *arg)
{
    struct fixture_process mine;
    if (fixture_attach_real(arg, mqx_io_posix(), &mine) == 0) {
        (void)kill(getpid(), SIGKILL);
    }
    return 1;
}

TEST(the_region_of_killed_processes_is_removed_and_files_of_others_are_not)
{
    struct fixture_dirs place;
    struct mqe_exclusion *exclusion = NULL;
    char other[128];
    fixture_make_dirs(&place);
    CHECK_INT(fixture_wait(fixture_child(attach_and_die, &place)), 1000 + SIGKILL);
    snprintf(other, sizeof other, "%s/penstock-0000000000000000-0000000000000000", place.regions);
    FILE *file = fopen(other, "w");
    CHECK(file != NULL && fclose(file) == 0);
    CHECK_INT(exclude(&place, &exclusion), 0);
    mqe_exclude_end(exclusion);
    CHECK_INT(unlink(other), 0);
    CHECK_INT(rmdir(place.regions), 0); /* nothing else is left */
    fixture_remove_tree(place.path, 2);
}

TEST_MAIN()
