/*
 * Logging to stderr, one write(2) a line, so that lines of several threads do not mix. What the
 * settings say is fixed by log_setup before threads start; nothing here locks. Control characters
 * in a message are escaped: an event is always one line.
 */
#include "base/log.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"

#define MESSAGE_MAX 8192

static const struct {
    const char *name;
    const char *label; /* in text, all of about one width */
    char priority;     /* sd-daemon(3) */
} levels[] = {
    [LOG_LEVEL_ERR] = {"err", "err", '3'},
    [LOG_LEVEL_WARNING] = {"warning", "warn", '4'},
    [LOG_LEVEL_INFO] = {"info", "info", '6'},
    [LOG_LEVEL_DEBUG] = {"debug", "debug", '7'},
};

static struct {
    const char *program;
    enum log_level max;
    enum log_format format;
    bool to_journal;
} settings = {.max = LOG_LEVEL_INFO};

/* JOURNAL_STREAM is "DEVICE:INODE" of the socket that systemd gave us (systemd.exec(5)); stderr
 * may have been redirected since. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char mine[64];
    struct stat st;

    if (!stream || fstat(STDERR_FILENO, &st) < 0)
        return false;
    snprintf(mine, sizeof(mine), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return str_eq(stream, mine);
}

void log_setup(const char *program, enum log_level max, enum log_format format)
{
    settings.program = program;
    settings.max = max;
    settings.format = format;
    settings.to_journal = format == LOG_FORMAT_AUTO && stderr_is_journal();
}

int log_level_parse(const char *s, enum log_level *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (str_eq(s, levels[i].name)) {
            *ret = (enum log_level)i;
            return 0;
        }
    return -EINVAL;
}

static const char *program_name(void)
{
    return settings.program ? settings.program : program_invocation_short_name;
}

static char *json_line(enum log_level level, const char *time, const char *message)
{
    _cleanup_(json_decrefp) json_t *line = json_object();
    _cleanup_free_ char *text = NULL;

    json_set_str(line, "time", time);
    json_set_str(line, "level", levels[level].name);
    json_set_str(line, "program", program_name());
    json_set_str(line, "message", message);
    text = json_text(line);
    return xasprintf("%s\n", text);
}

static char *line_make(enum log_level level, const char *message)
{
    char time[CLOCK_TEXT_MAX];

    if (settings.to_journal)
        return xasprintf("<%c>%s\n", levels[level].priority, message);
    clock_format(clock_real_usec(), time);
    if (settings.format == LOG_FORMAT_JSON)
        return json_line(level, time, message);
    /* Milliseconds are enough for eyes: cut "456Z" of "48.123456Z". */
    return xasprintf("%.*sZ %-5s %s: %s\n", (int)strlen(time) - 4, time, levels[level].label,
        program_name(), message);
}

void log_write(enum log_level level, const char *fmt, ...)
{
    _cleanup_free_ char *raw = NULL, *message = NULL, *line = NULL;
    int saved = errno;
    va_list ap;

    if (level > settings.max)
        return;
    va_start(ap, fmt);
    raw = xvasprintf(fmt, ap);
    va_end(ap);
    message = str_escape(raw, strlen(raw), MESSAGE_MAX);
    line = line_make(level, message);
    /* Nowhere to report that the report was lost. */
    (void)!write(STDERR_FILENO, line, strlen(line));
    errno = saved;
}
