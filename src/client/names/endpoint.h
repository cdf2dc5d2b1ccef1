/*
 * One endpoint of a cluster, as users write it:
 *
 *     http://10.0.0.1:2379  https://etcd.example.com:2379  unix:///run/etcd.sock  unixs:///run/x
 *     10.0.0.1:2379
 *
 * As in clientv3, an endpoint without a scheme uses TLS if TLS is configured. A value; any thread.
 */
#ifndef VIGIL_CLIENT_NAMES_ENDPOINT_H
#define VIGIL_CLIENT_NAMES_ENDPOINT_H

#include "base/error.h"
#include "base/slice.h"
#include "io/address.h"

enum endpoint_security {
    ENDPOINT_PLAIN,
    ENDPOINT_TLS,
    ENDPOINT_TLS_IF_CONFIGURED,
};

enum { ENDPOINT_HOST_BYTES = 254, ENDPOINT_TEXT_BYTES = ENDPOINT_HOST_BYTES + 16 };

struct endpoint {
    enum endpoint_security security;
    bool is_path;        /* a Unix socket: path is set, and port is 0 */
    struct address path; /* path of the Unix socket */
    uint16_t port;
    /* The name or the numeric address, without brackets, by which TLS verifies the server. As in
     * clientv3, that of a Unix socket is the last part of its path, up to a colon. */
    char host[ENDPOINT_HOST_BYTES];
    /* For messages and for :authority: "10.0.0.1:2379", "[::1]:2379"; of a Unix socket the path. */
    char text[ENDPOINT_TEXT_BYTES];
};

/* ST_INVALID: the error says what is wrong. */
MUST_CHECK
enum status endpoint_parse(struct slice text, struct endpoint *ret_endpoint, struct error *error);

/* From a target of SRV records. The host is a host name. */
void endpoint_from_target(const char *host, uint16_t port, bool secure,
                          struct endpoint *ret_endpoint);

#endif
