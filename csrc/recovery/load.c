/*
 * load.c - see load.h.
 *
 * Two passes over the checkpoint. Objects, units and the positions of image messages are needed
 * before the replay, so the first pass reads OBJECTS blocks, steps over MESSAGES blocks, and reads
 * all others. The second one reads everything behind the objects, verified up to the totals in the
 * END block, while messages are loaded.
 *
 * An image message with pieces stands as CHUNK records followed by its PUT, possibly across blocks:
 * the first pass notes where the first of them lies.
 */
#include "recovery/load.h"

#include "base/error.h"
#include "recovery/merge.h"
#include "region/damage.h"
#include "unit/prepared.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the checkpoint's objects and image ---- */

/* The record at `at` in a block's payload; *at moves behind it. */
static int block_record(struct mqx_restart *restart, const unsigned char *payload, uint64_t length,
                        uint64_t *at, struct mqx_decoded *out)
{
    const uint64_t start = *at;
    MQX_ASSERT(start < length);
    int status =
        start % 8 == 0 ? mqx_record_decode(payload + start, length - start, 0, out) : MQX_TORN;
    if (status == MQX_TORN) {
        status = mqx_checkpoint_file_damaged(&restart->checkpoint, restart->checkpoint.at,
                                             "a record in the block before is bad");
    } else if (status == MQX_OK) {
        *at = start + mqx_record_length(out->head);
    }
    MQX_ASSERT(status != MQX_OK || (*at > start && *at <= length));
    return status;
}

/* Definitions of an OBJECTS block; optional records of a newer version are stepped over and not
 * counted. */
static int take_objects(struct mqx_restart *restart, const struct psc_block *block,
                        const unsigned char *payload)
{
    struct mqx_decoded record;
    uint64_t at = 0;
    uint32_t count = 0;
    int status = MQX_OK;
    MQX_ASSERT(block->type == PSC_OBJECTS);
    MQX_ASSERT(payload != NULL);
    while (at < block->length && status == MQX_OK) {
        status = block_record(restart, payload, block->length, &at, &record);
        if (status == MQX_OK && mqx_record_type(record.head) == PS_REC_OBJECT) {
            status = mqx_replay_define(&restart->replay, &record);
            count += 1;
        } else if (status == MQX_OK && mqx_record_type(record.head) == PS_REC_OBJECT_DELETE) {
            status = mqx_replay_undefine(&restart->replay, &record);
            count += 1;
        }
    }
    if (status == MQX_OK && count != block->count) {
        status = mqx_checkpoint_file_damaged(&restart->checkpoint, restart->checkpoint.at,
                                             "an OBJECTS block with other items");
    }
    return status;
}

/* Notes each PUT of an IMAGE block with the offset of its first record. `first` continues from
 * block to block; its `at` is 0 between two messages. */
static int take_image(struct mqx_restart *restart, const struct psc_block *block,
                      const unsigned char *payload, uint64_t payload_at,
                      struct mqx_image_position *first)
{
    struct mqx_decoded record;
    uint64_t at = 0;
    uint32_t count = 0;
    int status = MQX_OK;
    MQX_ASSERT(block->type == PSC_IMAGE);
    MQX_ASSERT(payload_at > MQX_PAGE_SIZE);
    while (at < block->length && status == MQX_OK) {
        const uint64_t start = payload_at + at;
        status = block_record(restart, payload, block->length, &at, &record);
        if (status != MQX_OK) {
            return status;
        }
        count += 1;
        if (first->at == 0) {
            *first = (struct mqx_image_position){start, payload_at + block->length};
        }
        const uint16_t type = mqx_record_type(record.head);
        if (type == PS_REC_PUT) {
            status = mqx_replay_add_image(&restart->replay, &record, first);
            restart->report.image_messages += 1;
            first->at = 0;
        } else if (type != PS_REC_CHUNK) {
            count = UINT32_MAX;
        }
    }
    if (status == MQX_OK && count != block->count) {
        status = mqx_checkpoint_file_damaged(&restart->checkpoint, restart->checkpoint.at,
                                             "an IMAGE block with other items");
    }
    return status;
}

