/*
 * replay.c - one record of the tail to the module that knows its type. See replay.h.
 *
 * A record of a type that this version does not know is refused when its must-understand bit is set
 * (mqx_record_parse), else stepped over. IMAGE_CONSUMED counts only when it was written after this
 * very checkpoint: a prepared unit may keep several checkpoints at one begin LSN.
 */
#include "recovery/replay_private.h"

#include <stdlib.h>

/* Also after a failure half way. */
void mqx_replay_free(struct mqx_replay *replay)
{
    struct mqx_replay_page *page = replay->pages;
    MQX_ASSERT(replay->put_count <= replay->put_capacity);
    MQX_ASSERT(replay->op_count <= replay->op_capacity);
    while (page != NULL) {
        struct mqx_replay_page *next = page->next;
        free(page);
        page = next;
    }
    free(replay->puts);
    free(replay->images);
    free(replay->objects);
    mqx_number_set_free(&replay->removed);
    mqx_number_map_free(&replay->counts);
    mqx_number_map_free(&replay->delayed);
    free(replay->delays);
    free(replay->moves);
    mqx_number_map_free(&replay->moved);
    free(replay->ops);
    free(replay->units);
    free(replay->prepared);
    free(replay->held);
    mqx_number_map_free(&replay->held_by_number);
    mqx_number_map_free(&replay->prepared_by_id);
    *replay = (struct mqx_replay){0};
}

/* Numbers and unit ids continue above everything that was read. From PS_NUMBER_LIMIT on none is
 * given out, so what a damaged region has brought into the journal there need not be avoided. */
static void note_numbers(struct mqx_replay *replay, const struct psj_record *head)
{
    MQX_ASSERT(head->eighths > 0); /* verified */
    MQX_ASSERT(replay->next_unit_id != 0 && replay->next_number != 0);
    if (head->number >= replay->next_number && head->number < PS_NUMBER_LIMIT - 1) {
        replay->next_number = head->number + 1;
    }
    if (head->unit_id >= replay->next_unit_id && head->unit_id < PS_NUMBER_LIMIT - 1) {
        replay->next_unit_id = head->unit_id + 1;
    }
}

/* Numbers are noted after the record was taken, of dropped units too: a number must never be
 * given twice. */
int mqx_replay_record(void *arg, uint64_t lsn, const struct psj_record *head)
{
    struct mqx_replay *replay = arg;
    struct mqx_decoded record;
    MQX_ASSERT(lsn >= replay->begin_lsn);
    MQX_ASSERT(lsn % 8 == 0);
    MQX_ASSERT(head != NULL);
    int status = mqx_replay_sweep(replay);
    if (status == MQX_OK) {
        status = mqx_record_parse(head, &record);
    }
    if (status != MQX_OK) {
        return status;
    }
    switch (mqx_record_type(head)) {
    case PS_REC_COMMIT: status = mqx_replay_commit(replay, lsn, &record); break;
    case PS_REC_BACKOUT: status = mqx_replay_back_out(replay, &record); break;
    case PS_REC_IMAGE_CONSUMED:
        replay->image_consumed |= record.image->checkpoint_lsn == replay->begin_lsn &&
                                  lsn >= replay->checkpoint_end;
        break;
    case PS_REC_PREPARE: status = mqx_replay_prepare(replay, lsn, &record); break;
    case PS_REC_COMMIT_PREPARED: status = mqx_replay_end_prepared(replay, &record, true); break;
    case PS_REC_BACKOUT_PREPARED: status = mqx_replay_end_prepared(replay, &record, false); break;
    case PS_REC_MOVED: status = mqx_replay_move(replay, lsn, &record); break;
    case PS_REC_TAKEN:
    case PS_REC_PUT:
    case PS_REC_GET:
    case PS_REC_EXPIRE:
    case PS_REC_CHUNK:
    case PS_REC_CLEAR:
    case PS_REC_OBJECT:
    case PS_REC_OBJECT_DELETE: status = mqx_replay_take_record(replay, lsn, &record); break;
    case PS_REC_COMMON: break;
    default: return MQX_OK; /* optional, of a newer version */
    }
    note_numbers(replay, record.head);
    return status;
}
