/*
 * units_in_flight.h - units of work that are not decided at an LSN, as a list that a checkpoint
 * carries (rule 58).
 *
 * Purpose. A checkpoint must not begin before the oldest unit that is under way, or a forgotten one
 * would keep the journal and make restarts long. So it carries such units: what their records below
 * its begin LSN have done so far, and what the COMMIT record will be compared with. The replay goes
 * on from there. The list is made from the journal, by the replay of the older checkpoint, never
 * from the region: a stray pointer cannot change it, and it is exact at one LSN although processes
 * go on.
 *
 * Terms
 *   list        struct mqx_units_in_flight: the lines of UNITS, OPERATIONS and UNIT_PUTS blocks
 *               (FORMAT.md, section 8).
 *   begin LSN   records below it are in the list, those from it on are replayed.
 *   pieces      CHUNK records whose PUT may still come: it names them, so they must stay.
 *
 * Invariants
 *   1. Units ascend by id; of each, operations are in the order of the records.
 *   2. A unit that has defined or deleted an object is not carried: mqx_units_list() says so, and
 *      the checkpoint begins at its first record, as without a list.
 *   3. What is listed and loaded again is the same unit for every later record: same count, same
 *      running checksum, same first LSN.
 *
 * No locks: list and replay belong to one thread. Errors: MQRC_STORAGE_NOT_AVAILABLE without
 * memory; MQRC_OBJECT_DAMAGED, by the caller that knows file and offset, when lines contradict each
 * other.
 */
#ifndef PENSTOCK_RECOVERY_UNITS_IN_FLIGHT_H
#define PENSTOCK_RECOVERY_UNITS_IN_FLIGHT_H

#include "recovery/replay.h"

struct mqx_units_in_flight {
    struct psc_unit *units;
    size_t unit_count, unit_capacity;
    struct psc_operation *operations;
    size_t operation_count, operation_capacity;
    struct psc_message *puts; /* of the operations that are a PUT or TAKEN */
    size_t put_count, put_capacity;
};

/* The units that are under way or prepared after the records that were replayed so far. *out_all:
 * false when one cannot be carried. `out` is zeroed; mqx_units_free() in either case. */
int mqx_units_list(const struct mqx_replay *replay, struct mqx_units_in_flight *out,
                   bool *out_all) MQX_MUST_USE;
void mqx_units_free(struct mqx_units_in_flight *list);
/* Of all lines: two lists of the same units have the same. */
uint32_t mqx_units_checksum(const struct mqx_units_in_flight *list);

/* Into a replay, before its first record. *out_sound: false when lines contradict each other; the
 * replay is of no use then. */
int mqx_units_load(const struct mqx_units_in_flight *list, struct mqx_replay *replay,
                   bool *out_sound) MQX_MUST_USE;

#endif
