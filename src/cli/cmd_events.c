/* events: what happens in the cluster, from its server-sent events. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/event_text.h"
#include "cli/follow.h"
#include "cli/progress.h"
#include "cli/text.h"

#define EVENT_MAX ((size_t)4 << 20)
#define SEQ_ALL UINT64_MAX

struct events_opts {
    struct cli_common common;
    bool follow;
    uint64_t after;
};

/* clang-format off */
const struct opt events_options[] = {
    { "follow", OPT_BOOL, offsetof(struct events_opts, follow), NULL, NULL,
      "go on with what happens from now", 'f', true },
    { "after", OPT_U64, offsetof(struct events_opts, after), NULL, "REVISION",
      "only what came after this revision", 0, true },
    CLI_COMMON_OPTIONS(struct events_opts)
};
/* clang-format on */

struct stream {
    struct cli *cli;
    struct patience patience;
    struct buf have;
    uint64_t revision, seq; /* of the last event printed; SEQ_ALL: the whole revision is behind */
    char type[64];
    uint64_t id_revision, id_seq;
    char *data;
    bool failed; /* the manager sent an error as an event */
    char error[512];
    struct map said; /* the last line of each subject */
};

/* "REVISION.N", or "REVISION" for all of it */
static void read_id(struct stream *st, const char *text)
{
    char *end;

    st->id_revision = strtoull(text, &end, 10);
    st->id_seq = *end == '.' ? strtoull(end + 1, NULL, 10) : SEQ_ALL;
}

/* The same was said of it last: what has changed is a detail that no line shows. */
static bool is_repeat(struct stream *st, const char *subject, const char *text)
{
    const char *before = map_get(&st->said, subject);

    if (before && str_eq(before, text))
        return true;
    free(map_set(&st->said, subject, xstrdup(text)));
    return false;
}

static void print_event(struct stream *st)
{
    _cleanup_(json_decrefp) json_t *e = NULL;

    if (json_parse(st->data, strlen(st->data), EVENT_MAX, &e, NULL) < 0)
        return;
    if (st->cli->json) {
        json_dumpf(e, stdout, JSON_COMPACT);
        putchar('\n');
        return;
    }
    _cleanup_free_ char *time = text_time(e, "time", st->cli->utc), *text = event_text(e);
    if (is_repeat(st, json_str_or(e, "subject", ""), text))
        return;
    printf("%s  %s\n", time, text);
}

static void event_done(struct stream *st)
{
    bool is_new = st->id_revision > st->revision ||
        (st->id_revision == st->revision && st->id_seq > st->seq);

    if (st->data && str_eq(st->type, "error")) {
        _cleanup_(json_decrefp) json_t *e = NULL;
        st->failed = true;
        (void)json_parse(st->data, strlen(st->data), EVENT_MAX, &e, NULL);
        snprintf(st->error, sizeof(st->error), "%s", json_str_or(e, "message", "failed"));
    } else if (is_new) {
        if (st->data)
            print_event(st);
        st->revision = st->id_revision;
        st->seq = st->id_seq;
    }
    free(TAKE_PTR(st->data));
    st->type[0] = '\0';
}

static void event_line(struct stream *st, const char *line)
{
    if (!line[0]) {
        event_done(st);
    } else if (str_starts(line, "id: ")) {
        read_id(st, line + 4);
    } else if (str_starts(line, "event: ")) {
        snprintf(st->type, sizeof(st->type), "%s", line + 7);
    } else if (str_starts(line, "data: ")) {
        free(st->data);
        st->data = xstrdup(line + 6);
    }
}

static int on_data(const char *data, size_t len, void *arg)
{
    struct stream *st = arg;
    size_t at = 0;
    char *nl;
    int r = buf_append(&st->have, data, len);

    if (r < 0)
        return r;
    patience_over(&st->patience);
    while (at < st->have.len && (nl = memchr(st->have.data + at, '\n', st->have.len - at))) {
        *nl = '\0';
        event_line(st, st->have.data + at);
        at = (size_t)(nl - st->have.data) + 1;
    }
    buf_consume(&st->have, at);
    return fflush(stdout) == 0 ? 0 : -EPIPE;
}

static int once(struct stream *st, const struct events_opts *o, bool first, struct err *err)
{
    struct buf path = BUF_INIT(256);
    struct http_call call = {.method = "GET", .on_data = on_data, .arg = st};
    _cleanup_free_ char *text = NULL;

    buf_printf(&path, "/v1/events?follow=%d", o->follow);
    /* Coming back: the cut may have been inside a revision. */
    if (!first && st->revision > 0) {
        buf_printf(&path, "&after=%llu", (unsigned long long)st->revision);
        if (st->seq != SEQ_ALL)
            buf_printf(&path, ".%llu", (unsigned long long)st->seq);
    } else if (o->after || !o->follow) {
        buf_printf(&path, "&after=%llu", (unsigned long long)o->after);
    }
    text = buf_take(&path);
    call.path = text;
    buf_done(&st->have);
    st->have = BUF_INIT(EVENT_MAX);
    st->cli->status = 0;
    return api_stream(st->cli, call, err);
}

int cmd_events(struct cli *cli, int argc, char **argv)
{
    static struct events_opts o;
    struct stream st = {.cli = cli};
    struct err err = ERR_INIT;
    int rest, r, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    map_init(&st.said);
    for (bool first = true;; first = false) {
        r = once(&st, &o, first, &err);
        if (!o.follow || st.failed || r == -EPIPE ||
            (r < 0 && !api_is_unreachable(r) && cli->status != 503))
            break;
        if (first && r < 0 && r != -ECONNRESET && st.revision == 0)
            break; /* nobody was there: no use in waiting */
        patience_wait(&st.patience, r < 0 ? err_text(&err) : "the stream of events was cut");
    }
    buf_done(&st.have);
    map_done(&st.said, free);
    free(st.data);
    if (st.failed) {
        cli_say("%s", st.error);
        return EXIT_FAILED;
    }
    return r < 0 ? cli_fail(cli, &err) : EXIT_OK;
}
