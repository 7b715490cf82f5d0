/*
 * replay.c - see replay.h.
 */
#include "recovery/replay.h"

#include "base/checksum.h"
#include "base/error.h"
#include "queue/priority_index.h"
#include "queue/id_index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 16384 };

/* ---- memory ---- */

static MQX_COLD int no_memory(void)
{
    return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to replay the journal");
}

/* Room for one more item. */
static int grow(void *array, size_t count, size_t *capacity, size_t item_size)
{
    void **items = array;
    if (count < *capacity) {
        return MQX_OK;
    }
    const size_t wanted = *capacity == 0 ? 16 : *capacity * 2;
    void *memory = realloc(*items, wanted * item_size);
    if (memory == NULL) {
        return no_memory();
    }
    *items = memory;
    *capacity = wanted;
    return MQX_OK;
}

struct page {
    struct page *next;
    unsigned char bytes[];
};

/* Memory that lives as long as the replay. */
static void *keep(struct mqx_replay *replay, size_t size)
{
    struct page *page = replay->pages;
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
    replay->page_left -= size; /* taken from the end: only the amount left has to be remembered */
    return page->bytes + replay->page_left;
}

void mqx_replay_free(struct mqx_replay *replay)
{
    struct page *page = replay->pages;
    while (page != NULL) {
        struct page *next = page->next;
        free(page);
        page = next;
    }
    free(replay->puts);
    free(replay->images);
    free(replay->objects);
    free(replay->removed.numbers);
    free(replay->counts.numbers);
    free(replay->counts.values);
    free(replay->ops);
    free(replay->units);
    free(replay->doubts);
    free(replay->held);
    free(replay->held_by_number.numbers);
    free(replay->held_by_number.values);
    free(replay->doubt_of.numbers);
    free(replay->doubt_of.values);
    *replay = (struct mqx_replay){0};
}

/* ---- numbers ---- */

/* Neighbouring numbers share a cache line, groups of 8 are scattered. */
static size_t place_of(const struct mqx_number_map *map, uint64_t number)
{
    const uint64_t group = (number >> 3) * 0x9e3779b97f4a7c15u;
    return (size_t)((group >> 20 << 3) + (number & 7u)) & (map->capacity - 1);
}

/* Where the number is, or the free place where it would be. */
static size_t find_number(const struct mqx_number_map *map, uint64_t number)
{
    size_t at = place_of(map, number);
    while (map->numbers[at] != 0 && map->numbers[at] != number) {
        at = (at + 1) & (map->capacity - 1);
    }
    return at;
}

static int rehash(struct mqx_number_map *map, bool values)
{
    struct mqx_number_map larger = {.capacity = map->capacity == 0 ? 64 : map->capacity * 2,
                                    .count = map->count};
    larger.numbers = calloc(larger.capacity, sizeof *larger.numbers);
    larger.values = values ? malloc(larger.capacity * sizeof *larger.values) : NULL;
    if (larger.numbers == NULL || (values && larger.values == NULL)) {
        free(larger.numbers);
        free(larger.values);
        return no_memory();
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->numbers[i] != 0) {
            const size_t at = find_number(&larger, map->numbers[i]);
            larger.numbers[at] = map->numbers[i];
            if (values) {
                larger.values[at] = map->values[i];
            }
        }
    }
    free(map->numbers);
    free(map->values);
    *map = larger;
    return MQX_OK;
}

/* The place of the number, which is in the map afterwards. */
static int add_number(struct mqx_number_map *map, uint64_t number, bool values, size_t *out,
                      bool *out_new)
{
    if (2 * map->count >= map->capacity) {
        int status = rehash(map, values);
        if (status != MQX_OK) {
            return status;
        }
    }
    *out = find_number(map, number);
    *out_new = map->numbers[*out] == 0;
    if (*out_new) {
        map->numbers[*out] = number;
        map->count += 1;
    }
    return MQX_OK;
}

static int remove_message(struct mqx_replay *replay, uint64_t number)
{
    size_t at;
    bool is_new;
    return number == 0 ? MQX_OK : add_number(&replay->removed, number, false, &at, &is_new);
}

