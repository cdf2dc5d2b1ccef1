/* Addresses, as Go's net package reads and shows them. */
#include "kube/handlers/connect/connect_internal.h"

#include <arpa/inet.h>
#include <stdio.h>

enum { HOST_BYTES = 254 };

/* AF_INET, AF_INET6, or 0 for a name. */
static int family_of(struct slice host, uint8_t ret_address[16])
{
    char text[HOST_BYTES] = "";
    if (!host.len || host.len >= sizeof(text))
        return 0;
    slice_copy((uint8_t *)text, host);
    if (inet_pton(AF_INET, text, ret_address) == 1)
        return AF_INET;
    return inet_pton(AF_INET6, text, ret_address) == 1 ? AF_INET6 : 0;
}

bool connect_is_name(struct slice host)
{
    uint8_t address[16];
    return !family_of(host, address);
}

void connect_dial_text(struct slice host, struct slice port, char text[CONNECT_DIAL_BYTES])
{
    uint8_t address[16];
    int len = (int)size_min(host.len, HOST_BYTES), family = family_of(host, address);
    const char *name = (const char *)host.ptr;
    if (!family)
        snprintf(text, CONNECT_DIAL_BYTES, "dial tcp: lookup %.*s: no such host", len, name);
    else
        snprintf(text, CONNECT_DIAL_BYTES,
                 family == AF_INET6 ? "dial tcp [%.*s]:%.*s: connect: connection refused"
                                    : "dial tcp %.*s:%.*s: connect: connection refused",
                 len, name, (int)size_min(port.len, 64), (const char *)port.ptr);
}

static bool may_reach_v4(const uint8_t a[4])
{
    static const uint8_t all[4] = {255, 255, 255, 255}, none[4] = {0};
    bool shared = a[0] >= 224 && a[0] < 240, local = a[0] == 169 && a[1] == 254;
    return a[0] != 127 && !shared && !local && memcmp(a, all, 4) != 0 && memcmp(a, none, 4) != 0;
}

bool connect_may_reach(struct slice address)
{
    static const uint8_t none[16] = {0}, loopback[16] = {[15] = 1},
                         mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint8_t a[16];
    int family = family_of(address, a);
    if (family == AF_INET)
        return may_reach_v4(a);
    if (family && memcmp(a, mapped, sizeof(mapped)) == 0)
        return may_reach_v4(a + sizeof(mapped));
    bool local = a[0] == 0xfe && (a[1] & 0xc0) == 0x80;
    return family && a[0] != 0xff && !local && memcmp(a, none, 16) != 0 &&
           memcmp(a, loopback, 16) != 0;
}
