/*
 * A session on this node: its assignment, its containers, and the work that makes what is into what
 * the assignment says.
 *
 * Container states here are the model's; the sequence of one container:
 *   ASSIGNED -> PREPARING (root, network, init, sshd, login) -> READY -> RUNNING (barrier opened)
 *   -> EXITED -> gone with the session.
 * Nothing is forgotten before the manager ordered STOP and all of it is removed.
 */
#ifndef AGENT_SESS_H
#define AGENT_SESS_H

#include "agent/agent.h"

struct sess;

struct ct {
    struct sess *sess;
    const struct assigned_container *spec; /* in sess->a */
    struct report report;                  /* what the manager was, or will be, told */
    struct runtime_extra extra;            /* what its GPUs add; fixed before the first job */
    bool started;                          /* conmon and init were started, or tried to be */
    bool rootfs_made;
    bool killed; /* SIGKILL was sent: its end is by order */
    bool stop_sent;
    pid_t pid, conmon_pid;
    uint64_t start_time;
    struct pidwatch *init_watch, *conmon_watch; /* watch.c */
};

struct sess {
    struct agent *agent;
    struct assignment *a;
    struct assignment *next; /* a newer attempt, waiting for this one to be removed */
    uint32_t edge_index;
    struct ct *cts;       /* a->container_count of them */
    unsigned jobs;        /* in worker threads now, or waiting to go there again */
    unsigned logins_left; /* peers on other nodes that main1 has not logged in to yet */
    atomic_bool cancel;   /* tells jobs that wait to give up */
    bool edge_made, failed;
    bool quarantined;
    bool removing, remove_wanted;
    uint64_t kill_at_usec;  /* monotonic; end of the grace time; 0: not stopping */
    uint64_t retry_at_usec; /* monotonic; removal is tried again */
};

/* Take an assignment (owned): new, another phase, or a newer attempt. */
void sess_assign(struct agent *ag, struct assignment *a);
/* The manager does not know it: stop and remove. */
void sess_remove(struct agent *ag, const char *session_id);
void sess_quarantine(struct agent *ag, const char *session_id);
/* What is here after a restart: spec files, then what has no spec. Before the link is opened. */
int sess_restore(struct agent *ag, struct err *err);
/* Deadlines, removals to try again; cut off from every manager for too long: end train sessions. */
void sess_tick(struct agent *ag, uint64_t now_usec);
void sess_fence(struct agent *ag);
/* The container with this id, NULL. */
struct ct *sess_container(struct agent *ag, const char *container_id);
bool sess_is_idle(const struct sess *s);

/* spec.c: STATE/sessions/ID.json, what a restarted agent goes on from. */
int spec_write(const struct sess *s, struct err *err);
void spec_remove(struct agent *ag, const char *session_id);
int spec_load_all(struct agent *ag, struct err *err);

/* sess.c, for the files beside it */
struct sess *sess_new(struct agent *ag, struct assignment *a);
void sess_free(struct sess *s);
void ct_report(struct ct *c, enum container_state state);
void ct_ended(struct ct *c, enum container_end end, int code, const char *text);
void sess_work(struct sess *s);

/* start.c: jobs that make containers and open their barrier. */
int ct_find_devices(struct ct *c, struct err *err);
void start_session(struct sess *s);
/* A step of c (NULL: of all) failed before the barrier: the session is of no use any more. */
void session_failed(struct sess *s, struct ct *c, const struct err *err);
void start_barrier(struct sess *s);
/* remove.c: jobs that take everything away. */
void remove_session(struct sess *s);
/* logkeep.c: shorten and forget logs, in a worker thread. */
void logkeep_start(struct agent *ag);
/* watch.c: notices the end of init and of conmon. */
void watch_container(struct ct *c);
void unwatch_container(struct ct *c);

/* ready.c (blocking): log in over SSH to a container of this node from inside its own network
 * namespace, as soon as its sshd listens; pid is a process of the container, ip its address there.
 * Tries until it works, the deadline, or *cancel. */
int ready_login(const struct rootfs_dirs *d, const char *netns_path, const char *container_id,
    pid_t pid, uint32_t ip, uint64_t deadline_usec, atomic_bool *cancel, struct err *err);
/* One try from there to any container of the session; a second or two at most. */
int ready_try(const struct rootfs_dirs *d, const char *netns_path, const char *container_id,
    uint32_t ip, struct err *err);

/* peers.c: main1 logs in to the session's containers on other nodes, then it is ready. */
void peers_login(struct ct *c);

/* fetch.c (blocking): the blob is in BLOBS, verified. */
int fetch_blob(const struct agent *ag, const struct assigned_layer *layer, atomic_bool *cancel,
    struct err *err);

#endif
