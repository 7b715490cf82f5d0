/*
 * journal_rig.c - see journal_rig.h.
 */
#include "journal_rig.h"

#include "arena.h"
#include "catalog.h"
#include "error.h"
#include "queue.h"
#include "recovery_replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t rig_id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

struct mqx_region_plan rig_plan(uint64_t segment)
{
    struct mqx_region_plan plan;
    mqx_region_default_plan(&plan);
    plan.size = 64u << 20;
    plan.ring_size = 256u << 10;
    plan.segment_size = segment;
    plan.first_segment_size = segment;
    plan.journal_limit = 64 * segment;
    plan.stripe_count = 4;
    plan.name_bucket_count = 64;
    plan.growth_step = 64u << 10;
    return plan;
}

static void require(bool ok, const char *what)
{
    if (!ok) {
        printf("\n    rig: %s: %s\n", what, mqx_error_text());
        abort();
    }
}

static void open_dirs(struct rig *rig)
{
    struct mqx_store *store = &rig->store;
    *store = (struct mqx_store){.io = rig->io, .plan = rig->plan};
    memcpy(store->qm_id, rig_id, sizeof rig_id);
    store->dir = rig->io->ops->open_dir(rig->io, RIG_HOME);
    store->region_dir = rig->io->ops->open_dir(rig->io, RIG_SHM);
    require(store->dir >= 0 && store->region_dir >= 0, "directories");
    store->journal_dir = rig->io->ops->open_sub(rig->io, store->dir, "journal");
    store->checkpoint_dir = rig->io->ops->open_sub(rig->io, store->dir, "checkpoint");
    require(store->journal_dir >= 0 && store->checkpoint_dir >= 0, "subdirectories");
    store->archive_dir = -1;
    if (rig->plan.linear != 0) {
        store->archive_dir = rig->io->ops->open_sub(rig->io, store->dir, "archive");
        require(store->archive_dir >= 0, "archive");
    }
}

static void close_dirs(struct rig *rig)
{
    const struct mqx_io_ops *ops = rig->io->ops;
    (void)ops->close(rig->io, rig->store.journal_dir);
    (void)ops->close(rig->io, rig->store.checkpoint_dir);
    if (rig->store.archive_dir >= 0) {
        (void)ops->close(rig->io, rig->store.archive_dir);
    }
    (void)ops->close(rig->io, rig->store.region_dir);
    (void)ops->close(rig->io, rig->store.dir);
}

void rig_create(struct rig *rig, const struct mqx_region_plan *plan)
{
    *rig = (struct rig){.files = memory_io_new(), .plan = *plan};
    rig->io = memory_io_table(rig->files);
    memory_io_make_dirs(rig->files, RIG_HOME "/journal");
    memory_io_make_dirs(rig->files, RIG_HOME "/checkpoint");
    if (plan->linear != 0) {
        memory_io_make_dirs(rig->files, RIG_HOME "/archive");
    }
    memory_io_region_dir(rig->files, RIG_SHM);
    open_dirs(rig);
    require(mqx_journal_create(rig->io, rig->store.journal_dir, rig->store.checkpoint_dir, rig_id,
                               plan) == 0, "create");
    close_dirs(rig);
}

int rig_open(struct rig *rig)
{
    char name[24];
    (void)snprintf(name, sizeof name, "region-%u", ++rig->regions);
    open_dirs(rig);
    require(mqx_region_create(rig->io, rig->store.region_dir, name, &rig->plan,
                              &rig->store.region) == 0, "region");
    memcpy(rig->store.region.header->qm_id, rig_id, sizeof rig_id);
    rig->store.region.header->tag_key = mqx_tag_key(rig_id);
    rig->store.region.process = 1;
    rig->open = true;
    int status = rig->distrust ? mqx_recover_distrust_cache(&rig->store) : 0;
    rig->distrust = false;
    if (status != 0) {
        rig_crash(rig);
        return status;
    }
    status = mqx_recover(&rig->store, rig->in_flight, rig->in_flight_count, &rig->report);
    rig->in_flight_count = 0;
    if (status != 0) {
        rig_crash(rig);
        return status;
    }
    mqx_store_release(&rig->store.region.header->ready, 1);
    return 0;
}

void rig_crash(struct rig *rig)
{
    char name[24];
    if (!rig->open) {
        return;
    }
    rig->open = false;
    mqx_journal_detach(&rig->store);
    mqx_region_close(&rig->store.region);
    (void)snprintf(name, sizeof name, "region-%u", rig->regions);
    (void)rig->io->ops->unlink(rig->io, rig->store.region_dir, name);
    close_dirs(rig);
}

