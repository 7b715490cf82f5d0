/*
 * error_log.h - the error log of a queue manager: its files, its lines, and how writers take turns.
 *
 * Files: errors/AMQERR01.LOG is the newest, 02 and 03 are older. When a line would make 01 longer
 * than 2 MiB, 02 becomes 03, 01 becomes 02 and a new 01 begins; so at most 6 MiB are kept.
 *
 * A line, ended by a newline, fields separated by single blanks:
 *
 *     2025-11-21T09:36:12.123456Z 4711 python3 AMQ8003I text ...
 *     UTC time, process id, program, AMQ number with its severity (I, W or E), text to the end of
 *     the line
 *
 * Control characters in program and text (C0, DEL, C1) are replaced by blanks, so a line is always
 * one message and nothing in it acts on a terminal; other bytes above 127 are passed on (UTF-8).
 * Blanks in the program's name become underscores.
 *
 * Writers exclude each other by a record lock on one byte of the queue manager's `lock` file (never
 * on the log itself: closing it would drop the lock of another thread), and threads of one process
 * by a local lock. Waiting is bounded; a writer that waited in vain writes all the same, since a
 * line that overwrites another one is better than none. Lines are not flushed: the log promises
 * nothing.
 *
 * Errors: none. A line that cannot be written is lost, as is every line once the program has closed
 * the store's descriptors (region/store.h); errno is left as it was.
 *
 * Locks: never called under a lock of the region, but by a thread that has waited 5 s for another
 * one with the maintenance lock held (lock_watchdog.h).
 */
#ifndef PENSTOCK_ERROR_LOG_H
#define PENSTOCK_ERROR_LOG_H

#include "region/store.h"

/* How long a line waits for its turn: 0.1 s. Tests that count lines raise it, since a writer may be
 * off its processor for longer. */
extern uint64_t mqx_log_patience_us;

/* One line in errors/ and, through it, for `penstock errors`: AMQ number, severity 'I' 'W' 'E',
 * text. Never called under a lock of the region. */
void mqx_log(struct mqx_store *store, int amq, char severity, const char *format, ...)
    MQX_COLD MQX_PRINTF(4, 5);

#endif
