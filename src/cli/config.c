/*
 * Where the manager is and who asks: from the environment, else from the file of the caller, else
 * of the person behind sudo. The file holds a token, so it must be the caller's and closed to
 * others.
 */
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/str.h"
#include "cli/cli.h"

#define DEFAULT_URL "http://127.0.0.1:7480"

struct config {
    char *url, *token, *ca;
    char *path; /* of the file; NULL: there is none */
};

/* clang-format off */
static const struct opt table[] = {
    { "url", OPT_STR, offsetof(struct config, url), NULL, "URL", "address of the manager" },
    { "token", OPT_STR, offsetof(struct config, token), NULL, "TOKEN", "who asks" },
    { "ca", OPT_STR, offsetof(struct config, ca), NULL, "PATH", "certificates to trust" },
    OPT_END
};
/* clang-format on */

static void config_done(struct config *c)
{
    opt_free(table, c);
    free(c->path);
}

static char *path_below(const char *home)
{
    return xasprintf("%s/.config/muster/config.yaml", home);
}

char *config_path(void)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    const struct passwd *pw;

    if (xdg && xdg[0] == '/')
        return xasprintf("%s/muster/config.yaml", xdg);
    if (home && home[0] == '/')
        return path_below(home);
    pw = getpwuid(getuid());
    return pw && pw->pw_dir[0] == '/' ? path_below(pw->pw_dir) : NULL;
}

/* The file of the person who came through sudo; NULL when it is not so. */
static char *sudo_path(uint32_t *ret_uid)
{
    const char *text = getenv("SUDO_UID");
    const struct passwd *pw;
    uint64_t uid;

    if (geteuid() != 0 || !text || str_to_u64(text, UINT32_MAX - 1, &uid) < 0 || uid == 0)
        return NULL;
    pw = getpwuid((uid_t)uid);
    if (!pw || pw->pw_dir[0] != '/')
        return NULL;
    *ret_uid = (uint32_t)uid;
    return path_below(pw->pw_dir);
}

static int check_file(const char *path, uint32_t owner, struct err *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_sys(err, -errno, "cannot read '%s'", path);
    if (st.st_uid != owner && st.st_uid != 0)
        return err_set(err, -EPERM, "'%s' belongs to uid %u, not to you; it is not used", path,
            (unsigned)st.st_uid);
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return err_set(err, -EPERM,
            "'%s' holds a token and others have rights on it (mode %03o); run: chmod 600 %s", path,
            (unsigned)st.st_mode & 0777, path);
    return 0;
}

static int load(struct config *c, const char *path, uint32_t owner, struct err *err)
{
    int r = check_file(path, owner, err);

    c->path = xstrdup(path);
    return r < 0 ? r : opt_load(table, c, path, err);
}

static int load_file(struct config *c, struct err *err)
{
    _cleanup_free_ char *own = config_path(), *sudo = NULL;
    uint32_t uid = 0;

    if (own && fs_exists(own))
        return load(c, own, geteuid(), err);
    sudo = sudo_path(&uid);
    if (sudo && fs_exists(sudo))
        return load(c, sudo, uid, err);
    return 0;
}

/* The environment's value, else the file's. */
static void choose(char **to, const char *name, const char *file)
{
    const char *env = getenv(name);

    if (!*to)
        *to = xstrdup(!str_is_empty(env) ? env : file);
}

static void choose_url(struct cli *cli, const struct config *c)
{
    const char *env = getenv("MUSTER_URL");
    _cleanup_free_ char *file = c->url ? xasprintf("'%s'", c->path) : NULL;

    if (cli->url)
        return;
    if (!str_is_empty(env))
        cli_set_url(cli, env, "MUSTER_URL");
    else
        cli_set_url(cli, c->url ? c->url : DEFAULT_URL, file);
}

int config_read(struct cli *cli, struct err *err)
{
    _cleanup_(config_done) struct config c = {0};
    bool need_file = str_is_empty(getenv("MUSTER_URL")) || str_is_empty(getenv("MUSTER_TOKEN"));
    int r = need_file ? load_file(&c, err) : 0;

    if (r < 0)
        return r;
    choose_url(cli, &c);
    choose(&cli->token, "MUSTER_TOKEN", c.token);
    choose(&cli->ca, "MUSTER_CA", c.ca);
    return 0;
}

/* --- writing ------------------------------------------------------------------------------ */

/* YAML's double quotes take JSON's escapes. */
static void put(struct buf *b, const char *key, const char *value)
{
    _cleanup_(json_decrefp) json_t *text = value ? json_string(value) : NULL;
    _cleanup_free_ char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;

    if (quoted)
        buf_printf(b, "%s: %s\n", key, quoted);
}

static int write_file(
    const char *path, const char *url, const char *token, const char *ca, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(64 * 1024);
    _cleanup_free_ char *dir = xstrdup(path);
    int r;

    *strrchr(dir, '/') = '\0';
    put(&b, "url", url);
    put(&b, "token", token);
    put(&b, "ca", ca);
    r = fs_mkdir_p(dir, 0700, err);
    return r < 0 ? r : fs_write_atomic(path, b.data, b.len, 0600, err);
}

int config_write(const char *url, const char *token, const char *ca, struct err *err)
{
    _cleanup_free_ char *path = config_path();

    if (!path)
        return err_set(err, -ENOENT, "you have no home folder to keep the token in");
    return write_file(path, url, token, ca, err);
}

/* As the person: their home may be on storage where root has no rights, and a link that they put
 * there must not lead root anywhere. */
static int become(uint32_t uid, uint32_t gid, struct err *err)
{
    int saved;

    if (setegid(gid) == 0 && seteuid(uid) == 0)
        return 0;
    saved = errno;
    (void)!setegid(0);
    return err_sys(err, -saved, "cannot act as uid %u", uid);
}

static void be_root_again(void)
{
    if (seteuid(0) < 0 || setegid(0) < 0)
        abort();
}

int config_write_for(const char *home, uint32_t uid, uint32_t gid, const char *url,
    const char *token, const char *ca, struct err *err)
{
    _cleanup_free_ char *path = path_below(home);
    int r = become(uid, gid, err);

    if (r < 0)
        return r;
    r = write_file(path, url, token, ca, err);
    be_root_again();
    return r;
}

static bool leads_to(const char *path, uint32_t owner, const char *url)
{
    _cleanup_(config_done) struct config c = {0};

    return path && fs_exists(path) && load(&c, path, owner, NULL) == 0 && c.token &&
        str_eq(c.url, url);
}

static void forget_file(const char *path)
{
    if (unlink(path) == 0)
        cli_say("signed out: '%s' is removed", path);
}

void config_forget(const char *url)
{
    _cleanup_free_ char *own = config_path(), *sudo = NULL;
    const struct passwd *pw;
    uint32_t uid = 0;

    if (leads_to(own, geteuid(), url))
        forget_file(own);
    sudo = sudo_path(&uid);
    if (!leads_to(sudo, uid, url))
        return;
    pw = getpwuid((uid_t)uid);
    if (!pw || become(uid, pw->pw_gid, NULL) < 0)
        return;
    forget_file(sudo);
    be_root_again();
}
