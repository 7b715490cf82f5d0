/* Claims of region_file.h: which region a directory has, and which files are removed. */
#include "fixtures/store_fixture.h"

#include "process/life_table.h"
#include "process/region_file.h"

static struct memory_io *files;

static void start(void)
{
    memory_io_free(files);
    files = fixture_new();
    mqx_attach_timeout_us = 30000000;
}

static bool region_exists(const struct fixture_process *process)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", FIXTURE_REGIONS, process->store->region_name);
    uint64_t size = 0;
    return memory_io_bytes(files, path, &size) != NULL;
}

TEST(a_region_that_is_gone_under_a_living_process_is_refused_not_made_anew)
{
    struct fixture_process a, b;
    char path[160];
    start();
    fixture_attach(files, &a);
    snprintf(path, sizeof path, "%s/%s", FIXTURE_REGIONS, a.store->region_name);
    CHECK(memory_io_remove(files, path));
    CHECK_INT(fixture_try_attach(files, &b), MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "is gone") != NULL);
    fixture_kill(files, &a);
    fixture_attach(files, &b);
    CHECK(b.report.first);
    CHECK_INT(fixture_detach(&b, NULL), 0);
}

TEST(a_lock_file_that_was_deleted_under_a_living_process_is_noticed)
{
    struct fixture_process a, b;
    start();
    fixture_attach(files, &a);
    CHECK(memory_io_remove(files, FIXTURE_PATH "/lock"));
    CHECK_INT(fixture_try_attach(files, &b), MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "does not know of it") != NULL);
    fixture_kill(files, &a);
}

TEST(regions_of_dead_processes_that_no_record_names_are_cleared_away)
{
    struct fixture_process a, b;
    start();
    fixture_attach(files, &a);
    mqx_process_slot(&a.store->region, a.store->region.process)->start_time = 1; /* long gone */
    fixture_kill(files, &a);
    CHECK(memory_io_remove(files, FIXTURE_PATH "/lock"));
    CHECK(region_exists(&a));
    fixture_attach(files, &b);
    CHECK(b.report.first && !region_exists(&a));
    CHECK_INT(fixture_detach(&b, NULL), 0);
}

