/*
 * What Muster writes into an image's root. Each file is an upper copy of the container's own.
 */
#include "agent/ct/guestfiles.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "agent/ct/accounts.h"
#include "agent/ct/rootfs.h"
#include "agent/ct/sshconf.h"
#include "agent/ct/volume.h"
#include "base/buf.h"
#include "base/fs.h"

#define ACCOUNTS_MAX (1 << 20)
#define SSH_CONFIG_MAX (256 * 1024)
#define RESOLV_MAX (64 * 1024)
#define SHELL_OURS "/opt/muster/lib/busybox/sh"
#define SSH_INCLUDE "Include " SSHCONF_DIR "/ssh_config\n"
/* An image's own programs come first, as they do without a login. */
#define LOGIN_PATH "case :$PATH: in *:/opt/muster/bin:*) ;; *) PATH=$PATH:/opt/muster/bin ;; esac\n"

static int make_folders(const struct guest *g, struct err *err)
{
    static const char *const folders[] = {"/proc", "/sys", "/dev", "/etc/muster", "/opt/muster"};

    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        _cleanup_close_ int fd = guest_dir(g, folders[i], err);

        if (fd < 0)
            return fd;
    }
    return 0;
}

static const char *find_shell(const struct guest *g)
{
    static const char *const shells[] = {"/bin/bash", "/bin/sh"};

    for (size_t i = 0; i < ARRAY_LEN(shells); i++)
        if (guest_is_program(g, shells[i]))
            return shells[i];
    return SHELL_OURS;
}

/* Unreadable, a FIFO, larger than any real one: as if the image had none. */
static int write_accounts(const struct guest *g, const char *shell, struct err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < account_file_count; i++) {
        const struct account_file *f = &account_files[i];
        _cleanup_free_ char *old = NULL, *new = NULL;
        size_t len = 0;

        if (guest_read(g, f->path, ACCOUNTS_MAX, &old, &len) < 0) {
            if (!f->fallback)
                continue;
            old = xstrdup(f->fallback);
            len = strlen(old);
        }
        new = accounts_edit(f, old, len, shell);
        r = guest_write(g, f->path, new, strlen(new), g->owner, f->id_field < 0 ? 0600 : 0644, err);
    }
    return r;
}

static bool is_loopback_resolver(const char *line)
{
    const char *at;

    if (!str_starts(line, "nameserver"))
        return false;
    at = line + strlen("nameserver");
    at += strspn(at, " \t");
    return str_starts(at, "127.") || str_starts(at, "::1");
}

char *guestfiles_resolv(const char *text)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(RESOLV_MAX);

    while (*text) {
        size_t n = strcspn(text, "\n");

        n += text[n] == '\n';
        if (!is_loopback_resolver(text))
            buf_append(&b, text, n);
        text += n;
    }
    return buf_take(&b);
}

/* A node with systemd-resolved has 127.0.0.53 only in the first file, the real ones in the other.
 */
char *rootfs_resolv(void)
{
    static const char *const sources[] = {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"};
    char *ours = xstrdup("");

    for (size_t i = 0; i < ARRAY_LEN(sources) && !strstr(ours, "nameserver"); i++) {
        _cleanup_free_ char *text = NULL;

        if (fs_read(sources[i], RESOLV_MAX, &text, NULL, NULL) < 0)
            continue;
        free(ours);
        ours = guestfiles_resolv(text);
    }
    return ours;
}

static int write_resolv(const struct guest *g, struct err *err)
{
    _cleanup_free_ char *ours = rootfs_resolv();

    return guest_write(g, "/etc/resolv.conf", ours, strlen(ours), g->owner, 0644, err);
}

static int write_names(
    const struct guest *g, const struct assignment *a, const char *name, struct err *err)
{
    _cleanup_free_ char *hostname = xasprintf("%s\n", name);
    const char *hosts = a->hosts ? a->hosts : "127.0.0.1 localhost\n";
    int r;

    r = guest_write(g, "/etc/hosts", hosts, strlen(hosts), g->owner, 0644, err);
    if (r == 0)
        r = guest_write(g, "/etc/hostname", hostname, strlen(hostname), g->owner, 0644, err);
    return r;
}

/*
 * An ssh of the image's own (or one installed later) reads ssh_config.d if its ssh_config says so.
 * One that does not gets the line at its top; a missing ssh_config stays missing, or a package that
 * brings one would stop and ask.
 */
static int write_ssh(const struct guest *g, struct err *err)
{
    _cleanup_free_ char *old = NULL, *new = NULL;
    int r;

    r = guest_write(g, "/etc/ssh/ssh_config.d/00-muster.conf", SSH_INCLUDE, strlen(SSH_INCLUDE),
        g->owner, 0644, err);
    if (r < 0 || guest_read(g, "/etc/ssh/ssh_config", SSH_CONFIG_MAX, &old, NULL) < 0)
        return r;
    if (strstr(old, "\nInclude /etc/ssh/ssh_config.d/") || str_starts(old, SSH_INCLUDE))
        return 0;
    new = xasprintf("%s%s", SSH_INCLUDE, old);
    return guest_write(g, "/etc/ssh/ssh_config", new, strlen(new), g->owner, 0644, err);
}

/*
 * A login shell sets its own PATH (Debian's /etc/profile does), without what Muster brings. In an
 * image whose profile reads no profile.d the file does no harm.
 */
static int write_profile(const struct guest *g, struct err *err)
{
    return guest_write(
        g, "/etc/profile.d/muster.sh", LOGIN_PATH, strlen(LOGIN_PATH), g->owner, 0644, err);
}

static int own_folder(const struct guest *g, const char *path, mode_t mode, struct err *err)
{
    _cleanup_close_ int fd = guest_dir(g, path, err);
    char link[64];

    if (fd < 0)
        return fd;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (fchownat(fd, "", g->work, g->work, AT_EMPTY_PATH) < 0 || chmod(link, mode) < 0)
        return err_sys(err, -errno, "cannot give '%s' to the user", path);
    return 0;
}

static int make_work_folders(const struct guest *g, const struct assignment *a, struct err *err)
{
    int r = 0;

    if (!volume_covers(a, "/home/work"))
        r = own_folder(g, "/home/work", 0700, err);
    if (r == 0 && *a->workdir && !volume_covers(a, a->workdir) && !guest_exists(g, a->workdir))
        r = own_folder(g, a->workdir, 0755, err);
    return r;
}

static int write_shell(
    const struct rootfs_dirs *d, const char *id, const char *shell, struct err *err)
{
    char path[CT_PATH_MAX];

    return fs_write(ct_run_path(d, id, "shell", path), shell, strlen(shell), 0600, err);
}

int guestfiles_make(const struct rootfs_dirs *d, const struct guest *g, const struct assignment *a,
    const struct assigned_container *c, struct err *err)
{
    const char *shell;
    int r;

    r = make_folders(g, err);
    if (r < 0)
        return r;
    shell = find_shell(g);
    r = write_accounts(g, shell, err);
    if (r == 0)
        r = write_shell(d, c->id, shell, err);
    if (r == 0)
        r = write_names(g, a, c->name, err);
    if (r == 0)
        r = write_resolv(g, err);
    if (r == 0)
        r = write_ssh(g, err);
    if (r == 0)
        r = write_profile(g, err);
    return r < 0 ? r : make_work_folders(g, a, err);
}
