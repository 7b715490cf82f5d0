/*
 * forked.c - "does this process own that store?" in a few nanoseconds (rule 32): mqx_forked() of
 * attach.h.
 *
 * One page a process, wiped at a fork (fork_guard.h), lists the stores that are attached here. In a
 * child it reads as zeroes, so a store that the parent attached is not in the list, whatever copy
 * of its memory the child has. The child may attach stores of its own; they enter the same page,
 * which is the child's by then.
 *
 * The page is made at the first attach and stays. Readers take no lock: they see a list that is
 * changed one aligned store at a time.
 */
#include "process/attach.h"
#include "base/atomic.h"
#include "base/assert.h"
#include "base/error.h"
#include "os/fork_guard.h"

struct page {
    uint64_t count; /* entries ever used: the others are NULL */
    const struct mqx_store *store[MQX_STORES_MAX];
};
MQX_STATIC_ASSERT(sizeof(struct page) <= MQX_PAGE_SIZE, "one page");

static struct page *page;
static struct mqx_local_lock guard;

bool mqx_forked(const struct mqx_store *store)
{
    struct page *list = mqx_load_acquire(&page);
    const uint64_t count = list == NULL ? 0 : mqx_load_acquire(&list->count);
    for (uint64_t i = 0; i < count; i++) {
        if (MQX_LIKELY(mqx_load_relaxed(&list->store[i]) == store)) {
            return false;
        }
    }
    return true;
}

static int make_page(void)
{
    void *at = NULL;
    const int status = mqx_fork_wiped_page(&at);
    if (status == MQX_OK) {
        mqx_store_release(&page, (struct page *)at);
    }
    return status;
}

/* guard held */
static int enter(const struct mqx_store *store)
{
    uint64_t i = 0;
    while (i < page->count && page->store[i] != NULL) {
        i++;
    }
    if (i == MQX_STORES_MAX) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM,
                        "this process has %d queue managers attached, which is the most",
                        MQX_STORES_MAX);
    }
    mqx_store_release(&page->store[i], store);
    if (i == page->count) {
        mqx_store_release(&page->count, i + 1);
    }
    return MQX_OK;
}

int mqx_fork_guard_add(const struct mqx_store *store)
{
    int status = MQX_OK;
    mqx_check(store != NULL);
    mqx_local_take(&guard);
    if (page == NULL) {
        status = make_page();
    }
    if (status == MQX_OK) {
        status = enter(store);
    }
    mqx_local_drop(&guard);
    return status;
}

void mqx_fork_guard_remove(const struct mqx_store *store)
{
    mqx_check(store != NULL);
    mqx_local_take(&guard);
    for (uint64_t i = 0; page != NULL && i < page->count; i++) {
        if (page->store[i] == store) {
            mqx_store_release(&page->store[i], NULL);
        }
    }
    mqx_local_drop(&guard);
}
