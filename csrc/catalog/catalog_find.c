/*
 * catalog_find.c - see catalog_find.h.
 */
#include "catalog/catalog_find.h"

#include "base/assert.h"
#include "base/error.h"
#include "catalog/attr_cells.h"
#include "catalog/catalog_delete.h"
#include "catalog/catalog_steps.h"
#include "catalog/name_table.h"
#include "catalog/object_values.h"

#include <string.h>

enum { COPY_MAX = MQX_LOCKED_COPY_MAX, READ_ATTEMPTS = 1000 };

/* ---- finding ---- */

static int fail_not_found(const char name[MQX_NAME_SIZE])
{
    int length = MQX_NAME_SIZE;
    while (length > 0 && name[length - 1] == ' ') {
        length--;
    }
    return mqx_fail(MQRC_UNKNOWN_OBJECT_NAME, "there is no object \"%.*s\"", length, name);
}

struct search { /* one lock hold of a search by name */
    uint32_t slot;
    uint32_t state;  /* of the object in the slot; FREE: there is none */
    bool found;
};

/* One look at the chain. `deleted_too`: a logically deleted object that still has its name (z/OS)
 * is found, too. */
static int look_up(struct mqx_region *region, const struct ps_object_name *key, bool deleted_too,
                   struct search *search, struct mqe_found *out)
{
    int status = mqx_catalog_take_lock(region);
    *search = (struct search){.state = MQX_OBJ_FREE};
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_names_look_up(region, key, &search->slot);
    const struct mqx_object *object = mqx_object(region, search->slot);
    if (status == MQX_OK && object != NULL) {
        search->state = mqx_load_relaxed(&object->state);
        search->found = mqx_object_usable(object) ||
                        (deleted_too && search->state == MQX_OBJ_DELETING);
    }
    if (search->found) {
        *out = (struct mqe_found){search->slot, object->generation, object->type,
                                  mqx_load_relaxed(&object->resolution_version)};
    }
    mqx_catalog_drop_lock(region);
    MQX_ASSERT(!search->found || status == MQX_OK);
    return status;
}

int mqx_catalog_find(struct mqx_store *store, uint32_t name_space, const char name[MQX_NAME_SIZE],
                     uint64_t instance, struct mqe_found *out)
{
    struct ps_object_name key = {.name_space = name_space, .instance = instance};
    struct search search;
    MQX_ASSERT(name != NULL);
    memcpy(key.name, name, sizeof key.name);
    for (int attempt = 0; attempt < 2; attempt++) {
        int status = look_up(&store->region, &key, attempt > 0, &search, out);
        if (status != MQX_OK || search.found) {
            return status;
        }
        if (search.state == MQX_OBJ_DELETING) {
            status = mqx_catalog_finish(store, search.slot);
        } else if (search.state == MQX_OBJ_LOGGED) {
            status = mqx_catalog_activate(store, search.slot);
        } else {
            break;
        }
        if (status != MQX_OK) {
            return status;
        }
    }
    return fail_not_found(name);
}

int mqx_catalog_next(struct mqx_store *store, uint32_t *slot, uint32_t *out_generation)
{
    const uint64_t used = mqx_area_used(&store->region, MQX_AREA_OBJECTS);
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.header->catalog_lock));
    for (uint64_t at = (uint64_t)*slot + 1; at < used; at++) {
        const struct mqx_object *object = mqx_object(&store->region, (uint32_t)at);
        if (object == NULL || !mqx_object_is_stored(object)) {
            continue;
        }
        int status = mqx_catalog_activate(store, (uint32_t)at);
        if (status != MQX_OK) {
            return status;
        }
        *slot = (uint32_t)at;
        *out_generation = mqx_load_acquire(&object->generation);
        return MQX_OK;
    }
    return MQRC_UNKNOWN_OBJECT_NAME; /* the end of the list, not a failure with a text */
}

/* The newest generation of the slot that is gone, or never was in the files; 0: none. A slot that
 * is free, or whose definition is not in the journal yet, has the generation of its next object. */
static uint32_t gone_generation(const struct mqx_object *object)
{
    const uint32_t state = mqx_load_relaxed(&object->state);
    const uint32_t generation = object->generation;
    MQX_ASSERT(state <= MQX_OBJ_DELETING);
    if (state == MQX_OBJ_FREE || state == MQX_OBJ_DEFINING) {
        return generation > 0 ? generation - 1 : 0;
    }
    return mqx_object_is_stored(object) && !mqx_object_is_temporary(object) ? 0 : generation;
}

int mqx_catalog_next_gone(struct mqx_store *store, uint32_t *slot, uint32_t *out_generation)
{
    struct mqx_region *region = &store->region;
    const uint64_t used = mqx_area_used(region, MQX_AREA_OBJECTS);
    MQX_ASSERT(!mqx_lock_held(region, &region->header->catalog_lock));
    for (uint64_t at = (uint64_t)*slot + 1; at < used; at++) {
        const struct mqx_object *object = mqx_object(region, (uint32_t)at);
        int status = object == NULL ? MQX_OK : mqx_catalog_take_lock(region);
        if (object == NULL || status != MQX_OK) {
            return object != NULL ? status : MQRC_UNKNOWN_OBJECT_NAME;
        }
        *out_generation = gone_generation(object);
        mqx_catalog_drop_lock(region);
        if (*out_generation != 0) {
            *slot = (uint32_t)at;
            return MQX_OK;
        }
    }
    return MQRC_UNKNOWN_OBJECT_NAME;
}

