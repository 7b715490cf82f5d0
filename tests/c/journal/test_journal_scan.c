/*
 * test_journal_scan.c - a segment as a table: rows are what was put; damage is found, named and
 * never more than damage.
 *
 * A segment is made in memory of exactly its size, with an unreadable page behind it.
 */
#include "fixtures/harness.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/siphash.h"
#include "format/record_codec.h"
#include "penstock/journal_scan.h"
#include "format/segment.h"

#include <pthread.h>
#include <sys/mman.h>

enum { SIZE = 64 * 1024, BASE = 1 << 20, ROWS_MAX = 64, BODY_MAX = 64 * 1024, QUEUE = 7,
       FIRST_LSN = 4160 };

static const uint8_t qm_id[16] = {1, 2, 3}, salt[16] = {4, 5, 6};

struct fixture {
    unsigned char *bytes;
    uint64_t used;        /* offset of the next batch */
    uint64_t batch;       /* of the open one, 0 none */
    uint64_t last_record; /* offset */
    uint32_t length, records;
};

/* SIZE bytes; a read beyond them ends the process. */
static unsigned char *guarded(void)
{
    unsigned char *bytes = mmap(NULL, SIZE + MQX_PAGE_SIZE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(bytes != MAP_FAILED && mprotect(bytes + SIZE, MQX_PAGE_SIZE, PROT_NONE) == 0);
    return bytes;
}

static void drop(unsigned char *bytes)
{
    (void)munmap(bytes, SIZE + MQX_PAGE_SIZE);
}

static void fixture_make(struct fixture *fixture)
{
    struct psj_segment header = {.segment_no = 3, .generation = 9, .restart_epoch = 2,
                                 .base_lsn = BASE, .size = SIZE, .prev_end_lsn = BASE - 4096,
                                 .created_us = 5};
    *fixture = (struct fixture){.bytes = guarded(), .used = MQX_PAGE_SIZE};
    memcpy(header.qm_id, qm_id, sizeof qm_id);
    memcpy(header.salt, salt, sizeof salt);
    mqx_segment_seal(&header);
    memcpy(fixture->bytes, &header, sizeof header);
}

static void fixture_free(struct fixture *fixture)
{
    drop(fixture->bytes);
}

#define FIXTURE __attribute__((cleanup(fixture_free))) struct fixture

static void begin(struct fixture *fixture)
{
    fixture->batch = fixture->used;
    fixture->length = sizeof(struct psj_batch);
    fixture->records = 0;
}

/* Seals what lies at fixture->batch: all CRCs. */
static void seal_at(unsigned char *bytes, uint64_t at, uint32_t length, uint32_t records)
{
    const struct mqx_flush_batch_position place = {qm_id, salt, 3, 9, BASE + at};
    struct psj_batch head = {.magic = PS_BATCH_MAGIC, .lsn = BASE + at, .durable_lsn = BASE + at,
                             .time_us = 1000 + at, .length = length, .record_count = records,
                             .segment_no = 3};
    static uint32_t crcs[SIZE / sizeof(struct psj_record)];
    uint32_t count = 0;
    for (uint64_t i = sizeof head; i < length;) {
        struct psj_record *record = (void *)(bytes + at + i);
        const uint32_t size = mqx_record_length(record);
        record->crc = mqx_crc32c(mqx_crc32c(0, record, 4), (unsigned char *)record + 8, size - 8);
        crcs[count++] = record->crc;
        i += size;
    }
    head.records = mqx_siphash(salt, crcs, count * sizeof crcs[0]);
    head.hash = mqx_flush_batch_hash(&place, &head);
    memcpy(bytes + at, &head, sizeof head);
}

static void seal(struct fixture *fixture)
{
    seal_at(fixture->bytes, fixture->batch, fixture->length, fixture->records);
    fixture->used += mqx_round_up(fixture->length, MQX_PAGE_SIZE);
}

static unsigned char *room(struct fixture *fixture)
{
    fixture->last_record = fixture->batch + fixture->length;
    return fixture->bytes + fixture->last_record;
}

static uint64_t add(struct fixture *fixture, uint32_t length)
{
    fixture->length += length;
    fixture->records += 1;
    return BASE + fixture->last_record;
}

static struct mqx_record_head head_of(uint16_t type, uint64_t number)
{
    return (struct mqx_record_head){.type = type, .unit_id = 40, .object = QUEUE, .object_gen = 2,
                                    .number = number};
}

static void body_of(unsigned char *to, uint64_t number, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        to[i] = (unsigned char)(number * 31 + i);
    }
}

