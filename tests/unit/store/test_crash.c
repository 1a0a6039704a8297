/*
 * What is acknowledged is there: after kill -9 at any moment and at the named crash points, and
 * when the disk is full. The store runs in a child, which is this program again; it writes a line
 * for each job number once that is durable, and one for what fatal() was told.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fixture.h"

#define CHILD_FATAL 7
#define CHAINS 5 /* of jobs in the child at a time */

/* ---- the child ---- */

struct chain {
    struct store *store;
    uint64_t num;
    size_t body_bytes;
};

static void child_fatal(UNUSED void *arg, const char *text)
{
    dprintf(STDOUT_FILENO, "fatal %s\n", text);
    _exit(CHILD_FATAL);
}

static void stage_job(struct chain *c);

static void acknowledge(void *arg)
{
    struct chain *c = arg;

    dprintf(STDOUT_FILENO, "ack %lu\n", (unsigned long)c->num);
    stage_job(c);
}

/* A job is its document and its event: both or neither. */
static void stage_job(struct chain *c)
{
    _cleanup_free_ char *pad = xcalloc(1, c->body_bytes + 1), *body = NULL;
    char id[32];

    c->num = store_next(c->store, "job");
    snprintf(id, sizeof(id), "s%lu", (unsigned long)c->num);
    memset(pad, 'x', c->body_bytes);
    body = xasprintf("\"%s\"", pad);
    store_put(
        c->store, &(struct store_doc){.kind = "session", .id = id, .num = c->num, .body = body});
    store_event(c->store, "session.state", id, NULL, "{}");
    store_after(c->store, acknowledge, c);
}

static int child_main(const char *path, size_t body_bytes)
{
    struct chain chains[CHAINS];
    struct err err = ERR_INIT;
    uv_loop_t loop;
    struct store_opts opts = {.path = path, .loop = &loop, .fatal = child_fatal};
    struct store *s;

    signal(SIGXFSZ, SIG_IGN); /* too large is an error of write(2) then */
    uv_loop_init(&loop);
    if (store_open(&opts, &s, &err) < 0) {
        dprintf(STDOUT_FILENO, "open %s\n", err_text(&err));
        return 1;
    }
    for (size_t i = 0; i < CHAINS; i++) {
        chains[i] = (struct chain){.store = s, .body_bytes = body_bytes};
        stage_job(&chains[i]);
    }
    return uv_run(&loop, UV_RUN_DEFAULT);
}

/* ---- the parent ---- */

struct child {
    pid_t pid;
    int fd;
    struct buf out;
};

/* crash: value of MUSTER_CRASH, or NULL. */
static struct child child_start(const char *path, const char *body_bytes, const char *crash)
{
    struct child c = {.out = BUF_INIT(16 << 20)};
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    c.pid = fork();
    if (c.pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        if (crash)
            setenv("MUSTER_CRASH", crash, 1);
        execl("/proc/self/exe", "child", path, body_bytes, NULL);
        _exit(127);
    }
    close(fds[1]);
    c.fd = fds[0];
    return c;
}

/* Read until there are at least enough bytes, or the end. */
static void child_read(struct child *c, size_t enough)
{
    char part[4096];
    ssize_t n = 1;

    while (c->out.len < enough && (n = read(c->fd, part, sizeof(part))) > 0)
        assert_int_equal(buf_append(&c->out, part, (size_t)n), 0);
}

/* Returns the wait status. */
static int child_end(struct child *c)
{
    int status = 0;

    child_read(c, SIZE_MAX);
    close(c->fd);
    waitpid(c->pid, &status, 0);
    return status;
}

struct tally {
    struct store *store;
    uint64_t docs, events, last_seq;
    bool gap;
};

static int count_doc(void *arg, UNUSED const struct store_doc *doc)
{
    ((struct tally *)arg)->docs++;
    return 0;
}

static int count_event(void *arg, const struct store_event *e)
{
    struct tally *t = arg;

    t->gap = t->gap || e->seq != t->last_seq + 1;
    t->last_seq = e->seq;
    t->events++;
    return store_get(t->store, "session", e->subject, ignore_doc, NULL, NULL);
}

/* Every number acknowledged in text must be there; returns how many and the greatest one. */
static uint64_t check_acknowledged(struct store *s, const char *text, uint64_t *ret_max)
{
    uint64_t count = 0;

    for (const char *p = text; p && (p = strstr(p, "ack ")); p += 4, count++) {
        uint64_t num = strtoull(p + 4, NULL, 10);
        char id[32];

        snprintf(id, sizeof(id), "s%lu", (unsigned long)num);
        if (store_get(s, "session", id, ignore_doc, NULL, NULL) < 0) {
            fprintf(stderr, "%s was acknowledged and is lost\n", id);
            abort();
        }
        *ret_max = MAX_OF(*ret_max, num);
    }
    return count;
}

static void check_whole(struct store *s)
{
    struct tally t = {.store = s};
    struct store_filter filter = {.kind = "session"};

    assert(store_list(s, &filter, count_doc, &t, NULL) == 0);
    assert(store_events(s, 0, 0, NULL, count_event, &t, NULL) == 0);
    assert(t.docs == t.events && !t.gap);
}

