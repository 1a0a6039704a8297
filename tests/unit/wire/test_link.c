/* Messages of the link: round trips, and the refusal of what does not hold together. */
#include "base/strv.h"
#include "samples.h"
#include "support/cm.h"

static bool is_managers(enum link_type type)
{
    return type >= LINK_WELCOME;
}

static void every_message_comes_through_unchanged(void **state)
{
    struct prng p = {prng_seed("messages")};

    for (int i = 0; i < 400; i++) {
        _cleanup_(link_message_freep) struct link_message *back = NULL;
        enum link_type type = (enum link_type)(i % LINK_TYPE_COUNT);
        _cleanup_free_ char *text = NULL, *again = NULL, *begin = NULL;
        struct link_message m;

        sample_message(&p, type, &m);
        text = link_text(&m);
        begin = xasprintf("{\"type\":\"%s\",", link_type_name(type));
        assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
        assert_works(link_parse(
            text, strlen(text), is_managers(type) ? LINK_MANAGER : LINK_AGENT, &back, &err));
        again = link_text(back);
        assert_string_equal(text, again);
        link_message_done(&m);
    }
}

static void a_side_may_send_its_own_messages_only(void **state)
{
    struct link_message *m = NULL;

    assert_fails(link_parse("{\"type\":\"ping\",\"seq\":1}", 23, LINK_AGENT, &m, &err), -EINVAL,
        "an agent does not send 'ping'");
    assert_fails(link_parse("{\"type\":\"pong\",\"seq\":1}", 23, LINK_MANAGER, &m, &err), -EINVAL,
        "a manager does not send 'pong'");
    assert_null(m);
}

#define REFUSED(text, from, want) \
    do { \
        struct link_message *m_ = NULL; \
        assert_fails(link_parse(text, strlen(text), from, &m_, &err), -EINVAL, want); \
        assert_null(m_); \
    } while (0)

static void what_is_no_message_is_refused(void **state)
{
    REFUSED("{}", LINK_AGENT, "'type' is missing");
    REFUSED("[]", LINK_AGENT, "must be an object with 'type'");
    REFUSED("{\"type\":5}", LINK_AGENT, "'type' must be a string");
    REFUSED("{\"type\":\"hallo\"}", LINK_AGENT, "unknown message type 'hallo'");
    REFUSED("{\"type\":\"pong\"}", LINK_AGENT, "'pong': 'seq' is missing");
    REFUSED("{\"type\":\"pong\",\"seq\":-1}", LINK_AGENT,
        "'pong': 'seq' must be a whole number from 0 to 9223372036854775807");
    REFUSED("{\"type\":\"assign\"}", LINK_MANAGER, "'assign': 'assignment' is missing");
    REFUSED(
        "{\"type\":\"assign\",\"assignment\":{}}", LINK_MANAGER, "'assign': 'cluster' is missing");
    REFUSED("{\"type\":\"report\",\"report\":{}}", LINK_AGENT,
        "'report': report: 'session' is missing");
}

static void a_member_of_a_newer_version_is_passed_over(void **state)
{
    _cleanup_(link_message_freep) struct link_message *m = NULL;
    const char *text = "{\"type\":\"ping\",\"new\":[1],\"seq\":7}";

    assert_works(link_parse(text, strlen(text), LINK_MANAGER, &m, &err));
    assert_int_equal(m->ping.seq, 7);
}

/* One member of a good message changed; key may name a list's first entry's member: "list.key". */
static void check_changed(
    enum link_type type, const char *path, const char *value, const char *want)
{
    _cleanup_(json_decrefp) json_t *doc = NULL;
    _cleanup_(strv_freep) char **keys = strv_split(path, '.');
    _cleanup_free_ char *text = NULL, *changed = NULL;
    struct link_message m;
    struct prng p = {4};
    json_t *at, *new_value;
    size_t last = strv_len(keys) - 1;

