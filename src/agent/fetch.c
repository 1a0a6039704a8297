/*
 * Bringing an image's blob to this node: from the manager over HTTP into a file beside, going on
 * where an earlier try was cut, checked against its digest before it gets its name. A lock file
 * lets one of several askers do it. Blocks; worker threads.
 */
#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "agent/sess.h"
#include "base/fs.h"
#include "base/str.h"
#include "net/http.h"

#define CHUNK (1024 * 1024)

struct fetch {
    int fd;
    uint64_t left;
    atomic_bool *cancel;
};

static int fetch_data(const char *data, size_t len, void *arg)
{
    struct fetch *f = arg;

    if (atomic_load(f->cancel))
        return -ECANCELED;
    if (len > f->left)
        return -EMSGSIZE;
    f->left -= len;
    while (len > 0) {
        ssize_t n = write(f->fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static int check_digest(int fd, const char *digest, struct err *err)
{
    crypto_hash_sha256_state st;
    unsigned char sum[crypto_hash_sha256_BYTES];
    char hex[2 * sizeof(sum) + 1];
    _cleanup_free_ char *buf = xcalloc(1, CHUNK);
    ssize_t n;

    crypto_hash_sha256_init(&st);
    for (off_t at = 0; (n = pread(fd, buf, CHUNK, at)) > 0; at += n)
        crypto_hash_sha256_update(&st, (unsigned char *)buf, (unsigned long long)n);
    if (n < 0)
        return err_sys(err, -errno, "cannot read the blob back");
    crypto_hash_sha256_final(&st, sum);
    sodium_bin2hex(hex, sizeof(hex), sum, sizeof(sum));
    if (!str_eq(hex, digest + strlen("sha256:")))
        return err_set(err, -EBADMSG, "the blob's content does not have its digest");
    return 0;
}

static int download(const struct agent *ag, const struct assigned_layer *layer, int fd,
    atomic_bool *cancel, struct err *err)
{
    _cleanup_free_ char *token = NULL;
    _cleanup_free_ char *path = xasprintf("/v1/blobs/%s", layer->digest);
    _cleanup_(http_freep) struct http *http = NULL;
    char range[64];
    const char *headers[] = {range, NULL};
    struct stat st;
    struct fetch f = {.fd = fd, .cancel = cancel};
    struct http_call call = {.method = "GET",
        .path = path,
        .headers = headers,
        .timeout_usec = UINT64_MAX,
        .on_data = fetch_data,
        .arg = &f};
    struct http_opts opts = {.base_url = ag->config.manager[0]};
    int r = identity_for_http(ag, &opts, &token, err);

    if (r < 0)
        return r;
    if (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_END) < 0)
        return err_sys(err, -errno, "cannot use the temporary file");
    if ((uint64_t)st.st_size >= layer->size && ftruncate(fd, 0) == 0)
        st.st_size = 0;
    f.left = layer->size - (uint64_t)st.st_size;
    snprintf(range, sizeof(range), "Range: bytes=%lld-", (long long)st.st_size);
    r = http_new(&opts, &http, err);
    if (r == 0)
        r = http_do(http, &call, err);
    if (r == 0 && call.status != 200 && call.status != 206)
        r = err_set(err, -EIO, "the manager answered %u for the blob", call.status);
    if (r == 0 && f.left > 0)
        r = err_set(err, -EIO, "the blob is %llu bytes short", (unsigned long long)f.left);
    return r;
}

static int fetch_locked(const struct agent *ag, const struct assigned_layer *layer,
    const char *path, atomic_bool *cancel, struct err *err)
{
    _cleanup_free_ char *tmp = xasprintf("%s.part", path);
    _cleanup_close_ int fd = open(tmp, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0600);
    int r;

    if (fd < 0)
        return err_sys(err, -errno, "cannot write '%s'", tmp);
    r = download(ag, layer, fd, cancel, err);
    if (r < 0) {
        if (lseek(fd, 0, SEEK_END) == 0) /* nothing that a later try could go on with */
            unlink(tmp);
        return r;
    }
    r = check_digest(fd, layer->digest, err);
    if (r < 0) {
        unlink(tmp);
        return r;
    }
    if (fsync(fd) < 0 || rename(tmp, path) < 0)
        return err_sys(err, -errno, "cannot keep '%s'", path);
    return fs_sync_parent(path);
}

/* The lock's file is removed by whoever holds it: a lock counts only on the one that is there. */
static int lock_file(const char *path, int *ret_fd, struct err *err)
{
    for (;;) {
        _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        struct stat mine, there;

        if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &mine) < 0)
            return err_sys(err, -errno, "cannot lock '%s'", path);
        if (stat(path, &there) == 0 && there.st_ino == mine.st_ino) {
            *ret_fd = TAKE_FD(fd);
            return 0;
        }
    }
}

int fetch_blob(const struct agent *ag, const struct assigned_layer *layer, atomic_bool *cancel,
    struct err *err)
{
    const char *hex = layer->digest + strlen("sha256:");
    _cleanup_free_ char *path = xasprintf("%s/sha256/%s", ag->config.blobs_dir, hex);
    _cleanup_free_ char *lock_path = xasprintf("%s/sha256/%s.lock", ag->config.blobs_dir, hex);
    _cleanup_close_ int lock = -1;
    int r;

    if (access(path, R_OK) == 0)
        return 0;
    r = lock_file(lock_path, &lock, err);
    if (r == 0 && access(path, R_OK) < 0)
        r = fetch_locked(ag, layer, path, cancel, err);
    if (lock >= 0)
        unlink(lock_path);
    return r;
}
