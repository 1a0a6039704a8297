/* What the store keeps comes back exactly, and what it should not hold is refused. */
#include "base/strv.h"
#include "samples.h"
#include "support/cm.h"
#include "wire/node.h"
#include "wire/session.h"
#include "wire/user.h"

#define MAX (4 << 20)

static json_t *parse(const char *text)
{
    json_t *j = NULL;

    assert_works(json_parse(text, strlen(text), MAX, &j, &err));
    return j;
}

static void same_strv(char *const *a, char *const *b)
{
    assert_int_equal(a == NULL, b == NULL);
    assert_int_equal(strv_len(a), strv_len(b));
    for (size_t i = 0; a && a[i]; i++)
        assert_string_equal(a[i], b[i]);
}

static void same_text(const char *a, const char *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a)
        assert_string_equal(a, b);
}

static void same_containers(const struct session *a, const struct session *b)
{
    for (uint32_t i = 0; i < a->size; i++) {
        struct container x = a->containers[i], y = b->containers[i];

        assert_int_equal(x.gpu_count, y.gpu_count);
        if (x.gpu_count)
            assert_memory_equal(x.gpus, y.gpus, x.gpu_count * sizeof(*x.gpus));
        x.gpus = y.gpus = NULL;
        /* Field by field: what lies behind a text's end may differ. */
        assert_string_equal(x.id, y.id);
        assert_string_equal(x.name, y.name);
        assert_string_equal(x.node, y.node);
        assert_string_equal(x.text, y.text);
        assert_int_equal(x.rank, y.rank);
        assert_int_equal(x.ip, y.ip);
        assert_int_equal(x.state, y.state);
        assert_int_equal(x.end, y.end);
        assert_int_equal(x.exit_code, y.exit_code);
        assert_int_equal(x.started_usec, y.started_usec);
        assert_int_equal(x.ended_usec, y.ended_usec);
    }
}

static void same_asked(const struct session *a, const struct session *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->mode, b->mode);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->each.cpu_milli, b->each.cpu_milli);
    assert_int_equal(a->each.gpus, b->each.gpus);
    assert_int_equal(a->each.mem, b->each.mem);
    assert_string_equal(a->gpu_model, b->gpu_model);
    assert_int_equal(a->shm, b->shm);
    assert_string_equal(a->group, b->group);
    assert_string_equal(a->image, b->image);
    assert_string_equal(a->image_id, b->image_id);
    same_strv(a->command, b->command);
    same_strv(a->env, b->env);
    assert_string_equal(a->workdir, b->workdir);
    assert_int_equal(a->mount_count, b->mount_count);
    for (uint32_t i = 0; i < a->mount_count; i++) {
        assert_string_equal(a->mounts[i].volume, b->mounts[i].volume);
        assert_string_equal(a->mounts[i].path, b->mounts[i].path);
        assert_int_equal(a->mounts[i].read_only, b->mounts[i].read_only);
    }
    assert_int_equal(a->time_limit_usec, b->time_limit_usec);
    assert_int_equal(a->grace_usec, b->grace_usec);
    assert_int_equal(a->on, b->on);
    assert_int_equal(a->on_failure, b->on_failure);
    assert_int_equal(strv_len(a->depends), strv_len(b->depends));
    for (size_t i = 0; i < strv_len(a->depends); i++)
        assert_string_equal(a->depends[i], b->depends[i]);
    assert_string_equal(a->account, b->account);
    assert_int_equal(a->qos, b->qos);
    assert_int_equal(a->retry_max, b->retry_max);
    assert_int_equal(a->retry_on, b->retry_on);
    assert_int_equal(a->retried, b->retried);
    assert_int_equal(a->spot, b->spot);
    assert_int_equal(a->requeue, b->requeue);
    assert_int_equal(a->claimed_usec, b->claimed_usec);
    assert_int_equal(a->leaves_for, b->leaves_for);
    assert_int_equal(a->preempt_at_usec, b->preempt_at_usec);
    assert_int_equal(a->estimate_usec, b->estimate_usec);
    assert_int_equal(a->switches, b->switches);
    assert_int_equal(a->switch_wait_usec, b->switch_wait_usec);
    assert_int_equal(a->nice, b->nice);
    assert_int_equal(a->begin_usec, b->begin_usec);
    assert_int_equal(a->finish_usec, b->finish_usec);
    assert_int_equal(a->hold, b->hold);
}

