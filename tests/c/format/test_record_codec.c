/*
 * test_record_codec.c - proves record_codec.h: what is encoded comes back, and nothing else is
 * accepted.
 */
#include "fixtures/harness.h"

#include "base/checksum.h"
#include "base/error.h"
#include "format/record_codec.h"

static unsigned char buffer[MQX_RING_RECORD_MAX + 4096] MQX_ALIGNED(64);
static unsigned char body[PS_INLINE_BODY_MAX];

static const struct mqx_record_head put_head = {
    .type = PS_REC_PUT, .flags = PS_FLAG_COMMITS, .unit_id = 7, .object = 3, .object_gen = 2,
    .number = 99,
};

static struct ps_descriptor sample(bool ext)
{
    struct ps_descriptor d = {.priority = 12, .placement = 9, .persistence = 1, .has_ext = ext};
    memset(d.msg_id, 'm', sizeof d.msg_id);
    memset(d.correl_id, 'c', sizeof d.correl_id);
    return d;
}

/* Gives the record in `buffer` a right checksum again after a change. */
static void reseal(uint32_t length)
{
    struct psj_record *record = (void *)buffer;
    record->eighths = (uint16_t)(length / 8);
    record->crc = mqx_crc32c(mqx_crc32c(0, buffer, 4), buffer + 8, length - 8);
}

static int parse_changed(uint32_t length, struct mqx_decoded *out)
{
    reseal(length);
    return mqx_record_decode(buffer, sizeof buffer, 0, out);
}

TEST(put_records_of_every_body_length_come_back_as_they_were)
{
    struct mqx_decoded got;
    const struct ps_descriptor_ext ext = {.msg_flags = 5, .offset = -1};

    for (size_t i = 0; i < sizeof body; i++) {
        body[i] = (unsigned char)(i * 7);
    }
    for (uint32_t length = 0; length <= PS_INLINE_BODY_MAX; length += length < 64 ? 1 : 4097) {
        for (int with_ext = 0; with_ext < 2; with_ext++) {
            const struct ps_descriptor d = sample(with_ext);
            memset(buffer, 0xee, sizeof buffer);
            uint32_t size = mqx_encode_put(buffer, &put_head, &d, with_ext ? &ext : NULL, NULL,
                                           body, length);
            CHECK_INT(size, mqx_put_record_length(with_ext, length));
            CHECK(size <= MQX_RING_RECORD_MAX && size % 8 == 0);
            CHECK_INT(buffer[size], 0xee);
            CHECK_INT(mqx_record_decode(buffer, size, 0, &got), 0);
            CHECK_INT(mqx_record_type(got.head), PS_REC_PUT);
            CHECK_INT(got.head->flags, PS_FLAG_COMMITS);
            CHECK_INT(got.head->unit_id, 7);
            CHECK_INT(got.head->object, 3);
            CHECK_INT(got.head->object_gen, 2);
            CHECK_INT(got.head->number, 99);
            CHECK_MEM(got.descriptor, &d, sizeof d);
            CHECK((got.ext != NULL) == (with_ext != 0));
            CHECK(got.ext == NULL || memcmp(got.ext, &ext, sizeof ext) == 0);
            CHECK_INT(got.body_length, length);
            CHECK(length == 0 || memcmp(got.body, body, length) == 0);
        }
    }
}

