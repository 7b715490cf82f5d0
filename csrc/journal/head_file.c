/*
 * head_file.c - see head_file.h.
 */
#include "journal/head_file.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>

enum { PAGES = 2 };

/* The page that names `head`, complete with its checksum. */
static void fill(struct psh_page *page, const uint8_t qm_id[16], const struct mqx_head *head)
{
    MQX_ASSERT(head->segment_no != 0);
    MQX_ASSERT(head->sequence != 0);
    *page = (struct psh_page){
        .major = PS_FORMAT_MAJOR,
        .minor = PS_FORMAT_MINOR,
        .header_size = MQX_PAGE_SIZE,
        .sequence = head->sequence,
        .segment_no = head->segment_no,
        .generation = head->generation,
        .timeline = head->timeline,
    };
    memcpy(page->magic, PSH_MAGIC, sizeof page->magic);
    memcpy(page->qm_id, qm_id, sizeof page->qm_id);
    page->crc = mqx_crc32c(0, page, offsetof(struct psh_page, crc));
}

/* Why the page at that place does not count; NULL: it does. */
static const char *why_bad(const struct psh_page *page, uint32_t place, const uint8_t qm_id[16])
{
    static const unsigned char zeroes[sizeof page->zero];
    MQX_ASSERT(place < PAGES);
    MQX_ASSERT(qm_id != NULL);
    return memcmp(page->magic, PSH_MAGIC, sizeof page->magic) != 0 ? "it does not begin as a page"
           : page->crc != mqx_crc32c(0, page, offsetof(struct psh_page, crc))
               ? "its checksum is wrong"
           : page->major != PS_FORMAT_MAJOR || page->incompatible != 0
               ? "it was written by a newer version"
           : memcmp(page->qm_id, qm_id, sizeof page->qm_id) != 0
               ? "it belongs to another queue manager"
           : page->header_size != MQX_PAGE_SIZE || page->sequence == 0 ||
                   page->sequence % PAGES != place || page->segment_no == 0 ||
                   page->generation == 0 || memcmp(page->zero, zeroes, sizeof zeroes) != 0
               ? "it contradicts itself"
               : NULL;
}

/* The newest good page of an open file. -EILSEQ: none is good, *why says what is wrong with the
 * last one; a page that cannot be read is not good. */
static int read_newest(struct mqx_io *io, int fd, const uint8_t qm_id[16], struct mqx_head *out,
                       const char **why)
{
    struct psh_page page;
    MQX_ASSERT(fd >= 0);
    *out = (struct mqx_head){.sequence = 0};
    *why = NULL;
    for (uint32_t i = 0; i < PAGES; i++) {
        const int err = mqx_io_read_all(io, fd, &page, sizeof page, (uint64_t)i * sizeof page);
        if (err != 0 && err != -EIO) {
            return err;
        }
        const char *wrong = err != 0 ? "it cannot be read" : why_bad(&page, i, qm_id);
        if (wrong != NULL) {
            *why = wrong;
            out->damaged = true;
        } else if (page.sequence > out->sequence) {
            *out = (struct mqx_head){page.sequence, page.segment_no, page.generation,
                                     page.timeline, out->damaged};
        }
    }
    MQX_ASSERT(out->sequence == 0 || out->segment_no != 0);
    return out->sequence != 0 ? 0 : -EILSEQ;
}

/* The place of a page follows from its sequence number. */
static int write_page(struct mqx_io *io, int fd, const uint8_t qm_id[16],
                      const struct mqx_head *head, uint64_t sequence, int flags)
{
    struct psh_page page;
    struct mqx_head numbered = *head;
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(sequence != 0);
    numbered.sequence = sequence;
    fill(&page, qm_id, &numbered);
    return mqx_io_write_all(io, fd, &page, sizeof page, sequence % PAGES * sizeof page, flags);
}

/* Both pages are whole before the file counts: its name is flushed by the caller, behind them. */
int mqx_head_create(struct mqx_io *io, int dir, const uint8_t qm_id[16],
                    const struct mqx_head *head)
{
    MQX_ASSERT(dir >= 0);
    MQX_ASSERT(head->segment_no != 0);
    const int fd = io->ops->open(io, dir, MQX_HEAD_NAME, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    if (fd < 0) {
        return fd;
    }
    int err = 0;
    for (uint64_t sequence = PAGES; sequence < 2 * PAGES && err == 0; sequence++) {
        err = write_page(io, fd, qm_id, head, sequence, 0);
    }
    if (err == 0) {
        err = io->ops->sync(io, fd);
    }
    const int closed = io->ops->close(io, fd);
    return err != 0 ? err : closed;
}

/* One good page is enough: the other one may have been torn in a crash, and says nothing newer that
 * was acknowledged. Without any nobody knows how far the journal reached. */
int mqx_head_read(struct mqx_io *io, int dir, const uint8_t qm_id[16], int flags,
                  struct mqx_head *out)
{
    const char *why = NULL;
    MQX_ASSERT(dir >= 0);
    MQX_ASSERT((flags & MQX_IO_WRITE) == 0);
    const int fd = io->ops->open(io, dir, MQX_HEAD_NAME, flags, 0);
    if (fd == -ENOENT) {
        return mqx_fail(MQRC_OBJECT_DAMAGED, "HEAD: the file is missing, so it is not known "
                                             "whether the newest journal segments are there");
    }
    if (fd < 0) {
        return mqx_io_reason(fd, "opening HEAD");
    }
    const int err = read_newest(io, fd, qm_id, out, &why);
    (void)io->ops->close(io, fd);
    if (err == -EILSEQ) {
        return mqx_fail(MQRC_OBJECT_DAMAGED,
                        "HEAD: neither page (offsets 0 and 4096) is good, of the second one: %s",
                        why);
    }
    return err == 0 ? MQX_OK : mqx_io_reason(err, "reading HEAD");
}

/* When no page is good it begins with the first sequence number again. */
static int write_next(struct mqx_io *io, int fd, const uint8_t qm_id[16],
                      const struct mqx_head *head, bool *out_unknown)
{
    struct mqx_head newest;
    const char *why = NULL;
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(!*out_unknown);
    const int err = read_newest(io, fd, qm_id, &newest, &why);
    if (err != 0 && err != -EILSEQ) {
        return err;
    }
    *out_unknown = true;
    return write_page(io, fd, qm_id, head, newest.sequence + 1, MQX_IO_DSYNC);
}

/* A file that is gone is made anew: a restart has refused before to begin without one, so it was
 * removed under a running queue manager. `out_unknown` is set for the steps after which the medium
 * may hold either state. */
int mqx_head_write(struct mqx_io *io, int dir, const uint8_t qm_id[16],
                   const struct mqx_head *head, bool *out_unknown)
{
    MQX_ASSERT(dir >= 0);
    MQX_ASSERT(head->segment_no != 0);
    *out_unknown = false;
    const int fd = io->ops->open(io, dir, MQX_HEAD_NAME, MQX_IO_WRITE | MQX_IO_LINKED, 0);
    if (fd == -ENOENT) {
        const int made = mqx_head_create(io, dir, qm_id, head);
        *out_unknown = made != -EEXIST;
        return made != 0 ? made : io->ops->sync_dir(io, dir);
    }
    if (fd < 0) {
        return fd;
    }
    const int err = write_next(io, fd, qm_id, head, out_unknown);
    const int closed = io->ops->close(io, fd);
    return err != 0 ? err : closed;
}
