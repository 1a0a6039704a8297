/*
 * Kinds and members. A tar is an OCI layout or a docker-archive only when every name in it belongs
 * there and the documents that must be in it are; the first other name ends the look at it, so a
 * root file system of any size is recognised at once.
 */
#include "image/source.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/str.h"
#include "image/stream.h"

#define MEMBERS_MAX 4096
#define LINKS_MAX 8
#define HEX_LEN 64

struct member {
    uint64_t off, len;
    char *link; /* clean name that it stands for, or NULL */
};

void piece_done(struct piece *p)
{
    cleanup_close(&p->fd);
    p->fd = -1;
}

int piece_read(const struct piece *p, size_t max, char **ret, struct err *err)
{
    _cleanup_free_ char *text = NULL;
    size_t got = 0;

    if (p->len > max)
        return err_set(err, -EFBIG, "larger than %zu bytes", max);
    text = xcalloc(1, p->len + 1);
    while (got < p->len) {
        ssize_t n = pread(p->fd, text + got, p->len - got, (off_t)(p->off + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, -errno, "cannot read");
        if (n == 0)
            return err_set(err, -EINVAL, "ends too early");
        got += (size_t)n;
    }
    *ret = TAKE_PTR(text);
    return 0;
}

static void member_free(void *p)
{
    struct member *m = p;

    free(m->link);
    free(m);
}

void source_free(struct source *s)
{
    if (!s)
        return;
    map_done(&s->members, member_free);
    cleanup_close(&s->fd);
    free(s);
}

void source_freep(struct source **s)
{
    source_free(*s);
}

/* ---- names of members ---- */

/* Without "." and empty parts; ".." goes up, never out. false: too long. */
static bool clean_name(const char *name, char *ret, size_t size)
{
    size_t len = 0;

    for (const char *p = name; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') {
            while (len > 0 && ret[--len] != '/')
                ;
        } else if (n > 0 && !(n == 1 && p[0] == '.')) {
            if (len + n + 2 > size)
                return false;
            if (len > 0)
                ret[len++] = '/';
            memcpy(ret + len, p, n);
            len += n;
        }
        p += n + (p[n] == '/');
    }
    ret[len] = '\0';
    return true;
}

static bool is_hex(const char *s)
{
    return strspn(s, "0123456789abcdef") >= HEX_LEN;
}

static bool is_archive_name(const char *name)
{
    static const char *const known[] = {
        "",
        "oci-layout",
        "index.json",
        "manifest.json",
        "repositories",
        "blobs",
        "blobs/sha256",
    };
    static const char *const behind_hex[] = {
        "", ".json", ".tar", "/layer.tar", "/VERSION", "/json"};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (str_eq(name, known[i]))
            return true;
    if (str_starts(name, "blobs/sha256/"))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(behind_hex); i++)
        if (is_hex(name) && str_eq(name + HEX_LEN, behind_hex[i]))
            return true;
    return false;
}

/* ---- looking at a tar ---- */

static void add_link(struct source *s, const char *name, const char *target, bool relative)
{
    const char *slash = strrchr(name, '/');
    int dir = relative && slash && target[0] != '/' ? (int)(slash - name) : 0;
    _cleanup_free_ char *joined = xasprintf("%.*s/%s", dir, name, target);
    struct member *m = xnew(struct member), *old;
    char clean[4096];

    m->link = clean_name(joined, clean, sizeof(clean)) ? xstrdup(clean) : xstrdup("");
    old = map_set(&s->members, name, m);
    if (old)
        member_free(old);
}

static void add_file(struct source *s, const char *name, uint64_t off, uint64_t len)
{
    struct member *m = xnew(struct member), *old;

    m->off = off;
    m->len = len;
    old = map_set(&s->members, name, m);
    if (old)
        member_free(old);
}

/* false: this tar is no archive of an image. */
static bool add_member(struct source *s, struct archive *a, struct archive_entry *e)
{
    const char *raw = archive_entry_pathname(e);
    char name[4096];

    if (!raw || !clean_name(raw, name, sizeof(name)) || !is_archive_name(name) ||
        map_count(&s->members) >= MEMBERS_MAX)
        return false;
    if (archive_entry_hardlink(e))
        add_link(s, name, archive_entry_hardlink(e), false);
    else if (archive_entry_filetype(e) == AE_IFLNK && archive_entry_symlink(e))
        add_link(s, name, archive_entry_symlink(e), true);
    else if (archive_entry_filetype(e) == AE_IFREG && archive_entry_size(e) >= 0)
        add_file(s, name, (uint64_t)archive_filter_bytes(a, 0), (uint64_t)archive_entry_size(e));
    else
        return archive_entry_filetype(e) == AE_IFDIR;
    return true;
}

static void forget_members(struct source *s)
{
    map_done(&s->members, member_free);
    map_init(&s->members);
}

