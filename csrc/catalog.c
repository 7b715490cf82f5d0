/*
 * catalog.c - defining, altering and deleting objects: the chains of catalog.h.
 *
 * Locks: none may be held by the caller. The catalog lock is held for single steps; a delete takes
 * stripe and slots lock inside it. Appending to the journal and flushing happen with no lock held.
 */
#include "catalog.h"

#include "arena.h"
#include "catalog_names.h"
#include "error.h"
#include "notify.h"
#include "queue.h"
#include "surroundings.h"
#include "yield.h"

#include <string.h>

enum {
    CHANGE_ATTEMPTS = 5000,   /* looks at an object that another context is changing, 1 ms apart */
    CLEAR_ATTEMPTS = 1000,    /* passes over a deleted queue that freed no message, 1 ms apart */
    PAUSE_US = 1000,
};

/* ---- small steps ---- */

static int take_lock(struct mqx_region *region)
{
    return mqx_lock_take(region, &region->header->catalog_lock);
}

static void commit_and_drop(struct mqx_region *region)
{
    mqx_tx_commit(&region->header->catalog_lock);
    mqx_lock_drop(region, &region->header->catalog_lock);
}

static void set_hand(struct mqx_context *context, uint32_t slot, uint32_t generation)
{
    mqx_check(context != NULL);
    mqx_check(context->hand_kind == MQX_HAND_NONE);
    context->hand = slot;
    context->hand_object = generation;
    mqx_order();
    mqx_store_release(&context->hand_kind, (uint32_t)MQX_HAND_OBJECT);
}

static void clear_hand(struct mqx_context *context)
{
    mqx_check(context != NULL);
    mqx_store_release(&context->hand_kind, (uint32_t)MQX_HAND_NONE);
    mqx_order();
    context->hand = 0;
    context->hand_object = 0;
}

static int gone(uint32_t slot)
{
    return mqx_fail(MQRC_UNKNOWN_OBJECT_NAME, "the object in slot %u has been deleted", slot);
}

/* Everything that is in the ring by now is made durable. */
static int flush_all(struct mqx_store *store)
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

/* The object leaves the catalog for good: name, slot, cells. For one that is DEFINING without owner
 * or DELETING; nothing happens when that life of the slot is over. */
static int remove_object(struct mqx_region *region, uint32_t slot, uint32_t generation)
{
    struct mqx_object *object = mqx_object(region, slot);
    int status = take_lock(region);
    if (status != MQX_OK) {
        return status;
    }
    if (object->generation == generation && mqx_load_relaxed(&object->state) != MQX_OBJ_FREE) {
        status = mqx_names_unlink(region, slot);
        mqx_tx_commit(&region->header->catalog_lock);
        if (status == MQX_OK) {
            status = mqx_attrs_free(region, object->attrs, object->attrs_length, &object->attrs);
        }
        if (status == MQX_OK) {
            mqx_store_relaxed(&object->changer, 0u); /* dead here: finish() or the hand */
            status = mqx_slot_give(region, MQX_AREA_OBJECTS, slot);
        }
    }
    commit_and_drop(region);
    return status;
}

int mqx_catalog_free_loose(struct mqx_region *region, uint32_t slot)
{
    struct mqx_context *context = mqx_context(region, slot);
    mqx_check(context != NULL);
    return mqx_attrs_free(region, context->loose_cell, context->loose_length, &context->loose_cell);
}

/* ---- define ---- */

/* Links the name, unless it is taken: 2100; MQX_BUSY when that object is being deleted. */
static int link_name(struct mqx_region *region, uint32_t slot, const struct mqx_definition *def)
{
    uint32_t other = 0;
    int status = take_lock(region);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_names_look_up(region, &def->name, &other);
    if (status == MQX_OK && other != 0) {
        const uint32_t state = mqx_load_relaxed(&mqx_object(region, other)->state);
        status = state == MQX_OBJ_DELETING
                     ? MQX_BUSY
                     : mqx_fail(MQRC_OBJECT_ALREADY_EXISTS, "\"%.48s\" exists already",
                                def->name.name);
    }
    if (status == MQX_OK) {
        mqx_names_link(region, slot);
    }
    commit_and_drop(region);
    return status;
}

