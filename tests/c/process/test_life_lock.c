/*
 * test_life_lock.c - proves mqx_life_lock_holders(): what it tells without asking about each slot.
 * The rest of life_lock.h is proved by test_attach.c.
 */
#include "fixtures/store_fixture.h"

#include "process/life_lock.h"

static int32_t holder_of[MQX_PROCESS_MAX]; /* by slot; 0: nobody */
static int questions;

static int told_lock(struct mqx_io *io, int fd, uint64_t offset, uint64_t size, int32_t *pid)
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

/* The text that a look at each slot by itself gives. */
static void name_each(struct mqx_life_lock *file, char *text, size_t size)
{
    uint32_t count = 0;
    size_t used = 0;
    snprintf(text, size, "nobody");
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
    struct memory_io *files = bed_new();
    struct bed_process a;
    bed_attach(files, &a);
    struct mqx_life_lock *file = mqx_life_lock_find(a.store->io, a.store->lock_fd);
    const struct mqx_io_ops *real = a.store->io->ops;
    struct mqx_io_ops told = *real;
    told.test_lock = told_lock;
    a.store->io->ops = &told;
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
    CHECK_INT(bed_detach(&a, NULL), 0);
    memory_io_free(files);
}

TEST_MAIN()
