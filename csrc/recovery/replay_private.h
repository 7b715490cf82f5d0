/*
 * replay_private.h - what the modules of the replay share; for recovery/replay*.c and
 * units_in_flight.c only.
 *
 * Order of use, no circle: replay -> replay_prepared -> replay_units -> replay_messages, and
 * replay -> replay_sweep -> replay_messages.
 *
 *   replay           a record to the module that knows its type
 *   replay_messages  objects, messages and the effects on them; the replay's memory
 *   replay_units     units under way, and how COMMIT and BACKOUT end them
 *   replay_prepared  prepared units, their outcome, and what they hold at the end
 *   replay_sweep     frees the entries of what is gone
 *
 * Terms
 *   operation   a PUT, GET, EXPIRE, CLEAR, TAKEN or definition record of a unit that is not yet
 *               decided. Operations of a unit form a list by index, in the order of the records.
 *   effect      what an operation does once its unit is committed: a put becomes EFFECTIVE, a get
 *               puts a message number into `removed`, a definition replaces the one of its slot.
 *   dropped     an operation without effect: of a unit without COMMIT, or on an object that was
 *               deleted in the meantime.
 *
 * Which record has its effect when
 *   PUT, GET, EXPIRE, CLEAR   without unit id: at once. With REC_COMMITS: at once, and with it
 *                             everything that its unit did before. Else when COMMIT is read.
 *   OBJECT, OBJECT_DELETE     as PUT; a definition of an older generation changes nothing.
 *   COMMIT                    all operations of its unit, if count and checksum agree.
 *   BACKOUT                   none of them; the counts that it carries are kept.
 *   MOVED                     at once: the message, if it is present at the end, lies there.
 *   PREPARE                   the unit moves to the prepared ones, with its operations.
 *   COMMIT_PREPARED           the effects of every unit that it names.
 *   BACKOUT_PREPARED          none of them.
 *   end of an epoch           a unit that is not decided is dropped (it never will be); prepared
 *                             ones stay.
 *
 * Memory. Arrays grow by doubling and belong to the replay; entries of operations, of puts and of
 * prepared units that are free form lists by index. mqx_replay_free() releases everything. Every
 * index is one that this code has made itself, so a wrong one is an assertion, not damage; what a
 * record says is validated before it becomes an index.
 *
 * Locks: none, one thread. Errors: MQRC_STORAGE_NOT_AVAILABLE without memory, MQRC_OBJECT_DAMAGED
 * with the LSN when records contradict each other.
 */
#ifndef PENSTOCK_RECOVERY_REPLAY_PRIVATE_H
#define PENSTOCK_RECOVERY_REPLAY_PRIVATE_H

#include "base/assert.h"
#include "recovery/replay.h"

struct mqx_replay_page { /* of replay->pages */
    struct mqx_replay_page *next;
    unsigned char bytes[];
};

/* ---- replay_messages ---- */

/* MQRC_STORAGE_NOT_AVAILABLE with a text. */
int mqx_replay_no_memory(void) MQX_COLD;
/* Room for one more item in *array (a pointer to a pointer) of `count` items: doubles it. */
int mqx_replay_grow(void *array, size_t count, size_t *capacity, size_t item_size) MQX_MUST_USE;
/* A copy of the record's definition that lives as long as the replay. */
int mqx_replay_copy_definition(struct mqx_replay *replay, const struct mqx_decoded *record,
                               const struct mqx_replay_definition **out) MQX_MUST_USE;
/* The object of that slot if it is defined in that generation, else NULL. */
const struct mqx_slot_state *mqx_replay_defined_at(const struct mqx_replay *replay, uint32_t slot,
                                                   uint32_t generation);
/* A put in state WAITING; its index. */
int mqx_replay_add_put(struct mqx_replay *replay, const struct mqx_decoded *record, uint64_t lsn,
                       uint32_t *out) MQX_MUST_USE;
/* The same for a put that the checkpoint carries. */
int mqx_replay_carry_put(struct mqx_replay *replay, const struct psc_message *m, bool taken,
                         uint32_t *out) MQX_MUST_USE;
/* The put takes effect, or is dropped with its object; damage when that object never was. */
int mqx_replay_apply_put(struct mqx_replay *replay, const struct mqx_replay_op *op) MQX_MUST_USE;
/* A MOVED record. */
int mqx_replay_move(struct mqx_replay *replay, uint64_t lsn,
                    const struct mqx_decoded *record) MQX_MUST_USE;
/* The operation takes effect. */
int mqx_replay_apply(struct mqx_replay *replay, const struct mqx_replay_op *op) MQX_MUST_USE;

/* ---- replay_units ---- */

/* Removes the unit from those under way; false: it is not there, *out is unchanged. */
bool mqx_replay_remove_unit(struct mqx_replay *replay, uint64_t id, struct mqx_replay_unit *out);
/* Applies (or drops) the unit's operations and frees their entries. */
int mqx_replay_end_unit(struct mqx_replay *replay, const struct mqx_replay_unit *unit,
                        bool committed) MQX_MUST_USE;
/* A record that is an operation: alone, of a unit, or the last of its unit (REC_COMMITS). */
int mqx_replay_take_record(struct mqx_replay *replay, uint64_t lsn,
                           const struct mqx_decoded *record) MQX_MUST_USE;
int mqx_replay_commit(struct mqx_replay *replay, uint64_t lsn,
                      const struct mqx_decoded *record) MQX_MUST_USE;
int mqx_replay_back_out(struct mqx_replay *replay, const struct mqx_decoded *record) MQX_MUST_USE;
/* Appends an operation to the unit. */
int mqx_replay_add_op(struct mqx_replay *replay, struct mqx_replay_unit *unit,
                      const struct mqx_replay_op *op) MQX_MUST_USE;
/* A unit that the checkpoint carries, among those under way. */
int mqx_replay_carry_unit(struct mqx_replay *replay,
                          const struct mqx_replay_unit *unit) MQX_MUST_USE;
/* Must the unit of a COMMIT or PREPARE record with that first LSN be here as a whole? */
bool mqx_replay_knows_unit(const struct mqx_replay *replay, const struct mqx_replay_unit *unit,
                           uint64_t first_lsn);
/* Does what a COMMIT or PREPARE record states agree with the records that were read of the unit? */
bool mqx_replay_unit_agrees(const struct mqx_replay_unit *unit, const struct ps_commit *stated);

/* ---- replay_prepared ---- */

int mqx_replay_prepare(struct mqx_replay *replay, uint64_t lsn,
                       const struct mqx_decoded *record) MQX_MUST_USE;
/* An entry among the prepared ones. */
int mqx_replay_add_prepared(struct mqx_replay *replay,
                            const struct mqx_replay_prepared *prepared) MQX_MUST_USE;
/* COMMIT_PREPARED or BACKOUT_PREPARED: the outcome of all units that it names. */
int mqx_replay_end_prepared(struct mqx_replay *replay, const struct mqx_decoded *record,
                            bool committed) MQX_MUST_USE;

/* ---- replay_sweep ---- */

/* Between two records: goes through those tables that have grown since they were last gone through,
 * and frees the entries of what is gone. */
int mqx_replay_sweep(struct mqx_replay *replay) MQX_MUST_USE;

#endif