int rig_end(struct rig *rig)
{
    int status = rig_flush(rig);
    rig_crash(rig);
    status = status == 0 ? rig_open(rig) : status;
    status = status == 0 ? mqx_checkpoint(&rig->store, MQX_CHECKPOINT_CLEAN) : status;
    rig_crash(rig);
    return status;
}

void rig_free(struct rig *rig)
{
    rig_crash(rig);
    if (rig->files != NULL) {
        memory_io_free(rig->files);
    }
    rig->files = NULL;
}

uint32_t rig_unit(struct rig *rig)
{
    uint32_t slot = 0;
    require(mqx_slot_take(&rig->store.region, MQX_AREA_CONTEXTS, NULL, &slot) == 0, "context");
    struct mqx_context *unit = mqx_context(&rig->store.region, slot);
    unit->unit_id = mqx_journal_unit_id(&rig->store);
    mqx_store_release(&unit->state, MQX_CTX_ACTIVE);
    return slot;
}

void rig_unit_over(struct rig *rig, uint32_t unit)
{
    struct mqx_context *context = mqx_context(&rig->store.region, unit);
    context->unit_id = mqx_journal_unit_id(&rig->store);
    context->decided_lsn = 0;
    context->record_count = 0;
    context->running_crc = 0;
    context->first_lsn = 0;
    context->state = MQX_CTX_ACTIVE;
}

static struct mqx_record_head head_of(struct rig *rig, uint32_t unit, uint16_t type,
                                      uint64_t number)
{
    const struct mqx_context *context = mqx_context(&rig->store.region, unit);
    return (struct mqx_record_head){
        .type = type,
        .unit_id = context != NULL ? context->unit_id : 0,
        .object = RIG_QUEUE,
        .object_gen = RIG_GENERATION,
        .number = number,
    };
}

static int append_record(struct rig *rig, uint32_t unit, const unsigned char *record,
                         uint32_t length, uint32_t flags, struct mqx_append *append)
{
    struct mqx_append own;
    append = append != NULL ? append : &own;
    *append = (struct mqx_append){
        .record = record, .length = length, .flags = flags, .context = unit};
    return mqx_journal_append(&rig->store, append);
}

int rig_define(struct rig *rig, uint32_t slot, uint32_t generation)
{
    return rig_define_with(rig, slot, generation, NULL, 0);
}

int rig_define_with(struct rig *rig, uint32_t slot, uint32_t generation, const void *attrs,
                    uint32_t attrs_length)
{
    struct mqx_record_head head = head_of(rig, 0, PS_REC_OBJECT, 0);
    struct ps_object_name name = {.name_space = 1, .type = 1};
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    char text[MQX_NAME_SIZE + 1];
    head.object = slot;
    head.object_gen = generation;
    (void)snprintf(text, sizeof text, "Q.%-46u", slot);
    memcpy(name.name, text, sizeof name.name);
    return append_record(rig, 0, record,
                         mqx_encode_object(record, &head, &name, attrs, attrs_length), 0, NULL);
}

unsigned char rig_byte(uint64_t number, uint32_t i)
{
    return (unsigned char)((number * 31 + i * 7 + (i >> 8)) ^ (number >> 8));
}

static struct ps_descriptor descriptor_of(uint64_t number, int priority)
{
    struct ps_descriptor d = {.priority = priority,
                              .placement = (uint8_t)priority,
                              .persistence = 1,
                              .md_version = 2,
                              .put_time_us = number};
    memcpy(d.msg_id, &number, sizeof number);
    memset(d.correl_id, (int)(number & 0x7f), sizeof d.correl_id);
    memset(d.format, ' ', sizeof d.format);
    return d;
}

static unsigned char *body_of(uint64_t number, uint32_t length)
{
    unsigned char *body = malloc(length + 1);
    require(body != NULL, "memory");
    for (uint32_t i = 0; i < length; i++) {
        body[i] = rig_byte(number, i);
    }
    return body;
}

int rig_put(struct rig *rig, uint32_t unit, uint64_t number, int priority, uint32_t length,
            struct mqx_append *append)
{
    const struct mqx_record_head head = head_of(rig, unit, PS_REC_PUT, number);
    const struct ps_descriptor d = descriptor_of(number, priority);
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    unsigned char *body = body_of(number, length);
    const uint32_t size = mqx_encode_put(record, &head, &d, NULL, NULL, body, length);
    free(body);
    return append_record(rig, unit, record, size, MQX_APPEND_PUT, append);
}