static int link_when_free(struct mqx_region *region, uint32_t slot,
                          const struct mqx_definition *def)
{
    int status = link_name(region, slot, def);
    for (int i = 0; i < CHANGE_ATTEMPTS && status == MQX_BUSY; i++) {
        mqx_about_to_block();
        mqx_sleep_us(PAUSE_US);
        status = link_name(region, slot, def);
    }
    return status == MQX_BUSY ? mqx_fail(MQRC_OBJECT_IN_USE, "\"%.48s\" is still being deleted",
                                         def->name.name)
                              : status;
}

/* FREE -> LOGGED. On failure the slot is free again. */
static int log_definition(struct mqx_store *store, uint32_t context,
                          const struct mqx_definition *def, uint32_t *out_slot,
                          uint32_t *out_generation, uint64_t *out_end_lsn)
{
    struct mqx_region *region = &store->region;
    struct mqx_context *owner = mqx_context(region, context);
    struct mqx_values values;
    uint32_t slot = 0, cell = 0;
    mqx_check(owner != NULL);
    int status = mqx_definition_check(def, &values);
    if (status != MQX_OK) {
        return status;
    }
    set_hand(owner, 0, MQX_ANY_GENERATION);
    status = mqx_slot_take(region, MQX_AREA_OBJECTS, &owner->hand, &slot);
    if (status != MQX_OK) {
        clear_hand(owner);
        return status;
    }
    struct mqx_object *object = mqx_object(region, slot);
    if (object->generation == 0) {
        mqx_store_release(&object->generation, 1u); /* 0 means "never seen" to recovery */
    }
    mqx_store_release(&owner->hand_object, object->generation);
    object->attrs_length = def->attrs_length;
    status = mqx_attrs_store(store, def, &object->attrs, &cell);
    if (status == MQX_OK) {
        mqx_object_fill(object, def, cell, &values);
        status = link_when_free(region, slot, def);
    }
    if (status == MQX_OK) {
        status = append_object(store, slot, object->generation, def, out_end_lsn);
    }
    if (status != MQX_OK) { /* if it cannot be removed the region has stopped */
        mqx_ignore(remove_object(region, slot, object->generation));
        clear_hand(owner);
        return status;
    }
    *out_slot = slot;
    *out_generation = object->generation;
    clear_hand(owner); /* from LOGGED on anybody finishes it */
    return MQX_OK;
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
            mqx_cat32(region, &object->state, MQX_OBJ_ACTIVE);
        }
        commit_and_drop(region);
    }
    return status;
}

int mqx_catalog_define_many(struct mqx_store *store, uint32_t context,
                            const struct mqx_definition *defs, uint32_t count, uint32_t *out_slots,
                            uint32_t *out_generations, uint32_t *out_done)
{
    uint64_t end_lsn = 0;
    uint32_t logged = 0;
    int failure = MQX_OK;
    *out_done = 0;
    while (logged < count && failure == MQX_OK) {
        uint64_t lsn = 0;
        failure = log_definition(store, context, &defs[logged], &out_slots[logged],
                                 &out_generations[logged], &lsn);
        if (failure == MQX_OK) {
            logged += 1;
            end_lsn = lsn;
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

/* ---- waiting for an object that can be changed ---- */

/* Takes the catalog lock with the object ACTIVE and nobody changing it. */
static int take_idle(struct mqx_store *store, uint32_t slot, uint32_t generation,
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
            commit_and_drop(region);
            return gone(slot);
        }
        if (state == MQX_OBJ_ACTIVE && object->changer == 0) {
            *out = object;
            return MQX_OK;
        }
        commit_and_drop(region);
        status = mqx_catalog_settle(store, slot);
        if (status != MQX_OK) {
            return status;
        }
        mqx_about_to_block();
        mqx_sleep_us(PAUSE_US);
    }
    return object == NULL ? gone(slot)
                          : mqx_fail(MQRC_OBJECT_IN_USE,
                                     "another change of the object in slot %u does not end", slot);
}

/* ---- alter ---- */

/* ACTIVE or LOGGED with a pending list -> ACTIVE, the list in force with these values, or dropped
 * (NULL). The stamp of resolution rises in the same micro-transaction as the values change. */
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
        mqx_cat32(region, &owner->loose_cell,
                  values != NULL ? object->attrs : object->pending_attrs);
        mqx_cat32(region, &owner->loose_length,
                  values != NULL ? object->attrs_length : object->pending_length);
        if (values != NULL) {
            mqx_object_set_values(region, object, values);
            mqx_cat32(region, &object->attrs, object->pending_attrs);
            mqx_cat32(region, &object->attrs_length, object->pending_length);
            if ((flags & MQE_ALTER_RESOLUTION) != 0) {
                mqx_cat32(region, &object->resolution, object->resolution + 1);
            }
        }
        mqx_cat32(region, &object->pending_attrs, 0);
        mqx_cat32(region, &object->pending_length, 0);
        mqx_cat32(region, &object->changer, 0);
        mqx_cat32(region, &object->state, MQX_OBJ_ACTIVE);
    }
    commit_and_drop(region);
    return mqx_catalog_free_loose(region, context);
}

