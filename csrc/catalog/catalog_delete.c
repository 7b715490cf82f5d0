/*
 * catalog_delete.c - see catalog_delete.h.
 */
#include "catalog/catalog_delete.h"

#include "base/assert.h"
#include "base/error.h"
#include "catalog/catalog_steps.h"
#include "catalog/cf_structure.h"
#include "catalog/object_values.h"
#include "journal/group_commit.h"
#include "os/block_hook.h"
#include "queue/priority_index.h"
#include "queue/queue.h"
#include "queue/wait_list.h"
#include "region/arena.h"
#include "region/damage.h"

enum {
    APPEND_ATTEMPTS = 1000000, /* each has made room in the ring or rolled a segment */
    GONE_LOOKS_MAX = MQX_LOCKED_STEPS_MAX, /* messages that are GONE, passed over under the lock */
};

struct deletion { /* what is requested */
    bool closing;       /* by a handle of the queue: others may be open, too */
    bool unconditional; /* temporary, by its creator: whatever it holds */
    bool purge;         /* messages that no unit holds are discarded */
};

/* ---- the decision ---- */

static uint32_t handles_of(const struct mqx_object *object)
{
    MQX_ASSERT(object != NULL);
    return mqx_load_relaxed(&object->open_input) + mqx_load_relaxed(&object->open_output) +
           mqx_load_relaxed(&object->open_other);
}

/* Stripe lock held. A message that is GONE and kept only by a browser's pin does not count. */
static bool holds_messages(const struct mqx_region *region, const struct mqx_object *object)
{
    struct mqx_cursor cursor = {0};
    MQX_ASSERT(object != NULL);
    for (int i = 0; i < GONE_LOOKS_MAX && object->present != 0; i++) {
        const uint32_t slot = mqx_priority_index_next(region, object, &cursor, false);
        const struct mqx_message *message = mqx_message(region, slot);
        if (message == NULL) {
            return false;
        }
        if (message->state != MQX_MSG_GONE) {
            return true;
        }
    }
    return object->present != 0;
}

/* Catalog, stripe and slots lock held: 2042, 2055, or 0. */
static int check_deletable(const struct mqx_region *region, const struct mqx_object *object,
                           const struct deletion *request)
{
    const uint32_t handles = handles_of(object);
    const uint32_t held = object->got + object->uncommitted;
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    if (request->unconditional) {
        return MQX_OK;
    }
    if (!request->closing && handles > 0) {
        return mqx_fail(MQRC_OBJECT_IN_USE, "\"%.48s\" is open %u times", object->name, handles);
    }
    if (held > 0) {
        return mqx_fail(MQRC_Q_NOT_EMPTY, "units of work hold %u messages of \"%.48s\"", held,
                        object->name);
    }
    if (!request->purge && holds_messages(region, object)) {
        return mqx_fail(MQRC_Q_NOT_EMPTY, "\"%.48s\" holds %u messages", object->name,
                        object->present);
    }
    return MQX_OK;
}

/* Catalog lock held. 0: it is deleted. A status of mqx_journal_try_append(): not yet. */
static int delete_if_allowed(struct mqx_store *store, uint32_t slot, const struct deletion *request,
                             struct mqx_append *append)
{
    struct mqx_region *region = &store->region;
    struct mqx_object *object = mqx_object(region, slot);
    struct mqx_stripe_guard guard;
    MQX_ASSERT(object != NULL);
    MQX_ASSERT(mqx_lock_held(region, &region->header->catalog_lock));
    int status = mqx_stripe_guard_take(region, slot, &guard);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, &region->header->slots_lock);
    if (status != MQX_OK) {
        mqx_stripe_guard_drop(&guard);
        return status;
    }
    status = check_deletable(region, object, request);
    if (status == MQX_OK && append != NULL) {
        status = mqx_journal_try_append(store, append);
    } else if (status == MQX_OK) {
        mqx_catalog_store32(region, &object->deleted_generation, object->generation);
        mqx_catalog_store32(region, &object->state, MQX_OBJ_DELETING);
        mqx_undo_commit(&region->header->catalog_lock);
    }
    mqx_lock_drop(region, &region->header->slots_lock);
    mqx_stripe_guard_drop(&guard);
    return status;
}

/* All objects but temporary dynamic queues: record and state in one micro-transaction of the
 * ring. */
static int delete_journalled(struct mqx_store *store, uint32_t slot, uint32_t generation,
                             const struct deletion *request, uint64_t *out_end_lsn)
{
    const struct mqx_record_head head = {
        .type = PS_REC_OBJECT_DELETE, .object = slot, .object_gen = generation};
    _Alignas(8) unsigned char record[2 * sizeof(struct psj_record)];
    struct mqx_append append = {
        .record = record,
        .length = mqx_encode_plain(record, &head),
        .object = slot,
        .object_state = MQX_OBJ_DELETING,
    };
    MQX_ASSERT(append.length <= sizeof record);
    MQX_ASSERT(!request->unconditional);
    for (int i = 0; i < APPEND_ATTEMPTS; i++) {
        struct mqx_object *object = NULL;
        int status = mqx_catalog_take_idle(store, slot, generation, &object);
        if (status == MQX_OK) {
            status = mqx_cf_structure_check_delete(&store->region, slot);
            if (status == MQX_OK) {
                status = delete_if_allowed(store, slot, request, &append);
            }
            mqx_catalog_drop_lock(&store->region);
        }
        if (status == MQX_OK) {
            *out_end_lsn = append.end_lsn;
            return MQX_OK;
        }
        status = mqx_journal_wait_for_room(store, append.length, status);
        if (status != MQX_OK) {
            return status;
        }
    }
    return mqx_fail(MQRC_RESOURCE_PROBLEM, "no place in the journal in %d attempts",
                    APPEND_ATTEMPTS);
}

