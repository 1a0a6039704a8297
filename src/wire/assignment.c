/*
 * Orders and reports. The tables say what each member may be; what has to agree between members is
 * checked below them, so that the agent can use an assignment without looking again.
 */
#include "wire/assignment.h"

#include "base/strv.h"
#include "model/node.h"
#include "wire/tables.h"

#define KEY_BYTES_MAX (16 * 1024)
#define FILE_BYTES_MAX (128 * 1024)
#define LAYERS_MAX 500 /* overlayfs takes no more */
#define GRACE_USEC_MAX (UINT64_C(3600) * 1000000)
#define SUBNET_MASK UINT32_C(0xfffffc00) /* /22 */
#define VNI_MAX 0xffffff
static_assert(
    CONTAINER_ENV_BYTES_MAX <= STRV_BYTES_MAX && CONTAINER_COMMAND_BYTES_MAX <= STRV_BYTES_MAX,
    "the manager refuses what is more");

static const char *const phase_list[] = {"prepare", "run", "stop"};
const struct words phase_words = {phase_list, ARRAY_LEN(phase_list)};

static const struct field mount_fields[] = {
    F_HEAP_PATH(struct assigned_mount, source, PATH_TEXT_MAX),
    F_HEAP_PATH(struct assigned_mount, target, PATH_TEXT_MAX),
    F_BOOL(struct assigned_mount, read_only),
    F_END,
};

static const struct field layer_fields[] = {
    F_DIGEST(struct assigned_layer, digest),
    F_U64(struct assigned_layer, size, BYTES_MAX),
    F_END,
};

static const struct field container_fields[] = {
    F_UUID(struct assigned_container, id),
    F_NAME(struct assigned_container, name),
    F_U32(struct assigned_container, rank, SESSION_SIZE_MAX - 1),
    F_INDEXES(struct assigned_container, gpus, gpu_count, NODE_GPUS_MAX),
    F_STRV(struct assigned_container, env, CONTAINER_ENV_MAX),
    F_STRV(struct assigned_container, command, SESSION_COMMAND_MAX),
    F_END,
};

static const struct field peer_fields[] = {
    F_NAME(struct assigned_peer, name),
    F_IPV4(struct assigned_peer, ip),
    F_NAME(struct assigned_peer, node),
    F_ADDRESS(struct assigned_peer, fabric),
    F_END,
};

static const struct field assignment_fields[] = {
    F_UUID(struct assignment, cluster),
    F_U64(struct assignment, epoch, INT64_MAX),
    F_UUID(struct assignment, incarnation),
    F_U64(struct assignment, revision, INT64_MAX),
    F_UUID(struct assignment, boot_id),
    F_UUID(struct assignment, session),
    F_U64(struct assignment, num, INT64_MAX),
    F_U32(struct assignment, attempt, UINT32_MAX),
    F_WORD(struct assignment, phase, phase_words),
    F_TEXT(struct assignment, stop_reason),
    F_BOOL(struct assignment, kill_now),
    F_STRUCT(struct assignment, user, user_fields),
    F_WORD(struct assignment, kind, session_kind_words),
    F_STRUCT(struct assignment, each, resources_fields),
    F_U64(struct assignment, shm, BYTES_MAX),
    F_U64(struct assignment, grace_usec, GRACE_USEC_MAX),
    F_U32(struct assignment, stop_signal, 64, .min = 1),
    F_PATH(struct assignment, workdir, .empty_ok = true),
    F_LIST(struct assignment, mounts, mount_count, mount_fields, SESSION_MOUNTS_MAX),
    F_TEXT(struct assignment, image_id),
    F_LIST(struct assignment, layers, layer_count, layer_fields, LAYERS_MAX),
    F_IPV4(struct assignment, subnet),
    F_U32(struct assignment, vni, VNI_MAX),
    F_LIST(struct assignment, peers, peer_count, peer_fields, SESSION_SIZE_MAX),
    F_HEAP(struct assignment, ssh_private, KEY_BYTES_MAX),
    F_HEAP(struct assignment, ssh_public, KEY_BYTES_MAX),
    F_HEAP(struct assignment, ssh_host_private, KEY_BYTES_MAX),
    F_HEAP(struct assignment, ssh_host_public, KEY_BYTES_MAX),
    F_HEAP(struct assignment, hosts, FILE_BYTES_MAX),
    F_HEAP(struct assignment, hostfile, FILE_BYTES_MAX),
    F_LIST(struct assignment, containers, container_count, container_fields, SESSION_SIZE_MAX),
    F_END,
};

const struct field report_fields[] = {
    F_UUID(struct report, session),
    F_UUID(struct report, container),
    F_NAME(struct report, name),
    F_U32(struct report, attempt, UINT32_MAX),
    F_WORD(struct report, state, container_state_words),
    F_WORD(struct report, end, container_end_words),
    F_INT(struct report, exit_code),
    F_U64(struct report, started_usec, USEC_MAX),
    F_U64(struct report, ended_usec, USEC_MAX),
    F_TEXT(struct report, text),
    F_END,
};

