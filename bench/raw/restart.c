/*
 * restart.c - the limit of a restart and of a create: the same files, and nothing else.
 *
 * A restart has to read the newest checkpoint and the journal behind its BEGIN LSN, to allocate the
 * shared region and to write each byte of the message index once. raw_restart does that: it opens
 * the files a restart opens, reads them in blocks of 1 MiB, steps from batch header to batch header
 * to find the journal's end, and checks no record.
 *
 * raw_journal_count uses the same steps to count flushes over all segments.
 *
 * Files are as csrc/format.h describes them. They may belong to a running queue manager when
 * only batch headers are counted; raw_restart expects nobody to be attached.
 */
#include "common.h"

#include "format/format.h"
#include "raw.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct reader { /* a file read forward in blocks */
    int fd;
    uint64_t size;
    uint64_t at;    /* offset of block[0] */
    size_t have;    /* bytes in block */
    unsigned char *block;
    uint64_t total; /* bytes read from files */
};

static int open_in(int dir, const char *name, struct reader *reader)
{
    struct stat st;

    reader->fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (reader->fd < 0)
        return -errno;
    if (fstat(reader->fd, &st) != 0) {
        int rc = -errno;
        close(reader->fd);
        return rc;
    }
    reader->size = (uint64_t)st.st_size;
    reader->at = 0;
    reader->have = 0;
    return 0;
}

/* Makes the bytes [offset, offset + size) of the file readable at *out; size <= RAW_BLOCK. */
static int look_at(struct reader *reader, uint64_t offset, size_t size, const void **out)
{
    if (offset + size > reader->size)
        return -ENODATA;
    if (offset < reader->at || offset + size > reader->at + reader->have) {
        uint64_t left = reader->size - offset;
        size_t want = left < RAW_BLOCK ? (size_t)left : RAW_BLOCK;
        int rc = raw_read_all(reader->fd, reader->block, want, offset);
        if (rc != 0)
            return rc;
        reader->at = offset;
        reader->have = want;
        reader->total += want;
    }
    *out = reader->block + (offset - reader->at);
    return 0;
}

/* Reads every byte of [from, to) at least once. */
static int read_range(struct reader *reader, uint64_t from, uint64_t to)
{
    const void *bytes;
    int rc = 0;

    for (uint64_t at = from; at < to && rc == 0;) {
        uint64_t end = reader->at + reader->have;
        if (at >= reader->at && at < end)
            at = end;
        else
            rc = look_at(reader, at, to - at < RAW_BLOCK ? (size_t)(to - at) : RAW_BLOCK, &bytes);
    }
    return rc;
}

/* Walks the batches of an open segment from `lsn` on (0: its first), reading their bytes too when
 * `whole`. */
static int walk_segment(struct reader *reader, uint64_t lsn, bool whole,
                        struct raw_journal_count *count)
{
    struct psj_segment head;
    const void *bytes;
    uint64_t at;
    int rc = look_at(reader, 0, sizeof(head), &bytes);

    if (rc != 0)
        return rc;
    memcpy(&head, bytes, sizeof(head));
    if (memcmp(head.magic, PSJ_MAGIC, sizeof(head.magic)) != 0)
        return -EBADMSG;
    at = lsn > head.base_lsn + RAW_PAGE ? lsn - head.base_lsn : RAW_PAGE;
    while (look_at(reader, at, sizeof(struct psj_batch), &bytes) == 0) {
        struct psj_batch batch;
        memcpy(&batch, bytes, sizeof(batch));
        if (batch.magic != PS_BATCH_MAGIC || batch.lsn != head.base_lsn + at ||
            batch.segment_no != head.segment_no || batch.length < sizeof(batch))
            break;
        if (whole && (rc = read_range(reader, at, at + batch.length)) != 0)
            return rc;
        count->records += batch.record_count;
        if (batch.record_count > 0)
            count->batches++;
        else
            count->marks++;
        at += raw_round_up(batch.length, RAW_PAGE);
    }
    return 0;
}

static int init_reader(struct reader *reader)
{
    memset(reader, 0, sizeof(*reader));
    reader->block = malloc(RAW_BLOCK);
    return reader->block == NULL ? -ENOMEM : 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name);
    size_t m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

/* A segment in use is called by its number; a spare one has a word before it. */
static bool is_segment(const char *name)
{
    return name[0] >= '0' && name[0] <= '9' && ends_with(name, ".psj");
}

