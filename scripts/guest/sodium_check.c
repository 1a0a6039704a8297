/*
 * Does libsodium of the distribution link with musl, and compute? Exit status 0: yes. A test vector
 * for X25519 (RFC 7748, 6.1) and one for Ed25519 (RFC 8032, 7.1, TEST 2), and a forged signature.
 */
#include <sodium.h>
#include <string.h>

static const unsigned char alice_private[32] =
    "\x77\x07\x6d\x0a\x73\x18\xa5\x7d\x3c\x16\xc1\x72\x51\xb2\x66\x45"
    "\xdf\x4c\x2f\x87\xeb\xc0\x99\x2a\xb1\x77\xfb\xa5\x1d\xb9\x2c\x2a";
static const unsigned char bob_public[32] =
    "\xde\x9e\xdb\x7d\x7b\x7d\xc1\xb4\xd3\x5b\x61\xc2\xec\xe4\x35\x37"
    "\x3f\x83\x43\xc8\x5b\x78\x67\x4d\xad\xfc\x7e\x14\x6f\x88\x2b\x4f";
static const unsigned char shared[32] =
    "\x4a\x5d\x9d\x5b\xa4\xce\x2d\xe1\x72\x8e\x3b\xf4\x80\x35\x0f\x25"
    "\xe0\x7e\x21\xc9\x47\xd1\x9e\x33\x76\xf0\x9b\x3c\x1e\x16\x17\x42";
static const unsigned char sign_seed[32] =
    "\x4c\xcd\x08\x9b\x28\xff\x96\xda\x9d\xb6\xc3\x46\xec\x11\x4e\x0f"
    "\x5b\x8a\x31\x9f\x35\xab\xa6\x24\xda\x8c\xf6\xed\x4f\xb8\xa6\xfb";
static const unsigned char sign_public[32] =
    "\x3d\x40\x17\xc3\xe8\x43\x89\x5a\x92\xb7\x0a\xa7\x4d\x1b\x7e\xbc"
    "\x9c\x98\x2c\xcf\x2e\xc4\x96\x8c\xc0\xcd\x55\xf1\x2a\xf4\x66\x0c";
static const unsigned char signature[64] =
    "\x92\xa0\x09\xa9\xf0\xd4\xca\xb8\x72\x0e\x82\x0b\x5f\x64\x25\x40"
    "\xa2\xb2\x7b\x54\x16\x50\x3f\x8f\xb3\x76\x22\x23\xeb\xdb\x69\xda"
    "\x08\x5a\xc1\xe4\x3e\x15\x99\x6e\x45\x8f\x36\x13\xd0\xf1\x1d\x8c"
    "\x38\x7b\x2e\xae\xb4\x30\x2a\xee\xb0\x0d\x29\x16\x12\xbb\x0c\x00";

static int signs(void)
{
    static const unsigned char message[1] = "\x72";
    unsigned char secret[64], made[65], opened[65];
    unsigned long long len;

    memcpy(secret, sign_seed, 32);
    memcpy(secret + 32, sign_public, 32);
    if (crypto_sign_ed25519(made, &len, message, 1, secret) || memcmp(made, signature, 64))
        return 0;
    if (crypto_sign_ed25519_open(opened, &len, made, 65, sign_public) || opened[0] != message[0])
        return 0;
    made[64] ^= 1;
    if (!crypto_sign_ed25519_open(opened, &len, made, 65, sign_public))
        return 0;
    return crypto_sign_ed25519_keypair(opened, secret) == 0;
}

int main(void)
{
    unsigned char q[32];

    if (crypto_scalarmult_curve25519(q, alice_private, bob_public) || memcmp(q, shared, 32))
        return 1;
    return signs() ? 0 : 1;
}
