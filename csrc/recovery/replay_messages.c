/*
 * replay_messages.c - objects and messages of a replay, and the effects on them. See replay.h.
 *
 * What is remembered, and how checkpoint and tail come together:
 *   puts     every PUT of the tail, with its state; those of the image are EFFECTIVE at once.
 *   removed  numbers that a GET or EXPIRE took: the message may be in the checkpoint, in the tail,
 *            or in both. They stay to the end: the checkpoint's lines are read after the tail.
 *   counts   the highest BackoutCount of a number.
 *   moves    every MOVED of the tail, those of a message from the last to the first. A process that
 *            died after a MOVED record may have left the message where it was, in the region and in
 *            checkpoints taken from it, so each of its places is a right one while it exists.
 *   objects  per slot: the newest definition, the highest generation, the CLEAR bound of that
 *            generation. A record of an older generation has no effect: the checkpoint, or the
 *            tail, has its successor.
 * A message is present when its object is defined in its generation, its number is not below the
 * CLEAR bound, and it was not removed (mqx_replay_is_present).
 */
#include "recovery/replay_private.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/radix_sort.h"
#include "os/page_memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 16384, FIRST_ITEMS = 16 };

/* ---- memory ----
 *
 * Arrays double; definitions, whose sizes differ, are taken from pages that live as long as the
 * replay.
 */

/* One text for all arrays of the replay. */
int mqx_replay_no_memory(void)
{
    return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to replay the journal");
}

/* Doubling: the cost of an item stays constant however long the tail is. */
int mqx_replay_grow(void *array, size_t count, size_t *capacity, size_t item_size)
{
    void **items = array;
    MQX_ASSERT(count <= *capacity);
    MQX_ASSERT(item_size > 0);
    if (count < *capacity) {
        return MQX_OK;
    }
    const size_t wanted = *capacity == 0 ? FIRST_ITEMS : *capacity * 2;
    void *memory = realloc(*items, wanted * item_size);
    if (memory == NULL) {
        return mqx_replay_no_memory();
    }
    mqx_pages_prefer_huge(memory, wanted * item_size);
    *items = memory;
    *capacity = wanted;
    return MQX_OK;
}

/* Memory that lives as long as the replay. */
static void *allocate(struct mqx_replay *replay, size_t size)
{
    struct mqx_replay_page *page = replay->pages;
    size = mqx_round_up(size, 8);
    if (replay->page_left < size) {
        const size_t room = size > PAGE_BYTES ? size : PAGE_BYTES;
        page = malloc(sizeof *page + room);
        if (page == NULL) {
            return NULL;
        }
        page->next = replay->pages;
        replay->pages = page;
        replay->page_left = room;
    }
    MQX_ASSERT(page != NULL);
    MQX_ASSERT(size <= replay->page_left);
    replay->page_left -= size; /* taken from the end: only the amount left has to be remembered */
    return page->bytes + replay->page_left;
}

/* ---- objects ----
 *
 * Slots are used again: the generation tells the objects of a slot apart. State is kept for every
 * slot that a record named, so that the generation of a deleted object does not come back.
 */

/* The state of an object slot, which is remembered from here on. */
static int object_at(struct mqx_replay *replay, uint32_t slot, struct mqx_slot_state **out)
{
    if (slot == 0 || slot >= replay->slot_limit) {
        return mqx_fail(MQRC_OBJECT_DAMAGED, "object slot %u is not possible (limit %u)", slot,
                        replay->slot_limit);
    }
    while (slot >= replay->object_capacity) {
        const size_t had = replay->object_capacity;
        int status = mqx_replay_grow(&replay->objects, had, &replay->object_capacity,
                          sizeof *replay->objects);
        if (status != MQX_OK) {
            return status;
        }
        memset(replay->objects + had, 0,
               (replay->object_capacity - had) * sizeof *replay->objects);
    }
    MQX_ASSERT(slot < replay->object_capacity);
    MQX_ASSERT(replay->objects != NULL);
    *out = &replay->objects[slot];
    return MQX_OK;
}

