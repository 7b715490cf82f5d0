/*
 * xid_table.h - which context has which xid: hash chains over contexts.
 *
 * Terms
 *   xid      the name of a unit of work at a transaction manager (struct ps_xid): format id, global
 *            transaction id, branch qualifier. Bytes beyond the lengths are zero, so two xids are
 *            equal exactly when their bytes are.
 *   listed   context.xid_listed is 1 and the context is in the chain of its xid.
 *   bucket   header.xid_bucket[hash of the xid]: the first context of its chain; context.xid_next
 *            is the next one.
 *
 * Invariants
 *   1. A context is listed from just before its unit is prepared until the unit is over; its xid is
 *      fixed while it is listed.
 *   2. No xid is listed twice.
 *
 * Locks: the slots lock is held by the caller and stores are part of its micro-transaction, except
 * of mqx_xid_table_remove, which takes it.
 *
 * Validation: a context outside its area, a chain longer than there are contexts, or a listed
 * context that is not in its chain is damage (rule 28); finding then finds nothing.
 */
#ifndef PENSTOCK_XID_TABLE_H
#define PENSTOCK_XID_TABLE_H

#include "region/region.h"

/* Of mqx_xid_text(): a format id of at most 11 characters, two parts of at most 64 bytes in
 * hexadecimal with "0x", two colons, a NUL. */
enum { MQX_XID_TEXT_SIZE = 300 };

/* The listed context with that xid, 0 when there is none. */
uint32_t mqx_xid_table_find(const struct mqx_region *region, const struct ps_xid *xid);
/* Lists the context, whose xid has been filled in and is not listed. Left open. */
int mqx_xid_table_add(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;
/* Takes a listed context out of its chain. Left open. */
int mqx_xid_table_unlink(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;
/* The same with the slots lock taken inside, committed. */
int mqx_xid_table_remove(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;

bool mqx_xid_equal(const struct ps_xid *a, const struct ps_xid *b);
/* "PSPK:7f3a-01:0x00ff": a format id of four capital letters or digits, a letter first, as such,
 * else as a number; parts of letters, digits and ._- as they are, others in hexadecimal digits. */
const char *mqx_xid_text(const struct ps_xid *xid, char out[MQX_XID_TEXT_SIZE]);

#endif
