/*
 * Sessions as the API shows them. Never in here: keys, the overlay's number, the master port (it is
 * in the environment of those whom it concerns).
 */
#include "model/ip.h"
#include "wire/node.h"
#include "wire/public.h"
#include "wire/session.h"

/* A word, or null for the value that means "none". */
static void set_word(json_t *obj, const char *key, bool is_set, const char *word)
{
    json_set_str(obj, key, is_set ? word : NULL);
}

static void set_exit_code(json_t *obj, bool is_set, int exit_code)
{
    json_object_set_new(obj, "exit_code", is_set ? json_integer(exit_code) : json_null());
}

static json_t *gpus_to_json(const struct container *c)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < c->gpu_count; i++)
        json_array_append_new(list, json_integer(c->gpus[i]));
    return list;
}

static json_t *container_to_json(const struct container *c)
{
    json_t *obj = json_object();
    char ip[IPV4_TEXT_MAX];

    json_set_str(obj, "id", c->id);
    json_set_str(obj, "name", c->name);
    json_set_str(obj, "role", container_is_main(c) ? "main" : "sub");
    json_set_u64(obj, "idx", container_role_idx(c));
    json_set_u64(obj, "rank", c->rank);
    public_set_text(obj, "node", c->node);
    json_object_set_new(obj, "gpus", gpus_to_json(c));
    json_set_str(obj, "ip", c->ip ? ipv4_format(c->ip, ip) : NULL);
    json_set_str(obj, "state", container_state_name(c->state));
    set_word(obj, "end", c->end != END_NONE, container_end_name(c->end));
    set_exit_code(obj, c->end == END_EXIT || c->end == END_SIGNAL, c->exit_code);
    public_set_text(obj, "text", c->text);
    public_set_time(obj, "started", c->started_usec);
    public_set_time(obj, "ended", c->ended_usec);
    return obj;
}

static json_t *containers_to_json(const struct session *s)
{
    json_t *list = json_array();

    for (uint32_t i = 0; s->containers && i < s->size; i++)
        json_array_append_new(list, container_to_json(&s->containers[i]));
    return list;
}

static json_t *total_to_json(const struct session *s)
{
    json_t *obj = json_object();

    /* By itself: a thousand containers may have more thousandths of a CPU than 32 bits. */
    public_set_cpus(obj, "cpus", (uint64_t)s->each.cpu_milli * s->size);
    json_set_u64(obj, "mem", s->each.mem * s->size);
    json_set_u64(obj, "gpus", (uint64_t)s->each.gpus * s->size);
    return obj;
}

static json_t *resources_to_json(const struct session *s)
{
    json_t *obj = json_object();

    json_object_set_new(obj, "each", resources_to_json_public(&s->each));
    json_object_set_new(obj, "total", total_to_json(s));
    public_set_text(obj, "gpu_model", s->gpu_model);
    json_set_u64(obj, "shm", s->shm);
    return obj;
}

static json_t *reason_to_json(const struct session *s)
{
    json_t *obj;

    if (!s->reason_code[0] && !s->reason[0])
        return json_null();
    obj = json_object();
    json_set_str(obj, "code", s->reason_code);
    json_set_str(obj, "text", s->reason);
    return obj;
}

static json_t *env_to_json(const struct session *s)
{
    json_t *obj = json_object();

    for (char *const *entry = s->env; entry && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        _cleanup_free_ char *key = NULL;

        assert(equals); /* session_request_check */
        key = xstrndup(*entry, (size_t)(equals - *entry));
        json_set_str(obj, key, equals + 1);
    }
    return obj;
}

static json_t *mounts_to_json(const struct session *s)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < s->mount_count; i++) {
        json_t *obj = json_object();

        json_set_str(obj, "volume", s->mounts[i].volume);
        json_set_str(obj, "path", s->mounts[i].path);
        json_set_bool(obj, "read_only", s->mounts[i].read_only);
        json_array_append_new(list, obj);
    }
    return list;
}