TEST(another_queue_managers_id_is_refused)
{
    struct fixture_process a, b = {.pid = 0};
    start();
    fixture_attach(files, &a);
    b.manager = calloc(1, sizeof *b.manager);
    b.store = &b.manager->store;
    b.store->io = memory_io_process(files, 77);
    fixture_plan(&b.store->plan);
    b.store->qm_id[0] = 99;
    CHECK_INT(mqx_attach(b.store, FIXTURE_PATH, FIXTURE_REGIONS, &b.report),
              MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "another queue manager") != NULL);
    free(b.manager);
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(a_region_medium_that_is_too_small_is_refused_with_the_size)
{
    struct fixture_process a;
    start();
    memory_io_set_space(files, UINT64_MAX, 256 << 10);
    CHECK_INT(fixture_try_attach(files, &a), MQRC_STORAGE_NOT_AVAILABLE);
    CHECK(strstr(mqx_error_text(), "bytes") != NULL);
    CHECK_INT(memory_io_open_count(files), 0);
    CHECK_INT(memory_io_map_count(files), 0);
    memory_io_set_space(files, UINT64_MAX, UINT64_MAX);
    fixture_attach(files, &a);
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(a_record_matches_one_directory_one_host_and_one_layout)
{
    struct mqx_location here = {.device = 1, .inode = 2, .region_path = FIXTURE_REGIONS};
    struct mqx_lock_record record = {.device = 1, .inode = 2, .layout = mqx_region_layout()};
    CHECK(mqx_record_matches(&record, &here));
    record.inode = 3;
    CHECK(!mqx_record_matches(&record, &here));
    record.inode = 2;
    record.layout += 1;
    CHECK(!mqx_record_matches(&record, &here));
    record.layout -= 1;
    here.here.pid_namespace = 9;
    CHECK(!mqx_record_matches(&record, &here));
}

/* ---- memory files ---- */

/* With the default directory of regions, which counts as small. */
static int try_attach_automatic(struct fixture_process *out)
{
    const int32_t pid = fixture_next_pid++;
    const uint64_t small = mqx_region_file_small;
    mqx_region_file_small = UINT64_MAX;
    const int status =
        fixture_attach_io(memory_io_process(files, pid), FIXTURE_PATH, NULL, out);
    mqx_region_file_small = small;
    out->pid = pid;
    return status;
}

static void attach_automatic(struct fixture_process *out)
{
    const int status = try_attach_automatic(out);
    if (status != 0) {
        printf("\n    attach: %s", mqx_error_text());
    }
    CHECK_INT(status, 0);
}

TEST(a_region_in_memory_is_joined_survives_its_creator_and_goes_with_the_last)
{
    struct fixture_process a, b, c;
    struct fixture_queue queue;
    char text[64];
    uint32_t count = 0;
    start();
    attach_automatic(&a);
    CHECK(a.report.first && a.store->region.in_memory && region_exists(&a));
    CHECK_INT(fixture_define(&a, "Q", NULL, &queue), 0);
    CHECK_INT(fixture_put(&a, NULL, queue, false, "one", -1), 0);
    attach_automatic(&b);
    CHECK(!b.report.first && b.store->region.in_memory);
    mqx_process_slot(&a.store->region, a.store->region.process)->start_time = 1; /* long gone */
    fixture_kill(files, &a);
    attach_automatic(&c);
    CHECK(!c.report.first);
    CHECK_INT(fixture_detach(&b, NULL), 0);
    CHECK_INT(fixture_get(&c, NULL, queue, text, &count), 0);
    CHECK_STR(text, "one");
    CHECK_INT(fixture_detach(&c, NULL), 0);
    CHECK(!region_exists(&c));
    CHECK_INT(memory_io_open_count(files), 0);
}

TEST(a_region_in_memory_whose_processes_are_all_dead_is_a_reboot_without_trust_in_the_cache)
{
    struct fixture_process a, b;
    struct fixture_queue queue;
    char text[64];
    uint32_t count = 0;
    start();
    attach_automatic(&a);
    CHECK_INT(fixture_define(&a, "Q", NULL, &queue), 0);
    CHECK_INT(fixture_put(&a, NULL, queue, true, "kept", -1), 0);
    CHECK_INT(fixture_put(&a, NULL, queue, false, "lost", -1), 0);
    mqx_process_slot(&a.store->region, a.store->region.process)->start_time = 1;
    struct mqx_life_entry dead = {.pid = (int32_t)getpid(), .thread = (int32_t)getpid(),
                                  .start_time = 1, .pid_namespace = a.store->region.header
                                                                        ->pid_namespace};
    CHECK_INT(mqx_life_table_write(a.store->io, a.store->lock_fd, a.store->region.process, &dead),
              0);
    fixture_kill(files, &a);
    CHECK(region_exists(&a));
    const uint64_t dropped = memory_io_calls(files, MEMORY_DROP_CACHE);
    attach_automatic(&b);
    CHECK(b.report.first && !b.report.same_boot_orphan && !b.report.recovery.clean);
    CHECK(memory_io_calls(files, MEMORY_DROP_CACHE) > dropped); /* rule 14 */
    CHECK(!region_exists(&a));
    CHECK_INT(fixture_get(&b, NULL, queue, text, &count), 0);
    CHECK_STR(text, "kept");
    CHECK_INT(fixture_get(&b, NULL, queue, text, &count), MQRC_NO_MSG_AVAILABLE);
    CHECK_INT(fixture_detach(&b, NULL), 0);
}

TEST(a_lock_file_deleted_under_a_region_in_memory_is_noticed_and_a_dead_one_cleared_away)
{
    struct fixture_process a, b;
    start();
    attach_automatic(&a);
    CHECK(memory_io_remove(files, FIXTURE_PATH "/lock"));
    CHECK_INT(try_attach_automatic(&b), MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "does not know of it") != NULL);
    CHECK_INT(fixture_try_attach(files, &b), MQRC_ENVIRONMENT_ERROR); /* /dev/shm grew meanwhile */
    fixture_kill(files, &a);
    attach_automatic(&b);
    CHECK(b.report.first && !region_exists(&a));
    CHECK_INT(fixture_detach(&b, NULL), 0);
}

TEST(a_lock_file_deleted_under_a_process_that_lets_nobody_look_is_noticed)
{
    const struct memory_fault refused = {.kind = MEMORY_FAULT_ERROR, .at = 1, .for_ever = true,
                                         .ops = 1u << MEMORY_OPEN_OF_PROCESS, .error = EACCES};
    struct fixture_process a, b;
    start();
    attach_automatic(&a);
    CHECK(memory_io_remove(files, FIXTURE_PATH "/lock"));
    memory_io_set_fault(files, &refused);
    CHECK_INT(try_attach_automatic(&b), MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "does not know of it") != NULL);
    memory_io_set_fault(files, NULL);
    fixture_kill(files, &a);
}

TEST(a_chosen_directory_is_used_however_small)
{
    struct fixture_process a;
    const uint64_t small = mqx_region_file_small;
    start();
    mqx_region_file_small = UINT64_MAX;
    const int status = fixture_try_attach(files, &a);
    mqx_region_file_small = small;
    CHECK_INT(status, 0);
    CHECK(!a.store->region.in_memory);
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST_MAIN()
