/*
 * One container of a session, as the manager sees it.
 *
 *            place            agent reports             barrier           ended, or stop asked
 *   waiting -------> assigned -------> preparing -> ready -------> running ---------> exited
 *      ^                 |                 |          |               |                  |
 *      |                 +-----------------+----------+---------------+------------------+
 *      | start is tried again (new attempt)                                              v
 *      +-------------------------------------------------------------------------- removed
 *
 * What fails to come up goes through "exited" like what has run; steps may be skipped where a link
 * was down while they happened, but nothing is "running" that was not seen "ready".
 * "removed" is reached only by the agent's word that nothing is left, or when its node is lost.
 * Resources count as used in every state from assigned to exited.
 */
#ifndef MODEL_CONTAINER_H
#define MODEL_CONTAINER_H

#include "base/str.h"
#include "model/resources.h"

enum container_state {
    CONTAINER_WAITING,
    CONTAINER_ASSIGNED,
    CONTAINER_PREPARING,
    CONTAINER_READY,
    CONTAINER_RUNNING,
    CONTAINER_EXITED,
    CONTAINER_REMOVED,
    CONTAINER_STATE_COUNT
};

/* Why a container is no more. */
enum container_end {
    END_NONE,         /* it lives, or never lived */
    END_EXIT,         /* the command ended: exit_code */
    END_SIGNAL,       /* the command died of a signal: exit_code is its number */
    END_OOM,          /* its memory limit */
    END_START_FAILED, /* never came up, or the command could not be executed: text says why */
    END_MONITOR_LOST, /* conmon died; there is no exit record */
    END_STOPPED,      /* stopped by order */
    END_NODE_LOST,    /* the node rebooted or was declared lost */
    END_COUNT
};

struct container {
    char id[UUID_TEXT_LEN + 1];  /* "kernel id"; main1's is the session id */
    char name[16];               /* "main1", "sub12" */
    uint32_t rank;               /* 0-based over the session; main1 is 0 */
    char node[NAME_MAX_LEN + 1]; /* "" while waiting */
    uint32_t *gpus;              /* indexes of the node's GPUs, gpu_count of them; heap */
    uint32_t gpu_count;
    uint32_t ip; /* host byte order; 0 while waiting */
    enum container_state state;
    enum container_end end;
    int exit_code;
    uint64_t started_usec, ended_usec; /* of the user's command; real time; 0: not yet */
    char text[256];                    /* a person's reason: what it waits for, why it failed */
};

void container_done(struct container *c);

const char *container_state_name(enum container_state s);
int container_state_parse(const char *text, enum container_state *ret);
const char *container_end_name(enum container_end e);
int container_end_parse(const char *text, enum container_end *ret);

/* The one way to change state. -EPROTO "a container cannot go from 'exited' to 'ready'". Moving to
 * the state it is in is allowed and does nothing. */
int container_state_move(enum container_state *state, enum container_state next, struct err *err);
/* It holds its node's resources. */
bool container_holds(const struct container *c);

/* rank 0 -> "main1", rank 3 -> "sub3". */
void container_name_make(uint32_t rank, char name[16]);
bool container_is_main(const struct container *c);
/* 1-based within its role: main1 -> 1, sub1 -> 1, sub2 -> 2. */
uint32_t container_role_idx(const struct container *c);
/* "exited with 3", "killed by signal 9 (SIGKILL)", "ran out of its memory", ... ; text for a person
 * without the container's name. With END_OOM c->text, if any, is the whole description: "ran out of
 * its 64 MiB of memory" by whoever knows the limit. */
char *container_end_describe(const struct container *c, char *text, size_t size);

#endif
