/*
 * units_in_flight.c - see units_in_flight.h. Listing goes through the tables of a replay, loading
 * fills them.
 */
#include "recovery/units_in_flight.h"

#include "base/checksum.h"
#include "recovery/replay_private.h"

#include <stdlib.h>
#include <string.h>

void mqx_units_free(struct mqx_units_in_flight *list)
{
    MQX_ASSERT(list->unit_count == 0 || list->units != NULL);
    MQX_ASSERT(list->operation_count == 0 || list->operations != NULL);
    free(list->units);
    free(list->operations);
    free(list->puts);
    *list = (struct mqx_units_in_flight){0};
}

uint32_t mqx_units_checksum(const struct mqx_units_in_flight *list)
{
    uint32_t crc = 0;
    MQX_ASSERT(list->unit_count == 0 || list->units != NULL);
    MQX_ASSERT(list->put_count <= list->operation_count);
    if (list->unit_count != 0) {
        crc = mqx_crc32c(crc, list->units, list->unit_count * sizeof *list->units);
    }
    if (list->operation_count != 0) {
        crc = mqx_crc32c(crc, list->operations,
                         list->operation_count * sizeof *list->operations);
    }
    if (list->put_count != 0) {
        crc = mqx_crc32c(crc, list->puts, list->put_count * sizeof *list->puts);
    }
    return crc;
}

/* ---- listing ---- */

struct listed { /* a unit of the replay; prepared NULL: under way */
    const struct mqx_replay_unit *unit;
    const struct mqx_replay_prepared *prepared;
};

static int by_id(const void *a, const void *b)
{
    const struct listed *first = a, *second = b;
    MQX_ASSERT(first->unit->id != 0);
    MQX_ASSERT(second->unit->id != 0);
    return first->unit->id < second->unit->id ? -1 : first->unit->id > second->unit->id;
}

/* All units of the replay, ids ascending; *out is to be freed. */
static int collect(const struct mqx_replay *replay, struct listed **out, size_t *out_count)
{
    struct listed *all = calloc(replay->unit_count + replay->prepared_count + 1, sizeof *all);
    size_t count = 0;
    MQX_ASSERT(replay->unit_count <= replay->unit_capacity);
    if (all == NULL) {
        return mqx_replay_no_memory();
    }
    for (size_t i = 0; i < replay->unit_capacity; i++) {
        if (replay->units[i].id != 0) {
            all[count++] = (struct listed){&replay->units[i], NULL};
        }
    }
    for (size_t i = 0; i < replay->prepared_count; i++) {
        if (replay->prepared[i].unit.id != 0) {
            all[count++] = (struct listed){&replay->prepared[i].unit, &replay->prepared[i]};
        }
    }
    MQX_ASSERT(count <= replay->unit_count + replay->prepared_count);
    qsort(all, count, sizeof *all, by_id);
    *out = all;
    *out_count = count;
    return MQX_OK;
}

static bool is_put(uint32_t type)
{
    MQX_ASSERT(type != PS_REC_COMMIT);
    MQX_ASSERT(type != PS_REC_PREPARE);
    return type == PS_REC_PUT || type == PS_REC_TAKEN;
}

static int list_operation(const struct mqx_replay *replay, const struct mqx_replay_op *op,
                          struct mqx_units_in_flight *out)
{
    int status = mqx_replay_grow(&out->operations, out->operation_count, &out->operation_capacity,
                                 sizeof *out->operations);
    if (status == MQX_OK && is_put(op->type)) {
        status = mqx_replay_grow(&out->puts, out->put_count, &out->put_capacity,
                                 sizeof *out->puts);
    }
    if (status != MQX_OK) {
        return status;
    }
    out->operations[out->operation_count++] = (struct psc_operation){
        .number = op->number,
        .lsn = op->lsn,
        .object = op->object,
        .object_gen = op->object_gen,
        .type = op->type,
        .before = op->before,
    };
    if (is_put(op->type)) {
        MQX_ASSERT(op->put < replay->put_count);
        MQX_ASSERT(replay->puts[op->put].m.number == op->number);
        struct psc_message *line = &out->puts[out->put_count++];
        *line = replay->puts[op->put].m;
        status = op->type == PS_REC_PUT ? mqx_replay_locate(replay, line) : MQX_OK;
    }
    return status;
}

