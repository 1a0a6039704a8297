/*
 * A node and a group. A node's usage is never stored: it is added up from live placements.
 *
 *            link up, inventory taken                link lost
 *   (new) -------------------------> up <-------------------------> unreachable
 *                                    ^ \                                |
 *                            resume  |  \ drain: no new sessions        | limit passed and nothing
 *                                    +---+ (a flag beside the state)    | but fenced train
 * sessions, |                                  | or an admin's word |   returns, has cleaned up v
 *                                    +-------------------------------- lost
 */
#ifndef MODEL_NODE_H
#define MODEL_NODE_H

#include "base/str.h"
#include "model/resources.h"

#define NODE_GPUS_MAX 64

enum node_state { NODE_UP, NODE_UNREACHABLE, NODE_LOST, NODE_STATE_COUNT };

struct gpu {
    uint32_t index;               /* on its node */
    char model[NAME_MAX_LEN + 1]; /* "h100", lower case */
    char uuid[64];
    uint64_t mem; /* bytes */
    bool healthy;
    uint32_t numa, nvlink; /* GPUs with the same number share a NUMA domain, or reach each other by
                              NVLink; 0: not known */
};

struct node {
    char name[NAME_MAX_LEN + 1];
    char group[NAME_MAX_LEN + 1];
    enum node_state state;
    bool drained;
    uint64_t drain_from_usec; /* real time from which on it is drained; until then it takes what is
                                 over by then; 0: no such time */
    char drain_reason[128];
    struct resources capacity;           /* declared or found */
    struct gpu *gpus;                    /* capacity.gpus of them; heap */
    char addr_mgmt[64], addr_fabric[64]; /* IP addresses */
    uint32_t fabric_mtu;
    char leaf[NAME_MAX_LEN + 1],
        spine[NAME_MAX_LEN + 1]; /* its switch, and that one's; "" unknown */
    char boot_id[37];
    char version[32];   /* of its agent */
    uint64_t seen_usec; /* real time of the last word from it */
};

/* Is the model one that is wished for? wish: "" any, "h100", "a100|h100". */
bool gpu_model_fits(const char *wish, const char *model);
/* Pretend GPUs: "fake:MODEL:COUNT". The spec begins with GPU_FAKE. -EINVAL. */
#define GPU_FAKE "fake:"
int gpu_fake_parse(
    const char *spec, char model[NAME_MAX_LEN + 1], uint32_t *ret_count, struct err *err);
void node_done(struct node *n);
const char *node_state_name(enum node_state s);
int node_state_parse(const char *text, enum node_state *ret);
/* -EPROTO "a node cannot go from 'up' to 'lost'". Moving to the state it is in does nothing. */
int node_state_move(enum node_state *state, enum node_state next, struct err *err);
/* New sessions may be placed on it now. */
bool node_takes_work(const struct node *n);

struct group {
    char name[NAME_MAX_LEN + 1];
    uint64_t time_default_usec, time_max_usec; /* 0: none */
    uint32_t size_max;                         /* containers of a session; 0: none */
    bool allow_debug, allow_train;
};

#endif
