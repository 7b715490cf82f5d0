/* Claims of scan_columns.c: every column has its place in one of the structs, and a row gets the
 * values of the record that it stands for. */
#include "fixtures/harness.h"
#include "journal/scan_columns.h"

enum { COLUMNS = 64, WIDEST = 64, ROWS = 3 };
static unsigned char memory[COLUMNS][ROWS * WIDEST];

static const unsigned char *column(const char *name)
{
    for (uint32_t i = 0; i < mqe_journal_scan_field_count; i++) {
        if (strcmp(mqe_journal_scan_fields[i].name, name) == 0) {
            return memory[i] + mqe_journal_scan_fields[i].size;
        }
    }
    CHECK(false); /* no column of that name */
    return NULL;
}

/* Row 1 of all columns. */
static void give(const struct ps_descriptor *descriptor, const struct ps_descriptor_ext *ext)
{
    void *columns[COLUMNS] = {NULL};
    const struct mqe_journal_scan_rows rows = {.columns = columns, .capacity = ROWS, .count = 1};
    const struct mqx_scan_row row = {.event = 1, .lsn = 77, .name = "SOME.QUEUE      "};
    CHECK(mqe_journal_scan_field_count <= COLUMNS);
    memset(memory, 0xee, sizeof memory);
    for (uint32_t i = 0; i < mqe_journal_scan_field_count; i++) {
        columns[i] = memory[i];
    }
    mqx_scan_give_row(&rows, &row, descriptor, ext);
    for (uint32_t i = 0; i < mqe_journal_scan_field_count; i++) { /* its neighbours are left */
        const uint32_t size = mqe_journal_scan_fields[i].size;
        CHECK(size > 0 && size <= WIDEST);
        CHECK_INT(memory[i][size - 1], 0xee);
        CHECK_INT(memory[i][2 * size], 0xee);
    }
}

TEST(a_row_has_the_values_of_record_descriptor_and_extension)
{
    const struct ps_descriptor d = {.format = {'M', 'Q', 'S', 'T', 'R', ' ', ' ', ' '},
                                    .priority = 7};
    const struct ps_descriptor_ext ext = {.msg_seq_number = 9};
    int32_t value;
    uint64_t lsn;
    give(&d, &ext);
    memcpy(&lsn, column("lsn"), sizeof lsn);
    CHECK_INT((int64_t)lsn, 77);
    memcpy(&value, column("priority"), sizeof value);
    CHECK_INT(value, 7);
    memcpy(&value, column("msg_seq_number"), sizeof value);
    CHECK_INT(value, 9);
    CHECK_MEM(column("format"), "MQSTR\0\0", 8);
    CHECK_MEM(column("object_name"), "SOME.QUEUE\0\0\0\0\0", 16);
}

TEST(without_an_extension_its_initial_values_and_without_a_descriptor_zeroes)
{
    const struct ps_descriptor d = {.priority = 7};
    int32_t value;
    give(&d, NULL);
    memcpy(&value, column("original_length"), sizeof value);
    CHECK_INT(value, -1);
    give(NULL, NULL);
    memcpy(&value, column("original_length"), sizeof value);
    CHECK_INT(value, 0);
    memcpy(&value, column("priority"), sizeof value);
    CHECK_INT(value, 0);
}

TEST_MAIN()
