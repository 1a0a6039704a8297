/*
 * What agent and manager say to each other over the link: one JSON object a WebSocket text message,
 * "type" first. Orders carry cluster and epoch, so that an agent refuses what an older manager
 * says; reports carry the attempt, so that a manager passes over what an older start says.
 *
 * agent -> manager
 *   hello            first of all: who it is, what it has, what is on it
 *                    {"version", "node", "cluster", "seen_epoch", "boot_id", "capacity", "gpus",
 *                     "addr_mgmt", "addr_fabric", "fabric_mtu", "inventory": [{"session",
 *                     "attempt", "phase", "cluster", "epoch", "incarnation", "revision", "held",
 * "gpus", "containers": [REPORT]}]} report           a container changed: {"report": REPORT}
 *   session_removed  nothing of it is left on this node: {"session", "attempt"}
 *   image_progress   {"image_id", "state": "fetching" | "ready" | "failed", "done", "total" (bytes,
 *                    0: not known), "text"}
 *   pong             {"seq"} of the ping
 * manager -> agent
 *   welcome          answer to hello: {"cluster", "epoch", "heartbeat_usec", "fence_usec", "peers",
 *                    "blocked"}; sent again when peers or blocked change
 *   assign           {"assignment": ASSIGNMENT} (assignment.h)
 *   remove           a session the manager knows to be over: stop and remove what is there, then
 *                    session_removed: {"cluster", "epoch", "session"}
 *   quarantine       a session the manager does not know: leave it running, keep it out of the way,
 *                    report it: {"cluster", "epoch", "session"}
 *   open_stream      dial a connection of its own for it (terminals and logs never delay the link):
 *                    {"id", "kind": "exec" | "log" | "tcp", "container", "command", "env", "root",
 * "tty", "rows", "cols", "offset", "since_usec", "follow", "timestamps", "port"} ping {"seq"}
 */
#ifndef WIRE_LINK_H
#define WIRE_LINK_H

#include "model/node.h"
#include "wire/assignment.h"

/* Longest message either side takes. */
#define LINK_TEXT_MAX (64u << 20)
#define LINK_INVENTORY_MAX 4096 /* sessions of a node */
#define LINK_PEERS_MAX 4096

enum link_type {
    LINK_HELLO,
    LINK_REPORT,
    LINK_SESSION_REMOVED,
    LINK_IMAGE_PROGRESS,
    LINK_PONG,
    LINK_WELCOME,
    LINK_ASSIGN,
    LINK_REMOVE,
    LINK_QUARANTINE,
    LINK_OPEN_STREAM,
    LINK_PING,
    LINK_TYPE_COUNT
};

enum link_side { LINK_AGENT, LINK_MANAGER };

/* A session as an agent has it. */
struct link_session {
    char session[UUID_TEXT_LEN + 1];
    uint32_t attempt;
    enum phase phase;
    char cluster[UUID_TEXT_LEN + 1]; /* whose order it was */
    uint64_t epoch;
    char incarnation[UUID_TEXT_LEN + 1];
    uint64_t revision;
    struct resources held; /* by all of its containers here */
    uint32_t *gpus;        /* indexes of this node's GPUs that it holds */
    uint32_t gpu_count;
    struct report *containers;
    uint32_t container_count;
};

struct link_hello {
    char version[32];
    char node[NAME_MAX_LEN + 1];
    char cluster[UUID_TEXT_LEN + 1]; /* last known; "" none */
    uint64_t seen_epoch;             /* highest seen of it */
    char boot_id[37];
    struct resources capacity; /* capacity.gpus of them are in gpus */
    struct gpu *gpus;
    char addr_mgmt[64], addr_fabric[64];
    uint32_t fabric_mtu;
    struct link_session *inventory;
    uint32_t inventory_count;
};

struct link_removed {
    char session[UUID_TEXT_LEN + 1];
    uint32_t attempt;
};

enum image_state { IMAGE_FETCHING, IMAGE_READY, IMAGE_FAILED, IMAGE_STATE_COUNT };

struct link_image {
    char image_id[80];
    enum image_state state;
    uint64_t done, total; /* bytes; total 0: not known */
    char text[256];       /* what it is at, or why it failed */
};

struct link_welcome {
    char cluster[UUID_TEXT_LEN + 1];
    uint64_t epoch;
    uint64_t heartbeat_usec; /* between pings; the agent gives the link up after three */
    uint64_t fence_usec;     /* cut off for so long, it ends its train sessions itself */
    char **peers;            /* fabric addresses of all nodes */
    char **blocked;          /* CIDRs that sessions must not reach */
};

struct link_session_order { /* remove, quarantine */
    char cluster[UUID_TEXT_LEN + 1];
    uint64_t epoch;
    char session[UUID_TEXT_LEN + 1];
};

enum stream_kind { STREAM_EXEC, STREAM_LOG, STREAM_TCP, STREAM_COUNT };

struct link_stream {
    char id[UUID_TEXT_LEN + 1]; /* names the connection that the agent dials */
    enum stream_kind kind;
    char container[UUID_TEXT_LEN + 1];
    /* exec */
    char **command;                  /* NULL: a login shell */
    char **env;                      /* K=V, over the container's; identity stays */
    char workdir[PATH_TEXT_MAX + 1]; /* absolute; "": /home/work */
    bool root, tty;
    uint16_t rows, cols;
    /* log: from this byte of the log file, but nothing older than since */
    uint64_t offset, since_usec;
    bool follow, timestamps;
    /* tcp: inside the container, on 127.0.0.1 */
    uint16_t port;
};

struct link_ping {
    uint64_t seq;
};

struct link_message {
    enum link_type type;
    union {
        struct link_hello hello;
        struct report report;
        struct link_removed removed; /* LINK_SESSION_REMOVED */
        struct link_image image;     /* LINK_IMAGE_PROGRESS */
        struct link_ping ping;       /* LINK_PING, LINK_PONG */
        struct link_welcome welcome;
        struct assignment *assignment;   /* LINK_ASSIGN; heap */
        struct link_session_order order; /* LINK_REMOVE, LINK_QUARANTINE */
        struct link_stream stream;       /* LINK_OPEN_STREAM */
    };
};

const char *link_type_name(enum link_type t);
int link_type_parse(const char *text, enum link_type *ret);
const char *image_state_name(enum image_state s);
int image_state_parse(const char *text, enum image_state *ret);

/*
 * One message from the other side. -EINVAL with the type and the way to the member in the text:
 * "'hello': gpus[1]: 'model' is empty". A type that only the other side may send is an error like
 * one that is not known: "a manager does not send 'hello'".
 */
int link_parse(
    const char *text, size_t len, enum link_side from, struct link_message **ret, struct err *err);
/* Compact JSON text; heap. */
char *link_text(const struct link_message *m);
/* Free it and all that its members own (TAKE_PTR what is to be kept). */
void link_message_free(struct link_message *m);
void link_message_freep(struct link_message **m);

/* For messages on the stack: free what the members own only. */
void link_message_done(struct link_message *m);

#endif
