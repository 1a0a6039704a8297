/*
 * Running muster-import: it writes blobs below STATE/blobs and speaks in lines of JSON, which go on
 * to everybody who asked, as they come. Credentials reach it through a descriptor, never by its
 * words. The image is in the store before the last line is sent.
 */
#include "manager/imports.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/strv.h"
#include "manager/first_use.h"
#include "manager/secrets.h"
#include "manager/state.h"

#define UPLOAD_MAX (UINT64_C(1) << 40)
#define STDERR_FD 2
#define AUTH_FD 3
#define EVENT_USEC (2 * USEC_PER_SEC)

struct listener { /* somebody who gets the lines */
    struct list node;
    struct import *im;
    struct request *rq;
};

struct import {
    struct manager *m;
    struct list listeners;
    struct request *uploading;
    char name[IMAGE_REF_MAX + 1];
    char *source; /* of the worker: a path or a reference */
    char *upload; /* path of the uploaded file, removed at the end; NULL */
    int upload_fd, auth_fd;
    bool shared; /* in m->imports */
    uv_process_t process;
    uv_pipe_t out;
    bool process_open, out_open;
    struct buf line;
    struct image *image; /* once the worker has said it */
    char error[1024];
    char step[16];
    uint32_t layer, layers;
    uint64_t bytes, event_usec;
    char *last; /* the last line */
};

static void import_free(struct import *im)
{
    im->m->import_count--;
    if (im->upload)
        unlink(im->upload);
    if (im->upload_fd > 0)
        close(im->upload_fd);
    if (im->auth_fd > 0)
        close(im->auth_fd);
    free(im->upload);
    free(im->source);
    free(im->last);
    buf_done(&im->line);
    image_free(im->image);
    free(im);
}

/* --- who is told -------------------------------------------------------------------------- */

static void say(struct import *im, const char *text)
{
    list_for_each (it, &im->listeners) {
        struct request *rq = LIST_ENTRY(it, struct listener, node)->rq;
        request_write(rq, text, strlen(text));
        request_write(rq, "\n", 1);
    }
}

static void emit(struct import *im, const char *type, const char *message)
{
    json_t *j = json_object();
    _cleanup_free_ char *text = NULL;

    json_set_str(j, "step", im->step[0] ? im->step : "begin");
    json_set_u64(j, "layer", im->layer);
    json_set_u64(j, "layers", im->layers);
    json_set_u64(j, "bytes", im->bytes);
    if (message)
        json_set_str(j, "message", message);
    text = json_text(j);
    store_event(im->m->store, type, im->name, "", text);
    json_decref(j);
}

static void listener_gone(struct request *rq, void *arg)
{
    struct listener *l = arg;

    list_remove(&l->node);
    free(l);
}

static void listen_to(struct import *im, struct request *rq)
{
    struct listener *l = xnew(struct listener);

    *l = (struct listener){.im = im, .rq = rq};
    list_append(&im->listeners, &l->node);
    request_on_gone(rq, listener_gone, l);
    request_reply_start(rq, 200, "application/x-ndjson", NULL, NULL);
}

static void end_listeners(struct import *im)
{
    list_for_each_safe (it, &im->listeners) {
        struct listener *l = LIST_ENTRY(it, struct listener, node);
        struct request *rq = l->rq;
        list_remove(&l->node);
        free(l);
        request_on_gone(rq, NULL, NULL);
        request_end(rq);
    }
}

/* --- the end ------------------------------------------------------------------------------ */

static void import_committed(void *arg)
{
    struct import *im = arg;

    say(im, im->last);
    end_listeners(im);
    import_free(im);
}

/* An image of that name that sessions still use stays, under its id. */
static void make_room(struct manager *m, const struct image *fresh)
{
    struct image *old = map_get(&m->images, fresh->name);

    if (!old)
        return;
    if (!image_user(m, old) || str_eq(old->id, fresh->id)) {
        image_forget(m, old);
        return;
    }
    store_del(m->store, "image", old->name);
    map_remove(&m->images, old->name);
    if (str_copy(old->name, sizeof(old->name), old->id) < 0)
        abort();
    map_set(&m->images, old->name, old);
    image_save(m, old, NULL);
}

static json_t *keep_image(struct import *im)
{
    struct image *i = TAKE_PTR(im->image);
    json_t *last;

    STR_SET(i->name, im->name);
    i->created_usec = clock_real_usec();
    make_room(im->m, i);
    map_set(&im->m->images, i->name, i);
    image_save(im->m, i, "image.imported");
    last = image_json(im->m, i);
    json_set_str(last, "type", "image");
    log_info("image %s: imported, %u layers, %llu bytes", i->name, i->layer_count,
        (unsigned long long)i->size);
    return last;
}

static json_t *tell_failure(struct import *im)
{
    json_t *last = json_object();

    if (!im->error[0])
        STR_SET(im->error, "the import worker ended without a result");
    json_set_str(last, "type", "error");
    json_set_str(last, "code", "import_failed");
    json_set_str(last, "message", im->error);
    emit(im, "image.failed", im->error);
    log_warning("image %s: import failed: %s", im->name, im->error);
    return last;
}

static void import_done(struct import *im)
{
    bool good = im->image && !im->error[0];
    json_t *last = good ? keep_image(im) : tell_failure(im);

    if (im->shared)
        map_remove(&im->m->imports, im->name);
    im->last = json_text(last);
    json_decref(last);
    first_use_done(im->m, im->name, good ? NULL : im->error);
    store_after(im->m->store, import_committed, im);
}

