/* Running a command in a container over a WebSocket; exec, and ssh where that is not installed. */
#ifndef CLI_EXEC_H
#define CLI_EXEC_H

#include "cli/cli.h"

/* head: the first message, without terminal size and type, which are added here. Does not return
 * but with an exit code for what failed before it was connected: ends the process with the code. */
int exec_run(
    struct cli *cli, const char *session, const char *container, json_t *head, bool no_stdin);

/* Why a WebSocket to this container was refused: asks for the session and says it. */
int exec_say_refused(
    struct cli *cli, const char *session, const char *container, unsigned status, const char *text);

#endif
