/*
 * Accepted connections on libwebsockets' raw role: it does the TLS handshake and the polling, this
 * file the queue, pausing and closing. Knows no protocol above.
 *
 * Rules it keeps:
 * - Nothing is written through lws_write: with a partly sent buffer libwebsockets stops reading
 *   from that connection, and two peers that both send would wait for each other for ever.
 * - Nothing is closed from inside a call of the owner: what fails there dies in the next turn.
 */
#include "net/conn.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "net/lws_protocols.h"

/* How long a peer may take nothing of what is left to send after conn_close, and how long we wait
 * for its own close after that. */
#define FLUSH_MSEC 5000
#define LINGER_MSEC 1000
/* Bytes of one TLS record, and of one turn. */
#define RECORD_MAX ((size_t)16 << 10)
#define TURN_MAX ((size_t)512 << 10)

struct conn {
    struct net *net;
    struct list link;
    struct lws *wsi;
    const struct conn_events *events; /* NULL: let go */
    void *owner;
    struct conn_peer peer;
    struct net_timer timer; /* death, flush and linger */
    char *out;              /* the queue: out_len bytes from out_pos on */
    size_t out_pos, out_len, out_cap;
    int file_fd;
    uint64_t file_offset, file_len;
    bool tls;
    bool broken;  /* dies in the next turn */
    bool closing; /* conn_close was called */
    bool shut;    /* our side of the stream is closed */
    bool seen_data;
};

static void timer_rang(struct net_timer *timer);

static void conn_free(struct conn *c)
{
    net_timer_stop(&c->timer);
    list_remove(&c->link);
    cleanup_close(&c->file_fd);
    free(c->out);
    free(c);
}

int conn_adopt(struct net *net, struct lws_vhost *vhost, bool tls, int fd,
    const struct conn_peer *peer, struct conn **ret)
{
    struct conn *c = xnew(struct conn);
    lws_adopt_desc_t desc = {0};
    struct lws *wsi;

    c->net = net;
    c->peer = *peer;
    c->tls = tls;
    c->file_fd = -1;
    list_init(&c->link);
    net_timer_init(&c->timer, timer_rang);
    desc.vh = vhost;
    desc.type = LWS_ADOPT_SOCKET | (tls ? LWS_ADOPT_ALLOW_SSL : 0);
    desc.fd.sockfd = fd;
    desc.vh_prot_name = NET_PROTOCOL_CONN;
    desc.opaque = c;
    wsi = lws_adopt_descriptor_vhost_via_info(&desc);
    if (!wsi) { /* and has closed fd */
        conn_free(c);
        return -EIO;
    }
    c->wsi = wsi;
    list_append(&net->conns, &c->link);
    net->conn_count++;
    *ret = c;
    return 0;
}

void conn_set_owner(struct conn *c, const struct conn_events *events, void *owner)
{
    c->events = events;
    c->owner = owner;
}

const struct conn_peer *conn_peer(const struct conn *c)
{
    return &c->peer;
}

struct net *conn_net(const struct conn *c)
{
    return c->net;
}

uint64_t conn_queued(const struct conn *c)
{
    return c->broken ? 0 : c->out_len + c->file_len;
}

void conn_abort(struct conn *c)
{
    if (c->broken)
        return;
    c->broken = true;
    net_timer_set(c->net, &c->timer, 0);
}

