/*
 * record_codec.c - see record_codec.h; format.h has the layout.
 *
 * A record is built front to back: begin() leaves room for the header, add() appends a section and
 * pads it, finish() writes length and CRC. It is taken apart in the same order, with one table that
 * says for each section tag where its pointer goes and how long it must be, and one that says for
 * each record type which sections it needs.
 */
#include "format/record_codec.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SCRATCH_SIZE = MQX_RING_RECORD_MAX + 4096 };

/* ---- the thread's buffer ---- */

MQX_THREAD_LOCAL unsigned char *scratch;
static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static bool scratch_key_made;

static void make_scratch_key(void)
{
    scratch_key_made = pthread_key_create(&scratch_key, free) == 0;
}

static MQX_COLD unsigned char *make_scratch(void)
{
    MQX_ASSERT(scratch == NULL);
    (void)pthread_once(&scratch_once, make_scratch_key);
    const size_t size = SCRATCH_SIZE + MQX_SCRATCH_KEPT;
    unsigned char *memory = scratch_key_made ? aligned_alloc(64, size) : NULL;
    if (memory != NULL && pthread_setspecific(scratch_key, memory) != 0) {
        free(memory);
        memory = NULL;
    }
    if (memory != NULL) {
        memset(memory + SCRATCH_SIZE, 0, MQX_SCRATCH_KEPT);
    }
    scratch = memory;
    return memory;
}

unsigned char *mqx_scratch(size_t size)
{
    MQX_ASSERT(size <= SCRATCH_SIZE);
    return MQX_LIKELY(scratch != NULL) ? scratch : make_scratch();
}

unsigned char *mqx_scratch_put_away(void)
{
    unsigned char *memory = scratch;
    if (memory != NULL) {
        MQX_ASSERT(scratch_key_made);
        (void)pthread_setspecific(scratch_key, NULL); /* of glibc: setting NULL never fails */
        scratch = NULL;
    }
    return memory;
}

void mqx_scratch_restore(unsigned char *memory)
{
    if (memory == NULL) {
        return;
    }
    MQX_ASSERT(memory != scratch);
    free(scratch);
    (void)pthread_setspecific(scratch_key, memory); /* the key has its place already */
    scratch = memory;
}

void *mqx_scratch_kept(void)
{
    unsigned char *memory = mqx_scratch(SCRATCH_SIZE);
    MQX_STATIC_ASSERT(SCRATCH_SIZE % 64 == 0, "what is behind it is aligned as it is");
    MQX_ASSERT(memory == scratch);
    return memory != NULL ? memory + SCRATCH_SIZE : NULL;
}

/* Flags that a record of that type may have, whatever its form. */
static unsigned flags_of(unsigned type)
{
    MQX_ASSERT((type & PS_MUST_UNDERSTAND) == 0);
    return type == PS_REC_MOVED ? PS_FLAG_UNDECIDED : PS_FLAG_COMMITS;
}

/* ---- building ---- */

static uint32_t begin(unsigned char *to, const struct mqx_record_head *head)
{
    MQX_ASSERT((head->type & PS_MUST_UNDERSTAND) == 0);
    MQX_ASSERT((head->flags & ~flags_of(head->type)) == 0);
    const unsigned must = head->type == PS_REC_MARK ? 0 : PS_MUST_UNDERSTAND;
    const struct psj_record record = {
        .type = (uint8_t)(head->type | must),
        .flags = (uint8_t)head->flags,
        .unit_id = head->unit_id,
        .object = head->object,
        .object_gen = head->object_gen,
        .number = head->number,
    };
    MQX_ASSERT((uintptr_t)to % PS_ALIGN == 0);
    memcpy(to, &record, sizeof record);
    return sizeof record;
}

static uint32_t add(unsigned char *to, uint32_t at, uint16_t tag, const void *from, uint32_t length)
{
    MQX_ASSERT(at % PS_ALIGN == 0);
    MQX_ASSERT(from != NULL || length == 0);
    MQX_ASSERT(at + length <= SCRATCH_SIZE);
    const struct ps_section section = {.tag = tag, .length = length};
    const uint32_t padded = (uint32_t)mqx_round_up(length, PS_ALIGN);
    memcpy(to + at, &section, sizeof section);
    at += (uint32_t)sizeof section;
    if (length > 0) {
        memset(to + at + padded - PS_ALIGN, 0, PS_ALIGN); /* the padding lies in them */
        memcpy(to + at, from, length);
    }
    return at + padded;
}

