/*
 * What the manager wants of one node for one session: the whole truth in one document, sent again
 * whenever it changes or a link comes up. The agent writes it down and works until what is, is what
 * the document says; so sending it twice does nothing twice (docs/architecture.md, "Orders").
 *
 * The agent acts on an assignment only when cluster, epoch (not older than any seen), boot_id and
 * attempt (not older than the one it has) agree; phases only go forward within an attempt.
 */
#ifndef WIRE_ASSIGNMENT_H
#define WIRE_ASSIGNMENT_H

#include "base/json.h"
#include "model/session.h"
#include "model/user.h"

enum phase {
    PHASE_PREPARE, /* make everything, start init and sshd, log in, report ready, wait */
    PHASE_RUN,     /* open the barrier */
    PHASE_STOP,    /* stop signal, grace, SIGKILL; then remove */
    PHASE_COUNT
};

struct assigned_mount {
    char *source; /* absolute path on the node, made by the manager from its volume table */
    char *target; /* absolute path in the container */
    bool read_only;
};

struct assigned_layer {
    char digest[80]; /* "sha256:..." of the blob file */
    uint64_t size;   /* bytes of the blob file */
};

struct assigned_container { /* one that runs on this node */
    char id[UUID_TEXT_LEN + 1];
    char name[16];
    uint32_t rank;
    uint32_t *gpus;
    uint32_t gpu_count;
    char **env;     /* complete, as session_environment made it, less GPU uuids (the agent's) */
    char **command; /* NULL: idle */
};

struct assigned_peer { /* every container of the session, by rank, those of this node too */
    char name[16];
    uint32_t ip; /* host byte order */
    char node[NAME_MAX_LEN + 1];
    char fabric[64]; /* its node's fabric address */
};

struct assignment {
    char cluster[UUID_TEXT_LEN + 1];
    uint64_t epoch;
    /* Which manager said it, and how far its store had come: by these a manager knows later whether
     * this is its own history (manager/epoch.h). */
    char incarnation[UUID_TEXT_LEN + 1];
    uint64_t revision;
    char boot_id[37];
    char session[UUID_TEXT_LEN + 1];
    uint64_t num;
    uint32_t attempt;
    enum phase phase;
    char stop_reason[256]; /* written to the containers' logs' end on stop; "" none */
    bool kill_now;         /* stop without grace */

    struct user user;
    enum session_kind kind;
    struct resources each;
    uint64_t shm;
    uint64_t grace_usec;
    uint32_t stop_signal; /* 15 unless the image says otherwise */
    char workdir[PATH_TEXT_MAX + 1];
    struct assigned_mount *mounts;
    uint32_t mount_count;
    char image_id[80];
    struct assigned_layer *layers; /* lowest first */
    uint32_t layer_count;

    uint32_t subnet, vni; /* vni 0: all on one node */
    struct assigned_peer *peers;
    uint32_t peer_count;
    char *ssh_private, *ssh_public, *ssh_host_private, *ssh_host_public;
    char *hosts, *hostfile; /* file contents */

    struct assigned_container *containers;
    uint32_t container_count;
};

void assignment_free(struct assignment *a);
void assignment_freep(struct assignment **a);
json_t *assignment_to_json(const struct assignment *a);
/* Checks everything (the agent trusts the manager's right, not its bytes). */
int assignment_from_json(const json_t *j, struct assignment **ret, struct err *err);

/* What the agent reports of one container. */
struct report {
    char session[UUID_TEXT_LEN + 1];
    char container[UUID_TEXT_LEN + 1];
    char name[16];
    uint32_t attempt;
    enum container_state state;
    enum container_end end;
    int exit_code;
    uint64_t started_usec, ended_usec;
    char text[256];
};

json_t *report_to_json(const struct report *r);
int report_from_json(const json_t *j, struct report *r, struct err *err);

#endif
