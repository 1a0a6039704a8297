/*
 * SHA-1 (RFC 3174), for protocols that ask for it by name. It protects nothing any more: whoever
 * needs a digest against an attacker takes another.
 */
#ifndef BASE_SHA1_H
#define BASE_SHA1_H

#include "base/base.h"

#define SHA1_BYTES 20

void sha1(const void *data, size_t len, uint8_t digest[SHA1_BYTES]);

#endif
