/* Nodes and groups as documents. */
#ifndef WIRE_NODE_H
#define WIRE_NODE_H

#include "base/json.h"
#include "model/node.h"

/*
 * What the API shows:
 * {"name", "group", "state", "drained", "drain_reason" (null), "capacity": {"cpus", "mem", "gpus"},
 *  "gpus": [{"index", "model", "uuid", "mem", "healthy"}], "addr": {"mgmt", "fabric"},
 *  "fabric_mtu", "boot_id", "version", "seen" (RFC 3339, null when never)}
 * What is free on it is added by the manager, which knows the placements.
 */
json_t *node_to_json_public(const struct node *n);
/* Everything, for the store; exact round trip. ret: zeroed, or ended with node_done before; touched
 * on success only. */
json_t *node_to_json_stored(const struct node *n);
int node_from_json_stored(const json_t *j, struct node *ret, struct err *err);

/*
 * {"name", "time_default", "time_max" (seconds, null: none), "size_max" (null: none),
 *  "allow_debug", "allow_train"}
 */
json_t *group_to_json_public(const struct group *g);
json_t *group_to_json_stored(const struct group *g);
int group_from_json_stored(const json_t *j, struct group *ret, struct err *err);

/* {"cpus": 2 or 0.5, "mem": bytes, "gpus": 1} */
json_t *resources_to_json_public(const struct resources *r);

#endif
