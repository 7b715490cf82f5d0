/*
 * scan_columns.h - the columns of a journal scan (penstock/journal_scan.h), and how a record
 * becomes a row of them.
 *
 * A column's value lies in one of three structs: what a record has outside its descriptor (struct
 * mqx_scan_row), the descriptor, its extension. The table says in which, and where in it; the order
 * of the table is the one that callers see.
 *
 * No locks, no allocation. Errors: none; the caller has checked that there is room for the row.
 */
#ifndef PENSTOCK_SCAN_COLUMNS_H
#define PENSTOCK_SCAN_COLUMNS_H

#include "penstock/descriptor.h"
#include "penstock/journal_scan.h"

struct mqx_scan_row { /* what a record has outside its descriptor */
    uint64_t lsn;
    int64_t time_us;
    uint64_t segment;
    uint64_t unit_id;
    uint64_t object;
    uint64_t number;
    uint64_t first_lsn; /* of the unit's first record, in a COMMIT or PREPARE record; else 0 */
    uint64_t body_length;
    int64_t put_time_us;
    int64_t expiry_us;
    int32_t expiry; /* tenths of a second, left when its batch was sealed; -1 unlimited */
    uint8_t event;
    uint8_t commits;
    uint8_t body_state;
    char name[MQX_NAME_SIZE]; /* in an OBJECT or OBJECT_DELETE record */
};

/* Fills row rows->count of the columns that the caller requested. A record without a descriptor has
 * zeroes in the columns of messages; one without an extension has that one's initial values. */
void mqx_scan_give_row(const struct mqe_journal_scan_rows *rows, const struct mqx_scan_row *row,
                       const struct ps_descriptor *descriptor,
                       const struct ps_descriptor_ext *ext);

#endif
