#include "agent/ct/accounts.h"
#include "unit.h"

static void check(size_t file, const char *before, const char *after)
{
    char *text = accounts_edit(&account_files[file], before, strlen(before), "/bin/bash");

    assert_string_equal(text, after);
    free(text);
}

TEST(work_is_added_to_an_image_without_it)
{
    check(0, "root:x:0:0:root:/root:/bin/sh\n",
        "root:x:0:0:root:/root:/bin/sh\nwork:x:1000:1000::/home/work:/bin/bash\n");
    check(1, "root:x:0:\n", "root:x:0:\nwork:x:1000:\n");
    check(2, "root:*:1::::::\n", "root:*:1::::::\nwork:*:19000:0:99999:7:::\n");
}

TEST(an_images_own_work_is_replaced_whatever_its_uid)
{
    check(0, "work:x:0:0::/:/bin/sh\na:x:1:1::/:/bin/sh\n",
        "a:x:1:1::/:/bin/sh\nwork:x:1000:1000::/home/work:/bin/bash\n");
    check(2, "work::1::::::\n", "work:*:19000:0:99999:7:::\n");
}

TEST(an_images_own_uid_1000_is_replaced_however_it_is_written)
{
    check(0,
        "u:x:1000:5::/:/bin/sh\nv:x:01000:5::/:/bin/sh\nw:x:+1000:5::/:/bin/sh\n"
        "k:x:10000:1000::/:/bin/sh\nl:x:100:5::/:/bin/sh\n",
        "k:x:10000:1000::/:/bin/sh\nl:x:100:5::/:/bin/sh\n"
        "work:x:1000:1000::/home/work:/bin/bash\n");
    check(1, "u:x:1000:a,b\n", "work:x:1000:\n");
}

TEST(a_name_that_only_begins_with_work_stays)
{
    check(0, "worker:x:7:7::/:/bin/sh\n",
        "worker:x:7:7::/:/bin/sh\nwork:x:1000:1000::/home/work:/bin/bash\n");
}

TEST(lines_that_are_none_are_left_out)
{
    static const char text[] =
        "garbage\n\nroot:x:0:0:root:/root:/bin/sh\nz\0:x:1:\nlast:x:2:2::/:/";
    char *out = accounts_edit(&account_files[0], text, sizeof(text) - 1, "/bin/sh");

    assert_string_equal(out,
        "root:x:0:0:root:/root:/bin/sh\nlast:x:2:2::/:/\n"
        "work:x:1000:1000::/home/work:/bin/sh\n");
    free(out);
}

TEST(an_empty_file_has_work_only)
{
    check(0, "", "work:x:1000:1000::/home/work:/bin/bash\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_added_to_an_image_without_it),
        cmocka_unit_test(an_images_own_work_is_replaced_whatever_its_uid),
        cmocka_unit_test(an_images_own_uid_1000_is_replaced_however_it_is_written),
        cmocka_unit_test(a_name_that_only_begins_with_work_stays),
        cmocka_unit_test(lines_that_are_none_are_left_out),
        cmocka_unit_test(an_empty_file_has_work_only),
    };

    return RUN_TESTS(tests);
}
