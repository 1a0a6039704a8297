#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/proc.h"
#include "base/str.h"
#include "unit.h"

#define SH(script) ((const char *const[]){"sh", "-c", (script), NULL})

/* Run a script that must succeed; its output, heap. */
static char *output_of(struct proc p, const char *script)
{
    struct buf out = BUF_INIT(65536);
    struct err err = ERR_INIT;

    p.argv = SH(script);
    p.out = &out;
    assert_ok(proc_run(&p, NULL, &err), &err);
    return buf_take(&out);
}

static void assert_output(struct proc p, const char *script, const char *want)
{
    _cleanup_free_ char *text = output_of(p, script);

    assert_string_equal(text, want);
}

TEST(a_program_is_found_and_its_output_read)
{
    struct buf out = BUF_INIT(100), err_out = BUF_INIT(100);
    struct proc p = {.argv = SH("echo out; echo err >&2"), .out = &out, .err_out = &err_out};
    struct err err = ERR_INIT;
    int status = 77;

    assert_ok(proc_run(&p, &status, &err), &err);
    assert_int_equal(status, 0);
    assert_string_equal(out.data, "out\n");
    assert_string_equal(err_out.data, "err\n");
    buf_done(&out);
    buf_done(&err_out);
}

TEST(a_failed_program_is_told_with_its_last_words)
{
    struct proc p = {.argv = SH("echo first >&2; echo 'no such thing' >&2; echo >&2; exit 3")};
    int status = 0;
    struct err err;

    assert_fails(proc_run(&p, &status, &err), &err, -EPROTO, "'sh' exited with 3: no such thing");
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    p.argv = SH("exit 1");
    assert_fails(proc_run(&p, NULL, &err), &err, -EPROTO, "'sh' exited with 1");
    p.argv = SH("printf 'bad \\033[0m' >&2; exit 1");
    assert_fails(proc_run(&p, NULL, &err), &err, -EPROTO, "'sh' exited with 1: bad \\x1b[0m");
}

TEST(the_last_line_survives_much_output)
{
    struct buf err_out = BUF_INIT(10);
    struct proc p = {.argv = SH("seq 100000 >&2; exit 1"), .err_out = &err_out};
    struct err err;

    assert_fails(proc_run(&p, NULL, &err), &err, -EPROTO, "'sh' exited with 1: 100000");
    assert_string_equal(err_out.data, "1\n2\n3\n4\n5\n");
    buf_done(&err_out);
}

TEST(a_killed_program_is_told_by_its_signal)
{
    struct proc p = {.argv = SH("kill -TERM $$")};
    int status = 0;
    struct err err;

    assert_fails(proc_run(&p, &status, &err), &err, -EPROTO, "'sh' was killed by SIGTERM");
    assert_true(WIFSIGNALED(status));
}

TEST(a_program_that_is_not_there_cannot_start)
{
    struct proc p = {.argv = (const char *const[]){"muster-no-such-thing", NULL}};
    struct err err;

    assert_fails(proc_run(&p, NULL, &err), &err, -ENOENT,
        "'muster-no-such-thing' is not installed (looked in " PROC_PATH ")");
    p.argv = (const char *const[]){"/nonexistent/x", NULL};
    assert_fails(proc_run(&p, NULL, &err), &err, -ENOENT,
        "cannot start '/nonexistent/x': execve: No such file or directory");
    p.argv = (const char *const[]){"/etc/passwd", NULL};
    assert_fails(proc_run(&p, NULL, &err), &err, -EACCES,
        "cannot start '/etc/passwd': execve: Permission denied");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
    assert_int_equal(errno, ECHILD);
}

TEST(output_over_the_bound_is_dropped)
{
    struct buf out = BUF_INIT(10);
    struct proc p = {.argv = SH("seq 100000"), .out = &out};
    struct err err = ERR_INIT;

    assert_ok(proc_run(&p, NULL, &err), &err);
    assert_int_equal(out.len, 10);
    assert_string_equal(out.data, "1\n2\n3\n4\n5\n");
    buf_done(&out);
}

TEST(much_output_arrives_whole)
{
    struct buf out = BUF_INIT(1024 * 1024);
    struct proc p = {.argv = SH("seq 100000; sleep 0.1; echo end"), .out = &out};
    struct err err = ERR_INIT;

    assert_ok(proc_run(&p, NULL, &err), &err);
    assert_int_equal(out.len, 588895 + 4);
    assert_true(str_ends(out.data, "100000\nend\n"));
    buf_done(&out);
}

TEST(the_environment_and_the_folder_are_fixed)
{
    setenv("MUSTER_SECRET", "x", 1);
    assert_output((struct proc){0}, "env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= | sort; pwd",
        "HOME=/nonexistent\nLC_ALL=C.UTF-8\nPATH=" PROC_PATH "\n/\n");
    assert_output((struct proc){.env = (const char *const[]){"A=b", NULL}},
        "echo $A; echo ${HOME-none}; echo ${MUSTER_SECRET-none}", "b\nnone\nnone\n");
}

