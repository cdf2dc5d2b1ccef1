#include "wire/peer/peer.h"

#include <arpa/inet.h>
#include <endian.h>
#include <string.h>

/* Larger than all IPv4 addresses and different from all IPv6 networks: ff00::/8 is multicast, which
 * is not a client's address. */
#define KEY_OF_CONNECTION (UINT64_C(0xff) << 56)

static uint64_t key_of_v4(struct in_addr address)
{
    return be32toh(address.s_addr);
}

static uint64_t key_of_v6(const struct in6_addr *address)
{
    if (IN6_IS_ADDR_V4MAPPED(address)) {
        struct in_addr v4;
        memcpy(&v4, address->s6_addr + 12, sizeof(v4));
        return key_of_v4(v4);
    }
    uint64_t network;
    memcpy(&network, address->s6_addr, sizeof(network));
    return be64toh(network);
}

uint64_t wire_peer_key(struct wire_peer peer)
{
    char text[WIRE_ADDRESS_BYTES] = "";
    if (peer.address)
        peer.address(peer.owner, text);
    char *host = text[0] == '[' ? text + 1 : text;
    char *end = text[0] == '[' ? strchr(text, ']') : strrchr(text, ':');
    if (end)
        *end = '\0';
    struct in_addr v4;
    struct in6_addr v6;
    if (end && inet_pton(AF_INET, host, &v4) == 1)
        return key_of_v4(v4);
    if (end && inet_pton(AF_INET6, host, &v6) == 1)
        return key_of_v6(&v6);
    return KEY_OF_CONNECTION | (uint64_t)(uintptr_t)peer.owner;
}