int mqx_replay_count(struct mqx_replay *replay, uint64_t number, uint32_t count)
{
    size_t at = 0;
    bool is_new = false;
    int status = number == 0 ? MQX_OK : add_number(&replay->counts, number, true, &at, &is_new);
    if (status == MQX_OK && number != 0 && (is_new || replay->counts.values[at] < count)) {
        replay->counts.values[at] = count;
    }
    return status;
}

/* ---- objects ---- */

static int object_at(struct mqx_replay *replay, uint32_t slot, struct mqx_slot_state **out)
{
    if (slot == 0 || slot >= replay->slot_limit) {
        return mqx_fail(MQRC_OBJECT_DAMAGED, "object slot %u is not possible (limit %u)", slot,
                        replay->slot_limit);
    }
    while (slot >= replay->object_capacity) {
        const size_t had = replay->object_capacity;
        int status = grow(&replay->objects, had, &replay->object_capacity,
                          sizeof *replay->objects);
        if (status != MQX_OK) {
            return status;
        }
        memset(replay->objects + had, 0,
               (replay->object_capacity - had) * sizeof *replay->objects);
    }
    *out = &replay->objects[slot];
    return MQX_OK;
}

static int keep_definition(struct mqx_replay *replay, const struct mqx_decoded *record,
                           const struct mqx_replay_definition **out)
{
    struct mqx_replay_definition *kept = keep(replay, sizeof *kept + record->attrs_length);
    if (kept == NULL) {
        return no_memory();
    }
    *kept = (struct mqx_replay_definition){*record->name, record->attrs_length, 0};
    if (record->attrs_length > 0) {
        memcpy(kept + 1, record->attrs, record->attrs_length);
    }
    *out = kept;
    return MQX_OK;
}

static int define(struct mqx_replay *replay, uint32_t slot, uint32_t generation,
                  const struct mqx_replay_definition *definition)
{
    struct mqx_slot_state *object = NULL;
    int status = object_at(replay, slot, &object);
    if (status != MQX_OK || generation < object->newest) {
        return status; /* an older generation: the snapshot has its successor */
    }
    if (generation > object->newest) {
        object->clear_bound = 0;
    }
    object->newest = generation;
    object->definition = definition;
    return MQX_OK;
}

static int undefine(struct mqx_replay *replay, uint32_t slot, uint32_t generation)
{
    struct mqx_slot_state *object = NULL;
    int status = object_at(replay, slot, &object);
    if (status == MQX_OK && generation >= object->newest) {
        object->newest = generation;
        object->definition = NULL;
    }
    return status;
}

static int clear(struct mqx_replay *replay, uint32_t slot, uint32_t generation, uint64_t bound)
{
    struct mqx_slot_state *object = NULL;
    int status = object_at(replay, slot, &object);
    if (status == MQX_OK && generation == object->newest && bound > object->clear_bound) {
        object->clear_bound = bound;
    }
    return status;
}

static const struct mqx_slot_state *defined_at(const struct mqx_replay *replay, uint32_t slot,
                                                 uint32_t generation)
{
    const struct mqx_slot_state *object =
        slot < replay->object_capacity ? &replay->objects[slot] : NULL;
    return object != NULL && object->definition != NULL && object->newest == generation ? object
                                                                                        : NULL;
}

int mqx_replay_define(struct mqx_replay *replay, const struct mqx_decoded *record)
{
    const struct mqx_replay_definition *definition = NULL;
    int status = keep_definition(replay, record, &definition);
    return status == MQX_OK ? define(replay, record->head->object, record->head->object_gen,
                                     definition)
                            : status;
}

/* ---- messages ---- */

uint64_t mqx_tag_key(const uint8_t qm_id[16])
{
    uint64_t halves[2];
    memcpy(halves, qm_id, sizeof halves);
    return halves[0] ^ halves[1];
}

/* No identifier, no tag. */
static uint64_t tag_of(const uint8_t id[MQX_ID_SIZE], uint64_t key)
{
    static const uint8_t no_id[MQX_ID_SIZE];
    return memcmp(id, no_id, sizeof no_id) == 0 ? 0 : mqx_hash64(id, MQX_ID_SIZE, key);
}

