/*
 * write_file.c - see write_file.h.
 */
#include "journal/write_file.h"

#include "base/error.h"
#include "format/segment.h"
#include "journal/leadership.h"
#include "region/damage.h"

#include <errno.h>
#include <inttypes.h>

enum { JOURNAL_DIR = 1 }; /* in store->dir_id */

/* ---- kept descriptors ---- */

/* Any descriptor will do; that of a directory costs nothing else. */
static void keep_one(struct mqx_store *store, int *kept)
{
    const struct mqx_file_id *id = &store->dir_id[JOURNAL_DIR];
    struct mqx_io *io = store->io;
    int none = -1;
    MQX_ASSERT(store->dir >= 0);
    MQX_ASSERT(kept != NULL);
    if (mqx_load_relaxed(kept) >= 0 || id->inode == 0) {
        return;
    }
    const int fd = io->ops->open_sub(io, store->dir, "journal");
    if (fd < 0) {
        return;
    }
    if (mqx_file_id_check(io, fd, id) != 0 || /* the program has replaced store->dir */
        !__atomic_compare_exchange_n(kept, &none, fd, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        (void)io->ops->close(io, fd);
    }
}

void mqx_journal_keep_fd(struct mqx_store *store)
{
    MQX_ASSERT(store->files != NULL);
    for (int i = 0; i < MQX_KEPT_FDS; i++) {
        keep_one(store, &store->files->kept_fd[i]);
    }
}

void mqx_journal_lend_fd(struct mqx_store *store)
{
    struct mqx_files *files = store->files;
    MQX_ASSERT(files != NULL);
    int fd = -1;
    for (int i = 0; i < MQX_KEPT_FDS && fd < 0; i++) {
        fd = mqx_exchange(&files->kept_fd[i], -1);
    }
    MQX_ASSERT(fd < 0 || store->dir_id[JOURNAL_DIR].inode != 0);
    mqx_file_id_close(store->io, &fd, &store->dir_id[JOURNAL_DIR]);
}

/* ---- the segment being written ---- */

/* What was acknowledged lies in a file that no restart will find, or no longer in it. */
static MQX_COLD int journal_gone(struct mqx_store *store, const struct mqx_segment *segment,
                                 const struct mqx_io_stat *facts)
{
    const bool removed = facts->links == 0;
    MQX_ASSERT(removed || facts->size < segment->size);
    mqx_region_stop_because(&store->region,
                            removed ? "the active journal segment was removed"
                                    : "the active journal segment was cut short", 0);
    MQX_ASSERT(mqx_region_stopped(&store->region) != MQX_RUNNING);
    return mqx_fail(MQRC_CONNECTION_BROKEN,
                    "journal/%010" PRIu64 ".psj was %s while the queue manager was running; it has "
                    "stopped", segment->number, removed ? "removed" : "cut short");
}

/* MQX_BUSY: the descriptor is closed, or its number belongs to another file. Anything else is the
 * result of mqx_write_file(). */
static int examine(struct mqx_store *store, const struct mqx_segment *segment,
                   const struct mqx_write_file *file)
{
    struct mqx_io_stat facts;
    MQX_ASSERT(file->fd >= 0);
    MQX_ASSERT(file->id.inode != 0);
    const int err = store->io->ops->stat(store->io, file->fd, &facts);
    if (MQX_UNLIKELY(err != 0 && err != -EBADF)) {
        return mqx_leadership_cannot(store, err, "looking at the active journal segment");
    }
    if (MQX_UNLIKELY(err != 0 || facts.inode != file->id.inode ||
                     facts.device != file->id.device)) {
        return MQX_BUSY;
    }
    if (MQX_UNLIKELY(facts.links > 1)) {
        (void)mqx_cas32(&store->region.journal->linked, MQX_LINKED_NONE, MQX_LINKED_SEEN);
    }
    return MQX_LIKELY(facts.links != 0 && facts.size >= segment->size)
               ? MQX_OK
               : journal_gone(store, segment, &facts);
}

/* Is the open file the segment that the table lists? A name may lead to a file that was put there
 * later, and a descriptor of the directory to another directory. */
static int verify(struct mqx_store *store, const struct mqx_segment *segment, int fd,
                  struct mqx_file_id *out)
{
    struct mqx_io_stat facts;
    struct psj_segment header;
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(segment->size >= PS_MIN_SEGMENT);
    int err = store->io->ops->stat(store->io, fd, &facts);
    if (err == 0) {
        err = mqx_io_read_all(store->io, fd, &header, sizeof header, 0);
    }
    if (err != 0) {
        return mqx_leadership_cannot(store, err, "reading the header of a journal segment");
    }
    if (mqx_segment_verify(&header, store->qm_id, segment->number, facts.size) != MQX_OK ||
        header.generation != segment->generation) {
        return mqx_leadership_cannot(store, -ESTALE, "looking at the active journal segment");
    }
    *out = mqx_file_id_of(&facts);
    return MQX_OK;
}

static int open_segment(struct mqx_store *store, const struct mqx_segment *segment,
                        struct mqx_write_file *out)
{
    char name[MQX_FILE_NAME_SIZE];
    MQX_ASSERT(store->files != NULL);
    MQX_ASSERT(out != NULL);
    int status = mqx_store_check(store);
    if (status != MQX_OK) {
        return mqx_leadership_refused(store, status, "looking at the directory journal");
    }
    mqx_file_name(name, MQX_FILE_SEGMENT, segment->number);
    const int fd = store->io->ops->open(store->io, store->journal_dir, name,
                                        MQX_IO_WRITE | MQX_IO_LINKED, 0);
    if (fd < 0) {
        return mqx_leadership_cannot(store, fd, "opening the active journal segment");
    }
    *out = (struct mqx_write_file){.fd = fd, .generation = segment->generation};
    status = verify(store, segment, fd, &out->id);
    if (status != MQX_OK) {
        (void)store->io->ops->close(store->io, fd);
    }
    return status;
}

/* The kept descriptor makes room for the new one; the old one is closed after. */
static int change_segment(struct mqx_store *store, const struct mqx_segment *segment)
{
    struct mqx_write_file *file = &store->files->write;
    struct mqx_write_file next;
    MQX_ASSERT(file->fd < 0 || file->generation != segment->generation);
    mqx_journal_lend_fd(store);
    const int status = open_segment(store, segment, &next);
    if (status == MQX_OK) {
        mqx_file_id_close(store->io, &file->fd, &file->id);
        *file = next;
    }
    mqx_journal_keep_fd(store);
    MQX_ASSERT(status != MQX_OK || file->fd >= 0);
    return status;
}

void mqx_write_file_forget(struct mqx_store *store)
{
    MQX_ASSERT(store->files != NULL);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.journal->flush_lock));
    mqx_file_id_close(store->io, &store->files->write.fd, &store->files->write.id);
}

