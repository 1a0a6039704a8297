/* Pages by a place to go on from: every order and filter, a hundred thousand sessions. */
#include "base/str.h"
#include "fixture.h"
#include "store/sqlite.h"

#define SESSIONS 100000
#define BATCH 1000
#define PAGE 50
#define SCAN 1000
#define HOUR UINT64_C(3600000000)

/* One a minute; the last 1,000 live; anna has nearly all, ben every hundredth. */
static uint64_t submitted_of(uint64_t num)
{
    return num * 60 * 1000000;
}

static bool is_live(uint64_t num)
{
    return num > SESSIONS - 1000;
}

static uint64_t ended_of(uint64_t num)
{
    return is_live(num) ? 0 : submitted_of(num) + (num * 7919) % HOUR;
}

static const char *owner_of(uint64_t num)
{
    return num % 100 ? "anna" : "ben";
}

static const char *state_of(uint64_t num)
{
    return !is_live(num) ? "ended" : num % 10 ? "pending" : "running";
}

static void put_one(struct fixture *f, uint64_t num)
{
    char id[32], name[32];

    snprintf(id, sizeof(id), "s%lu", (unsigned long)num);
    snprintf(name, sizeof(name), "run-%lu", (unsigned long)num % 1000);
    store_put(f->store,
        &(struct store_doc){
            .kind = "session",
            .id = id,
            .name = name,
            .owner = owner_of(num),
            .state = state_of(num),
            .num = num,
            .class = num % 5000 == 3 ? "debug" : "train",
            .group = num % 2 ? "default" : "h100",
            .submitted = submitted_of(num),
            .ended = ended_of(num),
            .body = "{}",
        });
}

static int setup_large(void **state)
{
    struct fixture *f = fixture_new();

    fixture_open(f, f->path);
    for (uint64_t num = 1; num <= SESSIONS; num++) {
        put_one(f, num);
        if (num % BATCH == 0)
            store_sync(f->store, NULL);
    }
    *state = f;
    return 0;
}

#define QUERY(...) \
    { \
        .kind = "session", .limit = PAGE, .scan = SCAN, __VA_ARGS__ \
    }
#define AT(n, k) .after = {.num = (n), .key = (k)}

static const struct {
    struct store_query query;
    const char *index;
} queries[] = {
    {QUERY(.sort = STORE_BY_NUM), "doc_by_num (kind=? AND num<?)"},
    {QUERY(AT(50000, 0)), "doc_by_num (kind=? AND num<?)"},
    {QUERY(.ascending = true, AT(50000, 0)), "doc_by_num (kind=? AND num>?)"},
    {QUERY(.live = true), "doc_live (kind=? AND num<?)"},
    {QUERY(.live = true, .owner = "ben"), "doc_live_by_owner (kind=? AND owner=? AND num<?)"},
    {QUERY(.owner = "ben"), "doc_by_owner (kind=? AND owner=? AND num<?)"},
    {QUERY(.state = "running"), "doc_by_state (kind=? AND state=? AND num<?)"},
    {QUERY(.owner = "ben", .state = "ended", AT(90000, 0)),
        "doc_by_owner_state (kind=? AND owner=? AND state=? AND num<?)"},
    {QUERY(.name = "run-7"), "doc_by_name (kind=? AND name=? AND num<?)"},
    {QUERY(.group = "h100"), "doc_by_num (kind=? AND num<?)"},
    {QUERY(.class = "debug"), "doc_by_num (kind=? AND num<?)"},
    {QUERY(.sort = STORE_BY_SUBMITTED),
        "doc_by_submitted (kind=? AND submitted>? AND (submitted,num)<(?,?))"},
    {QUERY(.sort = STORE_BY_SUBMITTED, .submitted_before = 1000 * HOUR),
        "doc_by_submitted (kind=? AND submitted>? AND (submitted,num)<(?,?))"},
    {QUERY(.sort = STORE_BY_SUBMITTED, .submitted_from = 900 * HOUR,
         .submitted_before = 1000 * HOUR),
        "doc_by_submitted (kind=? AND submitted>? AND (submitted,num)<(?,?))"},
    {QUERY(.sort = STORE_BY_SUBMITTED, .ascending = true, .submitted_from = 900 * HOUR),
        "doc_by_submitted (kind=? AND (submitted,num)>(?,?))"},
    {QUERY(.sort = STORE_BY_SUBMITTED, .owner = "ben"),
        "doc_by_owner_submitted (kind=? AND owner=? AND submitted>? AND (submitted,num)<(?,?))"},
    {QUERY(.sort = STORE_BY_ENDED), "doc_by_ended (kind=? AND ended>? AND (ended,num)<(?,?))"},
    {QUERY(.sort = STORE_BY_ENDED, .ascending = true),
        "doc_by_ended (kind=? AND (ended,num)>(?,?))"},
    {QUERY(.sort = STORE_BY_ENDED, .owner = "ben"),
        "doc_by_owner_ended (kind=? AND owner=? AND ended>? AND (ended,num)<(?,?))"},
};

