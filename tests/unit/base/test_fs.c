#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"
#include "unit.h"

static char dir[UNIT_DIR_MAX];

static int enter_dir(void **state UNUSED)
{
    unit_dir_init(dir);
    return chdir(dir);
}

static int leave_dir(void **state UNUSED)
{
    int r = chdir("/");

    unit_dir_done(dir);
    return r;
}

TEST(a_file_is_read_whole)
{
    struct err err = ERR_INIT;
    char *text = NULL;
    size_t len = 77;

    assert_ok(fs_write("f", "a\0b", 3, 0600, &err), &err);
    assert_ok(fs_read("f", 3, &text, &len, &err), &err);
    assert_int_equal(len, 3);
    assert_memory_equal(text, "a\0b", 4);
    free(text);

    assert_ok(fs_write("f", "", 0, 0600, &err), &err);
    assert_ok(fs_read("f", 0, &text, NULL, &err), &err);
    assert_string_equal(text, "");
    free(text);
}

TEST(a_file_of_the_kernel_without_a_size_is_read)
{
    struct err err = ERR_INIT;
    char *text = NULL;

    assert_ok(fs_read("/proc/self/status", 65536, &text, NULL, &err), &err);
    assert_true(str_starts(text, "Name:"));
    free(text);
}

TEST(a_file_over_the_bound_is_not_read)
{
    char *text = NULL;
    struct err err;

    unit_write("f", "abcd");
    assert_fails(fs_read("f", 3, &text, NULL, &err), &err, -EFBIG, "'f' is larger than 3 bytes");
    assert_int_equal(fs_read("/proc/self/status", 10, &text, NULL, NULL), -EFBIG);
    assert_null(text);
}

TEST(only_a_regular_file_is_read)
{
    char *text = NULL;
    struct err err;

    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_fails(
        fs_read("fifo", 3, &text, NULL, &err), &err, -EINVAL, "'fifo' is not a regular file");
    assert_int_equal(fs_read("/dev/zero", 3, &text, NULL, NULL), -EINVAL);
    assert_int_equal(fs_read(".", 3, &text, NULL, NULL), -EINVAL);
    assert_fails(fs_read("none", 3, &text, NULL, &err), &err, -ENOENT,
        "cannot open 'none': No such file or directory");
}

