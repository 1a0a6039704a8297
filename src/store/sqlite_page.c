/*
 * Pages of a list, by a place to go on from. An index gives the documents in their order from there
 * on; what it cannot decide is decided for each of them, of which no more than `scan` are looked
 * at, so that a filter that hardly anything passes costs no more than any other.
 *
 * INDEXED BY, since a plan that changes with the data or with SQLite's version would be found out
 * by users; so it is an error instead. The other end of a range is a condition only where the order
 * runs into it: two conditions on one side, and SQLite might begin at the wrong one.
 */
#include "base/str.h"
#include "store/sqlite.h"

#define LIVE "submitted IS NOT NULL AND ended IS NULL"
#define FITS \
    "((?4 IS NULL OR owner = ?4) AND (?5 IS NULL OR state = ?5) AND (?6 IS NULL OR name = ?6)" \
    " AND (?7 IS NULL OR class = ?7) AND (?8 IS NULL OR grp = ?8)" \
    " AND (?9 IS NULL OR submitted >= ?9) AND (?10 IS NULL OR submitted < ?10)" \
    " AND (?11 = 0 OR ended IS NULL) AND submitted IS NOT NULL)"

/* What a query begins with, and the column that it is in order of before num. */
struct way {
    const char *index, *match, *key;
};

static struct way way_by_num(const struct store_query *q)
{
    if (q->name)
        return (struct way){"doc_by_name", "AND name = ?6"};
    if (q->owner && q->state)
        return (struct way){"doc_by_owner_state", "AND owner = ?4 AND state = ?5"};
    if (q->state)
        return (struct way){"doc_by_state", "AND state = ?5"};
    if (q->live && q->owner)
        return (struct way){"doc_live_by_owner", "AND owner = ?4 AND " LIVE};
    if (q->live)
        return (struct way){"doc_live", "AND " LIVE};
    if (q->owner)
        return (struct way){"doc_by_owner", "AND owner = ?4"};
    return (struct way){"doc_by_num", ""};
}

static struct way way_of(const struct store_query *q)
{
    static const struct way ways[][2] = {
        [STORE_BY_SUBMITTED] = {{"doc_by_submitted", "", "submitted"},
            {"doc_by_owner_submitted", "AND owner = ?4", "submitted"}},
        [STORE_BY_ENDED] = {{"doc_by_ended", "AND ended IS NOT NULL", "ended"},
            {"doc_by_owner_ended", "AND owner = ?4 AND ended IS NOT NULL", "ended"}},
    };

    return q->sort == STORE_BY_NUM ? way_by_num(q) : ways[q->sort][q->owner != NULL];
}

/* Where the order runs into the other end of the range of submission; else what makes the partial
 * index fit. */
static const char *stop_of(const struct store_query *q)
{
    if (q->sort != STORE_BY_SUBMITTED)
        return "";
    if (q->ascending && q->submitted_before)
        return " AND submitted < ?10";
    if (!q->ascending && q->submitted_from)
        return " AND submitted >= ?9";
    return " AND submitted IS NOT NULL";
}

static char *sql_of(const struct store_query *q, bool explain)
{
    struct way w = way_of(q);
    const char *than = q->ascending ? ">" : "<", *order = q->ascending ? "ASC" : "DESC";
    _cleanup_free_ char *from = NULL, *by = NULL;

    if (w.key) {
        from = xasprintf("(%s, num) %s (?2, ?3)", w.key, than);
        by = xasprintf("%s %s, num %s", w.key, order, order);
    } else {
        from = xasprintf("num %s ?3", than);
        by = xasprintf("num %s", order);
    }
    return xasprintf("%sSELECT num, %s, " FITS ", kind, id, name, owner, state,"
                     " iif(" FITS ", body, NULL) FROM doc INDEXED BY %s"
                     " WHERE kind = ?1 %s AND %s%s ORDER BY %s",
        explain ? "EXPLAIN QUERY PLAN " : "", w.key ? w.key : "0", w.index, w.match, from,
        stop_of(q), by);
}