/* "<directory>/<rest>" in `out`, PATH_MAX bytes. */
static int join(char *out, const char *directory, const char *rest)
{
    int length = snprintf(out, PATH_MAX, "%s/%s", directory, rest);

    return length > 0 && length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int raw_journal_count(const char *directory, struct raw_journal_count *out)
{
    char path[PATH_MAX];
    struct reader reader;
    struct dirent *entry;
    DIR *journal = NULL;
    int rc = init_reader(&reader);

    memset(out, 0, sizeof(*out));
    if (rc == 0)
        rc = join(path, directory, "journal");
    if (rc == 0) {
        journal = opendir(path);
        rc = journal == NULL ? -errno : 0;
    }
    while (rc == 0 && (entry = readdir(journal)) != NULL) {
        if (!is_segment(entry->d_name))
            continue;
        rc = open_in(dirfd(journal), entry->d_name, &reader);
        if (rc != 0)
            break;
        rc = walk_segment(&reader, 0, false, out);
        close(reader.fd);
    }
    if (journal != NULL)
        closedir(journal);
    free(reader.block);
    return rc;
}

/* Finds the newest checkpoint (largest end LSN) below `directory`; its path and header. */
static int newest_checkpoint(const char *directory, char *name, struct psc_header *out)
{
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *checkpoints;
    int rc = join(path, directory, "checkpoint");

    if (rc != 0)
        return rc;
    checkpoints = opendir(path);
    if (checkpoints == NULL)
        return -errno;
    rc = -ENOENT;
    while ((entry = readdir(checkpoints)) != NULL) {
        struct psc_header head;
        int fd;
        if (!ends_with(entry->d_name, ".psc"))
            continue;
        fd = openat(dirfd(checkpoints), entry->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (raw_read_all(fd, &head, sizeof(head), 0) == 0 &&
            memcmp(head.magic, PSC_MAGIC, sizeof(head.magic)) == 0 &&
            (rc == -ENOENT || head.end_lsn > out->end_lsn)) {
            *out = head;
            rc = join(name, path, entry->d_name);
        }
        close(fd);
    }
    closedir(checkpoints);
    return rc;
}

static int read_checkpoint(const char *path, struct reader *reader)
{
    int rc = open_in(AT_FDCWD, path, reader);

    if (rc == 0) {
        rc = read_range(reader, 0, reader->size);
        close(reader->fd);
    }
    return rc;
}

/* Reads the journal from the checkpoint's BEGIN LSN to its end. */
static int read_tail(const char *directory, const struct psc_header *from, struct reader *reader,
                     uint64_t *batches)
{
    struct raw_journal_count count = {0};
    char name[64];
    char path[PATH_MAX];
    uint64_t number = from->begin_segment;
    uint64_t lsn = from->begin_lsn;
    int rc = 0;

    for (; rc == 0; number++, lsn = 0) {
        snprintf(name, sizeof(name), "journal/%010" PRIu64 ".psj", number);
        rc = join(path, directory, name);
        if (rc == 0)
            rc = open_in(AT_FDCWD, path, reader);
        if (rc == -ENOENT && number > from->begin_segment) {
            rc = 0;
            break;
        }
        if (rc == 0) {
            rc = walk_segment(reader, lsn, true, &count);
            close(reader->fd);
        }
    }
    *batches = count.batches + count.marks;
    return rc;
}

/* Allocates the region and writes each index byte once. */
static int fill_region(const char *path, uint64_t region_bytes, uint64_t index_bytes, void **map)
{
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    int rc;

    if (fd < 0)
        return -errno;
    rc = -posix_fallocate(fd, 0, (off_t)region_bytes);
    if (rc == 0) {
        *map = mmap(NULL, region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (*map == MAP_FAILED)
            rc = -errno;
        else
            memset(*map, 0x5a, index_bytes);
    }
    close(fd);
    return rc;
}

int raw_restart(const char *directory, const char *region_path, uint64_t region_bytes,
                uint64_t index_bytes, struct raw_restart_result *out)
{
    char path[PATH_MAX];
    struct psc_header checkpoint;
    struct reader reader;
    void *region = MAP_FAILED;
    uint64_t begun;
    int rc;

    if (index_bytes > region_bytes)
        return -EINVAL;
    memset(&checkpoint, 0, sizeof(checkpoint));
    memset(out, 0, sizeof(*out));
    begun = raw_now_ns();
    rc = init_reader(&reader);
    if (rc == 0)
        rc = newest_checkpoint(directory, path, &checkpoint);
    if (rc == 0)
        rc = read_checkpoint(path, &reader);
    out->checkpoint_bytes = reader.total;
    if (rc == 0)
        rc = read_tail(directory, &checkpoint, &reader, &out->batches);
    out->journal_bytes = reader.total - out->checkpoint_bytes;
    if (rc == 0)
        rc = fill_region(region_path, region_bytes, index_bytes, &region);
    out->elapsed_ns = raw_now_ns() - begun;
    if (region != MAP_FAILED) {
        const unsigned char *bytes = region;
        if (index_bytes > 0 && (bytes[0] != 0x5a || bytes[index_bytes - 1] != 0x5a))
            rc = -EBADMSG;
        munmap(region, region_bytes);
    }
    unlink(region_path);
    free(reader.block);
    return rc;
}

static int flush_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc;

    if (fd < 0)
        return -errno;
    rc = fsync(fd) == 0 ? 0 : -errno;
    close(fd);
    return rc;
}

/* The timed part of raw_create: makes everything, leaves it there. */
static int make_files(const char *directory, const char *region_path, uint64_t segment_bytes,
                      uint64_t region_bytes)
{
    char temporary[PATH_MAX];
    char segment[PATH_MAX];
    void *region = MAP_FAILED;
    int fd;
    int rc = join(temporary, directory, "segment.tmp");

    if (rc == 0)
        rc = join(segment, directory, "segment.psj");
    if (rc == 0 && mkdir(directory, 0700) != 0)
        rc = -errno;
    if (rc == 0)
        rc = raw_make_whole(temporary, segment_bytes, &fd);
    if (rc != 0)
        return rc;
    close(fd);
    if (rename(temporary, segment) != 0)
        return -errno;
    rc = flush_directory(directory);
    if (rc == 0)
        rc = fill_region(region_path, region_bytes, RAW_PAGE, &region);
    if (region != MAP_FAILED)
        munmap(region, region_bytes);
    return rc;
}

int raw_create(const char *directory, const char *region_path, uint64_t segment_bytes,
               uint64_t region_bytes, uint64_t *elapsed_ns)
{
    char segment[PATH_MAX];
    uint64_t begun = raw_now_ns();
    int rc = make_files(directory, region_path, segment_bytes, region_bytes);

    *elapsed_ns = raw_now_ns() - begun;
    if (join(segment, directory, "segment.psj") == 0)
        unlink(segment);
    unlink(region_path);
    if (rmdir(directory) != 0 && rc == 0)
        rc = -errno;
    return rc;
}
