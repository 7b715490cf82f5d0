/*
 * catalog.h - object definitions: defining and altering them, their life in the journal. The header
 * of this folder: it includes what other folders need of the catalog.
 *
 * Control plane only: no function of this folder is called on a put or a get. An object is found by
 * (name space, name, instance); its slot + generation is what puts and gets use.
 *
 * Terms
 *   pending reference  what a context is about to change: (MQX_PENDING_OBJECT, object slot, its
 *                      generation in pending_object), or MQX_ANY_GENERATION from before the slot is
 *                      taken until its generation is known. The reaper repairs by it.
 *   changer            object.changer, during an alter: the context that does it; else
 *                      0.
 *   temporary          a temporary dynamic queue (DEFTYPE 3). It is in the region alone: no record,
 *                      no flush, in no checkpoint or image. It has a creator: the handle that made
 *                      it.
 *   logical, physical deletion, definition version
 *                      see catalog_delete.h, attr_cells.h.
 *
 * States and chains (catalog lock, or the ring lock where the record enters the ring)
 *   define:  FREE -> DEFINING (slots lock, pending reference set with it; attributes stored; name
 *            linked, invisible) -> record in the ring, LOGGED in the same micro-transaction ->
 *            flush -> ACTIVE. The process dies while DEFINING: the reaper frees it. LOGGED without
 *            pending attributes: any process that meets it makes it durable and ACTIVE
 *            (mqx_catalog_activate). A temporary one: DEFINING -> name linked and ACTIVE in one
 *            micro-transaction.
 *   open while defining: the handle is registered while the object is DEFINING, before its name is
 *            linked, so that no other process can open it first. The process dies before ACTIVE or
 *            LOGGED: the object is freed, its handle closed; after: a temporary queue is deleted
 *            because its creator closes.
 *   alter:   ACTIVE, changer and pending_attrs set -> record in the ring, LOGGED -> flush -> values
 *            and list replaced, ACTIVE. While LOGGED with pending_attrs the object stays usable
 *            with its old values; what is read for a checkpoint is the pending list. The process
 *            dies while ACTIVE: the pending list is dropped; while LOGGED: flushed and applied.
 *            Temporary: without record and flush.
 *   delete:  ACTIVE -> DELETING, decided and done with catalog, stripe and slots lock held,
 *            together with the test for handles and messages: temporary ones by the catalog lock's
 *            micro-transaction, all others by the ring lock's, with the record -> waiters
 *            cancelled -> flush -> messages that no unit and no browser holds are freed -> when the
 *            last handle is closed, the last unit has released its messages and no alter is under
 *            way: priority index and id indexes, name, cells, slot; the generation is raised. From
 *            DELETING on any process does the next step, several at once: each examines state and
 *            generation under the lock it needs, and what is true once stays true. Whatever ends
 *            one of the obstacles (a close, a unit's end, the reaper, an alter) tries; the
 *            maintenance thread tries for all.
 *   failure of a structure: ACTIVE, changer and `failing` set -> (its queues are emptied of
 *            messages that are not persistent) -> both 0. The process dies in between: both 0; the
 *            messages that are left stay.
 *
 * Names. On unix a deleted object has no name: it is free for another one at once, older handles
 * keep theirs. On z/OS the name is taken until the physical deletion: defining is 2201, the object
 * is found, opening it is 2052.
 *
 * Generations. The records of an object carry slot and generation; a temporary one leaves none, so
 * a recovery never meets the generation that its slot had, and the next object of the slot has a
 * higher one than every record of it in the journal: deletions are durable before a slot is given
 * back.
 *
 * Invariants
 *   1. A FREE slot has no cells: attrs, pending_attrs and name_next are 0.
 *   2. A slot in any other state but a fresh DEFINING one is linked in the chain of its name.
 *   3. The cells at `attrs` hold the list and, behind it, a trailer (definition version, instance).
 *   4. A death between the change of a reference to cells and their release loses the cells until
 *      the next restart, never more.
 *   5. An ACTIVE temporary queue has its creator's handle open.
 *   6. A unit that holds messages of a journalled object keeps it from being deleted, so no record
 *      of a message follows the one of the deletion.
 *
 * Locks: none may be held by the caller. The catalog lock is held for single steps. Appending to
 * the journal and flushing happen with no lock held.
 *
 * Errors: of each function below, and 2009 or 2162 once the queue manager has stopped; a value in
 * the region that cannot be true stops it (region/damage.h).
 */
#ifndef PENSTOCK_CATALOG_H
#define PENSTOCK_CATALOG_H

#include "catalog/catalog_delete.h"
#include "catalog/catalog_find.h"
#include "catalog/catalog_load.h"
#include "catalog/catalog_steps.h"
#include "catalog/definition.h"

#define MQX_ANY_GENERATION UINT32_MAX

/* Defines a new object. 2100 when the name is taken, 2201 when a deleted queue has it (z/OS), 2152
 * when it is not a name, 2071 when slots are used up, 2192; errors of the list: definition.h. */
int mqx_catalog_define(struct mqx_store *store, uint32_t context, const struct mqx_definition *def,
                       uint32_t *out_slot, uint32_t *out_generation) MQX_MUST_USE;
/* Defines `count` objects with one flush at the end. Stops at the first that cannot be: those
 * before it, *out_done, are defined. */
int mqx_catalog_define_many(struct mqx_store *store, uint32_t context,
                            const struct mqx_definition *defs, uint32_t count, uint32_t *out_slots,
                            uint32_t *out_generations, uint32_t *out_done) MQX_MUST_USE;

/* What happens between filling the slot and linking the name: the handle `handle` is registered. */
struct mqx_define_hook {
    int (*register_handle)(void *arg, uint32_t slot, uint32_t generation);
    void *arg;
    uint32_t handle;
};
struct mqx_defined_object {
    uint32_t slot, generation;
    uint64_t end_lsn;           /* of its record, 0: it has none */
};
/* Defines a dynamic queue that is open from its beginning. When it fails nothing is left of it,
 * except what hook->register_handle did. As mqx_catalog_define. */
int mqx_catalog_define_open(struct mqx_store *store, uint32_t context,
                            const struct mqx_definition *def, const struct mqx_define_hook *hook,
                            struct mqx_defined_object *out) MQX_MUST_USE;

/* Replaces the attributes; `definition_version` and `flags` as in mqe_alter(). 2085 when
 * slot + generation no longer exist, 2052, 2042 when another change of it does not end, 2043 when
 * name or type differ, 2068 when DEFTYPE does, MQE_CHANGED. */
int mqx_catalog_alter(struct mqx_store *store, uint32_t context, uint32_t slot, uint32_t generation,
                      const struct mqx_definition *def, uint64_t definition_version,
                      uint32_t flags) MQX_MUST_USE;

/* A structure has failed: until mqx_catalog_restore() nobody puts to or gets from the queues in it,
 * and nobody alters or deletes it. 2043 when it is none; 2042, 2085 as above. */
int mqx_catalog_fail(struct mqx_store *store, uint32_t context, uint32_t slot,
                     uint32_t generation) MQX_MUST_USE;
int mqx_catalog_restore(struct mqx_store *store, uint32_t context, uint32_t slot) MQX_MUST_USE;

/* Gives the attribute list back that a context names and no object does, if there is one. */
int mqx_catalog_free_unreferenced(struct mqx_region *region, uint32_t context) MQX_MUST_USE;

/* The reaper: finishes or undoes what a dead process had pending for this object. */
int mqx_catalog_repair(struct mqx_store *store, uint32_t context, uint32_t slot) MQX_MUST_USE;

#endif
