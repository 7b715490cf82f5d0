/*
 * replay_sweep.c - frees the entries of what is gone, so that the memory and time of a restart do
 * not grow with what has come and gone in the tail. See replay.h.
 *
 *   table            entry is freed when                          why nobody asks for it again
 *   puts             it is DROPPED                                it never takes effect
 *                    it is EFFECTIVE, its message not present     see below
 *   moves, moved     the message's number is in `removed`         asked about present messages only
 *   counts           the message's number is in `removed`         asked about present messages only
 *   prepared_by_id   the unit has its outcome (index 0)           0 and absent mean the same
 *
 * Why a message that is not present never is again. mqx_replay_is_present() refuses it for one of
 * three reasons, and each lasts:
 *   removed      numbers stay in that set to the end. So it does not matter where else the message
 *                is: a fuzzy checkpoint may list one whose PUT and GET are both in the tail, and
 *                the set refuses the line. Only the PUT's entry is freed.
 *   CLEAR        the bound of a generation only rises.
 *   its object   the generation of a slot only rises, and no OBJECT follows the OBJECT_DELETE of
 *                its generation. (The checkpoint may know of a deletion that comes later in the
 *                tail; then the OBJECT in between is older than the checkpoint's end. A PUT before
 *                it is DROPPED, as always, one behind it goes with the deletion that follows.)
 * A number is never given twice, so no later PUT needs the entry that was freed.
 *
 * What is never freed
 *   WAITING puts   operations of undecided units, prepared ones included, refer to them.
 *   images         whether they count is known at the end of the tail; the checkpoint bounds them.
 *   operations     their unit frees them (mqx_replay_end_unit).
 *   removed        one bit a message where numbers are close together (base/number_set.h).
 *
 * When: a table is gone through when it has grown to twice what the last pass left, so each record
 * pays for a constant number of entries. The array of puts does not shrink and none of its entries
 * moves (operations have indexes): a pass comes when no entry is free, and afterwards at least half
 * of them are free or the array may double. Entries used: at most twice the highest number of
 * present and waiting puts at one time.
 *
 * Crash safety: nothing is written. A sweep changes only memory of the process that restarts or
 * rehearses, and the outcome of the replay is the same with and without it.
 */
#include "recovery/replay_private.h"

#include <stdlib.h>

/* Entries of a table below which it is left alone: few, so that the short journals of the crash
 * layers are swept, too. */
enum { SWEEP_LEAST = 8 };

static size_t at_next(size_t kept)
{
    MQX_ASSERT(kept <= SIZE_MAX / 2);
    return 2 * kept > SWEEP_LEAST ? 2 * kept : SWEEP_LEAST;
}

/* ---- puts ---- */

static bool is_gone(const struct mqx_replay *replay, const struct mqx_replay_put *put)
{
    MQX_ASSERT(put->state <= MQX_PUT_FREE);
    MQX_ASSERT(put->image <= replay->image_count);
    if (put->image != 0) {
        return false;
    }
    return put->state == MQX_PUT_DROPPED || (put->state == MQX_PUT_EFFECTIVE &&
                                             !mqx_replay_is_present(replay, &put->m));
}

/* Every entry is in use when it begins. */
static void sweep_puts(struct mqx_replay *replay)
{
    size_t freed = 0;
    MQX_ASSERT(replay->free_put == 0);
    MQX_ASSERT(replay->put_count <= UINT32_MAX);
    for (size_t i = replay->put_count; i-- > 0;) { /* the list begins with the lowest index */
        struct mqx_replay_put *put = &replay->puts[i];
        if (is_gone(replay, put)) {
            put->state = MQX_PUT_FREE;
            put->m.object = replay->free_put;
            replay->free_put = (uint32_t)i + 1;
            freed += 1;
        }
    }
    const size_t wanted = at_next(replay->put_count - freed);
    replay->sweep_at.puts = wanted > replay->put_count ? wanted : replay->put_count;
}

