/*
 * What Muster tells a container: keys, plan, barrier, record, on a small tmpfs of its own that is
 * bound read-only at /etc/muster. It is filled before it is attached anywhere, so nobody sees half
 * of it. Only the record is written from inside, and its reader trusts nothing in it.
 */
#include "agent/ct/etc.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "agent/ct/idmap.h"
#include "agent/ct/mnt.h"
#include "agent/ct/paths.h"
#include "agent/ct/sshconf.h"
#include "base/buf.h"
#include "base/fs.h"

#define PLAN_MAX (384 * 1024)
#define RECORD_MAX (1024 * 1024)

struct etc {
    int root;
    uint32_t owner, work;
    int code; /* of the first failure */
    const char *failed;
};

static int write_file(
    int dir, const char *name, const char *text, size_t len, uint32_t owner, mode_t mode)
{
    _cleanup_close_ int fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, text, len) != (ssize_t)len)
        return errno ? -errno : -EIO;
    return fchown(fd, owner, owner) < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}

static void put(
    struct etc *e, const char *name, const char *text, size_t len, uint32_t owner, mode_t mode)
{
    if (e->code == 0) {
        errno = 0;
        e->code = write_file(e->root, name, text, len, owner, mode);
        e->failed = name;
    }
}

static void put_text(struct etc *e, const char *name, const char *text)
{
    put(e, name, text ? text : "", text ? strlen(text) : 0, e->owner, 0644);
}

/* OpenSSH refuses a private key that others may read, or that belongs to somebody else. */
static void put_key(struct etc *e, const char *name, const char *text)
{
    put(e, name, text ? text : "", text ? strlen(text) : 0, e->work, 0600);
}

static void put_folder(struct etc *e, const char *name)
{
    if (e->code < 0)
        return;
    e->failed = name;
    if (mkdirat(e->root, name, 0755) < 0 || fchownat(e->root, name, e->owner, e->owner, 0) < 0)
        e->code = -errno;
}

static int fill(struct etc *e, const struct assignment *a, const struct assigned_container *c,
    char *const *env, struct err *err)
{
    _cleanup_free_ char *plan = NULL, *server = NULL;
    _cleanup_free_ char *client = sshconf_client(a), *known = sshconf_known_hosts(a);
    size_t plan_len;
    int r;

    r = etc_plan(a, c, env, &plan, &plan_len, err);
    if (r == 0)
        r = sshconf_server(env, c->name, &server, err);
    if (r < 0)
        return r;
    put_folder(e, "ssh");
    put_folder(e, "init");
    put_text(e, "hostfile", a->hostfile);
    put_text(e, "record", "");
    put_key(e, "ssh/id_ed25519", a->ssh_private);
    put_key(e, "ssh/host_ed25519", a->ssh_host_private);
    put_text(e, "ssh/id_ed25519.pub", a->ssh_public);
    put_text(e, "ssh/authorized_keys", a->ssh_public);
    put_text(e, "ssh/known_hosts", known);
    put_text(e, "ssh/ssh_config", client);
    put_text(e, "ssh/sshd_config", server);
    put(e, "init/plan", plan, plan_len, e->owner, 0600);
    return e->code < 0 ? err_sys(err, e->code, "cannot write '/etc/muster/%s'", e->failed) : 0;
}

