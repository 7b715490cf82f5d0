/*
 * heap_bed.h - what test_heap.c and test_lookup.c stand on: a region in memory with queues that
 * have nothing but heap and lookups, the operations on them, and images of the region to compare.
 *
 * An operation is one micro-transaction: bed_apply() leaves it open, bed_run() commits it.
 * bed_run_aborted() first ends it before its 1st, 2nd, ... undo entry and at its end, and each
 * time compares the region with what it was. It makes the undo list so full that the wanted entry
 * is the first that does not fit: the failed check then leaves the operation by a longjmp out of
 * SIGABRT.
 *
 * An image is a copy in which memory that means nothing is zeroed: free entries and cells apart
 * from their links, hints, child[] of clear bits, key[] of unlinked messages.
 */
#ifndef PENSTOCK_TESTS_HEAP_BED_H
#define PENSTOCK_TESTS_HEAP_BED_H

#include "lookup.h"
#include "memory_io.h"

#include "harness.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { BED_QUEUES = 2 };

struct bed {
    struct memory_io *files;
    struct mqx_region region;
    struct mqx_hold hold;
    struct mqx_object *queue[BED_QUEUES];
    uint32_t stores;         /* of the newest operation */
    unsigned char *image[2]; /* address space as large as the region */
};

static struct bed bed;

enum op_kind { OP_PUT, OP_SHOW, OP_HIDE, OP_REMOVE, OP_DROP_HEAP };
struct op {
    enum op_kind kind;
    uint32_t queue;
    uint32_t slot;      /* OP_PUT: out */
    uint32_t placement; /* OP_PUT */
    bool available;     /* OP_PUT */
    uint64_t tag[MQX_INDEX_COUNT];
};

static uint32_t bed_slot_of(uint32_t queue)
{
    return queue + 1;
}

__attribute__((unused)) static void bed_end(void)
{
    if (bed.files != NULL) {
        mqx_hold_drop(&bed.hold);
        for (int i = 0; i < 2; i++) {
            munmap(bed.image[i], bed.region.size);
        }
        mqx_region_close(&bed.region);
        memory_io_free(bed.files);
    }
    bed = (struct bed){0};
}