/* A temporary dynamic queue, by its creator's handle. An alter that is in progress ends as usual.
 * */
static int delete_temporary(struct mqx_store *store, uint32_t slot, uint32_t generation)
{
    static const struct deletion request = {.closing = true, .unconditional = true, .purge = true};
    struct mqx_region *region = &store->region;
    const struct mqx_object *object = mqx_object(region, slot);
    MQX_ASSERT(object != NULL);
    MQX_ASSERT(mqx_object_is_temporary(object));
    int status = mqx_catalog_take_lock(region);
    if (status == MQX_OK) {
        if (object->generation == generation &&
            mqx_load_relaxed(&object->state) == MQX_OBJ_ACTIVE) {
            status = delete_if_allowed(store, slot, &request, NULL);
        }
        mqx_catalog_drop_lock(region);
    }
    return status;
}

/* ---- the physical deletion ---- */

struct deleted { /* a logically deleted object: one life of its slot */
    uint32_t slot, generation;
    bool is_deleted; /* false: the object is not there, or not deleted */
    bool durable;    /* the deletion is durable, or need not be */
};

static int read_deletion(struct mqx_store *store, uint32_t slot, struct deleted *out)
{
    struct mqx_region *region = &store->region;
    const struct mqx_object *object = mqx_object(region, slot);
    MQX_ASSERT(!mqx_lock_held(region, &region->header->catalog_lock));
    *out = (struct deleted){.slot = slot};
    if (object == NULL || mqx_load_acquire(&object->state) != MQX_OBJ_DELETING) {
        return MQX_OK;
    }
    int status = mqx_catalog_take_lock(region);
    if (status == MQX_OK) {
        out->generation = object->generation;
        out->is_deleted = mqx_load_relaxed(&object->state) == MQX_OBJ_DELETING;
        out->durable = out->is_deleted && mqx_object_is_temporary(object);
        mqx_catalog_drop_lock(region);
    }
    return status;
}

/* Is that life of the slot still logically deleted, and not freed yet? */
static bool is_still_deleted(const struct mqx_object *object, const struct deleted *deleted)
{
    MQX_ASSERT(deleted->is_deleted);
    return object->generation == deleted->generation &&
           mqx_load_relaxed(&object->state) == MQX_OBJ_DELETING;
}

/* Frees what no unit and no browser holds. */
static int purge(struct mqx_store *store, const struct deleted *deleted)
{
    const struct mqx_region *region = &store->region;
    struct mqx_purge purge = {.object = deleted->slot, .generation = deleted->generation};
    int status = MQX_OK;
    MQX_ASSERT(deleted->slot != 0);
    if (mqx_load_relaxed(&mqx_object(region, deleted->slot)->present) > MQX_LOCKED_STEPS_MAX) {
        mqx_about_to_block(); /* many lock holds */
    }
    do {
        purge.cursor = (struct mqx_cursor){0};
        purge.freed = 0;
        purge.at_end = false;
        while (status == MQX_OK && !purge.at_end) {
            status = mqx_queue_purge_step(store, &purge);
        }
        if (status == MQX_OK && mqx_region_stopped(region) != MQX_RUNNING) {
            status = mqx_region_stop_reason(region); /* a damaged queue may never become empty */
        }
    } while (status == MQX_OK && purge.freed != 0);
    return status;
}

/* No handle is open and no alter in progress. No call can begin to use a deleted object, so what is
 * true once stays true. */
static int is_unused(struct mqx_region *region, const struct deleted *deleted, bool *out)
{
    const struct mqx_object *object = mqx_object(region, deleted->slot);
    struct mqx_lock *slots = &region->header->slots_lock;
    MQX_ASSERT(object != NULL);
    *out = false;
    int status = mqx_catalog_take_lock(region);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, slots);
    if (status == MQX_OK) {
        *out = is_still_deleted(object, deleted) && handles_of(object) == 0 &&
               mqx_load_relaxed(&object->changer) == 0;
        mqx_lock_drop(region, slots);
    }
    mqx_catalog_drop_lock(region);
    return status;
}

/* Frees the priority index and the id indexes when the queue is empty and there is no waiter;
 * *out_gone: nothing of them is left. */
static int drop_memory(struct mqx_store *store, const struct deleted *deleted, bool *out_gone)
{
    bool again = true;
    int status = MQX_OK;
    *out_gone = false;
    while (status == MQX_OK && again) {
        status = mqx_queue_drop_step(store, deleted->slot, deleted->generation, &again, out_gone);
    }
    MQX_ASSERT(!(again && *out_gone));
    return status;
}