static uint64_t put(struct fixture *fixture, uint64_t number, uint32_t length, bool with_ext)
{
    unsigned char body[BODY_MAX];
    struct ps_descriptor d = {.msg_id = {(uint8_t)number}, .priority = (int32_t)number,
                              .put_time_us = 77, .persistence = 1, .has_ext = with_ext,
                              .ccsid = 1208, .format = "MQSTR   ", .put_appl_name = "abc",
                              .expiry_us = number == 2 ? 1000 + fixture->batch + 250000 : 0};
    struct ps_descriptor_ext ext = {.reply_to_q = "REPLY  ", .msg_seq_number = 4,
                                    .group_id = {9, 9}};
    const struct mqx_record_head head = head_of(PS_REC_PUT, number);
    body_of(body, number, length);
    return add(fixture, mqx_encode_put(room(fixture), &head, &d, with_ext ? &ext : NULL, NULL, body,
                                   length));
}

static void plain(struct fixture *fixture, uint16_t type, uint64_t number)
{
    const struct mqx_record_head head = head_of(type, number);
    (void)add(fixture, mqx_encode_plain(room(fixture), &head));
}

/* A message of `total` bytes in pieces of `piece`; LSN of its PUT. */
static uint64_t put_pieces(struct fixture *fixture, uint64_t number, uint32_t total, uint32_t piece)
{
    unsigned char body[BODY_MAX];
    struct ps_descriptor d = {.persistence = 1};
    struct ps_chunked chunked = {.total = total};
    struct mqx_record_head head = head_of(PS_REC_CHUNK, number);
    body_of(body, number, total);
    for (uint32_t at = 0; at < total; at += piece) {
        const struct ps_chunk chunk = {.prev_lsn = chunked.last_lsn, .offset = at, .total = total,
                                       .number = chunked.count};
        const uint32_t size = total - at < piece ? total - at : piece;
        chunked.last_lsn = add(fixture, mqx_encode_chunk(room(fixture), &head, &chunk, body + at,
                               size));
        chunked.first_lsn = at == 0 ? chunked.last_lsn : chunked.first_lsn;
        chunked.count += 1;
    }
    head.type = PS_REC_PUT;
    return add(fixture, mqx_encode_put(room(fixture), &head, &d, NULL, &chunked, NULL, 0));
}

/* Three batches: a unit; a long message and a backout; a get that commits itself. */
static void fill(struct fixture *fixture)
{
    const struct ps_count count = {.identity = 1, .object = QUEUE, .count = 2};
    const struct ps_commit commit = {.first_lsn = FIRST_LSN, .record_count = 2};
    const struct ps_object_name name = {.name_space = 1, .type = 1, .name = "ORDERS  "};
    struct mqx_record_head head;
    fixture_make(fixture);
    begin(fixture);
    head = head_of(PS_REC_OBJECT, 0);
    (void)add(fixture, mqx_encode_object(room(fixture), &head, &name, NULL, 0));
    put(fixture, 1, 10, false);
    put(fixture, 2, 700, true);
    head = head_of(PS_REC_COMMIT, 0);
    (void)add(fixture, mqx_encode_commit(room(fixture), &head, &commit));
    seal(fixture);
    begin(fixture);
    put_pieces(fixture, 3, 5000, 1700);
    head = head_of(PS_REC_BACKOUT, 0);
    (void)add(fixture, mqx_encode_counts(room(fixture), &head, &count, NULL, 1));
    seal(fixture);
    begin(fixture);
    head = head_of(PS_REC_GET, 1);
    head.flags = PS_FLAG_COMMITS;
    (void)add(fixture, mqx_encode_plain(room(fixture), &head));
    plain(fixture, PS_REC_EXPIRE, 2);
    put(fixture, 4, 0, false);
    seal(fixture);
}

