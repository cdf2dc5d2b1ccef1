/* Where a socket listens or connects: an IP address and port, or a Unix socket's path. */
#ifndef VIGIL_IO_ADDRESS_H
#define VIGIL_IO_ADDRESS_H

#include "base/slice.h"
#include "base/status.h"

#include <sys/socket.h>
#include <sys/un.h>

struct address {
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
        struct sockaddr_un local;
    } as;
};

enum { ADDRESS_TEXT_BYTES = sizeof(struct sockaddr_un) + 32 };

/* host is a numeric IPv4 or IPv6 address (without brackets), or "localhost". Otherwise ST_INVALID:
 * names are not resolved here. */
MUST_CHECK
enum status address_from_host(struct slice host, uint16_t port, struct address *ret_address);
/* ST_INVALID: the path is empty, too long, or contains a NUL. */
MUST_CHECK
enum status address_from_path(struct slice path, struct address *ret_address);

bool address_is_path(const struct address *address);
/* Reachable only from this machine: a path, or a loopback address. */
bool address_is_local(const struct address *address);
/* 0 for a path. */
uint16_t address_port(const struct address *address);
/* The path, or "" for an IP address. Lives as long as the address. */
const char *address_path(const struct address *address);

/* "127.0.0.1:2379", "[::1]:2379", or the path. */
void address_format(const struct address *address, char text[ADDRESS_TEXT_BYTES]);

#endif
