/*
 * region_file.c - see region_file.h.
 */
#include "process/region_file.h"

#include "base/error.h"
#include "recovery/orphan_region.h"
#include "recovery/replay.h" /* mqx_tag_key */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STRAYS_MAX = 16 };

static bool same_surroundings(const struct mqx_host_info *a, const struct mqx_host_info *b)
{
    return memcmp(a->boot_id, b->boot_id, sizeof a->boot_id) == 0 &&
           a->pid_namespace == b->pid_namespace && strcmp(a->libc, b->libc) == 0;
}

bool mqx_record_is_here(const struct mqx_lock_record *record, const struct mqx_place *place)
{
    return same_surroundings(&record->where, &place->here) && record->device == place->device &&
           record->inode == place->inode && record->layout == mqx_region_layout();
}

/* ---- making ---- */

static int new_record(const struct mqx_place *place, struct mqx_lock_record *out)
{
    char prefix[MQX_LOCK_RECORD_NAME_SIZE];
    *out = (struct mqx_lock_record){.where = place->here,
                               .device = place->device,
                               .inode = place->inode,
                               .layout = mqx_region_layout()};
    const int status = mqx_random_bytes(out->incarnation, sizeof out->incarnation);
    if (status != MQX_OK) {
        return status;
    }
    const uint8_t *r = out->incarnation;
    mqx_region_prefix(place->device, place->inode, prefix);
    (void)snprintf(out->region, sizeof out->region, "%.40s%02x%02x%02x%02x%02x%02x%02x%02x", prefix,
                   r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]);
    (void)snprintf(out->directory, sizeof out->directory, "%s", place->region_path);
    return MQX_OK;
}

static void fill_identity(struct mqx_store *store, const struct mqx_lock_record *record)
{
    struct mqx_header *header = store->region.header;
    memcpy(header->qm_id, store->qm_id, sizeof header->qm_id);
    memcpy(header->incarnation, record->incarnation, sizeof header->incarnation);
    memcpy(header->boot_id, record->where.boot_id, sizeof header->boot_id);
    memcpy(header->libc, record->where.libc, sizeof header->libc);
    header->directory_device = record->device;
    header->directory_inode = record->inode;
    header->pid_namespace = record->where.pid_namespace;
    header->tag_key = mqx_tag_key(store->qm_id);
}

/* Says what there is, where the region could only say what it needs. */
static int add_room(int status, const char *path)
{
    char text[256];
    const uint64_t room = mqx_room_at(path);
    if (status != MQRC_STORAGE_NOT_AVAILABLE || room == UINT64_MAX) {
        return status;
    }
    (void)snprintf(text, sizeof text, "%s", mqx_error_text());
    return mqx_fail(status, "%s; %s has %llu bytes free", text, path, (unsigned long long)room);
}

int mqx_region_make(struct mqx_store *store, const struct mqx_place *place)
{
    struct mqx_lock_record record;
    int status = new_record(place, &record);
    if (status == MQX_OK) {
        status = mqx_lock_record_write(store->io, store->lock_fd, &record);
    }
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_region_create(store->io, store->region_dir, record.region, &store->plan,
                               &store->region);
    if (status != MQX_OK) {
        return add_room(status, place->region_path);
    }
    memcpy(store->region_name, record.region, sizeof store->region_name);
    fill_identity(store, &record);
    return MQX_OK;
}

/* ---- joining ---- */

static int refuse_foreign(const struct mqx_lock_record *record, const struct mqx_place *place,
                          const char *holders)
{
    const char *what = "a copy of the directory";
    if (memcmp(record->where.boot_id, place->here.boot_id, sizeof place->here.boot_id) != 0) {
        what = "another machine or boot";
    } else if (record->where.pid_namespace != place->here.pid_namespace) {
        what = "another PID namespace";
    } else if (strcmp(record->where.libc, place->here.libc) != 0) {
        what = "a program with another libc";
    } else if (record->layout != mqx_region_layout()) {
        what = "another build of penstock";
    }
    return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                    "the queue manager is in use by process %s in %s (%s there, %s here); end it "
                    "there first", holders, what, record->where.libc, place->here.libc);
}

/* The mapped file must be the one that the record speaks of, and ours. */
static int verify_joined(struct mqx_store *store, const struct mqx_lock_record *record)
{
    const struct mqx_header *header = store->region.header;
    struct mqx_io_stat facts;
    const int err = store->io->ops->stat(store->io, store->region.fd, &facts);
    if (err < 0) {
        return mqx_io_reason(err, "looking at the shared region");
    }
    if (facts.owner != (uint32_t)geteuid() || (facts.mode & 077u) != 0) {
        return mqx_fail(MQRC_NOT_AUTHORIZED,
                        "the shared region %s belongs to user %u with mode %03o", record->region,
                        facts.owner, facts.mode & 0777u);
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

int mqx_region_join(struct mqx_store *store, const struct mqx_place *place,
                    const struct mqx_lock_record *record, const char *holders)
{
    if (!mqx_record_is_here(record, place)) {
        return refuse_foreign(record, place, holders);
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
    int status = mqx_region_open(io, store->region_dir, record->region, &store->region);
    if (status != MQX_OK) {
        return status;
    }
    status = verify_joined(store, record);
    if (status != MQX_OK) {
        mqx_region_close(&store->region);
        return status;
    }
    memcpy(store->region_name, record->region, sizeof store->region_name);
    return MQX_OK;
}

/* ---- getting rid of files ---- */

void mqx_region_discard(struct mqx_store *store, const char *name)
{
    (void)store->io->ops->unlink(store->io, store->region_dir, name);
}

struct strays {
    char prefix[MQX_LOCK_RECORD_NAME_SIZE];
    size_t prefix_length;
    uint32_t count;
    char name[STRAYS_MAX][MQX_LOCK_RECORD_NAME_SIZE];
};

static int collect_stray(void *arg, const char *name)
{
    struct strays *strays = arg;
    if (strncmp(name, strays->prefix, strays->prefix_length) == 0 &&
        strlen(name) < MQX_LOCK_RECORD_NAME_SIZE) {
        memcpy(strays->name[strays->count++], name, strlen(name) + 1);
    }
    return strays->count == STRAYS_MAX;
}

int mqx_region_discard_strays(struct mqx_store *store, const struct mqx_place *place)
{
    struct strays strays = {.count = 0};
    mqx_region_prefix(place->device, place->inode, strays.prefix);
    strays.prefix_length = strlen(strays.prefix);
    const int err = store->io->ops->list(store->io, store->region_dir, collect_stray, &strays);
    if (err < 0) {
        return mqx_io_reason(err, "listing the directory of shared regions");
    }
    for (uint32_t i = 0; i < strays.count; i++) {
        const int32_t pid = mqx_orphan_region_living(store->io, store->region_dir, strays.name[i]);
        if (pid != 0) {
            return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                            "process %d is attached to %s, but the file lock does not know of it: "
                            "it was deleted or replaced; end that process", pid, strays.name[i]);
        }
        mqx_region_discard(store, strays.name[i]);
    }
    return MQX_OK;
}
