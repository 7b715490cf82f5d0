/*
 * catalog_find.h - finding objects by name or slot, and reading their definitions.
 *
 * Locks: none may be held by the caller. The catalog lock is held for single steps; at most
 * MQX_LOCKED_COPY_MAX bytes of an attribute list are copied in one.
 */
#ifndef PENSTOCK_CATALOG_FIND_H
#define PENSTOCK_CATALOG_FIND_H

#include "penstock/engine.h"
#include "region/store.h"

/* Finds by name (48 bytes, blank padded) and instance; 2085. An object whose definition is not
 * durable yet is made so before. */
int mqx_catalog_find(struct mqx_store *store, uint32_t name_space, const char name[MQX_NAME_SIZE],
                     uint64_t instance, struct mqe_found *out) MQX_MUST_USE;
/* The next defined object with slot > *slot; MQRC_UNKNOWN_OBJECT_NAME, without a text, at the
 * end. */
int mqx_catalog_next(struct mqx_store *store, uint32_t *slot,
                     uint32_t *out_generation) MQX_MUST_USE;
/* The next slot > *slot whose last generations are not in the files as an object, and the newest of
 * them: a generation must not come back, so checkpoints say which were used. 2085 as above. */
int mqx_catalog_next_gone(struct mqx_store *store, uint32_t *slot,
                          uint32_t *out_generation) MQX_MUST_USE;
/* Is it in the files, too? For checkpoints. */
bool mqx_catalog_is_journalled(struct mqx_store *store, uint32_t slot,
                               uint32_t generation) MQX_MUST_USE;
/* Copies name and attribute list (capacity bytes at most; *out_length is the full length), as the
 * journal has them, and the list's definition version. A list that is copied whole is the one that
 * was stored (attr_cells.h). 2085; 2052 when it is logically deleted;
 * 2042 when it is altered faster than it can be read. */
int mqx_catalog_read(struct mqx_store *store, uint32_t slot, uint32_t generation,
                     struct ps_object_name *name, void *attrs, uint32_t capacity,
                     uint32_t *out_length, uint64_t *out_definition_version) MQX_MUST_USE;
/* The same of an object that may be logically deleted, while it has its slot: for displays. 2085 */
int mqx_catalog_read_deleted(struct mqx_store *store, uint32_t slot, uint32_t generation,
                             struct ps_object_name *name, void *attrs, uint32_t capacity,
                             uint32_t *out_length) MQX_MUST_USE;

#endif
