/*
 * prepare.c - prepared units as engine.h shows them: preparing, listing, and resolving several in
 * one atomic step.
 *
 * Preparing. What a restart would lose of the messages got is written first (TAKEN records, as puts
 * subject to the reserve). Then the PREPARE record detaches the unit from its process; the caller's
 * mqe_unit gets a context that was taken before, so that nothing can fail in between.
 *
 * Resolving. A context of the pool leads (prepared.h). A call that finds one of its units claimed
 * by another resolver waits for the outcome, since that one may still release its claims; dead
 * resolvers are reaped.
 *
 * Locks: none may be held by the caller; those of prepared.h are taken inside.
 */
#include "api/context_pool.h"
#include "api/unit_handle.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "os/interrupt.h"
#include "os/host_info.h"
#include "process/reaper.h"
#include "process/unit_access.h"
#include "recovery/checkpoint_round.h"
#include "region/damage.h"
#include "unit/long_units.h"
#include "unit/prepared.h"
#include "unit/unit_records.h"

#include <stdlib.h>
#include <string.h>

static int check_xid(const struct ps_xid *xid)
{
    MQX_ASSERT(xid != NULL);
    return mqx_xid_is_sound(xid)
               ? MQX_OK
               : mqx_fail(MQRC_OPTIONS_ERROR,
                          "an xid of format %d with parts of %u and %u bytes: it is not -1, they "
                          "have 1 to 64 and 0 to 64, and zeroes behind them", xid->format_id,
                          xid->gtrid_length, xid->bqual_length);
}

/* ---- images of non-persistent messages ---- */

struct image_writer {
    struct mqx_store *store;
    uint32_t context;
    struct mqx_prepare facts;
    uint32_t logged;          /* PUT and GET records passed */
    unsigned char *body;
    uint64_t capacity;
};

static int make_room(struct image_writer *writer, uint64_t length)
{
    MQX_ASSERT(writer->body != NULL || writer->capacity == 0);
    if (writer->body == NULL || length > writer->capacity) {
        unsigned char *body = realloc(writer->body, length + 1);
        if (body == NULL) {
            return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                            "no memory for a message of %llu bytes", (unsigned long long)length);
        }
        writer->body = body;
        writer->capacity = length;
    }
    return MQX_OK;
}

/* The message is got in the unit: no other call changes or removes it. */
static int append_image(struct image_writer *writer, const struct mqx_message *message)
{
    MQX_ASSERT(message->state == MQX_MSG_GOT);
    MQX_ASSERT((message->flags & MQX_MSGF_PERSISTENT) == 0);
    struct mqx_store *store = writer->store;
    struct ps_descriptor d;
    struct ps_descriptor_ext ext;
    struct ps_chunked chunked;
    const struct ps_taken taken = {.before = writer->logged};
    const struct mqx_record_head head = {
        .type = PS_REC_TAKEN,
        .unit_id = mqx_unit_id(store, writer->context),
        .object = message->object,
        .object_gen = mqx_object(&store->region, message->object)->generation,
        .number = message->number,
    };
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    int status = record != NULL ? make_room(writer, message->length)
                                : mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a record");
    if (status == MQX_OK) {
        status = mqx_body_read(&store->region, message, &d, &ext, writer->body, message->length);
    }
    const bool pieces = message->length > mqx_piece_bytes(store);
    if (status == MQX_OK && pieces) {
        status = mqx_unit_append_pieces(store, writer->context, &head, writer->body,
                                        message->length, &chunked);
    }
    if (status != MQX_OK) {
        return status;
    }
    d.backout_count = message->backout_count;
    const uint32_t length =
        mqx_encode_taken(record, &head, &d, d.has_ext != 0 ? &ext : NULL, &taken,
                         pieces ? &chunked : NULL, writer->body,
                         pieces ? 0 : (uint32_t)message->length);
    return mqx_unit_append(store, writer->context, record, length, MQX_APPEND_PUT, 0);
}

/* Counts one message of the unit, and writes its image when a restart would lose it. */
static int count_message(struct image_writer *writer, const struct mqx_message *message)
{
    MQX_ASSERT(message->unit == writer->context);
    const struct mqx_object *queue = mqx_object(&writer->store->region, message->object);
    struct mqx_prepare *facts = &writer->facts;
    const bool logged = (message->flags & MQX_MSGF_PERSISTENT) != 0;
    const bool put = message->state == MQX_MSG_PUT;
    if (queue == NULL) {
        return mqx_region_damage(&writer->store->region, "the queue of a message", message->number);
    }
    MQX_ASSERT(put || message->state == MQX_MSG_GOT);
    facts->stored.puts += put;
    facts->stored.gets += !put;
    facts->stored.bytes += message->length;
    facts->nonpersistent += !logged || (message->flags & MQX_MSGF_VOLATILE) != 0;
    if (logged) {
        writer->logged += 1;
        return MQX_OK;
    }
    const bool lost = put || mqx_object_is_temporary(queue);
    facts->stored.lost_puts += put;
    facts->stored.lost_gets += lost && !put;
    return lost ? MQX_OK : append_image(writer, message);
}

