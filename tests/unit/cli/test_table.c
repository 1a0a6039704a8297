/* Which columns are left out when the terminal is narrow, and what a table looks like elsewhere. */
#include "cli/table.h"
#include "unit.h"

/* clang-format off */
static const struct column columns[] = {
    { "NUM", 0, true },
    { "NAME", 0 },
    { "MEM", 2, true },
    { "REASON", 3, .cut = true },
    { "TIME", 1, true },
};
/* clang-format on */

static struct table *sample(void)
{
    struct table *t = table_new(columns, ARRAY_LEN(columns));
    static const char *const cells[] = {"1", "tune", "16 GiB", "waits for a node with eight GPUs",
        "3m", "12", "x", "1 GiB", "", "1h"};

    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        table_cell(t, xstrdup(cells[i]));
    return t;
}

static void shown_at(unsigned width, const char *want)
{
    struct table *t = sample();
    bool shown[ARRAY_LEN(columns)];
    char got[64] = "";

    table_choose(t, width, shown);
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        got[i] = shown[i] ? '+' : '-';
    assert_string_equal(got, want);
    table_free(t);
}

TEST(a_wide_terminal_shows_all)
{
    shown_at(120, "+++++");
    shown_at(0, "+++++");
}

TEST(the_least_wanted_columns_go_first)
{
    shown_at(24, "+++-+");
    shown_at(14, "++--+");
    shown_at(8, "++---");
}

TEST(columns_that_must_be_shown_stay_however_narrow_it_is)
{
    shown_at(1, "++---");
}

TEST(outside_of_a_terminal_nothing_is_cut)
{
    struct table *t = sample();
    char text[1024] = "";
    FILE *f = tmpfile();

    assert_non_null(f);
    table_print(t, f);
    rewind(f);
    assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
    assert_string_equal(text,
        "NUM NAME    MEM REASON                           TIME\n"
        "  1 tune 16 GiB waits for a node with eight GPUs   3m\n"
        " 12 x     1 GiB                                    1h\n");
    fclose(f);
    table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wide_terminal_shows_all),
        cmocka_unit_test(the_least_wanted_columns_go_first),
        cmocka_unit_test(columns_that_must_be_shown_stay_however_narrow_it_is),
        cmocka_unit_test(outside_of_a_terminal_nothing_is_cut),
    };

    return RUN_TESTS(tests);
}
