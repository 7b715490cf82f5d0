/*
 * test_checkpoint.c - proves checkpoint.h: a checkpoint says what the index holds, the replay
 * begins low enough, nothing it needs is freed, and no crash finds the queue manager without one.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "fixtures/disk_states.h"

static struct psc_message listed[RIG_LISTED_MAX];
static struct psc_message before[RIG_LISTED_MAX];

#define RIG(name, segment) \
    RIG_OF(name, segment); \
    CHECK_INT(rig_flush(&name), 0)

static void put_many(struct rig *rig, uint64_t first, uint32_t count, uint32_t length)
{
    for (uint64_t number = first; number < first + count; number++) {
        CHECK_INT(rig_put(rig, 0, number, (int)(number % 10), length, NULL), 0);
    }
    CHECK_INT(rig_flush(rig), 0);
}

static bool exists(struct rig *rig, const char *path)
{
    uint64_t size = 0;
    return memory_io_bytes(rig->files, path, &size) != NULL;
}

TEST(after_a_checkpoint_the_same_messages_come_back_without_the_old_journal)
{
    RIG(rig, 1u << 20);
    put_many(&rig, 1, 12000, 20); /* more than one block of the checkpoint */
    RIG_REOPEN(rig);
    const uint32_t count = rig_list(&rig, RIG_QUEUE, before);
    CHECK_INT(count, 12000);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    RIG_REOPEN(rig);
    CHECK_INT(rig.report.messages, 12000);
    CHECK_INT(rig.report.records_replayed, 0);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), count);
    CHECK_MEM(listed, before, sizeof *listed * count);
    for (uint32_t i = 0; i < count; i += 611) {
        CHECK(rig_verify(&rig, &listed[i]));
    }
}

TEST(the_replay_begins_at_the_first_record_of_the_oldest_unit_in_flight)
{
    RIG(rig, 65536);
    RIG_REOPEN(rig);
    put_many(&rig, 1, 3, 20);
    const uint32_t unit = rig_unit(&rig);
    struct mqx_append first;
    CHECK_INT(rig_put(&rig, unit, 10, 4, 20, &first), 0);
    put_many(&rig, 20, 3, 20);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK_INT(rig.store.region.journal->checkpoint_begin, first.lsn);
    CHECK_INT(rig_commit(&rig, unit, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_INT(rig.report.begin_lsn, first.lsn);
    CHECK(rig_list(&rig, RIG_QUEUE, listed) >= 4); /* 1..3 are not in this rig's live index */
}

TEST(a_unit_that_straddles_the_begin_lsn_and_was_over_before_is_not_replayed_by_halves)
{
    RIG(rig, 65536);
    put_many(&rig, 1, 1, 20);
    RIG_REOPEN(rig);
    const uint32_t over = rig_unit(&rig), open = rig_unit(&rig);
    struct mqx_append begin;
    CHECK_INT(rig_record(&rig, over, PS_REC_GET, 1, NULL), 0);
    CHECK_INT(rig_put(&rig, open, 50, 4, 20, &begin), 0);
    CHECK_INT(rig_record(&rig, over, PS_REC_GET, 2, NULL), 0);
    CHECK_INT(rig_commit(&rig, over, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    rig_unit_over(&rig, over);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK_INT(rig.store.region.journal->checkpoint_begin, begin.lsn);
    RIG_REOPEN(rig); /* its COMMIT lies above, its first record below */
    CHECK_INT(rig.report.units_dropped, 1);
}

TEST(an_older_checkpoint_and_the_segments_that_only_it_needed_are_removed)
{
    RIG(rig, 32768);
    static char old_path[64];
    CHECK_INT(rig_end(&rig), 0);
    CHECK_INT(rig_open(&rig), 0);
    snprintf(old_path, sizeof old_path, "%s", rig_checkpoint_path(&rig));
    CHECK(exists(&rig, old_path));
    for (uint64_t number = 1; number <= 40; number++) {
        CHECK_INT(rig_put(&rig, 0, number, 4, 3000, NULL), 0);
        CHECK_INT(number <= 30 ? rig_record(&rig, 0, PS_REC_GET, number, NULL) : 0, 0);
    }
    CHECK_INT(rig_flush(&rig), 0);
    RIG_REOPEN(rig);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 10);
    const uint64_t oldest = listed[0].lsn / 32768 + 1;
    CHECK(oldest > 2);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(!exists(&rig, old_path));
    CHECK(!exists(&rig, rig_segment_path(1)));
    CHECK(!exists(&rig, rig_segment_path(oldest - 1)));
    CHECK(exists(&rig, rig_segment_path(oldest)));
    RIG_REOPEN(rig);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 10);
    for (uint32_t i = 0; i < 10; i++) {
        CHECK(rig_verify(&rig, &listed[i]));
    }
}

TEST(a_chunked_message_keeps_all_segments_from_its_first_piece_on)
{
    RIG(rig, 32768);
    CHECK_INT(rig_put_chunked(&rig, 0, 1, 4, 150000, 12000, NULL), 0);
    put_many(&rig, 2, 1, 20);
    RIG_REOPEN(rig);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    for (uint32_t restart = 0; restart < 2; restart++) {
        CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 2);
        CHECK(rig_verify(&rig, &listed[0]));
        CHECK(rig_verify(&rig, &listed[1]));
        CHECK(exists(&rig, rig_segment_path(1)));
        RIG_REOPEN(rig);
    }
}

TEST(an_unchanged_queue_manager_takes_no_checkpoint)
{
    RIG(rig, 65536);
    put_many(&rig, 1, 5, 20);
    RIG_REOPEN(rig);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    memory_io_record(rig.files, RIG_HOME);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    TAKE_TRACE(trace, rig);
    CHECK_INT(trace->event_count, 0);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_CLEAN), 0); /* but it was not clean */
    RIG_REOPEN(rig);
    CHECK(rig.report.clean);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 5);
}