static void same_session(const struct session *a, const struct session *b)
{
    assert_string_equal(a->id, b->id);
    assert_int_equal(a->num, b->num);
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->owner, b->owner);
    same_asked(a, b);
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->result, b->result);
    assert_int_equal(a->attempt, b->attempt);
    assert_string_equal(a->reason_code, b->reason_code);
    assert_string_equal(a->reason, b->reason);
    assert_int_equal(a->submitted_usec, b->submitted_usec);
    assert_int_equal(a->placed_usec, b->placed_usec);
    assert_int_equal(a->started_usec, b->started_usec);
    assert_int_equal(a->ended_usec, b->ended_usec);
    assert_int_equal(a->state_usec, b->state_usec);
    assert_int_equal(a->deadline_usec, b->deadline_usec);
    assert_int_equal(a->exit_code, b->exit_code);
    assert_int_equal(a->placed_mode, b->placed_mode);
    same_containers(a, b);
    same_text(a->ssh_private, b->ssh_private);
    same_text(a->ssh_public, b->ssh_public);
    same_text(a->ssh_host_private, b->ssh_host_private);
    same_text(a->ssh_host_public, b->ssh_host_public);
    assert_int_equal(a->vni, b->vni);
    assert_int_equal(a->subnet, b->subnet);
    assert_int_equal(a->master_port, b->master_port);
}

static void a_stored_session_comes_back_exactly(void **state)
{
    struct prng p = {prng_seed("stored sessions")};

    for (int i = 0; i < 300; i++) {
        _cleanup_(session_freep) struct session *s = sample_session(&p), *back = NULL;
        _cleanup_(json_decrefp) json_t *out = session_to_json_stored(s), *in = NULL;
        _cleanup_free_ char *text = json_text(out);

        in = parse(text);
        assert_works(session_from_json_stored(in, &back, &err));
        same_session(s, back);
    }
}

/* snprintf cuts bytes, not characters; such a session must not be lost with the next start. */
static void a_text_cut_within_a_character_is_still_read(void **state)
{
    _cleanup_(session_freep) struct session *s = NULL, *back = NULL;
    _cleanup_(json_decrefp) json_t *out = NULL;
    struct prng p = {1};

    s = sample_session(&p);
    memset(s->reason, 'x', sizeof(s->reason) - 1);
    s->reason[sizeof(s->reason) - 2] = '\xed';
    s->reason[sizeof(s->reason) - 1] = '\0';
    out = session_to_json_stored(s);
    assert_works(session_from_json_stored(out, &back, &err));
    assert_int_equal(strlen(back->reason), sizeof(s->reason) - 1);
    assert_int_equal(back->reason[sizeof(s->reason) - 2], '?');
}

static void check_broken(const char *key, const char *value, const char *want)
{
    _cleanup_(session_freep) struct session *s = NULL, *back = NULL;
    _cleanup_(json_decrefp) json_t *out = NULL;
    struct prng p = {2};

    s = sample_session(&p);
    out = session_to_json_stored(s);
    if (value)
        json_object_set_new(out, key, parse(value));
    else
        json_object_del(out, key);
    assert_fails(session_from_json_stored(out, &back, &err), -EINVAL, want);
    assert_null(back);
}

static void a_broken_stored_session_is_refused(void **state)
{
    check_broken("id", "\"x\"", "'id' must be a UUID");
    check_broken("num", NULL, "'num' is missing");
    check_broken("num", "-1", "'num' must be a whole number from 0 to 9223372036854775807");
    check_broken("name", "\"a/b\"", "'name' 'a/b' may have only letters, digits, '-', '_' and '.'");
    check_broken("state", "\"sleeping\"", "'state' cannot be 'sleeping'");
    check_broken("state", "3", "'state' must be a string");
    check_broken("containers", "[]", "'containers' must have an entry");
    check_broken("containers", "[{}]", "containers[0]: 'id' is missing");
    check_broken("containers", "{}", "'containers' must be a list");
    check_broken("each", "{\"cpu_milli\": 1}", "each: 'gpus' is missing");
    check_broken("exit_code", "4294967296", "'exit_code' must be a whole number of 32 bits");
    check_broken("command", "[1]", "'command[0]' must be a string");
    check_broken("vni", "16777216", "'vni' must be a whole number from 0 to 16777215");
    check_broken("master_port", "65536", "'master_port' must be a whole number from 0 to 65535");
    check_broken("subnet", "\"10.0.0\"", "'subnet' must be an IPv4 address");
}

