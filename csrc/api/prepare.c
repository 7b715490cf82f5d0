/*
 * prepare.c - prepared units as engine.h shows them.
 *
 * Preparing: what restarts would lose of the messages got is written first (TAKEN records, as puts
 * subject to the reserve), then the PREPARE record makes the unit nobody's; the caller's mqe_unit
 * gets a context that was taken before anything was done, so that nothing can fail in between.
 *
 * Ending: a context of the pool leads (prepared.h). Whoever finds that somebody else is about to
 * end one of the units waits for the outcome, since the other may still give up; dead ones are
 * swept.
 */
#include "api/context_pool.h"
#include "api/unit_handle.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "os/host_info.h"
#include "process/reaper.h"
#include "recovery/checkpoint.h"
#include "unit/prepared.h"
#include "unit/unit_records.h"

#include <stdlib.h>
#include <string.h>

static int check_xid(const struct ps_xid *xid)
{
    return mqx_xid_is_sound(xid)
               ? MQX_OK
               : mqx_fail(MQRC_OPTIONS_ERROR,
                          "an xid of format %d with parts of %u and %u bytes: it is not -1, they "
                          "have 1 to 64 and 0 to 64, and zeroes behind them", xid->format_id,
                          xid->gtrid_length, xid->bqual_length);
}

/* ---- images of non-persistent messages ---- */

struct imaging {
    struct mqx_store *store;
    uint32_t context;
    struct mqx_prepare facts;
    uint32_t logged;          /* PUT and GET records passed */
    unsigned char *body;
    uint64_t capacity;
};

static int make_room(struct imaging *imaging, uint64_t length)
{
    if (imaging->body == NULL || length > imaging->capacity) {
        unsigned char *body = realloc(imaging->body, length + 1);
        if (body == NULL) {
            return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                            "no memory for a message of %llu bytes", (unsigned long long)length);
        }
        imaging->body = body;
        imaging->capacity = length;
    }
    return MQX_OK;
}

/* The message is got in our unit: nobody else changes or removes it. */
static int append_image(struct imaging *imaging, const struct mqx_message *message)
{
    struct mqx_store *store = imaging->store;
    struct ps_descriptor d;
    struct ps_descriptor_ext ext;
    struct ps_chunked chunked;
    const struct ps_taken taken = {.before = imaging->logged};
    const struct mqx_record_head head = {
        .type = PS_REC_TAKEN,
        .unit_id = mqx_unit_id(store, imaging->context),
        .object = message->object,
        .object_gen = mqx_object(&store->region, message->object)->generation,
        .number = message->number,
    };
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    int status = record != NULL ? make_room(imaging, message->length)
                                : mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a record");
    if (status == MQX_OK) {
        status = mqx_queue_read_body(&store->region, message, &d, &ext, imaging->body,
                                     message->length);
    }
    const bool pieces = message->length > mqx_piece_bytes(store);
    if (status == MQX_OK && pieces) {
        status = mqx_unit_append_pieces(store, imaging->context, &head, imaging->body,
                                        message->length, &chunked);
    }
    if (status != MQX_OK) {
        return status;
    }
    d.backout_count = message->backout_count;
    const uint32_t length =
        mqx_encode_taken(record, &head, &d, d.has_ext != 0 ? &ext : NULL, &taken,
                         pieces ? &chunked : NULL, imaging->body,
                         pieces ? 0 : (uint32_t)message->length);
    return mqx_unit_append(store, imaging->context, record, length, MQX_APPEND_PUT, 0);
}

/* Counts one message of the unit, and writes it when it must be. */
static int take_stock(struct imaging *imaging, const struct mqx_message *message)
{
    const struct mqx_object *queue = mqx_object(&imaging->store->region, message->object);
    struct mqx_prepare *facts = &imaging->facts;
    const bool logged = (message->flags & MQX_MSGF_PERSISTENT) != 0;
    const bool put = message->state == MQX_MSG_PUT;
    mqx_check(queue != NULL && (put || message->state == MQX_MSG_GOT));
    facts->stored.puts += put;
    facts->stored.gets += !put;
    facts->stored.bytes += message->length;
    facts->nonpersistent += !logged || (message->flags & MQX_MSGF_VOLATILE) != 0;
    if (logged) {
        imaging->logged += 1;
        return MQX_OK;
    }
    const bool lost = put || mqx_object_is_temporary(queue);
    facts->stored.lost_puts += put;
    facts->stored.lost_gets += lost && !put;
    return lost ? MQX_OK : append_image(imaging, message);
}