int rig_put_chunked(struct rig *rig, uint32_t unit, uint64_t number, int priority, uint32_t length,
                    uint32_t piece, struct mqx_append *append)
{
    struct mqx_record_head head = head_of(rig, unit, PS_REC_CHUNK, number);
    const struct ps_descriptor d = descriptor_of(number, priority);
    struct ps_chunked chunked = {.total = length};
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    unsigned char *body = body_of(number, length);
    int status = 0;
    for (uint32_t at = 0; at < length && status == 0; at += piece) {
        const struct ps_chunk chunk = {.prev_lsn = chunked.last_lsn,
                                       .offset = at,
                                       .total = length,
                                       .number = chunked.count};
        struct mqx_append own;
        const uint32_t size = mqx_encode_chunk(record, &head, &chunk, body + at,
                                               length - at < piece ? length - at : piece);
        status = append_record(rig, unit, record, size, MQX_APPEND_PUT, &own);
        chunked.first_lsn = chunked.count == 0 ? own.lsn : chunked.first_lsn;
        chunked.last_lsn = own.lsn;
        chunked.count += 1;
    }
    free(body);
    if (status != 0) {
        return status;
    }
    head.type = PS_REC_PUT;
    return append_record(rig, unit, record,
                         mqx_encode_put(record, &head, &d, NULL, &chunked, NULL, 0),
                         MQX_APPEND_PUT, append);
}

int rig_record(struct rig *rig, uint32_t unit, uint16_t type, uint64_t number,
               struct mqx_append *append)
{
    const struct mqx_record_head head = head_of(rig, unit, type, number);
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    return append_record(rig, unit, record, mqx_encode_plain(record, &head), 0, append);
}

int rig_commit(struct rig *rig, uint32_t unit, struct mqx_append *append)
{
    const struct mqx_context *context = mqx_context(&rig->store.region, unit);
    const struct mqx_record_head head = head_of(rig, unit, PS_REC_COMMIT, 0);
    const struct ps_commit commit = {context->first_lsn, context->record_count,
                                     context->running_crc};
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    return append_record(rig, unit, record, mqx_encode_commit(record, &head, &commit),
                         MQX_APPEND_DECIDES, append);
}

int rig_flush(struct rig *rig)
{
    const struct mqx_journal *journal = rig->store.region.journal;
    const bool some = journal->batch_records != 0 || journal->sealed_count != 0;
    return mqx_flush_to(&rig->store, some ? journal->tail : journal->written);
}

uint32_t rig_list(struct rig *rig, uint32_t slot, struct psc_message *out)
{
    struct mqx_cursor cursor = {0};
    uint32_t total = 0, count = 0;
    bool done = false;
    while (!done) {
        require(total < RIG_LISTED_MAX, "too many messages for the list");
        require(mqx_queue_snapshot(&rig->store, slot, &cursor, out + total, RIG_LISTED_MAX - total,
                                   &count, &done) == 0, "snapshot");
        total += count;
    }
    return total;
}

bool rig_verify(struct rig *rig, const struct psc_message *m)
{
    const struct mqx_message message = {.number = m->number,
                                        .lsn = m->lsn,
                                        .length = m->length,
                                        .record_length = m->record_length,
                                        .chunk_count = m->chunk_count};
    const struct ps_descriptor want = descriptor_of(m->number, m->priority);
    struct ps_descriptor got;
    unsigned char *body = malloc(m->length + 1);
    require(body != NULL, "memory");
    bool same = mqx_journal_fetch(&rig->store, &message, &got, NULL, body, m->length) == 0 &&
                memcmp(&got, &want, sizeof got) == 0;
    for (uint32_t i = 0; i < m->length && same; i++) {
        same = body[i] == rig_byte(m->number, i);
    }
    free(body);
    return same;
}

const char *rig_segment_path(uint64_t number)
{
    static char path[64];
    (void)snprintf(path, sizeof path, RIG_HOME "/journal/%010" PRIu64 ".psj", number);
    return path;
}

const char *rig_checkpoint_path(struct rig *rig)
{
    static char path[64];
    (void)snprintf(path, sizeof path, RIG_HOME "/checkpoint/%016" PRIx64 ".psc",
                   rig->store.region.journal->checkpoint_begin);
    return path;
}

int rig_fill_and_crash(struct rig *rig)
{
    int status = 0;
    for (uint64_t number = 1; number <= 36 && status == 0; number++) {
        status = rig_put(rig, 0, number, (int)(number % 10), 3000, NULL);
        if (status == 0 && number <= 24) {
            status = rig_record(rig, 0, PS_REC_GET, number, NULL);
        }
    }
    status = status == 0 ? rig_flush(rig) : status;
    rig_crash(rig);
    return status;
}

void rig_prepare_state(void *arg, struct memory_io *files)
{
    (void)arg;
    memory_io_region_dir(files, RIG_SHM);
}

void rig_trace_free(struct memory_trace **trace)
{
    memory_trace_free(*trace);
}
