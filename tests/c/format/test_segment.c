/* Claims of segment.c: names, header pages and flush batches are recognised when they are what they
 * should be where they are, and in no other case. */
#include "fixtures/memory_io.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/siphash.h"
#include "fixtures/harness.h"
#include "format/record_codec.h"
#include "format/segment.h"

static const uint8_t qm_id[16] = "queue manager 1";

TEST(a_name_gives_its_kind_and_number_and_no_other_spelling_does)
{
    static const enum mqx_file_kind kinds[] = {MQX_FILE_SEGMENT, MQX_FILE_SPARE,
                                               MQX_FILE_HALF_MADE};
    static const uint64_t numbers[] = {1, 10, 9999999999, 10000000000, UINT64_MAX};
    static const char *const others[] = {
        "", "1.psj", "0000000001.psjx", "0000000001.tmp", "spare-1.psj", "spare-.psj",
        "x0000000001.psj", "00000000010.psj", "0000000001", "+000000001.psj",
        "spare-0000000001.psc",
    };
    char name[MQX_FILE_NAME_SIZE];
    uint64_t number = 0;
    for (size_t k = 0; k < MQX_ARRAY_COUNT(kinds); k++) {
        for (size_t i = 0; i < MQX_ARRAY_COUNT(numbers); i++) {
            mqx_file_name(name, kinds[k], numbers[i]);
            CHECK_INT(mqx_file_kind_of(name, &number), kinds[k]);
            CHECK(number == numbers[i]);
        }
    }
    for (size_t i = 0; i < MQX_ARRAY_COUNT(others); i++) {
        CHECK_INT(mqx_file_kind_of(others[i], &number), MQX_FILE_OTHER);
    }
}

TEST(a_spare_is_a_whole_file_of_zeroes_and_a_failure_leaves_no_spare)
{
    static unsigned char content[PS_MIN_SEGMENT], zeroes[PS_MIN_SEGMENT];
    struct memory_io *files = memory_io_new();
    memory_io_region_dir(files, "/journal");
    struct mqx_io *io = memory_io_table(files);
    const int dir = io->ops->open_dir(io, "/journal");
    memset(content, 1, sizeof content);
    CHECK_INT(mqx_spare_create(io, dir, 7, PS_MIN_SEGMENT, NULL), 0);
    const int fd = io->ops->open(io, dir, "spare-0000000007.psj", MQX_IO_READ, 0);
    CHECK(fd >= 0);
    CHECK_INT(mqx_io_read_all(io, fd, content, sizeof content, 0), 0);
    CHECK_MEM(content, zeroes, sizeof content);
    memory_io_set_space(files, UINT64_MAX, 100);
    CHECK(mqx_spare_create(io, dir, 8, PS_MIN_SEGMENT, NULL) != 0);
    CHECK(io->ops->open(io, dir, "spare-0000000008.psj", MQX_IO_READ, 0) < 0);
    CHECK(io->ops->open(io, dir, "spare-0000000008.tmp", MQX_IO_READ, 0) < 0);
    memory_io_free(files);
}

/* What is asked of a maker of a spare between its parts. */
struct asked {
    uint64_t made[8];
    int count;
};

static bool ask(void *arg, uint64_t made, uint64_t size)
{
    struct asked *asked = arg;
    CHECK(made < size && asked->count < 8);
    asked->made[asked->count++] = made;
    return asked->count % 2 != 0;
}

