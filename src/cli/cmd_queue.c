/* hold, release, prio, plan: the queue, and what is to become of it. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/plan_svg.h"
#include "cli/ref.h"
#include "cli/table.h"
#include "cli/text.h"

struct plan_opts {
    struct cli_common common;
    char *svg;
};

/* clang-format off */
const struct opt plan_options[] = {
    { "svg", OPT_STR, offsetof(struct plan_opts, svg), NULL, "FILE", "draw it: each node's GPUs over time",
      0, true },
    CLI_COMMON_OPTIONS(struct plan_opts)
};

static const struct column prio_columns[] = {
    { "POS", 0, true },
    { "NUM", 0, true },
    { "NAME", 3, .cut = true },
    { "OWNER", 4 },
    { "SIZE", 6, true },
    { "EACH", 5, .cut = true },
    { "QOS", 5 },
    { "PRIORITY", 0, true },
    { "WORK", 1, true },
    { "WAITED", 1, true },
    { "AGE", 1, true },
    { "FAIR", 1, true },
    { "NICE", 1, true },
    { "REASON", 2 },
    { "PLANNED", 2 },
};

static const struct column plan_columns[] = {
    { "TIME", 0 },
    { "WHAT", 0 },
    { "NUM", 0, true },
    { "NAME", 3, .cut = true },
    { "OWNER", 4 },
    { "SIZE", 2, true },
    { "EACH", 5, .cut = true },
    { "NODES", 1, .cut = true },
};
/* clang-format on */

/* --- hold and release ----------------------------------------------------------------------- */

static int post_one(struct cli *cli, const char *ref, const void *what)
{
    _cleanup_free_ char *path = api_session_path(ref, what);
    _cleanup_(json_decrefp) json_t *body = json_object(), *session = NULL;
    struct err err = ERR_INIT;

    if (api_call(cli, "POST", path, body, &session, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, session);
    return EXIT_OK;
}

static int post_each(struct cli *cli, int argc, char **argv, const char *what)
{
    static struct cli_plain o;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    return cli_each(cli, argc - rest, argv + rest, post_one, what);
}

int cmd_hold(struct cli *cli, int argc, char **argv)
{
    return post_each(cli, argc, argv, "/hold");
}

int cmd_release(struct cli *cli, int argc, char **argv)
{
    return post_each(cli, argc, argv, "/release");
}

/* --- prio ----------------------------------------------------------------------------------- */

static char *number_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_integer(v) ? xasprintf("%lld", (long long)json_integer_value(v)) : xstrdup("-");
}

static void prio_row(struct table *t, const json_t *s, bool utc)
{
    const json_t *points = json_object_get(s, "points");

    table_cell(t, number_of(s, "position"));
    table_cell(t, number_of(s, "num"));
    table_cell(t, text_member(s, "name"));
    table_cell(t, text_member(s, "owner"));
    table_cell(t, number_of(s, "size"));
    table_cell(t, text_resources(json_object_get(s, "each")));
    table_cell(t, text_member(s, "qos"));
    table_cell(t, number_of(s, "priority"));
    table_cell(t, number_of(points, "work"));
    table_cell(t, number_of(points, "expansion"));
    table_cell(t, number_of(points, "age"));
    table_cell(t, number_of(points, "fair"));
    table_cell(t, number_of(points, "nice"));
    table_cell(t, text_member(s, "code"));
    table_cell(t, text_time(s, "planned_start", utc));
}

/* Keep the one session that was asked for. */
static int keep_one(struct cli *cli, json_t *queue, const char *ref, struct err *err)
{
    _cleanup_free_ char *path = api_session_path(ref, "");
    _cleanup_(json_decrefp) json_t *session = NULL;
    int r = api_get(cli, path, &session, err);
    uint64_t num;

    if (r < 0)
        return r;
    num = json_u64_or(session, "num", 0);
    for (size_t i = json_array_size(queue); i > 0; i--)
        if (json_u64_or(json_array_get(queue, i - 1), "num", 0) != num)
            json_array_remove(queue, i - 1);
    if (json_array_size(queue) == 0)
        return err_set(err, -EINVAL, "the session is %s; only those that wait have a priority",
            json_str_or(session, "state", "not waiting"));
    return 0;
}

int cmd_prio(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *body = NULL;
    _cleanup_(table_freep) struct table *t = table_new(prio_columns, ARRAY_LEN(prio_columns));
    struct err err = ERR_INIT;
    const json_t *s;
    json_t *queue;
    uint64_t more;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);
    size_t i;

    if (code != CLI_GO_ON)
        return code;
    /* One may be anywhere in it. */
    if (api_get(cli, rest < argc ? "/v1/queue?limit=100000" : "/v1/queue", &body, &err) < 0)
        return cli_fail(cli, &err);
    queue = json_object_get(body, "queue");
    more = json_u64_or(body, "waiting", 0) - json_array_size(queue);
    if (rest < argc && keep_one(cli, queue, argv[rest], &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        api_print(cli, body);
        return EXIT_OK;
    }
    json_array_foreach (queue, i, s)
        prio_row(t, s, cli->utc);
    table_print(t, stdout);
    if (rest == argc && more > 0)
        cli_say("%llu more wait behind these; 'muster prio SESSION' shows one",
            (unsigned long long)more);
    return EXIT_OK;
}

