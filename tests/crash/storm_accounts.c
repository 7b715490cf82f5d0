/*
 * storm_accounts.c - what the supervisor of a kill storm knows of every message: see storm.h.
 */
#include "storm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct fate *table;
static uint32_t table_size;
static uint64_t complaints;

void storm_accounts_make(uint32_t size)
{
    table = mmap(NULL, size * sizeof *table, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED || (size & (size - 1)) != 0) {
        fixture_die("a table of that size", errno);
    }
    table_size = size;
}

void storm_accounts_forget(void)
{
    if (madvise(table, table_size * sizeof *table, MADV_REMOVE) != 0) {
        memset(table, 0, table_size * sizeof *table);
    }
    storm.shared->known = 0;
}

static struct fate *fate_of(uint64_t id)
{
    uint64_t at = (id * 0x9e3779b97f4a7c15ull >> 32) % table_size;
    while (table[at].id != 0 && table[at].id != id) {
        at = (at + 1) % table_size;
    }
    if (table[at].id == 0) {
        if (++storm.shared->known > table_size / 2) {
            fixture_die("more ids than the table holds: fewer kills or less time", 0);
        }
        table[at].id = id;
        table[at].persistent = id % 4 != 0;
    }
    return &table[at];
}

void storm_apply(const struct note *note)
{
    for (uint32_t i = 0; i < note->count; i++) {
        struct fate *fate = fate_of(note->id[i]);
        switch (note->kind) {
        case INTENT: fate->intended++; fate->unit = note->id[0]; break;
        case ACKED: fate->acked++; break;
        case TAKING: fate->taking = 1; break;
        case UNDONE: fate->undone++; break;
        default: fate->took++; break;
        }
    }
    storm.units_acked += note->kind == ACKED;
    storm.units_undone += note->kind == UNDONE;
}

static void complain(const char *what, uint64_t id)
{
    if (complaints++ < 20) {
        fprintf(stderr, "%s: worker %llu incarnation %llu counter %llu\n", what,
                (unsigned long long)(id >> 48), (unsigned long long)(id >> 24 & 0xffffff),
                (unsigned long long)(id & 0xffffff));
    }
}

uint32_t storm_browse(mqe_manager *manager, int q, bool persistent_only, FILE *list)
{
    static unsigned char buffer[1 << 20];
    static uint64_t newest[WORKERS_MAX + 1][3];
    mqe_queue *queue = NULL;
    uint32_t count = 0;
    memset(newest, 0, sizeof newest);
    storm_must("open", mqe_open_direct(manager, storm.fixture.slot[q], storm.fixture.generation[q],
                                       MQE_BROWSE, &queue));
    for (;;) {
        struct mqe_get get = {.flags = MQE_GET_BROWSE_NEXT, .buffer = buffer,
                              .capacity = sizeof buffer};
        uint64_t id;
        const int reason = mqe_get(manager, NULL, queue, &get);
        if (reason == MQRC_NO_MSG_AVAILABLE) {
            break;
        }
        storm_must("browse", reason);
        memcpy(&id, get.d.correl_id, sizeof id);
        count++;
        struct fate *fate = fate_of(id);
        if (persistent_only && !fate->persistent) {
            complain("a non-persistent message after a restart", id);
        }
        fate->queued++;
        if (list != NULL) {
            fprintf(list, "%c %llu %llu\n", 'A' + q, (unsigned long long)id,
                    (unsigned long long)get.length);
        }
        uint64_t *last = &newest[(id >> 48) % (WORKERS_MAX + 1)][id % 3];
        if (q == 0 && id <= *last) {
            complain("out of order", id);
        }
        *last = id;
    }
    (void)mqe_close(queue, MQE_CLOSE_KEEP);
    return count;
}

FILE *storm_open_list(const char *prefix)
{
    char name[300];
    snprintf(name, sizeof name, "%s-found.txt", prefix);
    FILE *list = fopen(name, "w");
    if (list == NULL) {
        fixture_die(name, errno);
    }
    return list;
}

void storm_check(const char *witness, bool persistent_only)
{
    for (uint64_t i = 0; i < table_size; i++) {
        const struct fate *f = &table[i];
        if (f->id == 0 || (persistent_only && !f->persistent)) {
            continue;
        }
        if (f->intended == 0) {
            complain("invented", f->id);
        }
        if (f->took > 1 || f->queued > 1 || (f->took != 0 && f->queued != 0)) {
            complain("doubled", f->id);
        }
        if (f->acked != 0 && f->took == 0 && f->queued == 0 && f->taking == 0) {
            complain("lost", f->id);
        }
        if (f->undone != 0 && (f->queued != 0 || f->took != 0)) {
            complain("back after a backout", f->id);
        }
        const struct fate *unit = fate_of(f->unit != 0 ? f->unit : f->id);
        const bool here = f->queued != 0 || f->took != 0;
        if (f->acked == 0 && here && unit->persistent == f->persistent && unit->acked == 0 &&
            unit->queued == 0 && unit->took == 0 && unit->taking == 0) {
            complain("half a unit", f->id);
        }
    }
    if (complaints != 0) {
        fprintf(stderr, "%s FAILED (%s): %llu complaints, seed %llu\n", storm.layer,
                witness, (unsigned long long)complaints, (unsigned long long)storm.seed);
        exit(1);
    }
}

void storm_clear_queued(void)
{
    for (uint64_t i = 0; i < table_size; i++) {
        table[i].queued = 0;
    }
}

uint32_t storm_end_prepared(mqe_manager *manager)
{
    static struct ps_xid xids[FIXTURE_PREPARED_MAX];
    const uint32_t count = fixture_prepared(manager, FIXTURE_COMMITS, xids) +
                           fixture_prepared(manager, FIXTURE_BACKS_OUT, xids);
    fixture_resolve(manager, UINT32_MAX);
    return count;
}

void storm_settle(void)
{
    for (uint64_t i = 0; i < table_size; i++) {
        struct fate *f = &table[i];
        if (f->id == 0 || !f->persistent) {
            continue;
        }
        if (f->queued != 0) {
            f->acked = 1;
            f->taking = 0;
        } else if (f->taking != 0) {
            f->took = 1;
        } else if (f->took == 0) {
            f->undone = 1;
        }
    }
}
