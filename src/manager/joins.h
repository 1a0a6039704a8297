/*
 * Who may be a node. Two nouns:
 *
 *   invite    a join token, by its hash: one use, an end, perhaps for one name only
 *   identity  what a node's certificates must carry to be taken: a mark, made new with each join
 * and kept through renewals. Removing it refuses every certificate of the node at once, however
 * long they would last, and so does another machine's joining under the name
 *
 * Marks are random and not counted, so that a store that is restored from a copy never takes an old
 * certificate for a new one.
 */
#ifndef MANAGER_JOINS_H
#define MANAGER_JOINS_H

#include "manager/api.h"
#include "manager/tokens.h"

struct invite {
    uint64_t num;
    char hash[TOKEN_HASH_MAX];
    char node[NAME_MAX_LEN + 1];  /* "": any that is not there yet */
    char group[NAME_MAX_LEN + 1]; /* "": as it is, or default */
    char by[NAME_MAX_LEN + 1];    /* who made it */
    uint64_t until_usec;
};

struct identity {
    char node[NAME_MAX_LEN + 1];
    char mark[UUID_TEXT_LEN + 1];
    uint64_t joined_usec;
    uint64_t until_usec; /* end of its last certificate */
};

int joins_load(struct manager *m, struct err *err);
void joins_done(struct manager *m);
/* Forget invites whose time is over. */
void joins_tick(struct manager *m, uint64_t now_usec);
/* A new authority: no certificate is good any more. Durable when it returns. */
int joins_new_authority(struct manager *m, struct err *err);

/* text is shown once. */
struct invite *invite_new(
    struct manager *m, const struct invite *wanted, char text[TOKEN_TEXT_MAX]);
void invite_forget(struct manager *m, struct invite *i);

/* Stage identity as it is now. */
void identity_save(struct manager *m, const struct identity *id);
/* A new mark for the node, staged: certificates of before are refused. */
struct identity *identity_new(
    struct manager *m, const char *node, const char *mark, uint64_t until_usec);
/* False when there was none. */
bool identity_forget(struct manager *m, const char *node);
/* Take its identity away, and close what it has open: at once. False when it had none. */
bool node_cut_off(struct manager *m, struct mnode *n, const char *why);
/* {"joined", "until"}, or null. */
json_t *node_certificate_json(const struct manager *m, const char *node);

/* Who asks on a route of agents: fills c->node, or answers itself and returns false. */
bool call_admit_agent(struct call *c);
/* May who asked with this name ("" by the token) speak for the node? The token may not for nodes
 * that have certificates. */
bool joins_speaks_for(const struct manager *m, const char *as, const char *node);

#endif
