/*
 * attr_cells.h - attribute lists of objects in cells of the region.
 *
 * Terms
 *   attribute list      definition.h. object.attrs names its cells, object.attrs_length its bytes;
 *                       object.pending_attrs and .pending_length name the list of an alter that is
 *                       in progress.
 *   trailer             the 24 bytes behind a list in its cells: definition version, instance,
 *                       sum.
 *   sum                 CRC-32C of the definition: name space, type, name, instance, list. Who
 *                       reads a whole list compares it: a list that was changed in the region is
 *                       neither shown nor written to a checkpoint.
 *   definition version  a number that differs between any two lists that were ever stored. An alter
 *                       that names the version it was made from fails when another one came first
 *                       (MQE_CHANGED); a reader of a long list begins again when it changes.
 *
 * Invariants
 *   1. Cells that an object or a context names hold a list and, behind it, a trailer. An empty list
 *      has cells, too.
 *   2. A stored list is never changed: an alter stores another one.
 *
 * Locks. mqx_attrs_read: the catalog lock is held by the caller (a restart is alone and needs
 * none). mqx_attrs_store and _free take the arena lock: no lock above the catalog's may be held.
 *
 * Errors. 2071 no memory; MQRC_Q_MGR_NOT_AVAILABLE when a reference to cells is damaged (rule 28).
 */
#ifndef PENSTOCK_ATTR_CELLS_H
#define PENSTOCK_ATTR_CELLS_H

#include "catalog/definition.h"
#include "region/store.h"

enum { MQX_ATTRS_TRAILER = 24 };

struct mqx_attrs { /* a stored list, as read */
    const unsigned char *list;   /* in the region */
    uint32_t length;
    uint64_t definition_version;
    uint64_t instance;           /* of struct ps_object_name */
    uint32_t sum;
};

/* Stores list and trailer in fresh cells. `owner`, a word of the region that is the caller's to
 * change, names them from the same micro-transaction on (arena.h); NULL in a restart. */
int mqx_attrs_store(struct mqx_store *store, const struct mqx_definition *def, uint32_t *owner,
                    uint32_t *out_cell) MQX_MUST_USE;
/* Gives the cells of a list of `length` bytes back, and sets *owner to 0 with it; 0: nothing. */
int mqx_attrs_free(struct mqx_region *region, uint32_t cell, uint32_t length,
                   uint32_t *owner) MQX_MUST_USE;

/* The sum of a definition. */
uint32_t mqx_attrs_sum(const struct ps_object_name *name, const void *list, uint32_t length);

/* The list at `cell`, validated to lie in the region; its sum is the caller's to compare. */
int mqx_attrs_read(const struct mqx_region *region, uint32_t cell, uint32_t length,
                   struct mqx_attrs *out) MQX_MUST_USE;

#endif