static int write_images(struct image_writer *writer)
{
    MQX_ASSERT(writer->body == NULL);
    MQX_ASSERT(writer->context != 0);
    const struct mqx_region *region = &writer->store->region;
    const struct mqx_context *unit = mqx_context(region, writer->context);
    uint32_t slot = unit->head;
    int status = MQX_OK;
    for (uint32_t i = 0; i < unit->count && status == MQX_OK; i++) {
        const struct mqx_message *message = mqx_message(region, slot);
        if (message == NULL) {
            status = mqx_region_damage(region, "the messages of a unit", slot);
            break;
        }
        status = count_message(writer, message);
        slot = message->unit_next;
    }
    free(writer->body);
    writer->body = NULL;
    return status;
}

/* ---- prepare ---- */

static int prepare(mqe_unit *unit, uint32_t next_context, const struct ps_xid *xid, uint32_t flags)
{
    MQX_ASSERT(next_context != 0);
    MQX_ASSERT(next_context != unit->context);
    struct mqx_store *store = &unit->manager->store;
    struct image_writer writer = {.store = store, .context = unit->context};
    uint64_t lsn = 0;
    mqx_unit_begin(store, unit->context);
    int status = write_images(&writer);
    if (status == MQRC_STORAGE_MEDIUM_FULL) { /* perhaps because its checkpoint lagged behind */
        const int forced = mqx_checkpoint_make_room(store);
        status = forced == MQE_INTERRUPTED ? forced : status;
        if (forced == MQX_OK) {
            writer = (struct image_writer){.store = store, .context = unit->context};
            status = write_images(&writer); /* an image that is written twice counts once */
        }
    }
    if (status == MQX_OK) {
        writer.facts.stored.prepared_us = store->io->ops->now_us(store->io);
        status = mqx_prepared_decide(store, unit->context, xid, &writer.facts, &lsn);
    }
    if (status != MQX_OK) {
        return status;
    }
    unit->context = next_context; /* the old one belongs to no process now */
    return (flags & MQE_PREPARE_LAZY) != 0 ? MQX_OK : mqx_flush_decided(store, lsn);
}

/* A unit that is empty and was begun by this call alone becomes IDLE again. */
static void cancel_begin(struct mqx_store *store, uint32_t context)
{
    MQX_ASSERT(context != 0);
    const struct mqx_context *unit = mqx_context(&store->region, context);
    if (unit->count == 0 && unit->first_lsn == 0 &&
        mqx_region_stopped(&store->region) == MQX_RUNNING) {
        mqx_ignore(mqx_unit_backout(store, context));
    }
}

static int check_prepare(mqe_unit *unit, const struct ps_xid *xid, uint32_t flags)
{
    MQX_ASSERT(unit->context != 0);
    struct mqx_store *store = &unit->manager->store;
    const struct mqx_context *context = mqx_context(&store->region, unit->context);
    if (context == NULL) {
        return mqx_region_damage(&store->region, "the context of a unit", unit->context);
    }
    if ((flags & ~(uint32_t)(MQE_PREPARE_EMPTY | MQE_PREPARE_LAZY)) != 0) {
        return mqx_fail(MQRC_OPTIONS_ERROR, "flags %u of prepare are unknown", flags);
    }
    if (context->state == MQX_CTX_ACTIVE && mqx_unit_must_back_out(context)) {
        int status = mqx_unit_backout(store, unit->context);
        return status != MQX_OK
                   ? status
                   : mqx_fail(MQRC_BACKED_OUT,
                              "the unit held the journal for too long and was backed out");
    }
    int status = check_xid(xid);
    if (status == MQX_OK && context->count == 0 && (flags & MQE_PREPARE_EMPTY) == 0) {
        status = mqx_fail(MQRC_UOW_NOT_AVAILABLE, "the unit of work is empty: nothing to prepare");
    }
    return status == MQX_OK ? mqx_prepared_is_free(store, xid) : status;
}

