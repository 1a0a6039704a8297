/*
 * Calls of the manager's API. An answer that is an error comes back as -EREMOTEIO with the
 * manager's own message; cli->status and cli->code say more.
 */
#ifndef CLI_API_H
#define CLI_API_H

#include "cli/cli.h"

/* body may be NULL; ret may be NULL, else it is owned by the caller. */
int api_call(struct cli *cli, const char *method, const char *path, const json_t *body,
    json_t **ret, struct err *err);
int api_get(struct cli *cli, const char *path, json_t **ret, struct err *err);
/* A whole list, page by page: body has all of `what` in one, and "next" null. */
int api_get_all(struct cli *cli, const char *path, const char *what, json_t **ret, struct err *err);
/* The same, made twice when the connection breaks: key is the Idempotency-Key. */
int api_post_once(struct cli *cli, const char *path, const char *key, const json_t *body,
    json_t **ret, struct err *err);
/* A streamed answer: each piece to on_data, no time limit. 0 when it ended as it should. */
int api_stream(struct cli *cli, struct http_call call, struct err *err);
/* A second client with the same address and token, for another thread. */
struct cli api_clone(const struct cli *cli);

#define API_UNREACHABLE "cannot reach the manager"
/* No answer came: try again later, or EXIT_UNREACHABLE. */
bool api_is_unreachable(int code);

/* "/v1/sessions/REF" and suffix ("", "/stop"), encoded; heap. */
char *api_session_path(const char *ref, const char *suffix);
/* "ws://host:port/v1/..." of a path; heap. */
char *api_ws_url(const struct cli *cli, const char *path);

/* Print an answer for -o json. */
void api_print(const struct cli *cli, const json_t *j);

#endif
