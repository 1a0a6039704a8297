/* The keys of a WebSocket handshake (RFC 6455 section 4). */
#ifndef NET_WS_KEY_H
#define NET_WS_KEY_H

#include "base/base.h"

#define WS_KEY_LEN 24
#define WS_ACCEPT_LEN 28

/* A client's Sec-WebSocket-Key: 16 random bytes. */
void ws_key_make(char key[WS_KEY_LEN + 1]);
/* The Sec-WebSocket-Accept that answers it. */
void ws_key_accept(const char *key, char accept[WS_ACCEPT_LEN + 1]);
/* Random bytes that the other side cannot know before; getrandom(2). */
void ws_random(void *to, size_t len);

#endif
