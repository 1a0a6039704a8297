/*
 * The text of the record and the exit codes that go with it. Pure; init.c writes the lines.
 */
#include "init/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/banned.h"
#include "init/errname.h"

#define SUBJECT_MAX 200

void record_format_started(char line[RECORD_LINE_MAX], pid_t pid, uint64_t monotonic_usec)
{
    snprintf(line, RECORD_LINE_MAX, "started %d %" PRIu64 "\n", (int)pid, monotonic_usec);
}

/* One printable line; cut between characters, not inside one of UTF-8. */
static void copy_subject(char to[SUBJECT_MAX + 1], const char *from)
{
    size_t len = strnlen(from, SUBJECT_MAX + 1);

    if (len > SUBJECT_MAX)
        for (len = SUBJECT_MAX; len > 0 && ((unsigned char)from[len] & 0xC0) == 0x80;)
            len--;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)from[i];

        to[i] = c < 0x20 || c == 0x7f ? '?' : from[i];
    }
    to[len] = '\0';
}

static const char *explain(enum start_stage stage, int error)
{
    switch (stage) {
    case START_CWD:
        return "cannot start in folder";
    case START_IDENTITY:
        return "cannot become the user for";
    case START_STDIO:
        return "cannot set up the input of";
    case START_INTERPRETER:
        return "interpreter or loader is missing for";
    case START_EXEC:
        break;
    }
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return "command not found:";
    case EACCES:
        return "not executable:";
    case ENOEXEC:
        return "neither a program for this machine nor a script with a #! line:";
    case E2BIG:
        return "arguments and environment are too long for";
    default:
        return "cannot run";
    }
}

void record_format_start_failed(
    char line[RECORD_LINE_MAX], enum start_stage stage, int error, const char *subject)
{
    char shown[SUBJECT_MAX + 1];

    copy_subject(shown, subject);
    snprintf(line, RECORD_LINE_MAX, "start-failed %s %s '%s' (%s)\n", errname(error),
        explain(stage, error), shown, strerror(error));
}

void record_format_ended(char line[RECORD_LINE_MAX], int status)
{
    if (WIFSIGNALED(status))
        snprintf(line, RECORD_LINE_MAX, "signalled %d\n", WTERMSIG(status));
    else
        snprintf(line, RECORD_LINE_MAX, "exited %d\n", WEXITSTATUS(status));
}

int record_exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int record_start_failed_code(enum start_stage stage, int error)
{
    if (stage == START_INTERPRETER)
        return 127;
    return stage == START_EXEC && (error == ENOENT || error == ENOTDIR) ? 127 : 126;
}
