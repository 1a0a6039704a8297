/* account ...: who shares what of the cluster with whom. */
#include "base/str.h"
#include "base/strv.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/table.h"
#include "cli/text.h"

struct account_opts {
    struct cli_common common;
    char *parent, *shares, *user_sessions, *user_gpus, *user_debug_gpus, *user_gpu_hours, *window;
    char **users, **without, **quotas;
};

/* clang-format off */
#define O(m) offsetof(struct account_opts, m)
const struct opt account_options[] = {
    { "parent", OPT_STR, O(parent), NULL, "ACCOUNT", "the account above it; none: at the top", 0, true },
    { "shares", OPT_STR, O(shares), NULL, "N", "its weight among its siblings (1)", 0, true },
    { "user", OPT_STRV, O(users), NULL, "NAME", "who works for it, too; may be given several times", 'u', true },
    { "without", OPT_STRV, O(without), NULL, "NAME", "who does not any more", 0, true },
    { "quota", OPT_STRV, O(quotas), NULL, "[GROUP/]MODEL:G/D/M",
      "guaranteed, deserved and most GPUs of a model (of all: '*') in a group (in all); '-' is no bound; "
      "'h100:2/8/16', 'default/*:0/4/-'; 'none' takes all quotas away. May be given several times", 'q', true },
    { "user-sessions", OPT_STR, O(user_sessions), NULL, "N", "each user: sessions at once; none", 0, true },
    { "user-gpus", OPT_STR, O(user_gpus), NULL, "N", "each user: GPUs at once; none", 0, true },
    { "user-debug-gpus", OPT_STR, O(user_debug_gpus), NULL, "N",
      "each user: GPUs in debug sessions at once; none", 0, true },
    { "user-gpu-hours", OPT_STR, O(user_gpu_hours), NULL, "N", "each user: GPU-hours in the window; none", 0,
      true },
    { "window", OPT_STR, O(window), NULL, "DAYS", "days of the window (7)", 0, true },
    CLI_COMMON_OPTIONS(struct account_opts)
};
#undef O

static const struct column columns[] = {
    { "ACCOUNT", 0 },
    { "ABOVE", 1 },
    { "SHARES", 2, true },
    { "USERS", 3, .cut = true },
    { "QUOTAS", 0, .cut = true },
};
/* clang-format on */

/* --- options to members --------------------------------------------------------------------- */

static bool is_none(const char *text)
{
    return str_eq(text, "none") || str_eq(text, "-");
}

/* "0.5", "none": a number or null. */
static int set_number(json_t *body, const char *key, const char *text, struct err *err)
{
    char *end;
    double n;

    if (!text)
        return 0;
    if (is_none(text)) {
        json_object_set_new(body, key, json_null());
        return 0;
    }
    n = strtod(text, &end);
    if (end == text || *end || !(n >= 0 && n <= 1e9))
        return err_set(err, -EINVAL, "'%s' must be a number, or none; not '%s'", key, text);
    json_object_set_new(
        body, key, n == (double)(json_int_t)n ? json_integer((json_int_t)n) : json_real(n));
    return 0;
}

/* "h100:2/8/16" */
static int add_quota(json_t *list, const char *spec, struct err *err)
{
    const char *colon = strrchr(spec, ':');
    _cleanup_free_ char *of = colon ? xstrndup(spec, (size_t)(colon - spec)) : NULL;
    _cleanup_(strv_freep) char **numbers = strv_split(colon ? colon + 1 : "", '/');
    char *slash = of ? strchr(of, '/') : NULL;
    const char *model = slash ? slash + 1 : of;
    json_t *q = json_object();
    int r = 0;

    json_array_append_new(list, q);
    if (!of || strv_len(numbers) != 3)
        return err_set(err, -EINVAL,
            "--quota '%s' must be [GROUP/]MODEL:GUARANTEED/DESERVED/MOST, like h100:2/8/16", spec);
    if (slash)
        *slash = '\0';
    json_set_str(q, "group", slash && !str_eq(of, "*") ? of : NULL);
    json_set_str(q, "gpu_model", str_eq(model, "*") ? NULL : model);
    r = set_number(q, "guarantee", is_none(numbers[0]) ? "0" : numbers[0], err);
    if (r == 0)
        r = set_number(q, "deserved", numbers[1], err);
    if (r == 0)
        r = set_number(q, "max", numbers[2], err);
    return r;
}

static int set_quotas(json_t *body, char **specs, struct err *err)
{
    json_t *list;
    int r = 0;

    if (!specs)
        return 0;
    list = json_array();
    json_object_set_new(body, "quotas", list);
    strv_for_each (spec, specs)
        if (r == 0 && !str_eq(*spec, "none"))
            r = add_quota(list, *spec, err);
    return r;
}

static void set_users(json_t *body, const struct account_opts *o, const json_t *now)
{
    json_t *list;
    char **users = o->users;
    const json_t *name;
    size_t i;

    if (!o->users && !o->without)
        return;
    list = json_array();
    json_object_set_new(body, "users", list);
    json_array_foreach (now, i, name)
        if (!strv_has(o->without, json_string_value(name)))
            json_array_append(list, (json_t *)name);
    strv_for_each (user, users)
        json_array_append_new(list, json_string(*user));
}

static int make_body(const struct account_opts *o, const json_t *now, json_t *body, struct err *err)
{
    const struct {
        const char *key, *text;
    } numbers[] = {{"shares", o->shares}, {"user_sessions", o->user_sessions},
        {"user_gpus", o->user_gpus}, {"user_debug_gpus", o->user_debug_gpus},
        {"user_gpu_hours", o->user_gpu_hours}, {"window_days", o->window}};
    int r = set_quotas(body, o->quotas, err);

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(numbers); i++)
        r = set_number(body, numbers[i].key, numbers[i].text, err);
    if (o->parent)
        json_set_str(body, "parent", is_none(o->parent) ? NULL : o->parent);
    set_users(body, o, json_object_get(now, "users"));
    return r;
}

