/*
 * audit.c - accounts for all memory of a region: every entry and every cell is free exactly once or
 * used exactly once. See crash_fixture.h.
 *
 * What may refer to memory: free lists and parcels of the stripes, global lists, object attributes,
 * heap nodes, indexes, messages. A cell without a reference is a leak; two references are worse.
 */
#include "crash_fixture.h"

#include "catalog/attr_cells.h"
#include "queue/id_index.h"
#include "queue/queue.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct audit {
    const struct mqx_region *region;
    uint8_t *cell;     /* marks, one a cell */
    uint8_t *entry;    /* marks, one a message entry */
    uint64_t cells, entries;
    uint32_t present, put, got; /* messages of the object that is examined */
    bool good;
};

static void complain(struct audit *audit, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("audit: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    audit->good = false;
}

static void mark_cells(struct audit *audit, uint32_t cell, uint32_t bytes, const char *who)
{
    const uint32_t count = mqx_class_bytes(mqx_class_for(bytes)) / MQX_CELL;
    for (uint32_t i = 0; i < count; i++) {
        if (cell + i >= audit->cells) {
            complain(audit, "%s names cell %u beyond the %llu handed out", who, cell + i,
                     (unsigned long long)audit->cells);
            return;
        }
        if (audit->cell[cell + i]++ != 0) {
            complain(audit, "%s names cell %u, which is named already", who, cell + i);
            return;
        }
    }
}

static void mark_entry(struct audit *audit, uint32_t slot, const char *who)
{
    if (slot >= audit->entries) {
        complain(audit, "%s names entry %u beyond the %llu handed out", who, slot,
                 (unsigned long long)audit->entries);
    } else if (audit->entry[slot]++ != 0) {
        complain(audit, "%s names entry %u, which is named already", who, slot);
    }
}

static void mark_cell_list(struct audit *audit, uint32_t head, uint32_t class_no, const char *who)
{
    for (uint32_t cell = head; cell != 0 && audit->good;) {
        const uint32_t *link = mqx_cells(audit->region, cell);
        mark_cells(audit, cell, mqx_class_bytes(class_no), who);
        cell = link == NULL ? 0 : *link;
    }
}

static void mark_entry_list(struct audit *audit, uint32_t head, const char *who)
{
    for (uint32_t slot = head; slot != 0 && audit->good;) {
        const struct mqx_message *message = mqx_message(audit->region, slot);
        if (message == NULL || message->state != MQX_MSG_FREE) {
            complain(audit, "%s holds entry %u, which is not free", who, slot);
            return;
        }
        mark_entry(audit, slot, who);
        slot = message->unit_next;
    }
}

static void mark_parcel(struct audit *audit, const struct mqx_parcel *parcel, const char *who)
{
    if (parcel->kind == 1) {
        mark_cell_list(audit, parcel->head, parcel->class_no, who);
    } else if (parcel->kind == 2) {
        mark_entry_list(audit, parcel->head, who);
    }
}

/* Held by a prepared unit, which belongs to no process. */
static bool is_prepared(const struct mqx_region *region, const struct mqx_message *message)
{
    const struct mqx_context *unit = mqx_context(region, message->unit);
    return (message->state == MQX_MSG_PUT || message->state == MQX_MSG_GOT) && unit != NULL &&
           unit->state == MQX_CTX_PREPARED && unit->process == 0;
}

static void mark_message(struct audit *audit, uint32_t slot, uint32_t object)
{
    const struct mqx_message *message = mqx_message(audit->region, slot);
    mark_entry(audit, slot, "a priority index");
    if (message == NULL || message->object != object || message->state == MQX_MSG_FREE) {
        complain(audit, "priority index of object %u holds entry %u, which is not its message",
                 object, slot);
        return;
    }
    audit->present += 1;
    audit->put += message->state == MQX_MSG_PUT;
    audit->got += message->state == MQX_MSG_GOT;
    if ((message->state != MQX_MSG_AVAILABLE && message->state != MQX_MSG_DELAYED &&
         !is_prepared(audit->region, message)) ||
        message->pins != 0) {
        complain(audit, "message %u is in state %u with %u pins though no call runs", slot,
                 message->state, message->pins);
    }
    for (uint32_t cell = message->cells; cell != 0 && audit->good;) {
        const struct mqx_block *block = mqx_cells(audit->region, cell);
        if (block == NULL || block->class_no >= MQX_CLASS_COUNT) {
            complain(audit, "message %u has a bad chain", slot);
            return;
        }
        mark_cells(audit, cell, mqx_class_bytes(block->class_no), "a message");
        cell = block->next;
    }
}

static void mark_nodes(struct audit *audit, uint32_t cell, uint32_t height, uint32_t object)
{
    const struct mqx_radix *node = mqx_cells(audit->region, cell);
    mark_cells(audit, cell, sizeof *node, "a priority index node");
    if (node == NULL || !audit->good) {
        return;
    }
    for (uint32_t digit = 0; digit < MQX_RADIX_FANOUT; digit++) {
        if ((node->present >> digit & 1u) == 0) {
            continue;
        }
        if (height > 1) {
            mark_nodes(audit, node->child[digit], height - 1, object);
        } else {
            mark_message(audit, node->child[digit], object);
        }
    }
}

static uint32_t segment_bytes(uint32_t i)
{
    return 4u * (i == 0 ? MQX_ID_INDEX_BUCKETS : MQX_ID_INDEX_BUCKETS << (i - 1));
}

static void mark_index(struct audit *audit, uint32_t cell)
{
    const struct mqx_id_index *index = mqx_cells(audit->region, cell);
    mark_cells(audit, cell, sizeof *index, "an index");
    for (uint32_t i = 0; index != NULL && i < MQX_ID_INDEX_SEGMENTS; i++) {
        if (index->segment[i] != 0) {
            mark_cells(audit, index->segment[i], segment_bytes(i), "buckets of an index");
        }
    }
    if (index != NULL && index->directory != 0) {
        complain(audit, "an index of a crash experiment has a directory");
    }
}

static void mark_object(struct audit *audit, uint32_t slot)
{
    const struct mqx_object *object = mqx_object(audit->region, slot);
    if (object == NULL || object->state == MQX_OBJ_FREE) {
        return;
    }
    if (object->state != MQX_OBJ_ACTIVE) {
        complain(audit, "object %u is in state %u though no call runs", slot, object->state);
    }
    if (object->definition_type == MQX_TEMPORARY) {
        complain(audit, "object %u is a temporary queue though no call runs", slot);
    }
    if (object->open_input + object->open_output + object->open_other != 0) {
        complain(audit, "object %u is open though no call runs", slot);
    }
    if (object->attrs != 0) {
        mark_cells(audit, object->attrs, object->attrs_length + MQX_ATTRS_TRAILER, "attributes");
    }
    if (object->pending_attrs != 0) {
        mark_cells(audit, object->pending_attrs, object->pending_length + MQX_ATTRS_TRAILER,
                   "pending attributes");
    }
    audit->present = audit->put = audit->got = 0;
    for (int p = 0; p < MQX_PRIORITY_COUNT; p++) {
        if (object->level[p].root != 0) {
            mark_nodes(audit, object->level[p].root, object->level[p].height, slot);
        }
    }
    if (object->present != audit->present || object->uncommitted != audit->put ||
        object->got != audit->got) {
        complain(audit, "object %u counts %u messages, %u put and %u got by units; it has %u, %u "
                        "and %u", slot, object->present, object->uncommitted, object->got,
                 audit->present, audit->put, audit->got);
    }
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        if (object->index[k] != 0) {
            mark_index(audit, object->index[k]);
        }
    }
}