static uint32_t record_crc(const void *record, uint32_t length)
{
    MQX_ASSERT(length >= sizeof(struct psj_record));
    const unsigned char *bytes = record;
    return mqx_crc32c(mqx_crc32c(0, bytes, 4), bytes + 8, length - 8);
}

static uint32_t finish(unsigned char *to, uint32_t length)
{
    struct psj_record *record = (struct psj_record *)(void *)to;
    MQX_ASSERT(length % PS_ALIGN == 0);
    MQX_ASSERT(length >= sizeof *record);
    MQX_ASSERT(length <= SCRATCH_SIZE);
    record->eighths = (uint16_t)(length / PS_ALIGN);
    record->crc = record_crc(to, length);
    return length;
}

uint32_t mqx_encode_plain(unsigned char *to, const struct mqx_record_head *head)
{
    MQX_ASSERT(to != NULL);
    return finish(to, begin(to, head));
}

uint32_t mqx_encode_put(unsigned char *to, const struct mqx_record_head *head,
                        const struct ps_descriptor *descriptor, const struct ps_descriptor_ext *ext,
                        const struct ps_chunked *chunked, const void *body, uint32_t body_length)
{
    return mqx_encode_taken(to, head, descriptor, ext, NULL, chunked, body, body_length);
}

uint32_t mqx_encode_taken(unsigned char *to, const struct mqx_record_head *head,
                          const struct ps_descriptor *descriptor,
                          const struct ps_descriptor_ext *ext, const struct ps_taken *taken,
                          const struct ps_chunked *chunked, const void *body, uint32_t body_length)
{
    MQX_ASSERT((descriptor->has_ext != 0) == (ext != NULL));
    MQX_ASSERT(chunked == NULL || body_length == 0);
    uint32_t at = begin(to, head);
    at = add(to, at, PS_SEC_DESCRIPTOR, descriptor, sizeof *descriptor);
    if (ext != NULL) {
        at = add(to, at, PS_SEC_DESCRIPTOR_EXT, ext, sizeof *ext);
    }
    if (taken != NULL) {
        at = add(to, at, PS_SEC_TAKEN, taken, sizeof *taken);
    }
    if (chunked != NULL) {
        at = add(to, at, PS_SEC_CHUNKED, chunked, sizeof *chunked);
    } else if (body_length > 0) {
        at = add(to, at, PS_SEC_BODY, body, body_length);
    }
    return finish(to, at);
}

uint32_t mqx_encode_chunk(unsigned char *to, const struct mqx_record_head *head,
                          const struct ps_chunk *chunk, const void *piece, uint32_t piece_length)
{
    MQX_ASSERT(piece_length > 0);
    MQX_ASSERT(piece_length <= PS_CHUNK_BYTES);
    uint32_t at = add(to, begin(to, head), PS_SEC_CHUNK, chunk, sizeof *chunk);
    return finish(to, add(to, at, PS_SEC_BODY, piece, piece_length));
}

uint32_t mqx_encode_commit(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_commit *commit)
{
    MQX_ASSERT(head->type == PS_REC_COMMIT);
    return finish(to, add(to, begin(to, head), PS_SEC_COMMIT, commit, sizeof *commit));
}

uint32_t mqx_encode_counts(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_count *counts, const uint64_t *dues,
                           uint32_t count_count)
{
    MQX_ASSERT(counts != NULL || count_count == 0);
    uint32_t at = begin(to, head);
    if (count_count > 0) {
        at = add(to, at, PS_SEC_COUNTS, counts, count_count * (uint32_t)sizeof *counts);
    }
    if (count_count > 0 && dues != NULL) {
        at = add(to, at, PS_SEC_DUE, dues, count_count * (uint32_t)sizeof *dues);
    }
    return finish(to, at);
}

uint32_t mqx_encode_object(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_object_name *name, const void *attrs,
                           uint32_t attrs_length)
{
    MQX_ASSERT(attrs != NULL || attrs_length == 0);
    uint32_t at = add(to, begin(to, head), PS_SEC_OBJECT_NAME, name, sizeof *name);
    if (attrs_length > 0) {
        at = add(to, at, PS_SEC_OBJECT_ATTRS, attrs, attrs_length);
    }
    return finish(to, at);
}

