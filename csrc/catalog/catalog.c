/*
 * catalog.c - defining, altering, the failure of a structure, repair: the chains of catalog.h.
 */
#include "catalog/catalog.h"

#include "base/assert.h"
#include "base/error.h"
#include "catalog/attr_cells.h"
#include "catalog/cf_structure.h"
#include "catalog/name_table.h"
#include "catalog/object_values.h"
#include "journal/group_commit.h"
#include "region/arena.h"
#include "region/damage.h"

#include <string.h>

/* ---- small steps ---- */

/* The caller's context: it exists, and has nothing pending. */
static int open_context(const struct mqx_region *region, uint32_t slot, struct mqx_context **out)
{
    struct mqx_context *context = mqx_context(region, slot);
    MQX_ASSERT(slot != 0);
    *out = context;
    if (context == NULL || context->pending_kind != MQX_PENDING_NONE) {
        return mqx_region_damage(region, "the context of a change of the catalog", slot);
    }
    return MQX_OK;
}

static void set_pending_reference(struct mqx_context *context, uint32_t slot, uint32_t generation)
{
    MQX_ASSERT(context != NULL);
    MQX_ASSERT(slot != 0 || generation == MQX_ANY_GENERATION);
    context->pending_ref = slot;
    context->pending_object = generation;
    mqx_order();
    mqx_store_release(&context->pending_kind, (uint32_t)MQX_PENDING_OBJECT);
}

static void clear_pending_reference(struct mqx_context *context)
{
    MQX_ASSERT(context != NULL);
    mqx_store_release(&context->pending_kind, (uint32_t)MQX_PENDING_NONE);
    mqx_order();
    context->pending_ref = 0;
    context->pending_object = 0;
}

static int append_object(struct mqx_store *store, uint32_t slot, uint32_t generation,
                         const struct mqx_definition *def, uint64_t *out_end_lsn)
{
    const struct mqx_record_head head = {
        .type = PS_REC_OBJECT, .object = slot, .object_gen = generation};
    unsigned char *record = mqx_scratch(sizeof(struct psj_record) + sizeof def->name +
                                        2 * sizeof(struct ps_section) + def->attrs_length + 8);
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a definition");
    }
    MQX_ASSERT(generation != 0);
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.header->catalog_lock));
    struct mqx_append append = {
        .record = record,
        .length = mqx_encode_object(record, &head, &def->name, def->attrs, def->attrs_length),
        .flags = MQX_APPEND_PUT,
        .object = slot,
        .object_state = MQX_OBJ_LOGGED,
    };
    const int status = mqx_journal_append(store, &append);
    *out_end_lsn = append.end_lsn;
    MQX_ASSERT(status != MQX_OK || append.end_lsn > append.lsn);
    return status;
}

/* Frees an object whose record never entered the ring; nothing when that life of the slot is
 * over. */
static int undo_define(struct mqx_region *region, uint32_t slot, uint32_t generation)
{
    struct mqx_object *object = mqx_object(region, slot);
    MQX_ASSERT(object != NULL);
    int status = mqx_catalog_take_lock(region);
    if (status != MQX_OK) {
        return status;
    }
    if (object->generation == generation && mqx_load_relaxed(&object->state) != MQX_OBJ_FREE) {
        status = mqx_catalog_give_slot(region, slot);
    }
    mqx_catalog_commit_and_drop(region);
    return status;
}

int mqx_catalog_free_unreferenced(struct mqx_region *region, uint32_t slot)
{
    struct mqx_context *context = mqx_context(region, slot);
    if (context == NULL) {
        return mqx_region_damage(region, "the context of an attribute list", slot);
    }
    return mqx_attrs_free(region, context->unreferenced_attrs, context->unreferenced_length,
                          &context->unreferenced_attrs);
}

/* ---- define ---- */

/* Links the name, unless it is taken: 2100; MQX_BUSY when a deleted object, *out_other, still has
 * it. A temporary queue is ACTIVE with it. */
static int link_name(struct mqx_region *region, uint32_t slot, const struct mqx_definition *def,
                     const struct mqx_values *values, uint32_t *out_other)
{
    struct mqx_object *object = mqx_object(region, slot);
    uint32_t structure = 0;
    MQX_ASSERT(object != NULL);
    int status = mqx_lock_enter(region, &region->header->catalog_lock);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_names_look_up(region, &def->name, out_other);
    if (status == MQX_OK && *out_other != 0) {
        const uint32_t state = mqx_load_relaxed(&mqx_object(region, *out_other)->state);
        status = state == MQX_OBJ_DELETING
                     ? MQX_BUSY
                     : mqx_fail(MQRC_OBJECT_ALREADY_EXISTS, "\"%.48s\" exists already",
                                def->name.name);
    }
    if (status == MQX_OK) {
        status = mqx_cf_structure_find(region, values, &structure);
    }
    if (status == MQX_OK) {
        mqx_catalog_store32(region, &object->structure, structure);
        status = mqx_names_link(region, slot);
    }
    if (status == MQX_OK && mqx_object_is_temporary(object)) {
        mqx_catalog_store32(region, &object->state, MQX_OBJ_ACTIVE);
    }
    mqx_catalog_commit_and_drop(region);
    return status;
}

