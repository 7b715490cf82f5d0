/*
 * checkpoint_file.c - see checkpoint_file.h.
 *
 * Pacing. A fuzzy checkpoint is flushed every MiB and pauses for 2 ms: otherwise the system would
 * collect its pages and write them at once, and commits would wait behind them for a second (rule
 * 11).
 *
 * Reading back. Before the rename the file is dropped from the page cache, where the system allows
 * it, and read again, so that a medium that took the bytes without keeping them is found while the
 * older checkpoint still exists.
 */
#include "recovery/checkpoint_file.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/page_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLUSH_STEP = 1 << 20,  /* bytes written between two flushes when paced (rule 11) */
    PAUSE_US = 2 * 1000,   /* so that commits get at the disk in between (rule 11) */
    BUFFER_SIZE = (int)sizeof(struct psc_block) + MQX_BLOCK_PAYLOAD_MAX,
    RESERVED_PAYLOAD = MQX_RESERVED_LINES * (int)sizeof(struct psc_message),
};

/* ---- names ---- */

/* 16 hexadecimal digits, so that names sort as LSNs do. */
void mqx_checkpoint_file_name(char out[MQX_CHECKPOINT_NAME_SIZE], uint64_t begin_lsn, bool whole)
{
    MQX_ASSERT(out != NULL);
    MQX_STATIC_ASSERT(MQX_CHECKPOINT_NAME_SIZE > 16 + sizeof ".psc", "digits and ending");
    MQX_STATIC_ASSERT(MQX_CHECKPOINT_NAME_SIZE >= sizeof MQX_CHECKPOINT_RESERVE, "it fits, too");
    (void)snprintf(out, MQX_CHECKPOINT_NAME_SIZE, "%016" PRIx64 "%s", begin_lsn,
                   whole ? ".psc" : ".tmp");
}

/* Only the exact spelling counts: it is made again from the number and compared. */
bool mqx_checkpoint_file_parse(const char *name, uint64_t *out_begin_lsn)
{
    char same[MQX_CHECKPOINT_NAME_SIZE];
    char *end = NULL;
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(out_begin_lsn != NULL);
    *out_begin_lsn = strtoull(name, &end, 16);
    if (end != name + 16) {
        return false;
    }
    mqx_checkpoint_file_name(same, *out_begin_lsn, true);
    return strcmp(same, name) == 0;
}

/* See invariant 5. */
static uint32_t block_seed(const uint8_t qm_id[16], uint64_t begin_lsn)
{
    MQX_ASSERT(qm_id != NULL);
    return mqx_crc32c(mqx_crc32c(0, qm_id, 16), &begin_lsn, sizeof begin_lsn);
}

/* Over the header from its third field on, and the payload behind it. */
static uint32_t block_crc(uint32_t seed, const struct psc_block *block, const void *payload)
{
    const size_t skip = offsetof(struct psc_block, type);
    MQX_ASSERT(payload != NULL);
    MQX_ASSERT(block->length <= MQX_BLOCK_PAYLOAD_MAX);
    const uint32_t crc =
        mqx_crc32c(seed, (const unsigned char *)block + skip, sizeof *block - skip);
    return mqx_crc32c(crc, payload, block->length);
}

/* ---- writing ----
 *
 * One buffer holds the block being filled. A block is written with one call when it is full, when
 * another type begins, or at the end; the header page is written last.
 */

/* The name that the file has until it is whole. */
static void unfinished_name(const struct mqx_checkpoint_writer *writer,
                            char out[MQX_CHECKPOINT_NAME_SIZE])
{
    MQX_ASSERT(writer->begin_lsn != 0);
    if (writer->reserved) {
        (void)snprintf(out, MQX_CHECKPOINT_NAME_SIZE, "%s", MQX_CHECKPOINT_RESERVE);
    } else {
        mqx_checkpoint_file_name(out, writer->begin_lsn, false);
    }
    MQX_ASSERT(strlen(out) < MQX_CHECKPOINT_NAME_SIZE);
}

