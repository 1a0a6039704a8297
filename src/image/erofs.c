/* Running mkfs.erofs. Its output goes nowhere but into an error's text. */
#include "image/erofs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/proc.h"
#include "base/str.h"

#define PACK_TIMEOUT (6 * 3600 * USEC_PER_SEC)
#define COMPRESS "-zlz4"
/* Up to 64 KiB are compressed as one: 9 % smaller than with a block each, in the same time. */
#define CLUSTER "-C65536"

int erofs_probe(const char *program, struct erofs_tool *ret, struct err *err)
{
    const char *const argv[] = {program, "--help", NULL};
    struct buf out = BUF_INIT(65536), err_out = BUF_INIT(65536);
    struct proc p = {.argv = argv, .out = &out, .err_out = &err_out};
    struct err run_err = ERR_INIT;
    bool ran, takes_tar;

    /* Some versions end with 1 after their help: what they wrote counts. */
    (void)proc_run(&p, NULL, &run_err);
    ran = (out.data && strstr(out.data, "erofs")) ||
        (err_out.data && strstr(err_out.data, "erofs"));
    takes_tar = (out.data && strstr(out.data, "--tar")) ||
        (err_out.data && strstr(err_out.data, "--tar"));
    buf_done(&out);
    buf_done(&err_out);
    if (!ran)
        return err_set(err, run_err.code < 0 ? run_err.code : -ENOENT,
            "mkfs.erofs does not run (%s); is erofs-utils installed?",
            run_err.code ? run_err.text : "no help text");
    *ret = (struct erofs_tool){.program = program, .takes_tar = takes_tar};
    return 0;
}

int erofs_pack_tree(const struct erofs_tool *t, const char *dir, const char *image, struct err *err)
{
    const char *const argv[] = {t->program, COMPRESS, CLUSTER, "--quiet", image, dir, NULL};
    struct proc p = {.argv = argv, .timeout_usec = PACK_TIMEOUT};

    return proc_run(&p, NULL, err);
}

int erofs_tar_start(const struct erofs_tool *t, const char *scratch, const char *image,
    struct erofs_job *ret, int *ret_fd, struct err *err)
{
    const char *const argv[] = {t->program, COMPRESS, CLUSTER, "--quiet", "--tar=f", image, NULL};
    _cleanup_close_ int in = -1, out = -1, messages = -1;
    _cleanup_free_ char *tmpdir = xasprintf("TMPDIR=%s", scratch);
    /* It keeps the data of the tar in a temporary file until they are packed. */
    const char *const env[] = {"PATH=" PROC_PATH, "LC_ALL=C.UTF-8", tmpdir, NULL};
    struct proc p = {.argv = argv, .env = env};
    int fds[2], r;

    messages = open(scratch, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (messages < 0)
        return err_sys(err, -errno, "cannot make a file in '%s'", scratch);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "cannot make a pipe");
    in = fds[0];
    out = fds[1];
    (void)fcntl(out, F_SETPIPE_SZ, 1024 * 1024);
    p.in_fd = in;
    r = proc_spawn(&p, 0, messages, false, &ret->pid, err);
    if (r < 0)
        return r;
    ret->messages = TAKE_FD(messages);
    *ret_fd = TAKE_FD(out);
    return 0;
}

static int reap(struct erofs_job *j)
{
    int status = -1;

    while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
        ;
    j->pid = 0;
    return status;
}

int erofs_tar_wait(struct erofs_job *j, struct err *err)
{
    _cleanup_close_ int messages = TAKE_FD(j->messages);
    _cleanup_free_ char *shown = NULL;
    char text[512] = "";
    ssize_t n;
    int status = reap(j);

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    n = pread(messages, text, sizeof(text) - 1, 0);
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    shown = str_escape(text, strlen(text), 160);
    return err_set(err, -EPROTO, "mkfs.erofs ended with status %d: %s", status, shown);
}

void erofs_tar_abort(struct erofs_job *j)
{
    if (j->pid <= 0)
        return;
    (void)kill(j->pid, SIGKILL);
    (void)reap(j);
    cleanup_close(&j->messages);
    j->messages = -1;
}
