/*
 * catalog.c - defining and altering objects: the chains of catalog.h. Deleting: catalog_delete.c.
 *
 * Locks: none may be held by the caller. The catalog lock is held for single steps. Appending to
 * the journal and flushing happen with no lock held.
 */
#include "catalog/catalog.h"

#include "base/clock.h"
#include "base/error.h"
#include "catalog/catalog_names.h"
#include "catalog/cf_structure.h"
#include "os/block_hook.h"
#include "os/host_info.h"
#include "region/arena.h"

#include <string.h>

enum {
    CHANGE_ATTEMPTS = 5000,   /* looks at an object that another context is changing, 1 ms apart */
    PAUSE_US = 1000,
};

/* ---- small steps ---- */

static int take_lock(struct mqx_region *region)
{
    return mqx_lock_take(region, &region->header->catalog_lock);
}

static void commit_and_drop(struct mqx_region *region)
{
    mqx_undo_commit(&region->header->catalog_lock);
    mqx_lock_drop(region, &region->header->catalog_lock);
}

static void set_hand(struct mqx_context *context, uint32_t slot, uint32_t generation)
{
    mqx_check(context != NULL);
    mqx_check(context->pending_kind == MQX_PENDING_NONE);
    context->pending_ref = slot;
    context->pending_object = generation;
    mqx_order();
    mqx_store_release(&context->pending_kind, (uint32_t)MQX_PENDING_OBJECT);
}

static void clear_hand(struct mqx_context *context)
{
    mqx_check(context != NULL);
    mqx_store_release(&context->pending_kind, (uint32_t)MQX_PENDING_NONE);
    mqx_order();
    context->pending_ref = 0;
    context->pending_object = 0;
}

int mqx_catalog_gone(uint32_t slot)
{
    return mqx_fail(MQRC_UNKNOWN_OBJECT_NAME, "the object in slot %u has been deleted", slot);
}

int mqx_catalog_deleted(uint32_t slot)
{
    return mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", slot);
}

/* Everything that is in the ring by now is made durable. */
int mqx_catalog_flush(struct mqx_store *store)
{
    struct mqx_journal *journal = store->region.journal;
    int status = mqx_lock_take(&store->region, &journal->ring_lock);
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t end = journal->batch_records != 0 ? journal->tail : journal->batch_start;
    mqx_lock_drop(&store->region, &journal->ring_lock);
    return mqx_flush_to(store, end);
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
    struct mqx_append append = {
        .record = record,
        .length = mqx_encode_object(record, &head, &def->name, def->attrs, def->attrs_length),
        .flags = MQX_APPEND_PUT,
        .object = slot,
        .object_state = MQX_OBJ_LOGGED,
    };
    const int status = mqx_journal_append(store, &append);
    *out_end_lsn = append.end_lsn;
    return status;
}

/* One that never came into the ring leaves the catalog again; nothing happens when that life of the
 * slot is over. */
static int remove_object(struct mqx_region *region, uint32_t slot, uint32_t generation)
{
    struct mqx_object *object = mqx_object(region, slot);
    int status = take_lock(region);
    if (status != MQX_OK) {
        return status;
    }
    if (object->generation == generation && mqx_load_relaxed(&object->state) != MQX_OBJ_FREE) {
        status = mqx_catalog_give_slot(region, slot);
    }
    commit_and_drop(region);
    return status;
}

int mqx_catalog_free_unreferenced(struct mqx_region *region, uint32_t slot)
{
    struct mqx_context *context = mqx_context(region, slot);
    mqx_check(context != NULL);
    return mqx_attrs_free(region, context->unreferenced_attrs, context->unreferenced_length,
                          &context->unreferenced_attrs);
}

/* ---- define ---- */

/* Links the name, unless it is taken: 2100; MQX_BUSY when a deleted object still has it. A
 * temporary queue is ACTIVE with it. */
