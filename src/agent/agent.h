/*
 * The agent's state. Belongs to the loop's thread; jobs in worker threads get pointers to what does
 * not change (directories, the assignment they were started with) and post results back.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdatomic.h>

#include "agent/config.h"
#include "agent/ct/gpu.h"
#include "agent/ct/runtime.h"
#include "agent/identity.h"
#include "agent/net/edge.h"
#include "base/list.h"
#include "base/map.h"
#include "net/ws.h"
#include "wire/assignment.h"

struct agent {
    struct agent_config config;
    uv_loop_t *loop;
    struct net *net;
    struct runtime rt; /* rt.dirs are the directories */
    struct node_net node_net;
    struct resources capacity;
    struct gpu *gpus;
    uint32_t gpu_count;
    char boot_id[37];

    /* What is known of the managers; kept in STATE/manager.json. */
    char cluster[UUID_TEXT_LEN + 1];
    uint64_t seen_epoch;
    uint64_t fence_usec;

    struct map sessions; /* id -> struct sess */
    struct link *link;
    struct identity identity;
    uint64_t contact_usec; /* monotonic; the last word of a manager */
    uint64_t heartbeat_usec;
    bool fenced;
    bool closing;
    uv_timer_t tick;
    uv_poll_t nft_poll;
    int nft_fd;
    bool nft_busy;
};

#endif
