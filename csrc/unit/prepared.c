/*
 * prepared.c - see prepared.h.
 */
#include "unit/prepared.h"

#include "base/assert.h"
#include "base/error.h"
#include "catalog/catalog_delete.h"
#include "region/damage.h"

#include <stdlib.h>

enum {
    PREPARE_RECORD_MAX = 1024, /* bytes of a PREPARE record, at the most */
    DECISION_OVERHEAD = 256,   /* of the record that decides, besides the unit ids */
};

#define SET32(at, value) mqx_undo_store32(region->base, &region->header->slots_lock, (at), (value))
#define SET64(at, value) mqx_undo_store64(region->base, &region->header->slots_lock, (at), (value))

static int damaged_unit(const struct mqx_region *region, uint32_t slot)
{
    return mqx_region_damage(region, "the context of a prepared unit", slot);
}

/* ---- which units there are ---- */

static bool is_decided(const struct mqx_region *region, const struct mqx_context *unit)
{
    MQX_ASSERT(unit != NULL);
    const struct mqx_context *leader = mqx_context(region, mqx_load_acquire(&unit->resolver));
    return leader != NULL && mqx_load_acquire(&leader->state) == MQX_CTX_DECIDED;
}

/* The resolver is read before the state: when the unit is over, the state becomes FREE before the
 * resolver becomes 0. */
bool mqx_prepared_is_open(const struct mqx_region *region, const struct mqx_context *unit)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(unit != NULL);
    return !is_decided(region, unit) && mqx_load_acquire(&unit->state) == MQX_CTX_PREPARED;
}

static int unknown(const struct ps_xid *xid)
{
    char text[MQX_XID_TEXT_SIZE];
    MQX_ASSERT(xid != NULL);
    return mqx_fail(MQRC_UOW_NOT_AVAILABLE, "no unit of work is prepared as %s",
                    mqx_xid_text(xid, text));
}

int mqx_prepared_find(struct mqx_store *store, const struct ps_xid *xid, uint32_t *out,
                      uint64_t *out_id)
{
    struct mqx_region *region = &store->region;
    struct mqx_lock *lock = &region->header->slots_lock;
    MQX_ASSERT(!mqx_lock_held(region, lock));
    int status = mqx_lock_enter(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    *out = mqx_xid_table_find(region, xid);
    const struct mqx_context *unit = mqx_context(region, *out);
    const bool open = unit != NULL && mqx_prepared_is_open(region, unit);
    const uint64_t lsn = open ? mqx_load_relaxed(&unit->decided_lsn) : 0;
    *out_id = open ? mqx_load_relaxed(&unit->unit_id) : 0;
    mqx_lock_drop(region, lock);
    MQX_ASSERT(!open || *out != 0);
    return open ? mqx_flush_to(store, lsn) : unknown(xid);
}

static int in_use(const struct ps_xid *xid)
{
    char text[MQX_XID_TEXT_SIZE];
    MQX_ASSERT(xid != NULL);
    return mqx_fail(MQRC_UOW_IN_PROGRESS, "%s is the xid of a prepared unit of work",
                    mqx_xid_text(xid, text));
}

int mqx_prepared_is_free(struct mqx_store *store, const struct ps_xid *xid)
{
    struct mqx_region *region = &store->region;
    MQX_ASSERT(xid->gtrid_length > 0);
    int status = mqx_lock_enter(region, &region->header->slots_lock);
    if (status != MQX_OK) {
        return status;
    }
    const bool used = mqx_xid_table_find(region, xid) != 0;
    mqx_lock_drop(region, &region->header->slots_lock);
    return used ? in_use(xid) : MQX_OK;
}

/* ---- preparing ---- */

/* Copies the values of the preparation into the unit, and lists its xid; 2128. The context belongs
 * to the caller until it is PREPARED, so plain stores fill it in. */
static int list_xid(struct mqx_region *region, uint32_t slot, const struct ps_xid *xid,
                    const struct mqx_prepare *facts)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_context *unit = mqx_context(region, slot);
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT(unit->state == MQX_CTX_ACTIVE);
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    if (mqx_xid_table_find(region, xid) != 0) {
        mqx_lock_drop(region, lock);
        return in_use(xid);
    }
    unit->xid = *xid;
    unit->puts = facts->stored.puts;
    unit->gets = facts->stored.gets;
    unit->bytes = facts->stored.bytes;
    unit->prepared_us = facts->stored.prepared_us;
    unit->nonpersistent = facts->nonpersistent;
    mqx_store_relaxed(&unit->resolver, 0); /* readers without a lock may still look at it */
    unit->discarded = 0;
    status = mqx_xid_table_add(region, slot);
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    return status;
}

