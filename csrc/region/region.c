/*
 * region.c - laying out, mapping and growing the region. See layout.h for terms and invariants.
 *
 * The part of the file before the areas (layout.h) is backed by memory at creation; areas begin
 * empty and grow. Address space is divided among them in fixed proportions, so a plan needs only
 * the total size.
 */
#include "region/region.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/host_info.h"
#include "region/huge_blocks.h"
#include "region/mapping_cache.h"

#include <errno.h>
#include <string.h>

#define REGION_MAGIC "PSTKREGN"

/* Raised when fields keep their sizes and change their meaning (priority_index.h, id_index.h). */
enum { MEANING = 3 };

static const uint64_t FNV_START = 14695981039346656037ull, FNV_PRIME = 1099511628211ull;

enum {
    SHARES = 64,            /* address space is divided into so many parts */
    LEAST_PAGES = 16,       /* of the smallest part */
    RING_RECORDS_MIN = 4,   /* longest records that the ring holds at least */
    GROWTH_PART = 8,        /* an area grows by this part of its size, within limits */
    GROWTH_MAX = 16 << 20,  /* so that the growth lock is never held long */
    EPOCH_BACK_US = 100000, /* a tenth of a second: expiry_of() in queue.c rounds up */
};

void mqx_region_default_plan(struct mqx_region_plan *plan)
{
    MQX_ASSERT(plan != NULL);
    *plan = (struct mqx_region_plan){
        .size = 64ull << 30,
        .body_budget = 1ull << 30,
        .memory_limit = UINT64_MAX,
        .ring_size = 4ull << 20,
        .segment_size = 64ull << 20,
        .first_segment_size = 2ull << 20,
        .journal_limit = 64ull << 30,
        .stripe_count = MQX_STRIPE_MAX,
        .name_bucket_count = 65536,
        .growth_step = 1u << 20,
        .max_uncommitted = 10000,
        .max_message = MQX_MAX_BODY,
        .platform = 0,
    };
}

uint64_t mqx_region_layout(void)
{
    const uint64_t facts[] = {
        sizeof(struct mqx_header),
        sizeof(struct mqx_journal),
        sizeof(struct mqx_stripe),
        sizeof(struct mqx_extent),
        MQX_EXTENT_BYTES,
        sizeof(struct mqx_object),
        sizeof(struct mqx_message),
        sizeof(struct mqx_context),
        sizeof(struct mqx_handle),
        sizeof(struct mqx_process),
        sizeof(struct mqx_lock),
        sizeof(pthread_mutex_t),
        sizeof(struct mqx_sealed),
        sizeof(struct mqx_segment),
        offsetof(struct mqx_header, last_round_us),
        offsetof(struct mqx_header, journal),
        offsetof(struct mqx_header, process),
        offsetof(struct mqx_journal, tail),
        offsetof(struct mqx_journal, segment),
        offsetof(struct mqx_stripe, incoming),
        offsetof(struct mqx_object, level),
        offsetof(struct mqx_message, key),
        offsetof(struct mqx_message, tag),
        offsetof(struct mqx_message, backout_count),
        offsetof(struct mqx_context, wait_word),
        offsetof(struct mqx_context, access),
        offsetof(struct mqx_context, xid),
        sizeof(void *),
        MQX_UNDO_MAX,
        offsetof(struct mqx_header, damage_text),
        MEANING,
    };
    uint64_t hash = FNV_START; /* FNV-1a over the facts */
    for (size_t i = 0; i < MQX_ARRAY_COUNT(facts); i++) {
        hash = (hash ^ facts[i]) * FNV_PRIME;
    }
    MQX_ASSERT(hash != 0 && hash != FNV_START);
    return hash;
}

struct area_shape {
    uint32_t share;         /* of the address space left, of SHARES */
    uint32_t step_divisor;  /* of the plan's growth step */
};
static const struct area_shape shapes[MQX_AREA_COUNT] = {
    [MQX_AREA_OBJECTS] = {2, 4},
    [MQX_AREA_CONTEXTS] = {1, 4},
    [MQX_AREA_HANDLES] = {1, 8},
    [MQX_AREA_MESSAGES] = {20, 1},
    [MQX_AREA_ARENA] = {40, 1},
};