/* Could it be a segment that an older one of the list, or the begin segment, leaves room for? */
static bool segment_is_sound(const struct mqx_restart *restart, const struct psc_segment *segment)
{
    const struct psc_segment *before =
        restart->listed_count > 0 ? &restart->listed[restart->listed_count - 1] : NULL;
    MQX_ASSERT(segment != NULL);
    MQX_ASSERT(restart->has_checkpoint);
    return segment->number != 0 && segment->number < restart->checkpoint.header.begin_segment &&
           segment->base_lsn % MQX_PAGE_SIZE == 0 && segment->end_lsn % MQX_PAGE_SIZE == 0 &&
           segment->end_lsn > segment->base_lsn &&
           segment->end_lsn <= restart->checkpoint.header.begin_lsn &&
           (before == NULL || (segment->number > before->number &&
                               segment->generation > before->generation &&
                               segment->base_lsn >= before->end_lsn));
}

/* A SEGMENTS block: the segments before the begin segment that must be there. */
static int take_segments(struct mqx_restart *restart, const struct psc_block *block,
                         const unsigned char *payload)
{
    MQX_ASSERT(block->type == PSC_SEGMENTS);
    MQX_ASSERT(block->length == block->count * sizeof *restart->listed);
    struct psc_segment *listed =
        realloc(restart->listed, (restart->listed_count + block->count) * sizeof *listed);
    if (listed == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the list of segments");
    }
    restart->listed = listed;
    for (uint32_t i = 0; i < block->count; i++) {
        struct psc_segment segment;
        memcpy(&segment, payload + i * sizeof segment, sizeof segment);
        if (!segment_is_sound(restart, &segment)) {
            return mqx_checkpoint_file_damaged(&restart->checkpoint, restart->checkpoint.at,
                                               "a segment that cannot be needed is listed");
        }
        restart->listed[restart->listed_count++] = segment;
    }
    return MQX_OK;
}

/* Lines of a block behind those of the blocks before it. */
static int add_lines(void *array, size_t *count, const unsigned char *payload, uint32_t lines,
                     size_t size)
{
    void **items = array;
    MQX_ASSERT(size % 8 == 0);
    MQX_ASSERT(lines > 0);
    void *memory = realloc(*items, (*count + lines) * size);
    if (memory == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the units of a checkpoint");
    }
    *items = memory;
    memcpy((unsigned char *)memory + *count * size, payload, lines * size);
    *count += lines;
    return MQX_OK;
}

/* The messages of a block, whose columns are sound, behind those of the blocks before it. */
static int add_puts(struct mqx_restart *restart, const struct psc_block *block,
                    const unsigned char *payload)
{
    struct mqx_units_in_flight *list = &restart->carried;
    struct mqx_message_columns columns;
    bool sound = mqx_columns_open(&columns, payload, block->length, block->count);
    MQX_ASSERT(block->type == PSC_UNIT_PUTS);
    MQX_ASSERT(sound); /* the reader has opened them */
    struct psc_message *puts =
        realloc(list->puts, (list->put_count + block->count) * sizeof *list->puts);
    if (puts == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the units of a checkpoint");
    }
    list->puts = puts;
    while (sound && columns.left > 0) { /* bounded by the block */
        const uint32_t step = columns.left < MQX_COLUMNS_STEP ? columns.left : MQX_COLUMNS_STEP;
        sound = mqx_columns_next(&columns, puts + list->put_count, step);
        list->put_count += step;
    }
    return sound ? MQX_OK
                 : mqx_checkpoint_file_damaged(&restart->checkpoint, restart->checkpoint.at,
                                               "a value of a UNIT_PUTS block exceeds its field");
}

/* A block of units in flight: its lines are loaded together when all are there. */
static int take_units(struct mqx_restart *restart, const struct psc_block *block,
                      const unsigned char *payload)
{
    struct mqx_units_in_flight *list = &restart->carried;
    MQX_ASSERT(restart->has_checkpoint);
    MQX_ASSERT(restart->replay.unit_count == 0);
    if (block->count == 0) {
        return MQX_OK;
    }
    switch (block->type) {
    case PSC_UNITS:
        return add_lines(&list->units, &list->unit_count, payload, block->count,
                         sizeof *list->units);
    case PSC_OPERATIONS:
        return add_lines(&list->operations, &list->operation_count, payload, block->count,
                         sizeof *list->operations);
    default:
        MQX_ASSERT(block->type == PSC_UNIT_PUTS);
        return add_puts(restart, block, payload);
    }
}