/* The record lies in the scan's window, which moves on. */
int mqx_replay_copy_definition(struct mqx_replay *replay, const struct mqx_decoded *record,
                           const struct mqx_replay_definition **out)
{
    MQX_ASSERT(record->name != NULL);
    MQX_ASSERT(record->attrs_length == 0 || record->attrs != NULL);
    struct mqx_replay_definition *kept = allocate(replay, sizeof *kept + record->attrs_length);
    if (kept == NULL) {
        return mqx_replay_no_memory();
    }
    *kept = (struct mqx_replay_definition){*record->name, record->attrs_length, 0};
    if (record->attrs_length > 0) {
        memcpy(kept + 1, record->attrs, record->attrs_length);
    }
    *out = kept;
    return MQX_OK;
}

/* An OBJECT record, of the checkpoint or of the tail. */
static int define(struct mqx_replay *replay, uint32_t slot, uint32_t generation,
                  const struct mqx_replay_definition *definition)
{
    struct mqx_slot_state *object = NULL;
    MQX_ASSERT(definition != NULL);
    int status = object_at(replay, slot, &object);
    if (status != MQX_OK || generation < object->newest) {
        return status; /* an older generation: the checkpoint has its successor */
    }
    if (generation > object->newest) {
        object->clear_bound = 0;
    }
    MQX_ASSERT(generation >= object->newest);
    object->newest = generation;
    object->definition = definition;
    return MQX_OK;
}

/* An OBJECT_DELETE record. The generation stays, so that it does not come back. */
static int undefine(struct mqx_replay *replay, uint32_t slot, uint32_t generation)
{
    struct mqx_slot_state *object = NULL;
    int status = object_at(replay, slot, &object);
    if (status == MQX_OK && generation >= object->newest) {
        object->newest = generation;
        object->definition = NULL;
    }
    MQX_ASSERT(status != MQX_OK || object->newest >= generation);
    MQX_ASSERT(status != MQX_OK || object->newest > generation || object->definition == NULL);
    return status;
}

/* A CLEAR record: messages with lower numbers than the bound are gone. The bound only rises. */
static int clear(struct mqx_replay *replay, uint32_t slot, uint32_t generation, uint64_t bound)
{
    struct mqx_slot_state *object = NULL;
    MQX_ASSERT(replay->slot_limit > 0);
    int status = object_at(replay, slot, &object);
    if (status == MQX_OK && generation == object->newest && bound > object->clear_bound) {
        object->clear_bound = bound;
    }
    MQX_ASSERT(status != MQX_OK || generation != object->newest || object->clear_bound >= bound);
    return status;
}

/* An object of another generation is another object. */
const struct mqx_slot_state *mqx_replay_defined_at(const struct mqx_replay *replay, uint32_t slot,
                                                   uint32_t generation)
{
    MQX_ASSERT(replay != NULL);
    MQX_ASSERT(replay->object_capacity == 0 || replay->objects != NULL);
    const struct mqx_slot_state *object =
        slot < replay->object_capacity ? &replay->objects[slot] : NULL;
    return object != NULL && object->definition != NULL && object->newest == generation ? object
                                                                                        : NULL;
}

/* As an OBJECT record of the tail: the tail's own come later and win. */
int mqx_replay_define(struct mqx_replay *replay, const struct mqx_decoded *record)
{
    const struct mqx_replay_definition *definition = NULL;
    MQX_ASSERT(mqx_record_type(record->head) == PS_REC_OBJECT);
    MQX_ASSERT(replay->put_count == 0); /* definitions of the checkpoint come first */
    int status = mqx_replay_copy_definition(replay, record, &definition);
    return status == MQX_OK ? define(replay, record->head->object, record->head->object_gen,
                                     definition)
                            : status;
}

int mqx_replay_undefine(struct mqx_replay *replay, const struct mqx_decoded *record)
{
    MQX_ASSERT(mqx_record_type(record->head) == PS_REC_OBJECT_DELETE);
    MQX_ASSERT(replay->put_count == 0);
    return undefine(replay, record->head->object, record->head->object_gen);
}

/* ---- messages ---- */

/* Tags are hashes of identifiers, keyed so that identifiers chosen by applications do not collide
 * by design. */
