/*
 * checkpoint_file.h - the bytes of a checkpoint file (FORMAT.md, section 8), written and read in
 * blocks.
 *
 * Purpose. A file of objects, messages and images that a restart believes only as a whole. This
 * module knows blocks, their order and their checksums; what the items say is the callers' matter
 * (checkpoint.c, load.c).
 *
 * Terms
 *   block     header and payload of items of one type, about 1 MiB; the last one is END.
 *   totals    counts of blocks and items, repeated in the END block.
 *   whole     named <begin LSN>.psc; until then <begin LSN>.tmp, which counts for nothing.
 *   reserve   a file that counts for nothing either, with blocks that the disk has given already
 *             (checkpoint_reserve.h). A checkpoint that finds no room is written over it.
 *
 * A block may hold records of the journal's form (OBJECTS: OBJECT records; IMAGE: CHUNK and PUT
 * records), lines of fixed size (UNITS: struct psc_unit, OPERATIONS: struct psc_operation,
 * SEGMENTS: struct psc_segment) or columns (MESSAGES and UNIT_PUTS: a writer is given lines of
 * struct psc_message, which become columns when the block ends; format/message_columns.h decodes
 * them). Its payload is padded with zeroes to a multiple of 8.
 *
 *   offset 0      header page (struct psc_header)
 *   offset 4096   OBJECTS, MESSAGES, IMAGE, UNITS, OPERATIONS, UNIT_PUTS, SEGMENTS blocks
 *   at the end    END block, nothing behind it
 *
 * Invariants
 *   1. Writing: begin, add items, finish. Finish writes END block and header, flushes, reads
 *      everything back from the medium and verifies it, asks `accept`, renames, flushes the
 *      directory (rule 11).
 *   2. A file whose bytes are not what was written (mqx_checkpoint_file_verify) is damaged: a
 *      restart takes an older one. One whose bytes are right and which contradicts itself is
 *      refused.
 *   3. Reading trusts nothing: every length is checked against what contains it, every block's CRC,
 *      the order of sequence numbers, the totals at the end.
 *   4. One that is written over the reserve is cut to its size before it is flushed, and has the
 *      reserve's name until it is whole: bytes change only in a file that has no checkpoint's name
 *      on the medium, because the directory is flushed before the first of them is written.
 *   5. A block's CRC is seeded with the queue manager's id and the begin LSN: a block of another
 *      file does not pass.
 *
 * No locks: writer and reader belong to one thread. Errors: MQRC_OBJECT_DAMAGED with file and
 * offset when reading; reasons of the file table when writing; MQRC_STORAGE_NOT_AVAILABLE without
 * memory.
 */
#ifndef PENSTOCK_CHECKPOINT_FILE_H
#define PENSTOCK_CHECKPOINT_FILE_H

#include "format/message_columns.h"
#include "format/record_codec.h"
#include "os/file_window.h"

enum {
    MQX_BLOCK_PAYLOAD = 1 << 20, /* a block is full at about so much */
    MQX_BLOCK_PAYLOAD_MAX = (1 << 20) + MQX_RING_RECORD_MAX,
    MQX_CHECKPOINT_NAME_SIZE = 24,
    MQX_RESERVED_LINES = 1024, /* messages of a block over the reserve: one that differs from the
                                * others makes the lines of its block longer, and of no other */
};

/* About as long as the name of a checkpoint: an entry of the directory takes another's place. */
#define MQX_CHECKPOINT_RESERVE "checkpoint.reserve"

/* "<begin_lsn, 16 hex digits>.psc" or ".tmp" */
void mqx_checkpoint_file_name(char out[MQX_CHECKPOINT_NAME_SIZE], uint64_t begin_lsn, bool whole);
/* True when the name is that of a whole checkpoint. */
bool mqx_checkpoint_file_parse(const char *name, uint64_t *out_begin_lsn);

struct mqx_checkpoint_lines { /* messages in MESSAGES and UNIT_PUTS blocks */
    struct mqx_columns_reach reach;
    uint64_t bytes; /* of the MESSAGES blocks */
};

