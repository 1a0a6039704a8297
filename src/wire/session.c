/* Sessions as the store keeps them. */
#include "wire/session.h"

#include "model/depend.h"
#include "model/node.h"
#include "wire/tables.h"

#define KEY_BYTES_MAX (16 * 1024)

static const struct field mount_fields[] = {
    F_NAME(struct session_mount, volume),
    F_PATH(struct session_mount, path),
    F_BOOL(struct session_mount, read_only),
    F_END,
};

static const struct field container_fields[] = {
    F_UUID(struct container, id),
    F_NAME(struct container, name),
    F_U32(struct container, rank, SESSION_SIZE_MAX - 1),
    F_NAME(struct container, node, .empty_ok = true),
    F_INDEXES(struct container, gpus, gpu_count, NODE_GPUS_MAX),
    F_IPV4(struct container, ip),
    F_WORD(struct container, state, container_state_words),
    F_WORD(struct container, end, container_end_words),
    F_INT(struct container, exit_code),
    F_U64(struct container, started_usec, USEC_MAX),
    F_U64(struct container, ended_usec, USEC_MAX),
    F_TEXT(struct container, text),
    F_END,
};

/* size is how many containers there are. */
static const struct field session_fields[] = {
    F_UUID(struct session, id),
    F_U64(struct session, num, INT64_MAX),
    F_NAME(struct session, name),
    F_NAME(struct session, owner),
    F_WORD(struct session, kind, session_kind_words),
    F_WORD(struct session, mode, session_mode_words),
    F_STRUCT(struct session, each, resources_fields),
    F_TEXT(struct session, gpu_model),
    F_U64(struct session, shm, BYTES_MAX),
    F_NAME(struct session, group),
    F_TEXT(struct session, image),
    F_TEXT(struct session, image_id),
    F_STRV(struct session, command, SESSION_COMMAND_MAX),
    F_STRV(struct session, env, SESSION_ENV_MAX),
    F_PATH(struct session, workdir, .empty_ok = true),
    F_LIST(struct session, mounts, mount_count, mount_fields, SESSION_MOUNTS_MAX),
    F_U64(struct session, time_limit_usec, USEC_MAX),
    F_U64(struct session, grace_usec, USEC_MAX),
    F_WORD(struct session, on, session_on_words),
    F_WORD(struct session, on_failure, session_on_failure_words),
    F_U32(struct session, switches, UINT16_MAX, .optional = true),
    F_U64(struct session, switch_wait_usec, USEC_MAX, .optional = true),
    F_INT(struct session, nice, .optional = true),
    F_U64(struct session, begin_usec, USEC_MAX, .optional = true),
    F_U64(struct session, finish_usec, USEC_MAX, .optional = true),
    F_WORD(struct session, hold, session_hold_words, .optional = true),
    F_STRV(struct session, depends, DEPENDS_MAX, .optional = true),
    F_TEXT(struct session, account, .optional = true),
    F_WORD(struct session, qos, session_qos_words, .optional = true),
    F_BOOL(struct session, spot, .optional = true),
    F_BOOL(struct session, requeue, .optional = true),
    F_U32(struct session, retry_max, SESSION_RETRY_MAX, .optional = true),
    F_U32(struct session, retry_on, RETRY_ALL, .optional = true),
    F_U64(struct session, lease_notice_usec, USEC_MAX, .optional = true),
    F_U32(struct session, retried, SESSION_RETRY_MAX, .optional = true),
    F_U64(struct session, claimed_usec, USEC_MAX, .optional = true),
    F_U64(struct session, leaves_for, UINT64_MAX, .optional = true),
    F_U64(struct session, preempt_at_usec, USEC_MAX, .optional = true),
    F_U64(struct session, estimate_usec, USEC_MAX, .optional = true),
    F_WORD(struct session, state, session_state_words),
    F_WORD(struct session, result, session_result_words),
    F_BOOL(struct session, has_command),
    F_BOOL(struct session, stop_now),
    F_U32(struct session, attempt, UINT32_MAX),
    F_TEXT(struct session, reason_code),
    F_TEXT(struct session, reason),
    F_U64(struct session, submitted_usec, USEC_MAX),
    F_U64(struct session, placed_usec, USEC_MAX),
    F_U64(struct session, started_usec, USEC_MAX),
    F_U64(struct session, ended_usec, USEC_MAX),
    F_U64(struct session, state_usec, USEC_MAX),
    F_U64(struct session, deadline_usec, USEC_MAX),
    F_INT(struct session, exit_code),
    F_WORD(struct session, placed_mode, session_mode_words),
    F_LIST(struct session, containers, size, container_fields, SESSION_SIZE_MAX),
    F_HEAP(struct session, ssh_private, KEY_BYTES_MAX),
    F_HEAP(struct session, ssh_public, KEY_BYTES_MAX),
    F_HEAP(struct session, ssh_host_private, KEY_BYTES_MAX),
    F_HEAP(struct session, ssh_host_public, KEY_BYTES_MAX),
    F_U32(struct session, vni, 0xffffff),
    F_IPV4(struct session, subnet),
    F_U16(struct session, master_port),
    F_END,
};

json_t *session_to_json_stored(const struct session *s)
{
    assert(s->containers && s->size > 0);
    return fields_to_json(session_fields, s);
}

static int check_containers(const struct session *s, struct err *err)
{
    char name[16];

    if (s->size == 0)
        return err_set(err, -EINVAL, "'containers' must have an entry");
    for (uint32_t i = 0; i < s->size; i++) {
        container_name_make(i, name);
        if (s->containers[i].rank != i || !str_eq(s->containers[i].name, name))
            return err_set(err, -EINVAL, "containers[%u]: must be '%s' of rank %u", i, name, i);
    }
    return 0;
}

int session_from_json_stored(const json_t *j, struct session **ret, struct err *err)
{
    _cleanup_(session_freep) struct session *s = session_new();
    int r;

    r = fields_read(session_fields, j, s, err);
    if (r >= 0)
        r = check_containers(s, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(s);
    return 0;
}
