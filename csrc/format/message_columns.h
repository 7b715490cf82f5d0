/*
 * message_columns.h - the payload of MESSAGES and UNIT_PUTS blocks of a checkpoint: messages as
 * columns (FORMAT.md, section 8).
 *
 * Purpose. Messages of a queue resemble each other: what all of a block have in common costs
 * nothing, numbers and LSNs that lie close together cost 4 bytes. An ordinary persistent message
 * takes 16 to 32 bytes instead of the 96 of a struct psc_message.
 *
 *   payload   struct psc_columns, then each column, padded with zeroes to 8 bytes
 *   column    `count` unsigned integers of width[i] bytes; field i of message k is base[i] + the
 *             k-th of them. Width 0: base[i], for all.
 *
 * Fields in the order of struct psc_message, without `zero`; in the place of first_lsn stands lsn -
 * first_lsn (modulo 2^64), which is 0 for messages without pieces. The last one, due_us, has no
 * base, and is there only when a message of the block is delayed.
 *
 * Invariants
 *   1. Opening validates everything but the values: widths that exist and fit their field, a base
 *      that fits it, column lengths that add up to the payload's, zeroes in header and padding,
 *      and numbers that differ, so that no count exceeds the bytes. What is decoded then lies in
 *      the payload.
 *   2. Decoding validates that no sum exceeds its field.
 *   3. What was encoded is decoded to the same messages.
 *
 * No locks. No errors but the bool: a payload that no writer makes; the caller knows file and
 * offset.
 */
#ifndef PENSTOCK_MESSAGE_COLUMNS_H
#define PENSTOCK_MESSAGE_COLUMNS_H

#include "format/format.h"

enum { MQX_COLUMNS_STEP = 64 }; /* messages that are decoded at once, at most */

/* Bytes of `count` messages at most: the padding of all columns takes less than a header. */
#define MQX_COLUMNS_MAX(count)                                                                     \
    (2 * sizeof(struct psc_columns) + (count) * sizeof(struct psc_message))

struct mqx_message_columns { /* of a payload, which must stay where it is */
    struct psc_columns header;
    struct psc_message common;                 /* the bases of all columns */
    const unsigned char *at[PSC_COLUMN_COUNT]; /* the next value */
    const unsigned char *due;                  /* the same of due_us */
    uint32_t left;                             /* messages not decoded yet */
};

/* What the columns of several blocks cover. LSNs are left out of the bytes: compaction changes
 * them. */
struct mqx_columns_reach {
    uint64_t least[PSC_COLUMN_COUNT]; /* value of each column */
    uint64_t most[PSC_COLUMN_COUNT];
    uint64_t messages;
    uint64_t bytes;                   /* of their values */
    uint32_t blocks;
    uint32_t due_width;               /* 8: a block of them has delayed messages */
};

/* Adds a block of so many messages. The highest value is what base and width allow. */
void mqx_columns_note(struct mqx_columns_reach *reach, const struct psc_columns *header,
                      uint32_t count);
/* Bytes that one of these messages takes in any block of any of them, at the most. All message
 * numbers are below `next_number`. *out_lsn: the lowest LSN. */
uint32_t mqx_columns_line_most(const struct mqx_columns_reach *reach, uint64_t next_number,
                               uint64_t *out_lsn);

/* Encodes; the bytes used, a multiple of 8. `zero` of the messages is not kept. */
uint64_t mqx_columns_encode(unsigned char *to, const struct psc_message *messages, uint32_t count);
/* False: it contradicts itself. */
bool mqx_columns_open(struct mqx_message_columns *columns, const unsigned char *payload,
                      uint64_t length, uint32_t count) MQX_MUST_USE;
/* The next `count` messages: at most MQX_COLUMNS_STEP, and what is left. False: a value of them
 * exceeds its field. */
bool mqx_columns_next(struct mqx_message_columns *columns, struct psc_message *out,
                      uint32_t count) MQX_MUST_USE;

#endif