TEST(a_large_checkpoint_is_flushed_every_mebibyte)
{
    RIG(rig, 1u << 20);
    put_many(&rig, 1, 14000, 8);
    RIG_REOPEN(rig);
    memory_io_record(rig.files, RIG_HOME "/checkpoint");
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    TAKE_TRACE(trace, rig);
    uint64_t unflushed = 0, largest = 0;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct memory_event *event = &trace->events[i];
        unflushed = event->kind == MEMORY_EV_SYNC ? 0 : unflushed;
        unflushed += event->kind == MEMORY_EV_WRITE ? event->size : 0;
        largest = unflushed > largest ? unflushed : largest;
    }
    CHECK(largest > 500000);
    CHECK(largest < 2200000);
}

TEST(a_checkpoint_is_due_when_the_tail_has_grown)
{
    RIG(rig, 32768);
    rig.store.region.journal->limit = 256u << 10;
    CHECK(!mqx_checkpoint_due(&rig.store));
    put_many(&rig, 1, 20, 3000);
    CHECK(mqx_checkpoint_due(&rig.store));
}

TEST(a_full_disk_fails_the_checkpoint_and_keeps_the_old_one)
{
    RIG(rig, 65536);
    put_many(&rig, 1, 100, 20);
    RIG_REOPEN(rig);
    for (uint64_t at = 1; at < 12; at++) {
        const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = at, .error = 28,
                                           .ops = 1u << MEMORY_WRITE | 1u << MEMORY_SYNC |
                                                  1u << MEMORY_OPEN | 1u << MEMORY_RENAME};
        memory_io_set_fault(rig.files, &fault);
        int status = mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY);
        const bool struck = memory_io_fault_strikes(rig.files) != 0;
        memory_io_set_fault(rig.files, NULL);
        CHECK(struck == (status != 0));
        CHECK_INT(status != 0 && mqx_comp_code(status) != MQCC_FAILED, 0);
        if (status == 0) {
            CHECK(at > 5);
            break;
        }
        RIG_REOPEN(rig);
        CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 100);
    }
}

/* ---- the image of the orderly end ---- */

static const struct {
    struct ps_attr attr;
    int64_t value;
} npm_high = {{78, 1, 8}, 10};

static int load_image(struct rig *rig, uint64_t number, uint32_t length, bool ext)
{
    struct ps_descriptor d = {.placement = 4, .priority = 4, .md_version = 2, .has_ext = ext};
    const struct ps_descriptor_ext e = {.msg_flags = 77};
    unsigned char *body = malloc(length + 1);
    uint32_t slot = 0;
    for (uint32_t i = 0; i < length; i++) {
        body[i] = rig_byte(number, i);
    }
    const struct mqx_loaded loaded = {.m = {.number = number,
                                            .object = RIG_QUEUE,
                                            .object_gen = RIG_GENERATION,
                                            .length = length,
                                            .priority = 4,
                                            .placement = 4,
                                            .has_ext = ext,
                                            .backout_count = (uint32_t)number},
                                      .descriptor = &d,
                                      .ext = ext ? &e : NULL,
                                      .body = body};
    memcpy(d.msg_id, &number, sizeof number);
    int status = mqx_queue_load(&rig->store, &loaded, &slot);
    free(body);
    return status;
}