TEST(no_descriptor_is_inherited_unless_named)
{
    int fds[2], leak = dup(1), high = fcntl(1, F_DUPFD, 900);

    assert_true(leak > 2 && high >= 900);
    assert_output((struct proc){0}, "ls /proc/$$/fd; :", "0\n1\n2\n");
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "hello", 5), 5);
    close(fds[1]);
    assert_output((struct proc){.keep_fd = fds[0]}, "ls /proc/$$/fd; cat <&3", "0\n1\n2\n3\nhello");
    close(fds[0]);
    close(leak);
    close(high);
}

TEST(the_input_is_empty_or_the_one_given)
{
    int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);

    assert_output((struct proc){0}, "cat", "");
    assert_output((struct proc){.in_fd = fd}, "cat", "test_base_proc\n");
    close(fd);
}

TEST(signals_start_with_their_defaults)
{
    sigset_t set, old;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    signal(SIGPIPE, SIG_IGN);
    assert_output((struct proc){0}, "grep -E '^Sig(Blk|Ign):' /proc/self/status",
        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    pthread_sigmask(SIG_SETMASK, &old, &set);
    assert_true(sigismember(&set, SIGUSR1)); /* our own mask is as it was */
    signal(SIGPIPE, SIG_DFL);
}

TEST(the_deadline_kills_the_whole_group)
{
    struct buf out = BUF_INIT(100);
    struct proc p = {
        .argv = SH("sleep 60 & echo $!; wait"),
        .out = &out,
        .timeout_usec = 300 * USEC_PER_MSEC,
    };
    uint64_t start = clock_mono_usec();
    uint64_t pid = 0, ticks;
    struct err err;

    assert_fails(proc_run(&p, NULL, &err), &err, -ETIMEDOUT, "'sh' did not end within 300ms");
    assert_true(clock_mono_usec() - start < 10 * USEC_PER_SEC);
    buf_consume(&out, 0);
    assert_true(out.len > 1);
    out.data[out.len - 1] = '\0';
    assert_int_equal(str_to_u64(out.data, INT32_MAX, &pid), 0);
    /* Its new parent may take a moment to reap it: dead is enough. */
    for (int i = 0; i < 100 && proc_start_time((pid_t)pid, &ticks) == 0; i++) {
        char path[64];
        _cleanup_free_ char *status = NULL;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        if (fs_read(path, 65536, &status, NULL, NULL) < 0 || strstr(status, "State:\tZ"))
            break;
        assert_true(i < 99);
        usleep(20000);
    }
    buf_done(&out);
}

TEST(a_daemon_left_behind_does_not_hold_us_up)
{
    uint64_t start = clock_mono_usec();

    assert_output((struct proc){0}, "sleep 20 & echo started", "started\n");
    assert_true(clock_mono_usec() - start < 10 * USEC_PER_SEC);
}

TEST(a_program_may_run_as_another_user)
{
    if (geteuid() != 0)
        skip();
    assert_output(
        (struct proc){.uid = 12345, .gid = 54321}, "id -u; id -g; id -G", "12345\n54321\n54321\n");
    assert_output((struct proc){.uid = 12345, .gid = 54321}, "grep ^CapEff /proc/self/status",
        "CapEff:\t0000000000000000\n");
}

static int open_namespace(pid_t pid, const char *kind, char name[64])
{
    char path[64];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
    n = readlink(path, name, 63);
    assert_true(n > 0);
    name[n] = '\0';
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* A process that has entered namespaces of its own and waits; -1 when that is not permitted. */
static pid_t live_elsewhere(void)
{
    int fds[2];
    pid_t pid;
    char c = 0;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        c = unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 ? 'n' : 'y';
        (void)!write(fds[1], &c, 1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(fds[0], &c, 1), 1);
    close(fds[0]);
    close(fds[1]);
    if (c == 'y')
        return pid;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return -1;
}

TEST(a_program_may_run_in_other_namespaces)
{
    _cleanup_close_ int net = -1, mnt = -1;
    _cleanup_free_ char *want = NULL;
    char net_name[64], mnt_name[64];
    pid_t pid = live_elsewhere();

    if (pid < 0)
        skip();
    net = open_namespace(pid, "net", net_name);
    mnt = open_namespace(pid, "mnt", mnt_name);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    want = xasprintf("%s\n%s\n/\n", net_name, mnt_name);
    assert_output((struct proc){.netns_fd = net, .mntns_fd = mnt},
        "readlink /proc/self/ns/net /proc/self/ns/mnt; pwd", want);
}

TEST(a_wrong_namespace_is_told_by_its_step)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct proc p = {.argv = SH("true"), .netns_fd = fd};
    struct err err;

    assert_fails(proc_run(&p, NULL, &err), &err, -EINVAL,
        "cannot start 'sh': entering the network namespace: Invalid argument");
    close(fd);
}

/* A process that spawns a sleeper, tells its pid and ends; returns the sleeper's pid. */
static pid_t spawn_and_end(bool keep_running)
{
    int fds[2];
    pid_t helper, sleeper = -1;

    assert_int_equal(pipe(fds), 0);
    helper = fork();
    if (helper == 0) {
        struct proc p = {.argv = (const char *const[]){"sleep", "60", NULL}};
        struct err err = ERR_INIT;

        (void)proc_spawn(&p, 0, 0, keep_running, &sleeper, &err);
        (void)!write(fds[1], &sleeper, sizeof(sleeper));
        _exit(0);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &sleeper, sizeof(sleeper)), sizeof(sleeper));
    close(fds[0]);
    waitpid(helper, NULL, 0);
    assert_true(sleeper > 0);
    return sleeper;
}

