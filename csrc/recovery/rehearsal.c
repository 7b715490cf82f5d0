/*
 * rehearsal.c - see rehearsal.h. Two restarts are read side by side, without a region: first their
 * objects are compared slot by slot, then their messages in delivery order.
 */
#include "recovery/rehearsal.h"

#include "base/error.h"
#include "recovery/merge.h"
#include "recovery/restart_read.h"
#include "region/damage.h"

#include <string.h>

struct side { /* one of the two restarts */
    struct mqx_restart restart;
    struct mqx_merge merge;
    struct psc_message m; /* the next message */
    bool has;             /* ... is there */
    bool unreadable;      /* the files of this side are damaged */
};

/* ---- objects ---- */

static const struct mqx_replay_definition *definition_in(const struct mqx_replay *replay,
                                                         uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(replay->object_capacity == 0 || replay->objects != NULL);
    return slot < replay->object_capacity ? replay->objects[slot].definition : NULL;
}

static bool same_object(const struct mqx_replay *old, const struct mqx_replay *new, uint32_t slot)
{
    const struct mqx_replay_definition *before = definition_in(old, slot);
    const struct mqx_replay_definition *after = definition_in(new, slot);
    MQX_ASSERT(old != new);
    if (before == NULL || after == NULL) {
        return before == after;
    }
    MQX_ASSERT(slot < old->object_capacity && slot < new->object_capacity);
    return old->objects[slot].newest == new->objects[slot].newest &&
           memcmp(&before->name, &after->name, sizeof before->name) == 0 &&
           before->attrs_length == after->attrs_length &&
           memcmp(before + 1, after + 1, before->attrs_length) == 0;
}

/* 0: all objects are the same; else the slot of one that differs. */
static uint32_t find_other_object(const struct mqx_replay *old, const struct mqx_replay *new)
{
    const size_t slots =
        old->object_capacity > new->object_capacity ? old->object_capacity : new->object_capacity;
    MQX_ASSERT(slots <= UINT32_MAX);
    MQX_ASSERT(old != new);
    for (uint32_t slot = 1; slot < slots; slot++) {
        if (!same_object(old, new, slot)) {
            return slot;
        }
    }
    return 0;
}

/* ---- messages ---- */

static int next(struct side *side)
{
    const struct mqx_replay_put *put = NULL;
    MQX_ASSERT(side->merge.replay == &side->restart.replay);
    MQX_ASSERT(side->has);
    const int status = mqx_merge_next(&side->merge, &side->m, &put, &side->has);
    side->unreadable = status == MQRC_OBJECT_DAMAGED;
    return status;
}

/* Everything that a restart takes from the line: a wrong one would lead to another message, or to
 * none. */
static bool same_message(const struct psc_message *a, const struct psc_message *b)
{
    MQX_ASSERT(a != b);
    MQX_ASSERT(a->number != 0 && b->number != 0);
    return a->number == b->number && a->object == b->object && a->object_gen == b->object_gen &&
           a->placement == b->placement && a->lsn == b->lsn && a->first_lsn == b->first_lsn &&
           a->record_length == b->record_length && a->chunk_count == b->chunk_count &&
           a->length == b->length && a->priority == b->priority && a->has_ext == b->has_ext &&
           a->is_volatile == b->is_volatile && a->tag_msg_id == b->tag_msg_id &&
           a->tag_correl_id == b->tag_correl_id && a->tag_group_id == b->tag_group_id;
}

/* The region keeps an expiry in tenths of a second, rounded up (entry.h); one that is past may have
 * become the region's first tenth. */
static bool same_expiry(const struct psc_message *old, const struct psc_message *new,
                        uint64_t now_us)
{
    enum { TENTH_US = 100000 };
    MQX_ASSERT(old != new);
    MQX_ASSERT(old->number == new->number);
    if (old->expiry_us == 0 || new->expiry_us == 0) {
        return old->expiry_us == new->expiry_us;
    }
    return old->expiry_us <= now_us || (old->expiry_us + TENTH_US - 1) / TENTH_US ==
                                           (new->expiry_us + TENTH_US - 1) / TENTH_US;
}