/* 64 MiB flushed at once kept a commit beside it for 16 ms. */
TEST(a_paced_spare_is_flushed_in_pieces_of_512_KiB_and_given_up_by_who_leaves)
{
    uint32_t leaving = 0;
    struct asked asked = {.count = 0};
    const struct mqx_spare_pace pace = {.leaving = &leaving, .between = ask, .arg = &asked};
    enum { SIZE = (1 << 20) + 65536 };
    static unsigned char content[SIZE], zeroes[SIZE];
    struct memory_io *files = memory_io_new();
    memory_io_region_dir(files, "/journal");
    struct mqx_io *io = memory_io_table(files);
    const int dir = io->ops->open_dir(io, "/journal");
    CHECK_INT(mqx_spare_create(io, dir, 7, SIZE, NULL), 0);
    CHECK_INT(memory_io_calls(files, MEMORY_SYNC), 1);
    CHECK_INT(mqx_spare_create(io, dir, 8, SIZE, &pace), 0);
    CHECK_INT(memory_io_calls(files, MEMORY_SYNC), 1 + 3);
    CHECK_INT(asked.count, 2);
    CHECK_INT(asked.made[0], 1 << 19);
    CHECK_INT(asked.made[1], 1 << 20);
    const int fd = io->ops->open(io, dir, "spare-0000000008.psj", MQX_IO_READ, 0);
    CHECK(fd >= 0);
    memset(content, 1, sizeof content);
    CHECK_INT(mqx_io_read_all(io, fd, content, sizeof content, 0), 0);
    CHECK_MEM(content, zeroes, sizeof content);
    leaving = 1;
    CHECK_INT(mqx_spare_create(io, dir, 9, SIZE, &pace), MQX_LEAVING);
    CHECK_INT(memory_io_calls(files, MEMORY_SYNC), 1 + 3);
    CHECK_INT(io->ops->open(io, dir, "spare-0000000009.psj", MQX_IO_READ, 0), -ENOENT);
    CHECK_INT(io->ops->open(io, dir, "spare-0000000009.tmp", MQX_IO_READ, 0), -ENOENT);
    memory_io_free(files);
}

TEST(an_archived_name_has_the_timeline_and_a_copy_only_when_there_is_one)
{
    char name[MQX_FILE_NAME_SIZE];
    mqx_archive_name(name, 0, 12, 0);
    CHECK(strcmp(name, "0000000000-0000000012.psj") == 0);
    mqx_archive_name(name, 3, 12, 7);
    CHECK(strcmp(name, "0000000003-0000000012-07.psj") == 0);
    mqx_archive_name(name, UINT64_MAX, UINT64_MAX, MQX_ARCHIVE_COPIES - 1);
    CHECK(strlen(name) < MQX_FILE_NAME_SIZE);
}

static struct psj_segment header_of(uint64_t number)
{
    struct psj_segment header = {
        .segment_no = number,
        .generation = 5,
        .base_lsn = number == 1 ? 0 : 65536,
        .size = 65536,
        .prev_end_lsn = number == 1 ? 0 : 8192,
    };
    memcpy(header.qm_id, qm_id, sizeof qm_id);
    mqx_segment_seal(&header);
    return header;
}

TEST(a_header_is_verified_for_its_queue_manager_number_and_length)
{
    static const uint8_t other[16] = "queue manager 2";
    const struct psj_segment header = header_of(2);
    CHECK_INT(mqx_segment_verify(&header, qm_id, 2, 65536), 0);
    CHECK_INT(mqx_segment_verify(&header, other, 2, 65536), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "another queue manager") != NULL);
    CHECK_INT(mqx_segment_verify(&header, qm_id, 3, 65536), MQRC_OBJECT_DAMAGED);
    CHECK_INT(mqx_segment_verify(&header, qm_id, 2, 65536 + 4096), MQRC_OBJECT_DAMAGED);
}

TEST(any_changed_byte_of_a_header_is_found)
{
    struct psj_segment header = header_of(1);
    CHECK_INT(mqx_segment_verify(&header, qm_id, 1, 65536), 0);
    for (size_t i = 0; i < sizeof header; i++) {
        ((unsigned char *)&header)[i] ^= 0x10;
        CHECK_INT(mqx_segment_verify(&header, qm_id, 1, 65536), MQRC_OBJECT_DAMAGED);
        ((unsigned char *)&header)[i] ^= 0x10;
    }
}

TEST(a_header_with_a_right_checksum_and_impossible_values_is_refused)
{
    struct psj_segment good = header_of(2), bad[7] = {good, good, good, good, good, good, good};
    bad[0].base_lsn += 1;
    bad[1].size = 4096;
    bad[2].prev_end_lsn = bad[2].base_lsn + MQX_PAGE_SIZE;
    bad[3].prev_end_lsn = 0;
    bad[4].incompatible = 1;
    bad[5].zero[100] = 1;
    bad[6].base_lsn = (uint64_t)INT64_MAX & ~(uint64_t)(MQX_PAGE_SIZE - 1);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        bad[i].crc = mqx_crc32c(0, &bad[i], offsetof(struct psj_segment, crc));
        CHECK_INT(mqx_segment_verify(&bad[i], qm_id, 2, bad[i].size), MQRC_OBJECT_DAMAGED);
    }
}

