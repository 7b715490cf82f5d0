/*
 * stop_flag.c - see stop_flag.h.
 */
#include "region/stop_flag.h"

#include "base/error.h"
#include "os/futex.h"
#include "os/host_info.h"
#include "region/access.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- the cause ---- */

/* The first one is kept: what follows a stop is its consequence. */
static void note_cause(struct mqx_header *header, const char *call, int error)
{
    struct mqx_stop_cause *cause = &header->stop_cause;
    MQX_ASSERT(call != NULL);
    MQX_ASSERT(error >= 0);
    if (!mqx_cas32(&cause->claim, MQX_CAUSE_NONE, MQX_CAUSE_CLAIMED)) {
        return;
    }
    cause->error = error;
    cause->pid = (int32_t)getpid();
    (void)snprintf(cause->call, sizeof cause->call, "%s", call);
    (void)snprintf(cause->program, sizeof cause->program, "%s", mqx_program_name());
    mqx_store_release(&cause->claim, (uint32_t)MQX_CAUSE_WRITTEN);
}

/* Validates a copy, since the region may be what is damaged. */
static bool read_cause(const struct mqx_region *region, struct mqx_stop_cause *out)
{
    MQX_ASSERT(region->header != NULL);
    MQX_ASSERT(out != NULL);
    if (mqx_load_acquire(&region->header->stop_cause.claim) != MQX_CAUSE_WRITTEN) {
        return false;
    }
    memcpy(out, &region->header->stop_cause, sizeof *out);
    return memchr(out->call, '\0', sizeof out->call) != NULL &&
           memchr(out->program, '\0', sizeof out->program) != NULL && out->error >= 0 &&
           out->pid > 0;
}

bool mqx_region_stop_cause(const struct mqx_region *region, char out[MQX_STOP_TEXT])
{
    struct mqx_stop_cause cause;
    char meaning[64];
    int length = 0;
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(out != NULL);
    out[0] = '\0';
    if (!read_cause(region, &cause)) {
        return false;
    }
    if (cause.error != 0) {
        length = snprintf(out, MQX_STOP_TEXT, "%s: %s (errno %d), ", cause.call,
                          strerror_r(cause.error, meaning, sizeof meaning), cause.error);
    } else if (cause.call[0] != '\0') {
        length = snprintf(out, MQX_STOP_TEXT, "%s, ", cause.call);
    }
    const size_t used = length > 0 && length < MQX_STOP_TEXT ? (size_t)length : 0;
    (void)snprintf(out + used, MQX_STOP_TEXT - used, "in process %d (%s)", cause.pid,
                   cause.program);
    return true;
}

/* ---- the flag ---- */

void mqx_region_stop_header(struct mqx_header *header, uint32_t how)
{
    MQX_ASSERT(header != NULL);
    MQX_ASSERT(how == MQX_STOP_BROKEN || how == MQX_STOP_ENDED);
    if (how == MQX_STOP_BROKEN) {
        note_cause(header, "", 0); /* unless the caller had more to say */
    }
    if (!mqx_cas32(&header->stopped, MQX_RUNNING, how) && how == MQX_STOP_BROKEN) {
        mqx_store_release(&header->stopped, how);
    }
    MQX_ASSERT(mqx_load_acquire(&header->stopped) != MQX_RUNNING);
}

void mqx_region_stop(const struct mqx_region *region, uint32_t how)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(region->area[MQX_AREA_CONTEXTS] != NULL);
    struct mqx_header *header = region->header;
    mqx_region_stop_header(header, how);
    mqx_futex_raise(&header->journal.flush_word, INT_MAX);
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    for (uint64_t slot = 1; slot < used; slot++) {
        struct mqx_context *context = mqx_context(region, (uint32_t)slot);
        if (context != NULL) { /* else the capacity was damaged in between */
            mqx_futex_raise(&context->wait_word, INT_MAX);
        }
    }
    for (uint32_t slot = 0; slot < MQX_PROCESS_MAX; slot++) {
        if (mqx_load_relaxed(&header->process[slot].state) != MQX_PROC_FREE) {
            mqx_futex_raise(&header->process[slot].doorbell, INT_MAX);
        }
    }
}

void mqx_region_stop_because(const struct mqx_region *region, const char *call, int error)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(call != NULL && call[0] != '\0');
    note_cause(region->header, call, error);
    mqx_region_stop(region, MQX_STOP_BROKEN);
}

static MQX_COLD int fail_stopped(const struct mqx_region *region)
{
    char cause[MQX_STOP_TEXT];
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(mqx_region_stopped(region) != MQX_RUNNING);
    return mqx_region_stop_cause(region, cause)
               ? mqx_fail(MQRC_CONNECTION_BROKEN,
                          "the queue manager has stopped after an error (%s); connect again", cause)
               : mqx_fail(MQRC_CONNECTION_BROKEN,
                          "the queue manager has stopped after an error; connect again");
}

int mqx_region_stop_reason(const struct mqx_region *region)
{
    MQX_ASSERT(region->header != NULL);
    switch (mqx_region_stopped(region)) {
    case MQX_RUNNING: return MQX_OK;
    case MQX_STOP_ENDED: return mqx_fail(MQRC_Q_MGR_STOPPING, "the queue manager was ended");
    default: return fail_stopped(region);
    }
}
