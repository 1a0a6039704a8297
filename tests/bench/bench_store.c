/*
 * Commits a second of the store on a real file, with 1 and with 64 documents staged in each turn.
 * Usage: bench_store FOLDER [SECONDS]; the folder decides which disk is measured.
 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"
#include "store/store.h"

#define IDS 10000 /* documents are put again and again */

struct bench {
    struct store *store;
    unsigned docs; /* a turn */
    uint64_t began, until, slowest;
    uint64_t turn_began, turns, put;
};

static void stage_turn(struct bench *b);

static void fatal(UNUSED void *arg, const char *text)
{
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static void turn_done(void *arg)
{
    struct bench *b = arg;
    uint64_t now = clock_mono_usec();

    b->turns++;
    b->slowest = MAX_OF(b->slowest, now - b->turn_began);
    if (now < b->until)
        stage_turn(b);
}

/* As a session's document: 1.5 KB, whose state changes with each put. */
static void stage_turn(struct bench *b)
{
    static const char *const states[] = {"pending", "starting", "running", "ended"};
    char id[32], body[1500];

    memset(body, 'x', sizeof(body));
    body[0] = body[sizeof(body) - 2] = '"';
    body[sizeof(body) - 1] = '\0';
    b->turn_began = clock_mono_usec();
    for (unsigned i = 0; i < b->docs; i++, b->put++) {
        snprintf(id, sizeof(id), "s%lu", (unsigned long)b->put % IDS);
        store_put(b->store,
            &(struct store_doc){
                .kind = "session",
                .id = id,
                .name = "run",
                .owner = "anna",
                .state = states[b->put / IDS % ARRAY_LEN(states)],
                .num = b->put % IDS + 1,
                .body = body,
            });
        store_event(b->store, "session.state", id, "anna", "{}");
    }
    store_after(b->store, turn_done, b);
}

static int measure(const char *path, unsigned docs, uint64_t usec)
{
    struct bench b = {.docs = docs};
    struct err err = ERR_INIT;
    uv_loop_t loop;
    struct store_opts opts = {.path = path, .loop = &loop, .fatal = fatal};
    double seconds;

    uv_loop_init(&loop);
    if (store_open(&opts, &b.store, &err) < 0) {
        fprintf(stderr, "%s\n", err_text(&err));
        return 1;
    }
    b.began = clock_mono_usec();
    b.until = b.began + usec;
    stage_turn(&b);
    uv_run(&loop, UV_RUN_DEFAULT);
    seconds = (double)(clock_mono_usec() - b.began) / 1e6;
    printf("%3u documents and events a turn: %7.0f commits/s, %8.0f documents/s,"
           " mean %.2f ms, slowest %.2f ms\n",
        docs, (double)b.turns / seconds, (double)b.put / seconds, seconds * 1e3 / (double)b.turns,
        (double)b.slowest / 1e3);
    store_close(b.store);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop) < 0;
}

int main(int argc, char **argv)
{
    static const unsigned docs[] = {1, 64};
    _cleanup_free_ char *dir = NULL, *path = NULL;
    uint64_t seconds = 3;
    int r = 0;

    if (argc < 2 || (argc > 2 && str_to_u64(argv[2], 3600, &seconds) < 0)) {
        fprintf(stderr, "usage: bench_store FOLDER [SECONDS]\n");
        return 2;
    }
    dir = xasprintf("%s/bench-store-XXXXXX", argv[1]);
    if (!mkdtemp(dir)) {
        perror(dir);
        return 1;
    }
    path = xasprintf("%s/muster.db", dir);
    for (size_t i = 0; i < ARRAY_LEN(docs) && r == 0; i++)
        r = measure(path, docs[i], seconds * USEC_PER_SEC);
    fs_remove_tree(dir, NULL);
    return r;
}
