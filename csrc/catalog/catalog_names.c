/*
 * catalog_names.c - see catalog_names.h; and what catalog.h offers for finding, reading and
 * loading.
 */
#include "catalog/catalog_names.h"

#include "region/arena.h"
#include "base/checksum.h"
#include "base/error.h"
#include "queue/queue.h"
#include "catalog/cf_structure.h"

#include <string.h>

enum { COPY_MAX = MQX_LOCKED_COPY_MAX, READ_ATTEMPTS = 1000 };

struct trailer { /* behind an attribute list in its cells */
    uint64_t stamp;    /* differs between any two lists that were ever stored */
    uint64_t instance; /* of struct ps_object_name */
};

/* ---- definitions ---- */

int mqx_definition_check(const struct mqx_definition *def, struct mqx_values *out)
{
    const struct ps_object_name *name = &def->name;
    if (name->name[0] == ' ' || memchr(name->name, 0, sizeof name->name) != NULL) {
        return mqx_fail(MQRC_OBJECT_NAME_ERROR,
                        "\"%.48s\" is not an object name: it begins with a blank or is not padded "
                        "with blanks", name->name);
    }
    if (name->name_space != MQX_NAMES_QUEUE && name->type == MQX_LOCAL_QUEUE) {
        return mqx_fail(MQRC_OBJECT_TYPE_ERROR, "\"%.48s\": in name space %u nothing is a local "
                        "queue", name->name, name->name_space);
    }
    return mqx_definition_read_values(name, def->attrs, def->attrs_length, out);
}

uint32_t mqx_definition_type(const struct mqx_definition *def, const struct mqx_values *values)
{
    const bool local = def->name.name_space == MQX_NAMES_QUEUE && def->name.type == MQX_LOCAL_QUEUE;
    return local ? values->definition_type : (uint32_t)MQX_PREDEFINED;
}

int mqx_definition_fits(const struct mqx_definition *def, const struct mqx_values *values,
                        bool opened)
{
    const uint32_t type = mqx_definition_type(def, values);
    if (opened && type == MQX_PREDEFINED) {
        return mqx_fail(MQRC_SELECTOR_NOT_FOR_TYPE,
                        "\"%.48s\" is not a dynamic queue (attribute 7, DEFTYPE): opening cannot "
                        "define it", def->name.name);
    }
    if (!opened && type == MQX_TEMPORARY) {
        return mqx_fail(MQRC_SELECTOR_NOT_FOR_TYPE,
                        "\"%.48s\" is a temporary dynamic queue (attribute 7, DEFTYPE): only "
                        "opening defines it", def->name.name);
    }
    return MQX_OK;
}

int mqx_attrs_store(struct mqx_store *store, const struct mqx_definition *def, uint32_t *owner,
                    uint32_t *out_cell)
{
    const uint32_t length = def->attrs_length;
    const struct trailer trailer = {mqx_journal_unit_id(store), def->name.instance};
    unsigned char *bytes = mqx_scratch(length + sizeof trailer);
    if (bytes == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for an attribute list");
    }
    if (length > 0) {
        memcpy(bytes, def->attrs, length);
    }
    memcpy(bytes + length, &trailer, sizeof trailer);
    return mqx_store_bytes(&store->region, bytes, length + (uint32_t)sizeof trailer, owner,
                           out_cell);
}

int mqx_attrs_free(struct mqx_region *region, uint32_t cell, uint32_t length, uint32_t *owner)
{
    if (cell == 0) {
        return MQX_OK;
    }
    if (length > MQX_ATTRS_MAX || mqx_cells(region, cell) == NULL) {
        return mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE, "an object's attribute list is damaged");
    }
    return mqx_free_bytes(region, cell, length + (uint32_t)sizeof(struct trailer), owner);
}

/* The stored list with its trailer; NULL when the reference is damaged (rule 28). */
static const unsigned char *list_at(const struct mqx_region *region, uint32_t cell, uint32_t length,
                                    struct trailer *out)
{
    const uint64_t bytes = length + sizeof *out;
    const uint32_t last = cell + (uint32_t)((bytes - 1) / MQX_CELL);
    const unsigned char *list = mqx_cells(region, cell);
    if (list == NULL || length > MQX_ATTRS_MAX ||
        mqx_cells(region, last) == NULL) {
        return NULL;
    }
    memcpy(out, list + length, sizeof *out);
    return list;
}