static int link_name(struct mqx_region *region, uint32_t slot, const struct mqx_definition *def,
                     const struct mqx_values *values, uint32_t *out_other)
{
    struct mqx_object *object = mqx_object(region, slot);
    uint32_t structure = 0;
    int status = take_lock(region);
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
        mqx_names_link(region, slot);
        if (mqx_object_is_temporary(object)) {
            mqx_catalog_store32(region, &object->state, MQX_OBJ_ACTIVE);
        }
    }
    commit_and_drop(region);
    return status;
}

/* A deleted object has its name until it is physically deleted on z/OS alone; perhaps it only needs
 * somebody to do that. */
static int link_when_free(struct mqx_store *store, uint32_t slot, const struct mqx_definition *def,
                          const struct mqx_values *values)
{
    uint32_t other = 0;
    int status = link_name(&store->region, slot, def, values, &other);
    if (status == MQX_BUSY) {
        status = mqx_catalog_finish(store, other);
        status = status == MQX_OK ? link_name(&store->region, slot, def, values, &other) : status;
    }
    return status == MQX_BUSY
               ? mqx_fail(MQRC_NAME_IN_USE,
                          "\"%.48s\" is the name of a deleted queue that is still open or in use",
                          def->name.name)
               : status;
}

/* Cells, values; the slot is in the hand and nobody else sees it. */
static int furnish(struct mqx_store *store, uint32_t slot, const struct mqx_definition *def,
                   const struct mqx_values *values, const struct mqx_define_hook *birth)
{
    struct mqx_object *object = mqx_object(&store->region, slot);
    uint32_t cell = 0;
    if (object->generation == 0) {
        mqx_store_release(&object->generation, 1u); /* 0 means "never seen" to recovery */
    }
    object->attrs_length = def->attrs_length;
    int status = mqx_attrs_store(store, def, &object->attrs, &cell);
    if (status == MQX_OK) {
        mqx_object_fill(object, def, cell, values);
        object->creator = birth != NULL && mqx_object_is_temporary(object) ? birth->handle : 0;
    }
    return status;
}

/* FREE -> LOGGED, or ACTIVE when it is temporary. On failure the slot is free again. */
static int bring_in(struct mqx_store *store, uint32_t context, const struct mqx_definition *def,
                    const struct mqx_define_hook *birth, struct mqx_defined_object *out)
{
    struct mqx_region *region = &store->region;
    struct mqx_context *owner = mqx_context(region, context);
    struct mqx_values values;
    mqx_check(owner != NULL);
    *out = (struct mqx_defined_object){.slot = 0};
    int status = mqx_definition_check(def, &values);
    if (status == MQX_OK) {
        status = mqx_definition_fits(def, &values, birth != NULL);
    }
    if (status != MQX_OK) {
        return status;
    }
    set_hand(owner, 0, MQX_ANY_GENERATION);
    status = mqx_slot_take(region, MQX_AREA_OBJECTS, &owner->pending_ref, &out->slot);
    if (status != MQX_OK) {
        clear_hand(owner);
        return status;
    }
    const struct mqx_object *object = mqx_object(region, out->slot);
    status = furnish(store, out->slot, def, &values, birth);
    out->generation = object->generation;
    mqx_store_release(&owner->pending_object, out->generation);
    if (status == MQX_OK && birth != NULL) {
        status = birth->attend(birth->arg, out->slot, out->generation);
    }
    if (status == MQX_OK) {
        status = link_when_free(store, out->slot, def, &values);
    }
    if (status == MQX_OK && !mqx_object_is_temporary(object)) {
        status = append_object(store, out->slot, out->generation, def, &out->end_lsn);
    }
    if (status != MQX_OK) { /* if it cannot be removed the region has stopped */
        mqx_ignore(remove_object(region, out->slot, out->generation));
    }
    clear_hand(owner); /* from LOGGED on anybody finishes it */
    return status;
}

/* LOGGED and durable -> ACTIVE; nothing when somebody did it before. */
static int activate(struct mqx_region *region, uint32_t slot, uint32_t generation)
{
    struct mqx_object *object = mqx_object(region, slot);
    int status = take_lock(region);
    if (status == MQX_OK) {
        if (mqx_load_relaxed(&object->state) == MQX_OBJ_LOGGED &&
            object->generation == generation &&
            object->pending_attrs == 0) {
            mqx_catalog_store32(region, &object->state, MQX_OBJ_ACTIVE);
            mqx_object_in_force(region, object);
        }
        commit_and_drop(region);
    }
    return status;
}

