/* export: what has run, and on what, in the form that muster-sim reads (docs/scheduling.md). */
#include "base/clock.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/moment.h"
#include "cli/request.h"
#include "cli/text.h"

#define PAGE 500

struct export_opts {
    struct cli_common common;
    char *since, *until;
    bool mine;
};

/* clang-format off */
const struct opt export_options[] = {
    { "since", OPT_STR, offsetof(struct export_opts, since), NULL, "TIME",
      "only those submitted from then on: 2026-11-01, 2026-11-01T08:00", 0, true, request_check_moment },
    { "until", OPT_STR, offsetof(struct export_opts, until), NULL, "TIME", "only those submitted before", 0,
      true, request_check_moment },
    { "mine", OPT_BOOL, offsetof(struct export_opts, mine), NULL, NULL,
      "only one's own (all that there are is for administrators)", 0, true },
    CLI_TALK_OPTIONS(struct export_opts)
};
/* clang-format on */

struct window {
    uint64_t since, until; /* usec; 0: open */
};

static uint64_t moment_or_none(const char *text)
{
    uint64_t usec = 0;

    if (text)
        (void)moment_parse(text, clock_real_usec(), &usec, NULL);
    return usec;
}

static uint64_t in_bytes(const json_t *each)
{
    return json_u64_or(each, "mem", 0);
}

/* A comma or a quote in a name would be another column: names that Muster takes have none. */
static void print_session(const json_t *s, uint64_t submitted)
{
    const json_t *resources = json_object_get(s, "resources"),
                 *each = json_object_get(resources, "each");
    uint64_t started = text_read_time(s, "started", 0), ended = text_read_time(s, "ended", 0);
    uint64_t limit = json_u64_or(s, "time_limit_usec", 0),
             guess = json_u64_or(s, "estimate_usec", 0);
    _cleanup_free_ char *cpus = text_cpus(each), *owner = text_member(s, "owner");
    _cleanup_free_ char *group = text_member(s, "group");
    const char *model = json_str_or(resources, "gpu_model", "");

    printf("%.3f,%.3f,%llu,%s,%llu,%llu,%s,", (double)submitted / 1e6,
        (double)(ended - started) / 1e6, (unsigned long long)json_u64_or(s, "size", 1), cpus,
        (unsigned long long)in_bytes(each), (unsigned long long)json_u64_or(each, "gpus", 0),
        model);
    if (limit)
        printf("%.0f", (double)limit / 1e6);
    putchar(',');
    if (guess)
        printf("%.3f", (double)guess / 1e6);
    printf(",%s,%s,%d,%lld\n", owner, group, str_eq(json_str_or(s, "mode", ""), "single-node"),
        (long long)json_integer_value(json_object_get(s, "nice")));
}

/* Those that never ran are no work. False: everything from here on is older. */
static bool print_page(const json_t *list, const struct window *w)
{
    const json_t *s;
    size_t i;

    json_array_foreach (list, i, s) {
        uint64_t submitted = text_read_time(s, "submitted", 0);

        if (w->since && submitted < w->since)
            return false;
        if ((!w->until || submitted < w->until) && text_read_time(s, "started", 0))
            print_session(s, submitted);
    }
    return true;
}

int cmd_export_workload(struct cli *cli, int argc, char **argv)
{
    static struct export_opts o;
    struct err err = ERR_INIT;
    struct window w;
    _cleanup_free_ char *next = NULL;
    bool more = true;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    w = (struct window){moment_or_none(o.since), moment_or_none(o.until)};
    puts("submit,duration,size,cpus,mem,gpus,gpu_model,limit,estimate,user,group,single_node,nice");
    do {
        _cleanup_(json_decrefp) json_t *page = NULL;
        _cleanup_free_ char *after = next ? http_encode(next) : NULL;
        _cleanup_free_ char *path = xasprintf("/v1/sessions?state=ended%s&limit=%d%s%s",
            o.mine ? "" : "&all=1", PAGE, after ? "&after=" : "", after ? after : "");

        if (api_get(cli, path, &page, &err) < 0)
            return cli_fail(cli, &err);
        more = print_page(json_object_get(page, "sessions"), &w);
        free(next);
        next = json_str_or(page, "next", NULL) ? xstrdup(json_str_or(page, "next", "")) : NULL;
    } while (more && next);
    return EXIT_OK;
}

static void print_node(const json_t *n)
{
    const json_t *capacity = json_object_get(n, "capacity");
    const json_t *gpu = json_array_get(json_object_get(n, "gpus"), 0);
    _cleanup_free_ char *name = text_member(n, "name"), *cpus = text_cpus(capacity);
    _cleanup_free_ char *group = text_member(n, "group");

    printf("%s,%s,%llu,%llu,%s,%s,%s,%s\n", name, cpus, (unsigned long long)in_bytes(capacity),
        (unsigned long long)json_u64_or(capacity, "gpus", 0), json_str_or(gpu, "model", ""), group,
        json_str_or(n, "leaf", ""), json_str_or(n, "spine", ""));
}

int cmd_export_nodes(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *body = NULL;
    struct err err = ERR_INIT;
    const json_t *n;
    size_t i;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (api_get(cli, "/v1/nodes", &body, &err) < 0)
        return cli_fail(cli, &err);
    puts("name,cpus,mem,gpus,gpu_model,group,leaf,spine");
    json_array_foreach (json_object_get(body, "nodes"), i, n)
        print_node(n);
    return EXIT_OK;
}