    do { /* one with something of everything */
        sample_message(&p, type, &m);
        if ((type == LINK_ASSIGN && m.assignment->container_count > 1 &&
                m.assignment->each.gpus > 1 && m.assignment->peer_count > 2) ||
            (type == LINK_HELLO && m.hello.capacity.gpus > 1 && m.hello.inventory_count) ||
            (type == LINK_WELCOME && m.welcome.peers) || type == LINK_OPEN_STREAM)
            break;
        link_message_done(&m);
    } while (true);
    text = link_text(&m);
    link_message_done(&m);
    doc = json_loads(text, 0, NULL);
    at = doc;
    for (size_t i = 0; i < last; i++)
        at = json_is_array(at) ? json_array_get(at, strtoul(keys[i], NULL, 10))
                               : json_object_get(at, keys[i]);
    assert_non_null(at);
    new_value = json_loads(value, JSON_DECODE_ANY, NULL);
    assert_non_null(new_value);
    if (json_is_array(at))
        json_array_set_new(at, strtoul(keys[last], NULL, 10), new_value);
    else
        json_object_set_new(at, keys[last], new_value);
    changed = json_text(doc);
    REFUSED(changed, is_managers(type) ? LINK_MANAGER : LINK_AGENT, want);
}

#define ASSIGN(path, value, want) \
    check_changed(LINK_ASSIGN, "assignment." path, value, "'assign': " want)

static void an_assignment_must_agree_with_itself(void **state)
{
    ASSIGN("user.uid", "0", "user '0XX99XaaXcca9bX9Za': uid must be 1000 or higher, not 0");
}

static void an_assignments_members_are_checked(void **state)
{
    ASSIGN("cluster", "\"\"", "'cluster' must be a UUID");
    ASSIGN("phase", "\"dance\"", "'phase' cannot be 'dance'");
    ASSIGN("stop_signal", "0", "'stop_signal' must be a whole number from 1 to 64");
    ASSIGN("grace_usec", "3600000001", "'grace_usec' must be a whole number from 0 to 3600000000");
    ASSIGN("workdir", "\"/a/../b\"", "'workdir' must be an absolute path without '.' and '..'");
    ASSIGN("mounts", "[{\"source\": \"x\", \"target\": \"/x\", \"read_only\": true}]",
        "mounts[0]: 'source' must be an absolute path without '.' and '..'");
    ASSIGN("mounts", "[{\"source\": null, \"target\": \"/x\", \"read_only\": true}]",
        "mounts[0]: 'source' must be a string");
    ASSIGN("image_id", "\"../x\"", "'image_id' must be 'host', or 'sha256:' and 64 hex digits");
    ASSIGN("image_id", "\"host\"", "'layers' must be empty for the image 'host'");
    ASSIGN("layers", "[]", "'layers' must have at least one entry");
    ASSIGN("layers.0.digest", "\"sha256:../../etc\"",
        "layers[0]: 'digest' must be 'sha256:' and 64 hex digits");
    ASSIGN("peers", "[]", "'peers' must have an entry for each container");
    ASSIGN("subnet", "\"10.0.0.1\"", "'subnet' must be the address of a /22");
    ASSIGN("peers.1.name", "\"sub7\"", "peers[1]: 'name' must be 'sub1'");
    ASSIGN("peers.1.ip", "\"0.0.0.1\"", "peers[1]: 'ip' lies outside 'subnet'");
    ASSIGN("peers.0.fabric", "\"n1\"", "peers[0]: 'fabric' must be an IP address");
    ASSIGN("containers.0.rank", "999", "containers[0]: 'rank' 999 has no peer entry (there are 7)");
    ASSIGN("containers.0.name", "\"x\"", "containers[0]: 'name' of rank 1 must be 'sub1'");
    ASSIGN("containers.0.gpus", "[]", "containers[0]: 'gpus' must be 2, as 'each' says, not 0");
    ASSIGN("containers.0.gpus", "[1, 1]",
        "containers[0]: 'gpus' must be different whole numbers below 64");
    ASSIGN("containers.0.gpus", "[2, 3]", "containers[1]: has a GPU that another one has");
    ASSIGN(
        "containers.0.env", "[\"A\"]", "containers[0]: 'env' has an entry that is no NAME=VALUE");
    ASSIGN("containers.0.command", "[]", "containers[0]: 'command' must be null or have a word");
}