static void a_stored_node_comes_back_exactly(void **state)
{
    struct gpu gpus[2] = {
        {.index = 0, .model = "h100", .uuid = "GPU-0", .mem = 80, .healthy = true},
        {.index = 1, .model = "a100", .uuid = "GPU-1"}};
    struct node n = {.name = "n1",
        .group = "default",
        .state = NODE_UNREACHABLE,
        .drained = true,
        .drain_from_usec = 77,
        .drain_reason = "fan",
        .capacity = {.cpu_milli = 8000, .mem = 1 << 30, .gpus = 2},
        .gpus = gpus,
        .addr_mgmt = "10.0.0.1",
        .addr_fabric = "fd00::1",
        .fabric_mtu = 9000,
        .leaf = "leaf1",
        .spine = "spine1",
        .boot_id = "6b3c3a52-0c8e-4a35-9e0e-0d6a4dc1a111",
        .version = "0.1.0",
        .seen_usec = 123456};
    _cleanup_(json_decrefp) json_t *out = node_to_json_stored(&n);
    _cleanup_(node_done) struct node back = {0};

    assert_works(node_from_json_stored(out, &back, &err));
    assert_string_equal(back.name, n.name);
    assert_string_equal(back.group, n.group);
    assert_int_equal(back.state, n.state);
    assert_true(back.drained);
    assert_int_equal(back.drain_from_usec, n.drain_from_usec);
    assert_string_equal(back.drain_reason, n.drain_reason);
    assert_int_equal(back.capacity.cpu_milli, 8000);
    assert_int_equal(back.capacity.mem, 1 << 30);
    assert_int_equal(back.capacity.gpus, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(back.gpus[i].index, i);
        assert_string_equal(back.gpus[i].model, gpus[i].model);
        assert_string_equal(back.gpus[i].uuid, gpus[i].uuid);
        assert_int_equal(back.gpus[i].mem, gpus[i].mem);
        assert_int_equal(back.gpus[i].healthy, gpus[i].healthy);
    }
    assert_string_equal(back.addr_mgmt, n.addr_mgmt);
    assert_string_equal(back.addr_fabric, n.addr_fabric);
    assert_int_equal(back.fabric_mtu, n.fabric_mtu);
    assert_string_equal(back.leaf, n.leaf);
    assert_string_equal(back.spine, n.spine);
    assert_string_equal(back.boot_id, n.boot_id);
    assert_string_equal(back.version, n.version);
    assert_int_equal(back.seen_usec, n.seen_usec);
}

static void stored_groups_and_users_come_back_exactly(void **state)
{
    struct group g = {.name = "big",
        .time_default_usec = 1,
        .time_max_usec = 2,
        .size_max = 3,
        .allow_train = true};
    struct user u = {
        .name = "alice", .role = ROLE_ADMIN, .uid = 1234, .sub_base = 65536 * 2, .disabled = true};
    _cleanup_(json_decrefp) json_t *group = group_to_json_stored(&g);
    _cleanup_(json_decrefp) json_t *user = user_to_json_stored(&u);
    struct group group_back;
    struct user user_back;

    assert_works(group_from_json_stored(group, &group_back, &err));
    assert_string_equal(group_back.name, g.name);
    assert_int_equal(group_back.time_default_usec, 1);
    assert_int_equal(group_back.time_max_usec, 2);
    assert_int_equal(group_back.size_max, 3);
    assert_false(group_back.allow_debug);
    assert_true(group_back.allow_train);
    assert_works(user_from_json_stored(user, &user_back, &err));
    assert_string_equal(user_back.name, u.name);
    assert_int_equal(user_back.role, ROLE_ADMIN);
    assert_int_equal(user_back.uid, 1234);
    assert_int_equal(user_back.sub_base, 65536 * 2);
    assert_true(user_back.disabled);
    json_object_set_new(user, "uid", json_integer(0));
    assert_fails(user_from_json_stored(user, &user_back, &err), -EINVAL,
        "user 'alice': uid must be 1000 or higher, not 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stored_session_comes_back_exactly),
        cmocka_unit_test(a_text_cut_within_a_character_is_still_read),
        cmocka_unit_test(a_broken_stored_session_is_refused),
        cmocka_unit_test(a_stored_node_comes_back_exactly),
        cmocka_unit_test(stored_groups_and_users_come_back_exactly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