uint64_t mqx_tag_key(const uint8_t qm_id[16])
{
    uint64_t halves[2];
    MQX_ASSERT(qm_id != NULL);
    MQX_STATIC_ASSERT(sizeof halves == 16, "the whole id");
    memcpy(halves, qm_id, sizeof halves);
    return halves[0] ^ halves[1];
}

/* The keyed hash of an identifier; 0, no tag, for no identifier. */
static uint64_t tag_of(const uint8_t id[MQX_ID_SIZE], uint64_t key)
{
    static const uint8_t no_id[MQX_ID_SIZE];
    MQX_ASSERT(id != NULL);
    return memcmp(id, no_id, sizeof no_id) == 0 ? 0 : mqx_hash64(id, MQX_ID_SIZE, key);
}

/* What the index will hold of the message. */
static void describe(const struct mqx_replay *replay, const struct mqx_decoded *record,
                     uint64_t lsn, struct psc_message *out)
{
    const struct ps_descriptor *d = record->descriptor;
    const struct ps_chunked *chunked = record->chunked;
    const uint64_t key = replay->tag_key;
    MQX_ASSERT(d != NULL); /* the decoder refuses a PUT without */
    MQX_ASSERT(chunked == NULL || record->body_length == 0);
    *out = (struct psc_message){
        .number = record->head->number,
        .lsn = lsn,
        .first_lsn = chunked != NULL ? chunked->first_lsn : lsn,
        .expiry_us = d->expiry_us,
        .tag_msg_id = tag_of(d->msg_id, key),
        .tag_correl_id = tag_of(d->correl_id, key),
        .tag_group_id = record->ext != NULL ? tag_of(record->ext->group_id, key) : 0,
        .object = record->head->object,
        .object_gen = record->head->object_gen,
        .length = chunked != NULL ? (uint32_t)chunked->total : record->body_length,
        .backout_count = d->backout_count,
        .priority = d->priority,
        .placement = d->placement,
        .has_ext = d->has_ext,
        .is_volatile = d->persistence == 0,
        .record_length = mqx_record_length(record->head),
        .chunk_count = chunked != NULL ? chunked->count : 0,
        .due_us = d->due_us,
    };
}

/* An entry for a put. UINT32_MAX of them at most: indexes are 32 bits. */
static int new_put(struct mqx_replay *replay, uint32_t *out)
{
    MQX_ASSERT(replay->put_count <= replay->put_capacity);
    if (replay->free_put != 0) {
        *out = replay->free_put - 1;
        MQX_ASSERT(*out < replay->put_count);
        MQX_ASSERT(replay->puts[*out].state == MQX_PUT_FREE);
        replay->free_put = replay->puts[*out].m.object;
        return MQX_OK;
    }
    int status = mqx_replay_grow(&replay->puts, replay->put_count, &replay->put_capacity,
                      sizeof *replay->puts);
    if (status == MQX_OK && replay->put_count >= UINT32_MAX) {
        status = mqx_replay_no_memory();
    }
    if (status == MQX_OK) {
        *out = (uint32_t)replay->put_count++;
    }
    return status;
}

int mqx_replay_carry_put(struct mqx_replay *replay, const struct psc_message *m, bool taken,
                         uint32_t *out)
{
    MQX_ASSERT(m->number != 0);
    const int status = new_put(replay, out);
    if (status == MQX_OK) {
        replay->puts[*out] =
            (struct mqx_replay_put){.m = *m, .state = MQX_PUT_WAITING, .taken = taken};
    }
    MQX_ASSERT(status != MQX_OK || replay->puts[*out].image == 0);
    return status;
}

int mqx_replay_add_put(struct mqx_replay *replay, const struct mqx_decoded *record, uint64_t lsn,
                       uint32_t *out)
{
    MQX_ASSERT(record->head != NULL);
    MQX_ASSERT(out != NULL);
    const int status = new_put(replay, out);
    if (status == MQX_OK) {
        struct mqx_replay_put *put = &replay->puts[*out];
        describe(replay, record, lsn, &put->m); /* where it stays: it is a copy for each message */
        put->state = MQX_PUT_WAITING;
        put->image = 0;
        put->taken = false;
    }
    return status;
}

