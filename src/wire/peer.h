/* Who is at the other end of a connection, for queues that are to be fair between clients. */
#ifndef VIGIL_WIRE_PEER_H
#define VIGIL_WIRE_PEER_H

#include <stdint.h>

enum { WIRE_ADDRESS_BYTES = 160 };

struct wire_peer {
    /* Writes "127.0.0.1:2379", "[::1]:2379", or something else for what is no IP address. May be
     * NULL. */
    void (*address)(void *owner, char *text);
    void *owner; /* stands for the connection */
};

/*
 * Equal for all connections from one address, whatever their ports; of IPv6 from one network of 64
 * bits, since a client chooses the rest. A client of a Unix socket has no address: equal for one
 * connection.
 */
uint64_t wire_peer_key(struct wire_peer peer);

#endif
