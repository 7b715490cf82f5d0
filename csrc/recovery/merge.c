/*
 * merge.c - see merge.h. Two cursors, one in each source; the lower message in delivery order comes
 * next.
 */
#include "recovery/merge.h"

#include "base/assert.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int mqx_merge_compare(const struct psc_message *a, const struct psc_message *b)
{
    MQX_ASSERT(a != b);
    MQX_ASSERT(a->placement <= MQX_MAX_PRIORITY);
    if (a->object != b->object) {
        return a->object < b->object ? -1 : 1;
    }
    if (a->placement != b->placement) {
        return a->placement > b->placement ? -1 : 1;
    }
    return a->number < b->number ? -1 : a->number > b->number;
}

int mqx_merge_bad_message(const struct mqx_checkpoint_reader *reader, const struct psc_message *m,
                          const char *what)
{
    MQX_ASSERT(what != NULL);
    MQX_ASSERT(m != NULL);
    if (reader == NULL) {
        return mqx_fail(MQRC_OBJECT_DAMAGED, "message %" PRIu64 " at LSN %" PRIu64 ": %s",
                        m->number, m->lsn, what);
    }
    return mqx_fail(MQRC_OBJECT_DAMAGED,
                    "message %" PRIu64 " at LSN %" PRIu64 " (checkpoint/%s): %s", m->number, m->lsn,
                    reader->name, what);
}

/* ---- the stream ---- */

static bool line_is_sound(const struct psc_message *m)
{
    MQX_ASSERT(m != NULL);
    MQX_ASSERT((uintptr_t)m % sizeof(uint64_t) == 0);
    return m->placement <= MQX_MAX_PRIORITY && m->number != 0 && m->zero == 0 &&
           m->due_us <= PS_DUE_MAX && m->has_ext <= 1 && m->is_volatile <= 1 &&
           m->length <= MQX_MAX_BODY;
}

/* The next block of messages; none is left to be decoded when there is no more. */
static int next_block(struct mqx_merge *merge)
{
    struct mqx_checkpoint_reader *reader = merge->reader;
    const unsigned char *payload = NULL;
    struct psc_block block;
    MQX_ASSERT(merge->columns.left == 0);
    while (merge->columns.left == 0 && !reader->ended) { /* bounded by the file's size */
        const int status = mqx_checkpoint_file_next(reader, &block, &payload);
        if (status != MQX_OK) {
            return status;
        }
        if (block.type == PSC_MESSAGES &&
            !mqx_columns_open(&merge->columns, payload, block.length, block.count)) {
            return mqx_checkpoint_file_damaged(reader, reader->at, "columns of a MESSAGES block");
        }
    }
    MQX_ASSERT(merge->columns.left > 0 || reader->ended);
    return MQX_OK;
}

/* Decodes the next messages; none at the end of the stream. */
static int decode(struct mqx_merge *merge)
{
    int status = MQX_OK;
    MQX_ASSERT(merge->next_decoded == merge->decoded_count);
    if (merge->columns.left == 0) {
        status = next_block(merge);
    }
    const uint32_t left = merge->columns.left;
    merge->next_decoded = 0;
    merge->decoded_count = status != MQX_OK ? 0 : left < MQX_COLUMNS_STEP ? left : MQX_COLUMNS_STEP;
    if (status == MQX_OK &&
        !mqx_columns_next(&merge->columns, merge->decoded, merge->decoded_count)) {
        status = mqx_checkpoint_file_damaged(merge->reader, merge->reader->at,
                                             "a value of a MESSAGES block exceeds its field");
    }
    MQX_ASSERT(merge->decoded_count <= left);
    return status;
}

