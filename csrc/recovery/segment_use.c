/*
 * segment_use.c - see segment_use.h.
 */
#include "recovery/segment_use.h"

#include "base/error.h"
#include "journal/journal.h"
#include "region/damage.h"

#include <stdlib.h>

/* For qsort: segments by LSN. */
static int by_base(const void *a, const void *b)
{
    const struct mqx_located_segment *first = a;
    const struct mqx_located_segment *second = b;
    MQX_ASSERT(first->size > 0);
    MQX_ASSERT(second->size > 0);
    return first->base_lsn < second->base_lsn ? -1 : first->base_lsn > second->base_lsn;
}

static int copy_table(struct mqx_segment_use *use)
{
    struct mqx_region *region = &use->store->region;
    const struct mqx_journal *journal = region->journal;
    MQX_ASSERT(use->count == 0);
    int status = mqx_lock_take(region, &region->journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX && status == MQX_OK; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        if (MQX_UNLIKELY(!mqx_segment_is_sound(journal, i))) {
            status = mqx_region_damage(region, "journal's segment table", i);
        } else if (segment->state == MQX_SEG_ACTIVE || segment->state == MQX_SEG_FULL) {
            use->segments[use->count++] = (struct mqx_located_segment){
                .base_lsn = segment->base_lsn,
                .size = segment->size,
                .number = segment->number,
                .generation = segment->generation,
                .end_lsn = segment->end_lsn,
                .index = i,
            };
        }
    }
    mqx_lock_drop(region, &region->journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    if (MQX_UNLIKELY(use->count == 0)) {
        return mqx_region_damage(region, "journal's segment table", 0);
    }
    MQX_ASSERT(use->count <= MQX_SEGMENT_MAX);
    qsort(use->segments, use->count, sizeof *use->segments, by_base);
    return MQX_OK;
}

int mqx_segment_use_begin(struct mqx_segment_use *use, struct mqx_store *store)
{
    MQX_ASSERT(use->segments == NULL);
    MQX_ASSERT(store != NULL);
    use->store = store;
    use->segments = calloc(MQX_SEGMENT_MAX, sizeof *use->segments);
    use->live = calloc(MQX_SEGMENT_MAX, sizeof *use->live);
    use->live_bytes = calloc(MQX_SEGMENT_MAX, sizeof *use->live_bytes);
    if (use->segments == NULL || use->live == NULL || use->live_bytes == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a checkpoint");
    }
    return copy_table(use);
}

void mqx_segment_use_end(struct mqx_segment_use *use)
{
    MQX_ASSERT(use->count <= MQX_SEGMENT_MAX);
    MQX_ASSERT(use->count == 0 || use->segments != NULL);
    free(use->segments);
    free(use->live);
    free(use->live_bytes);
    *use = (struct mqx_segment_use){0};
}

const struct mqx_located_segment *mqx_segment_use_locate(struct mqx_segment_use *use, uint64_t lsn)
{
    uint32_t low = 0, high = use->count;
    const struct mqx_located_segment *found = &use->segments[use->last_found];
    MQX_ASSERT(use->count > 0);
    MQX_ASSERT(use->last_found < use->count);
    if (lsn < found->base_lsn || lsn - found->base_lsn >= found->size) {
        while (high - low > 1) {
            const uint32_t middle = (low + high) / 2;
            if (use->segments[middle].base_lsn <= lsn) {
                low = middle;
            } else {
                high = middle;
            }
        }
        use->last_found = low;
        found = &use->segments[low];
    }
    return lsn >= found->base_lsn && lsn - found->base_lsn < found->size ? found : NULL;
}

/* One more that lies from `first_lsn` to `lsn`; its pieces, `spread` bytes, are spread evenly, its
 * last record has `last` bytes. */
static void count_span(struct mqx_segment_use *use, uint64_t first_lsn, uint64_t lsn,
                       uint64_t spread, uint64_t last_bytes)
{
    const struct mqx_located_segment *located = mqx_segment_use_locate(use, lsn);
    MQX_ASSERT(first_lsn <= lsn);
    MQX_ASSERT(use->count > 0);
    if (located == NULL) {
        located = &use->segments[use->count - 1]; /* in a newer one, not retired now */
    }
    const struct mqx_located_segment *last = located;
    while (located->base_lsn > first_lsn && located > use->segments) { /* towards the oldest */
        located -= 1;
    }
    const uint64_t share = spread / (uint64_t)(last - located + 1);
    for (; located <= last; located++) {
        use->live[located->index] += 1;
        use->live_bytes[located->index] += share + (located == last ? last_bytes : 0);
    }
}

void mqx_segment_use_message(struct mqx_segment_use *use, struct psc_message *m)
{
    uint64_t first_lsn = m->lsn;
    MQX_ASSERT(m->number != 0);
    MQX_ASSERT(use->store != NULL);
    if (m->chunk_count > 0) {
        if (mqx_journal_first_lsn(use->store, m->lsn, m->record_length, &first_lsn) == MQX_OK) {
            m->first_lsn = first_lsn;
        } else {
            first_lsn = 0;
        }
    }
    count_span(use, first_lsn, m->lsn, m->chunk_count > 0 ? m->length : 0, m->record_length);
}

void mqx_segment_use_units(struct mqx_segment_use *use, const struct mqx_units_in_flight *units,
                           uint64_t begin_lsn)
{
    MQX_ASSERT(begin_lsn != 0);
    MQX_ASSERT(units->put_count <= units->operation_count);
    for (size_t i = 0; i < units->put_count; i++) {
        const struct psc_message *m = &units->puts[i];
        count_span(use, m->first_lsn, m->lsn, m->chunk_count > 0 ? m->length : 0,
                   m->record_length);
    }
    for (size_t i = 0; i < units->unit_count; i++) {
        if (units->units[i].pieces_lsn != 0) {
            count_span(use, units->units[i].pieces_lsn, begin_lsn - PS_ALIGN, 0, 0);
        }
    }
}

uint64_t mqx_segment_use_oldest(const struct mqx_segment_use *use, uint64_t begin_segment)
{
    uint64_t oldest = begin_segment;
    MQX_ASSERT(use->count > 0);
    MQX_ASSERT(begin_segment != 0);
    for (uint32_t i = 0; i < use->count; i++) {
        const struct mqx_located_segment *located = &use->segments[i];
        if (use->live[located->index] != 0 && located->number < oldest) {
            oldest = located->number;
        }
    }
    return oldest;
}