static int append_prepare(struct mqx_store *store, uint32_t slot, const struct ps_xid *xid,
                          const struct mqx_prepare *facts, uint64_t *out_lsn)
{
    const struct mqx_context *unit = mqx_context(&store->region, slot);
    unsigned char *record = mqx_scratch(PREPARE_RECORD_MAX);
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT(unit->xid_listed != 0);
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a PREPARE record");
    }
    const struct mqx_record_head head = {.type = PS_REC_PREPARE,
                                         .unit_id = mqx_unit_id(store, slot)};
    const struct ps_commit commit = {
        .first_lsn = unit->first_lsn,
        .record_count = unit->record_count,
        .running_crc = unit->running_crc,
    };
    struct mqx_append append = {
        .record = record,
        .length = mqx_encode_prepare(record, &head, xid, &facts->stored, &commit),
        .flags = MQX_APPEND_PREPARES,
        .context = slot,
    };
    MQX_ASSERT(append.length <= PREPARE_RECORD_MAX);
    int status = mqx_journal_append(store, &append);
    *out_lsn = append.end_lsn;
    MQX_ASSERT(status != MQX_OK || append.end_lsn > append.lsn);
    return status;
}

int mqx_prepared_decide(struct mqx_store *store, uint32_t slot, const struct ps_xid *xid,
                        const struct mqx_prepare *facts, uint64_t *out_lsn)
{
    struct mqx_region *region = &store->region;
    const struct mqx_context *unit = mqx_context(region, slot);
    MQX_ASSERT(slot != 0);
    if (unit == NULL || unit->state != MQX_CTX_ACTIVE || unit->pending_kind != MQX_PENDING_NONE ||
        unit->autocommit != 0) {
        return damaged_unit(region, slot);
    }
    int status = list_xid(region, slot, xid, facts);
    if (status != MQX_OK) {
        return status;
    }
    status = append_prepare(store, slot, xid, facts, out_lsn);
    if (status != MQX_OK && mqx_region_stopped(region) == MQX_RUNNING) {
        const int unlisted = mqx_xid_table_remove(region, slot);
        return unlisted != MQX_OK ? unlisted : status;
    }
    return status;
}

/* ---- resolving: which units ---- */

static int by_context(const void *a, const void *b)
{
    const struct mqx_member *first = a, *second = b;
    MQX_ASSERT(first != NULL);
    MQX_ASSERT(second != NULL);
    return first->context < second->context ? -1 : first->context > second->context;
}

/* The unit of a member when it is still the one that was looked up, else NULL. Slots lock held. */
static const struct mqx_context *same_unit(const struct mqx_prepared_resolution *resolution,
                                           const struct mqx_member *member)
{
    const struct mqx_region *region = &resolution->store->region;
    const struct mqx_context *unit = mqx_context(region, member->context);
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    MQX_ASSERT(resolution->xids != NULL);
    const bool same = unit != NULL && unit->xid_listed != 0 &&
                      mqx_load_acquire(&unit->state) == MQX_CTX_PREPARED &&
                      mqx_xid_equal(&unit->xid, &resolution->xids[member->xid]);
    return same ? unit : NULL;
}

static int look_up_some(struct mqx_prepared_resolution *resolution, uint32_t from)
{
    struct mqx_region *region = &resolution->store->region;
    const uint32_t to = from + MQX_LOCKED_STEPS_MAX < resolution->count
                            ? from + MQX_LOCKED_STEPS_MAX
                            : resolution->count;
    MQX_ASSERT(from < resolution->count);
    int status = mqx_lock_enter(region, &region->header->slots_lock);
    if (status != MQX_OK) {
        return status;
    }
    uint32_t missing = resolution->count;
    for (uint32_t i = from; i < to && missing == resolution->count; i++) {
        resolution->members[i] = (struct mqx_member){
            .context = mqx_xid_table_find(region, &resolution->xids[i]), .xid = i};
        missing = same_unit(resolution, &resolution->members[i]) == NULL ? i : missing;
    }
    mqx_lock_drop(region, &region->header->slots_lock);
    MQX_ASSERT(missing == resolution->count || missing < to);
    return missing < resolution->count ? unknown(&resolution->xids[missing]) : MQX_OK;
}