static void other_messages_are_checked(void **state)
{
    check_changed(LINK_HELLO, "gpus.1.index", "0", "'hello': gpus[1]: 'index' 0 is taken");
    check_changed(LINK_HELLO, "gpus.1.model", "\"\"", "'hello': gpus[1]: 'model' is empty");
    check_changed(
        LINK_HELLO, "addr_fabric", "\"\"", "'hello': 'addr_fabric' must be an IP address");
    check_changed(LINK_HELLO, "inventory.0.attempt", "null",
        "'hello': inventory[0]: 'attempt' must be a whole number from 0 to 4294967295");
    check_changed(
        LINK_WELCOME, "peers.0", "\"x; flush ruleset\"", "'welcome': peers[0]: not valid");
    check_changed(LINK_WELCOME, "blocked.0", "\"10.0.0.0/33\"", "'welcome': blocked[0]: not valid");
    check_changed(LINK_OPEN_STREAM, "command", "[\"\"]",
        "'open_stream': 'command' must be null or begin with a program");
    check_changed(LINK_OPEN_STREAM, "rows", "65536",
        "'open_stream': 'rows' must be a whole number from 0 to 65535");
}

/* The reader must not read past the end, whatever is cut off or turned over. */
static void damaged_messages_do_no_damage(void **state)
{
    struct prng p = {prng_seed("damage")};

    for (int i = 0; i < 2000; i++) {
        _cleanup_(link_message_freep) struct link_message *m = NULL;
        _cleanup_free_ char *text = NULL;
        struct link_message sample;
        enum link_type type = (enum link_type)(i % LINK_TYPE_COUNT);
        size_t len;

        sample_message(&p, type, &sample);
        text = link_text(&sample);
        link_message_done(&sample);
        len = strlen(text);
        for (uint32_t k = prng_range(&p, 1, 4); k > 0; k--)
            text[prng_below(&p, (uint32_t)len)] ^= (char)(1 << prng_below(&p, 8));
        if (prng_chance(&p, 20))
            len = prng_below(&p, (uint32_t)len);
        if (link_parse(text, len, is_managers(type) ? LINK_MANAGER : LINK_AGENT, &m, NULL) == 0)
            free(link_text(m));
    }
}

static void the_longest_message_of_a_thousand_containers_is_taken(void **state)
{
    _cleanup_(link_message_freep) struct link_message *back = NULL;
    struct assignment *a;
    struct link_message m = {.type = LINK_ASSIGN};
    _cleanup_free_ char *text = NULL;
    struct prng p = {9};

    a = sample_assignment(&p);
    for (uint32_t i = 0; i < a->container_count; i++) {
        struct assigned_container *c = &a->containers[i];

        strv_free(c->env);
        c->env = NULL;
        for (int k = 0; k < 200; k++)
            strv_pushf(&c->env, "V%d=%01000d", k, k);
    }
    m.assignment = a;
    text = link_text(&m);
    assert_works(link_parse(text, strlen(text), LINK_MANAGER, &back, &err));
    link_message_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_comes_through_unchanged),
        cmocka_unit_test(a_side_may_send_its_own_messages_only),
        cmocka_unit_test(what_is_no_message_is_refused),
        cmocka_unit_test(a_member_of_a_newer_version_is_passed_over),
        cmocka_unit_test(an_assignment_must_agree_with_itself),
        cmocka_unit_test(an_assignments_members_are_checked),
        cmocka_unit_test(other_messages_are_checked),
        cmocka_unit_test(damaged_messages_do_no_damage),
        cmocka_unit_test(the_longest_message_of_a_thousand_containers_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