/* The area whose extents a pool has. */
static const enum mqx_area_kind pool_area[MQX_POOL_COUNT] = {
    [MQX_POOL_ENTRIES] = MQX_AREA_MESSAGES,
    [MQX_POOL_CELLS] = MQX_AREA_ARENA,
};

struct layout {
    uint64_t stripes, names, ring, extents, areas, size;
};

static struct layout lay_out(const struct mqx_region_plan *plan)
{
    struct layout at;
    MQX_ASSERT(plan != NULL);
    at.stripes = mqx_round_up(sizeof(struct mqx_header), MQX_PAGE_SIZE);
    at.names = mqx_round_up(at.stripes + (uint64_t)plan->stripe_count * sizeof(struct mqx_stripe),
                            MQX_PAGE_SIZE);
    at.ring = mqx_round_up(at.names + 2 * (uint64_t)plan->name_bucket_count * sizeof(uint32_t),
                           MQX_PAGE_SIZE);
    at.extents = mqx_round_up(at.ring + plan->ring_size, MQX_PAGE_SIZE);
    at.size = mqx_round_up(plan->size, MQX_PAGE_SIZE);
    /* of all areas together, and a page for what is rounded down in each pool */
    at.areas = at.extents + MQX_POOL_COUNT * (uint64_t)MQX_PAGE_SIZE +
               mqx_round_up(at.size / MQX_EXTENT_BYTES * sizeof(struct mqx_extent), MQX_PAGE_SIZE);
    MQX_ASSERT(at.stripes < at.names || plan->stripe_count == 0);
    return at;
}

static void lay_out_areas(struct mqx_header *header, const struct mqx_region_plan *plan,
                          const struct layout *at)
{
    const uint64_t unit = (at->size - at->areas) / SHARES / MQX_PAGE_SIZE * MQX_PAGE_SIZE;
    uint64_t offset = at->areas;
    MQX_ASSERT(unit >= LEAST_PAGES * MQX_PAGE_SIZE);
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        const struct area_shape *shape = &shapes[kind];
        struct mqx_area *area = &header->area[kind];
        const uint32_t item_size = mqx_area_item_size((enum mqx_area_kind)kind);
        const uint64_t limit = (uint64_t)item_size << 32; /* slots and cells are 32-bit */
        area->offset = offset;
        area->reserved_bytes = unit * shape->share < limit ? unit * shape->share : limit;
        const uint64_t step = mqx_round_up(plan->growth_step / shape->step_divisor, MQX_PAGE_SIZE);
        area->step = step < GROWTH_MAX ? step : GROWTH_MAX;
        area->item_size = item_size;
        area->capacity_inverse = ~UINT64_C(0);
        mqx_area_set_used(area, 1); /* item 0 means "none" */
        MQX_ASSERT(area->step >= MQX_PAGE_SIZE);
        offset += unit * shape->share;
    }
    MQX_ASSERT(offset <= at->size);
}

/* Bytes of the table of an area's extents; a table begins on a page, so that growing one backs no
 * page of the other. */
static uint64_t extent_table_bytes(const struct mqx_area *area)
{
    MQX_ASSERT(area != NULL);
    MQX_ASSERT((uintptr_t)area % MQX_CELL == 0);
    return area->reserved_bytes / MQX_EXTENT_BYTES * sizeof(struct mqx_extent);
}

static void lay_out_extents(struct mqx_header *header, const struct layout *at)
{
    uint64_t offset = at->extents;
    MQX_ASSERT(offset % MQX_PAGE_SIZE == 0);
    for (int no = 0; no < MQX_POOL_COUNT; no++) {
        header->pool[no].extents_offset = offset;
        offset += mqx_round_up(extent_table_bytes(&header->area[pool_area[no]]), MQX_PAGE_SIZE);
    }
    MQX_ASSERT(offset <= at->areas);
}

