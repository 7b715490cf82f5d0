/*
 * region_file.c - see region_file.h.
 */
#include "process/region_file.h"

#include "base/checksum.h"
#include "base/error.h"
#include "os/memory_limit.h"
#include "recovery/orphan_region.h"
#include "recovery/replay.h" /* mqx_tag_key */

#include <errno.h>
#include <stdio.h>
#include <string.h>

uint64_t mqx_region_file_small = UINT64_C(512) << 20;

enum {
    STRAYS_MAX = 16,
    PREFIX_LENGTH = 26, /* of "penstock-", 16 hex digits, "-" */
};

static bool same_host(const struct mqx_host_info *a, const struct mqx_host_info *b)
{
    MQX_ASSERT(a != NULL);
    MQX_ASSERT(b != NULL);
    return memcmp(a->boot_id, b->boot_id, sizeof a->boot_id) == 0 &&
           a->pid_namespace == b->pid_namespace && strcmp(a->libc, b->libc) == 0;
}

bool mqx_record_matches(const struct mqx_lock_record *record, const struct mqx_location *location)
{
    MQX_ASSERT(record != NULL);
    MQX_ASSERT(location != NULL);
    return same_host(&record->where, &location->here) && record->device == location->device &&
           record->inode == location->inode && record->layout == mqx_region_layout();
}

/* "penstock-" and 16 hex digits of device and inode, then "-". */
static void region_prefix(uint64_t device, uint64_t inode, char out[MQX_LOCK_RECORD_NAME_SIZE])
{
    const uint64_t identity[2] = {device, inode};
    const int n = snprintf(out, MQX_LOCK_RECORD_NAME_SIZE, "penstock-%016llx-",
                           (unsigned long long)mqx_hash64(identity, sizeof identity, 0));
    MQX_ASSERT(n == PREFIX_LENGTH);
    (void)n;
}

/* Where channels have their names: in the directory of regions, beside the region. A path that is
 * too long is reached through the descriptor. Files that are not real ones have no channels. */
static void set_wake_prefix(struct mqx_store *store, const struct mqx_location *location,
                            const uint8_t incarnation[8])
{
    char prefix[MQX_LOCK_RECORD_NAME_SIZE];
    char *out = store->region.wake_prefix;
    const uint8_t *r = incarnation;
    MQX_ASSERT(location->region_path != NULL);
    MQX_ASSERT(store->region.base != NULL);
    out[0] = '\0';
    if (store->io->ops != mqx_io_posix()->ops) {
        return;
    }
    region_prefix(location->device, location->inode, prefix);
    const int n = snprintf(out, sizeof store->region.wake_prefix,
                           "%s/wake-%.40s%02x%02x%02x%02x-", location->region_path, prefix, r[0],
                           r[1], r[2], r[3]);
    if (n >= (int)sizeof store->region.wake_prefix || out[0] != '/') {
        (void)snprintf(out, sizeof store->region.wake_prefix,
                       "/proc/self/fd/%d/wake-%.40s%02x%02x%02x%02x-", store->region_dir, prefix,
                       r[0], r[1], r[2], r[3]);
    }
}

/* ---- creating ---- */

static int new_record(const struct mqx_location *location, struct mqx_lock_record *out)
{
    MQX_ASSERT(location->region_path != NULL);
    MQX_ASSERT(location->inode != 0);
    char prefix[MQX_LOCK_RECORD_NAME_SIZE];
    *out = (struct mqx_lock_record){.where = location->here,
                                    .device = location->device,
                                    .inode = location->inode,
                                    .layout = mqx_region_layout()};
    const int status = mqx_random_bytes(out->incarnation, sizeof out->incarnation);
    if (status != MQX_OK) {
        return status;
    }
    const uint8_t *r = out->incarnation;
    MQX_STATIC_ASSERT(MQX_LOCK_RECORD_NAME_SIZE > PREFIX_LENGTH + 16, "room for the name");
    region_prefix(location->device, location->inode, prefix);
    (void)snprintf(out->region, sizeof out->region, "%.40s%02x%02x%02x%02x%02x%02x%02x%02x", prefix,
                   r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]);
    (void)snprintf(out->directory, sizeof out->directory, "%s", location->region_path);
    return MQX_OK;
}

