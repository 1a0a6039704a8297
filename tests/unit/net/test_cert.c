/* Keys, requests, signing, and what a certificate says. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"
#include "base/str.h"
#include "net/cert.h"
#include "net/tls_ops.h"
#include "unit.h"

#define DAY (UINT64_C(86400) * USEC_PER_SEC)
#define NOW (UINT64_C(1800000000) * USEC_PER_SEC)

struct made {
    char *authority, *authority_key, *key, *request;
};

static int make(void **state)
{
    struct made *m = xnew(struct made);
    struct cert_order order = {
        .use = CERT_AUTHORITY, .name = "test", .from_usec = NOW, .until_usec = NOW + 100 * DAY};
    struct err err = ERR_INIT;

    *state = m;
    tls_load_from(TLS_MODULE);
    assert_ok(cert_key_new(&m->authority_key, &err), &err);
    assert_ok(cert_authority_new(m->authority_key, &order, &m->authority, &err), &err);
    assert_ok(cert_key_new(&m->key, &err), &err);
    assert_ok(cert_request_new(m->key, &m->request, &err), &err);
    return 0;
}

static int unmake(void **state)
{
    struct made *m = *state;

    free(m->authority);
    free(m->authority_key);
    free(m->key);
    free(m->request);
    free(m);
    return 0;
}

static int sign(const struct made *m, const struct cert_order *order, char **ret, struct err *err)
{
    return cert_sign(m->authority, m->authority_key, m->request, order, ret, err);
}

static void a_certificate_says_what_was_ordered(void **state)
{
    const struct made *m = *state;
    struct cert_order order = {.use = CERT_CLIENT,
        .name = "gpu01",
        .role = "node",
        .mark = "0123456789abcdef",
        .from_usec = NOW,
        .until_usec = NOW + DAY};
    _cleanup_free_ char *cert = NULL;
    struct cert_info info;
    struct err err = ERR_INIT;

    assert_ok(sign(m, &order, &cert, &err), &err);
    assert_ok(cert_read(cert, &info, &err), &err);
    assert_string_equal(info.name, "gpu01");
    assert_string_equal(info.role, "node");
    assert_string_equal(info.mark, "0123456789abcdef");
    assert_int_equal(info.from_usec, NOW);
    assert_int_equal(info.until_usec, NOW + DAY);
    assert_false(info.is_authority);
    assert_true(cert_fingerprint_is_valid(info.fingerprint));
    assert_ok(cert_read(m->authority, &info, &err), &err);
    assert_true(info.is_authority);
    assert_string_equal(info.role, "");
}

static void a_server_is_good_for_its_names_and_addresses_only(void **state)
{
    const struct made *m = *state;
    char *names[] = {"manager.lan", "10.1.0.1", "fd00::1", NULL};
    struct cert_order order = {.use = CERT_SERVER,
        .name = "musterd",
        .reached_by = names,
        .from_usec = NOW,
        .until_usec = NOW + DAY};
    _cleanup_free_ char *cert = NULL;
    struct err err = ERR_INIT;

    assert_ok(sign(m, &order, &cert, &err), &err);
    assert_true(cert_is_for(cert, "manager.lan"));
    assert_true(cert_is_for(cert, "10.1.0.1"));
    assert_true(cert_is_for(cert, "fd00::1"));
    assert_false(cert_is_for(cert, "10.1.0.2"));
    assert_false(cert_is_for(cert, "lan"));
    assert_false(cert_is_for(cert, "musterd"));
}

static void a_name_cannot_smuggle_a_second_one_in(void **state)
{
    static const char *const bad[] = {"a,DNS:b", "a\nb", "a b", "", "dir:x=y;z"};
    struct err err = ERR_INIT;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char *names[] = {(char *)bad[i], NULL};
        struct cert_order order = {.use = CERT_SERVER,
            .name = "musterd",
            .reached_by = names,
            .from_usec = NOW,
            .until_usec = NOW + DAY};
        char *cert = NULL;
        assert_int_equal(sign(*state, &order, &cert, &err), -EINVAL);
        assert_null(cert);
    }
}

static void an_order_needs_a_name_and_an_end(void **state)
{
    char *cert = NULL, *longest = xcalloc(1, CERT_NAME_MAX + 2);
    struct cert_order nameless = {.use = CERT_CLIENT, .from_usec = NOW, .until_usec = NOW + 1};
    struct cert_order endless = {
        .use = CERT_CLIENT, .name = "x", .from_usec = NOW, .until_usec = NOW};
    struct cert_order too_long = {
        .use = CERT_CLIENT, .name = longest, .from_usec = NOW, .until_usec = NOW + DAY};
    struct err err = ERR_INIT;

    memset(longest, 'n', CERT_NAME_MAX + 1);
    assert_int_equal(sign(*state, &nameless, &cert, &err), -EINVAL);
    assert_int_equal(sign(*state, &endless, &cert, &err), -EINVAL);
    assert_string_equal(err.text, "a certificate needs a name, and an end behind its beginning");
    assert_int_equal(sign(*state, &too_long, &cert, &err), -EINVAL);
    longest[CERT_NAME_MAX] = '\0';
    assert_ok(sign(*state, &too_long, &cert, &err), &err);
    free(cert);
    free(longest);
}

static void expect_refused(const struct made *m, const char *request, const char *why)
{
    struct cert_order order = {
        .use = CERT_CLIENT, .name = "x", .from_usec = NOW, .until_usec = NOW + DAY};
    struct err err = ERR_INIT;
    char *cert = NULL;

    assert_int_equal(
        cert_sign(m->authority, m->authority_key, request, &order, &cert, &err), -EINVAL);
    assert_null(cert);
    if (!str_starts(err.text, why))
        fail_msg("'%s'", err.text);
}

/* The signature is the last part: without the check of it this one would be signed. */
static void a_request_that_does_not_prove_to_have_the_key_is_refused(void **state)
{
    const struct made *m = *state;
    _cleanup_free_ char *bent = xstrdup(m->request);
    char *end = strstr(bent, "\n-----END");

    end[-8] = end[-8] == 'A' ? 'B' : 'A';
    expect_refused(m, bent, "the signature of the certificate request");
}