/* Moves the stream to the next message. */
static int advance(struct mqx_merge *merge)
{
    struct mqx_checkpoint_reader *reader = merge->reader;
    const struct psc_message *before = merge->listed;
    MQX_ASSERT(reader != NULL);
    MQX_ASSERT(merge->next_decoded <= merge->decoded_count);
    if (merge->next_decoded == merge->decoded_count) {
        if (before != NULL) {
            merge->last = *before;
            before = &merge->last;
        }
        const int status = decode(merge);
        if (status != MQX_OK) {
            return status;
        }
    }
    merge->listed = NULL;
    if (merge->decoded_count == 0) {
        return MQX_OK;
    }
    const struct psc_message *m = &merge->decoded[merge->next_decoded++];
    if (!line_is_sound(m)) {
        return mqx_merge_bad_message(reader, m, "its line contradicts itself");
    }
    if (before != NULL && mqx_merge_compare(before, m) >= 0) {
        return mqx_merge_bad_message(reader, m, "listed out of order or twice");
    }
    MQX_ASSERT(m->length <= MQX_MAX_BODY);
    merge->listed = m;
    return MQX_OK;
}

/* ---- both ---- */

int mqx_merge_begin(struct mqx_merge *merge, const struct mqx_replay *replay,
                    struct mqx_checkpoint_reader *reader)
{
    MQX_ASSERT(replay != NULL);
    MQX_ASSERT(reader == NULL || reader->window.fd >= 0);
    *merge = (struct mqx_merge){.replay = replay, .reader = reader};
    const int status = mqx_replay_sort(replay, &merge->order, &merge->put_count);
    return status == MQX_OK && reader != NULL ? advance(merge) : status;
}

void mqx_merge_end(struct mqx_merge *merge)
{
    MQX_ASSERT(merge != NULL);
    MQX_ASSERT(merge->next_put <= merge->put_count);
    free(merge->order);
    merge->order = NULL;
}

/* The puts lie in the order of the records: what comes soon is fetched while others are loaded. */
static void fetch_ahead(const struct mqx_merge *merge)
{
    enum { AHEAD = 12 };
    const size_t at = merge->next_put + AHEAD;
    MQX_ASSERT(merge->order != NULL);
    MQX_ASSERT(merge->next_put <= merge->put_count);
    if (at < merge->put_count) {
        const struct mqx_replay_put *put = &merge->replay->puts[merge->order[at]];
        __builtin_prefetch(put);
        __builtin_prefetch((const unsigned char *)(put + 1) - 1);
    }
}

/* The next one of the two, whether it is present or not. */
static int take_lower(struct mqx_merge *merge, struct psc_message *out,
                      const struct mqx_replay_put **out_put)
{
    const bool more = merge->next_put < merge->put_count;
    MQX_ASSERT(merge->listed != NULL || more);
    MQX_ASSERT(!more || merge->order[merge->next_put] < merge->replay->put_count);
    const struct mqx_replay_put *put =
        more ? &merge->replay->puts[merge->order[merge->next_put]] : NULL;
    const int order = put == NULL             ? -1
                      : merge->listed == NULL ? 1
                                              : mqx_merge_compare(merge->listed, &put->m);
    fetch_ahead(merge);
    if (order > 0) {
        merge->next_put += 1;
        merge->also = NULL;
        *out = put->m;
        *out_put = put;
        return MQX_OK;
    }
    merge->next_put += order == 0; /* both have it */
    merge->also = order == 0 ? &put->m : NULL;
    *out = *merge->listed;
    *out_put = NULL;
    return advance(merge);
}

int mqx_merge_next(struct mqx_merge *merge, struct psc_message *out,
                   const struct mqx_replay_put **out_put, bool *out_more)
{
    int status = MQX_OK;
    MQX_ASSERT(merge->order != NULL);
    MQX_ASSERT(merge->next_put <= merge->put_count);
    *out_more = false;
    while (status == MQX_OK && !*out_more &&
           (merge->listed != NULL || merge->next_put < merge->put_count)) {
        status = take_lower(merge, out, out_put);
        *out_more = status == MQX_OK && mqx_replay_is_present(merge->replay, out);
    }
    MQX_ASSERT(status == MQX_OK || !*out_more);
    if (*out_more && out->lsn != 0) { /* 0, of an image: it lies in the checkpoint */
        merge->unmoved_lsn = out->lsn;
        merge->unmoved_first_lsn = out->first_lsn;
        if (merge->also != NULL && merge->also->lsn > out->lsn) {
            out->lsn = merge->also->lsn;
            out->first_lsn = merge->also->first_lsn;
        }
        status = mqx_replay_locate(merge->replay, out);
        *out_more = status == MQX_OK;
    }
    return status;
}