/* ---- what comes out ---- */

struct table {
    void *columns[64];
    uint8_t event[ROWS_MAX], commits[ROWS_MAX], state[ROWS_MAX];
    uint64_t lsn[ROWS_MAX], unit[ROWS_MAX], number[ROWS_MAX], object[ROWS_MAX], size[ROWS_MAX];
    uint64_t first[ROWS_MAX];
    int32_t priority[ROWS_MAX], expiry[ROWS_MAX], seq[ROWS_MAX];
    char reply[ROWS_MAX][48], format[ROWS_MAX][8], names[ROWS_MAX][48];
    unsigned char bodies[BODY_MAX];
    int64_t offsets[ROWS_MAX + 1];
    struct mqe_journal_scan_rows rows;
};

static void want(struct table *table, const char *name, void *memory)
{
    for (uint32_t i = 0; i < mqe_journal_scan_field_count; i++) {
        if (strcmp(mqe_journal_scan_fields[i].name, name) == 0) {
            table->columns[i] = memory;
        }
    }
}

static void table_make(struct table *t, uint32_t capacity, bool bodies)
{
    memset(t, 0, sizeof *t);
    want(t, "event", t->event);
    want(t, "commits", t->commits);
    want(t, "body_state", t->state);
    want(t, "lsn", t->lsn);
    want(t, "unit_id", t->unit);
    want(t, "sequence", t->number);
    want(t, "first_lsn", t->first);
    want(t, "object", t->object);
    want(t, "body_length", t->size);
    want(t, "priority", t->priority);
    want(t, "expiry", t->expiry);
    want(t, "msg_seq_number", t->seq);
    want(t, "reply_to_q", t->reply);
    want(t, "format", t->format);
    want(t, "object_name", t->names);
    t->rows = (struct mqe_journal_scan_rows){.columns = t->columns, .capacity = capacity};
    if (bodies) {
        t->rows.bodies = t->bodies;
        t->rows.body_capacity = BODY_MAX;
        t->rows.offsets = t->offsets;
    }
}

static void open_scan(struct mqe_journal_scan *scan, const struct fixture *fixture)
{
    CHECK_INT(mqe_journal_scan_open(scan, fixture->bytes, SIZE, qm_id, 3), MQX_OK);
    scan->limit = fixture->used;
}

TEST(rows_are_the_records_that_were_written)
{
    static const uint8_t events[] = {PS_REC_PUT, PS_REC_PUT, PS_REC_COMMIT, PS_REC_PUT,
                                     PS_REC_BACKOUT, PS_REC_GET, PS_REC_EXPIRE, PS_REC_PUT};
    static const uint64_t sizes[] = {10, 700, 0, 5000, 0, 0, 0, 0};
    FIXTURE fixture;
    struct mqe_journal_scan scan;
    struct table t;
    fill(&fixture);
    open_scan(&scan, &fixture);
    table_make(&t, ROWS_MAX, true);
    CHECK_INT(mqe_journal_scan_next(&scan, &t.rows), MQE_SCAN_END);
    CHECK_INT(t.rows.count, 8);
    for (uint32_t i = 0; i < 8; i++) {
        unsigned char body[BODY_MAX];
        CHECK_INT(t.event[i], events[i]);
        CHECK_INT((int64_t)t.size[i], (int64_t)sizes[i]);
        CHECK_INT((int64_t)t.unit[i], 40);
        CHECK_INT((int64_t)t.object[i], (int64_t)((uint64_t)QUEUE << 32 | 2));
        CHECK_INT(t.offsets[i + 1] - t.offsets[i], (int64_t)sizes[i]);
        body_of(body, t.number[i], (uint32_t)sizes[i]);
        CHECK(memcmp(body, t.bodies + t.offsets[i], sizes[i]) == 0);
        CHECK_INT(t.commits[i], i == 5);
        CHECK_INT((int64_t)t.first[i], events[i] == PS_REC_COMMIT ? FIRST_LSN : 0);
        CHECK_INT(t.state[i], events[i] == PS_REC_PUT ? MQE_SCAN_BODY : MQE_SCAN_NO_BODY);
    }
    CHECK_INT(t.priority[1], 2);
    CHECK_INT(t.expiry[0], -1);
    CHECK_INT(t.expiry[1], 3); /* a quarter of a second, rounded up to tenths */
    CHECK_INT(t.seq[0], 1);
    CHECK_INT(t.seq[1], 4);
    CHECK_INT(t.seq[2], 0);
    CHECK_STR(t.reply[1], "REPLY");
    CHECK_STR(t.format[1], "MQSTR");
    CHECK_INT((int64_t)scan.batches, 3);
}

