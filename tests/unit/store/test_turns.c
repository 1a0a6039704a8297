/* Turns, commits, callbacks and reads, on a store in memory. */
#include "base/str.h"
#include "fixture.h"

static struct fixture *now; /* of the running test, for callbacks without an argument to spare */

struct note {
    const char *text;
    uint64_t revision; /* when it was called */
    bool called;
};

static void take_note(void *arg)
{
    struct note *n = arg;

    n->called = true;
    n->revision = now->store ? store_revision(now->store) : 0;
    buf_printf(&now->log, "%s ", n->text);
}

static void note_commit(
    void *arg, uint64_t revision, const struct store_event *events, size_t count)
{
    struct fixture *f = arg;

    buf_printf(&f->log, "commit%lu[", (unsigned long)revision);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(events[i].revision, revision);
        buf_printf(&f->log, "%s%s:%s", i ? " " : "", events[i].type, events[i].subject);
    }
    buf_puts(&f->log, "] ");
}

static int begin(void **state)
{
    setup_memory(state);
    now = *state;
    return 0;
}

TEST(a_hundred_puts_in_one_turn_are_one_revision)
{
    struct fixture *f = *state;

    for (uint64_t i = 1; i <= 100; i++)
        put_session(f, i, "anna", "running");
    assert_int_equal(store_revision(f->store), 0);
    fixture_run(f);
    assert_int_equal(store_revision(f->store), 1);
    assert_int_equal(store_get(f->store, "session", "s100", ignore_doc, NULL, NULL), 0);
}

TEST(an_idle_store_does_not_keep_the_loop_alive)
{
    struct fixture *f = *state;

    assert_false(uv_loop_alive(&f->loop));
    put_session(f, 1, "anna", "running");
    assert_true(uv_loop_alive(&f->loop));
    fixture_run(f);
    assert_false(uv_loop_alive(&f->loop));
}

TEST(waiters_run_in_the_order_of_their_calls)
{
    struct fixture *f = *state;
    struct note a = {"a"}, b = {"b"}, c = {"c"}, d = {"d"};

    store_after(f->store, take_note, &a);
    put_session(f, 1, "anna", "running");
    store_after(f->store, take_note, &b);
    store_after(f->store, take_note, &c);
    put_session(f, 2, "anna", "running");
    store_after(f->store, take_note, &d);
    assert_null(f->log.data);
    fixture_run(f);
    assert_string_equal(f->log.data, "a b c d ");
    assert_int_equal(a.revision, 0);
    assert_int_equal(d.revision, 1);
}

TEST(a_waiter_with_nothing_staged_runs_at_the_end_of_the_turn)
{
    struct fixture *f = *state;
    struct note a = {"a"};

    store_after(f->store, take_note, &a);
    assert_false(a.called);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_true(a.called);
    assert_int_equal(store_revision(f->store), 0);
    fixture_run(f);
}

TEST(a_waiter_with_a_commit_in_flight_waits_for_it)
{
    struct fixture *f = *state;
    struct note a = {"a"}, b = {"b"};

    store_on_commit(f->store, note_commit, f);
    put_session(f, 1, "anna", "running");
    store_after(f->store, take_note, &a);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    store_after(f->store, take_note, &b);
    fixture_run(f);
    assert_string_equal(f->log.data, "commit1[] a b ");
}

TEST(events_of_a_commit_are_told_before_its_waiters)
{
    struct fixture *f = *state;
    struct note a = {"a"};

    store_on_commit(f->store, note_commit, f);
    store_after(f->store, take_note, &a);
    store_event(f->store, "session.state", "s1", "anna", "{}");
    store_event(f->store, "node.state", "n1", NULL, "{}");
    store_after(f->store, take_note, &a);
    fixture_run(f);
    assert_string_equal(f->log.data, "a commit1[session.state:s1 node.state:n1] a ");
}

static void stage_second(UNUSED void *arg)
{
    put_session(now, 2, "anna", "running");
    store_event(now->store, "second", "s2", "anna", "{}");
}

TEST(what_a_waiter_stages_is_the_next_revision)
{
    struct fixture *f = *state;

    store_on_commit(f->store, note_commit, f);
    put_session(f, 1, "anna", "running");
    store_after(f->store, stage_second, NULL);
    fixture_run(f);
    assert_string_equal(f->log.data, "commit1[] commit2[second:s2] ");
    assert_int_equal(store_revision(f->store), 2);
}

static void stage_in_timer(UNUSED uv_timer_t *timer)
{
    static uint64_t num;

    put_session(now, ++num, "anna", "running");
    put_session(now, ++num, "anna", "running");
}

