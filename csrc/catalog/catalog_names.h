/*
 * catalog_names.h - the catalog's data: chains of names, cells with attribute lists. Between
 * catalog.c, which strings the steps of define, alter and delete together, and catalog_names.c.
 *
 * Locks: the catalog lock is held by the caller unless said otherwise; stores are part of its
 * micro-transaction.
 */
#ifndef PENSTOCK_CATALOG_NAMES_H
#define PENSTOCK_CATALOG_NAMES_H

#include "catalog/catalog.h"

/* 2152, or what attr_cells.h says. */
int mqx_definition_check(const struct mqx_definition *def, struct mqx_values *out) MQX_MUST_USE;
/* enum mqx_definition_type of the object: what is no local queue is predefined, whatever DEFTYPE a
 * model has for the queues made from it. */
uint32_t mqx_definition_type(const struct mqx_definition *def, const struct mqx_values *values);
/* 2068: `opened` and not dynamic, or temporary and not `opened`. */
int mqx_definition_fits(const struct mqx_definition *def, const struct mqx_values *values,
                        bool opened) MQX_MUST_USE;

static inline void mqx_catalog_store32(struct mqx_region *region, uint32_t *at, uint32_t value)
{
    mqx_undo_store32(region->base, &region->header->catalog_lock, at, value);
}
static inline void mqx_catalog_store64(struct mqx_region *region, uint64_t *at, uint64_t value)
{
    mqx_undo_store64(region->base, &region->header->catalog_lock, at, value);
}

/* The object of that key; 0 when there is none. Deleted ones have their name on z/OS alone.
 * MQRC_Q_MGR_NOT_AVAILABLE when a chain is damaged. */
int mqx_names_look_up(struct mqx_region *region, const struct ps_object_name *key,
                      uint32_t *out_slot) MQX_MUST_USE;
/* Links the object at the front of its chain / takes it out, if it is there. */
void mqx_names_link(struct mqx_region *region, uint32_t slot);
int mqx_names_unlink(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;

/* Usable by the data plane, as far as the catalog is concerned. */
bool mqx_object_usable(const struct mqx_object *object);

/* Steps that defining, altering and deleting have in common. No lock held by the caller but where
 * it is said. */
int mqx_catalog_gone(uint32_t slot);    /* 2085 with a text */
int mqx_catalog_deleted(uint32_t slot); /* 2052 with a text */
/* Everything that is in the ring by now is made durable. */
int mqx_catalog_flush(struct mqx_store *store) MQX_MUST_USE;
/* Takes the catalog lock with the object ACTIVE and nobody changing it. 2052 2085 2042. */
int mqx_catalog_take_idle(struct mqx_store *store, uint32_t slot, uint32_t generation,
                          struct mqx_object **out) MQX_MUST_USE;
/* Name, cells and slot go; catalog lock held. May be begun anew after a death. */
int mqx_catalog_give_slot(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;

/* Cells with list and trailer, named by `owner` as in arena.h; no lock above the catalog's held. */
int mqx_attrs_store(struct mqx_store *store, const struct mqx_definition *def, uint32_t *owner,
                    uint32_t *out_cell) MQX_MUST_USE;
int mqx_attrs_free(struct mqx_region *region, uint32_t cell, uint32_t length,
                   uint32_t *owner) MQX_MUST_USE;

/* The attribute list in force of a stored object, and its length; NULL when it is damaged. */
const void *mqx_attrs_list(const struct mqx_region *region, const struct mqx_object *object);
/* The stamp of the list in force, 0 when it is damaged. */
uint64_t mqx_attrs_version(const struct mqx_region *region, const struct mqx_object *object);

/* Fills a slot that nobody can see: everything but state, generation, name_next and the free
 * list. */
void mqx_object_fill(struct mqx_object *object, const struct mqx_definition *def, uint32_t cell,
                     const struct mqx_values *values);
/* Attribute values of a visible object: stores of the caller's micro-transaction. */
void mqx_object_set_values(struct mqx_region *region, struct mqx_object *object,
                           const struct mqx_values *values);
/* The values of a definition are in force from now on: the queue manager's take effect. */
void mqx_object_in_force(struct mqx_region *region, const struct mqx_object *object);

#endif