uint32_t mqx_encode_prepare(unsigned char *to, const struct mqx_record_head *head,
                            const struct ps_xid *xid, const struct ps_prepared *prepared,
                            const struct ps_commit *commit)
{
    MQX_ASSERT(xid != NULL);
    MQX_ASSERT(prepared != NULL);
    uint32_t at = add(to, begin(to, head), PS_SEC_XID, xid, sizeof *xid);
    at = add(to, at, PS_SEC_PREPARED, prepared, sizeof *prepared);
    return finish(to, add(to, at, PS_SEC_COMMIT, commit, sizeof *commit));
}

uint32_t mqx_encode_units(unsigned char *to, const struct mqx_record_head *head,
                          const uint64_t *units, uint32_t unit_count)
{
    MQX_ASSERT(head->type == PS_REC_COMMIT_PREPARED || head->type == PS_REC_BACKOUT_PREPARED);
    MQX_ASSERT(unit_count > 0);
    return finish(to, add(to, begin(to, head), PS_SEC_UNITS, units,
                          unit_count * (uint32_t)sizeof *units));
}

uint32_t mqx_encode_common(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_descriptor *descriptor)
{
    MQX_ASSERT(head->type == PS_REC_COMMON);
    return finish(to, add(to, begin(to, head), PS_SEC_DESCRIPTOR, descriptor, sizeof *descriptor));
}

uint32_t mqx_encode_image_consumed(unsigned char *to, const struct ps_image *image)
{
    MQX_ASSERT(image != NULL);
    const struct mqx_record_head head = {.type = PS_REC_IMAGE_CONSUMED};
    return finish(to, add(to, begin(to, &head), PS_SEC_IMAGE, image, sizeof *image));
}

uint32_t mqx_put_record_length(bool ext, uint32_t body_length)
{
    MQX_ASSERT(body_length <= PS_INLINE_BODY_MAX);
    const uint32_t section = sizeof(struct ps_section);
    uint32_t length = sizeof(struct psj_record) + section + sizeof(struct ps_descriptor);
    length += ext ? section + (uint32_t)sizeof(struct ps_descriptor_ext) : 0;
    return length + (body_length > 0 ? section + (uint32_t)mqx_round_up(body_length, PS_ALIGN) : 0);
}

uint32_t mqx_running_crc(uint32_t running, const struct psj_record *record)
{
    return mqx_running_crcs(running, &record->crc, 1);
}

uint32_t mqx_running_crcs(uint32_t running, const uint32_t *crcs, uint32_t count)
{
    MQX_ASSERT(crcs != NULL || count == 0);
    return mqx_crc32c(running, crcs, count * sizeof crcs[0]);
}

/* ---- taking apart ---- */

struct section_rule {
    uint32_t field;   /* offset of the pointer in struct mqx_decoded */
    uint32_t size;    /* exact length; 0: any, see `unit` */
    uint32_t counter; /* offset of the length or count, when the size is not fixed */
    uint32_t unit;    /* length is a multiple of this, and counted in it */
};
#define FIXED(name) \
    {offsetof(struct mqx_decoded, name), sizeof *((struct mqx_decoded *)0)->name, 0, 0}
#define COUNTED(name, counter, unit) \
    {offsetof(struct mqx_decoded, name), 0, offsetof(struct mqx_decoded, counter), unit}
static const struct section_rule section_rules[] = {
    [PS_SEC_DESCRIPTOR] = FIXED(descriptor),
    [PS_SEC_DESCRIPTOR_EXT] = FIXED(ext),
    [PS_SEC_BODY] = COUNTED(body, body_length, 1),
    [PS_SEC_CHUNKED] = FIXED(chunked),
    [PS_SEC_CHUNK] = FIXED(chunk),
    [PS_SEC_COMMIT] = FIXED(commit),
    [PS_SEC_COUNTS] = COUNTED(counts, count_count, sizeof(struct ps_count)),
    [PS_SEC_DUE] = COUNTED(dues, due_count, sizeof(uint64_t)),
    [PS_SEC_OBJECT_NAME] = FIXED(name),
    [PS_SEC_OBJECT_ATTRS] = COUNTED(attrs, attrs_length, 1),
    [PS_SEC_IMAGE] = FIXED(image),
    [PS_SEC_XID] = FIXED(xid),
    [PS_SEC_UNITS] = COUNTED(units, unit_count, sizeof(uint64_t)),
    [PS_SEC_PREPARED] = FIXED(prepared),
    [PS_SEC_TAKEN] = FIXED(taken),
};

