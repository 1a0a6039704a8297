/* A hundred thousand sessions and more events than are kept: pages cost a page. */
#include "base/clock.h"
#include "base/str.h"
#include "fixture.h"
#include "store/backend.h"
#include "store/sqlite.h"

#define SESSIONS 100000
#define BATCH 1000
#define PAGE 50

/* One in a thousand still runs; anna has nearly all, and few that failed. */
static const char *state_of(uint64_t num)
{
    if (num % 1000 == 1)
        return "running";
    return num % 5000 == 2 ? "failed" : "ended";
}

static int setup_large(void **state)
{
    struct fixture *f = fixture_new();

    fixture_open(f, f->path);
    for (uint64_t num = 1; num <= SESSIONS; num++) {
        put_session(f, num, num % 100 ? "anna" : "ben", state_of(num));
        if (num % BATCH == 0)
            store_sync(f->store, NULL);
    }
    *state = f;
    return 0;
}

struct query {
    struct store_filter filter;
    const char *index;
    uint64_t most_steps; /* of SQLite's machine, for a page */
};

#define FILTER(...) \
    { \
        .kind = "session", .limit = PAGE, __VA_ARGS__ \
    }

static const struct query queries[] = {
    {FILTER(.before_num = 0), "doc_by_num", 50 * PAGE},
    {FILTER(.before_num = 50000), "doc_by_num", 50 * PAGE},
    {FILTER(.owner = "anna"), "doc_by_owner", 50 * PAGE},
    {FILTER(.owner = "anna", .before_num = 300), "doc_by_owner", 50 * PAGE},
    {FILTER(.state = "running"), "doc_by_state", 50 * PAGE},
    {FILTER(.state = "ended", .before_num = 70000), "doc_by_state", 50 * PAGE},
    {FILTER(.owner = "anna", .state = "failed"), "doc_by_owner_state", 50 * PAGE},
    {FILTER(.name = "run-3"), "doc_by_name", 50 * PAGE},
    {FILTER(.not_state = "running"), "doc_by_num", 50 * PAGE},
    {FILTER(.owner = "anna", .not_state = "running"), "doc_by_owner", 50 * PAGE},
};

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, const struct store_filter *filter)
{
    sqlite3_stmt *st = NULL;
    uint64_t before = filter->before_num ? filter->before_num - 1 : INT64_MAX;

    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    sqlite3_bind_text(st, 1, filter->kind, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, filter->owner, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, filter->state, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 4, filter->not_state, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 5, filter->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 6, (sqlite3_int64)before);
    sqlite3_bind_int64(st, 7, filter->limit);
    return st;
}

static void check_plan(sqlite3 *db, const struct query *q)
{
    _cleanup_free_ char *explain = xasprintf("EXPLAIN QUERY PLAN %s", sqlite_list_sql(&q->filter));
    _cleanup_free_ char *want = xasprintf("SEARCH doc USING INDEX %s (kind=", q->index);
    _cleanup_(sqlite_finalizep) sqlite3_stmt *st = prepare(db, explain, &q->filter);

    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    if (!str_starts((const char *)sqlite3_column_text(st, 3), want))
        fail_msg("'%s' is not by %s", (const char *)sqlite3_column_text(st, 3), q->index);
    assert_int_equal(sqlite3_step(st), SQLITE_DONE); /* no sorting behind it */
}

static void check_steps(sqlite3 *db, const struct query *q)
{
    _cleanup_(sqlite_finalizep)
        sqlite3_stmt *st = prepare(db, sqlite_list_sql(&q->filter), &q->filter);
    uint64_t rows = 0, steps;

    while (sqlite3_step(st) == SQLITE_ROW)
        rows++;
    steps = (uint64_t)sqlite3_stmt_status(st, SQLITE_STMTSTATUS_VM_STEP, 0);
    assert_true(rows > 0 && rows <= PAGE);
    if (steps > q->most_steps)
        fail_msg(
            "%lu steps for %lu rows by %s", (unsigned long)steps, (unsigned long)rows, q->index);
}

TEST(every_filter_has_an_index_and_a_page_costs_a_page)
{
    struct fixture *f = *state;
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        check_plan(db, &queries[i]);
        check_steps(db, &queries[i]);
    }
    sqlite3_close(db);
}

struct page {
    uint64_t count, last_num;
};

static int take_row(void *arg, const struct store_doc *doc)
{
    struct page *p = arg;

    assert(doc->num < p->last_num);
    p->last_num = doc->num;
    p->count++;
    return 0;
}