/* A new region with BED_QUEUES empty queues in one stripe, whose lock is held. */
__attribute__((unused)) static void bed_begin(void)
{
    struct mqx_region_plan plan;
    bed_end();
    mqx_region_default_plan(&plan);
    plan.size = 4ull << 30;
    plan.ring_size = 4 * (uint64_t)MQX_RING_RECORD_MAX;
    plan.stripe_count = 1;
    plan.name_bucket_count = 64;
    plan.growth_step = 65536;
    bed.files = memory_io_new();
    memory_io_region_dir(bed.files, "/shm");
    struct mqx_io *io = memory_io_table(bed.files);
    const int dir = io->ops->open_dir(io, "/shm");
    CHECK(dir >= 0);
    CHECK_INT(mqx_region_create(io, dir, "bed", &plan, &bed.region), 0);
    CHECK_INT(mqx_region_grow(&bed.region, MQX_AREA_OBJECTS,
                              (BED_QUEUES + 1) * sizeof(struct mqx_object)), 0);
    for (uint32_t q = 0; q < BED_QUEUES; q++) {
        bed.queue[q] = mqx_object(&bed.region, bed_slot_of(q));
        bed.queue[q]->state = MQX_OBJ_ACTIVE;
        memset(bed.queue[q]->name, 'A' + (int)q, sizeof bed.queue[q]->name);
    }
    for (int i = 0; i < 2; i++) {
        bed.image[i] = mmap(NULL, bed.region.size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(bed.image[i] != MAP_FAILED);
    }
    CHECK_INT(mqx_hold_take(&bed.region, bed_slot_of(0), &bed.hold), 0);
    (void)mqx_heap_damaged();
}

static struct mqx_message *bed_message(uint32_t slot)
{
    return mqx_message(&bed.region, slot);
}

/* ---- operations ---- */

static int bed_put(struct op *op)
{
    struct mqx_object *queue = bed.queue[op->queue];
    int status = mqx_entry_take(&bed.hold, &op->slot);
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_message *message = bed_message(op->slot);
    message->placement = (uint8_t)op->placement;
    message->object = bed_slot_of(op->queue);
    message->flags = 0;
    message->number = mqx_number_take(&bed.hold);
    memcpy(message->tag, op->tag, sizeof message->tag);
    status = mqx_lookup_reserve(&bed.hold, queue);
    if (status == MQX_OK) {
        status = mqx_heap_insert(&bed.hold, queue, op->slot, op->available);
    }
    if (status == MQX_OK) {
        mqx_put8(&bed.hold, &message->state, op->available ? MQX_MSG_AVAILABLE : MQX_MSG_PUT);
        if (op->available) {
            mqx_lookup_link(&bed.hold, queue, op->slot);
        }
    }
    return status;
}

/* Does it and leaves its micro-transaction open. */
static int bed_apply(struct op *op)
{
    struct mqx_object *queue = bed.queue[op->queue];
    struct mqx_message *message = op->kind == OP_PUT ? NULL : bed_message(op->slot);
    switch (op->kind) {
    case OP_PUT:
        return bed_put(op);
    case OP_SHOW:
        mqx_put8(&bed.hold, &message->state, MQX_MSG_AVAILABLE);
        mqx_heap_show(&bed.hold, queue, op->slot, true);
        mqx_lookup_link(&bed.hold, queue, op->slot);
        break;
    case OP_HIDE:
        mqx_lookup_unlink(&bed.hold, queue, op->slot);
        mqx_heap_show(&bed.hold, queue, op->slot, false);
        mqx_put8(&bed.hold, &message->state, MQX_MSG_GOT);
        break;
    case OP_REMOVE:
        mqx_lookup_unlink(&bed.hold, queue, op->slot);
        mqx_heap_remove(&bed.hold, queue, op->slot);
        mqx_entry_give(&bed.hold, op->slot);
        break;
    case OP_DROP_HEAP:
        mqx_heap_drop(&bed.hold, queue);
        break;
    }
    return MQX_OK;
}

/* Does it, open, with as many supplies as it may need: each must bring something. */
static int bed_apply_supplied(struct op *op)
{
    int status;
    for (int i = 0; (status = bed_apply(op)) == MQX_NEED_CELLS; i++) {
        CHECK(i < 2 * MQX_RADIX_HEIGHT_MAX);
        CHECK_INT(mqx_hold_supply(&bed.hold), 0);
    }
    return status;
}

/* Does it for good; the status that it ended with. */
__attribute__((unused)) static int bed_run(struct op *op)
{
    const int status = bed_apply_supplied(op);
    bed.stores = bed.hold.stripe->lock.undo_count;
    if (status == MQX_OK) {
        mqx_hold_commit(&bed.hold);
    } else {
        mqx_hold_rollback(&bed.hold);
    }
    return status;
}

__attribute__((unused)) static uint32_t bed_add(uint32_t placement, uint64_t tag, bool available)
{
    struct op op = {.kind = OP_PUT, .placement = placement, .available = available,
                    .tag = {tag, tag, tag}};
    CHECK_INT(bed_run(&op), 0);
    return op.slot;
}

__attribute__((unused)) static void bed_do(enum op_kind kind, uint32_t slot)
{
    struct op op = {.kind = kind, .slot = slot};
    CHECK_INT(bed_run(&op), 0);
}

/* ---- images ---- */

static void image_clear_node(const struct mqx_region *view, uint32_t cell, uint32_t height)
{
    struct mqx_radix *node = mqx_cells_span(view, cell, sizeof *node);
    CHECK(node != NULL);
    for (uint32_t i = 0; i < MQX_RADIX_FANOUT; i++) {
        if ((node->present >> i & 1) == 0) {
            node->child[i] = 0;
        } else if (height > 1) {
            image_clear_node(view, node->child[i], height - 1);
        }
    }
}

static void image_clear_cells(const struct mqx_region *view, struct mqx_stripe *stripe)
{
    for (uint32_t c = 0; c < MQX_CLASS_COUNT; c++) {
        uint32_t *link = &stripe->free_cells[c];
        while (*link != 0) {
            link = mqx_cells_span(view, *link, mqx_class_bytes(c));
            CHECK(link != NULL);
            memset(link + 1, 0, mqx_class_bytes(c) - sizeof *link);
        }
    }
    memset(&stripe->lock, 0, sizeof stripe->lock);
    memset(stripe->free_count, 0, sizeof stripe->free_count);
    stripe->free_entry_count = 0;
}

static void image_clear_messages(const struct mqx_region *view)
{
    struct mqx_message *message;
    for (uint32_t slot = 1; (message = mqx_message(view, slot)) != NULL; slot++) {
        for (int k = 0; k < MQX_INDEX_COUNT; k++) {
            if ((message->flags & MQX_MSGF_KEY << k) == 0) {
                memset(&message->key[k], 0, sizeof message->key[k]);
            }
        }
        if (message->state == MQX_MSG_FREE) {
            const uint32_t next = message->unit_next;
            memset(message, 0, sizeof *message);
            message->unit_next = next;
        }
    }
}

static void bed_image(int which)
{
    unsigned char *base = bed.image[which];
    const struct mqx_header *header = bed.region.header;
    struct mqx_region view = bed.region;
    memcpy(base, bed.region.base, header->area[0].offset);
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        const struct mqx_area *area = &header->area[kind];
        memcpy(base + area->offset, bed.region.base + area->offset, area->capacity);
        view.area[kind] = base + area->offset;
    }
    view.base = base;
    view.header = (struct mqx_header *)(void *)base;
    view.stripes = (struct mqx_stripe *)(void *)(base + header->stripe_offset);
    for (uint32_t q = 0; q < BED_QUEUES; q++) {
        const struct mqx_object *queue = mqx_object(&view, bed_slot_of(q));
        for (int p = 0; p < MQX_PRIORITY_COUNT; p++) {
            if (queue->level[p].root != 0) {
                image_clear_node(&view, queue->level[p].root, queue->level[p].height);
            }
        }
    }
    image_clear_cells(&view, &view.stripes[0]);
    image_clear_messages(&view);
}

