/*
 * A session: what a user asked for, and what became of it. Pure data; the manager owns instances.
 *
 *              placed              all ready           barrier open
 *   pending ----------> preparing ----------> starting ------------> running
 *      ^  \                 |                    |                      |
 *      |   \ cancelled      | failed, stop, deadline, end of a container|
 *      |    \               v                    v                      v
 *      |     +----------> [ended] <----------- stopping <---------------+
 *      |                               everything removed
 *      +--- infrastructure failure before the user's first instruction (new attempt),
 *           when everything of the old attempt is removed
 *
 * Invariants (session_check): pending holds nothing; from preparing on every container has a node;
 * ended: every container is waiting or removed.
 */
#ifndef MODEL_SESSION_H
#define MODEL_SESSION_H

#include "model/container.h"

#define SESSION_SIZE_MAX 1000
#define SESSION_NICE_MAX 100000
#define SESSION_RETRY_MAX 100
#define SESSION_SWITCH_WAIT_USEC (300 * UINT64_C(1000000)) /* as Slurm's max_switch_wait */
#define SESSION_COMMAND_MAX 4096                           /* words */
#define SESSION_ENV_MAX 1024
/* What a container may be told, with the image's and ours: an order for a node takes no more words,
 * and sshd no more variables, each in quotes. */
#define CONTAINER_ENV_MAX 2048
#define CONTAINER_ENV_BYTES_MAX (128 * 1024)
#define CONTAINER_COMMAND_BYTES_MAX (256 * 1024)
#define SESSION_MOUNTS_MAX 64
#define IMAGE_REF_MAX 255
#define PATH_TEXT_MAX 1023
/* MASTER_PORT: free, since each container has its network namespace to itself, and kept so there
 * (ip_local_reserved_ports). */
#define SESSION_MASTER_PORT 29500
#define SESSION_MASTER_PORT_TEXT "29500"

enum session_state {
    SESSION_PENDING,
    SESSION_PREPARING,
    SESSION_STARTING,
    SESSION_RUNNING,
    SESSION_STOPPING,
    SESSION_ENDED,
    SESSION_STATE_COUNT
};

enum session_result {
    RESULT_NONE,
    RESULT_SUCCEEDED,
    RESULT_FAILED,
    RESULT_CANCELLED,
    RESULT_TIMEOUT,
    RESULT_LOST,
    RESULT_PREEMPTED,
    RESULT_COUNT
};

enum session_kind { KIND_DEBUG, KIND_TRAIN, KIND_COUNT };
enum session_mode { MODE_SINGLE_NODE, MODE_MULTI_NODE, MODE_COUNT };
enum session_on { ON_MAIN, ON_ALL, ON_COUNT };                         /* where the command runs */
enum session_hold { HOLD_NONE, HOLD_USER, HOLD_OPERATOR, HOLD_COUNT }; /* who holds it back */
enum session_qos { QOS_LOW, QOS_NORMAL, QOS_HIGH, QOS_COUNT };         /* higher ones go first */
enum retry_on { RETRY_NODE_FAIL = 1, RETRY_TIMEOUT = 2, RETRY_EXIT = 4, RETRY_ALL = 7 };
enum session_on_failure { FAIL_STRICT, FAIL_TOLERANT, FAIL_COUNT };

struct session_mount {
    char volume[NAME_MAX_LEN + 1]; /* a volume's name, seen from the owner */
    char path[PATH_TEXT_MAX + 1];  /* in the container, absolute */
    bool read_only;
};

struct session {
    char id[UUID_TEXT_LEN + 1];
    uint64_t num; /* job number: 1, 2, 3, ... */
    char name[NAME_MAX_LEN + 1];
    char owner[NAME_MAX_LEN + 1]; /* user name */

    /* What was asked */
    enum session_kind kind;
    enum session_mode mode; /* asked for; as placed: placed_mode */
    uint32_t size;
    struct resources each;            /* per container */
    char gpu_model[NAME_MAX_LEN + 1]; /* "" any; "a100|h100": one of these */
    uint64_t shm;                     /* bytes of /dev/shm */
    char group[NAME_MAX_LEN + 1];
    char image[IMAGE_REF_MAX + 1];   /* as asked */
    char image_id[80];               /* "sha256:..." it meant at submission */
    char **command;                  /* NULL: none asked (idle, or the image's own for train) */
    char **env;                      /* K=V */
    char workdir[PATH_TEXT_MAX + 1]; /* "": the image's, or /home/work */
    struct session_mount *mounts;
    uint32_t mount_count;
    uint64_t time_limit_usec; /* of running; 0: none */
    uint64_t grace_usec;      /* between the stop signal and SIGKILL */
    enum session_on on;
    enum session_on_failure on_failure;
    uint32_t switches;              /* leaf switches at most; 0: any number */
    uint64_t switch_wait_usec;      /* so long it waits for that */
    char **depends;                 /* "afterok:12", "singleton"; NULL: on nobody; heap */
    char account[NAME_MAX_LEN + 1]; /* that it is for; "": none */
    enum session_qos qos;
    bool spot; /* train: borrows always, and leaves first */
    uint32_t retry_max,
        retry_on;         /* train: again after such ends (bits of enum retry_on), so often */
    bool requeue;         /* train: when others have it leave, it waits again */
    int nice;             /* points less than its priority would be; below 0: more */
    uint64_t begin_usec;  /* real time: not started before; 0: at once */
    uint64_t finish_usec; /* real time: over by then, or not started at all; 0: whenever */

