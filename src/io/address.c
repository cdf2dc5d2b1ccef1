#include "io/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static struct sockaddr_in *in4(struct address *address)
{
    return (struct sockaddr_in *)(void *)&address->as.storage;
}

static struct sockaddr_in6 *in6(struct address *address)
{
    return (struct sockaddr_in6 *)(void *)&address->as.storage;
}

enum status address_from_host(struct slice host, uint16_t port, struct address *ret_address)
{
    char text[INET6_ADDRSTRLEN];
    /* The only name that is accepted, because resolving others may block. */
    if (slice_equal(host, SLICE_LITERAL("localhost")))
        host = SLICE_LITERAL("127.0.0.1");
    if (host.len >= sizeof(text) || (host.len && memchr(host.ptr, 0, host.len)))
        return ST_INVALID;
    slice_copy(text, host);
    text[host.len] = 0;

    struct address address = {0};
    if (inet_pton(AF_INET, text, &in4(&address)->sin_addr) == 1) {
        in4(&address)->sin_family = AF_INET;
        in4(&address)->sin_port = htons(port);
        address.len = sizeof(struct sockaddr_in);
    } else if (inet_pton(AF_INET6, text, &in6(&address)->sin6_addr) == 1) {
        in6(&address)->sin6_family = AF_INET6;
        in6(&address)->sin6_port = htons(port);
        address.len = sizeof(struct sockaddr_in6);
    } else {
        return ST_INVALID;
    }
    *ret_address = address;
    return ST_OK;
}

enum status address_from_path(struct slice path, struct address *ret_address)
{
    struct address address = {0};
    struct sockaddr_un *local = &address.as.local;
    if (path.len == 0 || path.len >= sizeof(local->sun_path) || memchr(path.ptr, 0, path.len))
        return ST_INVALID;
    local->sun_family = AF_UNIX;
    slice_copy(local->sun_path, path);
    /* The zero at the end is counted, so that the kernel does not take the path for an abstract
     * name. */
    address.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.len + 1);
    *ret_address = address;
    return ST_OK;
}

bool address_is_path(const struct address *address)
{
    return address->as.any.sa_family == AF_UNIX;
}

bool address_is_local(const struct address *address)
{
    const void *at = &address->as.storage;
    switch (address->as.any.sa_family) {
    case AF_INET:
        return (ntohl(((const struct sockaddr_in *)at)->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)at)->sin6_addr);
    default:
        return address_is_path(address);
    }
}

uint16_t address_port(const struct address *address)
{
    const void *at = &address->as.storage;
    switch (address->as.any.sa_family) {
    case AF_INET:
        return ntohs(((const struct sockaddr_in *)at)->sin_port);
    case AF_INET6:
        return ntohs(((const struct sockaddr_in6 *)at)->sin6_port);
    default:
        return 0;
    }
}

const char *address_path(const struct address *address)
{
    return address_is_path(address) ? address->as.local.sun_path : "";
}

void address_format(const struct address *address, char text[ADDRESS_TEXT_BYTES])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    const void *at = &address->as.storage;
    switch (address->as.any.sa_family) {
    case AF_INET:
        inet_ntop(AF_INET, &((const struct sockaddr_in *)at)->sin_addr, ip, sizeof(ip));
        snprintf(text, ADDRESS_TEXT_BYTES, "%s:%u", ip, address_port(address));
        break;
    case AF_INET6:
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)at)->sin6_addr, ip, sizeof(ip));
        snprintf(text, ADDRESS_TEXT_BYTES, "[%s]:%u", ip, address_port(address));
        break;
    default:
        snprintf(text, ADDRESS_TEXT_BYTES, "%s", address_path(address));
    }
}
