/* Claims of short_codec.c: a short record is the full one in fewer bytes, and nothing but the
 * COMMON record that it was made with makes it whole. */
#include "base/checksum.h"
#include "base/error.h"
#include "fixtures/harness.h"
#include "format/short_codec.h"

enum { MAKER = 7, LONGEST = 4096 };
static unsigned char batch[3 * LONGEST] MQX_ALIGNED(8), body[LONGEST];

static struct mqx_record_head head_of(uint16_t type, uint64_t number)
{
    return (struct mqx_record_head){
        .type = type, .unit_id = 1000, .object = 3, .object_gen = 2, .number = number};
}

/* As the engine makes one; its MsgId follows from the number. */
static struct ps_descriptor descriptor_of(uint64_t number)
{
    struct ps_descriptor d = {.put_time_us = 1700000000000000 + number,
                              .priority = 4,
                              .msg_type = 8,
                              .ccsid = 1208,
                              .persistence = 1,
                              .placement = 4,
                              .md_version = 2};
    const uint64_t tail = __builtin_bswap64(UINT64_C(0x1234567800000000) + number);
    memcpy(d.msg_id, "AMQ QM1         ", 16);
    memcpy(d.msg_id + 16, &tail, sizeof tail);
    memcpy(d.user_identifier, "somebody    ", sizeof d.user_identifier);
    return d;
}

/* Lays the COMMON record and the short one behind it into `batch`; the distance. */
static uint32_t lay(const struct mqx_common *common, uint32_t gap)
{
    const uint32_t distance = common->length + gap;
    struct psj_short *record = (void *)(batch + distance);
    memcpy(batch, common->record, common->length);
    record->common = distance;
    return distance;
}

static unsigned char *record_at(const struct mqx_common *common, uint32_t gap)
{
    memset(batch, 0, sizeof batch);
    return batch + common->length + gap;
}

TEST(a_put_comes_back_as_it_was_and_takes_32_bytes_and_its_body)
{
    struct mqx_decoded got;
    for (uint32_t length = 0; length < 600; length += length < 20 ? 1 : 37) {
        for (uint32_t gap = 0; gap <= 64; gap += 64) {
            const struct mqx_record_head head = head_of(PS_REC_PUT, 55 + length);
            const struct ps_descriptor d = descriptor_of(head.number);
            struct mqx_common *common = mqx_common_for(MAKER, &head, &d, true);
            CHECK(common != NULL);
            const uint32_t size = mqx_encode_short_put(record_at(common, gap), common, &head, &d,
                                                       NULL, body, length);
            CHECK_INT(size, mqx_round_up(32 + length, 8));
            const uint32_t distance = lay(common, gap);
            CHECK_INT(mqx_record_decode(batch + distance, size, distance, &got), 0);
            CHECK_INT(mqx_record_decode(batch + distance, size, distance - 8, &got), MQX_TORN);
            CHECK_INT(mqx_record_decode(batch + distance, size - 8, distance, &got), MQX_TORN);
            CHECK_INT(mqx_record_decode(batch + distance, size, distance, &got), 0);
            CHECK_MEM(got.descriptor, &d, sizeof d);
            CHECK(got.ext == NULL && got.chunked == NULL);
            CHECK_INT(got.body_length, length);
            CHECK(length == 0 || memcmp(got.body, body, length) == 0);
            CHECK(got.head->unit_id == head.unit_id && got.head->number == head.number);
            CHECK(got.head->object == 3 && got.head->object_gen == 2);
        }
    }
}

