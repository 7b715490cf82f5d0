/*
 * checkpoint_round.c - see checkpoint_round.h.
 *
 * Why a checkpoint may free nothing. What the older one of the two needs is kept, and that is as
 * much as was needed before the last round. The segments that a compaction has emptied are freed by
 * the second checkpoint after it, and what a drained queue left behind, too.
 */
#include "recovery/checkpoint_round.h"

#include "base/error.h"
#include "os/block_hook.h"
#include "recovery/checkpoint.h"
#include "recovery/compaction.h"

/* Moves the journal's end on, by a record that changes nothing: a running queue manager has
 * consumed the image of its checkpoint. It may use the reserve, and begins a segment if it must. */
static int append_nothing(struct mqx_store *store)
{
    const struct ps_image image = {
        .checkpoint_lsn = mqx_load_relaxed(&store->region.journal->checkpoint_begin)};
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->ring_lock));
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a record");
    }
    struct mqx_append append = {.record = record,
                                .length = mqx_encode_image_consumed(record, &image)};
    MQX_ASSERT(append.length <= MQX_RING_RECORD_MAX);
    const int status = mqx_journal_append(store, &append);
    return status == MQX_OK ? mqx_flush_to(store, append.end_lsn) : status;
}

/* The next checkpoint frees what only the older one needs. It must not begin where the last one
 * does. */
static int free_what_the_older_one_keeps(struct mqx_store *store)
{
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    MQX_ASSERT(mqx_load_relaxed(&store->region.journal->older_keeps) != 0);
    const int status = append_nothing(store);
    return status == MQX_OK ? mqx_checkpoint(store, MQX_CHECKPOINT_FUZZY) : status;
}

/* Would the files exceed their bound before the next round? And does the older one keep some? */
static bool is_above_goal(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    return mqx_load_relaxed(&journal->older_keeps) != 0 &&
           mqx_journal_stream_bytes(journal) >
               mqx_compaction_goal(journal, mqx_store_live_bytes(&store->region));
}

/* Compaction comes again after the checkpoint, which has counted anew what lies where. */
int mqx_checkpoint_round(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    int status = mqx_compact(store);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    if (status == MQX_OK) {
        status = mqx_checkpoint(store, MQX_CHECKPOINT_FUZZY);
    }
    const uint64_t moved = mqx_load_relaxed(&journal->moved_messages);
    if (status == MQX_OK) {
        status = mqx_compact(store);
    }
    MQX_ASSERT(status != MQX_OK || mqx_load_relaxed(&journal->moved_messages) >= moved);
    if (status == MQX_OK && mqx_load_relaxed(&journal->moved_messages) != moved) {
        status = mqx_checkpoint(store, MQX_CHECKPOINT_FUZZY);
    }
    return status == MQX_OK && is_above_goal(store) ? free_what_the_older_one_keeps(store)
                                                    : status;
}

/* Waits for a round of maintenance that is under way. */
int mqx_checkpoint_now(struct mqx_store *store)
{
    struct mqx_lock *lock = &store->region.header->maintenance_lock;
    MQX_ASSERT(!mqx_lock_held(&store->region, lock));
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->ring_lock));
    mqx_about_to_block();
    int status = mqx_lock_enter(&store->region, lock);
    if (status == MQX_OK) {
        status = mqx_checkpoint_round(store);
        mqx_lock_drop(&store->region, lock);
    }
    return status;
}

/* Has a checkpoint freed nothing, because the older one keeps it? Then a second one helps, as long
 * as they do not begin at the same LSN. A put that is refused again and again writes nothing: then
 * the older one keeps nothing. */
static bool is_second_wanted(struct mqx_store *store, uint64_t used, uint32_t spares)
{
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(used > 0);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    const bool freed = mqx_journal_spare_count(store) > spares ||
                       mqx_load_relaxed(&journal->used_bytes) < used;
    const bool lacking = mqx_load_relaxed(&journal->way_out) == MQX_WAY_OUT_MISSING &&
                         mqx_journal_reserved_count(journal) < MQX_RESERVED_SEGMENTS;
    return (!freed || lacking) &&
           mqx_load_relaxed(&journal->older_keeps) != 0;
}

/* The first one frees what is older than the one before it, the second what is older than the
 * first. */