/* Sections that a record type needs, one bit a tag. Types that are not here are unknown. */
#define BIT(tag) (1u << (tag))
struct type_rule {
    uint32_t needs;
    bool known;
};
static const struct type_rule type_rules[] = {
    [PS_REC_PUT] = {BIT(PS_SEC_DESCRIPTOR), true},
    [PS_REC_MOVED] = {BIT(PS_SEC_DESCRIPTOR), true},
    [PS_REC_GET] = {0, true},
    [PS_REC_COMMIT] = {BIT(PS_SEC_COMMIT), true},
    [PS_REC_BACKOUT] = {0, true},
    [PS_REC_CHUNK] = {BIT(PS_SEC_CHUNK) | BIT(PS_SEC_BODY), true},
    [PS_REC_EXPIRE] = {0, true},
    [PS_REC_IMAGE_CONSUMED] = {BIT(PS_SEC_IMAGE), true},
    [PS_REC_OBJECT] = {BIT(PS_SEC_OBJECT_NAME), true},
    [PS_REC_OBJECT_DELETE] = {0, true},
    [PS_REC_CLEAR] = {0, true},
    [PS_REC_PREPARE] = {BIT(PS_SEC_XID) | BIT(PS_SEC_PREPARED) | BIT(PS_SEC_COMMIT), true},
    [PS_REC_COMMIT_PREPARED] = {BIT(PS_SEC_UNITS), true},
    [PS_REC_BACKOUT_PREPARED] = {BIT(PS_SEC_UNITS), true},
    [PS_REC_COMMON] = {0, true},
    [PS_REC_TAKEN] = {BIT(PS_SEC_DESCRIPTOR) | BIT(PS_SEC_TAKEN), true},
};

uint32_t mqx_short_crc(uint32_t common_crc, const void *at, uint32_t length)
{
    const uint32_t skip = offsetof(struct psj_short, unit);
    MQX_ASSERT(length >= sizeof(struct psj_short));
    MQX_ASSERT(length % PS_ALIGN == 0);
    return mqx_crc32c(mqx_crc32c(common_crc, at, offsetof(struct psj_short, crc)),
                      (const unsigned char *)at + skip, length - skip);
}

/* Is there a COMMON record where the short one says, in the bytes in front of it? */
static bool has_common(const struct psj_short *record, size_t before)
{
    const uint32_t distance = record->common;
    MQX_ASSERT((uintptr_t)record % PS_ALIGN == 0);
    if (distance % PS_ALIGN != 0 || distance < sizeof(struct psj_record) || distance > before) {
        return false;
    }
    const struct psj_record *common = mqx_record_common(record);
    const uint32_t length = mqx_record_length(common);
    return common->type == (PS_REC_COMMON | PS_MUST_UNDERSTAND) && common->flags == 0 &&
           length >= sizeof *common && length <= distance;
}

int mqx_record_check(const void *at, size_t size, size_t before)
{
    const struct psj_record *record = at;
    MQX_ASSERT((uintptr_t)at % PS_ALIGN == 0);
    if (size < PS_RECORD_MIN) {
        return MQX_TORN;
    }
    const uint32_t length = mqx_record_length(record);
    if (length > MQX_RING_RECORD_MAX || length > size) {
        return MQX_TORN;
    }
    if (mqx_record_is_short(record)) {
        return length >= PS_RECORD_MIN && has_common(at, before) &&
                       mqx_short_crc(mqx_record_common(at)->crc, at, length) == record->crc
                   ? MQX_OK
                   : MQX_TORN;
    }
    if (length < sizeof *record) {
        return MQX_TORN;
    }
    return record_crc(at, length) == record->crc ? MQX_OK : MQX_TORN;
}

static MQX_COLD int unreadable(const struct psj_record *record, const char *why, uint32_t value)
{
    MQX_ASSERT(why != NULL);
    return mqx_fail(MQRC_OBJECT_DAMAGED,
                    "journal record of type %u cannot be read by this version: %s %u",
                    mqx_record_type(record), why, value);
}