static sqlite3_stmt *prepare(sqlite3 *db, const struct store_query *query, bool explain)
{
    sqlite3_stmt *st = NULL;

    if (sqlite_page_prepare(db, query, explain, &st) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    return st;
}

/* One search of one index, and no sorting behind it. */
static void check_plan(sqlite3 *db, const struct store_query *query, const char *index)
{
    _cleanup_free_ char *want = xasprintf("SEARCH doc USING INDEX %s", index);
    _cleanup_(sqlite_finalizep) sqlite3_stmt *st = prepare(db, query, true);

    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(st, 3), want);
    assert_int_equal(sqlite3_step(st), SQLITE_DONE);
}

/* Of SQLite's machine: a few dozen for each row that it looks at. */
static void check_steps(sqlite3 *db, const struct store_query *query)
{
    _cleanup_(sqlite_finalizep) sqlite3_stmt *st = prepare(db, query, false);
    uint32_t seen = 0, given = 0;
    int steps;

    while (given < query->limit && seen < query->scan && sqlite3_step(st) == SQLITE_ROW) {
        seen++;
        given += sqlite3_column_int(st, 2) != 0;
    }
    steps = sqlite3_stmt_status(st, SQLITE_STMTSTATUS_VM_STEP, 0);
    assert_true(seen > 0);
    if (steps > 100 * ((int)seen + 1))
        fail_msg("%d steps for %u rows", steps, seen);
}

TEST(every_order_and_filter_has_an_index_and_nothing_is_sorted)
{
    struct fixture *f = *state;
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        check_plan(db, &queries[i].query, queries[i].index);
        check_steps(db, &queries[i].query);
    }
    sqlite3_close(db);
}

/* Rows that it looks at when nobody stops it. */
static unsigned count_rows(sqlite3 *db, const struct store_query *query)
{
    _cleanup_(sqlite_finalizep) sqlite3_stmt *st = prepare(db, query, false);
    unsigned rows = 0;

    while (sqlite3_step(st) == SQLITE_ROW)
        rows++;
    return rows;
}

/* It would look at all that is before, or behind. */
TEST(a_page_ends_where_the_range_of_submission_does)
{
    struct fixture *f = *state;
    struct store_query q = QUERY(.sort = STORE_BY_SUBMITTED, .submitted_from = 900 * HOUR);
    sqlite3 *db = NULL;

    q.submitted_before = 901 * HOUR;
    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(count_rows(db, &q), 60);
    q.ascending = true;
    assert_int_equal(count_rows(db, &q), 60);
    sqlite3_close(db);
}

struct walk {
    uint64_t nums[SESSIONS];
    size_t count;
};

static int take_num(void *arg, const struct store_doc *doc)
{
    struct walk *w = arg;

    assert_true(w->count < SESSIONS);
    assert_string_equal(doc->body, "{}");
    w->nums[w->count++] = doc->num;
    return 0;
}

/* All pages; how many. */
static unsigned walk_all(struct fixture *f, struct store_query query, struct walk *w)
{
    struct err err = ERR_INIT;
    unsigned pages = 0;

    w->count = 0;
    do {
        size_t before = w->count;
        if (store_page(f->store, &query, take_num, w, &query.after, &err) < 0)
            fail_msg("%s", err_text(&err));
        assert_true(w->count - before <= query.limit);
        pages++;
    } while (query.after.num);
    return pages;
}

static bool fits(const struct store_query *q, uint64_t num)
{
    return (!q->owner || str_eq(q->owner, owner_of(num))) &&
        (!q->state || str_eq(q->state, state_of(num))) &&
        (!q->class || str_eq(q->class, num % 5000 == 3 ? "debug" : "train")) &&
        (!q->group || str_eq(q->group, num % 2 ? "default" : "h100")) &&
        (!q->name || (uint64_t)atoll(q->name + strlen("run-")) == num % 1000) &&
        (!q->live || is_live(num)) && (q->sort != STORE_BY_ENDED || !is_live(num)) &&
        (!q->submitted_from || submitted_of(num) >= q->submitted_from) &&
        (!q->submitted_before || submitted_of(num) < q->submitted_before);
}

static uint64_t key_of(const struct store_query *q, uint64_t num)
{
    return q->sort == STORE_BY_ENDED ? ended_of(num) : num;
}

