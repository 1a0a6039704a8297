/*
 * Containers under conmon and an OCI runtime (crun; runc by configuration). The agent may come and
 * go: conmon keeps the terminal, the log and the exit status. Calls block; worker threads.
 *
 * Cgroups: CGROUP/SESSION_ID/CONTAINER_ID in every hierarchy (v1), or the one (v2); hybrid counts
 * as v1. Limits per container: cpu quota and weight, memory (swap none), pids, devices. Helpers get
 * the fixed environment of proc.h.
 */
#ifndef AGENT_CT_RUNTIME_H
#define AGENT_CT_RUNTIME_H

#include "agent/ct/rootfs.h"
#include "base/proc.h"

struct runtime {
    struct rootfs_dirs dirs;
    char crun[256], conmon[256]; /* programs */
    char shim[256];              /* the program muster-runtime, which runs crun */
    char root[256];              /* RUN/crun: --root of the runtime */
    char cgroup[256];            /* "muster/TAG", relative to the hierarchies' roots */
    char seccomp[256];           /* profile (containers-common form: names, archMap, includes) */
    uint64_t pids_max;           /* per container; default 32768 */
    json_t *filter;              /* the profile as OCI has it, for every container; runtime_open */
    char *filter_bpf;            /* the same, compiled, in base64 (seccomp_bpf.h); NULL: not */
};

/* Read the seccomp profile: before anything else of here, once. */
int runtime_open(struct runtime *rt, struct err *err);
void runtime_close(struct runtime *rt);

struct device {
    char host_path[256]; /* device node on the node */
    char container_path[256];
    uint32_t major, minor;
};

struct runtime_extra { /* what GPU injection adds */
    struct device *devices;
    uint32_t device_count;
    char **mounts; /* "SOURCE:TARGET" read-only binds */
    char **env;
};

/* The OCI configuration (runtime-spec 1.0) of a container whose root and network namespace are
 * made. Pure. Owned by the caller. */
int runtime_config(const struct runtime *rt, const struct assignment *a,
    const struct assigned_container *c, const char *netns_path, const struct runtime_extra *extra,
    json_t **ret, struct err *err);

/* Write bundle/config.json, mount the container's own sysfs (mounted inside its network namespace,
 * bound read-only), conmon + crun run: muster-init runs. The log is
 * STATE/log/CONTAINER_ID (conmon's k8s-file format, not limited by conmon), the exit file
 * RUN/exit/CONTAINER_ID. */
int runtime_start(const struct runtime *rt, const struct assignment *a,
    const struct assigned_container *c, const char *netns_path, const struct runtime_extra *extra,
    struct err *err);

struct runtime_state {
    bool exists;         /* the runtime knows it */
    bool running;        /* init's process lives (pid and start time agree) */
    pid_t pid;           /* of init, on the host */
    uint64_t start_time; /* clock ticks; proc_start_time */
    pid_t conmon_pid;    /* 0: gone */
    bool exit_known;     /* conmon wrote the exit file */
    int exit_code;
    bool oom; /* its cgroup counted an OOM kill */
};
int runtime_state(const struct runtime *rt, const char *session_id, const char *container_id,
    struct runtime_state *ret, struct err *err);

/* Signal init. -ESRCH when it is gone. */
int runtime_kill(const struct runtime *rt, const char *container_id, int signo, struct err *err);
/* Kill what is left (its cgroups emptied by force), delete it from the runtime, remove its cgroups
 * and exit file; conmon is waited for. The log stays. */
int runtime_remove(
    const struct runtime *rt, const char *session_id, const char *container_id, struct err *err);
/* Remove the session's cgroup folders when empty. */
int runtime_remove_session(const struct runtime *rt, const char *session_id, struct err *err);

/*
 * A step inside: `crun exec` with a process spec. The agent spawns argv itself (proc.h or uv) with
 * stdio of its choosing. tty: crun exec --tty with --console-socket is not used; the caller gives a
 * pty slave as stdio and terminal=true makes it the controlling one.
 * The runtime gives stdio to the user by fchown(2): pass pipes, sockets, ptys of its own; /dev/null
 * only as opened in the agent's mount namespace (mountns.h).
 * Writes the spec to RUN/exec/ID.json and gives the argv to run; both removed by runtime_exec_done.
 */
struct exec_spec {
    bool root; /* uid 0 inside, else work */
    bool tty;
    char **command;  /* NULL: a login shell */
    char **env;      /* the container's environment; TERM added by the caller */
    const char *cwd; /* NULL: /home/work */
};
int runtime_exec_argv(const struct runtime *rt, const char *container_id, const char *exec_id,
    const struct exec_spec *spec, char ***ret_argv, struct err *err);
void runtime_exec_done(const struct runtime *rt, const char *exec_id);

/* ids the runtime or the cgroups know, for the agent's start. */
int runtime_list(const struct runtime *rt, char ***ret, struct err *err);

/* What the machine has. */
enum cgroup_layout { CGROUP_V1, CGROUP_HYBRID, CGROUP_V2 };
enum cgroup_layout cgroup_layout(void);

#endif
