/*
 * The command line: one file a command (cmd_NOUN.c), one table of them (commands.c), one client of
 * the API. Results on stdout, everything else on stderr. A process runs one command, so options are
 * static and live as long as it does.
 *
 * Exit codes (muster(1)): 0 done; 1 the manager said no, or it failed; 2 wrong usage, found
 * before the manager was asked; 3 the manager could not be reached; 4 the session ended otherwise
 * than well and its command gave no exit code. `run` and `exec` exit with the command's own code
 * (125 when there is none because of Muster).
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/json.h"
#include "base/opt.h"
#include "net/http.h"

enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_UNREACHABLE = 3,
    EXIT_ENDED = 4,
    EXIT_MUSTER = 125,
};

struct cli {
    char *url, *token; /* from MUSTER_URL, MUSTER_TOKEN, or the configuration file */
    char *url_from;    /* "--url", "MUSTER_URL", "'FILE'"; NULL: nobody said, this machine */
    char *ca;          /* file of certificates to trust; NULL: the system's */
    json_t *answer;    /* of the last call that was refused, whole; NULL: none */
    bool json;         /* -o json */
    bool utc;
    bool is_tty;                   /* stdout is a terminal */
    const struct command *command; /* the one that runs */
    struct http *http;             /* made at first use */
    unsigned status;               /* HTTP status of the last answer, 0: none */
    char code[48];                 /* and its error code, "" */
};

enum command_flags {
    COMMAND_WORDS = 1, /* options end at the first other word: the rest is somebody else's */
    COMMAND_HIDDEN = 2,
    COMMAND_LOCAL = 4, /* needs no manager: the configuration file is not read */
    COMMAND_RUNS = 8,  /* exits with a command's code; EXIT_MUSTER when there is none */
    COMMAND_STARTS =
        16, /* its second word begins a command: "-x" there is a slip, unless after "--" */
};

struct command {
    const char *name; /* "node drain" */
    int (*fn)(
        struct cli *cli, int argc, char **argv); /* argv[0] is the name; returns the exit code */
    const char *args;                            /* "[OPTION]... NODE" */
    int min, max;                                /* words behind the options; max -1: any number */
    unsigned flags;
    const char *group;         /* heading in `muster help`: "Sessions", ... */
    const char *help;          /* one line, no full stop */
    const char *example;       /* lines for `muster help COMMAND`, may be NULL */
    const struct opt *options; /* its table: for help, man page and completion */
};

/* Ends with a row without a name. */
extern const struct command cli_commands[];
extern const char *const cli_groups[]; /* headings in order, NULL-terminated */

/* --- options ------------------------------------------------------------------------------ */

/* First member of every command's options. */
struct cli_common {
    char *output, *url;
    bool utc, help;
};

int cli_check_output(const char *value, struct err *err);

/* clang-format off */
#define CLI_OUTPUT_OPTION(type) \
    { "output", OPT_STR, offsetof(type, common.output), NULL, "FORMAT", \
      "json: print the manager's answer as it is", 'o', true, cli_check_output }
#define CLI_URL_OPTION(type) \
    { "url", OPT_STR, offsetof(type, common.url), NULL, "URL", \
      "address of the manager, instead of the configured one", 0, true }
#define CLI_UTC_OPTION(type) \
    { "utc", OPT_BOOL, offsetof(type, common.utc), NULL, NULL, "show times in UTC", 0, true }
/* Of commands that need no manager, or find it by themselves. */
#define CLI_LOCAL_OPTIONS(type) \
    { "help", OPT_BOOL, offsetof(type, common.help), NULL, NULL, "explain the command", 'h', true }, \
    OPT_END
/* Of those that talk to it and print nothing of what it answers. */
#define CLI_TALK_OPTIONS(type) \
    CLI_URL_OPTION(type), \
    CLI_LOCAL_OPTIONS(type)
#define CLI_COMMON_OPTIONS(type) \
    CLI_OUTPUT_OPTION(type), \
    CLI_UTC_OPTION(type), \
    CLI_TALK_OPTIONS(type)
/* clang-format on */

struct cli_plain { /* of commands without options of their own */
    struct cli_common common;
};
extern const struct opt cli_plain_options[], cli_talk_options[];

#define CLI_GO_ON (-1)

/*
 * Read the command's options into opts (zeroed, begins with struct cli_common) and check the number
 * of words. CLI_GO_ON, and *ret_rest is the index of the first word in argv (options may stand
 * behind words, which are moved to the end, but for COMMAND_WORDS); or the exit code.
 */
int cli_parse(struct cli *cli, int argc, char **argv, void *opts, int *ret_rest);

/* fn for each word, for the rest also after one that failed. The worst exit code. */
int cli_each(struct cli *cli, int count, char **words,
    int (*fn)(struct cli *cli, const char *word, const void *arg), const void *arg);

/* The manager's address, and who said it; both are copied, from may be NULL. */
void cli_set_url(struct cli *cli, const char *url, const char *from);
/* err is of a "--token" that somebody tried: says how to give one. */
bool cli_said_token_on_line(const struct err *err);

/* The command with this name, NULL if none. ret_words: how many words of argv name it. */
const struct command *cli_find(int argc, char **argv, int *ret_words);
/* "muster: unknown command 'lss'; did you mean 'ls'?" to stderr; EXIT_USAGE. */
int cli_unknown(const char *word);
/* "node" is the beginning of "node ls". */
bool cli_is_noun(const char *word);
/* "muster node" or "muster node lss": say what there is; verb may be NULL. EXIT_USAGE. */
int cli_unknown_verb(const char *noun, const char *verb);

/* --- what goes wrong ---------------------------------------------------------------------- */

/* One line on stderr, "muster: ..."; control characters escaped. */
void cli_say(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The same, each text once a process. */
void cli_say_once(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* "muster: warning: ...", each text once a process. */
void cli_warn(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Say err and give the exit code for it; of a manager that is not there also what to do. */
int cli_fail(struct cli *cli, const struct err *err);
int cli_usage(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* --- configuration ------------------------------------------------------------------------ */

/* MUSTER_URL, MUSTER_TOKEN and MUSTER_CA, else the file, else http://127.0.0.1:7480. */
int config_read(struct cli *cli, struct err *err);
/* Write url and token (0600), owned by the person when root acts for somebody through sudo. */
int config_write(const char *url, const char *token, const char *ca, struct err *err);
/* The same into the file of a person with this home folder. */
int config_write_for(const char *home, uint32_t uid, uint32_t gid, const char *url,
    const char *token, const char *ca, struct err *err);
/* That manager and its tokens are gone: remove the files of the caller, and of the person behind
 * sudo, that lead there. */
void config_forget(const char *url);
/* Path of the caller's file; heap, NULL when there is no home. */
char *config_path(void);

#endif
