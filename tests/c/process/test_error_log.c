/*
 * test_error_log.c - proves mqx_log() of store.h: one line a message whatever the text, rotation,
 * writers that do not lose each other's lines, and that nothing goes wrong for the caller.
 */
#include "fixtures/store_fixture.h"

#include "process/error_log.h"

#include <pthread.h>

static struct memory_io *files;
static struct fixture_process process;

static void start(void)
{
    memory_io_free(files);
    files = fixture_new();
    fixture_attach(files, &process);
}

/* The log number 01, 02, 03 as a NUL-terminated text; NULL when there is none. */
static const char *log_text(int number, uint64_t *size)
{
    static char *text;
    char path[80];
    snprintf(path, sizeof path, FIXTURE_PATH "/errors/AMQERR%02d.LOG", number);
    const uint8_t *bytes = memory_io_bytes(files, path, size);
    free(text);
    text = bytes != NULL ? malloc(*size + 1) : NULL;
    if (text != NULL) {
        memcpy(text, bytes, *size);
        text[*size] = '\0';
    }
    return text;
}

static uint32_t count_lines(const char *text)
{
    uint32_t count = 0;
    for (const char *c = text; c != NULL && *c != '\0'; c++) {
        count += *c == '\n';
    }
    return count;
}

/* The last line without its newline. */
static void last_line(char *line, size_t size)
{
    uint64_t length = 0;
    const char *text = log_text(1, &length);
    CHECK(text != NULL && length > 0 && text[length - 1] == '\n');
    const char *start_of = text + length - 1;
    while (start_of > text && start_of[-1] != '\n') {
        start_of--;
    }
    snprintf(line, size, "%.*s", (int)(text + length - 1 - start_of), start_of);
}