/* Under the stripe lock, too: what is read of the object under that lock belongs to one life. */
static int free_slot(struct mqx_region *region, const struct deleted *deleted)
{
    const struct mqx_object *object = mqx_object(region, deleted->slot);
    struct mqx_stripe_guard guard;
    MQX_ASSERT(object != NULL);
    int status = mqx_catalog_take_lock(region);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_stripe_guard_take(region, deleted->slot, &guard);
    if (status == MQX_OK) {
        if (is_still_deleted(object, deleted)) {
            status = mqx_catalog_give_slot(region, deleted->slot);
        }
        mqx_stripe_guard_drop(&guard);
    }
    mqx_catalog_drop_lock(region);
    return status;
}

static int free_object(struct mqx_store *store, const struct deleted *deleted)
{
    bool unused = false, gone = false;
    MQX_ASSERT(deleted->is_deleted);
    int status = purge(store, deleted);
    if (status == MQX_OK) {
        status = is_unused(&store->region, deleted, &unused);
    }
    if (status == MQX_OK && unused) {
        status = drop_memory(store, deleted, &gone);
    }
    return status == MQX_OK && gone ? free_slot(&store->region, deleted) : status;
}

int mqx_catalog_finish(struct mqx_store *store, uint32_t slot)
{
    struct deleted deleted;
    int status = read_deletion(store, slot, &deleted);
    if (status != MQX_OK || !deleted.is_deleted) {
        return status;
    }
    status = mqx_wait_list_cancel_all(store, slot);
    if (status == MQX_OK && !deleted.durable) {
        status = mqx_catalog_flush(store);
    }
    return status == MQX_OK ? free_object(store, &deleted) : status;
}

/* ---- the two ways ---- */

static int delete_now(struct mqx_store *store, uint32_t slot, uint32_t generation,
                      const struct deletion *request)
{
    const struct deleted deleted = {.slot = slot, .generation = generation, .is_deleted = true};
    uint64_t end_lsn = 0;
    int status = delete_journalled(store, slot, generation, request, &end_lsn);
    if (status == MQX_OK) {
        status = mqx_wait_list_cancel_all(store, slot);
    }
    if (status == MQX_OK) {
        status = mqx_flush_decided(store, end_lsn);
    }
    return status == MQX_OK ? free_object(store, &deleted) : status;
}

int mqx_catalog_delete(struct mqx_store *store, uint32_t slot, uint32_t generation, bool purge)
{
    const struct deletion request = {.purge = purge};
    const struct mqx_object *object = mqx_object(&store->region, slot);
    if (object == NULL || mqx_load_acquire(&object->generation) != generation) {
        return mqx_catalog_fail_unknown(slot);
    }
    if (mqx_object_is_temporary(object)) {
        return mqx_fail(MQRC_OBJECT_IN_USE,
                        "\"%.48s\" is temporary: it is deleted with the handle that made it",
                        object->name);
    }
    return delete_now(store, slot, generation, &request);
}

/* Table 74: is anything to be deleted? 2045 when the option is not for such a queue or handle. */
static int read_option(const struct mqx_object *object, uint32_t handle, uint32_t how,
                       bool *out_delete)
{
    MQX_ASSERT(how <= MQX_CLOSE_PURGE);
    const bool is_creator = object->creator == handle;
    *out_delete = mqx_load_acquire(&object->state) != MQX_OBJ_DELETING &&
                  (how != MQX_CLOSE_KEEP || is_creator);
    if (!*out_delete || is_creator) {
        return MQX_OK;
    }
    if (object->definition_type == MQX_PREDEFINED) {
        return mqx_fail(MQRC_OPTION_NOT_VALID_FOR_TYPE,
                        "\"%.48s\" is not a dynamic queue: closing cannot delete it",
                        object->name);
    }
    return mqx_object_is_temporary(object)
               ? mqx_fail(MQRC_OPTION_NOT_VALID_FOR_TYPE,
                          "\"%.48s\" is temporary: only the handle that made it deletes it",
                          object->name)
               : MQX_OK;
}

int mqx_catalog_close(struct mqx_store *store, uint32_t slot, uint32_t handle, uint32_t how)
{
    const struct mqx_object *object = mqx_object(&store->region, slot);
    const struct deletion request = {.closing = true, .purge = how == MQX_CLOSE_PURGE};
    bool wanted = false;
    MQX_ASSERT(handle != 0);
    MQX_ASSERT(how <= MQX_CLOSE_PURGE);
    if (object == NULL) {
        return mqx_region_damage(&store->region, "the object slot of a handle", slot);
    }
    int status = read_option(object, handle, how, &wanted);
    if (status != MQX_OK || !wanted) {
        return status;
    }
    if (mqx_object_is_temporary(object)) {
        return delete_temporary(store, slot, object->generation);
    }
    status = delete_now(store, slot, object->generation, &request);
    /* another process was faster: closing a queue that has been deleted succeeds */
    return status == MQRC_Q_DELETED ? MQX_OK : status;
}