static int format_locks(struct mqx_header *header, struct mqx_stripe *stripes)
{
    MQX_ASSERT(stripes != NULL);
    struct {
        struct mqx_lock *lock;
        enum mqx_rank rank;
    } locks[] = {
        {&header->maintenance_lock, MQX_RANK_MAINTENANCE},
        {&header->journal.flush_lock, MQX_RANK_FLUSH},
        {&header->growth_lock, MQX_RANK_GROWTH},
        {&header->journal.roll_lock, MQX_RANK_ROLL},
        {&header->catalog_lock, MQX_RANK_CATALOG},
        {&header->slots_lock, MQX_RANK_SLOTS},
        {&header->arena_lock, MQX_RANK_ARENA},
        {&header->journal.ring_lock, MQX_RANK_RING},
    };
    int status = MQX_OK;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(locks) && status == MQX_OK; i++) {
        status = mqx_lock_init(locks[i].lock, locks[i].rank);
    }
    MQX_ASSERT(header->stripe_count >= 1);
    for (uint32_t i = 0; i < header->stripe_count && status == MQX_OK; i++) {
        status = mqx_lock_init(&stripes[i].lock, MQX_RANK_QUEUE);
    }
    return status;
}

static void format_journal(struct mqx_journal *journal, const struct mqx_region_plan *plan,
                           const struct layout *at)
{
    MQX_ASSERT(at->ring % MQX_PAGE_SIZE == 0);
    MQX_ASSERT((plan->ring_size & (plan->ring_size - 1)) == 0);
    journal->ring_offset = at->ring;
    journal->ring_size = plan->ring_size;
    journal->segment_size = plan->segment_size;
    journal->first_segment_size = plan->first_segment_size;
    journal->limit = plan->journal_limit;
    mqx_journal_set_durable(journal, 0);
    mqx_journal_set_sums(journal);
}

static void fill_view(struct mqx_region *out, struct mqx_io *io, int fd, void *base, uint64_t size,
                      bool stepwise)
{
    struct mqx_header *header = base;
    MQX_ASSERT(base != NULL);
    MQX_ASSERT(fd >= 0);
    *out = (struct mqx_region){
        .base = base,
        .header = header,
        .journal = &header->journal,
        .stripes = (struct mqx_stripe *)((unsigned char *)base + header->stripe_offset),
        .names = (uint32_t *)((unsigned char *)base + header->names_offset),
        .name_mask = header->name_bucket_count - 1,
        .ring = (unsigned char *)base + header->journal.ring_offset,
        .ring_size = header->journal.ring_size,
        .stripe_mask = header->stripe_count - 1,
        .mutex_kind = mqx_lock_mutex_kind(),
        .fd = fd,
        .io = io,
        .size = size,
        .reach.stepwise = stepwise,
    };
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        out->area[kind] = (unsigned char *)base + header->area[kind].offset;
        out->reach.space[kind] = header->area[kind].reserved_bytes;
        out->reach.mapped[kind] = stepwise ? 0 : out->reach.space[kind];
        MQX_ASSERT(out->area[kind] < out->base + size);
    }
    for (int no = 0; no < MQX_POOL_COUNT; no++) {
        out->extents[no] =
            (struct mqx_extent *)((unsigned char *)base + header->pool[no].extents_offset);
        out->extent_count[no] = header->area[pool_area[no]].reserved_bytes / MQX_EXTENT_BYTES;
    }
    MQX_ASSERT((unsigned char *)out->stripes > out->base);
    mqx_ignore(mqx_file_id_read(io, fd, &out->file)); /* unknown: it is not checked */
}

static int format(struct mqx_io *io, int fd, void *base, bool stepwise,
                  const struct mqx_region_plan *plan, const struct layout *at,
                  struct mqx_region *out)
{
    MQX_ASSERT(fd >= 0);
    struct mqx_header *header = base;
    MQX_ASSERT(header->ready == 0); /* a fresh file reads as zeroes */
    MQX_ASSERT(header->layout == 0);
    header->layout = mqx_region_layout();
    header->size = at->size;
    header->stripe_count = plan->stripe_count;
    header->name_bucket_count = plan->name_bucket_count;
    header->stripe_offset = at->stripes;
    header->names_offset = at->names;
    header->max_uncommitted = plan->max_uncommitted;
    header->max_unit_age = plan->max_unit_age;
    header->max_message = plan->max_message;
    header->body_budget = plan->body_budget;
    header->memory_limit = plan->memory_limit;
    header->platform = plan->platform;
    const uint64_t now = io->ops->now_us(io);
    header->epoch_us = now > EPOCH_BACK_US ? now - EPOCH_BACK_US : 0;
    header->run_offset_us = mqx_clock_wall_us() - mqx_clock_boot_us();
    lay_out_areas(header, plan, at);
    lay_out_extents(header, at);
    format_journal(&header->journal, plan, at);
    fill_view(out, io, fd, base, at->size, stepwise);
    int status = format_locks(header, out->stripes);
    mqx_order();
    memcpy(header->magic, REGION_MAGIC, sizeof header->magic);
    return status;
}

