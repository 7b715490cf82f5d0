/*
 * reach.c - see reach.h.
 */
#include "region/reach.h"

#include "base/error.h"
#include "os/fork_guard.h"
#include "os/host_info.h"
#include "region/area.h"

#include <errno.h>

/* Where a stepwise region begins: far above the heap, far below the kernel's mappings, in the part
 * that address sanitizers leave to the program, too. */
static const uint64_t FAR_BASE = UINT64_C(1) << 45, FAR_END = UINT64_C(5) << 44;
static const uint64_t FAR_STRIDE = UINT64_C(1) << 40; /* at least, from one region to the next */

enum { STEP = 4 << 20 }; /* areas are mapped in multiples of this */

static const uint64_t ahead[MQX_AREA_COUNT] = {
    [MQX_AREA_OBJECTS] = 1 << 20, [MQX_AREA_CONTEXTS] = 1 << 20, [MQX_AREA_HANDLES] = 1 << 20,
    [MQX_AREA_MESSAGES] = 16 << 20, [MQX_AREA_ARENA] = 32 << 20,
};

static struct mqx_local_lock guard;

/* ---- mapping ---- */

int mqx_reach_begin(struct mqx_io *io, int fd, uint64_t size, uint64_t first, void **base,
                    bool *stepwise)
{
    MQX_ASSERT(first > 0 && first <= size);
    MQX_ASSERT(base != NULL);
    MQX_ASSERT(stepwise != NULL);
    *stepwise = false;
    int err = io->ops->map(io, fd, size, MQX_IO_MAP_REGION, base);
    if (err != -ENOMEM) {
        return err;
    }
    *stepwise = true;
    const uint64_t stride = mqx_round_up(size, FAR_STRIDE);
    for (uint64_t at = FAR_BASE; at <= FAR_END - stride; at += stride) {
        *base = (void *)(uintptr_t)at;
        err = io->ops->map_part(io, fd, 0, mqx_round_up(first, MQX_PAGE_SIZE), *base);
        if (err != -EEXIST) { /* else another region is there */
            return err;
        }
    }
    return -ENOMEM;
}

int mqx_reach_fixed_part(struct mqx_io *io, int fd, void *base, uint64_t first)
{
    const struct mqx_header *header = base;
    const uint64_t from = mqx_round_up(first, MQX_PAGE_SIZE), to = header->area[0].offset;
    MQX_ASSERT(base != NULL);
    MQX_ASSERT(from >= sizeof *header);
    MQX_ASSERT(fd >= 0);
    return to <= from ? 0
                      : io->ops->map_part(io, fd, from, to - from, (unsigned char *)base + from);
}

void mqx_reach_end(struct mqx_region *region)
{
    struct mqx_io *io = region->io;
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(io != NULL);
    if (!region->reach.stepwise) {
        (void)io->ops->unmap(io, region->base, region->size);
        return;
    }
    const uint64_t fixed = (uint64_t)(region->area[0] - region->base);
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        if (region->reach.mapped[kind] != 0) {
            (void)io->ops->unmap(io, region->area[kind], region->reach.mapped[kind]);
        }
    }
    (void)io->ops->unmap(io, region->base, fixed);
}

bool mqx_reach_owns_fd(const struct mqx_region *region)
{
    MQX_ASSERT(region->io != NULL);
    MQX_ASSERT(region->fd >= 0);
    return region->file.inode == 0 ||
           mqx_file_id_check(region->io, region->fd, &region->file) != -EBADF;
}

/* Maps an area up to `end`, which is more than is mapped. Guard held. */
static bool map_up_to(struct mqx_region *region, enum mqx_area_kind kind, uint64_t end)
{
    struct mqx_reach *reach = &region->reach;
    const uint64_t from = reach->mapped[kind];
    MQX_ASSERT(end > from);
    MQX_ASSERT(guard.owner != 0);
    MQX_ASSERT(end <= reach->space[kind]);
    const uint64_t offset = (uint64_t)(region->area[kind] - region->base) + from;
    if (!mqx_reach_owns_fd(region)) {
        return false;
    }
    const int err = region->io->ops->map_part(region->io, region->fd, offset, end - from,
                                              region->area[kind] + from);
    if (err == 0) {
        mqx_store_release(&reach->mapped[kind], end);
    }
    return err == 0;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    MQX_ASSERT(most % MQX_CELL == 0); /* lengths of mappings and areas */
    return value < most ? value : most;
}

/* Makes everything up to the area's capacity usable, and `beyond` bytes more mapped. */
static bool follow(struct mqx_region *region, enum mqx_area_kind kind, uint64_t beyond)
{
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    struct mqx_reach *reach = &region->reach;
    const uint64_t space = reach->space[kind];
    const uint64_t capacity = mqx_area_sure(region, kind);
    MQX_ASSERT(space > 0);
    const uint64_t wanted = at_most(capacity + beyond, space);
    bool good = wanted <= mqx_load_acquire(&reach->mapped[kind]);
    if (!good) {
        mqx_local_take(&guard);
        const uint64_t step = at_most(mqx_round_up(wanted, STEP), space);
        good = wanted <= reach->mapped[kind] || map_up_to(region, kind, step) ||
               map_up_to(region, kind, mqx_round_up(wanted, MQX_PAGE_SIZE));
        mqx_local_drop(&guard);
    }
    if (capacity <= mqx_load_acquire(&reach->mapped[kind]) &&
        capacity > mqx_load_relaxed(&reach->usable[kind])) {
        mqx_store_release(&reach->usable[kind], capacity);
    }
    return good;
}

/* What a process has mapped is no part of what callers may not change. */
static struct mqx_region *changeable(const struct mqx_region *region)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(region->base != NULL);
    return (struct mqx_region *)(uintptr_t)region;
}

bool mqx_reach_extend(const struct mqx_region *region, enum mqx_area_kind kind, uint64_t end)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    (void)follow(changeable(region), kind, 0);
    return end <= mqx_load_acquire(&region->reach.usable[kind]);
}

bool mqx_reach_follow(const struct mqx_region *region, bool with_room)
{
    bool good = true;
    MQX_ASSERT(region->reach.stepwise);
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        good = follow(changeable(region), (enum mqx_area_kind)kind, with_room ? ahead[kind] : 0) &&
               good;
    }
    MQX_ASSERT(region->base != NULL);
    return good;
}

bool mqx_reach_has(const struct mqx_region *region, uint64_t offset)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(offset < region->size);
    bool has = !region->reach.stepwise || offset < (uint64_t)(region->area[0] - region->base);
    for (int kind = 0; kind < MQX_AREA_COUNT && !has; kind++) {
        const uint64_t start = (uint64_t)(region->area[kind] - region->base);
        has = offset >= start && offset - start < mqx_load_acquire(&region->reach.mapped[kind]);
    }
    return has;
}

/* ---- refusing ---- */

void mqx_reach_lose(const struct mqx_region *region)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(region->reach.stepwise);
    mqx_store_release(&changeable(region)->reach.lost, 1u);
}

int mqx_reach_refused(const struct mqx_region *region)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(region->reach.stepwise);
    return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                    "the shared region has grown beyond the address space that this process may "
                    "have (RLIMIT_AS is %llu bytes)%s: raise it (ulimit -v) or run without it",
                    (unsigned long long)mqx_address_space_limit(),
                    mqx_load_acquire(&region->reach.lost) == 0
                        ? ""
                        : ", and a call was abandoned; connect again");
}