/* All but the file. */
static int init_writer(struct mqx_checkpoint_writer *writer, struct mqx_io *io, int dir,
                       const uint8_t qm_id[16], uint64_t begin_lsn, bool paced)
{
    MQX_ASSERT(io != NULL);
    MQX_ASSERT(begin_lsn >= MQX_PAGE_SIZE); /* the stream begins with a header page */
    *writer = (struct mqx_checkpoint_writer){
        .io = io,
        .dir = dir,
        .fd = -1,
        .begin_lsn = begin_lsn,
        .seed = block_seed(qm_id, begin_lsn),
        .paced = paced,
        .at = MQX_PAGE_SIZE,
        .buffer = mqx_pages_alloc(BUFFER_SIZE),
        .columns = mqx_pages_alloc(BUFFER_SIZE),
    };
    if (writer->buffer == NULL || writer->columns == NULL) {
        mqx_checkpoint_file_abandon(writer);
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a checkpoint block");
    }
    return MQX_OK;
}

/* The file could not be opened: frees what the writer has. */
static int fail_begin(struct mqx_checkpoint_writer *writer, int err)
{
    MQX_ASSERT(err < 0);
    writer->fd = -1;
    mqx_checkpoint_file_abandon(writer);
    MQX_ASSERT(writer->buffer == NULL);
    return mqx_io_reason(err, "creating a checkpoint");
}

