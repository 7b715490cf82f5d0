/*
 * name_table.h - names of objects: hash chains over object slots.
 *
 * Terms
 *   key     (name space, name, instance). The instance stands in the trailer of the attribute list
 *           (attr_cells.h); several objects of one name differ by it.
 *   bucket  region.names[hash of name space and name]: slot of the first object of its chain; the
 *           complements follow behind the last bucket. object.name_next is the next one's.
 *
 * Invariants
 *   1. An object is in the chain of its name from the end of its definition (state still DEFINING)
 *      to its physical deletion; nowhere else.
 *   2. Bucket and chain words have a complement in another place, names a sum, instances a second
 *      copy: damage makes no object disappear, which would let its name be defined again. The
 *      files would have the name twice, and no restart would take them.
 *   3. Of the objects that have their name, no two have the same key. A logically deleted one
 *      (DELETING) has its name on z/OS alone.
 *
 * Validation. A slot in a chain that is outside the area, a chain that is longer than the number of
 * objects, and a word that differs from its copy are damage (rule 28).
 *
 * Locks: the catalog lock is held by the caller; stores are part of its micro-transaction. Looking
 * up may take the ring lock.
 */
#ifndef PENSTOCK_NAME_TABLE_H
#define PENSTOCK_NAME_TABLE_H

#include "format/format.h"
#include "region/region.h"

/* The object of that key, *out_slot = 0 when there is none. MQRC_Q_MGR_NOT_AVAILABLE when a chain
 * is damaged. */
int mqx_names_look_up(struct mqx_region *region, const struct ps_object_name *key,
                      uint32_t *out_slot) MQX_MUST_USE;
/* Links the object at the front of its chain. Left open. */
int mqx_names_link(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;
/* Takes it out; nothing when it is not in its chain. Left open. */
int mqx_names_unlink(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;

#endif