TEST(a_turn_of_a_timer_is_committed_while_the_loop_sleeps)
{
    struct fixture *f = *state;
    uv_timer_t timer, guard;
    struct note a = {"a"};

    uv_timer_init(&f->loop, &timer);
    uv_timer_init(&f->loop, &guard);
    uv_timer_start(&timer, stage_in_timer, 1, 0);
    uv_timer_start(&guard, stage_in_timer, 60000, 0);
    for (int i = 0; i < 1000 && store_revision(f->store) == 0; i++)
        uv_run(&f->loop, UV_RUN_ONCE);
    assert_int_equal(store_revision(f->store), 1);
    store_after(f->store, take_note, &a);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_close((uv_handle_t *)&guard, NULL);
    fixture_run(f);
}

static void stage_in_prepare(uv_prepare_t *prepare)
{
    put_session(now, 1, "anna", "running");
    uv_prepare_stop(prepare);
}

/* Handles run in some order: one that stages after the store's own must not be slept on. */
TEST(work_staged_just_before_the_poll_is_not_slept_on)
{
    struct fixture *f = *state;
    uv_prepare_t first, last;
    uv_timer_t guard;

    uv_prepare_init(&f->loop, &first);
    uv_prepare_init(&f->loop, &last);
    uv_prepare_start(&first, stage_in_prepare);
    uv_prepare_start(&last, stage_in_prepare);
    uv_timer_init(&f->loop, &guard);
    uv_timer_start(&guard, stage_in_timer, 3600000, 0);
    for (int i = 0; i < 10 && store_revision(f->store) == 0; i++)
        uv_run(&f->loop, UV_RUN_ONCE);
    assert_true(store_revision(f->store) > 0);
    uv_close((uv_handle_t *)&first, NULL);
    uv_close((uv_handle_t *)&last, NULL);
    uv_close((uv_handle_t *)&guard, NULL);
    fixture_run(f);
}

static void ask_again(void *arg)
{
    bool *enough = arg;

    if (!*enough)
        store_after(now->store, ask_again, enough);
}

static void say_enough(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
    uv_close((uv_handle_t *)timer, NULL);
}

TEST(a_waiter_that_asks_again_does_not_starve_the_loop)
{
    struct fixture *f = *state;
    bool enough = false;
    uv_timer_t timer = {.data = &enough};

    uv_timer_init(&f->loop, &timer);
    uv_timer_start(&timer, say_enough, 5, 0);
    store_after(f->store, ask_again, &enough);
    fixture_run(f);
    assert_true(enough);
}

static void close_it(UNUSED void *arg)
{
    store_close(now->store);
    now->store = NULL;
    buf_puts(&now->log, "closed ");
}

TEST(a_waiter_may_close_the_store)
{
    struct fixture *f = *state;
    struct note a = {"a"}, b = {"b"};

    put_session(f, 1, "anna", "running");
    store_after(f->store, take_note, &a);
    store_after(f->store, close_it, NULL);
    store_after(f->store, take_note, &b);
    fixture_run(f);
    assert_string_equal(f->log.data, "a b closed ");
}

TEST(closing_commits_and_runs_the_waiters)
{
    struct fixture *f = *state;
    struct note a = {"a"}, b = {"b"};

    store_on_commit(f->store, note_commit, f);
    put_session(f, 1, "anna", "running");
    store_after(f->store, stage_second, NULL);
    store_after(f->store, take_note, &a);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    put_session(f, 3, "anna", "running");
    store_after(f->store, take_note, &b);
    store_close(f->store);
    f->store = NULL;
    assert_true(a.called && b.called);
    assert_true(str_starts(f->log.data, "commit1[] a commit2[second:s2] "));
    assert_true(str_ends(f->log.data, " b ")); /* of the second commit, or of a third one */
}

TEST(sync_waits_for_what_is_staged)
{
    struct fixture *f = *state;
    struct note a = {"a"}, b = {"b"};

    store_on_commit(f->store, note_commit, f);
    assert_int_equal(store_sync(f->store, NULL), 0);
    assert_int_equal(store_revision(f->store), 0);
    put_session(f, 1, "anna", "running");
    store_after(f->store, take_note, &a);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    put_session(f, 2, "anna", "running");
    store_after(f->store, take_note, &b);
    assert_int_equal(store_sync(f->store, NULL), 0);
    assert_int_equal(store_revision(f->store), 2);
    assert_string_equal(f->log.data, "commit1[] a commit2[] b ");
    fixture_run(f);
}