static bool plan_is_sound(const struct mqx_region_plan *plan, const struct layout *at)
{
    MQX_ASSERT(at->stripes >= sizeof(struct mqx_header));
    MQX_ASSERT(at->size % MQX_PAGE_SIZE == 0);
    const uint32_t stripes = plan->stripe_count, buckets = plan->name_bucket_count;
    return stripes >= 1 && stripes <= MQX_STRIPE_MAX && (stripes & (stripes - 1)) == 0 &&
           buckets >= 1 && (buckets & (buckets - 1)) == 0 &&
           plan->ring_size >= RING_RECORDS_MIN * (uint64_t)MQX_RING_RECORD_MAX &&
           (plan->ring_size & (plan->ring_size - 1)) == 0 &&
           at->size >= at->areas + SHARES * LEAST_PAGES * (uint64_t)MQX_PAGE_SIZE;
}

/* Not even the part of the region that every process needs could be mapped. */
static int no_address_space(int negated_errno)
{
    MQX_ASSERT(negated_errno < 0);
    if (negated_errno != -ENOMEM) {
        return mqx_io_reason(negated_errno, "mapping the shared region");
    }
    return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                    "the shared region cannot be mapped: this process may have %llu bytes of "
                    "address space (RLIMIT_AS), and has no room for the region's first part in "
                    "them; raise the limit (ulimit -v) or run without it",
                    (unsigned long long)mqx_address_space_limit());
}

/* The region's file, empty: in memory if the plan says so and the system has such files, which a
 * filter of system calls may deny. */
static int create_file(struct mqx_io *io, int dir, const char *name, bool *in_memory, int *out_fd)
{
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(dir >= 0);
    int status = *in_memory ? mqx_memory_file_create(io, dir, name, out_fd) : MQX_OK;
    const bool denied = *in_memory && status == MQX_OK &&
                        (*out_fd == -ENOSYS || *out_fd == -EPERM || *out_fd == -EACCES);
    if (!*in_memory || denied) {
        *in_memory = false;
        *out_fd = io->ops->open(io, dir, name, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    }
    return status == MQX_OK && *out_fd < 0 ? mqx_io_reason(*out_fd, "creating the shared region")
                                           : status;
}

static void close_file(struct mqx_io *io, int fd, bool in_memory)
{
    MQX_ASSERT(io != NULL);
    MQX_ASSERT(fd >= 0);
    if (in_memory) {
        mqx_memory_file_close(io, fd);
    } else {
        (void)io->ops->close(io, fd);
    }
}

/* The file cannot have its length, or the room that it begins with. */
static MQX_COLD int refuse_layout(int err, const struct layout *at)
{
    MQX_ASSERT(err < 0);
    MQX_ASSERT(at->extents <= at->size);
    if (err == -ENOSPC || err == -ENOMEM || err == -EDQUOT) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                        "the shared region needs %llu bytes on its file system to begin with",
                        (unsigned long long)at->extents);
    }
    if (err == -EFBIG) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "the shared region is a file of %llu bytes (region.size), longer than this "
                        "process may write (RLIMIT_FSIZE, ulimit -f): raise that, or lower "
                        "region.size", (unsigned long long)at->size);
    }
    return mqx_io_reason(err, "laying out the shared region");
}