/* On z/OS a deleted object has its name until it is physically deleted: that is tried once. 2201
 * when it is still open or in use. */
static int link_when_free(struct mqx_store *store, uint32_t slot, const struct mqx_definition *def,
                          const struct mqx_values *values)
{
    uint32_t other = 0;
    MQX_ASSERT(slot != 0);
    int status = link_name(&store->region, slot, def, values, &other);
    if (status == MQX_BUSY) {
        status = mqx_catalog_finish(store, other);
        status = status == MQX_OK ? link_name(&store->region, slot, def, values, &other) : status;
        MQX_ASSERT(status != MQX_BUSY || other != slot);
    }
    return status == MQX_BUSY
               ? mqx_fail(MQRC_NAME_IN_USE,
                          "\"%.48s\" is the name of a deleted queue that is still open or in use",
                          def->name.name)
               : status;
}

/* Stores the list and fills in the values. The slot is the context's pending reference, and no
 * other process sees it. */
static int fill_slot(struct mqx_store *store, uint32_t slot, const struct mqx_definition *def,
                     const struct mqx_values *values, const struct mqx_define_hook *hook)
{
    struct mqx_object *object = mqx_object(&store->region, slot);
    uint32_t cell = 0;
    MQX_ASSERT(object != NULL);
    MQX_ASSERT(hook == NULL || hook->handle != 0);
    if (object->generation == 0) {
        mqx_store_release(&object->generation, 1u); /* 0 means "never seen" to recovery */
    }
    object->attrs_length = def->attrs_length;
    int status = mqx_attrs_store(store, def, &object->attrs, &cell);
    if (status == MQX_OK) {
        status = mqx_object_fill(&store->region, object, def, cell, values);
    }
    if (status == MQX_OK) {
        object->creator = hook != NULL && mqx_object_is_temporary(object) ? hook->handle : 0;
    }
    return status;
}

/* FREE -> LOGGED, or ACTIVE when it is temporary. On failure the slot is free again. */
static int define_logged(struct mqx_store *store, uint32_t context,
                         const struct mqx_definition *def, const struct mqx_define_hook *hook,
                         struct mqx_defined_object *out)
{
    struct mqx_region *region = &store->region;
    struct mqx_context *owner = NULL;
    struct mqx_values values;
    *out = (struct mqx_defined_object){.slot = 0};
    int status = open_context(region, context, &owner);
    if (status == MQX_OK) {
        status = mqx_definition_check(def, &values);
    }
    if (status == MQX_OK) {
        status = mqx_definition_check_type(def, &values, hook != NULL);
    }
    if (status != MQX_OK) {
        return status;
    }
    set_pending_reference(owner, 0, MQX_ANY_GENERATION);
    status = mqx_slot_take(region, MQX_AREA_OBJECTS, &owner->pending_ref, &out->slot);
    if (status != MQX_OK) {
        clear_pending_reference(owner);
        return status;
    }
    const struct mqx_object *object = mqx_object(region, out->slot);
    MQX_ASSERT(object != NULL); /* mqx_slot_take has just marked it */
    status = fill_slot(store, out->slot, def, &values, hook);
    out->generation = object->generation;
    mqx_store_release(&owner->pending_object, out->generation);
    if (status == MQX_OK && hook != NULL) {
        status = hook->register_handle(hook->arg, out->slot, out->generation);
    }
    if (status == MQX_OK) {
        status = link_when_free(store, out->slot, def, &values);
    }
    if (status == MQX_OK && !mqx_object_is_temporary(object)) {
        status = append_object(store, out->slot, out->generation, def, &out->end_lsn);
    }
    if (status != MQX_OK) { /* if it cannot be removed the region has stopped */
        mqx_ignore(undo_define(region, out->slot, out->generation));
    }
    clear_pending_reference(owner); /* from LOGGED on any process finishes it */
    return status;
}

