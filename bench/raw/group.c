/*
 * group.c - the limit of durable calls by many producers: leader and followers sharing a flush.
 *
 * Terms
 *   ticket   number of a record in the order in which records entered the pending buffer
 *   leader   the producer that found no flush under way; it takes the pending buffer, writes it as
 *            one batch of whole pages with one flushed call, and publishes its last ticket as
 *            durable
 *   follower waits on one futex word until its ticket is durable or the leader's place is free
 *
 * Invariants (all under `mutex` unless said otherwise)
 *   1. A record is in exactly one of the two buffers; `active` is the one that takes new records.
 *   2. Only the leader touches the buffer that is not active.
 *   3. `durable` never passes a ticket whose bytes have not been flushed; it is read without the
 *      lock.
 *   4. A follower returns only when durable >= its ticket.
 *
 * Threads and processes run the same code: the state is in a shared anonymous mapping, made before
 * the producers are. Each record carries producer and number, so that the read-back finds one left
 * out.
 */
#include "common.h"

#include "raw.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GROUP_BUFFER = 1 << 18, PRODUCERS_MAX = 64, BATCH_MAGIC = 0x57415242 };

struct group_batch { /* first bytes of a batch */
    uint32_t magic;
    uint32_t records;
    uint64_t first_ticket;
    uint64_t zero[6]; /* as long as the engine's batch header */
};

struct group_stamp { /* first bytes of a record */
    uint32_t producer;
    uint32_t number;
};

struct group {
    pthread_mutex_t mutex;
    uint32_t flush_word __attribute__((aligned(64))); /* futex: +1 after each flush */
    uint64_t durable __attribute__((aligned(64)));    /* ticket; release store, acquire load */
    uint64_t appended __attribute__((aligned(64)));   /* newest ticket */
    uint32_t leading;                                 /* 1 while a flush is under way */
    uint32_t active;
    uint32_t fill[2];                                 /* bytes in each buffer, header included */
    uint32_t records[2];
    uint64_t file_next;                               /* leader only */
    uint64_t flushes;                                 /* leader only */
    uint32_t ready __attribute__((aligned(64)));      /* producers that stand at the start */
    uint32_t go;                                      /* futex: 1 when all may start */
    uint32_t failed;                                  /* first errno of any producer */
    uint64_t started_ns;
    uint64_t ended_ns[PRODUCERS_MAX];
    unsigned char buffer[2][GROUP_BUFFER] __attribute__((aligned(4096)));
};

struct producer {
    struct group *group;
    int fd;
    uint32_t index;
    uint32_t each;
    uint32_t record_bytes;
    const unsigned char *source;
};

