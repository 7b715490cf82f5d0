/*
 * drop_cache.h - a file table in memory in which dropping the page cache shows what is on the
 * medium.
 *
 * After a flush failed it is unknown whether the bytes are on the medium, but the cache continues
 * showing them as if they were (rule 14). memory_io.h keeps both possibilities for a power cut;
 * this table decides which one it is when the core drops the cache of the file: by a choice that
 * alternates with `seed` the bytes are there or what was there before.
 */
#ifndef PENSTOCK_TESTS_DROP_CACHE_H
#define PENSTOCK_TESTS_DROP_CACHE_H

#include "fixtures/memory_io.h"

/* The table over `files`, valid until the next call, which forgets what was lost before. */
struct mqx_io *drop_cache_table(struct memory_io *files, uint64_t seed);

#endif
