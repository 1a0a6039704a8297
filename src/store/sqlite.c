/*
 * Opening and closing the SQLite file: the lock, the mode, what it is and whether it is whole, the
 * schema and its migrations. Nothing is written into a file before it is known to be ours, of a
 * version that we know, and undamaged.
 *
 * WAL with synchronous=FULL: with NORMAL a power cut loses acknowledged commits. Only the writer
 * checkpoints, and never by itself inside a commit: SQLite throws away the errors of automatic
 * checkpoints, and a failed fsync must end the process.
 */
#include "store/sqlite.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/str.h"
#include "store/lock.h"

#define APPLICATION_ID 0x4d535452 /* "MSTR", in bytes 68 to 71 of the file */
#define BUSY_MSEC 10000

/*
 * migrations[n] brings a file from version n to n + 1; a released one is never changed.
 *
 * Each filter of store_list has an index that finds the rows in order of num, so that a page costs
 * a page. state at the end of two of them lets "not this state" be decided without the rows.
 */
static const char *const migrations[] = {
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE doc (kind TEXT NOT NULL, id TEXT NOT NULL, name TEXT, owner TEXT, state TEXT,"
    " num INTEGER NOT NULL, body TEXT NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX doc_by_id ON doc (kind, id);"
    "CREATE INDEX doc_by_num ON doc (kind, num, state);"
    "CREATE INDEX doc_by_name ON doc (kind, name, num) WHERE name IS NOT NULL;"
    "CREATE INDEX doc_by_owner ON doc (kind, owner, num, state) WHERE owner IS NOT NULL;"
    "CREATE INDEX doc_by_state ON doc (kind, state, num) WHERE state IS NOT NULL;"
    "CREATE INDEX doc_by_owner_state ON doc (kind, owner, state, num)"
    " WHERE owner IS NOT NULL AND state IS NOT NULL;"
    "CREATE TABLE event (seq INTEGER PRIMARY KEY, revision INTEGER NOT NULL,"
    " usec INTEGER NOT NULL, type TEXT NOT NULL, subject TEXT NOT NULL, owner TEXT NOT NULL,"
    " body TEXT NOT NULL) STRICT;"
    "CREATE INDEX event_by_revision ON event (revision);"
    "CREATE INDEX event_by_owner ON event (owner, revision);"
    "INSERT INTO meta VALUES ('revision', 0), ('events_floor', 0);",
    /* What pages are filtered and sorted by (sqlite_page.c). The body stays last: what stands
     * behind a long one is slow to read. */
    "CREATE TABLE doc2 (kind TEXT NOT NULL, id TEXT NOT NULL, name TEXT, owner TEXT, state TEXT,"
    " num INTEGER NOT NULL, class TEXT, grp TEXT, submitted INTEGER, ended INTEGER,"
    " body TEXT NOT NULL) STRICT;"
    "INSERT INTO doc2 SELECT kind, id, name, owner, state, num,"
    " iif(kind = 'session', body ->> 'kind', NULL), iif(kind = 'session', body ->> 'group', NULL),"
    " iif(kind = 'session', body ->> 'submitted_usec', NULL),"
    " iif(kind = 'session' AND state = 'ended', max(body ->> 'ended_usec', 1), NULL),"
    " body FROM doc;"
    "DROP TABLE doc;"
    "ALTER TABLE doc2 RENAME TO doc;"
    "CREATE UNIQUE INDEX doc_by_id ON doc (kind, id);"
    "CREATE INDEX doc_by_num ON doc (kind, num, state);"
    "CREATE INDEX doc_by_name ON doc (kind, name, num) WHERE name IS NOT NULL;"
    "CREATE INDEX doc_by_owner ON doc (kind, owner, num, state) WHERE owner IS NOT NULL;"
    "CREATE INDEX doc_by_state ON doc (kind, state, num) WHERE state IS NOT NULL;"
    "CREATE INDEX doc_by_owner_state ON doc (kind, owner, state, num)"
    " WHERE owner IS NOT NULL AND state IS NOT NULL;"
    "CREATE INDEX doc_live ON doc (kind, num) WHERE submitted IS NOT NULL AND ended IS NULL;"
    "CREATE INDEX doc_live_by_owner ON doc (kind, owner, num)"
    " WHERE submitted IS NOT NULL AND ended IS NULL;"
    "CREATE INDEX doc_by_submitted ON doc (kind, submitted, num) WHERE submitted IS NOT NULL;"
    "CREATE INDEX doc_by_owner_submitted ON doc (kind, owner, submitted, num)"
    " WHERE submitted IS NOT NULL;"
    "CREATE INDEX doc_by_ended ON doc (kind, ended, num) WHERE ended IS NOT NULL;"
    "CREATE INDEX doc_by_owner_ended ON doc (kind, owner, ended, num) WHERE ended IS NOT NULL;",
};
#define SCHEMA_VERSION ARRAY_LEN(migrations)

static int errno_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EUCLEAN;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return -EACCES;
    default:
        return -EIO;
    }
}