/* What later versions will write, so that a file of theirs is refused by name. */
static const char *const reserved_types[] = {
    [PS_REC_CHANNEL_SEQUENCE] = "CHANNEL_SEQUENCE",
    [PS_REC_CLUSTER_OBJECT] = "CLUSTER_OBJECT",
    [PS_REC_SUBSCRIPTION] = "SUBSCRIPTION",
    [PS_REC_CHANNEL_BATCH] = "CHANNEL_BATCH",
    [PS_REC_RETAINED] = "RETAINED",
    [PS_REC_TRIGGER] = "TRIGGER",
    [PS_REC_STORE_UNIT] = "STORE_UNIT",
};
static const char *const reserved_sections[] = {
    [PS_SEC_PROPERTIES] = "PROPERTIES",
    [PS_SEC_ORIGIN] = "ORIGIN",
    [PS_SEC_GROUP] = "GROUP",
    [PS_SEC_STORES] = "STORES",
    [PS_SEC_SEGMENT] = "SEGMENT",
    [PS_SEC_PUBLICATION] = "PUBLICATION",
};

/* One of them, or a type that nobody has thought of. */
static MQX_COLD int unknown_type(const struct psj_record *record, uint16_t type)
{
    const char *name = type < MQX_ARRAY_COUNT(reserved_types) ? reserved_types[type] : NULL;
    MQX_ASSERT(record != NULL);
    return name == NULL ? unreadable(record, "type", type)
                        : mqx_fail(MQRC_OBJECT_DAMAGED,
                                   "journal record of type %u (%s) cannot be read by this version",
                                   type, name);
}

/* A section without which the record would mean something else. */
static MQX_COLD int reserved_section(const struct psj_record *record, uint16_t tag)
{
    MQX_ASSERT(record != NULL);
    MQX_ASSERT(tag < MQX_ARRAY_COUNT(reserved_sections));
    return mqx_fail(MQRC_OBJECT_DAMAGED,
                    "journal record of type %u has a section %s, which cannot be read by this "
                    "version", mqx_record_type(record), reserved_sections[tag]);
}

static bool is_zero(const unsigned char *from, const unsigned char *to)
{
    MQX_ASSERT(from <= to);
    for (; from < to; from++) {
        if (*from != 0) {
            return false;
        }
    }
    return true;
}

static bool is_known_section(uint16_t tag)
{
    return tag < MQX_ARRAY_COUNT(section_rules) &&
           (section_rules[tag].size != 0 || section_rules[tag].unit != 0);
}

/* Sections of tags that nobody knows are skipped, reserved ones refused. */
static int take_section(const struct ps_section *section, struct mqx_decoded *out)
{
    MQX_ASSERT(is_known_section(section->tag));
    const struct section_rule *rule = &section_rules[section->tag];
    unsigned char *const fields = (unsigned char *)out;
    const void **pointer = (const void **)(void *)(fields + rule->field);
    const uint32_t unit = rule->unit != 0 ? rule->unit : 1;
    const bool size_fits =
        rule->size != 0 ? section->length == rule->size : section->length % unit == 0;
    if (*pointer != NULL || !size_fits || out->body != NULL) { /* the body is the last one */
        return unreadable(out->head, "form of section", section->tag);
    }
    *pointer = section + 1;
    if (rule->size == 0) {
        *(uint32_t *)(void *)(fields + rule->counter) = section->length / unit;
    }
    return MQX_OK;
}

static int take_sections(const struct type_rule *rule, struct mqx_decoded *out)
{
    MQX_ASSERT(out->head->eighths > 0);
    const unsigned char *at = (const unsigned char *)(out->head + 1);
    const unsigned char *end = (const unsigned char *)out->head + mqx_record_length(out->head);
    uint32_t seen = 0;

    while (at < end) { /* both are aligned, so a section header fits */
        const struct ps_section *section = (const void *)at;
        const uint64_t padded = mqx_round_up(section->length, PS_ALIGN);
        if (section->zero != 0 || padded > (uint64_t)(end - at) - sizeof *section) {
            return unreadable(out->head, "length of section", section->tag);
        }
        if (is_known_section(section->tag)) {
            int status = take_section(section, out);
            if (status != MQX_OK) {
                return status;
            }
            seen |= BIT(section->tag);
        } else if (section->tag < MQX_ARRAY_COUNT(reserved_sections) &&
                   reserved_sections[section->tag] != NULL) {
            return reserved_section(out->head, section->tag);
        }
        at += sizeof *section;
        if (!is_zero(at + section->length, at + padded)) {
            return unreadable(out->head, "padding of section", section->tag);
        }
        at += padded;
    }
    return (seen & rule->needs) == rule->needs ? MQX_OK
                                               : unreadable(out->head, "sections found", seen);
}

