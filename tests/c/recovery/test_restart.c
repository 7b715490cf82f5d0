/*
 * test_restart.c - proves restart.h: what is committed comes back in order, whole and once; what
 * is not does not; torn tails are dropped, damage is refused.
 */
#include "fixtures/harness.h"

#include "base/checksum.h"
#include "fixtures/disk_states.h"
#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "recovery/replay.h"
#include "recovery/tail_scan.h"

static struct psc_message listed[RIG_LISTED_MAX];
#define RIG RIG_OF

#define REOPEN(rig) \
    do { \
        rig_crash(&rig); \
        CHECK_INT(rig_open(&rig), 0); \
    } while (0)

/* "3 1 2": the numbers on the queue, in order. */
static const char *numbers_on(struct rig *rig, uint32_t slot)
{
    static char text[4096];
    const uint32_t count = rig_list(rig, slot, listed);
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < count && used + 24 < sizeof text; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, i > 0 ? " " : "",
                                 listed[i].number);
    }
    return text;
}

/* ---- the decision table ---- */

TEST(every_combination_of_tail_facts_fits_exactly_one_case_or_is_impossible)
{
    uint32_t possible = 0;
    for (uint32_t bits = 0; bits < 32; bits++) {
        const struct mqx_tail_facts facts = {
            .has_next = (bits & 1) != 0,
            .at_next = (bits & 2) != 0,
            .below_mark = (bits & 4) != 0,
            .clean_here = (bits & 8) != 0,
            .remains = (bits & 16) != 0,
        };
        uint32_t fitting = 0;
        for (size_t i = 0; i < mqx_tail_case_count; i++) {
            const struct mqx_tail_case *c = &mqx_tail_cases[i];
            const bool fits = (c->has_next < 0 || c->has_next == facts.has_next) &&
                              (c->at_next < 0 || c->at_next == facts.at_next) &&
                              (c->below_mark < 0 || c->below_mark == facts.below_mark) &&
                              (c->clean_here < 0 || c->clean_here == facts.clean_here) &&
                              (c->remains < 0 || c->remains == facts.remains);
            fitting += fits;
        }
        const bool impossible = !facts.has_next && facts.at_next;
        CHECK_INT(fitting, impossible ? 0 : 1);
        CHECK((mqx_tail_decide(&facts) == NULL) == impossible);
        possible += !impossible;
        if (!impossible && !facts.has_next && facts.below_mark) {
            CHECK_INT(mqx_tail_decide(&facts)->verdict, MQX_TAIL_DAMAGE);
        }
    }
    CHECK_INT(possible, 24);
}

/* ---- what takes effect ---- */

TEST(a_new_queue_manager_opens_clean_and_empty_and_nothing_is_written)
{
    __attribute__((cleanup(rig_free))) struct rig rig;
    const struct mqx_region_plan plan = rig_plan(32768);
    rig_create(&rig, &plan);
    memory_io_record(rig.files, RIG_HOME);
    CHECK_INT(rig_open(&rig), 0);
    CHECK(rig.report.clean);
    CHECK_INT(mqx_checkpoint(&rig.store, MQX_CHECKPOINT_CLEAN), 0);
    REOPEN(rig);
    CHECK(rig.report.clean);
    TAKE_TRACE(trace, rig);
    CHECK_INT(trace->event_count, 0);
}