/* The two images are equal, header apart. */
static bool bed_images_equal(void)
{
    const struct mqx_header *header = bed.region.header;
    bool equal = memcmp(bed.image[0] + header->stripe_offset, bed.image[1] + header->stripe_offset,
                        sizeof(struct mqx_stripe)) == 0;
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        const struct mqx_area *area = &header->area[kind];
        equal = equal && memcmp(bed.image[0] + area->offset, bed.image[1] + area->offset,
                                area->capacity) == 0;
    }
    return equal;
}

/* ---- aborts ---- */

static sigjmp_buf bed_stop;

static void bed_leave(int signal_number)
{
    (void)signal_number;
    siglongjmp(bed_stop, 1);
}

/* Runs the operation, but at most `stores` of its stores; true when it had no more. */
static bool bed_run_some(struct op op, uint32_t stores)
{
    struct mqx_lock *lock = &bed.hold.stripe->lock;
    volatile bool whole = false;
    for (uint32_t n = stores; n < MQX_UNDO_MAX; n++) {
        mqx_put64(&bed.hold, &bed.hold.stripe->body_bytes, bed.hold.stripe->body_bytes);
    }
    if (sigsetjmp(bed_stop, 1) == 0) {
        const int status = bed_apply(&op);
        whole = status == MQX_OK && lock->undo_count <= MQX_UNDO_MAX;
    }
    return whole;
}

/* As bed_run(), after having been aborted at every store. */
__attribute__((unused)) static int bed_run_aborted(struct op *op)
{
    struct sigaction old, leave = {.sa_handler = bed_leave};
    const int text = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool whole = false, equal = true;
    const int status = bed_apply_supplied(op);
    mqx_hold_rollback(&bed.hold);
    CHECK_INT(status, 0);
    dup2(nowhere, STDERR_FILENO);
    sigaction(SIGABRT, &leave, &old);
    bed_image(0);
    for (uint32_t n = 0; n <= MQX_UNDO_MAX && !whole && equal; n++) {
        whole = bed_run_some(*op, n);
        mqx_hold_rollback(&bed.hold);
        bed_image(1);
        equal = bed_images_equal();
    }
    sigaction(SIGABRT, &old, NULL);
    dup2(text, STDERR_FILENO);
    close(text);
    close(nowhere);
    CHECK(equal);
    CHECK(whole);
    return bed_run(op);
}

#endif
