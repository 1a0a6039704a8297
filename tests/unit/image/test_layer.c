/* The conversion of a layer with nothing below; what lies below is in tests/system/test_import.py.
 */
#include <archive.h>
#include <archive_entry.h>

#include "base/str.h"
#include "image/layer.h"
#include "recorder.h"
#include "unit.h"

struct entry {
    const char *name, *target;
    unsigned type;
    const char *xattr;
};

#define FILE(n) \
    { \
        n, NULL, AE_IFREG, NULL \
    }
#define DIR(n) \
    { \
        n, NULL, AE_IFDIR, NULL \
    }
#define LINK(n, t) \
    { \
        n, t, AE_IFLNK, NULL \
    }
#define HARD(n, t) \
    { \
        n, t, 0, NULL \
    }
#define DEV(n) \
    { \
        n, NULL, AE_IFCHR, NULL \
    }

static struct piece make_tar(const struct entry *list, size_t count)
{
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    int fd = memfd_create("tar", MFD_CLOEXEC);
    struct stat st;

    archive_write_set_format_pax(a);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    for (size_t i = 0; i < count; i++) {
        archive_entry_clear(e);
        archive_entry_set_pathname(e, list[i].name);
        archive_entry_set_perm(e, 0750);
        archive_entry_set_filetype(e, list[i].type ? list[i].type : AE_IFREG);
        archive_entry_set_size(e, 0);
        if (list[i].type == AE_IFLNK)
            archive_entry_set_symlink(e, list[i].target);
        if (list[i].type == 0)
            archive_entry_set_hardlink(e, list[i].target);
        if (list[i].xattr)
            archive_entry_xattr_add_entry(e, list[i].xattr, "v", 1);
        assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
    }
    archive_entry_free(e);
    archive_write_free(a);
    assert_int_equal(fstat(fd, &st), 0);
    return (struct piece){.fd = fd, .len = (uint64_t)st.st_size};
}

static int convert(const struct entry *list, size_t count, struct recorder *r,
    struct layer_result *ret, struct err *err)
{
    static const struct layer_limits limits = {1 << 20, 20, 8, 100, 50};
    static const struct layer_root root = {.mode = 0700, .uid = 1, .gid = 2};
    _cleanup_(below_freep) struct below *below = below_new("/nonexistent");
    _cleanup_(stream_done) struct stream in = {0};
    struct piece p = make_tar(list, count);
    int code;

    assert_ok(stream_open(&in, &p, 1 << 20, err), err);
    code = layer_convert(&in, below, &root, &limits, &r->sink, NULL, NULL, ret, err);
    piece_done(&p);
    return code;
}

static void converts(const struct entry *list, size_t count, const char *want)
{
    struct layer_result result;
    struct err err = ERR_INIT;
    struct recorder r;

    recorder_init(&r);
    assert_ok(convert(list, count, &r, &result, &err), &err);
    assert_string_equal(r.said.data, want);
    buf_done(&r.said);
}

static void refuses(const struct entry *list, size_t count, int code, const char *want)
{
    struct layer_result result;
    struct recorder r;
    struct err err;

    recorder_init(&r);
    assert_fails(convert(list, count, &r, &result, &err), &err, code, want);
    buf_done(&r.said);
}

#define CONVERTS(want, ...) \
    do { \
        static const struct entry list_[] = {__VA_ARGS__}; \
        converts(list_, ARRAY_LEN(list_), want); \
    } while (0)
#define REFUSES(code, want, ...) \
    do { \
        static const struct entry list_[] = {__VA_ARGS__}; \
        refuses(list_, ARRAY_LEN(list_), code, want); \
    } while (0)

TEST(names_are_cleaned_and_implied_folders_made_once)
{
    CONVERTS("dir 'a' 0755\nfile 'a/b'\nfile 'a/c'\nfile 'x'\ndir '' 0700\nend\n", FILE("./a//b"),
        FILE("/a/c"), FILE("../../x"));
}

TEST(a_whiteout_is_put_at_the_end_and_marks_its_folder)
{
    CONVERTS("dir 'd' 0750\nwhiteout 'd/x'\ndir 'd' 0750 trusted.overlay.origin=\ndir '' 0700\n"
             "end\n",
        DIR("d"), FILE("d/.wh.x"));
}

TEST(a_name_whited_out_and_made_again_is_no_whiteout)
{
    CONVERTS("file 'x'\ndir '' 0700\nend\n", FILE(".wh.x"), FILE("x"));
    CONVERTS("file 'x'\ndir '' 0700\nend\n", FILE("x"), FILE(".wh.x"));
    CONVERTS("dir 'x' 0750\ndir 'x' 0750 trusted.overlay.opaque=y\ndir '' 0700\nend\n", DIR("x"),
        FILE(".wh.x"));
    CONVERTS("dir 'x' 0755\nfile 'x/y'\ndir 'x' 0755 trusted.overlay.opaque=y\ndir '' 0700\nend\n",
        FILE(".wh.x"), FILE("x/y"));
}

TEST(an_opaque_marker_becomes_the_attribute)
{
    CONVERTS("dir 'd' 0755\ndir 'd' 0755 trusted.overlay.opaque=y\ndir '' 0700\nend\n",
        FILE("d/.wh..wh..opq"));
}