/* The non-persistent messages on the queue with right bodies. */
static uint32_t count_image(struct rig *rig)
{
    struct mqx_cursor cursor = {0};
    uint32_t count = 0;
    uint32_t slot = mqx_queue_next_image(&rig->store, RIG_QUEUE, &cursor);
    while (slot != 0) {
        const struct mqx_message *m = mqx_message(&rig->store.region, slot);
        struct ps_descriptor d;
        struct ps_descriptor_ext ext = {0};
        unsigned char *body = malloc(m->length + 1);
        CHECK_INT(mqx_body_read(&rig->store.region, m, &d, &ext, body, m->length), 0);
        bool same = memcmp(d.msg_id, &m->number, 8) == 0 && m->backout_count == m->number;
        same = same && (d.has_ext == 0 || ext.msg_flags == 77);
        for (uint32_t i = 0; i < m->length; i++) {
            same = same && body[i] == rig_byte(m->number, i);
        }
        free(body);
        CHECK(same);
        count += 1;
        slot = mqx_queue_next_image(&rig->store, RIG_QUEUE, &cursor);
    }
    return count;
}

static void make_image(struct rig *rig)
{
    static const uint32_t lengths[] = {0, 1, 5000, 61440, 61441, 150000, 7};
    CHECK_INT(rig_define_with(rig, RIG_QUEUE, RIG_GENERATION, &npm_high, sizeof npm_high), 0);
    CHECK_INT(rig_put(rig, 0, 500, 4, 20, NULL), 0);
    CHECK_INT(rig_flush(rig), 0);
    REOPEN(*rig);
    CHECK_INT(rig_list(rig, RIG_QUEUE, listed), 1);
    for (uint32_t i = 0; i < MQX_ARRAY_COUNT(lengths); i++) {
        CHECK_INT(load_image(rig, 600 + i, lengths[i], i % 2 == 1), 0);
    }
}

TEST(non_persistent_messages_of_a_high_class_queue_survive_an_orderly_end_once)
{
    RIG(rig, 65536);
    make_image(&rig);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_CLEAN), 0);
    REOPEN(rig);
    CHECK(rig.report.clean);
    CHECK_INT(rig.report.image_messages, 7);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 1);
    CHECK_INT(listed[0].number, 500);
    CHECK_INT(count_image(&rig), 7);
    CHECK(rig.store.region.journal->durable > rig.report.end_lsn); /* consumed, durably */
    REOPEN(rig); /* death of the last process: nothing of them comes back */
    CHECK_INT(rig.report.image_messages, 0);
    CHECK_INT(count_image(&rig), 0);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 1);
}

TEST(an_image_outlives_several_orderly_ends_and_order_is_kept)
{
    RIG(rig, 65536);
    make_image(&rig);
    for (int turn = 0; turn < 3; turn++) {
        CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_CLEAN), 0);
        REOPEN(rig);
        CHECK_INT(count_image(&rig), 7);
    }
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_CLEAN_NO_IMAGE), 0);
    REOPEN(rig);
    CHECK_INT(count_image(&rig), 0);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 1);
}

/* ---- the file ---- */

static const uint8_t id[16] = {7};

static int write_file(struct rig *rig, const struct psc_message *messages, uint32_t count)
{
    struct mqx_checkpoint_writer writer;
    struct psc_header header = {.end_lsn = 8192, .begin_segment = 1, .clean = 0};
    void *to = NULL;
    uint32_t most = 0;
    uint64_t size = 0;
    memcpy(header.qm_id, id, sizeof id);
    CHECK_INT(
        mqx_checkpoint_file_begin(&writer, rig->io, rig->store.checkpoint_dir, id, 8192, false), 0);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_INT(mqx_checkpoint_file_room(&writer, PSC_MESSAGES, sizeof *messages, &to, &most), 0);
        memcpy(to, &messages[i], sizeof *messages);
        mqx_checkpoint_file_took(&writer, 1, sizeof *messages);
    }
    return mqx_checkpoint_file_finish(&writer, &header, &size);
}