int mqx_catalog_define_many(struct mqx_store *store, uint32_t context,
                            const struct mqx_definition *defs, uint32_t count, uint32_t *out_slots,
                            uint32_t *out_generations, uint32_t *out_done)
{
    struct mqx_defined_object defined = {.slot = 0};
    uint64_t end_lsn = 0;
    uint32_t logged = 0;
    int failure = MQX_OK;
    MQX_ASSERT(count == 0 || defs != NULL);
    *out_done = 0;
    while (logged < count && failure == MQX_OK) {
        failure = define_logged(store, context, &defs[logged], NULL, &defined);
        if (failure == MQX_OK) {
            out_slots[logged] = defined.slot;
            out_generations[logged] = defined.generation;
            logged += 1;
            end_lsn = defined.end_lsn;
        }
    }
    int status = logged > 0 ? mqx_flush_decided(store, end_lsn) : MQX_OK;
    for (uint32_t i = 0; i < logged && status == MQX_OK; i++) {
        status = mqx_catalog_set_active(&store->region, out_slots[i], out_generations[i]);
        *out_done += status == MQX_OK;
    }
    MQX_ASSERT(*out_done <= logged);
    MQX_ASSERT(logged == count || failure != MQX_OK);
    return status != MQX_OK ? status : failure;
}

int mqx_catalog_define(struct mqx_store *store, uint32_t context, const struct mqx_definition *def,
                       uint32_t *out_slot, uint32_t *out_generation)
{
    uint32_t done = 0;
    return mqx_catalog_define_many(store, context, def, 1, out_slot, out_generation, &done);
}

int mqx_catalog_define_open(struct mqx_store *store, uint32_t context,
                            const struct mqx_definition *def, const struct mqx_define_hook *hook,
                            struct mqx_defined_object *out)
{
    MQX_ASSERT(hook != NULL);
    int status = define_logged(store, context, def, hook, out);
    if (status != MQX_OK || out->end_lsn == 0) {
        return status;
    }
    status = mqx_flush_decided(store, out->end_lsn);
    return status == MQX_OK
               ? mqx_catalog_set_active(&store->region, out->slot, out->generation)
               : status;
}

/* ---- alter ---- */

/* The values and the list in force become the pending ones. Catalog lock held; left open. */
static void apply_alter(struct mqx_region *region, struct mqx_object *object,
                        const struct mqx_values *values, uint32_t flags)
{
    uint32_t structure = 0; /* one that has been deleted since counts as none */
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    mqx_ignore(mqx_cf_structure_find(region, values, &structure));
    mqx_catalog_store32(region, &object->structure, structure);
    mqx_object_set_values(region, object, values);
    mqx_object_set_limits(region, object);
    mqx_catalog_store32(region, &object->attrs, object->pending_attrs);
    mqx_catalog_store32(region, &object->attrs_length, object->pending_length);
    if ((flags & MQE_ALTER_RESOLUTION) != 0) {
        mqx_catalog_store32(region, &object->resolution_version, object->resolution_version + 1);
    }
}

/* Ends the alter of an object that is ACTIVE, LOGGED or DELETING with a pending list: the list is
 * in force with these values, or dropped (NULL); LOGGED becomes ACTIVE. The resolution version
 * rises in the same micro-transaction as the values change. */
static int end_alter(struct mqx_region *region, uint32_t context, uint32_t slot,
                     const struct mqx_values *values, uint32_t flags)
{
    struct mqx_object *object = mqx_object(region, slot);
    struct mqx_context *owner = mqx_context(region, context);
    MQX_ASSERT(object != NULL);
    MQX_ASSERT(owner != NULL);
    int status = mqx_catalog_take_lock(region);
    if (status != MQX_OK) {
        return status;
    }
    if (object->changer == context && object->pending_attrs != 0) {
        mqx_catalog_store32(region, &owner->unreferenced_attrs,
                            values != NULL ? object->attrs : object->pending_attrs);
        mqx_catalog_store32(region, &owner->unreferenced_length,
                            values != NULL ? object->attrs_length : object->pending_length);
        if (values != NULL) {
            apply_alter(region, object, values, flags);
        }
        mqx_catalog_store32(region, &object->pending_attrs, 0);
        mqx_catalog_store32(region, &object->pending_length, 0);
        mqx_catalog_store32(region, &object->changer, 0);
        if (mqx_load_relaxed(&object->state) == MQX_OBJ_LOGGED) {
            mqx_catalog_store32(region, &object->state, MQX_OBJ_ACTIVE);
        } /* a temporary queue may have been deleted since, and stays so */
    }
    mqx_catalog_commit_and_drop(region);
    return mqx_catalog_free_unreferenced(region, context);
}

/* May the definition replace the one of an idle object? Catalog lock held. 2043 2068 2085 2042
 * 2055, MQE_CHANGED. */