const void *mqx_attrs_list(const struct mqx_region *region, const struct mqx_object *object)
{
    struct trailer trailer;
    return list_at(region, object->attrs, object->attrs_length, &trailer);
}

uint64_t mqx_attrs_version(const struct mqx_region *region, const struct mqx_object *object)
{
    struct trailer trailer = {0};
    (void)list_at(region, object->attrs, object->attrs_length, &trailer);
    return trailer.stamp;
}

/* ---- objects ---- */

bool mqx_object_usable(const struct mqx_object *object)
{
    const uint32_t state = mqx_load_acquire(&object->state);
    return state == MQX_OBJ_ACTIVE || (state == MQX_OBJ_LOGGED && object->pending_attrs != 0);
}

static void set_plain_values(struct mqx_object *object, const struct mqx_values *values)
{
    object->max_depth = values->max_depth;
    object->max_length = values->max_length;
    object->def_priority = values->def_priority;
    object->def_persistence = values->def_persistence;
    object->fifo = values->fifo;
    object->put_inhibited = values->put_inhibited;
    object->get_inhibited = values->get_inhibited;
    object->npm_class = values->npm_class;
    object->may_persist = values->may_persist;
    object->np_life = values->np_life;
    object->group_index = values->group_index;
}

void mqx_object_fill(struct mqx_object *object, const struct mqx_definition *def, uint32_t cell,
                     const struct mqx_values *values)
{
    mqx_check(object->name_next == 0);
    object->name_space = def->name.name_space;
    object->type = def->name.type;
    memcpy(object->name, def->name.name, sizeof object->name);
    mqx_store_relaxed(&object->pending_attrs, 0u); /* a stale mqx_catalog_activate() may look */
    object->pending_length = 0;
    memset(&object->max_depth, 0,
           offsetof(struct mqx_object, changer) - offsetof(struct mqx_object, max_depth));
    mqx_store_relaxed(&object->changer, 0u); /* likewise mqx_catalog_finish() */
    object->exclusive_input = 0;
    object->structure = 0;
    object->failing = 0;
    set_plain_values(object, values);
    object->definition_type = (uint8_t)mqx_definition_type(def, values);
    object->creator = 0;
    object->attrs_length = def->attrs_length;
    mqx_order();
    object->attrs = cell; /* last: a death before it loses the cells, not more */
}

void mqx_object_set_values(struct mqx_region *region, struct mqx_object *object,
                           const struct mqx_values *values)
{
    struct mqx_lock *lock = &region->header->catalog_lock;
    const struct {
        uint8_t *at;
        uint8_t value;
    } bytes[] = {
        {&object->def_priority, values->def_priority},
        {&object->def_persistence, values->def_persistence},
        {&object->fifo, values->fifo},
        {&object->put_inhibited, values->put_inhibited},
        {&object->get_inhibited, values->get_inhibited},
        {&object->npm_class, values->npm_class},
        {&object->may_persist, values->may_persist},
        {&object->np_life, values->np_life},
        {&object->group_index, values->group_index},
    };
    mqx_catalog_store32(region, &object->max_depth, values->max_depth);
    mqx_catalog_store32(region, &object->max_length, values->max_length);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bytes); i++) {
        mqx_undo_store8(region->base, lock, bytes[i].at, bytes[i].value);
    }
}

void mqx_object_in_force(struct mqx_region *region, const struct mqx_object *object)
{
    struct mqx_header *header = region->header;
    if (object->name_space != MQX_NAMES_MANAGER) {
        return;
    }
    if (object->max_depth != 0) {
        mqx_catalog_store32(region, &header->max_uncommitted, object->max_depth);
    }
    if (object->max_length != 0) {
        mqx_catalog_store32(region, &header->max_message, object->max_length);
    }
}

/* ---- chains ---- */

