/*
 * What must survive: documents, events, counters. One instance a manager; all calls on the loop's
 * thread. Changes are staged; at the end of the loop's turn everything staged is committed as one
 * transaction with one new revision (group commit, synchronous=FULL) by the store's own thread,
 * while the next turn may stage more. store_after is how replies and orders wait for it.
 *
 * A failed commit or fsync is final: fatal() is called and must not return (the process exits; what
 * was acknowledged is safe, what was not is retried by its asker).
 *
 * The manager keeps live documents in memory; the store is read at start, and for lists of what has
 * ended. Reads see staged changes only once they are committed.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <uv.h>

#include "base/err.h"

struct store;

struct store_doc {
    const char *kind; /* "session", "node", "group", "user", "token", "volume", "image" */
    const char *id;   /* unique within its kind */
    /* Columns that lists can be filtered and sorted by; NULL or 0 when the kind has none. */
    const char *name, *owner, *state;
    uint64_t num; /* up to INT64_MAX */
    const char *class, *group;
    uint64_t submitted, ended; /* 0: not (yet); only what was submitted is found by store_page */
    const char *body;          /* JSON text */
};

struct store_event {
    uint64_t revision;   /* of the commit that carried it */
    uint64_t seq;        /* strictly growing over all events */
    uint64_t usec;       /* real time */
    const char *type;    /* "session.state", "node.state", ... */
    const char *subject; /* id of the session, node, ... it is about */
    const char *owner;   /* user whose it is, or "" */
    const char *body;    /* JSON text */
};

struct store_filter {
    const char *kind;
    const char *owner, *state, *not_state, *name; /* NULL: any */
    uint64_t before_num; /* 0: from the newest; else num < before_num (lists go newest first) */
    uint32_t limit;      /* 0: no limit */
};

enum store_sort { STORE_BY_NUM, STORE_BY_SUBMITTED, STORE_BY_ENDED, STORE_SORT_COUNT };

/* A place in a list: behind the document of this key (of the order that it is in) and num. */
struct store_cursor {
    uint64_t key, num; /* num 0: the beginning, or nothing behind it */
};

struct store_query {
    const char *kind;
    const char *owner, *state, *name, *class, *group; /* NULL: any */
    bool live;                                        /* without an end only */
    uint64_t submitted_from, submitted_before;        /* 0: any */
    enum store_sort sort;                             /* by end: only what has ended */
    bool ascending;
    struct store_cursor after;
    uint32_t limit; /* documents given, at least 1 */
    uint32_t scan;  /* documents looked at, at least 1 */
};

struct store_opts {
    const char *path; /* of the SQLite file; NULL: in memory (for tests) */
    uv_loop_t *loop;
    void (*fatal)(void *arg, const char *text);
    void *arg;
};

/*
 * -EBUSY "another manager has 'PATH' open (pid N)"; -ENOTSUP for a file that a newer Muster wrote;
 * -EINVAL for a file of another program; -EUCLEAN for a damaged one; else what the system said.
 */
int store_open(const struct store_opts *opts, struct store **ret, struct err *err);
/* Commits what is staged, waits for it, runs what store_after holds, closes. NULL is no error. The
 * last memory is freed when the loop runs once more. */
void store_close(struct store *s);

/* Stage a document (insert or replace), a removal, an event. Everything is copied. */
void store_put(struct store *s, const struct store_doc *doc);
void store_del(struct store *s, const char *kind, const char *id);
void store_event(
    struct store *s, const char *type, const char *subject, const char *owner, const char *body);

/* Run fn once everything staged so far is durable: from the loop, never from inside this call,
 * in the order of the calls. With nothing staged or in flight it runs at the end of this turn. */
void store_after(struct store *s, void (*fn)(void *arg), void *arg);
/* Called after each commit with its events, in order; set once. Before the store_after callbacks
 * of the same commit. */
void store_on_commit(struct store *s,
    void (*fn)(void *arg, uint64_t revision, const struct store_event *events, size_t count),
    void *arg);
/* Commit what is staged now and wait (start and shutdown only); the callbacks of what was committed
 * run inside. Not from on_commit. */
int store_sync(struct store *s, struct err *err);

/* Revision of the last durable commit. */
uint64_t store_revision(const struct store *s);
/* Next value of a named counter (1, 2, 3, ...), staged with everything else; survives. */
uint64_t store_next(struct store *s, const char *counter);

/* Read. fn returns < 0 to stop with that code. doc and event are valid during fn only. */
int store_get(struct store *s, const char *kind, const char *id,
    int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct err *err); /* -ENOENT */
int store_list(struct store *s, const struct store_filter *filter,
    int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct err *err);
/*
 * A page of a list, in O(limit) for what an index finds (owner, state, name, live ones; and the
 * order), else in O(scan): a page may then be shorter than limit, even empty, though there is more.
 * ret_next: where to go on; num 0: that was all.
 */
int store_page(struct store *s, const struct store_query *query,
    int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct store_cursor *ret_next,
    struct err *err);
/* Events with revision > after, oldest first, at most limit, but the events of one revision are
 * never parted (who reads on asks with the revision of the last one). -ESTALE when events after it
 * have been dropped already (kept: the last 100,000). owner NULL: all. */
int store_events(struct store *s, uint64_t after, uint32_t limit, const char *owner,
    int (*fn)(void *arg, const struct store_event *event), void *arg, struct err *err);

#endif