static void fill_identity(struct mqx_store *store, const struct mqx_lock_record *record)
{
    MQX_ASSERT(store->region.header->ready == 0);
    struct mqx_header *header = store->region.header;
    memcpy(header->qm_id, store->qm_id, sizeof header->qm_id);
    memcpy(header->incarnation, record->incarnation, sizeof header->incarnation);
    memcpy(header->boot_id, record->where.boot_id, sizeof header->boot_id);
    memcpy(header->libc, record->where.libc, sizeof header->libc);
    header->directory_device = record->device;
    header->directory_inode = record->inode;
    header->pid_namespace = record->where.pid_namespace;
    store->region.tag_key = mqx_tag_key(store->qm_id);
}

/* Adds to the text of a region that found no room how many bytes are free. */
static int add_free_bytes(int status, const char *path)
{
    MQX_ASSERT(status != MQX_OK);
    char text[256];
    const uint64_t room = mqx_room_at(path);
    if (status != MQRC_STORAGE_NOT_AVAILABLE || room == UINT64_MAX) {
        return status;
    }
    (void)snprintf(text, sizeof text, "%s", mqx_error_text());
    return mqx_fail(status, "%s; %s has %llu bytes free", text, path, (unsigned long long)room);
}

/* Not for a group, whose members cannot open each other's descriptors; and not where /proc does not
 * show processes by the pids that they have here. */
static bool belongs_in_memory(const struct mqx_store *store, const struct mqx_location *location)
{
    MQX_ASSERT(location->region_path != NULL);
    MQX_ASSERT(store->io != NULL);
    return location->automatic && !store->io->shared &&
           mqx_size_at(location->region_path) < mqx_region_file_small && mqx_proc_is_ours();
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bodies that the journal has as well get an eighth of the file system, and a quarter of what the
 * control group may use, at most: what is left is for the index and for non-persistent messages,
 * which have no other place. A memory file is limited as a tmpfs usually is: to half of the memory
 * of the machine (of which check_memory() in region.c takes three quarters as the most). */
static void limit_memory(struct mqx_region_plan *plan, const char *path)
{
    enum { OF_FILE_SYSTEM = 8, OF_GROUP = 4 };
    const uint64_t half = mqx_physical_memory() / 2;
    const uint64_t size = plan->in_memory ? half : mqx_size_at(path);
    const uint64_t own = plan->in_memory ? half / 3 * 4 : UINT64_MAX;
    const uint64_t limit = least_of(mqx_memory_limit(), own);
    MQX_ASSERT(plan->body_budget > 0);
    MQX_ASSERT(limit > 0);
    plan->body_budget =
        least_of(plan->body_budget, least_of(size / OF_FILE_SYSTEM, limit / OF_GROUP));
    plan->memory_limit = least_of(plan->memory_limit, limit);
}

int mqx_region_file_create(struct mqx_store *store, const struct mqx_location *location)
{
    MQX_ASSERT(store->region.base == NULL);
    MQX_ASSERT(store->lock_fd >= 0);
    struct mqx_lock_record record;
    int status = new_record(location, &record);
    if (status == MQX_OK) {
        status = mqx_lock_record_write(store->io, store->lock_fd, &record);
    }
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_region_plan plan = store->plan;
    plan.in_memory = belongs_in_memory(store, location);
    limit_memory(&plan, location->region_path);
    status = mqx_region_create(store->io, store->region_dir, record.region, &plan, &store->region);
    if (status != MQX_OK) {
        return add_free_bytes(status, location->region_path);
    }
    memcpy(store->region_name, record.region, sizeof store->region_name);
    set_wake_prefix(store, location, record.incarnation);
    fill_identity(store, &record);
    return MQX_OK;
}

/* ---- joining ---- */

static int refuse_foreign(const struct mqx_lock_record *record, const struct mqx_location *location,
                          const char *holders)
{
    MQX_ASSERT(!mqx_record_matches(record, location));
    MQX_ASSERT(holders != NULL);
    const char *what = "a copy of the directory";
    if (memcmp(record->where.boot_id, location->here.boot_id, sizeof location->here.boot_id) != 0) {
        what = "another machine or boot";
    } else if (record->where.pid_namespace != location->here.pid_namespace) {
        what = "another PID namespace";
    } else if (strcmp(record->where.libc, location->here.libc) != 0) {
        what = "a program with another libc";
    } else if (record->layout != mqx_region_layout()) {
        what = "another build of penstock";
    }
    return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                    "the queue manager is in use by process %s in %s (%s there, %s here); end it "
                    "there first", holders, what, record->where.libc, location->here.libc);
}