/* --- plan ----------------------------------------------------------------------------------- */

/* "n1,n2": each node once. */
static char *places_of(const json_t *s)
{
    struct buf b = BUF_INIT(64 * 1024);
    const char *last = "";
    const json_t *p;
    size_t i;

    json_array_foreach (json_object_get(s, "places"), i, p) {
        const char *node = json_str_or(p, "node", "");

        if (!str_eq(node, last))
            buf_printf(&b, "%s%s", b.len ? "," : "", node);
        last = node;
    }
    buf_puts(&b, "");
    _cleanup_free_ char *text = buf_take(&b);
    return text_clean(text);
}

struct step { /* something that is to happen */
    const char *time, *what;
    const json_t *session;
};

static int by_time(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    int order = strcmp(x->time, y->time);

    return order ? order : strcmp(x->what, y->what);
}

static size_t add_steps(
    struct step *steps, size_t n, const json_t *list, const char *key, const char *what)
{
    const json_t *s;
    size_t i;

    json_array_foreach (list, i, s) {
        const char *time = json_str_or(s, key, NULL);

        if (time)
            steps[n++] = (struct step){time, what, s};
    }
    return n;
}

static void plan_row(struct table *t, const struct step *step, bool utc)
{
    uint64_t usec = 0;

    (void)clock_parse(step->time, &usec, NULL);
    table_cell(t, text_usec(usec, utc));
    table_cell(t, xstrdup(step->what));
    table_cell(t, number_of(step->session, "num"));
    table_cell(t, text_member(step->session, "name"));
    table_cell(t, text_member(step->session, "owner"));
    table_cell(t, number_of(step->session, "size"));
    table_cell(t, text_resources(json_object_get(step->session, "each")));
    table_cell(t, places_of(step->session));
}

static size_t count_endless(const json_t *running)
{
    const json_t *s;
    size_t i, n = 0;

    json_array_foreach (running, i, s)
        n += !json_is_string(json_object_get(s, "end"));
    return n;
}

/* How far the plan can be believed. */
static void print_quality(const json_t *q)
{
    uint64_t n = json_u64_or(q, "sessions", 0), good = json_u64_or(q, "within_2x", 0);
    uint64_t limits = json_u64_or(q, "limit_sessions", 0);

    if (n > 0)
        printf("estimates: of %llu sessions %llu %% ran within a factor of two of them, %llu %% "
               "shorter than "
               "expected\n",
            (unsigned long long)n, (unsigned long long)(100 * good / n),
            (unsigned long long)(100 * json_u64_or(q, "took_less", 0) / n));
    if (limits > 0)
        printf("time limits: of %llu sessions %llu %% took half of theirs or more\n",
            (unsigned long long)limits,
            (unsigned long long)(100 * json_u64_or(q, "limit_within_2x", 0) / limits));
}

static void print_plan(const struct cli *cli, const json_t *plan)
{
    _cleanup_(table_freep) struct table *t = table_new(plan_columns, ARRAY_LEN(plan_columns));
    const json_t *running = json_object_get(plan, "running");
    const json_t *planned = json_object_get(plan, "planned");
    size_t most = json_array_size(running) + 2 * json_array_size(planned), n, endless;
    _cleanup_free_ struct step *steps = xnew_array(struct step, most + 1);

    n = add_steps(steps, 0, running, "end", "ends");
    n = add_steps(steps, n, planned, "start", "starts");
    n = add_steps(steps, n, planned, "end", "ends");
    qsort(steps, n, sizeof(*steps), by_time);
    for (size_t i = 0; i < n; i++)
        plan_row(t, &steps[i], cli->utc);
    table_print(t, stdout);
    endless = count_endless(running);
    if (endless)
        printf("%zu session%s without an end: nothing can be planned on what they hold\n", endless,
            endless == 1 ? " runs" : "s run");
    print_quality(json_object_get(plan, "estimates"));
}

int cmd_plan(struct cli *cli, int argc, char **argv)
{
    static struct plan_opts o;
    _cleanup_(json_decrefp) json_t *plan = NULL;
    _cleanup_free_ char *svg = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (api_get(cli, "/v1/plan", &plan, &err) < 0)
        return cli_fail(cli, &err);
    if (o.svg) {
        svg = plan_svg(plan);
        if (fs_write_atomic(o.svg, svg, strlen(svg), 0644, &err) < 0)
            return cli_fail(cli, &err);
    } else if (cli->json) {
        api_print(cli, plan);
    } else {
        print_plan(cli, plan);
    }
    return EXIT_OK;
}
