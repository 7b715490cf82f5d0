/*
 * segment.h - segment files and flush batches: names, header pages, creation of whole files, and
 * the test whether bytes are the flush batch that belongs at a position. No region, no locks.
 *
 * Errors: 2101 with a text for a header that is not the expected one; the reason of a failed file
 * operation (os/io.h) from mqx_spare_create(), but 2102 for what is the process's own fault.
 *
 * Names in the journal directory
 *   <number, 10 digits>.psj   a segment of the stream
 *   spare-<number, 10>.psj    a whole segment file that is not part of the stream yet
 *   spare-<number, 10>.tmp    one in the making; worthless after a crash
 * Names in the archive
 *   <timeline, 10 digits>-<number, 10 digits>.psj       a segment that is no longer needed
 *   <timeline, 10>-<number, 10>-<copy, 2 digits>.psj    the same when that name was taken
 */
#ifndef PENSTOCK_SEGMENT_H
#define PENSTOCK_SEGMENT_H

#include "format/format.h"
#include "os/io.h"

enum { MQX_FILE_NAME_SIZE = 56 };

enum mqx_file_kind {
    MQX_FILE_OTHER,
    MQX_FILE_SEGMENT,
    MQX_FILE_SPARE,
    MQX_FILE_HALF_MADE, /* spare-<number>.tmp */
    MQX_FILE_RESERVED,  /* reserve-<number>.psj */
};
void mqx_file_name(char out[MQX_FILE_NAME_SIZE], enum mqx_file_kind kind, uint64_t number);
enum mqx_file_kind mqx_file_kind_of(const char *name, uint64_t *out_number);

/* The name of an archived segment; `copy` 0 is the usual one, 1 and above are tried when it is
 * taken. */
enum { MQX_ARCHIVE_COPIES = 100 };
void mqx_archive_name(char out[MQX_FILE_NAME_SIZE], uint64_t timeline, uint64_t number,
                      uint32_t copy);

/* Writes spare-<number>.psj whole: temporary name, room, zeroes, flush, rename, flush of the
 * directory (rule 7). On failure nothing is left but perhaps a *.tmp. With a pace so little is
 * flushed at once that a commit beside it waits no longer than for another commit (rule 11);
 * `between` is called before each part but the first, and true asks for a pause; and who leaves
 * gives it up (MQX_LEAVING): it is wanted by those who stay, or by the next start. NULL: all at
 * once. */
struct mqx_spare_pace {
    const uint32_t *leaving; /* atomic */
    bool (*between)(void *arg, uint64_t made, uint64_t size); /* bytes; NULL: a pause each time */
    void *arg;
};
int mqx_spare_create(struct mqx_io *io, int journal_dir, uint64_t number, uint64_t size,
                     const struct mqx_spare_pace *pace) MQX_MUST_USE;

/* Zeroes from offset `at` to `end`, whole pages. 0 or a negated errno. */
int mqx_write_zeroes(struct mqx_io *io, int fd, uint64_t at, uint64_t end) MQX_MUST_USE;

/* Fills in magic, version, sizes and CRC around what the caller has set. */
void mqx_segment_seal(struct psj_segment *header);
/* Can a segment have that size at that LSN? */
bool mqx_segment_sizes_are_sound(const struct psj_segment *header);
/* MQRC_OBJECT_DAMAGED with a text unless it is the header of segment `number` of this queue manager
 * in a file of `file_size` bytes. */
int mqx_segment_verify(const struct psj_segment *header, const uint8_t qm_id[16], uint64_t number,
                       uint64_t file_size) MQX_MUST_USE;

/* Where a batch lies: what its header's hash is bound to. */
struct mqx_flush_batch_position {
    const uint8_t *qm_id;
    const uint8_t *salt; /* of the segment */
    uint64_t segment_no;
    uint64_t generation;
    uint64_t lsn;
};
/* What belongs in header->hash. All other fields are set, `records` too (struct mqx_siphash with
 * the salt, over the crc fields of the records). */
uint64_t mqx_flush_batch_hash(const struct mqx_flush_batch_position *position,
                              const struct psj_batch *header);

/* True when the header was written for that position of this use of the file: fields and hash.
 * Whatever else lies in the file, and whoever chose it, only its writer can make that true. */
bool mqx_flush_batch_is_at(const struct mqx_flush_batch_position *position,
                           const struct psj_batch *header);
/* The whole test: header, length <= available, every record's CRC, the hash of them all. `at` is
 * 8-byte aligned. */
bool mqx_flush_batch_valid(const struct mqx_flush_batch_position *position, const void *at,
                           uint64_t available);

#endif