static int load_units(struct mqx_restart *restart)
{
    bool sound = true;
    MQX_ASSERT(restart->has_checkpoint);
    MQX_ASSERT(restart->replay.put_count == restart->replay.image_count);
    int status = mqx_units_load(&restart->carried, &restart->replay, &sound);
    if (status == MQX_OK && !sound) {
        status = mqx_checkpoint_file_damaged(&restart->checkpoint, restart->rest_at,
                                             "its units of work contradict each other");
    }
    mqx_units_free(&restart->carried);
    return status;
}

/* Blocks that are read before the messages. */
static bool is_out_of_turn(const struct mqx_restart *restart, uint32_t type)
{
    MQX_ASSERT(restart->has_checkpoint);
    MQX_ASSERT(type != PSC_OBJECTS || restart->replay.put_count == 0);
    return (type == PSC_IMAGE && restart->use_image) || type == PSC_SEGMENTS ||
           type == PSC_UNITS || type == PSC_OPERATIONS || type == PSC_UNIT_PUTS;
}

/* The next block, which is taken out of turn. */
static int take_block(struct mqx_restart *restart, const struct psc_block *peeked,
                      struct mqx_image_position *first)
{
    struct mqx_checkpoint_reader *reader = &restart->checkpoint;
    const uint64_t payload_at = reader->at + sizeof *peeked;
    struct psc_block block;
    const unsigned char *payload;
    MQX_ASSERT(is_out_of_turn(restart, peeked->type));
    MQX_ASSERT(reader->at >= restart->rest_at); /* behind the objects */
    reader->totals.block_count = peeked->sequence;
    const int status = mqx_checkpoint_file_next(reader, &block, &payload);
    if (status != MQX_OK) {
        return status;
    }
    return block.type == PSC_IMAGE      ? take_image(restart, &block, payload, payload_at, first)
           : block.type == PSC_SEGMENTS ? take_segments(restart, &block, payload)
                                        : take_units(restart, &block, payload);
}

/* The messages in between are stepped over here; their blocks are verified when they are loaded. */
static int index_rest(struct mqx_restart *restart)
{
    struct mqx_checkpoint_reader *reader = &restart->checkpoint;
    struct mqx_image_position first = {0, 0};
    int status = MQX_OK;
    MQX_ASSERT(restart->listed_count == 0);
    MQX_ASSERT(restart->replay.image_count == 0);
    for (bool more = true; more && status == MQX_OK;) { /* bounded by the file's size */
        struct psc_block block;
        status = mqx_checkpoint_file_peek(reader, &block);
        if (status == MQX_OK && is_out_of_turn(restart, block.type)) {
            status = take_block(restart, &block, &first);
        } else if (status == MQX_OK) {
            more = block.type != PSC_END;
            restart->listed_messages += block.type == PSC_MESSAGES ? block.count : 0;
            status = more ? mqx_checkpoint_file_skip(reader) : MQX_OK;
        }
    }
    if (status == MQX_OK && first.at != 0) {
        status =
            mqx_checkpoint_file_damaged(reader, first.at, "pieces of a message without its end");
    }
    return status == MQX_OK ? load_units(restart) : status;
}

/* The first pass: definitions into the replay, then segments and image. Where the second pass
 * begins is remembered, with the totals up to there. */
int mqx_load_checkpoint_start(struct mqx_restart *restart)
{
    struct mqx_checkpoint_reader *reader = &restart->checkpoint;
    struct psc_block block;
    const unsigned char *payload;
    MQX_ASSERT(restart->has_checkpoint);
    MQX_ASSERT(reader->at == MQX_PAGE_SIZE); /* nothing was read yet */
    int status = mqx_checkpoint_file_peek(reader, &block);
    while (status == MQX_OK && block.type == PSC_OBJECTS) { /* bounded by the file's size */
        status = mqx_checkpoint_file_next(reader, &block, &payload);
        if (status == MQX_OK) {
            status = take_objects(restart, &block, payload);
        }
        if (status == MQX_OK) {
            status = mqx_checkpoint_file_peek(reader, &block);
        }
    }
    restart->rest_at = reader->at;
    restart->rest_totals = reader->totals;
    return status == MQX_OK ? index_rest(restart) : status;
}

/* ---- objects ----
 *
 * After the replay, so that each slot is loaded once, in its last state.
 */

/* A slot whose object was deleted: the generation must not come back, or records of the deleted
 * object would be taken for the next one's. */