TEST(a_call_for_each_row_gives_the_same_rows_and_bodies_too_large_are_asked_for)
{
    FIXTURE fixture;
    struct mqe_journal_scan scan;
    struct table t;
    uint32_t rows = 0, asked = 0;
    fill(&fixture);
    open_scan(&scan, &fixture);
    for (;;) {
        const uint64_t capacity = asked == 0 ? 1000 : 5000;
        table_make(&t, 1, true);
        t.rows.body_capacity = capacity;
        const enum mqe_journal_scan_result result = mqe_journal_scan_next(&scan, &t.rows);
        rows += t.rows.count;
        if (result == MQE_SCAN_NEED_BYTES) {
            CHECK_INT((int64_t)scan.need_bytes, 5000);
            CHECK_INT(t.rows.count, 0);
            asked += 1;
        } else if (result == MQE_SCAN_END) {
            break;
        } else {
            CHECK_INT(result, MQE_SCAN_MORE);
            CHECK_INT(t.rows.count, 1);
        }
    }
    CHECK_INT(rows, 8);
    CHECK_INT(asked, 1);
}

TEST(only_chosen_types_and_lsns_and_times_are_rows)
{
    FIXTURE fixture;
    struct mqe_journal_scan scan;
    struct table t;
    fill(&fixture);
    open_scan(&scan, &fixture);
    table_make(&t, ROWS_MAX, false);
    scan.types = 1u << PS_REC_OBJECT | 1u << PS_REC_GET;
    CHECK_INT(mqe_journal_scan_next(&scan, &t.rows), MQE_SCAN_END);
    CHECK_INT(t.rows.count, 2);
    CHECK_STR(t.names[0], "ORDERS");
    open_scan(&scan, &fixture);
    scan.start_us = 1000 + MQX_PAGE_SIZE + 1; /* the first batch was sealed a moment before */
    CHECK_INT(mqe_journal_scan_next(&scan, &t.rows), MQE_SCAN_END);
    CHECK_INT(t.rows.count, 5);
    const uint64_t second = t.lsn[1];
    open_scan(&scan, &fixture);
    scan.start_lsn = t.lsn[0];
    scan.end_lsn = second;
    CHECK_INT(mqe_journal_scan_next(&scan, &t.rows), MQE_SCAN_END);
    CHECK_INT(t.rows.count, 1);
}

TEST(a_record_that_decides_several_units_is_a_row_for_each_however_few_rows_there_are)
{
    FIXTURE fixture;
    struct mqe_journal_scan scan;
    struct table t;
    uint64_t units[9];
    const struct mqx_record_head head = {.type = PS_REC_COMMIT_PREPARED};
    for (uint32_t i = 0; i < MQX_ARRAY_COUNT(units); i++) {
        units[i] = 100 + i;
    }
    fixture_make(&fixture);
    begin(&fixture);
    (void)add(&fixture, mqx_encode_units(room(&fixture), &head, units, MQX_ARRAY_COUNT(units)));
    plain(&fixture, PS_REC_GET, 5);
    seal(&fixture);
    for (uint32_t capacity = 1; capacity < 12; capacity++) {
        enum mqe_journal_scan_result result = MQE_SCAN_MORE;
        uint32_t seen = 0;
        open_scan(&scan, &fixture);
        while (result == MQE_SCAN_MORE) {
            table_make(&t, capacity, true);
            result = mqe_journal_scan_next(&scan, &t.rows);
            for (uint32_t i = 0; i < t.rows.count; i++, seen++) {
                CHECK_INT(t.event[i], seen < 9 ? PS_REC_COMMIT_PREPARED : PS_REC_GET);
                CHECK_INT((int64_t)t.unit[i], seen < 9 ? (int64_t)units[seen] : 40);
            }
        }
        CHECK_INT(result, MQE_SCAN_END);
        CHECK_INT(seen, 10);
    }
}

