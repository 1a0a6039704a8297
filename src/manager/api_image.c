/*
 * Images over HTTP, and the import worker: muster-import runs as a process of its own for each
 * import, writes blobs below STATE/blobs and speaks in lines of JSON, which go on to whoever asked
 * as they come. The image is in the store before the last line is sent.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/strv.h"
#include "manager/api_page.h"
#include "manager/state.h"

#define UPLOAD_MAX (UINT64_C(1) << 40)
#define STDERR_FD 2

static json_t *image_json(const struct manager *m, const struct image *i)
{
    json_t *o = image_public_json(i);
    unsigned users = 0;

    map_for_each (e, &m->sessions) {
        const struct session *s = e->value;
        users += str_eq(s->image_id, i->id);
    }
    json_set_u64(o, "sessions", users);
    return o;
}

static json_t *listed(const struct call *c, void *value, UNUSED void *arg)
{
    return image_json(c->m, value);
}

void api_image_list(struct call *c)
{
    reply_page(c, &(struct page_of){.what = "images", .map = &c->m->images, .to_json = listed});
}

static struct image *call_image(struct call *c)
{
    char name[IMAGE_REF_MAX + 1];
    struct image *i = NULL;

    if (image_ref_normal(c->params[0], name, NULL) == 0)
        i = map_get(&c->m->images, name);
    if (!i)
        reply_error(
            c, 404, "not_found", "there is no image '%.200s'; see 'muster image ls'", c->params[0]);
    return i;
}

void api_image_show(struct call *c)
{
    struct image *i = call_image(c);

    if (i)
        reply_json(c, 200, image_json(c->m, i));
}

static const struct session *user_of_image(struct manager *m, const struct image *i)
{
    map_for_each (e, &m->sessions) {
        const struct session *s = e->value;
        if (str_eq(s->image_id, i->id))
            return s;
    }
    return NULL;
}

void api_image_delete(struct call *c)
{
    struct image *i = call_image(c);
    const struct session *s = i ? user_of_image(c->m, i) : NULL;

    if (!i)
        return;
    if (s) {
        reply_error(c, 409, "in_use", "session %s (%llu) uses the image '%s'; stop it first",
            s->name, (unsigned long long)s->num, i->name);
        return;
    }
    image_forget(c->m, i);
    reply_committed(c, 200, json_object());
}

/* --- import ------------------------------------------------------------------------------- */

struct import {
    struct manager *m;
    struct request *rq; /* NULL: whoever asked has gone; the import goes on */
    char name[IMAGE_REF_MAX + 1];
    char *source; /* of the worker: a path or a reference */
    char *upload; /* path of the uploaded file, removed at the end; NULL */
    int upload_fd;
    bool replying;
    uv_process_t process;
    uv_pipe_t out;
    bool process_open, out_open;
    struct buf line;
    struct image *image; /* once the worker has said it */
    char error[1024];
    char *last; /* the last line to send */
};

static void import_free(struct import *im)
{
    if (im->upload)
        unlink(im->upload);
    if (im->upload_fd > 0)
        close(im->upload_fd);
    free(im->upload);
    free(im->source);
    free(im->last);
    buf_done(&im->line);
    image_free(im->image);
    free(im);
}

static void import_say(struct import *im, const char *text)
{
    if (!im->rq)
        return;
    request_write(im->rq, text, strlen(text));
    request_write(im->rq, "\n", 1);
}

static void import_reply_end(struct import *im)
{
    struct request *rq = im->rq;

    if (!rq)
        return;
    im->rq = NULL;
    request_on_gone(rq, NULL, NULL);
    request_end(rq);
}

static void import_committed(void *arg)
{
    struct import *im = arg;

    import_say(im, im->last);
    import_reply_end(im);
    import_free(im);
}

/* An image of that name that sessions still use stays, under its id. */
static void make_room(struct manager *m, const struct image *fresh)
{
    struct image *old = map_get(&m->images, fresh->name);

    if (!old)
        return;
    if (!user_of_image(m, old) || str_eq(old->id, fresh->id)) {
        image_forget(m, old);
        return;
    }
    store_del(m->store, "image", old->name);
    map_remove(&m->images, old->name);
    if (str_copy(old->name, sizeof(old->name), old->id) < 0)
        abort();
    map_set(&m->images, old->name, old);
    image_save(m, old);
}

