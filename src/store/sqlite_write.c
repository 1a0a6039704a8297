/*
 * The commit thread's half of the SQLite backend: one transaction a batch, and the housekeeping
 * between them. Owns the prepared statements of the writer. Old events are dropped inside the
 * transaction that adds new ones, at most twice as many and a few, so that nobody waits for a long
 * deletion.
 *
 * Sequence numbers of events have no gaps, so the range that is kept is known without counting.
 */
#include "store/sqlite.h"

#define DROP_MORE 64          /* events dropped beyond twice those added */
#define CHECKPOINT_PAGES 1000 /* 4 MB of WAL */

static const char *const write_sql[WRITE_STMT_COUNT] = {
    [WRITE_BEGIN] = "BEGIN IMMEDIATE",
    [WRITE_COMMIT] = "COMMIT",
    /* A document whose columns stay leaves all indexes alone: try that first. */
    [WRITE_PUT_BODY] = "UPDATE doc INDEXED BY doc_by_id SET body = ?7 WHERE kind = ?1 AND id = ?2"
                       " AND name IS ?3 AND owner IS ?4 AND state IS ?5 AND num = ?6"
                       " AND class IS ?8 AND grp IS ?9 AND submitted IS ?10 AND ended IS ?11",
    [WRITE_PUT] =
        "INSERT INTO doc (kind, id, name, owner, state, num, class, grp, submitted, ended,"
        " body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?8, ?9, ?10, ?11, ?7)"
        " ON CONFLICT (kind, id) DO UPDATE SET name = ?3, owner = ?4, state = ?5, num = ?6,"
        " class = ?8, grp = ?9, submitted = ?10, ended = ?11, body = ?7",
    [WRITE_DEL] = "DELETE FROM doc WHERE kind = ?1 AND id = ?2",
    [WRITE_EVENT] = "INSERT INTO event (seq, revision, usec, type, subject, owner, body)"
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [WRITE_COUNTER] = "INSERT INTO counter (name, value) VALUES (?1, ?2)"
                      " ON CONFLICT (name) DO UPDATE SET value = ?2",
    [WRITE_META] = "UPDATE meta SET value = ?2 WHERE key = ?1",
    [WRITE_DROP_EVENTS] = "DELETE FROM event WHERE seq < ?1 RETURNING revision",
};

/* After each commit, on the commit thread; pages are those in the WAL. */
static int note_wal(void *arg, UNUSED sqlite3 *db, UNUSED const char *name, int pages)
{
    struct sqlite *q = arg;

    q->wal_pages = pages;
    return SQLITE_OK;
}

int sqlite_write_init(struct sqlite *q, struct err *err)
{
    for (size_t i = 0; i < WRITE_STMT_COUNT; i++) {
        if (sqlite3_prepare_v3(q->writer, write_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &q->write[i],
                NULL) != SQLITE_OK)
            return sqlite_fail(q, q->writer, err, "cannot prepare");
    }
    sqlite3_wal_hook(q->writer, note_wal, q);
    return 0;
}

void sqlite_write_done(struct sqlite *q)
{
    for (size_t i = 0; i < WRITE_STMT_COUNT; i++)
        sqlite3_finalize(q->write[i]);
}

/* Batches outlive their statements' runs, so nothing is copied. A failed bind of what is too long
 * leaves NULL behind, which the schema refuses. */
static void bind_text(sqlite3_stmt *st, int at, const char *s)
{
    sqlite3_bind_text64(st, at, s, s ? strlen(s) : 0, SQLITE_STATIC, SQLITE_UTF8);
}

static void bind_u64(sqlite3_stmt *st, int at, uint64_t n)
{
    sqlite3_bind_int64(st, at, (sqlite3_int64)n);
}

static void bind_time(sqlite3_stmt *st, int at, uint64_t usec)
{
    if (usec)
        bind_u64(st, at, usec);
    else
        sqlite3_bind_null(st, at);
}

/* Run a statement to its end and make it ready for the next time. */
static int run(sqlite3_stmt *st)
{
    int r;

    do {
        r = sqlite3_step(st);
    } while (r == SQLITE_ROW);
    return sqlite3_reset(st);
}

static void bind_doc(sqlite3_stmt *st, const struct store_doc *doc)
{
    bind_text(st, 1, doc->kind);
    bind_text(st, 2, doc->id);
    bind_text(st, 3, doc->name);
    bind_text(st, 4, doc->owner);
    bind_text(st, 5, doc->state);
    bind_u64(st, 6, doc->num);
    bind_text(st, 7, doc->body);
    bind_text(st, 8, doc->class);
    bind_text(st, 9, doc->group);
    bind_time(st, 10, doc->submitted);
    bind_time(st, 11, doc->ended);
}