/* Agreement between the sections of a PUT or CHUNK. */
static int check_message(const struct mqx_decoded *out)
{
    MQX_ASSERT(out->head != NULL);
    const struct ps_descriptor *d = out->descriptor;
    if (d != NULL && (d->due_us > PS_DUE_MAX || d->placement > MQX_MAX_PRIORITY ||
                      d->persistence > MQPER_PERSISTENT || d->has_ext > 1 ||
                      (d->has_ext == 1) != (out->ext != NULL))) {
        return unreadable(out->head, "descriptor of placement", d->placement);
    }
    if (out->ext != NULL && !is_zero((const unsigned char *)out->ext->zero,
                                     (const unsigned char *)(out->ext + 1))) {
        return unreadable(out->head, "reserved bytes of section", PS_SEC_DESCRIPTOR_EXT);
    }
    const struct ps_chunked *c = out->chunked;
    if (c != NULL && (out->body != NULL || c->zero != 0 || c->total > MQX_MAX_BODY ||
                      c->count == 0 || c->first_lsn > c->last_lsn)) {
        return unreadable(out->head, "chunks", c->count);
    }
    const struct ps_chunk *piece = out->chunk;
    if (piece != NULL &&
        (piece->zero != 0 || piece->total > MQX_MAX_BODY || piece->offset > piece->total ||
         out->body_length > piece->total - piece->offset)) {
        return unreadable(out->head, "chunk", piece->number);
    }
    return MQX_OK;
}

bool mqx_xid_is_sound(const struct ps_xid *xid)
{
    MQX_ASSERT(xid != NULL);
    return xid->format_id != -1 && xid->gtrid_length >= 1 &&
           xid->gtrid_length <= sizeof xid->gtrid &&
           xid->bqual_length <= sizeof xid->bqual &&
           is_zero(xid->gtrid + xid->gtrid_length, xid->gtrid + sizeof xid->gtrid) &&
           is_zero(xid->bqual + xid->bqual_length, xid->bqual + sizeof xid->bqual);
}

/* A BACKOUT has a due time for each of its counts, or none. */
static int check_dues(const struct mqx_decoded *out)
{
    MQX_ASSERT(out->dues != NULL);
    bool sound = mqx_record_type(out->head) == PS_REC_BACKOUT && out->due_count == out->count_count;
    for (uint32_t i = 0; i < out->due_count && sound; i++) {
        sound = out->dues[i] <= PS_DUE_MAX;
    }
    return sound ? MQX_OK : unreadable(out->head, "due times", out->due_count);
}

/* Values in the sections of PREPARE and of records about prepared units; a MOVED stands alone. */
static int check_unit(const struct mqx_decoded *out)
{
    MQX_ASSERT(out->head != NULL);
    if (out->xid != NULL && !mqx_xid_is_sound(out->xid)) {
        return unreadable(out->head, "lengths of section", PS_SEC_XID);
    }
    if (out->taken != NULL && out->taken->zero != 0) {
        return unreadable(out->head, "reserved bytes of section", PS_SEC_TAKEN);
    }
    const uint16_t type = mqx_record_type(out->head);
    if ((type == PS_REC_PREPARE || type == PS_REC_TAKEN) && out->head->unit_id == 0) {
        return unreadable(out->head, "unit of type", type);
    }
    const bool undecided = (out->head->flags & PS_FLAG_UNDECIDED) != 0;
    if (type == PS_REC_MOVED &&
        ((out->head->unit_id != 0) != undecided || out->head->number == 0)) {
        return unreadable(out->head, "unit of type", type);
    }
    if ((type == PS_REC_COMMIT_PREPARED || type == PS_REC_BACKOUT_PREPARED) &&
        out->unit_count == 0) {
        return unreadable(out->head, "units of type", type);
    }
    return MQX_OK;
}

