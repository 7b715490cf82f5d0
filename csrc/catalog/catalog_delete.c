/*
 * catalog_delete.c - deleting: who may, the logical deletion, the physical one. See catalog.h.
 *
 * The decision is made with catalog, stripe and slots lock of the object held, and takes effect
 * there: for a temporary dynamic queue by the catalog lock's micro-transaction, for all others by
 * the ring lock's, which appends the record. Everything after it may be done by anybody, by several
 * at once, and begun anew: each step looks at state and generation under the lock that it needs.
 */
#include "region/arena.h"
#include "catalog/catalog_names.h"
#include "base/error.h"
#include "queue/priority_index.h"
#include "queue/wait_list.h"
#include "queue/queue.h"
#include "catalog/cf_structure.h"
#include "os/block_hook.h"

#include <string.h>

enum {
    APPEND_ATTEMPTS = 1000000, /* each has made room in the ring or rolled a segment */
    HEAP_LOOKS = MQX_LOCKED_STEPS_MAX,
};

struct wish { /* what is asked for */
    bool closing;      /* by a handle of the queue: others may be open, too */
    bool unconditional; /* temporary, by its creator: whatever it holds */
    bool purge;
};

/* ---- the decision ---- */

static uint32_t handles_of(const struct mqx_object *object)
{
    return mqx_load_relaxed(&object->open_input) + mqx_load_relaxed(&object->open_output) +
           mqx_load_relaxed(&object->open_other);
}

/* Stripe lock held. What is only being copied by a browser, and gone otherwise, does not count. */
static bool holds_messages(const struct mqx_region *region, const struct mqx_object *object)
{
    struct mqx_cursor cursor = {0};
    for (int i = 0; i < HEAP_LOOKS && object->present != 0; i++) {
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
static int judge(const struct mqx_region *region, const struct mqx_object *object,
                 const struct wish *wish)
{
    const uint32_t handles = handles_of(object);
    const uint32_t held = object->got + object->uncommitted;
    if (wish->unconditional) {
        return MQX_OK;
    }
    if (!wish->closing && handles > 0) {
        return mqx_fail(MQRC_OBJECT_IN_USE, "\"%.48s\" is open %u times", object->name, handles);
    }
    if (held > 0) {
        return mqx_fail(MQRC_Q_NOT_EMPTY, "units of work hold %u messages of \"%.48s\"", held,
                        object->name);
    }
    if (!wish->purge && holds_messages(region, object)) {
        return mqx_fail(MQRC_Q_NOT_EMPTY, "\"%.48s\" holds %u messages", object->name,
                        object->present);
    }
    return MQX_OK;
}

/* Catalog lock held. 0: it is deleted. What mqx_journal_try_append() says: not yet. */
static int decide(struct mqx_store *store, uint32_t slot, const struct wish *wish,
                  struct mqx_append *append)
{
    struct mqx_region *region = &store->region;
    struct mqx_object *object = mqx_object(region, slot);
    struct mqx_stripe_guard guard;
    int status = mqx_stripe_guard_take(region, slot, &guard);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, &region->header->slots_lock);
    if (status != MQX_OK) {
        mqx_stripe_guard_drop(&guard);
        return status;
    }
    status = judge(region, object, wish);
    if (status == MQX_OK && append != NULL) {
        status = mqx_journal_try_append(store, append);
    } else if (status == MQX_OK) {
        mqx_catalog_store32(region, &object->state, MQX_OBJ_DELETING);
        mqx_undo_commit(&region->header->catalog_lock);
    }
    mqx_lock_drop(region, &region->header->slots_lock);
    mqx_stripe_guard_drop(&guard);
    return status;
}

/* Everybody but temporary dynamic queues: record and state in one micro-transaction of the ring. */
static int delete_journalled(struct mqx_store *store, uint32_t slot, uint32_t generation,
                             const struct wish *wish, uint64_t *out_end_lsn)
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
    mqx_check(append.length <= sizeof record);
    for (int i = 0; i < APPEND_ATTEMPTS; i++) {
        struct mqx_object *object = NULL;
        int status = mqx_catalog_take_idle(store, slot, generation, &object);
        if (status == MQX_OK) {
            status = mqx_cf_structure_may_delete(&store->region, slot);
            if (status == MQX_OK) {
                status = decide(store, slot, wish, &append);
            }
            mqx_lock_drop(&store->region, &store->region.header->catalog_lock);
        }
        if (status == MQX_OK) {
            *out_end_lsn = append.end_lsn;
            return MQX_OK;
        }
        status = mqx_journal_make_way(store, append.length, status);
        if (status != MQX_OK) {
            return status;
        }
    }
    return mqx_fail(MQRC_RESOURCE_PROBLEM, "no place in the journal in %d attempts",
                    APPEND_ATTEMPTS);
}