int mqx_region_create(struct mqx_io *io, int dir, const char *name,
                      const struct mqx_region_plan *plan, struct mqx_region *out)
{
    const struct layout at = lay_out(plan);
    void *base = NULL;
    bool stepwise = false, allocated = false, in_memory = plan->in_memory;
    int fd = -1;
    MQX_ASSERT(out != NULL);
    MQX_ASSERT(name != NULL);
    if (!plan_is_sound(plan, &at)) {
        return mqx_fail(MQRC_UNEXPECTED_ERROR,
                        "region of %llu bytes with a ring of %llu and %u stripes is not possible",
                        (unsigned long long)plan->size, (unsigned long long)plan->ring_size,
                        plan->stripe_count);
    }
    mqx_mapping_cache_drop();
    int status = create_file(io, dir, name, &in_memory, &fd);
    if (status != MQX_OK) {
        return status;
    }
    status = io->ops->truncate(io, fd, at.size);
    if (status == 0) {
        status = io->ops->allocate(io, fd, 0, at.extents);
    }
    if (status == 0) {
        allocated = true;
        status = mqx_reach_begin(io, fd, at.size, at.areas, &base, &stepwise);
    }
    if (status < 0) {
        close_file(io, fd, in_memory);
        (void)io->ops->unlink(io, dir, name);
        return allocated ? no_address_space(status) : refuse_layout(status, &at);
    }
    status = format(io, fd, base, stepwise, plan, &at, out);
    out->in_memory = in_memory;
    return status;
}

static bool fits(uint64_t offset, uint64_t bytes, uint64_t size)
{
    MQX_ASSERT(size > 0);
    return offset <= size && bytes <= size - offset;
}

/* Validates a file that may be foreign or damaged: every number that is used for addressing. */
static int verify(const struct mqx_header *header, uint64_t size)
{
    MQX_ASSERT(header != NULL);
    MQX_ASSERT(size >= sizeof *header);
    if (memcmp(header->magic, REGION_MAGIC, sizeof header->magic) != 0 ||
        header->layout != mqx_region_layout()) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "the shared region was made by another build of penstock");
    }
    const uint32_t stripes = header->stripe_count, buckets = header->name_bucket_count;
    const uint64_t ring = header->journal.ring_size;
    bool sound = header->size == size && stripes >= 1 && stripes <= MQX_STRIPE_MAX &&
                 (stripes & (stripes - 1)) == 0 && buckets >= 1 &&
                 (buckets & (buckets - 1)) == 0 && ring >= MQX_PAGE_SIZE &&
                 (ring & (ring - 1)) == 0 &&
                 fits(header->stripe_offset, stripes * sizeof(struct mqx_stripe), size) &&
                 fits(header->names_offset, 2 * (uint64_t)buckets * sizeof(uint32_t), size) &&
                 fits(header->journal.ring_offset, ring, size);
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        const struct mqx_area *area = &header->area[kind];
        sound = sound && area->item_size == mqx_area_item_size((enum mqx_area_kind)kind) &&
                fits(area->offset, area->reserved_bytes, size) &&
                area->reserved_bytes > 0 &&
                mqx_load_relaxed(&area->capacity) <= area->reserved_bytes; /* others grow it */
    }
    for (int no = 0; no < MQX_POOL_COUNT; no++) {
        const uint64_t offset = header->pool[no].extents_offset;
        sound = sound && offset % sizeof(struct mqx_extent) == 0 &&
                fits(offset, extent_table_bytes(&header->area[pool_area[no]]), size);
    }
    if (!sound) {
        return mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE, "the shared region's header is damaged");
    }
    return MQX_OK;
}

/* Maps an existing file and verifies its header. 0, or a reason code with nothing mapped. */
static int map_existing(struct mqx_io *io, int fd, const struct mqx_io_stat *facts,
                        struct mqx_region *out)
{
    const uint64_t first = sizeof(struct mqx_header);
    bool stepwise = false;
    MQX_ASSERT(facts->size >= first);
    MQX_ASSERT(fd >= 0);
    void *base = mqx_mapping_cache_take(io, facts);
    int err = base != NULL ? 0 : mqx_reach_begin(io, fd, facts->size, first, &base, &stepwise);
    if (err < 0) {
        return no_address_space(err);
    }
    const uint64_t mapped = stepwise ? mqx_round_up(first, MQX_PAGE_SIZE) : facts->size;
    int status = verify(base, facts->size);
    if (status == MQX_OK && stepwise) {
        err = mqx_reach_fixed_part(io, fd, base, first);
        status = err < 0 ? no_address_space(err) : MQX_OK;
    }
    if (status != MQX_OK) {
        (void)io->ops->unmap(io, base, mapped);
        return status;
    }
    MQX_ASSERT(base != NULL);
    fill_view(out, io, fd, base, facts->size, stepwise);
    return MQX_OK;
}

