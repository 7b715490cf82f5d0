/*
 * fork_guard.h - a page of memory that reads as zeroes in a forked child, for what belongs to one
 * process alone (rule 32).
 */
#ifndef PENSTOCK_WIPED_H
#define PENSTOCK_WIPED_H

#include "base/base.h"

/* MQX_PAGE_SIZE bytes of zeroes, MADV_WIPEONFORK; they stay until the process ends. 2012 2071 */
int mqx_fork_wiped_page(void **out) MQX_MUST_USE;

#endif