/* The mapped file must be the one that the record names, and belong to this user or group; nobody
 * else may even read the messages in it. */
static int verify_mapped(struct mqx_store *store, const struct mqx_lock_record *record)
{
    MQX_ASSERT(store->region.base != NULL);
    const struct mqx_header *header = store->region.header;
    struct mqx_io_stat facts;
    const int err = store->io->ops->stat(store->io, store->region.fd, &facts);
    if (err < 0) {
        return mqx_io_reason(err, "looking at the shared region");
    }
    const uint32_t others = store->io->shared ? 07u : 077u;
    const uint32_t links = store->region.in_memory ? 0 : 1;
    if (!mqx_io_is_ours(store->io, &facts) || (facts.mode & others) != 0 || facts.links != links) {
        return mqx_fail(MQRC_NOT_AUTHORIZED,
                        "the shared region %s belongs to user %u and group %u with mode %03o and "
                        "%u links", record->region, facts.owner, facts.group, facts.mode & 0777u,
                        facts.links);
    }
    if (memcmp(header->incarnation, record->incarnation, sizeof header->incarnation) != 0 ||
        header->directory_device != record->device || header->directory_inode != record->inode) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR, "%s is not the shared region of this directory",
                        record->region);
    }
    if (memcmp(header->qm_id, store->qm_id, sizeof header->qm_id) != 0) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "qm.toml names another queue manager than the one that is running");
    }
    return MQX_OK;
}

int mqx_region_file_join(struct mqx_store *store, const struct mqx_location *location,
                         const struct mqx_lock_record *record, const char *holders,
                         const struct mqx_peers *peers)
{
    MQX_ASSERT(store->region.base == NULL);
    MQX_ASSERT(holders != NULL);
    if (!mqx_record_matches(record, location)) {
        return refuse_foreign(record, location, holders);
    }
    struct mqx_io *io = store->io;
    const int fd = io->ops->open(io, store->region_dir, record->region, MQX_IO_READ, 0);
    if (fd < 0) {
        return fd == -ENOENT
                   ? mqx_fail(MQRC_ENVIRONMENT_ERROR,
                              "the shared region %s/%s is gone while process %s is attached; end "
                              "every process that is attached", record->directory, record->region,
                              holders)
                   : mqx_io_reason(fd, "opening the shared region");
    }
    (void)io->ops->close(io, fd);
    int status = mqx_region_open(io, store->region_dir, record->region, peers, &store->region);
    if (status != MQX_OK) {
        return status;
    }
    status = verify_mapped(store, record);
    if (status != MQX_OK) {
        mqx_region_close(&store->region);
        return status;
    }
    store->region.tag_key = mqx_tag_key(store->qm_id);
    memcpy(store->region_name, record->region, sizeof store->region_name);
    set_wake_prefix(store, location, record->incarnation);
    return MQX_OK;
}

/* ---- removing ---- */