static int set_pending(struct mqx_store *store, uint32_t context, uint32_t slot,
                       uint32_t generation, const struct mqx_definition *def, uint64_t stamp)
{
    struct mqx_region *region = &store->region;
    struct mqx_context *owner = mqx_context(region, context);
    struct mqx_object *object = NULL;
    int status = take_idle(store, slot, generation, &object);
    if (status != MQX_OK) {
        return status;
    }
    if (memcmp(object->name, def->name.name, sizeof object->name) != 0 ||
        object->type != def->name.type || object->name_space != def->name.name_space) {
        status = mqx_fail(MQRC_OBJECT_TYPE_ERROR,
                          "the object in slot %u is \"%.48s\" of type %u; name and type stay", slot,
                          object->name, object->type);
    } else if (stamp != 0 && mqx_attrs_stamp(region, object) != stamp) {
        status = mqx_fail(MQE_CHANGED, "\"%.48s\" has been altered meanwhile", object->name);
    } else {
        set_hand(owner, slot, generation);
        mqx_cat32(region, &object->pending_attrs, owner->loose_cell);
        mqx_cat32(region, &object->pending_length, owner->loose_length);
        mqx_cat32(region, &owner->loose_cell, 0);
        mqx_cat32(region, &object->changer, context);
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
    mqx_check(owner != NULL && owner->loose_cell == 0);
    int status = mqx_definition_check(def, &values);
    if (status == MQX_OK) {
        owner->loose_length = def->attrs_length;
        status = mqx_attrs_store(store, def, &owner->loose_cell, &cell);
    }
    if (status != MQX_OK) {
        return status;
    }
    status = set_pending(store, context, slot, generation, def, stamp);
    if (status != MQX_OK) {
        mqx_ignore(mqx_catalog_free_loose(region, context)); /* fails only in a stopped region */
        return status;
    }
    status = append_object(store, slot, generation, def, &end_lsn);
    if (status != MQX_OK) {
        mqx_ignore(end_alter(region, context, slot, NULL, 0)); /* fails only in a stopped region */
    } else {
        status = mqx_flush_to(store, end_lsn);
        if (status == MQX_OK) {
            status = end_alter(region, context, slot, &values, flags);
        }
    }
    if (mqx_region_stopped(region) == MQX_RUNNING) {
        clear_hand(mqx_context(region, context));
    }
    return status;
}

/* ---- delete ---- */

/* Nobody has it open, nobody's unit holds a message of it, it is empty or may be purged: then
 * nobody can use it from here on. Catalog lock held; stripe and slots lock are taken inside. */
static int close_for_delete(struct mqx_region *region, uint32_t context, uint32_t slot, bool purge)
{
    struct mqx_object *object = mqx_object(region, slot);
    struct mqx_hold hold;
    int status = mqx_hold_take(region, slot, &hold);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, &region->header->slots_lock);
    if (status != MQX_OK) {
        mqx_hold_drop(&hold);
        return status;
    }
    const uint32_t handles = object->open_input + object->open_output + object->open_other;
    const uint32_t held = object->got + object->uncommitted;
    if (handles > 0) {
        status = mqx_fail(MQRC_OBJECT_IN_USE, "\"%.48s\" is open %u times", object->name, handles);
    } else if (held > 0 || (object->present > 0 && !purge)) {
        status = mqx_fail(MQRC_Q_NOT_EMPTY,
                          "\"%.48s\" holds %u messages, %u of them in units of work", object->name,
                          object->present, held);
    } else {
        set_hand(mqx_context(region, context), slot, object->generation);
        mqx_cat32(region, &object->changer, context);
        mqx_cat32(region, &object->state, MQX_OBJ_DEFINING);
        mqx_tx_commit(&region->header->catalog_lock);
    }
    mqx_lock_drop(region, &region->header->slots_lock);
    mqx_hold_drop(&hold);
    return status;
}