/* All but `whole`, which is large. */
static void clear(struct mqx_decoded *out, const struct psj_record *head)
{
    MQX_ASSERT(out != NULL);
    memset(out, 0, offsetof(struct mqx_decoded, whole));
    out->head = head;
}

/* ---- short records ---- */

/* Sizes of the fields behind a short PUT's head, by their bits from PS_SHORT_MSG_ID on. */
static const uint8_t short_sizes[] = {MQX_ID_SIZE, MQX_ID_SIZE, sizeof(uint64_t), sizeof(uint64_t),
                                      sizeof(int32_t), sizeof(struct ps_descriptor_ext),
                                      sizeof(uint64_t)};

uint32_t mqx_short_body_at(const void *at)
{
    const struct ps_short_put *put = (const void *)((const struct psj_short *)at + 1);
    uint32_t offset = sizeof(struct psj_short) + sizeof *put;
    MQX_ASSERT((uintptr_t)at % PS_ALIGN == 0);
    for (uint32_t i = 0; i < MQX_ARRAY_COUNT(short_sizes); i++) {
        offset += (put->fields & (uint32_t)PS_SHORT_MSG_ID << i) != 0 ? short_sizes[i] : 0;
    }
    return offset;
}

/* The descriptor in a COMMON record: its only section. */
static const struct ps_descriptor *common_descriptor(const struct psj_record *common)
{
    const struct ps_section *section = (const void *)(common + 1);
    const struct ps_descriptor *d = (const void *)(section + 1);
    const uint32_t length = sizeof *common + sizeof *section + sizeof *d;
    MQX_ASSERT(mqx_record_type(common) == PS_REC_COMMON);
    return mqx_record_length(common) == length && section->tag == PS_SEC_DESCRIPTOR &&
                   section->zero == 0 && section->length == sizeof *d
               ? d
               : NULL;
}

/* Takes the next field, if there is one. */
static void take_field(const unsigned char **from, uint32_t fields, uint32_t bit, void *to,
                       size_t size)
{
    MQX_ASSERT(size > 0);
    if ((fields & bit) != 0) {
        memcpy(to, *from, size);
        *from += size;
    }
}

/* The descriptor that a PUT written in full would have. */
static void make_descriptor(const struct psj_short *record, const struct ps_descriptor *common,
                            struct mqx_decoded *out)
{
    const struct ps_short_put *put = (const void *)(record + 1);
    const unsigned char *from = (const unsigned char *)(put + 1);
    struct ps_descriptor *d = &out->whole.descriptor;
    uint8_t *const tail = d->msg_id + MQX_ID_SIZE - sizeof(uint64_t);
    uint64_t id;
    *d = *common;
    memcpy(&id, tail, sizeof id);
    id = __builtin_bswap64(__builtin_bswap64(id) + record->number);
    memcpy(tail, &id, sizeof id);
    d->put_time_us += (uint64_t)(int64_t)put->time;
    d->placement = put->fields & PS_SHORT_PLACEMENT;
    d->priority = d->placement;
    d->has_ext = (put->fields & PS_SHORT_EXT) != 0;
    take_field(&from, put->fields, PS_SHORT_MSG_ID, d->msg_id, sizeof d->msg_id);
    take_field(&from, put->fields, PS_SHORT_CORREL_ID, d->correl_id, sizeof d->correl_id);
    take_field(&from, put->fields, PS_SHORT_PUT_TIME, &d->put_time_us, sizeof d->put_time_us);
    take_field(&from, put->fields, PS_SHORT_EXPIRY, &d->expiry_us, sizeof d->expiry_us);
    take_field(&from, put->fields, PS_SHORT_PRIORITY, &d->priority, sizeof d->priority);
    take_field(&from, put->fields, PS_SHORT_EXT, &out->whole.ext, sizeof out->whole.ext);
    take_field(&from, put->fields, PS_SHORT_DUE, &d->due_us, sizeof d->due_us);
    MQX_ASSERT(from == (const unsigned char *)record + mqx_short_body_at(record));
    out->descriptor = d;
    out->ext = d->has_ext != 0 ? &out->whole.ext : NULL;
}

