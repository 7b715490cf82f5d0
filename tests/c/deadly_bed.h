/*
 * deadly_bed.h - other processes for tests on engine_bed.h: real ones, which attach to the bed's
 * queue manager, do something, and are ended by SIGKILL, at the end or at a write of theirs.
 */
#ifndef PENSTOCK_TESTS_DEADLY_BED_H
#define PENSTOCK_TESTS_DEADLY_BED_H

#include "engine_bed.h"

static struct mqx_io_ops deadly_ops;
static struct mqx_io deadly_io;
static int writes_left = 1000000; /* a child dies at the write behind so many */

static int deadly_write(struct mqx_io *io, int fd, const struct iovec *parts, int part_count,
                        uint64_t offset, int flags)
{
    (void)io;
    if (writes_left-- == 0) {
        (void)kill(getpid(), SIGKILL);
    }
    return mqx_io_posix()->ops->write(mqx_io_posix(), fd, parts, part_count, offset, flags);
}

struct part { /* what a child does once it has attached; then it dies */
    int (*play)(const struct part *part);
    struct queue q;
    uint32_t how;
};

static int act(void *arg)
{
    const struct part *part = arg;
    deadly_ops = *mqx_io_posix()->ops;
    deadly_ops.write = deadly_write;
    deadly_io.ops = &deadly_ops;
    engine.handle_count = 0;
    engine.unit_count = 0;
    if (mqx_manager_attach(&deadly_io, engine.path, &engine.settings, &engine.manager,
                           &engine.info) != 0) {
        return 3;
    }
    const int code = part->play(part);
    if (code == 0) {
        (void)kill(getpid(), SIGKILL);
    }
    return code;
}

static void after_death_in(int (*play)(const struct part *part), struct queue q, uint32_t how)
{
    struct part part = {play, q, how};
    CHECK_INT(in_child(act, &part), 1000 + SIGKILL);
}

#endif
