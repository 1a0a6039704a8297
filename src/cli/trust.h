/*
 * Whom to trust for an https address, decided once, at `muster login`: the system's authorities, a
 * file that was named, or the authority that the manager shows, when the person says that its
 * fingerprint is right. That one is kept beside the configuration.
 */
#ifndef CLI_TRUST_H
#define CLI_TRUST_H

#include "cli/cli.h"

/* ca: a file, or NULL; fingerprint: what the person says beforehand, or NULL: ask on the terminal.
 * Sets cli->ca. */
int trust_choose(struct cli *cli, const char *ca, const char *fingerprint, struct err *err);

#endif