TEST(every_other_record_type_comes_back_as_it_was)
{
    struct mqx_decoded got;
    struct mqx_record_head head = {.type = PS_REC_GET, .unit_id = 1, .object = 2, .number = 3};
    const struct ps_chunk chunk = {.prev_lsn = 8, .offset = 100, .total = 5000, .number = 2};
    const struct ps_chunked chunked = {.first_lsn = 8, .last_lsn = 16, .total = 1000, .count = 2};
    const struct ps_commit commit = {.first_lsn = 4160, .record_count = 9, .running_crc = 77};
    const struct ps_count counts[2] = {{1, 2, 3}, {4, 5, 6}};
    const struct ps_object_name name = {.name_space = 1, .type = 1, .name = "Q"};
    const struct ps_image image = {.checkpoint_lsn = 4096};
    const struct ps_descriptor d = sample(false);

    CHECK_INT(mqx_record_decode(buffer, mqx_encode_plain(buffer, &head), 0, &got), 0);
    CHECK_INT(mqx_record_type(got.head), PS_REC_GET);
    head.type = PS_REC_CLEAR;
    CHECK_INT(mqx_record_decode(buffer, mqx_encode_plain(buffer, &head), 0, &got), 0);
    CHECK_INT(got.head->number, 3);
    head.type = PS_REC_CHUNK;
    uint32_t size = mqx_encode_chunk(buffer, &head, &chunk, body, 4900);
    CHECK_INT(mqx_record_decode(buffer, size, 0, &got), 0);
    CHECK_MEM(got.chunk, &chunk, sizeof chunk);
    CHECK_INT(got.body_length, 4900);
    CHECK_INT(mqx_record_decode(buffer,
                                mqx_encode_put(buffer, &put_head, &d, NULL, &chunked, NULL, 0),
                                0, &got), 0);
    CHECK_MEM(got.chunked, &chunked, sizeof chunked);
    head.type = PS_REC_COMMIT;
    CHECK_INT(mqx_record_decode(buffer, mqx_encode_commit(buffer, &head, &commit), 0, &got), 0);
    CHECK_MEM(got.commit, &commit, sizeof commit);
    head.type = PS_REC_BACKOUT;
    uint32_t counted = mqx_encode_counts(buffer, &head, counts, NULL, 2);
    CHECK_INT(mqx_record_decode(buffer, counted, 0, &got), 0);
    CHECK_INT(got.count_count, 2);
    CHECK_MEM(got.counts, counts, sizeof counts);
    counted = mqx_encode_counts(buffer, &head, counts, NULL, 0);
    CHECK_INT(mqx_record_decode(buffer, counted, 0, &got), 0);
    CHECK_INT(got.count_count, 0);
    head.type = PS_REC_OBJECT;
    size = mqx_encode_object(buffer, &head, &name, "attrs", 5);
    CHECK_INT(mqx_record_decode(buffer, size, 0, &got), 0);
    CHECK_MEM(got.name, &name, sizeof name);
    CHECK_INT(got.attrs_length, 5);
    CHECK_MEM(got.attrs, "attrs", 5);
    CHECK_INT(mqx_record_decode(buffer, mqx_encode_image_consumed(buffer, &image), 0, &got), 0);
    CHECK_MEM(got.image, &image, sizeof image);
}

