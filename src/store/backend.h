/*
 * What store.c asks of a database. store.c knows of turns, batches and callbacks and of no SQL; a
 * backend knows of SQL and of no loop. commit and tidy run on the commit thread, everything else on
 * the loop's thread, at the same time: a backend keeps a connection for each.
 */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include "store/batch.h"

/* Events that are kept; older ones are dropped a few with each commit that adds some. */
#define STORE_EVENTS_KEPT 100000

struct backend;

struct backend_ops {
    /* Every counter once; value is the last one given out. */
    int (*counters)(struct backend *b, void (*fn)(void *arg, const char *name, uint64_t value),
        void *arg, struct err *err);
    /* Durable when it returns 0. After an error the backend is only good for close. */
    int (*commit)(struct backend *b, const struct batch *batch, struct err *err);
    /* Housekeeping nobody waits for, after a commit. Errors are as final as those of commit. */
    int (*tidy)(struct backend *b, struct err *err);
    /* As in store.h. */
    int (*get)(struct backend *b, const char *kind, const char *id,
        int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct err *err);
    int (*list)(struct backend *b, const struct store_filter *filter,
        int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct err *err);
    int (*page)(struct backend *b, const struct store_query *query,
        int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct store_cursor *ret_next,
        struct err *err);
    int (*events)(struct backend *b, uint64_t after, uint32_t limit, const char *owner,
        int (*fn)(void *arg, const struct store_event *event), void *arg, struct err *err);
    void (*close)(struct backend *b);
};

/* First member of each backend's own struct. */
struct backend {
    const struct backend_ops *ops;
    uint64_t revision, seq; /* of the last commit and the last event, as found when it was opened */
};

/* path NULL: in memory. Errors as store_open. */
int sqlite_open(const char *path, struct backend **ret, struct err *err);

#endif