static json_t *retry_on_json(const struct session *s)
{
    json_t *list = json_array();

    for (uint32_t on = RETRY_NODE_FAIL; s->retry_max && on < RETRY_ALL; on *= 2)
        if (s->retry_on & on)
            json_array_append_new(list, json_string(session_retry_on_name((enum retry_on)on)));
    return list;
}

static void set_asked(json_t *obj, const struct session *s)
{
    json_object_set_new(obj, "resources", resources_to_json(s));
    json_set_str(obj, "group", s->group);
    json_set_str(obj, "image", s->image);
    public_set_text(obj, "image_id", s->image_id);
    if (s->command)
        json_set_strv(obj, "command", s->command);
    else
        json_object_set_new(obj, "command", json_null());
    json_object_set_new(obj, "env", env_to_json(s));
    public_set_text(obj, "workdir", s->workdir);
    json_object_set_new(obj, "mounts", mounts_to_json(s));
    public_set_limit(obj, "time_limit_usec", s->time_limit_usec);
    json_set_u64(obj, "grace_usec", s->grace_usec);
    json_set_str(obj, "on", session_on_name(s->on));
    json_set_str(obj, "on_failure", session_on_failure_name(s->on_failure));
    if (s->depends)
        json_set_strv(obj, "depends", s->depends);
    else
        json_object_set_new(obj, "depends", json_array());
    public_set_text(obj, "account", s->account);
    json_set_str(obj, "qos", session_qos_name(s->qos));
    json_set_bool(obj, "spot", s->spot);
    json_set_bool(obj, "requeue", s->requeue);
    json_set_u64(obj, "retry", s->retry_max);
    json_object_set_new(obj, "retry_on", retry_on_json(s));
    json_set_u64(obj, "retried", s->retried);
    public_set_time(obj, "lease_notice", s->lease_notice_usec);
    public_set_limit(obj, "leaves_for", s->leaves_for);
    public_set_time(obj, "preempt_at", s->preempt_at_usec);
    public_set_limit(obj, "estimate_usec", s->estimate_usec);
    public_set_limit(obj, "switches", s->switches);
    public_set_limit(obj, "switch_wait_usec", s->switches ? s->switch_wait_usec : 0);
    json_object_set_new(obj, "nice", json_integer(s->nice));
    json_set_str(obj, "hold", session_hold_name(s->hold));
    public_set_time(obj, "begin", s->begin_usec);
    public_set_time(obj, "finish_by", s->finish_usec);
}

static void set_course(json_t *obj, const struct session *s)
{
    json_set_u64(obj, "attempt", s->attempt);
    set_exit_code(obj, session_is_over(s) && s->started_usec, s->exit_code);
    public_set_time(obj, "submitted", s->submitted_usec);
    public_set_time(obj, "placed", s->placed_usec);
    public_set_time(obj, "started", s->started_usec);
    public_set_time(obj, "ended", s->ended_usec);
    public_set_time(obj, "state_since", s->state_usec);
    public_set_time(obj, "deadline", s->deadline_usec);
}

json_t *session_to_json_public(const struct session *s)
{
    json_t *obj = json_object();

    json_set_str(obj, "id", s->id);
    json_set_u64(obj, "num", s->num);
    json_set_str(obj, "name", s->name);
    json_set_str(obj, "owner", s->owner);
    json_set_str(obj, "kind", session_kind_name(s->kind));
    json_set_str(obj, "mode", session_mode_name(s->mode));
    set_word(obj, "placed_mode", s->placed_usec, session_mode_name(s->placed_mode));
    json_set_u64(obj, "size", s->size);
    json_set_str(obj, "state", session_state_name(s->state));
    set_word(obj, "result", s->result != RESULT_NONE, session_result_name(s->result));
    json_object_set_new(obj, "reason", reason_to_json(s));
    set_asked(obj, s);
    set_course(obj, s);
    json_object_set_new(obj, "containers", containers_to_json(s));
    return obj;
}
