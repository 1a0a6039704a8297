#include <fcntl.h>
#include <sys/stat.h>

#include "agent/ct/guest.h"
#include "unit.h"

/* DIR/root is the container's root, DIR/host stands for the node. */
static char dir[UNIT_DIR_MAX];
static struct guest guest;

static int setup(void **state UNUSED)
{
    unit_dir_init(dir);
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(mkdir("root", 0755) | mkdir("host", 0755), 0);
    guest = (struct guest){
        .root = open("root", O_PATH | O_DIRECTORY), .owner = getuid(), .work = getuid()};
    return guest.root < 0;
}

static int teardown(void **state UNUSED)
{
    guest_done(&guest);
    assert_int_equal(chdir("/"), 0);
    unit_dir_done(dir);
    return 0;
}

static void link_to_host(const char *at)
{
    char target[128];

    snprintf(target, sizeof(target), "%s/host", dir);
    assert_int_equal(symlink(target, at), 0);
}

static void assert_host_is_empty(void)
{
    assert_int_equal(rmdir("host"), 0);
    assert_int_equal(mkdir("host", 0755), 0);
}

static void make_dir(const char *path)
{
    struct err err = ERR_INIT;
    int fd = guest_dir(&guest, path, &err);

    assert_ok(fd, &err);
    close(fd);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

TEST(folders_are_made_with_their_parents)
{
    make_dir("/a/b//c/");
    assert_true(is_folder("root/a/b/c"));
    make_dir("/a/b/c");
    make_dir("/");
}

TEST(a_link_where_a_folder_of_ours_belongs_is_replaced)
{
    static const char *const ours[] = {"/dev", "/etc", "/proc", "/sys"};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        char at[32], below[32];

        snprintf(at, sizeof(at), "root%s", ours[i]);
        snprintf(below, sizeof(below), "%s/x", ours[i]);
        link_to_host(at);
        make_dir(below);
        assert_true(is_folder(at));
    }
    assert_host_is_empty();
}

TEST(a_parent_that_is_a_link_is_followed_inside_the_root)
{
    assert_int_equal(mkdir("root/var", 0755) | mkdir("root/var/opt", 0755), 0);
    assert_int_equal(symlink("/var/opt", "root/opt"), 0);
    make_dir("/opt/muster");
    assert_true(is_folder("root/var/opt/muster"));
}

TEST(a_parent_that_leads_out_is_replaced)
{
    link_to_host("root/opt");
    make_dir("/opt/muster");
    assert_true(is_folder("root/opt"));
    assert_true(is_folder("root/opt/muster"));
    assert_host_is_empty();
}

TEST(a_relative_link_cannot_climb_out)
{
    assert_int_equal(symlink("../../../../../../../../tmp", "root/home"), 0);
    make_dir("/home/work");
    assert_true(is_folder("root/home/work"));
}

TEST(a_link_in_the_last_place_is_never_followed)
{
    assert_int_equal(mkdir("root/real", 0755), 0);
    assert_int_equal(symlink("/real", "root/data"), 0);
    make_dir("/data");
    assert_true(is_folder("root/data"));
}

TEST(a_path_with_dots_is_refused)
{
    struct err err;

    assert_fails(guest_dir(&guest, "/a/../b", &err), &err, -EINVAL,
        "cannot make folder '/a/../b' in the container: Invalid argument");
}

static void write_file(const char *path, const char *text)
{
    struct err err = ERR_INIT;

    assert_ok(guest_write(&guest, path, text, strlen(text), getuid(), 0640, &err), &err);
}

static void assert_file(const char *path, const char *text)
{
    struct stat st;
    char *have;

    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0640);
    have = unit_read(path);
    assert_string_equal(have, text);
    free(have);
}

TEST(a_file_replaces_a_link_a_fifo_and_a_folder)
{
    assert_int_equal(mkdir("root/etc", 0755), 0);
    unit_write("host/passwd", "host");
    assert_int_equal(symlink("../../host/passwd", "root/etc/a"), 0);
    assert_int_equal(mkfifo("root/etc/b", 0644), 0);
    assert_int_equal(mkdir("root/etc/c", 0755) | mkdir("root/etc/c/deep", 0755), 0);
    unit_write("root/etc/c/deep/f", "x");
    write_file("/etc/a", "A");
    write_file("/etc/b", "B");
    write_file("/etc/c", "C");
    assert_file("root/etc/a", "A");
    assert_file("root/etc/b", "B");
    assert_file("root/etc/c", "C");
    assert_int_equal(rmdir("root/etc/.muster.tmp"), -1);
    assert_int_equal(unlink("host/passwd"), 0);
    assert_host_is_empty();
}