static void import_done(struct import *im)
{
    json_t *last;

    if (im->image && !im->error[0]) {
        struct image *i = TAKE_PTR(im->image);
        STR_SET(i->name, im->name);
        i->created_usec = clock_real_usec();
        make_room(im->m, i);
        map_set(&im->m->images, i->name, i);
        image_save(im->m, i);
        last = image_json(im->m, i);
        json_set_str(last, "type", "image");
        log_info("image %s: imported, %u layers, %llu bytes", i->name, i->layer_count,
            (unsigned long long)i->size);
    } else {
        last = json_object();
        json_set_str(last, "type", "error");
        json_set_str(last, "code", "import_failed");
        json_set_str(
            last, "message", im->error[0] ? im->error : "the import worker ended without a result");
        log_warning("image %s: import failed: %s", im->name, im->error);
    }
    im->last = json_text(last);
    json_decref(last);
    store_after(im->m->store, import_committed, im);
}

static void import_closed(uv_handle_t *h)
{
    struct import *im = h->data;

    if (h == (uv_handle_t *)&im->process)
        im->process_open = false;
    else
        im->out_open = false;
    if (!im->process_open && !im->out_open)
        import_done(im);
}

static void import_exited(uv_process_t *p, int64_t status, int signal)
{
    struct import *im = p->data;

    if ((status != 0 || signal != 0) && !im->error[0])
        snprintf(im->error, sizeof(im->error), "the import worker %s %lld",
            signal ? "was killed by signal" : "exited with",
            signal ? (long long)signal : (long long)status);
    uv_close((uv_handle_t *)p, import_closed);
}

static void import_line(struct import *im, const char *text, size_t len)
{
    struct image_line l = {0};
    struct err err = ERR_INIT;

    if (image_line_parse(text, len, &l, &err) < 0) {
        snprintf(im->error, sizeof(im->error), "the import worker said something odd: %s",
            err_text(&err));
        return;
    }
    if (l.type == IMAGE_LINE_PROGRESS) {
        _cleanup_free_ char *copy = xstrndup(text, len);
        import_say(im, copy);
    } else if (l.type == IMAGE_LINE_IMAGE) {
        image_free(im->image);
        im->image = TAKE_PTR(l.image);
    } else {
        snprintf(im->error, sizeof(im->error), "%s", l.text);
    }
    image_line_done(&l);
}

static void import_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    buf->base = xcalloc(1, suggested);
    buf->len = suggested;
}

static void import_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct import *im = stream->data;
    char *nl;

    if (n > 0 && buf_append(&im->line, buf->base, (size_t)n) < 0)
        snprintf(im->error, sizeof(im->error), "the import worker said too much");
    free(buf->base);
    while (im->line.len > 0 && (nl = memchr(im->line.data, '\n', im->line.len))) {
        size_t len = (size_t)(nl - im->line.data);
        import_line(im, im->line.data, len);
        buf_consume(&im->line, len + 1);
    }
    if (n < 0)
        uv_close((uv_handle_t *)stream, import_closed);
}

static void push_all(char ***args, const char *option, char **values)
{
    strv_for_each (v, values) {
        strv_push(args, option);
        strv_push(args, *v);
    }
}

static char **import_args(const struct import *im, const char *blobs, const char *tmp)
{
    const struct manager_config *c = &im->m->config;
    char **args = NULL;

    strv_push(&args, c->import_program);
    strv_pushf(&args, "--blobs=%s", blobs);
    strv_pushf(&args, "--tmp=%s", tmp);
    push_all(&args, "--insecure", c->insecure);
    push_all(&args, "--mirror", c->mirrors);
    push_all(&args, "--ca", c->cas);
    strv_pushf(&args, "--stall=%llus", (unsigned long long)(c->stall_usec / USEC_PER_SEC));
    strv_push(&args, im->source);
    return args;
}

static int import_spawn(struct import *im)
{
    struct manager *m = im->m;
    _cleanup_free_ char *blobs = xasprintf("%s/blobs", m->config.state_dir);
    _cleanup_free_ char *tmp = xasprintf("%s/tmp", m->config.state_dir);
    _cleanup_(strv_freep) char **args = import_args(im, blobs, tmp);
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&im->out},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FD},
    };
    uv_process_options_t opts = {
        .exit_cb = import_exited,
        .file = args[0],
        .args = args,
        .env = (char **)PROC_ENV_FIXED,
        .cwd = "/",
        .stdio_count = 3,
        .stdio = stdio,
    };
    int r;

    uv_pipe_init(m->loop, &im->out, 0);
    im->out.data = im->process.data = im;
    im->process_open = im->out_open = true;
    r = uv_spawn(m->loop, &im->process, &opts);
    if (r == 0)
        r = uv_read_start((uv_stream_t *)&im->out, import_alloc, import_read);
    if (r < 0) {
        snprintf(im->error, sizeof(im->error), "cannot start '%s': %s", args[0], strerror(-r));
        uv_close((uv_handle_t *)&im->process, import_closed);
        uv_close((uv_handle_t *)&im->out, import_closed);
    }
    return r;
}

