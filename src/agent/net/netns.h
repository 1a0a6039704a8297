/*
 * Network namespaces: pinned as files, entered by a thread for a moment, and their sysctls.
 *
 * setns(2) changes the calling thread only, so that worker threads may work in different namespaces
 * at once. A thread that cannot go back would do its next work in the wrong network: that aborts.
 */
#ifndef AGENT_NET_NETNS_H
#define AGENT_NET_NETNS_H

#include "base/err.h"

/* The way back. Between enter and leave nothing else may change the thread's namespace. */
struct netns_visit {
    int home; /* fd of the namespace to return to; -1: not away */
};

#define NETNS_HOME ((struct netns_visit){.home = -1})

int netns_enter(int fd, struct netns_visit *v, struct err *err);
void netns_leave(struct netns_visit *v); /* for _cleanup_(netns_leave); nothing when not away */

/* fd of the calling thread's namespace, or a negative errno. */
int netns_open_current(void);
/* fd of a pinned one. -ENOENT: no such file, or one that no namespace is bound to (a pin that was
 * not finished). */
int netns_open(const char *path, struct err *err);
/* Make a namespace and bind it to path, unless one is there. prepare() runs inside a namespace just
 * made, before it is bound: what is pinned has been prepared. Returns an fd of it. */
int netns_pin(const char *path, int (*prepare)(struct err *err), struct err *err);
/* Unbind and delete the file. Success when there is none. */
int netns_unpin(const char *path, struct err *err);

/* Write below /proc/sys/net in the calling thread's namespace, unless the value is there already.
 * -ENOENT when the kernel has no such setting (IPv6 or bridge netfilter not loaded), no err set. */
int netns_sysctl(const char *name, const char *value, struct err *err);

#endif