static int write_images(struct imaging *imaging)
{
    const struct mqx_region *region = &imaging->store->region;
    const struct mqx_context *unit = mqx_context(region, imaging->context);
    uint32_t slot = unit->head;
    int status = MQX_OK;
    for (uint32_t i = 0; i < unit->count && status == MQX_OK; i++) {
        const struct mqx_message *message = mqx_message(region, slot);
        if (message == NULL) {
            return mqx_fail(MQRC_UNEXPECTED_ERROR, "the unit names message %u, which is not there",
                            slot);
        }
        status = take_stock(imaging, message);
        slot = message->unit_next;
    }
    free(imaging->body);
    imaging->body = NULL;
    return status;
}

/* ---- prepare ---- */

static int prepare(mqe_unit *unit, uint32_t fresh, const struct ps_xid *xid, uint32_t flags)
{
    struct mqx_store *store = &unit->manager->store;
    struct imaging imaging = {.store = store, .context = unit->context};
    uint64_t lsn = 0;
    mqx_unit_begin(store, unit->context);
    int status = write_images(&imaging);
    if (status == MQRC_STORAGE_MEDIUM_FULL && mqx_checkpoint_now(store) == MQX_OK) {
        /* the journal was full, perhaps because its checkpoint lagged behind */
        imaging = (struct imaging){.store = store, .context = unit->context};
        status = write_images(&imaging); /* what is written twice counts once */
    }
    if (status == MQX_OK) {
        imaging.facts.stored.prepared_us = store->io->ops->now_us(store->io);
        status = mqx_prepared_decide(store, unit->context, xid, &imaging.facts, &lsn);
    }
    if (status != MQX_OK) {
        return status;
    }
    unit->context = fresh; /* the old one is nobody's */
    return (flags & MQE_PREPARE_LAZY) != 0 ? MQX_OK : mqx_flush_to(store, lsn);
}

/* Empty and begun for us alone: as if nothing had been. */
static void unbegin(struct mqx_store *store, uint32_t context)
{
    const struct mqx_context *unit = mqx_context(&store->region, context);
    if (unit->count == 0 && unit->first_lsn == 0 &&
        mqx_region_stopped(&store->region) == MQX_RUNNING) {
        mqx_ignore(mqx_unit_backout(store, context));
    }
}