int mqx_prepared_look_up(struct mqx_prepared_resolution *resolution)
{
    char text[MQX_XID_TEXT_SIZE];
    MQX_ASSERT(resolution->claimed == 0);
    MQX_ASSERT(resolution->members != NULL || resolution->count == 0);
    for (uint32_t i = 0; i < resolution->count; i += MQX_LOCKED_STEPS_MAX) {
        int status = look_up_some(resolution, i);
        if (status != MQX_OK) {
            return status;
        }
    }
    qsort(resolution->members, resolution->count, sizeof *resolution->members, by_context);
    for (uint32_t i = 1; i < resolution->count; i++) {
        if (resolution->members[i].context == resolution->members[i - 1].context) {
            return mqx_fail(MQRC_OPTIONS_ERROR, "%s is named twice",
                            mqx_xid_text(&resolution->xids[resolution->members[i].xid], text));
        }
        MQX_ASSERT(resolution->members[i].context > resolution->members[i - 1].context);
    }
    return MQX_OK;
}

/* ---- resolving: claims ---- */

/* Claims at most 64 members, in one lock hold. */
static int claim_some(struct mqx_prepared_resolution *resolution)
{
    struct mqx_region *region = &resolution->store->region;
    struct mqx_lock *lock = &region->header->slots_lock;
    const struct mqx_member *gone = NULL;
    MQX_ASSERT(resolution->leader != 0);
    MQX_ASSERT(resolution->claimed < resolution->count);
    int status = mqx_lock_enter(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && resolution->claimed < resolution->count; i++) {
        const struct mqx_member *member = &resolution->members[resolution->claimed];
        const struct mqx_context *unit = same_unit(resolution, member);
        if (unit == NULL) {
            gone = member;
            break;
        }
        if (unit->resolver != 0) {
            status = MQX_BUSY;
            break;
        }
        MQX_ASSERT(member->context != resolution->leader);
        SET32(&mqx_context(region, member->context)->resolver, resolution->leader);
        mqx_undo_commit(lock);
        resolution->unit_ids[resolution->claimed++] = mqx_load_relaxed(&unit->unit_id);
    }
    mqx_lock_drop(region, lock);
    return gone != NULL ? unknown(&resolution->xids[gone->xid]) : status;
}

int mqx_prepared_claim(struct mqx_prepared_resolution *resolution)
{
    int status = MQX_OK;
    MQX_ASSERT(resolution->claimed <= resolution->count);
    while (status == MQX_OK && resolution->claimed < resolution->count) {
        status = claim_some(resolution);
    }
    MQX_ASSERT(status != MQX_OK || resolution->claimed == resolution->count);
    return status;
}

/* The first unit from `slot` on that has this resolver; 0 at the end. Only the leader's process, or
 * the reaper when that is dead, calls this, so no unit is added at the same time. */
static uint32_t next_of(const struct mqx_region *region, uint32_t leader, uint32_t slot)
{
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    MQX_ASSERT(leader != 0);
    MQX_ASSERT(slot != 0);
    for (; slot < used; slot++) {
        const struct mqx_context *unit = mqx_context(region, slot);
        if (unit != NULL && mqx_load_acquire(&unit->state) == MQX_CTX_PREPARED &&
            mqx_load_acquire(&unit->resolver) == leader) {
            return slot;
        }
    }
    return 0;
}

int mqx_prepared_release(struct mqx_store *store, uint32_t leader)
{
    struct mqx_region *region = &store->region;
    struct mqx_lock *lock = &region->header->slots_lock;
    uint32_t slot = next_of(region, leader, 1);
    int status = MQX_OK;
    MQX_ASSERT(!mqx_lock_held(region, lock));
    while (slot != 0 && status == MQX_OK) {
        status = mqx_lock_take(region, lock);
        if (status == MQX_OK) {
            MQX_ASSERT(mqx_context(region, slot)->resolver == leader);
            SET32(&mqx_context(region, slot)->resolver, 0);
            mqx_undo_commit(lock);
            mqx_lock_drop(region, lock);
            slot = next_of(region, leader, slot + 1);
        }
    }
    return status;
}

