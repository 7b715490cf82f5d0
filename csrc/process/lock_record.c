/*
 * lock_record.c - see lock_record.h.
 */
#include "process/lock_record.h"

#include "base/assert.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_SIZE = 1024, RECORD_VERSION = 1, DECIMAL = 10, HEXADECIMAL = 16 };

/* The value of the line `key=`, which must be the next one; NULL otherwise. Moves *at behind the
 * line and ends the value with a NUL. */
static const char *next_value(char **at, const char *key)
{
    MQX_ASSERT(at != NULL && *at != NULL);
    MQX_ASSERT(key[0] != '\0');
    char *value = *at + strlen(key);
    if (strncmp(*at, key, strlen(key)) != 0) {
        return NULL;
    }
    char *end = strchr(value, '\n');
    if (end == NULL) {
        return NULL;
    }
    *end = '\0';
    *at = end + 1;
    return value;
}

static bool get_number(char **at, const char *key, int base, uint64_t *out)
{
    MQX_ASSERT(out != NULL);
    MQX_ASSERT(base == DECIMAL || base == HEXADECIMAL);
    char *end = NULL;
    const char *value = next_value(at, key);
    if (value == NULL || *value == '\0') {
        return false;
    }
    *out = strtoull(value, &end, base);
    return *end == '\0';
}

static bool get_bytes(char **at, const char *key, uint8_t out[16])
{
    MQX_ASSERT(out != NULL);
    static const char digits[] = "0123456789abcdef";
    const char *value = next_value(at, key);
    if (value == NULL || strlen(value) != 32) {
        return false;
    }
    for (int i = 0; i < 32; i++) {
        const char *digit = strchr(digits, value[i]);
        if (digit == NULL) {
            return false;
        }
        out[i / 2] = (uint8_t)(out[i / 2] << 4 | (digit - digits));
    }
    return true;
}

static bool get_text(char **at, const char *key, char *out, size_t size)
{
    MQX_ASSERT(size > 0);
    const char *value = next_value(at, key);
    if (value == NULL || strlen(value) >= size) {
        return false;
    }
    memcpy(out, value, strlen(value) + 1);
    return true;
}

static bool parse(char *text, struct mqx_lock_record *out)
{
    MQX_ASSERT(out != NULL);
    uint64_t version = 0, end = 0;
    char *at = text;
    memset(out, 0, sizeof *out);
    return get_number(&at, "penstock=", DECIMAL, &version) && version == RECORD_VERSION &&
           get_bytes(&at, "boot=", out->where.boot_id) &&
           get_number(&at, "namespace=", DECIMAL, &out->where.pid_namespace) &&
           get_text(&at, "libc=", out->where.libc, sizeof out->where.libc) &&
           get_number(&at, "device=", DECIMAL, &out->device) &&
           get_number(&at, "inode=", DECIMAL, &out->inode) &&
           get_number(&at, "layout=", HEXADECIMAL, &out->layout) &&
           get_bytes(&at, "incarnation=", out->incarnation) &&
           get_text(&at, "region=", out->region, sizeof out->region) &&
           get_text(&at, "directory=", out->directory, sizeof out->directory) &&
           get_number(&at, "end=", DECIMAL, &end) && end == 1;
}

int mqx_lock_record_read(struct mqx_io *io, int fd, struct mqx_lock_record *out, bool *out_found)
{
    MQX_ASSERT(fd >= 0);
    char text[RECORD_SIZE + 1];
    const int64_t n = io->ops->read(io, fd, text, RECORD_SIZE, 0);
    *out_found = false;
    if (n < 0) {
        return mqx_io_reason((int)n, "reading the file lock");
    }
    MQX_ASSERT(n <= RECORD_SIZE);
    text[n] = '\0';
    *out_found = parse(text, out) && strchr(out->region, '/') == NULL && out->region[0] != '\0';
    return MQX_OK;
}

static void hex(const uint8_t bytes[16], char out[33])
{
    MQX_ASSERT(bytes != NULL);
    for (int i = 0; i < 16; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
}

int mqx_lock_record_write(struct mqx_io *io, int fd, const struct mqx_lock_record *record)
{
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(strchr(record->region, '/') == NULL);
    char text[RECORD_SIZE + 1], boot[33], incarnation[33];
    hex(record->where.boot_id, boot);
    hex(record->incarnation, incarnation);
    memset(text, '\n', sizeof text);
    const int n = snprintf(
        text, sizeof text,
        "penstock=1\nboot=%s\nnamespace=%llu\nlibc=%s\ndevice=%llu\ninode=%llu\nlayout=%016llx\n"
        "incarnation=%s\nregion=%s\ndirectory=%s\nend=1\n",
        boot, (unsigned long long)record->where.pid_namespace, record->where.libc,
        (unsigned long long)record->device, (unsigned long long)record->inode,
        (unsigned long long)record->layout, incarnation, record->region, record->directory);
    MQX_ASSERT(n > 0);
    MQX_ASSERT(n < RECORD_SIZE); /* the longest fields of struct mqx_lock_record fit */
    text[n] = '\n';
    int err = mqx_io_write_all(io, fd, text, RECORD_SIZE, 0, 0);
    if (err == 0) {
        err = io->ops->sync(io, fd);
    }
    return err == 0 ? MQX_OK : mqx_io_reason(err, "writing the file lock");
}
