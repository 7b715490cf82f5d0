/*
 * attr_cells.c - see attr_cells.h.
 */
#include "catalog/attr_cells.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/error.h"
#include "journal/group_commit.h"
#include "region/arena.h"
#include "region/damage.h"

#include <string.h>

struct trailer {
    uint64_t definition_version;
    uint64_t instance;
    uint32_t sum;
    uint32_t zero;
};
MQX_STATIC_ASSERT(sizeof(struct trailer) == MQX_ATTRS_TRAILER, "trailer of an attribute list");

/* Do list and trailer lie in memory that the arena has? */
static bool is_within_arena(const struct mqx_region *region, uint32_t cell, uint32_t length)
{
    const uint64_t bytes = length + sizeof(struct trailer);
    if (length > MQX_ATTRS_MAX || mqx_cells(region, cell) == NULL) {
        return false;
    }
    return mqx_cells(region, cell + (uint32_t)((bytes - 1) / MQX_CELL)) != NULL;
}

uint32_t mqx_attrs_sum(const struct ps_object_name *name, const void *list, uint32_t length)
{
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(list != NULL || length == 0);
    const uint32_t sum = mqx_crc32c(0, name, sizeof *name);
    return length == 0 ? sum : mqx_crc32c(sum, list, length);
}

int mqx_attrs_store(struct mqx_store *store, const struct mqx_definition *def, uint32_t *owner,
                    uint32_t *out_cell)
{
    const uint32_t length = def->attrs_length;
    const struct trailer trailer = {
        .definition_version = mqx_journal_unit_id(store),
        .instance = def->name.instance,
        .sum = mqx_attrs_sum(&def->name, def->attrs, length),
    };
    MQX_ASSERT(length <= MQX_ATTRS_MAX);
    MQX_ASSERT(def->attrs != NULL || length == 0);
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.header->arena_lock));
    unsigned char *bytes = mqx_scratch(length + sizeof trailer);
    if (bytes == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for an attribute list");
    }
    if (length > 0) {
        memcpy(bytes, def->attrs, length);
    }
    memcpy(bytes + length, &trailer, sizeof trailer);
    const int status = mqx_store_bytes(&store->region, bytes, length + (uint32_t)sizeof trailer,
                                       owner, out_cell);
    MQX_ASSERT(status != MQX_OK || *out_cell != 0);
    return status;
}

int mqx_attrs_free(struct mqx_region *region, uint32_t cell, uint32_t length, uint32_t *owner)
{
    if (cell == 0) {
        return MQX_OK;
    }
    MQX_ASSERT(!mqx_lock_held(region, &region->header->arena_lock));
    if (!is_within_arena(region, cell, length)) {
        return mqx_region_damage(region, "the cells of an attribute list", cell);
    }
    return mqx_free_bytes(region, cell, length + (uint32_t)sizeof(struct trailer), owner);
}

int mqx_attrs_read(const struct mqx_region *region, uint32_t cell, uint32_t length,
                   struct mqx_attrs *out)
{
    struct trailer trailer;
    if (!is_within_arena(region, cell, length)) {
        *out = (struct mqx_attrs){.list = NULL};
        return mqx_region_damage(region, "the cells of an attribute list", cell);
    }
    const unsigned char *list = mqx_cells(region, cell);
    MQX_ASSERT((uintptr_t)list % MQX_CELL == 0);
    memcpy(&trailer, list + length, sizeof trailer);
    *out = (struct mqx_attrs){
        list, length, trailer.definition_version, trailer.instance, trailer.sum};
    return MQX_OK;
}
