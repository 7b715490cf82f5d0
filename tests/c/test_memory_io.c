/*
 * test_memory_io.c - proves memory_io.h: faults, recorder, images, freeze and restore, processes,
 * space limits. That its ordinary results equal those of Linux is proved in test_io.c.
 */
#include "memory_io.h"
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

static struct memory_io *files;
static struct mqx_io *io;
static int dir;

/* A new table with /home/qm (open as `dir`) and the region directory /shm. */
static void start(void)
{
    memory_io_free(files);
    files = memory_io_new();
    io = memory_io_table(files);
    memory_io_make_dirs(files, "/home/qm");
    memory_io_region_dir(files, "/shm");
    dir = io->ops->open_dir(io, "/home/qm");
    CHECK(dir >= 0);
}

static int create(const char *name)
{
    int fd = io->ops->open(io, dir, name, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    CHECK(fd >= 0);
    return fd;
}

static int put_text(int fd, const char *text, uint64_t offset, int flags)
{
    return mqx_io_write_all(io, fd, text, strlen(text), offset, flags);
}

static void arm(struct memory_fault fault)
{
    memory_io_set_fault(files, &fault);
}

TEST(a_mapping_stays_valid_and_shows_writes_while_the_file_grows_and_after_unlink)
{
    void *view = NULL;
    start();
    int fd = create("a");

    CHECK_INT(put_text(fd, "first", 0, 0), 0);
    CHECK_INT(io->ops->map(io, fd, 1 << 20, MQX_IO_MAP_READ, &view), 0);
    CHECK_MEM(view, "first", 5);
    CHECK_INT(put_text(fd, "later", (1 << 20) - 5, MQX_IO_DSYNC), 0);
    CHECK_MEM((char *)view + (1 << 20) - 5, "later", 5);
    CHECK_INT(io->ops->unlink(io, dir, "a"), 0);
    CHECK_INT(io->ops->close(io, fd), 0);
    CHECK_MEM(view, "first", 5);
    CHECK_INT(memory_io_map_count(files), 1);
    CHECK_INT(io->ops->unmap(io, view, 1 << 20), 0);
    CHECK_INT(memory_io_map_count(files), 0);
    CHECK_INT(io->ops->unmap(io, view, 1 << 20), -EINVAL);
}

static void store_into(void *arg)
{
    *(volatile char *)arg = 1;
}

TEST(a_store_into_a_read_mapping_faults)
{
    void *view = NULL;
    char text[16384];
    start();
    int fd = create("a");

    CHECK_INT(put_text(fd, "x", 0, 0), 0);
    CHECK_INT(io->ops->map(io, fd, 4096, MQX_IO_MAP_READ, &view), 0);
    CHECK(test_dies(SIGSEGV, store_into, view, text, sizeof text) || strstr(text, "SEGV") != NULL);
}

TEST(a_sparse_region_of_64_gib_is_cheap_zeroed_and_the_same_memory_for_every_mapping)
{
    uint64_t size = UINT64_C(64) << 30;
    uint8_t *one = NULL;
    uint8_t *two = NULL;
    start();
    int shm = io->ops->open_dir(io, "/shm");
    int fd = io->ops->open(io, shm, "region", MQX_IO_WRITE | MQX_IO_CREATE, 0600);

    CHECK_INT(io->ops->truncate(io, fd, size), 0);
    CHECK_INT(io->ops->allocate(io, fd, 0, 1 << 20), 0);
    CHECK_INT(io->ops->map(io, fd, size, MQX_IO_MAP_REGION, (void **)&one), 0);
    struct mqx_io *other = memory_io_process(files, 7);
    int shm2 = other->ops->open_dir(other, "/shm");
    int fd2 = other->ops->open(other, shm2, "region", MQX_IO_WRITE, 0);
    CHECK_INT(other->ops->map(other, fd2, size, MQX_IO_MAP_REGION, (void **)&two), 0);
    CHECK(one == two);
    CHECK_INT(one[size - 1], 0);
    one[12345] = 9;
    uint8_t byte = 0;
    CHECK_INT(mqx_io_read_all(io, fd, &byte, 1, 12345), 0);
    CHECK_INT(byte, 9);
    enum mqx_io_medium medium;
    CHECK_INT(io->ops->medium(io, shm, &medium), 0);
    CHECK_INT(medium, MQX_MEDIUM_MEMORY);
}

TEST(every_call_has_a_number_and_the_chosen_one_fails_and_does_nothing)
{
    struct mqx_io_stat st;
    start();
    int fd = create("a");

    CHECK_INT(put_text(fd, "abc", 0, 0), 0);
    uint64_t before = memory_io_calls(files, MEMORY_OP_COUNT);
    arm((struct memory_fault){.kind = MEMORY_FAULT_ERROR, .at = 2, .error = ENOSPC});
    CHECK_INT(io->ops->stat(io, fd, &st), 0);
    CHECK_INT(put_text(fd, "xyz", 0, 0), -ENOSPC);
    CHECK_INT(memory_io_fault_strikes(files), 1);
    CHECK_INT(put_text(fd, "z", 3, 0), 0);
    CHECK_INT(memory_io_calls(files, MEMORY_OP_COUNT), before + 3);
    CHECK_INT(memory_io_calls(files, MEMORY_WRITE), 3);
    CHECK_INT(memory_io_fault_calls(files), 3);
    uint64_t size = 0;
    CHECK_MEM(memory_io_bytes(files, "/home/qm/a", &size), "abcz", 4);
    CHECK_INT(size, 4);
}

TEST(a_lasting_fault_hits_every_later_call_of_its_kinds_only)
{
    start();
    int fd = create("a");

    arm((struct memory_fault){.kind = MEMORY_FAULT_ERROR, .at = 2, .for_ever = true,
                              .ops = 1u << MEMORY_WRITE | 1u << MEMORY_SYNC, .error = EIO});
    CHECK_INT(put_text(fd, "abc", 0, 0), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(io->ops->sync(io, fd), -EIO);
        CHECK_INT(put_text(fd, "x", 0, 0), -EIO);
        CHECK_INT(io->ops->sync_dir(io, dir), 0);
    }
    CHECK_INT(memory_io_fault_strikes(files), 6);
    memory_io_set_fault(files, NULL);
    CHECK_INT(io->ops->sync(io, fd), 0);
}

static int ignore_name(void *arg, const char *name)
{
    (void)arg;
    (void)name;
    return 0;
}

static int other_dir;

/* Calls every operation once, in an order in which each can work. */
static void call_all(int64_t results[MEMORY_OP_COUNT], int fd, int spare, void *view)
{
    enum mqx_io_medium medium;
    struct mqx_io_stat st;
    int32_t pid;
    char back[8];
    void *again = NULL;

    results[MEMORY_OPEN_DIR] = io->ops->open_dir(io, "/home");
    results[MEMORY_MAKE_SUB] = io->ops->make_sub(io, dir, "s", 0700);
    results[MEMORY_OPEN_SUB] = io->ops->open_sub(io, dir, "s");
    results[MEMORY_REMOVE_SUB] = io->ops->remove_sub(io, dir, "s");
    results[MEMORY_OPEN] = io->ops->open(io, dir, "a", MQX_IO_READ, 0);
    results[MEMORY_CLOSE] = io->ops->close(io, spare);
    results[MEMORY_WRITE] = put_text(fd, "abc", 0, 0);
    results[MEMORY_READ] = io->ops->read(io, fd, back, 3, 0);
    results[MEMORY_SYNC] = io->ops->sync(io, fd);
    results[MEMORY_SYNC_DIR] = io->ops->sync_dir(io, dir);
    results[MEMORY_TRUNCATE] = io->ops->truncate(io, fd, 1);
    results[MEMORY_ALLOCATE] = io->ops->allocate(io, fd, 0, 9);
    results[MEMORY_LIST] = io->ops->list(io, dir, ignore_name, NULL);
    results[MEMORY_RENAME] = io->ops->rename(io, dir, "a", "b");
    results[MEMORY_MOVE] = io->ops->move(io, dir, "b", other_dir);
    results[MEMORY_UNLINK] = io->ops->unlink(io, dir, "c");
    results[MEMORY_STAT] = io->ops->stat(io, fd, &st);
    results[MEMORY_MEDIUM] = io->ops->medium(io, dir, &medium);
    results[MEMORY_LOCK] = io->ops->lock(io, fd, 0, 1, MQX_IO_LOCK_SHARED);
    results[MEMORY_TEST_LOCK] = io->ops->test_lock(io, fd, 0, 1, &pid);
    results[MEMORY_POPULATE] = io->ops->populate(io, view, 1);
    results[MEMORY_UNMAP] = io->ops->unmap(io, view, 1);
    results[MEMORY_MAP] = io->ops->map(io, fd, 1, MQX_IO_MAP_READ, &again);
    results[MEMORY_DROP_CACHE] = io->ops->drop_cache(io, fd);
}

TEST(each_of_the_24_operations_can_be_failed_by_its_number)
{
    int64_t results[MEMORY_OP_COUNT];

    for (uint64_t at = 0; at <= MEMORY_OP_COUNT; at++) {
        void *view = NULL;
        start();
        int fd = create("a");
        int spare = create("spare");
        CHECK_INT(io->ops->close(io, create("c")), 0);
        memory_io_make_dirs(files, "/home/qm/other");
        other_dir = io->ops->open_sub(io, dir, "other");
        CHECK(other_dir >= 0);
        CHECK_INT(io->ops->map(io, fd, 1, MQX_IO_MAP_READ, &view), 0);
        arm((struct memory_fault){.kind = MEMORY_FAULT_ERROR, .at = at, .error = EDQUOT});
        call_all(results, fd, spare, view);
        int failed = 0;
        int refused = 0;
        for (int op = 0; op < MEMORY_OP_COUNT; op++) {
            refused += results[op] == -EDQUOT;
            failed += results[op] < 0;
        }
        CHECK_INT(refused, at > 0);
        CHECK_INT(memory_io_fault_strikes(files), at > 0);
        CHECK(at > 0 || failed == 0);
    }
}

TEST(a_short_write_leaves_its_beginning_and_fails)
{
    uint64_t size = 0;
    start();
    int fd = create("a");
    struct iovec parts[2] = {{(void *)(uintptr_t) "abc", 3}, {(void *)(uintptr_t) "defg", 4}};

    arm((struct memory_fault){.kind = MEMORY_FAULT_SHORT, .at = 1, .error = ENOSPC, .detail = 5});
    CHECK_INT(io->ops->write(io, fd, parts, 2, 0, MQX_IO_DSYNC), -ENOSPC);
    CHECK_MEM(memory_io_bytes(files, "/home/qm/a", &size), "abcde", 5);
    CHECK_INT(size, 5);
}

TEST(a_flipped_bit_and_a_short_read_reach_the_reader_but_not_the_file)
{
    char back[4];
    start();
    int fd = create("a");

    CHECK_INT(put_text(fd, "AAAA", 0, 0), 0);
    arm((struct memory_fault){.kind = MEMORY_FAULT_FLIP, .at = 1, .detail = 8 * 2 + 1});
    CHECK_INT(io->ops->read(io, fd, back, 4, 0), 4);
    CHECK_MEM(back, "AACA", 4);
    arm((struct memory_fault){.kind = MEMORY_FAULT_SHORT, .at = 1, .detail = 3});
    CHECK_INT(io->ops->read(io, fd, back, 4, 0), 3);
    CHECK_INT(io->ops->read(io, fd, back, 4, 0), 4);
    CHECK_MEM(back, "AAAA", 4);
}

static void check_kinds(const struct memory_trace *trace, const enum memory_event_kind *kinds,
                        uint32_t count)
{
    CHECK_INT(trace->event_count, count);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_INT(trace->events[i].kind, kinds[i]);
    }
}