int mqx_region_open(struct mqx_io *io, int dir, const char *name, const struct mqx_peers *peers,
                    struct mqx_region *out)
{
    struct mqx_io_stat facts;
    bool in_memory = false;
    MQX_ASSERT(out != NULL);
    MQX_ASSERT(name != NULL);
    int fd = io->ops->open(io, dir, name, MQX_IO_WRITE, 0);
    if (fd < 0) {
        return mqx_io_reason(fd, "opening the shared region");
    }
    int status = mqx_memory_file_follow(io, &fd, peers, &in_memory);
    if (status != MQX_OK) {
        return status;
    }
    MQX_ASSERT(fd >= 0);
    status = io->ops->stat(io, fd, &facts);
    if (status == 0 && facts.size < sizeof(struct mqx_header)) {
        status = -EIO;
    }
    status = status < 0 ? mqx_io_reason(status, "mapping the shared region")
                        : map_existing(io, fd, &facts, out);
    if (status != MQX_OK) {
        close_file(io, fd, in_memory);
    } else {
        out->in_memory = in_memory;
    }
    return status;
}

void mqx_region_close(struct mqx_region *region)
{
    MQX_ASSERT(region != NULL);
    if (region->base == NULL) {
        return;
    }
    mqx_reach_end(region);
    if (mqx_reach_owns_fd(region)) {
        close_file(region->io, region->fd, region->in_memory);
    }
    region->base = NULL;
}

void mqx_region_leave(struct mqx_region *region)
{
    struct mqx_io_stat facts;
    struct mqx_io *io = region->io;
    MQX_ASSERT(io != NULL);
    if (region->base == NULL || region->reach.stepwise || !mqx_reach_owns_fd(region) ||
        io->ops->stat(io, region->fd, &facts) < 0 || facts.size != region->size) {
        mqx_region_close(region);
        return;
    }
    MQX_ASSERT(region->fd >= 0);
    mqx_mapping_cache_put(io, &facts, region->base, region->size);
    close_file(io, region->fd, region->in_memory);
    region->base = NULL;
}

/* The capacity that an area at `offset` gets when `wanted` bytes are needed; large areas take
 * larger steps, and end them where a huge page does. */
static uint64_t growth_target(const struct mqx_area *area, uint64_t offset, uint64_t capacity,
                              uint64_t wanted, uint64_t space)
{
    MQX_ASSERT(area != NULL);
    MQX_ASSERT(wanted > 0);
    uint64_t extra = capacity / GROWTH_PART;
    extra = extra < area->step ? area->step : extra;
    extra = extra > GROWTH_MAX ? GROWTH_MAX : extra; /* whatever `step` says by now */
    uint64_t target = capacity + mqx_round_up(extra, MQX_PAGE_SIZE);
    if (target < wanted) {
        target = mqx_round_up(wanted, MQX_PAGE_SIZE);
    }
    target = target < space ? target : space;
    return target < wanted || target <= capacity
               ? target
               : mqx_huge_target(offset, capacity, wanted, target);
}

/* While the queue manager runs areas grow by small steps: a need of much more than there is comes
 * from a damaged count, and must not take the file system's memory. */
static bool asks_for_little(const struct mqx_region *region, uint64_t capacity, uint64_t bytes)
{
    MQX_ASSERT(bytes > 0);
    MQX_ASSERT(region->header != NULL);
    return mqx_load_acquire(&region->header->ready) == 0 || bytes <= capacity ||
           bytes - capacity <= GROWTH_MAX;
}