static unsigned char batch[MQX_PAGE_SIZE] MQX_ALIGNED(8);
static const uint8_t salt[16] = "random, they say";
static const struct mqx_flush_batch_position home = {qm_id, salt, 2, 5, 65536 + MQX_PAGE_SIZE};

/* A batch of `count` records at `home`; its length. */
static uint32_t build(uint32_t count)
{
    struct psj_batch *header = (struct psj_batch *)(void *)batch;
    uint32_t length = sizeof *header;
    struct mqx_siphash hash;
    uint32_t crcs[8] = {0};
    CHECK(count <= MQX_ARRAY_COUNT(crcs));
    memset(batch, 0, sizeof batch);
    for (uint32_t i = 0; i < count; i++) {
        const struct mqx_record_head head = {.type = PS_REC_GET, .unit_id = 1, .number = i + 1};
        const uint32_t at = length;
        length += mqx_encode_plain(batch + length, &head);
        crcs[i] = ((const struct psj_record *)(const void *)(batch + at))->crc;
    }
    *header = (struct psj_batch){.magic = PS_BATCH_MAGIC, .lsn = home.lsn, .length = length,
                                 .record_count = count, .segment_no = home.segment_no};
    mqx_siphash_begin(&hash, salt);
    header->records = mqx_siphash_finish(&hash, crcs, count * sizeof crcs[0]);
    header->hash = mqx_flush_batch_hash(&home, header);
    return length;
}

TEST(a_flush_batch_is_valid_at_its_position_alone)
{
    for (uint32_t count = 0; count < 5; count++) {
        const uint32_t length = build(count);
        CHECK(mqx_flush_batch_valid(&home, batch, sizeof batch));
        CHECK(mqx_flush_batch_valid(&home, batch, length));
        CHECK(!mqx_flush_batch_valid(&home, batch, length - 8));
        struct mqx_flush_batch_position moved[5] = {home, home, home, home, home};
        moved[0].lsn += MQX_PAGE_SIZE;
        moved[1].generation += 1;
        moved[2].segment_no += 1;
        moved[3].qm_id = (const uint8_t *)"queue manager 2";
        moved[4].salt = (const uint8_t *)"of another use  ";
        CHECK(mqx_flush_batch_is_at(&home, (const void *)batch));
        for (size_t i = 0; i < MQX_ARRAY_COUNT(moved); i++) {
            CHECK(!mqx_flush_batch_valid(&moved[i], batch, sizeof batch));
            CHECK(!mqx_flush_batch_is_at(&moved[i], (const void *)batch));
        }
    }
}

TEST(a_header_is_proven_without_its_records_and_by_no_other_change_of_it)
{
    const uint32_t length = build(3);
    memset(batch + sizeof(struct psj_batch), 0x5a, length - sizeof(struct psj_batch));
    CHECK(mqx_flush_batch_is_at(&home, (const void *)batch));
    CHECK(!mqx_flush_batch_valid(&home, batch, sizeof batch));
    for (uint32_t bit = 0; bit < sizeof(struct psj_batch) * 8; bit++) {
        batch[bit / 8] ^= (unsigned char)(1u << bit % 8);
        CHECK(!mqx_flush_batch_is_at(&home, (const void *)batch));
        batch[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

TEST(any_flipped_bit_of_a_flush_batch_is_found)
{
    const uint32_t length = build(3);
    for (uint32_t bit = 0; bit < length * 8; bit++) {
        batch[bit / 8] ^= (unsigned char)(1u << bit % 8);
        CHECK(!mqx_flush_batch_valid(&home, batch, sizeof batch));
        batch[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    CHECK(mqx_flush_batch_valid(&home, batch, sizeof batch));
}

TEST_MAIN()
