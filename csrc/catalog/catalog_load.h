/*
 * catalog_load.h - restart: definitions from the files become objects of the region.
 *
 * Order. Definitions are loaded in the order of the checkpoint and the journal; two objects may
 * have one name until mqx_catalog_loaded(), because a definition may be met before the deletion of
 * the object that had the name. Generations begin with 1; 0 means "never seen".
 *
 * Errors. What a file contains is validated: MQRC_OBJECT_DAMAGED with a text (rule 28).
 *
 * Locks: none may be held. The process is alone in the region; locks are taken only because stores
 * are made through them.
 */
#ifndef PENSTOCK_CATALOG_LOAD_H
#define PENSTOCK_CATALOG_LOAD_H

#include "catalog/definition.h"
#include "region/store.h"

/* Puts a definition at its slot. It replaces an older one there; a newer one stays. 2101 when it is
 * no definition; 2071 when the region has no room for the slot. */
int mqx_catalog_load(struct mqx_store *store, uint32_t slot, uint32_t generation,
                     const struct mqx_definition *def) MQX_MUST_USE;
/* After the last one: free slots are listed, names are verified to be unique (2101), queues are
 * linked to their structures, limits of the queue manager take effect. */
int mqx_catalog_loaded(struct mqx_store *store) MQX_MUST_USE;

#endif
