/*
 * checkpoint_reserve.c - see checkpoint_reserve.h.
 *
 * Why it is written and not only allocated. Blocks that were allocated and never written are marked
 * so; the first write into each stretch of them changes that mark, for which a file system may need
 * another block (ext4, xfs).
 */
#include "recovery/checkpoint_reserve.h"

#include "base/clock.h"
#include "base/error.h"
#include "format/segment.h"
#include "journal/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    AMPLE = 64 * 1024,          /* beyond what is wanted: puts draw on it until the next look */
    AMPLE_MOST = 16 << 20,
    AHEAD_MOST = 8 << 20,
    PIECE = 1 << 20,            /* written and flushed at once */
    PACED_PIECE = 256 << 10,
    PAUSE_US = 500,
    SHORTEN_ABOVE = 4 << 20,    /* a small file is not worth it */
    CUT_ABOVE = 1 << 20,        /* at an orderly end */
};

/* ---- one that a dead process left ----
 *
 * After a checkpoint over the reserve has its name, and before the one that is needed no more has
 * become the reserve, there are three whole ones.
 */

struct newest { /* begin LSNs of whole checkpoints, the newest first */
    uint64_t begin_lsn[3];
    uint32_t count; /* of all that there are */
};

/* Visits a file of the checkpoint directory. */
static int note_newest(void *arg, const char *name)
{
    struct newest *newest = arg;
    uint64_t lsn = 0;
    MQX_ASSERT(newest != NULL);
    MQX_ASSERT(name != NULL);
    if (!mqx_checkpoint_file_parse(name, &lsn)) {
        return 0;
    }
    newest->count += 1;
    for (int i = 0; i < 3; i++) {
        if (lsn > newest->begin_lsn[i]) {
            const uint64_t next = newest->begin_lsn[i];
            newest->begin_lsn[i] = lsn;
            lsn = next;
        }
    }
    return 0;
}

