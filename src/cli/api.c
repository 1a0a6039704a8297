/* One connection to the manager, kept open; errors in the manager's own words. */
#include "cli/api.h"

#include "base/buf.h"
#include "base/str.h"

#define ANSWER_MAX ((size_t)256 << 20)
#define REQUEST_TRIES 5

bool api_is_unreachable(int code)
{
    switch (code) {
    case -ECONNREFUSED:
    case -ECONNRESET:
    case -ETIMEDOUT:
    case -EHOSTUNREACH:
    case -ENETUNREACH:
    case -EPIPE:
        return true;
    default:
        return false;
    }
}

static int open_http(struct cli *cli, struct err *err)
{
    struct http_opts opts = {.base_url = cli->url, .token = cli->token, .ca_path = cli->ca};

    return cli->http ? 0 : http_new(&opts, &cli->http, err);
}

static int unreachable(struct err *err)
{
    return api_is_unreachable(err->code) ? err_prefix(err, API_UNREACHABLE) : err->code;
}

/* The manager's words for what went wrong. */
static int refused(struct cli *cli, const struct buf *answer, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = NULL;
    const json_t *error = NULL;

    if (answer->data && json_parse(answer->data, answer->len, ANSWER_MAX, &body, NULL) == 0)
        error = json_object_get(body, "error");
    snprintf(cli->code, sizeof(cli->code), "%s", json_str_or(error, "code", ""));
    json_decref(cli->answer);
    cli->answer = json_incref(body);
    if (cli->status == 401)
        return err_set(err, -EREMOTEIO, "%s does not know you%s; see 'muster login'", cli->url,
            cli->token ? " by this token" : ": you are not signed in");
    if (!json_is_object(error))
        return err_set(err, -EREMOTEIO, "%s answered with HTTP status %u; is it a Muster manager?",
            cli->url, cli->status);
    return err_set(err, -EREMOTEIO, "%s", json_str_or(error, "message", "failed without a reason"));
}

static int finish(struct cli *cli, const struct http_call *call, struct err *err)
{
    cli->status = call->status;
    cli->code[0] = '\0';
    return call->status >= 200 && call->status < 300 ? 0 : refused(cli, call->out, err);
}

static int call_json(
    struct cli *cli, struct http_call call, const json_t *body, json_t **ret, struct err *err)
{
    _cleanup_(buf_done) struct buf answer = BUF_INIT(ANSWER_MAX);
    _cleanup_free_ char *text = body ? json_text(body) : NULL;
    struct err local = ERR_INIT;
    int r;

    err = err ? err : &local; /* texts are put together in it */
    r = open_http(cli, err);
    if (r < 0)
        return r;
    call.body = text;
    call.body_len = text ? strlen(text) : 0;
    call.out = &answer;
    if (http_do(cli->http, &call, err) < 0)
        return unreachable(err);
    r = finish(cli, &call, err);
    if (r < 0 || !ret)
        return r;
    r = json_parse(answer.data ? answer.data : "", answer.len, ANSWER_MAX, ret, err);
    return r < 0 ? err_prefix(err, "the manager's answer") : 0;
}

int api_call(struct cli *cli, const char *method, const char *path, const json_t *body,
    json_t **ret, struct err *err)
{
    return call_json(cli, (struct http_call){.method = method, .path = path}, body, ret, err);
}

int api_get(struct cli *cli, const char *path, json_t **ret, struct err *err)
{
    return api_call(cli, "GET", path, NULL, ret, err);
}

#define PAGE 1000

/* One more page behind `next`; a manager from before lists had pages says no next. */
static int get_page(
    struct cli *cli, const char *path, const char *next, json_t **ret, struct err *err)
{
    _cleanup_free_ char *encoded = next ? http_encode(next) : NULL;
    _cleanup_free_ char *whole = xasprintf("%s%slimit=%d%s%s", path, strchr(path, '?') ? "&" : "?",
        PAGE, next ? "&after=" : "", next ? encoded : "");

    return api_get(cli, whole, ret, err);
}

int api_get_all(struct cli *cli, const char *path, const char *what, json_t **ret, struct err *err)
{
    _cleanup_(json_decrefp) json_t *body = NULL;
    _cleanup_free_ char *next = NULL;
    int r = get_page(cli, path, NULL, &body, err);

    while (r == 0 && json_str_or(body, "next", NULL)) {
        _cleanup_(json_decrefp) json_t *page = NULL;
        free(next);
        next = xstrdup(json_str_or(body, "next", ""));
        r = get_page(cli, path, next, &page, err);
        if (r < 0)
            return r;
        json_array_extend(json_object_get(body, what), json_object_get(page, what));
        json_set_str(body, "next", json_str_or(page, "next", NULL));
    }
    if (r == 0)
        *ret = TAKE_PTR(body);
    return r;
}

int api_post_once(struct cli *cli, const char *path, const char *key, const json_t *body,
    json_t **ret, struct err *err)
{
    _cleanup_free_ char *header = xasprintf("Idempotency-Key: %s", key);
    const char *headers[] = {header, NULL};
    int r = 0;

    for (unsigned i = 0; i < REQUEST_TRIES; i++) {
        struct http_call call = {.method = "POST", .path = path, .headers = headers};
        r = call_json(cli, call, body, ret, err);
        /* Refused at the first try: nobody is there. Later: it is being restarted. */
        if (r != -ECONNRESET && r != -ETIMEDOUT && !(r == -ECONNREFUSED && i > 0))
            return r;
        usleep(200000u << i);
    }
    return r;
}

int api_stream(struct cli *cli, struct http_call call, struct err *err)
{
    _cleanup_(buf_done) struct buf answer = BUF_INIT(ANSWER_MAX);
    int r = open_http(cli, err);

    if (r < 0)
        return r;
    call.out = &answer;
    call.timeout_usec = UINT64_MAX;
    if (http_do(cli->http, &call, err) < 0)
        return unreachable(err);
    return finish(cli, &call, err);
}

struct cli api_clone(const struct cli *cli)
{
    struct cli other = *cli;

    other.http = NULL;
    return other;
}

char *api_session_path(const char *ref, const char *suffix)
{
    _cleanup_free_ char *encoded = http_encode(ref);

    return xasprintf("/v1/sessions/%s%s", encoded, suffix);
}

char *api_ws_url(const struct cli *cli, const char *path)
{
    size_t len = strlen(cli->url);

    while (len > 0 && cli->url[len - 1] == '/')
        len--;
    return xasprintf("ws%.*s%s", (int)(len - 4), cli->url + 4, path); /* http -> ws, https -> wss */
}

void api_print(const struct cli *cli, const json_t *j)
{
    json_dumpf(j, stdout, JSON_ENCODE_ANY | (cli->is_tty ? JSON_INDENT(2) : JSON_COMPACT));
    putchar('\n');
}