/* Memory for bytes of the file, never of another one that has got the descriptor's number. */
static int back(const struct mqx_region *region, uint64_t offset, uint64_t bytes)
{
    MQX_ASSERT(bytes > 0);
    MQX_ASSERT(offset <= region->size);
    return mqx_reach_owns_fd(region)
               ? region->io->ops->allocate(region->io, region->fd, offset, bytes)
               : -EBADF;
}

/* Backs the records of the area's extents up to `target` bytes of it; of most growths they lie in a
 * page that has memory. */
static int back_extents(const struct mqx_region *region, enum mqx_area_kind kind, uint64_t capacity,
                     uint64_t target)
{
    MQX_ASSERT(target > capacity);
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    for (int no = 0; no < MQX_POOL_COUNT; no++) {
        const uint64_t table = (uint64_t)((unsigned char *)region->extents[no] - region->base);
        const uint64_t from = capacity / MQX_EXTENT_BYTES * sizeof(struct mqx_extent);
        const uint64_t to = target / MQX_EXTENT_BYTES * sizeof(struct mqx_extent);
        if (pool_area[no] == kind && to > from) {
            const uint64_t page = from / MQX_PAGE_SIZE * MQX_PAGE_SIZE;
            return back(region, table + page, mqx_round_up(to, MQX_PAGE_SIZE) - page);
        }
    }
    return 0;
}

/* Memory for an area from `capacity` to `target` bytes; 0 or a negated errno. */
static int back_area(const struct mqx_region *region, enum mqx_area_kind kind, uint64_t capacity,
                     uint64_t target)
{
    const uint64_t offset = (uint64_t)(region->area[kind] - region->base);
    MQX_ASSERT(target > capacity);
    MQX_ASSERT(offset >= (uint64_t)((unsigned char *)region->extents[0] - region->base));
    const int status = back_extents(region, kind, capacity, target);
    if (status == 0 && mqx_reach_owns_fd(region)) {
        mqx_huge_back(region, offset + capacity, target - capacity);
    }
    return status != 0 ? status : back(region, offset + capacity, target - capacity);
}

/* Bytes of the file that are backed by memory: no capacity changes, since the growth lock is held,
 * and extents are punched and backed again under it. */
static uint64_t allocated_bytes(const struct mqx_region *region)
{
    const struct mqx_header *header = region->header;
    uint64_t bytes = (uint64_t)(region->area[0] - region->base), punched = 0;
    MQX_ASSERT(bytes >= sizeof *header);
    MQX_ASSERT(mqx_lock_held(region, &header->growth_lock));
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        bytes += mqx_load_relaxed(&header->area[kind].capacity);
    }
    for (int no = 0; no < MQX_POOL_COUNT; no++) {
        const uint64_t idle = mqx_load_relaxed(&header->pool[no].idle_count);
        const uint64_t free = mqx_load_relaxed(&header->pool[no].free_count);
        punched += idle > free ? (idle - free) * MQX_EXTENT_BYTES : 0;
    }
    return bytes > punched ? bytes - punched : 0;
}

/* Of the memory that there is, blocks of messages get half and the index another quarter: a
 * region that took all of it would end in the kernel's killing a process. */
static int check_memory(const struct mqx_region *region, enum mqx_area_kind kind, uint64_t more)
{
    const struct mqx_header *header = region->header;
    const uint64_t quarter = header->memory_limit / 4;
    const uint64_t most = kind == MQX_AREA_ARENA ? 2 * quarter : 3 * quarter;
    const uint64_t now = allocated_bytes(region);
    MQX_ASSERT(more > 0);
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    if (header->memory_limit == UINT64_MAX || now + more <= most) {
        return MQX_OK;
    }
    return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                    "the shared region has %llu bytes and needs %llu more; it may use %llu of the "
                    "%llu that the control group or machine it was created in has for it: get "
                    "messages, or raise that limit and start the queue manager again",
                    (unsigned long long)now, (unsigned long long)more, (unsigned long long)most,
                    (unsigned long long)header->memory_limit);
}