TEST(records_of_prepared_units_come_back_as_they_were_and_hostile_ones_are_refused)
{
    struct mqx_decoded got;
    struct mqx_record_head head = {.type = PS_REC_PREPARE, .unit_id = 9};
    struct ps_xid xid = {.format_id = 5, .gtrid_length = 2, .bqual_length = 64, .gtrid = {1, 2}};
    const struct ps_prepared prepared = {.prepared_us = 1, .bytes = 2, .puts = 3, .lost_gets = 6};
    const struct ps_commit commit = {.first_lsn = 4160, .record_count = 9, .running_crc = 77};
    const struct ps_taken taken = {.before = 12};
    const struct ps_descriptor d = sample(false);
    const uint64_t units[3] = {5, 6, UINT64_MAX};

    memset(xid.bqual, 7, sizeof xid.bqual);
    uint32_t size = mqx_encode_prepare(buffer, &head, &xid, &prepared, &commit);
    CHECK_INT(mqx_record_decode(buffer, size, 0, &got), 0);
    CHECK_MEM(got.xid, &xid, sizeof xid);
    CHECK_MEM(got.prepared, &prepared, sizeof prepared);
    CHECK_MEM(got.commit, &commit, sizeof commit);
    xid.gtrid[2] = 1; /* beyond its length */
    size = mqx_encode_prepare(buffer, &head, &xid, &prepared, &commit);
    CHECK_INT(mqx_record_decode(buffer, size, 0, &got), MQRC_OBJECT_DAMAGED);
    xid.gtrid[2] = 0;
    xid.gtrid_length = 0;
    size = mqx_encode_prepare(buffer, &head, &xid, &prepared, &commit);
    CHECK_INT(mqx_record_decode(buffer, size, 0, &got), MQRC_OBJECT_DAMAGED);
    xid.gtrid_length = 65;
    size = mqx_encode_prepare(buffer, &head, &xid, &prepared, &commit);
    CHECK_INT(mqx_record_decode(buffer, size, 0, &got), MQRC_OBJECT_DAMAGED);
    xid.gtrid_length = 2;
    head.unit_id = 0;
    size = mqx_encode_prepare(buffer, &head, &xid, &prepared, &commit);
    CHECK_INT(mqx_record_decode(buffer, size, 0, &got), MQRC_OBJECT_DAMAGED);
    head.type = PS_REC_BACKOUT_PREPARED;
    CHECK_INT(mqx_record_decode(buffer, mqx_encode_units(buffer, &head, units, 3), 0, &got), 0);
    CHECK_INT(got.unit_count, 3);
    CHECK_MEM(got.units, units, sizeof units);
    CHECK_INT(mqx_record_decode(buffer, mqx_encode_plain(buffer, &head), 0, &got),
              MQRC_OBJECT_DAMAGED);
    head = put_head;
    head.type = PS_REC_TAKEN;
    size = mqx_encode_taken(buffer, &head, &d, NULL, &taken, NULL, body, 21);
    CHECK_INT(mqx_record_decode(buffer, size, 0, &got), 0);
    CHECK_MEM(got.taken, &taken, sizeof taken);
    CHECK_MEM(got.descriptor, &d, sizeof d);
    CHECK_INT(got.body_length, 21);
    head.type = PS_REC_TAKEN; /* a PUT has no TAKEN section */
    CHECK_INT(mqx_record_decode(buffer, mqx_encode_put(buffer, &head, &d, NULL, NULL, body, 21),
                                0, &got), MQRC_OBJECT_DAMAGED);
}

