/*
 * nftables through libnftables, in the network namespace of the calling thread. A text is one
 * transaction: all of it or nothing.
 */
#ifndef AGENT_NET_NFT_H
#define AGENT_NET_NFT_H

#include "base/err.h"

int nft_apply(const char *text, struct err *err);
/* A table as the kernel has it now, in nft's words: equal text, equal rules. family_and_name:
 * "inet muster". -ENOENT when there is none. Heap. */
int nft_list_table(const char *family_and_name, char **ret, struct err *err);

#endif