/* --- showing -------------------------------------------------------------------------------- */

static char *bound_text(const json_t *q, const char *key)
{
    const json_t *v = json_object_get(q, key);

    return json_is_number(v) ? xasprintf("%g", json_number_value(v)) : xstrdup("-");
}

/* As --quota takes it. */
static char *quotas_text(const json_t *account)
{
    struct buf b = BUF_INIT(64 * 1024);
    const json_t *q;
    size_t i;

    json_array_foreach (json_object_get(account, "quotas"), i, q) {
        _cleanup_free_ char *g = bound_text(q, "guarantee"), *d = bound_text(q, "deserved");
        _cleanup_free_ char *m = bound_text(q, "max");
        const char *group = json_str_or(q, "group", NULL);

        buf_printf(&b, "%s%s%s%s:%s/%s/%s", i ? " " : "", group ? group : "", group ? "/" : "",
            json_str_or(q, "gpu_model", "*"), g, d, m);
    }
    buf_puts(&b, "");
    return buf_take(&b);
}

static char *users_text(const json_t *account)
{
    struct buf b = BUF_INIT(64 * 1024);
    const json_t *name;
    size_t i;

    json_array_foreach (json_object_get(account, "users"), i, name)
        buf_printf(&b, "%s%s", i ? "," : "", json_string_value(name));
    buf_puts(&b, "");
    return buf_take(&b);
}

static void add_row(const struct cli *cli, struct table *t, const json_t *a)
{
    table_cell(t, text_member(a, "name"));
    table_cell(t, text_member(a, "parent"));
    table_cell(t, xasprintf("%llu", (unsigned long long)json_u64_or(a, "shares", 0)));
    table_cell(t, users_text(a));
    table_cell(t, quotas_text(a));
}

int cmd_account_ls(struct cli *cli, int argc, char **argv)
{
    return listing_run(cli, argc, argv,
        &(struct listing){"/v1/accounts", "accounts", columns, ARRAY_LEN(columns), add_row});
}

static void print_bound(const json_t *a, const char *title, const char *key)
{
    if (json_is_number(json_object_get(a, key)))
        printf("%-16s %g\n", title, json_number_value(json_object_get(a, key)));
}

static void print_account(const json_t *a)
{
    _cleanup_free_ char *name = text_member(a, "name"), *parent = text_member(a, "parent");
    _cleanup_free_ char *users = users_text(a), *quotas = quotas_text(a);
    const json_t *u;
    size_t i;

    printf("%-16s %s\n%-16s %s\n", "Account", name, "Below", parent);
    printf("%-16s %llu\n%-16s %s\n%-16s %s\n", "Shares",
        (unsigned long long)json_u64_or(a, "shares", 0), "Users", users, "Quotas", quotas);
    print_bound(a, "Each: sessions", "user_sessions");
    print_bound(a, "Each: GPUs", "user_gpus");
    print_bound(a, "Each: debug GPUs", "user_debug_gpus");
    print_bound(a, "Each: GPU-hours", "user_gpu_hours");
    print_bound(a, "Window, days", "window_days");
    json_array_foreach (json_object_get(a, "use"), i, u) {
        _cleanup_free_ char *user = text_member(u, "user");
        printf("%-16s %s: %.1f GPU-hours in the window, %.1f that still count for fairness\n",
            i ? "" : "Use", user, (double)json_u64_or(u, "gpu_seconds_in_window", 0) / 3600,
            (double)json_u64_or(u, "gpu_seconds", 0) / 3600);
    }
}

static char *account_path(const char *name)
{
    _cleanup_free_ char *encoded = http_encode(name);

    return xasprintf("/v1/accounts/%s", encoded);
}

int cmd_account_show(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *account = NULL;
    _cleanup_free_ char *path = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    path = account_path(argv[rest]);
    if (api_get(cli, path, &account, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, account);
    else
        print_account(account);
    return EXIT_OK;
}

/* --- changing ------------------------------------------------------------------------------- */

static int send(struct cli *cli, const char *method, const char *path, json_t *body)
{
    _cleanup_(json_decrefp) json_t *account = NULL;
    struct err err = ERR_INIT;

    if (api_call(cli, method, path, body, &account, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, account);
    return EXIT_OK;
}

int cmd_account_create(struct cli *cli, int argc, char **argv)
{
    static struct account_opts o;
    _cleanup_(json_decrefp) json_t *body = json_object();
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    json_set_str(body, "name", argv[rest]);
    if (make_body(&o, NULL, body, &err) < 0)
        return cli_usage(cli, "%s", err_text(&err));
    return send(cli, "POST", "/v1/accounts", body);
}

int cmd_account_set(struct cli *cli, int argc, char **argv)
{
    static struct account_opts o;
    _cleanup_(json_decrefp) json_t *body = json_object(), *now = NULL;
    _cleanup_free_ char *path = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    path = account_path(argv[rest]);
    if (api_get(cli, path, &now, &err) < 0)
        return cli_fail(cli, &err);
    if (make_body(&o, now, body, &err) < 0)
        return cli_usage(cli, "%s", err_text(&err));
    return send(cli, "PATCH", path, body);
}

static int remove_one(struct cli *cli, const char *name, const void *arg)
{
    _cleanup_free_ char *path = account_path(name);
    struct err err = ERR_INIT;

    return api_call(cli, "DELETE", path, NULL, NULL, &err) < 0 ? cli_fail(cli, &err) : EXIT_OK;
}

int cmd_account_rm(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    return cli_each(cli, argc - rest, argv + rest, remove_one, NULL);
}
