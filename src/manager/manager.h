/*
 * The manager's state: nouns in memory, their documents in the store. Everything here belongs to
 * the loop's thread. Who changes a noun saves it (state.h) in the same turn; who tells somebody
 * (a reply, an order) does so through store_after.
 */
#ifndef MANAGER_MANAGER_H
#define MANAGER_MANAGER_H

#include "base/list.h"
#include "base/map.h"
#include "image/image.h"
#include "manager/config.h"
#include "manager/pki.h"
#include "manager/throttle.h"
#include "model/account.h"
#include "model/node.h"
#include "model/session.h"
#include "model/topology.h"
#include "model/user.h"
#include "net/server.h"
#include "sched/estimate.h"
#include "sched/sched.h"
#include "store/store.h"

struct token {
    char hash[65];
    char user[NAME_MAX_LEN + 1]; /* "" for an agent's */
    bool agent;
};

struct volume {
    char name[NAME_MAX_LEN + 1];
    char owner[NAME_MAX_LEN + 1];
    uint64_t created_usec;
};

struct link; /* links.c: the connection of an agent */

struct mnode { /* a node, and what the manager knows of it beside its document */
    struct node node;
    struct link *link; /* NULL: not connected */
    struct map
        cleaning; /* session id -> this: leftovers it was told to remove before it takes work */
    struct map quarantined; /* session id -> struct sched_withheld, heap, as its node says */
};

struct manager {
    struct manager_config config;
    uv_loop_t *loop;
    struct net *net;
    struct store *store;
    char cluster[UUID_TEXT_LEN + 1];
    uint64_t epoch; /* epoch.h */
    char incarnation[UUID_TEXT_LEN + 1];
    bool closing;

    struct map sessions;    /* id -> struct session, those that have not ended */
    struct map nums;        /* their numbers in decimal -> struct session */
    struct map networks;    /* of sessions that have one: overlay.h -> struct session */
    struct map nodes;       /* name -> struct mnode */
    struct map groups;      /* name -> struct group */
    struct map users;       /* name -> struct user */
    struct map tokens;      /* hash -> struct token */
    struct map volumes;     /* "OWNER/NAME" -> struct volume */
    struct map images;      /* name -> struct image */
    struct map imports;     /* name -> struct import (imports.c), those that others may join */
    unsigned import_count;  /* imports of any kind that run */
    struct map secrets;     /* "OWNER/REGISTRY" -> struct secret (secrets.c) */
    struct map streams;     /* id -> struct stream (gateway.c) */
    struct map idempotency; /* "OWNER/KEY" -> session id, heap */

    struct pki pki;         /* listen.c; not open without a listener that speaks TLS */
    uint64_t tls_look_usec; /* when to look at certificates again */
    uint64_t tls_site;      /* the site's files as they were read */
    struct map identities;  /* node -> struct identity (joins.h) */
    struct map invites;     /* hash of a join token -> struct invite */
    struct throttle joins;

    struct list watchers; /* events.c: open event streams */
    struct list waiters;  /* events.c: requests that wait for a session */
    struct map dirty;     /* session id -> its node set has to be told (launch.c) */

    struct map accounts;      /* name -> struct account (accounts.c) */
    struct map uses;          /* "ACCOUNT/USER" -> struct account_use */
    struct topology topology; /* settings.c */
    char *topology_text;
    struct sched sched;          /* pass.c: what it was told before the last pass */
    struct estimator estimator;  /* history.c */
    struct map changed_sessions; /* id -> this: to be told */
    struct map changed_nodes;    /* name -> this */
    bool depends_wanted;         /* something has begun or ended (depends.c) */
    bool pass_wanted;
    uv_check_t pass_check;
    uint64_t pass_count, pass_usec, pass_wake_usec;
    uv_timer_t tick; /* every 500 ms: deadlines, silent agents */
};

#endif