/* Items of an extent are free in it, or not yet carved, or marked by who has them; what is left
 * behind the last whole item belongs to nobody. */
static void mark_extent(struct audit *audit, enum mqx_pool_no no, uint32_t number)
{
    const struct mqx_extent *extent = &audit->region->extents[no][number - 1];
    const uint32_t unit = no == MQX_POOL_ENTRIES ? sizeof(struct mqx_message) : MQX_CELL;
    const uint32_t units = MQX_EXTENT_BYTES / unit, first = (number - 1) * units;
    const bool used = extent->state == MQX_EXTENT_USED;
    const uint32_t size = used ? mqx_class_bytes(extent->class_no) / unit : 1;
    uint8_t *marks = no == MQX_POOL_ENTRIES ? audit->entry : audit->cell;
    for (uint32_t i = used ? extent->carved * size : 0; i < units; i++) {
        marks[first + i] += 1;
    }
    if (!used) {
        return;
    }
    for (uint32_t i = 0; number == 1 && i < size; i++) {
        marks[i] += 1; /* item 0 stands for none */
    }
    if (extent->in_use == 0 || extent->in_use > extent->carved || extent->carved > extent->total) {
        complain(audit, "extent %u of pool %d: %u in use of %u carved of %u", number, (int)no,
                 extent->in_use, extent->carved, extent->total);
    }
    if (no == MQX_POOL_ENTRIES) {
        mark_entry_list(audit, extent->free_head, "the free entries of an extent");
    } else {
        mark_cell_list(audit, extent->free_head, extent->class_no, "the free list of an extent");
    }
}