static int skip_generation(struct mqx_region *region, uint32_t slot, uint32_t generation)
{
    struct mqx_area *area = &region->header->area[MQX_AREA_OBJECTS];
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(generation != 0);
    int status = mqx_region_grow(region, MQX_AREA_OBJECTS,
                                 ((uint64_t)slot + 1) * sizeof(struct mqx_object));
    if (status != MQX_OK) {
        return status;
    }
    if (area->used <= slot) {
        mqx_area_set_used(area, (uint64_t)slot + 1);
    }
    struct mqx_object *object = mqx_object(region, slot);
    if (MQX_UNLIKELY(object == NULL || object->state != MQX_OBJ_FREE)) {
        return mqx_region_damage(region, "object slot that should be free", slot);
    }
    object->generation = generation + 1;
    return MQX_OK;
}

/* Slots ascend; mqx_catalog_loaded() then links what refers to other objects. */
int mqx_load_objects(struct mqx_restart *restart)
{
    const struct mqx_replay *replay = &restart->replay;
    int status = MQX_OK;
    MQX_ASSERT(restart->report.objects == 0);
    MQX_ASSERT(replay->object_capacity == 0 || replay->objects != NULL);
    for (uint32_t slot = 1; slot < replay->object_capacity && status == MQX_OK; slot++) {
        const struct mqx_slot_state *state = &replay->objects[slot];
        if (state->definition != NULL) {
            const struct mqx_definition definition = {
                .name = state->definition->name,
                .attrs = state->definition + 1,
                .attrs_length = state->definition->attrs_length,
            };
            status = mqx_catalog_load(restart->store, slot, state->newest, &definition);
            restart->report.objects += 1;
        } else if (state->newest != 0) {
            status = skip_generation(&restart->store->region, slot, state->newest);
        }
    }
    return status == MQX_OK ? mqx_catalog_loaded(restart->store) : status;
}

/* ---- messages ---- */

struct loading {
    struct mqx_restart *restart;
    struct mqx_queue_loading queue;
    struct mqx_loaded loaded; /* the message that is being loaded */
    size_t segment;          /* where the message before was found */
    unsigned char *body;     /* of an image message with pieces */
    struct ps_descriptor descriptor;
    struct ps_descriptor_ext ext;
};

static MQX_COLD int bad_message(const struct mqx_restart *restart, const struct psc_message *m,
                                const char *what)
{
    MQX_ASSERT(what != NULL);
    MQX_ASSERT(m != NULL);
    return mqx_merge_bad_message(restart->has_checkpoint ? &restart->checkpoint : NULL, m, what);
}

/* What the message takes in its segments, pieces spread evenly: as checkpoints count it. */
static void count_live(struct mqx_restart *restart, size_t last, const struct psc_message *m)
{
    size_t first = last;
    MQX_ASSERT(last < restart->segment_count);
    MQX_ASSERT(m->first_lsn <= m->lsn);
    while (first > 0 && restart->segments[first].entry.base_lsn > m->first_lsn) {
        first -= 1;
    }
    const uint64_t share = (m->chunk_count > 0 ? m->length : 0) / (last - first + 1);
    restart->segments[last].entry.live_messages += 1;
    restart->segments[last].entry.live_bytes += m->record_length;
    for (; first <= last; first++) {
        restart->segments[first].entry.live_bytes += share;
    }
}

bool mqx_load_has_record(const struct mqx_restart *restart, const struct psc_message *m,
                         size_t *segment)
{
    size_t low = 0, high = restart->segment_count;
    const struct mqx_segment *at = &restart->segments[*segment].entry;
    MQX_ASSERT(restart->segment_count > 0);
    MQX_ASSERT(*segment < restart->segment_count);
    if (m->lsn < at->base_lsn || m->lsn - at->base_lsn >= at->size) {
        while (high - low > 1) {
            const size_t middle = (low + high) / 2;
            if (restart->segments[middle].entry.base_lsn <= m->lsn) {
                low = middle;
            } else {
                high = middle;
            }
        }
        *segment = low;
        at = &restart->segments[low].entry;
    }
    const uint64_t least = MQX_PAGE_SIZE + sizeof(struct psj_batch);
    return m->lsn >= at->base_lsn + least && m->lsn % 8 == 0 &&
           m->record_length >= PS_RECORD_MIN && m->record_length <= MQX_RING_RECORD_MAX &&
           m->lsn <= at->end_lsn && m->record_length <= at->end_lsn - m->lsn &&
           m->first_lsn <= m->lsn &&
           (*segment >= restart->begin_index || restart->segments[*segment].listed);
}

