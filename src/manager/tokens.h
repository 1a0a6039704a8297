/*
 * Tokens of the API: what a user holds, and what the manager keeps of it. A token is 256 random
 * bits, so one round of SHA-256 is enough to keep (nobody can guess towards it), and a look-up by
 * the hash tells nothing by the time it takes.
 */
#ifndef MANAGER_TOKENS_H
#define MANAGER_TOKENS_H

#include "base/base.h"

#define TOKEN_PREFIX "mst_" /* of people's; so that scanners for leaked secrets can find them */
#define TOKEN_TEXT_MAX 64
#define TOKEN_HASH_MAX 65

/* The prefix, of at most 20 characters, and 32 random bytes in base64url (RFC 4648 section 5)
 * without padding: 43 more. */
void token_make(const char *prefix, char text[TOKEN_TEXT_MAX]);
/* SHA-256 of the whole text, in lower-case hex. */
void token_hash(const char *token, char hex[TOKEN_HASH_MAX]);

#endif
