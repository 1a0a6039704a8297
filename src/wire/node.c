/* Nodes and groups as documents. */
#include "wire/node.h"

#include "base/clock.h"
#include "wire/public.h"
#include "wire/tables.h"

const struct field resources_fields[] = {
    F_U32(struct resources, cpu_milli, UINT32_MAX),
    F_U32(struct resources, gpus, UINT32_MAX),
    F_U64(struct resources, mem, BYTES_MAX),
    F_END,
};

const struct field gpu_fields[] = {
    F_U32(struct gpu, index, NODE_GPUS_MAX - 1),
    F_NAME(struct gpu, model),
    F_TEXT(struct gpu, uuid),
    F_U64(struct gpu, mem, BYTES_MAX),
    F_BOOL(struct gpu, healthy),
    F_U32(struct gpu, numa, NODE_GPUS_MAX, .optional = true),
    F_U32(struct gpu, nvlink, NODE_GPUS_MAX, .optional = true),
    F_END,
};

/* struct node counts its GPUs in its capacity. */
static const struct field node_fields[] = {
    F_NAME(struct node, name),
    F_NAME(struct node, group),
    F_WORD(struct node, state, node_state_words),
    F_BOOL(struct node, drained),
    F_U64(struct node, drain_from_usec, USEC_MAX, .optional = true),
    F_TEXT(struct node, drain_reason),
    F_U32(struct node, capacity.cpu_milli, UINT32_MAX),
    F_U64(struct node, capacity.mem, BYTES_MAX),
    F_LIST(struct node, gpus, capacity.gpus, gpu_fields, NODE_GPUS_MAX),
    F_ADDRESS(struct node, addr_mgmt, .empty_ok = true),
    F_ADDRESS(struct node, addr_fabric, .empty_ok = true),
    F_U32(struct node, fabric_mtu, UINT16_MAX),
    F_TEXT(struct node, leaf, .optional = true),
    F_TEXT(struct node, spine, .optional = true),
    F_UUID(struct node, boot_id, .empty_ok = true),
    F_TEXT(struct node, version),
    F_U64(struct node, seen_usec, USEC_MAX),
    F_END,
};

static const struct field group_fields[] = {
    F_NAME(struct group, name),
    F_U64(struct group, time_default_usec, USEC_MAX),
    F_U64(struct group, time_max_usec, USEC_MAX),
    F_U32(struct group, size_max, UINT32_MAX),
    F_BOOL(struct group, allow_debug),
    F_BOOL(struct group, allow_train),
    F_END,
};

json_t *resources_to_json_public(const struct resources *r)
{
    json_t *obj = json_object();

    public_set_cpus(obj, "cpus", r->cpu_milli);
    json_set_u64(obj, "mem", r->mem);
    json_set_u64(obj, "gpus", r->gpus);
    return obj;
}

static json_t *addresses_to_json(const struct node *n)
{
    json_t *obj = json_object();

    public_set_text(obj, "mgmt", n->addr_mgmt);
    public_set_text(obj, "fabric", n->addr_fabric);
    return obj;
}

json_t *node_to_json_public(const struct node *n)
{
    json_t *obj = json_object(), *gpus = json_array();

    for (uint32_t i = 0; i < n->capacity.gpus; i++)
        json_array_append_new(gpus, fields_to_json(gpu_fields, &n->gpus[i]));
    json_set_str(obj, "name", n->name);
    json_set_str(obj, "group", n->group);
    json_set_str(obj, "state", node_state_name(n->state));
    json_set_bool(obj, "drained", n->drained);
    public_set_time(obj, "drain_from", n->drain_from_usec);
    public_set_text(obj, "drain_reason", n->drain_reason);
    json_object_set_new(obj, "capacity", resources_to_json_public(&n->capacity));
    json_object_set_new(obj, "gpus", gpus);
    json_object_set_new(obj, "addr", addresses_to_json(n));
    json_set_u64(obj, "fabric_mtu", n->fabric_mtu);
    public_set_text(obj, "leaf", n->leaf);
    public_set_text(obj, "spine", n->spine);
    public_set_text(obj, "boot_id", n->boot_id);
    public_set_text(obj, "version", n->version);
    public_set_time(obj, "seen", n->seen_usec);
    return obj;
}

json_t *node_to_json_stored(const struct node *n)
{
    return fields_to_json(node_fields, n);
}

int node_from_json_stored(const json_t *j, struct node *ret, struct err *err)
{
    _cleanup_(node_done) struct node n = {0};
    int r = fields_read(node_fields, j, &n, err);

    if (r < 0)
        return r;
    *ret = n;
    n = (struct node){0};
    return 0;
}

json_t *group_to_json_public(const struct group *g)
{
    json_t *obj = json_object();

    json_set_str(obj, "name", g->name);
    public_set_limit(obj, "time_default", g->time_default_usec / USEC_PER_SEC);
    public_set_limit(obj, "time_max", g->time_max_usec / USEC_PER_SEC);
    public_set_limit(obj, "size_max", g->size_max);
    json_set_bool(obj, "allow_debug", g->allow_debug);
    json_set_bool(obj, "allow_train", g->allow_train);
    return obj;
}

json_t *group_to_json_stored(const struct group *g)
{
    return fields_to_json(group_fields, g);
}

int group_from_json_stored(const json_t *j, struct group *ret, struct err *err)
{
    struct group g = {0};
    int r = fields_read(group_fields, j, &g, err);

    if (r < 0)
        return r;
    *ret = g;
    return 0;
}
