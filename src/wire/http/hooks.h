/* What an endpoint of HTTP/1.1 or HTTP/2 knows about its connection. */
#ifndef VIGIL_WIRE_HTTP_HOOKS_H
#define VIGIL_WIRE_HTTP_HOOKS_H

#include "wire/peer/peer.h"

#include <stdbool.h>

struct account;

struct http_hooks {
    void (*on_output)(void *owner); /* there is output where there was none; may be NULL */
    void *owner;
    struct account *account; /* the connection's; may be NULL */
    /* The fields of http_request with these names. */
    bool secure;
    bool guarded;
    const char *peer_name;
    const struct http_certificate *certificate;
    struct wire_peer peer;
};

#endif