TEST(staged_changes_are_read_only_once_committed)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    put_session(f, 1, "anna", "running");
    assert_int_equal(store_get(f->store, "session", "s1", ignore_doc, NULL, &err), -ENOENT);
    assert_string_equal(err.text, "there is no session 's1'");
    store_sync(f->store, NULL);
    assert_int_equal(store_get(f->store, "session", "s1", ignore_doc, NULL, &err), 0);
    store_del(f->store, "session", "s1");
    assert_int_equal(store_get(f->store, "session", "s1", ignore_doc, NULL, &err), 0);
    store_sync(f->store, NULL);
    assert_int_equal(store_get(f->store, "session", "s1", ignore_doc, NULL, &err), -ENOENT);
}

static int check_node(void *arg, const struct store_doc *doc)
{
    assert_string_equal(doc->kind, "node");
    assert_string_equal(doc->id, "n1");
    assert_null(doc->name);
    assert_null(doc->owner);
    assert_string_equal(doc->state, "ready");
    assert_int_equal(doc->num, 0);
    assert_string_equal(doc->body, arg);
    return 17;
}

TEST(a_put_replaces_the_whole_document)
{
    struct fixture *f = *state;
    struct store_doc doc = {.kind = "node", .id = "n1", .name = "x", .num = 5, .body = "{}"};

    store_put(f->store, &doc);
    doc = (struct store_doc){.kind = "node", .id = "n1", .state = "ready", .body = "{\"a\":1}"};
    store_put(f->store, &doc);
    store_sync(f->store, NULL);
    assert_int_equal(store_get(f->store, "node", "n1", check_node, "{\"a\":1}", NULL), 17);
    doc.body = "{\"a\":2}"; /* only the body is another */
    store_put(f->store, &doc);
    store_sync(f->store, NULL);
    assert_int_equal(store_get(f->store, "node", "n1", check_node, "{\"a\":2}", NULL), 17);
    assert_int_equal(store_get(f->store, "group", "n1", check_node, NULL, NULL), -ENOENT);
}

TEST(counters_count_each_on_its_own)
{
    struct fixture *f = *state;

    assert_int_equal(store_next(f->store, "job"), 1);
    assert_int_equal(store_next(f->store, "job"), 2);
    assert_int_equal(store_next(f->store, "uid"), 1);
    assert_int_equal(store_next(f->store, "job"), 3);
    fixture_run(f);
    assert_int_equal(store_revision(f->store), 1);
    assert_int_equal(store_next(f->store, "job"), 4);
}

static void put_some(struct fixture *f)
{
    put_session(f, 1, "anna", "ended");
    put_session(f, 2, "ben", "running");
    put_session(f, 3, "anna", "running");
    put_session(f, 4, "anna", "failed");
    put_session(f, 5, "ben", "ended");
    put_session(f, 11, "anna", "ended");
    put_session(f, 12, NULL, NULL);
    store_put(f->store, &(struct store_doc){.kind = "node", .id = "n1", .body = "{}"});
    store_sync(f->store, NULL);
}

#define IDS(...) list_ids(f, &(struct store_filter){.kind = "session", __VA_ARGS__})

TEST(lists_are_filtered_and_go_newest_first)
{
    struct fixture *f = *state;

    put_some(f);
    assert_string_equal(IDS(.limit = 0), "s12 s11 s5 s4 s3 s2 s1 ");
    assert_string_equal(IDS(.owner = "anna"), "s11 s4 s3 s1 ");
    assert_string_equal(IDS(.state = "ended"), "s11 s5 s1 ");
    assert_string_equal(IDS(.not_state = "ended"), "s12 s4 s3 s2 ");
    assert_string_equal(IDS(.name = "run-1"), "s11 s1 ");
    assert_string_equal(IDS(.name = "run-1", .state = "running"), "");
    assert_string_equal(IDS(.name = "run-2", .owner = "ben"), "s2 ");
    assert_string_equal(IDS(.owner = "anna", .state = "ended"), "s11 s1 ");
    assert_string_equal(IDS(.owner = "anna", .not_state = "ended"), "s4 s3 ");
    assert_string_equal(IDS(.owner = "nobody"), "");
    assert_string_equal(IDS(.before_num = 5), "s4 s3 s2 s1 ");
    assert_string_equal(IDS(.before_num = 1), "");
    assert_string_equal(IDS(.before_num = UINT64_MAX, .limit = 1), "s12 ");
    assert_string_equal(IDS(.owner = "anna", .before_num = 11, .limit = 2), "s4 s3 ");
    assert_string_equal(IDS(.owner = "anna' OR 1 = 1 --"), "");
}

