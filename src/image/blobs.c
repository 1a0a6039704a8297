/*
 * Blobs and records. Records are a line of JSON each; they are ours, but the folder may be shared
 * storage, so they are read with checks, and one that is broken counts as none.
 */
#include "image/blobs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/crash.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/str.h"

#define RECORD_MAX 4096

int blobs_open(const char *dir, struct blobs *ret, struct err *err)
{
    static const char *const folders[] = {"sha256", "by-diff", "by-chain", "by-packed"};
    _cleanup_free_ char *lock_path = xasprintf("%s/.lock", dir);
    _cleanup_free_ char *tmp = xasprintf("%s/tmp", dir);
    _cleanup_(blobs_done) struct blobs b = {.lock = -1};
    int r;

    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", dir, folders[i]);
        r = fs_mkdir_p(path, 0755, err);
        if (r < 0)
            return r;
    }
    b.dir = xstrdup(dir);
    b.lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (b.lock < 0)
        return err_sys(err, -errno, "cannot open '%s'", lock_path);
    r = scratch_make(tmp, &b.tmp, err);
    if (r < 0)
        return r;
    *ret = b;
    b = (struct blobs){.lock = -1};
    return 0;
}

void blobs_done(struct blobs *b)
{
    scratch_done(&b->tmp);
    cleanup_close(&b->lock);
    b->lock = -1;
    free(b->dir);
    b->dir = NULL;
}

