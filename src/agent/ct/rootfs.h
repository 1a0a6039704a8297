/*
 * A container's files: image blobs mounted once per node, a copy-on-write root on top, and what
 * Muster writes into it. Everything below one folder per container,
 *
 *   RUN/ct/CONTAINER_ID/  merged/ (the root), low/ (idmapped layers, on older kernels),
 *                         etc/ (tmpfs at /etc/muster), sys/, bundle/config.json, ...
 *   STATE/ct/CONTAINER_ID/upper, work
 *
 * so that removing is complete by looking, not by remembering. Calls block; worker threads.
 * All are idempotent. Nothing an image contains is trusted: its /etc, /etc/passwd, /dev, /proc may
 * be links, FIFOs or huge (fs_open_beneath with in_root, O_NOFOLLOW, sizes checked).
 */
#ifndef AGENT_CT_ROOTFS_H
#define AGENT_CT_ROOTFS_H

#include "wire/assignment.h"

struct rootfs_dirs {
    char run[256];     /* run-time, gone after a reboot; others must be able to get through to it */
    char state[256];   /* survives: upper folders, logs, specs */
    char blobs[256];   /* blob files, BLOBS/sha256/HEX */
    char guest[256];   /* the tree bound to /opt/muster */
    char gpu_dev[256]; /* RUN/dev: pretend GPU device nodes */
};

/* Mount the blob file once per node at RUN/blob/HEX (EROFS: file-backed where the kernel can, else
 * through a loop device with autoclear). Several threads may ask for the same one. The digest was
 * checked when the file came here. */
int blob_mount(const struct rootfs_dirs *d, const char *digest, struct err *err);
/* Unmount those that no container's stack uses. */
int blob_unmount_unused(const struct rootfs_dirs *d, struct err *err);

/*
 * Make the container's root: idmap each layer for the user (detached mounts where the kernel can,
 * else mounted below low/), overlay on top with xino=on, upper's root with the top layer root's
 * owner and mode as mapped; mount points for proc sys dev etc made in the upper; then the files of
 * ours: /etc/passwd and /etc/group have `work` (uid and gid 1000, home /home/work, /bin/bash if the
 * image has it, else /bin/sh, else /opt/muster's shell; an image's own uid 1000 or `work` line is
 * replaced), /etc/hosts, /etc/hostname, /etc/resolv.conf (the node's, less loopback resolvers),
 * /etc/ssh/ssh_config.d and ssh_config so that `ssh sub1` works with no question (see ssh below),
 * /home/work owned by work with 0700 unless a volume is mounted there.
 * The /etc/muster tmpfs (1 MiB; mode 0755; root's): hostfile; ssh/ with id_ed25519 (0600, work's),
 * id_ed25519.pub, authorized_keys, known_hosts (every name and address), host_ed25519 (0600,
 * work's), sshd_config (SetEnv for all of the container's environment, PS1 that shows work@NAME),
 * ssh_config; init/plan; record (root-in-container's, bind-mounted read-write).
 * extra_env: what the node adds to the container's environment (runtime_extra.env); may be NULL.
 * A root that an agent left half made is taken away and made anew.
 */
int rootfs_make(const struct rootfs_dirs *d, const struct assignment *a,
    const struct assigned_container *c, char *const *extra_env, struct err *err);
/* Unmount and delete all of it, the upper too. */
int rootfs_remove(const struct rootfs_dirs *d, const char *container_id, struct err *err);

/* Create /etc/muster/init/go: opens the barrier. */
int rootfs_open_barrier(const struct rootfs_dirs *d, const char *container_id, struct err *err);
/* The record that init wrote: last state of it. */
struct init_record {
    bool started, start_failed, exited, signalled;
    int code; /* exit code or signal number */
    char text[256];
};
int rootfs_read_record(const struct rootfs_dirs *d, const char *container_id,
    struct init_record *ret, struct err *err);

/* ids of containers that have a folder here, for the agent's start. */
int rootfs_list(const struct rootfs_dirs *d, char ***ret, struct err *err);

/* The resolv.conf that a container gets now; heap. */
char *rootfs_resolv(void);

#endif