/* The kernel would take an entry without '=' as well; what is in here should be a variable. */
static int check_env(char *const *env, struct err *err)
{
    for (; env && *env; env++)
        if (!strchr(*env, '=') || **env == '=')
            return err_set(err, -EINVAL, "'env' has an entry that is no NAME=VALUE");
    return 0;
}

static int check_container(
    const struct assignment *a, const struct assigned_container *c, struct err *err)
{
    char name[16];

    if (c->rank >= a->peer_count)
        return err_set(
            err, -EINVAL, "'rank' %u has no peer entry (there are %u)", c->rank, a->peer_count);
    container_name_make(c->rank, name);
    if (!str_eq(name, c->name))
        return err_set(err, -EINVAL, "'name' of rank %u must be '%s'", c->rank, name);
    if (c->gpu_count != a->each.gpus)
        return err_set(
            err, -EINVAL, "'gpus' must be %u, as 'each' says, not %u", a->each.gpus, c->gpu_count);
    if (c->command && !c->command[0])
        return err_set(err, -EINVAL, "'command' must be null or have a word");
    return check_env(c->env, err);
}

/* GPUs of this node that an earlier container has got already. */
static int check_containers(const struct assignment *a, struct err *err)
{
    uint64_t taken = 0, own;
    int r;

    for (uint32_t i = 0; i < a->container_count; i++) {
        const struct assigned_container *c = &a->containers[i];

        r = check_container(a, c, err);
        if (r < 0) {
            err_prefix(err, "containers[%u]", i);
            return r;
        }
        if (i > 0 && c->rank <= c[-1].rank)
            return err_set(err, -EINVAL, "containers[%u]: they must be in order of rank", i);
        own = 0;
        for (uint32_t k = 0; k < c->gpu_count; k++)
            own |= UINT64_C(1) << c->gpus[k];
        if (own & taken)
            return err_set(err, -EINVAL, "containers[%u]: has a GPU that another one has", i);
        taken |= own;
    }
    return 0;
}

static int check_peers(const struct assignment *a, struct err *err)
{
    char name[16];

    if (a->peer_count == 0)
        return err_set(err, -EINVAL, "'peers' must have an entry for each container");
    if (a->subnet & ~SUBNET_MASK)
        return err_set(err, -EINVAL, "'subnet' must be the address of a /22");
    for (uint32_t i = 0; i < a->peer_count; i++) {
        container_name_make(i, name);
        if (!str_eq(name, a->peers[i].name))
            return err_set(err, -EINVAL, "peers[%u]: 'name' must be '%s'", i, name);
        if ((a->peers[i].ip & SUBNET_MASK) != a->subnet)
            return err_set(err, -EINVAL, "peers[%u]: 'ip' lies outside 'subnet'", i);
        for (uint32_t k = 0; k < i; k++)
            if (a->peers[k].ip == a->peers[i].ip)
                return err_set(err, -EINVAL, "peers[%u]: 'ip' is taken by peers[%u]", i, k);
    }
    return 0;
}

/* The image "host" has no layers: it is the node's own root. */
static int check_image(const struct assignment *a, struct err *err)
{
    if (str_eq(a->image_id, "host"))
        return a->layer_count == 0
            ? 0
            : err_set(err, -EINVAL, "'layers' must be empty for the image 'host'");
    if (!digest_is_valid(a->image_id))
        return err_set(err, -EINVAL, "'image_id' must be 'host', or 'sha256:' and 64 hex digits");
    if (a->layer_count == 0)
        return err_set(err, -EINVAL, "'layers' must have at least one entry");
    return 0;
}

static int assignment_check(const struct assignment *a, struct err *err)
{
    int r = user_check(&a->user, err);

    if (r >= 0)
        r = check_image(a, err);
    if (r >= 0)
        r = check_peers(a, err);
    return r < 0 ? r : check_containers(a, err);
}

void assignment_free(struct assignment *a)
{
    if (!a)
        return;
    fields_done(assignment_fields, a);
    free(a);
}

void assignment_freep(struct assignment **a)
{
    assignment_free(*a);
}

json_t *assignment_to_json(const struct assignment *a)
{
    return fields_to_json(assignment_fields, a);
}

int assignment_from_json(const json_t *j, struct assignment **ret, struct err *err)
{
    _cleanup_(assignment_freep) struct assignment *a = xnew(struct assignment);
    int r;

    r = fields_read(assignment_fields, j, a, err);
    if (r < 0)
        return r;
    r = assignment_check(a, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(a);
    return 0;
}

json_t *report_to_json(const struct report *r)
{
    return fields_to_json(report_fields, r);
}

int report_from_json(const json_t *j, struct report *r, struct err *err)
{
    struct report report = {0};
    int rc = fields_read(report_fields, j, &report, err);

    if (rc < 0)
        return rc;
    *r = report;
    return 0;
}