int mqx_catalog_define_many(struct mqx_store *store, uint32_t context,
                            const struct mqx_definition *defs, uint32_t count, uint32_t *out_slots,
                            uint32_t *out_generations, uint32_t *out_done)
{
    struct mqx_defined_object newborn = {.slot = 0};
    uint64_t end_lsn = 0;
    uint32_t logged = 0;
    int failure = MQX_OK;
    *out_done = 0;
    while (logged < count && failure == MQX_OK) {
        failure = bring_in(store, context, &defs[logged], NULL, &newborn);
        if (failure == MQX_OK) {
            out_slots[logged] = newborn.slot;
            out_generations[logged] = newborn.generation;
            logged += 1;
            end_lsn = newborn.end_lsn;
        }
    }
    int status = logged > 0 ? mqx_flush_to(store, end_lsn) : MQX_OK;
    for (uint32_t i = 0; i < logged && status == MQX_OK; i++) {
        status = activate(&store->region, out_slots[i], out_generations[i]);
        *out_done += status == MQX_OK;
    }
    return status != MQX_OK ? status : failure;
}

int mqx_catalog_define(struct mqx_store *store, uint32_t context, const struct mqx_definition *def,
                       uint32_t *out_slot, uint32_t *out_generation)
{
    uint32_t done = 0;
    return mqx_catalog_define_many(store, context, def, 1, out_slot, out_generation, &done);
}

int mqx_catalog_define_open(struct mqx_store *store, uint32_t context,
                            const struct mqx_definition *def, const struct mqx_define_hook *birth,
                            struct mqx_defined_object *out)
{
    int status = bring_in(store, context, def, birth, out);
    if (status != MQX_OK || out->end_lsn == 0) {
        return status;
    }
    status = mqx_flush_to(store, out->end_lsn);
    return status == MQX_OK ? activate(&store->region, out->slot, out->generation) : status;
}

/* ---- waiting for an object that can be changed ---- */

/* Takes the catalog lock with the object ACTIVE and nobody changing it. */
int mqx_catalog_take_idle(struct mqx_store *store, uint32_t slot, uint32_t generation,
                          struct mqx_object **out)
{
    struct mqx_region *region = &store->region;
    struct mqx_object *object = mqx_object(region, slot);
    for (int i = 0; object != NULL && i < CHANGE_ATTEMPTS; i++) {
        int status = take_lock(region);
        if (status != MQX_OK) {
            return status;
        }
        const uint32_t state = mqx_load_relaxed(&object->state);
        if (object->generation != generation || state == MQX_OBJ_FREE ||
            state == MQX_OBJ_DELETING) {
            const bool is_there = object->generation == generation && state != MQX_OBJ_FREE;
            commit_and_drop(region);
            return is_there ? mqx_catalog_deleted(slot) : mqx_catalog_gone(slot);
        }
        if (state == MQX_OBJ_ACTIVE && object->changer == 0) {
            *out = object;
            return MQX_OK;
        }
        commit_and_drop(region);
        status = mqx_catalog_activate(store, slot);
        if (status != MQX_OK) {
            return status;
        }
        mqx_about_to_block();
        mqx_clock_sleep_us(PAUSE_US);
    }
    return object == NULL ? mqx_catalog_gone(slot)
                          : mqx_fail(MQRC_OBJECT_IN_USE,
                                     "another change of the object in slot %u does not end", slot);
}

/* ---- alter ---- */

/* ACTIVE, LOGGED or DELETING with a pending list: the list in force with these values, or dropped
 * (NULL); LOGGED becomes ACTIVE. The stamp of resolution rises in the same micro-transaction as the
 * values change. */
