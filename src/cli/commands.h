/* All commands and their option tables, and the text about them. Internal to this folder. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"
#include "cli/progress.h"

#define COMMAND(name) int cmd_##name(struct cli *cli, int argc, char **argv)

COMMAND(account_create);
COMMAND(account_ls);
COMMAND(account_rm);
COMMAND(account_set);
COMMAND(account_show);
COMMAND(create);
COMMAND(down);
COMMAND(events);
COMMAND(exec);
COMMAND(export_nodes);
COMMAND(export_workload);
COMMAND(extend);
COMMAND(forward);
COMMAND(group_create);
COMMAND(group_ls);
COMMAND(group_set);
COMMAND(help);
COMMAND(hold);
COMMAND(image_import);
COMMAND(image_ls);
COMMAND(image_pin);
COMMAND(image_prune);
COMMAND(image_rm);
COMMAND(image_show);
COMMAND(image_unpin);
COMMAND(login);
COMMAND(logs);
COMMAND(ls);
COMMAND(node_add);
COMMAND(node_drain);
COMMAND(node_group);
COMMAND(node_lost);
COMMAND(node_ls);
COMMAND(node_purge);
COMMAND(node_resume);
COMMAND(node_revoke);
COMMAND(node_rm);
COMMAND(node_show);
COMMAND(node_tokens);
COMMAND(plan);
COMMAND(policy_set);
COMMAND(policy_show);
COMMAND(prio);
COMMAND(release);
COMMAND(run);
COMMAND(secret_ls);
COMMAND(secret_rm);
COMMAND(secret_set);
COMMAND(show);
COMMAND(ssh);
COMMAND(status);
COMMAND(stop);
COMMAND(topology_set);
COMMAND(topology_show);
COMMAND(tunnel);
COMMAND(up);
COMMAND(user_add);
COMMAND(user_ls);
COMMAND(version);
COMMAND(volume_create);
COMMAND(volume_ls);
COMMAND(volume_rm);
COMMAND(wait);
COMMAND(whoami);
COMMAND(why);

/* In front of the command. */
struct main_opts {
    struct cli_common common;
    bool version;
};

extern const struct opt main_options[];
extern const struct opt account_options[], create_options[], down_options[], events_options[],
    exec_options[], export_options[], extend_options[], forward_options[], group_options[],
    help_options[], image_import_options[], image_prune_options[], login_options[], logs_options[],
    ls_options[], node_add_options[], node_drain_options[], node_tokens_options[], plan_options[],
    run_options[], secret_rm_options[], secret_set_options[], ssh_options[], status_options[],
    stop_options[], up_options[], user_add_options[], volume_ls_options[], volume_rm_options[],
    wait_options[];

/* Print; each returns the exit code. */
int help_overview(FILE *out);
int help_noun(const char *noun, FILE *out);
int help_command(const struct command *c, FILE *out);
int help_topic(int argc, char **argv, FILE *out);
int help_man(FILE *out);
int help_completion(const char *shell, FILE *out);

#endif