TEST(every_field_of_its_own_comes_back)
{
    struct mqx_decoded got;
    struct mqx_record_head head = head_of(PS_REC_PUT, 1);
    const struct ps_descriptor first = descriptor_of(1);
    struct mqx_common *common = mqx_common_for(MAKER, &head, &first, true);
    for (uint32_t bits = 0; bits < 64; bits++) {
        struct ps_descriptor d = descriptor_of(2 + bits);
        const struct ps_descriptor_ext ext = {.msg_flags = 9, .original_length = -1};
        head.number = 2 + bits;
        head.unit_id = 1000 + bits;
        head.flags = (bits & 1) != 0 ? PS_FLAG_COMMITS : 0;
        memset(d.msg_id, (bits & 1) != 0 ? 'x' : d.msg_id[0], (bits & 1) != 0 ? 24 : 0);
        memset(d.correl_id, (bits & 2) != 0 ? 'y' : 0, sizeof d.correl_id);
        d.put_time_us += (bits & 4) != 0 ? UINT64_C(1) << 40 : 0;
        d.expiry_us = (bits & 8) != 0 ? 77 : 0;
        d.priority = (bits & 16) != 0 ? 12 : 9;
        d.placement = 9;
        d.has_ext = (bits & 32) != 0;
        CHECK(mqx_common_for(MAKER, &head, &d, true) == common);
        const uint32_t size = mqx_encode_short_put(record_at(common, 0), common, &head, &d,
                                                   d.has_ext != 0 ? &ext : NULL, body, 5);
        CHECK(size <= mqx_short_put_length(true, 5));
        const uint32_t distance = lay(common, 0);
        CHECK_INT(mqx_record_decode(batch + distance, size, distance, &got), 0);
        CHECK_MEM(got.descriptor, &d, sizeof d);
        CHECK((got.ext != NULL) == (d.has_ext != 0));
        CHECK(got.ext == NULL || memcmp(got.ext, &ext, sizeof ext) == 0);
        CHECK_INT(got.head->flags, head.flags);
        CHECK(got.head->unit_id == head.unit_id);
        CHECK_INT(got.body_length, 5);
    }
}

TEST(a_get_has_24_bytes)
{
    struct mqx_decoded got;
    struct mqx_record_head head = head_of(PS_REC_GET, 9);
    struct mqx_common *common = mqx_common_for(MAKER, &head, NULL, true);
    head.unit_id -= 3; /* a unit that began earlier */
    CHECK(mqx_common_for(MAKER, &head, NULL, true) == common);
    CHECK_INT(common->length, sizeof(struct psj_record));
    const uint32_t size = mqx_encode_short_get(record_at(common, 0), common, &head);
    CHECK_INT(size, 24);
    const uint32_t distance = lay(common, 0);
    CHECK_INT(mqx_record_decode(batch + distance, size, distance, &got), 0);
    CHECK(got.head->number == 9 && got.head->object == 3 && got.head->unit_id == 997);
    CHECK(got.descriptor == NULL && got.body == NULL);
}

TEST(the_first_records_of_a_unit_are_written_in_full_unless_many_follow)
{
    struct mqx_record_head put = head_of(PS_REC_PUT, 1), get = head_of(PS_REC_GET, 1);
    const struct ps_descriptor d = descriptor_of(1);
    for (put.unit_id = get.unit_id = 900; put.unit_id < 903; put.unit_id = ++get.unit_id) {
        CHECK(mqx_common_for(MAKER, &put, &d, false) == NULL);
        CHECK(mqx_common_for(MAKER, &put, &d, false) != NULL);
        for (uint32_t i = 0; i < 3; i++) {
            CHECK(mqx_common_for(MAKER, &get, NULL, false) == NULL);
        }
        CHECK(mqx_common_for(MAKER, &get, NULL, false) != NULL);
        CHECK(mqx_common_for(MAKER, &put, &d, false) != NULL);
    }
    CHECK(mqx_common_for(MAKER, &put, &d, true) != NULL);
}

TEST(another_queue_user_region_or_a_unit_far_away_needs_another_common_record)
{
    const struct mqx_record_head head = head_of(PS_REC_PUT, 1);
    const struct ps_descriptor d = descriptor_of(1);
    const struct mqx_common *common = mqx_common_for(MAKER, &head, &d, true);
    struct mqx_record_head heads[4] = {head, head, head, head};
    struct ps_descriptor ds[4] = {d, d, d, d};
    heads[0].object_gen += 1;
    heads[1].unit_id += UINT64_C(1) << 32;
    ds[2].user_identifier[0] = 'S';
    ds[3].persistence = 0;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(heads); i++) {
        CHECK(mqx_common_fits(common, &head, &d));
        CHECK(!mqx_common_fits(common, &heads[i], &ds[i]));
    }
    struct mqx_common *same = mqx_common_for(MAKER, &head, &d, true);
    same->lsn = 4096;
    CHECK(mqx_common_for(MAKER, &head, &d, true)->lsn == 4096);
    CHECK(mqx_common_for(MAKER + 1, &head, &d, true)->lsn == 0);
    struct mqx_record_head alone = head;
    alone.unit_id = 0;
    CHECK(mqx_common_for(MAKER, &alone, &d, true) == NULL);
}

