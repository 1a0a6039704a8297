/* The callbacks that libwebsockets is given, for the files that include it. */
#ifndef NET_LWS_PROTOCOLS_H
#define NET_LWS_PROTOCOLS_H

#include <libwebsockets.h>

/* Of accepted byte streams (conn.c) and of client WebSockets (ws_client.c). */
extern const struct lws_protocols NET_PROTOCOLS[];

int conn_callback(
    struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len);
int ws_client_callback(
    struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len);

#endif