/* The record must lie in a segment that counts; which one is usually known from the message
 * before. */
static int check_position(struct loading *loading, const struct psc_message *m)
{
    struct mqx_restart *restart = loading->restart;
    MQX_ASSERT(m->number != 0);
    if (!mqx_load_has_record(restart, m, &loading->segment)) {
        return bad_message(restart, m, "no segment holds its record");
    }
    MQX_ASSERT(loading->segment < restart->segment_count);
    count_live(restart, loading->segment, m);
    return MQX_OK;
}

/* ---- image messages ----
 *
 * Read again by position when their turn in delivery order comes: bodies are never all in memory.
 */

/* The record at *at, which lies in an IMAGE block that ends at *end; both move on, into the next
 * block too. */
static int image_record(struct mqx_restart *restart, struct mqx_file_window *window, uint64_t *at,
                        uint64_t *end, struct mqx_decoded *out)
{
    const unsigned char *bytes = NULL;
    int err = 0;
    MQX_ASSERT(*at <= *end);
    MQX_ASSERT(window->fd >= 0);
    if (*at == *end) {
        *at = mqx_round_up(*at, 8);
        err = mqx_file_window_read(window, *at, sizeof(struct psc_block), &bytes);
        const struct psc_block *block = (const void *)bytes;
        if (err != 0 || block->type != PSC_IMAGE) {
            return mqx_checkpoint_file_damaged(&restart->checkpoint, *at,
                                               "no IMAGE block goes on here");
        }
        *at += sizeof *block;
        *end = *at + block->length;
    }
    err = mqx_file_window_read(window, *at, sizeof(struct psj_record), &bytes);
    const uint32_t length = err == 0 ? mqx_record_length((const void *)bytes) : 0;
    if (err == 0) {
        err = mqx_file_window_read(window, *at, length, &bytes);
    }
    if (err != 0 || length > *end - *at || mqx_record_decode(bytes, length, 0, out) != MQX_OK) {
        return mqx_checkpoint_file_damaged(&restart->checkpoint, *at,
                                           "a record of the image is bad");
    }
    *at += length;
    return MQX_OK;
}

/* Gathers the pieces that stand before the PUT; *out is the PUT. */
static int image_pieces(struct loading *loading, struct mqx_file_window *window,
                        const struct mqx_replay_put *pending, struct mqx_decoded *out)
{
    const struct mqx_image_position *position =
        &loading->restart->replay.images[pending->image - 1];
    uint64_t at = position->at;
    uint64_t end = position->block_end;
    uint64_t have = 0;
    const uint64_t total = pending->m.length;
    MQX_ASSERT(pending->image != 0);
    MQX_ASSERT(loading->body == NULL);
    for (uint32_t number = 0; number < pending->m.chunk_count; number++) {
        int status = image_record(loading->restart, window, &at, &end, out);
        if (status != MQX_OK) {
            return status;
        }
        if (out->chunk == NULL || out->chunk->number != number || out->chunk->offset != have ||
            out->chunk->total != total || out->head->number != pending->m.number) {
            return bad_message(loading->restart, &pending->m, "its pieces do not fit together");
        }
        if (loading->body == NULL && total <= window->file_size) {
            loading->body = malloc(total);
        }
        if (loading->body == NULL) {
            return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a message of %" PRIu64
                            " bytes", total);
        }
        MQX_ASSERT(have + out->body_length <= total); /* the decoder checks offset and total */
        memcpy(loading->body + have, out->body, out->body_length);
        have += out->body_length;
    }
    if (have != (pending->m.chunk_count > 0 ? total : 0)) {
        return bad_message(loading->restart, &pending->m, "pieces are missing");
    }
    return image_record(loading->restart, window, &at, &end, out);
}