TEST(delivery_order_is_priority_then_put_order_not_commit_order)
{
    RIG(rig, 65536);
    const uint32_t a = rig_unit(&rig), b = rig_unit(&rig);
    CHECK_INT(rig_put(&rig, a, 1, 4, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, b, 2, 4, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, a, 3, 9, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, b, 4, 0, 10, NULL), 0);
    CHECK_INT(rig_commit(&rig, b, NULL), 0);
    CHECK_INT(rig_put(&rig, a, 5, 9, 10, NULL), 0);
    CHECK_INT(rig_commit(&rig, a, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    REOPEN(rig);
    CHECK_STR(numbers_on(&rig, RIG_QUEUE), "3 5 1 2 4");
    CHECK_INT(rig.report.units_dropped, 0);
}

TEST(units_are_whole_or_absent)
{
    RIG(rig, 65536);
    const uint32_t done = rig_unit(&rig), open = rig_unit(&rig), back = rig_unit(&rig);
    CHECK_INT(rig_put(&rig, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, 0, 2, 4, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, 0, 3, 4, 10, NULL), 0);
    CHECK_INT(rig_put(&rig, done, 4, 4, 10, NULL), 0);
    CHECK_INT(rig_record(&rig, done, PS_REC_GET, 1, NULL), 0);
    CHECK_INT(rig_put(&rig, open, 5, 4, 10, NULL), 0);
    CHECK_INT(rig_record(&rig, open, PS_REC_GET, 2, NULL), 0);
    CHECK_INT(rig_put(&rig, back, 6, 4, 10, NULL), 0);
    CHECK_INT(rig_record(&rig, back, PS_REC_GET, 3, NULL), 0);
    CHECK_INT(rig_commit(&rig, done, NULL), 0);
    CHECK_INT(rig_record(&rig, back, PS_REC_BACKOUT, 0, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    REOPEN(rig);
    CHECK_STR(numbers_on(&rig, RIG_QUEUE), "2 3 4");
    CHECK_INT(rig.report.units_dropped, 1);
    CHECK(rig.store.region.journal->next_number > 6); /* of units that are gone, too */
}

TEST(a_put_that_commits_in_one_record_takes_its_pieces_with_it)
{
    RIG(rig, 65536);
    const uint32_t unit = rig_unit(&rig);
    CHECK_INT(rig_put_chunked(&rig, unit, 1, 4, 100000, 15000, NULL), 0);
    CHECK_INT(rig_commit(&rig, unit, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    REOPEN(rig);
    CHECK_STR(numbers_on(&rig, RIG_QUEUE), "1");
    CHECK(rig_verify(&rig, &listed[0]));
}

TEST(ten_thousand_units_in_flight_at_once_are_kept_apart)
{
    RIG(rig, 8u << 20);
    enum { UNITS = 2000 };
    static uint32_t units[UNITS];
    for (uint32_t i = 0; i < UNITS; i++) {
        units[i] = rig_unit(&rig);
    }
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < UNITS; i++) {
            CHECK_INT(rig_put(&rig, units[i], 1 + i * 3 + round, 4, 8, NULL), 0);
        }
    }
    for (uint32_t i = 0; i < UNITS; i += 2) {
        CHECK_INT(rig_commit(&rig, units[UNITS - 2 - i], NULL), 0);
    }
    CHECK_INT(rig_flush(&rig), 0);
    REOPEN(rig);
    CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), UNITS / 2 * 3);
    for (uint32_t i = 0; i < UNITS / 2 * 3; i++) {
        CHECK_INT(listed[i].number, 1 + i / 3 * 6 + i % 3);
    }
    CHECK_INT(rig.report.units_dropped, UNITS / 2);
}

TEST(backout_counts_come_from_backout_records_and_from_units_in_flight)
{
    RIG(rig, 65536);
    struct ps_count count = {.identity = 2, .object = RIG_QUEUE, .count = 3};
    const struct mqx_record_head head = {.type = PS_REC_BACKOUT};
    unsigned char record[128] MQX_ALIGNED(8);
    for (uint64_t number = 1; number <= 3; number++) {
        CHECK_INT(rig_put(&rig, 0, number, 4, 10, NULL), 0);
    }
    struct mqx_append append = {.record = record,
                                .length = mqx_encode_counts(record, &head, &count, 1)};
    CHECK_INT(mqx_journal_append(&rig.store, &append), 0);
    count.count = 2; /* an older count that comes later changes nothing */
    append.length = mqx_encode_counts(record, &head, &count, 1);
    CHECK_INT(mqx_journal_append(&rig.store, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    rig_crash(&rig);
    const struct mqx_in_flight in_flight[] = {{99, RIG_QUEUE, 1}, {3, RIG_QUEUE, 1}};
    rig.in_flight = in_flight;
    rig.in_flight_count = 2;
    CHECK_INT(rig_open(&rig), 0);
    for (int restart = 0; restart < 2; restart++) { /* the second time from the journal alone */
        CHECK_STR(numbers_on(&rig, RIG_QUEUE), "1 2 3");
        CHECK_INT(listed[0].backout_count, 0);
        CHECK_INT(listed[1].backout_count, 3);
        CHECK_INT(listed[2].backout_count, 1);
        REOPEN(rig);
    }
}

TEST(messages_go_with_their_object_and_its_generation)
{
    RIG(rig, 65536);
    CHECK_INT(rig_put(&rig, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(rig_record(&rig, 0, PS_REC_OBJECT_DELETE, 0, NULL), 0);
    CHECK_INT(rig_define(&rig, RIG_QUEUE, RIG_GENERATION + 1), 0);
    CHECK_INT(rig_define(&rig, 7, 1), 0);
    CHECK_INT(rig_flush(&rig), 0);
    REOPEN(rig);
    CHECK_STR(numbers_on(&rig, RIG_QUEUE), "");
    CHECK_INT(rig.report.objects, 2);
    CHECK_INT(mqx_object(&rig.store.region, RIG_QUEUE)->generation, RIG_GENERATION + 1);
}

TEST(the_generation_of_a_slot_whose_object_is_gone_does_not_come_back)
{
    RIG(rig, 65536);
    CHECK_INT(rig_put(&rig, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(rig_record(&rig, 0, PS_REC_OBJECT_DELETE, 0, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    REOPEN(rig);
    CHECK_INT(rig.report.objects, 0);
    CHECK(mqx_object(&rig.store.region, RIG_QUEUE)->generation > RIG_GENERATION);
}

TEST(clear_and_expire_take_messages_away)
{
    RIG(rig, 65536);
    for (uint64_t number = 1; number <= 5; number++) {
        CHECK_INT(rig_put(&rig, 0, number, 4, 10, NULL), 0);
    }
    CHECK_INT(rig_record(&rig, 0, PS_REC_CLEAR, 3, NULL), 0);
    CHECK_INT(rig_record(&rig, 0, PS_REC_EXPIRE, 4, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    REOPEN(rig);
    CHECK_STR(numbers_on(&rig, RIG_QUEUE), "3 5");
}

TEST(numbers_and_unit_ids_go_on_above_everything_seen)
{
    RIG(rig, 65536);
    const uint32_t unit = rig_unit(&rig);
    const uint64_t id = mqx_context(&rig.store.region, unit)->unit_id;
    CHECK_INT(rig_put(&rig, unit, 7777, 4, 10, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    REOPEN(rig);
    CHECK(rig.store.region.journal->next_number > 7777);
    CHECK(mqx_journal_unit_id(&rig.store) > id);
}

/* ---- damage that no crash can make ---- */

static int append_raw(struct rig *rig, const unsigned char *record, uint32_t length)
{
    struct mqx_append append = {.record = record, .length = length};
    return mqx_journal_append(&rig->store, &append);
}

TEST(a_commit_that_disagrees_with_its_unit_is_damage)
{
    for (uint32_t wrong = 0; wrong < 4; wrong++) {
        RIG(rig, 65536);
        const uint32_t unit = rig_unit(&rig);
        const struct mqx_context *context = mqx_context(&rig.store.region, unit);
        unsigned char record[128] MQX_ALIGNED(8);
        CHECK_INT(rig_put(&rig, unit, 1, 4, 10, NULL), 0);
        CHECK_INT(rig_put(&rig, unit, 2, 4, 10, NULL), 0);
        struct ps_commit commit = {context->first_lsn, context->record_count,
                                   context->running_crc};
        commit.first_lsn += wrong == 1 ? 8 : 0;
        commit.record_count += wrong == 2;
        commit.running_crc ^= wrong == 3;
        const struct mqx_record_head head = {.type = PS_REC_COMMIT, .unit_id = context->unit_id};
        CHECK_INT(append_raw(&rig, record, mqx_encode_commit(record, &head, &commit)), 0);
        CHECK_INT(rig_flush(&rig), 0);
        rig_crash(&rig);
        CHECK_INT(rig_open(&rig), wrong == 0 ? 0 : MQRC_OBJECT_DAMAGED);
    }
}

static uint32_t rig_prepare(struct rig *rig, uint32_t unit, uint32_t wrong, uint64_t *out_id)
{
    const struct mqx_context *context = mqx_context(&rig->store.region, unit);
    const struct mqx_record_head head = {.type = PS_REC_PREPARE, .unit_id = context->unit_id};
    const struct ps_xid xid = {.format_id = 1, .gtrid_length = 1, .gtrid = {(uint8_t)unit}};
    const struct ps_prepared prepared = {.prepared_us = 1};
    unsigned char record[512] MQX_ALIGNED(8);
    struct ps_commit commit = {context->first_lsn, context->record_count, context->running_crc};
    commit.first_lsn += wrong == 1 ? 8 : 0;
    commit.record_count += wrong == 2;
    commit.running_crc ^= wrong == 3;
    *out_id = context->unit_id;
    const uint32_t length = mqx_encode_prepare(record, &head, &xid, &prepared, &commit);
    const int status = append_raw(rig, record, length);
    rig_unit_over(rig, unit);
    return (uint32_t)status;
}

TEST(a_preparation_that_disagrees_with_its_unit_is_damage)
{
    for (uint32_t wrong = 0; wrong < 4; wrong++) {
        RIG(rig, 65536);
        const uint32_t unit = rig_unit(&rig);
        uint64_t id = 0;
        CHECK_INT(rig_put(&rig, unit, 1, 4, 10, NULL), 0);
        CHECK_INT(rig_put(&rig, unit, 2, 4, 10, NULL), 0);
        CHECK_INT(rig_prepare(&rig, unit, wrong, &id), 0);
        CHECK_INT(rig_flush(&rig), 0);
        rig_crash(&rig);
        CHECK_INT(rig_open(&rig), wrong == 0 ? 0 : MQRC_OBJECT_DAMAGED);
        CHECK_INT(rig.report.units_prepared, wrong == 0);
        CHECK_INT(rig.report.units_dropped, 0);
    }
}

static int rig_end_units(struct rig *rig, uint16_t type, const uint64_t *ids, uint32_t count)
{
    const struct mqx_record_head head = {.type = type};
    unsigned char record[512] MQX_ALIGNED(8);
    return append_raw(rig, record, mqx_encode_units(record, &head, ids, count));
}

TEST(the_end_of_prepared_units_names_some_of_them_and_passes_over_unknown_ones)
{
    static struct psc_message listed[RIG_LISTED_MAX];
    for (int again = 0; again < 2; again++) { /* in the epoch of the preparation, or a later one */
        RIG(rig, 65536);
        uint64_t ids[8] = {0};
        for (uint32_t n = 0; n < 5; n++) {
            const uint32_t unit = rig_unit(&rig);
            CHECK_INT(rig_put(&rig, unit, 10 + n, 4, 10, NULL), 0);
            CHECK_INT(rig_prepare(&rig, unit, 0, &ids[n]), 0);
        }
        if (again != 0) {
            CHECK_INT(rig_flush(&rig), 0);
            rig_crash(&rig);
            CHECK_INT(rig_open(&rig), 0);
            CHECK_INT(rig.report.units_prepared, 5);
            CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 0);
        }
        const uint64_t committed[] = {ids[3], 999999, ids[0]}, refused[] = {ids[2]};
        CHECK_INT(rig_end_units(&rig, PS_REC_COMMIT_PREPARED, committed, 3), 0);
        CHECK_INT(rig_end_units(&rig, PS_REC_BACKOUT_PREPARED, refused, 1), 0);
        CHECK_INT(rig_end_units(&rig, PS_REC_COMMIT_PREPARED, refused, 1), 0); /* too late */
        CHECK_INT(rig_flush(&rig), 0);
        rig_crash(&rig);
        CHECK_INT(rig_open(&rig), 0);
        CHECK_INT(rig.report.units_prepared, 2);
        CHECK_INT(rig_list(&rig, RIG_QUEUE, listed), 2);
        CHECK_INT(listed[0].number, 10);
        CHECK_INT(listed[1].number, 13);
    }
}

TEST(a_put_to_an_object_that_was_never_defined_is_damage)
{
    __attribute__((cleanup(rig_free))) struct rig rig;
    const struct mqx_region_plan plan = rig_plan(65536);
    rig_create(&rig, &plan);
    CHECK_INT(rig_open(&rig), 0);
    CHECK_INT(rig_put(&rig, 0, 1, 4, 10, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    rig_crash(&rig);
    CHECK_INT(rig_open(&rig), MQRC_OBJECT_DAMAGED);
}

TEST(an_unknown_must_understand_record_refuses_the_journal_and_an_optional_one_does_not)
{
    for (uint32_t must = 0; must < 2; must++) {
        RIG(rig, 65536);
        unsigned char record[64] MQX_ALIGNED(8);
        const struct mqx_record_head head = {.type = PS_REC_GET};
        const uint32_t length = mqx_encode_plain(record, &head);
        struct psj_record *stored = (void *)record;
        stored->type = (uint16_t)(55 | (must != 0 ? PS_MUST_UNDERSTAND : 0));
        stored->crc = mqx_crc32c(mqx_crc32c(0, record, 4), record + 8, length - 8);
        CHECK_INT(append_raw(&rig, record, length), 0);
        CHECK_INT(rig_put(&rig, 0, 1, 4, 10, NULL), 0);
        CHECK_INT(rig_flush(&rig), 0);
        rig_crash(&rig);
        CHECK_INT(rig_open(&rig), must != 0 ? MQRC_OBJECT_DAMAGED : 0);
        if (must == 0) {
            CHECK_STR(numbers_on(&rig, RIG_QUEUE), "1");
        }
    }
}

TEST(missing_foreign_and_cut_files_are_refused_by_name_and_nothing_is_changed)
{
    for (uint32_t what = 0; what < 6; what++) {
        RIG(rig, 32768);
        for (uint64_t number = 1; number <= 30; number++) {
            CHECK_INT(rig_put(&rig, 0, number, 4, 3000, NULL), 0);
        }
        CHECK_INT(rig_flush(&rig), 0);
        rig_crash(&rig);
        const uint8_t *bytes = NULL;
        uint64_t size = 0;
        switch (what) {
        case 0: CHECK(memory_io_remove(rig.files, rig_segment_path(2))); break;
        case 1: memory_io_cut(rig.files, rig_segment_path(2), 32768 - 4096); break;
        case 2: memory_io_flip_bit(rig.files, rig_segment_path(2), 40 * 8); break;
        case 3: /* another segment's bytes */
            bytes = memory_io_bytes(rig.files, rig_segment_path(3), &size);
            memory_io_patch(rig.files, rig_segment_path(2), 0, bytes, size);
            break;
        case 4: CHECK(memory_io_remove(rig.files, rig_segment_path(1))); break;
        default: memory_io_cut(rig.files, rig_segment_path(3), 100); break;
        }
        memory_io_record(rig.files, RIG_HOME);
        CHECK_INT(rig_open(&rig), MQRC_OBJECT_DAMAGED);
        CHECK(strstr(mqx_error_text(), "journal") != NULL);
        TAKE_TRACE(trace, rig);
        CHECK_INT(trace->event_count, 0);
    }
}

TEST(a_damaged_checkpoint_is_refused_at_every_byte)
{
    RIG(rig, 32768);
    CHECK_INT(rig_put(&rig, 0, 1, 4, 100, NULL), 0);
    CHECK_INT(rig_put(&rig, 0, 2, 4, 100, NULL), 0);
    CHECK_INT(rig_end(&rig), 0);
    CHECK_INT(rig_open(&rig), 0);
    static char path[64];
    uint64_t size = 0;
    snprintf(path, sizeof path, "%s", rig_checkpoint_path(&rig));
    (void)memory_io_bytes(rig.files, path, &size);
    CHECK(size > 4096);
    rig_crash(&rig);
    for (uint64_t byte = 0; byte < size; byte += byte < 128 || byte >= 4088 ? 1 : 61) {
        memory_io_flip_bit(rig.files, path, byte * 8 + byte % 8);
        CHECK_INT(rig_open(&rig), MQRC_OBJECT_DAMAGED);
        memory_io_flip_bit(rig.files, path, byte * 8 + byte % 8);
    }
    CHECK_INT(rig_open(&rig), 0);
    CHECK_STR(numbers_on(&rig, RIG_QUEUE), "1 2");
}

/* ---- torn tails ---- */

TEST(a_torn_last_batch_is_dropped_and_the_next_record_begins_a_new_segment)
{
    RIG(rig, 65536);
    struct mqx_append append;
    CHECK_INT(rig_put(&rig, 0, 1, 4, 100, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    CHECK_INT(rig_put(&rig, 0, 2, 4, 9000, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    rig_crash(&rig);
    memory_io_flip_bit(rig.files, rig_segment_path(1), (append.lsn + 8500) * 8);
    CHECK_INT(rig_open(&rig), 0);
    CHECK_STR(numbers_on(&rig, RIG_QUEUE), "1");
    CHECK(!rig.report.clean);
    CHECK(rig.report.torn_bytes > 9000);
    const uint64_t end = rig.report.end_lsn;
    CHECK_INT(rig_put(&rig, 0, 3, 4, 100, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    CHECK_INT(append.lsn, 65536 + 4096 + 64); /* above anything the torn tail could hold */
    uint64_t size = 0;
    const uint8_t *bytes = memory_io_bytes(rig.files, rig_segment_path(2), &size);
    CHECK_INT(((const struct psj_segment *)(const void *)bytes)->prev_end_lsn, end);
    for (int crash = 0; crash < 3; crash++) { /* the old torn tail is never taken for damage */
        REOPEN(rig);
        CHECK_INT(rig_put(&rig, 0, 10 + (uint64_t)crash, 4, 100, NULL), 0);
        CHECK_INT(rig_flush(&rig), 0);
    }
    REOPEN(rig);
    CHECK_STR(numbers_on(&rig, RIG_QUEUE), "1 3 10 11 12");
}

TEST(a_bad_batch_below_a_mark_is_damage_naming_file_and_offset)
{
    RIG(rig, 65536);
    struct mqx_append append;
    CHECK_INT(rig_put(&rig, 0, 1, 4, 100, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    CHECK_INT(mqx_flush_mark(&rig.store), 0);
    rig_crash(&rig);
    memory_io_flip_bit(rig.files, rig_segment_path(1), (append.lsn + 60) * 8);
    CHECK_INT(rig_open(&rig), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "0000000001.psj, offset 4096") != NULL);
}

TEST(after_an_orderly_end_writing_goes_on_in_the_same_segment)
{
    RIG(rig, 65536);
    struct mqx_append append;
    CHECK_INT(rig_put(&rig, 0, 1, 4, 100, NULL), 0);
    CHECK_INT(rig_end(&rig), 0);
    CHECK_INT(rig_open(&rig), 0);
    CHECK(rig.report.clean);
    CHECK_INT(rig_put(&rig, 0, 2, 4, 100, &append), 0);
    CHECK_INT(rig_flush(&rig), 0);
    CHECK(append.lsn < 65536);
    REOPEN(rig);
    CHECK_STR(numbers_on(&rig, RIG_QUEUE), "1 2");
    CHECK(!rig.report.clean);
}

/* After a failed flush the cache may show what the medium does not have, and believes it clean. */
struct poisoned {
    struct rig rig;
    uint64_t states;
};

static int after_poison(void *arg, const struct disk_state *state)
{
    struct poisoned *poisoned = arg;
    struct rig *rig = &poisoned->rig;
    rig->files = state->files;
    rig->io = state->io;
    poisoned->states += 1;
    int status = rig_open(rig);
    const uint32_t count = status == 0 ? rig_list(rig, RIG_QUEUE, listed) : 0;
    bool seen[4] = {false};
    for (uint32_t i = 0; i < count; i++) {
        seen[listed[i].number % 4] = rig_verify(rig, &listed[i]);
    }
    bool right = status == 0;
    for (uint32_t i = 0; i < state->ack_count; i++) {
        right = right && seen[state->acks[i] % 4];
    }
    if (!right) {
        printf("\n    %d, %u messages: %s", status, count, mqx_error_text());
    }
    rig_crash(rig);
    return right ? 0 : 1;
}

TEST(what_is_found_after_a_failed_flush_is_made_durable_anew_before_it_is_believed)
{
    RIG(rig, 32768);
    const struct memory_fault fault = {.kind = MEMORY_FAULT_FLUSH, .at = 1, .error = 5,
                                       .ops = 1u << MEMORY_WRITE};
    CHECK_INT(rig_flush(&rig), 0);
    memory_io_record(rig.files, RIG_HOME);
    CHECK_INT(rig_put(&rig, 0, 1, 4, 5000, NULL), 0);
    memory_io_set_fault(rig.files, &fault);
    CHECK_INT(rig_flush(&rig), MQRC_CONNECTION_BROKEN);
    memory_io_set_fault(rig.files, NULL);
    rig_crash(&rig);
    rig.distrust = true;
    CHECK_INT(rig_open(&rig), 0);
    const uint32_t found = rig_list(&rig, RIG_QUEUE, listed);
    for (uint32_t i = 0; i < found; i++) { /* somebody sees it: it must stay */
        memory_io_ack(rig.files, listed[i].number);
    }
    CHECK_INT(rig_put(&rig, 0, 2, 4, 100, NULL), 0);
    CHECK_INT(rig_flush(&rig), 0);
    memory_io_ack(rig.files, 2);
    TAKE_TRACE(trace, rig);
    struct poisoned poisoned = {.rig = {.plan = rig.plan}};
    struct disk_states_counts counts;
    const struct disk_states_options options = {.sector = 4096, .cap = 60, .seed = test_seed(),
                                                .prepare = rig_prepare_state, .arg = &poisoned};
    CHECK_INT(disk_states_run(trace, &options, after_poison, &counts), 0);
    printf("%" PRIu64 " ", poisoned.states);
    CHECK(poisoned.states > 10);
}

/* What a flipped bit, a zeroed or a swapped sector in the journal leads to: the right messages, or
 * damage. */
static bool right_or_refused(struct rig *rig, const char *want, uint32_t *refused)
{
    int status = rig_open(rig);
    if (status == MQRC_OBJECT_DAMAGED) {
        *refused += 1;
        return true;
    }
    bool same = status == 0 && strcmp(numbers_on(rig, RIG_QUEUE), want) == 0;
    const uint32_t count = status == 0 ? rig_list(rig, RIG_QUEUE, listed) : 0;
    for (uint32_t i = 0; i < count && same; i++) {
        same = rig_verify(rig, &listed[i]);
    }
    rig_crash(rig);
    return same;
}

static void fill_marked(struct rig *rig)
{
    CHECK_INT(rig_put(rig, 0, 1, 4, 100, NULL), 0);
    CHECK_INT(rig_flush(rig), 0);
    CHECK_INT(rig_put(rig, 0, 2, 5, 5000, NULL), 0);
    CHECK_INT(rig_put(rig, 0, 3, 5, 50, NULL), 0);
    CHECK_INT(rig_flush(rig), 0);
    CHECK_INT(rig_record(rig, 0, PS_REC_GET, 1, NULL), 0);
    CHECK_INT(rig_flush(rig), 0);
    CHECK_INT(mqx_flush_mark(&rig->store), 0);
    rig_crash(rig);
}

TEST(no_flipped_bit_in_a_marked_journal_goes_unnoticed)
{
    RIG(rig, 32768);
    uint32_t refused = 0;
    const uint64_t end = rig.store.region.journal->batch_start;
    CHECK_INT(end, 4096);
    fill_marked(&rig);
    for (uint64_t bit = 0; bit < 32768 * 8; bit += bit < 37000 ? 13 : 131) {
        memory_io_flip_bit(rig.files, rig_segment_path(1), bit);
        CHECK(right_or_refused(&rig, "2 3", &refused));
        memory_io_flip_bit(rig.files, rig_segment_path(1), bit);
    }
    CHECK(refused > 2000);
}

TEST(no_zeroed_or_swapped_sector_in_a_marked_journal_goes_unnoticed)
{
    RIG(rig, 32768);
    uint32_t refused = 0;
    static uint8_t a[512], b[512];
    static const uint8_t zeroes[512];
    uint64_t size = 0;
    const char *path = rig_segment_path(1);
    fill_marked(&rig);
    for (uint64_t i = 0; i < 64; i++) {
        memcpy(a, memory_io_bytes(rig.files, path, &size) + i * 512, 512);
        memory_io_patch(rig.files, path, i * 512, zeroes, 512);
        CHECK(right_or_refused(&rig, "2 3", &refused));
        for (uint64_t j = i + 1; j < 64; j += 3) {
            memcpy(b, memory_io_bytes(rig.files, path, &size) + j * 512, 512);
            memory_io_patch(rig.files, path, i * 512, b, 512);
            memory_io_patch(rig.files, path, j * 512, a, 512);
            CHECK(right_or_refused(&rig, "2 3", &refused));
            memory_io_patch(rig.files, path, j * 512, b, 512);
        }
        memory_io_patch(rig.files, path, i * 512, a, 512);
    }
    CHECK(refused > 100);
}

/* ---- power cuts ---- */

enum { ACK_PUT = 1000, INTENT_GET = 2000, ACK_GET = 3000 };

struct power_cut {
    struct rig rig;
    uint64_t last; /* highest number put */
    uint64_t states;
};

static int after_power_cut(void *arg, const struct disk_state *state)
{
    struct power_cut *cut = arg;
    struct rig *rig = &cut->rig;
    bool must[64] = {false}, may_not[64] = {false};
    uint8_t seen[64] = {0};
    rig->files = state->files;
    rig->io = state->io;
    for (uint32_t i = 0; i < state->ack_count; i++) {
        const uint64_t ack = state->acks[i];
        must[ack % 1000] = ack < INTENT_GET;
        may_not[ack % 1000] = ack >= ACK_GET;
    }
    cut->states += 1;
    for (int restart = 0; restart < 2; restart++) {
        int status = rig_open(rig);
        if (status != 0) {
            printf("\n    restart %d: %d %s", restart, status, mqx_error_text());
            return 1;
        }
        const uint32_t count = rig_list(rig, RIG_QUEUE, listed);
        memset(seen, 0, sizeof seen);
        for (uint32_t i = 0; i < count; i++) {
            seen[listed[i].number % 64] += 1;
            if (!rig_verify(rig, &listed[i]) || listed[i].number >= 64) {
                printf("\n    message %" PRIu64 " has another body", listed[i].number);
                return 1;
            }
        }
        for (uint32_t number = 1; number < 64; number++) {
            if ((must[number] && seen[number] != 1) || (may_not[number] && seen[number] != 0) ||
                seen[number] > 1) {
                printf("\n    message %u is there %u times after restart %d", number, seen[number],
                       restart);
                return 1;
            }
        }
        if ((seen[20] != 0) != (seen[21] != 0) || (seen[30] != 0) != (seen[31] != 0)) {
            printf("\n    half a unit");
            return 1;
        }
        /* Something is written, and the next restart must not take what is left for damage. */
        if (restart == 0 && (rig_put(rig, 0, 60, 4, 700, NULL) != 0 || rig_flush(rig) != 0)) {
            printf("\n    no put after the restart: %s", mqx_error_text());
            return 1;
        }
        must[60] = true;
        rig_crash(rig);
    }
    return 0;
}

static int put_acked(struct rig *rig, uint64_t number, uint32_t length)
{
    int status = rig_put(rig, 0, number, (int)(number % 10), length, NULL);
    status = status == 0 ? rig_flush(rig) : status;
    if (status == 0) {
        memory_io_ack(rig->files, ACK_PUT + number);
    }
    return status;
}

static void work(struct rig *rig)
{
    const uint32_t unit = rig_unit(rig);
    CHECK_INT(put_acked(rig, 1, 100), 0);
    CHECK_INT(put_acked(rig, 2, 6000), 0);
    CHECK_INT(rig_put(rig, unit, 20, 4, 300, NULL), 0);
    CHECK_INT(put_acked(rig, 3, 9000), 0);
    CHECK_INT(rig_put_chunked(rig, unit, 21, 4, 9000, 4000, NULL), 0);
    CHECK_INT(mqx_flush_room(&rig->store), 0);
    CHECK_INT(put_acked(rig, 4, 4000), 0);
    CHECK_INT(rig_commit(rig, unit, NULL), 0);
    CHECK_INT(mqx_flush_room(&rig->store), 0);
    CHECK_INT(rig_flush(rig), 0);
    memory_io_ack(rig->files, ACK_PUT + 20);
    memory_io_ack(rig->files, ACK_PUT + 21);
    rig_unit_over(rig, unit);
    memory_io_ack(rig->files, INTENT_GET + 2);
    CHECK_INT(rig_record(rig, 0, PS_REC_GET, 2, NULL), 0);
    CHECK_INT(rig_flush(rig), 0);
    memory_io_ack(rig->files, ACK_GET + 2);
    CHECK_INT(rig_put(rig, unit, 30, 4, 300, NULL), 0);
    CHECK_INT(mqx_flush_room(&rig->store), 0);
    CHECK_INT(rig_put(rig, unit, 31, 4, 2000, NULL), 0);
    CHECK_INT(rig_commit(rig, unit, NULL), 0);
    CHECK_INT(rig_flush(rig), 0);
    memory_io_ack(rig->files, ACK_PUT + 30);
    memory_io_ack(rig->files, ACK_PUT + 31);
}

static void cut_everywhere(const struct memory_trace *trace, const struct mqx_region_plan *plan,
                           uint32_t cap)
{
    static const uint32_t sectors[] = {4096, 512, 64, 8};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(sectors); i++) {
        struct power_cut cut = {.rig = {.plan = *plan}};
        struct disk_states_counts counts;
        const struct disk_states_options options = {.sector = sectors[i],
                                                    .cap = cap,
                                                    .seed = test_seed(),
                                                    .prepare = rig_prepare_state,
                                                    .arg = &cut};
        CHECK_INT(disk_states_run(trace, &options, after_power_cut, &counts), 0);
        printf("%" PRIu64 " ", cut.states);
        CHECK(cut.states > 50);
    }
}

TEST(every_acknowledged_message_survives_power_cuts_between_any_two_sectors)
{
    RIG(rig, 32768);
    CHECK_INT(rig_end(&rig), 0);
    memory_io_record(rig.files, RIG_HOME);
    CHECK_INT(rig_open(&rig), 0);
    work(&rig);
    CHECK(rig.store.region.journal->next_segment_no > 2);
    TAKE_TRACE(trace, rig);
    cut_everywhere(trace, &rig.plan, 120);
}

TEST_MAIN()
