/* image ...: what containers start from. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/proc.h"
#include "base/str.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/table.h"
#include "cli/text.h"

#define LINE_MAX_BYTES ((size_t)4 << 20)

struct import_opts {
    struct cli_common common;
    char *name, *as;
};

struct prune_opts {
    struct cli_common common;
    uint64_t unused_for;
};

/* clang-format off */
const struct opt image_import_options[] = {
    { "name", OPT_STR, offsetof(struct import_opts, name), NULL, "NAME",
      "what to call it (the reference, or the file's name, if unset)", 'n', true },
    { "as", OPT_STR, offsetof(struct import_opts, as), NULL, "NAME", "the same", 0, true },
    CLI_COMMON_OPTIONS(struct import_opts)
};

const struct opt image_prune_options[] = {
    { "unused-for", OPT_DURATION, offsetof(struct prune_opts, unused_for), "30d", "TIME",
      "images that no session used for so long", 0, true },
    CLI_COMMON_OPTIONS(struct prune_opts)
};

static const struct column columns[] = {
    { "IMAGE", 0 },
    { "SIZE", 0, true },
    { "LAYERS", 2, true },
    { "IMPORTED", 1 },
    { "SESSIONS", 3, true },
    { "PINNED", 5 },
    { "ID", 4, .cut = true },
};
/* clang-format on */

/* Names have slashes, which are parts of the path. */
static char *image_path(const char *name)
{
    _cleanup_free_ char *encoded = http_encode(name);
    struct buf b = BUF_INIT(8192);

    buf_puts(&b, "/v1/images/");
    for (const char *c = encoded; *c; c++) {
        bool slash = strncasecmp(c, "%2f", 3) == 0;
        buf_append(&b, slash ? "/" : c, 1);
        c += slash ? 2 : 0;
    }
    return buf_take(&b);
}

static char *layers_of(const json_t *i)
{
    const json_t *layers = json_object_get(i, "layers");

    if (json_is_array(layers))
        return xasprintf("%zu", json_array_size(layers));
    return text_member(i, "layers");
}

static char *size_of(const json_t *i)
{
    char text[SIZE_TEXT_MAX];

    return xstrdup(size_format(json_u64_or(i, "size", 0), text));
}

static void add_row(const struct cli *cli, struct table *t, const json_t *i)
{
    table_cell(t, text_member(i, "name"));
    table_cell(t, size_of(i));
    table_cell(t, layers_of(i));
    table_cell(t, text_time(i, "created_at", cli->utc));
    table_cell(t, text_member(i, "sessions"));
    table_cell(t, xstrdup(json_bool_or(i, "pinned", false) ? "yes" : ""));
    table_cell(t, text_member(i, "id"));
}

int cmd_image_ls(struct cli *cli, int argc, char **argv)
{
    return listing_run(cli, argc, argv,
        &(struct listing){"/v1/images", "images", columns, ARRAY_LEN(columns), add_row});
}

