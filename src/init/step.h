/*
 * A command in a running container: what the runtime's exec starts, so that an image without a
 * shell has a start folder and messages, too.
 */
#ifndef INIT_STEP_H
#define INIT_STEP_H

/* The exit statuses of sh(1) for what cannot be run. */
#define STEP_EXIT_DENIED 126
#define STEP_EXIT_NOT_FOUND 127

/*
 * Go to the folder dir and replace this process by argv, looked up in the environment's PATH.
 * Returns only on failure, with the exit status, and has said why on stderr.
 */
int step_run(const char *dir, char *const argv[]);

#endif
