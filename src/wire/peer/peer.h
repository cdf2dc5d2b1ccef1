/* The client at the other end of a connection, for queues that are fair between clients. */
#ifndef VIGIL_WIRE_PEER_PEER_H
#define VIGIL_WIRE_PEER_PEER_H

#include <stdint.h>

enum { WIRE_ADDRESS_BYTES = 160 };

struct wire_peer {
    /* Writes "127.0.0.1:2379" or "[::1]:2379", or another text if it is not an IP address. May be
     * NULL. */
    void (*address)(void *owner, char *text);
    void *owner; /* identifies the connection */
};

/*
 * Equal for all connections from one IPv4 address or from one IPv6 network of 64 bits, in which a
 * client chooses its address. A client on a Unix socket has no address; its key is unique to the
 * connection.
 */
uint64_t wire_peer_key(struct wire_peer peer);

#endif
