/* Key pairs for SSH inside sessions and between users and the gateway. */
#ifndef MANAGER_SSHKEYS_H
#define MANAGER_SSHKEYS_H

#include "base/err.h"

#define SSH_COMMENT_MAX 255

/*
 * A new ed25519 key pair. The private one is in OpenSSH's own form without a passphrase
 * ("openssh-key- v1", PROTOCOL.key of OpenSSH), the public one is a line for authorized_keys
 * without a line end: "ssh-ed25519 AAAA... comment". Heap; free the private one with
 * ssh_secret_free. -EINVAL for a comment that is too long or not clean text.
 */
int ssh_keypair_make(
    const char *comment, char **ret_private_openssh, char **ret_public_line, struct err *err);

/* Wipe and free; NULL is no error. */
void ssh_secret_free(char *secret);
void ssh_secret_freep(char **secret); /* for _cleanup_(ssh_secret_freep) */

#endif