/* The delete that `context` began did not come into the ring. */
static int reopen(struct mqx_region *region, uint32_t context, uint32_t slot)
{
    struct mqx_object *object = mqx_object(region, slot);
    int status = take_lock(region);
    if (status == MQX_OK) {
        if (mqx_load_relaxed(&object->state) == MQX_OBJ_DEFINING && object->changer == context) {
            mqx_cat32(region, &object->state, MQX_OBJ_ACTIVE);
            mqx_cat32(region, &object->changer, 0);
        }
        commit_and_drop(region);
    }
    return status;
}

static int append_delete(struct mqx_store *store, uint32_t slot, uint32_t generation,
                         uint64_t *out_end_lsn)
{
    const struct mqx_record_head head = {
        .type = PS_REC_OBJECT_DELETE, .object = slot, .object_gen = generation};
    unsigned char *record = mqx_scratch(sizeof(struct psj_record));
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a record");
    }
    struct mqx_append append = {
        .record = record,
        .length = mqx_encode_plain(record, &head),
        .object = slot,
        .object_state = MQX_OBJ_DELETING,
    };
    const int status = mqx_journal_append(store, &append);
    *out_end_lsn = append.end_lsn;
    return status;
}

/* Frees every message, then lookups and heap; MQX_BUSY when some are pinned by somebody who does
 * not let go. */
static int free_messages(struct mqx_store *store, uint32_t slot, uint32_t generation)
{
    const struct mqx_object *object = mqx_object(&store->region, slot);
    uint32_t present = object->present;
    bool done = false;
    int status = MQX_OK;
    for (int idle = 0; status == MQX_OK && !done && idle < CLEAR_ATTEMPTS;) {
        status = mqx_queue_clear_step(store, slot, generation, &done);
        if (!done && object->present == present) {
            idle += 1;
            mqx_sleep_us(PAUSE_US);
        }
        present = object->present;
    }
    return status == MQX_OK && !done ? MQX_BUSY : status;
}

/* The object stays DELETING, for mqx_catalog_finish(). */
static int abandon(struct mqx_region *region, uint32_t slot)
{
    const int status = take_lock(region);
    if (status == MQX_OK) {
        mqx_cat32(region, &mqx_object(region, slot)->changer, 0);
        commit_and_drop(region);
    }
    return status;
}

/* DELETING and durable -> FREE. Only by its owner, by the sweep when that is dead, or by
 * mqx_catalog_finish() when it gave up because of pinned messages; each may be continued by the
 * next. */
static int finish_delete(struct mqx_store *store, uint32_t slot, uint32_t generation)
{
    int status = mqx_notify_cancel_all(store, slot);
    if (status == MQX_OK) {
        status = free_messages(store, slot, generation);
    }
    if (status == MQX_OK) {
        status = remove_object(&store->region, slot, generation);
    }
    return status == MQX_BUSY ? abandon(&store->region, slot) : status;
}