static uint32_t *bucket_of(const struct mqx_region *region, uint32_t name_space,
                           const char name[MQX_NAME_SIZE])
{
    const uint64_t hash = mqx_hash64(name, MQX_NAME_SIZE, region->header->tag_key ^ name_space);
    return &region->names[hash & (region->header->name_bucket_count - 1)];
}

static int damaged(const char *what, uint32_t slot)
{
    return mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE, "the catalog in the shared region is damaged: %s "
                    "(object slot %u)", what, slot);
}

static bool has_key(const struct mqx_region *region, const struct mqx_object *object,
                    const struct ps_object_name *key)
{
    struct trailer trailer = {0};
    return object->name_space == key->name_space &&
           memcmp(object->name, key->name, sizeof object->name) == 0 &&
           list_at(region, object->attrs, object->attrs_length, &trailer) != NULL &&
           trailer.instance == key->instance;
}

/* A deletion counts when its record is in the ring for good: who died while appending it is undone
 * by the next owner of that lock. */
static int is_deleted(struct mqx_region *region, const struct mqx_object *object, bool *out)
{
    *out = mqx_load_acquire(&object->state) == MQX_OBJ_DELETING;
    if (!*out) {
        return MQX_OK;
    }
    const int status = mqx_lock_take(region, &region->journal->ring_lock);
    if (status == MQX_OK) {
        *out = mqx_load_acquire(&object->state) == MQX_OBJ_DELETING;
        mqx_lock_drop(region, &region->journal->ring_lock);
    }
    return status;
}

int mqx_names_look_up(struct mqx_region *region, const struct ps_object_name *key,
                      uint32_t *out_slot)
{
    const bool deleted_ones = region->header->platform == MQX_PLATFORM_ZOS;
    const uint64_t used = mqx_load_acquire(&region->header->area[MQX_AREA_OBJECTS].used);
    uint32_t slot = *bucket_of(region, key->name_space, key->name);
    for (uint64_t steps = 0; slot != 0; steps++) {
        const struct mqx_object *object = mqx_object(region, slot);
        if (object == NULL || steps > used) {
            return damaged("a chain of names", slot);
        }
        if (has_key(region, object, key)) {
            bool deleted = false;
            int status = deleted_ones ? MQX_OK : is_deleted(region, object, &deleted);
            if (status != MQX_OK || !deleted) {
                *out_slot = slot;
                return status;
            }
        }
        slot = object->name_next;
    }
    *out_slot = slot;
    return MQX_OK;
}

void mqx_names_link(struct mqx_region *region, uint32_t slot)
{
    struct mqx_object *object = mqx_object(region, slot);
    mqx_check(object != NULL);
    uint32_t *bucket = bucket_of(region, object->name_space, object->name);
    mqx_catalog_store32(region, &object->name_next, *bucket);
    mqx_catalog_store32(region, bucket, slot);
}

int mqx_names_unlink(struct mqx_region *region, uint32_t slot)
{
    const uint64_t used = mqx_load_acquire(&region->header->area[MQX_AREA_OBJECTS].used);
    struct mqx_object *object = mqx_object(region, slot);
    mqx_check(object != NULL);
    uint32_t *link = bucket_of(region, object->name_space, object->name);
    for (uint64_t steps = 0; *link != 0 && *link != slot; steps++) {
        struct mqx_object *before = mqx_object(region, *link);
        if (before == NULL || steps > used) {
            return damaged("a chain of names", *link);
        }
        link = &before->name_next;
    }
    if (*link == slot) {
        mqx_catalog_store32(region, link, object->name_next);
        mqx_catalog_store32(region, &object->name_next, 0);
    }
    return MQX_OK;
}

/* ---- finding ---- */

static int take_lock(struct mqx_region *region)
{
    return mqx_lock_take(region, &region->header->catalog_lock);
}

static void drop_lock(struct mqx_region *region)
{
    mqx_lock_drop(region, &region->header->catalog_lock);
}

static int unknown(const char name[MQX_NAME_SIZE])
{
    int length = MQX_NAME_SIZE;
    while (length > 0 && name[length - 1] == ' ') {
        length--;
    }
    return mqx_fail(MQRC_UNKNOWN_OBJECT_NAME, "there is no object \"%.*s\"", length, name);
}

