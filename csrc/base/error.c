/*
 * error.c - see error.h.
 *
 * The table of reasons is compiled into three switches; a code that stands in it twice is a compile
 * error. The text of the newest error is per thread, in ordinary (not initial-exec) thread-local
 * storage: only failing calls touch it, and static TLS space is scarce in a loaded library.
 */
#include "base/error.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 512 };
static __thread char error_text[TEXT_SIZE];

int mqx_fail(int reason, const char *format, ...)
{
    MQX_ASSERT(reason != MQX_OK);
    MQX_ASSERT(format != NULL);
    char fresh[TEXT_SIZE]; /* an argument may be the old text */
    va_list args;

    va_start(args, format);
    int length = vsnprintf(fresh, sizeof fresh, format, args);
    va_end(args);
    if (length < 0) {
        fresh[0] = '\0';
    }
    MQX_ASSERT(memchr(fresh, '\0', sizeof fresh) != NULL);
    memcpy(error_text, fresh, sizeof fresh);
    return reason;
}

const char *mqx_error_text(void)
{
    MQX_ASSERT(memchr(error_text, '\0', sizeof error_text) != NULL);
    return error_text;
}

void mqx_error_clear(void)
{
    error_text[0] = '\0';
}

#define MQX_REASON(code, name, cc, text) \
    case code: \
        return "MQRC_" #name;
const char *mqx_reason_name(int reason)
{
    switch (reason) {
#include "base/reason_codes.def"
    default:
        return "MQRC_UNKNOWN";
    }
}
#undef MQX_REASON

#define MQX_REASON(code, name, cc, text) \
    case code: \
        return text;
const char *mqx_reason_text(int reason)
{
    switch (reason) {
#include "base/reason_codes.def"
    default:
        return "this reason code is not known";
    }
}
#undef MQX_REASON

#define MQX_REASON(code, name, cc, text) \
    case code: \
        return cc;
int mqx_comp_code(int reason)
{
    switch (reason) {
#include "base/reason_codes.def"
    default:
        return MQCC_FAILED;
    }
}
#undef MQX_REASON
