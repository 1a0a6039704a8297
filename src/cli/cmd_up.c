#include "cli/commands.h"
const struct opt up_options[] = {CLI_COMMON_OPTIONS(struct cli_plain)};
const struct opt down_options[] = {CLI_COMMON_OPTIONS(struct cli_plain)};
const struct opt status_options[] = {CLI_COMMON_OPTIONS(struct cli_plain)};
int cmd_up(struct cli *cli, int argc, char **argv){return 1;}
int cmd_down(struct cli *cli, int argc, char **argv){return 1;}
int cmd_status(struct cli *cli, int argc, char **argv){return 1;}