/* The unit has been entered. */
static int prepare_entered(mqe_unit *unit, const struct ps_xid *xid, uint32_t flags)
{
    MQX_ASSERT(unit->context != 0);
    mqe_manager *manager = unit->manager;
    uint32_t next_context = 0;
    int status = check_prepare(unit, xid, flags);
    if (status == MQX_OK) {
        status = mqx_pool_take(manager, false, &next_context);
    }
    if (status == MQX_OK) {
        status = prepare(unit, next_context, xid, flags);
        if (unit->context != next_context) {
            cancel_begin(&manager->store, unit->context);
            mqx_pool_give(manager, next_context);
        }
    }
    return status;
}

int mqe_prepare(mqe_unit *unit, const struct ps_xid *xid, uint32_t flags)
{
    MQX_ASSERT(xid != NULL);
    mqe_manager *manager = unit->manager;
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    mqx_file_calls_begin(manager);
    status = mqx_unit_enter_to_end(&manager->store, unit->context);
    if (status == MQX_OK) {
        status = prepare_entered(unit, xid, flags);
        mqx_unit_handle_leave(unit);
    }
    mqx_file_calls_end(manager);
    return status;
}

/* ---- listing ---- */

static int by_age(const void *a, const void *b)
{
    MQX_ASSERT(a != NULL && b != NULL);
    const struct mqe_prepared *first = a, *second = b;
    return first->prepared_us != second->prepared_us
               ? (first->prepared_us < second->prepared_us ? -1 : 1)
           : first->unit_id < second->unit_id ? -1
                                              : first->unit_id > second->unit_id;
}

/* The xid is fixed while the slots lock is held. True when the unit is to be listed. */
static bool describe(const struct mqx_region *region, uint32_t slot, struct mqe_prepared *out,
                     uint64_t *durable)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    const struct mqx_context *unit = mqx_context(region, slot);
    if (unit == NULL || !mqx_prepared_is_open(region, unit)) {
        return false;
    }
    const uint64_t lsn = mqx_load_relaxed(&unit->decided_lsn);
    *durable = lsn > *durable ? lsn : *durable;
    *out = (struct mqe_prepared){
        .xid = unit->xid,
        .unit_id = mqx_load_relaxed(&unit->unit_id),
        .prepared_us = unit->prepared_us,
        .puts = unit->puts,
        .gets = unit->gets,
        .nonpersistent = unit->nonpersistent,
        .bytes = unit->bytes,
    };
    return true;
}

static int list_prepared(struct mqx_store *store, struct mqe_prepared *out, uint32_t capacity,
                         uint32_t *out_count)
{
    MQX_ASSERT(*out_count == 0);
    MQX_ASSERT(out != NULL || capacity == 0);
    struct mqx_region *region = &store->region;
    struct mqx_lock *lock = &region->header->slots_lock;
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    uint64_t durable = 0;
    for (uint64_t slot = 1; slot < used;) {
        int status = mqx_lock_enter(region, lock);
        if (status != MQX_OK) {
            return status;
        }
        for (int i = 0; i < MQX_LOCKED_STEPS_MAX && slot < used; i++, slot++) {
            struct mqe_prepared row;
            if (describe(region, (uint32_t)slot, &row, &durable)) {
                if (*out_count < capacity) {
                    out[*out_count] = row;
                }
                *out_count += 1;
            }
        }
        mqx_lock_drop(region, lock);
    }
    const uint32_t rows = *out_count < capacity ? *out_count : capacity;
    if (rows > 1) {
        qsort(out, rows, sizeof *out, by_age);
    }
    return durable != 0 ? mqx_flush_to(store, durable) : MQX_OK;
}

int mqe_prepared_list(mqe_manager *manager, struct mqe_prepared *out, uint32_t capacity,
                      uint32_t *out_count)
{
    MQX_ASSERT(out_count != NULL);
    int status = mqx_enter(manager, false);
    *out_count = 0;
    if (status == MQX_OK) {
        mqx_file_calls_begin(manager);
        status = list_prepared(&manager->store, out, capacity, out_count);
        mqx_file_calls_end(manager);
    }
    return status;
}

/* ---- resolving ---- */

enum { PAUSE_US = 500, REAP_EVERY = 20, SECOND_US = 1000000 };