static MQX_COLD int no_room(const struct mqx_region *region, uint64_t more)
{
    MQX_ASSERT(more > 0);
    MQX_ASSERT(region->header != NULL);
    const unsigned long long now = allocated_bytes(region), needed = more;
    if (!mqx_reach_owns_fd(region)) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                        "the shared region has %llu bytes and needs %llu more, but this program "
                        "has closed its descriptor (closerange?): connect again", now, needed);
    }
    if (region->in_memory) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                        "the shared region has %llu bytes and needs %llu more, for which the "
                        "machine has no memory: get messages", now, needed);
    }
    return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                    "the shared region has %llu bytes and needs %llu more, for which its file "
                    "system (region.dir) has no room: get messages, or make it larger (of a "
                    "container: --shm-size)%s", now, needed,
                    region->io->shared ? "; that of a group cannot be in memory alone" : "");
}

/* Backs the bytes of an area from `capacity` to `target` with memory, and its extents' records. */
static int allocate(struct mqx_region *region, enum mqx_area_kind kind, uint64_t capacity,
                    uint64_t target)
{
    MQX_ASSERT(target > capacity);
    MQX_ASSERT(mqx_lock_held(region, &region->header->growth_lock));
    const int status = check_memory(region, kind, target - capacity);
    if (status != MQX_OK || back_area(region, kind, capacity, target) == 0) {
        return status;
    }
    return no_room(region, target - capacity);
}

int mqx_region_back(struct mqx_region *region, enum mqx_area_kind kind, uint64_t at, uint64_t bytes)
{
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    MQX_ASSERT(mqx_lock_held(region, &region->header->growth_lock));
    const uint64_t offset = (uint64_t)(region->area[kind] - region->base) + at;
    const int status = check_memory(region, kind, bytes);
    if (status != MQX_OK || back(region, offset, bytes) == 0) {
        return status;
    }
    return no_room(region, bytes);
}

/* Growth lock held. Near the end of the memory there is no room for a whole step: then the area
 * grows by what is needed. */
static int grow_locked(struct mqx_region *region, enum mqx_area_kind kind, uint64_t bytes)
{
    MQX_ASSERT(region->area[kind] > region->base);
    struct mqx_area *area = &region->header->area[kind];
    const uint64_t capacity = area->capacity;
    const uint64_t needed = mqx_round_up(bytes, MQX_PAGE_SIZE);
    const uint64_t space = region->reach.space[kind];
    const uint64_t offset = (uint64_t)(region->area[kind] - region->base);
    uint64_t target = growth_target(area, offset, capacity, bytes, space);
    MQX_ASSERT(mqx_lock_held(region, &region->header->growth_lock));
    if (!mqx_area_words_agree(capacity, area->capacity_inverse) || capacity > space ||
        !asks_for_little(region, capacity, bytes)) {
        return mqx_region_damage(region, "the capacity of an area", (uint64_t)kind);
    }
    if (capacity >= bytes) {
        return MQX_OK; /* another thread was first */
    }
    if (target < bytes) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                        "the shared region is used up: area %d has %llu bytes of address space; "
                        "raise region.size",
                        (int)kind, (unsigned long long)space);
    }
    int status = allocate(region, kind, capacity, target);
    if (status == MQRC_STORAGE_NOT_AVAILABLE && needed < target) {
        target = needed; /* when memory is short */
        status = allocate(region, kind, capacity, target);
    }
    if (status == MQX_OK) {
        struct mqx_lock *lock = &region->header->growth_lock;
        mqx_undo_store64(region->base, lock, &area->capacity_inverse, ~target);
        mqx_undo_store64(region->base, lock, &area->capacity, target); /* this one publishes */
        mqx_undo_commit(lock);
    }
    return status;
}

int mqx_region_grow(struct mqx_region *region, enum mqx_area_kind kind, uint64_t bytes)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(bytes > 0);
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    int status = MQX_OK;
    if (mqx_area_sure(region, kind) < bytes) {
        status = mqx_lock_enter(region, &region->header->growth_lock);
        if (status == MQX_OK) {
            status = grow_locked(region, kind, bytes);
            mqx_lock_drop(region, &region->header->growth_lock);
        }
    }
    if (status != MQX_OK || mqx_area_has(region, kind, bytes)) {
        return status;
    }
    return region->reach.stepwise
               ? mqx_reach_refused(region)
               : mqx_region_damage(region, "the capacity of an area", (uint64_t)kind);
}