static void check_write(int (*write_fn)(const char *, const void *, size_t, mode_t, struct err *))
{
    _cleanup_free_ char *text = NULL;
    struct err err = ERR_INIT;
    struct stat st;

    unit_write("f", "old text that is longer");
    assert_int_equal(link("f", "other"), 0);
    assert_ok(write_fn("f", "new", 3, 0640, &err), &err);
    text = unit_read("f");
    assert_string_equal(text, "new");
    assert_int_equal(stat("f", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(st.st_nlink, 1); /* another file: nobody sees half of it */
    unlink("other");
}

TEST(writing_replaces_the_file)
{
    check_write(fs_write_atomic);
    check_write(fs_write);
}

TEST(a_write_that_fails_leaves_nothing_behind)
{
    struct err err;

    assert_int_equal(mkdir("sub", 0755), 0);
    assert_int_equal(mkdir("sub/taken", 0755), 0);
    assert_fails(fs_write("sub/taken", "x", 1, 0600, &err), &err, -EISDIR,
        "cannot write 'sub/taken': Is a directory");
    assert_int_equal(rmdir("sub/taken"), 0);
    assert_int_equal(rmdir("sub"), 0); /* so it is empty */
    assert_fails(fs_write_atomic("none/f", "x", 1, 0600, &err), &err, -ENOENT,
        "cannot create a file beside 'none/f': No such file or directory");
}

TEST(writing_an_existing_file_makes_none)
{
    _cleanup_free_ char *text = NULL;
    struct err err = ERR_INIT;
    struct stat before, after;

    assert_fails(fs_write_existing("none", "x", &err), &err, -ENOENT,
        "cannot open 'none': No such file or directory");
    assert_false(fs_exists("none"));
    unit_write("f", "longer before");
    stat("f", &before);
    assert_ok(fs_write_existing("f", "max", &err), &err);
    stat("f", &after);
    text = unit_read("f");
    assert_string_equal(text, "max");
    assert_int_equal(before.st_ino, after.st_ino);
    assert_fails(fs_write_existing("/dev/full", "x", &err), &err, -ENOSPC,
        "cannot write '/dev/full': No space left on device");
}

TEST(folders_are_made_with_those_above)
{
    struct err err = ERR_INIT;
    struct stat st;

    assert_ok(fs_mkdir_p("a/b//c/", 0700, &err), &err);
    assert_int_equal(stat("a/b/c", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(chmod("a", 0755), 0);
    assert_ok(fs_mkdir_p("a/b/c/d", 0700, &err), &err);
    assert_int_equal(stat("a", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_ok(fs_mkdir_p("/", 0700, &err), &err);
    assert_ok(fs_mkdir_p("/tmp", 0700, &err), &err);
}

TEST(a_folder_cannot_be_made_below_a_file)
{
    struct err err;

    unit_write("file", "x");
    assert_fails(fs_mkdir_p("file/b", 0700, &err), &err, -ENOTDIR,
        "cannot make folder 'file': Not a directory");
}

TEST(a_dangling_link_exists)
{
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    assert_true(fs_exists("dangling"));
    assert_false(fs_exists("nowhere"));
}

TEST(removing_what_is_not_there_is_no_error)
{
    struct err err = ERR_INIT;

    assert_ok(fs_remove_tree("none", &err), &err);
    assert_ok(fs_remove_tree("none/below", &err), &err);
}

TEST(a_tree_is_removed_with_everything_in_it)
{
    struct err err = ERR_INIT;
    char path[64];

    assert_ok(fs_mkdir_p("t/a/b/c", 0755, &err), &err);
    assert_ok(fs_mkdir_p("t/a/empty", 0755, &err), &err);
    for (int i = 0; i < 300; i++) {
        snprintf(path, sizeof(path), "t/a/b/file-%d", i);
        unit_write(path, "x");
        snprintf(path, sizeof(path), "t/dir-%d/sub", i);
        assert_ok(fs_mkdir_p(path, 0755, &err), &err);
    }
    assert_int_equal(mkfifo("t/a/fifo", 0600), 0);
    assert_int_equal(mkdir("t/..dots", 0700), 0);
    assert_ok(fs_remove_tree("t/", &err), &err);
    assert_false(fs_exists("t"));
}

TEST(links_are_removed_and_not_followed)
{
    struct err err = ERR_INIT;

    assert_ok(fs_mkdir_p("precious/sub", 0755, &err), &err);
    assert_ok(fs_mkdir_p("t", 0755, &err), &err);
    assert_int_equal(symlink("../precious", "t/link"), 0);
    assert_int_equal(symlink("precious", "link"), 0);
    assert_ok(fs_remove_tree("t", &err), &err);
    assert_ok(fs_remove_tree("link", &err), &err);
    assert_false(fs_exists("link"));
    assert_true(fs_exists("precious/sub"));
}

TEST(a_single_file_is_removed_too)
{
    struct err err = ERR_INIT;

    unit_write("file", "x");
    assert_ok(fs_remove_tree("file", &err), &err);
    assert_false(fs_exists("file"));
    unit_write("file", "x");
    assert_fails(fs_remove_tree("file/below", &err), &err, -ENOTDIR,
        "cannot open the folder of 'file/below': Not a directory");
}

TEST(some_paths_are_never_removed)
{
    static const char *const bad[] = {"", "/", "//", ".", "..", "a/.", "a/..", "/..", "../"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(fs_remove_tree(bad[i], NULL), -EINVAL);
}

/* Deeper than a path can say and than descriptors there are. */
TEST(a_very_deep_tree_is_removed_with_few_descriptors)
{
    struct rlimit old, few;
    struct err err = ERR_INIT;
    int fd = openat(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY);

    for (int i = 0; i < 3000; i++) {
        int next;

        assert_int_equal(mkdirat(fd, "deep", 0755), 0);
        next = openat(fd, "deep", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = next;
    }
    close(fd);
    getrlimit(RLIMIT_NOFILE, &old);
    few = old;
    few.rlim_cur = 32;
    setrlimit(RLIMIT_NOFILE, &few);
    assert_ok(fs_remove_tree("deep", &err), &err);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_false(fs_exists("deep"));
}

/* In a child with its own mount namespace; exit codes: 0 good, 77 not permitted, others the step.
 */
static int mount_in_the_way(void)
{
    struct err err = ERR_INIT;

    if (unshare(CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0)) < 0)
        return 77;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 77;
    if (fs_mkdir_p("t/a/mnt", 0755, &err) < 0)
        return 1;
    if (mount("precious", "t/a/mnt", NULL, MS_BIND, NULL) < 0)
        return 77;
    if (fs_remove_tree("t", &err) != -EBUSY ||
        !str_eq(err.text, "cannot remove 't': 'mnt' is a mount"))
        return 2;
    if (!fs_exists("precious/keep"))
        return 3;
    if (fs_remove_tree("t/a/mnt", &err) != -EBUSY || !fs_exists("precious/keep"))
        return 4;
    unit_write("t/file", "");
    if (mount("precious/keep", "t/file", NULL, MS_BIND, NULL) < 0)
        return 5;
    if (fs_remove_tree("t/file", &err) != -EBUSY)
        return 6;
    if (umount2("t/file", 0) < 0 || umount2("t/a/mnt", 0) < 0)
        return 7;
    return fs_remove_tree("t", &err) < 0 ? 8 : 0;
}

TEST(a_mount_stands_in_the_way_and_is_not_touched)
{
    struct err err = ERR_INIT;
    int status = 0;
    pid_t pid;

    assert_ok(fs_mkdir_p("precious", 0755, &err), &err);
    unit_write("precious/keep", "x");
    pid = fork();
    if (pid == 0)
        _exit(mount_in_the_way());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_true(fs_exists("precious/keep"));
    if (WEXITSTATUS(status) == 77) {
        (void)fs_remove_tree("t", NULL);
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static atomic_bool stop;

/* The owner of the tree: swaps a folder with a link to what is not his, and moves folders. */
static void *hostile_owner(void *arg UNUSED)
{
    while (!atomic_load(&stop)) {
        (void)!rename("t/x", "t/away");
        (void)!symlink("../precious", "t/x");
        unlink("t/x");
        (void)!rename("t/away", "t/x");
        (void)!rename("t/x/y", "t/y");
        (void)!rename("t/y", "t/x/y");
    }
    return NULL;
}

TEST(a_hostile_owner_cannot_lead_the_removal_outside)
{
    struct err err = ERR_INIT;
    pthread_t thread;

    assert_ok(fs_mkdir_p("precious/y/z", 0755, &err), &err);
    unit_write("precious/y/keep", "x");
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, hostile_owner, NULL), 0);
    for (uint64_t end = clock_mono_usec() + USEC_PER_SEC; clock_mono_usec() < end;) {
        (void)fs_mkdir_p("t/x/y/z", 0755, NULL);
        (void)fs_remove_tree("t", NULL); /* may fail; must not go wrong */
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_true(fs_exists("precious/y/keep"));
    assert_true(fs_exists("precious/y/z"));
    assert_ok(fs_remove_tree("t", &err), &err);
}

TEST(a_path_beneath_stays_beneath)
{
    struct err err = ERR_INIT;
    int root, fd;

    assert_ok(fs_mkdir_p("root/etc", 0755, &err), &err);
    unit_write("root/etc/passwd", "inside");
    unit_write("outside", "x");
    assert_int_equal(symlink("../outside", "root/out"), 0);
    assert_int_equal(symlink("/etc/passwd", "root/abs"), 0);
    assert_int_equal(symlink("loop", "root/loop"), 0);
    assert_int_equal(symlink("etc/passwd", "root/in"), 0);
    root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);

    fd = fs_open_beneath(root, "in", O_RDONLY, 0, false);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    assert_int_equal(fs_open_beneath(root, "out", O_RDONLY, 0, false), -EXDEV);
    assert_int_equal(fs_open_beneath(root, "abs", O_RDONLY, 0, false), -EXDEV);
    assert_int_equal(fs_open_beneath(root, "../outside", O_RDONLY, 0, false), -EXDEV);
    assert_int_equal(fs_open_beneath(root, "/etc/passwd", O_RDONLY, 0, false), -EXDEV);
    assert_int_equal(fs_open_beneath(root, "loop", O_RDONLY, 0, false), -ELOOP);
    assert_int_equal(fs_open_beneath(root, "none", O_RDONLY, 0, false), -ENOENT);
    close(root);
}

TEST(links_in_a_root_are_followed_inside_it)
{
    struct err err = ERR_INIT;
    char text[8] = "";
    int root, fd;

    assert_ok(fs_mkdir_p("root2/etc", 0755, &err), &err);
    unit_write("root2/etc/passwd", "inside");
    assert_int_equal(symlink("/etc/passwd", "root2/abs"), 0);
    root = open("root2", O_PATH | O_DIRECTORY | O_CLOEXEC);
    fd = fs_open_beneath(root, "abs", O_RDONLY, 0, true);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof(text)), 6);
    assert_memory_equal(text, "inside", 6);
    close(fd);
    fd = fs_open_beneath(root, "../../etc/new", O_WRONLY | O_CREAT | O_EXCL, 0600, true);
    assert_true(fd >= 0);
    close(fd);
    assert_true(fs_exists("root2/etc/new"));
    close(root);
}

TEST(the_parent_of_any_path_can_be_synced)
{
    assert_int_equal(fs_sync_parent("file"), 0);
    assert_int_equal(fs_sync_parent("/file"), 0);
    assert_int_equal(fs_sync_parent("none/file"), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole),
        cmocka_unit_test(a_file_of_the_kernel_without_a_size_is_read),
        cmocka_unit_test(a_file_over_the_bound_is_not_read),
        cmocka_unit_test(only_a_regular_file_is_read),
        cmocka_unit_test(writing_replaces_the_file),
        cmocka_unit_test(a_write_that_fails_leaves_nothing_behind),
        cmocka_unit_test(writing_an_existing_file_makes_none),
        cmocka_unit_test(folders_are_made_with_those_above),
        cmocka_unit_test(a_folder_cannot_be_made_below_a_file),
        cmocka_unit_test(a_dangling_link_exists),
        cmocka_unit_test(removing_what_is_not_there_is_no_error),
        cmocka_unit_test(a_tree_is_removed_with_everything_in_it),
        cmocka_unit_test(links_are_removed_and_not_followed),
        cmocka_unit_test(a_single_file_is_removed_too),
        cmocka_unit_test(some_paths_are_never_removed),
        cmocka_unit_test(a_very_deep_tree_is_removed_with_few_descriptors),
        cmocka_unit_test(a_mount_stands_in_the_way_and_is_not_touched),
        cmocka_unit_test(a_hostile_owner_cannot_lead_the_removal_outside),
        cmocka_unit_test(a_path_beneath_stays_beneath),
        cmocka_unit_test(links_in_a_root_are_followed_inside_it),
        cmocka_unit_test(the_parent_of_any_path_can_be_synced),
    };

    return cmocka_run_group_tests(tests, enter_dir, leave_dir);
}
