/*
 * The sink that writes a pax tar (POSIX.1-2017, pax "Extended Interchange Format") for a mkfs.erofs
 * that packs one as it comes. Written here and not by libarchive, because mkfs.erofs 1.8 reads
 * "1600000000.25" as 25 nanoseconds: a fraction must have all nine digits. Nothing that was written
 * can be taken back: drop is not possible, and the caller then unpacks to disk instead.
 */
#include "base/buf.h"
#include "base/str.h"
#include "image/item.h"

#define BLOCK 512
#define OUT_SIZE (256 * 1024)
#define PAX_MAX (4 * 1024 * 1024)
#define OCTAL_7 UINT64_C(07777777)
#define OCTAL_11 UINT64_C(077777777777)

struct header { /* ustar */
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
    char linkname[100], magic[6], version[2], uname[32], gname[32], devmajor[8], devminor[8];
    char prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a tar header is one block");

struct tar {
    struct sink sink;
    int fd;
    char *out; /* not yet written */
    size_t out_len;
    uint64_t at, size; /* of the file put last, of which more is to come */
    struct buf pax;
};

static struct tar *tar_of(struct sink *s)
{
    return CONTAINER_OF(s, struct tar, sink);
}

/* ---- bytes ---- */

static int write_all(struct tar *t, const char *p, size_t n, struct err *err)
{
    while (n > 0) {
        ssize_t done = write(t->fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_sys(err, -errno, "cannot pass the tar on");
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static int flush(struct tar *t, struct err *err)
{
    int r = write_all(t, t->out, t->out_len, err);

    t->out_len = 0;
    return r;
}

static int append(struct tar *t, const void *p, size_t n, struct err *err)
{
    int r;

    if (n > OUT_SIZE - t->out_len && (r = flush(t, err)) < 0)
        return r;
    if (n >= OUT_SIZE)
        return write_all(t, p, n, err);
    memcpy(t->out + t->out_len, p, n);
    t->out_len += n;
    return 0;
}

/* Also for holes: mkfs.erofs sees them again when it compresses. */
static int append_zeros(struct tar *t, uint64_t n, struct err *err)
{
    static const char zeros[64 * 1024];

    while (n > 0) {
        size_t some = (size_t)MIN_OF(n, (uint64_t)sizeof(zeros));
        int r = append(t, zeros, some, err);
        if (r < 0)
            return r;
        n -= some;
    }
    return 0;
}

static uint64_t padding(uint64_t size)
{
    return (BLOCK - size % BLOCK) % BLOCK;
}

static int end_file(struct tar *t, struct err *err)
{
    uint64_t rest = t->size - t->at + padding(t->size);

    t->at = t->size = 0;
    return append_zeros(t, rest, err);
}

static int tar_data(struct sink *s, const void *p, size_t n, uint64_t off, struct err *err)
{
    struct tar *t = tar_of(s);
    int r;

    if (off < t->at || off > t->size || n > t->size - off)
        return err_set(err, -EINVAL, "a file's bytes are out of order");
    if ((r = append_zeros(t, off - t->at, err)) < 0 || (r = append(t, p, n, err)) < 0)
        return r;
    t->at = off + n;
    return 0;
}

/* ---- headers ---- */

static void set_octal(char *field, size_t size, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%0*llo", (int)size - 1, (unsigned long long)value);
    memcpy(field, text, size);
}

static void set_checksum(struct header *h)
{
    const unsigned char *p = (const unsigned char *)h;
    unsigned sum = 0;

    memset(h->checksum, ' ', sizeof(h->checksum));
    for (size_t i = 0; i < sizeof(*h); i++)
        sum += p[i];
    set_octal(h->checksum, 7, sum);
}

static void set_magic(struct header *h, char type, uint64_t size)
{
    memcpy(h->magic, "ustar", 6);
    memcpy(h->version, "00", 2);
    h->type = type;
    set_octal(h->size, sizeof(h->size), MIN_OF(size, OCTAL_11));
}

static unsigned digits(size_t n)
{
    return n < 10 ? 1 : 1 + digits(n / 10);
}

/* "LENGTH key=value\n", where LENGTH counts itself. */
static int pax_add(struct tar *t, const char *key, const void *value, size_t len)
{
    size_t without = strlen(key) + len + 3;
    size_t total = without + digits(without);

    total = without + digits(total);
    if (buf_printf(&t->pax, "%zu %s=", total, key) < 0 || buf_append(&t->pax, value, len) < 0 ||
        buf_append(&t->pax, "\n", 1) < 0)
        return -EFBIG;
    return 0;
}

static int pax_add_text(struct tar *t, const char *key, const char *value)
{
    return pax_add(t, key, value, strlen(value));
}

static int pax_add_number(struct tar *t, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    return pax_add_text(t, key, text);
}

/* A name field, or the record for what does not fit. */
static int set_name(struct tar *t, char *field, const char *key, const char *name)
{
    if (strlen(name) > 100)
        return pax_add_text(t, key, name);
    memcpy(field, name, strlen(name));
    return 0;
}

static int set_id(struct tar *t, char field[8], const char *key, uint32_t id)
{
    set_octal(field, 8, MIN_OF((uint64_t)id, OCTAL_7));
    return id > OCTAL_7 ? pax_add_number(t, key, id) : 0;
}

static int set_time(struct tar *t, struct header *h, const struct item *i)
{
    char text[40];

    set_octal(h->mtime, sizeof(h->mtime), MIN_OF((uint64_t)i->sec, OCTAL_11));
    if (i->nsec == 0 && (uint64_t)i->sec <= OCTAL_11)
        return 0;
    snprintf(text, sizeof(text), "%lld.%09u", (long long)i->sec, i->nsec);
    return pax_add_text(t, "mtime", text);
}

static int set_xattrs(struct tar *t, const struct item *i)
{
    for (size_t n = 0; n < i->xattr_count; n++) {
        _cleanup_free_ char *key = xasprintf("SCHILY.xattr.%s", i->xattrs[n].name);
        if (pax_add(t, key, i->xattrs[n].value, i->xattrs[n].len) < 0)
            return -EFBIG;
    }
    return 0;
}

static int fill(struct tar *t, struct header *h, const char *path, const struct item *i)
{
    static const char types[] = {
        [ITEM_DIR] = '5',
        [ITEM_FILE] = '0',
        [ITEM_SYMLINK] = '2',
        [ITEM_HARDLINK] = '1',
        [ITEM_FIFO] = '6',
        [ITEM_WHITEOUT] = '3',
    };
    uint64_t size = i->type == ITEM_FILE ? i->size : 0;
    int r;

    set_magic(h, types[i->type], size);
    set_octal(h->mode, sizeof(h->mode), i->type == ITEM_SYMLINK ? 0777 : i->mode);
    set_octal(h->devmajor, sizeof(h->devmajor), 0);
    set_octal(h->devminor, sizeof(h->devminor), 0);
    if ((r = set_name(t, h->name, "path", path[0] ? path : ".")) < 0 ||
        (i->target && (r = set_name(t, h->linkname, "linkpath", i->target)) < 0) ||
        (size > OCTAL_11 && (r = pax_add_number(t, "size", size)) < 0) ||
        (r = set_id(t, h->uid, "uid", i->uid)) < 0 || (r = set_id(t, h->gid, "gid", i->gid)) < 0 ||
        (r = set_time(t, h, i)) < 0)
        return r;
    return set_xattrs(t, i);
}

static int write_pax(struct tar *t, struct err *err)
{
    struct header h = {.name = "pax"};
    int r;

    if (t->pax.len == 0)
        return 0;
    set_magic(&h, 'x', t->pax.len);
    set_octal(h.mode, sizeof(h.mode), 0644);
    set_octal(h.uid, sizeof(h.uid), 0);
    set_octal(h.gid, sizeof(h.gid), 0);
    set_octal(h.mtime, sizeof(h.mtime), 0);
    set_checksum(&h);
    if ((r = append(t, &h, sizeof(h), err)) < 0 ||
        (r = append(t, t->pax.data, t->pax.len, err)) < 0)
        return r;
    return append_zeros(t, padding(t->pax.len), err);
}

static int tar_put(struct sink *s, const char *path, const struct item *i, struct err *err)
{
    struct tar *t = tar_of(s);
    struct header h = {0};
    int r;

    r = end_file(t, err);
    if (r < 0)
        return r;
    buf_consume(&t->pax, t->pax.len);
    if (fill(t, &h, path, i) < 0)
        return err_set(err, -EFBIG, "an entry's attributes are larger than %d bytes", PAX_MAX);
    set_checksum(&h);
    if ((r = write_pax(t, err)) < 0 || (r = append(t, &h, sizeof(h), err)) < 0)
        return r;
    t->size = i->type == ITEM_FILE ? i->size : 0;
    return 0;
}

/* ---- the sink ---- */

static int tar_drop(struct sink *s, const char *path, struct err *err)
{
    return err_set(err, -EOPNOTSUPP, "a name comes twice in the layer");
}

static int tar_finish(struct sink *s, struct err *err)
{
    struct tar *t = tar_of(s);
    int r;

    if ((r = end_file(t, err)) < 0 || (r = append_zeros(t, UINT64_C(2) * BLOCK, err)) < 0 ||
        (r = flush(t, err)) < 0)
        return r;
    cleanup_close(&t->fd); /* mkfs.erofs waits for the end of its input */
    t->fd = -1;
    return 0;
}

static void tar_free(struct sink *s)
{
    struct tar *t = tar_of(s);

    cleanup_close(&t->fd);
    buf_done(&t->pax);
    free(t->out);
    free(t);
}

static const struct sink_ops tar_ops = {
    .put = tar_put,
    .data = tar_data,
    .drop = tar_drop,
    .finish = tar_finish,
    .free = tar_free,
};

struct sink *sink_tar_new(int fd)
{
    struct tar *t = xnew(struct tar);

    *t = (struct tar){.fd = fd, .out = xcalloc(1, OUT_SIZE), .pax = BUF_INIT(PAX_MAX)};
    t->sink.ops = &tar_ops;
    return &t->sink;
}