TEST(any_flipped_bit_and_any_cut_makes_a_record_torn)
{
    struct mqx_decoded got;
    const struct ps_descriptor d = sample(false);
    const uint32_t size = mqx_encode_put(buffer, &put_head, &d, NULL, NULL, body, 21);

    for (uint32_t bit = 0; bit < size * 8; bit++) {
        buffer[bit / 8] ^= (unsigned char)(1u << bit % 8);
        CHECK_INT(mqx_record_decode(buffer, sizeof buffer, 0, &got), MQX_TORN);
        buffer[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (uint32_t cut = 0; cut < size; cut++) {
        unsigned char *exact = malloc(cut + 1); /* asan watches its end */
        CHECK(exact != NULL);
        memcpy(exact, buffer, cut);
        int status = mqx_record_decode(exact, cut, 0, &got);
        free(exact);
        CHECK_INT(status, MQX_TORN);
    }
    CHECK_INT(mqx_record_decode(buffer, size, 0, &got), 0);
}

TEST(an_unknown_must_understand_type_is_refused_by_number_and_an_optional_one_is_skipped)
{
    struct mqx_decoded got;
    const struct mqx_record_head head = {.type = PS_REC_GET};
    struct psj_record *record = (void *)buffer;
    uint32_t size = mqx_encode_plain(buffer, &head);

    record->type = 77 | PS_MUST_UNDERSTAND;
    CHECK_INT(parse_changed(size, &got), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "type 77") != NULL);
    record->type = PS_REC_SUBSCRIPTION | PS_MUST_UNDERSTAND; /* reserved: the format knows it */
    CHECK_INT(parse_changed(size, &got), MQRC_OBJECT_DAMAGED);
    record->type = 77;
    memset(buffer + size, 0xff, 8); /* and whatever is in it */
    CHECK_INT(parse_changed(size + 8, &got), 0);
    CHECK_INT(mqx_record_type(got.head), 77);
    CHECK(got.descriptor == NULL && got.body == NULL);
}

TEST(a_moved_record_is_a_put_that_stands_alone_or_names_a_unit_that_is_not_decided)
{
    struct mqx_decoded got;
    const struct ps_descriptor d = sample(false);
    struct psj_record *record = (void *)buffer;
    const struct mqx_record_head head = {
        .type = PS_REC_MOVED, .object = 3, .object_gen = 2, .number = 77};
    const uint32_t size = mqx_encode_put(buffer, &head, &d, NULL, NULL, body, 21);
    CHECK_INT(mqx_record_decode(buffer, size, 0, &got), 0);
    CHECK_INT(got.body_length, 21);
    CHECK_MEM(got.descriptor, &d, sizeof d);
    record->unit_id = 5;
    CHECK_INT(parse_changed(size, &got), MQRC_OBJECT_DAMAGED);
    record->unit_id = 0;
    record->flags = PS_FLAG_COMMITS;
    CHECK_INT(parse_changed(size, &got), MQRC_OBJECT_DAMAGED);
    record->flags = 0;
    record->flags = PS_FLAG_UNDECIDED; /* of no unit */
    CHECK_INT(parse_changed(size, &got), MQRC_OBJECT_DAMAGED);
    record->unit_id = 5;
    CHECK_INT(parse_changed(size, &got), 0);
    record->type = PS_REC_PUT | PS_MUST_UNDERSTAND; /* which has no such flag */
    CHECK_INT(parse_changed(size, &got), MQRC_OBJECT_DAMAGED);
    record->type = PS_REC_MOVED | PS_MUST_UNDERSTAND;
    record->unit_id = 0;
    record->flags = 0;
    record->number = 0;
    CHECK_INT(parse_changed(size, &got), MQRC_OBJECT_DAMAGED);
}

TEST(reserved_bytes_wrong_sections_and_wrong_sizes_are_refused)
{
    struct mqx_decoded got;
    const struct ps_descriptor d = sample(false);
    struct psj_record *record = (void *)buffer;
    struct ps_section *first = (void *)(record + 1);
    struct ps_descriptor *stored = (void *)(first + 1);
    const uint32_t size = mqx_encode_put(buffer, &put_head, &d, NULL, NULL, body, 21);
    static unsigned char good[1024];
    memcpy(good, buffer, size);
    CHECK(size <= sizeof good);

#define REFUSED(change) \
    do { \
        memcpy(buffer, good, size); \
        change; \
        CHECK_INT(parse_changed(size, &got), MQRC_OBJECT_DAMAGED); \
    } while (0)
    REFUSED(record->flags = 4);
    REFUSED(first->tag = PS_SEC_PROPERTIES); /* reserved */
    CHECK(strstr(mqx_error_text(), "PROPERTIES") != NULL);
    REFUSED(record->type = PS_REC_MOVED | PS_MUST_UNDERSTAND); /* in a unit */
    REFUSED(record->type = PS_REC_RETAINED | PS_MUST_UNDERSTAND);
    CHECK(strstr(mqx_error_text(), "RETAINED") != NULL);
    REFUSED(first->tag = 0xffff);
    REFUSED(first->tag = PS_SEC_COMMIT); /* of another size */
    REFUSED(first->tag = PS_SEC_BODY);   /* then there are two bodies and no descriptor */
    REFUSED(first->zero = 1);
    REFUSED(first->length = 191);
    REFUSED(first->length = 0xffffffff);
    REFUSED(first->length = 0xfffffff8);
    REFUSED(first->length = 0);
    REFUSED(stored->placement = 10);
    REFUSED(stored->persistence = 2);
    REFUSED(stored->has_ext = 1);
    REFUSED(stored->due_us = PS_DUE_MAX + 1);
    REFUSED(buffer[size - 1] = 1); /* padding */
    REFUSED(record->type = PS_REC_COMMIT | PS_MUST_UNDERSTAND); /* and no COMMIT section */
#undef REFUSED
    memcpy(buffer, good, size);
    CHECK_INT(parse_changed(size, &got), 0);
}

TEST(sections_of_unknown_tags_are_skipped)
{
    struct mqx_decoded got;
    const struct mqx_record_head head = {.type = PS_REC_GET, .number = 5};
    const uint32_t size = mqx_encode_plain(buffer, &head);
    struct ps_section *extra = (void *)(buffer + size);

    for (uint32_t tag = 0; tag < 70; tag++) {
        *extra = (struct ps_section){.tag = (uint16_t)(tag == 0 ? 0xffff : tag), .length = 3};
        memcpy(extra + 1, "abc\0\0\0\0", 8);
        int status = parse_changed(size + 16, &got);
        const bool known = tag >= 1 && tag <= PS_SEC_PUBLICATION; /* or reserved: never skipped */
        const bool any_size = tag == PS_SEC_BODY || tag == PS_SEC_OBJECT_ATTRS;
        CHECK_INT(status, known && !any_size ? MQRC_OBJECT_DAMAGED : 0);
    }
    extra->tag = 99;
    ((unsigned char *)(extra + 1))[7] = 1; /* their padding is checked all the same */
    CHECK_INT(parse_changed(size + 16, &got), MQRC_OBJECT_DAMAGED);
}

TEST(random_bytes_with_a_right_checksum_never_lead_outside_the_record)
{
    struct test_random random = {test_seed()};
    uint64_t accepted = 0;

    for (int round = 0; round < 200000; round++) {
        const uint32_t size = 32 + 8 * (uint32_t)test_below(&random, 40);
        uint64_t *exact = malloc(size);
        CHECK(exact != NULL);
        for (uint32_t i = 0; i < size / 8; i++) {
            exact[i] = test_below(&random, 3) == 0 ? test_next(&random) : test_below(&random, 24);
        }
        struct psj_record *record = (void *)exact;
        record->eighths = (uint16_t)(size / 8);
        record->type = (uint8_t)(test_below(&random, 20) | PS_MUST_UNDERSTAND);
        record->flags = 0;
        struct ps_section *section = (void *)(record + 1);
        if (size > 40) {
            section->tag = (uint16_t)test_below(&random, 17);
            section->zero = 0;
            section->length =
                test_below(&random, 2) == 0 ? size - 40 : (uint32_t)test_below(&random, 300);
        }
        record->crc = mqx_crc32c(mqx_crc32c(0, exact, 4), exact + 1, size - 8);
        struct mqx_decoded got;
        int status = mqx_record_decode(exact, size, 0, &got);
        accepted += status == 0;
        if (status == 0 && got.body != NULL) {
            CHECK(got.body + got.body_length <= (unsigned char *)exact + size);
        }
        CHECK(status == 0 || status == MQRC_OBJECT_DAMAGED);
        free(exact);
    }
    CHECK(accepted > 100);
}

TEST(the_scratch_buffer_stays_the_same_within_a_thread)
{
    unsigned char *first = mqx_scratch(100);
    CHECK(first != NULL);
    CHECK(mqx_scratch(MQX_RING_RECORD_MAX + 4096) == first);
}

TEST(what_lies_in_the_scratch_buffer_is_kept_while_it_is_put_away)
{
    unsigned char *mine = mqx_scratch(100);
    memset(mine, 7, 100);
    unsigned char *kept = mqx_scratch_put_away();
    CHECK(kept == mine);
    unsigned char *other = mqx_scratch(100);
    CHECK(other != NULL && other != mine);
    memset(other, 8, 100);
    mqx_scratch_restore(kept);
    CHECK(mqx_scratch(100) == mine);
    CHECK_INT(mine[0], 7);
    CHECK_INT(mine[99], 7);
    kept = mqx_scratch_put_away(); /* nothing was encoded in between */
    mqx_scratch_restore(kept);
    CHECK(mqx_scratch(100) == mine);
}

TEST_MAIN()
