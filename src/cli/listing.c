/* The list commands' common way. */
#include "cli/listing.h"

#include "cli/api.h"
#include "cli/commands.h"

int listing_run(struct cli *cli, int argc, char **argv, const struct listing *l)
{
    static struct cli_plain o;
    _cleanup_(table_freep) struct table *t = NULL;
    _cleanup_(json_decrefp) json_t *body = NULL;
    struct err err = ERR_INIT;
    const json_t *one;
    size_t i;
    int rest, code = cli_parse(cli, argc, argv, &o, &rest);

    if (code != CLI_GO_ON)
        return code;
    if (api_get_all(cli, l->path, l->what, &body, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        api_print(cli, body);
        return EXIT_OK;
    }
    t = table_new(l->columns, l->count);
    json_array_foreach (json_object_get(body, l->what), i, one)
        l->row(cli, t, one);
    table_print(t, stdout);
    return EXIT_OK;
}