TEST(a_line_has_time_pid_program_number_severity_and_text)
{
    char line[512], expected[512];
    start();
    memory_io_set_clock(files, UINT64_C(1763717772123456));
    mqx_log(process.store, 9407, 'W', "cluster queue %s defined inconsistently", "A.B");
    last_line(line, sizeof line);
    snprintf(expected, sizeof expected,
             "2025-11-21T09:36:12.123456Z %d test_error_log AMQ9407W cluster queue A.B defined "
             "inconsistently", (int)getpid());
    CHECK_STR(line, expected);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(control_characters_cannot_make_a_second_line_and_other_bytes_pass)
{
    char line[512];
    uint64_t size = 0;
    start();
    uint32_t before = count_lines(log_text(1, &size));
    mqx_log(process.store, 8003, 'I', "one\ntwo\r\x1b[31m \x7f caf\xc3\xa9");
    CHECK_INT(count_lines(log_text(1, &size)), before + 1);
    last_line(line, sizeof line);
    CHECK(strstr(line, "AMQ8003I one two  [31m   caf\xc3\xa9") != NULL);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(c1_controls_are_blanks_in_text_and_letters_beside_them_pass)
{
    char line[512];
    start();
    mqx_log(process.store, 8003, 'I', "a\xc2\x9b" "31mb\xc2\x80 \xc2\x9f \xc2\xa0 \xc3\x9b \xc2");
    last_line(line, sizeof line);
    CHECK(strstr(line, "AMQ8003I a  31mb      \xc2\xa0 \xc3\x9b \xc2") != NULL);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_text_of_any_length_is_one_line)
{
    static char big[100000];
    uint64_t size = 0;
    start();
    memset(big, 'x', sizeof big - 1);
    for (int n = 0; n < 4096; n += 61) {
        uint32_t before = count_lines(log_text(1, &size));
        uint64_t old = size;
        mqx_log(process.store, 1, 'E', "%.*s", n, big);
        CHECK_INT(count_lines(log_text(1, &size)), before + 1);
        CHECK(size - old <= 2048 && size - old > (n < 1900 ? (uint64_t)n : 1900));
    }
    mqx_log(process.store, 1, 'E', "%s", big);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(the_log_turns_over_at_two_megabytes_and_keeps_three_files)
{
    static char text[1001];
    uint64_t size = 0;
    start();
    memset(text, 'y', sizeof text - 1);
    for (uint32_t i = 0; i < 9000; i++) {
        mqx_log(process.store, 1, 'I', "%u %s", i, text);
    }
    uint32_t kept = 0;
    for (int number = 1; number <= 3; number++) {
        const char *log = log_text(number, &size);
        CHECK(log != NULL && size <= 2 << 20);
        CHECK(number == 1 || size > (2 << 20) - 2048);
        kept += count_lines(log);
    }
    CHECK(kept > 4000);
    uint64_t ignored = 0;
    CHECK(log_text(4, &ignored) == NULL);
    CHECK(strstr(log_text(1, &size), "8999 yyy") != NULL);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(an_error_at_any_call_does_the_caller_no_harm)
{
    bool struck = true;
    start();
    for (uint64_t at = 1; struck; at++) {
        const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = at, .error = EIO};
        const uint32_t open = memory_io_open_count(files);
        memory_io_set_fault(files, &fault);
        errno = 42;
        mqx_log(process.store, 1, 'I', "text");
        CHECK_INT(errno, 42);
        struck = memory_io_fault_strikes(files) > 0;
        memory_io_set_fault(files, NULL);
        CHECK_INT(memory_io_open_count(files), open);
    }
    mqx_log(process.store, 1, 'I', "it works again");
    CHECK(fixture_logged(files, "it works again"));
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_store_without_errors_directory_is_silently_passed_over)
{
    struct mqx_store store = {.io = mqx_io_posix(), .errors_dir = -1, .lock_fd = -1};
    mqx_log(&store, 1, 'E', "not read by the test");
}

enum { WRITERS = 4, LINES = 2000 };
static const uint64_t FOREVER_US = 600000000;
static pthread_barrier_t together; /* so that the threads write at the same time */

static void *write_lines(void *arg)
{
    pthread_barrier_wait(&together);
    for (int i = 0; i < LINES; i++) {
        mqx_log(process.store, 1, 'I', "writer %d line %d.", (int)(intptr_t)arg, i);
    }
    return NULL;
}

static void expect_lines(const char *text)
{
    char wanted[64];
    for (int writer = 0; writer < WRITERS; writer++) {
        for (int i = 0; i < LINES; i++) {
            snprintf(wanted, sizeof wanted, "writer %d line %d.\n", writer, i);
            CHECK(strstr(text, wanted) != NULL);
        }
    }
}

TEST(threads_lose_no_lines)
{
    pthread_t thread[WRITERS];
    uint64_t size = 0;
    start();
    mqx_log_patience_us = FOREVER_US;
    CHECK_INT(pthread_barrier_init(&together, NULL, WRITERS), 0);
    for (intptr_t i = 0; i < WRITERS; i++) {
        CHECK_INT(pthread_create(&thread[i], NULL, write_lines, (void *)i), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        CHECK_INT(pthread_join(thread[i], NULL), 0);
    }
    expect_lines(log_text(1, &size));
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

struct writer {
    const struct fixture_dirs *place;
    intptr_t number;
};

static int attach_and_write(void *arg)
{
    const struct writer *writer = arg;
    if (fixture_attach_real(writer->place, mqx_io_posix(), &process) != 0) {
        return 1;
    }
    write_lines((void *)writer->number);
    return fixture_detach(&process, NULL) == 0 ? 0 : 2;
}

TEST(processes_lose_no_lines)
{
    struct fixture_dirs place;
    pid_t child[WRITERS];
    char path[128];
    static char text[1 << 20];
    fixture_make_dirs(&place);
    mqx_log_patience_us = FOREVER_US;
    CHECK_INT(pthread_barrier_init(&together, NULL, 1), 0); /* of each child's copy */
    for (intptr_t i = 0; i < WRITERS; i++) {
        struct writer writer = {&place, i};
        child[i] = fixture_child(attach_and_write, &writer);
    }
    for (int i = 0; i < WRITERS; i++) {
        CHECK_INT(fixture_wait(child[i]), 0);
    }
    snprintf(path, sizeof path, "%s/errors/AMQERR01.LOG", place.path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    CHECK(n > 0);
    text[n] = '\0';
    expect_lines(text);
    fixture_remove_dirs(&place);
}

TEST_MAIN()