/* A extent with free items is in the list of its class, one without items in the one of its
 * state. */
static void check_extent_lists(struct audit *audit, enum mqx_pool_no no, uint32_t count)
{
    const struct mqx_header *header = audit->region->header;
    const struct mqx_pool *pool = &header->pool[no];
    const struct mqx_extent *extents = audit->region->extents[no];
    uint32_t partial = 0, listed = 0, free = 0, idle = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct mqx_extent *extent = &extents[i];
        partial += extent->state == MQX_EXTENT_USED &&
                   (extent->free_head != 0 || extent->carved < extent->total);
    }
    for (uint32_t c = 0; c < MQX_LIST_COUNT; c++) {
        const bool here = (c == MQX_ENTRY_CLASS) == (no == MQX_POOL_ENTRIES);
        for (uint32_t at = here ? header->partial[c] : 0; at != 0 && listed <= count;
             at = extents[at - 1].next) {
            listed += extents[at - 1].state == MQX_EXTENT_USED && extents[at - 1].class_no == c;
        }
    }
    for (uint32_t at = pool->free; at != 0 && free <= count; at = extents[at - 1].next) {
        free += extents[at - 1].state == MQX_EXTENT_FREE;
    }
    for (uint32_t at = pool->to_punch; at != 0 && idle <= count; at = extents[at - 1].next) {
        idle += extents[at - 1].state == MQX_EXTENT_TO_PUNCH;
    }
    for (uint32_t at = pool->punched; at != 0 && idle <= count; at = extents[at - 1].next) {
        idle += extents[at - 1].state == MQX_EXTENT_PUNCHED;
    }
    if (partial != listed || free != pool->free_count || idle + free != pool->idle_count) {
        complain(audit, "pool %d: %u partial extents, %u listed; %u free, counted %u; %u idle, "
                        "counted %u", (int)no, partial, listed, free, pool->free_count,
                 idle + free, pool->idle_count);
    }
}

static void mark_extents(struct audit *audit, enum mqx_pool_no no)
{
    const uint64_t items = no == MQX_POOL_ENTRIES ? audit->entries : audit->cells;
    const uint32_t units = (uint32_t)(MQX_EXTENT_BYTES / (no == MQX_POOL_ENTRIES
                                                              ? sizeof(struct mqx_message)
                                                              : (size_t)MQX_CELL));
    for (uint32_t i = 0; i < items / units; i++) {
        mark_extent(audit, no, i + 1);
    }
    check_extent_lists(audit, no, (uint32_t)(items / units));
}

static void mark_lists(struct audit *audit)
{
    const struct mqx_header *header = audit->region->header;
    for (uint32_t i = 0; i < header->stripe_count; i++) {
        const struct mqx_stripe *stripe = &audit->region->stripes[i];
        if (stripe->lock.undo_count != 0) {
            complain(audit, "stripe %u has an undo list of %u", i, stripe->lock.undo_count);
        }
        for (uint32_t c = 0; c < MQX_CLASS_COUNT; c++) {
            mark_cell_list(audit, stripe->free_cells[c], c, "a stripe's free list");
        }
        mark_entry_list(audit, stripe->free_entries, "a stripe's free entries");
        mark_parcel(audit, &stripe->incoming, "an incoming parcel");
        mark_parcel(audit, &stripe->outgoing, "an outgoing parcel");
    }
    for (int no = 0; no < MQX_POOL_COUNT; no++) {
        mark_extents(audit, (enum mqx_pool_no)no);
    }
}