TEST(a_failed_flush_is_recorded_as_lost_and_not_as_durable)
{
    start();
    int fd = create("a");
    memory_io_record(files, "/home/qm");

    arm((struct memory_fault){.kind = MEMORY_FAULT_FLUSH, .at = 1, .error = EIO});
    CHECK_INT(put_text(fd, "abc", 0, MQX_IO_DSYNC), -EIO);
    CHECK_INT(put_text(fd, "def", 3, MQX_IO_DSYNC), 0);
    arm((struct memory_fault){.kind = MEMORY_FAULT_FLUSH, .at = 2, .for_ever = true, .error = EIO});
    CHECK_INT(put_text(fd, "ghi", 6, 0), 0); /* a plain write does not flush: no strike */
    CHECK_INT(io->ops->sync(io, fd), -EIO);
    CHECK_INT(io->ops->sync_dir(io, dir), -EIO);
    CHECK_INT(memory_io_fault_strikes(files), 2);
    struct memory_trace *trace = memory_io_take_trace(files);
    static const enum memory_event_kind kinds[] = {MEMORY_EV_WRITE, MEMORY_EV_LOST,
                                                   MEMORY_EV_DWRITE, MEMORY_EV_WRITE,
                                                   MEMORY_EV_LOST};
    check_kinds(trace, kinds, MQX_ARRAY_COUNT(kinds));
    memory_trace_free(trace);
}

