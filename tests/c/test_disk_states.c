/*
 * test_disk_states.c - proves disk_states.h: exactly the legal states of small recordings are
 * shown, and in a toy store each planted fault is found while the right one passes.
 */
#include "disk_states.h"
#include "checksum.h"
#include "harness.h"

#include <errno.h>
#include <time.h>

static struct memory_io *files;
static struct mqx_io *io;
static int dir;

static void start(void)
{
    memory_io_free(files);
    files = memory_io_new();
    io = memory_io_table(files);
    memory_io_make_dirs(files, "/qm");
    dir = io->ops->open_dir(io, "/qm");
}

static int create(const char *name)
{
    int fd = io->ops->open(io, dir, name, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    CHECK(fd >= 0);
    return fd;
}

static void fill(int fd, char byte, uint64_t offset, size_t size, int flags)
{
    char bytes[8192];
    CHECK(size <= sizeof bytes);
    memset(bytes, byte, size);
    CHECK_INT(mqx_io_write_all(io, fd, bytes, size, offset, flags), 0);
}

/* ---- the states that were shown, as texts "name=AB.. name=..": first bytes of sectors ---- */

enum { SHOWN_MAX = 4096 };
static char shown[SHOWN_MAX][160];
static uint32_t shown_count;
static bool shown_in_flight_only;

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int remember(void *arg, const struct disk_state *state)
{
    char parts[8][40];
    uint32_t count = 0;
    struct memory_image *image = memory_image_take(state->files, state->path);

    (void)arg;
    CHECK(shown_count < SHOWN_MAX);
    for (uint32_t i = 0; i < image->count && i < 8; i++) {
        const struct memory_image_file *file = &image->files[i];
        char *text = parts[count++];
        int used = snprintf(text, 20, "%s=", file->path);
        for (uint64_t at = 0; at < file->size && used < 38; at += state->sector) {
            text[used++] = (char)(file->data[at] != 0 ? file->data[at] : '.');
        }
        text[used] = '\0';
    }
    qsort(parts, count, sizeof parts[0], by_text);
    if (!shown_in_flight_only || state->in_flight) {
        char *all = shown[shown_count++];
        strcpy(all, count == 0 ? "nothing" : "");
        for (uint32_t i = 0; i < count; i++) {
            strcat(strcat(all, parts[i]), i + 1 < count ? " " : "");
        }
    }
    memory_image_free(image);
    return 0;
}

/* Runs the recording at one sector size and collects the distinct texts, sorted, joined by |. */
static struct disk_states_counts run_states(const struct memory_trace *trace, uint32_t sector,
                                            uint32_t cap, uint32_t first)
{
    struct disk_states_counts counts = {0};
    struct disk_states_options options = {
        .sector = sector, .cap = cap, .seed = test_seed(), .first_event = first};

    shown_count = 0;
    CHECK_INT(disk_states_run(trace, &options, remember, &counts), 0);
    qsort(shown, shown_count, sizeof shown[0], by_text);
    return counts;
}

static const char *joined(void)
{
    static char text[4096];
    text[0] = '\0';
    for (uint32_t i = 0; i < shown_count; i++) {
        if (i == 0 || strcmp(shown[i], shown[i - 1]) != 0) {
            strcat(strcat(text, text[0] != '\0' ? "|" : ""), shown[i]);
        }
    }
    return text;
}

/* The states after the last event. */
static const char *last_states(uint32_t sector)
{
    struct memory_trace *trace = memory_io_take_trace(files);
    (void)run_states(trace, sector, 100000, trace->event_count - 1);
    memory_trace_free(trace);
    return joined();
}

TEST(two_unsynced_sectors_are_each_old_new_or_zeroed_independently)
{
    start();
    int fd = create("f");
    fill(fd, 'a', 0, 1024, 0);
    memory_io_record(files, "/qm");
    fill(fd, 'b', 0, 1024, 0);
    CHECK_STR(last_states(512), "f=..|f=.a|f=.b|f=a.|f=aa|f=ab|f=b.|f=ba|f=bb");
}

TEST(without_zeroing_only_old_and_new_are_left)
{
    struct disk_states_counts counts = {0};
    struct disk_states_options options = {.sector = 512, .cap = 100, .no_zeroed = true};
    start();
    int fd = create("f");
    fill(fd, 'a', 0, 1024, 0);
    memory_io_record(files, "/qm");
    fill(fd, 'b', 0, 1024, 0);
    struct memory_trace *trace = memory_io_take_trace(files);
    shown_count = 0;
    CHECK_INT(disk_states_run(trace, &options, remember, &counts), 0);
    qsort(shown, shown_count, sizeof shown[0], by_text);
    CHECK_STR(joined(), "f=aa|f=ab|f=ba|f=bb");
    CHECK_INT(counts.distinct, 4);
    CHECK_INT(counts.points, 1);
    CHECK_INT(counts.enumerated, 1);
    memory_trace_free(trace);
}

TEST(a_sector_written_twice_keeps_its_intermediate_version)
{
    start();
    int fd = create("f");
    fill(fd, 'a', 0, 512, 0);
    memory_io_record(files, "/qm");
    fill(fd, 'b', 0, 512, 0);
    fill(fd, 'c', 0, 512, 0);
    CHECK_STR(last_states(512), "f=.|f=a|f=b|f=c");
}

TEST(a_sync_leaves_exactly_the_new_content)
{
    start();
    int fd = create("f");
    fill(fd, 'a', 0, 1024, 0);
    memory_io_record(files, "/qm");
    fill(fd, 'b', 0, 1024, 0);
    fill(fd, 'c', 512, 1024, 0);
    CHECK_INT(io->ops->sync(io, fd), 0);
    CHECK_STR(last_states(512), "f=bcc");
}

TEST(a_dsync_write_is_torn_in_flight_and_then_durable_but_leaves_older_writes_open)
{
    start();
    int fd = create("f");
    fill(fd, 'a', 0, 1024, 0);
    memory_io_record(files, "/qm");
    fill(fd, 'b', 0, 512, 0);
    fill(fd, 'c', 512, 512, MQX_IO_DSYNC);
    struct memory_trace *trace = memory_io_take_trace(files);
    shown_in_flight_only = true;
    (void)run_states(trace, 512, 100, 1);
    shown_in_flight_only = false;
    CHECK_STR(joined(), "f=..|f=.a|f=.c|f=a.|f=aa|f=ac|f=b.|f=ba|f=bc");
    memory_io_ack(files, 0);
    memory_trace_free(trace);

    start(); /* the same with an event behind it, to see what is left */
    fd = create("f");
    fill(fd, 'a', 0, 1024, 0);
    memory_io_record(files, "/qm");
    fill(fd, 'b', 0, 512, 0);
    fill(fd, 'c', 512, 512, MQX_IO_DSYNC);
    memory_io_ack(files, 0);
    CHECK_STR(last_states(512), "f=.c|f=ac|f=bc");
}

TEST(a_later_segment_may_survive_without_an_earlier_one)
{
    start();
    int one = create("1");
    int two = create("2");
    memory_io_record(files, "/qm");
    fill(one, 'x', 0, 512, 0);
    fill(two, 'y', 0, 512, 0);
    CHECK_STR(last_states(512),
              "1= 2=|1= 2=.|1= 2=y|1=. 2=|1=. 2=.|1=. 2=y|1=x 2=|1=x 2=.|1=x 2=y");
}

TEST(names_are_any_prefix_of_the_unsynced_directory_operations)
{
    start();
    memory_io_record(files, "/qm");
    int fd = create("t");
    fill(fd, 'x', 0, 512, 0);
    CHECK_INT(io->ops->sync(io, fd), 0); /* a file's sync does not make its name durable */
    CHECK_INT(io->ops->rename(io, dir, "t", "f"), 0);
    CHECK_INT(io->ops->close(io, create("g")), 0);
    CHECK_STR(last_states(512), "f=x|f=x g=|nothing|t=x");
}

TEST(a_directory_sync_makes_names_durable_and_a_rename_replaces_its_target_at_once)
{
    start();
    CHECK_INT(io->ops->close(io, create("f")), 0);
    memory_io_record(files, "/qm");
    int fd = create("t");
    fill(fd, 'x', 0, 512, MQX_IO_DSYNC);
    CHECK_INT(io->ops->sync_dir(io, dir), 0);
    CHECK_INT(io->ops->rename(io, dir, "t", "f"), 0);
    CHECK_STR(last_states(512), "f= t=x|f=x");
}

TEST(an_unlinked_file_may_come_back_until_the_directory_is_synced)
{
    start();
    memory_io_put(files, "/qm/f", "x", 1);
    memory_io_record(files, "/qm");
    CHECK_INT(io->ops->unlink(io, dir, "f"), 0);
    struct memory_trace *trace = memory_io_take_trace(files);
    (void)run_states(trace, 512, 100, 0);
    CHECK_STR(joined(), "f=x|nothing");
    memory_trace_free(trace);
}

TEST(a_new_subdirectory_may_be_missing_with_all_that_is_in_it)
{
    start();
    memory_io_record(files, "/qm");
    CHECK_INT(io->ops->make_sub(io, dir, "j", 0700), 0);
    int sub = io->ops->open_sub(io, dir, "j");
    int fd = io->ops->open(io, sub, "1", MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    CHECK_INT(mqx_io_write_all(io, fd, "x", 1, 0, MQX_IO_DSYNC), 0);
    CHECK_INT(io->ops->sync_dir(io, sub), 0);
    CHECK_STR(last_states(512), "j/1=x j=|nothing");
}

TEST(a_failed_flush_stays_open_through_later_syncs_until_rewritten)
{
    struct memory_fault fault = {.kind = MEMORY_FAULT_FLUSH, .at = 1, .error = EIO};
    start();
    int fd = create("f");
    fill(fd, 'a', 0, 512, 0);
    memory_io_record(files, "/qm");
    memory_io_set_fault(files, &fault);
    CHECK_INT(mqx_io_write_all(io, fd, "b", 1, 0, MQX_IO_DSYNC), -EIO);
    CHECK_INT(io->ops->sync(io, fd), 0); /* says yes, and has done nothing */
    struct memory_trace *trace = memory_io_take_trace(files);
    (void)run_states(trace, 512, 100, trace->event_count - 1);
    CHECK_STR(joined(), "f=.|f=a|f=b");
    memory_trace_free(trace);
    memory_io_record(files, "/qm");
    memory_io_set_fault(files, &fault);
    CHECK_INT(mqx_io_write_all(io, fd, "b", 1, 0, MQX_IO_DSYNC), -EIO);
    fill(fd, 'c', 0, 512, 0);
    CHECK_INT(io->ops->sync(io, fd), 0);
    CHECK_STR(last_states(512), "f=c");
}

TEST(the_size_is_durable_or_cached_and_covers_what_survived)
{
    start();
    int fd = create("f");
    fill(fd, 'a', 0, 512, 0);
    memory_io_record(files, "/qm");
    CHECK_INT(io->ops->allocate(io, fd, 0, 1536), 0);
    fill(fd, 'b', 512, 512, 0);
    CHECK_STR(last_states(512), "f=a|f=a..|f=ab|f=ab.");
    start();
    fd = create("f");
    fill(fd, 'a', 0, 1024, 0);
    memory_io_record(files, "/qm");
    CHECK_INT(io->ops->truncate(io, fd, 512), 0);
    CHECK_STR(last_states(512), "f=a|f=a.|f=aa");
}

TEST(acknowledgements_are_shown_in_order_and_the_same_image_again_after_each)
{
    struct disk_states_counts counts;
    start();
    int fd = create("f");
    memory_io_record(files, "/qm");
    fill(fd, 'a', 0, 512, MQX_IO_DSYNC);
    memory_io_ack(files, 5);
    memory_io_ack(files, 6);
    struct memory_trace *trace = memory_io_take_trace(files);
    counts = run_states(trace, 512, 100, 0);
    CHECK_INT(counts.distinct, 3 + 1 + 1 - 0); /* "", ".", "a" in flight; "a" after each ack */
    memory_trace_free(trace);
}

static uint64_t newest_hash;
static int keep_hash(void *arg, const struct disk_state *state)
{
    (void)arg;
    newest_hash = state->image_hash;
    return 0;
}

TEST(the_image_hash_does_not_depend_on_the_sector_size)
{
    uint64_t hashes[4];
    start();
    int fd = create("f");
    fill(fd, 'a', 0, 4096, 0);
    memory_io_record(files, "/qm");
    fill(fd, 'b', 1000, 6000, 0);
    CHECK_INT(io->ops->sync(io, fd), 0);
    struct memory_trace *trace = memory_io_take_trace(files);
    static const uint32_t sectors[] = {8, 64, 512, 4096};
    for (int i = 0; i < 4; i++) {
        struct disk_states_counts counts = {0};
        struct disk_states_options options = {
            .sector = sectors[i], .cap = 50, .first_event = 1, .seed = test_seed()};
        CHECK_INT(disk_states_run(trace, &options, keep_hash, &counts), 0);
        CHECK_INT(counts.distinct, 1);
        hashes[i] = newest_hash;
        CHECK(hashes[i] == hashes[0]);
    }
    memory_trace_free(trace);
}

TEST(distinct_counts_the_images_that_really_differ)
{
    start();
    int fd = create("f");
    fill(fd, 'a', 0, 2048, 0);
    memory_io_record(files, "/qm");
    fill(fd, 'b', 512, 2560, 0);
    fill(fd, 'c', 1536, 512, 0);
    CHECK_INT(io->ops->truncate(io, fd, 4096), 0);
    CHECK_INT(io->ops->sync(io, fd), 0);
    struct memory_trace *trace = memory_io_take_trace(files);
    struct disk_states_counts counts = run_states(trace, 512, 4000, 0);
    uint32_t different = 0;
    for (uint32_t i = 0; i < shown_count; i++) {
        different += i == 0 || strcmp(shown[i], shown[i - 1]) != 0;
    }
    memory_trace_free(trace);
    CHECK_INT(counts.enumerated, 4);
    CHECK_INT(counts.distinct, different);
    CHECK(different > 200 && counts.generated > different);
}

static int stop_at_third(void *arg, const struct disk_state *state)
{
    uint32_t *calls = arg;
    (void)state;
    return ++*calls == 3 ? 33 : 0;
}

TEST(a_visitor_ends_the_run_by_its_result)
{
    uint32_t calls = 0;
    struct disk_states_counts counts = {0};
    struct disk_states_options options = {.sector = 8, .cap = 1000, .arg = &calls};
    start();
    int fd = create("f");
    memory_io_record(files, "/qm");
    fill(fd, 'a', 0, 512, MQX_IO_DSYNC);
    struct memory_trace *trace = memory_io_take_trace(files);
    CHECK_INT(disk_states_run(trace, &options, stop_at_third, &counts), 33);
    CHECK_INT(calls, 3);
    memory_trace_free(trace);
}

/* ---- a toy store: commits appended to "log", with faults to plant ---- */

enum toy_fault {
    TOY_RIGHT,
    TOY_NO_FLUSH,
    TOY_NO_CHECKSUM,
    TOY_SHARED_SECTOR,
    TOY_NO_DIRSYNC,
    TOY_ONE_FLUSH_FOR_TWO,
};
enum { TOY_COMMITS = 6, TOY_BODY = 600, TOY_PAGE = 4096 };

struct toy_record {
    uint32_t crc;
    uint32_t number; /* 1, 2, ... */
    uint8_t body[TOY_BODY];
};

static uint64_t toy_place(enum toy_fault fault, uint32_t number)
{
    uint64_t step = fault == TOY_SHARED_SECTOR ? sizeof(struct toy_record) : TOY_PAGE;
    return (number - 1) * step;
}

static void toy_create_log(enum toy_fault fault)
{
    int fd = create("log.tmp");
    CHECK_INT(io->ops->allocate(io, fd, 0, (TOY_COMMITS + 1) * TOY_PAGE), 0);
    CHECK_INT(io->ops->sync(io, fd), 0);
    CHECK_INT(io->ops->rename(io, dir, "log.tmp", "log"), 0);
    if (fault != TOY_NO_DIRSYNC) {
        CHECK_INT(io->ops->sync_dir(io, dir), 0);
    }
    CHECK_INT(io->ops->close(io, fd), 0);
}

/* Records a run of the store: creation and six commits, each acknowledged. */
static struct memory_trace *toy_run(enum toy_fault fault)
{
    start();
    memory_io_record(files, "/qm");
    toy_create_log(fault);
    int fd = io->ops->open(io, dir, "log", MQX_IO_WRITE, 0);
    for (uint32_t n = 1; n <= TOY_COMMITS; n++) {
        struct toy_record record = {.number = n};
        memset(record.body, 'A' + (int)n, TOY_BODY);
        record.crc = mqx_crc32c(n, record.body, TOY_BODY);
        bool plain = fault == TOY_NO_FLUSH || (fault == TOY_ONE_FLUSH_FOR_TWO && n % 2 == 1);
        CHECK_INT(mqx_io_write_all(io, fd, &record, sizeof record, toy_place(fault, n),
                                   plain ? 0 : MQX_IO_DSYNC), 0);
        memory_io_ack(files, n);
    }
    return memory_io_take_trace(files);
}

struct toy_check {
    enum toy_fault fault;
    uint64_t checked;
    uint64_t lost;    /* states in which an acknowledged commit is missing */
    uint64_t torn;    /* states in which a broken record was believed */
};

static void toy_prepare(void *arg, struct memory_io *stage)
{
    (void)arg;
    memory_io_region_dir(stage, "/shm");
}

/* Opens the store in the state, as after a power cut, and compares it with the acknowledgements. */
static int toy_recover(void *arg, const struct disk_state *state)
{
    struct toy_check *check = arg;
    struct mqx_io *disk = state->io;
    struct toy_record record;
    uint32_t found = 0;
    bool torn = false;

    check->checked++;
    int at = disk->ops->open_dir(disk, "/qm");
    int fd = disk->ops->open(disk, at, "log", MQX_IO_READ, 0);
    while (fd >= 0 && mqx_io_read_all(disk, fd, &record, sizeof record,
                                      toy_place(check->fault, found + 1)) == 0) {
        bool whole = record.crc == mqx_crc32c(record.number, record.body, TOY_BODY);
        if (record.number != found + 1 || (!whole && check->fault != TOY_NO_CHECKSUM)) {
            break;
        }
        torn |= !whole;
        found++;
    }
    check->lost += found < state->ack_count;
    check->torn += torn;
    return 0;
}

static struct toy_check toy_test(enum toy_fault fault, uint32_t sector, bool no_zeroed)
{
    struct toy_check check = {.fault = fault};
    struct disk_states_counts counts = {0};
    struct disk_states_options options = {.sector = sector, .cap = 400, .seed = test_seed(),
                                          .no_zeroed = no_zeroed, .prepare = toy_prepare,
                                          .arg = &check};
    struct memory_trace *trace = toy_run(fault);
    CHECK_INT(disk_states_run(trace, &options, toy_recover, &counts), 0);
    memory_trace_free(trace);
    CHECK_INT(check.checked, counts.distinct);
    CHECK(counts.distinct > 10 && counts.generated >= counts.distinct);
    return check;
}

TEST(the_right_toy_store_passes_at_every_sector_size)
{
    static const uint32_t sectors[] = {8, 64, 512, 4096};
    for (int i = 0; i < 4; i++) {
        struct toy_check check = toy_test(TOY_RIGHT, sectors[i], false);
        CHECK_INT(check.lost, 0);
        CHECK_INT(check.torn, 0);
    }
}

TEST(a_missing_flush_is_found_at_every_sector_size)
{
    static const uint32_t sectors[] = {8, 64, 512, 4096};
    for (int i = 0; i < 4; i++) {
        CHECK(toy_test(TOY_NO_FLUSH, sectors[i], false).lost > 0);
        CHECK(toy_test(TOY_ONE_FLUSH_FOR_TWO, sectors[i], false).lost > 0);
    }
}

TEST(a_missing_checksum_is_found_by_tearing_inside_a_record)
{
    CHECK(toy_test(TOY_NO_CHECKSUM, 64, false).torn > 0);
    CHECK(toy_test(TOY_NO_CHECKSUM, 8, false).torn > 0);
    CHECK_INT(toy_test(TOY_NO_CHECKSUM, 4096, false).torn, 0); /* why small ones are tried */
}

TEST(a_sector_shared_with_an_older_commit_is_found_only_by_zeroed_sectors)
{
    CHECK(toy_test(TOY_SHARED_SECTOR, 512, false).lost > 0);
    CHECK(toy_test(TOY_SHARED_SECTOR, 4096, false).lost > 0);
    CHECK_INT(toy_test(TOY_SHARED_SECTOR, 512, true).lost, 0);
}

TEST(a_missing_directory_flush_after_a_rename_is_found)
{
    CHECK(toy_test(TOY_NO_DIRSYNC, 512, false).lost > 0);
    CHECK(toy_test(TOY_NO_DIRSYNC, 4096, true).lost > 0);
}

static int recover_and_crash_again(void *arg, const struct disk_state *state)
{
    struct toy_check *check = arg;
    struct disk_states_options options = {.sector = state->sector, .cap = 20, .arg = check,
                                          .seed = state->image_hash};
    struct disk_states_counts counts = {0};
    struct mqx_io *disk = state->io;

    memory_io_record(state->files, state->path);
    int at = disk->ops->open_dir(disk, state->path);
    int fd = disk->ops->open(disk, at, "epoch", MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    int result = mqx_io_write_all(disk, fd, "again", 5, 0, MQX_IO_DSYNC);
    for (uint32_t i = 0; i < state->ack_count; i++) {
        memory_io_ack(state->files, state->acks[i]);
    }
    struct memory_trace *trace = memory_io_take_trace(state->files);
    if (result == 0) {
        result = disk_states_run(trace, &options, toy_recover, &counts);
    }
    memory_trace_free(trace);
    return result;
}

TEST(a_recovery_can_be_recorded_and_crashed_again_inside_a_visit)
{
    struct toy_check check = {.fault = TOY_RIGHT};
    struct disk_states_counts counts = {0};
    struct disk_states_options options = {.sector = 512, .cap = 10, .seed = test_seed(),
                                          .arg = &check};
    struct memory_trace *trace = toy_run(TOY_RIGHT);
    CHECK_INT(disk_states_run(trace, &options, recover_and_crash_again, &counts), 0);
    memory_trace_free(trace);
    CHECK(check.checked > 4 * counts.distinct);
    CHECK_INT(check.lost, 0);
    CHECK_INT(check.torn, 0);
}

TEST_MAIN()