TEST(a_checkpoint_file_is_written_in_blocks_and_read_back_with_its_totals)
{
    RIG(rig, 65536);
    struct mqx_checkpoint_reader reader;
    struct psc_block block = {0};
    const unsigned char *payload;
    uint32_t blocks = 0, messages = 0;
    memset(before, 3, sizeof before);
    CHECK_INT(write_file(&rig, before, 12000), 0);
    CHECK_INT(mqx_checkpoint_file_open(&reader, rig.io, rig.store.checkpoint_dir,
                                       "0000000000002000.psc", id),
              0);
    while (!reader.ended) {
        CHECK_INT(mqx_checkpoint_file_next(&reader, &block, &payload), 0);
        messages += block.type == PSC_MESSAGES ? block.count : 0;
        blocks += 1;
    }
    CHECK_INT(messages, 12000);
    CHECK_INT(blocks, 3);
    mqx_checkpoint_file_close(&reader);
    CHECK_INT(mqx_checkpoint_file_open(&reader, rig.io, rig.store.checkpoint_dir,
                                       "0000000000002000.psc", (const uint8_t[16]){8}),
              MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "another queue manager") != NULL);
}

TEST(a_file_that_the_medium_gave_back_wrong_is_not_named_a_checkpoint)
{
    RIG(rig, 65536);
    const struct memory_fault fault = {.kind = MEMORY_FAULT_FLIP, .at = 1, .for_ever = true,
                                       .detail = 50000, .ops = 1u << MEMORY_READ};
    memset(before, 3, sizeof *before * 100);
    memory_io_set_fault(rig.files, &fault);
    CHECK_INT(write_file(&rig, before, 100), MQRC_OBJECT_DAMAGED);
    memory_io_set_fault(rig.files, NULL);
    CHECK(!exists(&rig, RIG_HOME "/checkpoint/0000000000002000.psc"));
    CHECK(!exists(&rig, RIG_HOME "/checkpoint/0000000000002000.tmp"));
}

/* ---- power cuts ---- */

struct power_cut {
    struct rig rig;
    uint64_t states;
};

static int after_power_cut(void *arg, const struct disk_state *state)
{
    struct power_cut *cut = arg;
    struct rig *rig = &cut->rig;
    rig->files = state->files;
    rig->io = state->io;
    cut->states += 1;
    int status = rig_open(rig);
    const uint32_t count = status == 0 ? rig_list(rig, RIG_QUEUE, listed) : 0;
    bool right = status == 0 && count == 12;
    for (uint32_t i = 0; i < count && right; i++) {
        right = rig_verify(rig, &listed[i]);
    }
    right = right && rig_put(rig, 0, 900, 4, 3000, NULL) == 0 && rig_flush(rig) == 0;
    rig_crash(rig);
    right = right && rig_open(rig) == 0 && rig_list(rig, RIG_QUEUE, listed) == 13;
    if (!right) {
        printf("\n    %d, %u messages: %s", status, count, mqx_error_text());
    }
    rig_crash(rig);
    return right ? 0 : 1;
}

TEST(a_power_cut_between_any_two_steps_of_checkpoints_and_retirement_finds_everything)
{
    RIG(rig, 32768);
    CHECK_INT(rig_fill_and_crash(&rig), 0);
    memory_io_record(rig.files, RIG_HOME);
    CHECK_INT(rig_open(&rig), 0);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(!exists(&rig, rig_segment_path(1)));
    CHECK(mqx_journal_spare_count(&rig.store) >= 2);
    for (uint64_t number = 100; number <= 112; number++) { /* into the recycled segments */
        const uint32_t unit = rig_unit(&rig);
        CHECK_INT(rig_put(&rig, unit, number, 4, 9000, NULL), 0); /* never committed */
        CHECK_INT(rig_flush(&rig), 0);
    }
    TAKE_TRACE(trace, rig);
    static const uint32_t sectors[] = {4096, 512};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(sectors); i++) {
        struct power_cut cut = {.rig = {.plan = rig.plan}};
        struct disk_states_counts counts;
        const struct disk_states_options options = {.sector = sectors[i],
                                                    .cap = 40,
                                                    .seed = test_seed(),
                                                    .prepare = rig_prepare_state,
                                                    .arg = &cut};
        CHECK_INT(disk_states_run(trace, &options, after_power_cut, &counts), 0);
        printf("%" PRIu64 " ", cut.states);
        CHECK(cut.states > 50);
    }
}

TEST_MAIN()