TEST(the_recorder_keeps_order_bytes_and_identity_and_leaves_regions_out)
{
    start();
    int old = create("old");
    CHECK_INT(put_text(old, "before", 0, 0), 0);
    memory_io_record(files, "/home/qm");
    int fd = create("a");
    struct iovec parts[2] = {{(void *)(uintptr_t) "abc", 3}, {(void *)(uintptr_t) "def", 3}};
    CHECK_INT(io->ops->allocate(io, fd, 0, 4096), 0);
    CHECK_INT(io->ops->write(io, fd, parts, 2, 10, 0), 0);
    CHECK_INT(io->ops->sync(io, fd), 0);
    CHECK_INT(io->ops->rename(io, dir, "a", "b"), 0);
    CHECK_INT(io->ops->sync_dir(io, dir), 0);
    CHECK_INT(put_text(fd, "durable", 4096, MQX_IO_DSYNC), 0);
    memory_io_ack(files, 77);
    int shm = io->ops->open_dir(io, "/shm");
    int region = io->ops->open(io, shm, "r", MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    CHECK_INT(put_text(region, "not recorded", 0, MQX_IO_DSYNC), 0);
    CHECK_INT(io->ops->make_sub(io, dir, "journal", 0700), 0);
    CHECK_INT(io->ops->unlink(io, dir, "old"), 0);
    struct memory_trace *trace = memory_io_take_trace(files);
    static const enum memory_event_kind kinds[] = {
        MEMORY_EV_CREATE, MEMORY_EV_ALLOCATE, MEMORY_EV_WRITE,  MEMORY_EV_SYNC,  MEMORY_EV_RENAME,
        MEMORY_EV_DIRSYNC, MEMORY_EV_DWRITE,  MEMORY_EV_ACK,    MEMORY_EV_CREATE, MEMORY_EV_UNLINK};

    check_kinds(trace, kinds, MQX_ARRAY_COUNT(kinds));
    CHECK_STR(trace->path, "/home/qm");
    CHECK_INT(trace->start_count, 1);
    CHECK_STR(trace->start[0].name, "old");
    CHECK_MEM(trace->start[0].data, "before", 6);
    CHECK_INT(trace->events[0].dir, trace->root);
    uint32_t id = trace->events[0].file;
    CHECK_INT(trace->events[2].file, id);
    CHECK_INT(trace->events[2].offset, 10);
    CHECK_MEM(trace->events[2].data, "abcdef", 6);
    CHECK_STR(trace->events[4].name, "a");
    CHECK_STR(trace->events[4].to, "b");
    CHECK_INT(trace->events[6].file, id);
    CHECK_INT(trace->events[7].value, 77);
    CHECK(trace->events[8].is_dir && !trace->events[9].is_dir);
    CHECK_INT(trace->events[9].file, trace->start[0].file);
    memory_trace_free(trace);
}

TEST(an_image_taken_and_loaded_elsewhere_is_the_same_tree)
{
    start();
    CHECK_INT(io->ops->make_sub(io, dir, "journal", 0700), 0);
    memory_io_put(files, "/home/qm/journal/1.psj", "segment", 7);
    memory_io_put(files, "/home/qm/empty", NULL, 0);
    struct memory_image *image = memory_image_take(files, "/home/qm");
    memory_io_put(files, "/home/copy", "in the way", 10);
    CHECK(memory_io_remove(files, "/home/copy"));
    CHECK(!memory_io_remove(files, "/home/copy"));
    memory_io_make_dirs(files, "/home/copy/stale/sub");
    memory_io_put(files, "/home/copy/stale/f", "x", 1);
    memory_io_make_dirs(files, "/home/copy/empty");
    memory_image_load(files, "/home/copy", image);
    struct memory_image *again = memory_image_take(files, "/home/copy");

    CHECK_INT(again->count, 3);
    for (uint32_t i = 0; i < image->count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < again->count; k++) {
            found |= strcmp(image->files[i].path, again->files[k].path) == 0 &&
                     image->files[i].size == again->files[k].size &&
                     image->files[i].directory == again->files[k].directory &&
                     (image->files[i].directory ||
                      memcmp(image->files[i].data, again->files[k].data,
                             image->files[i].size) == 0);
        }
        CHECK(found);
    }
    memory_image_free(image);
    memory_image_free(again);
}