static int put_doc(struct sqlite *q, const struct store_doc *doc)
{
    int r;

    bind_doc(q->write[WRITE_PUT_BODY], doc);
    r = run(q->write[WRITE_PUT_BODY]);
    if (r != SQLITE_OK || sqlite3_changes(q->writer) > 0)
        return r;
    bind_doc(q->write[WRITE_PUT], doc);
    return run(q->write[WRITE_PUT]);
}

static int write_changes(struct sqlite *q, const struct batch *batch)
{
    int r = SQLITE_OK;

    for (size_t i = 0; i < batch->change_count && r == SQLITE_OK; i++) {
        const struct change *c = &batch->changes[i];
        sqlite3_stmt *st = q->write[WRITE_DEL];

        if (!c->del) {
            r = put_doc(q, &c->doc);
            continue;
        }
        bind_text(st, 1, c->doc.kind);
        bind_text(st, 2, c->doc.id);
        r = run(st);
    }
    return r;
}

static int write_events(struct sqlite *q, const struct batch *batch)
{
    sqlite3_stmt *st = q->write[WRITE_EVENT];
    int r = SQLITE_OK;

    for (size_t i = 0; i < batch->event_count && r == SQLITE_OK; i++) {
        const struct store_event *e = &batch->events[i];
        bind_u64(st, 1, e->seq);
        bind_u64(st, 2, e->revision);
        bind_u64(st, 3, e->usec);
        bind_text(st, 4, e->type);
        bind_text(st, 5, e->subject);
        bind_text(st, 6, e->owner);
        bind_text(st, 7, e->body);
        r = run(st);
    }
    return r;
}

static int write_meta(struct sqlite *q, const char *key, uint64_t value)
{
    sqlite3_stmt *st = q->write[WRITE_META];

    bind_text(st, 1, key);
    bind_u64(st, 2, value);
    return run(st);
}

static int write_counters(struct sqlite *q, const struct batch *batch)
{
    sqlite3_stmt *st = q->write[WRITE_COUNTER];
    int r = SQLITE_OK;

    for (size_t i = 0; i < batch->counter_count && r == SQLITE_OK; i++) {
        bind_text(st, 1, batch->counters[i].name);
        bind_u64(st, 2, batch->counters[i].value);
        r = run(st);
    }
    return r;
}

/* Events below seq go; the highest revision among them is the floor that store_events checks. */
static int drop_events_below(struct sqlite *q, uint64_t seq)
{
    sqlite3_stmt *st = q->write[WRITE_DROP_EVENTS];
    uint64_t floor = 0;
    int r;

    bind_u64(st, 1, seq);
    while ((r = sqlite3_step(st)) == SQLITE_ROW)
        floor = MAX_OF(floor, (uint64_t)sqlite3_column_int64(st, 0));
    r = sqlite3_reset(st);
    return r == SQLITE_OK && floor ? write_meta(q, "events_floor", floor) : r;
}

static int drop_old_events(struct sqlite *q, const struct batch *batch)
{
    uint64_t last, below;

    if (batch->event_count == 0)
        return SQLITE_OK;
    if (q->oldest_seq == 0)
        q->oldest_seq = batch->events[0].seq;
    last = batch->events[batch->event_count - 1].seq;
    if (last - q->oldest_seq < STORE_EVENTS_KEPT)
        return SQLITE_OK;
    below = MIN_OF(
        last - STORE_EVENTS_KEPT + 1, q->oldest_seq + 2 * batch->event_count + DROP_MORE);
    q->oldest_seq = below;
    return drop_events_below(q, below);
}

int sqlite_commit(struct backend *b, const struct batch *batch, struct err *err)
{
    struct sqlite *q = sqlite_of(b);
    int r;

    r = run(q->write[WRITE_BEGIN]);
    if (r == SQLITE_OK)
        r = write_changes(q, batch);
    if (r == SQLITE_OK)
        r = write_events(q, batch);
    if (r == SQLITE_OK)
        r = write_counters(q, batch);
    if (r == SQLITE_OK)
        r = drop_old_events(q, batch);
    if (r == SQLITE_OK)
        r = write_meta(q, "revision", batch->revision);
    if (r == SQLITE_OK)
        r = run(q->write[WRITE_COMMIT]);
    return r == SQLITE_OK ? 0 : sqlite_fail(q, q->writer, err, "cannot commit");
}

/* A checkpoint that readers are in the way of does what it can, and the next one the rest. */
int sqlite_tidy(struct backend *b, struct err *err)
{
    struct sqlite *q = sqlite_of(b);
    int r;

    if (q->wal_pages < CHECKPOINT_PAGES)
        return 0;
    r = sqlite3_wal_checkpoint_v2(q->writer, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (r == SQLITE_OK || r == SQLITE_BUSY)
        return 0;
    return sqlite_fail(q, q->writer, err, "cannot checkpoint");
}