static bool is_whole(struct mqx_store *store, uint64_t begin_lsn)
{
    char name[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(begin_lsn != 0);
    MQX_ASSERT(store->checkpoint_dir >= 0);
    mqx_checkpoint_file_name(name, begin_lsn, true);
    return mqx_checkpoint_file_verify(store->io, store->checkpoint_dir, name, MQX_IO_LINKED) ==
           MQX_OK;
}

/* The two newest must be whole, the newest the one in use: then nobody needs the third. */
static bool take_third(struct mqx_store *store)
{
    struct mqx_io *io = store->io;
    struct newest newest = {.count = 0};
    char name[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(store->checkpoint_dir >= 0);
    if (io->ops->list(io, store->checkpoint_dir, note_newest, &newest) != 0 || newest.count < 3 ||
        newest.begin_lsn[0] != store->region.journal->checkpoint_begin ||
        !is_whole(store, newest.begin_lsn[0]) || !is_whole(store, newest.begin_lsn[1])) {
        mqx_error_clear();
        return false;
    }
    MQX_ASSERT(newest.begin_lsn[2] < newest.begin_lsn[1]);
    mqx_checkpoint_file_name(name, newest.begin_lsn[2], true);
    return io->ops->rename(io, store->checkpoint_dir, name, MQX_CHECKPOINT_RESERVE) == 0;
}

/* After a restart: its size is that of the older one of the two that are kept. Unknown it counts as
 * nothing. */
static void measure_older(struct mqx_store *store)
{
    struct mqx_io *io = store->io;
    struct newest newest = {.count = 0};
    struct mqx_io_stat facts = {0};
    char name[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(store->checkpoint_dir >= 0);
    MQX_ASSERT(mqx_load_relaxed(&store->region.journal->older_bytes) == 0);
    if (io->ops->list(io, store->checkpoint_dir, note_newest, &newest) != 0 || newest.count < 2 ||
        newest.begin_lsn[0] != store->region.journal->checkpoint_begin) {
        return;
    }
    mqx_checkpoint_file_name(name, newest.begin_lsn[1], true);
    const int fd = io->ops->open(io, store->checkpoint_dir, name, MQX_IO_LINKED, 0);
    if (fd >= 0) {
        const int err = io->ops->stat(io, fd, &facts);
        mqx_store_relaxed(&store->region.journal->older_bytes, err == 0 ? facts.size : 0);
        (void)io->ops->close(io, fd);
    }
}

/* ---- the file ---- */

/* *out_created: its name is to be flushed. A file with other names is somebody's copy. */
static int open_reserve(struct mqx_store *store, bool *out_created)
{
    struct mqx_io *io = store->io;
    const int dir = store->checkpoint_dir;
    MQX_ASSERT(dir >= 0);
    int fd = io->ops->open(io, dir, MQX_CHECKPOINT_RESERVE, MQX_IO_WRITE, 0);
    if (fd == -EMLINK) {
        (void)io->ops->unlink(io, dir, MQX_CHECKPOINT_RESERVE);
        fd = -ENOENT;
    }
    if (fd == -ENOENT && take_third(store)) {
        fd = io->ops->open(io, dir, MQX_CHECKPOINT_RESERVE, MQX_IO_WRITE, 0);
    }
    *out_created = fd == -ENOENT;
    MQX_ASSERT(fd >= 0 || fd != -EEXIST);
    return fd == -ENOENT ? io->ops->open(io, dir, MQX_CHECKPOINT_RESERVE,
                                         MQX_IO_WRITE | MQX_IO_CREATE, 0600)
                         : fd;
}

/* From its last whole page on, so that the length is that of what is written. Each piece is told to
 * puts that wait. */
static int lengthen(struct mqx_store *store, int fd, uint64_t size, uint64_t wanted, bool paced)
{
    struct mqx_io *io = store->io;
    uint64_t at = size / MQX_PAGE_SIZE * MQX_PAGE_SIZE;
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(size < wanted);
    int err = io->ops->sync_dir(io, store->checkpoint_dir); /* it may have been a checkpoint */
    while (at < wanted && err == 0) {
        const bool slow = paced && mqx_load_relaxed(&store->leaving) == 0;
        const uint64_t piece = slow ? PACED_PIECE : PIECE;
        const uint64_t end = wanted - at > piece ? at + piece : wanted;
        err = mqx_write_zeroes(io, fd, at, end);
        const int synced = io->ops->sync(io, fd);
        err = err != 0 ? err : synced;
        if (err == 0) {
            mqx_store_relaxed(&store->region.journal->checkpoint_reserve, end);
        }
        at = end;
        if (slow && err == 0 && at < wanted) {
            mqx_clock_sleep_us(PAUSE_US);
        }
    }
    return err;
}

/* It is lengthened before it is too short, so that puts need not wait for that; not for messages
 * that are known. */
static uint64_t ahead_of(const struct mqx_store *store, uint64_t wanted)
{
    MQX_ASSERT(wanted > 0);
    MQX_ASSERT(wanted < UINT64_MAX / 2);
    return mqx_journal_is_known(&store->region)
               ? wanted
               : wanted + (wanted / 4 < AHEAD_MOST ? wanted / 4 : AHEAD_MOST);
}

/* Puts that come too near are made to wait for a flush: not many times. */
static uint64_t ample_for(uint64_t wanted)
{
    MQX_ASSERT(wanted > 0);
    MQX_ASSERT(wanted < UINT64_MAX / 2);
    MQX_STATIC_ASSERT(AMPLE_MOST > AHEAD_MOST, "what was lengthened is ahead");
    const uint64_t more = wanted / 2 < AMPLE_MOST ? wanted / 2 : AMPLE_MOST;
    return mqx_round_up(wanted + more + AMPLE, MQX_PAGE_SIZE);
}

/* A queue that is filled and drained in turn wants the same length again: zeroes that were written
 * for it are kept until two checkpoints in a row were written without a need for them. */
static uint64_t lately_wanted(struct mqx_journal *journal, uint64_t wanted)
{
    const uint64_t newest = mqx_load_relaxed(&journal->reserve_peak[0]);
    const uint64_t older = mqx_load_relaxed(&journal->reserve_peak[1]);
    MQX_ASSERT(wanted > 0);
    MQX_ASSERT(wanted % MQX_PAGE_SIZE == 0);
    if (wanted > newest) {
        mqx_store_relaxed(&journal->reserve_peak[0], wanted);
    }
    const uint64_t most = newest > older ? newest : older;
    return wanted > most ? wanted : most;
}

/* *out_size: what it has, whatever comes back. */
static int fit(struct mqx_store *store, int fd, uint64_t wanted, uint64_t lately, bool paced,
               uint64_t *out_size)
{
    struct mqx_io *io = store->io;
    const uint64_t target = ample_for(wanted);
    struct mqx_io_stat facts = {0};
    MQX_ASSERT(lately >= wanted);
    MQX_ASSERT(target > wanted);
    MQX_ASSERT(wanted % MQX_PAGE_SIZE == 0);
    *out_size = 0;
    int err = io->ops->stat(io, fd, &facts);
    if (err != 0) {
        return err;
    }
    if (facts.size < ahead_of(store, wanted)) {
        err = lengthen(store, fd, facts.size, target, paced);
    } else if (facts.size > SHORTEN_ABOVE && facts.size / 4 > target && facts.size / 8 > lately) {
        err = io->ops->truncate(io, fd, target);
    }
    const int asked = io->ops->stat(io, fd, &facts);
    *out_size = asked == 0 ? facts.size : 0;
    return err;
}

/* Makes it what is wanted, if it is not. */
static int keep(struct mqx_store *store, bool paced)
{
    struct mqx_journal *journal = store->region.journal;
    const uint64_t has = mqx_load_relaxed(&journal->checkpoint_reserve);
    uint64_t size = 0;
    bool created = false;
    MQX_ASSERT(store->checkpoint_dir >= 0);
    if (has == 0 && mqx_load_relaxed(&journal->older_bytes) == 0) {
        measure_older(store);
    }
    const uint64_t wanted = mqx_journal_checkpoint_reserve(&store->region);
    if (wanted == 0) {
        return MQX_OK;
    }
    const uint64_t lately = lately_wanted(journal, wanted);
    const bool is_long = has > SHORTEN_ABOVE && has / 8 > lately;
    if (has >= ahead_of(store, wanted) && !is_long) {
        return MQX_OK;
    }
    int status = mqx_store_check(store);
    if (status != MQX_OK) {
        return status;
    }
    mqx_journal_lend_fd(store); /* a process at its limit of descriptors goes on alone */
    const int fd = open_reserve(store, &created);
    if (fd < 0) {
        mqx_journal_keep_fd(store);
        return mqx_io_reason(fd, "opening the reserve for a checkpoint");
    }
    int err = fit(store, fd, wanted, lately, paced, &size);
    const int closed = store->io->ops->close(store->io, fd);
    mqx_journal_keep_fd(store);
    err = err != 0 && size >= wanted ? 0 : err; /* long enough for now */
    err = err != 0 ? err : closed;
    if (created && err == 0) {
        err = store->io->ops->sync_dir(store->io, store->checkpoint_dir);
    }
    mqx_store_relaxed(&journal->checkpoint_reserve, size);
    MQX_ASSERT(err <= 0);
    if (err != 0 && mqx_io_write_is_own_fault(err)) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM,
                        "this process may not write the reserve for a checkpoint of %" PRIu64
                        " bytes: %s", wanted, strerror(-err));
    }
    return err == 0 ? MQX_OK : mqx_io_reason(err, "making the reserve for a checkpoint");
}

int mqx_checkpoint_reserve_keep(struct mqx_store *store)
{
    MQX_ASSERT(store->region.header != NULL);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    return keep(store, false);
}

int mqx_checkpoint_reserve_keep_paced(struct mqx_store *store)
{
    MQX_ASSERT(store->region.header != NULL);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    return keep(store, true);
}

/* The maintenance step tries again what fails here, and reports it. */
void mqx_checkpoint_reserve_renew(struct mqx_store *store)
{
    MQX_ASSERT(store->region.journal != NULL);
    MQX_ASSERT(store->checkpoint_dir >= 0);
    mqx_store_relaxed(&store->region.journal->checkpoint_reserve, UINT64_C(0));
    if (keep(store, false) != MQX_OK) {
        mqx_error_clear();
    }
}

/* Over a reserve that is there already, too: there is one at most. */
bool mqx_checkpoint_reserve_from(struct mqx_store *store, const char *name)
{
    struct mqx_io *io = store->io;
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(store->checkpoint_dir >= 0);
    if (io->ops->rename(io, store->checkpoint_dir, name, MQX_CHECKPOINT_RESERVE) != 0) {
        return false;
    }
    mqx_checkpoint_reserve_renew(store);
    return true;
}

/* A process that died may have left it short, or not yet made of the third checkpoint. */
bool mqx_checkpoint_reserve_ready(struct mqx_store *store)
{
    struct mqx_io *io = store->io;
    MQX_ASSERT(store->region.journal != NULL);
    MQX_ASSERT(store->checkpoint_dir >= 0);
    const int fd =
        io->ops->open(io, store->checkpoint_dir, MQX_CHECKPOINT_RESERVE, MQX_IO_WRITE, 0);
    if (fd >= 0) {
        (void)io->ops->close(io, fd);
    } else if (fd != -ENOENT || !take_third(store)) {
        return false;
    }
    mqx_checkpoint_reserve_renew(store);
    return true;
}

/* Messages of a block over the reserve that were in one block before take no more than they did
 * there. At the joints of these a block has messages of several. */
static uint64_t lines_most(const struct mqx_columns_reach *reach, uint64_t line)
{
    MQX_ASSERT(reach->messages > 0);
    MQX_ASSERT(reach->blocks > 0);
    const uint64_t narrow = reach->bytes / reach->messages;
    const uint64_t joints = (uint64_t)(reach->blocks - 1) * MQX_RESERVED_LINES;
    const uint64_t all = reach->messages * line;
    const uint64_t most = reach->bytes + joints * (line > narrow ? line - narrow : 0);
    return most < all ? most : all;
}

void mqx_checkpoint_reserve_know(struct mqx_store *store, const struct mqx_checkpoint_lines *lines,
                                 uint64_t size)
{
    struct mqx_known_lines known = {.others = size > lines->bytes ? size - lines->bytes : 0};
    MQX_ASSERT(store->region.journal != NULL);
    MQX_ASSERT(size > 0);
    if (lines->reach.blocks > 0) {
        const uint64_t next = mqx_load_relaxed(&store->region.journal->next_number);
        known.line_bytes = mqx_columns_line_most(&lines->reach, next, &known.first_lsn);
        known.lines = lines_most(&lines->reach, known.line_bytes);
    }
    mqx_journal_know(&store->region, &known);
}

void mqx_checkpoint_reserve_cut(struct mqx_store *store)
{
    struct mqx_io *io = store->io;
    struct mqx_journal *journal = store->region.journal;
    const uint64_t wanted = mqx_journal_checkpoint_reserve(&store->region);
    const uint64_t target = wanted > 0 ? wanted : AMPLE;
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    if (mqx_load_relaxed(&journal->checkpoint_reserve) <= target + CUT_ABOVE) {
        return;
    }
    MQX_ASSERT(store->checkpoint_dir >= 0);
    const int fd =
        io->ops->open(io, store->checkpoint_dir, MQX_CHECKPOINT_RESERVE, MQX_IO_WRITE, 0);
    if (fd >= 0) { /* a file with other names is somebody's copy, and is not opened */
        (void)io->ops->truncate(io, fd, target);
        (void)io->ops->close(io, fd);
        mqx_store_relaxed(&journal->checkpoint_reserve, UINT64_C(0));
    }
}