static int stop_at_once(void *arg, UNUSED const struct store_doc *doc)
{
    ++*(int *)arg;
    return -ECANCELED;
}

TEST(a_list_stops_with_the_code_of_its_callback)
{
    struct fixture *f = *state;
    int calls = 0;

    put_some(f);
    assert_int_equal(
        store_list(f->store, &(struct store_filter){.kind = "session"}, stop_at_once, &calls, NULL),
        -ECANCELED);
    assert_int_equal(calls, 1);
}

static int read_inside(void *arg, const struct store_doc *doc)
{
    struct fixture *f = arg;
    struct store_filter filter = {.kind = "session", .owner = "ben"};

    assert_int_equal(store_get(f->store, "session", doc->id, ignore_doc, NULL, NULL), 0);
    return store_list(f->store, &filter, note_doc, &f->log, NULL);
}

TEST(a_callback_may_read)
{
    struct fixture *f = *state;
    struct store_filter filter = {.kind = "session", .limit = 2};

    put_some(f);
    assert_int_equal(store_list(f->store, &filter, read_inside, f, NULL), 0);
    assert_string_equal(f->log.data, "s5 s2 s5 s2 ");
}

static int note_event(void *arg, const struct store_event *e)
{
    return buf_printf(
        arg, "%lu/%lu:%s ", (unsigned long)e->revision, (unsigned long)e->seq, e->subject);
}

static const char *list_events(struct fixture *f, uint64_t after, uint32_t limit, const char *owner)
{
    buf_consume(&f->log, f->log.len);
    buf_puts(&f->log, "");
    assert_int_equal(store_events(f->store, after, limit, owner, note_event, &f->log, NULL), 0);
    return f->log.data;
}

TEST(events_are_read_from_a_revision_on)
{
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        store_event(f->store, "t", "a", "anna", "{}");
        store_event(f->store, "t", "b", "ben", "{}");
        store_event(f->store, "t", "c", NULL, "{}");
        store_sync(f->store, NULL);
    }
    assert_string_equal(list_events(f, 0, 0, NULL), "1/1:a 1/2:b 1/3:c 2/4:a 2/5:b 2/6:c ");
    assert_string_equal(list_events(f, 1, 0, NULL), "2/4:a 2/5:b 2/6:c ");
    assert_string_equal(list_events(f, 2, 0, NULL), "");
    assert_string_equal(list_events(f, 99, 0, NULL), "");
    assert_string_equal(list_events(f, 0, 0, "ben"), "1/2:b 2/5:b ");
    assert_string_equal(list_events(f, 0, 1, "ben"), "1/2:b ");
}

TEST(a_limit_never_cuts_a_revision_of_events_in_two)
{
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        store_event(f->store, "t", "a", "anna", "{}");
        store_event(f->store, "t", "b", "ben", "{}");
        store_sync(f->store, NULL);
    }
    assert_string_equal(list_events(f, 0, 1, NULL), "1/1:a 1/2:b ");
    assert_string_equal(list_events(f, 0, 2, NULL), "1/1:a 1/2:b ");
    assert_string_equal(list_events(f, 0, 3, NULL), "1/1:a 1/2:b 2/3:a 2/4:b ");
}

#define ROW(fn) cmocka_unit_test_setup_teardown(fn, begin, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(a_hundred_puts_in_one_turn_are_one_revision),
        ROW(an_idle_store_does_not_keep_the_loop_alive),
        ROW(waiters_run_in_the_order_of_their_calls),
        ROW(a_waiter_with_nothing_staged_runs_at_the_end_of_the_turn),
        ROW(a_waiter_with_a_commit_in_flight_waits_for_it),
        ROW(events_of_a_commit_are_told_before_its_waiters),
        ROW(what_a_waiter_stages_is_the_next_revision),
        ROW(a_turn_of_a_timer_is_committed_while_the_loop_sleeps),
        ROW(work_staged_just_before_the_poll_is_not_slept_on),
        ROW(a_waiter_that_asks_again_does_not_starve_the_loop),
        ROW(a_waiter_may_close_the_store),
        ROW(closing_commits_and_runs_the_waiters),
        ROW(sync_waits_for_what_is_staged),
        ROW(staged_changes_are_read_only_once_committed),
        ROW(a_put_replaces_the_whole_document),
        ROW(counters_count_each_on_its_own),
        ROW(lists_are_filtered_and_go_newest_first),
        ROW(a_list_stops_with_the_code_of_its_callback),
        ROW(a_callback_may_read),
        ROW(events_are_read_from_a_revision_on),
        ROW(a_limit_never_cuts_a_revision_of_events_in_two),
    };

    return RUN_TESTS(tests);
}
