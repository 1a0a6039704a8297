/* The authority's files: made once, and never replaced by what does not fit. */
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"
#include "manager/pki.h"
#include "net/tls_ops.h"
#include "unit.h"

#define DAY (UINT64_C(86400) * USEC_PER_SEC)
#define NOW (UINT64_C(1800000000) * USEC_PER_SEC)
#define CLUSTER "3bf616b0-a8f6-4152-927c-80aaabae9e7f"

static char dir[64];

static int make(void **state)
{
    tls_load_from(TLS_MODULE);
    snprintf(dir, sizeof(dir), "/tmp/pki-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return 0;
}

static int unmake(void **state)
{
    return fs_remove_tree(dir, NULL);
}

static mode_t mode_of(const char *name)
{
    _cleanup_free_ char *path = xasprintf("%s/tls/%s", dir, name);
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void open_it(struct pki *p, const char *known)
{
    struct err err = ERR_INIT;

    assert_ok(pki_open(p, dir, known, CLUSTER, NOW, &err), &err);
}

static void expect_refused(const char *known, int code, const char *why)
{
    struct pki p;
    struct err err = ERR_INIT;

    assert_int_equal(pki_open(&p, dir, known, CLUSTER, NOW, &err), code);
    if (!strstr(err.text, why))
        fail_msg("'%s'", err.text);
    assert_null(p.ca);
}

static void the_authority_is_made_once_and_closed_to_others(void **state)
{
    struct pki first, second;

    open_it(&first, "");
    open_it(&second, first.fingerprint);
    assert_string_equal(first.fingerprint, second.fingerprint);
    assert_string_equal(first.ca, second.ca);
    assert_int_equal(mode_of(""), 0700);
    assert_int_equal(mode_of("ca.key"), 0600);
    pki_done(&first);
    pki_done(&second);
}

static void another_authority_than_the_known_one_is_refused(void **state)
{
    char known[CERT_FINGERPRINT_MAX];
    struct pki p;

    open_it(&p, "");
    STR_SET(known, p.fingerprint);
    pki_done(&p);
    fs_remove_tree(dir, NULL);
    expect_refused(known, -ENOENT, "put back the folder from the backup");
    open_it(&p, "");
    pki_done(&p);
    expect_refused(known, -EPERM, "is another authority than the one by which nodes know");
}

static void a_key_that_is_gone_or_open_is_refused(void **state)
{
    _cleanup_free_ char *path = xasprintf("%s/tls/ca.key", dir);
    struct pki p;

    open_it(&p, "");
    pki_done(&p);
    assert_int_equal(chmod(path, 0640), 0);
    expect_refused("", -EPERM, "others have rights on it (mode 640); run: chmod 600");
    assert_int_equal(unlink(path), 0);
    expect_refused("", -ENOENT, "put back 'ca.key' from the backup");
}

/* A crash between the two files: nobody has seen the certificate of that key. */
static void a_key_without_its_certificate_is_made_anew(void **state)
{
    _cleanup_free_ char *folder = xasprintf("%s/tls", dir), *path = xasprintf("%s/ca.key", folder);
    struct err err = ERR_INIT;
    struct pki p;

    assert_ok(fs_mkdir_p(folder, 0700, &err), &err);
    assert_ok(fs_write_atomic(path, "half", 4, 0600, &err), &err);
    open_it(&p, "");
    pki_done(&p);
}

static void the_servers_certificate_is_made_when_due_or_of_other_names(void **state)
{
    char *names[] = {"a.lan", "10.1.0.1", NULL}, *more[] = {"a.lan", "b.lan", NULL};
    struct err err = ERR_INIT;
    struct pki p;
    char before[CERT_FINGERPRINT_MAX];

    open_it(&p, "");
    assert_int_equal(pki_server(&p, names, 90 * DAY, NOW, &err), 1);
    assert_int_equal(mode_of("server.pem"), 0600);
    STR_SET(before, p.server.fingerprint);
    assert_int_equal(pki_server(&p, names, 90 * DAY, NOW + 59 * DAY, &err), 0);
    assert_string_equal(p.server.fingerprint, before);
    assert_int_equal(pki_server(&p, names, 90 * DAY, NOW + 61 * DAY, &err), 1);
    assert_string_not_equal(p.server.fingerprint, before);
    assert_int_equal(pki_server(&p, more, 90 * DAY, NOW + 61 * DAY, &err), 1);
    assert_int_equal(pki_server(&p, more, 90 * DAY, NOW + 61 * DAY, &err), 0);
    assert_int_equal(pki_server(&p, more, 30 * DAY, NOW + 61 * DAY, &err), 1);
    pki_done(&p);
    /* By an authority that is no more. */
    assert_ok(pki_replace(&p, dir, CLUSTER, NOW + 61 * DAY, &err), &err);
    assert_int_equal(pki_server(&p, more, 90 * DAY, NOW + 61 * DAY, &err), 1);
    pki_done(&p);
}

static void a_nodes_certificate_says_whose_it_is_whatever_was_asked(void **state)
{
    _cleanup_free_ char *key = NULL, *request = NULL, *cert = NULL;
    struct err err = ERR_INIT;
    struct cert_info info;
    uint64_t until;
    struct pki p;

    open_it(&p, "");
    assert_ok(cert_key_new(&key, &err), &err);
    assert_ok(cert_request_new(key, &request, &err), &err);
    assert_ok(pki_node(&p, request, "n1", "mark", DAY, NOW, &cert, &until, &err), &err);
    assert_ok(cert_read(cert, &info, &err), &err);
    assert_string_equal(info.name, "n1");
    assert_string_equal(info.role, "node");
    assert_string_equal(info.mark, "mark");
    assert_int_equal(until, NOW + DAY);
    assert_int_equal(info.until_usec, until);
    assert_int_equal(pki_node(&p, "none", "n1", "mark", DAY, NOW, &cert, &until, &err), -EINVAL);
    pki_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_authority_is_made_once_and_closed_to_others, make, unmake),
        cmocka_unit_test_setup_teardown(
            another_authority_than_the_known_one_is_refused, make, unmake),
        cmocka_unit_test_setup_teardown(a_key_that_is_gone_or_open_is_refused, make, unmake),
        cmocka_unit_test_setup_teardown(a_key_without_its_certificate_is_made_anew, make, unmake),
        cmocka_unit_test_setup_teardown(
            the_servers_certificate_is_made_when_due_or_of_other_names, make, unmake),
        cmocka_unit_test_setup_teardown(
            a_nodes_certificate_says_whose_it_is_whatever_was_asked, make, unmake),
    };

    return cmocka_run_group_tests_name("pki", tests, NULL, NULL);
}
