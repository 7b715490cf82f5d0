/*
 * test_units_in_flight.c - proves what units_in_flight.h says: what is listed and loaded again is
 * the same unit for every later record, and lines that contradict each other are refused.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "recovery/units_in_flight.h"

enum { BEGIN = 100000, FIRST = 50008, UNITS = 3, OPERATIONS = 5, PUTS = 3 };

static struct psc_unit units[UNITS];
static struct psc_operation operations[OPERATIONS];
static struct psc_message put_lines[PUTS];

static void add_put(uint32_t at, uint32_t operation, uint32_t type)
{
    const uint64_t number = 10 + at, lsn = FIRST + 64 * operation;
    operations[operation] = (struct psc_operation){number, lsn, 1, 1, type, 0};
    put_lines[at] = (struct psc_message){.number = number, .lsn = lsn, .first_lsn = lsn,
                                         .object = 1, .object_gen = 1, .length = 5,
                                         .record_length = 256};
}

/* Unit 20 has a put, a get and pieces; unit 21 a get; unit 22 is prepared with a put and an
 * image. */
static struct mqx_units_in_flight make_list(void)
{
    memset(units, 0, sizeof units);
    memset(operations, 0, sizeof operations);
    units[0] = (struct psc_unit){.id = 20, .first_lsn = FIRST, .pieces_lsn = FIRST + 160,
                                 .operations = 2, .record_count = 3, .running_crc = 7};
    units[1] = (struct psc_unit){.id = 21, .first_lsn = FIRST + 128, .operations = 1,
                                 .record_count = 1, .running_crc = 8};
    units[2] = (struct psc_unit){.id = 22, .first_lsn = FIRST + 192, .operations = 2,
                                 .record_count = 2, .running_crc = 9,
                                 .prepare_end_lsn = BEGIN - 8, .prepared = {.prepared_us = 1},
                                 .xid = {.format_id = 1, .gtrid_length = 1, .gtrid = {5}}};
    add_put(0, 0, PS_REC_PUT);
    operations[1] = (struct psc_operation){1, FIRST + 64, 1, 1, PS_REC_GET, 0};
    operations[2] = (struct psc_operation){2, FIRST + 128, 1, 1, PS_REC_GET, 0};
    add_put(1, 3, PS_REC_PUT);
    add_put(2, 4, PS_REC_TAKEN);
    operations[4].before = 1;
    return (struct mqx_units_in_flight){.units = units, .unit_count = UNITS,
                                        .operations = operations, .operation_count = OPERATIONS,
                                        .puts = put_lines, .put_count = PUTS};
}

static struct mqx_replay make_replay(void)
{
    return (struct mqx_replay){.begin_lsn = BEGIN, .checkpoint_end = BEGIN, .slot_limit = 100,
                               .units_listed = true, .next_number = 1, .next_unit_id = 30};
}

TEST(what_is_listed_loaded_and_listed_again_is_the_same)
{
    const struct mqx_units_in_flight list = make_list();
    struct mqx_units_in_flight again = {0};
    struct mqx_replay replay = make_replay();
    bool sound = false, all = false;
    CHECK_INT(mqx_units_load(&list, &replay, &sound), 0);
    CHECK(sound);
    CHECK_INT(replay.unit_count, 2);
    CHECK_INT(mqx_units_list(&replay, &again, &all), 0);
    CHECK(all);
    CHECK_INT(again.unit_count, UNITS);
    CHECK_INT(again.operation_count, OPERATIONS);
    CHECK_INT(again.put_count, PUTS);
    CHECK_INT(mqx_units_checksum(&again), mqx_units_checksum(&list));
    mqx_units_free(&again);
    mqx_replay_free(&replay);
}