/* ---- maps ---- */

/* Of a table of message numbers: those that are not gone. Of prepared units: those that wait. */
static bool is_kept(const struct mqx_replay *replay, const struct mqx_number_map *map, size_t at)
{
    MQX_ASSERT(at < map->capacity);
    MQX_ASSERT(map->numbers[at] != 0);
    return map == &replay->prepared_by_id ? map->values[at] != 0
                                          : !mqx_number_set_has(&replay->removed, map->numbers[at]);
}

/* A new table with the entries that are kept: numbers are never taken out of one. */
static int sweep_map(const struct mqx_replay *replay, struct mqx_number_map *map, size_t *sweep_at)
{
    struct mqx_number_map kept = {0};
    size_t to = 0;
    bool is_new = false;
    int status = MQX_OK;
    MQX_ASSERT(map->values != NULL);
    for (size_t at = 0; at < map->capacity && status == MQX_OK; at++) {
        if (map->numbers[at] != 0 && is_kept(replay, map, at)) {
            status = mqx_number_map_add(&kept, map->numbers[at], &to, &is_new);
            if (status == MQX_OK) {
                kept.values[to] = map->values[at];
            }
        }
    }
    struct mqx_number_map *unused = status == MQX_OK ? map : &kept;
    mqx_number_map_free(unused);
    if (status == MQX_OK) {
        *map = kept;
        *sweep_at = at_next(kept.count);
    }
    MQX_ASSERT(status != MQX_OK || map->count < *sweep_at);
    return status;
}

/* ---- moves ---- */

/* The moves that are kept move up, and are linked to those of their message in the same order. */
static int sweep_moves(struct mqx_replay *replay)
{
    struct mqx_number_map last = {0};
    size_t count = 0, at = 0;
    bool is_new = false;
    int status = MQX_OK;
    MQX_ASSERT(replay->moved.count <= replay->move_count);
    for (size_t i = 0; i < replay->move_count && status == MQX_OK; i++) {
        struct mqx_replay_move move = replay->moves[i];
        if (mqx_number_set_has(&replay->removed, move.m.number)) {
            continue;
        }
        status = mqx_number_map_add(&last, move.m.number, &at, &is_new);
        if (status == MQX_OK) {
            move.before = is_new ? 0 : last.values[at] + 1;
            last.values[at] = (uint32_t)count;
            replay->moves[count++] = move;
        }
    }
    if (status != MQX_OK) {
        mqx_number_map_free(&last);
        return status; /* the replay is of no use */
    }
    mqx_number_map_free(&replay->moved);
    replay->moved = last;
    replay->move_count = count;
    replay->sweep_at.moves = at_next(count);
    MQX_ASSERT(replay->moved.count <= count);
    return MQX_OK;
}

/* ---- all ---- */

int mqx_replay_sweep(struct mqx_replay *replay)
{
    int status = MQX_OK;
    MQX_ASSERT(replay->held == NULL); /* held messages have indexes of puts */
    MQX_ASSERT(replay->free_put <= replay->put_count);
    if (replay->free_put == 0 && replay->put_count >= SWEEP_LEAST &&
        replay->put_count >= replay->sweep_at.puts) {
        sweep_puts(replay);
    }
    if (replay->move_count >= SWEEP_LEAST && replay->move_count >= replay->sweep_at.moves) {
        status = sweep_moves(replay);
    }
    if (status == MQX_OK && replay->counts.count >= SWEEP_LEAST &&
        replay->counts.count >= replay->sweep_at.counts) {
        status = sweep_map(replay, &replay->counts, &replay->sweep_at.counts);
    }
    if (status == MQX_OK && replay->prepared_by_id.count >= SWEEP_LEAST &&
        replay->prepared_by_id.count >= replay->sweep_at.prepared) {
        status = sweep_map(replay, &replay->prepared_by_id, &replay->sweep_at.prepared);
    }
    return status;
}