int sqlite_fail(const struct sqlite *q, sqlite3 *db, struct err *err, const char *what)
{
    int code = sqlite3_errcode(db) & 0xff, sys = sqlite3_system_errno(db);
    const char *text = sqlite3_errmsg(db), *why = "";
    char tmp[96];

    /* For other codes the system's errno is a leftover. */
    if ((code == SQLITE_IOERR || code == SQLITE_CANTOPEN) && sys > 0)
        why = strerror_r(sys, tmp, sizeof(tmp));
    return err_set(err, errno_of(code), "store '%s': %s: %s%s%s", q->path ? q->path : "in memory",
        what, text, *why ? ": " : "", why);
}

int sqlite_number(struct sqlite *q, sqlite3 *db, const char *sql, uint64_t *ret, struct err *err)
{
    _cleanup_(sqlite_finalizep) sqlite3_stmt *st = NULL;
    int r;

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        return sqlite_fail(q, db, err, "cannot read");
    r = sqlite3_step(st);
    if (r == SQLITE_ROW)
        *ret = (uint64_t)sqlite3_column_int64(st, 0);
    else if (r != SQLITE_DONE)
        return sqlite_fail(q, db, err, "cannot read");
    return 0;
}

static int run_sql(
    struct sqlite *q, sqlite3 *db, const char *what, const char *sql, struct err *err)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return sqlite_fail(q, db, err, what);
    return 0;
}

/* Two names of one file must meet at one lock; the file itself need not be there yet. */
static int resolve(const char *path, char **ret, struct err *err)
{
    _cleanup_free_ char *dir_copy = xstrdup(path), *base_copy = xstrdup(path), *dir = NULL;
    char *whole = realpath(path, NULL);

    if (whole) {
        *ret = whole;
        return 0;
    }
    if (errno == ENOENT)
        dir = realpath(dirname(dir_copy), NULL);
    if (!dir)
        return err_sys(err, -errno, "cannot open the store '%s'", path);
    *ret = xasprintf("%s/%s", dir, basename(base_copy));
    return 0;
}

/* SQLite gives its -wal and -shm files the mode of the database. */
static int make_private(const char *path, struct err *err)
{
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, -errno, "cannot open the store '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "the store '%s' is not a regular file", path);
    if ((st.st_mode & 077) && fchmod(fd, 0600) < 0)
        return err_sys(err, -errno, "cannot make the store '%s' private", path);
    r = st.st_size == 0 ? fs_sync_parent(path) : 0;
    return r < 0 ? err_sys(err, r, "cannot sync the folder of '%s'", path) : 0;
}

static int connect_db(struct sqlite *q, const char *uri, sqlite3 **db, struct err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;

    /* A file's path is no URI: it may hold any character. */
    if (!q->path)
        flags |= SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
    if (sqlite3_open_v2(q->path ? q->path : uri, db, flags, NULL) != SQLITE_OK)
        return sqlite_fail(q, *db, err, "cannot open");
    sqlite3_busy_timeout(*db, BUSY_MSEC);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return 0;
}