static void describe(const struct mqx_replay *replay, const struct mqx_decoded *record,
                     uint64_t lsn, struct psc_message *out)
{
    const struct ps_descriptor *d = record->descriptor;
    const struct ps_chunked *chunked = record->chunked;
    const uint64_t key = replay->tag_key;
    *out = (struct psc_message){
        .number = record->head->identity,
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
        .is_volatile = d->persistence == MQPER_NOT_PERSISTENT,
        .record_length = record->head->length,
        .chunk_count = chunked != NULL ? chunked->count : 0,
    };
}

static int add_put(struct mqx_replay *replay, const struct mqx_decoded *record, uint64_t lsn,
                   uint32_t *out)
{
    int status = grow(&replay->puts, replay->put_count, &replay->put_capacity,
                      sizeof *replay->puts);
    if (status == MQX_OK && replay->put_count >= UINT32_MAX) {
        status = no_memory();
    }
    if (status == MQX_OK) {
        struct mqx_replay_put *pending = &replay->puts[replay->put_count];
        describe(replay, record, lsn, &pending->m);
        pending->state = MQX_PUT_WAITING;
        pending->image = 0;
        pending->taken = false;
        *out = (uint32_t)replay->put_count++;
    }
    return status;
}

int mqx_replay_add_image(struct mqx_replay *replay, const struct mqx_decoded *record,
                         const struct mqx_image_position *place)
{
    uint32_t index = 0;
    int status = grow(&replay->images, replay->image_count, &replay->image_capacity,
                      sizeof *replay->images);
    if (status == MQX_OK) {
        status = add_put(replay, record, 0, &index);
    }
    if (status == MQX_OK) {
        replay->images[replay->image_count++] = *place;
        replay->puts[index].image = (uint32_t)replay->image_count;
        replay->puts[index].state = MQX_PUT_EFFECTIVE;
    }
    return status;
}

/* ---- effects ---- */

static int effect_put(struct mqx_replay *replay, const struct mqx_replay_op *op)
{
    struct mqx_replay_put *pending = &replay->puts[op->put];
    if (defined_at(replay, op->object, op->object_gen) != NULL) {
        pending->state = MQX_PUT_EFFECTIVE;
        return MQX_OK;
    }
    pending->state = MQX_PUT_DROPPED;
    if (op->lsn < replay->snapshot_end) {
        return MQX_OK; /* the object was deleted before the snapshot */
    }
    return mqx_fail(MQRC_OBJECT_DAMAGED,
                    "message %" PRIu64 " at LSN %" PRIu64 " was put to object slot %u, generation "
                    "%u, which is not defined", op->number, op->lsn, op->object, op->object_gen);
}

static int effect(struct mqx_replay *replay, const struct mqx_replay_op *op)
{
    switch (op->type) {
    case PS_REC_PUT: return effect_put(replay, op);
    case PS_REC_GET:
    case PS_REC_EXPIRE: return remove_message(replay, op->number);
    case PS_REC_CLEAR: return clear(replay, op->object, op->object_gen, op->number);
    case PS_REC_OBJECT: return define(replay, op->object, op->object_gen, op->definition);
    case PS_REC_OBJECT_DELETE: return undefine(replay, op->object, op->object_gen);
    default: return MQX_OK; /* CHUNK and what has its own way */
    }
}

/* ---- units ---- */

static size_t unit_place(const struct mqx_replay *replay, uint64_t id)
{
    return (size_t)(id * 0x9e3779b97f4a7c15u >> 32) & (replay->unit_capacity - 1);
}

static size_t find_unit(const struct mqx_replay *replay, uint64_t id)
{
    size_t at = unit_place(replay, id);
    while (replay->units[at].id != 0 && replay->units[at].id != id) {
        at = (at + 1) & (replay->unit_capacity - 1);
    }
    return at;
}

static int grow_units(struct mqx_replay *replay)
{
    struct mqx_replay_unit *old = replay->units;
    const size_t had = replay->unit_capacity;
    const size_t wanted = had == 0 ? 16 : had * 2;
    struct mqx_replay_unit *units = calloc(wanted, sizeof *units);
    if (units == NULL) {
        return no_memory();
    }
    replay->units = units;
    replay->unit_capacity = wanted;
    for (size_t i = 0; i < had; i++) {
        if (old[i].id != 0) {
            units[find_unit(replay, old[i].id)] = old[i];
        }
    }
    free(old);
    return MQX_OK;
}