/* ---- resolving: the decision, and what follows ---- */

static int append_decision(struct mqx_prepared_resolution *resolution)
{
    MQX_ASSERT(resolution->leader != 0);
    MQX_ASSERT(resolution->unit_ids != NULL);
    const uint32_t size = DECISION_OVERHEAD + resolution->count * (uint32_t)sizeof(uint64_t);
    unsigned char *record = mqx_scratch(size);
    MQX_ASSERT(resolution->count > 0);
    MQX_ASSERT(size <= MQX_RING_RECORD_MAX);
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the record that ends units");
    }
    const struct mqx_record_head head = {.type = resolution->commit ? PS_REC_COMMIT_PREPARED
                                                                    : PS_REC_BACKOUT_PREPARED};
    const uint32_t length =
        mqx_encode_units(record, &head, resolution->unit_ids, resolution->count);
    MQX_ASSERT(length <= size);
    return mqx_unit_append(resolution->store, resolution->leader, record, length,
                           MQX_APPEND_DECIDES, 0);
}

/* The unit is empty: its xid and its slot are free again, in one micro-transaction. */
static int free_member(struct mqx_region *region, uint32_t slot)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_context *unit = mqx_context(region, slot);
    MQX_ASSERT(unit != NULL);
    if (unit->head != 0 || unit->count != 0) {
        return damaged_unit(region, slot);
    }
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_area *area = &region->header->area[MQX_AREA_CONTEXTS];
    status = mqx_xid_table_unlink(region, slot);
    SET32(&unit->state, MQX_CTX_FREE); /* before the resolver: mqx_prepared_is_open */
    SET32(&unit->resolver, 0);
    SET32(&unit->deleted, 0);
    SET32(&unit->record_count, 0);
    SET32(&unit->running_crc, 0);
    SET64(&unit->unit_id, 0);
    SET64(&unit->decided_lsn, 0);
    SET64(&unit->first_lsn, 0);
    SET64(&unit->unit_sum, 0);
    SET32(&unit->next_free, area->free_head);
    SET32(&area->free_head, slot);
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    return status;
}

static int finish_member(struct mqx_store *store, uint32_t slot, bool commit,
                         uint64_t *out_discarded)
{
    struct mqx_region *region = &store->region;
    const struct mqx_context *unit = mqx_context(region, slot);
    MQX_ASSERT(out_discarded != NULL);
    if (unit == NULL) {
        return damaged_unit(region, slot);
    }
    int status = mqx_unit_roll(store, slot, commit);
    if (status != MQX_OK) {
        return status;
    }
    const uint32_t deleted = mqx_load_relaxed(&unit->deleted);
    *out_discarded += unit->discarded;
    status = free_member(region, slot);
    if (status == MQX_OK && deleted != 0) {
        mqx_ignore(mqx_catalog_finish(store, deleted)); /* or the maintenance thread does it */
    }
    return status;
}

/* Ends the leading of a context that is the resolver of no unit any more. */
static int close_leader(struct mqx_region *region, uint32_t slot)
{
    struct mqx_context *leader = mqx_context(region, slot);
    MQX_ASSERT(next_of(region, slot, 1) == 0);
    if (leader == NULL || leader->head != 0) {
        return damaged_unit(region, slot);
    }
    mqx_store_relaxed(&leader->unit_id, 0); /* read without a lock by mqx_browse_prepared */
    leader->decided_lsn = 0;
    leader->record_count = 0;
    leader->running_crc = 0;
    leader->unit_sum = 0;
    mqx_store_release(&leader->first_lsn, 0);
    mqx_store_release(&leader->state, MQX_CTX_IDLE);
    mqx_store_release(&leader->leads, MQX_LEADS_NONE);
    return MQX_OK;
}