/* Is it a store, or nothing yet, and of a version that we know? */
static int check_identity(struct sqlite *q, uint64_t *ret_version, struct err *err)
{
    uint64_t id = 0, version = 0, tables = 0;
    int r;

    r = sqlite_number(q, q->writer, "PRAGMA application_id", &id, err);
    if (r >= 0)
        r = sqlite_number(q, q->writer, "PRAGMA user_version", &version, err);
    if (r >= 0)
        r = sqlite_number(q, q->writer, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (r < 0)
        return r;
    if (id != APPLICATION_ID && (id || version || tables))
        return err_set(err, -EINVAL, "'%s' is a database of another program", q->path);
    if (version > SCHEMA_VERSION)
        return err_set(err, -ENOTSUP,
            "the store '%s' was written by a newer Muster (schema %lu, this one knows up to %zu)",
            q->path, (unsigned long)version, SCHEMA_VERSION);
    *ret_version = version;
    return 0;
}

/* Structure only: a check of every index entry would take minutes on a large store. */
static int check_whole(struct sqlite *q, struct err *err)
{
    _cleanup_(sqlite_finalizep) sqlite3_stmt *st = NULL;
    const char *text = NULL, *line;

    if (sqlite3_prepare_v2(q->writer, "PRAGMA quick_check(1)", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        text = (const char *)sqlite3_column_text(st, 0);
    if (!text)
        return sqlite_fail(q, q->writer, err, "cannot check");
    if (str_eq(text, "ok"))
        return 0;
    line = strrchr(text, '\n'); /* the first names the database only */
    return err_set(err, -EUCLEAN, "%s", line ? line + 1 : text);
}

static int migrate(struct sqlite *q, uint64_t version, struct err *err)
{
    for (; version < SCHEMA_VERSION; version++) {
        _cleanup_free_ char *sql = xasprintf(
            "BEGIN IMMEDIATE; %s PRAGMA application_id = %d; PRAGMA user_version = %lu;"
            " COMMIT;",
            migrations[version], APPLICATION_ID, (unsigned long)version + 1);
        int r = run_sql(q, q->writer, "cannot bring the schema up to date", sql, err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int set_modes(struct sqlite *q, struct err *err)
{
    const char *file = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                       " PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 67108864;";
    uint64_t sync = 0;
    int r;

    if (!q->path)
        return run_sql(q, q->writer, "cannot set up", "PRAGMA journal_mode = MEMORY", err);
    r = run_sql(q, q->writer, "cannot set up", file, err);
    if (r >= 0)
        r = sqlite_number(q, q->writer, "PRAGMA synchronous", &sync, err);
    if (r >= 0 && sync != 2)
        return err_set(err, -EIO, "store '%s': SQLite does not take synchronous=FULL", q->path);
    return r;
}

static int set_up_writer(struct sqlite *q, struct err *err)
{
    uint64_t version = 0;
    int r;

    r = check_identity(q, &version, err);
    if (r >= 0)
        r = check_whole(q, err);
    if (r == -EUCLEAN)
        err_prefix(err, "'%s' is damaged or not a store: restore it from a backup", q->path);
    if (r >= 0)
        r = set_modes(q, err);
    if (r >= 0)
        r = migrate(q, version, err);
    return r;
}

static int set_up_reader(struct sqlite *q, struct err *err)
{
    return run_sql(q, q->reader, "cannot set up",
        "PRAGMA query_only = ON; PRAGMA wal_autocheckpoint = 0;", err);
}

/* Two connections to one database in memory need a name, and a file system to find it in. */
static char *memory_uri(void)
{
    static atomic_uint last;

    return xasprintf("file:/muster-%u?vfs=memdb", atomic_fetch_add(&last, 1) + 1);
}

static int connect_both(struct sqlite *q, struct err *err)
{
    _cleanup_free_ char *uri = memory_uri();
    int r;

    r = connect_db(q, uri, &q->writer, err);
    if (r >= 0)
        r = set_up_writer(q, err);
    if (r >= 0)
        r = connect_db(q, uri, &q->reader, err);
    if (r >= 0)
        r = set_up_reader(q, err);
    return r;
}

static int read_start(struct sqlite *q, struct err *err)
{
    int r;

    r = sqlite_number(
        q, q->reader, "SELECT value FROM meta WHERE key = 'revision'", &q->backend.revision, err);
    if (r >= 0)
        r = sqlite_number(q, q->reader, "SELECT max(seq) FROM event", &q->backend.seq, err);
    if (r >= 0)
        r = sqlite_number(q, q->reader, "SELECT min(seq) FROM event", &q->oldest_seq, err);
    return r;
}

/* The writer goes last: who closes last checkpoints. */
static void close_sqlite(struct backend *b)
{
    struct sqlite *q = sqlite_of(b);

    sqlite3_close(q->reader);
    sqlite_write_done(q);
    sqlite3_close(q->writer);
    cleanup_close(&q->lock_fd);
    free(q->path);
    free(q);
}

static const struct backend_ops sqlite_ops = {
    .counters = sqlite_counters,
    .commit = sqlite_commit,
    .tidy = sqlite_tidy,
    .get = sqlite_get,
    .list = sqlite_list,
    .page = sqlite_page,
    .events = sqlite_events,
    .close = close_sqlite,
};

static int open_all(struct sqlite *q, const char *path, struct err *err)
{
    int r = 0;

    if (path)
        r = resolve(path, &q->path, err);
    if (r >= 0 && path)
        r = lock_take(q->path, &q->lock_fd, err);
    if (r >= 0 && path)
        r = make_private(q->path, err);
    if (r >= 0)
        r = connect_both(q, err);
    if (r >= 0)
        r = read_start(q, err);
    if (r >= 0)
        r = sqlite_write_init(q, err);
    return r;
}

int sqlite_open(const char *path, struct backend **ret, struct err *err)
{
    struct sqlite *q = xnew(struct sqlite);
    int r;

    q->backend.ops = &sqlite_ops;
    q->lock_fd = -1;
    r = open_all(q, path, err);
    if (r < 0) {
        close_sqlite(&q->backend);
        return r;
    }
    *ret = &q->backend;
    return 0;
}