/* The unit's line, and those of its operations. */
static int list_unit(const struct mqx_replay *replay, const struct listed *listed,
                     struct mqx_units_in_flight *out, bool *out_all)
{
    const struct mqx_replay_unit *unit = listed->unit;
    const size_t before = out->operation_count;
    MQX_ASSERT(unit->id != 0);
    MQX_ASSERT((unit->first_op == 0) == (unit->last_op == 0));
    int status = mqx_replay_grow(&out->units, out->unit_count, &out->unit_capacity,
                                 sizeof *out->units);
    for (uint32_t at = unit->first_op; at != 0 && status == MQX_OK;
         at = replay->ops[at - 1].next) {
        const struct mqx_replay_op *op = &replay->ops[at - 1];
        *out_all &= op->definition == NULL && op->type != PS_REC_OBJECT_DELETE;
        status = list_operation(replay, op, out);
    }
    if (status != MQX_OK) {
        return status;
    }
    struct psc_unit *line = &out->units[out->unit_count++];
    *line = (struct psc_unit){
        .id = unit->id,
        .first_lsn = unit->first_lsn,
        .pieces_lsn = unit->pieces_lsn,
        .operations = out->operation_count - before,
        .record_count = unit->record_count,
        .running_crc = unit->running_crc,
    };
    if (listed->prepared != NULL) {
        line->prepare_end_lsn = listed->prepared->prepare_end_lsn;
        line->prepared = listed->prepared->stated;
        line->xid = listed->prepared->xid;
    }
    return MQX_OK;
}

int mqx_units_list(const struct mqx_replay *replay, struct mqx_units_in_flight *out, bool *out_all)
{
    struct listed *all = NULL;
    size_t count = 0;
    MQX_ASSERT(out->unit_count == 0);
    MQX_ASSERT(replay->held == NULL); /* the tail is still being read */
    *out_all = true;
    int status = collect(replay, &all, &count);
    for (size_t i = 0; i < count && status == MQX_OK; i++) {
        status = list_unit(replay, &all[i], out, out_all);
    }
    free(all);
    return status;
}

/* ---- loading ---- */

/* Could a checkpoint list this unit behind that one? */
static bool unit_is_sound(const struct mqx_replay *replay, const struct psc_unit *unit,
                          const struct psc_unit *before)
{
    static const struct ps_xid no_xid;
    static const struct ps_prepared not_prepared;
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT(replay->begin_lsn != 0);
    const bool prepared = unit->prepare_end_lsn != 0;
    return unit->id != 0 && unit->id < replay->next_unit_id &&
           (before == NULL || unit->id > before->id) && unit->first_lsn != 0 &&
           unit->first_lsn % PS_ALIGN == 0 && unit->first_lsn < replay->begin_lsn &&
           unit->pieces_lsn % PS_ALIGN == 0 && unit->pieces_lsn < replay->begin_lsn &&
           unit->operations <= unit->record_count &&
           unit->prepare_end_lsn < replay->begin_lsn + MQX_RING_RECORD_MAX && /* it begins below */
           (prepared ? mqx_xid_is_sound(&unit->xid)
                     : unit->record_count != 0 &&
                           memcmp(&unit->prepared, &not_prepared, sizeof not_prepared) == 0 &&
                           memcmp(&unit->xid, &no_xid, sizeof no_xid) == 0);
}

static bool operation_is_sound(const struct mqx_replay *replay, const struct psc_unit *unit,
                               const struct psc_operation *operation)
{
    const uint32_t type = operation->type;
    MQX_ASSERT(unit->id != 0);
    MQX_ASSERT(replay->slot_limit > 0);
    return (is_put(type) || type == PS_REC_GET || type == PS_REC_EXPIRE || type == PS_REC_CLEAR) &&
           operation->lsn >= unit->first_lsn && operation->lsn < replay->begin_lsn &&
           operation->lsn % PS_ALIGN == 0 && operation->object != 0 &&
           operation->object < replay->slot_limit && operation->number != 0 &&
           (operation->before == 0 || type == PS_REC_TAKEN);
}

