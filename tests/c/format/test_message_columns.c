/*
 * test_message_columns.c - proves message_columns.h: what is encoded is decoded to the same
 * messages in few bytes, and a payload that contradicts itself is refused, whatever it says.
 */
#include "fixtures/harness.h"

#include "format/message_columns.h"

enum { COUNT = 200 };

static struct psc_message messages[COUNT], back[COUNT];
static unsigned char bytes[MQX_COLUMNS_MAX(COUNT)] MQX_ALIGNED(8);

static bool decode(uint64_t length, uint32_t count)
{
    struct mqx_message_columns columns;
    bool sound = mqx_columns_open(&columns, bytes, length, count);
    for (uint32_t at = 0; at < count && sound;) {
        const uint32_t now = count - at < MQX_COLUMNS_STEP ? count - at : MQX_COLUMNS_STEP;
        sound = mqx_columns_next(&columns, &back[at], now);
        at += now;
    }
    return sound;
}

/* Persistent messages of one queue, of about 256 bytes. */
static void make_ordinary(void)
{
    memset(messages, 0, sizeof messages);
    for (uint32_t k = 0; k < COUNT; k++) {
        messages[k] = (struct psc_message){.number = 1000000007 + 3 * k,
                                           .lsn = (1ull << 40) + 512 * k,
                                           .first_lsn = (1ull << 40) + 512 * k,
                                           .tag_msg_id = 0x9e3779b97f4a7c15u * (k + 1),
                                           .object = 7,
                                           .object_gen = 1,
                                           .length = 250 + k % 10,
                                           .priority = 4,
                                           .placement = 4,
                                           .record_length = 448};
    }
}

TEST(ordinary_messages_take_less_than_32_bytes_each)
{
    make_ordinary();
    const uint64_t length = mqx_columns_encode(bytes, messages, COUNT);
    CHECK(length < COUNT * 20);
    CHECK(decode(length, COUNT));
    CHECK_MEM(back, messages, sizeof messages);
    for (uint32_t k = 0; k < COUNT; k++) {
        messages[k].tag_correl_id = ~messages[k].tag_msg_id;
    }
    CHECK(mqx_columns_encode(bytes, messages, COUNT) < COUNT * 32);
}

TEST(any_messages_come_back_as_they_were)
{
    uint64_t state = 1;
    for (uint32_t round = 0; round < 500; round++) {
        const uint32_t count = round % COUNT + 1;
        unsigned char *raw = (unsigned char *)messages;
        for (size_t i = 0; i < sizeof messages; i++) { /* fields of few and of many values */
            state = state * 6364136223846793005u + 1442695040888963407u;
            raw[i] = round % 3 == 0 || state >> 60 < round % 16 ? (unsigned char)(state >> 40) : 0;
        }
        for (uint32_t k = 0; k < count; k++) {
            messages[k].number += k;
            messages[k].zero = 0;
            messages[k].due_us = round % 2 == 0 ? 0 : messages[k].due_us % (PS_DUE_MAX + 1);
        }
        const uint64_t length = mqx_columns_encode(bytes, messages, count);
        CHECK(length % 8 == 0 && length <= MQX_COLUMNS_MAX(count));
        CHECK(decode(length, count));
        CHECK_MEM(back, messages, count * sizeof *messages);
    }
}

/* Of a checkpoint over the reserve, whose blocks end elsewhere. */
TEST(no_messages_take_more_than_is_said_of_them_however_they_are_divided)
{
    static struct psc_message some[COUNT];
    static unsigned char other[MQX_COLUMNS_MAX(COUNT)];
    struct mqx_columns_reach reach = {.blocks = 0};
    struct psc_columns header;
    uint64_t lsn = 0;
    make_ordinary();
    for (uint32_t k = 0; k < COUNT; k += COUNT / 4) {
        for (uint32_t i = 0; i < COUNT / 4; i++) {
            messages[k + i].placement = (uint8_t)(9 - k / (COUNT / 4));
        }
        (void)mqx_columns_encode(bytes, &messages[k], COUNT / 4);
        memcpy(&header, bytes, sizeof header);
        mqx_columns_note(&reach, &header, COUNT / 4);
    }
    const uint32_t most =
        mqx_columns_line_most(&reach, messages[COUNT - 1].number + 1, &lsn) + 4; /* LSN */
    CHECK(reach.messages == COUNT && reach.blocks == 4);
    CHECK(lsn == messages[0].lsn);
    CHECK(most < 32);
    for (uint32_t step = 1; step < COUNT / 2; step = step * 3 + 1) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < COUNT; k += step) {
            some[count++] = messages[k];
        }
        CHECK(mqx_columns_encode(other, some, count) <=
              sizeof header + (uint64_t)count * most + 17 * 7);
    }
}

TEST(a_payload_of_another_length_or_count_is_refused)
{
    make_ordinary();
    const uint64_t length = mqx_columns_encode(bytes, messages, COUNT);
    for (uint64_t other = 0; other < sizeof bytes; other += 8) {
        CHECK_INT(decode(other, COUNT), other == length);
    }
    CHECK(!decode(length, COUNT + 8));
    CHECK(!decode(length, COUNT - 8));
    CHECK(!decode(length, UINT32_MAX));
    CHECK(!decode(length, 0));
}

TEST(many_messages_of_one_number_are_refused_as_no_bytes_bound_their_count)
{
    memset(messages, 0, sizeof messages);
    CHECK_INT(mqx_columns_encode(bytes, messages, COUNT), sizeof(struct psc_columns));
    CHECK(decode(sizeof(struct psc_columns), 1));
    CHECK(!decode(sizeof(struct psc_columns), 2));
    CHECK(!decode(sizeof(struct psc_columns), UINT32_MAX));
}

/* A header with one thing changed. */
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        make_ordinary();                                                                           \
        const uint64_t length = mqx_columns_encode(bytes, messages, COUNT);                        \
        struct psc_columns *header = (void *)bytes;                                                \
        CHECK(decode(length, COUNT));                                                              \
        change;                                                                                    \
        CHECK(!decode(length, COUNT));                                                             \
    } while (0)

TEST(columns_that_contradict_themselves_are_refused)
{
    REFUSED(header->zero[5] = 1);
    REFUSED(header->due_width = 8);
    REFUSED(header->due_width = 4);
    for (uint32_t i = 0; i < PSC_COLUMN_COUNT; i++) {
        for (uint32_t width = 0; width < 256; width++) {
            REFUSED(header->width[i] = (uint8_t)(width != header->width[i] ? width : 255));
        }
    }
    REFUSED(header->base[4] = 1);                      /* the tag has 8 bytes and no base */
    REFUSED(header->base[7] = 1ull << 32);             /* object */
    REFUSED(header->base[12] = 256);                   /* placement */
    REFUSED(header->base[0] = UINT64_MAX - 3);         /* numbers exceed 64 bits */
    REFUSED(header->base[9] = UINT32_MAX - 8);         /* lengths exceed 32 bits */
}

TEST(padding_that_is_not_zero_is_refused)
{
    make_ordinary();
    const uint64_t length = mqx_columns_encode(bytes, messages, 3);
    const uint64_t lengths = length - 8; /* three of one byte, then padding */
    CHECK(decode(length, 3));
    for (uint64_t at = lengths; at < length; at++) {
        bytes[at] ^= 1;
        CHECK_INT(decode(length, 3), at < lengths + 3);
        bytes[at] ^= 1;
    }
}

TEST_MAIN()
