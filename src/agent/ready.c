/*
 * The proof that a container is ready: a login over SSH with the session's own key and known hosts,
 * from inside a container's network namespace, by the same client that users have. The sftp
 * subsystem is asked for and closed, so that no file of the user's (a shell's start-up file) has a
 * say in it. Blocks; worker threads.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "agent/sess.h"
#include "base/clock.h"
#include "base/proc.h"

#define FIRST_WAIT_USEC 1000
#define WAIT_MAX_USEC 50000
#define CONNECT_MSEC 1000
#define LOGIN_TIMEOUT_USEC (20 * USEC_PER_SEC)

/* Does somebody listen on port 22 there? 0, or a negative errno. */
static int try_port(const char *netns_path, uint32_t ip)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(22), .sin_addr.s_addr = htonl(ip)};
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

static int wait_port(
    const char *netns_path, uint32_t ip, uint64_t deadline, atomic_bool *cancel, struct err *err)
{
    uint64_t wait = FIRST_WAIT_USEC;

    for (;;) {
        int r = try_port(netns_path, ip);
        if (r == 0)
            return 0;
        if (atomic_load(cancel))
            return err_set(err, -ECANCELED, "stopped while it waited for SSH");
        if (clock_mono_usec() >= deadline)
            return err_sys(err, r, "the SSH server does not answer");
        usleep((useconds_t)wait);
        wait = MIN_OF(wait * 2, WAIT_MAX_USEC);
    }
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
        "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-l", "work",
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
    uint32_t ip, uint64_t deadline_usec, atomic_bool *cancel, struct err *err)
{
    _cleanup_close_ int netns = open(netns_path, O_RDONLY | O_CLOEXEC);
    uint64_t wait = WAIT_MAX_USEC;

    if (netns < 0)
        return err_sys(err, -errno, "cannot open '%s'", netns_path);
    for (;;) {
        int r = wait_port(netns_path, ip, deadline_usec, cancel, err);
        if (r < 0)
            return r;
        r = login(d, netns, container_id, ip, err);
        if (r == 0)
            return 0;
        if (atomic_load(cancel) || clock_mono_usec() >= deadline_usec)
            return r;
        usleep((useconds_t)wait);
    }
}