TEST(an_image_written_to_a_real_directory_reads_back_there)
{
    char real[] = "/tmp/penstock-image-XXXXXX";
    char path[64];
    char back[16] = "";
    start();
    CHECK_INT(io->ops->make_sub(io, dir, "journal", 0700), 0);
    memory_io_put(files, "/home/qm/journal/1.psj", "segment", 7);
    struct memory_image *image = memory_image_take(files, "/home/qm");
    CHECK(mkdtemp(real) != NULL);
    int result = memory_image_write(image, real);
    snprintf(path, sizeof path, "%s/journal/1.psj", real);
    FILE *file = fopen(path, "rb");
    size_t n = file != NULL ? fread(back, 1, sizeof back, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    unlink(path);
    snprintf(path, sizeof path, "%s/journal", real);
    rmdir(path);
    rmdir(real);
    memory_image_free(image);
    CHECK_INT(result, 0);
    CHECK_INT(n, 7);
    CHECK_STR(back, "segment");
}

/* A digest of the tree below /home. */
static uint64_t digest(void)
{
    struct memory_image *image = memory_image_take(files, "/home");
    uint64_t sum = image->count;
    for (uint32_t i = 0; i < image->count; i++) {
        uint64_t one = image->files[i].size;
        for (const char *at = image->files[i].path; *at != '\0'; at++) {
            one = one * 31 + (uint8_t)*at;
        }
        for (uint64_t k = 0; !image->files[i].directory && k < image->files[i].size; k++) {
            one = one * 1099511628211u + image->files[i].data[k];
        }
        sum += one * 0x9e3779b97f4a7c15u; /* order of names does not count */
    }
    memory_image_free(image);
    return sum;
}

static void random_change(struct test_random *random)
{
    static char bytes[20000];
    static const char *const names[] = {"a", "b", "c", "d"};
    const char *name = names[test_below(random, 4)];
    int fd = io->ops->open(io, dir, name, MQX_IO_WRITE, 0);
    int made = -1;

    if (fd < 0) {
        fd = create(name);
    }
    memset(bytes, (int)test_below(random, 256), sizeof bytes);
    switch (test_below(random, 7)) {
    case 0:
        CHECK_INT(io->ops->truncate(io, fd, test_below(random, 70000)), 0);
        break;
    case 1:
        CHECK_INT(io->ops->unlink(io, dir, name), 0);
        break;
    case 2:
        CHECK_INT(io->ops->rename(io, dir, name, names[test_below(random, 4)]), 0);
        break;
    case 3:
        made = io->ops->make_sub(io, dir, "sub", 0700);
        CHECK(made == 0 || made == -EEXIST);
        break;
    default:
        CHECK_INT(mqx_io_write_all(io, fd, bytes, test_below(random, sizeof bytes),
                                   test_below(random, 60000), 0), 0);
    }
    if (test_below(random, 4) != 0) {
        CHECK_INT(io->ops->close(io, fd), 0);
    }
}

TEST(restore_brings_back_exactly_the_frozen_tree_after_random_changes)
{
    struct test_random random = {test_seed()};
    start();
    for (int round = 0; round < 300; round++) {
        memory_io_freeze(files);
        uint64_t frozen = digest();
        for (int again = 0; again < 3; again++) {
            uint64_t changes = test_below(&random, 20);
            for (uint64_t i = 0; i < changes; i++) {
                random_change(&random);
            }
            memory_io_restore(files);
            CHECK_INT(memory_io_open_count(files), 0);
            CHECK_INT(digest(), frozen);
            dir = io->ops->open_dir(io, "/home/qm");
        }
        random_change(&random);
    }
}

TEST(memory_of_removed_files_is_zero_when_it_is_used_again)
{
    static uint8_t bytes[100000];
    start();
    for (int round = 0; round < 50; round++) {
        int fd = create("a");
        CHECK_INT(io->ops->truncate(io, fd, sizeof bytes), 0);
        CHECK_INT(mqx_io_read_all(io, fd, bytes, sizeof bytes, 0), 0);
        for (size_t i = 0; i < sizeof bytes; i++) {
            CHECK(bytes[i] == 0);
        }
        memset(bytes, 0xee, sizeof bytes);
        CHECK_INT(mqx_io_write_all(io, fd, bytes, sizeof bytes, 0, 0), 0);
        if (round % 2 == 0) {
            memory_io_freeze(files);
        }
        if (round % 3 == 0) {
            CHECK_INT(mqx_io_write_all(io, fd, bytes, 10, 5000000, 0), 0);
        }
        CHECK_INT(io->ops->close(io, fd), 0);
        CHECK_INT(io->ops->unlink(io, dir, "a"), 0);
        memory_io_freeze(files);
    }
}

TEST(a_changed_page_of_a_64_kib_image_is_restored_in_microseconds)
{
    enum { ROUNDS = 20000 };
    static uint8_t bytes[65536];
    uint8_t *view = NULL;
    start();
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    memory_io_put(files, "/home/qm/1.psj", bytes, sizeof bytes);
    memory_io_freeze(files);
    for (int i = 0; i < ROUNDS; i++) { /* speed is printed by the programs that need it, not here */
        uint64_t at = (uint64_t)i * 8 % sizeof bytes;
        memory_io_patch(files, "/home/qm/1.psj", at, "xxxxxxxx", 8);
        dir = io->ops->open_dir(io, "/home/qm");
        int fd = io->ops->open(io, dir, "1.psj", MQX_IO_READ, 0);
        CHECK_INT(io->ops->map(io, fd, sizeof bytes, MQX_IO_MAP_READ, (void **)&view), 0);
        CHECK(view[at] == 'x' && view[(at + 8) % sizeof bytes] == bytes[(at + 8) % sizeof bytes]);
        memory_io_restore(files);
        CHECK(view[at] == bytes[at]);
    }
    CHECK_INT(memory_io_map_count(files), 0);
}

TEST(record_locks_belong_to_a_process_and_fall_with_any_descriptor_of_the_file)
{
    int32_t pid = -1;
    start();
    struct mqx_io *other = memory_io_process(files, 2000);
    int fd = create("lock");
    int fd2 = io->ops->open(io, dir, "lock", MQX_IO_READ, 0);
    int dir2 = other->ops->open_dir(other, "/home/qm");
    int theirs = other->ops->open(other, dir2, "lock", MQX_IO_WRITE, 0);

    CHECK(memory_io_process(files, 2000) == other);
    CHECK_INT(other->ops->close(other, fd), -EBADF); /* descriptors are private, too */
    CHECK_INT(io->ops->lock(io, fd, 0, 10, MQX_IO_LOCK_EXCLUSIVE), 0);
    CHECK_INT(other->ops->lock(other, theirs, 3, 1, MQX_IO_LOCK_SHARED), -EAGAIN);
    CHECK_INT(io->ops->lock(io, fd, 3, 2, MQX_IO_UNLOCK), 0); /* splits it */
    CHECK_INT(other->ops->lock(other, theirs, 3, 2, MQX_IO_LOCK_EXCLUSIVE), 0);
    CHECK_INT(other->ops->lock(other, theirs, 2, 1, MQX_IO_LOCK_SHARED), -EAGAIN);
    CHECK_INT(other->ops->lock(other, theirs, 5, 1, MQX_IO_LOCK_SHARED), -EAGAIN);
    CHECK_INT(other->ops->test_lock(other, theirs, 9, 1, &pid), 0);
    CHECK_INT(pid, MEMORY_IO_PID);
    CHECK_INT(io->ops->test_lock(io, fd, 4, 1, &pid), 0);
    CHECK_INT(pid, 2000);
    CHECK_INT(io->ops->lock(io, fd, 0, 3, MQX_IO_LOCK_SHARED), 0); /* converts */
    CHECK_INT(other->ops->lock(other, theirs, 0, 1, MQX_IO_LOCK_SHARED), 0);
    CHECK_INT(io->ops->close(io, fd2), 0);
    CHECK_INT(other->ops->lock(other, theirs, 5, 5, MQX_IO_LOCK_EXCLUSIVE), 0);
    memory_io_kill(files, 2000);
    CHECK_INT(io->ops->lock(io, fd, 0, 10, MQX_IO_LOCK_EXCLUSIVE), 0);
    CHECK_INT(other->ops->close(other, theirs), -EBADF);
}

TEST(a_full_disk_refuses_growth_and_takes_it_again_after_space_was_freed)
{
    static char bytes[8192];
    start();
    memory_io_set_space(files, 16384, 4096);
    int a = create("a");
    int b = create("b");
    int shm = io->ops->open_dir(io, "/shm");
    int region = io->ops->open(io, shm, "r", MQX_IO_WRITE | MQX_IO_CREATE, 0600);

    CHECK_INT(mqx_io_write_all(io, a, bytes, 8192, 0, 0), 0);
    CHECK_INT(io->ops->allocate(io, b, 0, 8192), 0);
    CHECK_INT(mqx_io_write_all(io, a, bytes, 8192, 8192, 0), -ENOSPC);
    CHECK_INT(io->ops->allocate(io, a, 8192, 1), -ENOSPC);
    CHECK_INT(mqx_io_write_all(io, a, bytes, 8192, 0, MQX_IO_DSYNC), 0); /* in place: fits */
    CHECK_INT(io->ops->truncate(io, region, UINT64_C(1) << 35), 0); /* sparse: costs nothing */
    CHECK_INT(io->ops->allocate(io, region, 0, 4096), 0);
    CHECK_INT(io->ops->allocate(io, region, 4096, 1), -ENOSPC);
    CHECK_INT(io->ops->close(io, b), 0);
    CHECK_INT(io->ops->unlink(io, dir, "b"), 0);
    CHECK_INT(mqx_io_write_all(io, a, bytes, 8192, 8192, 0), 0);
    CHECK_INT(io->ops->truncate(io, a, 4096), 0);
    CHECK_INT(io->ops->allocate(io, a, 0, 16384), 0);
}

static void count_and_stop(void *arg, enum memory_op op, uint64_t number)
{
    uint64_t *seen = arg;
    seen[0]++;
    if (op == MEMORY_SYNC) {
        seen[1] = number;
        longjmp(test_stop, 1);
    }
}

TEST(the_hook_sees_each_call_before_it_happens_and_may_leave_by_longjmp)
{
    uint64_t seen[2] = {0, 0};
    jmp_buf outer;
    start();
    int fd = create("a");

    memcpy(&outer, &test_stop, sizeof outer);
    memory_io_set_hook(files, count_and_stop, seen);
    if (setjmp(test_stop) == 0) {
        CHECK_INT(put_text(fd, "x", 0, 0), 0);
        (void)io->ops->sync(io, fd);
    }
    memcpy(&test_stop, &outer, sizeof outer);
    memory_io_set_hook(files, NULL, NULL);
    CHECK_INT(seen[0], 2);
    CHECK_INT(seen[1], memory_io_calls(files, MEMORY_OP_COUNT) + 1);
    CHECK_INT(memory_io_calls(files, MEMORY_SYNC), 0);
    CHECK_STR(memory_op_name(MEMORY_SYNC), "sync");
    CHECK_STR(memory_op_name(MEMORY_DROP_CACHE), "drop_cache");
}

TEST(the_clock_stands_where_it_was_set_and_ascends)
{
    start();
    CHECK_INT(io->ops->now_us(io), 1700000000000000);
    CHECK_INT(io->ops->now_us(io), 1700000000000001);
    memory_io_set_clock(files, 42);
    CHECK_INT(io->ops->now_us(io), 42);
    memory_io_set_medium(files, MQX_MEDIUM_COW);
    enum mqx_io_medium medium;
    CHECK_INT(io->ops->medium(io, dir, &medium), 0);
    CHECK_INT(medium, MQX_MEDIUM_COW);
}

static void *write_much(void *arg)
{
    int fd = *(int *)arg;
    for (uint64_t i = 0; i < 2000; i++) {
        test_expect(mqx_io_write_all(io, fd, &i, sizeof i, 8 * (i % 100), MQX_IO_DSYNC) == 0,
                    __FILE__, __LINE__, "write from a thread");
        test_expect(io->ops->sync(io, fd) == 0, __FILE__, __LINE__, "sync from a thread");
    }
    return NULL;
}

TEST(threads_may_call_at_the_same_time_and_every_call_is_recorded_and_counted)
{
    pthread_t threads[4];
    int fds[4];
    char name[2] = "a";
    start();
    memory_io_record(files, "/home/qm");
    for (int i = 0; i < 4; i++, name[0]++) {
        fds[i] = create(name);
        CHECK_INT(pthread_create(&threads[i], NULL, write_much, &fds[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    }
    struct memory_trace *trace = memory_io_take_trace(files);
    CHECK_INT(trace->event_count, 4 + 4 * 4000);
    CHECK_INT(memory_io_calls(files, MEMORY_WRITE), 8000);
    memory_trace_free(trace);
    memory_io_flip_bit(files, "/home/qm/a", 3);
    memory_io_cut(files, "/home/qm/a", 1);
    uint64_t size = 0;
    CHECK_INT(memory_io_bytes(files, "/home/qm/a", &size)[0], (1900 & 0xff) ^ 8);
    CHECK_INT(size, 1);
}

TEST_MAIN()
