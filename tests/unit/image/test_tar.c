/* What the tar sink writes is read again by libarchive. */
#include <archive.h>
#include <archive_entry.h>
#include <sys/mman.h>

#include "image/item.h"
#include "unit.h"

static struct archive *read_back(int fd, struct archive_entry **e)
{
    struct archive *a = archive_read_new();

    archive_read_support_format_tar(a);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(archive_read_open_fd(a, fd, 4096), ARCHIVE_OK);
    assert_int_equal(archive_read_next_header(a, e), ARCHIVE_OK);
    return a;
}

static int write_one(const char *path, const struct item *i, const char *data)
{
    int fd = memfd_create("tar", MFD_CLOEXEC);
    struct sink *s = sink_tar_new(dup(fd));
    struct err err = ERR_INIT;

    assert_ok(s->ops->put(s, path, i, &err), &err);
    if (data)
        assert_ok(s->ops->data(s, data, strlen(data), 10, &err), &err);
    assert_ok(s->ops->finish(s, &err), &err);
    sink_freep(&s);
    return fd;
}

TEST(everything_of_a_file_comes_back)
{
    struct item i = {.type = ITEM_FILE,
        .mode = 04755,
        .uid = 4000000000,
        .gid = 7,
        .sec = 1600000000,
        .nsec = 250000000,
        .size = 20};
    struct archive_entry *e;
    struct archive *a;
    char path[301], content[20];
    const void *value;
    const char *name;
    size_t len;
    int fd;

    memset(path, 'p', 300);
    path[300] = '\0';
    item_set_xattr(&i, "user.k", "\0\n=v", 4);
    fd = write_one(path, &i, "data");
    a = read_back(fd, &e);
    assert_string_equal(archive_entry_pathname(e), path);
    assert_int_equal(archive_entry_perm(e), 04755);
    assert_true(archive_entry_uid(e) == 4000000000);
    assert_int_equal(archive_entry_gid(e), 7);
    assert_int_equal(archive_entry_mtime(e), 1600000000);
    assert_int_equal(archive_entry_mtime_nsec(e), 250000000);
    assert_int_equal(archive_entry_xattr_reset(e), 1);
    assert_int_equal(archive_entry_xattr_next(e, &name, &value, &len), ARCHIVE_OK);
    assert_string_equal(name, "user.k");
    assert_int_equal(len, 4);
    assert_memory_equal(value, "\0\n=v", 4);
    assert_int_equal(archive_read_data(a, content, 20), 20);
    assert_memory_equal(content, "\0\0\0\0\0\0\0\0\0\0data\0\0\0\0\0\0", 20);
    assert_int_equal(archive_read_next_header(a, &e), ARCHIVE_EOF);
    archive_read_free(a);
    item_done(&i);
    close(fd);
}

TEST(links_and_whiteouts_come_back)
{
    struct item link = {.type = ITEM_SYMLINK, .target = (char *)"to/there"};
    struct item whiteout = {.type = ITEM_WHITEOUT};
    struct archive_entry *e;
    struct archive *a;
    int fd;

    fd = write_one("l", &link, NULL);
    a = read_back(fd, &e);
    assert_string_equal(archive_entry_symlink(e), "to/there");
    archive_read_free(a);
    close(fd);
    fd = write_one("w", &whiteout, NULL);
    a = read_back(fd, &e);
    assert_int_equal(archive_entry_filetype(e), AE_IFCHR);
    assert_int_equal(archive_entry_rdev(e), 0);
    archive_read_free(a);
    close(fd);
}

TEST(bytes_that_do_not_fit_the_size_are_refused)
{
    struct item i = {.type = ITEM_FILE, .size = 4};
    struct sink *s = sink_tar_new(memfd_create("tar", MFD_CLOEXEC));
    struct err err = ERR_INIT;

    assert_ok(s->ops->put(s, "f", &i, &err), &err);
    assert_ok(s->ops->data(s, "ab", 2, 1, &err), &err);
    assert_fails(
        s->ops->data(s, "cd", 2, 3, &err), &err, -EINVAL, "a file's bytes are out of order");
    assert_fails(
        s->ops->data(s, "a", 1, 0, &err), &err, -EINVAL, "a file's bytes are out of order");
    sink_freep(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_of_a_file_comes_back),
        cmocka_unit_test(links_and_whiteouts_come_back),
        cmocka_unit_test(bytes_that_do_not_fit_the_size_are_refused),
    };

    return RUN_TESTS(tests);
}
