/*
 * segment.c - see segment.h.
 */
#include "format/segment.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/siphash.h"
#include "format/record_codec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ZERO_PARTS = 256,
    ZERO_STEP = ZERO_PARTS * MQX_PAGE_SIZE,
    PACED_STEP = 512 * 1024,  /* bytes flushed at once when paced (rule 11) */
    PAUSE_US = 500,           /* so that commits get at the disk in between (rule 11) */
    CRCS_AT_ONCE = 64,        /* even: the parts of a hash are words of 8 bytes */
};

static const unsigned char zero_page[MQX_PAGE_SIZE];

void mqx_file_name(char out[MQX_FILE_NAME_SIZE], enum mqx_file_kind kind, uint64_t number)
{
    const char *form = kind == MQX_FILE_SEGMENT    ? "%010" PRIu64 ".psj"
                       : kind == MQX_FILE_SPARE    ? "spare-%010" PRIu64 ".psj"
                       : kind == MQX_FILE_RESERVED ? "reserve-%010" PRIu64 ".psj"
                                                   : "spare-%010" PRIu64 ".tmp";
    MQX_ASSERT(kind != MQX_FILE_OTHER);
    (void)snprintf(out, MQX_FILE_NAME_SIZE, form, number);
}

/* Only the spelling that mqx_file_name() gives counts. */
enum mqx_file_kind mqx_file_kind_of(const char *name, uint64_t *out_number)
{
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(out_number != NULL);
    static const enum mqx_file_kind kinds[] = {MQX_FILE_SEGMENT, MQX_FILE_SPARE,
                                               MQX_FILE_HALF_MADE, MQX_FILE_RESERVED};
    const char *behind = strrchr(name, '-');
    const char *digits = behind != NULL ? behind + 1 : name;
    char same[MQX_FILE_NAME_SIZE];

    if (*digits < '0' || *digits > '9') {
        return MQX_FILE_OTHER;
    }
    *out_number = strtoull(digits, NULL, 10);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(kinds); i++) {
        mqx_file_name(same, kinds[i], *out_number);
        if (strcmp(same, name) == 0) {
            return kinds[i];
        }
    }
    return MQX_FILE_OTHER;
}

void mqx_archive_name(char out[MQX_FILE_NAME_SIZE], uint64_t timeline, uint64_t number,
                      uint32_t copy)
{
    MQX_ASSERT(number != 0);
    MQX_ASSERT(copy < MQX_ARCHIVE_COPIES);
    int length = snprintf(out, MQX_FILE_NAME_SIZE, "%010" PRIu64 "-%010" PRIu64, timeline, number);
    if (copy > 0) {
        length += snprintf(out + length, MQX_FILE_NAME_SIZE - (size_t)length, "-%02" PRIu32, copy);
    }
    (void)snprintf(out + length, MQX_FILE_NAME_SIZE - (size_t)length, ".psj");
}

