/*
 * The loop thread's half of the SQLite backend: reads, on a connection of their own, which WAL lets
 * go on while the other half commits. Statements are prepared for each call, so that a callback may
 * read as well.
 */
#include "store/sqlite.h"

typedef int (*doc_fn)(void *arg, const struct store_doc *doc);
typedef int (*event_fn)(void *arg, const struct store_event *event);

static int prepare(struct sqlite *q, const char *sql, sqlite3_stmt **ret, struct err *err)
{
    if (sqlite3_prepare_v2(q->reader, sql, -1, ret, NULL) != SQLITE_OK)
        return sqlite_fail(q, q->reader, err, "cannot read");
    return 0;
}

static void bind_text(sqlite3_stmt *st, int at, const char *s)
{
    sqlite3_bind_text64(st, at, s, s ? strlen(s) : 0, SQLITE_STATIC, SQLITE_UTF8);
}

/* What is beyond a database's signed numbers is as good as the greatest of them. */
static void bind_u64(sqlite3_stmt *st, int at, uint64_t n)
{
    sqlite3_bind_int64(st, at, (sqlite3_int64)MIN_OF(n, (uint64_t)INT64_MAX));
}

static void bind_limit(sqlite3_stmt *st, int at, uint32_t limit)
{
    sqlite3_bind_int64(st, at, limit ? (sqlite3_int64)limit : -1);
}

static const char *text_at(sqlite3_stmt *st, int at)
{
    return (const char *)sqlite3_column_text(st, at);
}

static uint64_t u64_at(sqlite3_stmt *st, int at)
{
    return (uint64_t)sqlite3_column_int64(st, at);
}

/* r is of sqlite3_step; 0 when the statement is through. */
static int end_of(struct sqlite *q, int r, struct err *err)
{
    return r == SQLITE_DONE ? 0 : sqlite_fail(q, q->reader, err, "cannot read");
}

int sqlite_counters(struct backend *b, void (*fn)(void *arg, const char *name, uint64_t value),
    void *arg, struct err *err)
{
    struct sqlite *q = sqlite_of(b);
    _cleanup_(sqlite_finalizep) sqlite3_stmt *st = NULL;
    int r;

    r = prepare(q, "SELECT name, value FROM counter", &st, err);
    if (r < 0)
        return r;
    while ((r = sqlite3_step(st)) == SQLITE_ROW)
        fn(arg, text_at(st, 0), u64_at(st, 1));
    return end_of(q, r, err);
}

#define DOC_COLUMNS "kind, id, name, owner, state, num, body"

static int give_doc(sqlite3_stmt *st, doc_fn fn, void *arg)
{
    struct store_doc doc = {
        .kind = text_at(st, 0),
        .id = text_at(st, 1),
        .name = text_at(st, 2),
        .owner = text_at(st, 3),
        .state = text_at(st, 4),
        .num = u64_at(st, 5),
        .body = text_at(st, 6),
    };

    return fn(arg, &doc);
}

int sqlite_get(
    struct backend *b, const char *kind, const char *id, doc_fn fn, void *arg, struct err *err)
{
    struct sqlite *q = sqlite_of(b);
    _cleanup_(sqlite_finalizep) sqlite3_stmt *st = NULL;
    int r;

    r = prepare(q, "SELECT " DOC_COLUMNS " FROM doc WHERE kind = ?1 AND id = ?2", &st, err);
    if (r < 0)
        return r;
    bind_text(st, 1, kind);
    bind_text(st, 2, id);
    r = sqlite3_step(st);
    if (r == SQLITE_ROW)
        return give_doc(st, fn, arg);
    if (r == SQLITE_DONE)
        return err_set(err, -ENOENT, "there is no %s '%s'", kind, id);
    return end_of(q, r, err);
}

/*
 * One statement for each set of filters that an index serves. INDEXED BY, since a plan that changes
 * with the data or with SQLite's version would be found out by users; so it is an error instead.
 * What the index's own columns do not decide, the tests behind them do.
 */
#define LIST_SQL(index, match) \
    "SELECT " DOC_COLUMNS " FROM doc INDEXED BY " index " WHERE kind = ?1 " match \
    " AND num <= ?6 AND (?2 IS NULL OR owner = ?2) AND (?3 IS NULL OR state = ?3)" \
    " AND (?4 IS NULL OR state IS NOT ?4) AND (?5 IS NULL OR name = ?5)" \
    " ORDER BY num DESC LIMIT ?7"

