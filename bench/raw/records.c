/*
 * records.c - the floor of a batch: a memcpy loop over the same records, in and out.
 *
 * A record is a descriptor and a body. Descriptors lie in one array, bodies in another, as a batch
 * has them; in shared memory a record is whole, and begins on a cache line. Every page has been
 * touched before the clock starts. No queue, no lock, no order, no result.
 */
#include "common.h"

#include "raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct arrays {
    unsigned char *rows;
    unsigned char *bodies;
};

static int make_arrays(struct arrays *arrays, uint64_t rows, uint64_t bodies, int fill)
{
    arrays->rows = malloc(rows);
    arrays->bodies = malloc(bodies);
    if (arrays->rows == NULL || arrays->bodies == NULL)
        return -ENOMEM;
    memset(arrays->rows, fill, rows);
    memset(arrays->bodies, fill, bodies);
    return 0;
}

static void free_arrays(struct arrays *arrays)
{
    free(arrays->rows);
    free(arrays->bodies);
}

int raw_copy_records(uint32_t row, uint32_t bytes, uint32_t count, uint64_t *in_ns,
                     uint64_t *out_ns)
{
    const uint64_t step = raw_round_up(row + (uint64_t)bytes, 64);
    struct arrays from = {NULL, NULL};
    struct arrays to = {NULL, NULL};
    unsigned char *area = mmap(NULL, step * count, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc;

    if (area == MAP_FAILED)
        return -errno;
    memset(area, 0, step * count);
    rc = make_arrays(&from, (uint64_t)row * count, (uint64_t)bytes * count, 'm');
    if (rc == 0)
        rc = make_arrays(&to, (uint64_t)row * count, (uint64_t)bytes * count, 0);
    if (rc == 0) {
        const uint64_t begun = raw_now_ns();

        for (uint64_t i = 0; i < count; i++) {
            memcpy(area + i * step, from.rows + i * row, row);
            memcpy(area + i * step + row, from.bodies + i * bytes, bytes);
        }
        const uint64_t between = raw_now_ns();

        for (uint64_t i = 0; i < count; i++) {
            memcpy(to.rows + i * row, area + i * step, row);
            memcpy(to.bodies + i * bytes, area + i * step + row, bytes);
        }
        *in_ns = between - begun;
        *out_ns = raw_now_ns() - between;
        if (memcmp(to.rows, from.rows, (uint64_t)row * count) != 0 ||
            memcmp(to.bodies, from.bodies, (uint64_t)bytes * count) != 0)
            rc = -EBADMSG;
    }
    free_arrays(&from);
    free_arrays(&to);
    munmap(area, step * count);
    return rc;
}