bool mqx_catalog_is_journalled(struct mqx_store *store, uint32_t slot, uint32_t generation)
{
    struct mqx_region *region = &store->region;
    const struct mqx_object *object = mqx_object(region, slot);
    bool journalled = false;
    MQX_ASSERT(slot != 0);
    if (object != NULL && mqx_catalog_take_lock(region) == MQX_OK) {
        journalled = object->generation == generation && mqx_object_is_stored(object) &&
                     !mqx_object_is_temporary(object);
        mqx_catalog_drop_lock(region);
    }
    return journalled;
}

/* ---- reading ---- */

struct reading { /* of one list, in pieces of one lock hold each */
    struct ps_object_name *name;
    unsigned char *to;
    uint32_t capacity;
    uint32_t done;
    uint32_t length;
    bool deleted_too;            /* also of a logically deleted object */
    uint64_t definition_version; /* of the list that is being read; 0: none yet */
    uint32_t sum;
};

/* Begins with another list than before: name and length are those of the new one. */
static void begin_list(struct reading *reading, const struct mqx_object *object,
                       const struct mqx_attrs *attrs)
{
    MQX_ASSERT(reading->definition_version != attrs->definition_version);
    reading->definition_version = attrs->definition_version;
    reading->done = 0;
    reading->length = attrs->length;
    reading->sum = attrs->sum;
    reading->name->name_space = object->name_space;
    reading->name->type = object->type;
    memcpy(reading->name->name, object->name, sizeof object->name);
    reading->name->instance = attrs->instance;
}

/* Copies the next piece. Catalog lock held. MQX_BUSY: more is to be read. The list may have been
 * replaced since the last piece: then it is read from its beginning. */
static int read_piece(const struct mqx_region *region, uint32_t slot, uint32_t generation,
                      struct reading *reading)
{
    const struct mqx_object *object = mqx_object(region, slot);
    struct mqx_attrs attrs;
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    if (object == NULL || object->generation != generation) {
        return mqx_catalog_fail_unknown(slot);
    }
    const bool deleted = mqx_load_acquire(&object->state) == MQX_OBJ_DELETING;
    /* who gives the slot back may have been killed behind the list */
    const bool readable = deleted && reading->deleted_too && object->attrs != 0;
    if (!mqx_object_is_stored(object) && !readable) {
        return deleted ? mqx_catalog_fail_deleted(slot) : mqx_catalog_fail_unknown(slot);
    }
    const bool pending =
        mqx_load_relaxed(&object->state) == MQX_OBJ_LOGGED && object->pending_attrs != 0;
    const int status =
        mqx_attrs_read(region, pending ? object->pending_attrs : object->attrs,
                       pending ? object->pending_length : object->attrs_length, &attrs);
    if (status != MQX_OK) {
        return status;
    }
    if (reading->definition_version != attrs.definition_version) {
        begin_list(reading, object, &attrs);
    }
    const uint32_t wanted = attrs.length < reading->capacity ? attrs.length : reading->capacity;
    const uint32_t left = wanted > reading->done ? wanted - reading->done : 0;
    const uint32_t piece = left < COPY_MAX ? left : (uint32_t)COPY_MAX;
    if (piece > 0) {
        memcpy(reading->to + reading->done, attrs.list + reading->done, piece);
    }
    reading->done += piece;
    MQX_ASSERT(reading->done <= reading->capacity);
    return reading->done >= wanted ? MQX_OK : MQX_BUSY;
}

/* A list that was not read as a whole is not compared. */
static int check_sum(const struct mqx_region *region, const struct reading *reading)
{
    MQX_ASSERT(reading->done <= reading->length);
    if (reading->done < reading->length ||
        mqx_attrs_sum(reading->name, reading->to, reading->length) == reading->sum) {
        return MQX_OK;
    }
    return mqx_region_damage(region, "a definition, its sum", reading->sum);
}

static int read_list(struct mqx_region *region, uint32_t slot, uint32_t generation,
                     struct reading *reading)
{
    int status = MQX_BUSY;
    MQX_ASSERT(reading->to != NULL || reading->capacity == 0);
    memset(reading->name, 0, sizeof *reading->name);
    for (int i = 0; i < READ_ATTEMPTS && status == MQX_BUSY; i++) {
        status = mqx_catalog_take_lock(region);
        if (status == MQX_OK) {
            status = read_piece(region, slot, generation, reading);
            mqx_catalog_drop_lock(region);
        }
    }
    if (status == MQX_BUSY) {
        return mqx_fail(MQRC_OBJECT_IN_USE,
                        "the object in slot %u is altered faster than it can be read", slot);
    }
    return status == MQX_OK ? check_sum(region, reading) : status;
}

int mqx_catalog_read(struct mqx_store *store, uint32_t slot, uint32_t generation,
                     struct ps_object_name *name, void *attrs, uint32_t capacity,
                     uint32_t *out_length, uint64_t *out_definition_version)
{
    struct reading reading = {.name = name, .to = attrs, .capacity = capacity};
    MQX_ASSERT(name != NULL);
    const int status = read_list(&store->region, slot, generation, &reading);
    *out_length = reading.length;
    *out_definition_version = reading.definition_version;
    return status;
}

int mqx_catalog_read_deleted(struct mqx_store *store, uint32_t slot, uint32_t generation,
                             struct ps_object_name *name, void *attrs, uint32_t capacity,
                             uint32_t *out_length)
{
    struct reading reading = {
        .name = name, .to = attrs, .capacity = capacity, .deleted_too = true};
    MQX_ASSERT(name != NULL);
    const int status = read_list(&store->region, slot, generation, &reading);
    *out_length = reading.length;
    return status;
}
