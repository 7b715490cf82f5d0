/*
 * catalog.h - object definitions: names -> object slots, attributes, their life in the journal.
 *
 * Control plane only: no function here is called on a put or a get. An object is found by
 * (name space, name, instance); its slot + generation is what the data plane uses.
 *
 * Terms
 *   hand     the context's hand is (MQX_HAND_OBJECT, object slot, its generation in hand_object),
 *            or MQX_ANY_GENERATION from before the slot is taken until its generation is known.
 *   owner    object.changer, while an alter or a delete is under way: the context that does
 *            it; else 0.
 *
 * States and chains (catalog lock, or the ring lock where the record enters the ring)
 *   define:  FREE -> DEFINING (slots lock, hand set with it; attributes stored; name linked,
 *            invisible) -> record in the ring, LOGGED in the same micro-transaction -> flush ->
 *            ACTIVE. Dead while DEFINING: the sweep frees it. LOGGED without pending attributes:
 *            whoever comes by makes it durable and ACTIVE (mqx_catalog_settle).
 *   alter:   ACTIVE, owner and pending_attrs set -> record in the ring, LOGGED -> flush -> values
 *            and list replaced, ACTIVE. While LOGGED with pending_attrs the object stays usable
 *            with its old values; what is read for a checkpoint is the pending list. Dead while
 *            ACTIVE: the pending list is dropped; while LOGGED: flushed and applied.
 *   delete:  ACTIVE -> DEFINING with an owner: nobody can use it, but it is still stored; decided
 *            together with the test for handles and messages under catalog, stripe and slots lock
 *            -> record in the ring, DELETING -> flush -> waiters cancelled, messages, heap and
 *            lookups freed in steps, name unlinked, generation raised, FREE. Dead while DEFINING:
 *            ACTIVE again; while DELETING: finished by the sweep.
 *
 * Invariants
 *   1. A FREE slot has no cells: attrs, pending_attrs and name_next are 0.
 *   2. A slot in any other state but a fresh DEFINING one is linked in the chain of its name.
 *   3. The cells at `attrs` hold the list and, behind it, a trailer (stamp, instance).
 *   4. A death between the change of a reference to cells and their release loses the cells until
 *      the next restart, never more.
 */
#ifndef PENSTOCK_CATALOG_H
#define PENSTOCK_CATALOG_H

#include "attributes.h"
#include "commit.h"
#include "mqe.h"

enum { MQX_NAMES_QUEUE = 1 };
#define MQX_ANY_GENERATION UINT32_MAX

struct mqx_definition {
    struct ps_object_name name;
    const void *attrs;          /* attribute list of format.h */
    uint32_t attrs_length;
};

/* Defines a new object. 2100 when the name is taken, 2152 when it is not a name, 2071 when slots
 * are used up, 2192; what is wrong with the list: attributes.h. */
int mqx_catalog_define(struct mqx_store *store, uint32_t context, const struct mqx_definition *def,
                       uint32_t *out_slot, uint32_t *out_generation) MQX_MUST_USE;
/* Defines `count` objects with one flush at the end. Stops at the first that cannot be: those
 * before it, *out_done, are defined. */
int mqx_catalog_define_many(struct mqx_store *store, uint32_t context,
                            const struct mqx_definition *defs, uint32_t count, uint32_t *out_slots,
                            uint32_t *out_generations, uint32_t *out_done) MQX_MUST_USE;
/* Replaces the attributes; `stamp` and `flags` as in mqe_alter(). 2085 when slot + generation no
 * longer exist, 2042 when another change of it does not end, MQE_CHANGED. */
int mqx_catalog_alter(struct mqx_store *store, uint32_t context, uint32_t slot, uint32_t generation,
                      const struct mqx_definition *def, uint64_t stamp,
                      uint32_t flags) MQX_MUST_USE;
/* Deletes. 2042 while handles are open; 2055 when messages are present and !purge or units hold
 * some. */
int mqx_catalog_delete(struct mqx_store *store, uint32_t context, uint32_t slot,
                       uint32_t generation, bool purge) MQX_MUST_USE;

/* Finds by name (blank padded 48 bytes); 2085. */
int mqx_catalog_find(struct mqx_store *store, uint32_t name_space, const char name[MQX_NAME_SIZE],
                     uint64_t instance, struct mqe_found *out) MQX_MUST_USE;
/* The next defined object with slot > *slot; MQRC_UNKNOWN_OBJECT_NAME at the end. */
int mqx_catalog_next(struct mqx_store *store, uint32_t *slot,
                     uint32_t *out_generation) MQX_MUST_USE;
/* Copies name and attribute list (capacity bytes at most; *out_length is the full length), as the
 * journal has them, and the list's stamp. */
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
int mqx_catalog_settle(struct mqx_store *store, uint32_t slot) MQX_MUST_USE;
/* Goes on deleting an object whose owner gave up because messages stayed pinned. Caller holds the
 * maintenance lock. */
int mqx_catalog_finish(struct mqx_store *store, uint32_t slot) MQX_MUST_USE;
/* The attribute list that a context names and no object does, if there is one, is given back. */
int mqx_catalog_free_loose(struct mqx_region *region, uint32_t context) MQX_MUST_USE;

/* The sweep: finishes or undoes what a dead process had in hand for this object. */
int mqx_catalog_repair(struct mqx_store *store, uint32_t context, uint32_t slot) MQX_MUST_USE;

#endif