/* A temporary dynamic queue, by its creator's handle; an alter that is under way comes to its end
 * all the same. */
static int delete_temporary(struct mqx_store *store, uint32_t slot, uint32_t generation)
{
    static const struct wish wish = {.closing = true, .unconditional = true, .purge = true};
    struct mqx_region *region = &store->region;
    const struct mqx_object *object = mqx_object(region, slot);
    mqx_check(object != NULL);
    int status = mqx_lock_take(region, &region->header->catalog_lock);
    if (status == MQX_OK) {
        if (object->generation == generation &&
            mqx_load_relaxed(&object->state) == MQX_OBJ_ACTIVE) {
            status = decide(store, slot, &wish, NULL);
        }
        mqx_lock_drop(region, &region->header->catalog_lock);
    }
    return status;
}

/* ---- the physical deletion ---- */

struct life { /* of a slot: a deleted object that is still there */
    uint32_t slot, generation;
    bool is_dying;
    bool durable;   /* the deletion is, or need not be */
};

static int look_at(struct mqx_store *store, uint32_t slot, struct life *out)
{
    struct mqx_region *region = &store->region;
    const struct mqx_object *object = mqx_object(region, slot);
    *out = (struct life){.slot = slot};
    if (object == NULL || mqx_load_acquire(&object->state) != MQX_OBJ_DELETING) {
        return MQX_OK;
    }
    int status = mqx_lock_take(region, &region->header->catalog_lock);
    if (status == MQX_OK) {
        out->generation = object->generation;
        out->is_dying = mqx_load_relaxed(&object->state) == MQX_OBJ_DELETING;
        out->durable = out->is_dying && mqx_object_is_temporary(object);
        mqx_lock_drop(region, &region->header->catalog_lock);
    }
    return status;
}

static bool is_that_life(const struct mqx_object *object, const struct life *life)
{
    return object->generation == life->generation &&
           mqx_load_relaxed(&object->state) == MQX_OBJ_DELETING;
}

/* Frees what no unit and no browser holds. */
static int purge(struct mqx_store *store, const struct life *life)
{
    struct mqx_purge purge = {.object = life->slot, .generation = life->generation};
    int status = MQX_OK;
    if (mqx_load_relaxed(&mqx_object(&store->region, life->slot)->present) > MQX_LOCKED_STEPS_MAX) {
        mqx_about_to_block(); /* it takes its time */
    }
    do {
        purge.cursor = (struct mqx_cursor){0};
        purge.freed = 0;
        purge.at_end = false;
        while (status == MQX_OK && !purge.at_end) {
            status = mqx_queue_purge_step(store, &purge);
        }
    } while (status == MQX_OK && purge.freed != 0);
    return status;
}

/* Nobody can come any more, so what is true once stays true. */
static int is_unused(struct mqx_region *region, const struct life *life, bool *out)
{
    const struct mqx_object *object = mqx_object(region, life->slot);
    struct mqx_lock *catalog = &region->header->catalog_lock, *slots = &region->header->slots_lock;
    *out = false;
    int status = mqx_lock_take(region, catalog);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, slots);
    if (status == MQX_OK) {
        *out = is_that_life(object, life) && handles_of(object) == 0 &&
               mqx_load_relaxed(&object->changer) == 0;
        mqx_lock_drop(region, slots);
    }
    mqx_lock_drop(region, catalog);
    return status;
}

/* Heap and indexes, when nothing is in them; *out_gone when they are, and nobody waits. */
static int drop_memory(struct mqx_store *store, const struct life *life, bool *out_gone)
{
    bool again = true;
    int status = MQX_OK;
    *out_gone = false;
    while (status == MQX_OK && again) {
        status = mqx_queue_drop_step(store, life->slot, life->generation, &again, out_gone);
    }
    return status;
}