int mqx_catalog_find(struct mqx_store *store, uint32_t name_space, const char name[MQX_NAME_SIZE],
                     uint64_t instance, struct mqe_found *out)
{
    struct mqx_region *region = &store->region;
    struct ps_object_name key = {.name_space = name_space, .instance = instance};
    memcpy(key.name, name, sizeof key.name);
    for (int attempt = 0; attempt < 2; attempt++) {
        uint32_t slot = 0;
        int status = take_lock(region);
        if (status != MQX_OK) {
            return status;
        }
        status = mqx_names_look_up(region, &key, &slot);
        const struct mqx_object *object = slot != 0 ? mqx_object(region, slot) : NULL;
        const uint32_t state = status == MQX_OK && object != NULL ? mqx_load_relaxed(&object->state)
                                                                  : (uint32_t)MQX_OBJ_FREE;
        const bool deleted = state == MQX_OBJ_DELETING; /* z/OS: its name is still taken */
        const bool usable = state != MQX_OBJ_FREE &&
                            (mqx_object_usable(object) || (deleted && attempt > 0));
        if (usable) {
            *out = (struct mqe_found){slot, object->generation, object->type,
                                      mqx_load_relaxed(&object->resolution_version)};
        }
        drop_lock(region);
        if (status != MQX_OK || usable) {
            return status;
        }
        if (state != MQX_OBJ_LOGGED && !deleted) {
            break;
        }
        status = deleted ? mqx_catalog_finish(store, slot) : mqx_catalog_activate(store, slot);
        if (status != MQX_OK) {
            return status;
        }
    }
    return unknown(name);
}

static bool is_stored(const struct mqx_object *object)
{
    const uint32_t state = mqx_load_acquire(&object->state);
    return state == MQX_OBJ_ACTIVE || state == MQX_OBJ_LOGGED;
}