static int end_alter(struct mqx_region *region, uint32_t context, uint32_t slot,
                     const struct mqx_values *values, uint32_t flags)
{
    struct mqx_object *object = mqx_object(region, slot);
    struct mqx_context *owner = mqx_context(region, context);
    int status = take_lock(region);
    if (status != MQX_OK) {
        return status;
    }
    if (object->changer == context && object->pending_attrs != 0) {
        mqx_catalog_store32(region, &owner->unreferenced_attrs,
                            values != NULL ? object->attrs : object->pending_attrs);
        mqx_catalog_store32(region, &owner->unreferenced_length,
                            values != NULL ? object->attrs_length : object->pending_length);
        if (values != NULL) {
            uint32_t structure = 0; /* one that has been deleted meanwhile is none */
            mqx_ignore(mqx_cf_structure_find(region, values, &structure));
            mqx_catalog_store32(region, &object->structure, structure);
            mqx_object_set_values(region, object, values);
            mqx_object_in_force(region, object);
            mqx_catalog_store32(region, &object->attrs, object->pending_attrs);
            mqx_catalog_store32(region, &object->attrs_length, object->pending_length);
            if ((flags & MQE_ALTER_RESOLUTION) != 0) {
                mqx_catalog_store32(region, &object->resolution_version, object->resolution_version + 1);
            }
        }
        mqx_catalog_store32(region, &object->pending_attrs, 0);
        mqx_catalog_store32(region, &object->pending_length, 0);
        mqx_catalog_store32(region, &object->changer, 0);
        if (mqx_load_relaxed(&object->state) == MQX_OBJ_LOGGED) {
            mqx_catalog_store32(region, &object->state, MQX_OBJ_ACTIVE);
        } /* a temporary queue may have been deleted meanwhile, and stays so */
    }
    commit_and_drop(region);
    return mqx_catalog_free_unreferenced(region, context);
}

static int set_pending(struct mqx_store *store, uint32_t context, uint32_t slot,
                       uint32_t generation, const struct mqx_definition *def,
                       const struct mqx_values *values, uint64_t stamp)
{
    struct mqx_region *region = &store->region;
    struct mqx_context *owner = mqx_context(region, context);
    struct mqx_object *object = NULL;
    int status = mqx_catalog_take_idle(store, slot, generation, &object);
    if (status != MQX_OK) {
        return status;
    }
    if (memcmp(object->name, def->name.name, sizeof object->name) != 0 ||
        object->type != def->name.type || object->name_space != def->name.name_space) {
        status = mqx_fail(MQRC_OBJECT_TYPE_ERROR,
                          "the object in slot %u is \"%.48s\" of type %u; name and type stay", slot,
                          object->name, object->type);
    } else if (stamp != 0 && mqx_attrs_version(region, object) != stamp) {
        status = mqx_fail(MQE_CHANGED, "\"%.48s\" has been altered meanwhile", object->name);
    } else if (object->definition_type != mqx_definition_type(def, values)) {
        status = mqx_fail(MQRC_SELECTOR_NOT_FOR_TYPE,
                          "attribute 7 (DEFTYPE) of \"%.48s\" is %u and cannot be altered",
                          object->name, object->definition_type);
    } else {
        status = mqx_cf_structure_may_alter(region, slot, values);
    }
    if (status == MQX_OK) {
        set_hand(owner, slot, generation);
        mqx_catalog_store32(region, &object->pending_attrs, owner->unreferenced_attrs);
        mqx_catalog_store32(region, &object->pending_length, owner->unreferenced_length);
        mqx_catalog_store32(region, &owner->unreferenced_attrs, 0);
        mqx_catalog_store32(region, &object->changer, context);
    }
    commit_and_drop(region);
    return status;
}