static int check_prepare(mqe_unit *unit, const struct ps_xid *xid, uint32_t flags)
{
    struct mqx_store *store = &unit->manager->store;
    const struct mqx_context *context = mqx_context(&store->region, unit->context);
    mqx_check(context != NULL);
    if ((flags & ~(uint32_t)(MQE_PREPARE_EMPTY | MQE_PREPARE_LAZY)) != 0) {
        return mqx_fail(MQRC_OPTIONS_ERROR, "flags %u of prepare are unknown", flags);
    }
    if (context->state == MQX_CTX_ACTIVE && mqx_load_acquire(&context->must_back_out) != 0) {
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

int mqe_prepare(mqe_unit *unit, const struct ps_xid *xid, uint32_t flags)
{
    mqe_manager *manager = unit->manager;
    uint32_t fresh = 0;
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    mqx_file_calls_begin(manager);
    status = check_prepare(unit, xid, flags);
    if (status == MQX_OK) {
        status = mqx_pool_take(manager, false, &fresh);
    }
    if (status == MQX_OK) {
        status = prepare(unit, fresh, xid, flags);
        if (unit->context != fresh) {
            unbegin(&manager->store, unit->context);
            mqx_pool_give(manager, fresh);
        }
    }
    mqx_file_calls_end(manager);
    return status;
}

/* ---- which there are ---- */

static int by_age(const void *a, const void *b)
{
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

static int list(struct mqx_store *store, struct mqe_prepared *out, uint32_t capacity,
                uint32_t *out_count)
{
    struct mqx_region *region = &store->region;
    struct mqx_lock *lock = &region->header->slots_lock;
    const uint64_t used = mqx_load_acquire(&region->header->area[MQX_AREA_CONTEXTS].used);
    uint64_t durable = 0;
    for (uint64_t slot = 1; slot < used;) {
        int status = mqx_lock_take(region, lock);
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
    int status = mqx_enter(manager, false);
    *out_count = 0;
    if (status == MQX_OK) {
        mqx_file_calls_begin(manager);
        status = list(&manager->store, out, capacity, out_count);
        mqx_file_calls_end(manager);
    }
    return status;
}

/* ---- ending ---- */

enum { PAUSE_US = 500, REAP_EVERY = 20 };

static int claim_all(struct mqx_ending *ending)
{
    uint32_t dead = 0;
    int status = mqx_prepared_claim(ending);
    for (uint32_t turn = 1; status == MQX_BUSY; turn++) { /* until the other is done, or dead */
        mqx_about_to_block();
        mqx_clock_sleep_us(PAUSE_US);
        status = turn % REAP_EVERY == 0 ? mqx_reap_unless_busy(ending->store, &dead) : MQX_OK;
        if (status == MQX_OK && mqx_region_stopped(&ending->store->region) != MQX_RUNNING) {
            status = mqx_region_stop_reason(&ending->store->region);
        }
        status = status == MQX_OK ? mqx_prepared_claim(ending) : status;
    }
    return status;
}

static int end_all(struct mqx_ending *ending)
{
    struct mqx_region *region = &ending->store->region;
    struct mqx_context *leader = mqx_context(region, ending->leader);
    int status = mqx_prepared_look_up(ending);
    if (status != MQX_OK) {
        return status;
    }
    mqx_check(leader != NULL && leader->state == MQX_CTX_IDLE);
    mqx_store_release(&leader->leads,
                      ending->commit ? (uint32_t)MQX_LEADS_COMMIT : (uint32_t)MQX_LEADS_BACKOUT);
    status = claim_all(ending);
    if (status == MQX_OK) {
        status = mqx_prepared_end(ending);
    }
    if (leader->state == MQX_CTX_IDLE && mqx_region_stopped(region) == MQX_RUNNING) {
        const int released =
            status != MQX_OK ? mqx_prepared_release(ending->store, ending->leader) : MQX_OK;
        if (released == MQX_OK) {
            mqx_store_release(&leader->leads, (uint32_t)MQX_LEADS_NOBODY);
        }
    }
    return status;
}

static int check_xids(const struct ps_xid *xids, uint32_t count)
{
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

static int end_units(mqe_manager *manager, const struct ps_xid *xids, uint32_t count, bool commit,
                     uint64_t *out_discarded)
{
    struct mqx_ending ending = {
        .store = &manager->store, .commit = commit, .xids = xids, .count = count};
    int status = mqx_pool_take(manager, true, &ending.leader);
    if (status != MQX_OK) {
        return status;
    }
    ending.members = calloc(count, sizeof *ending.members);
    ending.unit_ids = calloc(count, sizeof *ending.unit_ids);
    status = ending.members != NULL && ending.unit_ids != NULL
                 ? end_all(&ending)
                 : mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to end %u units", count);
    free(ending.members);
    free(ending.unit_ids);
    mqx_pool_give(manager, ending.leader);
    *out_discarded = ending.discarded;
    return status;
}

static int enter_and_end(mqe_manager *manager, const struct ps_xid *xids, uint32_t count,
                         bool commit, uint64_t *out_discarded)
{
    int status = mqx_enter(manager, false);
    *out_discarded = 0;
    if (status == MQX_OK) {
        status = check_xids(xids, count);
    }
    if (status == MQX_OK) {
        mqx_file_calls_begin(manager);
        status = end_units(manager, xids, count, commit, out_discarded);
        mqx_file_calls_end(manager);
    }
    return status;
}

int mqe_commit_prepared(mqe_manager *manager, const struct ps_xid *xids, uint32_t count)
{
    uint64_t discarded;
    return enter_and_end(manager, xids, count, true, &discarded);
}

int mqe_backout_prepared(mqe_manager *manager, const struct ps_xid *xids, uint32_t count,
                         uint64_t *np_discarded)
{
    return enter_and_end(manager, xids, count, false, np_discarded);
}