static void import_gone(struct request *rq, void *arg)
{
    struct import *im = arg;

    im->rq = NULL;
}

static struct import *import_new(struct call *c, const char *name)
{
    struct import *im = xnew(struct import);

    im->m = c->m;
    im->line = BUF_INIT(IMAGE_LINE_MAX);
    STR_SET(im->name, name);
    return im;
}

/* From here on the reply is a stream of lines. */
static void import_start(struct import *im)
{
    if (im->rq) {
        request_on_gone(im->rq, import_gone, im);
        request_reply_start(im->rq, 200, "application/x-ndjson", NULL, NULL);
    }
    log_info("image %s: importing", im->name);
    import_spawn(im);
}

static int image_name_check(const char *text, char name[IMAGE_REF_MAX + 1], struct err *err)
{
    int r = image_ref_check(text, err);

    return r == 0 ? image_ref_normal(text, name, err) : r;
}

void api_image_import(struct call *c)
{
    const char *ref = NULL, *name;
    char normal[IMAGE_REF_MAX + 1];
    struct err err = ERR_INIT;
    struct import *im;
    int r = call_body_text(c, "ref", &ref, &err);

    if (r == 0 && ref[0] == '/')
        r = err_set(&err, -EINVAL, "a path is not a registry reference; upload the file instead");
    name = json_str_or(c->body, "name", ref);
    if (r == 0)
        r = image_ref_check(ref, &err);
    if (r == 0)
        r = image_name_check(name, normal, &err);
    if (r < 0) {
        reply_err(c, &err);
        return;
    }
    im = import_new(c, normal);
    im->source = xasprintf("%s%s", str_starts(ref, "docker://") ? "" : "docker://", ref);
    im->rq = call_take_request(c);
    import_start(im);
}

static int upload_piece(struct request *rq, const char *data, size_t len, void *arg)
{
    struct import *im = arg;

    if (!data) {
        import_start(im);
        return 0;
    }
    while (len > 0) {
        ssize_t n = write(im->upload_fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Gone before the whole body was there. */
static void upload_gone(struct request *rq, void *arg)
{
    import_free(arg);
}

void api_image_upload(struct call *c)
{
    char normal[IMAGE_REF_MAX + 1], id[UUID_TEXT_LEN + 1];
    struct err err = ERR_INIT;
    struct import *im;

    if (image_name_check(c->params[0], normal, &err) < 0) {
        reply_err(c, &err);
        return;
    }
    im = import_new(c, normal);
    uuid_make(id);
    im->upload = xasprintf("%s/tmp/upload-%s", c->m->config.state_dir, id);
    im->source = xstrdup(im->upload);
    im->upload_fd = open(im->upload, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (im->upload_fd < 0) {
        err_sys(&err, -errno, "cannot write '%s'", im->upload);
        reply_err(c, &err);
        import_free(im);
        return;
    }
    im->rq = call_take_request(c);
    if (!im->rq) {
        import_free(im);
        return;
    }
    request_on_gone(im->rq, upload_gone, im);
    request_stream_body(im->rq, UPLOAD_MAX, upload_piece, im);
}

/* --- blobs, for agents -------------------------------------------------------------------- */

/* "bytes=N-": the only form that agents use. */
static uint64_t range_start(struct request *rq)
{
    const char *range = request_header(rq, "range");
    uint64_t n = 0;
    char number[24];
    size_t len;

    if (!str_starts(range, "bytes="))
        return 0;
    range += strlen("bytes=");
    len = strcspn(range, "-");
    if (len >= sizeof(number) || range[len] != '-' || range[len + 1])
        return 0;
    memcpy(number, range, len);
    number[len] = '\0';
    return str_to_u64(number, INT64_MAX, &n) < 0 ? 0 : n;
}

void api_blob(struct call *c)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_close_ int fd = -1;
    struct stat st;
    uint64_t start;

    if (!digest_is_valid(c->params[0])) {
        reply_error(c, 400, "bad_digest", "a blob's digest is sha256: and 64 hexadecimal digits");
        return;
    }
    path = xasprintf(
        "%s/blobs/sha256/%s", c->m->config.state_dir, c->params[0] + strlen("sha256:"));
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0) {
        reply_error(c, 404, "not_found", "there is no such blob");
        return;
    }
    start = range_start(c->rq);
    if (start >= (uint64_t)st.st_size)
        start = 0;
    struct request *rq = call_take_request(c);
    if (rq)
        request_reply_file(rq, "application/octet-stream", TAKE_FD(fd), start,
            (uint64_t)st.st_size - start, (uint64_t)st.st_size);
}