TEST(pages_give_every_session_once_newest_first)
{
    struct fixture *f = *state;
    struct page p = {.last_num = UINT64_MAX};
    uint64_t before = 0, pages = 0, began = clock_mono_usec();

    do {
        struct store_filter filter = {.kind = "session", .before_num = before, .limit = 1000};
        before = p.last_num;
        assert_int_equal(store_list(f->store, &filter, take_row, &p, NULL), 0);
        if (p.last_num != before)
            pages++;
    } while (p.last_num != before && (before = p.last_num));
    assert_int_equal(p.count, SESSIONS);
    assert_int_equal(pages, SESSIONS / 1000);
    print_message("%lu pages of 1000 in %lu ms\n", (unsigned long)pages,
        (unsigned long)((clock_mono_usec() - began) / USEC_PER_MSEC));
}

TEST(what_still_runs_is_found_among_all_that_has_ended)
{
    struct fixture *f = *state;
    struct page p = {.last_num = UINT64_MAX};
    struct store_filter filter = {.kind = "session", .not_state = "ended"};
    uint64_t began = clock_mono_usec();

    assert_int_equal(store_list(f->store, &filter, take_row, &p, NULL), 0);
    assert_int_equal(p.count, SESSIONS / 1000 + SESSIONS / 5000);
    print_message("live ones of %d in %lu ms\n", SESSIONS,
        (unsigned long)((clock_mono_usec() - began) / USEC_PER_MSEC));
}

/* Never written back, the log would have 48 MB here. */
TEST(the_log_is_written_back_and_used_again)
{
    struct fixture *f = *state;
    _cleanup_free_ char *path = xasprintf("%s-wal", f->path);
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    print_message("log of %lu KiB\n", (unsigned long)st.st_size / 1024);
    assert_true(st.st_size < 16 << 20);
}

static void stage_events(struct fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        store_event(f->store, "t", "s1", i % 2 ? "anna" : "ben", "{}");
    store_sync(f->store, NULL);
}

static int count_event(void *arg, UNUSED const struct store_event *event)
{
    ++*(uint64_t *)arg;
    return 0;
}

static uint64_t count_events(struct fixture *f, uint64_t after)
{
    uint64_t count = 0;
    struct err err = ERR_INIT;

    if (store_events(f->store, after, 0, NULL, count_event, &count, &err) < 0)
        fail_msg("%s", err_text(&err));
    return count;
}

TEST(only_so_many_events_are_kept_and_who_asks_for_older_is_told)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    uint64_t start = store_revision(f->store);
    _cleanup_free_ char *text = xasprintf(
        "events after revision %lu are no longer kept", (unsigned long)start);

    for (int i = 0; i < STORE_EVENTS_KEPT / BATCH; i++)
        stage_events(f, BATCH);
    assert_int_equal(count_events(f, 0), STORE_EVENTS_KEPT);
    stage_events(f, 1); /* now one event of the first revision is gone */
    assert_int_equal(store_events(f->store, start, 1, NULL, ignore_event, NULL, &err), -ESTALE);
    assert_string_equal(err.text, text);
    assert_int_equal(store_events(f->store, start, 1, "nobody", ignore_event, NULL, NULL), -ESTALE);
    assert_int_equal(count_events(f, start + 1), STORE_EVENTS_KEPT - BATCH + 1);
    stage_events(f, 3 * BATCH);
    assert_int_equal(count_events(f, start + 4), STORE_EVENTS_KEPT - BATCH + 1);
    fixture_close(f);

    fixture_open(f, f->path);
    assert_int_equal(store_events(f->store, start + 3, 1, NULL, ignore_event, NULL, NULL), -ESTALE);
    assert_int_equal(count_events(f, start + 4), STORE_EVENTS_KEPT - BATCH + 1);
    stage_events(f, 5);
    assert_int_equal(last_seq(f), STORE_EVENTS_KEPT + 1 + 3 * BATCH + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_filter_has_an_index_and_a_page_costs_a_page),
        cmocka_unit_test(pages_give_every_session_once_newest_first),
        cmocka_unit_test(what_still_runs_is_found_among_all_that_has_ended),
        cmocka_unit_test(the_log_is_written_back_and_used_again),
        cmocka_unit_test(only_so_many_events_are_kept_and_who_asks_for_older_is_told),
    };

    return cmocka_run_group_tests(tests, setup_large, teardown);
}
