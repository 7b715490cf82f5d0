/*
 * test_mapping_cache.c - proves mapping_cache.h: a mapping is kept for its own file, once, and for
 * no forked child.
 */
#include "fixtures/harness.h"
#include "region/mapping_cache.h"

#include <sys/mman.h>
#include <sys/wait.h>

enum { SIZE = 16 * 4096 };

struct file {
    int fd;
    struct mqx_io_stat facts;
    void *base;
};

static struct mqx_io *io(void)
{
    return mqx_io_posix();
}

/* A separate file, mapped as a region is, with `mark` as its first byte. */
static struct file mapped(char mark)
{
    struct file file = {.fd = memfd_create("kept", MFD_CLOEXEC)};
    CHECK(file.fd >= 0);
    CHECK_INT(io()->ops->truncate(io(), file.fd, SIZE), 0);
    CHECK_INT(io()->ops->stat(io(), file.fd, &file.facts), 0);
    CHECK_INT(io()->ops->map(io(), file.fd, SIZE, MQX_IO_MAP_REGION, &file.base), 0);
    *(char *)file.base = mark;
    return file;
}

static void put(const struct file *file)
{
    mqx_mapping_cache_put(io(), &file->facts, file->base, SIZE);
}

static void *take(const struct file *file)
{
    return mqx_mapping_cache_take(io(), &file->facts);
}

static bool is_mapped(void *at)
{
    unsigned char pages[SIZE / 4096];
    return mincore(at, SIZE, pages) == 0;
}

static void done(struct file *file)
{
    (void)io()->ops->close(io(), file->fd);
}

TEST(a_kept_mapping_is_given_once_to_who_maps_the_same_file)
{
    struct file a = mapped('a');
    CHECK(take(&a) == NULL);
    put(&a);
    void *again = take(&a);
    CHECK(again == a.base);
    CHECK_INT(*(char *)again, 'a');
    CHECK(take(&a) == NULL);
    CHECK(is_mapped(again));
    CHECK_INT(io()->ops->unmap(io(), again, SIZE), 0);
    done(&a);
}

TEST(who_maps_another_file_or_one_of_another_size_gets_none_and_it_is_unmapped)
{
    struct file a = mapped('a'), b = mapped('b');
    put(&a);
    CHECK(take(&b) == NULL);
    CHECK(!is_mapped(a.base));
    CHECK(take(&a) == NULL);
    put(&b);
    b.facts.size += 4096;
    CHECK(take(&b) == NULL);
    CHECK(!is_mapped(b.base));
    done(&a);
    done(&b);
}

TEST(of_two_that_are_kept_the_older_one_is_unmapped)
{
    struct file a = mapped('a'), b = mapped('b');
    put(&a);
    put(&b);
    CHECK(!is_mapped(a.base));
    CHECK(take(&b) == b.base);
    CHECK_INT(io()->ops->unmap(io(), b.base, SIZE), 0);
    done(&a);
    done(&b);
}

TEST(what_is_dropped_is_unmapped_and_dropping_nothing_does_nothing)
{
    struct file a = mapped('a');
    mqx_mapping_cache_drop();
    put(&a);
    mqx_mapping_cache_drop();
    CHECK(!is_mapped(a.base));
    CHECK(take(&a) == NULL);
    done(&a);
}

TEST(a_forked_child_has_none_and_may_keep_its_own)
{
    struct file a = mapped('a');
    put(&a);
    const pid_t pid = fork();
    if (pid == 0) {
        bool right = take(&a) == NULL;
        void *own = NULL;
        right = right && io()->ops->map(io(), a.fd, SIZE, MQX_IO_MAP_REGION, &own) == 0;
        a.base = own;
        put(&a);
        right = right && take(&a) == own;
        _exit(right ? 0 : 1);
    }
    int status = -1;
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK_INT(status, 0);
    CHECK(take(&a) == a.base);
    CHECK_INT(io()->ops->unmap(io(), a.base, SIZE), 0);
    done(&a);
}

TEST_MAIN()