int mqx_catalog_delete(struct mqx_store *store, uint32_t context, uint32_t slot,
                       uint32_t generation, bool purge)
{
    struct mqx_region *region = &store->region;
    struct mqx_object *object = NULL;
    uint64_t end_lsn = 0;
    mqx_check(mqx_context(region, context) != NULL);
    int status = take_idle(store, slot, generation, &object);
    if (status != MQX_OK) {
        return status;
    }
    status = close_for_delete(region, context, slot, purge);
    mqx_lock_drop(region, &region->header->catalog_lock);
    if (status != MQX_OK) {
        return status;
    }
    status = append_delete(store, slot, generation, &end_lsn);
    if (status != MQX_OK) {
        mqx_ignore(reopen(region, context, slot)); /* fails only in a stopped region */
    } else {
        status = mqx_flush_to(store, end_lsn);
        if (status == MQX_OK) {
            status = finish_delete(store, slot, generation);
        }
    }
    if (mqx_region_stopped(region) == MQX_RUNNING) {
        clear_hand(mqx_context(region, context));
    }
    return status;
}

/* ---- finishing what others left ---- */

int mqx_catalog_settle(struct mqx_store *store, uint32_t slot)
{
    struct mqx_object *object = mqx_object(&store->region, slot);
    if (object == NULL) {
        return gone(slot);
    }
    const uint32_t generation = mqx_load_acquire(&object->generation);
    if (mqx_load_acquire(&object->state) != MQX_OBJ_LOGGED ||
        mqx_load_relaxed(&object->pending_attrs) != 0) {
        return MQX_OK;
    }
    const int status = flush_all(store);
    return status == MQX_OK ? activate(&store->region, slot, generation) : status;
}

int mqx_catalog_finish(struct mqx_store *store, uint32_t slot)
{
    struct mqx_object *object = mqx_object(&store->region, slot);
    if (object == NULL) {
        return MQX_OK;
    }
    const uint32_t generation = mqx_load_acquire(&object->generation);
    if (mqx_load_acquire(&object->state) != MQX_OBJ_DELETING ||
        mqx_load_acquire(&object->changer) != 0) {
        return MQX_OK;
    }
    const int status = flush_all(store);
    return status == MQX_OK ? finish_delete(store, slot, generation) : status;
}

/* An alter of a dead owner: nobody else changes the object. Whether it wanted the stamp of
 * resolution raised died with it. */
static int repair_alter(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    struct mqx_region *region = &store->region;
    const struct mqx_object *object = mqx_object(region, slot);
    struct mqx_values values;
    if (mqx_load_relaxed(&object->state) != MQX_OBJ_LOGGED) {
        return end_alter(region, context, slot, NULL, 0);
    }
    const void *list = mqx_cells(region, object->pending_attrs);
    int status = list == NULL
                     ? mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE, "object slot %u is damaged", slot)
                     : mqx_attributes_read(list, object->pending_length, &values);
    if (status == MQX_OK) {
        status = flush_all(store);
    }
    return status == MQX_OK ? end_alter(region, context, slot, &values, MQE_ALTER_RESOLUTION)
                            : status;
}

/* The object is in that life of its slot of which the hand speaks. */
static int repair_object(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    struct mqx_object *object = mqx_object(&store->region, slot);
    const bool owned = object->changer == context;
    int status = MQX_OK;
    switch (mqx_load_relaxed(&object->state)) {
    case MQX_OBJ_DEFINING:
        if (owned) {
            status = reopen(&store->region, context, slot);
        } else if (object->changer == 0) {
            status = remove_object(&store->region, slot, object->generation);
        }
        break;
    case MQX_OBJ_ACTIVE:
    case MQX_OBJ_LOGGED:
        if (owned && object->pending_attrs != 0) {
            status = repair_alter(store, context, slot);
        }
        break;
    case MQX_OBJ_DELETING:
        if (owned || object->changer == 0) {
            status = flush_all(store);
            status = status == MQX_OK ? finish_delete(store, slot, object->generation) : status;
        }
        break;
    default: break;
    }
    return status;
}

int mqx_catalog_repair(struct mqx_store *store, uint32_t context, uint32_t slot)
{
    struct mqx_context *owner = mqx_context(&store->region, context);
    const struct mqx_object *object = mqx_object(&store->region, slot);
    int status = MQX_OK;
    mqx_check(owner != NULL);
    if (object != NULL && (owner->hand_object == MQX_ANY_GENERATION ||
                           object->generation == owner->hand_object)) {
        status = repair_object(store, context, slot);
    }
    if (status == MQX_OK) {
        clear_hand(owner);
    }
    return status;
}
