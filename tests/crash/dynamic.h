/*
 * dynamic.h - a random life of a dynamic queue, for crash experiments: made or found, used outside
 * and inside a unit, closed with any option, while other processes do the same.
 */
#ifndef PENSTOCK_TESTS_DYNAMIC_H
#define PENSTOCK_TESTS_DYNAMIC_H

#include "crash_fixture.h"

enum { DYNAMIC_PERMANENT = 2, DYNAMIC_TEMPORARY = 3 };

/* mqe_open_new of that name, open for everything; *as is a fixture whose queue 0 it is. */
int dynamic_make(mqe_manager *manager, const char *name, int definition, mqe_queue **out,
                 struct crash_fixture *as);
/* The queue of that name, opened; the reason when it is not there. */
int dynamic_open(mqe_manager *manager, const char *name, uint32_t options, mqe_queue **out,
                 struct crash_fixture *as);
/* One turn of a worker: a queue of one of a few names that all workers share. The unit, which must
 * be empty, is ended. Exits with a text when a reason comes that cannot be. */
void dynamic_turn(mqe_manager *manager, mqe_unit *unit, uint64_t (*random)(uint64_t *),
                  uint64_t *state);

#endif