static void bind_text(sqlite3_stmt *st, int at, const char *s)
{
    sqlite3_bind_text64(st, at, s, s ? strlen(s) : 0, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static void bind_time(sqlite3_stmt *st, int at, uint64_t usec)
{
    if (usec)
        sqlite3_bind_int64(st, at, (sqlite3_int64)MIN_OF(usec, (uint64_t)INT64_MAX));
    else
        sqlite3_bind_null(st, at);
}

/* From the place asked for, else from the end where the order begins. */
static void bind_start(sqlite3_stmt *st, const struct store_query *q)
{
    int64_t key = q->ascending ? -1 : INT64_MAX, num = key;

    if (q->after.num) {
        key = (int64_t)MIN_OF(q->after.key, (uint64_t)INT64_MAX);
        num = (int64_t)MIN_OF(q->after.num, (uint64_t)INT64_MAX);
    } else if (q->sort == STORE_BY_SUBMITTED && q->ascending && q->submitted_from) {
        key = (int64_t)MIN_OF(q->submitted_from, (uint64_t)INT64_MAX);
    } else if (q->sort == STORE_BY_SUBMITTED && !q->ascending && q->submitted_before) {
        key = (int64_t)MIN_OF(q->submitted_before, (uint64_t)INT64_MAX);
        num = -1;
    }
    sqlite3_bind_int64(st, 2, key);
    sqlite3_bind_int64(st, 3, num);
}

int sqlite_page_prepare(sqlite3 *db, const struct store_query *q, bool explain, sqlite3_stmt **ret)
{
    _cleanup_free_ char *sql = sql_of(q, explain);
    int r = sqlite3_prepare_v2(db, sql, -1, ret, NULL);

    if (r != SQLITE_OK)
        return r;
    bind_text(*ret, 1, q->kind);
    bind_start(*ret, q);
    bind_text(*ret, 4, q->owner);
    bind_text(*ret, 5, q->state);
    bind_text(*ret, 6, q->name);
    bind_text(*ret, 7, q->class);
    bind_text(*ret, 8, q->group);
    bind_time(*ret, 9, q->submitted_from);
    bind_time(*ret, 10, q->submitted_before);
    sqlite3_bind_int(*ret, 11, q->live);
    return SQLITE_OK;
}

static int give_doc(sqlite3_stmt *st, int (*fn)(void *arg, const struct store_doc *doc), void *arg)
{
    struct store_doc doc = {
        .num = (uint64_t)sqlite3_column_int64(st, 0),
        .kind = (const char *)sqlite3_column_text(st, 3),
        .id = (const char *)sqlite3_column_text(st, 4),
        .name = (const char *)sqlite3_column_text(st, 5),
        .owner = (const char *)sqlite3_column_text(st, 6),
        .state = (const char *)sqlite3_column_text(st, 7),
        .body = (const char *)sqlite3_column_text(st, 8),
    };

    return fn(arg, &doc);
}

int sqlite_page(struct backend *b, const struct store_query *query,
    int (*fn)(void *arg, const struct store_doc *doc), void *arg, struct store_cursor *ret_next,
    struct err *err)
{
    struct sqlite *q = sqlite_of(b);
    _cleanup_(sqlite_finalizep) sqlite3_stmt *st = NULL;
    struct store_cursor at = query->after;
    uint32_t given = 0, seen = 0;
    int r = sqlite_page_prepare(q->reader, query, false, &st);

    while (r == SQLITE_OK && (r = sqlite3_step(st)) == SQLITE_ROW) {
        if (given == query->limit || seen == query->scan) {
            *ret_next = at;
            return 0;
        }
        at.num = (uint64_t)sqlite3_column_int64(st, 0);
        at.key = (uint64_t)sqlite3_column_int64(st, 1);
        seen++;
        r = SQLITE_OK;
        if (!sqlite3_column_int(st, 2))
            continue;
        given++;
        int stop = give_doc(st, fn, arg);
        if (stop < 0)
            return stop;
    }
    if (r != SQLITE_DONE)
        return sqlite_fail(q, q->reader, err, "cannot read");
    *ret_next = (struct store_cursor){0};
    return 0;
}