TEST(nothing_acknowledged_is_lost_to_kill_9)
{
    struct fixture *f = *state;
    unsigned seed = (unsigned)getpid();
    uint64_t max = 0;

    print_message("seed %u\n", seed);
    for (int round = 0; round < 12; round++) {
        struct child c = child_start(f->path, "100", NULL);
        uint64_t before = max;

        child_read(&c, 1);
        usleep((useconds_t)(rand_r(&seed) % 30000));
        kill(c.pid, SIGKILL);
        assert_true(WIFSIGNALED(child_end(&c)));
        fixture_open(f, f->path);
        assert_true(check_acknowledged(f->store, c.out.data, &max) > 0);
        assert_true(strtoull(c.out.data + 4, NULL, 10) > before);
        check_whole(f->store);
        assert_true(store_next(f->store, "job") > max);
        buf_done(&c.out);
        fixture_close(f);
    }
}

TEST(the_holder_of_a_stale_lock_file_does_not_count)
{
    struct fixture *f = *state;
    struct child c = child_start(f->path, "100", NULL);
    struct err err = ERR_INIT;
    _cleanup_free_ char *text = xasprintf(
        "another manager has '%s' open (pid %d)", f->path, (int)c.pid);

    child_read(&c, 1);
    assert_int_equal(fixture_try_open(f, f->path, &err), -EBUSY);
    assert_string_equal(err.text, text);
    kill(c.pid, SIGKILL);
    child_end(&c);
    buf_done(&c.out);
    fixture_open(f, f->path);
}

/* ---- a full disk ---- */

#define CHECK(x) \
    do { \
        if (!(x)) { \
            dprintf(STDERR_FILENO, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
            _exit(1); \
        } \
    } while (0)

/* In a process of its own, whose mounts nobody else sees. Exits with 0 when all was well. */
static void run_on_a_small_disk(struct fixture *f)
{
    struct child c;
    uint64_t max = 0;
    int status;

    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount("tmpfs", f->dir, "tmpfs", 0, "size=3m,mode=0700") == 0);
    c = child_start(f->path, "3000", NULL);
    status = child_end(&c);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_FATAL);
    CHECK(strstr(c.out.data, "fatal store '"));
    CHECK(strstr(c.out.data, "/muster.db': cannot commit: database or disk is full"));
    CHECK(mount(NULL, f->dir, NULL, MS_REMOUNT, "size=64m") == 0);
    fixture_open(f, f->path);
    CHECK(check_acknowledged(f->store, c.out.data, &max) > 10);
    check_whole(f->store);
    fixture_close(f);
    _exit(0);
}

TEST(a_full_disk_is_fatal_and_loses_nothing_acknowledged)
{
    struct fixture *f = *state;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWNS | CLONE_NEWUSER) < 0)
            _exit(77);
        run_on_a_small_disk(f);
    }
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The log fits, but not what is written back from it into the file, which nobody waits for. */
TEST(a_failure_to_write_the_log_back_is_fatal)
{
    struct fixture *f = *state;
    struct rlimit old, small;
    struct child c;
    uint64_t max = 0;
    int status;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 6 << 20, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    c = child_start(f->path, "3000", NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    status = child_end(&c);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CHILD_FATAL);
    assert_non_null(strstr(c.out.data, "cannot checkpoint: disk I/O error: File too large\n"));
    fixture_open(f, f->path);
    assert_true(check_acknowledged(f->store, c.out.data, &max) > 10);
    check_whole(f->store);
    buf_done(&c.out);
}

/* ---- named crash points ---- */

#ifdef MUSTER_CRASH_POINTS
/* The child dies at its third commit; the file then has as many revisions as given. */
static void expect_killed(struct fixture *f, const char *crash, uint64_t revision)
{
    struct child c = child_start(f->path, "100", crash);
    int status = child_end(&c);
    uint64_t max = 0;

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    fixture_open(f, f->path);
    assert_int_equal(store_revision(f->store), revision);
    assert_int_equal(check_acknowledged(f->store, c.out.data, &max), 2 * CHAINS);
    check_whole(f->store);
    assert_int_equal(store_next(f->store, "job"), revision * CHAINS + 1);
    buf_done(&c.out);
}

TEST(killed_before_a_commit_it_is_not_there)
{
    expect_killed(*state, "store.before_commit=kill@3", 2);
}

TEST(killed_after_a_commit_it_is_there_though_nobody_was_told)
{
    expect_killed(*state, "store.after_commit=kill@3", 3);
}

static void expect_fatal(struct fixture *f, const char *crash, const char *text)
{
    struct child c = child_start(f->path, "100", crash);
    int status = child_end(&c);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CHILD_FATAL);
    assert_non_null(strstr(c.out.data, text));
    buf_done(&c.out);
}

TEST(a_failed_commit_is_fatal)
{
    expect_fatal(*state, "store.before_commit=fail@2", "fatal crash point 'store.before_commit'");
    expect_fatal(*state, "store.after_commit=fail@2", "fatal crash point 'store.after_commit'");
}
#endif

#define ROW(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ROW(nothing_acknowledged_is_lost_to_kill_9),
        ROW(the_holder_of_a_stale_lock_file_does_not_count),
        ROW(a_full_disk_is_fatal_and_loses_nothing_acknowledged),
        ROW(a_failure_to_write_the_log_back_is_fatal),
#ifdef MUSTER_CRASH_POINTS
        ROW(killed_before_a_commit_it_is_not_there),
        ROW(killed_after_a_commit_it_is_there_though_nobody_was_told),
        ROW(a_failed_commit_is_fatal),
#endif
    };

    if (argc == 3 && strcmp(argv[0], "child") == 0)
        return child_main(argv[1], strtoull(argv[2], NULL, 10));
    return RUN_TESTS(tests);
}
