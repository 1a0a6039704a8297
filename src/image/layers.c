/*
 * Jobs, one a layer, started lowest first, a few at a time. A worker that asks what lies below it
 * waits until that is there; since lower layers were started before and never wait for higher ones,
 * every one comes to its end. What a worker made is hashed, recorded and moved in here.
 */
#include "image/layers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/str.h"
#include "image/worker.h"

#define STREAM_EXTRA (UINT64_C(16) << 30) /* what a tar may have beside its files' bytes */
#define AT_ONCE_MAX 8
#define LOCK_RETRY_MS 50

enum job_state { JOB_NEW, JOB_RUNNING, JOB_ASKING, JOB_DONE };

struct job {
    enum job_state state;
    enum worker_task task;
    pid_t pid;
    int socket, blob; /* -1: none */
    char *blob_path;
    struct piece piece;
    bool locked;
    char chain[DIGEST_TEXT_MAX];
    struct layer_record record;
    struct worker_message asked; /* JOB_ASKING */
    struct below *below;         /* made when it asks */
    uint64_t bytes;              /* decompressed so far */
};

/* ---- what is below a layer ---- */

static bool all_done_below(const struct layers *l, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (l->jobs[i].state != JOB_DONE)
            return false;
    return true;
}

/* The same blob must not be twice in a stack (overlayfs: ELOOP); the upper one is enough, since it
 * shows or hides all that the lower one had. */
static void stack_one(struct layers *l, const struct job *j, const char *diff_id)
{
    uint32_t n = 0;

    if (j->record.layer.opaque_root)
        l->stack_count = 0;
    for (uint32_t i = 0; i < l->stack_count; i++)
        if (!str_eq(l->stack[i].digest, j->record.digest))
            l->stack[n++] = l->stack[i];
    STR_SET(l->stack[n].digest, j->record.digest);
    STR_SET(l->stack[n].diff_id, diff_id);
    l->stack[n].size = j->record.size;
    l->stack_count = n + 1;
}

static void make_stack(struct layers *l, uint32_t count)
{
    l->stack_count = 0;
    for (uint32_t i = 0; i < count; i++)
        stack_one(l, &l->jobs[i], l->plan->layers[i].diff_id);
}

static struct layer_root root_below(const struct layers *l, uint32_t n)
{
    return n == 0 ? LAYER_ROOT_DEFAULT : l->jobs[n - 1].record.layer.root;
}

static struct below *below_of(struct layers *l, uint32_t n)
{
    struct job *j = &l->jobs[n];
    _cleanup_free_ char *folder = NULL;

    if (j->below)
        return j->below;
    folder = xasprintf("%s/below%u", l->scratch, n);
    j->below = below_new(folder);
    make_stack(l, n);
    for (uint32_t i = 0; i < l->stack_count; i++) {
        _cleanup_free_ char *blob = blobs_path(l->blobs, l->stack[i].digest);
        below_push(j->below, blob);
    }
    return j->below;
}

static int reply(struct layers *l, uint32_t n)
{
    struct job *j = &l->jobs[n];
    _cleanup_(item_done) struct item i = {0};
    _cleanup_close_ int fd = -1;
    struct err why = ERR_INIT;
    struct layer_root root;
    int r;

    j->state = JOB_RUNNING;
    switch (j->asked.says) {
    case WORKER_ROOT:
        root = root_below(l, n);
        return worker_reply_root(j->socket, &root);
    case WORKER_LOOKUP:
        r = below_lookup(below_of(l, n), j->asked.path, &i, &why);
        return worker_reply_item(j->socket, r, &i, &why);
    default:
        fd = below_open(below_of(l, n), j->asked.path, &why);
        return worker_reply_fd(j->socket, fd, &why);
    }
}

/* Those that waited for a layer below may go on. A worker that is gone is seen when it is read. */
static void reply_all(struct layers *l)
{
    for (uint32_t n = 0; n < l->plan->layer_count; n++)
        if (l->jobs[n].state == JOB_ASKING && all_done_below(l, n))
            (void)reply(l, n);
}