/* A message of the image: descriptor and body go into the region, the journal has neither. */
static int load_image_message(struct loading *loading, struct mqx_file_window *window,
                              const struct mqx_replay_put *pending, struct mqx_loaded *loaded)
{
    struct mqx_decoded record;
    uint32_t slot = 0;
    MQX_ASSERT(loaded->m.lsn == 0);
    MQX_ASSERT(loading->restart->use_image);
    int status = image_pieces(loading, window, pending, &record);
    if (status == MQX_OK && (record.descriptor == NULL || (record.chunked != NULL) !=
                                                              (pending->m.chunk_count > 0))) {
        status = bad_message(loading->restart, &pending->m, "its PUT is missing");
    }
    if (status == MQX_OK) {
        loading->descriptor = *record.descriptor;
        loaded->descriptor = &loading->descriptor;
        if (record.ext != NULL) {
            loading->ext = *record.ext;
            loaded->ext = &loading->ext;
        }
        /* NULL would mean that the journal has it, which an empty body must not */
        loaded->body = loading->body != NULL ? loading->body
                       : record.body != NULL ? record.body
                                             : (const unsigned char *)"";
        status = mqx_queue_load(&loading->queue, loaded, &slot);
    }
    free(loading->body);
    loading->body = NULL;
    return status;
}

/* ---- one after another ---- */

/* For qsort and bsearch. */
static int by_number(const void *a, const void *b)
{
    const struct mqx_in_flight *first = a;
    const struct mqx_in_flight *second = b;
    MQX_ASSERT(first != NULL);
    MQX_ASSERT(second != NULL);
    return first->number < second->number ? -1 : first->number > second->number;
}

/* What units in flight had got counts as backed out (rule 46). */
static int take_in_flight(struct mqx_restart *restart)
{
    const size_t count = restart->in_flight_count;
    MQX_ASSERT(restart->raised == NULL);
    MQX_ASSERT(restart->raised_count == 0);
    if (count == 0) {
        return MQX_OK;
    }
    struct mqx_in_flight *sorted = malloc(count * sizeof *sorted);
    restart->raised = malloc(count * sizeof *restart->raised);
    if (sorted == NULL || restart->raised == NULL) {
        free(sorted);
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for backout counts");
    }
    memcpy(sorted, restart->in_flight, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_number);
    restart->in_flight = sorted;
    int status = MQX_OK;
    for (size_t i = 0; i < count && status == MQX_OK; i++) {
        if (mqx_replay_find_held(&restart->replay, sorted[i].number) != NULL) {
            continue; /* its unit is prepared */
        }
        status = mqx_replay_count(&restart->replay, sorted[i].number, sorted[i].count);
    }
    return status;
}

/* The count is higher than in checkpoint and PUT: because of a unit in flight, or a BACKOUT
 * record, which is there already. Damage when a message in flight was put twice. */
static int note_raised(struct mqx_restart *restart, const struct psc_message *m)
{
    const struct mqx_in_flight wanted = {.number = m->number};
    MQX_ASSERT(m->number != 0);
    MQX_ASSERT(m->backout_count > 0);
    if (restart->in_flight_count == 0 ||
        !bsearch(&wanted, restart->in_flight, restart->in_flight_count, sizeof wanted, by_number)) {
        return MQX_OK;
    }
    if (restart->raised_count >= restart->in_flight_count) {
        return bad_message(restart, m, "it was put twice");
    }
    restart->raised[restart->raised_count++] =
        (struct ps_count){m->number, m->object, m->backout_count};
    return MQX_OK;
}

/* One message of the merged sequence, loading->loaded.m, from the stream (`pending` NULL) or from
 * the tail. */
static int load_one(struct loading *loading, const struct mqx_replay_put *pending,
                    struct mqx_file_window *image)
{
    struct mqx_restart *restart = loading->restart;
    struct mqx_loaded *loaded = &loading->loaded;
    struct psc_message *m = &loaded->m;
    uint32_t slot = 0;
    MQX_ASSERT(image != NULL);
    MQX_ASSERT(pending == NULL || pending->state == MQX_PUT_EFFECTIVE);
    loaded->taken = pending != NULL && pending->taken;
    loaded->descriptor = NULL;
    loaded->ext = NULL;
    loaded->body = NULL;
    restart->report.messages += 1;
    if (pending != NULL && pending->image != 0) {
        return load_image_message(loading, image, pending, loaded);
    }
    int status = check_position(loading, m);
    if (status != MQX_OK) {
        return status;
    }
    const uint32_t count = mqx_replay_count_of(&restart->replay, m);
    m->due_us = mqx_replay_due_of(&restart->replay, m);
    if (MQX_UNLIKELY(count != m->backout_count)) {
        m->backout_count = count;
        status = note_raised(restart, m);
    }
    if (status == MQX_OK) {
        status = mqx_queue_load(&loading->queue, loaded, &slot);
    }
    struct mqx_replay_held *held = mqx_replay_find_held(&restart->replay, m->number);
    if (MQX_UNLIKELY(held != NULL)) {
        held->slot = slot;
    }
    return status;
}

