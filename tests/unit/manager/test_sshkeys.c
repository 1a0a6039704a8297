/* ssh-keygen(1) takes the keys as its own. Skipped where it is not installed. */
#include "base/proc.h"
#include "base/str.h"
#include "manager/sshkeys.h"
#include "unit.h"

struct keys {
    char dir[UNIT_DIR_MAX];
    char path[UNIT_DIR_MAX + 8];
    char *private_text, *public_line;
};

static void make(struct keys *k, const char *comment)
{
    struct err err = ERR_INIT;

    unit_dir_init(k->dir);
    snprintf(k->path, sizeof(k->path), "%s/key", k->dir);
    assert_ok(ssh_keypair_make(comment, &k->private_text, &k->public_line, &err), &err);
    assert_ok(fs_write(k->path, k->private_text, strlen(k->private_text), 0600, &err), &err);
}

static void keys_done(struct keys *k)
{
    unit_dir_done(k->dir);
    ssh_secret_free(k->private_text);
    free(k->public_line);
}

/* What ssh-keygen says, without the line end; heap. */
static char *keygen(const char *mode, const char *path)
{
    const char *const argv[] = {"ssh-keygen", mode, "-f", path, NULL};
    struct buf out = BUF_INIT(4096);
    struct err err = ERR_INIT;
    char *text;
    int r = proc_run(&(struct proc){.argv = argv, .out = &out}, NULL, &err);

    if (r == -ENOENT)
        skip();
    assert_ok(r, &err);
    text = buf_take(&out);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

TEST(ssh_keygen_finds_the_public_key_in_the_private_one)
{
    /* Of each length below the padding block. */
    static const char *const comments[] = {"", "a", "ab", "abc", "abcd", "abcde", "abcdef",
        "abcdefg", "anna@muster session 42", "\xea\xb9\x80"};

    for (size_t i = 0; i < ARRAY_LEN(comments); i++) {
        _cleanup_(keys_done) struct keys k = {0};
        _cleanup_free_ char *said = NULL;

        make(&k, comments[i]);
        said = keygen("-y", k.path);
        assert_string_equal(said, k.public_line);
    }
}

TEST(ssh_keygen_prints_its_fingerprint_and_type)
{
    _cleanup_(keys_done) struct keys k = {0};
    _cleanup_free_ char *said = NULL;

    make(&k, "anna@muster");
    said = keygen("-l", k.path);
    assert_true(str_starts(said, "256 SHA256:"));
    assert_true(str_ends(said, " anna@muster (ED25519)"));
}

TEST(the_private_key_has_lines_of_seventy_columns)
{
    _cleanup_(keys_done) struct keys k = {0};

    make(&k, "c");
    assert_true(str_starts(k.private_text, "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk"));
    assert_true(str_ends(k.private_text, "\n-----END OPENSSH PRIVATE KEY-----\n"));
    for (const char *p = k.private_text; *p; p += strcspn(p, "\n") + 1)
        assert_true(strcspn(p, "\n") <= 70);
}

TEST(two_pairs_differ)
{
    _cleanup_(keys_done) struct keys a = {0}, b = {0};

    make(&a, "c");
    make(&b, "c");
    assert_string_not_equal(a.public_line, b.public_line);
    assert_string_not_equal(a.private_text, b.private_text);
}

TEST(a_comment_that_could_add_a_line_is_refused)
{
    char longest[SSH_COMMENT_MAX + 2] = {0}, *priv = NULL, *pub = NULL;
    struct err err;

    memset(longest, 'x', SSH_COMMENT_MAX + 1);
    assert_fails(ssh_keypair_make("a\nssh-ed25519 AAAA", &priv, &pub, &err), &err, -EINVAL,
        "the comment of an SSH key must be text of at most 255 bytes in one line");
    assert_fails(ssh_keypair_make(longest, &priv, &pub, &err), &err, -EINVAL,
        "the comment of an SSH key must be text of at most 255 bytes in one line");
    assert_null(priv);
    longest[SSH_COMMENT_MAX] = '\0';
    assert_int_equal(ssh_keypair_make(longest, &priv, &pub, &err), 0);
    assert_true(str_ends(pub, longest));
    ssh_secret_free(priv);
    free(pub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ssh_keygen_finds_the_public_key_in_the_private_one),
        cmocka_unit_test(ssh_keygen_prints_its_fingerprint_and_type),
        cmocka_unit_test(the_private_key_has_lines_of_seventy_columns),
        cmocka_unit_test(two_pairs_differ),
        cmocka_unit_test(a_comment_that_could_add_a_line_is_refused),
    };

    return RUN_TESTS(tests);
}
