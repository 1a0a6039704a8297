/* The first meeting with a manager. Nothing but the handshake is sent before it is decided. */
#include "cli/trust.h"

#include "base/fs.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/text.h"
#include "net/cert.h"

#define ANSWER_MAX 64

static void set_ca(struct cli *cli, const char *path)
{
    char *copy = xstrdup(path);

    free(cli->ca);
    cli->ca = copy;
    http_free(TAKE_PTR(cli->http));
}

/* By what cli->ca says now, without a token. */
static bool is_trusted(struct cli *cli, struct err *err)
{
    struct cli other = api_clone(cli);
    int r;

    other.token = NULL;
    r = api_get(&other, "/v1/version", NULL, err);
    http_free(other.http);
    return r == 0;
}

/* One line from the person, who may have stdin elsewhere; "" when there is no terminal. */
static void ask(const char *question, char answer[ANSWER_MAX])
{
    FILE *tty = fopen("/dev/tty", "r+e");

    answer[0] = '\0';
    if (!tty)
        return;
    fprintf(tty, "%s", question);
    fflush(tty);
    if (fgets(answer, ANSWER_MAX, tty))
        answer[strcspn(answer, "\r\n")] = '\0';
    fclose(tty);
}

static int confirm(const struct cli *cli, const char *shown, const char *said, struct err *err)
{
    _cleanup_free_ char *url = text_clean(cli->url), *question = NULL;
    char answer[ANSWER_MAX];

    if (said && str_eq(said, shown))
        return 0;
    if (said)
        return err_set(err, -EPERM,
            "%s shows an authority with another fingerprint: %s; nothing was sent", url, shown);
    question = xasprintf(
        "The manager at %s shows an authority of its own:\n  %s\n"
        "'muster version' where you are signed in, or who runs it, tells you which "
        "it has.\nIs it that one (yes/no)? ",
        url, shown);
    ask(question, answer);
    if (str_eq(answer, "yes"))
        return 0;
    return err_set(err, -EPERM, "%s; if %s is the right authority: --fingerprint %s",
        answer[0] ? "not signed in" : "nobody is here to say whether the manager is the right one",
        url, shown);
}

/* "ca-HOST-PORT.crt" beside the configuration. */
static char *kept_path(const struct cli *cli)
{
    _cleanup_free_ char *config = config_path();
    _cleanup_free_ char *name = xstrdup(strstr(cli->url, "://") + 3);
    char *slash = config ? strrchr(config, '/') : NULL;

    name[strcspn(name, "/")] = '\0';
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", *c))
            *c = '-';
    return slash ? xasprintf("%.*s/ca-%s.crt", (int)(slash - config), config, name) : NULL;
}

static int keep(struct cli *cli, const char *authority, struct err *err)
{
    _cleanup_free_ char *path = kept_path(cli), *folder = xstrdup(path);
    int r;

    if (!path)
        return err_set(err, -ENOENT, "you have no home folder to keep the authority in; give --ca");
    *strrchr(folder, '/') = '\0';
    r = fs_mkdir_p(folder, 0700, err);
    if (r == 0)
        r = fs_write_atomic(path, authority, strlen(authority), 0644, err);
    if (r == 0)
        set_ca(cli, path);
    return r;
}

/* why: what was wrong by the system's authorities. */
static int meet(struct cli *cli, const char *said, const struct err *why, struct err *err)
{
    _cleanup_free_ char *chain = NULL, *authority = NULL;
    struct cert_info info;
    int r = http_look(cli->url, NULL, &chain, err);

    if (r < 0)
        return r;
    if (cert_authority(chain, &authority, &info) < 0)
        return err_set(err, why->code, "%s; name its authority: --ca FILE", err_text(why));
    r = confirm(cli, info.fingerprint, said, err);
    return r < 0 ? r : keep(cli, authority, err);
}

int trust_choose(struct cli *cli, const char *ca, const char *fingerprint, struct err *err)
{
    _cleanup_free_ char *path = NULL;
    struct err why = ERR_INIT;

    if (!str_starts(cli->url, "https://"))
        return 0;
    if (ca) {
        path = realpath(ca, NULL);
        if (!path)
            return err_sys(err, -errno, "'%s'", ca);
        set_ca(cli, path);
        return 0;
    }
    if (!str_is_empty(getenv("MUSTER_CA")))
        return 0;
    set_ca(cli, NULL);
    if (!fingerprint && is_trusted(cli, &why))
        return 0;
    path = fingerprint ? NULL : kept_path(cli);
    if (path && fs_exists(path)) {
        set_ca(cli, path);
        if (is_trusted(cli, NULL))
            return 0;
    }
    if (!fingerprint && why.code != -EPERM) {
        *err = why;
        return why.code;
    }
    return meet(cli, fingerprint, &why, err);
}