/* Images have no LSN: they are not in the journal. */
int mqx_replay_add_image(struct mqx_replay *replay, const struct mqx_decoded *record,
                         const struct mqx_image_position *position)
{
    uint32_t index = 0;
    MQX_ASSERT(position->at < position->block_end);
    MQX_ASSERT(replay->image_count <= replay->image_capacity);
    int status = mqx_replay_grow(&replay->images, replay->image_count, &replay->image_capacity,
                      sizeof *replay->images);
    if (status == MQX_OK) {
        status = mqx_replay_add_put(replay, record, 0, &index);
    }
    if (status == MQX_OK) {
        replay->images[replay->image_count++] = *position;
        replay->puts[index].image = (uint32_t)replay->image_count;
        replay->puts[index].state = MQX_PUT_EFFECTIVE;
    }
    return status;
}

/* Whether the message is present is not known yet, and need not be: the copy is as good as what it
 * was made from. */
int mqx_replay_move(struct mqx_replay *replay, uint64_t lsn, const struct mqx_decoded *record)
{
    size_t at = 0;
    bool is_new = false;
    MQX_ASSERT(mqx_record_type(record->head) == PS_REC_MOVED);
    MQX_ASSERT(record->head->number != 0); /* the decoder refuses others */
    int status = mqx_replay_grow(&replay->moves, replay->move_count, &replay->move_capacity,
                                 sizeof *replay->moves);
    if (status == MQX_OK && replay->move_count >= UINT32_MAX) {
        status = mqx_replay_no_memory();
    }
    if (status == MQX_OK) {
        status = mqx_number_map_add(&replay->moved, record->head->number, &at, &is_new);
    }
    if (status == MQX_OK) {
        struct mqx_replay_move *move = &replay->moves[replay->move_count];
        describe(replay, record, lsn, &move->m);
        move->before = is_new ? 0 : replay->moved.values[at] + 1;
        replay->moved.values[at] = (uint32_t)replay->move_count++;
    }
    return status;
}

/* The last move of the message, or NULL. */
static const struct mqx_replay_move *last_move(const struct mqx_replay *replay, uint64_t number)
{
    size_t at = 0;
    MQX_ASSERT(number != 0);
    if (replay->move_count == 0 || !mqx_number_map_find(&replay->moved, number, &at)) {
        return NULL;
    }
    MQX_ASSERT(replay->moved.values[at] < replay->move_count);
    return &replay->moves[replay->moved.values[at]];
}

/* A line of a checkpoint that was taken later than the MOVED has the later place. */
int mqx_replay_locate(const struct mqx_replay *replay, struct psc_message *m)
{
    const struct mqx_replay_move *move = last_move(replay, m->number);
    MQX_ASSERT(m->lsn != 0); /* images do not lie in the journal */
    if (move == NULL || move->m.lsn <= m->lsn) {
        return MQX_OK;
    }
    const struct psc_message *to = &move->m;
    MQX_ASSERT(to->number == m->number);
    if (to->object != m->object || to->object_gen != m->object_gen || to->length != m->length ||
        to->record_length != m->record_length || to->chunk_count != m->chunk_count ||
        to->priority != m->priority || to->placement != m->placement ||
        to->is_volatile != m->is_volatile) {
        return mqx_fail(MQRC_OBJECT_DAMAGED,
                        "MOVED record at LSN %" PRIu64 " differs from message %" PRIu64
                        " at LSN %" PRIu64, to->lsn, m->number, m->lsn);
    }
    m->lsn = to->lsn;
    m->first_lsn = to->first_lsn;
    return MQX_OK;
}

bool mqx_replay_was_moved_to(const struct mqx_replay *replay, const struct psc_message *m)
{
    const struct mqx_replay_move *move = last_move(replay, m->number);
    MQX_ASSERT(m->lsn != 0);
    while (move != NULL && move->m.lsn != m->lsn) { /* towards the first */
        MQX_ASSERT(move->before <= replay->move_count);
        move = move->before != 0 ? &replay->moves[move->before - 1] : NULL;
    }
    return move != NULL && move->m.first_lsn == m->first_lsn;
}