/* All messages, in delivery order. */
static int load_all(struct loading *loading, struct mqx_merge *merge,
                    struct mqx_file_window *image)
{
    const struct mqx_replay_put *put = NULL;
    bool more = true;
    int status = MQX_OK;
    MQX_ASSERT(merge->next_put == 0);
    MQX_ASSERT(loading->segment == 0);
    while (status == MQX_OK && more) { /* bounded by both sources */
        status = mqx_merge_next(merge, &loading->loaded.m, &put, &more);
        if (status == MQX_OK && more) {
            status = load_one(loading, put, image);
        }
    }
    mqx_queue_load_end(&loading->queue);
    return status;
}

/* ---- prepared units ---- */

/* A context for the unit, with the messages it holds in the order of its calls. */
static int restore_unit(struct mqx_restart *restart, const struct mqx_replay_prepared *prepared)
{
    const struct mqx_restored restored = {
        .xid = prepared->xid,
        .unit_id = prepared->unit.id,
        .first_lsn = prepared->unit.first_lsn,
        .prepare_end_lsn = prepared->prepare_end_lsn,
        .prepared_us = prepared->stated.prepared_us,
        .record_count = prepared->unit.record_count,
        .running_crc = prepared->unit.running_crc,
    };
    uint32_t context = 0;
    MQX_ASSERT(prepared->unit.id != 0);
    MQX_ASSERT(prepared->first_held + prepared->held_count <= restart->replay.held_count);
    int status = mqx_prepared_restore(restart->store, &restored, &context);
    for (size_t i = 0; i < prepared->held_count && status == MQX_OK; i++) {
        const struct mqx_replay_held *held = &restart->replay.held[prepared->first_held + i];
        if (held->slot == 0 && held->type != PS_REC_TAKEN) {
            return mqx_fail(MQRC_OBJECT_DAMAGED,
                            "prepared unit %" PRIu64 " holds message %" PRIu64
                            ", which is nowhere", prepared->unit.id, held->number);
        }
        if (held->slot != 0) {
            status = mqx_prepared_restore_message(
                restart->store, context, held->slot,
                held->type == PS_REC_PUT ? MQX_MSG_PUT : MQX_MSG_GOT);
        }
    }
    return status;
}

/* In the order in which the units were prepared. */
int mqx_load_prepared(struct mqx_restart *restart)
{
    const struct mqx_replay *replay = &restart->replay;
    int status = MQX_OK;
    MQX_ASSERT(replay->prepared_count <= replay->prepared_capacity);
    MQX_ASSERT(restart->report.units_prepared == 0);
    for (size_t i = 0; i < replay->prepared_count && status == MQX_OK; i++) {
        if (replay->prepared[i].unit.id != 0) {
            status = restore_unit(restart, &replay->prepared[i]);
            restart->report.units_prepared += 1;
        }
    }
    return status;
}

/* The second pass. The image is read through a window of its own, because the stream's window
 * moves with it. */
int mqx_load_messages(struct mqx_restart *restart)
{
    struct loading loading = {.restart = restart, .queue = {.store = restart->store}};
    struct mqx_file_window image = restart->checkpoint.window;
    struct mqx_merge merge;
    MQX_ASSERT(restart->report.messages == 0);
    MQX_ASSERT(restart->segment_count > 0);
    image.bytes = NULL; /* a second window over the same file */
    image.capacity = 0;
    image.have = 0;
    restart->checkpoint.at = restart->rest_at;
    restart->checkpoint.totals = restart->rest_totals;
    mqx_memory_ahead_want(restart->ahead,
                          mqx_replay_remaining(&restart->replay, restart->listed_messages));
    int status = mqx_merge_begin(&merge, &restart->replay,
                                 restart->has_checkpoint ? &restart->checkpoint : NULL);
    if (status == MQX_OK) {
        status = take_in_flight(restart);
    }
    if (status == MQX_OK) {
        status = load_all(&loading, &merge, &image);
    }
    mqx_merge_end(&merge);
    mqx_file_window_free(&image);
    return status;
}
