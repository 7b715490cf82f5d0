/*
 * prepared.c - see prepared.h.
 */
#include "unit/prepared.h"

#include "catalog/catalog.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define SET32(at, value) mqx_undo_store32(region->base, &region->header->slots_lock, (at), (value))
#define SET64(at, value) mqx_undo_store64(region->base, &region->header->slots_lock, (at), (value))

/* ---- which units there are ---- */

static bool is_decided(const struct mqx_region *region, const struct mqx_context *unit)
{
    const struct mqx_context *leader = mqx_context(region, mqx_load_acquire(&unit->resolver));
    return leader != NULL && mqx_load_acquire(&leader->state) == MQX_CTX_DECIDED;
}

/* The resolver is looked at first: one that is 0 because the unit is over was made so after FREE. */
bool mqx_prepared_is_open(const struct mqx_region *region, const struct mqx_context *unit)
{
    return !is_decided(region, unit) && mqx_load_acquire(&unit->state) == MQX_CTX_PREPARED;
}

static int unknown(const struct ps_xid *xid)
{
    char text[MQX_XID_TEXT_SIZE];
    return mqx_fail(MQRC_UOW_NOT_AVAILABLE, "no unit of work is prepared as %s",
                    mqx_xid_text(xid, text));
}

int mqx_prepared_find(struct mqx_store *store, const struct ps_xid *xid, uint32_t *out,
                      uint64_t *out_id)
{
    struct mqx_region *region = &store->region;
    struct mqx_lock *lock = &region->header->slots_lock;
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    *out = mqx_xid_table_find(region, xid);
    const struct mqx_context *unit = mqx_context(region, *out);
    const bool open = unit != NULL && mqx_prepared_is_open(region, unit);
    const uint64_t lsn = open ? mqx_load_relaxed(&unit->decided_lsn) : 0;
    *out_id = open ? mqx_load_relaxed(&unit->unit_id) : 0;
    mqx_lock_drop(region, lock);
    return open ? mqx_flush_to(store, lsn) : unknown(xid);
}

static int in_use(const struct ps_xid *xid)
{
    char text[MQX_XID_TEXT_SIZE];
    return mqx_fail(MQRC_UOW_IN_PROGRESS, "%s is the xid of a prepared unit of work",
                    mqx_xid_text(xid, text));
}

int mqx_prepared_is_free(struct mqx_store *store, const struct ps_xid *xid)
{
    struct mqx_region *region = &store->region;
    int status = mqx_lock_take(region, &region->header->slots_lock);
    if (status != MQX_OK) {
        return status;
    }
    const bool used = mqx_xid_table_find(region, xid) != 0;
    mqx_lock_drop(region, &region->header->slots_lock);
    return used ? in_use(xid) : MQX_OK;
}

/* ---- preparing ---- */

/* The context belongs to the caller until it is PREPARED, so plain stores fill it in. */
static int list_xid(struct mqx_region *region, uint32_t slot, const struct ps_xid *xid,
                    const struct mqx_prepare *facts)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_context *unit = mqx_context(region, slot);
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
    mqx_store_relaxed(&unit->resolver, 0); /* who read the unit before this one may look at it */
    unit->discarded = 0;
    mqx_xid_table_add(region, slot);
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    return MQX_OK;
}

static int append_prepare(struct mqx_store *store, uint32_t slot, const struct ps_xid *xid,
                          const struct mqx_prepare *facts, uint64_t *out_lsn)
{
    const struct mqx_context *unit = mqx_context(&store->region, slot);
    unsigned char *record = mqx_scratch(1024);
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
    int status = mqx_journal_append(store, &append);
    *out_lsn = append.end_lsn;
    return status;
}

