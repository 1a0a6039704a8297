/* ls: the sessions, newest first, page by page. */
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/text.h"

#define PAGE 500

struct ls_opts {
    struct cli_common common;
    bool all, ended, quiet;
    char *state, *name, *kind, *group, *owner, *sort;
    uint64_t limit;
};

/* clang-format off */
const struct opt ls_options[] = {
    { "all", OPT_BOOL, offsetof(struct ls_opts, all), NULL, NULL,
      "everybody's (administrators)", 'a', true },
    { "ended", OPT_BOOL, offsetof(struct ls_opts, ended), NULL, NULL, "those that ended too", 'e', true },
    { "state", OPT_STR, offsetof(struct ls_opts, state), NULL, "STATE", "only those in this state",
      0, true },
    { "name", OPT_STR, offsetof(struct ls_opts, name), NULL, "NAME", "only those of this name", 0, true },
    { "kind", OPT_STR, offsetof(struct ls_opts, kind), NULL, "KIND", "only debug or train ones", 0,
      true },
    { "group", OPT_STR, offsetof(struct ls_opts, group), NULL, "GROUP", "only those in this group", 0,
      true },
    { "owner", OPT_STR, offsetof(struct ls_opts, owner), NULL, "USER",
      "only this user's (others than yourself: administrators)", 0, true },
    { "sort", OPT_STR, offsetof(struct ls_opts, sort), NULL, "ORDER",
      "num, submitted or ended (then only ended ones); with - in front the last ones first", 0, true },
    { "limit", OPT_U64, offsetof(struct ls_opts, limit), "100", "N", "at most so many; 0: all", 0, true },
    { "quiet", OPT_BOOL, offsetof(struct ls_opts, quiet), NULL, NULL, "print ids only", 'q', true },
    CLI_COMMON_OPTIONS(struct ls_opts)
};

static const struct column columns[] = {
    { "NUM", 0, true },
    { "NAME", 0 },
    { "OWNER", 6 },
    { "STATE", 0 },
    { "KIND", 8 },
    { "SIZE", 3, true },
    { "NODES", 4, .cut = true },
    { "EACH", 9, .cut = true },
    { "CPUS", 5, true },
    { "MEM", 7, true },
    { "GPUS", 2, true },
    { "IMAGE", 10, .cut = true },
    { "TIME", 1, true },
    { "REASON", 11, .cut = true },
};
/* clang-format on */

/* "n1,n2": each node once, in order of the containers. */
static char *nodes_of(const json_t *session)
{
    struct buf b = BUF_INIT(64 * 1024);
    const json_t *c;
    _cleanup_free_ char *last = NULL;
    size_t i;

    json_array_foreach (json_object_get(session, "containers"), i, c) {
        const char *node = json_str_or(c, "node", NULL);
        if (!node || str_eq(node, last))
            continue;
        buf_printf(&b, "%s%s", b.len ? "," : "", node);
        free(last);
        last = xstrdup(node);
    }
    if (b.len == 0)
        buf_puts(&b, "-");
    _cleanup_free_ char *text = buf_take(&b);
    return text_clean(text);
}

static char *time_of(const json_t *session)
{
    bool started = json_is_string(json_object_get(session, "started"));

    return text_span(session, started ? "started" : "submitted", "ended");
}

static void add_row(struct table *t, const json_t *s)
{
    const json_t *r = json_object_get(s, "resources");
    const json_t *total = json_object_get(r, "total");
    char *reason = text_reason(s);

    table_cell(t, text_member(s, "num"));
    table_cell(t, text_member(s, "name"));
    table_cell(t, text_member(s, "owner"));
    table_cell(t, text_state(s));
    table_cell(t, text_member(s, "kind"));
    table_cell(t, text_member(s, "size"));
    table_cell(t, nodes_of(s));
    table_cell(t, text_resources(json_object_get(r, "each")));
    table_cell(t, text_cpus(total));
    table_cell(t, text_mem(total));
    table_cell(t, text_member(total, "gpus"));
    table_cell(t, text_member(s, "image"));
    table_cell(t, time_of(s));
    table_cell(t, reason);
}

static void add_query(struct buf *path, const char *key, const char *value)
{
    _cleanup_free_ char *encoded = http_encode(value);

    buf_printf(path, "&%s=%s", key, encoded);
}

static char *page_path(const struct ls_opts *o, uint64_t want, const char *next)
{
    struct buf path = BUF_INIT(4096);

    buf_printf(&path, "/v1/sessions?limit=%llu", (unsigned long long)want);
    if (o->all)
        buf_puts(&path, "&all=1");
    if (o->ended)
        buf_puts(&path, "&ended=1");
    if (o->state)
        add_query(&path, "state", o->state);
    if (o->name)
        add_query(&path, "name", o->name);
    if (o->kind)
        add_query(&path, "kind", o->kind);
    if (o->group)
        add_query(&path, "group", o->group);
    if (o->owner)
        add_query(&path, "owner", o->owner);
    if (o->sort)
        add_query(&path, "sort", o->sort);
    if (next)
        add_query(&path, "after", next);
    return buf_take(&path);
}

/* Pages into one list, up to what was asked for; *ret_next: where to go on, NULL: that was all.
 * Heap. A page may be short, or empty, and not the last. */
static int fetch(
    struct cli *cli, const struct ls_opts *o, json_t *list, char **ret_next, struct err *err)
{
    uint64_t left = o->limit ? o->limit : UINT64_MAX;
    _cleanup_free_ char *next = NULL;

    do {
        _cleanup_free_ char *path = page_path(o, MIN_OF(left, (uint64_t)PAGE), next);
        _cleanup_(json_decrefp) json_t *page = NULL;
        int r = api_get(cli, path, &page, err);
        if (r < 0)
            return r;
        left -= MIN_OF(left, json_array_size(json_object_get(page, "sessions")));
        json_array_extend(list, json_object_get(page, "sessions"));
        free(TAKE_PTR(next));
        if (json_str_or(page, "next", NULL))
            next = xstrdup(json_str_or(page, "next", NULL));
    } while (next && left > 0);
    *ret_next = TAKE_PTR(next);
    return 0;
}

static void print_ids(const json_t *list)
{
    const json_t *s;
    size_t i;

    json_array_foreach (list, i, s)
        printf("%s\n", json_str_or(s, "id", ""));
}

static void print_table(const json_t *list, const char *next)
{
    _cleanup_(table_freep) struct table *t = table_new(columns, ARRAY_LEN(columns));
    const json_t *s;
    size_t i;

    json_array_foreach (list, i, s)
        add_row(t, s);
    table_print(t, stdout);
    if (next)
        cli_say("there are more; see --limit");
}

static void print_json(const struct cli *cli, json_t *list, const char *next)
{
    _cleanup_(json_decrefp) json_t *body = json_object();

    json_object_set(body, "sessions", list);
    json_set_str(body, "next", next);
    api_print(cli, body);
}

int cmd_ls(struct cli *cli, int argc, char **argv)
{
    static struct ls_opts o;
    _cleanup_(json_decrefp) json_t *list = json_array();
    _cleanup_free_ char *next = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (fetch(cli, &o, list, &next, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        print_json(cli, list, next);
    else if (o.quiet)
        print_ids(list);
    else
        print_table(list, next);
    return EXIT_OK;
}