static void list_members(struct source *s, struct archive *a)
{
    struct archive_entry *e;
    int r;

    while ((r = archive_read_next_header(a, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN)
        if (!add_member(s, a, e)) {
            forget_members(s);
            return;
        }
    if (r != ARCHIVE_EOF)
        forget_members(s);
}

static enum source_kind kind_of_members(const struct source *s)
{
    /* Docker 25 and later write both; its manifest.json names the image. */
    if (map_get(&s->members, "oci-layout") && map_get(&s->members, "index.json"))
        return map_get(&s->members, "manifest.json") ? SOURCE_DOCKER : SOURCE_OCI;
    return map_get(&s->members, "manifest.json") ? SOURCE_DOCKER : SOURCE_ROOTFS;
}

static int look_at_tar(struct source *s, struct err *err)
{
    struct archive *a = archive_read_new();

    if (!a)
        return err_set(err, -ENOMEM, "out of memory");
    if (lseek(s->fd, 0, SEEK_SET) < 0) {
        archive_read_free(a);
        return err_sys(err, -errno, "cannot read");
    }
    archive_read_support_filter_all(a);
    archive_read_support_format_tar(a);
    if (archive_read_open_fd(a, s->fd, 64 * 1024) == ARCHIVE_OK)
        list_members(s, a);
    archive_read_free(a);
    s->kind = kind_of_members(s);
    return 0;
}

/* The members' offsets are needed in a file without compression. */
static int decompress(struct source *s, const char *scratch, uint64_t max, struct err *err)
{
    _cleanup_(stream_done) struct stream in = {0};
    _cleanup_close_ int out = -1;
    struct piece whole;
    const void *p;
    size_t n;
    int r;

    r = source_piece(s, NULL, &whole, err);
    if (r < 0)
        return r;
    out = open(scratch, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    r = out < 0 ? err_sys(err, -errno, "cannot make a file in '%s'", scratch)
                : stream_open(&in, &whole, max, err);
    while (r == 0 && (r = stream_next(&in, &p, &n, err)) == 0 && n > 0) {
        ssize_t written = write(out, p, n);
        if (written != (ssize_t)n)
            r = err_sys(err, written < 0 ? -errno : -ENOSPC, "cannot write");
    }
    piece_done(&whole);
    if (r < 0)
        return r;
    close(s->fd);
    s->fd = TAKE_FD(out);
    forget_members(s);
    return look_at_tar(s, err);
}

static int open_tar(struct source *s, const char *scratch, uint64_t max, struct err *err)
{
    struct piece whole;
    bool compressed;
    int r;

    r = look_at_tar(s, err);
    if (r < 0 || s->kind == SOURCE_ROOTFS)
        return r;
    r = source_piece(s, NULL, &whole, err);
    if (r < 0)
        return r;
    r = stream_is_compressed(&whole, &compressed, err);
    piece_done(&whole);
    return r == 0 && compressed ? decompress(s, scratch, max, err) : r;
}

static int open_dir(struct source *s, struct err *err)
{
    if (faccessat(s->fd, "oci-layout", F_OK, 0) < 0 || faccessat(s->fd, "index.json", F_OK, 0) < 0)
        return err_set(err, -EINVAL, "the folder is no OCI layout (no oci-layout, index.json)");
    s->is_dir = true;
    s->kind = SOURCE_OCI;
    return 0;
}

int source_open(
    const char *path, const char *scratch, uint64_t max, struct source **ret, struct err *err)
{
    _cleanup_(source_freep) struct source *s = xnew(struct source);
    struct stat st;
    int r;

    map_init(&s->members);
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0)
        return err_sys(err, -errno, "cannot open");
    if (fstat(s->fd, &st) < 0)
        return err_sys(err, -errno, "cannot stat");
    if (S_ISDIR(st.st_mode))
        r = open_dir(s, err);
    else if (S_ISREG(st.st_mode))
        r = open_tar(s, scratch, max, err);
    else
        r = err_set(err, -EINVAL, "neither a file nor a folder");
    if (r < 0)
        return r;
    *ret = TAKE_PTR(s);
    return 0;
}

/* ---- pieces ---- */

static int whole_file(int fd, struct piece *ret, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(err, -errno, "cannot stat");
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "no regular file");
    *ret = (struct piece){.fd = fd, .len = (uint64_t)st.st_size};
    return 0;
}

static const struct member *find_member(const struct source *s, const char *name)
{
    const struct member *m = NULL;
    char clean[4096];

    if (!clean_name(name, clean, sizeof(clean)))
        return NULL;
    m = map_get(&s->members, clean);
    for (int i = 0; m && m->link && i < LINKS_MAX; i++)
        m = map_get(&s->members, m->link);
    return m && !m->link ? m : NULL;
}

int source_piece(const struct source *s, const char *name, struct piece *ret, struct err *err)
{
    _cleanup_close_ int fd = -1;
    const struct member *m = NULL;
    int r;

    if (name && !s->is_dir && !(m = find_member(s, name)))
        return err_set(err, -ENOENT, "not there");
    if (s->is_dir) {
        /* O_NONBLOCK: the layout may hold a FIFO. */
        fd = fs_open_beneath(s->fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, false);
        if (fd < 0)
            return err_sys(err, fd, "cannot open");
    } else {
        fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
            return err_sys(err, -errno, "cannot open");
    }
    r = whole_file(fd, ret, err);
    if (r < 0)
        return r;
    if (m && (m->off > ret->len || m->len > ret->len - m->off))
        return err_set(err, -EINVAL, "ends too early");
    if (m) {
        ret->off = m->off;
        ret->len = m->len;
    }
    ret->fd = TAKE_FD(fd);
    return 0;
}