/* Runs a scan to its end; rows seen, *wrong the first result that is no row. */
static uint32_t run(const unsigned char *bytes, uint64_t limit, bool verify, bool bodies, bool skip,
                    uint64_t *digest, enum mqe_journal_scan_result *wrong)
{
    static struct table t;
    struct mqe_journal_scan scan;
    enum mqe_journal_scan_result result = MQE_SCAN_MORE;
    uint32_t rows = 0;
    *digest = 0;
    *wrong = MQE_SCAN_END;
    if (mqe_journal_scan_open(&scan, bytes, SIZE, qm_id, 3) != MQX_OK) {
        *wrong = MQE_SCAN_DAMAGED;
        return 0;
    }
    scan.limit = limit;
    scan.verify = verify;
    scan.allow_lost = 1;
    while (result != MQE_SCAN_END) {
        table_make(&t, 5, bodies);
        result = mqe_journal_scan_next(&scan, &t.rows);
        rows += t.rows.count;
        *digest = mqx_hash64(t.lsn, sizeof t.lsn, *digest + t.rows.count);
        *digest = mqx_hash64(t.reply, sizeof t.reply, *digest);
        *digest = mqx_hash64(t.event, sizeof t.event, *digest);
        *digest = mqx_hash64(t.number, sizeof t.number, *digest);
        if (bodies) {
            *digest = mqx_hash64(t.bodies, (size_t)t.offsets[t.rows.count], *digest);
        }
        if (result != MQE_SCAN_MORE && result != MQE_SCAN_END) {
            *wrong = result;
            if (!skip || result == MQE_SCAN_NEED_BYTES) {
                break;
            }
            test_expect(mqe_journal_scan_skip(&scan) > 0, __FILE__, __LINE__,
                        "skipping goes forward");
        }
    }
    return rows;
}