/* Fields and body of a short PUT. */
static int take_short_put(const struct psj_short *record, uint32_t end, struct mqx_decoded *out)
{
    const struct ps_short_put *put = (const void *)(record + 1);
    const struct ps_descriptor *common = common_descriptor(mqx_record_common(record));
    MQX_ASSERT(end >= sizeof *record);
    if (common == NULL || end < sizeof *record + sizeof *put) {
        return unreadable(out->head, "COMMON record of length", end);
    }
    const uint32_t body_at = mqx_short_body_at(record);
    if ((put->fields & ~(uint32_t)PS_SHORT_KNOWN) != 0 || body_at > end ||
        ((put->fields & PS_SHORT_PUT_TIME) != 0 && put->time != 0)) {
        return unreadable(out->head, "fields", put->fields);
    }
    make_descriptor(record, common, out);
    if (body_at < end) {
        out->body = (const unsigned char *)record + body_at;
        out->body_length = end - body_at;
    }
    return check_message(out);
}

/* A record that mqx_record_check() accepted, so its COMMON record is in front of it. */
static int parse_short(const struct psj_short *record, struct mqx_decoded *out)
{
    const struct psj_record *common = mqx_record_common(record);
    const uint32_t length = mqx_record_length((const void *)record);
    const uint32_t padding = (uint32_t)(record->flags & PS_PADDING_MASK) >> PS_PADDING_SHIFT;
    const uint16_t type = mqx_record_type((const void *)record);
    const uint64_t unit_id = common->unit_id + (uint64_t)(int64_t)record->unit;
    const bool moved = type == PS_REC_MOVED;
    const bool alone = moved && (record->flags & PS_FLAG_UNDECIDED) == 0;
    MQX_ASSERT(length >= sizeof *record);
    out->whole.head = (struct psj_record){
        .eighths = record->eighths,
        .type = record->type,
        .flags = record->flags & (PS_FLAG_COMMITS | PS_FLAG_UNDECIDED),
        .crc = record->crc,
        .unit_id = alone ? 0 : unit_id,
        .object = common->object,
        .object_gen = common->object_gen,
        .number = record->number,
    };
    out->head = &out->whole.head;
    const unsigned known = flags_of(type) | PS_FLAG_SHORT | PS_PADDING_MASK;
    if ((record->flags & ~known) != 0 ||
        (type != PS_REC_PUT && type != PS_REC_GET && !moved)) {
        return unreadable(out->head, "flags", record->flags);
    }
    if ((alone ? record->unit != 0 : unit_id == 0) || (moved && record->number == 0)) {
        return unreadable(out->head, "unit of type", type);
    }
    const uint32_t end = length - padding;
    if (end < sizeof *record || (type == PS_REC_GET && end != sizeof *record) ||
        !is_zero((const unsigned char *)record + end, (const unsigned char *)record + length)) {
        return unreadable(out->head, "padding", padding);
    }
    return type == PS_REC_GET ? MQX_OK : take_short_put(record, end, out);
}

int mqx_record_parse(const void *at, struct mqx_decoded *out)
{
    MQX_ASSERT(out != NULL);
    MQX_ASSERT((uintptr_t)at % PS_ALIGN == 0);
    const struct psj_record *record = at;
    const uint16_t type = mqx_record_type(record);

    clear(out, record);
    if (mqx_record_is_short(record)) {
        return parse_short(at, out);
    }
    const bool known = type < MQX_ARRAY_COUNT(type_rules) && type_rules[type].known;
    if (!known && (record->type & PS_MUST_UNDERSTAND) == 0) {
        return MQX_OK;
    }
    if (!known) {
        return unknown_type(record, type);
    }
    if ((record->flags & ~flags_of(type)) != 0) {
        return unreadable(record, "flags", record->flags);
    }
    int status = take_sections(&type_rules[type], out);
    if (status == MQX_OK) {
        status = check_message(out);
    }
    if (status == MQX_OK && out->dues != NULL) {
        status = check_dues(out);
    }
    return status == MQX_OK ? check_unit(out) : status;
}

int mqx_record_decode(const void *at, size_t size, size_t before, struct mqx_decoded *out)
{
    MQX_ASSERT(out != NULL);
    int status = mqx_record_check(at, size, before);
    return status == MQX_OK ? mqx_record_parse(at, out) : status;
}
