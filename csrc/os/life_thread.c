/*
 * life_thread.c - see life_thread.h.
 */
#include "os/life_thread.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/error.h"
#include "os/futex.h"
#include "os/host_info.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    STACK_BYTES = 1 << 20, /* of address space: sanitizers need it; two pages are used */
    ASK_AGAIN_US = 60000000,
};

/* What the kernel reads: one entry, whose futex word lies at a fixed distance. It has a page of its
 * own, which nobody writes after the thread's start. */
struct list {
    struct robust_list_head head;
    struct robust_list entry;
};

struct mqx_life_thread {
    struct list *list;
    void *stack;      /* NULL: the system's */
    uint32_t *word;
    pthread_t thread;
    int32_t pid;
    uint64_t start_time;
    uint32_t id;      /* atomic: 0 until the thread has registered its list */
    uint32_t ended;   /* atomic: futex word; 1: end */
};

MQX_STATIC_ASSERT(sizeof(struct list) <= MQX_PAGE_SIZE, "one page");

/* Sleeps until it is to end. glibc's list of robust mutexes of this thread is replaced: it takes
 * none. A kernel without such lists leaves the word unmarked, see life_thread.h. */
static void *run(void *arg)
{
    struct mqx_life_thread *life = arg;
    MQX_ASSERT(life->list != NULL);
    (void)syscall(SYS_set_robust_list, &life->list->head, sizeof life->list->head);
    life->start_time = mqx_own_start_time();
    mqx_store_release(&life->id, (uint32_t)syscall(SYS_gettid));
    mqx_futex_wake(&life->id, 1);
    while (mqx_load_acquire(&life->ended) == 0) {
        (void)mqx_futex_wait(&life->ended, 0, ASK_AGAIN_US);
    }
    return NULL;
}

static int make_list(uint32_t *word, struct list **out)
{
    MQX_ASSERT((uintptr_t)word % sizeof *word == 0);
    void *at = mmap(NULL, MQX_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
    if (at == MAP_FAILED) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a life thread");
    }
    struct list *list = at;
    list->entry.next = &list->head.list;
    list->head.list.next = &list->entry;
    list->head.futex_offset = (long)((uintptr_t)word - (uintptr_t)&list->entry);
    (void)mprotect(at, MQX_PAGE_SIZE, PROT_READ); /* if it is refused, the page stays writable */
    *out = list;
    return MQX_OK;
}

/* A mapping for the stack. A forked child, which lacks the thread, gives its memory to the next one
 * that it starts if it is the system's; thread sanitizers take the two for one. */
static void set_stack(struct mqx_life_thread *life, pthread_attr_t *attributes)
{
    MQX_ASSERT(life->stack == NULL);
    void *at = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        return; /* the default will do */
    }
    life->stack = at;
    (void)pthread_attr_setstack(attributes, at, STACK_BYTES);
}

/* All signals blocked, so that handlers run in the application's threads. */
static int create_thread(struct mqx_life_thread *life)
{
    MQX_ASSERT(life->id == 0);
    pthread_attr_t attributes;
    sigset_t all, before;
    int err = pthread_attr_init(&attributes);
    if (err != 0) {
        return err;
    }
    set_stack(life, &attributes);
    (void)sigfillset(&all);
    err = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (err == 0) {
        err = pthread_create(&life->thread, &attributes, run, life);
        if (err == EINVAL) { /* the program's thread-local data do not fit into such a stack */
            err = pthread_create(&life->thread, NULL, run, life);
        }
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    (void)pthread_attr_destroy(&attributes);
    return err;
}

static void free_life(struct mqx_life_thread *life)
{
    MQX_ASSERT(life != NULL);
    if (life->list != NULL) {
        (void)munmap(life->list, MQX_PAGE_SIZE);
    }
    if (life->stack != NULL) {
        (void)munmap(life->stack, STACK_BYTES);
    }
    free(life);
}

int mqx_life_thread_start(uint32_t *word, struct mqx_life_thread **out)
{
    MQX_ASSERT(word != NULL);
    MQX_ASSERT(mqx_load_relaxed(word) == 0);
    struct mqx_life_thread *life = calloc(1, sizeof *life);
    if (life == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a life thread");
    }
    life->word = word;
    life->pid = (int32_t)getpid();
    int status = make_list(word, &life->list);
    if (status == MQX_OK) {
        const int err = create_thread(life);
        status = err == 0 ? MQX_OK
                          : mqx_fail(MQRC_RESOURCE_PROBLEM,
                                     "the system refuses a thread for the attachment: %s "
                                     "(limits: RLIMIT_NPROC, memory)", strerror(err));
    }
    if (status != MQX_OK) {
        free_life(life);
        return status;
    }
    while (mqx_load_acquire(&life->id) == 0) {
        (void)mqx_futex_wait(&life->id, 0, ASK_AGAIN_US);
    }
    if (life->start_time == 0) {
        mqx_life_thread_end(life, true);
        return mqx_fail(MQRC_ENVIRONMENT_ERROR, "/proc does not show the threads of this process");
    }
    (void)pthread_setname_np(life->thread, "penstock-life");
    mqx_store_release(word, life->id);
    *out = life;
    return MQX_OK;
}

int32_t mqx_life_thread_id(const struct mqx_life_thread *life)
{
    MQX_ASSERT(life->id > 0);
    return (int32_t)life->id;
}

uint64_t mqx_life_thread_start_time(const struct mqx_life_thread *life)
{
    MQX_ASSERT(life->start_time != 0);
    return life->start_time;
}

void mqx_life_thread_end(struct mqx_life_thread *life, bool left)
{
    MQX_ASSERT(life != NULL);
    if (life->pid == (int32_t)getpid()) {
        if (left) {
            mqx_store_release(life->word, 0u);
        }
        mqx_store_release(&life->ended, 1u);
        mqx_futex_wake(&life->ended, 1);
        (void)pthread_join(life->thread, NULL);
    } else {
        life->stack = NULL; /* stays mapped in the child, see set_stack() */
    }
    free_life(life);
}
