/*
 * The record: what became of the command, one line an event, for the agent. A line is one write(2)
 * to a file opened with O_APPEND, so a reader sees whole lines.
 *
 *   started PID MONOTONIC_USEC      the command was exec'ed; its pid inside the container
 *   start-failed ERRNO-NAME TEXT    it could not be; TEXT is for people
 *   exited N                        it ended by itself
 *   signalled N                     a signal ended it
 *
 * At most one of started and start-failed, and at most one of exited and signalled.
 */
#ifndef INIT_RECORD_H
#define INIT_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RECORD_LINE_MAX 512 /* bytes with the newline and a NUL */

/*
 * Where a start failed. Goes over the pipe from the command's process before its exec, so the
 * numbers stay inside one program.
 */
enum start_stage {
    START_STDIO,
    START_IDENTITY,
    START_CWD,
    START_EXEC,
    START_INTERPRETER, /* the file is there, what it needs to run is not */
};

void record_format_started(char line[RECORD_LINE_MAX], pid_t pid, uint64_t monotonic_usec);

/*
 * subject is the word that failed (the command, the folder): untrusted, so it is cut at 200 bytes
 * and control characters become '?'.
 */
void record_format_start_failed(
    char line[RECORD_LINE_MAX], enum start_stage stage, int error, const char *subject);

/* status as waitpid(2) gives it. */
void record_format_ended(char line[RECORD_LINE_MAX], int status);

/* The exit status that init takes over from the command: N, or 128 + signal. */
int record_exit_code(int status);

/* 127 when the command was not found, else 126, as shells do. */
int record_start_failed_code(enum start_stage stage, int error);

#endif
