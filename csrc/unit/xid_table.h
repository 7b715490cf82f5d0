/*
 * xid_table.h - which context has which xid: hash chains over contexts, under the slots lock.
 *
 * A context is listed from just before its unit is prepared until the unit is over, and its xid is
 * fixed while it is listed. No xid is listed twice.
 */
#ifndef PENSTOCK_XIDS_H
#define PENSTOCK_XIDS_H

#include "region/region.h"

enum { MQX_XID_TEXT_SIZE = 300 };

/* The listed context with that xid, 0 when there is none. Slots lock held. */
uint32_t mqx_xid_table_find(const struct mqx_region *region, const struct ps_xid *xid);
/* Lists the context, whose xid has been filled in; slots lock held, one micro-transaction, left
 * open. */
void mqx_xid_table_add(struct mqx_region *region, uint32_t slot);
/* The same for taking it off. */
void mqx_xid_table_take_off(struct mqx_region *region, uint32_t slot);
/* Takes it off; takes the slots lock. */
int mqx_xid_table_remove(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;

bool mqx_xid_equal(const struct ps_xid *a, const struct ps_xid *b);
/* "PSPK:7f3a-01:0x00ff": a format id of four capital letters or digits, a letter first, as such,
 * else as a number; parts of letters, digits and ._- as they are, others in hexadecimal digits. */
const char *mqx_xid_text(const struct ps_xid *xid, char out[MQX_XID_TEXT_SIZE]);

#endif