/* ---- the end of a job ---- */

static void job_close(struct layers *l, uint32_t n)
{
    struct job *j = &l->jobs[n];

    if (j->pid > 0) {
        (void)kill(j->pid, SIGKILL);
        (void)waitpid(j->pid, NULL, 0);
    }
    j->pid = 0;
    cleanup_close(&j->socket);
    cleanup_close(&j->blob);
    j->socket = j->blob = -1;
    if (j->piece.fd >= 0)
        piece_done(&j->piece);
    below_free(j->below);
    j->below = NULL;
    free(j->blob_path);
    j->blob_path = NULL;
    if (j->locked)
        blobs_unlock(l->blobs, l->plan->layers[n].diff_id);
    j->locked = false;
}

static int check_digest(const char *what, char *expected, const char *found, struct err *err)
{
    if (expected[0] == '\0') {
        assert(str_copy(expected, DIGEST_TEXT_MAX, found) == 0);
        return 0;
    }
    if (str_eq(expected, found))
        return 0;
    return err_set(err, -EBADMSG, "damaged: its %s should be %s and is %s", what, expected, found);
}

static bool root_is_default(const struct layer_root *r)
{
    return r->mode == 0755 && r->uid == 0 && r->gid == 0 && !r->has_xattrs;
}

/* What was converted becomes a blob and its record. */
static int keep(struct layers *l, uint32_t n, const struct worker_result *w, struct err *err)
{
    struct job *j = &l->jobs[n];
    struct plan_layer *p = &l->plan->layers[n];
    struct layer_root root = root_below(l, n);
    bool by_chain;
    int r;

    if (j->chain[0] == '\0') /* a root file system: its diff id is known only now */
        digest_chain(NULL, p->diff_id, j->chain);
    j->record.layer = w->layer;
    r = blobs_add(l->blobs, j->blob_path, &j->record, err);
    if (r < 0)
        return r;
    by_chain = w->asked_below || (!w->layer.root_listed && !root_is_default(&root));
    r = blobs_record(l->blobs, by_chain, by_chain ? j->chain : p->diff_id, &j->record, err);
    if (r == 0 && !str_eq(p->packed, p->diff_id))
        r = blobs_packed_record(l->blobs, p->packed, p->diff_id, err);
    l->tell(l->arg, "pack", n + 1, j->record.size, 0);
    return r;
}

static int take_result(struct layers *l, uint32_t n, const struct worker_result *w, struct err *err)
{
    struct job *j = &l->jobs[n];
    struct plan_layer *p = &l->plan->layers[n];
    int r;

    if ((r = check_digest("digest", p->packed, w->packed, err)) < 0 ||
        (w->plain[0] && (r = check_digest("diff id", p->diff_id, w->plain, err)) < 0))
        return r;
    if (j->task == WORKER_CONVERT && !w->plain[0])
        return err_set(err, -EPROTO, "no digest was computed");
    if (j->task == WORKER_CONVERT)
        r = keep(l, n, w, err);
    else if (w->plain[0] && !str_eq(p->packed, p->diff_id))
        r = blobs_packed_record(l->blobs, p->packed, p->diff_id, err);
    if (r < 0)
        return r;
    j->state = JOB_DONE;
    job_close(l, n);
    return 0;
}

/* ---- the begin of a job ---- */