static bool is_running(pid_t pid)
{
    char path[64];
    _cleanup_free_ char *status = NULL;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    return fs_read(path, 65536, &status, NULL, NULL) == 0 && !strstr(status, "State:\tZ") &&
        !strstr(status, "State:\tX");
}

TEST(a_child_dies_with_its_parent_unless_told_not_to)
{
    pid_t dies = spawn_and_end(false);
    pid_t stays = spawn_and_end(true);

    for (int i = 0; i < 100 && is_running(dies); i++)
        usleep(20000);
    assert_false(is_running(dies));
    assert_true(is_running(stays));
    assert_int_equal(getpgid(stays), stays);
    kill(stays, SIGKILL);
}

TEST(a_spawned_program_writes_to_the_descriptors_given)
{
    struct proc p = {.argv = SH("echo out; echo err >&2")};
    struct err err = ERR_INIT;
    int out[2], err_out[2], status = 0;
    char text[16] = "";
    pid_t pid = 0;

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err_out, O_CLOEXEC), 0);
    assert_ok(proc_spawn(&p, out[1], err_out[1], false, &pid, &err), &err);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(read(out[0], text, sizeof(text)), 4);
    assert_memory_equal(text, "out\n", 4);
    assert_int_equal(read(err_out[0], text, sizeof(text)), 4);
    assert_memory_equal(text, "err\n", 4);
    for (int i = 0; i < 2; i++) {
        close(out[i]);
        close(err_out[i]);
    }
}

static void *run_many(void *arg)
{
    for (int i = 0; i < 25; i++) {
        struct buf out = BUF_INIT(100);
        struct proc p = {.argv = SH("echo $PPID"), .out = &out};

        if (proc_run(&p, NULL, NULL) < 0 || out.len < 2)
            *(bool *)arg = false;
        buf_done(&out);
    }
    return NULL;
}

TEST(threads_run_programs_side_by_side)
{
    pthread_t threads[4];
    bool good[4];

    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        good[i] = true;
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &good[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        pthread_join(threads[i], NULL);
        assert_true(good[i]);
    }
}

TEST(another_child_is_left_to_its_own_waiter)
{
    pid_t other = fork();
    int status = 0;

    if (other == 0)
        _exit(7);
    assert_output((struct proc){0}, "sleep 0.1; echo x", "x\n");
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(WEXITSTATUS(status), 7);
}

TEST(a_start_time_tells_processes_apart)
{
    uint64_t first = 0, again = 0, none = 77;

    assert_int_equal(proc_start_time(getpid(), &first), 0);
    assert_true(first > 0);
    prctl(PR_SET_NAME, "x) S 1 (y");
    assert_int_equal(proc_start_time(getpid(), &again), 0);
    prctl(PR_SET_NAME, "test_base_proc");
    assert_int_equal(first, again);
    assert_int_equal(proc_start_time(INT32_MAX, &none), -ESRCH);
    assert_int_equal(none, 77);
}

TEST(the_boot_has_an_id)
{
    struct err err = ERR_INIT;
    char id[37];

    assert_ok(proc_boot_id(id, &err), &err);
    assert_true(uuid_is_valid(id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_is_found_and_its_output_read),
        cmocka_unit_test(a_failed_program_is_told_with_its_last_words),
        cmocka_unit_test(the_last_line_survives_much_output),
        cmocka_unit_test(a_killed_program_is_told_by_its_signal),
        cmocka_unit_test(a_program_that_is_not_there_cannot_start),
        cmocka_unit_test(output_over_the_bound_is_dropped),
        cmocka_unit_test(much_output_arrives_whole),
        cmocka_unit_test(the_environment_and_the_folder_are_fixed),
        cmocka_unit_test(no_descriptor_is_inherited_unless_named),
        cmocka_unit_test(the_input_is_empty_or_the_one_given),
        cmocka_unit_test(signals_start_with_their_defaults),
        cmocka_unit_test(the_deadline_kills_the_whole_group),
        cmocka_unit_test(a_daemon_left_behind_does_not_hold_us_up),
        cmocka_unit_test(a_program_may_run_as_another_user),
        cmocka_unit_test(a_program_may_run_in_other_namespaces),
        cmocka_unit_test(a_wrong_namespace_is_told_by_its_step),
        cmocka_unit_test(a_child_dies_with_its_parent_unless_told_not_to),
        cmocka_unit_test(a_spawned_program_writes_to_the_descriptors_given),
        cmocka_unit_test(threads_run_programs_side_by_side),
        cmocka_unit_test(another_child_is_left_to_its_own_waiter),
        cmocka_unit_test(a_start_time_tells_processes_apart),
        cmocka_unit_test(the_boot_has_an_id),
    };

    return RUN_TESTS(tests);
}
