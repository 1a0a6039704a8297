/*
 * Signing in whoever started the cluster: the person behind sudo becomes an administrator under
 * their own name and uid; root gets the first administrator's token. A configuration that already
 * leads to this cluster stays; one that leads elsewhere is not taken from under its owner when the
 * cluster is not the default one.
 */
#include "cli/signin.h"

#include <pwd.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "cli/api.h"

#define UID_PERSON_MIN 1000

/* The person who came through sudo, NULL if none. */
static const struct passwd *sudo_person(void)
{
    const char *uid_text = getenv("SUDO_UID"), *name = getenv("SUDO_USER");
    const struct passwd *pw;
    uint64_t uid;

    if (!uid_text || !name || str_to_u64(uid_text, UINT32_MAX - 1, &uid) < 0 ||
        uid < UID_PERSON_MIN)
        return NULL;
    pw = getpwuid((uid_t)uid);
    return pw && str_eq(pw->pw_name, name) && pw->pw_dir[0] == '/' ? pw : NULL;
}

static void forget_client(struct cli *cli)
{
    http_free(cli->http);
    free(cli->url);
    free(cli->url_from);
    free(cli->token);
    free(cli->ca);
}

static char *cluster_url(const struct cluster *c)
{
    return xasprintf("http://127.0.0.1:%u", c->port);
}

/* The caller's configuration is good somewhere; *ret_here: that is this cluster. */
static bool works(const struct cluster *c, bool *ret_here)
{
    _cleanup_free_ char *url = cluster_url(c);
    struct cli own = {0};
    bool ok = config_read(&own, NULL) == 0 && own.token &&
        api_get(&own, "/v1/whoami", NULL, NULL) == 0;

    *ret_here = ok && str_eq(own.url, url);
    forget_client(&own);
    return ok;
}

/* The new user's token; heap. -EEXIST: the name or the uid is taken. */
static int add_user(struct cli *admin, const struct passwd *pw, char **ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = json_object(), *user = NULL;
    int r;

    json_set_str(body, "name", pw->pw_name);
    json_set_str(body, "role", "admin");
    json_set_u64(body, "uid", pw->pw_uid);
    r = api_call(admin, "POST", "/v1/users", body, &user, err);
    if (r == -EREMOTEIO && admin->status == 409)
        return -EEXIST;
    if (r == 0)
        *ret = xstrdup(json_str_or(user, "token", ""));
    return r;
}

static int signin_person(const struct passwd *pw, struct cli *admin, struct err *err)
{
    _cleanup_free_ char *token = NULL;
    int r = add_user(admin, pw, &token, err);

    if (r == -EEXIST) { /* their token was shown once, and is lost */
        cli_say("user '%s' is there already; you are signed in as 'admin'", pw->pw_name);
        token = xstrdup(admin->token);
        r = 0;
    }
    if (r < 0)
        return r;
    return config_write_for(pw->pw_dir, pw->pw_uid, pw->pw_gid, admin->url, token, NULL, err);
}

int signin_caller(const struct cluster *c, struct cli *admin, bool *ret_elsewhere, struct err *err)
{
    const struct passwd *person = sudo_person();
    bool here, ok = works(c, &here);

    *ret_elsewhere = false;
    if (here)
        return 0;
    *ret_elsewhere = ok && !str_eq(c->dir, CLUSTER_DIR);
    if (*ret_elsewhere) {
        cli_say("your configuration leads to another cluster and stays");
        return 0;
    }
    if (person)
        return signin_person(person, admin, err);
    return config_write(admin->url, admin->token, NULL, err);
}
