/*
 * Epochs: one more at each start of a manager, with a random incarnation and the revision at which
 * it began, all kept in the store. With them a manager can tell whether an assignment that an agent
 * holds was given in the history of this store:
 *
 *   the epoch is in the store, with the same incarnation, and the assignment's revision is before
 *   the next epoch began.
 *
 * A new store knows no such epoch. A store restored from a copy knows those up to the copy, and its
 * next epoch begins at a revision that is before what was given after the copy was made. In both
 * cases the answer is no, and what runs is not judged by a store that never knew it.
 */
#ifndef MANAGER_EPOCH_H
#define MANAGER_EPOCH_H

#include "manager/manager.h"

/* Begin a new epoch, at least at_least; durable when it returns. */
int epoch_begin(struct manager *m, uint64_t at_least, struct err *err);
bool epoch_is_ours(struct manager *m, const char *cluster, uint64_t epoch, const char *incarnation,
    uint64_t revision);

#endif