TEST_SERIAL(a_flipped_bit_is_found_or_changes_no_row)
{
    FIXTURE fixture;
    uint64_t clean = 0, digest = 0;
    enum mqe_journal_scan_result wrong;
    uint32_t found = 0, harmless = 0;
    fill(&fixture);
    CHECK_INT(run(fixture.bytes, fixture.used, true, true, false, &clean, &wrong), 8);
    for (uint64_t bit = 0; bit < fixture.used * 8; bit += bit > MQX_PAGE_SIZE * 8u ? 1u : 13u) {
        fixture.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        const uint32_t rows = run(fixture.bytes, fixture.used, true, true, false, &digest, &wrong);
        if (wrong == MQE_SCAN_END) {
            CHECK_INT(rows, 8);
            CHECK(digest == clean);
            harmless += 1; /* padding behind a batch */
        } else {
            found += 1;
        }
        (void)run(fixture.bytes, fixture.used, false, true, true, &digest, &wrong);
        fixture.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    printf(" (%u found, %u in padding)", found, harmless);
    CHECK(found > 30000);
}

TEST(an_end_before_the_limit_is_damage_and_bytes_beyond_it_are_not_read)
{
    FIXTURE fixture;
    uint64_t digest = 0;
    enum mqe_journal_scan_result wrong;
    fill(&fixture);
    CHECK_INT(run(fixture.bytes, fixture.used + MQX_PAGE_SIZE, true, true, false, &digest, &wrong),
              8);
    CHECK_INT(wrong, MQE_SCAN_DAMAGED);
    for (int bodies = 0; bodies < 2; bodies++) { /* an end that goes through the second batch */
        CHECK_INT(run(fixture.bytes, 3 * MQX_PAGE_SIZE, true, bodies, false, &digest, &wrong), 3);
        CHECK_INT(wrong, MQE_SCAN_DAMAGED);
    }
    memset(fixture.bytes + fixture.used - MQX_PAGE_SIZE, 0xff, MQX_PAGE_SIZE);
    CHECK_INT(run(fixture.bytes, fixture.used - MQX_PAGE_SIZE, true, true, false, &digest, &wrong),
              5);
    CHECK_INT(wrong, MQE_SCAN_END);
}

TEST(skipping_goes_on_at_the_next_good_batch)
{
    FIXTURE fixture;
    uint64_t digest = 0;
    enum mqe_journal_scan_result wrong;
    fill(&fixture);
    fixture.bytes[2 * MQX_PAGE_SIZE + 100] ^= 1; /* in the second batch */
    CHECK_INT(run(fixture.bytes, fixture.used, true, true, false, &digest, &wrong), 3);
    CHECK_INT(run(fixture.bytes, fixture.used, true, true, true, &digest, &wrong), 6);
    CHECK_INT(wrong, MQE_SCAN_DAMAGED);
    fixture.bytes[2 * MQX_PAGE_SIZE + 100] ^= 1;
    fixture.bytes[MQX_PAGE_SIZE + 100] ^= 1; /* in the first one, of one page */
    CHECK_INT(run(fixture.bytes, fixture.used, true, true, true, &digest, &wrong), 5);
    CHECK_INT(wrong, MQE_SCAN_DAMAGED);
}

/* Lengths, counts and LSNs that contradict each other under checksums that hold. */
TEST_SERIAL(bytes_that_lie_under_good_checksums_are_refused_or_read_without_a_step_outside)
{
    FIXTURE fixture;
    struct test_random random = {0};
    unsigned char *const copy = guarded();
    uint64_t digest = 0;
    enum mqe_journal_scan_result wrong;
    fill(&fixture);
    random.state = test_seed();
    for (uint32_t turn = 0; turn < 20000; turn++) {
        memcpy(copy, fixture.bytes, SIZE);
        uint64_t at = MQX_PAGE_SIZE;
        while (at < fixture.used) {
            const struct psj_batch *batch = (const void *)(copy + at);
            const uint32_t length = batch->length, records = batch->record_count;
            for (uint64_t i = sizeof *batch; i < length;) {
                const uint32_t size = mqx_record_length((void *)(copy + at + i));
                const uint64_t byte = 8 + test_below(&random, size - 8);
                if (test_below(&random, 3) == 0) {
                    copy[at + i + byte] = (unsigned char)test_below(&random, 256);
                }
                i += size;
            }
            seal_at(copy, at, length, records);
            at += mqx_round_up(length, MQX_PAGE_SIZE);
        }
        (void)run(copy, fixture.used, true, true, true, &digest, &wrong);
        (void)run(copy, fixture.used, turn % 2 == 0, turn % 3 == 0, true, &digest, &wrong);
    }
    drop(copy);
}

TEST(what_claims_more_bytes_than_there_are_is_refused_before_they_are_read)
{
    static const struct {
        uint32_t batch, record; /* lengths that are claimed; in the last page of the segment */
    } claims[] = {
        {2 * MQX_PAGE_SIZE, 2 * MQX_PAGE_SIZE - sizeof(struct psj_batch)},
        {MQX_PAGE_SIZE, MQX_PAGE_SIZE},
        {MQX_PAGE_SIZE, 8 * UINT16_MAX},
        {UINT32_MAX - 7, 8 * UINT16_MAX},
        {MQX_PAGE_SIZE, 0},
    };
    const uint64_t at = SIZE - MQX_PAGE_SIZE;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(claims); i++) {
        FIXTURE fixture;
        struct mqe_journal_scan scan;
        unsigned char *columns[64] = {NULL};
        struct mqe_journal_scan_rows rows = {.columns = (void **)(void *)columns, .capacity = 10};
        fixture_make(&fixture);
        struct psj_record record = {.eighths = (uint16_t)(claims[i].record / 8)};
        struct psj_batch head = {.magic = PS_BATCH_MAGIC, .lsn = BASE + at, .segment_no = 3,
                                 .length = claims[i].batch, .record_count = 1};
        const struct mqx_flush_batch_position place = {qm_id, salt, 3, 9, BASE + at};
        head.hash = mqx_flush_batch_hash(&place, &head);
        memcpy(fixture.bytes + at, &head, sizeof head);
        memcpy(fixture.bytes + at + sizeof head, &record, sizeof record);
        open_scan(&scan, &fixture);
        scan.limit = SIZE;
        scan.at = at;
        CHECK_INT(mqe_journal_scan_next(&scan, &rows), MQE_SCAN_DAMAGED);
        CHECK_INT((int64_t)mqe_journal_scan_skip(&scan), MQX_PAGE_SIZE);
    }
}