/* --- the worker --------------------------------------------------------------------------- */

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

static void take_progress(struct import *im, const struct image_line *l)
{
    uint64_t now = clock_mono_usec();
    bool news = !str_eq(im->step, l->step) || im->layer != l->layer;

    STR_SET(im->step, l->step);
    im->layer = l->layer;
    im->layers = l->layers;
    im->bytes = l->bytes;
    if (!news && now - im->event_usec < EVENT_USEC)
        return;
    im->event_usec = now;
    emit(im, "image.progress", NULL);
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
        take_progress(im, &l);
        say(im, copy);
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

static char **import_args(const struct import *im)
{
    const struct manager_config *c = &im->m->config;
    char **args = NULL;

    strv_push(&args, c->import_program);
    strv_pushf(&args, "--blobs=%s/blobs", c->state_dir);
    strv_pushf(&args, "--tmp=%s/tmp", c->state_dir);
    push_all(&args, "--insecure", c->insecure);
    push_all(&args, "--mirror", c->mirrors);
    push_all(&args, "--ca", c->cas);
    strv_pushf(&args, "--stall=%llus", (unsigned long long)(c->stall_usec / USEC_PER_SEC));
    if (im->auth_fd > 0)
        strv_pushf(&args, "--auth-fd=%d", AUTH_FD);
    strv_push(&args, im->source);
    return args;
}

static void import_spawn(struct import *im)
{
    struct manager *m = im->m;
    _cleanup_(strv_freep) char **args = import_args(im);
    uv_stdio_container_t stdio[AUTH_FD + 1] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&im->out},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FD},
        {.flags = UV_INHERIT_FD, .data.fd = im->auth_fd},
    };
    uv_process_options_t opts = {
        .exit_cb = import_exited,
        .file = args[0],
        .args = args,
        .env = (char **)PROC_ENV_FIXED,
        .cwd = "/",
        .stdio_count = im->auth_fd > 0 ? AUTH_FD + 1 : AUTH_FD,
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
}

/* --- the begin ---------------------------------------------------------------------------- */

static struct import *import_new(struct manager *m, const char *name)
{
    struct import *im = xnew(struct import);

    im->m = m;
    m->import_count++;
    im->line = BUF_INIT(IMAGE_LINE_MAX);
    list_init(&im->listeners);
    STR_SET(im->name, name);
    return im;
}

static void import_start(struct import *im)
{
    log_info("image %s: importing", im->name);
    emit(im, "image.importing", NULL);
    import_spawn(im);
}

/* What the worker may know of the secrets, in a file that has no name. 0: there are none. */
static int auth_file(const struct manager *m, const char *user)
{
    _cleanup_(json_decrefp) json_t *auths = secrets_auths(m, user);
    _cleanup_free_ char *text = auths ? json_text(auths) : NULL;
    int fd;

    if (!text)
        return 0;
    fd = memfd_create("auths", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        close(fd);
        fd = -1;
    }
    explicit_bzero(text, strlen(text));
    return fd < 0 ? 0 : fd;
}

void import_ref(
    struct manager *m, const char *name, const char *ref, const char *user, struct call *c)
{
    struct import *im = map_get(&m->imports, name);
    _cleanup_free_ char *source = xasprintf(
        "%s%s", str_starts(ref, "docker://") ? "" : "docker://", ref);
    struct request *rq = c ? call_take_request(c) : NULL; /* ref may have been the call's */
    bool fresh = !im || !str_eq(im->source, source);

    if (fresh) {
        bool taken = im;
        im = import_new(m, name);
        im->source = TAKE_PTR(source);
        im->auth_fd = auth_file(m, user);
        im->shared = !taken;
        if (!taken)
            map_set(&m->imports, im->name, im);
    }
    if (rq)
        listen_to(im, rq);
    if (fresh)
        import_start(im);
}

bool import_status(const struct manager *m, const char *name, char *text, size_t size)
{
    const struct import *im = map_get(&m->imports, name);

    if (!im)
        return false;
    if (im->layers)
        snprintf(text, size, "its image is being imported: layer %u of %u, %s", im->layer,
            im->layers, im->step);
    else
        snprintf(text, size, "its image is being imported: %s, %llu MiB",
            im->step[0] ? im->step : "begin", (unsigned long long)(im->bytes >> 20));
    return true;
}

/* --- uploads ------------------------------------------------------------------------------ */

static int upload_piece(struct request *rq, const char *data, size_t len, void *arg)
{
    struct import *im = arg;

    if (!data) {
        im->uploading = NULL;
        listen_to(im, rq);
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

int import_upload(struct manager *m, const char *name, struct call *c, struct err *err)
{
    struct import *im = import_new(m, name);
    char id[UUID_TEXT_LEN + 1];

    uuid_make(id);
    im->upload = xasprintf("%s/tmp/upload-%s", m->config.state_dir, id);
    im->source = xstrdup(im->upload);
    im->upload_fd = open(im->upload, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (im->upload_fd < 0) {
        int r = err_sys(err, -errno, "cannot write '%s'", im->upload);
        import_free(im);
        return r;
    }
    im->uploading = call_take_request(c);
    if (!im->uploading) {
        import_free(im);
        return 0;
    }
    request_on_gone(im->uploading, upload_gone, im);
    request_stream_body(im->uploading, UPLOAD_MAX, upload_piece, im);
    return 0;
}
