/*
 * Files that are part of the program. They hold nothing of the cluster, so they need no token; what
 * a page may do is its own files and nothing else.
 */
#include "manager/api.h"
#include "manager/static.h"

#define STATIC_POLICY \
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

void api_static(struct call *c)
{
    const char *path = request_path(c->rq);
    struct request *rq;

    for (const struct static_file *f = static_files; f->path; f++) {
        if (!str_eq(f->path, path))
            continue;
        request_add_header(c->rq, "content-security-policy", STATIC_POLICY);
        rq = call_take_request(c);
        if (rq)
            request_reply(rq, 200, f->type, f->data, f->len);
        return;
    }
    reply_error(c, 404, "not_found", "there is no such file");
}