static int unit_for(struct mqx_replay *replay, uint64_t id, uint64_t lsn,
                    struct mqx_replay_unit **out)
{
    if (2 * (replay->unit_count + 1) > replay->unit_capacity) {
        int status = grow_units(replay);
        if (status != MQX_OK) {
            return status;
        }
    }
    struct mqx_replay_unit *unit = &replay->units[find_unit(replay, id)];
    if (unit->id == 0) {
        *unit = (struct mqx_replay_unit){.id = id, .first_lsn = lsn};
        replay->unit_count += 1;
    }
    *out = unit;
    return MQX_OK;
}

/* Takes the unit out of the table; entries behind it move up, so that none is cut off from its
 * place. */
static bool take_unit(struct mqx_replay *replay, uint64_t id, struct mqx_replay_unit *out)
{
    if (replay->unit_count == 0) {
        return false;
    }
    const size_t mask = replay->unit_capacity - 1;
    size_t hole = find_unit(replay, id);
    if (replay->units[hole].id == 0) {
        return false;
    }
    *out = replay->units[hole];
    replay->unit_count -= 1;
    for (size_t at = (hole + 1) & mask; replay->units[at].id != 0; at = (at + 1) & mask) {
        const size_t home = unit_place(replay, replay->units[at].id);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            replay->units[hole] = replay->units[at];
            hole = at;
        }
    }
    replay->units[hole].id = 0;
    return true;
}

static int add_op(struct mqx_replay *replay, struct mqx_replay_unit *unit,
                  const struct mqx_replay_op *op)
{
    uint32_t index = replay->free_op;
    if (index != 0) {
        replay->free_op = replay->ops[index - 1].next;
    } else {
        int status = grow(&replay->ops, replay->op_count, &replay->op_capacity,
                          sizeof *replay->ops);
        if (status != MQX_OK) {
            return status;
        }
        index = (uint32_t)++replay->op_count;
    }
    replay->ops[index - 1] = *op;
    replay->ops[index - 1].next = 0;
    if (unit->last_op != 0) {
        replay->ops[unit->last_op - 1].next = index;
    } else {
        unit->first_op = index;
    }
    unit->last_op = index;
    return MQX_OK;
}

/* Applies (or drops) the unit's records and gives their memory back. */
static int end_unit(struct mqx_replay *replay, const struct mqx_replay_unit *unit, bool committed)
{
    int status = MQX_OK;
    for (uint32_t at = unit->first_op; at != 0 && status == MQX_OK;
         at = replay->ops[at - 1].next) {
        const struct mqx_replay_op *op = &replay->ops[at - 1];
        if (committed) {
            status = effect(replay, op);
        } else if (op->type == PS_REC_PUT) {
            replay->puts[op->put].state = MQX_PUT_DROPPED;
        }
    }
    if (unit->last_op != 0) {
        replay->ops[unit->last_op - 1].next = replay->free_op;
        replay->free_op = unit->first_op;
    }
    return status;
}

void mqx_replay_end_epoch(struct mqx_replay *replay)
{
    for (size_t i = 0; i < replay->unit_capacity && replay->unit_count > 0; i++) {
        struct mqx_replay_unit *unit = &replay->units[i];
        if (unit->id != 0) {
            (void)!end_unit(replay, unit, false); /* dropping cannot fail */
            unit->id = 0;
            replay->unit_count -= 1;
            replay->units_dropped += 1;
        }
    }
}

/* A unit whose first record lies below the begin LSN was over when the snapshot began, so the
 * snapshot has its effects. Those of its records that were read take effect again, unchecked: it
 * may have got a message whose PUT lies above the begin LSN, too, and that PUT must not come back
 * without its GET. */
static int commit(struct mqx_replay *replay, uint64_t lsn, const struct mqx_decoded *record)
{
    const struct ps_commit *stated = record->commit;
    struct mqx_replay_unit unit = {.first_lsn = stated->first_lsn};
    (void)take_unit(replay, record->head->unit_id, &unit);
    if (stated->first_lsn < replay->begin_lsn) {
        return end_unit(replay, &unit, true);
    }
    if (record->head->unit_id == 0 || unit.first_lsn != stated->first_lsn ||
        unit.record_count != stated->record_count || unit.running_crc != stated->running_crc) {
        return mqx_fail(MQRC_OBJECT_DAMAGED,
                        "COMMIT at LSN %" PRIu64 " of unit %" PRIu64 " is about %u records from "
                        "LSN %" PRIu64 ", found are %u from LSN %" PRIu64,
                        lsn, record->head->unit_id, stated->record_count, stated->first_lsn,
                        unit.record_count, unit.first_lsn);
    }
    return end_unit(replay, &unit, true);
}

