/*
 * catalog.h - object definitions: names -> object slots, attributes, their life in the journal.
 *
 * Control plane only: no function here is called on a put or a get. An object is found by
 * (name space, name, instance); its slot + generation is what the data plane uses.
 *
 * Terms
 *   hand       the context's hand is (MQX_PENDING_OBJECT, object slot, its generation in pending_object),
 *              or MQX_ANY_GENERATION from before the slot is taken until its generation is known.
 *   owner      object.changer, while an alter is under way: the context that does it; else 0.
 *   temporary  a temporary dynamic queue (DEFTYPE 3). It is in the region alone: no record, no
 *              flush, in no checkpoint or image. It has a creator: the handle that made it.
 *   logical deletion   the moment from which nobody can use the object: state DELETING.
 *   physical deletion  slot, cells, heap are given back and the generation is raised.
 *
 * States and chains (catalog lock, or the ring lock where the record enters the ring)
 *   define:  FREE -> DEFINING (slots lock, hand set with it; attributes stored; name linked,
 *            invisible) -> record in the ring, LOGGED in the same micro-transaction -> flush ->
 *            ACTIVE. Dead while DEFINING: the sweep frees it. LOGGED without pending attributes:
 *            whoever comes by makes it durable and ACTIVE (mqx_catalog_activate). A temporary one:
 *            DEFINING -> name linked and ACTIVE in one micro-transaction.
 *   open while defining: the handle is registered while the object is DEFINING, before its name is
 *            linked, so nobody can be faster. Dead before ACTIVE or LOGGED: the object is freed,
 *            its handle closed; after: a temporary queue is deleted because its creator closes.
 *   alter:   ACTIVE, owner and pending_attrs set -> record in the ring, LOGGED -> flush -> values
 *            and list replaced, ACTIVE. While LOGGED with pending_attrs the object stays usable
 *            with its old values; what is read for a checkpoint is the pending list. Dead while
 *            ACTIVE: the pending list is dropped; while LOGGED: flushed and applied. Temporary:
 *            without record and flush.
 *   delete:  ACTIVE -> DELETING, decided and done with catalog, stripe and slots lock held,
 *            together with the test for handles and messages: temporary ones by the catalog lock's
 *            micro-transaction, all others by the ring lock's, with the record -> waiters
 *            cancelled -> flush -> what nobody holds is freed -> when the last handle is closed,
 *            the last unit has let go of its messages and no alter is under way: heap and indexes,
 *            name, cells, slot; the generation is raised. From DELETING on anybody does the next
 *            step, several at once: each looks at state and generation under the lock it needs, and
 *            what is true once stays true. Who ends what is in the way (a close, a unit's end, the
 *            sweep, an alter) tries; the maintenance tries for everybody.
 *
 * Names. On unix a deleted object has no name: it is free for another one at once, older handles
 * keep theirs. On z/OS the name is taken until the physical deletion: defining is 2201, the object
 * is found, opening it is 2052.
 *
 * Generations. The records of an object carry slot and generation; a temporary one leaves none, so
 * whatever generation its slot had is never met by a recovery, and the next object of the slot has
 * a higher one than every record of it in the journal: deletions are durable before a slot is given
 * back.
 *
 * Failure of a structure: ACTIVE, owner and `failing` set -> (its queues are emptied of what is not
 * persistent) -> both 0. Dead in between: both 0; what is left is as it was.
 *
 * Invariants
 *   1. A FREE slot has no cells: attrs, pending_attrs and name_next are 0.
 *   2. A slot in any other state but a fresh DEFINING one is linked in the chain of its name.
 *   3. The cells at `attrs` hold the list and, behind it, a trailer (stamp, instance).
 *   4. A death between the change of a reference to cells and their release loses the cells until
 *      the next restart, never more.
 *   5. An ACTIVE temporary queue has its creator's handle open.
 *   6. A unit that holds messages of a journalled object keeps it from being deleted, so no record
 *      of a message follows the one of the deletion.
 */
#ifndef PENSTOCK_CATALOG_H
#define PENSTOCK_CATALOG_H

#include "catalog/attr_cells.h"
#include "journal/group_commit.h"
#include "penstock/engine.h"

enum { MQX_CLOSE_KEEP = 0, MQX_CLOSE_DELETE = MQCO_DELETE, MQX_CLOSE_PURGE = MQCO_DELETE_PURGE };
#define MQX_ANY_GENERATION UINT32_MAX

struct mqx_definition {
    struct ps_object_name name;
    const void *attrs;          /* attribute list of format.h */
    uint32_t attrs_length;
};

/* Defines a new object. 2100 when the name is taken, 2152 when it is not a name, 2071 when slots
 * are used up, 2192; what is wrong with the list: attr_cells.h. */
int mqx_catalog_define(struct mqx_store *store, uint32_t context, const struct mqx_definition *def,
                       uint32_t *out_slot, uint32_t *out_generation) MQX_MUST_USE;
/* Defines `count` objects with one flush at the end. Stops at the first that cannot be: those
 * before it, *out_done, are defined. */