TEST(pages_give_every_session_that_fits_once_and_in_order)
{
    struct fixture *f = *state;
    struct walk *w = xnew(struct walk);

    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        struct store_query q = queries[i].query;
        size_t expected = 0;

        q.limit = 1000;
        q.scan = 5000;
        q.after = (struct store_cursor){0};
        walk_all(f, q, w);
        for (uint64_t num = 1; num <= SESSIONS; num++)
            expected += fits(&q, num);
        assert_int_equal(w->count, expected);
        for (size_t n = 0; n < w->count; n++) {
            assert_true(fits(&q, w->nums[n]));
            if (n > 0 && q.ascending)
                assert_true(key_of(&q, w->nums[n]) > key_of(&q, w->nums[n - 1]));
            else if (n > 0)
                assert_true(key_of(&q, w->nums[n]) < key_of(&q, w->nums[n - 1]));
        }
    }
    free(w);
}

TEST(a_filter_that_hardly_anything_passes_gives_short_pages_not_long_searches)
{
    struct fixture *f = *state;
    struct walk *w = xnew(struct walk);
    struct store_query q = QUERY(.class = "debug");

    assert_int_equal(walk_all(f, q, w), SESSIONS / SCAN);
    assert_int_equal(w->count, SESSIONS / 5000);
    free(w);
}

TEST(a_page_that_is_just_full_says_whether_there_is_more)
{
    struct fixture *f = *state;
    struct walk *w = xnew(struct walk);
    struct store_query q = QUERY(.name = "run-7");

    q.limit = 100;
    assert_int_equal(walk_all(f, q, w), 1);
    assert_int_equal(w->count, 100);
    q.limit = 99;
    assert_int_equal(walk_all(f, q, w), 2);
    free(w);
}

/* --- a store from before ------------------------------------------------------------------ */

/* Version 1, as it was released, with a session that lives, one that has ended, and a user. */
static const char version_1[] =
    "PRAGMA application_id = 0x4d535452; PRAGMA user_version = 1;"
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE doc (kind TEXT NOT NULL, id TEXT NOT NULL, name TEXT, owner TEXT, state TEXT,"
    " num INTEGER NOT NULL, body TEXT NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX doc_by_id ON doc (kind, id);"
    "CREATE INDEX doc_by_num ON doc (kind, num, state);"
    "CREATE TABLE event (seq INTEGER PRIMARY KEY, revision INTEGER NOT NULL,"
    " usec INTEGER NOT NULL, type TEXT NOT NULL, subject TEXT NOT NULL, owner TEXT NOT NULL,"
    " body TEXT NOT NULL) STRICT;"
    "INSERT INTO meta VALUES ('revision', 7), ('events_floor', 0);"
    "INSERT INTO doc VALUES ('session', 's1', 'a', 'anna', 'ended', 1,"
    " '{\"kind\":\"train\",\"group\":\"g\",\"submitted_usec\":5,\"ended_usec\":9}'),"
    " ('session', 's2', 'b', 'ben', 'running', 2,"
    " '{\"kind\":\"debug\",\"group\":\"g\",\"submitted_usec\":6,\"ended_usec\":0}'),"
    " ('user', 'anna', NULL, NULL, NULL, 0, '{}');";

static int note_num(void *arg, const struct store_doc *doc)
{
    return buf_printf(arg, "%s ", doc->id);
}

static const char *page_ids(struct fixture *f, struct store_query query)
{
    struct err err = ERR_INIT;

    buf_consume(&f->log, f->log.len);
    buf_puts(&f->log, "");
    if (store_page(f->store, &query, note_num, &f->log, &query.after, &err) < 0)
        fail_msg("%s", err_text(&err));
    return f->log.data;
}

TEST(a_store_of_version_1_is_brought_up_to_date)
{
    struct fixture *f = fixture_new();
    sqlite3 *db = NULL;
    void *again = f;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, version_1, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    fixture_open(f, f->path);
    assert_int_equal(store_revision(f->store), 7);
    assert_string_equal(page_ids(f, (struct store_query)QUERY(.group = "g")), "s2 s1 ");
    assert_string_equal(page_ids(f, (struct store_query)QUERY(.live = true)), "s2 ");
    assert_string_equal(page_ids(f, (struct store_query)QUERY(.class = "debug")), "s2 ");
    assert_string_equal(page_ids(f, (struct store_query)QUERY(.sort = STORE_BY_ENDED)), "s1 ");
    assert_string_equal(list_ids(f, &(struct store_filter){.kind = "user"}), "anna ");
    teardown(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_and_filter_has_an_index_and_nothing_is_sorted),
        cmocka_unit_test(a_page_ends_where_the_range_of_submission_does),
        cmocka_unit_test(pages_give_every_session_that_fits_once_and_in_order),
        cmocka_unit_test(a_filter_that_hardly_anything_passes_gives_short_pages_not_long_searches),
        cmocka_unit_test(a_page_that_is_just_full_says_whether_there_is_more),
        cmocka_unit_test(a_store_of_version_1_is_brought_up_to_date),
    };

    return cmocka_run_group_tests(tests, setup_large, teardown);
}
