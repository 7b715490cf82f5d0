/*
 * checkpoint_reserve.h - room for one checkpoint that a full disk cannot take away (rule 59).
 *
 * Purpose. Messages that are got free the journal only with the checkpoints after them. So where
 * the disk is full, a checkpoint that cannot be written is the end of all gets as well. The file
 * checkpoint/checkpoint.reserve holds no information: its blocks are there already, zero-filled, so
 * that writing over them asks the disk for nothing.
 *
 * Its life
 *   kept       the maintenance step makes it, and lengthens it as messages become more. It is made
 *              for the first persistent message: most queue managers of a short life have none.
 *   used       a checkpoint that found no room is written over it, cut to its length, flushed,
 *              verified and renamed (checkpoint_file.h, invariant 4).
 *   replaced   the checkpoint that is then needed no more is renamed to be the next reserve, and
 *              lengthened by what was cut. So three files take turns however long the disk stays
 *              full.
 *
 * How long it is. The three files together must hold three checkpoints of the present size. The two
 * that are kept may be older and shorter: what they lack is part of the reserve, and goes on to
 * them when they take their turn. While messages are got, checkpoints become shorter. What a
 * message takes in one is known from the newest with many of them; where there was none yet, one is
 * taken early, since all fields of each would be six times as much.
 *
 * After an orderly end the messages are known, each with what it takes. So the reserve is cut to
 * what a checkpoint of any of them can need, with the gets that drain them, and stays so short
 * until new messages are put (journal/put_bound.c).
 *
 * What remains: another program that takes the blocks between the cut and the lengthening, some
 * milliseconds. The reserve is shorter then until there is room, and no put is accepted.
 *
 * Why a death or a power cut between any two steps is harmless. Nobody reads the file; a restart
 * does not need it. What was written over it stands under its name until it is whole and flushed.
 * A checkpoint becomes the reserve only when the two newer ones are on the medium, and before a
 * byte of it is changed the directory is flushed: no name of a checkpoint, whatever the medium kept
 * of the renames, leads to bytes of another one. A shorter file (a death while it is lengthened) is
 * lengthened later.
 *
 * Locks. The maintenance lock is held, or the region is used by this process alone (orderly end).
 * Errors: reasons of the file table; nothing stops.
 */
#ifndef PENSTOCK_CHECKPOINT_RESERVE_H
#define PENSTOCK_CHECKPOINT_RESERVE_H

#include "recovery/checkpoint_file.h"
#include "region/store.h"

/* Makes it, lengthens it, or shortens it, when it is not what is wanted
 * (mqx_journal_checkpoint_reserve()).
 * MQRC_STORAGE_MEDIUM_FULL: it is as long as the disk allows. */
int mqx_checkpoint_reserve_keep(struct mqx_store *store) MQX_MUST_USE;
/* The same in small pieces with pauses, so that commits get at the disk in between (rule 11): by
 * the maintenance, before puts need it. Each piece counts at once. */
int mqx_checkpoint_reserve_keep_paced(struct mqx_store *store) MQX_MUST_USE;
/* Before it is used: is there one? */
bool mqx_checkpoint_reserve_ready(struct mqx_store *store);
/* At once after it was used, when what was cut from it is free still. */
void mqx_checkpoint_reserve_renew(struct mqx_store *store);
/* That checkpoint, which nobody needs, becomes the reserve. False: it has its name still. */
bool mqx_checkpoint_reserve_from(struct mqx_store *store, const char *name);
/* A checkpoint of an orderly end has these lines and so many bytes: it is the newest, or the one
 * that the restart begins with. */
void mqx_checkpoint_reserve_know(struct mqx_store *store, const struct mqx_checkpoint_lines *lines,
                                 uint64_t size);
/* At the orderly end, behind the checkpoint: cuts what the next start can do without. What cannot
 * be cut stays. */
void mqx_checkpoint_reserve_cut(struct mqx_store *store);

#endif