/* ---- prepared units ---- */

static int new_doubt(struct mqx_replay *replay, uint32_t *out)
{
    if (replay->free_doubt != 0) {
        *out = replay->free_doubt - 1;
        replay->free_doubt = replay->doubts[*out].unit.first_op;
        return MQX_OK;
    }
    int status = grow(&replay->doubts, replay->doubt_count, &replay->doubt_capacity,
                      sizeof *replay->doubts);
    if (status == MQX_OK) {
        *out = (uint32_t)replay->doubt_count++;
        replay->doubts[*out].unit.id = 0;
    }
    return status;
}

/* Moves the unit from those under way to those in doubt, whose end, for one that began below the
 * begin LSN, follows. */
static int prepare(struct mqx_replay *replay, uint64_t lsn, const struct mqx_decoded *record)
{
    const struct ps_commit *stated = record->commit;
    const uint64_t id = record->head->unit_id;
    struct mqx_replay_unit unit = {.id = id, .first_lsn = stated->first_lsn};
    uint32_t index = 0;
    size_t at = 0;
    bool is_new = false;
    (void)take_unit(replay, id, &unit);
    if ((stated->record_count == 0 || stated->first_lsn >= replay->begin_lsn) &&
        (unit.first_lsn != stated->first_lsn || unit.record_count != stated->record_count ||
         unit.running_crc != stated->running_crc)) {
        return mqx_fail(MQRC_OBJECT_DAMAGED,
                        "PREPARE at LSN %" PRIu64 " of unit %" PRIu64 " is about %u records from "
                        "LSN %" PRIu64 ", found are %u from LSN %" PRIu64,
                        lsn, id, stated->record_count, stated->first_lsn, unit.record_count,
                        unit.first_lsn);
    }
    int status = new_doubt(replay, &index);
    if (status == MQX_OK) {
        status = add_number(&replay->doubt_of, id, true, &at, &is_new);
    }
    if (status != MQX_OK) {
        return status;
    }
    if (stated->record_count == 0) {
        unit.first_lsn = lsn;
    } else {
        unit.first_lsn = stated->first_lsn;
    }
    replay->doubt_of.values[at] = index + 1;
    replay->doubts[index] = (struct mqx_replay_doubt){
        .unit = unit,
        .xid = *record->xid,
        .prepare_end_lsn = lsn + record->head->length,
        .prepared_us = record->prepared->prepared_us,
    };
    return MQX_OK;
}

/* A unit that is not in doubt was prepared below the begin LSN: it was over when the snapshot
 * began. */
static int end_prepared(struct mqx_replay *replay, const struct mqx_decoded *record, bool committed)
{
    int status = MQX_OK;
    for (uint32_t i = 0; i < record->unit_count && status == MQX_OK; i++) {
        if (replay->doubt_of.count == 0 || record->units[i] == 0) {
            continue;
        }
        const size_t at = find_number(&replay->doubt_of, record->units[i]);
        const uint32_t index = replay->doubt_of.numbers[at] != 0 ? replay->doubt_of.values[at] : 0;
        if (index != 0) {
            struct mqx_replay_unit *unit = &replay->doubts[index - 1].unit;
            status = end_unit(replay, unit, committed);
            replay->doubt_of.values[at] = 0;
            unit->id = 0;
            unit->first_op = replay->free_doubt;
            replay->free_doubt = index;
        }
    }
    return status;
}

/* ---- what prepared units hold at the end ---- */

static int hold(struct mqx_replay *replay, const struct mqx_replay_op *op)
{
    size_t at = 0;
    bool is_new = false;
    int status = add_number(&replay->held_by_number, op->number, true, &at, &is_new);
    if (status != MQX_OK || !is_new) { /* a second image: the first attempt to prepare failed */
        return status;
    }
    replay->held_by_number.values[at] = (uint32_t)replay->held_count;
    replay->held[replay->held_count++] =
        (struct mqx_held){.number = op->number, .type = op->type, .put = op->put};
    if (op->type == PS_REC_PUT) {
        return effect_put(replay, op);
    }
    if (op->type == PS_REC_TAKEN && defined_at(replay, op->object, op->object_gen) != NULL) {
        replay->puts[op->put].state = MQX_PUT_EFFECTIVE;
    }
    return MQX_OK;
}