const char *sqlite_list_sql(const struct store_filter *filter)
{
    if (filter->name)
        return LIST_SQL("doc_by_name", "AND name = ?5");
    if (filter->owner && filter->state)
        return LIST_SQL("doc_by_owner_state", "AND owner = ?2 AND state = ?3");
    if (filter->owner)
        return LIST_SQL("doc_by_owner", "AND owner = ?2");
    if (filter->state)
        return LIST_SQL("doc_by_state", "AND state = ?3");
    return LIST_SQL("doc_by_num", "");
}

int sqlite_list(
    struct backend *b, const struct store_filter *filter, doc_fn fn, void *arg, struct err *err)
{
    struct sqlite *q = sqlite_of(b);
    _cleanup_(sqlite_finalizep) sqlite3_stmt *st = NULL;
    int r;

    r = prepare(q, sqlite_list_sql(filter), &st, err);
    if (r < 0)
        return r;
    bind_text(st, 1, filter->kind);
    bind_text(st, 2, filter->owner);
    bind_text(st, 3, filter->state);
    bind_text(st, 4, filter->not_state);
    bind_text(st, 5, filter->name);
    bind_u64(st, 6, filter->before_num - 1); /* 0: the greatest number there is */
    bind_limit(st, 7, filter->limit);
    while ((r = sqlite3_step(st)) == SQLITE_ROW) {
        int stop = give_doc(st, fn, arg);
        if (stop < 0)
            return stop;
    }
    return end_of(q, r, err);
}

#define EVENT_SQL(match) \
    "SELECT revision, seq, usec, type, subject, owner, body FROM event WHERE " match \
    " ORDER BY revision, seq"
#define EVENTS_OF_ALL EVENT_SQL("revision > ?1")
#define EVENTS_OF_OWNER EVENT_SQL("owner = ?2 AND revision > ?1")

static void read_event(sqlite3_stmt *st, struct store_event *ret)
{
    *ret = (struct store_event){
        .revision = u64_at(st, 0),
        .seq = u64_at(st, 1),
        .usec = u64_at(st, 2),
        .type = text_at(st, 3),
        .subject = text_at(st, 4),
        .owner = text_at(st, 5),
        .body = text_at(st, 6),
    };
}

/*
 * Who reads on asks for what came after the revision of the last event that it got, so a revision
 * is never cut in two.
 */
static int give_events(sqlite3_stmt *st, uint32_t limit, event_fn fn, void *arg, int *r)
{
    uint64_t given = 0, revision = 0;

    for (; *r == SQLITE_ROW; *r = sqlite3_step(st), given++) {
        struct store_event event;
        int stop;

        read_event(st, &event);
        if (limit && given >= limit && event.revision != revision)
            return 1;
        revision = event.revision;
        stop = fn(arg, &event);
        if (stop < 0)
            return stop;
    }
    return 0;
}

int sqlite_events(struct backend *b, uint64_t after, uint32_t limit, const char *owner, event_fn fn,
    void *arg, struct err *err)
{
    struct sqlite *q = sqlite_of(b);
    _cleanup_(sqlite_finalizep) sqlite3_stmt *st = NULL;
    uint64_t floor = 0;
    int r, row;

    r = prepare(q, owner ? EVENTS_OF_OWNER : EVENTS_OF_ALL, &st, err);
    if (r < 0)
        return r;
    bind_u64(st, 1, after);
    if (owner)
        bind_text(st, 2, owner);
    /* The floor is read after the first step: then it is of the same snapshot or a later one, and
     * no event can be dropped unseen between the two. */
    row = sqlite3_step(st);
    r = sqlite_number(
        q, q->reader, "SELECT value FROM meta WHERE key = 'events_floor'", &floor, err);
    if (r < 0)
        return r;
    if (after < floor)
        return err_set(
            err, -ESTALE, "events after revision %lu are no longer kept", (unsigned long)after);
    r = give_events(st, limit, fn, arg, &row);
    return r == 0 ? end_of(q, row, err) : MIN_OF(r, 0);
}