/* A COMMIT of unit 20, which is carried with those values. */
static int commit(struct ps_commit stated)
{
    const struct mqx_units_in_flight list = make_list();
    struct mqx_replay replay = make_replay();
    const struct mqx_record_head head = {.type = PS_REC_COMMIT, .unit_id = 20};
    unsigned char record[128] MQX_ALIGNED(8);
    bool sound = false;
    CHECK_INT(mqx_units_load(&list, &replay, &sound), 0);
    (void)mqx_encode_commit(record, &head, &stated);
    const int status = mqx_replay_record(&replay, BEGIN + 64, (const void *)record);
    CHECK_INT(replay.puts[0].state, status == 0 ? MQX_PUT_DROPPED : MQX_PUT_WAITING);
    mqx_replay_free(&replay);
    return status;
}

TEST(a_commit_must_agree_with_what_is_carried)
{
    CHECK_INT(commit((struct ps_commit){FIRST, 3, 7}), 0); /* its object is gone: dropped */
    CHECK_INT(commit((struct ps_commit){FIRST, 2, 7}), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqe_error_text(), "found are 3") != NULL);
    CHECK_INT(commit((struct ps_commit){FIRST, 3, 6}), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqe_error_text(), "found are 3") != NULL);
    CHECK_INT(commit((struct ps_commit){FIRST + 8, 3, 7}), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqe_error_text(), "found are 3") != NULL);
}

TEST(a_unit_that_began_below_the_begin_lsn_and_is_not_carried_is_damage)
{
    struct mqx_replay replay = make_replay();
    const struct mqx_record_head head = {.type = PS_REC_COMMIT, .unit_id = 25};
    const struct ps_commit stated = {FIRST, 1, 1};
    unsigned char record[128] MQX_ALIGNED(8);
    (void)mqx_encode_commit(record, &head, &stated);
    CHECK_INT(mqx_replay_record(&replay, BEGIN + 64, (const void *)record), MQRC_OBJECT_DAMAGED);
    replay.units_listed = false; /* it was over then */
    CHECK_INT(mqx_replay_record(&replay, BEGIN + 64, (const void *)record), 0);
    mqx_replay_free(&replay);
}

static int refused(struct mqx_units_in_flight list)
{
    struct mqx_replay replay = make_replay();
    bool sound = true;
    const int status = mqx_units_load(&list, &replay, &sound);
    mqx_replay_free(&replay);
    return status == 0 && !sound;
}

#define REFUSED(change)                                                                            \
    do {                                                                                           \
        struct mqx_units_in_flight list = make_list();                                             \
        change;                                                                                    \
        CHECK(refused(list));                                                                      \
    } while (0)

TEST(lines_that_contradict_each_other_are_refused)
{
    REFUSED(units[0].id = 0);
    REFUSED(units[1].id = 20);
    REFUSED(units[2].id = 30);
    REFUSED(units[0].first_lsn = BEGIN);
    REFUSED(units[0].first_lsn = FIRST + 4);
    REFUSED(units[0].pieces_lsn = BEGIN);
    REFUSED(units[0].operations = 4);
    REFUSED(units[1].record_count = 0);
    REFUSED(units[1].prepared.puts = 1);
    REFUSED(units[1].xid.gtrid[0] = 1);
    REFUSED(units[2].xid.gtrid_length = 0);
    REFUSED(units[2].prepare_end_lsn = BEGIN + MQX_RING_RECORD_MAX);
    REFUSED(operations[0].number = 11);
    REFUSED(operations[0].lsn = FIRST - 8);
    REFUSED(operations[1].lsn = BEGIN);
    REFUSED(operations[1].type = PS_REC_OBJECT);
    REFUSED(operations[1].object = 100);
    REFUSED(operations[1].before = 1);
    REFUSED(put_lines[0].object_gen = 2);
    REFUSED(put_lines[0].first_lsn = FIRST + 8);
    REFUSED(put_lines[0].zero = 1);
    REFUSED(list.operation_count -= 1);
    REFUSED(list.put_count -= 1);
    REFUSED(list.unit_count -= 1);
}

TEST_MAIN()