/* A number that a GET or EXPIRE record names; 0 names none. */
static int remove_message(struct mqx_replay *replay, uint64_t number)
{
    const int status = number == 0 ? MQX_OK : mqx_number_set_add(&replay->removed, number);
    MQX_ASSERT(replay->held == NULL); /* the tail is still being read */
    MQX_ASSERT(status != MQX_OK || number == 0 || mqx_number_set_has(&replay->removed, number));
    return status;
}

/* The highest count wins, so records may come in any order. */
int mqx_replay_count(struct mqx_replay *replay, uint64_t number, uint32_t count)
{
    size_t at = 0;
    bool is_new = false;
    if (number == 0) {
        return MQX_OK;
    }
    int status = mqx_number_map_add(&replay->counts, number, &at, &is_new);
    if (status == MQX_OK && (is_new || replay->counts.values[at] < count)) {
        replay->counts.values[at] = count;
    }
    MQX_ASSERT(status != MQX_OK || replay->counts.numbers[at] == number);
    MQX_ASSERT(status != MQX_OK || replay->counts.values[at] >= count);
    return status;
}

/* The delay of the highest count is the last one, whatever order the records come in. */
int mqx_replay_delay(struct mqx_replay *replay, uint64_t number, uint32_t count, uint64_t due_us)
{
    size_t at = 0;
    bool is_new = false;
    MQX_ASSERT(replay->delay_count <= replay->delay_capacity);
    if (number == 0 || due_us == 0) {
        return MQX_OK;
    }
    int status = mqx_replay_grow(&replay->delays, replay->delay_count, &replay->delay_capacity,
                                 sizeof *replay->delays);
    if (status == MQX_OK && replay->delay_count >= UINT32_MAX) {
        status = mqx_replay_no_memory();
    }
    if (status == MQX_OK) {
        status = mqx_number_map_add(&replay->delayed, number, &at, &is_new);
    }
    if (status == MQX_OK && is_new) {
        replay->delayed.values[at] = (uint32_t)replay->delay_count++;
        replay->delays[replay->delayed.values[at]] = (struct mqx_replay_delay){.count = 0};
    }
    if (status == MQX_OK) {
        struct mqx_replay_delay *delay = &replay->delays[replay->delayed.values[at]];
        MQX_ASSERT(replay->delayed.values[at] < replay->delay_count);
        if (count >= delay->count) {
            *delay = (struct mqx_replay_delay){.due_us = due_us, .count = count};
        }
    }
    return status;
}

/* ---- effects ---- */

/* A put to an object that the checkpoint already knew as deleted is dropped; one above the
 * checkpoint's end must find its object. */
int mqx_replay_apply_put(struct mqx_replay *replay, const struct mqx_replay_op *op)
{
    struct mqx_replay_put *pending = &replay->puts[op->put];
    MQX_ASSERT(op->put < replay->put_count);
    MQX_ASSERT(pending->m.number == op->number);
    MQX_ASSERT(pending->state == MQX_PUT_WAITING);
    if (mqx_replay_defined_at(replay, op->object, op->object_gen) != NULL) {
        pending->state = MQX_PUT_EFFECTIVE;
        return MQX_OK;
    }
    pending->state = MQX_PUT_DROPPED;
    if (op->lsn < replay->checkpoint_end) {
        return MQX_OK; /* the object was deleted before the checkpoint */
    }
    return mqx_fail(MQRC_OBJECT_DAMAGED,
                    "message %" PRIu64 " at LSN %" PRIu64 " was put to object slot %u, generation "
                    "%u, which is not defined", op->number, op->lsn, op->object, op->object_gen);
}

/* What the record types do. A TAKEN message is gone, whatever becomes of its unit. */
int mqx_replay_apply(struct mqx_replay *replay, const struct mqx_replay_op *op)
{
    MQX_ASSERT(op->type != PS_REC_CHUNK); /* pieces belong to their PUT */
    MQX_ASSERT(op->type != PS_REC_OBJECT || op->definition != NULL);
    switch (op->type) {
    case PS_REC_PUT: return mqx_replay_apply_put(replay, op);
    case PS_REC_GET:
    case PS_REC_EXPIRE: return remove_message(replay, op->number);
    case PS_REC_CLEAR: return clear(replay, op->object, op->object_gen, op->number);
    case PS_REC_OBJECT: return define(replay, op->object, op->object_gen, op->definition);
    case PS_REC_OBJECT_DELETE: return undefine(replay, op->object, op->object_gen);
    case PS_REC_TAKEN: replay->puts[op->put].state = MQX_PUT_DROPPED; return MQX_OK;
    default: return MQX_OK;
    }
}

