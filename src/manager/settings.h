/*
 * What an administrator sets while the cluster runs: the scheduler's policy, and which node hangs
 * on which switch. Each is one document of the store.
 */
#ifndef MANAGER_SETTINGS_H
#define MANAGER_SETTINGS_H

#include "manager/manager.h"
#include "store/store.h"

/* From the store, once, before nodes are loaded. */
int settings_load(
    struct manager *m, const json_t *body, const struct store_doc *doc, struct err *err);
void settings_done(struct manager *m);

json_t *settings_policy_json(const struct manager *m);
/* Change the knobs that body has, all or none, and save. -EINVAL, -ERANGE. */
int settings_policy_change(struct manager *m, const json_t *body, struct err *err);

/* The text as it was given; "" for none. */
const char *settings_topology(const struct manager *m);
/* -EINVAL "line 3: ...". Nodes know their switches then; saved. */
int settings_topology_set(struct manager *m, const char *text, struct err *err);
/* A node is new, or the topology is: set its switches. True when that changed something. */
bool settings_place_node(const struct manager *m, struct node *n);

#endif