static int new_tmpfs(const struct etc *e, struct err *err)
{
    char owner[16];
    const struct mnt_opt opts[] = {
        {"size", "1m"}, {"mode", "755"}, {"uid", owner}, {"gid", owner}, {0}};

    snprintf(owner, sizeof(owner), "%u", e->owner);
    return mnt_new("tmpfs", opts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
}

int etc_make(const struct rootfs_dirs *d, const struct assignment *a,
    const struct assigned_container *c, char *const *env, struct err *err)
{
    struct etc e = {.owner = idmap_outside(&a->user, 0), .work = a->user.uid};
    _cleanup_close_ int root = new_tmpfs(&e, err);
    char path[CT_PATH_MAX];
    int r;

    if (root < 0)
        return root;
    e.root = root;
    r = fill(&e, a, c, env, err);
    if (r == 0)
        r = fs_mkdir_p(ct_run_path(d, c->id, "etc", path), 0755, err);
    if (r < 0)
        return r;
    r = mnt_attach(root, path);
    return r < 0 ? err_sys(err, r, "cannot attach '%s'", path) : 0;
}

/* Negative when it does not fit. */
static int put_record(struct buf *b, const char *key, const char *value)
{
    int r = buf_printf(b, "%s=%s", key, value);

    return r < 0 ? r : buf_append(b, "", 1);
}

static int put_records(struct buf *b, const char *key, char *const *values)
{
    int r = 0;

    for (; r == 0 && values && *values; values++)
        r = put_record(b, key, *values);
    return r;
}

int etc_plan(const struct assignment *a, const struct assigned_container *c, char *const *env,
    char **ret, size_t *ret_len, struct err *err)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(PLAN_MAX);
    char number[16];

    snprintf(number, sizeof(number), "%u", a->stop_signal ? a->stop_signal : 15);
    put_record(&b, "user", "1000:1000");
    put_record(&b, "cwd", *a->workdir ? a->workdir : "/home/work");
    put_record(&b, "stop-signal", number);
    put_record(&b, "sshd", "/opt/muster/sbin/sshd");
    put_record(&b, "sshd-config", SSHCONF_DIR "/sshd_config");
    if (put_records(&b, "env", env) < 0 || put_records(&b, "arg", c->command) < 0)
        return err_set(err, -E2BIG, "command and environment are larger than %d bytes", PLAN_MAX);
    *ret_len = b.len;
    *ret = buf_take(&b);
    return 0;
}

int rootfs_open_barrier(const struct rootfs_dirs *d, const char *container_id, struct err *err)
{
    char path[CT_PATH_MAX];
    _cleanup_close_ int fd = -1;
    int r = ct_check_id("container", container_id, err);

    if (r < 0)
        return r;
    if (!mnt_is_root(ct_run_path(d, container_id, "etc", path)))
        return err_set(err, -ENOENT, "the container has no root here");
    ct_run_path(d, container_id, "etc/init/go", path);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0444);
    return fd < 0 ? err_sys(err, -errno, "cannot open the container's barrier") : 0;
}

/* One line; the number behind the first word goes to *number. */
static bool take_number(const char *line, const char *word, int *number)
{
    int64_t n;

    if (!str_starts(line, word) || str_to_i64(line + strlen(word), 0, 255, &n) < 0)
        return false;
    *number = (int)n;
    return true;
}

static void take_line(struct init_record *rec, const char *line)
{
    if (str_starts(line, "started ")) {
        rec->started = true;
    } else if (str_starts(line, "start-failed ")) {
        _cleanup_free_ char *text = NULL;
        const char *words = line + strlen("start-failed ");

        text = str_escape(words, strlen(words), sizeof(rec->text) - 1);
        snprintf(rec->text, sizeof(rec->text), "%s", text);
        rec->start_failed = true;
    } else if (take_number(line, "exited ", &rec->code)) {
        rec->exited = true;
    } else if (take_number(line, "signalled ", &rec->code)) {
        rec->signalled = true;
    }
}

int rootfs_read_record(
    const struct rootfs_dirs *d, const char *container_id, struct init_record *ret, struct err *err)
{
    struct init_record rec = {0};
    _cleanup_free_ char *text = NULL;
    char path[CT_PATH_MAX];
    int r = ct_check_id("container", container_id, err);

    if (r == 0)
        r = fs_read(ct_run_path(d, container_id, "etc/record", path), RECORD_MAX, &text, NULL, err);
    if (r < 0)
        return r;
    for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        take_line(&rec, line);
    }
    *ret = rec;
    return 0;
}