/* ---- results ---- */

/* The three ways a message ends: with its object, by a CLEAR, by a GET or EXPIRE. */
bool mqx_replay_is_present(const struct mqx_replay *replay, const struct psc_message *m)
{
    MQX_ASSERT(m->placement <= MQX_MAX_PRIORITY);
    const struct mqx_slot_state *object = mqx_replay_defined_at(replay, m->object, m->object_gen);
    if (object == NULL || m->number < object->clear_bound) {
        return false;
    }
    MQX_ASSERT(object->newest == m->object_gen);
    return !mqx_number_set_has(&replay->removed, m->number);
}

/* A PUT or a checkpoint line has a count too. */
uint32_t mqx_replay_count_of(const struct mqx_replay *replay, const struct psc_message *m)
{
    size_t at = 0;
    const bool counted = mqx_number_map_find(&replay->counts, m->number, &at);
    MQX_ASSERT(!counted || replay->counts.values != NULL);
    MQX_ASSERT(!counted || replay->counts.numbers[at] == m->number);
    const uint32_t count = counted ? replay->counts.values[at] : 0;
    return count > m->backout_count ? count : m->backout_count;
}

/* A line that was written after the backout has its count, and what became of the delay. */
uint64_t mqx_replay_due_of(const struct mqx_replay *replay, const struct psc_message *m)
{
    size_t at = 0;
    MQX_ASSERT(m->number != 0);
    if (!mqx_number_map_find(&replay->delayed, m->number, &at)) {
        return m->due_us;
    }
    MQX_ASSERT(replay->delayed.values[at] < replay->delay_count);
    const struct mqx_replay_delay *delay = &replay->delays[replay->delayed.values[at]];
    return delay->count > m->backout_count ? delay->due_us : m->due_us;
}

uint64_t mqx_replay_remaining(const struct mqx_replay *replay, uint64_t listed)
{
    uint64_t count = listed;
    const uint64_t removed = (uint64_t)replay->removed.used * MQX_SET_GROUP;
    MQX_ASSERT(replay->put_count <= replay->put_capacity);
    for (size_t i = 0; i < replay->put_count; i++) {
        count += replay->puts[i].state == MQX_PUT_EFFECTIVE;
    }
    MQX_ASSERT(count <= listed + replay->put_count);
    return count > removed ? count - removed : 0;
}

/* Object and placement are the upper part of the key: 28 and 4 bits. What the arrays have room for
 * beyond the effective puts is never touched. */
int mqx_replay_sort(const struct mqx_replay *replay, uint32_t **out, size_t *out_count)
{
    const size_t room = replay->put_count;
    size_t count = 0;
    MQX_ASSERT(replay->slot_limit <= 1u << 28);
    struct mqx_sort_item *items = malloc((2 * room + 1) * sizeof *items);
    uint32_t *indexes = malloc((room + 1) * sizeof *indexes);
    if (items == NULL || indexes == NULL) {
        free(items);
        free(indexes);
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to sort what was replayed");
    }
    mqx_pages_prefer_huge(items, (2 * room + 1) * sizeof *items);
    for (size_t i = 0; i < replay->put_count; i++) {
        const struct psc_message *m = &replay->puts[i].m;
        if (replay->puts[i].state == MQX_PUT_EFFECTIVE) {
            const uint32_t below_top = (uint32_t)(MQX_MAX_PRIORITY - m->placement);
            MQX_ASSERT(m->placement <= MQX_MAX_PRIORITY);
            items[count++] =
                (struct mqx_sort_item){m->number, m->object << 4 | below_top, (uint32_t)i};
        }
    }
    const struct mqx_sort_item *sorted = mqx_radix_sort(items, items + room, count);
    for (size_t i = 0; i < count; i++) {
        indexes[i] = sorted[i].index;
    }
    free(items);
    MQX_ASSERT(count <= room);
    *out = indexes;
    *out_count = count;
    return MQX_OK;
}