int mqx_write_zeroes(struct mqx_io *io, int fd, uint64_t at, uint64_t end)
{
    MQX_ASSERT(at % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(end % MQX_PAGE_SIZE == 0);
    struct iovec parts[ZERO_PARTS];
    int err = 0;

    for (int i = 0; i < ZERO_PARTS; i++) {
        parts[i] = (struct iovec){.iov_base = (void *)(uintptr_t)zero_page,
                                  .iov_len = MQX_PAGE_SIZE};
    }
    for (; at < end && err == 0; at += ZERO_STEP) {
        const uint64_t left = (end - at) / MQX_PAGE_SIZE;
        err = io->ops->write(io, fd, parts, left < ZERO_PARTS ? (int)left : ZERO_PARTS, at, 0);
    }
    return err;
}

/* Zeroes from the first to the last byte, durable. -ECANCELED: given up. */
static int fill(struct mqx_io *io, int fd, uint64_t size, const struct mqx_spare_pace *pace)
{
    uint64_t end = 0;
    int err = 0;
    MQX_ASSERT(size > 0);
    MQX_ASSERT(size % MQX_PAGE_SIZE == 0);
    for (uint64_t at = 0; at < size && err == 0; at = end) {
        end = pace != NULL && size - at > PACED_STEP ? at + PACED_STEP : size;
        if (pace != NULL && mqx_load_relaxed(pace->leaving) != 0) {
            return -ECANCELED;
        }
        if (pace != NULL && at > 0 &&
            (pace->between == NULL || pace->between(pace->arg, at, size))) {
            mqx_clock_sleep_us(PAUSE_US);
        }
        err = mqx_write_zeroes(io, fd, at, end);
        if (err == 0) {
            err = io->ops->sync(io, fd);
        }
    }
    return err;
}

int mqx_spare_create(struct mqx_io *io, int journal_dir, uint64_t number, uint64_t size,
                     const struct mqx_spare_pace *pace)
{
    MQX_ASSERT(number > 0);
    char half[MQX_FILE_NAME_SIZE], whole[MQX_FILE_NAME_SIZE];
    MQX_ASSERT(size % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(size >= PS_MIN_SEGMENT);
    mqx_file_name(half, MQX_FILE_HALF_MADE, number);
    mqx_file_name(whole, MQX_FILE_SPARE, number);

    int fd = io->ops->open(io, journal_dir, half, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    if (fd == -EEXIST) { /* left by a process that died */
        (void)io->ops->unlink(io, journal_dir, half);
        fd = io->ops->open(io, journal_dir, half, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    }
    if (fd < 0) {
        return mqx_io_reason(fd, "creating a journal segment");
    }
    int err = io->ops->allocate(io, fd, 0, size);
    if (err == 0) {
        err = fill(io, fd, size, pace);
    }
    const int closed = io->ops->close(io, fd);
    err = err == 0 ? closed : err;
    if (err == 0) {
        err = io->ops->rename(io, journal_dir, half, whole);
    }
    if (err == 0) {
        err = io->ops->sync_dir(io, journal_dir);
        if (err == 0) {
            return MQX_OK;
        }
        (void)io->ops->unlink(io, journal_dir, whole);
    }
    (void)io->ops->unlink(io, journal_dir, half);
    if (err == -ECANCELED) {
        return MQX_LEAVING;
    }
    if (mqx_io_write_is_own_fault(err)) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM,
                        "making a journal segment of %" PRIu64 " bytes: %s", size,
                        err == -EFBIG ? "longer than this process may write (RLIMIT_FSIZE)"
                                      : "the program has closed its descriptor");
    }
    return mqx_io_reason(err, "making a journal segment");
}

void mqx_segment_seal(struct psj_segment *header)
{
    MQX_ASSERT(header->segment_no > 0);
    MQX_ASSERT(header->size >= PS_MIN_SEGMENT);
    memcpy(header->magic, PSJ_MAGIC, sizeof header->magic);
    header->major = PS_FORMAT_MAJOR;
    header->minor = PS_FORMAT_MINOR;
    header->header_size = MQX_PAGE_SIZE;
    header->crc = mqx_crc32c(0, header, offsetof(struct psj_segment, crc));
}

bool mqx_segment_sizes_are_sound(const struct psj_segment *header)
{
    MQX_ASSERT(header != NULL);
    return header->base_lsn % MQX_PAGE_SIZE == 0 && header->size % MQX_PAGE_SIZE == 0 &&
           header->size >= PS_MIN_SEGMENT && header->size <= INT64_MAX &&
           header->base_lsn <= INT64_MAX - header->size;
}

int mqx_segment_verify(const struct psj_segment *header, const uint8_t qm_id[16], uint64_t number,
                       uint64_t file_size)
{
    MQX_ASSERT(header != NULL);
    MQX_ASSERT(qm_id != NULL);
    const char *wrong = NULL;
    if (memcmp(header->magic, PSJ_MAGIC, sizeof header->magic) != 0) {
        wrong = "it does not begin as a journal segment";
    } else if (header->crc != mqx_crc32c(0, header, offsetof(struct psj_segment, crc))) {
        wrong = "checksum of the header page (offset 0)";
    } else if (header->major != PS_FORMAT_MAJOR || header->incompatible != 0) {
        wrong = "it was written by a newer version";
    } else if (memcmp(header->qm_id, qm_id, sizeof header->qm_id) != 0) {
        wrong = "it belongs to another queue manager";
    } else if (header->segment_no != number) {
        wrong = "its header names another segment";
    } else if (header->size != file_size) {
        wrong = "the file's length is not the one in its header";
    } else if (header->header_size != MQX_PAGE_SIZE || !mqx_segment_sizes_are_sound(header)) {
        wrong = "sizes in its header";
    } else if (header->prev_end_lsn % MQX_PAGE_SIZE != 0 ||
               header->prev_end_lsn > header->base_lsn || number == 0 ||
               (number == 1) != (header->prev_end_lsn == 0)) {
        wrong = "end of its predecessor in its header";
    } else if (memcmp(header->zero, zero_page, sizeof header->zero) != 0) {
        wrong = "reserved bytes of its header";
    }
    return wrong == NULL ? MQX_OK
                         : mqx_fail(MQRC_OBJECT_DAMAGED, "journal/%010" PRIu64 ".psj: %s", number,
                                    wrong);
}

uint64_t mqx_flush_batch_hash(const struct mqx_flush_batch_position *position,
                              const struct psj_batch *header)
{
    const uint64_t where[2] = {position->segment_no, position->generation};
    struct mqx_siphash hash;
    MQX_ASSERT(position->qm_id != NULL);
    MQX_ASSERT(header != NULL);
    mqx_siphash_begin(&hash, position->salt);
    mqx_siphash_add(&hash, position->qm_id, 16);
    mqx_siphash_add(&hash, where, sizeof where);
    return mqx_siphash_finish(&hash, header, offsetof(struct psj_batch, hash));
}

bool mqx_flush_batch_is_at(const struct mqx_flush_batch_position *position,
                           const struct psj_batch *header)
{
    MQX_ASSERT(position != NULL);
    return header->magic == PS_BATCH_MAGIC && header->lsn == position->lsn &&
           header->segment_no == position->segment_no && header->zero == 0 &&
           header->length >= sizeof *header && header->length % PS_ALIGN == 0 &&
           header->durable_lsn <= header->lsn &&
           header->hash == mqx_flush_batch_hash(position, header);
}

bool mqx_flush_batch_valid(const struct mqx_flush_batch_position *position, const void *at,
                           uint64_t available)
{
    MQX_ASSERT((uintptr_t)at % PS_ALIGN == 0);
    const struct psj_batch *header = at;
    const unsigned char *bytes = at;
    uint32_t crcs[CRCS_AT_ONCE];
    struct mqx_siphash hash;

    if (available < sizeof *header || !mqx_flush_batch_is_at(position, header) ||
        header->length > available) {
        return false;
    }
    mqx_siphash_begin(&hash, position->salt);
    uint32_t records = 0;
    uint64_t offset = sizeof *header;
    while (offset < header->length) {
        const struct psj_record *record = (const void *)(bytes + offset);
        if (mqx_record_check(record, header->length - offset, offset - sizeof *header) != MQX_OK) {
            return false;
        }
        crcs[records % CRCS_AT_ONCE] = record->crc;
        offset += mqx_record_length(record);
        records += 1;
        if (records % CRCS_AT_ONCE == 0) {
            mqx_siphash_add(&hash, crcs, sizeof crcs);
        }
    }
    return records == header->record_count &&
           header->records ==
               mqx_siphash_finish(&hash, crcs, records % CRCS_AT_ONCE * sizeof crcs[0]);
}