struct mqx_checkpoint_writer {
    struct mqx_io *io;
    int dir;
    int fd;
    uint64_t begin_lsn;
    uint32_t seed;
    bool paced;               /* flush every MiB and pause, so that commits are not disturbed */
    bool reserved;            /* written over the reserve */
    unsigned char *buffer;    /* block header and payload */
    unsigned char *columns;   /* the same, of a block with columns as it is written */
    uint32_t type;            /* of the block being filled, 0: none */
    uint32_t count;
    uint64_t used;            /* payload bytes, with columns those of the lines */
    uint64_t at;              /* next offset in the file */
    uint64_t unflushed;
    struct psc_end totals;
    struct mqx_checkpoint_lines lines;
    /* Optional: called with the name of the whole, verified temporary file before it is renamed;
     * a status other than 0 removes it and comes back. */
    int (*accept)(void *arg, const char *name, uint64_t end_lsn);
    void *accept_arg;
};
int mqx_checkpoint_file_begin(struct mqx_checkpoint_writer *writer, struct mqx_io *io, int dir,
                              const uint8_t qm_id[16], uint64_t begin_lsn, bool paced) MQX_MUST_USE;
/* The same over the reserve, for which the disk need not have room. */
int mqx_checkpoint_file_begin_reserved(struct mqx_checkpoint_writer *writer, struct mqx_io *io,
                                       int dir, const uint8_t qm_id[16], uint64_t begin_lsn,
                                       bool paced) MQX_MUST_USE;
/* Room for at least one and at most *out_max items of `size` bytes at *out, in a block of that
 * type. */
int mqx_checkpoint_file_reserve(struct mqx_checkpoint_writer *writer, uint32_t type, uint32_t size,
                                void **out, uint32_t *out_max) MQX_MUST_USE;
/* `count` items of together `bytes` bytes have been placed there. */
void mqx_checkpoint_file_added(struct mqx_checkpoint_writer *writer, uint32_t count,
                               uint64_t bytes);
/* `header` lacks only what the writer knows: magic, version, begin_lsn, CRC. *out_size: of the
 * file. */
int mqx_checkpoint_file_finish(struct mqx_checkpoint_writer *writer, struct psc_header *header,
                               uint64_t *out_size) MQX_MUST_USE;
/* Closes and removes the temporary file; the reserve stays. Harmless after finish. */
void mqx_checkpoint_file_abandon(struct mqx_checkpoint_writer *writer);

struct mqx_checkpoint_reader {
    struct mqx_file_window window;
    struct psc_header header;
    char name[MQX_CHECKPOINT_NAME_SIZE];
    uint32_t seed;
    uint64_t at;              /* offset of the next block */
    struct psc_end totals;    /* of what was read so far */
    struct mqx_checkpoint_lines lines; /* the same */
    bool ended;
};
/* Opens and verifies the header. `flags` of the file table: MQX_IO_READ, or MQX_IO_LINKED. */
int mqx_checkpoint_file_open(struct mqx_checkpoint_reader *reader, struct mqx_io *io, int dir,
                             const char *name, const uint8_t qm_id[16], int flags) MQX_MUST_USE;
void mqx_checkpoint_file_close(struct mqx_checkpoint_reader *reader);
/* Reads the whole file and verifies what protects its bytes: checksums, lengths, the order of the
 * blocks, zeroed padding, the end. What they say is not looked at. MQRC_OBJECT_DAMAGED: a byte is
 * not what was written. */
int mqx_checkpoint_file_verify(struct mqx_io *io, int dir, const char *name,
                               int flags) MQX_MUST_USE;
/* The next block's header, not verified but for its lengths. */
int mqx_checkpoint_file_peek(struct mqx_checkpoint_reader *reader,
                             struct psc_block *out) MQX_MUST_USE;
/* Steps over the next block unread: a totals check at the end is then not possible, so go back
 * before it. */
int mqx_checkpoint_file_skip(struct mqx_checkpoint_reader *reader) MQX_MUST_USE;
/* Reads and verifies the next block; the payload is valid until the next call. After the END block
 * (*out_block).type is PSC_END and the totals have been verified. */
int mqx_checkpoint_file_next(struct mqx_checkpoint_reader *reader, struct psc_block *out_block,
                             const unsigned char **out_payload) MQX_MUST_USE;
/* MQRC_OBJECT_DAMAGED naming the file and `offset`. */
int mqx_checkpoint_file_damaged(const struct mqx_checkpoint_reader *reader, uint64_t offset,
                                const char *what) MQX_MUST_USE MQX_COLD;

#endif