/* Messages that the older side has and the newer one lacks are skipped when they have expired. */
static int skip_expired(struct side *old, const struct side *new, uint64_t now_us)
{
    int status = MQX_OK;
    MQX_ASSERT(old != new);
    while (status == MQX_OK && old->has && old->m.expiry_us != 0 && old->m.expiry_us <= now_us &&
           (!new->has || mqx_merge_compare(&old->m, &new->m) < 0)) { /* each turn goes on by one */
        status = next(old);
    }
    MQX_ASSERT(status == MQX_OK || !old->has);
    return status;
}

/* *out_number: 0 when all messages are the same, else one that differs. */
static int find_other_message(struct side *old, struct side *new, uint64_t now_us,
                              uint64_t *out_number)
{
    MQX_ASSERT(now_us > 0);
    MQX_ASSERT(old != new);
    *out_number = 0;
    old->has = new->has = true;
    int status = next(old);
    if (status == MQX_OK) {
        status = next(new);
    }
    while (status == MQX_OK && (old->has || new->has)) { /* each turn goes on by one */
        status = skip_expired(old, new, now_us);
        if (status != MQX_OK || (!old->has && !new->has)) {
            break;
        }
        if (!old->has || !new->has || !same_message(&old->m, &new->m) ||
            !same_expiry(&old->m, &new->m, now_us)) {
            *out_number = old->has ? old->m.number : new->m.number;
            return MQX_OK;
        }
        status = next(old);
        if (status == MQX_OK) {
            status = next(new);
        }
    }
    MQX_ASSERT(*out_number == 0);
    return status;
}

/* ---- both sides ---- */

/* Reads one side: checkpoint and journal, up to the end LSN. */
static int read_side(struct mqx_store *store, const char *checkpoint, uint64_t end_lsn,
                     struct side *out)
{
    MQX_ASSERT(end_lsn % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(out->merge.order == NULL);
    mqx_restart_begin(&out->restart, store);
    out->restart.until_lsn = end_lsn;
    int status = mqx_restart_read(&out->restart, checkpoint);
    if (status == MQX_OK) {
        status = mqx_merge_begin(&out->merge, &out->restart.replay,
                                 out->restart.has_checkpoint ? &out->restart.checkpoint : NULL);
    }
    out->unreadable = status == MQRC_OBJECT_DAMAGED;
    return status;
}

static void end_side(struct side *side)
{
    MQX_ASSERT(side != NULL);
    MQX_ASSERT(side->restart.store != NULL || side->merge.order == NULL);
    mqx_merge_end(&side->merge);
    mqx_restart_end(&side->restart);
}

/* Messages that expire up to then may be gone. After the clock was set back they may have been
 * discarded at a time that is still to come. */
static uint64_t time_of_expiry(const struct mqx_store *store)
{
    const uint64_t now_us = store->io->ops->now_us(store->io);
    const uint64_t latest = mqx_load_relaxed(&store->region.header->expired_us);
    MQX_ASSERT(now_us > 0);
    MQX_ASSERT(store->region.header != NULL);
    return now_us > latest ? now_us : latest;
}

/* What the two sides have in common; reports a difference. */
static int compare(struct mqx_store *store, struct side *old, struct side *new)
{
    uint64_t number = 0;
    const uint32_t slot = find_other_object(&old->restart.replay, &new->restart.replay);
    MQX_ASSERT(old != new);
    MQX_ASSERT(old->restart.until_lsn == new->restart.until_lsn);
    if (slot != 0) {
        return mqx_region_damage(&store->region, "an object that a checkpoint would change", slot);
    }
    const int status = find_other_message(old, new, time_of_expiry(store), &number);
    if (status == MQX_OK && number != 0) {
        return mqx_region_damage(&store->region, "a message that a checkpoint would change",
                                 number);
    }
    return status;
}

int mqx_rehearse_checkpoint(struct mqx_store *store, const char *candidate, uint64_t end_lsn)
{
    struct side old = {.has = false}, new = {.has = false};
    MQX_ASSERT(candidate != NULL);
    MQX_ASSERT(end_lsn >= MQX_PAGE_SIZE);
    int status = read_side(store, NULL, end_lsn, &old);
    if (status == MQX_OK) {
        status = read_side(store, candidate, end_lsn, &new);
    }
    if (status == MQX_OK) {
        status = compare(store, &old, &new);
    }
    if (old.unreadable) {
        status = MQX_OK; /* the candidate may be all that is left */
    } else if (status == MQRC_OBJECT_DAMAGED) {
        status = mqx_region_damage(&store->region, "what a checkpoint would lead to", end_lsn);
    }
    end_side(&new);
    end_side(&old);
    return status;
}
