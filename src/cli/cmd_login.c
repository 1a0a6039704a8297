/* login, whoami, version: who asks whom. */
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/hidden.h"
#include "cli/text.h"
#include "cli/trust.h"
#include "net/cert.h"

struct login_opts {
    struct cli_common common;
    char *ca, *fingerprint;
};

static int check_fingerprint(const char *value, struct err *err)
{
    if (!cert_fingerprint_is_valid(value))
        return err_set(err, -EINVAL, "must be sha256: and 64 digits, as 'muster version' shows it");
    return 0;
}

/* clang-format off */
const struct opt login_options[] = {
    { "ca", OPT_STR, offsetof(struct login_opts, ca), NULL, "PATH",
      "certificates to trust for https (the system's, or what the manager shows, if unset)", 0, true },
    { "fingerprint", OPT_STR, offsetof(struct login_opts, fingerprint), NULL, "SHA256",
      "trust an authority with this fingerprint, and do not ask", 0, true, check_fingerprint },
    CLI_TALK_OPTIONS(struct login_opts)
};
/* clang-format on */

static int check_token(struct cli *cli)
{
    _cleanup_(json_decrefp) json_t *me = NULL;
    struct err err = ERR_INIT;

    if (api_get(cli, "/v1/whoami", &me, &err) < 0)
        return cli_fail(cli, &err);
    if (config_write(cli->url, cli->token, cli->ca, &err) < 0)
        return cli_fail(cli, &err);
    _cleanup_free_ char *path = config_path(), *name = text_member(me, "name");
    cli_say("signed in as %s%s; kept in %s", name,
        str_is_empty(getenv("MUSTER_TOKEN")) ? "" : " by MUSTER_TOKEN", path);
    return EXIT_OK;
}

int cmd_login(struct cli *cli, int argc, char **argv)
{
    static struct login_opts o;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (rest < argc)
        cli_set_url(cli, argv[rest], "the command line");
    if (!str_starts(cli->url, "http://") && !str_starts(cli->url, "https://"))
        return cli_usage(cli, "the address must start with http:// or https://");
    if (trust_choose(cli, o.ca, o.fingerprint, &err) < 0)
        return cli_fail(cli, &err);
    free(cli->token);
    cli->token = xstrdup(getenv("MUSTER_TOKEN"));
    if (str_is_empty(cli->token)) {
        free(cli->token);
        cli->token = hidden_line("Token");
    }
    if (str_is_empty(cli->token))
        return cli_usage(cli,
            "no token was given: type it when asked, or give it on stdin "
            "('muster login URL < FILE') or in MUSTER_TOKEN");
    return check_token(cli);
}

int cmd_whoami(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *me = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (api_get(cli, "/v1/whoami", &me, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        api_print(cli, me);
        return EXIT_OK;
    }
    _cleanup_free_ char *name = text_member(me, "name"), *role = text_member(me, "role");
    _cleanup_free_ char *uid = text_member(me, "uid");
    printf("%s (%s, uid %s) at %s\n", name, role, uid, cli->url);
    return EXIT_OK;
}

int cmd_version(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *body = NULL;
    struct err err = ERR_INIT;
    int rest, r, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    r = api_get(cli, "/v1/version", &body, &err);
    if (cli->json) {
        body = body ? body : json_object();
        json_set_str(body, "client", MUSTER_VERSION);
        api_print(cli, body);
        return r < 0 ? cli_fail(cli, &err) : EXIT_OK;
    }
    printf("muster %s\n", MUSTER_VERSION);
    if (r < 0)
        return cli_fail(cli, &err);
    _cleanup_free_ char *version = text_member(body, "version"), *id = text_member(body, "cluster");
    printf("musterd %s at %s, cluster %s\n", version, cli->url, id);
    if (json_is_string(json_object_get(body, "ca"))) {
        _cleanup_free_ char *ca = text_member(body, "ca");
        printf("authority %s\n", ca);
    }
    return EXIT_OK;
}
