/*
 * muster-import: makes the blobs of one image. Run by the manager, one process an image; all it
 * says is JSON lines on stdout, and on failure its reason once more on stderr.
 */
#include <locale.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/strv.h"
#include "image/credentials.h"
#include "image/import.h"
#include "image/manifest.h"

struct config {
    char *blobs, *tmp, *name, *authfile, *arch;
    char **insecure, **mirrors, **cas;
    bool help;
    uint64_t max_size, max_entries, stall_usec, auth_fd;
};

#define MEMBER(m) offsetof(struct config, m)

/* clang-format off */
static const struct opt options[] = {
    {"blobs", OPT_STR, MEMBER(blobs), NULL, "DIR", "folder that the blobs are put into"},
    {"tmp", OPT_STR, MEMBER(tmp), NULL, "DIR", "folder for files while they are worked on"},
    {"name", OPT_STR, MEMBER(name), NULL, "NAME", "name of the image"},
    {"authfile", OPT_STR, MEMBER(authfile), NULL, "FILE", "credentials for registries, as in Docker's config.json"},
    {"auth-fd", OPT_U64, MEMBER(auth_fd), NULL, "FD", "the same, from an open descriptor"},
    {"arch", OPT_STR, MEMBER(arch), NULL, "ARCH", "architecture to take of several (this machine's)"},
    {"insecure", OPT_STRV, MEMBER(insecure), NULL, "HOST[:PORT]", "registry that may speak plain HTTP or have any certificate"},
    {"mirror", OPT_STRV, MEMBER(mirrors), NULL, "HOST=MIRROR", "ask MIRROR before the registry HOST"},
    {"ca", OPT_STRV, MEMBER(cas), NULL, "HOST=FILE", "certificates to trust at the registry HOST"},
    {"stall", OPT_DURATION, MEMBER(stall_usec), "60s", "TIME", "give up on a registry that sends nothing for so long"},
    {"max-size", OPT_SIZE, MEMBER(max_size), "256G", "SIZE", "largest image, unpacked"},
    {"max-entries", OPT_U64, MEMBER(max_entries), "16000000", "N", "most files, folders and links of an image"},
    {"help", OPT_BOOL, MEMBER(help), NULL, NULL, "show this text", .short_name = 'h', .line_only = true},
    OPT_END,
};
/* clang-format on */

#define DEPTH_MAX 512
#define CA_MAX_BYTES ((size_t)1 << 20)

static void tell_error(const struct err *err)
{
    json_t *j = json_object();
    char *text;

    json_set_str(j, "type", "error");
    json_set_str(j, "text", err_text(err));
    text = json_text(j);
    puts(text);
    fflush(stdout);
    free(text);
    json_decref(j);
    fprintf(stderr, "muster-import: %s\n", err_text(err));
}

/* Paths are used after a change of the working directory. */
static char *absolute(const char *path)
{
    _cleanup_free_ char *cwd = NULL;

    if (path[0] == '/')
        return xstrdup(path);
    cwd = getcwd(NULL, 0);
    return xasprintf("%s/%s", cwd ? cwd : "", path);
}

/* "HOST=FILE" to "HOST=TEXT OF THE FILE": read before rights are given up. */
static int read_cas(const struct config *c, char ***ret, struct err *err)
{
    char **cas = c->cas;

    strv_for_each (s, cas) {
        _cleanup_free_ char *text = NULL;
        const char *equals = strchr(*s, '=');
        int r;

        if (!equals)
            return err_set(err, -EINVAL, "--ca: must be HOST=FILE");
        r = fs_read(equals + 1, CA_MAX_BYTES, &text, NULL, err);
        if (r < 0)
            return r;
        strv_pushf(ret, "%.*s=%s", (int)(equals - *s), *s, text);
    }
    return 0;
}

/* NULL when there are none. */
static int read_auths(const struct config *c, json_t **ret, struct err *err)
{
    _cleanup_free_ char *path = c->auth_fd
        ? xasprintf("/proc/self/fd/%llu", (unsigned long long)c->auth_fd)
        : NULL;
    _cleanup_free_ char *text = NULL;
    size_t len;
    int r;

    if (!path && !c->authfile)
        return 0;
    r = fs_read(path ? path : c->authfile, CREDENTIALS_MAX_BYTES, &text, &len, err);
    if (r < 0 || len == 0)
        return r;
    r = json_parse(text, len, CREDENTIALS_MAX_BYTES, ret, err);
    OPENSSL_cleanse(text, len);
    return r < 0 ? r : credentials_check(*ret, err);
}

static int run(const struct config *c, const char *source, struct err *err)
{
    _cleanup_free_ char *blobs = absolute(c->blobs), *tmp = absolute(c->tmp);
    bool is_path = source[0] == '/' || source[0] == '.';
    _cleanup_free_ char *from = is_path ? absolute(source) : xstrdup(source);
    _cleanup_(json_decrefp) json_t *auths = NULL;
    _cleanup_(strv_freep) char **cas = NULL;
    struct import i = {
        .blobs = blobs,
        .tmp = tmp,
        .source = from,
        .is_path = is_path,
        .name = c->name,
        .arch = c->arch ? c->arch : manifest_host_arch(),
        .auths_from = c->authfile,
        .insecure = c->insecure,
        .mirrors = c->mirrors,
        .stall_usec = c->stall_usec,
        .limits = {c->max_size, c->max_entries, DEPTH_MAX},
        .out = stdout,
    };
    int r;

    if (c->name && (r = image_ref_check(c->name, err)) < 0)
        return r;
    r = read_cas(c, &cas, err);
    if (r < 0)
        return r;
    i.cas = cas;
    r = read_auths(c, &auths, err);
    if (r < 0)
        return err_prefix(err, "credentials");
    i.auths = auths;
    return import_run(&i, err);
}

static int read_options(
    struct config *c, int argc, char **argv, const char **ret_source, struct err *err)
{
    int rest, r;

    opt_defaults(options, c);
    r = opt_parse(options, c, argc, argv, &rest, err);
    if (r < 0 || c->help)
        return r;
    if (!c->blobs || !c->tmp || rest != argc - 1)
        return err_set(
            err, -EINVAL, "usage: muster-import --blobs DIR --tmp DIR [OPTION...] SOURCE");
    *ret_source = argv[rest];
    return 0;
}

int main(int argc, char **argv)
{
    struct config c = {0};
    struct err err = ERR_INIT;
    const char *source = NULL;
    int r;

    /* libarchive reads names in the locale's encoding; ours is UTF-8 whatever the caller's. */
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(022);
    log_setup("muster-import", LOG_LEVEL_INFO, LOG_FORMAT_AUTO);
    r = read_options(&c, argc, argv, &source, &err);
    if (r == 0 && c.help)
        opt_print_help(options, stdout);
    else if (r == 0)
        r = run(&c, source, &err);
    if (r < 0)
        tell_error(&err);
    opt_free(options, &c);
    return r < 0 ? 1 : 0;
}