TEST(any_flipped_bit_but_of_the_distance_is_found_and_one_of_that_leads_to_no_other_record)
{
    struct mqx_decoded got;
    const struct mqx_record_head head = head_of(PS_REC_PUT, 1);
    const struct ps_descriptor d = descriptor_of(1);
    struct mqx_common *common = mqx_common_for(MAKER, &head, &d, true);
    const uint32_t size =
        mqx_encode_short_put(record_at(common, 0), common, &head, &d, NULL, body, 40);
    const uint32_t distance = lay(common, 0);
    for (uint32_t bit = 0; bit < 8 * size; bit++) {
        batch[distance + bit / 8] ^= (unsigned char)(1u << bit % 8);
        CHECK_INT(mqx_record_decode(batch + distance, size, distance, &got), MQX_TORN);
        batch[distance + bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (uint32_t bit = 32; bit < 64; bit++) { /* the CRC that it goes on from */
        batch[bit / 8] ^= (unsigned char)(1u << bit % 8);
        CHECK_INT(mqx_record_decode(batch + distance, size, distance, &got), MQX_TORN);
        batch[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    CHECK_INT(mqx_record_decode(batch + distance, size, distance, &got), 0);
}

/* ---- MOVED ---- */

static unsigned char moved[3 * LONGEST] MQX_ALIGNED(8);

/* A MOVED of the short record behind `with`, laid behind a copy of its own COMMON record. */
static uint32_t move(struct mqx_common *own, const struct psj_record *with, const void *from,
                     uint32_t flags)
{
    mqx_common_take(own, MAKER, with);
    memcpy(moved, own->record, own->length);
    const uint32_t size = mqx_encode_short_moved(moved + own->length, own, from, flags);
    ((struct psj_short *)(void *)(moved + own->length))->common = own->length;
    return size;
}

TEST(a_moved_record_is_the_put_alone_with_another_type_as_often_as_it_moves)
{
    struct mqx_decoded got;
    struct mqx_common own = {.length = 0};
    for (uint32_t length = 0; length < 40; length++) {
        struct mqx_record_head head = head_of(PS_REC_PUT, 70 + length);
        struct ps_descriptor d = descriptor_of(head.number);
        const struct ps_descriptor_ext ext = {.msg_flags = 9, .original_length = -1};
        d.expiry_us = length % 3 == 0 ? 77 : 0;
        d.has_ext = length % 2;
        head.flags = length % 5 == 0 ? PS_FLAG_COMMITS : 0;
        struct mqx_common *common = mqx_common_for(MAKER, &head, &d, true);
        const uint32_t size =
            mqx_encode_short_put(record_at(common, 0), common, &head, &d,
                                 d.has_ext != 0 ? &ext : NULL, body, length);
        const uint32_t distance = lay(common, 0);
        CHECK_INT(move(&own, (const void *)batch, batch + distance, 0), size);
        for (int again = 0; again < 2; again++) {
            CHECK_INT(mqx_record_decode(moved + own.length, size, own.length, &got), 0);
            CHECK_INT(mqx_record_type(got.head), PS_REC_MOVED);
            CHECK(got.head->unit_id == 0 && got.head->flags == 0);
            CHECK(got.head->number == head.number);
            CHECK(got.head->object == 3 && got.head->object_gen == 2);
            CHECK_MEM(got.descriptor, &d, sizeof d);
            CHECK((got.ext != NULL) == (d.has_ext != 0));
            CHECK_INT(got.body_length, length);
            CHECK(length == 0 || memcmp(got.body, body, length) == 0);
            memcpy(batch, moved, own.length + size); /* and from there */
            CHECK_INT(move(&own, (const void *)batch, batch + own.length, 0), size);
        }
    }
}

TEST(a_short_moved_record_of_a_decided_unit_or_without_a_number_is_refused)
{
    struct mqx_decoded got;
    struct mqx_common own = {.length = 0};
    const struct mqx_record_head head = head_of(PS_REC_PUT, 1);
    const struct ps_descriptor d = descriptor_of(1);
    struct mqx_common *common = mqx_common_for(MAKER, &head, &d, true);
    (void)mqx_encode_short_put(record_at(common, 0), common, &head, &d, NULL, body, 9);
    const uint32_t size = move(&own, (const void *)batch, batch + lay(common, 0), 0);
    struct psj_short *record = (void *)(moved + own.length);
    const struct psj_short good = *record;
    for (int i = 0; i < 4; i++) {
        *record = good;
        record->unit = i == 0 ? 1 : 0;
        record->flags |= i == 1 ? PS_FLAG_COMMITS : 0;
        record->number = i == 2 ? 0 : good.number;
        record->crc = mqx_short_crc(((const struct psj_record *)(void *)moved)->crc, record, size);
        const int want = i < 3 ? MQRC_OBJECT_DAMAGED : 0;
        CHECK_INT(mqx_record_decode(record, size, own.length, &got), want);
    }
}

TEST(a_short_moved_record_of_a_unit_names_it_until_the_unit_is_decided)
{
    struct mqx_decoded got;
    struct mqx_common own = {.length = 0};
    const struct mqx_record_head head = head_of(PS_REC_PUT, 1);
    const struct ps_descriptor d = descriptor_of(1);
    struct mqx_common *common = mqx_common_for(MAKER, &head, &d, true);
    (void)mqx_encode_short_put(record_at(common, 0), common, &head, &d, NULL, body, 9);
    const void *from = batch + lay(common, 0);
    for (int i = 0; i < 3; i++) { /* moved twice, then decided */
        const uint32_t flags = i < 2 ? PS_FLAG_UNDECIDED : 0;
        const uint32_t size = move(&own, (const void *)batch, from, flags);
        CHECK_INT(mqx_record_decode(moved + own.length, size, own.length, &got), 0);
        CHECK_INT(got.head->flags, flags);
        CHECK_INT(got.head->unit_id, i < 2 ? head.unit_id : 0);
        memcpy(batch, moved, own.length + size);
        from = batch + own.length;
    }
}

TEST(a_common_record_that_is_taken_again_keeps_its_place_and_another_one_has_none)
{
    const struct mqx_record_head head = head_of(PS_REC_PUT, 1);
    struct ps_descriptor d = descriptor_of(1);
    struct mqx_common own = {.length = 0};
    const struct mqx_common first = *mqx_common_for(MAKER, &head, &d, true);
    mqx_common_take(&own, MAKER, (const void *)first.record);
    CHECK(own.lsn == 0 && own.length == first.length);
    own.lsn = 4160;
    mqx_common_take(&own, MAKER, (const void *)first.record);
    CHECK_INT(own.lsn, 4160);
    d.user_identifier[0] = 'S';
    const struct mqx_common *other = mqx_common_for(MAKER, &head, &d, true);
    mqx_common_take(&own, MAKER, (const void *)other->record);
    CHECK_INT(own.lsn, 0);
    own.lsn = 4160;
    mqx_common_take(&own, MAKER + 1, (const void *)other->record);
    CHECK_INT(own.lsn, 0);
}

/* Under checksums that hold. */
TEST(random_short_records_are_refused_or_lead_nowhere_outside)
{
    struct test_random random = {test_seed()};
    struct mqx_decoded got;
    uint32_t accepted = 0;
    const struct mqx_record_head head = head_of(PS_REC_PUT, 1);
    const struct ps_descriptor d = descriptor_of(1);
    struct mqx_common *common = mqx_common_for(MAKER, &head, &d, true);
    for (int round = 0; round < 100000; round++) {
        const uint32_t size = 24 + 8 * (uint32_t)test_below(&random, 40);
        unsigned char *exact = malloc(common->length + size);
        CHECK(exact != NULL);
        struct psj_short *record = (void *)(exact + common->length);
        struct ps_short_put *put = (void *)(record + 1);
        memcpy(exact, common->record, common->length);
        for (uint32_t i = 0; i < size; i++) {
            ((unsigned char *)record)[i] = (unsigned char)test_below(&random, 256);
        }
        record->eighths = (uint16_t)(size / 8);
        record->type = (uint8_t)(test_below(&random, 4) | PS_MUST_UNDERSTAND);
        record->flags = (uint8_t)(PS_FLAG_SHORT | test_below(&random, 8) << PS_PADDING_SHIFT);
        record->common = common->length;
        if (size >= 32) {
            put->fields &= test_below(&random, 8) == 0 ? UINT32_MAX : PS_SHORT_KNOWN;
            put->time = test_below(&random, 2) == 0 ? 0 : put->time;
            const uint32_t zeroes = size - 32 < 7 ? size - 32 : 7;
            memset(exact + common->length + size - zeroes, 0, zeroes);
        }
        record->crc = mqx_short_crc(((const struct psj_record *)(void *)common->record)->crc,
                                    record, size);
        const int status = mqx_record_decode(record, size, common->length, &got);
        CHECK(status == 0 || status == MQRC_OBJECT_DAMAGED);
        accepted += status == 0;
        if (status == 0 && got.body != NULL) {
            CHECK(got.body + got.body_length <= (unsigned char *)record + size);
        }
        free(exact);
    }
    CHECK(accepted > 100);
}

TEST_MAIN()