#if !defined(__SANITIZE_THREAD__) /* the race is the claim */
struct scribbler {
    unsigned char *bytes;
    uint64_t used;
    int stop;
};

static void *scribble(void *arg)
{
    struct scribbler *scribbler = arg;
    struct test_random random = {0};
    random.state = 7;
    while (__atomic_load_n(&scribbler->stop, __ATOMIC_RELAXED) == 0) {
        const uint64_t at = test_below(&random, scribbler->used / 4) * 4;
        volatile uint32_t *word = (volatile void *)(scribbler->bytes + at);
        const uint32_t before = *word;
        *word = (uint32_t)test_below(&random, 1u << 20);
        *word = before;
    }
    return NULL;
}

TEST(bytes_that_change_while_they_are_read_lead_nowhere_outside)
{
    FIXTURE fixture;
    pthread_t thread;
    uint64_t digest = 0;
    enum mqe_journal_scan_result wrong;
    fill(&fixture);
    struct scribbler scribbler = {fixture.bytes, fixture.used, 0};
    CHECK_INT(pthread_create(&thread, NULL, scribble, &scribbler), 0);
    for (uint32_t turn = 0; turn < 20000; turn++) {
        (void)run(fixture.bytes, fixture.used, turn % 2 == 0, true, true, &digest, &wrong);
    }
    __atomic_store_n(&scribbler.stop, 1, __ATOMIC_RELAXED);
    CHECK_INT(pthread_join(thread, NULL), 0);
}
#endif

TEST(pieces_of_a_body_in_another_segment_are_asked_for_and_found)
{
    FIXTURE fixture;
    struct mqe_journal_scan scan;
    struct table t;
    uint64_t digest = 0;
    enum mqe_journal_scan_result wrong;
    fixture_make(&fixture);
    begin(&fixture);
    put_pieces(&fixture, 3, 5000, 1700);
    seal(&fixture);
    /* the first piece moves to another segment, where its LSN says that it lies */
    unsigned char *const other = calloc(1, SIZE);
    unsigned char *const first = fixture.bytes + MQX_PAGE_SIZE + sizeof(struct psj_batch);
    const uint32_t first_length = mqx_record_length((void *)first);
    memcpy(other + 2 * MQX_PAGE_SIZE, first, first_length);
    struct psj_record *const second = (void *)(first + first_length);
    ((struct ps_chunk *)(void *)((unsigned char *)second + 40))->prev_lsn = 2 * MQX_PAGE_SIZE;
    struct psj_record *record = (void *)first;
    for (int i = 0; i < 3; i++) {
        record = (void *)((unsigned char *)record + mqx_record_length(record));
    }
    ((struct ps_chunked *)(void *)((unsigned char *)record + 240))->first_lsn = 2 * MQX_PAGE_SIZE;
    seal_at(fixture.bytes, MQX_PAGE_SIZE, fixture.length, fixture.records);

    open_scan(&scan, &fixture);
    table_make(&t, ROWS_MAX, true);
    CHECK_INT(mqe_journal_scan_next(&scan, &t.rows), MQE_SCAN_NEED_SEGMENT);
    CHECK_INT((int64_t)scan.need_lsn, 2 * MQX_PAGE_SIZE);
    const struct mqe_journal_scan_piece piece = {other, SIZE, 0};
    scan.pieces = &piece;
    scan.piece_count = 1;
    CHECK_INT(mqe_journal_scan_next(&scan, &t.rows), MQE_SCAN_END);
    CHECK_INT(t.rows.count, 1);
    unsigned char body[5000];
    body_of(body, 3, sizeof body);
    CHECK(memcmp(body, t.bodies, sizeof body) == 0);
    CHECK_INT(run(fixture.bytes, fixture.used, true, true, false, &digest, &wrong),
              1); /* lost: allowed */
    CHECK_INT(t.state[0], MQE_SCAN_BODY);
    free(other);
}