int mqx_catalog_give_slot(struct mqx_region *region, uint32_t slot)
{
    struct mqx_object *object = mqx_object(region, slot);
    int status = mqx_names_unlink(region, slot);
    mqx_undo_commit(&region->header->catalog_lock);
    if (status == MQX_OK) {
        status = mqx_attrs_free(region, object->attrs, object->attrs_length, &object->attrs);
    }
    if (status == MQX_OK) {
        status = mqx_slot_give(region, MQX_AREA_OBJECTS, slot);
    }
    return status;
}

/* The stripe lock, too, so that nobody who looks under it sees the slot change hands. */
static int remove_life(struct mqx_region *region, const struct life *life)
{
    const struct mqx_object *object = mqx_object(region, life->slot);
    struct mqx_lock *catalog = &region->header->catalog_lock;
    struct mqx_stripe_guard guard;
    int status = mqx_lock_take(region, catalog);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_stripe_guard_take(region, life->slot, &guard);
    if (status == MQX_OK) {
        if (is_that_life(object, life)) {
            status = mqx_catalog_give_slot(region, life->slot);
        }
        mqx_stripe_guard_drop(&guard);
    }
    mqx_lock_drop(region, catalog);
    return status;
}

static int end_life(struct mqx_store *store, const struct life *life)
{
    bool unused = false, gone = false;
    int status = purge(store, life);
    if (status == MQX_OK) {
        status = is_unused(&store->region, life, &unused);
    }
    if (status == MQX_OK && unused) {
        status = drop_memory(store, life, &gone);
    }
    return status == MQX_OK && gone ? remove_life(&store->region, life) : status;
}

int mqx_catalog_finish(struct mqx_store *store, uint32_t slot)
{
    struct life life;
    int status = look_at(store, slot, &life);
    if (status != MQX_OK || !life.is_dying) {
        return status;
    }
    status = mqx_wait_list_cancel_all(store, slot);
    if (status == MQX_OK && !life.durable) {
        status = mqx_catalog_flush(store);
    }
    return status == MQX_OK ? end_life(store, &life) : status;
}

/* ---- the two ways ---- */

static int delete_now(struct mqx_store *store, uint32_t slot, uint32_t generation,
                      const struct wish *wish)
{
    const struct life life = {.slot = slot, .generation = generation, .is_dying = true};
    uint64_t end_lsn = 0;
    int status = delete_journalled(store, slot, generation, wish, &end_lsn);
    if (status == MQX_OK) {
        status = mqx_wait_list_cancel_all(store, slot);
    }
    if (status == MQX_OK) {
        status = mqx_flush_to(store, end_lsn);
    }
    return status == MQX_OK ? end_life(store, &life) : status;
}

int mqx_catalog_delete(struct mqx_store *store, uint32_t slot, uint32_t generation, bool purge)
{
    const struct wish wish = {.purge = purge};
    const struct mqx_object *object = mqx_object(&store->region, slot);
    if (object == NULL || mqx_load_acquire(&object->generation) != generation) {
        return mqx_catalog_gone(slot);
    }
    if (mqx_object_is_temporary(object)) {
        return mqx_fail(MQRC_OBJECT_IN_USE,
                        "\"%.48s\" is temporary: it is deleted with the handle that made it",
                        object->name);
    }
    return delete_now(store, slot, generation, &wish);
}

/* Table 74: is anything to be deleted? 2045 when the option is not for such a queue or handle. */
static int read_option(const struct mqx_object *object, uint32_t handle, uint32_t how,
                       bool *out_delete)
{
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
    const struct wish wish = {.closing = true, .purge = how == MQX_CLOSE_PURGE};
    bool wanted = false;
    mqx_check(object != NULL && handle != 0 && how <= MQX_CLOSE_PURGE);
    int status = read_option(object, handle, how, &wanted);
    if (status != MQX_OK || !wanted) {
        return status;
    }
    if (mqx_object_is_temporary(object)) {
        return delete_temporary(store, slot, object->generation);
    }
    status = delete_now(store, slot, object->generation, &wish);
    /* somebody else was faster: closing a queue that has been deleted succeeds */
    return status == MQRC_Q_DELETED ? MQX_OK : status;
}
