#include <sys/stat.h>
#include <unistd.h>

#include "agent/ct/idmap.h"
#include "fixture.h"

TEST(ids_are_mapped_as_the_users_map_says)
{
    const struct user *u = &fixture.user;

    assert_int_equal(idmap_outside(u, 0), 0x10000000);
    assert_int_equal(idmap_outside(u, 999), 0x10000000 + 999);
    assert_int_equal(idmap_outside(u, 1000), 20001);
    assert_int_equal(idmap_outside(u, 1001), 0x10000000 + 1001);
    assert_int_equal(idmap_outside(u, 65535), 0x10000000 + 65535);
    assert_int_equal(idmap_outside(u, 65536), UINT32_MAX);
}

TEST(a_users_namespace_is_made_once)
{
    struct user other = fixture.user;
    struct err err = ERR_INIT;
    struct stat a, b, c;
    int fds[3];

    if (geteuid() != 0)
        skip();
    other.uid = 20002;
    assert_ok(idmap_userns(&fixture.user, &fds[0], &err), &err);
    assert_ok(idmap_userns(&fixture.user, &fds[1], &err), &err);
    assert_ok(idmap_userns(&other, &fds[2], &err), &err);
    assert_int_equal(fstat(fds[0], &a) | fstat(fds[1], &b) | fstat(fds[2], &c), 0);
    assert_int_not_equal(fds[0], fds[1]);
    assert_int_equal(a.st_ino, b.st_ino);
    assert_int_not_equal(a.st_ino, c.st_ino);
    for (size_t i = 0; i < 3; i++)
        close(fds[i]);
}

TEST(more_users_than_the_cache_holds_are_no_trouble)
{
    struct user u = fixture.user;
    struct err err = ERR_INIT;
    int fd;

    if (geteuid() != 0)
        skip();
    for (uint32_t i = 0; i < 70; i++) {
        u.uid = 30000 + i;
        assert_ok(idmap_userns(&u, &fd, &err), &err);
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_mapped_as_the_users_map_says),
        cmocka_unit_test(a_users_namespace_is_made_once),
        cmocka_unit_test(more_users_than_the_cache_holds_are_no_trouble),
    };

    return RUN_TESTS(tests);
}
