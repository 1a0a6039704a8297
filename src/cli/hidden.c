/* Reading a secret: the terminal is as before afterwards. */
#include "cli/hidden.h"

#include <stdio.h>
#include <termios.h>

#include "base/base.h"

#define LINE_MAX_BYTES 8192

char *hidden_line(const char *what)
{
    char line[LINE_MAX_BYTES];
    struct termios shown, hidden;
    bool tty = tcgetattr(STDIN_FILENO, &shown) == 0;
    const char *got;

    if (tty) {
        hidden = shown;
        hidden.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
        fprintf(stderr, "%s: ", what);
        fflush(stderr);
    }
    got = fgets(line, sizeof(line), stdin);
    if (tty) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
        fputc('\n', stderr);
    }
    if (!got)
        return NULL;
    line[strcspn(line, "\r\n")] = '\0';
    return xstrdup(line);
}
