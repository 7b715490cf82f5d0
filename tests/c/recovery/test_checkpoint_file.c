/*
 * test_checkpoint_file.c - proves checkpoint_file.h: what is written is read back with its totals,
 * and a file with one wrong bit is refused, before it has its name or after.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "recovery/checkpoint_file.h"

static struct psc_message before[FIXTURE_LISTED_MAX];

#define FIXTURE(name, segment)                                                                     \
    FIXTURE_OF(name, segment);                                                                     \
    CHECK_INT(fixture_flush(&name), 0)

static bool exists(struct journal_fixture *fixture, const char *path)
{
    uint64_t size = 0;
    return memory_io_bytes(fixture->files, path, &size) != NULL;
}

static const uint8_t id[16] = {7};

static struct psc_header header_of(uint64_t next_number, uint64_t next_unit_id)
{
    return (struct psc_header){.end_lsn = 8192,
                               .begin_segment = 1,
                               .next_number = next_number,
                               .next_unit_id = next_unit_id};
}

static int write_with(struct journal_fixture *fixture, struct psc_header header, uint32_t type,
                      const struct psc_message *messages, uint32_t count)
{
    struct mqx_checkpoint_writer writer;
    void *to = NULL;
    uint32_t most = 0;
    uint64_t size = 0;
    memcpy(header.qm_id, id, sizeof id);
    CHECK_INT(mqx_checkpoint_file_begin(&writer, fixture->io, fixture->store.checkpoint_dir, id,
                                        8192, false),
              0);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_INT(mqx_checkpoint_file_reserve(&writer, type, sizeof *messages, &to, &most), 0);
        memcpy(to, &messages[i], sizeof *messages);
        mqx_checkpoint_file_added(&writer, 1, sizeof *messages);
    }
    return mqx_checkpoint_file_finish(&writer, &header, &size);
}

/* Lines of messages that have different numbers and tags, and are not delayed. */
static void make_lines(uint32_t count)
{
    memset(before, 3, sizeof *before * count);
    for (uint32_t i = 0; i < count; i++) {
        before[i].number = i + 1;
        before[i].due_us = 0;
        before[i].tag_msg_id = (i + 1) * 0x9e3779b97f4a7c15u;
    }
}

static int write_file(struct journal_fixture *fixture, const struct psc_message *messages,
                      uint32_t count)
{
    return write_with(fixture, header_of(1, 1), PSC_MESSAGES, messages, count);
}

TEST(a_checkpoint_file_is_written_in_blocks_and_read_back_with_its_totals)
{
    FIXTURE(fixture, 65536);
    struct mqx_checkpoint_reader reader;
    struct psc_block block = {0};
    const unsigned char *payload;
    uint32_t blocks = 0, messages = 0;
    make_lines(12000);
    CHECK_INT(write_file(&fixture, before, 12000), 0);
    CHECK_INT(mqx_checkpoint_file_open(&reader, fixture.io, fixture.store.checkpoint_dir,
                                       "0000000000002000.psc", id, MQX_IO_READ),
              0);
    while (!reader.ended) {
        CHECK_INT(mqx_checkpoint_file_next(&reader, &block, &payload), 0);
        messages += block.type == PSC_MESSAGES ? block.count : 0;
        blocks += 1;
    }
    CHECK_INT(messages, 12000);
    CHECK_INT(blocks, 3);
    mqx_checkpoint_file_close(&reader);
    CHECK_INT(mqx_checkpoint_file_open(&reader, fixture.io, fixture.store.checkpoint_dir,
                                       "0000000000002000.psc", (const uint8_t[16]){8},
                                       MQX_IO_READ),
              MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "another queue manager") != NULL);
}