TEST(a_limit_beyond_the_bytes_is_refused_before_any_is_read)
{
    FIXTURE fixture;
    struct mqe_journal_scan scan;
    static void *no_columns[64];
    struct mqe_journal_scan_rows rows = {.columns = no_columns, .capacity = 1};
    fill(&fixture);
    CHECK_INT(mqe_journal_scan_open(&scan, fixture.bytes, SIZE, qm_id, 3), MQX_OK);
    CHECK(mqe_journal_scan_field_count <= MQX_ARRAY_COUNT(no_columns));
    scan.limit = SIZE + 4096;
    CHECK_INT(mqe_journal_scan_next(&scan, &rows), MQE_SCAN_DAMAGED);
    CHECK_INT(rows.count, 0);
}

TEST(what_is_no_segment_is_refused)
{
    FIXTURE fixture;
    struct mqe_journal_scan scan;
    static const uint8_t another[16] = {7};
    fill(&fixture);
    CHECK_INT(mqe_journal_scan_open(&scan, fixture.bytes, SIZE - 4096, qm_id, 3),
              MQRC_OBJECT_DAMAGED);
    CHECK_INT(mqe_journal_scan_open(&scan, fixture.bytes, 4096, qm_id, 3), MQRC_OBJECT_DAMAGED);
    CHECK_INT(mqe_journal_scan_open(&scan, fixture.bytes, SIZE, another, 3), MQRC_OBJECT_DAMAGED);
    CHECK_INT(mqe_journal_scan_open(&scan, fixture.bytes, SIZE, qm_id, 4), MQRC_OBJECT_DAMAGED);
    CHECK_INT(mqe_journal_scan_open(&scan, fixture.bytes, SIZE, NULL, 0), MQX_OK);
    fixture.bytes[200] ^= 1;
    CHECK_INT(mqe_journal_scan_open(&scan, fixture.bytes, SIZE, NULL, 0), MQRC_OBJECT_DAMAGED);
}

TEST(the_newest_mark_counts_wherever_its_header_lies)
{
    FIXTURE fixture;
    struct mqe_journal_scan scan;
    struct mqe_journal_scan_span span;
    fill(&fixture);
    open_scan(&scan, &fixture);
    scan.limit = SIZE;
    mqe_journal_scan_read_span(&scan, &span);
    CHECK_INT((int64_t)span.mark, BASE + 4 * MQX_PAGE_SIZE); /* of the third batch */
    CHECK_INT((int64_t)span.end_lsn, (int64_t)(BASE + fixture.used));
    CHECK_INT((int64_t)span.first_us, 1000 + MQX_PAGE_SIZE);
    CHECK_INT((int64_t)span.last_us, 1000 + 4 * MQX_PAGE_SIZE);
    begin(&fixture);
    seal(&fixture); /* a mark page, moved by 512 bytes, behind a batch that was lost */
    memmove(fixture.bytes + fixture.used + 512, fixture.bytes + fixture.batch,
            sizeof(struct psj_batch));
    memset(fixture.bytes + fixture.batch, 0, sizeof(struct psj_batch));
    mqe_journal_scan_read_span(&scan, &span);
    CHECK_INT((int64_t)span.mark, (int64_t)(BASE + fixture.batch));
}

/* What a body can hold: every field of the header of a batch to come, but not its hash. */
TEST(a_header_that_only_looks_like_one_is_no_mark_and_no_batch)
{
    FIXTURE fixture;
    struct mqe_journal_scan scan;
    struct mqe_journal_scan_span before, span;
    fill(&fixture);
    open_scan(&scan, &fixture);
    scan.limit = SIZE;
    mqe_journal_scan_read_span(&scan, &before);
    begin(&fixture);
    seal(&fixture);
    struct psj_batch *forged = (void *)(fixture.bytes + fixture.batch);
    forged->hash += 1;
    memcpy(fixture.bytes + fixture.used + 512, forged, sizeof *forged);
    mqe_journal_scan_read_span(&scan, &span);
    CHECK_MEM(&span, &before, sizeof span);
    CHECK_INT((int64_t)mqe_journal_scan_first_us(&scan), (int64_t)before.first_us);
}

TEST_MAIN()