static int open_blob(struct layers *l, uint32_t n, struct err *err)
{
    struct job *j = &l->jobs[n];

    j->blob_path = blobs_tmp_path(l->blobs, n);
    (void)unlink(j->blob_path);
    j->blob = open(j->blob_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return j->blob < 0 ? err_sys(err, -errno, "cannot write '%s'", j->blob_path) : 0;
}

static int start(struct layers *l, uint32_t n, struct err *err)
{
    struct job *j = &l->jobs[n];
    const struct plan_layer *p = &l->plan->layers[n];
    char known[DIGEST_TEXT_MAX];
    struct worker_opts o = {
        .task = j->task,
        .piece = &j->piece,
        .scratch = l->scratch,
        .limits = l->limits,
        .stream_max = l->limits.max_bytes + MIN_OF(STREAM_EXTRA, INT64_MAX - l->limits.max_bytes),
    };
    int r = j->task == WORKER_CONVERT ? open_blob(l, n, err) : 0;

    if (r < 0)
        return r;
    o.blob = j->blob;
    o.limits.max_path = LAYER_PATH_MAX - 1;
    o.limits.max_name = LAYER_NAME_MAX;
    /* Decompressed only when its digest was never seen before. */
    o.skip_plain = str_eq(p->packed, p->diff_id) ||
        (p->packed[0] && blobs_packed_find(l->blobs, p->packed, known) == 0 &&
            str_eq(known, p->diff_id));
    l->tell(l->arg, "unpack", n + 1, 0, 0);
    j->state = JOB_RUNNING;
    return worker_start(&o, &j->pid, &j->socket, err);
}

/* Records by diff id without a root of their own were made above a default root. false: that is not
 * known yet. */
static bool choose_task(struct layers *l, uint32_t n)
{
    struct job *j = &l->jobs[n];
    const char *diff_id = l->plan->layers[n].diff_id;
    struct layer_root root;

    j->task = WORKER_CONVERT;
    if (diff_id[0] == '\0')
        return true;
    if (blobs_find(l->blobs, false, diff_id, &j->record, NULL) == 0) {
        if (!j->record.layer.root_listed && !all_done_below(l, n))
            return false;
        root = root_below(l, n);
        if (j->record.layer.root_listed || root_is_default(&root)) {
            j->task = WORKER_PROVE;
            return true;
        }
    }
    if (blobs_find(l->blobs, true, j->chain, &j->record, NULL) == 0)
        j->task = WORKER_PROVE;
    return true;
}

/* A root file system brings no digest: its own, if it was seen before, tells the diff id. */
static void know_rootfs(struct layers *l, struct plan_layer *p, const struct piece *piece)
{
    struct stream s = {0};
    struct layer_record record;
    char known[DIGEST_TEXT_MAX];

    stream_open_raw(&s, piece);
    if (stream_end(&s, p->packed, NULL, NULL) == 0) {
        if (blobs_packed_find(l->blobs, p->packed, known) == 0)
            STR_SET(p->diff_id, known);
        else if (blobs_find(l->blobs, false, p->packed, &record, NULL) == 0 ||
            blobs_find(l->blobs, true, p->packed, &record, NULL) == 0)
            STR_SET(p->diff_id, p->packed);
    }
    stream_done(&s);
}

/* Is the same layer under way here already? */
static bool is_twin(const struct layers *l, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (l->jobs[i].state != JOB_DONE &&
            str_eq(l->plan->layers[i].diff_id, l->plan->layers[n].diff_id))
            return true;
    return false;
}

/* -EAGAIN: not yet. */
static int begin(struct layers *l, uint32_t n, struct err *err)
{
    struct job *j = &l->jobs[n];
    struct plan_layer *p = &l->plan->layers[n];
    int r = 0;

    if (j->piece.fd < 0)
        r = source_piece(l->source, p->member, &j->piece, err);
    if (r < 0)
        return r;
    if (!p->member && !p->packed[0])
        know_rootfs(l, p, &j->piece);
    if (p->diff_id[0]) {
        if (is_twin(l, n))
            return -EAGAIN;
        digest_chain(n > 0 ? l->jobs[n - 1].chain : NULL, p->diff_id, j->chain);
        if (!j->locked && (r = blobs_try_lock(l->blobs, p->diff_id, err)) < 0)
            return r;
        j->locked = true;
    }
    return choose_task(l, n) ? start(l, n, err) : -EAGAIN;
}

/* ---- all of them ---- */

static int failed(const struct layers *l, uint32_t n, struct err *err)
{
    const struct plan_layer *p = &l->plan->layers[n];

    if (!p->member)
        return err_prefix(err, "'%s'", l->from);
    return err_prefix(err, "layer %u of %u (%.19s)", n + 1, l->plan->layer_count,
        p->packed[0] ? p->packed : p->diff_id);
}

/* The limits are the whole image's; each worker knows them for its own layer only. */
static int check_limits(const struct layers *l, struct err *err)
{
    uint64_t bytes = 0, entries = 0;

    for (uint32_t n = 0; n < l->plan->layer_count; n++) {
        bytes += l->jobs[n].record.layer.bytes;
        entries += l->jobs[n].record.layer.entries;
    }
    if (bytes > l->limits.max_bytes)
        return err_set(err, -EFBIG, "its files are larger than the limit of %llu bytes",
            (unsigned long long)l->limits.max_bytes);
    if (entries > l->limits.max_entries)
        return err_set(err, -EFBIG, "more than the limit of %llu entries",
            (unsigned long long)l->limits.max_entries);
    return 0;
}

static int read_one(struct layers *l, uint32_t n, struct err *err)
{
    struct job *j = &l->jobs[n];
    struct worker_message *m = &j->asked;
    int r = worker_read(j->socket, m, err);

    if (r < 0)
        return r;
    switch (m->says) {
    case WORKER_PROGRESS:
        l->tell(l->arg, "unpack", n + 1, m->bytes, 0);
        return 0;
    case WORKER_FAILED:
        *err = m->err;
        return m->err.code;
    case WORKER_DONE:
        r = take_result(l, n, &m->result, err);
        if (r == 0 && !l->plan->layers[n].member && j->record.layer.entries == 0)
            r = err_set(err, -EINVAL, "no tar, or an empty one");
        return r < 0 ? r : check_limits(l, err);
    default:
        j->state = JOB_ASKING;
        return 0;
    }
}

static unsigned at_once(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    return (unsigned)MAX_OF(MIN_OF(cpus, (long)AT_ONCE_MAX), 1L);
}

/* In order: one that cannot begin yet holds up those above it. */
static int begin_more(struct layers *l, struct err *err)
{
    unsigned running = 0;

    for (uint32_t n = 0; n < l->plan->layer_count; n++) {
        int r;
        running += l->jobs[n].state == JOB_RUNNING || l->jobs[n].state == JOB_ASKING;
        if (l->jobs[n].state != JOB_NEW)
            continue;
        if (running >= at_once())
            return 0;
        r = begin(l, n, err);
        if (r == -EAGAIN)
            return 0;
        if (r < 0)
            return failed(l, n, err);
        running++;
    }
    return 0;
}

static int wait_for_news(struct layers *l, struct err *err)
{
    struct pollfd fds[IMAGE_LAYERS_MAX];
    uint32_t of[IMAGE_LAYERS_MAX], count = 0;

    for (uint32_t n = 0; n < l->plan->layer_count; n++)
        if (l->jobs[n].state == JOB_RUNNING) {
            fds[count] = (struct pollfd){.fd = l->jobs[n].socket, .events = POLLIN};
            of[count++] = n;
        }
    if (poll(fds, count, LOCK_RETRY_MS) < 0 && errno != EINTR)
        return err_sys(err, -errno, "cannot wait for the layers");
    for (uint32_t i = 0; i < count; i++)
        if (fds[i].revents) {
            int r = read_one(l, of[i], err);
            if (r < 0)
                return failed(l, of[i], err);
        }
    return 0;
}

int layers_convert(struct layers *l, struct err *err)
{
    uint32_t count = l->plan->layer_count;
    int r = 0;

    l->jobs = xnew_array(struct job, count);
    for (uint32_t n = 0; n < count; n++)
        l->jobs[n].socket = l->jobs[n].blob = l->jobs[n].piece.fd = -1;
    while (r == 0 && !all_done_below(l, count)) {
        r = begin_more(l, err);
        if (r == 0)
            r = wait_for_news(l, err);
        if (r == 0)
            reply_all(l);
    }
    if (r == 0)
        make_stack(l, count);
    return r;
}

void layers_done(struct layers *l)
{
    for (uint32_t n = 0; l->jobs && n < l->plan->layer_count; n++)
        job_close(l, n);
    free(l->jobs);
    l->jobs = NULL;
}