static int claim_all(struct mqx_prepared_resolution *resolution)
{
    MQX_ASSERT(resolution->leader != 0);
    MQX_ASSERT(resolution->count > 0);
    uint32_t dead = 0;
    int status = mqx_prepared_claim(resolution);
    /* until the other resolver is done, or dead */
    for (uint32_t turn = 1; status == MQX_BUSY; turn++) {
        mqx_about_to_block();
        mqx_clock_sleep_us(PAUSE_US);
        if (turn >= SECOND_US / PAUSE_US && mqx_interrupt_take(0)) {
            return MQE_INTERRUPTED;
        }
        status = turn % REAP_EVERY == 0 ? mqx_reap_unless_busy(resolution->store, &dead) : MQX_OK;
        if (status == MQX_OK && mqx_region_stopped(&resolution->store->region) != MQX_RUNNING) {
            status = mqx_region_stop_reason(&resolution->store->region);
        }
        status = status == MQX_OK ? mqx_prepared_claim(resolution) : status;
    }
    return status;
}

static int resolve_all(struct mqx_prepared_resolution *resolution)
{
    MQX_ASSERT(resolution->members != NULL);
    MQX_ASSERT(resolution->leader != 0);
    struct mqx_region *region = &resolution->store->region;
    struct mqx_context *leader = mqx_context(region, resolution->leader);
    int status = mqx_prepared_look_up(resolution);
    if (status != MQX_OK) {
        return status;
    }
    MQX_ASSERT(leader != NULL); /* validated when it was taken from the pool */
    MQX_ASSERT(leader->state == MQX_CTX_IDLE);
    MQX_ASSERT(leader->leads == MQX_LEADS_NONE);
    mqx_store_release(&leader->leads, resolution->commit ? (uint32_t)MQX_LEADS_COMMIT
                                                         : (uint32_t)MQX_LEADS_BACKOUT);
    status = claim_all(resolution);
    if (status == MQX_OK) {
        status = mqx_prepared_resolve(resolution);
    }
    if (leader->state == MQX_CTX_IDLE && mqx_region_stopped(region) == MQX_RUNNING) {
        const int released =
            status != MQX_OK ? mqx_prepared_release(resolution->store, resolution->leader) : MQX_OK;
        if (released == MQX_OK) {
            mqx_store_release(&leader->leads, (uint32_t)MQX_LEADS_NONE);
        }
    }
    return status;
}

static int check_xids(const struct ps_xid *xids, uint32_t count)
{
    MQX_ASSERT(xids != NULL || count == 0);
    int status = MQX_OK;
    if (count == 0 || count > MQE_PREPARED_MAX) {
        return mqx_fail(MQRC_OPTIONS_ERROR, "%u units are to be ended; it can be 1 to %d", count,
                        (int)MQE_PREPARED_MAX);
    }
    for (uint32_t i = 0; i < count && status == MQX_OK; i++) {
        status = check_xid(&xids[i]);
    }
    return status;
}

static int resolve_units(mqe_manager *manager, const struct ps_xid *xids, uint32_t count,
                         bool commit, uint64_t *out_discarded)
{
    MQX_ASSERT(count > 0 && count <= MQE_PREPARED_MAX);
    struct mqx_prepared_resolution resolution = {
        .store = &manager->store, .commit = commit, .xids = xids, .count = count};
    int status = mqx_pool_take(manager, true, &resolution.leader);
    if (status != MQX_OK) {
        return status;
    }
    resolution.members = calloc(count, sizeof *resolution.members);
    resolution.unit_ids = calloc(count, sizeof *resolution.unit_ids);
    status = resolution.members != NULL && resolution.unit_ids != NULL
                 ? resolve_all(&resolution)
                 : mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to end %u units", count);
    free(resolution.members);
    free(resolution.unit_ids);
    mqx_pool_give(manager, resolution.leader);
    *out_discarded = resolution.discarded;
    return status;
}

static int enter_and_resolve(mqe_manager *manager, const struct ps_xid *xids, uint32_t count,
                             bool commit, uint64_t *out_discarded)
{
    MQX_ASSERT(out_discarded != NULL);
    int status = mqx_enter(manager, false);
    *out_discarded = 0;
    if (status == MQX_OK) {
        status = check_xids(xids, count);
    }
    if (status == MQX_OK) {
        mqx_file_calls_begin(manager);
        status = resolve_units(manager, xids, count, commit, out_discarded);
        mqx_file_calls_end(manager);
    }
    return status;
}

int mqe_commit_prepared(mqe_manager *manager, const struct ps_xid *xids, uint32_t count)
{
    uint64_t discarded;
    return enter_and_resolve(manager, xids, count, true, &discarded);
}

int mqe_backout_prepared(mqe_manager *manager, const struct ps_xid *xids, uint32_t count,
                         uint64_t *np_discarded)
{
    return enter_and_resolve(manager, xids, count, false, np_discarded);
}
