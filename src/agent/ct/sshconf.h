/* The texts that make `ssh sub1` work with no question asked. Pure. Internal to this folder. */
#ifndef AGENT_CT_SSHCONF_H
#define AGENT_CT_SSHCONF_H

#include "wire/assignment.h"

#define SSHCONF_DIR "/etc/muster/ssh"
/* The key exchange of logins inside a session. The default of OpenSSH, sntrup761x25519, takes 100
 * ms more of a CPU for each, against an adversary who keeps the traffic of a private network until
 * he has a quantum computer; from outside it is offered. */
#define SSHCONF_KEX "curve25519-sha256,curve25519-sha256@libssh.org"

/* For sshd: fixed rules, then one SetEnv line with env and a prompt. -E2BIG when the environment is
 * more than sshd(8) hands to its sessions. *ret: heap. */
int sshconf_server(char *const *env, const char *name, char **ret, struct err *err);
/* For ssh: the session's names and addresses, and nothing about any other host. Heap. */
char *sshconf_client(const struct assignment *a);
/* "NAME,ADDRESS KEYTYPE KEY" for every container. Heap. */
char *sshconf_known_hosts(const struct assignment *a);

#endif