TEST(bookkeeping_of_aufs_and_devices_are_left_out)
{
    CONVERTS("dir '' 0700\nend\n", FILE(".wh..wh.aufs"), FILE(".wh..wh.plnk/1"), DEV("null"));
}

TEST(links_of_the_layer_are_followed_inside_the_root)
{
    CONVERTS("symlink 'l' -> '/../d'\ndir 'd' 0755\nfile 'd/x'\ndir '' 0700\nend\n",
        LINK("l", "/../d"), FILE("l/x"));
    REFUSES(-ELOOP, "'a/x': too many symbolic links on the way", LINK("a", "a"), FILE("a/x"));
    REFUSES(
        -ENOTDIR, "'f/x': a part of the path is no folder in this layer", FILE("f"), FILE("f/x"));
}

TEST(a_hard_link_names_the_place_of_its_target)
{
    CONVERTS("symlink 'l' -> 'd'\ndir 'd' 0755\nfile 'd/x'\nhardlink 'h' -> 'd/x'\ndir '' 0700\n"
             "end\n",
        LINK("l", "d"), FILE("l/x"), HARD("h", "l/x"));
    REFUSES(-EINVAL, "'h': a hard link to what is not there", HARD("h", "x"));
    REFUSES(-EINVAL, "'h': a hard link to itself", HARD("h", "./h"));
    REFUSES(-EINVAL, "'h': a hard link to what is not there", DIR("d"), HARD("h", "d"));
}

TEST(a_name_that_comes_again_replaces)
{
    CONVERTS("dir 'd' 0750\nfile 'd/x'\ndrop 'd'\nfile 'd'\ndrop 'd'\ndir 'd' 0750\n"
             "dir 'd' 0750 trusted.overlay.opaque=y\ndir '' 0700\nend\n",
        DIR("d"), FILE("d/x"), FILE("d"), DIR("d"));
}

TEST(overlay_and_host_attributes_are_dropped)
{
    CONVERTS("file 'a' user.k=v\nfile 'b'\nfile 'c'\nfile 'd' security.capability=v\ndir '' 0700\n"
             "end\n",
        {"a", NULL, AE_IFREG, "user.k"}, {"b", NULL, AE_IFREG, "trusted.overlay.redirect"},
        {"c", NULL, AE_IFREG, "security.selinux"}, {"d", NULL, AE_IFREG, "security.capability"});
}

TEST(everything_is_bounded)
{
    REFUSES(-EINVAL, "'1/2/3/4/5/6/7/8/9': folders are nested too deep", FILE("1/2/3/4/5/6/7/8/9"));
    REFUSES(-ENAMETOOLONG,
        "'123456789012345678901234567890123456789012345678901': a part of the "
        "name is over 50 bytes",
        FILE("123456789012345678901234567890123456789012345678901"));
    REFUSES(-EFBIG, "more than the limit of 20 entries", FILE("1"), FILE("2"), FILE("3"), FILE("4"),
        FILE("5"), FILE("6"), FILE("7"), FILE("8"), FILE("9"), FILE("a"), FILE("b"), FILE("c"),
        FILE("d"), FILE("e"), FILE("f"), FILE("g"), FILE("h"), FILE("i"), FILE("j"), FILE("k"),
        FILE("l"));
    REFUSES(-EINVAL, "'.wh.': a whiteout of nothing", FILE(".wh."));
    REFUSES(-EINVAL, "'.wh...': a whiteout of nothing", FILE(".wh..."));
}

TEST(a_listed_or_opaque_root_is_told)
{
    static const struct entry list[] = {DIR("."), FILE(".wh..wh..opq")};
    struct layer_result result;
    struct err err = ERR_INIT;
    struct recorder r;

    recorder_init(&r);
    assert_ok(convert(list, 2, &r, &result, &err), &err);
    assert_true(result.root_listed && result.opaque_root);
    assert_int_equal(result.root.mode, 0750);
    assert_ok(convert(list, 0, &r, &result, &err), &err);
    assert_false(result.root_listed || result.opaque_root);
    assert_int_equal(result.root.mode, 0700);
    assert_int_equal(result.root.gid, 2);
    buf_done(&r.said);
}

TEST(whiteouts_below_what_is_a_file_now_say_nothing)
{
    CONVERTS("file 'f'\ndir '' 0700\nend\n", FILE("f"), FILE("f/.wh.x"), FILE("f/d/.wh..wh..opq"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whiteouts_below_what_is_a_file_now_say_nothing),
        cmocka_unit_test(names_are_cleaned_and_implied_folders_made_once),
        cmocka_unit_test(a_whiteout_is_put_at_the_end_and_marks_its_folder),
        cmocka_unit_test(a_name_whited_out_and_made_again_is_no_whiteout),
        cmocka_unit_test(an_opaque_marker_becomes_the_attribute),
        cmocka_unit_test(bookkeeping_of_aufs_and_devices_are_left_out),
        cmocka_unit_test(links_of_the_layer_are_followed_inside_the_root),
        cmocka_unit_test(a_hard_link_names_the_place_of_its_target),
        cmocka_unit_test(a_name_that_comes_again_replaces),
        cmocka_unit_test(overlay_and_host_attributes_are_dropped),
        cmocka_unit_test(everything_is_bounded),
        cmocka_unit_test(a_listed_or_opaque_root_is_told),
    };

    return RUN_TESTS(tests);
}