static void note_failure(struct group *group, int rc)
{
    uint32_t none = 0;

    __atomic_compare_exchange_n(&group->failed, &none, (uint32_t)-rc, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
}

static uint32_t load32(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Caller has set `leading`. Writes everything pending, publishes, gives the leader's place back. */
static int lead(struct group *group, int fd)
{
    bool dsync = true;
    struct group_batch head = {.magic = BATCH_MAGIC};
    uint64_t last;
    uint32_t side;
    uint64_t size;
    int rc;

    pthread_mutex_lock(&group->mutex);
    side = group->active;
    last = group->appended;
    group->active = 1 - side;
    group->fill[1 - side] = sizeof(head);
    group->records[1 - side] = 0;
    pthread_mutex_unlock(&group->mutex);

    head.records = group->records[side];
    head.first_ticket = last - head.records + 1;
    memcpy(group->buffer[side], &head, sizeof(head));
    size = raw_round_up(group->fill[side], RAW_PAGE);
    memset(group->buffer[side] + group->fill[side], 0, size - group->fill[side]);
    rc = raw_write_flushed(fd, group->buffer[side], size, group->file_next, &dsync);
    group->file_next += size;
    group->flushes++;

    pthread_mutex_lock(&group->mutex);
    __atomic_store_n(&group->durable, last, __ATOMIC_RELEASE);
    __atomic_store_n(&group->leading, 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&group->mutex);
    __atomic_add_fetch(&group->flush_word, 1, __ATOMIC_ACQ_REL);
    raw_futex_wake(&group->flush_word, INT_MAX);
    return rc;
}

/* Takes the leader's place when it is free. */
static bool try_to_lead(struct group *group)
{
    bool taken = false;

    pthread_mutex_lock(&group->mutex);
    if (group->leading == 0) {
        __atomic_store_n(&group->leading, 1, __ATOMIC_RELEASE);
        taken = true;
    }
    pthread_mutex_unlock(&group->mutex);
    return taken;
}

static int append_one(const struct producer *me, uint32_t number)
{
    struct group *group = me->group;
    struct group_stamp stamp = {.producer = me->index, .number = number};
    uint64_t ticket;

    pthread_mutex_lock(&group->mutex);
    unsigned char *at = group->buffer[group->active] + group->fill[group->active];
    memcpy(at, me->source, me->record_bytes);
    memcpy(at, &stamp, sizeof(stamp));
    group->fill[group->active] += me->record_bytes;
    group->records[group->active]++;
    ticket = ++group->appended;
    pthread_mutex_unlock(&group->mutex);

    for (;;) {
        uint32_t word = load32(&group->flush_word);
        if (__atomic_load_n(&group->durable, __ATOMIC_ACQUIRE) >= ticket)
            return 0;
        if (load32(&group->leading) == 0 && try_to_lead(group)) {
            if (__atomic_load_n(&group->durable, __ATOMIC_ACQUIRE) < ticket)
                return lead(group, me->fd);
            __atomic_store_n(&group->leading, 0, __ATOMIC_RELEASE);
            __atomic_add_fetch(&group->flush_word, 1, __ATOMIC_ACQ_REL);
            raw_futex_wake(&group->flush_word, 1);
            return 0;
        }
        raw_futex_wait(&group->flush_word, word);
    }
}

static void *produce(void *arg)
{
    const struct producer *me = arg;
    struct group *group = me->group;

    __atomic_add_fetch(&group->ready, 1, __ATOMIC_ACQ_REL);
    raw_futex_wake(&group->ready, 1);
    while (load32(&group->go) == 0)
        raw_futex_wait(&group->go, 0);
    for (uint32_t i = 0; i < me->each && load32(&group->failed) == 0; i++) {
        int rc = append_one(me, i);
        if (rc != 0)
            note_failure(group, rc);
    }
    group->ended_ns[me->index] = raw_now_ns();
    return NULL;
}

static void start_together(struct group *group, uint32_t producers)
{
    for (uint32_t n = load32(&group->ready); n < producers; n = load32(&group->ready))
        raw_futex_wait(&group->ready, n);
    group->started_ns = raw_now_ns();
    __atomic_store_n(&group->go, 1, __ATOMIC_RELEASE);
    raw_futex_wake(&group->go, INT_MAX);
}

/* Lets those that stand at the start go home without work. */
static void call_off(struct group *group, int rc)
{
    note_failure(group, rc);
    __atomic_store_n(&group->go, 1, __ATOMIC_RELEASE);
    raw_futex_wake(&group->go, INT_MAX);
}

static int run_threads(struct producer *all, uint32_t producers)
{
    pthread_t threads[PRODUCERS_MAX];
    struct group *group = all[0].group;
    uint32_t made = 0;
    int rc = 0;

    for (; made < producers && rc == 0; made += rc == 0)
        rc = -pthread_create(&threads[made], NULL, produce, &all[made]);
    if (rc == 0)
        start_together(group, producers);
    else
        call_off(group, rc);
    for (uint32_t i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    return rc;
}

static int run_processes(struct producer *all, uint32_t producers)
{
    pid_t children[PRODUCERS_MAX];
    struct group *group = all[0].group;
    uint32_t made = 0;
    int rc = 0;

    while (made < producers && rc == 0) {
        pid_t child = fork();
        if (child == 0) {
            produce(&all[made]);
            _exit(0);
        }
        if (child < 0)
            rc = -errno;
        else
            children[made++] = child;
    }
    if (rc == 0)
        start_together(group, producers);
    else
        call_off(group, rc);
    for (uint32_t i = 0; i < made; i++) {
        int status = 0;
        if (waitpid(children[i], &status, 0) != children[i] || status != 0)
            rc = -ECHILD;
    }
    return rc;
}

/* Reads the batches back: `total` records, each producer's numbers 0, 1, 2, ... in order. */
static int check_file(int fd, uint64_t end, uint32_t producers, uint32_t each,
                      uint32_t record_bytes)
{
    uint32_t next[PRODUCERS_MAX] = {0};
    unsigned char *batch = malloc(GROUP_BUFFER);
    int rc = batch == NULL ? -ENOMEM : 0;

    for (uint64_t at = 0; at < end && rc == 0;) {
        struct group_batch head;
        rc = raw_read_all(fd, &head, sizeof(head), at);
        uint64_t size = sizeof(head) + (uint64_t)head.records * record_bytes;
        if (rc == 0 && (head.magic != BATCH_MAGIC || size > GROUP_BUFFER))
            rc = -EBADMSG;
        if (rc == 0)
            rc = raw_read_all(fd, batch, size, at);
        for (uint32_t i = 0; i < head.records && rc == 0; i++) {
            struct group_stamp stamp;
            memcpy(&stamp, batch + sizeof(head) + (size_t)i * record_bytes, sizeof(stamp));
            if (stamp.producer >= producers || stamp.number != next[stamp.producer]++)
                rc = -EBADMSG;
        }
        at += raw_round_up(size, RAW_PAGE);
    }
    for (uint32_t p = 0; p < producers && rc == 0; p++)
        if (next[p] != each)
            rc = -EBADMSG;
    free(batch);
    return rc;
}

static int init_group(struct group *group)
{
    pthread_mutexattr_t shared;
    int rc = -pthread_mutexattr_init(&shared);

    if (rc == 0)
        rc = -pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    if (rc == 0)
        rc = -pthread_mutex_init(&group->mutex, &shared);
    group->fill[0] = sizeof(struct group_batch);
    memset(group->buffer, 0, sizeof(group->buffer)); /* no page faults in the measured part */
    return rc;
}

int raw_group_commit(const char *path, uint64_t bytes, uint32_t producers, uint32_t processes,
                     uint32_t each, uint32_t record_bytes, struct raw_group_result *out)
{
    struct producer all[PRODUCERS_MAX];
    unsigned char *source = NULL;
    struct group *group;
    int fd = -1;
    int rc;

    if (producers == 0 || producers > PRODUCERS_MAX || record_bytes < sizeof(struct group_stamp))
        return -EINVAL;
    if ((uint64_t)producers * record_bytes + sizeof(struct group_batch) > GROUP_BUFFER ||
        (uint64_t)producers * each * raw_round_up(record_bytes + 64u, RAW_PAGE) > bytes)
        return -EINVAL;
    group = mmap(NULL, sizeof(*group), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (group == MAP_FAILED)
        return -errno;
    rc = init_group(group);
    source = malloc(record_bytes);
    if (source == NULL)
        rc = -ENOMEM;
    if (rc == 0)
        rc = raw_make_whole(path, bytes, &fd);
    if (rc != 0)
        goto done;
    memset(source, 'm', record_bytes);
    for (uint32_t i = 0; i < producers; i++)
        all[i] = (struct producer){group, fd, i, each, record_bytes, source};
    rc = processes ? run_processes(all, producers) : run_threads(all, producers);
    if (rc == 0)
        rc = -(int)group->failed;
    if (rc == 0)
        rc = check_file(fd, group->file_next, producers, each, record_bytes);
    out->elapsed_ns = 0;
    for (uint32_t i = 0; i < producers; i++)
        if (group->ended_ns[i] - group->started_ns > out->elapsed_ns)
            out->elapsed_ns = group->ended_ns[i] - group->started_ns;
    out->flushes = group->flushes;
    out->records = (uint64_t)producers * each;
done:
    free(source);
    if (fd >= 0)
        close(fd);
    munmap(group, sizeof(*group));
    return rc;
}