int mqx_catalog_next(struct mqx_store *store, uint32_t *slot, uint32_t *out_generation)
{
    const struct mqx_area *area = &store->region.header->area[MQX_AREA_OBJECTS];
    const uint64_t used = mqx_load_acquire(&area->used);
    for (uint64_t at = (uint64_t)*slot + 1; at < used; at++) {
        const struct mqx_object *object = mqx_object(&store->region, (uint32_t)at);
        if (object == NULL || !is_stored(object)) {
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

bool mqx_catalog_is_journalled(struct mqx_store *store, uint32_t slot, uint32_t generation)
{
    struct mqx_region *region = &store->region;
    const struct mqx_object *object = mqx_object(region, slot);
    bool journalled = false;
    if (object != NULL && take_lock(region) == MQX_OK) {
        journalled = object->generation == generation && is_stored(object) &&
                     !mqx_object_is_temporary(object);
        drop_lock(region);
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
    uint64_t stamp;
};

/* Catalog lock held. The list may have been replaced since the last piece: then it begins anew. */
static int read_piece(const struct mqx_region *region, uint32_t slot, uint32_t generation,
                      struct reading *reading)
{
    const struct mqx_object *object = mqx_object(region, slot);
    struct trailer trailer = {0};
    if (object == NULL || object->generation != generation) {
        return mqx_catalog_gone(slot);
    }
    if (!is_stored(object)) {
        return mqx_load_acquire(&object->state) == MQX_OBJ_DELETING ? mqx_catalog_deleted(slot)
                                                                    : mqx_catalog_gone(slot);
    }
    const bool pending =
        mqx_load_relaxed(&object->state) == MQX_OBJ_LOGGED && object->pending_attrs != 0;
    const uint32_t cell = pending ? object->pending_attrs : object->attrs;
    const uint32_t length = pending ? object->pending_length : object->attrs_length;
    const unsigned char *list = list_at(region, cell, length, &trailer);
    if (list == NULL) {
        return damaged("an attribute list", slot);
    }
    if (reading->stamp != trailer.stamp) {
        reading->stamp = trailer.stamp;
        reading->done = 0;
        reading->length = length;
        reading->name->name_space = object->name_space;
        reading->name->type = object->type;
        memcpy(reading->name->name, object->name, sizeof object->name);
        reading->name->instance = trailer.instance;
    }
    const uint32_t wanted = length < reading->capacity ? length : reading->capacity;
    const uint32_t piece = wanted - reading->done < COPY_MAX ? wanted - reading->done : COPY_MAX;
    if (piece > 0) {
        memcpy(reading->to + reading->done, list + reading->done, piece);
    }
    reading->done += piece;
    return reading->done == wanted ? MQX_OK : MQX_BUSY;
}

int mqx_catalog_read(struct mqx_store *store, uint32_t slot, uint32_t generation,
                     struct ps_object_name *name, void *attrs, uint32_t capacity,
                     uint32_t *out_length, uint64_t *out_stamp)
{
    struct mqx_region *region = &store->region;
    struct reading reading = {.name = name, .to = attrs, .capacity = capacity};
    int status = MQX_BUSY;
    memset(name, 0, sizeof *name);
    for (int i = 0; i < READ_ATTEMPTS && status == MQX_BUSY; i++) {
        status = take_lock(region);
        if (status == MQX_OK) {
            status = read_piece(region, slot, generation, &reading);
            drop_lock(region);
        }
    }
    *out_length = reading.length;
    *out_stamp = reading.stamp;
    return status == MQX_BUSY ? mqx_fail(MQRC_OBJECT_IN_USE, "the object in slot %u is altered "
                                         "faster than it can be read", slot)
                              : status;
}

/* ---- loading: recovery, alone ---- */

static int make_room(struct mqx_region *region, uint32_t slot)
{
    struct mqx_area *area = &region->header->area[MQX_AREA_OBJECTS];
    const uint64_t bytes = ((uint64_t)slot + 1) * area->item_size;
    if (slot == 0 || bytes > area->reserved_bytes) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                        "object slot %u: the shared region has address space for %llu objects",
                        slot, (unsigned long long)(area->reserved_bytes / area->item_size));
    }
    const int status = mqx_region_grow(region, MQX_AREA_OBJECTS, bytes);
    if (status == MQX_OK && area->used <= slot) {
        area->used = (uint64_t)slot + 1;
    }
    return status;
}

/* Out of its chain, its cells freed. */
static int take_out(struct mqx_region *region, uint32_t slot)
{
    struct mqx_object *object = mqx_object(region, slot);
    int status = take_lock(region);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_names_unlink(region, slot);
    mqx_undo_commit(&region->header->catalog_lock);
    drop_lock(region);
    const uint32_t cell = object->attrs;
    object->attrs = 0;
    return status == MQX_OK ? mqx_attrs_free(region, cell, object->attrs_length, NULL) : status;
}

/* A newer definition of an object that stays: its messages and counts must not be touched. */
static int replace(struct mqx_region *region, struct mqx_object *object,
                   const struct mqx_definition *def, uint32_t cell, const struct mqx_values *values)
{
    const uint32_t old_cell = object->attrs, old_length = object->attrs_length;
    object->attrs = cell;
    object->attrs_length = def->attrs_length;
    set_plain_values(object, values);
    return mqx_attrs_free(region, old_cell, old_length, NULL);
}

static int place(struct mqx_region *region, uint32_t slot, uint32_t generation,
                 const struct mqx_definition *def, uint32_t cell, const struct mqx_values *values)
{
    struct mqx_object *object = mqx_object(region, slot);
    mqx_check(object->present == 0);
    mqx_object_fill(object, def, cell, values);
    object->generation = generation;
    const int status = take_lock(region);
    if (status == MQX_OK) {
        mqx_names_link(region, slot);
        mqx_undo_commit(&region->header->catalog_lock);
        drop_lock(region);
        mqx_store_release(&object->state, MQX_OBJ_ACTIVE);
    }
    return status;
}

static bool same_key(const struct mqx_object *object, const struct ps_object_name *name)
{
    return object->name_space == name->name_space && object->type == name->type &&
           memcmp(object->name, name->name, sizeof object->name) == 0;
}

int mqx_catalog_load(struct mqx_store *store, uint32_t slot, uint32_t generation,
                     const struct mqx_definition *def)
{
    struct mqx_region *region = &store->region;
    struct mqx_values values;
    uint32_t cell = 0;
    int status = mqx_definition_check(def, &values);
    if (status == MQX_OK) {
        status = mqx_definition_fits(def, &values, false); /* temporary ones are never stored */
    }
    if (status != MQX_OK) {
        char text[256];
        (void)strncpy(text, mqx_error_text(), sizeof text - 1);
        text[sizeof text - 1] = '\0';
        return mqx_fail(MQRC_OBJECT_DAMAGED, "the stored definition of object %u: %s", slot, text);
    }
    status = make_room(region, slot);
    struct mqx_object *object = status == MQX_OK ? mqx_object(region, slot) : NULL;
    if (object == NULL) {
        return status;
    }
    const bool defined = mqx_load_relaxed(&object->state) == MQX_OBJ_ACTIVE;
    if (defined && (int32_t)(object->generation - generation) > 0) {
        return MQX_OK; /* the record is about one that has been deleted since */
    }
    const bool stays = defined && object->generation == generation && same_key(object, &def->name);
    if (defined && !stays) {
        status = take_out(region, slot);
    }
    if (status == MQX_OK) {
        status = mqx_attrs_store(store, def, NULL, &cell);
    }
    if (status != MQX_OK) {
        return status;
    }
    return stays ? replace(region, object, def, cell, &values)
                 : place(region, slot, generation, def, cell, &values);
}

int mqx_catalog_unload(struct mqx_store *store, uint32_t slot, uint32_t generation)
{
    struct mqx_region *region = &store->region;
    int status = make_room(region, slot);
    struct mqx_object *object = status == MQX_OK ? mqx_object(region, slot) : NULL;
    if (object == NULL || (int32_t)(object->generation - generation) > 0) {
        return status;
    }
    if (mqx_load_relaxed(&object->state) == MQX_OBJ_ACTIVE) {
        status = take_out(region, slot);
    }
    object->state = MQX_OBJ_FREE;
    object->generation = generation + 1; /* also of a slot never seen here: it must not come back */
    return status;
}

/* What a definition means for others; every object is there by now. */
static int link_up(struct mqx_region *region, uint32_t slot)
{
    struct mqx_object *object = mqx_object(region, slot);
    int status = take_lock(region);
    if (status == MQX_OK) {
        mqx_object_in_force(region, object);
        status = mqx_cf_structure_relink(region, object);
        mqx_undo_commit(&region->header->catalog_lock);
        drop_lock(region);
    }
    return status;
}

static int verify_unique(struct mqx_region *region, uint32_t slot)
{
    const struct mqx_object *object = mqx_object(region, slot);
    struct ps_object_name key = {.name_space = object->name_space};
    struct trailer trailer = {0};
    uint32_t found = 0;
    if (list_at(region, object->attrs, object->attrs_length, &trailer) == NULL) {
        return damaged("an attribute list", slot);
    }
    memcpy(key.name, object->name, sizeof key.name);
    key.instance = trailer.instance;
    int status = mqx_names_look_up(region, &key, &found);
    if (status == MQX_OK && found != slot) {
        return mqx_fail(MQRC_OBJECT_DAMAGED,
                        "the files define \"%.48s\" twice, as object %u and %u", object->name,
                        slot, found);
    }
    return status;
}

int mqx_catalog_loaded(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_area *area = &region->header->area[MQX_AREA_OBJECTS];
    int status = MQX_OK;
    area->free_head = 0;
    for (uint64_t slot = area->used - 1; slot > 0 && status == MQX_OK; slot--) {
        struct mqx_object *object = mqx_object(region, (uint32_t)slot);
        mqx_check(object != NULL);
        if (mqx_load_relaxed(&object->state) == MQX_OBJ_FREE) {
            object->next_free = area->free_head;
            area->free_head = (uint32_t)slot;
        } else {
            status = verify_unique(region, (uint32_t)slot);
            status = status == MQX_OK ? link_up(region, (uint32_t)slot) : status;
        }
    }
    return status;
}