/* A temporary file left by a process that died is removed first. */
int mqx_checkpoint_file_begin(struct mqx_checkpoint_writer *writer, struct mqx_io *io, int dir,
                              const uint8_t qm_id[16], uint64_t begin_lsn, bool paced)
{
    char name[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(begin_lsn >= MQX_PAGE_SIZE);
    const int status = init_writer(writer, io, dir, qm_id, begin_lsn, paced);
    if (status != MQX_OK) {
        return status;
    }
    unfinished_name(writer, name);
    writer->fd = io->ops->open(io, dir, name, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    if (writer->fd == -EEXIST) {
        (void)io->ops->unlink(io, dir, name);
        writer->fd = io->ops->open(io, dir, name, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    }
    return writer->fd < 0 ? fail_begin(writer, writer->fd) : MQX_OK;
}

/* See invariant 4. A file with other names is not opened: it may be part of somebody's copy. */
int mqx_checkpoint_file_begin_reserved(struct mqx_checkpoint_writer *writer, struct mqx_io *io,
                                       int dir, const uint8_t qm_id[16], uint64_t begin_lsn,
                                       bool paced)
{
    MQX_ASSERT(begin_lsn >= MQX_PAGE_SIZE);
    const int status = init_writer(writer, io, dir, qm_id, begin_lsn, paced);
    if (status != MQX_OK) {
        return status;
    }
    writer->reserved = true;
    const int err = io->ops->sync_dir(io, dir);
    writer->fd = err == 0 ? io->ops->open(io, dir, MQX_CHECKPOINT_RESERVE, MQX_IO_WRITE, 0) : err;
    MQX_ASSERT(writer->fd < 0 || writer->at == MQX_PAGE_SIZE);
    return writer->fd < 0 ? fail_begin(writer, writer->fd) : MQX_OK;
}

/* Removes what was written so far; the buffer is freed in any case. */
void mqx_checkpoint_file_abandon(struct mqx_checkpoint_writer *writer)
{
    MQX_ASSERT(writer->fd < 0 || writer->io != NULL);
    MQX_ASSERT(writer->fd < 0 || writer->buffer != NULL);
    if (writer->fd >= 0) {
        char name[MQX_CHECKPOINT_NAME_SIZE];
        unfinished_name(writer, name);
        (void)writer->io->ops->close(writer->io, writer->fd);
        if (!writer->reserved) {
            (void)writer->io->ops->unlink(writer->io, writer->dir, name);
        }
    }
    mqx_pages_free(writer->buffer, BUFFER_SIZE);
    mqx_pages_free(writer->columns, BUFFER_SIZE);
    writer->fd = -1;
    writer->buffer = NULL;
    writer->columns = NULL;
}

/* What pacing does after each MiB. */
static int flush_and_pause(struct mqx_checkpoint_writer *writer)
{
    MQX_ASSERT(writer->paced);
    MQX_ASSERT(writer->unflushed >= FLUSH_STEP);
    const int err = writer->io->ops->sync(writer->io, writer->fd);
    writer->unflushed = 0;
    if (err != 0) {
        return mqx_io_reason(err, "flushing a checkpoint");
    }
    mqx_clock_sleep_us(PAUSE_US);
    return MQX_OK;
}

/* Writes block header and payload, which stand in `bytes`. */
static int write_block(struct mqx_checkpoint_writer *writer, struct psc_block *block,
                       unsigned char *bytes)
{
    unsigned char *payload = bytes + sizeof *block;
    const uint64_t padded = mqx_round_up(block->length, 8);
    MQX_ASSERT(sizeof *block + padded <= BUFFER_SIZE);
    MQX_ASSERT(writer->at % 8 == 0);
    memset(payload + block->length, 0, padded - block->length);
    block->crc = block_crc(writer->seed, block, payload);
    memcpy(bytes, block, sizeof *block);
    const uint64_t size = sizeof *block + padded;
    const int err = mqx_io_write_all(writer->io, writer->fd, bytes, size, writer->at, 0);
    if (err != 0) {
        return mqx_io_reason(err, "writing a checkpoint");
    }
    writer->at += size;
    writer->unflushed += size;
    return MQX_OK;
}

/* Its items are lines of struct psc_message, which become columns. */
static bool has_columns(uint32_t type)
{
    MQX_ASSERT(type != 0);
    MQX_STATIC_ASSERT(MQX_COLUMNS_MAX(MQX_BLOCK_PAYLOAD / sizeof(struct psc_message)) <=
                          MQX_BLOCK_PAYLOAD_MAX, "lines of a whole block fit as columns");
    return type == PSC_MESSAGES || type == PSC_UNIT_PUTS;
}

static void note_lines(struct mqx_checkpoint_lines *lines, const struct psc_block *block,
                       const struct psc_columns *header)
{
    MQX_ASSERT(has_columns(block->type));
    MQX_ASSERT(block->length >= sizeof *header);
    mqx_columns_note(&lines->reach, header, block->count);
    lines->bytes += block->type == PSC_MESSAGES ? sizeof *block + block->length : 0;
}

/* Lines of messages become columns, which take a fraction of their room. */
static unsigned char *payload_of(struct mqx_checkpoint_writer *writer, struct psc_block *block)
{
    const void *lines = writer->buffer + sizeof *block;
    MQX_ASSERT(writer->columns != NULL);
    if (!has_columns(block->type)) {
        return writer->buffer;
    }
    MQX_ASSERT(writer->used == block->count * sizeof(struct psc_message));
    struct psc_columns header;
    block->length = mqx_columns_encode(writer->columns + sizeof *block, lines, block->count);
    memcpy(&header, writer->columns + sizeof *block, sizeof header);
    note_lines(&writer->lines, block, &header);
    return writer->columns;
}

/* Writes the block being filled, if there is one, and counts it. */
static int end_block(struct mqx_checkpoint_writer *writer)
{
    if (writer->type == 0) {
        return MQX_OK;
    }
    MQX_ASSERT(writer->count > 0);
    MQX_ASSERT(writer->used <= MQX_BLOCK_PAYLOAD_MAX);
    struct psc_block block = {
        .magic = PS_BLOCK_MAGIC,
        .type = writer->type,
        .count = writer->count,
        .length = writer->used,
        .sequence = writer->totals.block_count,
    };
    const int status = write_block(writer, &block, payload_of(writer, &block));
    if (status != MQX_OK) {
        return status;
    }
    writer->totals.block_count += 1;
    writer->totals.object_count += block.type == PSC_OBJECTS ? block.count : 0;
    writer->totals.message_count += block.type == PSC_MESSAGES ? block.count : 0;
    writer->totals.image_count += block.type == PSC_IMAGE ? block.count : 0;
    writer->totals.segment_count += block.type == PSC_SEGMENTS ? block.count : 0;
    writer->totals.unit_count += block.type == PSC_UNITS ? block.count : 0;
    writer->totals.operation_count += block.type == PSC_OPERATIONS ? block.count : 0;
    writer->totals.unit_put_count += block.type == PSC_UNIT_PUTS ? block.count : 0;
    writer->type = 0;
    writer->count = 0;
    writer->used = 0;
    return writer->paced && writer->unflushed >= FLUSH_STEP ? flush_and_pause(writer) : MQX_OK;
}

/* A block ends when another type begins or it is full. Items of a block lie one behind the other,
 * so several may be placed with one call. */
int mqx_checkpoint_file_reserve(struct mqx_checkpoint_writer *writer, uint32_t type, uint32_t size,
                                void **out, uint32_t *out_max)
{
    MQX_ASSERT(size > 0);
    MQX_ASSERT(size <= MQX_RING_RECORD_MAX);
    MQX_ASSERT(writer->buffer != NULL);
    const uint64_t most = writer->reserved && has_columns(type) ? RESERVED_PAYLOAD
                                                                : MQX_BLOCK_PAYLOAD;
    if (writer->type != type || writer->used + size > most) {
        int status = end_block(writer);
        if (status != MQX_OK) {
            return status;
        }
        writer->type = type;
    }
    *out = writer->buffer + sizeof(struct psc_block) + writer->used;
    *out_max = (uint32_t)((most - writer->used) / size);
    MQX_ASSERT(*out_max >= 1);
    return MQX_OK;
}

/* The payload may grow beyond MQX_BLOCK_PAYLOAD by one item of MQX_RING_RECORD_MAX bytes. */
void mqx_checkpoint_file_added(struct mqx_checkpoint_writer *writer, uint32_t count, uint64_t bytes)
{
    writer->count += count;
    writer->used += bytes;
    MQX_ASSERT(writer->type != 0);
    MQX_ASSERT(writer->used <= MQX_BLOCK_PAYLOAD_MAX);
    if (writer->count == 0) {
        writer->type = 0; /* a block without items is not written */
    }
}

/* The END block: the totals of all blocks before it. */
static int write_end(struct mqx_checkpoint_writer *writer, uint64_t end_lsn)
{
    void *at = NULL;
    uint32_t most = 0;
    MQX_ASSERT(end_lsn >= writer->begin_lsn);
    int status = end_block(writer);
    if (status == MQX_OK) {
        status = mqx_checkpoint_file_reserve(writer, PSC_END, sizeof(struct psc_end), &at, &most);
    }
    if (status == MQX_OK) {
        writer->totals.end_lsn = end_lsn;
        memcpy(at, &writer->totals, sizeof writer->totals);
        mqx_checkpoint_file_added(writer, 1, sizeof writer->totals);
        status = end_block(writer);
    }
    MQX_ASSERT(status != MQX_OK || writer->type == 0);
    return status;
}

/* Reads the file back, from the medium as far as the system lets us. */
static int verify_file(struct mqx_io *io, int dir, const char *name, const uint8_t qm_id[16])
{
    struct mqx_checkpoint_reader reader;
    struct psc_block block = {0};
    const unsigned char *payload;
    MQX_ASSERT(name != NULL);
    int status = mqx_checkpoint_file_open(&reader, io, dir, name, qm_id, MQX_IO_LINKED);
    if (status != MQX_OK) {
        return status;
    }
    while (status == MQX_OK && !reader.ended) { /* bounded by the file's size */
        status = mqx_checkpoint_file_next(&reader, &block, &payload);
    }
    MQX_ASSERT(status != MQX_OK || block.type == PSC_END);
    mqx_checkpoint_file_close(&reader);
    return status;
}

/* Every failure removes the temporary file; only the flush of the directory comes after the file
 * has its name, and a restart takes it then if it is there. */
int mqx_checkpoint_file_finish(struct mqx_checkpoint_writer *writer, struct psc_header *header,
                               uint64_t *out_size)
{
    struct mqx_io *io = writer->io;
    char half[MQX_CHECKPOINT_NAME_SIZE], whole[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(writer->fd >= 0);
    MQX_ASSERT(header->has_image <= header->clean);
    unfinished_name(writer, half);
    mqx_checkpoint_file_name(whole, writer->begin_lsn, true);
    memcpy(header->magic, PSC_MAGIC, sizeof header->magic);
    header->major = PS_FORMAT_MAJOR;
    header->minor = PS_FORMAT_MINOR;
    header->header_size = MQX_PAGE_SIZE;
    header->begin_lsn = writer->begin_lsn;
    header->crc = mqx_crc32c(0, header, offsetof(struct psc_header, crc));

    int status = write_end(writer, header->end_lsn);
    if (status != MQX_OK) {
        mqx_checkpoint_file_abandon(writer);
        return status;
    }
    *out_size = writer->at;
    int err = writer->reserved ? io->ops->truncate(io, writer->fd, writer->at) : 0;
    if (err == 0) {
        err = mqx_io_write_all(io, writer->fd, header, sizeof *header, 0, 0);
    }
    if (err == 0) {
        err = io->ops->sync(io, writer->fd);
    }
    if (err != 0) {
        mqx_checkpoint_file_abandon(writer);
        return mqx_io_reason(err, "writing a checkpoint");
    }
    (void)io->ops->drop_cache(io, writer->fd); /* so that the read below asks the medium */
    status = verify_file(io, writer->dir, half, header->qm_id);
    if (status == MQX_OK && writer->accept != NULL) {
        status = writer->accept(writer->accept_arg, half, header->end_lsn);
    }
    if (status == MQX_OK) {
        err = io->ops->rename(io, writer->dir, half, whole);
        status = err == 0 ? MQX_OK : mqx_io_reason(err, "naming a checkpoint");
    }
    if (status != MQX_OK) {
        mqx_checkpoint_file_abandon(writer);
        return status;
    }
    err = io->ops->close(io, writer->fd);
    writer->fd = -1;
    if (err == 0) {
        err = io->ops->sync_dir(io, writer->dir);
    }
    mqx_checkpoint_file_abandon(writer);
    return err == 0 ? MQX_OK : mqx_io_reason(err, "flushing the checkpoint directory");
}

/* ---- reading ----
 *
 * Through a window (os/file_window.h) that moves forward with the blocks. The reader counts what it
 * has read in `totals`, to be compared with the END block.
 */

/* Every refusal names the file and an offset in it. */
int mqx_checkpoint_file_damaged(const struct mqx_checkpoint_reader *reader, uint64_t offset,
                                const char *what)
{
    MQX_ASSERT(what != NULL);
    MQX_ASSERT(reader->name[0] != '\0');
    return mqx_fail(MQRC_OBJECT_DAMAGED, "checkpoint/%s, offset %" PRIu64 ": %s", reader->name,
                    offset, what);
}

/* [offset, offset + size) of the file, valid until the next call. */
static int read_bytes(struct mqx_checkpoint_reader *reader, uint64_t offset, uint64_t size,
                      const unsigned char **out)
{
    MQX_ASSERT(size > 0);
    MQX_ASSERT(reader->window.fd >= 0);
    const int err = mqx_file_window_read(&reader->window, offset, size, out);
    if (err == -ENOMEM) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to read a checkpoint");
    }
    return err == 0 ? MQX_OK
                    : mqx_checkpoint_file_damaged(reader, offset,
                                                  "the file ends here or cannot be read");
}

/* 0 means "none": a counter that comes to it gives the same number twice. */
static bool is_counter(uint64_t next)
{
    return next != 0 && next < PS_NUMBER_LIMIT;
}

/* Is the header page what was written? */
static bool header_is_sound(const struct psc_header *header)
{
    MQX_ASSERT(header != NULL);
    return memcmp(header->magic, PSC_MAGIC, sizeof header->magic) == 0 &&
           header->crc == mqx_crc32c(0, header, offsetof(struct psc_header, crc));
}

/* The header page: written by this program, of this queue manager, in the file of its name. */
static int verify_header(struct mqx_checkpoint_reader *reader, const uint8_t qm_id[16])
{
    const struct psc_header *header = &reader->header;
    static const unsigned char zeroes[sizeof header->zero];
    const char *wrong = NULL;
    uint64_t at = 0;
    char whole[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(qm_id != NULL);
    MQX_ASSERT(reader->at == MQX_PAGE_SIZE); /* no block was read yet */
    mqx_checkpoint_file_name(whole, header->begin_lsn, true);

    if (!header_is_sound(header)) {
        wrong = "checksum of the header page";
    } else if (header->major != PS_FORMAT_MAJOR || header->incompatible != 0) {
        wrong = "it was written by a newer version";
    } else if (memcmp(header->qm_id, qm_id, sizeof header->qm_id) != 0) {
        wrong = "it belongs to another queue manager";
    } else if (strncmp(whole, reader->name, 16) != 0 &&
               strcmp(reader->name, MQX_CHECKPOINT_RESERVE) != 0) {
        wrong = "its name does not say its begin LSN";
    } else if (header->end_lsn < header->begin_lsn || header->clean > 1 ||
               header->has_image > header->clean || header->units_listed > 1 ||
               header->header_size != MQX_PAGE_SIZE ||
               memcmp(header->zero, zeroes, sizeof zeroes) != 0) {
        wrong = "its header contradicts itself";
    } else if (!is_counter(header->next_number)) {
        at = offsetof(struct psc_header, next_number);
        wrong = "the next message number is not between 1 and 2^63 - 1";
    } else if (!is_counter(header->next_unit_id)) {
        at = offsetof(struct psc_header, next_unit_id);
        wrong = "the next unit id is not between 1 and 2^63 - 1";
    }
    return wrong == NULL ? MQX_OK : mqx_checkpoint_file_damaged(reader, at, wrong);
}

/* Opens the file and reads its header page, unverified. On failure nothing stays open. */
static int open_file(struct mqx_checkpoint_reader *reader, struct mqx_io *io, int dir,
                     const char *name, int flags)
{
    struct mqx_io_stat facts = {0};
    const unsigned char *bytes = NULL;
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(strlen(name) < sizeof reader->name);
    *reader = (struct mqx_checkpoint_reader){.window = {.io = io, .fd = -1}, .at = MQX_PAGE_SIZE};
    (void)snprintf(reader->name, sizeof reader->name, "%s", name);
    int fd = io->ops->open(io, dir, name, flags, 0);
    if (fd < 0) {
        return mqx_io_reason(fd, "opening a checkpoint");
    }
    reader->window.fd = fd;
    const int err = io->ops->stat(io, fd, &facts);
    if (err != 0) {
        mqx_checkpoint_file_close(reader);
        return mqx_io_reason(err, "asking the size of a checkpoint");
    }
    mqx_file_window_switch(&reader->window, fd, facts.size);
    int status = read_bytes(reader, 0, sizeof reader->header, &bytes);
    if (status == MQX_OK) {
        memcpy(&reader->header, bytes, sizeof reader->header);
    } else {
        mqx_checkpoint_file_close(reader);
    }
    return status;
}

/* On failure nothing stays open. */
int mqx_checkpoint_file_open(struct mqx_checkpoint_reader *reader, struct mqx_io *io, int dir,
                             const char *name, const uint8_t qm_id[16], int flags)
{
    MQX_ASSERT(qm_id != NULL);
    int status = open_file(reader, io, dir, name, flags);
    if (status != MQX_OK) {
        return status;
    }
    reader->seed = block_seed(qm_id, reader->header.begin_lsn);
    status = verify_header(reader, qm_id);
    if (status != MQX_OK) {
        mqx_checkpoint_file_close(reader);
    }
    MQX_ASSERT(status != MQX_OK || reader->window.fd >= 0);
    return status;
}

/* Harmless when it is not open. */
void mqx_checkpoint_file_close(struct mqx_checkpoint_reader *reader)
{
    MQX_ASSERT(reader->window.fd < 0 || reader->window.io != NULL);
    if (reader->window.fd >= 0) {
        (void)reader->window.io->ops->close(reader->window.io, reader->window.fd);
    }
    reader->window.fd = -1;
    mqx_file_window_free(&reader->window);
}

/* The lengths in the header are checked here, so that callers may step by them. */
int mqx_checkpoint_file_peek(struct mqx_checkpoint_reader *reader, struct psc_block *out)
{
    const unsigned char *bytes = NULL;
    MQX_ASSERT(reader->at % 8 == 0);
    MQX_ASSERT(reader->at >= MQX_PAGE_SIZE);
    int status = read_bytes(reader, reader->at, sizeof *out, &bytes);
    if (status != MQX_OK) {
        return status;
    }
    memcpy(out, bytes, sizeof *out);
    const uint64_t left = reader->window.file_size - reader->at - sizeof *out;
    if (out->magic != PS_BLOCK_MAGIC || out->length > MQX_BLOCK_PAYLOAD_MAX ||
        mqx_round_up(out->length, 8) > left) {
        return mqx_checkpoint_file_damaged(reader, reader->at,
                                           "no block of a possible length is here");
    }
    return MQX_OK;
}

/* The payload is not read. */
int mqx_checkpoint_file_skip(struct mqx_checkpoint_reader *reader)
{
    struct psc_block block;
    int status = mqx_checkpoint_file_peek(reader, &block);
    if (status == MQX_OK) {
        MQX_ASSERT(block.type != PSC_END);
        reader->at += sizeof block + mqx_round_up(block.length, 8);
    }
    MQX_ASSERT(status != MQX_OK || reader->at <= reader->window.file_size);
    return status;
}

/* The totals in END must be those that were read. */
static int verify_end(struct mqx_checkpoint_reader *reader, const struct psc_block *block,
                      const unsigned char *payload)
{
    struct psc_end stated;
    MQX_ASSERT(block->type == PSC_END);
    MQX_ASSERT(!reader->ended);
    if (block->length != sizeof stated) {
        return mqx_checkpoint_file_damaged(reader, reader->at, "length of the END block");
    }
    memcpy(&stated, payload, sizeof stated);
    reader->totals.end_lsn = reader->header.end_lsn;
    if (memcmp(&stated, &reader->totals, sizeof stated) != 0) {
        return mqx_checkpoint_file_damaged(reader, reader->at, "totals of the END block");
    }
    reader->ended = true;
    return MQX_OK;
}

/* Bytes of an item of a block whose items all have one size; 0: of another one. */
static uint64_t line_size(uint32_t type)
{
    MQX_ASSERT(type != PSC_END);
    MQX_STATIC_ASSERT(sizeof(struct psc_operation) % 8 == 0, "lines need no padding");
    return type == PSC_SEGMENTS     ? sizeof(struct psc_segment)
           : type == PSC_UNITS      ? sizeof(struct psc_unit)
           : type == PSC_OPERATIONS ? sizeof(struct psc_operation)
                                    : 0;
}

/* Counts a verified block, and checks what its type demands. */
static int take_block(struct mqx_checkpoint_reader *reader, const struct psc_block *block,
                      const unsigned char *payload)
{
    struct mqx_message_columns columns;
    MQX_ASSERT(payload != NULL);
    MQX_ASSERT(block->sequence == reader->totals.block_count);
    switch (block->type) {
    case PSC_OBJECTS: reader->totals.object_count += block->count; break;
    case PSC_IMAGE: reader->totals.image_count += block->count; break;
    case PSC_SEGMENTS: reader->totals.segment_count += block->count; break;
    case PSC_MESSAGES: reader->totals.message_count += block->count; break;
    case PSC_UNITS: reader->totals.unit_count += block->count; break;
    case PSC_OPERATIONS: reader->totals.operation_count += block->count; break;
    case PSC_UNIT_PUTS: reader->totals.unit_put_count += block->count; break;
    case PSC_END: return verify_end(reader, block, payload);
    default:
        return mqx_checkpoint_file_damaged(reader, reader->at,
                                           "a block of a type that is not known");
    }
    if (line_size(block->type) != 0 && block->length != block->count * line_size(block->type)) {
        return mqx_checkpoint_file_damaged(reader, reader->at, "length of a block of lines");
    }
    if (has_columns(block->type)) {
        if (!mqx_columns_open(&columns, payload, block->length, block->count)) {
            return mqx_checkpoint_file_damaged(reader, reader->at,
                                               "columns of a block of messages");
        }
        note_lines(&reader->lines, block, &columns.header);
    }
    if (block->type == PSC_IMAGE && reader->header.has_image == 0) {
        return mqx_checkpoint_file_damaged(reader, reader->at,
                                           "an IMAGE block that was not announced");
    }
    reader->totals.block_count += 1;
    return MQX_OK;
}

/* The next block, when its bytes are what was written: checksum, sequence number, padding. */
static int read_block(struct mqx_checkpoint_reader *reader, struct psc_block *out_block,
                      const unsigned char **out_payload)
{
    const unsigned char *bytes = NULL;
    MQX_ASSERT(!reader->ended);
    MQX_ASSERT(reader->window.fd >= 0);
    int status = mqx_checkpoint_file_peek(reader, out_block);
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t padded = mqx_round_up(out_block->length, 8);
    status = read_bytes(reader, reader->at, sizeof *out_block + padded, &bytes);
    if (status != MQX_OK) {
        return status;
    }
    const unsigned char *payload = bytes + sizeof *out_block;
    static const unsigned char zeroes[8];
    if (out_block->crc != block_crc(reader->seed, out_block, payload) ||
        out_block->sequence != reader->totals.block_count ||
        memcmp(payload + out_block->length, zeroes, padded - out_block->length) != 0) {
        return mqx_checkpoint_file_damaged(reader, reader->at, "checksum or order of a block");
    }
    *out_payload = payload;
    return MQX_OK;
}

/* Goes behind the block; behind END the file must end. */
static int pass_block(struct mqx_checkpoint_reader *reader, const struct psc_block *block)
{
    MQX_ASSERT(reader->at % 8 == 0);
    MQX_ASSERT(block->length <= MQX_BLOCK_PAYLOAD_MAX);
    reader->at += sizeof *block + mqx_round_up(block->length, 8);
    return block->type == PSC_END && reader->at != reader->window.file_size
               ? mqx_checkpoint_file_damaged(reader, reader->at, "bytes after the END block")
               : MQX_OK;
}

/* The bytes first, then what the type demands. */
int mqx_checkpoint_file_next(struct mqx_checkpoint_reader *reader, struct psc_block *out_block,
                             const unsigned char **out_payload)
{
    MQX_ASSERT(out_block != NULL);
    MQX_ASSERT(out_payload != NULL);
    int status = read_block(reader, out_block, out_payload);
    if (status == MQX_OK) {
        status = take_block(reader, out_block, *out_payload);
    }
    return status == MQX_OK ? pass_block(reader, out_block) : status;
}

int mqx_checkpoint_file_verify(struct mqx_io *io, int dir, const char *name, int flags)
{
    struct mqx_checkpoint_reader reader;
    struct psc_block block = {0};
    const unsigned char *payload = NULL;
    MQX_ASSERT((flags & MQX_IO_WRITE) == 0);
    int status = open_file(&reader, io, dir, name, flags);
    if (status != MQX_OK) {
        return status;
    }
    reader.seed = block_seed(reader.header.qm_id, reader.header.begin_lsn);
    if (!header_is_sound(&reader.header)) {
        status = mqx_checkpoint_file_damaged(&reader, 0, "checksum of the header page");
    }
    while (status == MQX_OK && block.type != PSC_END) { /* bounded by the file's size */
        status = read_block(&reader, &block, &payload);
        if (status == MQX_OK) {
            reader.totals.block_count += 1;
            status = pass_block(&reader, &block);
        }
    }
    MQX_ASSERT(status != MQX_OK || reader.at == reader.window.file_size);
    mqx_checkpoint_file_close(&reader);
    return status;
}
