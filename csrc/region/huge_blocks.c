/*
 * huge_blocks.c - see huge_blocks.h.
 */
#include "region/huge_blocks.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "region/area.h"
#include "region/lock.h"

#include <stdio.h>

enum { WORD_BITS = 64, BLOCKS = MQX_HUGE_WORDS * WORD_BITS };

static uint64_t block_floor(uint64_t offset)
{
    MQX_STATIC_ASSERT((MQX_HUGE_BLOCK & (MQX_HUGE_BLOCK - 1)) == 0, "a power of two");
    MQX_ASSERT(offset <= INT64_MAX);
    return offset / MQX_HUGE_BLOCK * MQX_HUGE_BLOCK;
}

uint64_t mqx_huge_target(uint64_t offset, uint64_t capacity, uint64_t wanted, uint64_t target)
{
    MQX_ASSERT(capacity < target);
    MQX_ASSERT(wanted <= target);
    const uint64_t end = block_floor(offset + target);
    const uint64_t least = wanted > capacity ? wanted : capacity + 1;
    return target - capacity >= MQX_HUGE_BLOCK && end >= offset + least ? end - offset : target;
}

/* Sets or clears the bits of `count` blocks; a larger region has some without a bit. */
static void mark(const struct mqx_region *region, uint64_t first, uint64_t count, bool huge)
{
    uint64_t *words = region->header->huge_block;
    MQX_ASSERT(mqx_lock_held(region, &region->header->growth_lock));
    MQX_ASSERT(first + count >= first);
    for (uint64_t block = first; block < first + count && block < BLOCKS; block++) {
        uint64_t *word = &words[block / WORD_BITS];
        const uint64_t bit = UINT64_C(1) << block % WORD_BITS, old = mqx_load_relaxed(word);
        mqx_store_relaxed(word, huge ? old | bit : old & ~bit);
    }
}

void mqx_huge_back(const struct mqx_region *region, uint64_t offset, uint64_t bytes)
{
    const uint64_t first = block_floor(offset + MQX_HUGE_BLOCK - 1);
    const uint64_t end = block_floor(offset + bytes);
    MQX_ASSERT(mqx_lock_held(region, &region->header->growth_lock));
    MQX_ASSERT(offset + bytes <= region->size);
    if (end <= first || region->io->ops->allocate_huge == NULL) {
        return;
    }
    const uint64_t got =
        region->io->ops->allocate_huge(region->io, region->fd, first, end - first);
    MQX_ASSERT(got <= end - first);
    mark(region, first / MQX_HUGE_BLOCK, got / MQX_HUGE_BLOCK, true);
}

void mqx_huge_split(const struct mqx_region *region, uint64_t offset, uint64_t bytes)
{
    MQX_ASSERT(bytes > 0);
    MQX_ASSERT(offset + bytes <= region->size);
    const uint64_t first = offset / MQX_HUGE_BLOCK;
    mark(region, first, (offset + bytes - 1) / MQX_HUGE_BLOCK - first + 1, false);
}

uint64_t mqx_huge_bytes(const struct mqx_region *region)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(region->header != NULL);
    uint64_t count = 0;
    for (int i = 0; i < MQX_HUGE_WORDS; i++) {
        count += (uint64_t)__builtin_popcountll(mqx_load_relaxed(&region->header->huge_block[i]));
    }
    return count * MQX_HUGE_BLOCK;
}

void mqx_huge_explain(const struct mqx_region *region, char out[MQX_HUGE_TEXT])
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(out != NULL);
    out[0] = '\0';
    if (mqx_huge_bytes(region) != 0) {
        return;
    }
    mqx_huge_refusal(region->in_memory, region->file.device, out);
    if (out[0] == '\0') {
        const uint64_t index = mqx_area_sure(region, MQX_AREA_MESSAGES);
        const uint64_t arena = mqx_area_sure(region, MQX_AREA_ARENA);
        const bool small = index < MQX_HUGE_FROM && arena < MQX_HUGE_FROM;
        (void)snprintf(out, MQX_HUGE_TEXT, "%s",
                       small ? "the region is small: it asks for huge pages as it grows"
                             : "the system had no huge page when the region grew");
    }
}
