/*
 * Running skopeo: fixed environment, HOME nowhere, no user's registries.conf or credentials but the
 * file that was named. Its words about what went wrong are logfmt lines; the text of msg="..." is
 * what a person wants. How far it is, is seen from the size of what it wrote.
 */
#include "image/fetch.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"
#include "base/strv.h"

#define POLL_USEC (100 * USEC_PER_MSEC)
#define TELL_EVERY 5
#define MESSAGES_MAX 65536
#define FETCH_TIMEOUT (6 * 3600 * USEC_PER_SEC)
#define POLICY "/etc/containers/policy.json"

static char **command(const struct fetch *f, const char *scratch)
{
    char **argv = NULL;

    strv_push(&argv, "skopeo");
    /* The administrator's signature policy counts; where there is none, digests must do. */
    if (!fs_exists(POLICY))
        strv_push(&argv, "--insecure-policy");
    strv_push(&argv, "--override-os=linux");
    strv_pushf(&argv, "--override-arch=%s", f->arch);
    strv_pushf(&argv, "--tmpdir=%s", scratch);
    strv_push(&argv, "copy");
    if (f->insecure)
        strv_push(&argv, "--src-tls-verify=false");
    if (f->authfile)
        strv_pushf(&argv, "--src-authfile=%s", f->authfile);
    else
        strv_push(&argv, "--src-no-creds");
    strv_take(&argv, image_ref_url(f->ref));
    strv_pushf(&argv, "oci:%s/layout:image", scratch);
    return argv;
}

/* Bytes in the layout's blobs, those under way too. */
static uint64_t bytes_in(const char *path, int depth)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    uint64_t sum = 0;

    if (!dir)
        return 0;
    while ((e = readdir(dir))) {
        struct stat st;

        if (e->d_name[0] == '.' || fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISREG(st.st_mode)) {
            sum += (uint64_t)st.st_size;
        } else if (S_ISDIR(st.st_mode) && depth > 0) {
            _cleanup_free_ char *below = xasprintf("%s/%s", path, e->d_name);
            sum += bytes_in(below, depth - 1);
        }
    }
    closedir(dir);
    return sum;
}

static int wait_for(
    const struct fetch *f, pid_t pid, const char *layout, int *ret_status, struct err *err)
{
    const struct timespec pause = {.tv_nsec = POLL_USEC * 1000};
    uint64_t end = clock_mono_usec() + FETCH_TIMEOUT;

    for (unsigned n = 1;; n++) {
        uint64_t bytes;
        pid_t got = waitpid(pid, ret_status, WNOHANG);

        if (got == pid)
            return 0;
        if (got < 0 && errno != EINTR)
            return err_sys(err, -errno, "waiting for skopeo");
        (void)nanosleep(&pause, NULL);
        if (n % TELL_EVERY)
            continue;
        bytes = bytes_in(layout, 3);
        if (f->progress)
            f->progress(f->arg, bytes);
        if (bytes <= f->max_bytes && clock_mono_usec() < end)
            continue;
        (void)kill(-pid, SIGKILL);
        (void)waitpid(pid, ret_status, 0);
        return bytes > f->max_bytes ? err_set(err, -EFBIG, "larger than the limit of %llu bytes",
                                          (unsigned long long)f->max_bytes)
                                    : err_set(err, -ETIMEDOUT, "took too long");
    }
}

/* The text of the last msg="...", its quoting undone; or the last line as it is. */
static char *reason(const char *text)
{
    const char *at = NULL, *p = text;
    char *out;
    size_t len = 0;

    while ((p = strstr(p, "msg=\"")))
        at = p += 5;
    if (!at) {
        const char *line = strrchr(text, '\n');
        return str_escape(line ? line + 1 : text, strlen(line ? line + 1 : text), 400);
    }
    out = xcalloc(1, strlen(at) + 1);
    for (; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1])
            at++;
        out[len++] = *at;
    }
    at = out;
    out = str_escape(at, strlen(at), 400);
    free((char *)at);
    return out;
}

static int tell_failure(const struct fetch *f, int messages, int status, struct err *err)
{
    _cleanup_free_ char *text = xcalloc(1, MESSAGES_MAX + 1), *why = NULL;
    const char *said, *host = f->ref->host[0] ? f->ref->host : "docker.io";
    struct stat st;
    ssize_t n = 0;

    if (fstat(messages, &st) == 0)
        n = pread(messages, text, MESSAGES_MAX,
            st.st_size > MESSAGES_MAX ? st.st_size - MESSAGES_MAX : 0);
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    why = reason(text);
    if (why[0] == '\0')
        return err_set(err, -EPROTO, "registry '%s': skopeo ended with status %d", host, status);
    /* Long names stand in front; the end of the text says what happened. */
    said = strlen(why) > 180 ? why + strlen(why) - 180 : why;
    return err_set(err, -EPROTO, "registry '%s': %s%s", host, said == why ? "" : "...", said);
}

int fetch_image(const struct fetch *f, const char *scratch, struct err *err)
{
    _cleanup_(strv_freep) char **argv = command(f, scratch);
    _cleanup_free_ char *tmpdir = xasprintf("TMPDIR=%s", scratch);
    _cleanup_free_ char *layout = xasprintf("%s/layout", scratch);
    _cleanup_close_ int messages = open(scratch, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const char *const env[] = {
        ("PATH=" PROC_PATH), "LC_ALL=C.UTF-8", "HOME=/nonexistent", tmpdir, NULL};
    struct proc p = {.argv = (const char *const *)argv, .env = env};
    int status = 0, r;
    pid_t pid;

    if (messages < 0)
        return err_sys(err, -errno, "cannot make a file in '%s'", scratch);
    r = proc_spawn(&p, 0, messages, false, &pid, err);
    if (r < 0)
        return err_prefix(err, "skopeo");
    r = wait_for(f, pid, layout, &status, err);
    if (r < 0)
        return err_prefix(err, "registry '%s'", f->ref->host);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return tell_failure(f, messages, status, err);
}
