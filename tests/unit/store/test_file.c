/* The file: what survives in it, who may open it, and which files are refused. */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "fixture.h"

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void expect_refused(struct fixture *f, int code, const char *text)
{
    struct err err = ERR_INIT;

    assert_int_equal(fixture_try_open(f, f->path, &err), code);
    if (!strstr(err.text, text))
        fail_msg("'%s' does not say '%s'", err.text, text);
    assert_null(f->store);
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

TEST(a_file_opened_again_has_everything)
{
    struct fixture *f = *state;

    fixture_open(f, f->path);
    put_session(f, 1, "anna", "running");
    put_session(f, 2, "ben", "ended");
    store_event(f->store, "t", "s1", "anna", "{}");
    assert_int_equal(store_next(f->store, "job"), 1);
    assert_int_equal(store_next(f->store, "job"), 2);
    fixture_close(f);

    fixture_open(f, f->path);
    assert_int_equal(store_revision(f->store), 1);
    assert_int_equal(store_next(f->store, "job"), 3);
    assert_string_equal(list_ids(f, &(struct store_filter){.kind = "session"}), "s2 s1 ");
    assert_int_equal(store_events(f->store, 0, 0, NULL, ignore_event, NULL, NULL), 0);
    store_event(f->store, "t", "s2", "ben", "{}");
    fixture_run(f);
    assert_int_equal(store_revision(f->store), 2);
    assert_int_equal(last_seq(f), 2);
}

TEST(all_its_files_are_private)
{
    struct fixture *f = *state;
    const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    mode_t old = umask(0);

    fixture_open(f, f->path);
    umask(old);
    put_session(f, 1, "anna", "running");
    fixture_run(f);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        _cleanup_free_ char *path = xasprintf("%s%s", f->path, ends[i]);
        assert_int_equal(mode_of(path), 0600);
    }
}

TEST(a_file_that_others_can_read_is_made_private)
{
    struct fixture *f = *state;

    fixture_open(f, f->path);
    fixture_close(f);
    assert_int_equal(chmod(f->path, 0664), 0);
    fixture_open(f, f->path);
    assert_int_equal(mode_of(f->path), 0600);
}

TEST(a_second_opener_is_refused_and_told_who_has_it)
{
    struct fixture *f = *state, *other = fixture_new();
    _cleanup_free_ char *link = xasprintf("%s/link.db", f->dir);
    _cleanup_free_ char *text = xasprintf(
        "another manager has '%s' open (pid %d)", f->path, (int)getpid());

    fixture_open(f, f->path);
    put_session(f, 1, "anna", "running");
    fixture_run(f);
    snprintf(other->path, sizeof(other->path), "%s", f->path);
    expect_refused(other, -EBUSY, text);
    assert_int_equal(symlink(f->path, link), 0);
    snprintf(other->path, sizeof(other->path), "%s", link);
    expect_refused(other, -EBUSY, text);
    put_session(f, 2, "anna", "running");
    fixture_close(f);
    fixture_open(other, other->path);
    assert_string_equal(list_ids(other, &(struct store_filter){.kind = "session"}), "s2 s1 ");
    teardown((void **)&other);
}

TEST(a_newer_schema_is_refused_and_left_alone)
{
    struct fixture *f = *state;
    _cleanup_free_ char *before = NULL, *after = NULL;
    size_t before_len, after_len;

    fixture_open(f, f->path);
    fixture_close(f);
    run_sql(f->path, "PRAGMA user_version = 99");
    assert_int_equal(fs_read(f->path, 1 << 20, &before, &before_len, NULL), 0);
    expect_refused(
        f, -ENOTSUP, "was written by a newer Muster (schema 99, this one knows up to 2)");
    assert_int_equal(fs_read(f->path, 1 << 20, &after, &after_len, NULL), 0);
    assert_int_equal(before_len, after_len);
    assert_memory_equal(before, after, before_len);
}

TEST(a_database_of_another_program_is_refused)
{
    struct fixture *f = *state;

    run_sql(f->path, "CREATE TABLE t (x)");
    expect_refused(f, -EINVAL, "is a database of another program");
    run_sql(f->path, "PRAGMA application_id = 7");
    expect_refused(f, -EINVAL, "is a database of another program");
}

TEST(a_file_that_is_no_database_is_refused)
{
    struct fixture *f = *state;

    assert_int_equal(fs_write(f->path, "hello", 5, 0600, NULL), 0);
    expect_refused(f, -EUCLEAN, "is damaged or not a store: restore it from a backup");
    expect_refused(f, -EUCLEAN, "file is not a database");
}

static void make_big(struct fixture *f)
{
    fixture_open(f, f->path);
    for (uint64_t i = 1; i <= 2000; i++)
        put_session(f, i, "anna", "running");
    fixture_close(f);
}

TEST(a_cut_file_is_refused)
{
    struct fixture *f = *state;

    make_big(f);
    assert_int_equal(truncate(f->path, 100 * 4096), 0);
    expect_refused(f, -EUCLEAN, "is damaged or not a store: restore it from a backup");
}

TEST(a_file_with_an_overwritten_page_is_refused)
{
    struct fixture *f = *state;
    char page[4096];
    int fd;

    make_big(f);
    fd = open(f->path, O_WRONLY | O_CLOEXEC);
    memset(page, 0xa5, sizeof(page));
    assert_int_equal(pwrite(fd, page, sizeof(page), 60 * 4096), sizeof(page));
    close(fd);
    expect_refused(f, -EUCLEAN, "is damaged or not a store: restore it from a backup");
}

TEST(a_folder_that_is_not_there_is_named)
{
    struct fixture *f = *state;

    snprintf(f->path, sizeof(f->path), "%s/no/muster.db", f->dir);
    expect_refused(f, -ENOENT, "cannot open the store '");
    expect_refused(f, -ENOENT, "/no/muster.db': No such file or directory");
}

TEST(a_folder_is_no_store)
{
    struct fixture *f = *state;

    snprintf(f->path, sizeof(f->path), "%s", f->dir);
    expect_refused(f, -EISDIR, "Is a directory");
    assert_int_equal(rmdir(f->dir), 0);
    _cleanup_free_ char *lock = xasprintf("%s.lock", f->dir);
    assert_int_equal(unlink(lock), 0);
}

TEST(a_path_may_hold_any_character)
{
    struct fixture *f = *state;

    snprintf(f->path, sizeof(f->path), "%s/a?b%%20c#&mode=memory", f->dir);
    fixture_open(f, f->path);
    put_session(f, 1, "anna", "running");
    fixture_close(f);
    assert_int_equal(mode_of(f->path), 0600);
    fixture_open(f, f->path);
    assert_string_equal(list_ids(f, &(struct store_filter){.kind = "session"}), "s1 ");
}

#define ROW(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(a_file_opened_again_has_everything),
        ROW(all_its_files_are_private),
        ROW(a_file_that_others_can_read_is_made_private),
        ROW(a_second_opener_is_refused_and_told_who_has_it),
        ROW(a_newer_schema_is_refused_and_left_alone),
        ROW(a_database_of_another_program_is_refused),
        ROW(a_file_that_is_no_database_is_refused),
        ROW(a_cut_file_is_refused),
        ROW(a_file_with_an_overwritten_page_is_refused),
        ROW(a_folder_that_is_not_there_is_named),
        ROW(a_folder_is_no_store),
        ROW(a_path_may_hold_any_character),
    };

    return RUN_TESTS(tests);
}