int cmd_image_show(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    _cleanup_(json_decrefp) json_t *image = NULL;
    _cleanup_free_ char *path = NULL;
    struct err err = ERR_INIT;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    path = image_path(argv[rest]);
    if (api_get(cli, path, &image, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        api_print(cli, image);
    } else { /* what its author wrote has no fixed form: shown as it is */
        json_dumpf(image, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    return EXIT_OK;
}

static int remove_one(struct cli *cli, const char *name, const void *arg)
{
    _cleanup_free_ char *path = image_path(name);
    struct err err = ERR_INIT;

    return api_call(cli, "DELETE", path, NULL, NULL, &err) < 0 ? cli_fail(cli, &err) : EXIT_OK;
}

int cmd_image_rm(struct cli *cli, int argc, char **argv)
{
    static struct cli_plain o;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    return cli_each(cli, argc - rest, argv + rest, remove_one, NULL);
}

static int set_pinned(struct cli *cli, int argc, char **argv, bool pinned)
{
    static struct cli_plain o;
    struct err err = ERR_INIT;
    int rest, worst = EXIT_OK, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    for (int i = rest; i < argc; i++) {
        _cleanup_free_ char *path = image_path(argv[i]);
        _cleanup_(json_decrefp) json_t *body = json_object();
        json_set_bool(body, "pinned", pinned);
        if (api_call(cli, "PATCH", path, body, NULL, &err) < 0) {
            code = cli_fail(cli, &err);
            worst = MAX_OF(worst, code);
        }
    }
    return worst;
}

int cmd_image_pin(struct cli *cli, int argc, char **argv)
{
    return set_pinned(cli, argc, argv, true);
}

int cmd_image_unpin(struct cli *cli, int argc, char **argv)
{
    return set_pinned(cli, argc, argv, false);
}

int cmd_image_prune(struct cli *cli, int argc, char **argv)
{
    static struct prune_opts o;
    _cleanup_(json_decrefp) json_t *body = NULL;
    _cleanup_free_ char *path = NULL;
    char size[SIZE_TEXT_MAX];
    struct err err = ERR_INIT;
    const json_t *name;
    size_t n;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    path = xasprintf(
        "/v1/images?unused_for=%llu", (unsigned long long)(o.unused_for / USEC_PER_SEC));
    if (api_call(cli, "DELETE", path, NULL, &body, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        api_print(cli, body);
        return EXIT_OK;
    }
    json_array_foreach (json_object_get(body, "images"), n, name)
        printf("%s\n", json_string_value(name));
    cli_say(
        "%s of blobs removed from the manager", size_format(json_u64_or(body, "bytes", 0), size));
    return EXIT_OK;
}

/* --- import ------------------------------------------------------------------------------- */

struct import {
    struct buf line;
    json_t *image;
    char error[1024];
};

static void show_progress(const json_t *j)
{
    const char *step = json_str_or(j, "step", "working");
    uint64_t layer = json_u64_or(j, "layer", 0), layers = json_u64_or(j, "layers", 0);
    char size[SIZE_TEXT_MAX];

    size_format(json_u64_or(j, "bytes", 0), size);
    if (layers)
        progress_set("layer %llu of %llu: %s, %s", (unsigned long long)layer,
            (unsigned long long)layers, step, size);
    else
        progress_set("%s, %s", step, size);
}

static void import_line(struct import *im, const char *text, size_t len)
{
    _cleanup_(json_decrefp) json_t *j = NULL;
    const char *type;

    if (json_parse(text, len, LINE_MAX_BYTES, &j, NULL) < 0)
        return;
    type = json_str_or(j, "type", "");
    if (str_eq(type, "progress"))
        show_progress(j);
    else if (str_eq(type, "image"))
        im->image = json_incref(j);
    else if (str_eq(type, "error"))
        snprintf(im->error, sizeof(im->error), "%s", json_str_or(j, "message", "failed"));
}

static int import_data(const char *data, size_t len, void *arg)
{
    struct import *im = arg;
    size_t at = 0;
    char *nl;
    int r = buf_append(&im->line, data, len);

    while (
        r == 0 && at < im->line.len && (nl = memchr(im->line.data + at, '\n', im->line.len - at))) {
        import_line(im, im->line.data + at, (size_t)(nl - im->line.data) - at);
        at = (size_t)(nl - im->line.data) + 1;
    }
    buf_consume(&im->line, at);
    return r;
}

/* The manager calls what was uploaded by the name that it has there: "STATE/tmp/upload-...". */
static void name_file(char *text, size_t size, const char *path)
{
    _cleanup_free_ char *before = NULL, *behind = NULL;
    char *at = strstr(text, "/tmp/upload-"), *begin = at;

    if (!at)
        return;
    while (begin > text && !strchr(" '\":", begin[-1]))
        begin--;
    before = xstrndup(text, (size_t)(begin - text));
    behind = xstrdup(at + strcspn(at, " '\":"));
    snprintf(text, size, "%s%s%s", before, path, behind);
}

/* path: of the file that is uploaded, NULL if none. */
static int import_call(struct cli *cli, struct http_call call, const char *path)
{
    struct import im = {.line = BUF_INIT(LINE_MAX_BYTES)};
    _cleanup_(json_decrefp) json_t *image = NULL;
    struct err err = ERR_INIT;
    int r;

    call.on_data = import_data;
    call.arg = &im;
    r = api_stream(cli, call, &err);
    progress_clear();
    buf_done(&im.line);
    image = im.image;
    if (path)
        name_file(im.error, sizeof(im.error), path);
    if (r == 0 && im.error[0])
        r = err_set(&err, -EREMOTEIO, "%.250s", im.error);
    if (r == 0 && !image)
        r = err_set(&err, -ECONNRESET, "the connection ended before the image was imported");
    if (r < 0)
        return cli_fail(cli, &err);
    if (cli->json)
        api_print(cli, image);
    else
        printf("%s\n", json_str_or(image, "name", ""));
    return EXIT_OK;
}

/*
 * A folder as a tar, in an unnamed file: an OCI layout, or a root file system. Not through a pipe,
 * where a tar that fails halfway looks like a short one that is whole.
 */
static int tar_of_folder(const char *path, int *ret_fd, struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    _cleanup_close_ int fd = open(
        tmp && tmp[0] ? tmp : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    _cleanup_free_ char *whole = realpath(path, NULL);
    const char *argv[] = {"tar", "--create", "--format=pax", "--numeric-owner", "--xattrs",
        "--xattrs-include=*", "--directory", whole, ".", NULL};
    struct proc p = {.argv = argv};
    int status, r;
    pid_t pid;

    if (fd < 0 || !whole)
        return err_sys(err, -errno, "cannot make a tar of '%s'", path);
    r = proc_spawn(&p, fd, STDERR_FILENO, false, &pid, err);
    if (r < 0)
        return r;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(err, -EIO, "cannot make a tar of '%s'", path);
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(err, -errno, "cannot read the tar of '%s'", path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int open_source(const char *path, int *ret_fd, struct err *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return err_set(
            err, -ENOENT, "there is no file '%s'%s", path, path[0] == '/' ? "" : " here");
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, -errno, "cannot read '%s'", path);
    if (S_ISDIR(st.st_mode)) {
        progress_set("reading %s", path);
        return tar_of_folder(path, ret_fd, err);
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int import_file(struct cli *cli, const char *path, const char *name)
{
    _cleanup_close_ int fd = -1;
    struct err err = ERR_INIT;
    _cleanup_free_ char *target = NULL;

    if (open_source(path, &fd, &err) < 0) {
        progress_clear();
        return cli_fail(cli, &err);
    }
    target = image_path(name);
    progress_set("uploading %s", path);
    return import_call(cli,
        (struct http_call){
            .method = "PUT", .path = target, .body_fd = fd, .content_type = "application/x-tar"},
        path);
}

static int import_ref(struct cli *cli, const char *ref, const char *name)
{
    _cleanup_(json_decrefp) json_t *body = json_object();
    _cleanup_free_ char *text = NULL;

    json_set_str(body, "ref", ref);
    if (name)
        json_set_str(body, "name", name);
    text = json_text(body);
    return import_call(cli,
        (struct http_call){
            .method = "POST", .path = "/v1/images", .body = text, .body_len = strlen(text)},
        NULL);
}

/* ".tar.gz" of "base.tar.gz"; NULL: it does not end as archives do. */
static const char *archive_end(const char *name)
{
    static const char *const ends[] = {
        ".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".oci", ".sqsh"};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (str_ends(name, ends[i]) && strlen(name) > strlen(ends[i]))
            return ends[i];
    return NULL;
}

/* "/a/base.tar.gz" and "/a/base/" -> "base" */
static char *name_of_file(const char *path)
{
    _cleanup_free_ char *trimmed = xstrdup(path);
    const char *slash, *end;
    char *name;

    while (strlen(trimmed) > 1 && str_ends(trimmed, "/"))
        trimmed[strlen(trimmed) - 1] = '\0';
    slash = strrchr(trimmed, '/');
    name = xstrdup(slash ? slash + 1 : trimmed);
    end = archive_end(name);
    if (end)
        name[strlen(name) - strlen(end)] = '\0';
    return name;
}

/* What only a path looks like: a reference to a registry has none of these beginnings and ends. */
static bool is_path(const char *word)
{
    return word[0] == '/' || str_eq(word, ".") || str_eq(word, "..") || str_starts(word, "./") ||
        str_starts(word, "../") || str_ends(word, "/") || archive_end(word);
}

int cmd_image_import(struct cli *cli, int argc, char **argv)
{
    static struct import_opts o;
    _cleanup_free_ char *name = NULL;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (!o.name)
        o.name = o.as;
    if (!is_path(argv[rest]))
        return import_ref(cli, argv[rest], o.name);
    name = o.name ? xstrdup(o.name) : name_of_file(argv[rest]);
    return import_file(cli, argv[rest], name);
}