bool mqx_region_file_is_named_for(const struct mqx_location *location, const char *name)
{
    MQX_ASSERT(location->inode != 0);
    MQX_ASSERT(name != NULL);
    char prefix[MQX_LOCK_RECORD_NAME_SIZE];
    region_prefix(location->device, location->inode, prefix);
    return strncmp(name, prefix, PREFIX_LENGTH) == 0;
}

/* In a directory with the sticky bit only its creator can unlink a file. Another member of the
 * group gives its memory back; the name goes with the next start of its creator. */
static void empty_file(struct mqx_store *store, const char *name)
{
    MQX_ASSERT(store->io->shared);
    MQX_ASSERT(name[0] != '\0');
    struct mqx_io *io = store->io;
    const int fd = io->ops->open(io, store->region_dir, name, MQX_IO_WRITE, 0);
    if (fd >= 0) {
        (void)io->ops->truncate(io, fd, 0);
        (void)io->ops->close(io, fd);
    }
}

void mqx_region_file_remove(struct mqx_store *store, const char *name)
{
    MQX_ASSERT(name[0] != '\0');
    MQX_ASSERT(strchr(name, '/') == NULL);
    const int err = store->io->ops->unlink(store->io, store->region_dir, name);
    if (store->io->shared && (err == -EPERM || err == -EACCES)) {
        empty_file(store, name);
    }
}

struct strays {
    char prefix[MQX_LOCK_RECORD_NAME_SIZE];
    size_t prefix_length;
    uint32_t count;
    char name[STRAYS_MAX][MQX_LOCK_RECORD_NAME_SIZE];
};

static int collect_stray(void *arg, const char *name)
{
    MQX_ASSERT(((struct strays *)arg)->count < STRAYS_MAX);
    struct strays *strays = arg;
    if (strncmp(name, strays->prefix, strays->prefix_length) == 0 &&
        strlen(name) < MQX_LOCK_RECORD_NAME_SIZE) {
        memcpy(strays->name[strays->count++], name, strlen(name) + 1);
    }
    return strays->count == STRAYS_MAX;
}

/* Names of channels that killed processes left; another user's are left alone. */
static void remove_channels(struct mqx_store *store, const struct mqx_location *location)
{
    struct strays strays = {.count = STRAYS_MAX};
    char prefix[MQX_LOCK_RECORD_NAME_SIZE];
    MQX_ASSERT(store->region.base == NULL);
    region_prefix(location->device, location->inode, prefix);
    (void)snprintf(strays.prefix, sizeof strays.prefix, "wake-%.40s", prefix);
    strays.prefix_length = strlen(strays.prefix);
    for (bool removed = true; removed && strays.count == STRAYS_MAX;) {
        removed = false;
        strays.count = 0;
        if (store->io->ops->list(store->io, store->region_dir, collect_stray, &strays) < 0) {
            return;
        }
        for (uint32_t i = 0; i < strays.count; i++) {
            removed |= store->io->ops->unlink(store->io, store->region_dir, strays.name[i]) == 0;
        }
    }
}

int mqx_region_file_remove_strays(struct mqx_store *store, const struct mqx_location *location)
{
    MQX_ASSERT(store->region.base == NULL);
    struct strays strays = {.count = 0};
    remove_channels(store, location);
    region_prefix(location->device, location->inode, strays.prefix);
    strays.prefix_length = strlen(strays.prefix);
    const int err = store->io->ops->list(store->io, store->region_dir, collect_stray, &strays);
    if (err < 0) {
        return mqx_io_reason(err, "listing the directory of shared regions");
    }
    for (uint32_t i = 0; i < strays.count; i++) {
        const int32_t pid =
            mqx_orphan_region_live_pid(store->io, store->region_dir, strays.name[i]);
        if (pid != 0) {
            return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                            "process %d is attached to %s, but the file lock does not know of it: "
                            "it was deleted or replaced; end that process", pid, strays.name[i]);
        }
        mqx_region_file_remove(store, strays.name[i]);
    }
    return MQX_OK;
}