/* The next op of that kind from `at` (index + 1) on. */
static uint32_t next_op(const struct mqx_replay *replay, uint32_t at, bool taken)
{
    while (at != 0) {
        const uint32_t type = replay->ops[at - 1].type;
        if (taken ? type == PS_REC_TAKEN : type == PS_REC_PUT || type == PS_REC_GET) {
            break;
        }
        at = replay->ops[at - 1].next;
    }
    return at;
}

/* The images were written last; their place is told by the number of records before them. */
static int hold_unit(struct mqx_replay *replay, struct mqx_replay_doubt *doubt)
{
    uint32_t taken = next_op(replay, doubt->unit.first_op, true);
    uint32_t logged = next_op(replay, doubt->unit.first_op, false);
    uint32_t passed = 0;
    int status = MQX_OK;
    doubt->first_held = replay->held_count;
    while ((taken != 0 || logged != 0) && status == MQX_OK) {
        const struct mqx_replay_op *image = taken != 0 ? &replay->ops[taken - 1] : NULL;
        if (image != NULL && (image->before <= passed || logged == 0)) {
            status = hold(replay, image);
            taken = next_op(replay, image->next, true);
        } else {
            const struct mqx_replay_op *op = &replay->ops[logged - 1];
            status = hold(replay, op);
            logged = next_op(replay, op->next, false);
            passed += 1;
        }
    }
    doubt->held_count = replay->held_count - doubt->first_held;
    return status;
}

int mqx_replay_doubts(struct mqx_replay *replay)
{
    int status = MQX_OK;
    replay->held = calloc(replay->op_count + 1, sizeof *replay->held);
    if (replay->held == NULL) {
        return no_memory();
    }
    for (size_t i = 0; i < replay->doubt_count && status == MQX_OK; i++) {
        struct mqx_replay_doubt *doubt = &replay->doubts[i];
        if (doubt->unit.id != 0 && doubt->unit.first_lsn < replay->begin_lsn) {
            return mqx_fail(MQRC_OBJECT_DAMAGED,
                            "prepared unit %" PRIu64 " from LSN %" PRIu64 " began before the "
                            "checkpoint, %" PRIu64 ", and has no end", doubt->unit.id,
                            doubt->unit.first_lsn, replay->begin_lsn);
        }
        status = doubt->unit.id != 0 ? hold_unit(replay, doubt) : MQX_OK;
    }
    return status;
}

struct mqx_held *mqx_replay_held(const struct mqx_replay *replay, uint64_t number)
{
    if (replay->held_count == 0) {
        return NULL;
    }
    const size_t at = find_number(&replay->held_by_number, number);
    return replay->held_by_number.numbers[at] != 0
               ? &replay->held[replay->held_by_number.values[at]]
               : NULL;
}

static int back_out(struct mqx_replay *replay, const struct mqx_decoded *record)
{
    struct mqx_replay_unit unit;
    int status = MQX_OK;
    if (take_unit(replay, record->head->unit_id, &unit)) {
        status = end_unit(replay, &unit, false);
    }
    for (uint32_t i = 0; i < record->count_count && status == MQX_OK; i++) {
        status = mqx_replay_count(replay, record->counts[i].identity, record->counts[i].count);
    }
    return status;
}

/* ---- records ---- */

static int make_op(struct mqx_replay *replay, uint64_t lsn, const struct mqx_decoded *record,
                   struct mqx_replay_op *out)
{
    const struct psj_record *head = record->head;
    *out = (struct mqx_replay_op){
        .number = head->identity,
        .lsn = lsn,
        .object = head->object,
        .object_gen = head->object_gen,
        .type = mqx_record_type(head),
    };
    if (out->type == PS_REC_PUT) {
        return add_put(replay, record, lsn, &out->put);
    }
    if (out->type == PS_REC_TAKEN) {
        out->before = record->taken->before;
        int status = add_put(replay, record, lsn, &out->put);
        if (status == MQX_OK) {
            replay->puts[out->put].taken = true;
        }
        return status;
    }
    if (out->type == PS_REC_OBJECT) {
        return keep_definition(replay, record, &out->definition);
    }
    out->number = out->type == PS_REC_CLEAR ? head->arrival : out->number;
    return MQX_OK;
}

