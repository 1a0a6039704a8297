/*
 * Both ends. Messages are a header and bytes behind it, in the byte order of the machine; each has
 * a maximum. A worker is not believed: sizes and text are checked, and what it made is hashed by
 * who started it.
 */
#include "image/worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/buf.h"
#include "base/str.h"
#include "image/erofs.h"
#include "image/sandbox.h"

#define MESSAGE_MAX ((size_t)8 << 20)
#define MEMORY_MAX (UINT64_C(4) << 30)
#define FILE_EXTRA (UINT64_C(64) << 30) /* names and attributes beside the content */
#define PATIENCE_S 30

struct frame {
    uint32_t what; /* enum worker_says; of a reply: 0 */
    int32_t code;
    uint64_t bytes;
    uint32_t len;
};

/* ---- frames ---- */

static int send_all(int fd, const void *p, size_t n)
{
    for (const char *at = p; n > 0;) {
        ssize_t done = send(fd, at, n, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -EPIPE;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

static int receive_all(int fd, void *p, size_t n)
{
    for (char *at = p; n > 0;) {
        ssize_t done = recv(fd, at, n, 0);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return -EPIPE;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

static int send_frame(int fd, struct frame f, const void *p, size_t n)
{
    int r;

    f.len = (uint32_t)n;
    r = send_all(fd, &f, sizeof(f));
    return r == 0 && n > 0 ? send_all(fd, p, n) : r;
}

/* *ret: heap, NUL behind it. */
static int receive_frame(int fd, struct frame *f, char **ret)
{
    _cleanup_free_ char *text = NULL;
    int r = receive_all(fd, f, sizeof(*f));

    if (r < 0)
        return r;
    if (f->len > MESSAGE_MAX)
        return -EPROTO;
    text = xcalloc(1, (size_t)f->len + 1);
    r = receive_all(fd, text, f->len);
    if (r == 0)
        *ret = TAKE_PTR(text);
    return r;
}

/* ---- items as bytes ---- */

struct flat_item {
    uint32_t type, mode, uid, gid, nsec, xattrs;
    int64_t sec;
    uint64_t size;
};

struct flat_xattr {
    uint32_t name_len, len;
};

static int flatten(struct buf *b, const struct item *i)
{
    struct flat_item f = {(uint32_t)i->type, i->mode, i->uid, i->gid, i->nsec,
        (uint32_t)i->xattr_count, i->sec, i->size};
    const char *target = i->target ? i->target : "";
    int r = buf_append(b, &f, sizeof(f));

    if (r == 0)
        r = buf_append(b, target, strlen(target) + 1);
    for (size_t n = 0; r == 0 && n < i->xattr_count; n++) {
        const struct item_xattr *x = &i->xattrs[n];
        struct flat_xattr h = {(uint32_t)strlen(x->name), (uint32_t)x->len};
        if ((r = buf_append(b, &h, sizeof(h))) == 0 &&
            (r = buf_append(b, x->name, h.name_len + 1)) == 0)
            r = buf_append(b, x->value, x->len);
    }
    return r;
}

/* Written by our own process, which has the rights: only lengths are checked. */
static int unflatten(const char *p, size_t n, struct item *i)
{
    const char *end = p + n;
    struct flat_item f;
    struct flat_xattr h;

    if (n < sizeof(f) + 1)
        return -EPROTO;
    memcpy(&f, p, sizeof(f));
    p += sizeof(f);
    *i = (struct item){.type = f.type,
        .mode = f.mode,
        .uid = f.uid,
        .gid = f.gid,
        .sec = f.sec,
        .nsec = f.nsec,
        .size = f.size};
    if (p[0])
        i->target = xstrdup(p);
    p += strlen(p) + 1;
    for (uint32_t k = 0; k < f.xattrs; k++) {
        if ((size_t)(end - p) < sizeof(h))
            return -EPROTO;
        memcpy(&h, p, sizeof(h));
        p += sizeof(h);
        if ((size_t)(end - p) < (size_t)h.name_len + 1 + h.len)
            return -EPROTO;
        item_set_xattr(i, p, p + h.name_len + 1, h.len);
        p += h.name_len + 1 + h.len;
    }
    return 0;
}

/* ---- the worker's end ---- */

struct self {
    int socket;
    uint64_t told;
};

static int ask(struct self *s, enum worker_says says, const char *path, struct frame *f, char **ret,
    struct err *err)
{
    if (send_frame(s->socket, (struct frame){.what = says}, path, strlen(path)) != 0 ||
        receive_frame(s->socket, f, ret) != 0) {
        (void)err_set(err, -EPROTO, "nobody answers about the layers below");
        return -EPROTO;
    }
    if (f->code < 0)
        (void)err_set(err, f->code, "%s", *ret);
    return MIN_OF(f->code, 0);
}

static int ask_lookup(void *arg, const char *path, struct item *ret, struct err *err)
{
    _cleanup_(item_done) struct item i = {0};
    _cleanup_free_ char *text = NULL;
    struct frame f = {0};
    int r = ask(arg, WORKER_LOOKUP, path, &f, &text, err);

    if (r < 0)
        return r;
    if (unflatten(text, f.len, &i) < 0)
        return err_set(err, -EPROTO, "the answer about the layers below cannot be read");
    *ret = i;
    i = (struct item){0};
    return 0;
}

static int ask_root(void *arg, struct layer_root *ret, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    struct frame f = {0};
    int r = ask(arg, WORKER_ROOT, "", &f, &text, err);

    if (r == 0 && f.len == sizeof(*ret))
        memcpy(ret, text, sizeof(*ret));
    return r == 0 && f.len != sizeof(*ret) ? err_set(err, -EPROTO, "no root") : r;
}

static int receive_fd(int socket)
{
    char control[CMSG_SPACE(sizeof(int))] = "", byte;
    struct iovec io = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *c;
    int fd = -1;

    if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC) != 1)
        return -EPIPE;
    c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return fd < 0 ? -EPROTO : fd;
}

static int ask_open(void *arg, const char *path, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    struct self *s = arg;
    struct frame f;
    int r = ask(s, WORKER_OPEN, path, &f, &text, err), fd;

    if (r < 0)
        return r;
    fd = receive_fd(s->socket);
    return fd < 0 ? err_set(err, fd, "nobody answers about the layers below") : fd;
}

static void tell_progress(void *arg, uint64_t bytes)
{
    struct self *s = arg;

    (void)send_frame(s->socket, (struct frame){.what = WORKER_PROGRESS, .bytes = bytes}, NULL, 0);
}

static int convert(struct self *s, const struct worker_opts *o, struct sink *sink,
    struct worker_result *ret, struct err *err)
{
    const struct below_peer peer = {ask_lookup, ask_open, ask_root, s};
    _cleanup_(below_freep) struct below *below = below_new_peer(&peer);
    _cleanup_(stream_done) struct stream in = {0};
    int r;

    if ((r = stream_open(&in, o->piece, o->stream_max, err)) < 0 ||
        (r = layer_convert(
             &in, below, NULL, &o->limits, sink, tell_progress, s, &ret->layer, err)) < 0)
        return r;
    ret->asked_below = below_was_asked(below);
    return stream_end(&in, ret->packed, ret->plain, err);
}

static int prove(const struct worker_opts *o, struct worker_result *ret, struct err *err)
{
    _cleanup_(stream_done) struct stream in = {0};
    int r = 0;

    if (o->skip_plain) {
        stream_open_raw(&in, o->piece);
        return stream_end(&in, ret->packed, NULL, err);
    }
    r = stream_open(&in, o->piece, o->stream_max, err);
    return r < 0 ? r : stream_end(&in, ret->packed, ret->plain, err);
}

static int work(struct self *s, const struct worker_opts *o, struct err *err)
{
    struct sandbox_limits limits = {o->limits.max_bytes + FILE_EXTRA, MEMORY_MAX};
    _cleanup_(sink_freep) struct sink *sink = NULL;
    struct worker_result result = {0};
    int r = 0;

    if (o->task == WORKER_CONVERT)
        r = sink_erofs_new(o->blob, o->scratch, &sink, err);
    if (r == 0)
        r = sandbox_enter(SANDBOX_ALONE, &limits, err);
    if (r == 0)
        r = sink ? convert(s, o, sink, &result, err) : prove(o, &result, err);
    if (r == 0)
        r = send_frame(s->socket, (struct frame){.what = WORKER_DONE}, &result, sizeof(result));
    return r;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* What the process that starts workers has open is nothing to them: only these, and stderr. */
static void close_others(const struct worker_opts *o, int socket)
{
    int keep[] = {STDERR_FILENO, socket, o->piece->fd, o->blob}, from = 0;

    qsort(keep, ARRAY_LEN(keep), sizeof(keep[0]), by_number);
    for (size_t n = 0; n < ARRAY_LEN(keep); n++) {
        if (keep[n] > from)
            (void)close_range((unsigned)from, (unsigned)keep[n] - 1, 0);
        from = MAX_OF(from, keep[n] + 1);
    }
    (void)close_range((unsigned)from, ~0U, 0);
}

static _Noreturn void run(const struct worker_opts *o, int socket, pid_t parent)
{
    struct self s = {.socket = socket};
    struct err err = ERR_INIT;
    int r;

    /* Whoever started it may be gone before the next line. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    (void)signal(SIGXFSZ, SIG_IGN);
    close_others(o, socket);
    r = work(&s, o, &err);
    if (r < 0)
        (void)send_frame(
            socket, (struct frame){.what = WORKER_FAILED, .code = r}, err.text, strlen(err.text));
    _exit(r < 0);
}

int worker_start(const struct worker_opts *opts, pid_t *ret_pid, int *ret_socket, struct err *err)
{
    struct timeval patience = {PATIENCE_S, 0};
    int ends[2];
    pid_t pid, self = getpid();

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, -errno, "cannot make a socket");
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        run(opts, ends[1], self);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return err_sys(err, -errno, "cannot start a process");
    }
    (void)setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    *ret_pid = pid;
    *ret_socket = ends[0];
    return 0;
}

/* ---- the other end ---- */

/* Digests are used in paths and compared; the rest are numbers. */
static bool result_is_sane(const struct worker_result *r)
{
    return memchr(r->packed, 0, sizeof(r->packed)) && memchr(r->plain, 0, sizeof(r->plain)) &&
        digest_is_valid(r->packed) && (r->plain[0] == '\0' || digest_is_valid(r->plain)) &&
        r->layer.root.mode <= 07777;
}

static int take_message(struct frame *f, const char *text, struct worker_message *ret)
{
    ret->says = f->what;
    ret->bytes = f->bytes;
    switch (f->what) {
    case WORKER_PROGRESS:
    case WORKER_ROOT:
        return 0;
    case WORKER_LOOKUP:
    case WORKER_OPEN:
        return strlen(text) == f->len ? str_copy(ret->path, sizeof(ret->path), text) : -EPROTO;
    case WORKER_DONE:
        if (f->len != sizeof(ret->result))
            return -EPROTO;
        memcpy(&ret->result, text, sizeof(ret->result));
        return result_is_sane(&ret->result) ? 0 : -EPROTO;
    case WORKER_FAILED: {
        _cleanup_free_ char *shown = str_is_clean(text, f->len)
            ? xstrdup(text)
            : str_escape(text, strlen(text), sizeof(ret->err.text) - 1);
        ret->err = (struct err)ERR_INIT;
        err_set(&ret->err, f->code < 0 ? f->code : -EPROTO, "%s", shown);
        return 0;
    }
    default:
        return -EPROTO;
    }
}

int worker_read(int socket, struct worker_message *ret, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    struct frame f;
    int r = receive_frame(socket, &f, &text);

    if (r == 0)
        r = take_message(&f, text, ret);
    if (r == -EPIPE)
        return err_set(err, r, "the process that converts it died");
    return r < 0 ? err_set(err, -EPROTO, "the process that converts it says nonsense") : 0;
}

static int reply_failure(int socket, int code, const struct err *why)
{
    return send_frame(socket, (struct frame){.code = code}, why->text, strlen(why->text));
}

int worker_reply_item(int socket, int result, const struct item *i, const struct err *why)
{
    struct buf b = BUF_INIT(MESSAGE_MAX);
    int r;

    if (result < 0)
        return reply_failure(socket, result, why);
    r = flatten(&b, i);
    if (r == 0)
        r = send_frame(socket, (struct frame){0}, b.data, b.len);
    buf_done(&b);
    return r;
}

int worker_reply_fd(int socket, int fd, const struct err *why)
{
    char control[CMSG_SPACE(sizeof(int))] = "", byte = 0;
    struct iovec io = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    int r;

    if (fd < 0)
        return reply_failure(socket, fd, why);
    r = send_frame(socket, (struct frame){0}, NULL, 0);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    return r == 0 && sendmsg(socket, &m, MSG_NOSIGNAL) != 1 ? -EPIPE : r;
}

int worker_reply_root(int socket, const struct layer_root *root)
{
    return send_frame(socket, (struct frame){0}, root, sizeof(*root));
}