/* Where the record was written, or, of a PUT, where the message was moved since. */
static bool place_is_sound(const struct psc_operation *operation, const struct psc_message *m,
                           uint64_t begin_lsn)
{
    MQX_ASSERT(is_put(operation->type));
    MQX_ASSERT(operation->lsn < begin_lsn);
    return m->lsn == operation->lsn ||
           (operation->type == PS_REC_PUT && m->lsn > operation->lsn && m->lsn < begin_lsn &&
            m->lsn % PS_ALIGN == 0);
}

static bool put_is_sound(const struct psc_operation *operation, const struct psc_message *m,
                         uint64_t begin_lsn)
{
    MQX_ASSERT(is_put(operation->type));
    MQX_ASSERT(operation->lsn != 0);
    return m->number == operation->number && m->object == operation->object &&
           m->object_gen == operation->object_gen && place_is_sound(operation, m, begin_lsn) &&
           m->first_lsn <= m->lsn && m->zero == 0 &&
           m->due_us <= PS_DUE_MAX;
}

/* The operation, as if its record had been read. */
static int load_operation(struct mqx_replay *replay, struct mqx_replay_unit *unit,
                          const struct psc_operation *operation, const struct psc_message *m)
{
    struct mqx_replay_op op = {
        .number = operation->number,
        .lsn = operation->lsn,
        .object = operation->object,
        .object_gen = operation->object_gen,
        .type = operation->type,
        .before = operation->before,
    };
    MQX_ASSERT(unit->id != 0);
    MQX_ASSERT((m != NULL) == is_put(op.type));
    int status = m != NULL ? mqx_replay_carry_put(replay, m, op.type == PS_REC_TAKEN, &op.put)
                           : MQX_OK;
    return status == MQX_OK ? mqx_replay_add_op(replay, unit, &op) : status;
}

/* Puts the unit where it belongs: among those under way, or the prepared ones. */
static int install(struct mqx_replay *replay, const struct psc_unit *line,
                   const struct mqx_replay_unit *unit)
{
    MQX_ASSERT(unit->id == line->id);
    MQX_ASSERT(unit->carried);
    if (line->prepare_end_lsn == 0) {
        return mqx_replay_carry_unit(replay, unit);
    }
    const struct mqx_replay_prepared prepared = {
        .unit = *unit,
        .xid = line->xid,
        .prepare_end_lsn = line->prepare_end_lsn,
        .stated = line->prepared,
    };
    return mqx_replay_add_prepared(replay, &prepared);
}

int mqx_units_load(const struct mqx_units_in_flight *list, struct mqx_replay *replay,
                   bool *out_sound)
{
    size_t at = 0, put = 0;
    int status = MQX_OK;
    MQX_ASSERT(replay->unit_count == 0);
    MQX_ASSERT(replay->prepared_count == 0);
    *out_sound = true;
    for (size_t i = 0; i < list->unit_count && status == MQX_OK && *out_sound; i++) {
        const struct psc_unit *line = &list->units[i];
        struct mqx_replay_unit unit = {.id = line->id,
                                       .first_lsn = line->first_lsn,
                                       .pieces_lsn = line->pieces_lsn,
                                       .record_count = line->record_count,
                                       .running_crc = line->running_crc,
                                       .carried = true};
        *out_sound = unit_is_sound(replay, line, i > 0 ? line - 1 : NULL) &&
                     line->operations <= list->operation_count - at;
        for (uint64_t left = line->operations; left > 0 && status == MQX_OK && *out_sound; left--) {
            const struct psc_operation *operation = &list->operations[at++];
            const struct psc_message *m = NULL;
            *out_sound = operation_is_sound(replay, line, operation);
            if (*out_sound && is_put(operation->type)) {
                m = put < list->put_count ? &list->puts[put++] : NULL;
                *out_sound = m != NULL && put_is_sound(operation, m, replay->begin_lsn);
            }
            status = *out_sound ? load_operation(replay, &unit, operation, m) : MQX_OK;
        }
        status = status == MQX_OK && *out_sound ? install(replay, line, &unit) : status;
    }
    *out_sound = *out_sound && at == list->operation_count && put == list->put_count;
    return status;
}
