/*
 * The user `work`: uid and gid 1000 whatever the image thinks of that number. Group memberships of
 * a replaced user are left as they are: they name nobody then.
 */
#include "agent/ct/accounts.h"

#include "base/buf.h"
#include "base/str.h"

#define ACCOUNT_TEXT_MAX (4 << 20)

/* clang-format off */
const struct account_file account_files[] = {
    { "/etc/passwd", 2, "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        "work:x:1000:1000::/home/work:%s\n" },
    { "/etc/group", 2, "root:x:0:\nnogroup:x:65534:\n", "work:x:1000:\n" },
    /* PAM wants a line of every user here (sudo, su); nobody can log in by password. */
    { "/etc/shadow", -1, NULL, "work:*:19000:0:99999:7:::\n" },
};
/* clang-format on */
const size_t account_file_count = ARRAY_LEN(account_files);

/* Field i of a line of n bytes equals text. */
static bool field_is(const char *line, size_t n, int i, const char *text)
{
    const char *end = line + n;

    for (; i > 0; i--) {
        line = memchr(line, ':', (size_t)(end - line));
        if (!line)
            return false;
        line++;
    }
    n = strlen(text);
    return (size_t)(end - line) >= n && memcmp(line, text, n) == 0 &&
        (line + n == end || line[n] == ':');
}

/* libc reads ids with strtoul: "01000" and "+1000" are 1000 too. */
static bool has_id(const char *line, size_t n, int i)
{
    const char *end = line + n;
    char text[24] = "";

    for (; i > 0 && line; i--) {
        line = memchr(line, ':', (size_t)(end - line));
        line = line ? line + 1 : NULL;
    }
    if (!line)
        return false;
    n = 0;
    while (line + n < end && line[n] != ':' && n + 1 < sizeof(text)) {
        text[n] = line[n];
        n++;
    }
    return strtoul(text, NULL, 10) == 1000;
}

static bool keeps(const struct account_file *f, const char *line, size_t n)
{
    if (memchr(line, '\0', n) || !memchr(line, ':', n))
        return false;
    if (field_is(line, n, 0, "work"))
        return false;
    return f->id_field < 0 || !has_id(line, n, f->id_field);
}

char *accounts_edit(const struct account_file *f, const char *text, size_t len, const char *shell)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(ACCOUNT_TEXT_MAX);
    const char *end = text + len;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t n = newline ? (size_t)(newline - text) : (size_t)(end - text);

        if (keeps(f, text, n)) {
            buf_append(&out, text, n);
            buf_puts(&out, "\n");
        }
        text += n + 1;
    }
    for (const char *s = f->line; *s; s++) {
        if (s[0] == '%' && s[1] == 's') {
            buf_puts(&out, shell);
            s++;
        } else {
            buf_append(&out, s, 1);
        }
    }
    return buf_take(&out);
}
