/* What most "ls" commands are: a whole list of the manager's, as its answer or as a table. */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include "cli/cli.h"
#include "cli/table.h"

struct listing {
    const char *path, *what; /* "/v1/users", and the member that has the list: "users" */
    const struct column *columns;
    size_t count;
    void (*row)(const struct cli *cli, struct table *t, const json_t *one);
};

/* A command with no options of its own: parse, ask, print. The exit code. */
int listing_run(struct cli *cli, int argc, char **argv, const struct listing *l);

#endif
