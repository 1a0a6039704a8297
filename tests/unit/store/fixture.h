/* A loop, a folder of its own, and a store that may be opened in it again and again. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include "base/buf.h"
#include "store/store.h"
#include "unit.h"

struct fixture {
    uv_loop_t loop;
    struct store *store;
    char dir[UNIT_DIR_MAX];
    char path[128];
    struct buf log; /* what callbacks noted, in order */
};

static inline void fixture_fatal(UNUSED void *arg, const char *text)
{
    fprintf(stderr, "fatal: %s\n", text);
    abort();
}

static inline int fixture_try_open(struct fixture *f, const char *path, struct err *err)
{
    struct store_opts opts = {.path = path, .loop = &f->loop, .fatal = fixture_fatal};

    return store_open(&opts, &f->store, err);
}

static inline void fixture_open(struct fixture *f, const char *path)
{
    struct err err = ERR_INIT;

    assert_ok(fixture_try_open(f, path, &err), &err);
}

static inline void fixture_run(struct fixture *f)
{
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
}

static inline void fixture_close(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
    fixture_run(f);
}

static inline struct fixture *fixture_new(void)
{
    struct fixture *f = xnew(struct fixture);

    unit_dir_init(f->dir);
    snprintf(f->path, sizeof(f->path), "%s/muster.db", f->dir);
    f->log = BUF_INIT(1 << 20);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    return f;
}

static inline int setup(void **state)
{
    *state = fixture_new();
    return 0;
}

static inline int setup_memory(void **state)
{
    struct fixture *f = fixture_new();

    fixture_open(f, NULL);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    fixture_close(f);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    unit_dir_done(f->dir);
    buf_done(&f->log);
    free(f);
    return 0;
}

static inline void put_session(
    struct fixture *f, uint64_t num, const char *owner, const char *state)
{
    char id[32], name[32], body[64];

    snprintf(id, sizeof(id), "s%lu", (unsigned long)num);
    snprintf(name, sizeof(name), "run-%lu", (unsigned long)num % 10);
    snprintf(body, sizeof(body), "{\"num\":%lu}", (unsigned long)num);
    store_put(f->store,
        &(struct store_doc){
            .kind = "session",
            .id = id,
            .name = name,
            .owner = owner,
            .state = state,
            .num = num,
            .body = body,
        });
}

/* Ids of a list, "s3 s2 s1 ". */
static inline int note_doc(void *arg, const struct store_doc *doc)
{
    return buf_printf(arg, "%s ", doc->id);
}

static inline const char *list_ids(struct fixture *f, const struct store_filter *filter)
{
    struct err err = ERR_INIT;

    buf_consume(&f->log, f->log.len);
    buf_puts(&f->log, "");
    if (store_list(f->store, filter, note_doc, &f->log, &err) < 0)
        fail_msg("%s", err_text(&err));
    return f->log.data ? f->log.data : "";
}

static inline int ignore_doc(UNUSED void *arg, UNUSED const struct store_doc *doc)
{
    return 0;
}

static inline int ignore_event(UNUSED void *arg, UNUSED const struct store_event *event)
{
    return 0;
}

static inline int keep_seq(void *arg, const struct store_event *event)
{
    *(uint64_t *)arg = event->seq;
    return 0;
}

/* Of the newest event. */
static inline uint64_t last_seq(struct fixture *f)
{
    uint64_t seq = 0;

    assert_int_equal(
        store_events(f->store, store_revision(f->store) - 1, 0, NULL, keep_seq, &seq, NULL), 0);
    return seq;
}

#endif
