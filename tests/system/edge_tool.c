/*
 * The calls of agent/net/edge.h on the command line, for test_edge.py. Runs in the network
 * namespace it is started in, as an agent would.
 *
 *   edge_tool netns-dir=DIR tag=TAG fabric=ADDR blocked=CIDR peer=ADDR uplinks=ADDR COMMAND ...
 *     setup | repair [COUNT] | clear | watch | list | fabric
 *     make INDEX SESSION | add RANK SESSION | up INDEX SESSION | mtu SESSION | remove UUID
 *     bench INDEX SESSION    make and remove it 20 times in one process
 *     storm COUNT            as many sessions at once from as many threads, made and removed
 *     connect NETNS ADDR PORT    through edge_socket_in
 *   SESSION: UUID SUBNET VNI NAME=IP@FABRIC ...
 *
 * "up" makes the edge and adds all containers of this node. Times are printed in milliseconds.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "agent/net/edge.h"
#include "base/clock.h"
#include "base/strv.h"

#define STORM_MAX 64

static int bad(const char *what, const char *value)
{
    fprintf(stderr, "edge_tool: %s '%s'\n", what, value);
    exit(2);
}

static uint32_t ip_of(const char *text)
{
    struct in_addr a;

    if (inet_pton(AF_INET, text, &a) != 1)
        bad("not an address:", text);
    return ntohl(a.s_addr);
}

static uint32_t number(const char *text)
{
    uint64_t v = 0;

    if (str_to_u64(text, UINT32_MAX, &v) < 0)
        bad("not a number:", text);
    return (uint32_t)v;
}

static bool setting(struct node_net *n, const char *arg)
{
    const char *value = strchr(arg, '=');

    if (!value)
        return false;
    value++;
    if (str_starts(arg, "netns-dir="))
        STR_SET(n->netns_dir, value);
    else if (str_starts(arg, "tag="))
        STR_SET(n->tag, value);
    else if (str_starts(arg, "fabric="))
        STR_SET(n->fabric_addr, value);
    else if (str_starts(arg, "blocked="))
        strv_push(&n->blocked, value);
    else if (str_starts(arg, "peer="))
        strv_push(&n->peers, value);
    else if (str_starts(arg, "uplinks="))
        n->uplink_base = ip_of(value);
    else
        bad("unknown setting:", arg);
    return true;
}

static void peer_of(struct assigned_peer *p, const char *arg)
{
    const char *eq = strchr(arg, '='), *at = strchr(arg, '@');
    _cleanup_free_ char *ip = NULL;

    if (!eq || !at || at < eq || (size_t)(eq - arg) >= sizeof(p->name))
        bad("not NAME=IP@FABRIC:", arg);
    memcpy(p->name, arg, (size_t)(eq - arg));
    ip = xstrndup(eq + 1, (size_t)(at - eq - 1));
    p->ip = ip_of(ip);
    STR_SET(p->fabric, at + 1);
}

static struct assignment *session_of(char **args)
{
    struct assignment *a = xnew(struct assignment);
    size_t count = strv_len(args);

    if (count < 4)
        bad("a session is", "UUID SUBNET VNI NAME=IP@FABRIC ...");
    STR_SET(a->session, args[0]);
    a->subnet = ip_of(args[1]);
    a->vni = number(args[2]);
    a->peer_count = (uint32_t)count - 3;
    a->peers = xnew_array(struct assigned_peer, a->peer_count);
    for (uint32_t i = 0; i < a->peer_count; i++)
        peer_of(&a->peers[i], args[3 + i]);
    return a;
}

static void session_done(struct assignment **a)
{
    if (!*a)
        return;
    free((*a)->peers);
    free(*a);
}

static double ms_since(uint64_t start)
{
    return (double)(clock_mono_usec() - start) / 1000.0;
}

static int up(
    const struct node_net *n, const struct assignment *a, uint32_t index, bool say, struct err *err)
{
    uint64_t start = clock_mono_usec();
    int r = edge_make(n, a, index, err);

    if (say)
        printf("edge %.2f\n", ms_since(start));
    for (uint32_t i = 0; i < a->peer_count && r == 0; i++) {
        if (!str_eq(a->peers[i].fabric, n->fabric_addr))
            continue;
        start = clock_mono_usec();
        r = edge_add_container(n, a, i, err);
        if (say)
            printf("container %.2f\n", ms_since(start));
    }
    return r;
}

struct storm {
    const struct node_net *n;
    uint32_t number;
    int r;
    double made_ms, removed_ms;
    struct err err;
};

static void *storm_one(void *arg)
{
    struct storm *s = arg;
    struct assignment a = {.subnet = 0x0aff0000u + s->number * 1024};
    struct assigned_peer peers[2] = {
        {.name = "main1", .ip = a.subnet + 1}, {.name = "sub1", .ip = a.subnet + 2}};
    uint64_t start = clock_mono_usec();

    snprintf(a.session, sizeof(a.session), "00000000-0000-4000-8000-0000000000%02x", s->number);
    a.peers = peers;
    a.peer_count = 1 + s->number % 2;
    for (uint32_t i = 0; i < a.peer_count; i++)
        STR_SET(peers[i].fabric, s->n->fabric_addr);
    s->r = up(s->n, &a, 100 + s->number, false, &s->err);
    s->made_ms = ms_since(start);
    start = clock_mono_usec();
    if (s->r == 0)
        s->r = edge_remove(s->n, a.session, &s->err);
    s->removed_ms = ms_since(start);
    return NULL;
}

static int storm(const struct node_net *n, uint32_t count, struct err *err)
{
    pthread_t threads[STORM_MAX];
    struct storm s[STORM_MAX];
    int r = 0;

    count = MIN_OF(count, STORM_MAX);
    for (uint32_t i = 0; i < count; i++) {
        s[i] = (struct storm){.n = n, .number = i};
        if (pthread_create(&threads[i], NULL, storm_one, &s[i]) != 0)
            abort();
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        printf("session made %.2f removed %.2f\n", s[i].made_ms, s[i].removed_ms);
        if (s[i].r < 0) {
            r = s[i].r;
            *err = s[i].err;
        }
    }
    return r;
}

static int bench(
    const struct node_net *n, const struct assignment *a, uint32_t index, struct err *err)
{
    int r = 0;

    for (int i = 0; i < 20 && r == 0; i++) {
        uint64_t start = clock_mono_usec(), edge, containers;

        r = edge_make(n, a, index, err);
        edge = clock_mono_usec();
        for (uint32_t k = 0; k < a->peer_count && r == 0; k++)
            if (str_eq(a->peers[k].fabric, n->fabric_addr))
                r = edge_add_container(n, a, k, err);
        containers = clock_mono_usec();
        if (r == 0)
            r = edge_remove(n, a->session, err);
        printf("edge %.2f containers %.2f remove %.2f\n", (double)(edge - start) / 1000.0,
            (double)(containers - edge) / 1000.0, ms_since(containers));
    }
    return r;
}

static int watch(struct err *err)
{
    struct pollfd p = {.events = POLLIN};
    int r = node_net_watch(&p.fd, err);

    if (r < 0)
        return r;
    printf("watching\n");
    fflush(stdout);
    r = poll(&p, 1, 10000);
    node_net_drain(p.fd);
    printf("%s, then %s\n", r == 1 ? "woken" : "asleep", poll(&p, 1, 0) == 0 ? "quiet" : "noise");
    close(p.fd);
    return 0;
}

/* Each time: what it returned, and how long it took. */
static int repair(const struct node_net *n, uint32_t count, struct err *err)
{
    int r = 0;

    for (uint32_t i = 0; i < count && r >= 0; i++) {
        uint64_t start = clock_mono_usec();

        r = node_net_repair(n, err);
        printf("%d %.2f\n", r, ms_since(start));
    }
    return MIN_OF(r, 0);
}

