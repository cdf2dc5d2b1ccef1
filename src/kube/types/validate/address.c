#include "kube/types/validate/address.h"

#include <arpa/inet.h>
#include <string.h>

/* Copies the text without the leading zeros of the numbers of an IPv4 address. */
static bool strip_zeros(const char *from, char *to)
{
    const char *colon = strrchr(from, ':');
    const char *at = colon ? colon + 1 : from;
    bool begins = true, stripped = false;
    memcpy(to, from, (size_t)(at - from));
    to += at - from;
    for (; *at; at++) {
        if (begins && *at == '0' && at[1] >= '0' && at[1] <= '9') {
            stripped = true;
            continue;
        }
        begins = *at == '.';
        *to++ = *at;
    }
    *to = '\0';
    return stripped;
}

bool address_read(struct slice text, struct address *ret_address)
{
    char given[INET6_ADDRSTRLEN + 16], plain[INET6_ADDRSTRLEN + 16];
    struct address a = {0};
    if (!text.len || text.len >= sizeof(given) || memchr(text.ptr, '\0', text.len))
        return false;
    memcpy(given, text.ptr, text.len);
    given[text.len] = '\0';
    if (strchr(given, '.'))
        /* inet_pton refuses leading zeros. Kubernetes reads such an address and then reports its
         * zeros. */
        a.padded = strip_zeros(given, plain);
    else
        memcpy(plain, given, text.len + 1);
    int family = strchr(given, ':') ? AF_INET6 : AF_INET;
    if (inet_pton(family, plain, a.bytes) != 1)
        return false;
    a.len = family == AF_INET ? 4 : 16;
    struct in6_addr whole;
    memcpy(&whole, a.bytes, sizeof(whole));
    a.mapped = a.len == 16 && IN6_IS_ADDR_V4MAPPED(&whole);
    *ret_address = a;
    return true;
}

bool address_block_read(struct slice text, struct address_block *ret_block)
{
    struct address_block b = {0};
    const uint8_t *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    if (!slash || !address_read(slice_sub(text, 0, (size_t)(slash - text.ptr)), &b.first))
        return false;
    const uint8_t *end = text.ptr + text.len, *digit = slash + 1;
    b.padded = end - digit > 1 && *digit == '0';
    /* There are no digits, or so many that the number could overflow. */
    if (digit == end || end - digit > 8)
        return false;
    for (; digit < end; digit++) {
        if (*digit < '0' || *digit > '9')
            return false;
        b.bits = b.bits * 10 + (unsigned)(*digit - '0');
    }
    *ret_block = b;
    return b.bits <= b.first.len * 8U;
}

static bool bit(const struct address *a, unsigned at)
{
    return a->bytes[at / 8] >> (7 - at % 8) & 1;
}

bool address_block_is_masked(const struct address_block *block)
{
    for (unsigned at = block->bits; at < block->first.len * 8U; at++) {
        if (bit(&block->first, at))
            return false;
    }
    return true;
}

bool address_block_has(const struct address_block *block, const struct address *address)
{
    if (block->first.len != address->len)
        return false;
    for (unsigned at = 0; at < block->bits; at++) {
        if (bit(&block->first, at) != bit(address, at))
            return false;
    }
    return true;
}

static enum address_range range_of_v4(const uint8_t *b)
{
    static const uint8_t none[4];
    if (memcmp(b, none, 4) == 0)
        return ADDRESS_UNSPECIFIED;
    if (b[0] == 127)
        return ADDRESS_LOOPBACK;
    if (b[0] == 169 && b[1] == 254)
        return ADDRESS_LINK_LOCAL;
    return b[0] == 224 && b[1] == 0 && b[2] == 0 ? ADDRESS_LINK_LOCAL_MULTICAST : ADDRESS_ORDINARY;
}

enum address_range address_range(const struct address *address)
{
    static const uint8_t loopback[16] = {[15] = 1}, none[16];
    const uint8_t *b = address->bytes;
    if (address->len == 4)
        return range_of_v4(b);
    /* An IPv4 address in the notation of IPv6: its last four bytes decide. */
    if (address->mapped)
        return range_of_v4(b + 12);
    if (memcmp(b, none, 16) == 0)
        return ADDRESS_UNSPECIFIED;
    if (memcmp(b, loopback, 16) == 0)
        return ADDRESS_LOOPBACK;
    if (b[0] == 0xfe && (b[1] & 0xc0) == 0x80)
        return ADDRESS_LINK_LOCAL;
    return b[0] == 0xff && (b[1] & 0x0f) == 0x02 ? ADDRESS_LINK_LOCAL_MULTICAST : ADDRESS_ORDINARY;
}