int mqx_prepared_resolve(struct mqx_prepared_resolution *resolution)
{
    struct mqx_region *region = &resolution->store->region;
    const struct mqx_context *leader = mqx_context(region, resolution->leader);
    MQX_ASSERT(resolution->claimed == resolution->count);
    MQX_ASSERT(resolution->count > 0);
    if (leader == NULL) {
        return damaged_unit(region, resolution->leader);
    }
    int status = append_decision(resolution);
    if (status != MQX_OK) {
        return status;
    }
    MQX_ASSERT(leader->state == MQX_CTX_DECIDED);
    status = mqx_flush_decided(resolution->store, leader->decided_lsn);
    for (uint32_t i = 0; i < resolution->count && status == MQX_OK; i++) {
        status = finish_member(resolution->store, resolution->members[i].context,
                               resolution->commit, &resolution->discarded);
    }
    return status == MQX_OK ? close_leader(region, resolution->leader) : status;
}

int mqx_prepared_reap(struct mqx_store *store, uint32_t slot)
{
    struct mqx_region *region = &store->region;
    const struct mqx_context *leader = mqx_context(region, slot);
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(!mqx_lock_held(region, &region->header->slots_lock));
    if (leader == NULL || leader->leads == MQX_LEADS_NONE) {
        return damaged_unit(region, slot);
    }
    uint64_t discarded = 0;
    int status = MQX_OK;
    if (leader->state != MQX_CTX_DECIDED) {
        status = mqx_prepared_release(store, slot);
    } else {
        status = mqx_flush_decided(store, leader->decided_lsn);
        uint32_t member = next_of(region, slot, 1);
        while (member != 0 && status == MQX_OK) {
            status = finish_member(store, member, leader->leads == MQX_LEADS_COMMIT, &discarded);
            member = next_of(region, slot, member + 1);
        }
    }
    return status == MQX_OK ? close_leader(region, slot) : status;
}

/* ---- restart ---- */

int mqx_prepared_restore(struct mqx_store *store, const struct mqx_restored *restored,
                         uint32_t *out)
{
    struct mqx_region *region = &store->region;
    struct mqx_lock *lock = &region->header->slots_lock;
    int status = mqx_slot_take(region, MQX_AREA_CONTEXTS, NULL, out);
    if (status == MQX_OK) {
        status = mqx_lock_take(region, lock);
    }
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_context *unit = mqx_context(region, *out);
    MQX_ASSERT(unit != NULL); /* mqx_slot_take has just marked it */
    MQX_ASSERT(unit->head == 0);
    MQX_ASSERT(unit->count == 0);
    unit->xid = restored->xid;
    unit->unit_id = restored->unit_id;
    unit->first_lsn = restored->first_lsn;
    unit->decided_lsn = restored->prepare_end_lsn;
    unit->prepared_us = restored->prepared_us;
    unit->started_us = restored->prepared_us;
    unit->record_count = restored->record_count;
    unit->running_crc = restored->running_crc;
    unit->unit_sum = mqx_unit_sum(unit);
    unit->process = 0;
    unit->resolver = 0;
    unit->leads = MQX_LEADS_NONE;
    unit->autocommit = 0;
    unit->puts = unit->gets = unit->nonpersistent = unit->discarded = 0;
    unit->bytes = 0;
    status = mqx_xid_table_add(region, *out);
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    mqx_store_release(&unit->state, MQX_CTX_PREPARED);
    return status;
}

int mqx_prepared_restore_message(struct mqx_store *store, uint32_t context, uint32_t slot,
                                 enum mqx_message_state state)
{
    struct mqx_region *region = &store->region;
    struct mqx_context *unit = mqx_context(region, context);
    const struct mqx_message *message = mqx_message(region, slot);
    struct mqx_stripe_guard guard;
    MQX_ASSERT(state == MQX_MSG_PUT || state == MQX_MSG_GOT);
    if (unit == NULL || message == NULL || mqx_object(region, message->object) == NULL) {
        return mqx_region_damage(region, "a message of a prepared unit", slot);
    }
    int status = mqx_stripe_guard_take(region, message->object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    MQX_ASSERT(mqx_delayed_or_available(message)); /* as mqx_queue_load() left it */
    mqx_queue_claim(&guard, mqx_object(region, message->object), slot, state, context);
    mqx_stripe_guard_commit(&guard);
    mqx_stripe_guard_drop(&guard);
    MQX_ASSERT(unit->tail == slot);
    unit->puts += state == MQX_MSG_PUT;
    unit->gets += state == MQX_MSG_GOT;
    unit->nonpersistent += (message->flags & (MQX_MSGF_TAKEN | MQX_MSGF_VOLATILE)) != 0;
    unit->bytes += message->length;
    return MQX_OK;
}