static int check_alter(struct mqx_region *region, uint32_t slot, const struct mqx_object *object,
                       const struct mqx_definition *def, const struct mqx_values *values,
                       uint64_t definition_version)
{
    struct mqx_attrs attrs;
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    if (memcmp(object->name, def->name.name, sizeof object->name) != 0 ||
        object->type != def->name.type || object->name_space != def->name.name_space) {
        return mqx_fail(MQRC_OBJECT_TYPE_ERROR,
                        "the object in slot %u is \"%.48s\" of type %u; name and type stay", slot,
                        object->name, object->type);
    }
    int status = mqx_attrs_read(region, object->attrs, object->attrs_length, &attrs);
    if (status != MQX_OK) {
        return status;
    }
    if (definition_version != 0 && attrs.definition_version != definition_version) {
        return mqx_fail(MQE_CHANGED, "\"%.48s\" has been altered since its definition was read",
                        object->name);
    }
    if (object->definition_type != mqx_definition_type(def, values)) {
        return mqx_fail(MQRC_SELECTOR_NOT_FOR_TYPE,
                        "attribute 7 (DEFTYPE) of \"%.48s\" is %u and cannot be altered",
                        object->name, object->definition_type);
    }
    return mqx_cf_structure_check_alter(region, slot, values);
}

/* The list that the context names becomes the object's pending list. */
static int begin_alter(struct mqx_store *store, uint32_t context, uint32_t slot,
                       uint32_t generation, const struct mqx_definition *def,
                       const struct mqx_values *values, uint64_t definition_version)
{
    struct mqx_region *region = &store->region;
    struct mqx_context *owner = mqx_context(region, context);
    struct mqx_object *object = NULL;
    MQX_ASSERT(owner != NULL);
    MQX_ASSERT(owner->unreferenced_attrs != 0);
    int status = mqx_catalog_take_idle(store, slot, generation, &object);
    if (status != MQX_OK) {
        return status;
    }
    status = check_alter(region, slot, object, def, values, definition_version);
    if (status == MQX_OK) {
        set_pending_reference(owner, slot, generation);
        mqx_catalog_store32(region, &object->pending_attrs, owner->unreferenced_attrs);
        mqx_catalog_store32(region, &object->pending_length, owner->unreferenced_length);
        mqx_catalog_store32(region, &owner->unreferenced_attrs, 0);
        mqx_catalog_store32(region, &object->changer, context);
    }
    mqx_catalog_commit_and_drop(region);
    return status;
}

int mqx_catalog_alter(struct mqx_store *store, uint32_t context, uint32_t slot, uint32_t generation,
                      const struct mqx_definition *def, uint64_t definition_version, uint32_t flags)
{
    struct mqx_region *region = &store->region;
    struct mqx_values values;
    uint32_t cell = 0;
    uint64_t end_lsn = 0;
    struct mqx_context *owner = NULL;
    int status = open_context(region, context, &owner);
    if (status == MQX_OK && owner->unreferenced_attrs != 0) {
        status = mqx_region_damage(region, "an attribute list that no object names", context);
    }
    if (status == MQX_OK) {
        status = mqx_definition_check(def, &values);
    }
    if (status == MQX_OK) {
        owner->unreferenced_length = def->attrs_length;
        status = mqx_attrs_store(store, def, &owner->unreferenced_attrs, &cell);
    }
    if (status != MQX_OK) {
        return status;
    }
    status = begin_alter(store, context, slot, generation, def, &values, definition_version);
    if (status != MQX_OK) {
        mqx_ignore(
            mqx_catalog_free_unreferenced(region, context)); /* fails only in a stopped region */
        return status;
    }
    const bool journalled = !mqx_object_is_temporary(mqx_object(region, slot));
    status = journalled ? append_object(store, slot, generation, def, &end_lsn) : MQX_OK;
    if (status != MQX_OK) {
        mqx_ignore(end_alter(region, context, slot, NULL, 0)); /* fails only in a stopped region */
    } else {
        status = journalled ? mqx_flush_decided(store, end_lsn) : MQX_OK;
        if (status == MQX_OK) {
            status = end_alter(region, context, slot, &values, flags);
        }
    }
    if (mqx_region_stopped(region) == MQX_RUNNING) {
        clear_pending_reference(owner);
        status = status == MQX_OK ? mqx_catalog_finish(store, slot) : status;
    }
    return status;
}

/* ---- the failure of a structure ---- */