int mqx_write_file(struct mqx_store *store, uint32_t segment_index, int *out)
{
    struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(store->files != NULL);
    MQX_ASSERT(mqx_lock_held(&store->region, &journal->flush_lock));
    if (MQX_UNLIKELY(segment_index >= MQX_SEGMENT_MAX)) {
        return mqx_region_damage(&store->region, "segment of a sealed batch", segment_index);
    }
    const struct mqx_segment *segment = &journal->segment[segment_index];
    struct mqx_write_file *file = &store->files->write;
    int status = MQX_BUSY;
    if (MQX_LIKELY(file->fd >= 0 && file->generation == segment->generation)) {
        status = examine(store, segment, file);
        if (status == MQX_BUSY) {
            file->fd = -1; /* the program's now */
        }
    }
    if (status == MQX_BUSY) {
        status = change_segment(store, segment);
    }
    *out = file->fd;
    return status;
}

/* ---- attach and detach ---- */

/* A copy of the active segment's entry; false while there is none. */
static bool read_active(struct mqx_store *store, struct mqx_segment *out)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    bool found = false;
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    MQX_ASSERT(out != NULL);
    if (mqx_load_acquire(&region->header->ready) != 0 &&
        mqx_lock_take(region, &journal->ring_lock) == MQX_OK) {
        const struct mqx_segment *active = mqx_ring_active(region);
        found = active != NULL;
        *out = found ? *active : *out;
        mqx_lock_drop(region, &journal->ring_lock);
    }
    return found;
}

int mqx_write_file_prepare(struct mqx_store *store)
{
    struct mqx_segment active = {0};
    MQX_ASSERT(store->files != NULL);
    MQX_ASSERT(store->files->write.fd < 0);
    mqx_journal_keep_fd(store);
    if (!read_active(store, &active) ||
        open_segment(store, &active, &store->files->write) == MQX_OK) {
        return MQX_OK;
    }
    store->files->write.fd = -1;
    const int error = store->files->cannot.error;
    return error == EMFILE || error == ENFILE ? mqx_leadership_reason(store) : MQX_OK;
}

void mqx_write_file_end(struct mqx_store *store)
{
    struct mqx_files *files = store->files;
    MQX_ASSERT(files != NULL);
    MQX_ASSERT(files->write.fd < 0 || files->write.id.inode != 0);
    mqx_file_id_close(store->io, &files->write.fd, &files->write.id);
    for (int i = 0; i < MQX_KEPT_FDS; i++) {
        mqx_journal_lend_fd(store);
    }
}