int mqx_prepared_decide(struct mqx_store *store, uint32_t slot, const struct ps_xid *xid,
                        const struct mqx_prepare *facts, uint64_t *out_lsn)
{
    struct mqx_region *region = &store->region;
    const struct mqx_context *unit = mqx_context(region, slot);
    mqx_check(unit != NULL && unit->state == MQX_CTX_ACTIVE);
    mqx_check(unit->pending_kind == MQX_PENDING_NONE && unit->autocommit == 0);
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

/* ---- ending: which ---- */

static int by_context(const void *a, const void *b)
{
    const struct mqx_member *first = a, *second = b;
    return first->context < second->context ? -1 : first->context > second->context;
}

/* The unit that a member was when it was looked up. Slots lock held. */
static const struct mqx_context *same_unit(const struct mqx_ending *ending,
                                           const struct mqx_member *member)
{
    const struct mqx_region *region = &ending->store->region;
    const struct mqx_context *unit = mqx_context(region, member->context);
    const bool same = unit != NULL && unit->xid_listed != 0 &&
                      mqx_load_acquire(&unit->state) == MQX_CTX_PREPARED &&
                      mqx_xid_equal(&unit->xid, &ending->xids[member->xid]);
    return same ? unit : NULL;
}

static int look_up_some(struct mqx_ending *ending, uint32_t from)
{
    struct mqx_region *region = &ending->store->region;
    const uint32_t to = from + MQX_LOCKED_STEPS_MAX < ending->count ? from + MQX_LOCKED_STEPS_MAX
                                                                    : ending->count;
    int status = mqx_lock_take(region, &region->header->slots_lock);
    if (status != MQX_OK) {
        return status;
    }
    uint32_t missing = ending->count;
    for (uint32_t i = from; i < to && missing == ending->count; i++) {
        ending->members[i] =
            (struct mqx_member){.context = mqx_xid_table_find(region, &ending->xids[i]), .xid = i};
        missing = same_unit(ending, &ending->members[i]) == NULL ? i : missing;
    }
    mqx_lock_drop(region, &region->header->slots_lock);
    return missing < ending->count ? unknown(&ending->xids[missing]) : MQX_OK;
}

int mqx_prepared_look_up(struct mqx_ending *ending)
{
    char text[MQX_XID_TEXT_SIZE];
    for (uint32_t i = 0; i < ending->count; i += MQX_LOCKED_STEPS_MAX) {
        int status = look_up_some(ending, i);
        if (status != MQX_OK) {
            return status;
        }
    }
    qsort(ending->members, ending->count, sizeof *ending->members, by_context);
    for (uint32_t i = 1; i < ending->count; i++) {
        if (ending->members[i].context == ending->members[i - 1].context) {
            return mqx_fail(MQRC_OPTIONS_ERROR, "%s is named twice",
                            mqx_xid_text(&ending->xids[ending->members[i].xid], text));
        }
    }
    return MQX_OK;
}

/* ---- ending: claims ---- */

/* One hold. */
static int claim_some(struct mqx_ending *ending)
{
    struct mqx_region *region = &ending->store->region;
    struct mqx_lock *lock = &region->header->slots_lock;
    const struct mqx_member *gone = NULL;
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && ending->claimed < ending->count; i++) {
        const struct mqx_member *member = &ending->members[ending->claimed];
        const struct mqx_context *unit = same_unit(ending, member);
        if (unit == NULL) {
            gone = member;
            break;
        }
        if (unit->resolver != 0) {
            status = MQX_BUSY;
            break;
        }
        SET32(&mqx_context(region, member->context)->resolver, ending->leader);
        mqx_undo_commit(lock);
        ending->unit_ids[ending->claimed++] = mqx_load_relaxed(&unit->unit_id);
    }
    mqx_lock_drop(region, lock);
    return gone != NULL ? unknown(&ending->xids[gone->xid]) : status;
}

int mqx_prepared_claim(struct mqx_ending *ending)
{
    int status = MQX_OK;
    while (status == MQX_OK && ending->claimed < ending->count) {
        status = claim_some(ending);
    }
    return status;
}

/* The first unit from *slot on that has this resolver; 0 at the end. An resolver is only looked for by
 * who leads or sweeps, so nothing is added meanwhile. */
static uint32_t next_of(const struct mqx_region *region, uint32_t leader, uint32_t slot)
{
    const uint64_t used = mqx_load_acquire(&region->header->area[MQX_AREA_CONTEXTS].used);
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
    while (slot != 0 && status == MQX_OK) {
        status = mqx_lock_take(region, lock);
        if (status == MQX_OK) {
            SET32(&mqx_context(region, slot)->resolver, 0);
            mqx_undo_commit(lock);
            mqx_lock_drop(region, lock);
            slot = next_of(region, leader, slot + 1);
        }
    }
    return status;
}

/* ---- ending: the decision, and what follows ---- */

static int append_decision(struct mqx_ending *ending)
{
    const uint32_t size = 256 + ending->count * (uint32_t)sizeof(uint64_t);
    unsigned char *record = mqx_scratch(size);
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the record that ends units");
    }
    const struct mqx_record_head head = {
        .type = ending->commit ? PS_REC_COMMIT_PREPARED : PS_REC_BACKOUT_PREPARED};
    const uint32_t length = mqx_encode_units(record, &head, ending->unit_ids, ending->count);
    return mqx_unit_append(ending->store, ending->leader, record, length, MQX_APPEND_DECIDES, 0);
}

/* The unit is empty: its xid and its slot are free again, in one micro-transaction. */
static int free_member(struct mqx_region *region, uint32_t slot)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_context *unit = mqx_context(region, slot);
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_area *area = &region->header->area[MQX_AREA_CONTEXTS];
    mqx_check(unit->head == 0 && unit->count == 0);
    mqx_xid_table_take_off(region, slot);
    SET32(&unit->state, MQX_CTX_FREE); /* before the resolver: is_open */
    SET32(&unit->resolver, 0);
    SET32(&unit->deleted, 0);
    SET32(&unit->record_count, 0);
    SET32(&unit->running_crc, 0);
    SET32(&unit->must_back_out, 0);
    SET64(&unit->unit_id, 0);
    SET64(&unit->decided_lsn, 0);
    SET64(&unit->first_lsn, 0);
    SET32(&unit->next_free, area->free_head);
    SET32(&area->free_head, slot);
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    return MQX_OK;
}

