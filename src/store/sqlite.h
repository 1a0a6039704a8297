/*
 * Shared by the SQLite backend's files: sqlite.c (opening, schema), sqlite_write.c (the commit
 * thread's half), sqlite_read.c and sqlite_page.c (the loop thread's half).
 */
#ifndef STORE_SQLITE_H
#define STORE_SQLITE_H

#include <sqlite3.h>

#include "store/backend.h"

enum write_stmt {
    WRITE_BEGIN,
    WRITE_COMMIT,
    WRITE_PUT_BODY,
    WRITE_PUT,
    WRITE_DEL,
    WRITE_EVENT,
    WRITE_COUNTER,
    WRITE_META,
    WRITE_DROP_EVENTS,
    WRITE_STMT_COUNT,
};

struct sqlite {
    struct backend backend;
    char *path; /* NULL: in memory */
    int lock_fd;
    sqlite3 *writer; /* the commit thread's, which alone writes and checkpoints */
    sqlite3 *reader; /* the loop thread's */
    sqlite3_stmt *write[WRITE_STMT_COUNT];
    uint64_t oldest_seq; /* of the events kept; 0: none yet. The commit thread's */
    int wal_pages;       /* after the last commit */
};

static inline struct sqlite *sqlite_of(struct backend *b)
{
    return CONTAINER_OF(b, struct sqlite, backend);
}

static inline void sqlite_finalizep(sqlite3_stmt **st)
{
    sqlite3_finalize(*st);
}

/* The errno and text of db's last error: "store 'PATH': WHAT: disk I/O error". */
int sqlite_fail(const struct sqlite *q, sqlite3 *db, struct err *err, const char *what);
/* Run a statement that gives at most one number; *ret stays when it gives none. */
int sqlite_number(struct sqlite *q, sqlite3 *db, const char *sql, uint64_t *ret, struct err *err);

/* Prepares the statements of the commit thread. */
int sqlite_write_init(struct sqlite *q, struct err *err);
void sqlite_write_done(struct sqlite *q);
int sqlite_commit(struct backend *b, const struct batch *batch, struct err *err);
int sqlite_tidy(struct backend *b, struct err *err);

int sqlite_counters(struct backend *b, void (*fn)(void *arg, const char *name, uint64_t value),
    void *arg, struct err *err);
int sqlite_get(struct backend *b, const char *kind, const char *id,
    int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct err *err);
int sqlite_list(struct backend *b, const struct store_filter *filter,
    int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct err *err);
int sqlite_page(struct backend *b, const struct store_query *query,
    int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct store_cursor *ret_next,
    struct err *err);
int sqlite_events(struct backend *b, uint64_t after, uint32_t limit, const char *owner,
    int (*fn)(void *arg, const struct store_event *event), void *arg, struct err *err);
/* Prepared and bound, on db: what sqlite_page runs. */
int sqlite_page_prepare(
    sqlite3 *db, const struct store_query *query, bool explain, sqlite3_stmt **ret);
/* The statement that sqlite_list runs for a filter. */
const char *sqlite_list_sql(const struct store_filter *filter);

#endif
