/*
 * region_bed.h - a bare region in memory, for tests of what lies below the queues: locks, areas,
 * blocks. Forked children share it (memory_io.h), so they can die in it.
 */
#ifndef PENSTOCK_TESTS_REGION_BED_H
#define PENSTOCK_TESTS_REGION_BED_H

#include "arena.h"
#include "error.h"
#include "harness.h"
#include "memory_io.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

static struct memory_io *region_files;
static struct mqx_region region;

static struct mqx_region_plan region_plan(void)
{
    struct mqx_region_plan plan;
    mqx_region_default_plan(&plan);
    plan.size = UINT64_C(1) << 30;
    plan.ring_size = 4 * (uint64_t)MQX_RING_RECORD_MAX;
    plan.stripe_count = 4;
    plan.name_bucket_count = 64;
    plan.growth_step = 65536;
    return plan;
}

__attribute__((unused)) static void region_end(void)
{
    if (region_files != NULL) {
        mqx_region_close(&region);
        memory_io_free(region_files);
    }
    region_files = NULL;
}

/* A directory for regions; no region yet. */
__attribute__((unused)) static int region_dir(void)
{
    region_end();
    region = (struct mqx_region){0};
    region_files = memory_io_new();
    memory_io_region_dir(region_files, "/shm");
    struct mqx_io *io = memory_io_table(region_files);
    return io->ops->open_dir(io, "/shm");
}

__attribute__((unused)) static void region_begin_with(const struct mqx_region_plan *plan)
{
    const int dir = region_dir();
    CHECK_INT(mqx_region_create(memory_io_table(region_files), dir, "r", plan, &region), 0);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_CONTEXTS, 4096), 0);
}

__attribute__((unused)) static void region_begin(void)
{
    const struct mqx_region_plan plan = region_plan();
    region_begin_with(&plan);
}

/* Runs body(arg) in a child that then dies as by SIGKILL, whatever it holds. */
__attribute__((unused)) static void killed_after(void (*body)(void *), void *arg)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        body(arg);
        (void)kill(getpid(), SIGKILL);
    }
    CHECK(child > 0);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

#endif
