/* What the API shows, as files that a reader of the API can look at. */
#include "base/strv.h"
#include "support/cm.h"
#include "support/golden.h"
#include "wire/node.h"
#include "wire/session.h"
#include "wire/user.h"

#define SECOND UINT64_C(1000000)
#define NOW (UINT64_C(1796057206) * SECOND)

static void check(json_t *doc, const char *name)
{
    _cleanup_(json_decrefp) json_t *owned = doc;
    _cleanup_free_ char *text = json_dumps(owned, JSON_INDENT(2)), *line = NULL;

    line = xasprintf("%s\n", text);
    assert_true(golden_equals(GOLDEN_DIR, name, line));
}

static struct session *running(void)
{
    struct session *s = session_new();
    static const uint32_t gpus[] = {0, 3};

    STR_SET(s->id, "6b3c3a52-0c8e-4a35-9e0e-0d6a4dc1a111");
    s->num = 42;
    STR_SET(s->name, "train-7b");
    STR_SET(s->owner, "alice");
    s->kind = KIND_TRAIN;
    s->mode = s->placed_mode = MODE_MULTI_NODE;
    s->size = 2;
    s->each = (struct resources){.cpu_milli = 2500, .mem = UINT64_C(4) << 30, .gpus = 2};
    STR_SET(s->gpu_model, "h100");
    s->shm = 64 << 20;
    STR_SET(s->group, "default");
    STR_SET(s->image, "torch:2.3");
    STR_SET(s->image_id, "sha256:abc");
    strv_push(&s->command, "python");
    strv_push(&s->command, "train.py");
    strv_push(&s->env, "LR=1e-3");
    strv_push(&s->env, "EXPR=a=b");
    s->mounts = xnew(struct session_mount);
    s->mount_count = 1;
    STR_SET(s->mounts[0].volume, "data");
    STR_SET(s->mounts[0].path, "/data");
    s->mounts[0].read_only = true;
    s->time_limit_usec = 3600 * SECOND;
    s->grace_usec = 30 * SECOND;
    s->state = SESSION_RUNNING;
    s->attempt = 1;
    s->submitted_usec = NOW;
    s->placed_usec = NOW + SECOND;
    s->started_usec = s->state_usec = NOW + 2 * SECOND;
    s->ssh_private = xstrdup("SECRET");
    s->ssh_host_private = xstrdup("SECRET");
    s->vni = 0x123456;
    s->master_port = 29613;
    session_make_containers(s);
    STR_SET(s->containers[1].id, "6b3c3a52-0c8e-4a35-9e0e-0d6a4dc1a112");
    for (uint32_t i = 0; i < 2; i++) {
        struct container *c = &s->containers[i];

        snprintf(c->node, sizeof(c->node), "n%u", i + 1);
        c->gpus = xmemdup(gpus, sizeof(gpus));
        c->gpu_count = 2;
        c->ip = 0x0a800002 + i;
        c->state = CONTAINER_RUNNING;
        c->started_usec = NOW + 2 * SECOND;
    }
    return s;
}

static void a_running_session_is_shown_without_secrets(void **state)
{
    _cleanup_(session_freep) struct session *s = running();
    _cleanup_(json_decrefp) json_t *doc = session_to_json_public(s);
    _cleanup_free_ char *text = json_text(doc);

    assert_null(strstr(text, "SECRET"));
    check(session_to_json_public(s), "session-running.json");
}

static void an_ended_session_shows_how(void **state)
{
    _cleanup_(session_freep) struct session *s = running();

    s->state = SESSION_ENDED;
    s->result = RESULT_FAILED;
    s->exit_code = 3;
    STR_SET(s->reason_code, "container_exited");
    STR_SET(s->reason, "main1 exited with 3");
    s->ended_usec = s->state_usec = NOW + 60 * SECOND;
    s->containers[0].state = s->containers[1].state = CONTAINER_REMOVED;
    s->containers[0].end = END_EXIT;
    s->containers[0].exit_code = 3;
    s->containers[1].end = END_STOPPED;
    s->containers[0].ended_usec = s->containers[1].ended_usec = NOW + 59 * SECOND;
    check(session_to_json_public(s), "session-ended.json");
}

static void a_pending_session_shows_what_it_waits_for(void **state)
{
    _cleanup_(session_freep) struct session *s = session_new();

    STR_SET(s->id, "6b3c3a52-0c8e-4a35-9e0e-0d6a4dc1a111");
    s->num = 1;
    STR_SET(s->name, "try");
    STR_SET(s->owner, "bob");
    s->size = 1;
    s->mode = MODE_MULTI_NODE;
    s->each = (struct resources){.cpu_milli = 1000, .mem = UINT64_C(2) << 30};
    STR_SET(s->group, "default");
    STR_SET(s->image, "base");
    s->submitted_usec = s->state_usec = NOW;
    STR_SET(s->reason_code, "resources");
    STR_SET(s->reason, "needs 1 CPU, 2 GiB; no node of group 'default' has room for it now");
    session_make_containers(s);
    check(session_to_json_public(s), "session-pending.json");
}

static void a_total_is_more_than_one_container_can_count(void **state)
{
    _cleanup_(session_freep) struct session *s = session_new();
    _cleanup_(json_decrefp) json_t *doc = NULL;
    json_t *total;

    s->size = 1000;
    s->each.cpu_milli = 4096 * 1000 + 500;
    doc = session_to_json_public(s);
    total = json_object_get(json_object_get(doc, "resources"), "total");
    assert_true(json_number_value(json_object_get(total, "cpus")) == 4096500);
}

static void nodes_groups_and_users_are_shown(void **state)
{
    struct gpu gpu = {
        .index = 0, .model = "h100", .uuid = "GPU-0", .mem = UINT64_C(80) << 30, .healthy = true};
    struct node n = {.name = "n1",
        .group = "default",
        .gpus = &gpu,
        .addr_mgmt = "10.0.0.1",
        .addr_fabric = "10.1.0.1",
        .fabric_mtu = 9000,
        .leaf = "leaf1",
        .spine = "spine1",
        .version = "0.1.0",
        .seen_usec = NOW,
        .boot_id = "6b3c3a52-0c8e-4a35-9e0e-0d6a4dc1a111",
        .capacity = {.cpu_milli = 7500, .mem = UINT64_C(32) << 30, .gpus = 1}};
    struct group g = {.name = "default",
        .time_max_usec = 86400 * SECOND,
        .allow_debug = true,
        .allow_train = true};
    struct user u = {.name = "alice", .role = ROLE_USER, .uid = 20001, .sub_base = 0x10000000};

    check(node_to_json_public(&n), "node.json");
    check(group_to_json_public(&g), "group.json");
    check(user_to_json_public(&u), "user.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_session_is_shown_without_secrets),
        cmocka_unit_test(an_ended_session_shows_how),
        cmocka_unit_test(a_pending_session_shows_what_it_waits_for),
        cmocka_unit_test(a_total_is_more_than_one_container_can_count),
        cmocka_unit_test(nodes_groups_and_users_are_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
