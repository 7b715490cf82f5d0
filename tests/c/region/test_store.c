/* Claims of store.h: a directory's descriptor that the program has closed or replaced is found
 * before anything is made or removed through it. */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/memory_io.h"
#include "region/store.h"

#include <errno.h>
#include <string.h>

static struct memory_io *files;
static struct mqx_store store;

static void start(void)
{
    memory_io_free(files);
    files = memory_io_new();
    struct mqx_io *io = memory_io_table(files);
    static const char *const paths[] = {"/qm", "/qm/journal", "/qm/checkpoint", "/qm/errors",
                                        "/shm"};
    store = (struct mqx_store){.io = io, .archive_dir = -1};
    int *const to[] = {&store.dir, &store.journal_dir, &store.checkpoint_dir, &store.errors_dir,
                       &store.region_dir};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(paths); i++) {
        memory_io_make_dirs(files, paths[i]);
        *to[i] = io->ops->open_dir(io, paths[i]);
        CHECK(*to[i] >= 0);
    }
    mqx_store_note(&store);
}

TEST(descriptors_that_are_as_they_were_pass)
{
    start();
    CHECK_INT(mqx_store_check(&store), 0);
    CHECK(mqx_store_is_whole(&store));
    CHECK_INT(store.dir_id[3].inode, 0); /* no archive */
}

TEST(a_closed_or_replaced_descriptor_is_named)
{
    int *const all[] = {&store.dir, &store.journal_dir, &store.checkpoint_dir, &store.errors_dir,
                        &store.region_dir};
    static const char *const names[] = {"queue manager's directory", "journal", "checkpoint",
                                        "errors", "shared regions"};
    for (int replaced = 0; replaced < 2; replaced++) {
        for (size_t i = 0; i < MQX_ARRAY_COUNT(all); i++) {
            start();
            CHECK_INT(store.io->ops->close(store.io, *all[i]), 0);
            memory_io_make_dirs(files, "/other");
            if (replaced != 0) { /* the lowest free number */
                CHECK_INT(store.io->ops->open_dir(store.io, "/other"), *all[i]);
            }
            CHECK_INT(mqx_store_check(&store), MQRC_ENVIRONMENT_ERROR);
            CHECK(strstr(mqx_error_text(), names[i]) != NULL);
            mqx_error_clear();
            CHECK(!mqx_store_is_whole(&store));
            CHECK_STR(mqx_error_text(), "");
        }
    }
}

TEST(a_directory_that_could_not_be_asked_is_not_checked)
{
    start();
    const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = 2,
                                       .ops = 1u << MEMORY_STAT, .error = EIO};
    memory_io_set_fault(files, &fault);
    mqx_store_note(&store);
    memory_io_set_fault(files, NULL);
    CHECK_INT(store.dir_id[1].inode, 0);
    CHECK_INT(store.io->ops->close(store.io, store.journal_dir), 0);
    CHECK_INT(mqx_store_check(&store), 0);
}

TEST(closing_leaves_a_descriptor_that_the_program_has_replaced)
{
    start();
    const int lost = store.journal_dir;
    CHECK_INT(store.io->ops->close(store.io, lost), 0);
    CHECK_INT(store.io->ops->open_dir(store.io, "/qm"), lost);
    CHECK_INT(memory_io_open_count(files), 5);
    mqx_store_close(&store);
    CHECK_INT(memory_io_open_count(files), 1);
    CHECK_INT(store.dir, -1);
    CHECK_INT(store.journal_dir, -1);
    mqx_store_close(&store); /* nothing to do */
    CHECK_INT(store.io->ops->close(store.io, lost), 0);
}

TEST(an_error_of_asking_is_an_error_of_the_check)
{
    start();
    const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = 1,
                                       .ops = 1u << MEMORY_STAT, .error = EIO};
    memory_io_set_fault(files, &fault);
    CHECK_INT(mqx_store_check(&store), MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "errno 5") != NULL);
    memory_io_set_fault(files, NULL);
}

TEST(the_fixture_is_removed)
{
    memory_io_free(files);
    files = NULL;
}

TEST_MAIN()