/* Open file description locks (fcntl(2)): one byte for each diff id, nothing to clean up. */
static int set_lock(struct blobs *b, const char *diff_id, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

    lock.l_start = (off_t)digest_number(diff_id);
    return fcntl(b->lock, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

int blobs_try_lock(struct blobs *b, const char *diff_id, struct err *err)
{
    int r = set_lock(b, diff_id, F_WRLCK);

    if (r == -EACCES)
        r = -EAGAIN;
    return r < 0 ? err_sys(err, r, "cannot lock a layer") : 0;
}

void blobs_unlock(struct blobs *b, const char *diff_id)
{
    (void)set_lock(b, diff_id, F_UNLCK);
}

char *blobs_path(const struct blobs *b, const char *digest)
{
    return xasprintf("%s/sha256/%s", b->dir, digest_hex(digest));
}

static char *record_path(const struct blobs *b, bool by_chain, const char *id)
{
    return xasprintf("%s/%s/%s", b->dir, by_chain ? "by-chain" : "by-diff", digest_hex(id));
}

/* ---- records ---- */

static int record_from_json(const json_t *j, struct layer_record *ret, struct err *err)
{
    struct layer_record rec = {0};
    uint64_t mode, uid, gid;
    const char *digest;
    int r;

    if ((r = json_get_str(j, "digest", &digest, err)) < 0 ||
        (r = json_get_u64(j, "size", INT64_MAX, &rec.size, err)) < 0 ||
        (r = json_get_bool(j, "root_listed", &rec.layer.root_listed, err)) < 0 ||
        (r = json_get_bool(j, "opaque", &rec.layer.opaque_root, err)) < 0 ||
        (r = json_get_u64(j, "root_mode", 07777, &mode, err)) < 0 ||
        (r = json_get_u64(j, "root_uid", UINT32_MAX, &uid, err)) < 0 ||
        (r = json_get_u64(j, "root_gid", UINT32_MAX, &gid, err)) < 0 ||
        (r = json_get_bool(j, "root_xattrs", &rec.layer.root.has_xattrs, err)) < 0)
        return r;
    if (!digest_is_valid(digest))
        return err_set(err, -EINVAL, "'digest' is none");
    STR_SET(rec.digest, digest);
    rec.layer.root.mode = (uint32_t)mode;
    rec.layer.root.uid = (uint32_t)uid;
    rec.layer.root.gid = (uint32_t)gid;
    rec.layer.entries = json_u64_or(j, "entries", 0);
    rec.layer.bytes = json_u64_or(j, "bytes", 0);
    *ret = rec;
    return 0;
}

static json_t *record_to_json(const struct layer_record *rec)
{
    json_t *j = json_object();

    json_set_str(j, "digest", rec->digest);
    json_set_u64(j, "size", rec->size);
    json_set_bool(j, "root_listed", rec->layer.root_listed);
    json_set_bool(j, "opaque", rec->layer.opaque_root);
    json_set_u64(j, "root_mode", rec->layer.root.mode);
    json_set_u64(j, "root_uid", rec->layer.root.uid);
    json_set_u64(j, "root_gid", rec->layer.root.gid);
    json_set_bool(j, "root_xattrs", rec->layer.root.has_xattrs);
    json_set_u64(j, "entries", rec->layer.entries);
    json_set_u64(j, "bytes", rec->layer.bytes);
    return j;
}

static bool blob_is_there(const struct blobs *b, const struct layer_record *rec)
{
    _cleanup_free_ char *path = blobs_path(b, rec->digest);
    struct stat st;

    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == rec->size;
}

int blobs_find(
    const struct blobs *b, bool by_chain, const char *id, struct layer_record *ret, struct err *err)
{
    _cleanup_free_ char *path = record_path(b, by_chain, id), *text = NULL;
    _cleanup_(json_decrefp) json_t *j = NULL;
    struct layer_record rec;
    size_t len;

    if (fs_read(path, RECORD_MAX, &text, &len, NULL) < 0 ||
        json_parse(text, len, RECORD_MAX, &j, NULL) < 0 || record_from_json(j, &rec, NULL) < 0 ||
        !blob_is_there(b, &rec))
        return err_set(err, -ENOENT, "no blob of this layer");
    *ret = rec;
    return 0;
}

int blobs_record(const struct blobs *b, bool by_chain, const char *id,
    const struct layer_record *record, struct err *err)
{
    _cleanup_free_ char *path = record_path(b, by_chain, id), *text = NULL;
    _cleanup_(json_decrefp) json_t *j = record_to_json(record);
    int r;

    r = crash_point("import.before_record", err);
    if (r < 0)
        return r;
    text = json_text(j);
    return fs_write_atomic(path, text, strlen(text), 0644, err);
}

/* ---- blobs ---- */

char *blobs_tmp_path(const struct blobs *b, uint32_t number)
{
    return xasprintf("%s/blob%u", b->tmp.path, number);
}

static int seal(const char *path, struct layer_record *record, struct err *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int r;

    if (fd < 0)
        return err_sys(err, -errno, "cannot open the new blob");
    r = digest_of_fd(fd, record->digest, &record->size, err);
    if (r < 0)
        return r;
    if (fchmod(fd, 0444) < 0 || fsync(fd) < 0)
        return err_sys(err, -errno, "cannot write the new blob to disk");
    return 0;
}

int blobs_add(
    const struct blobs *b, const char *tmp_path, struct layer_record *record, struct err *err)
{
    _cleanup_free_ char *path = NULL;
    int r;

    if ((r = seal(tmp_path, record, err)) < 0 || (r = crash_point("import.before_rename", err)) < 0)
        return r;
    path = blobs_path(b, record->digest);
    if (rename(tmp_path, path) < 0)
        return err_sys(err, -errno, "cannot move the new blob to '%s'", path);
    r = fs_sync_parent(path);
    return r < 0 ? err_sys(err, r, "cannot write the folder of '%s' to disk", path) : 0;
}

/* ---- compressed layers that were seen ---- */

static char *packed_path(const struct blobs *b, const char *packed)
{
    return xasprintf("%s/by-packed/%s", b->dir, digest_hex(packed));
}

int blobs_packed_find(const struct blobs *b, const char *packed, char diff_id[DIGEST_TEXT_MAX])
{
    _cleanup_free_ char *path = packed_path(b, packed), *text = NULL;

    if (fs_read(path, DIGEST_TEXT_MAX, &text, NULL, NULL) < 0 || !digest_is_valid(text))
        return -ENOENT;
    return str_copy(diff_id, DIGEST_TEXT_MAX, text);
}

int blobs_packed_record(
    const struct blobs *b, const char *packed, const char *diff_id, struct err *err)
{
    _cleanup_free_ char *path = packed_path(b, packed);

    return fs_write_atomic(path, diff_id, strlen(diff_id), 0644, err);
}