/* 16 bytes of number and tag differ. */
TEST(messages_of_units_of_work_take_columns_as_those_of_queues_do)
{
    enum { COUNT = 5000 };
    FIXTURE(fixture, 65536);
    struct mqx_checkpoint_reader reader;
    struct psc_block block = {0};
    struct mqx_message_columns columns;
    struct psc_message found;
    const unsigned char *payload;
    make_lines(COUNT);
    CHECK_INT(write_with(&fixture, header_of(1, 1), PSC_UNIT_PUTS, before, COUNT), 0);
    CHECK_INT(mqx_checkpoint_file_open(&reader, fixture.io, fixture.store.checkpoint_dir,
                                       "0000000000002000.psc", id, MQX_IO_READ),
              0);
    CHECK(reader.window.file_size < COUNT * 16);
    CHECK_INT(mqx_checkpoint_file_next(&reader, &block, &payload), 0);
    CHECK_INT(block.type, PSC_UNIT_PUTS);
    CHECK(mqx_columns_open(&columns, payload, block.length, COUNT));
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(mqx_columns_next(&columns, &found, 1));
        CHECK_INT(found.number, i + 1);
        CHECK(found.tag_msg_id == before[i].tag_msg_id && found.lsn == before[i].lsn);
    }
    mqx_checkpoint_file_close(&reader);
}

TEST(a_file_that_the_medium_gave_back_wrong_is_not_named_a_checkpoint)
{
    FIXTURE(fixture, 65536);
    const struct memory_fault fault = {.kind = MEMORY_FAULT_FLIP, .at = 1, .for_ever = true,
                                       .detail = 50000, .ops = 1u << MEMORY_READ};
    make_lines(100);
    memory_io_set_fault(fixture.files, &fault);
    CHECK_INT(write_file(&fixture, before, 100), MQRC_OBJECT_DAMAGED);
    memory_io_set_fault(fixture.files, NULL);
    CHECK(!exists(&fixture, FIXTURE_HOME "/checkpoint/0000000000002000.psc"));
    CHECK(!exists(&fixture, FIXTURE_HOME "/checkpoint/0000000000002000.tmp"));
}

TEST(damage_of_any_byte_is_found_and_costs_nothing_but_a_longer_replay)
{
    FIXTURE_OF(fixture, 32768);
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 100, NULL), 0);
    CHECK_INT(fixture_put(&fixture, 0, 2, 4, 100, NULL), 0);
    CHECK_INT(fixture_end(&fixture), 0);
    CHECK_INT(fixture_open(&fixture), 0);
    static char path[64];
    uint64_t size = 0;
    snprintf(path, sizeof path, "%s", fixture_checkpoint_path(&fixture));
    (void)memory_io_bytes(fixture.files, path, &size);
    CHECK(size > 4096);
    fixture_crash(&fixture);
    memory_io_freeze(fixture.files);
    for (uint64_t byte = 0; byte < size; byte += byte < 128 || byte >= 4088 ? 1 : 61) {
        memory_io_flip_bit(fixture.files, path, byte * 8 + byte % 8);
        CHECK_INT(fixture_open(&fixture), 0);
        CHECK(fixture.report.damaged_checkpoint != 0);
        CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, before), "1 2");
        fixture_crash(&fixture);
        memory_io_restore(fixture.files);
    }
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture.report.damaged_checkpoint, 0);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, before), "1 2");
}

static int write_counters(struct journal_fixture *fixture, uint64_t next_number,
                          uint64_t next_unit_id)
{
    return write_with(fixture, header_of(next_number, next_unit_id), PSC_MESSAGES, before, 1);
}

TEST(counters_that_would_come_to_0_are_refused_with_their_offset)
{
    static const uint64_t wrong[] = {0, PS_NUMBER_LIMIT, UINT64_MAX};
    FIXTURE(fixture, 65536);
    make_lines(1);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(wrong); i++) {
        CHECK_INT(write_counters(&fixture, wrong[i], 1), MQRC_OBJECT_DAMAGED);
        CHECK(strstr(mqx_error_text(), "offset 72: the next message number") != NULL);
        CHECK_INT(write_counters(&fixture, 1, wrong[i]), MQRC_OBJECT_DAMAGED);
        CHECK(strstr(mqx_error_text(), "offset 80: the next unit id") != NULL);
    }
    CHECK_INT(write_counters(&fixture, PS_NUMBER_LIMIT - 1, PS_NUMBER_LIMIT - 1), 0);
}

TEST_MAIN()