static void check_idle(struct audit *audit)
{
    const struct mqx_region *region = audit->region;
    for (uint32_t i = 1; i < region->header->area[MQX_AREA_CONTEXTS].used; i++) {
        const struct mqx_context *context = mqx_context(region, i);
        const bool is_unit = context != NULL && context->state == MQX_CTX_PREPARED &&
                             context->process == 0 && context->resolver == 0;
        if (context != NULL && !is_unit &&
            (context->state > MQX_CTX_IDLE ||
             (context->state == MQX_CTX_IDLE && context->process != region->process) ||
             context->pending_kind != MQX_PENDING_NONE || context->wait_state == MQX_WAIT_LISTED)) {
            complain(audit, "context %u: state %u process %u hand %u wait %u", i, context->state,
                     context->process, context->pending_kind, context->wait_state);
        }
    }
    for (uint32_t i = 1; i < region->header->area[MQX_AREA_HANDLES].used; i++) {
        const struct mqx_handle *handle = mqx_handle(region, i);
        if (handle != NULL && handle->state != 0) {
            complain(audit, "handle %u is open though no call runs", i);
        }
    }
}

/* Every slot that is not in use is in the list of free ones, once. */
static void check_slots(struct audit *audit, enum mqx_area_kind kind)
{
    const struct mqx_region *region = audit->region;
    const struct mqx_area *area = &region->header->area[kind];
    uint64_t idle = 0, listed = 0;
    for (uint32_t i = 1; i < area->used; i++) {
        idle += kind == MQX_AREA_OBJECTS    ? mqx_object(region, i)->state == MQX_OBJ_FREE
                : kind == MQX_AREA_CONTEXTS ? mqx_context(region, i)->state == MQX_CTX_FREE
                                            : mqx_handle(region, i)->state == 0;
    }
    for (uint32_t slot = area->free_head; slot != 0 && listed <= idle; listed++) {
        slot = kind == MQX_AREA_OBJECTS    ? mqx_object(region, slot)->next_free
               : kind == MQX_AREA_CONTEXTS ? mqx_context(region, slot)->next_free
                                           : mqx_handle(region, slot)->next_free;
    }
    if (listed != idle) {
        complain(audit, "area %d: %llu slots are free, %llu are listed", (int)kind,
                 (unsigned long long)idle, (unsigned long long)listed);
    }
}

/* The bytes of the journal are those of its files, but for what is reserved for a full disk. */
static void check_journal(struct audit *audit)
{
    const struct mqx_journal *journal = audit->region->journal;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        const bool counts =
            segment->state != MQX_SEG_FREE && segment->state != MQX_SEG_RESERVED;
        bytes += counts ? segment->size : 0;
    }
    if (bytes != journal->used_bytes) {
        complain(audit, "the journal counts %llu bytes, its files have %llu",
                 (unsigned long long)journal->used_bytes, (unsigned long long)bytes);
    }
}

static void count_all(struct audit *audit)
{
    for (uint64_t i = 1; i < audit->cells && audit->good; i++) {
        if (audit->cell[i] != 1) {
            complain(audit, "cell %llu has no reference: leaked", (unsigned long long)i);
        }
    }
    for (uint64_t i = 1; i < audit->entries && audit->good; i++) {
        if (audit->entry[i] != 1) {
            complain(audit, "entry %llu has no reference: leaked", (unsigned long long)i);
        }
    }
}

bool fixture_audit(const struct crash_fixture *fixture)
{
    const struct mqx_region *region = &fixture->manager->store.region;
    const struct mqx_header *header = region->header;
    struct audit audit = {.region = region, .good = true};
    audit.cells = header->area[MQX_AREA_ARENA].used;
    audit.entries = header->area[MQX_AREA_MESSAGES].used;
    audit.cell = calloc(audit.cells, 1);
    audit.entry = calloc(audit.entries, 1);
    if (audit.cell == NULL || audit.entry == NULL) {
        fixture_die("memory for the audit", 0);
    }
    mark_lists(&audit);
    for (uint32_t i = 1; i < header->area[MQX_AREA_OBJECTS].used; i++) {
        mark_object(&audit, i);
    }
    check_idle(&audit);
    check_slots(&audit, MQX_AREA_OBJECTS);
    check_slots(&audit, MQX_AREA_CONTEXTS);
    check_slots(&audit, MQX_AREA_HANDLES);
    check_journal(&audit);
    count_all(&audit);
    free(audit.cell);
    free(audit.entry);
    return audit.good;
}
