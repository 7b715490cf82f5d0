/*
 * catalog.h - object definitions: names -> object slots, attributes, their life in the journal.
 *
 * Control plane only: no function here is called on a put or a get. An object is found by
 * (name space, name, instance); its slot + generation is what the data plane uses.
 *
 * Chains (catalog lock, the context's hand = MQX_HAND_OBJECT):
 *   define: DEFINING (name linked, invisible) -> record in the ring, state LOGGED in the same ring
 *           micro-transaction -> flush -> ACTIVE. Dead before LOGGED: freed. After: ACTIVE by the sweep.
 *   alter:  pending_attrs set -> record in the ring, state LOGGED -> flush -> values applied, ACTIVE. While
 *           LOGGED with pending_attrs the object stays usable with its old values.
 *   delete: record in the ring, state DELETING -> flush -> waiters cancelled, messages freed in steps, name
 *           unlinked, generation raised, slot freed.
 */
#ifndef PENSTOCK_CATALOG_H
#define PENSTOCK_CATALOG_H

#include "commit.h"

enum { MQX_NAMES_QUEUE = 1 };

struct mqx_definition {
    struct ps_object_name name;
    const void *attrs;          /* attribute list of format.h */
    uint32_t attrs_length;
};

/* Defines a new object. 2100 when the name is taken, 2071 when slots are used up. */
int mqx_catalog_define(struct mqx_store *store, uint32_t context, const struct mqx_definition *def,
                       uint32_t *out_slot, uint32_t *out_generation) MQX_MUST_USE;
/* Replaces the attributes. 2085 when slot + generation no longer exist. */
int mqx_catalog_alter(struct mqx_store *store, uint32_t context, uint32_t slot, uint32_t generation,
                      const struct mqx_definition *def) MQX_MUST_USE;
/* Deletes. 2042 while handles are open; 2055 when messages are present and !purge or units hold some. */
int mqx_catalog_delete(struct mqx_store *store, uint32_t context, uint32_t slot,
                       uint32_t generation, bool purge) MQX_MUST_USE;

/* Finds by name (blank padded 48 bytes); 2085. */
int mqx_catalog_find(struct mqx_store *store, uint32_t name_space, const char name[MQX_NAME_SIZE],
                     uint64_t instance, uint32_t *out_slot, uint32_t *out_generation) MQX_MUST_USE;
/* The next defined object with slot > *slot; MQRC_UNKNOWN_OBJECT_NAME at the end. */
int mqx_catalog_next(struct mqx_store *store, uint32_t *slot, uint32_t *out_generation) MQX_MUST_USE;
/* Copies name and attribute list (capacity bytes at most; *out_length is the full length). */
int mqx_catalog_read(struct mqx_store *store, uint32_t slot, uint32_t generation,
                     struct ps_object_name *name, void *attrs, uint32_t capacity,
                     uint32_t *out_length) MQX_MUST_USE;

/* Recovery: puts a definition at its slot (replaces an older one there); removes one. No journal, no locks. */
int mqx_catalog_load(struct mqx_store *store, uint32_t slot, uint32_t generation,
                     const struct mqx_definition *def) MQX_MUST_USE;
int mqx_catalog_unload(struct mqx_store *store, uint32_t slot, uint32_t generation) MQX_MUST_USE;

/* The sweep: finishes or undoes what a dead process had in hand for this object. */
int mqx_catalog_repair(struct mqx_store *store, uint32_t context, uint32_t slot) MQX_MUST_USE;

#endif
