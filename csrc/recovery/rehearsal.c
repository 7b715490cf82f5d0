/*
 * rehearsal.c - see rehearsal.h. Two restarts are read without a region: their objects are compared
 * slot by slot, their units by a checksum, their messages in delivery order.
 */
#include "recovery/rehearsal.h"

#include "base/error.h"
#include "recovery/merge.h"
#include "recovery/restart_read.h"
#include "region/damage.h"

#include <stdlib.h>
#include <string.h>

struct side { /* one of the two restarts */
    struct mqx_restart restart;
    struct mqx_merge merge;
    struct psc_message m; /* the next message */
    bool has;             /* ... is there */
    bool unreadable;      /* the files of this side are damaged */
    size_t segment;       /* in which the last message lay, a hint */
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

/* Is it where the older side has it, or had it before one of its moves? */
static bool same_place(const struct side *old, const struct psc_message *new)
{
    const struct mqx_merge *merge = &old->merge;
    MQX_ASSERT(old->m.number == new->number);
    MQX_ASSERT(merge->replay != NULL);
    return (new->lsn == old->m.lsn && new->first_lsn == old->m.first_lsn) ||
           (new->lsn == merge->unmoved_lsn && new->first_lsn == merge->unmoved_first_lsn) ||
           (new->lsn != 0 && mqx_replay_was_moved_to(merge->replay, new));
}

/* Everything else that a restart takes from the line: a wrong one would lead to another message, or
 * to none. */
static bool same_message(const struct psc_message *a, const struct psc_message *b)
{
    MQX_ASSERT(a != b);
    MQX_ASSERT(a->number != 0 && b->number != 0);
    return a->number == b->number && a->object == b->object && a->object_gen == b->object_gen &&
           a->placement == b->placement && a->record_length == b->record_length &&
           a->chunk_count == b->chunk_count && a->length == b->length &&
           a->priority == b->priority && a->has_ext == b->has_ext &&
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

/* Does the candidate keep every segment that the message's records lie in? */
static bool is_kept(struct side *new)
{
    const struct mqx_restart *restart = &new->restart;
    size_t at = 0;
    MQX_ASSERT(new->has);
    MQX_ASSERT(new->segment < restart->segment_count);
    if (new->m.lsn == 0) {
        return true; /* of an image: no segment */
    }
    if (!mqx_load_has_record(restart, &new->m, &new->segment)) {
        return false;
    }
    at = new->segment;
    while (at > 0 && restart->segments[at].entry.base_lsn > new->m.first_lsn) {
        at -= 1; /* pieces stand before the PUT */
        if (at < restart->begin_index && !restart->segments[at].listed) {
            return false;
        }
    }
    return new->m.first_lsn < restart->segments[at].entry.end_lsn;
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
            !same_place(old, &new->m) || !same_expiry(&old->m, &new->m, now_us) ||
            !is_kept(new)) {
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

/* Reads one side: checkpoint and journal, up to the end LSN. The units at `list_lsn` are listed; 0:
 * they are not. */
static int read_side(struct mqx_store *store, const char *checkpoint, uint64_t list_lsn,
                     uint64_t end_lsn, struct side *out)
{
    MQX_ASSERT(end_lsn % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(out->merge.order == NULL);
    mqx_restart_begin(&out->restart, store);
    out->restart.until_lsn = end_lsn;
    out->restart.list_lsn = list_lsn;
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
    if (old->restart.end_units != new->restart.end_units) {
        return mqx_region_damage(&store->region, "units of work that a checkpoint would change",
                                 old->restart.until_lsn);
    }
    const int status = find_other_message(old, new, time_of_expiry(store), &number);
    if (status == MQX_OK && number != 0) {
        return mqx_region_damage(&store->region, "a message that a checkpoint would change",
                                 number);
    }
    return status;
}

/* ---- the older checkpoint ---- */

/* The list of the restart that read it goes over to the caller. */
static struct mqx_older_checkpoint older_of(struct mqx_restart *restart)
{
    struct mqx_older_checkpoint older = {0};
    MQX_ASSERT(restart->listed_count == 0 || restart->listed != NULL);
    if (restart->has_checkpoint) {
        const struct psc_header *header = &restart->checkpoint.header;
        MQX_ASSERT(header->begin_lsn != 0);
        older = (struct mqx_older_checkpoint){header->begin_lsn, header->begin_segment,
                                              restart->listed, restart->listed_count};
        restart->listed = NULL;
        restart->listed_count = 0;
    }
    return older;
}

bool mqx_older_checkpoint_needs(const struct mqx_older_checkpoint *older, uint64_t number)
{
    size_t low = 0, high = older->listed_count;
    MQX_ASSERT(number != 0);
    MQX_ASSERT(older->listed_count == 0 || older->listed != NULL);
    if (older->begin_lsn == 0 || number >= older->begin_segment) {
        return true;
    }
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (older->listed[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < older->listed_count && older->listed[low].number == number;
}

void mqx_older_checkpoint_free(struct mqx_older_checkpoint *older)
{
    MQX_ASSERT(older != NULL);
    MQX_ASSERT(older->listed_count == 0 || older->listed != NULL);
    free(older->listed);
    *older = (struct mqx_older_checkpoint){0};
}

int mqx_find_older_checkpoint(struct mqx_store *store, uint64_t begin_lsn,
                              struct mqx_older_checkpoint *out)
{
    struct mqx_listing listing = {0};
    struct mqx_choice choice = {0};
    struct mqx_restart restart;
    char name[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(begin_lsn != 0);
    mqx_older_checkpoint_free(out);
    mqx_restart_begin(&restart, store);
    restart.until_lsn = begin_lsn; /* beside work: files may have other names */
    int status = mqx_restart_list_files(store, &listing);
    if (status == MQX_OK) {
        status = mqx_restart_choose(&restart, &listing, begin_lsn, &choice);
    }
    if (status == MQX_OK && choice.found) {
        mqx_checkpoint_file_name(name, choice.begin_lsn, true);
        status = mqx_restart_open_checkpoint(&restart, name);
        if (status == MQX_OK) {
            *out = older_of(&restart);
        }
    }
    MQX_ASSERT(out->begin_lsn < begin_lsn);
    mqx_restart_end(&restart);
    mqx_restart_free_listing(&listing);
    return status == MQRC_OBJECT_DAMAGED ? MQX_OK : status;
}

/* ---- the two steps of a rehearsal ---- */

struct mqx_rehearsal {
    struct mqx_store *store;
    uint64_t end_lsn;
    struct side old;
};

int mqx_rehearsal_begin(struct mqx_store *store, uint64_t begin_lsn, uint64_t end_lsn,
                        struct mqx_rehearsal **out)
{
    MQX_ASSERT(begin_lsn >= MQX_PAGE_SIZE);
    MQX_ASSERT(end_lsn >= begin_lsn);
    struct mqx_rehearsal *rehearsal = calloc(1, sizeof *rehearsal);
    *out = rehearsal;
    if (rehearsal == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to rehearse a restart");
    }
    rehearsal->store = store;
    rehearsal->end_lsn = end_lsn;
    const int status = read_side(store, NULL, begin_lsn, end_lsn, &rehearsal->old);
    return rehearsal->old.unreadable ? MQX_OK : status; /* the candidate may be all that is left */
}

const struct mqx_units_in_flight *mqx_rehearsal_units(const struct mqx_rehearsal *rehearsal)
{
    const struct mqx_restart *restart = &rehearsal->old.restart;
    MQX_ASSERT(rehearsal->store != NULL);
    MQX_ASSERT(rehearsal->old.unreadable || restart->list_lsn == 0);
    return rehearsal->old.unreadable || !restart->all_units ? NULL : &restart->units_at;
}

void mqx_rehearsal_older(struct mqx_rehearsal *rehearsal, struct mqx_older_checkpoint *out)
{
    MQX_ASSERT(rehearsal->store != NULL);
    mqx_older_checkpoint_free(out);
    *out = older_of(&rehearsal->old.restart);
    MQX_ASSERT(rehearsal->old.restart.listed == NULL);
}

int mqx_rehearsal_compare(struct mqx_rehearsal *rehearsal, const char *candidate)
{
    struct side new = {.has = false};
    MQX_ASSERT(candidate != NULL);
    MQX_ASSERT(rehearsal->store != NULL);
    int status = MQX_OK;
    if (rehearsal->old.unreadable) {
        return MQX_OK;
    }
    status = read_side(rehearsal->store, candidate, 0, rehearsal->end_lsn, &new);
    if (status == MQX_OK) {
        status = compare(rehearsal->store, &rehearsal->old, &new);
    }
    if (rehearsal->old.unreadable) {
        status = MQX_OK; /* found out while its messages were read */
    } else if (status == MQRC_OBJECT_DAMAGED) {
        status = mqx_region_damage(&rehearsal->store->region, "what a checkpoint would lead to",
                                   rehearsal->end_lsn);
    }
    end_side(&new);
    return status;
}

void mqx_rehearsal_end(struct mqx_rehearsal *rehearsal)
{
    if (rehearsal != NULL) {
        MQX_ASSERT(rehearsal->store != NULL);
        MQX_ASSERT(rehearsal->end_lsn != 0);
        end_side(&rehearsal->old);
        free(rehearsal);
    }
}
