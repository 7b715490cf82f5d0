/*
 * message_columns.h - the payload of a MESSAGES block of a checkpoint: messages as columns
 * (FORMAT.md, section 8).
 *
 * Purpose. Messages of a queue resemble each other: what all of a block have in common costs
 * nothing, numbers and LSNs that lie close together cost 4 bytes. An ordinary persistent message
 * takes 16 to 32 bytes instead of the 96 of a struct psc_message.
 *
 *   payload   struct psc_columns, then each column, padded with zeroes to 8 bytes
 *   column    `count` unsigned integers of width[i] bytes; field i of message k is base[i] + the
 *             k-th of them. Width 0: base[i], for all.
 *
 * Fields in the order of struct psc_message, without `zero` and `zero2`; in the place of first_lsn
 * stands lsn - first_lsn (modulo 2^64), which is 0 for messages without pieces.
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
    uint32_t left;                             /* messages not decoded yet */
};

/* Encodes; the bytes used, a multiple of 8. `zero` and `zero2` of the messages are not kept. */
uint64_t mqx_columns_encode(unsigned char *to, const struct psc_message *messages, uint32_t count);
/* False: it contradicts itself. */
bool mqx_columns_open(struct mqx_message_columns *columns, const unsigned char *payload,
                      uint64_t length, uint32_t count) MQX_MUST_USE;
/* The next `count` messages: at most MQX_COLUMNS_STEP, and what is left. False: a value of them
 * exceeds its field. */
bool mqx_columns_next(struct mqx_message_columns *columns, struct psc_message *out,
                      uint32_t count) MQX_MUST_USE;

#endif