/* A record of a unit that is not decided by it. */
static int keep_record(struct mqx_replay *replay, uint64_t lsn, const struct mqx_decoded *record,
                       const struct mqx_replay_op *op)
{
    struct mqx_replay_unit *unit = NULL;
    int status = unit_for(replay, record->head->unit_id, lsn, &unit);
    if (status == MQX_OK) {
        unit->record_count += 1;
        unit->running_crc = mqx_running_crc(unit->running_crc, record->head);
        status = op->type == PS_REC_CHUNK ? MQX_OK : add_op(replay, unit, op);
    }
    return status;
}

static int take_record(struct mqx_replay *replay, uint64_t lsn, const struct mqx_decoded *record)
{
    struct mqx_replay_op op;
    struct mqx_replay_unit unit = {0};
    const struct psj_record *head = record->head;
    int status = make_op(replay, lsn, record, &op);
    if (status != MQX_OK) {
        return status;
    }
    if (head->unit_id != 0 && (head->flags & PS_FLAG_COMMITS) == 0) {
        return keep_record(replay, lsn, record, &op);
    }
    if (head->unit_id != 0 && take_unit(replay, head->unit_id, &unit)) {
        status = end_unit(replay, &unit, true);
    }
    return status == MQX_OK ? effect(replay, &op) : status;
}

static void note_numbers(struct mqx_replay *replay, const struct psj_record *head)
{
    const uint64_t number = head->identity > head->arrival ? head->identity : head->arrival;
    if (number >= replay->next_number) {
        replay->next_number = number + 1;
    }
    if (head->unit_id >= replay->next_unit_id) {
        replay->next_unit_id = head->unit_id + 1;
    }
}

int mqx_replay_record(void *arg, uint64_t lsn, const struct psj_record *head)
{
    struct mqx_replay *replay = arg;
    struct mqx_decoded record;
    int status = mqx_record_parse(head, &record);
    if (status != MQX_OK) {
        return status;
    }
    switch (mqx_record_type(head)) {
    case PS_REC_COMMIT: status = commit(replay, lsn, &record); break;
    case PS_REC_BACKOUT: status = back_out(replay, &record); break;
    case PS_REC_IMAGE_CONSUMED:
        /* a prepared unit may keep several checkpoints at one begin LSN */
        replay->image_consumed |= record.image->checkpoint_lsn == replay->begin_lsn &&
                                  lsn >= replay->snapshot_end;
        break;
    case PS_REC_PREPARE: status = prepare(replay, lsn, &record); break;
    case PS_REC_COMMIT_PREPARED: status = end_prepared(replay, &record, true); break;
    case PS_REC_BACKOUT_PREPARED: status = end_prepared(replay, &record, false); break;
    case PS_REC_TAKEN:
    case PS_REC_PUT:
    case PS_REC_GET:
    case PS_REC_EXPIRE:
    case PS_REC_CHUNK:
    case PS_REC_CLEAR:
    case PS_REC_OBJECT:
    case PS_REC_OBJECT_DELETE: status = take_record(replay, lsn, &record); break;
    default: return MQX_OK; /* optional, of a newer version */
    }
    note_numbers(replay, head);
    return status;
}

/* ---- results ---- */

bool mqx_replay_alive(const struct mqx_replay *replay, const struct psc_message *m)
{
    const struct mqx_slot_state *object = defined_at(replay, m->object, m->object_gen);
    if (object == NULL || m->number < object->clear_bound) {
        return false;
    }
    return replay->removed.count == 0 ||
           replay->removed.numbers[find_number(&replay->removed, m->number)] == 0;
}

uint32_t mqx_replay_count_of(const struct mqx_replay *replay, const struct psc_message *m)
{
    if (replay->counts.count == 0) {
        return m->backout_count;
    }
    const size_t at = find_number(&replay->counts, m->number);
    const bool newer =
        replay->counts.numbers[at] != 0 && replay->counts.values[at] > m->backout_count;
    return newer ? replay->counts.values[at] : m->backout_count;
}
