/*
 * The proof that a container is ready: a login over SSH with the session's own key and known hosts,
 * from inside a container's network namespace, by the same client that users have. The sftp
 * subsystem is asked for and closed, so that no file of the user's (a shell's start-up file) has a
 * say in it. Blocks; worker threads.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "agent/ct/sshconf.h"
#include "agent/sess.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"

#define FIRST_WAIT_USEC 500
#define WAIT_MAX_USEC 20000
#define CONNECT_MSEC 100
#define PROC_NET_MAX_BYTES 65536
#define SSH_PORT 22
#define LOGIN_TIMEOUT_USEC (20 * USEC_PER_SEC)

/*
 * Does a process listen on the port in the network namespace of this one? Read off the kernel's
 * table (proc_net(5), "tcp"): to sshd a connection would be a login to serve, at the moment at
 * which the real one waits for the same CPU.
 */
static bool listens(pid_t pid)
{
    _cleanup_free_ char *text = NULL;
    const char *line;
    unsigned port, state;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/net/tcp", (int)pid);
    if (fs_read(path, PROC_NET_MAX_BYTES, &text, NULL, NULL) < 0)
        return false;
    for (line = text; line; line = strchr(line + 1, '\n'))
        if (sscanf(line, " %*d: %*x:%x %*x:%*x %x", &port, &state) == 2 && port == SSH_PORT &&
            state == TCP_LISTEN)
            return true;
    return false;
}

static int wait_for_server(pid_t pid, uint64_t deadline, atomic_bool *cancel, struct err *err)
{
    uint64_t wait = FIRST_WAIT_USEC;

    while (!listens(pid)) {
        if (atomic_load(cancel))
            return err_set(err, -ECANCELED, "stopped while it waited for SSH");
        if (clock_mono_usec() >= deadline)
            return err_set(err, -ETIMEDOUT, "the SSH server does not listen");
        usleep((useconds_t)wait);
        wait = MIN_OF(wait + wait / 4, (uint64_t)WAIT_MAX_USEC);
    }
    return 0;
}

/* Can the other side be reached, and does it listen? 0, or a negative errno. */
static int try_port(const char *netns_path, uint32_t ip)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(SSH_PORT), .sin_addr.s_addr = htonl(ip)};
    _cleanup_close_ int fd = edge_socket_in(
        netns_path, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof(error);

    if (fd < 0)
        return fd;
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -errno;
    if (poll(&p, 1, CONNECT_MSEC) <= 0)
        return -ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return -errno;
    return -error;
}

static int login(const struct rootfs_dirs *d, int netns_fd, const char *container_id, uint32_t ip,
    struct err *err)
{
    struct in_addr in = {.s_addr = htonl(ip)};
    char address[INET_ADDRSTRLEN];
    _cleanup_free_ char *ssh = xasprintf("%s/bin/ssh", d->guest);
    _cleanup_free_ char *identity = xasprintf(
        "IdentityFile=%s/ct/%s/etc/ssh/id_ed25519", d->run, container_id);
    _cleanup_free_ char *known = xasprintf(
        "UserKnownHostsFile=%s/ct/%s/etc/ssh/known_hosts", d->run, container_id);
    /* clang-format off */
    const char *argv[] = {
        ssh, "-F", "/dev/null", "-q", "-o", identity, "-o", known, "-o", "IdentitiesOnly=yes",
        "-o", "GlobalKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=yes",
        "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", ("KexAlgorithms=" SSHCONF_KEX),
        "-l", "work",
        "-s", inet_ntop(AF_INET, &in, address, sizeof(address)), "sftp", NULL,
    };
    /* clang-format on */
    struct proc p = {.argv = argv, .netns_fd = netns_fd, .timeout_usec = LOGIN_TIMEOUT_USEC};

    return proc_run(&p, NULL, err);
}

int ready_try(const struct rootfs_dirs *d, const char *netns_path, const char *container_id,
    uint32_t ip, struct err *err)
{
    _cleanup_close_ int netns = open(netns_path, O_RDONLY | O_CLOEXEC);
    int r;

    if (netns < 0)
        return err_sys(err, -errno, "cannot open '%s'", netns_path);
    r = try_port(netns_path, ip);
    if (r < 0)
        return err_sys(err, r, "the SSH server does not answer");
    return login(d, netns, container_id, ip, err);
}

int ready_login(const struct rootfs_dirs *d, const char *netns_path, const char *container_id,
    pid_t pid, uint32_t ip, uint64_t deadline_usec, atomic_bool *cancel, struct err *err)
{
    _cleanup_close_ int netns = open(netns_path, O_RDONLY | O_CLOEXEC);
    int r;

    if (netns < 0)
        return err_sys(err, -errno, "cannot open '%s'", netns_path);
    r = wait_for_server(pid, deadline_usec, cancel, err);
    while (r == 0) {
        r = login(d, netns, container_id, ip, err);
        if (r == 0 || atomic_load(cancel) || clock_mono_usec() >= deadline_usec)
            break;
        usleep(WAIT_MAX_USEC);
        r = 0;
    }
    return r;
}
