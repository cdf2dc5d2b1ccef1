#include "kube/types/object/name.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

struct ip_text {
    char given[INET6_ADDRSTRLEN], canonical[INET6_ADDRSTRLEN];
    struct in6_addr bytes; /* a struct in_addr for IPv4 */
    int family;
};

static bool address_parse(struct ip_text *a, const char *text)
{
    a->family = strchr(text, ':') ? AF_INET6 : AF_INET;
    return inet_pton(a->family, text, &a->bytes) == 1;
}

/*
 * Kubernetes allows leading zeros in the numbers of IPv4 addresses in what it calls legacy fields.
 */
static bool address_parse_padded(struct ip_text *a)
{
    char text[INET6_ADDRSTRLEN];
    const char *from = strrchr(a->given, ':');
    size_t len = from ? (size_t)(from + 1 - a->given) : 0;
    memcpy(text, a->given, len);
    bool begins = true; /* at the beginning of a number */
    for (from = a->given + len; *from; from++) {
        if (begins && *from == '0' && from[1] >= '0' && from[1] <= '9')
            continue;
        begins = *from == '.';
        text[len++] = *from;
    }
    text[len] = '\0';
    return memchr(a->given, '.', strlen(a->given)) && address_parse(a, text);
}

bool ip_name_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    struct ip_text a = {0};
    why[0] = '\0';
    if (name.len < sizeof(a.given))
        slice_copy(a.given, name);
    bool whole = strlen(a.given) == name.len, plain = whole && address_parse(&a, a.given);
    if (!plain && !(whole && address_parse_padded(&a))) {
        name_add_reason(why, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    } else if (!plain) {
        name_add_reason(why, "must not have leading 0s");
    } else if (a.family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a.bytes)) {
        name_add_reason(why, "must not be an IPv4-mapped IPv6 address");
    } else {
        /* Prints the address as Go does: no dots in an IPv6 address. */
        const uint8_t *b = a.bytes.s6_addr;
        inet_ntop(a.family, &a.bytes, a.canonical, sizeof(a.canonical));
        if (a.family == AF_INET6 && strchr(a.canonical, '.'))
            snprintf(a.canonical, sizeof(a.canonical), "::%x:%x", b[12] << 8 | b[13],
                     b[14] << 8 | b[15]);
    }
    if (!why[0] && strcmp(a.canonical, a.given) != 0)
        snprintf(why, NAME_ERROR_BYTES, "must be in canonical form (\"%s\")", a.canonical);
    return !why[0];
}

struct slice name_lower(struct arena *arena, struct slice name)
{
    uint8_t *lower = arena_alloc(arena, name.len + 1);
    for (size_t i = 0; lower && i < name.len; i++)
        lower[i] = name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? name.ptr[i] | 0x20 : name.ptr[i];
    return lower ? slice_of(lower, name.len) : SLICE_EMPTY;
}