    /* What became of it */
    enum session_hold hold; /* pending: not looked at */
    enum session_state state;
    enum session_result result;
    bool has_command; /* a command runs, asked for or the image's own; else it idles */
    bool stop_now;    /* stopping: without grace */
    uint32_t attempt; /* 1 for the first start; 0 before */
    char
        reason_code[48]; /* stable word: "resources", "node_unreachable", "container_exited", ... */
    char reason[256];    /* for a person */
    bool waits_for_others;      /* pending: depends is not met yet; not stored */
    uint64_t lease_notice_usec; /* running debug: when it was told that others wait; 0: not */
    uint32_t retried;           /* how often it was */
    uint64_t claimed_usec;      /* pending: since then others leave for it; 0: nobody does */
    uint64_t leaves_for;        /* number of the session that it leaves for; 0: none */
    uint64_t preempt_at_usec;   /* by then it is gone */
    uint64_t estimate_usec;     /* how long it is expected to run, from its like; 0: not known */
    uint64_t submitted_usec, placed_usec, started_usec, ended_usec; /* real time; 0: not yet */
    uint64_t state_usec;    /* when it came into its state */
    uint64_t deadline_usec; /* real time at which the present state is given up; 0: none */
    int exit_code; /* of the whole session once ended: main1's command, or the first failed */
    enum session_mode placed_mode;
    struct container *containers; /* size of them, by rank */

    /* Made once, at submission; secrets never leave the manager but to agents and the owner. */
    char *ssh_private, *ssh_public; /* OpenSSH forms, heap */
    char *ssh_host_private, *ssh_host_public;
    uint32_t vni;    /* 24 bit, random; 0: no overlay */
    uint32_t subnet; /* host byte order network address of the session's /22 */
    uint16_t master_port;
};

struct session *session_new(void);
void session_free(struct session *s);
void session_freep(struct session **s);
/* Make size containers, named and ranked; ids: main1 gets the session's, the rest fresh ones. */
void session_make_containers(struct session *s);

const char *session_state_name(enum session_state s);
int session_state_parse(const char *text, enum session_state *ret);
const char *session_result_name(enum session_result r); /* "" for none */
int session_result_parse(const char *text, enum session_result *ret);
const char *session_kind_name(enum session_kind k); /* "debug", "train" */
int session_kind_parse(const char *text, enum session_kind *ret);
const char *session_mode_name(enum session_mode m); /* "single-node", "multi-node" */
int session_mode_parse(const char *text, enum session_mode *ret);
const char *session_on_name(enum session_on o); /* "main", "all" */
int session_on_parse(const char *text, enum session_on *ret);
const char *session_hold_name(enum session_hold h); /* "none", "user", "operator" */
int session_hold_parse(const char *text, enum session_hold *ret);
/* "node-fail", "timeout", "exit" -> the bit; -EINVAL. */
int session_retry_on_parse(const char *text, uint32_t *ret);
const char *session_retry_on_name(enum retry_on on);
/* It has ended as result says: is it to be tried again? */
bool session_tries_again(const struct session *s);
const char *session_qos_name(enum session_qos q); /* "low", "normal", "high" */
int session_qos_parse(const char *text, enum session_qos *ret);
const char *session_on_failure_name(enum session_on_failure f); /* "strict", "tolerant" */
int session_on_failure_parse(const char *text, enum session_on_failure *ret);

/* The one way to change state; sets state_usec. -EPROTO "a session cannot go from ...", also for
 * the state that it is in. */
int session_state_move(
    struct session *s, enum session_state next, uint64_t now_usec, struct err *err);
/* The invariants above. -EINVAL with the one that does not hold. */
int session_check(const struct session *s, struct err *err);

/* Everything a request may say about a session is in range and agrees: size, resources, env names,
 * paths absolute and clean, mounts not on each other or on what is ours (/etc/muster, /opt/muster,
 * /proc, /sys, /dev), train without a command only if image_has_command. The name may be "": the
 * manager gives one then. */
int session_request_check(const struct session *s, bool image_has_command, struct err *err);

struct container *session_container(struct session *s, const char *name); /* NULL */
bool session_is_over(const struct session *s);
/* From the signal to stop on: its own, or as long as those have who leave for others. */
uint64_t session_grace(const struct session *s);
/* How long it may run if it starts then: its limit, cut by the time at which it has to be over.
 * UINT64_MAX: no end. */
uint64_t session_may_run(const struct session *s, uint64_t start_usec);

/*
 * The environment of one container: PATH and the image's first, then launcher defaults, then the
 * user's --env, then identity, which nothing overrides. image_env may be NULL. addr of main1 as
 * MASTER_ADDR is its name. gpu_uuids: NVIDIA_VISIBLE_DEVICES ("" gives "void"); NULL leaves it to
 * the agent. Heap.
 */
char **session_environment(const struct session *s, const struct container *c,
    char *const *image_env, const char *gpu_uuids);
/* That the environment of any of its containers, and the command with the image's entrypoint (may
 * be NULL), are not more than that. Before there are containers. -EINVAL with numbers. */
int session_environment_check(
    const struct session *s, char *const *image_env, char *const *command, struct err *err);
/* /etc/hosts (localhost, then "ADDR NAME" by rank) and the hostfile ("main1 slots=2"); heap. */
char *session_hosts(const struct session *s);
char *session_hostfile(const struct session *s);

#endif