int mqx_catalog_fail(struct mqx_store *store, uint32_t context, uint32_t slot, uint32_t generation)
{
    struct mqx_region *region = &store->region;
    struct mqx_lock *lock = &region->header->catalog_lock;
    struct mqx_object *object = NULL;
    struct mqx_context *owner = NULL;
    int status = open_context(region, context, &owner);
    if (status == MQX_OK) {
        status = mqx_catalog_take_idle(store, slot, generation, &object);
    }
    if (status != MQX_OK) {
        return status;
    }
    if (object->name_space != MQX_NAMES_STRUCTURE) {
        status = mqx_fail(MQRC_OBJECT_TYPE_ERROR, "\"%.48s\" is no structure", object->name);
    } else {
        set_pending_reference(owner, slot, generation);
        mqx_catalog_store32(region, &object->changer, context);
        mqx_undo_store8(region->base, lock, &object->failing, 1);
    }
    mqx_catalog_commit_and_drop(region);
    return status;
}

static int end_failure(struct mqx_region *region, uint32_t context, uint32_t slot)
{
    struct mqx_object *object = mqx_object(region, slot);
    if (object == NULL) {
        return mqx_region_damage(region, "the slot of a structure", slot);
    }
    const int status = mqx_catalog_take_lock(region);
    if (status == MQX_OK) {
        if (object->changer == context) {
            mqx_undo_store8(region->base, &region->header->catalog_lock, &object->failing, 0);
            mqx_catalog_store32(region, &object->changer, 0);
        }
        mqx_catalog_commit_and_drop(region);
    }
    return status;
}

int mqx_catalog_restore(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    struct mqx_context *owner = mqx_context(&store->region, context);
    MQX_ASSERT(owner != NULL);
    MQX_ASSERT(slot != 0);
    const int status = end_failure(&store->region, context, slot);
    if (status == MQX_OK) {
        clear_pending_reference(owner);
    }
    return status;
}

/* ---- repair: what a dead process had pending ---- */

/* An alter whose process is dead: no other context changes the object. Whether it was to raise the
 * resolution version is not known any more, so it is raised. */
static int repair_alter(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    struct mqx_region *region = &store->region;
    const struct mqx_object *object = mqx_object(region, slot);
    struct ps_object_name name = {.name_space = object->name_space, .type = object->type};
    struct mqx_attrs attrs;
    struct mqx_values values;
    MQX_ASSERT(object != NULL);
    memcpy(name.name, object->name, sizeof name.name);
    if (mqx_load_relaxed(&object->state) != MQX_OBJ_LOGGED) {
        return end_alter(region, context, slot, NULL, 0);
    }
    int status = mqx_attrs_read(region, object->pending_attrs, object->pending_length, &attrs);
    name.instance = attrs.instance;
    if (status == MQX_OK && mqx_attrs_sum(&name, attrs.list, attrs.length) != attrs.sum) {
        status = mqx_region_damage(region, "a definition, its sum", attrs.sum);
    }
    if (status == MQX_OK) {
        status = mqx_definition_read_values(&name, attrs.list, attrs.length, &values);
    }
    if (status == MQX_OK) {
        status = mqx_catalog_flush(store);
    }
    return status == MQX_OK ? end_alter(region, context, slot, &values, MQE_ALTER_RESOLUTION)
                            : status;
}

/* The object is in that life of its slot that the pending reference names. */
static int repair_object(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    struct mqx_region *region = &store->region;
    const struct mqx_object *object = mqx_object(region, slot);
    MQX_ASSERT(object != NULL);
    const bool owned = object->changer == context;
    const bool altered = owned && object->pending_attrs != 0;
    switch (mqx_load_relaxed(&object->state)) {
    case MQX_OBJ_DEFINING: return undo_define(region, slot, object->generation);
    case MQX_OBJ_ACTIVE:
    case MQX_OBJ_LOGGED:
        return altered ? repair_alter(store, context, slot)
               : owned ? end_failure(region, context, slot)
                       : MQX_OK;
    case MQX_OBJ_DELETING: return altered ? end_alter(region, context, slot, NULL, 0) : MQX_OK;
    default: return MQX_OK;
    }
}

int mqx_catalog_repair(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    struct mqx_context *owner = mqx_context(&store->region, context);
    const struct mqx_object *object = mqx_object(&store->region, slot);
    int status = MQX_OK;
    if (owner == NULL) {
        return mqx_region_damage(&store->region, "the context of a dead process", context);
    }
    if (object != NULL && (owner->pending_object == MQX_ANY_GENERATION ||
                           object->generation == owner->pending_object)) {
        status = repair_object(store, context, slot);
    }
    if (status == MQX_OK) {
        clear_pending_reference(owner);
    }
    return status;
}