int mqx_catalog_alter(struct mqx_store *store, uint32_t context, uint32_t slot, uint32_t generation,
                      const struct mqx_definition *def, uint64_t stamp, uint32_t flags)
{
    struct mqx_region *region = &store->region;
    struct mqx_values values;
    uint32_t cell = 0;
    uint64_t end_lsn = 0;
    struct mqx_context *owner = mqx_context(region, context);
    mqx_check(owner != NULL && owner->unreferenced_attrs == 0);
    int status = mqx_definition_check(def, &values);
    if (status == MQX_OK) {
        owner->unreferenced_length = def->attrs_length;
        status = mqx_attrs_store(store, def, &owner->unreferenced_attrs, &cell);
    }
    if (status != MQX_OK) {
        return status;
    }
    status = set_pending(store, context, slot, generation, def, &values, stamp);
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
        status = journalled ? mqx_flush_to(store, end_lsn) : MQX_OK;
        if (status == MQX_OK) {
            status = end_alter(region, context, slot, &values, flags);
        }
    }
    if (mqx_region_stopped(region) == MQX_RUNNING) {
        clear_hand(mqx_context(region, context));
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
    mqx_check(mqx_context(region, context) != NULL);
    int status = mqx_catalog_take_idle(store, slot, generation, &object);
    if (status != MQX_OK) {
        return status;
    }
    if (object->name_space != MQX_NAMES_STRUCTURE) {
        status = mqx_fail(MQRC_OBJECT_TYPE_ERROR, "\"%.48s\" is no structure", object->name);
    } else {
        set_hand(mqx_context(region, context), slot, generation);
        mqx_catalog_store32(region, &object->changer, context);
        mqx_undo_store8(region->base, lock, &object->failing, 1);
    }
    commit_and_drop(region);
    return status;
}

static int end_failure(struct mqx_region *region, uint32_t context, uint32_t slot)
{
    struct mqx_object *object = mqx_object(region, slot);
    const int status = take_lock(region);
    if (status == MQX_OK) {
        if (object->changer == context) {
            mqx_undo_store8(region->base, &region->header->catalog_lock, &object->failing, 0);
            mqx_catalog_store32(region, &object->changer, 0);
        }
        commit_and_drop(region);
    }
    return status;
}

int mqx_catalog_restore(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    const int status = end_failure(&store->region, context, slot);
    if (status == MQX_OK) {
        clear_hand(mqx_context(&store->region, context));
    }
    return status;
}

/* ---- finishing what others left ---- */

int mqx_catalog_activate(struct mqx_store *store, uint32_t slot)
{
    struct mqx_object *object = mqx_object(&store->region, slot);
    if (object == NULL) {
        return mqx_catalog_gone(slot);
    }
    const uint32_t generation = mqx_load_acquire(&object->generation);
    if (mqx_load_acquire(&object->state) != MQX_OBJ_LOGGED ||
        mqx_load_relaxed(&object->pending_attrs) != 0) {
        return MQX_OK;
    }
    const int status = mqx_catalog_flush(store);
    return status == MQX_OK ? activate(&store->region, slot, generation) : status;
}

/* An alter of a dead owner: nobody else changes the object. Whether it wanted the stamp of
 * resolution raised died with it. */
static int repair_alter(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    struct mqx_region *region = &store->region;
    const struct mqx_object *object = mqx_object(region, slot);
    const struct ps_object_name name = {.name_space = object->name_space, .type = object->type};
    struct mqx_values values;
    if (mqx_load_relaxed(&object->state) != MQX_OBJ_LOGGED) {
        return end_alter(region, context, slot, NULL, 0);
    }
    const void *list = mqx_cells(region, object->pending_attrs);
    int status = list == NULL
                     ? mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE, "object slot %u is damaged", slot)
                     : mqx_definition_read_values(&name, list, object->pending_length, &values);
    if (status == MQX_OK) {
        status = mqx_catalog_flush(store);
    }
    return status == MQX_OK ? end_alter(region, context, slot, &values, MQE_ALTER_RESOLUTION)
                            : status;
}

/* The object is in that life of its slot of which the hand speaks. */
static int repair_object(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    struct mqx_region *region = &store->region;
    const struct mqx_object *object = mqx_object(region, slot);
    const bool owned = object->changer == context;
    const bool altered = owned && object->pending_attrs != 0;
    switch (mqx_load_relaxed(&object->state)) {
    case MQX_OBJ_DEFINING: return remove_object(region, slot, object->generation);
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
    mqx_check(owner != NULL);
    if (object != NULL && (owner->pending_object == MQX_ANY_GENERATION ||
                           object->generation == owner->pending_object)) {
        status = repair_object(store, context, slot);
    }
    if (status == MQX_OK) {
        clear_hand(owner);
    }
    return status;
}