TEST(a_temporary_file_of_the_images_is_no_trap)
{
    assert_int_equal(mkdir("root/etc", 0755), 0);
    link_to_host("root/etc/.muster.tmp");
    write_file("/etc/hosts", "h");
    assert_file("root/etc/hosts", "h");
    assert_int_equal(mkdir("root/etc/.muster.tmp", 0755), 0);
    write_file("/etc/hosts", "i");
    assert_file("root/etc/hosts", "i");
    assert_host_is_empty();
}

TEST(only_a_small_regular_file_is_read)
{
    char *text = NULL;
    size_t len;
    int fd;

    assert_int_equal(mkdir("root/etc", 0755) | mkfifo("root/fifo", 0644), 0);
    unit_write("root/etc/real", "text");
    unit_write("host/secret", "secret");
    assert_int_equal(
        symlink("/etc/real", "root/inside") | symlink("../../host/secret", "root/out"), 0);
    fd = open("root/huge", O_CREAT | O_WRONLY, 0644);
    assert_int_equal(ftruncate(fd, (off_t)10 << 30), 0);
    close(fd);

    assert_int_equal(guest_read(&guest, "/inside", 100, &text, &len), 0);
    assert_string_equal(text, "text");
    free(text);
    text = NULL;
    assert_int_equal(guest_read(&guest, "/out", 100, &text, &len), -ENOENT);
    assert_int_equal(guest_read(&guest, "/fifo", 100, &text, &len), -EINVAL);
    assert_int_equal(guest_read(&guest, "/etc", 100, &text, &len), -EINVAL);
    assert_int_equal(guest_read(&guest, "/huge", 1 << 20, &text, &len), -EFBIG);
    assert_null(text);
}

TEST(a_program_is_looked_for_inside_the_root)
{
    assert_int_equal(mkdir("root/bin", 0755), 0);
    assert_int_equal(symlink("/bin/busybox", "root/bin/sh"), 0);
    assert_false(guest_is_program(&guest, "/bin/sh"));
    unit_write("root/bin/busybox", "#!");
    assert_false(guest_is_program(&guest, "/bin/sh"));
    assert_int_equal(chmod("root/bin/busybox", 0755), 0);
    assert_true(guest_is_program(&guest, "/bin/sh"));
    assert_false(guest_is_program(&guest, "/bin"));
}

TEST(a_mount_point_for_a_file_keeps_a_regular_file)
{
    struct err err = ERR_INIT;
    char *text;

    assert_int_equal(mkdir("root/lib", 0755), 0);
    unit_write("root/lib/a", "kept");
    link_to_host("root/lib/b");
    assert_ok(guest_mount_file(&guest, "/lib/a", &err), &err);
    assert_ok(guest_mount_file(&guest, "/lib/b", &err), &err);
    assert_ok(guest_mount_file(&guest, "/new/c", &err), &err);
    text = unit_read("root/lib/a");
    assert_string_equal(text, "kept");
    free(text);
    text = unit_read("root/lib/b");
    assert_string_equal(text, "");
    free(text);
    assert_host_is_empty();
}

#define GUEST_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GUEST_TEST(folders_are_made_with_their_parents),
        GUEST_TEST(a_link_where_a_folder_of_ours_belongs_is_replaced),
        GUEST_TEST(a_parent_that_is_a_link_is_followed_inside_the_root),
        GUEST_TEST(a_parent_that_leads_out_is_replaced),
        GUEST_TEST(a_relative_link_cannot_climb_out),
        GUEST_TEST(a_link_in_the_last_place_is_never_followed),
        GUEST_TEST(a_path_with_dots_is_refused),
        GUEST_TEST(a_file_replaces_a_link_a_fifo_and_a_folder),
        GUEST_TEST(a_temporary_file_of_the_images_is_no_trap),
        GUEST_TEST(only_a_small_regular_file_is_read),
        GUEST_TEST(a_program_is_looked_for_inside_the_root),
        GUEST_TEST(a_mount_point_for_a_file_keeps_a_regular_file),
    };

    return RUN_TESTS(tests);
}