static int list(const struct node_net *n, struct err *err)
{
    _cleanup_(strv_freep) char **sessions = NULL;
    int r = edge_list(n, &sessions, err);

    strv_for_each (s, sessions)
        printf("%s\n", *s);
    return r;
}

static int connect_in(char **args, struct err *err)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    _cleanup_close_ int fd = -1;
    char data[64];
    ssize_t n;

    if (strv_len(args) != 3)
        bad("connect", "NETNS ADDR PORT");
    fd = edge_socket_in(args[0], AF_INET, SOCK_STREAM);
    if (fd < 0)
        return err_sys(err, fd, "socket");
    to.sin_addr.s_addr = htonl(ip_of(args[1]));
    to.sin_port = htons((uint16_t)number(args[2]));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        return err_sys(err, -errno, "connect");
    n = read(fd, data, sizeof(data));
    printf("%.*s\n", n > 0 ? (int)n : 0, data);
    return 0;
}

static int session_command(const struct node_net *n, const char *name, char **args, struct err *err)
{
    bool is_mtu = str_eq(name, "mtu");
    struct assignment *a _cleanup_(session_done) = session_of(is_mtu ? args : args + 1);

    if (is_mtu)
        return printf("%u\n", edge_mtu(n, a)) > 0 ? 0 : -EIO;
    if (str_eq(name, "make"))
        return edge_make(n, a, number(args[0]), err);
    if (str_eq(name, "add"))
        return edge_add_container(n, a, number(args[0]), err);
    if (str_eq(name, "up"))
        return up(n, a, number(args[0]), true, err);
    if (str_eq(name, "bench"))
        return bench(n, a, number(args[0]), err);
    return bad("unknown command", name);
}

static int command(struct node_net *n, const char *name, char **args, struct err *err)
{
    uint64_t start = clock_mono_usec();
    int r;

    if (str_eq(name, "fabric"))
        return printf("%s %u\n", n->fabric_dev, n->fabric_mtu) > 0 ? 0 : -EIO;
    if (str_eq(name, "setup"))
        return node_net_setup(n, err);
    if (str_eq(name, "clear"))
        return node_net_remove(n, err);
    if (str_eq(name, "watch"))
        return watch(err);
    if (str_eq(name, "list"))
        return list(n, err);
    if (str_eq(name, "connect"))
        return connect_in(args, err);
    if (str_eq(name, "repair"))
        return repair(n, args[0] ? number(args[0]) : 1, err);
    if (!args[0])
        return bad("too few words after", name);
    if (str_eq(name, "storm"))
        return storm(n, number(args[0]), err);
    if (str_eq(name, "remove")) {
        r = edge_remove(n, args[0], err);
        printf("removed %.2f\n", ms_since(start));
        return r;
    }
    return session_command(n, name, args, err);
}

int main(int argc, char **argv)
{
    struct node_net n = {0};
    struct err err = ERR_INIT;
    int i = 1, r;

    while (i < argc && setting(&n, argv[i]))
        i++;
    if (i == argc)
        bad("no", "command");
    r = node_net_find_fabric(&n, &err);
    if (r == 0)
        r = command(&n, argv[i], argv + i + 1, &err);
    if (r < 0)
        fprintf(stderr, "%s\n", err_text(&err));
    strv_free(n.blocked);
    strv_free(n.peers);
    return r < 0;
}