static int finish_member(struct mqx_store *store, uint32_t slot, bool commit,
                         uint64_t *out_discarded)
{
    struct mqx_region *region = &store->region;
    const struct mqx_context *unit = mqx_context(region, slot);
    mqx_check(unit != NULL);
    int status = mqx_unit_roll(store, slot, commit);
    if (status != MQX_OK) {
        return status;
    }
    const uint32_t deleted = mqx_load_relaxed(&unit->deleted);
    *out_discarded += unit->discarded;
    status = free_member(region, slot);
    if (status == MQX_OK && deleted != 0) {
        mqx_ignore(mqx_catalog_finish(store, deleted)); /* or the maintenance does it */
    }
    return status;
}

/* The leader has no units any more. */
static void close_leader(struct mqx_region *region, uint32_t slot)
{
    struct mqx_context *leader = mqx_context(region, slot);
    mqx_check(leader != NULL && leader->head == 0);
    mqx_store_relaxed(&leader->unit_id, 0); /* who reads the unit looks at it without a lock */
    leader->decided_lsn = 0;
    leader->record_count = 0;
    leader->running_crc = 0;
    mqx_store_release(&leader->first_lsn, 0);
    mqx_store_release(&leader->state, MQX_CTX_IDLE);
    mqx_store_release(&leader->leads, MQX_LEADS_NOBODY);
}

int mqx_prepared_end(struct mqx_ending *ending)
{
    struct mqx_region *region = &ending->store->region;
    const struct mqx_context *leader = mqx_context(region, ending->leader);
    mqx_check(leader != NULL && ending->claimed == ending->count);
    int status = append_decision(ending);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_flush_to(ending->store, leader->decided_lsn);
    for (uint32_t i = 0; i < ending->count && status == MQX_OK; i++) {
        status = finish_member(ending->store, ending->members[i].context, ending->commit,
                               &ending->discarded);
    }
    if (status == MQX_OK) {
        close_leader(region, ending->leader);
    }
    return status;
}

int mqx_prepared_reap(struct mqx_store *store, uint32_t slot)
{
    struct mqx_region *region = &store->region;
    const struct mqx_context *leader = mqx_context(region, slot);
    mqx_check(leader != NULL && leader->leads != MQX_LEADS_NOBODY);
    uint64_t discarded = 0;
    int status = MQX_OK;
    if (leader->state != MQX_CTX_DECIDED) {
        status = mqx_prepared_release(store, slot);
    } else {
        status = mqx_flush_to(store, leader->decided_lsn);
        uint32_t member = next_of(region, slot, 1);
        while (member != 0 && status == MQX_OK) {
            status = finish_member(store, member, leader->leads == MQX_LEADS_COMMIT, &discarded);
            member = next_of(region, slot, member + 1);
        }
    }
    if (status == MQX_OK) {
        close_leader(region, slot);
    }
    return status;
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
    mqx_check(unit != NULL && unit->xid_listed == 0);
    unit->xid = restored->xid;
    unit->unit_id = restored->unit_id;
    unit->first_lsn = restored->first_lsn;
    unit->decided_lsn = restored->prepare_end_lsn;
    unit->prepared_us = restored->prepared_us;
    unit->started_us = restored->prepared_us;
    unit->record_count = restored->record_count;
    unit->running_crc = restored->running_crc;
    unit->process = 0;
    unit->resolver = 0;
    unit->leads = MQX_LEADS_NOBODY;
    unit->autocommit = 0;
    unit->puts = unit->gets = unit->nonpersistent = unit->discarded = 0;
    unit->bytes = 0;
    mqx_xid_table_add(region, *out);
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    mqx_store_release(&unit->state, MQX_CTX_PREPARED);
    return MQX_OK;
}

int mqx_prepared_restore_message(struct mqx_store *store, uint32_t context, uint32_t slot,
                                 enum mqx_message_state state)
{
    struct mqx_region *region = &store->region;
    struct mqx_context *unit = mqx_context(region, context);
    const struct mqx_message *message = mqx_message(region, slot);
    struct mqx_stripe_guard guard;
    mqx_check(unit != NULL && message != NULL);
    int status = mqx_stripe_guard_take(region, message->object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    mqx_queue_claim(&guard, mqx_object(region, message->object), slot, state, context);
    mqx_stripe_guard_commit(&guard);
    mqx_stripe_guard_drop(&guard);
    unit->puts += state == MQX_MSG_PUT;
    unit->gets += state == MQX_MSG_GOT;
    unit->nonpersistent += (message->flags & (MQX_MSGF_TAKEN | MQX_MSGF_VOLATILE)) != 0;
    unit->bytes += message->length;
    return MQX_OK;
}
