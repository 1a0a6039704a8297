/* The loop, the raw sockets and the certificates of the tests of src/net. */
#include "fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include "base/fs.h"
#include "base/proc.h"
#include "net/tls_ops.h"

static uint64_t now_msec(void)
{
    return uv_hrtime() / 1000000;
}

void fixture_begin(struct fixture *f, const struct net_limits *limits, request_fn fn, void *arg)
{
    struct err err = ERR_INIT;

    memset(f, 0, sizeof(*f));
    signal(SIGPIPE, SIG_IGN);
    tls_load_from(TLS_MODULE);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(net_new(&f->loop, limits, &f->net, &err), 0);
    if (fn) {
        struct listen_opts opts = {.host = "127.0.0.1", .fn = fn, .arg = arg};
        int r = server_listen(f->net, &opts, &f->port, &err);

        if (r < 0)
            fail_msg("%s", err_text(&err));
        assert_int_not_equal(f->port, 0);
    }
}

void fixture_end(struct fixture *f)
{
    net_free(f->net);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&f->loop), 0);
}

static void woke(uv_timer_t *timer)
{
}

/* One turn that lasts at most 10 ms. */
static void turn(struct fixture *f)
{
    uv_timer_t timer;

    uv_timer_init(&f->loop, &timer);
    uv_update_time(&f->loop);
    uv_timer_start(&timer, woke, 5, 0);
    uv_run(&f->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

void wait_for(struct fixture *f, const bool *done, unsigned msec)
{
    uint64_t end = now_msec() + msec;

    while (!*done) {
        if (now_msec() > end)
            fail_msg("nothing happened in %u ms", msec);
        turn(f);
    }
}

void turn_for(struct fixture *f, unsigned msec)
{
    uint64_t end = now_msec() + msec;

    do
        turn(f);
    while (now_msec() < end);
}

int raw_connect(struct fixture *f)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
        .sin_port = htons(f->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

void raw_send(struct fixture *f, int fd, const void *data, size_t len)
{
    uint64_t end = now_msec() + 10000;

    while (len && now_msec() < end) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN)
            return; /* the server has closed: the test looks at what came back */
        if (n > 0) {
            data = (const char *)data + n;
            len -= (size_t)n;
        }
        turn(f);
    }
}

void raw_say(struct fixture *f, int fd, const char *text)
{
    raw_send(f, fd, text, strlen(text));
}

/* 1: something came; 0: nothing now; -1: closed. */
static int raw_take(int fd, struct buf *to)
{
    char piece[65536];
    ssize_t n = recv(fd, piece, sizeof(piece), 0);

    if (n > 0) {
        assert_int_equal(buf_append(to, piece, (size_t)n), 0);
        return 1;
    }
    return n == 0 || errno != EAGAIN ? -1 : 0;
}

void raw_read_all(struct fixture *f, int fd, struct buf *to, unsigned msec)
{
    uint64_t end = now_msec() + msec;
    int r;

    while ((r = raw_take(fd, to)) >= 0) {
        if (now_msec() > end)
            fail_msg("not closed in %u ms; so far: %.300s", msec, to->data ? to->data : "");
        if (!r)
            turn(f);
    }
}

void raw_read_until(struct fixture *f, int fd, struct buf *to, const char *text, unsigned msec)
{
    uint64_t end = now_msec() + msec;

    while (!to->data || !memmem(to->data, to->len, text, strlen(text))) {
        int r = raw_take(fd, to);

        if (r < 0 || now_msec() > end)
            fail_msg("'%s' did not come; but: %.300s", text, to->data ? to->data : "");
        if (!r)
            turn(f);
    }
}

bool raw_is_closed(struct fixture *f, int fd, unsigned msec)
{
    _cleanup_(buf_done) struct buf rest = BUF_INIT(64 << 20);
    uint64_t end = now_msec() + msec;

    while (now_msec() < end) {
        if (raw_take(fd, &rest) < 0)
            return true;
        turn(f);
    }
    return false;
}

char *raw_ask(struct fixture *f, const char *request)
{
    struct buf answer = BUF_INIT(64 << 20);
    int fd = raw_connect(f);

    raw_say(f, fd, request);
    raw_read_all(f, fd, &answer, 10000);
    close(fd);
    return buf_take(&answer);
}

static void run(const char *const *argv)
{
    struct proc p = {.argv = argv};
    struct err err = ERR_INIT;

    if (proc_run(&p, NULL, &err) < 0)
        fail_msg("%s", err_text(&err));
}

static void self_sign(const char *cert, const char *key, const char *name)
{
    _cleanup_free_ char *subject = xasprintf("/CN=%s", name);
    const char *argv[] = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-subj", subject,
        "-days", "2", "-addext", "basicConstraints=critical,CA:TRUE", NULL};

    run(argv);
}

static void issue(const struct certs *c, const char *cert, const char *key, const char *name)
{
    _cleanup_free_ char *ca_key = xasprintf("%s/ca.key", c->dir);
    _cleanup_free_ char *request = xasprintf("%s/request", c->dir);
    _cleanup_free_ char *subject = xasprintf("/CN=%s", name);
    const char *ask[] = {"openssl", "req", "-newkey", "ec", "-pkeyopt",
        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", request, "-subj", subject,
        "-addext", "subjectAltName=IP:127.0.0.1,IP:::1,DNS:localhost", NULL};
    const char *sign[] = {"openssl", "x509", "-req", "-in", request, "-CA", c->ca, "-CAkey", ca_key,
        "-CAcreateserial", "-out", cert, "-days", "2", "-copy_extensions", "copy", NULL};

    run(ask);
    run(sign);
}

#define PATH_OF(member, file) snprintf(c->member, sizeof(c->member), "%s/%s", c->dir, (file))

void certs_make(struct certs *c)
{
    _cleanup_free_ char *ca_key = NULL;

    snprintf(c->dir, sizeof(c->dir), "/tmp/net-test-XXXXXX");
    assert_non_null(mkdtemp(c->dir));
    ca_key = xasprintf("%s/ca.key", c->dir);
    PATH_OF(ca, "ca.pem");
    PATH_OF(cert, "server.pem");
    PATH_OF(key, "server.key");
    PATH_OF(client_cert, "client.pem");
    PATH_OF(client_key, "client.key");
    PATH_OF(other_cert, "other.pem");
    PATH_OF(other_key, "other.key");
    self_sign(c->ca, ca_key, "test authority");
    issue(c, c->cert, c->key, "localhost");
    issue(c, c->client_cert, c->client_key, "node-7");
    self_sign(c->other_cert, c->other_key, "node-7"); /* a stranger who claims the same name */
}

void certs_remove(struct certs *c)
{
    fs_remove_tree(c->dir, NULL);
}