int mqx_catalog_define_many(struct mqx_store *store, uint32_t context,
                            const struct mqx_definition *defs, uint32_t count, uint32_t *out_slots,
                            uint32_t *out_generations, uint32_t *out_done) MQX_MUST_USE;
/* What happens between filling the slot and linking the name: the handle `handle` is registered. */
struct mqx_define_hook {
    int (*attend)(void *arg, uint32_t slot, uint32_t generation);
    void *arg;
    uint32_t handle;
};
struct mqx_defined_object {
    uint32_t slot, generation;
    uint64_t end_lsn;           /* of its record, 0: it has none */
};
/* Defines a dynamic queue that is open from its beginning; nothing is left of it, but for what
 * birth->attend did, when it fails. As mqx_catalog_define, and 2201. */
int mqx_catalog_define_open(struct mqx_store *store, uint32_t context,
                            const struct mqx_definition *def, const struct mqx_define_hook *birth,
                            struct mqx_defined_object *out) MQX_MUST_USE;
/* Replaces the attributes; `stamp` and `flags` as in mqe_alter(). 2085 when slot + generation no
 * longer exist, 2052, 2042 when another change of it does not end, MQE_CHANGED. */
int mqx_catalog_alter(struct mqx_store *store, uint32_t context, uint32_t slot, uint32_t generation,
                      const struct mqx_definition *def, uint64_t stamp,
                      uint32_t flags) MQX_MUST_USE;
/* Deletes. 2042 while handles are open; 2055 when messages are present and !purge or units hold
 * some; 2085, 2052 when it is gone. */
int mqx_catalog_delete(struct mqx_store *store, uint32_t slot, uint32_t generation,
                       bool purge) MQX_MUST_USE;
/* What closing the handle `handle` of the object does to it: Table 74. 0: it is logically deleted,
 * durably, or stays; 2045 and 2055: nothing has changed. The handle is still open. */
int mqx_catalog_close(struct mqx_store *store, uint32_t slot, uint32_t handle,
                      uint32_t how) MQX_MUST_USE;
/* Goes on with the deletion of a logically deleted object as far as it can; nothing for others. */
int mqx_catalog_finish(struct mqx_store *store, uint32_t slot) MQX_MUST_USE;

/* Finds by name (blank padded 48 bytes); 2085. */
int mqx_catalog_find(struct mqx_store *store, uint32_t name_space, const char name[MQX_NAME_SIZE],
                     uint64_t instance, struct mqe_found *out) MQX_MUST_USE;
/* The next defined object with slot > *slot; MQRC_UNKNOWN_OBJECT_NAME at the end. */
int mqx_catalog_next(struct mqx_store *store, uint32_t *slot,
                     uint32_t *out_generation) MQX_MUST_USE;
/* Is it in the files, too? For checkpoints. */
bool mqx_catalog_is_journalled(struct mqx_store *store, uint32_t slot,
                               uint32_t generation) MQX_MUST_USE;
/* Copies name and attribute list (capacity bytes at most; *out_length is the full length), as the
 * journal has them, and the list's stamp. 2085, 2052 when it is logically deleted. */
int mqx_catalog_read(struct mqx_store *store, uint32_t slot, uint32_t generation,
                     struct ps_object_name *name, void *attrs, uint32_t capacity,
                     uint32_t *out_length, uint64_t *out_stamp) MQX_MUST_USE;

/* Recovery: puts a definition at its slot (replaces an older one there; one that is newer stays);
 * removes one, of which perhaps only the generation is known. No journal, no locks: alone. Two
 * objects may have one name until mqx_catalog_loaded(). Generations begin with 1. */
int mqx_catalog_load(struct mqx_store *store, uint32_t slot, uint32_t generation,
                     const struct mqx_definition *def) MQX_MUST_USE;
int mqx_catalog_unload(struct mqx_store *store, uint32_t slot, uint32_t generation) MQX_MUST_USE;
/* At its end: free slots are listed, names are verified to be unique (2101). */
int mqx_catalog_loaded(struct mqx_store *store) MQX_MUST_USE;

/* An object LOGGED by a define is made durable and ACTIVE, by whoever comes by. Nothing for
 * others. */
int mqx_catalog_activate(struct mqx_store *store, uint32_t slot) MQX_MUST_USE;
/* A structure has failed: until mqx_catalog_restore() nobody puts to or gets from the queues in it,
 * and nobody alters or deletes it. 2043 when it is none; 2042, 2085 as above. */
int mqx_catalog_fail(struct mqx_store *store, uint32_t context, uint32_t slot,
                     uint32_t generation) MQX_MUST_USE;
int mqx_catalog_restore(struct mqx_store *store, uint32_t context, uint32_t slot) MQX_MUST_USE;

/* The attribute list that a context names and no object does, if there is one, is given back. */
int mqx_catalog_free_unreferenced(struct mqx_region *region, uint32_t context) MQX_MUST_USE;

/* The sweep: finishes or undoes what a dead process had in hand for this object. */
int mqx_catalog_repair(struct mqx_store *store, uint32_t context, uint32_t slot) MQX_MUST_USE;

#endif