int mqx_checkpoint_free_all(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    const uint64_t used = mqx_load_relaxed(&journal->used_bytes);
    const uint32_t spares = mqx_journal_spare_count(store);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    const int status = mqx_checkpoint_round(store);
    return status == MQX_OK && is_second_wanted(store, used, spares)
               ? free_what_the_older_one_keeps(store)
               : status;
}

/* The lock is held throughout: an append in between must not come here again. */
int mqx_checkpoint_make_room(struct mqx_store *store)
{
    struct mqx_lock *lock = &store->region.header->maintenance_lock;
    MQX_ASSERT(!mqx_lock_held(&store->region, lock));
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    mqx_about_to_block();
    int status = mqx_lock_enter(&store->region, lock);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_checkpoint_free_all(store);
    mqx_lock_drop(&store->region, lock);
    return status;
}

/* The first checkpoint counts what lies where, the second one needs what was emptied no more, the
 * third one frees it. */
int mqx_compact_now(struct mqx_store *store)
{
    struct mqx_lock *lock = &store->region.header->maintenance_lock;
    MQX_ASSERT(!mqx_lock_held(&store->region, lock));
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->ring_lock));
    mqx_about_to_block();
    int status = mqx_lock_enter(&store->region, lock);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_checkpoint(store, MQX_CHECKPOINT_FUZZY);
    if (status == MQX_OK) {
        status = mqx_compact_to(store, 0);
    }
    if (status == MQX_OK) {
        status = mqx_checkpoint(store, MQX_CHECKPOINT_FUZZY);
    }
    if (status == MQX_OK && mqx_load_relaxed(&store->region.journal->older_keeps) != 0) {
        status = free_what_the_older_one_keeps(store);
    }
    mqx_lock_drop(&store->region, lock);
    return status;
}

/* ---- when ---- */

/* How much journal was written since the last checkpoint began. Read without locks: a number that
 * is a moment old only shifts the checkpoint. So the tail may be older than the begin of a
 * checkpoint that was taken since: then none is due (rule 55). */
static uint64_t written_since(const struct mqx_journal *journal)
{
    const uint64_t tail = mqx_load_relaxed(&journal->tail);
    const uint64_t begin = mqx_load_relaxed(&journal->checkpoint_begin);
    MQX_ASSERT(journal->limit > 0);
    MQX_ASSERT(journal->segment_size > 0);
    return tail > begin ? tail - begin : 0;
}

/* From one checkpoint to the next: at least twice what it writes itself. */
static uint64_t usual_interval(const struct mqx_journal *journal)
{
    const uint64_t least = mqx_journal_interval(journal);
    const uint64_t twice = 2 * mqx_load_relaxed(&journal->checkpoint_bytes);
    MQX_ASSERT(least > 0);
    MQX_ASSERT(least <= journal->limit);
    return least > twice ? least : twice;
}

bool mqx_checkpoint_due(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(journal != NULL);
    const uint64_t since = written_since(journal);
    const uint64_t used = mqx_load_relaxed(&journal->used_bytes);
    return since >= journal->limit / 4 || since >= usual_interval(journal) ||
           (since >= journal->limit / 16 && used > journal->limit / 5 * 4) ||
           mqx_load_relaxed(&journal->checkpoint_damaged) != 0;
}

/* After a round, an interval may be added. But what messages take may have become less since, and
 * the bound with it. */
bool mqx_checkpoint_wanted(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(journal != NULL);
    const uint64_t since = written_since(journal);
    if (mqx_checkpoint_due(store) ||
        (since >= usual_interval(journal) / 16 && mqx_journal_would_learn(&store->region))) {
        return true;
    }
    const uint64_t used = mqx_load_relaxed(&journal->used_bytes);
    return since >= usual_interval(journal) / 4 &&
           used > mqx_journal_interval(journal) +
                      mqx_compaction_goal(journal, mqx_store_live_bytes(&store->region));
}

bool mqx_checkpoint_is_late(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(journal != NULL);
    const uint64_t since = written_since(journal);
    MQX_ASSERT(journal->limit > 0);
    return since >= 2 * usual_interval(journal) || since >= journal->limit / 2 ||
           mqx_load_relaxed(&journal->used_bytes) > journal->limit / 5 * 4 ||
           mqx_load_relaxed(&journal->checkpoint_damaged) != 0;
}