/* Bytes taken; 0 when the socket takes none now; -1 when it is broken. */
static ssize_t write_plain(struct conn *c, const char *data, size_t len)
{
    ssize_t n = send(lws_get_socket_fd(c->wsi), data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static ssize_t write_tls(struct conn *c, const char *data, size_t len)
{
    SSL *ssl = lws_get_ssl(c->wsi);
    int n;

    if (!ssl)
        return -1;
    ERR_clear_error();
    /* A record that had to wait must be offered again with the same bytes: the queue begins with
     * them, and its first RECORD_MAX bytes are never fewer than they were. */
    n = SSL_write(ssl, data, (int)MIN_OF(len, RECORD_MAX));
    if (n > 0)
        return n;
    switch (SSL_get_error(ssl, n)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    default:
        ERR_clear_error();
        return -1;
    }
}

static ssize_t write_some(struct conn *c, const char *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = c->tls ? write_tls(c, data + done, len - done)
                           : write_plain(c, data + done, len - done);

        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static void queue_add(struct conn *c, const char *data, size_t len)
{
    if (c->out_pos && c->out_pos + c->out_len + len > c->out_cap) {
        memmove(c->out, c->out + c->out_pos, c->out_len);
        c->out_pos = 0;
    }
    c->out = xgrow(c->out, &c->out_cap, c->out_pos + c->out_len + len, 1);
    memcpy(c->out + c->out_pos + c->out_len, data, len);
    c->out_len += len;
}

static void queue_drop(struct conn *c, size_t len)
{
    c->out_len -= len;
    c->out_pos = c->out_len ? c->out_pos + len : 0;
    if (!c->out_len && c->out_cap > NET_QUEUE_LOW) { /* idle connections keep no large buffer */
        free(TAKE_PTR(c->out));
        c->out_cap = 0;
    }
}

size_t conn_send(struct conn *c, const void *data, size_t len)
{
    ssize_t n = 0;

    if (c->broken || c->closing)
        return 0;
    if (!c->out_len && !c->file_len)
        n = write_some(c, data, len);
    if (n < 0) {
        conn_abort(c);
        return 0;
    }
    if ((size_t)n < len) {
        queue_add(c, (const char *)data + n, len - (size_t)n);
        lws_callback_on_writable(c->wsi);
    }
    return c->out_len;
}

void conn_send_file(struct conn *c, int fd, uint64_t offset, uint64_t len)
{
    assert(c->file_fd < 0);
    if (c->broken || c->closing || !len) {
        close(fd);
        return;
    }
    c->file_fd = fd;
    c->file_offset = offset;
    c->file_len = len;
    lws_callback_on_writable(c->wsi);
}

static ssize_t file_plain(struct conn *c, size_t len)
{
    off_t offset = (off_t)c->file_offset;
    ssize_t n = sendfile(lws_get_socket_fd(c->wsi), c->file_fd, &offset, len);

    if (n > 0)
        return n;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1; /* 0: the file is too short */
}

static ssize_t file_tls(struct conn *c, size_t len)
{
    char piece[RECORD_MAX];
    ssize_t n = pread(c->file_fd, piece, MIN_OF(len, sizeof(piece)), (off_t)c->file_offset);

    return n > 0 ? write_tls(c, piece, (size_t)n) : -1;
}

/* False when the connection broke. */
static bool pump_file(struct conn *c)
{
    size_t left = TURN_MAX;

    while (c->file_len && left) {
        size_t want = (size_t)MIN_OF(c->file_len, (uint64_t)left);
        ssize_t n = c->tls ? file_tls(c, want) : file_plain(c, want);

        if (n < 0)
            return false;
        if (n == 0)
            break;
        c->file_offset += (uint64_t)n;
        c->file_len -= (uint64_t)n;
        left -= (size_t)n;
    }
    if (!c->file_len) {
        cleanup_close(&c->file_fd);
        c->file_fd = -1;
    }
    return true;
}

static bool pump_queue(struct conn *c)
{
    ssize_t n;

    if (c->out_len) {
        n = write_some(c, c->out + c->out_pos, MIN_OF(c->out_len, TURN_MAX));
        if (n < 0)
            return false;
        queue_drop(c, (size_t)n);
    }
    return c->out_len || c->file_fd < 0 || pump_file(c);
}

void conn_pause(struct conn *c, bool pause)
{
    if (c->broken)
        return;
    lws_rx_flow_control(c->wsi, !pause);
    /* Bytes that OpenSSL has read already make no socket readable: have the loop look for them. */
    if (!pause && c->tls)
        lws_cancel_service(lws_get_context(c->wsi));
}

static void shut_our_side(struct conn *c)
{
    SSL *ssl = c->tls ? lws_get_ssl(c->wsi) : NULL;

    c->shut = true;
    if (ssl) {
        ERR_clear_error();
        SSL_shutdown(ssl);
        ERR_clear_error();
    }
    shutdown(lws_get_socket_fd(c->wsi), SHUT_WR);
    lws_rx_flow_control(c->wsi, 1);
    net_timer_set(c->net, &c->timer, LINGER_MSEC);
}

void conn_close(struct conn *c)
{
    c->events = NULL;
    c->closing = true;
    if (c->broken)
        return;
    if (!conn_queued(c)) {
        shut_our_side(c);
        return;
    }
    lws_rx_flow_control(c->wsi, 0); /* nobody listens any more */
    net_timer_set(c->net, &c->timer, FLUSH_MSEC);
}

void conn_kill(struct conn *c)
{
    c->events = NULL;
    conn_abort(c);
}

static void timer_rang(struct net_timer *timer)
{
    struct conn *c = CONTAINER_OF(timer, struct conn, timer);

    /* Ends in wsi_closed(), which frees c. */
    lws_set_timeout(c->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
}

static void wsi_readable(struct conn *c, const char *data, size_t len)
{
    if (!c->seen_data) {
        /* libwebsockets gives a TLS connection some seconds to become something else. */
        c->seen_data = true;
        lws_set_timeout(c->wsi, NO_PENDING_TIMEOUT, 0);
    }
    if (c->events && !c->broken)
        c->events->data(c, data, len, c->owner);
}

static void wsi_writable(struct conn *c)
{
    uint64_t before = conn_queued(c);

    if (c->broken || !before)
        return;
    if (!pump_queue(c)) {
        conn_abort(c);
        return;
    }
    if (conn_queued(c))
        lws_callback_on_writable(c->wsi);
    if (c->closing && !conn_queued(c))
        shut_our_side(c);
    else if (c->closing && conn_queued(c) < before)
        net_timer_set(c->net, &c->timer, FLUSH_MSEC);
    else if (c->events && c->events->written && conn_queued(c) < before)
        c->events->written(c, c->owner);
}

static void wsi_closed(struct conn *c)
{
    const struct conn_events *events = c->events;

    c->broken = true;
    c->events = NULL;
    lws_set_opaque_user_data(c->wsi, NULL);
    c->net->conn_count--;
    if (events)
        events->closed(c, c->owner);
    conn_free(c);
}

/* Only certificates that verified; libwebsockets itself lets any pass that we do not refuse. */
static int check_client_cert(bool verified)
{
    return verified ? 0 : 1;
}

static void prepare_server(SSL_CTX *ctx)
{
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(ctx,
        SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
            SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
    /* libwebsockets would give every listener the certificate of the first. */
    SSL_CTX_set_tlsext_servername_callback(ctx, NULL);
}

int conn_callback(
    struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
    struct conn *c;

    switch (reason) {
    case LWS_CALLBACK_OPENSSL_PERFORM_CLIENT_CERT_VERIFICATION:
        return check_client_cert(len);
    case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
        prepare_server(user);
        return 0;
    case LWS_CALLBACK_RAW_RX:
    case LWS_CALLBACK_RAW_WRITEABLE:
    case LWS_CALLBACK_RAW_CLOSE:
        c = lws_get_opaque_user_data(wsi);
        break;
    default:
        return 0;
    }
    if (!c || !c->wsi)
        return 0;
    if (reason == LWS_CALLBACK_RAW_RX)
        wsi_readable(c, in, len);
    else if (reason == LWS_CALLBACK_RAW_WRITEABLE)
        wsi_writable(c);
    else
        wsi_closed(c);
    return 0;
}

bool conn_cert_name(const struct conn *c, char *name, size_t size)
{
    SSL *ssl = c->tls && !c->broken ? lws_get_ssl(c->wsi) : NULL;
    X509 *cert = ssl ? SSL_get1_peer_certificate(ssl) : NULL;
    int n = -1;

    if (cert)
        n = X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name, (int)size);
    X509_free(cert);
    /* A name with a NUL inside, or one that was cut, is no name. */
    return n > 0 && (size_t)n < size - 1 && strlen(name) == (size_t)n;
}

void conns_close(struct net *net)
{
    while (!list_is_empty(&net->conns)) {
        struct conn *c = LIST_ENTRY(net->conns.next, struct conn, link);

        lws_set_timeout(c->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
    }
}