static void what_is_no_request_is_refused(void **state)
{
    const struct made *m = *state;
    _cleanup_free_ char *large = xcalloc(1, CERT_PEM_MAX + 2);

    memset(large, 'x', CERT_PEM_MAX + 1);
    expect_refused(m, "", "the certificate request: ");
    expect_refused(m, m->key, "the certificate request: ");
    expect_refused(m, m->authority, "the certificate request: ");
    expect_refused(m, large, "a certificate request of more than 65536 bytes");
}

static void a_key_of_another_kind_is_refused(void **state)
{
    static const char *const kinds[][2] = {{"rsa:2048", ""}, {"ec", "ec_paramgen_curve:secp384r1"}};
    const struct made *m = *state;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(65536);
        const char *argv[] = {"openssl", "req", "-new", "-newkey", kinds[i][0], "-nodes", "-keyout",
            "/dev/null", "-subj", "/CN=x", kinds[i][1][0] ? "-pkeyopt" : NULL, kinds[i][1], NULL};
        struct proc p = {.argv = argv, .out = &out};
        struct err err = ERR_INIT;

        assert_ok(proc_run(&p, NULL, &err), &err);
        expect_refused(m, out.data, "the key of the certificate request is not one on P-256");
    }
}

static void another_key_cannot_sign_for_the_authority(void **state)
{
    const struct made *m = *state;
    struct cert_order order = {
        .use = CERT_CLIENT, .name = "x", .from_usec = NOW, .until_usec = NOW + DAY};
    struct err err = ERR_INIT;
    char *cert = NULL;

    assert_int_equal(cert_sign(m->authority, m->key, m->request, &order, &cert, &err), -EINVAL);
    assert_true(str_starts(err.text, "the authority's key"));
}

static void a_certificate_is_found_in_a_chain_by_its_fingerprint(void **state)
{
    const struct made *m = *state;
    struct cert_order order = {
        .use = CERT_CLIENT, .name = "x", .from_usec = NOW, .until_usec = NOW + DAY};
    _cleanup_free_ char *cert = NULL, *chain = NULL, *found = NULL;
    struct cert_info info;
    struct err err = ERR_INIT;

    assert_ok(sign(m, &order, &cert, &err), &err);
    chain = xasprintf("%s%s", cert, m->authority);
    assert_ok(cert_read(m->authority, &info, &err), &err);
    assert_ok(cert_find(chain, info.fingerprint, &found, &err), &err);
    assert_string_equal(found, m->authority);
    free(TAKE_PTR(found));
    assert_int_equal(cert_find(cert, info.fingerprint, &found, &err), -ENOENT);
    assert_int_equal(cert_find("", info.fingerprint, &found, &err), -ENOENT);
    assert_false(cert_fingerprint_is_valid("sha256:12"));
}

static void the_authority_of_a_chain_is_found(void **state)
{
    const struct made *m = *state;
    struct cert_order order = {
        .use = CERT_SERVER, .name = "x", .from_usec = NOW, .until_usec = NOW + DAY};
    _cleanup_free_ char *cert = NULL, *chain = NULL, *found = NULL;
    struct cert_info info;
    struct err err = ERR_INIT;

    assert_ok(sign(m, &order, &cert, &err), &err);
    chain = xasprintf("%s%s", cert, m->authority);
    assert_int_equal(cert_authority(chain, &found, &info), 0);
    assert_string_equal(found, m->authority);
    free(TAKE_PTR(found));
    assert_int_equal(cert_authority(cert, &found, &info), -ENOENT);
    assert_int_equal(cert_authority("", &found, &info), -ENOENT);
}

static void a_certificate_is_due_when_a_third_of_its_time_is_left(void **state)
{
    struct cert_info info = {.from_usec = NOW - CERT_BACKDATE_USEC, .until_usec = NOW + 90 * DAY};

    assert_false(cert_is_due(&info, NOW));
    assert_false(cert_is_due(&info, NOW + 60 * DAY - USEC_PER_SEC));
    assert_true(cert_is_due(&info, NOW + 60 * DAY));
    assert_true(cert_is_due(&info, NOW + 91 * DAY));
    info.until_usec = NOW + 9 * USEC_PER_SEC; /* shorter than what it is dated back */
    assert_false(cert_is_due(&info, NOW + 5 * USEC_PER_SEC));
    assert_true(cert_is_due(&info, NOW + 6 * USEC_PER_SEC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_says_what_was_ordered),
        cmocka_unit_test(a_server_is_good_for_its_names_and_addresses_only),
        cmocka_unit_test(a_name_cannot_smuggle_a_second_one_in),
        cmocka_unit_test(an_order_needs_a_name_and_an_end),
        cmocka_unit_test(a_request_that_does_not_prove_to_have_the_key_is_refused),
        cmocka_unit_test(what_is_no_request_is_refused),
        cmocka_unit_test(a_key_of_another_kind_is_refused),
        cmocka_unit_test(another_key_cannot_sign_for_the_authority),
        cmocka_unit_test(a_certificate_is_found_in_a_chain_by_its_fingerprint),
        cmocka_unit_test(the_authority_of_a_chain_is_found),
        cmocka_unit_test(a_certificate_is_due_when_a_third_of_its_time_is_left),
    };

    return cmocka_run_group_tests_name("cert", tests, make, unmake);
}
