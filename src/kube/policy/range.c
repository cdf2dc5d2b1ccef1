#include "kube/policy/range.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { BITS_V4 = 32, BITS_V6 = 128, HOST_BITS_MAX = 32 };

bool kube_address_parse(struct slice text, struct kube_address *ret_address)
{
    char copy[KUBE_ADDRESS_TEXT_BYTES];
    struct kube_address address = {0};
    if (text.len >= sizeof(copy))
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    address.is_v6 = strchr(copy, ':');
    if (inet_pton(address.is_v6 ? AF_INET6 : AF_INET, copy, address.bytes) != 1)
        return false;
    *ret_address = address;
    return true;
}

void kube_address_format(const struct kube_address *address, char text[KUBE_ADDRESS_TEXT_BYTES])
{
    const char *made = inet_ntop(address->is_v6 ? AF_INET6 : AF_INET, address->bytes, text,
                                 KUBE_ADDRESS_TEXT_BYTES);
    assert(made);
    (void)made;
}

void kube_range_format(const struct kube_range *range, char text[KUBE_RANGE_TEXT_BYTES])
{
    char address[KUBE_ADDRESS_TEXT_BYTES];
    kube_address_format(&range->base, address);
    snprintf(text, KUBE_RANGE_TEXT_BYTES, "%s/%u", address, range->prefix_bits);
}

static unsigned bits_of(const struct kube_address *address)
{
    return address->is_v6 ? BITS_V6 : BITS_V4;
}

static void clear_hosts(struct kube_address *address, unsigned prefix_bits)
{
    for (unsigned bit = prefix_bits; bit < bits_of(address); bit++)
        address->bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
}

/* At most three digits. */
static bool parse_bits(struct slice text, unsigned *ret_bits)
{
    unsigned bits = 0;
    if (!text.len || text.len > 3)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        bits = bits * 10 + (unsigned)(text.ptr[i] - '0');
    }
    *ret_bits = bits;
    return true;
}

enum status kube_range_parse(struct slice text, struct kube_range *ret_range, struct error *error)
{
    struct kube_range range;
    const uint8_t *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    size_t len = slash ? (size_t)(slash - text.ptr) : 0;
    if (!slash || !kube_address_parse(slice_sub(text, 0, len), &range.base) ||
        !parse_bits(slice_sub(text, len + 1, text.len - len - 1), &range.prefix_bits) ||
        range.prefix_bits > bits_of(&range.base))
        return error_set(error, ST_INVALID, "\"%.*s\" is not a range such as 10.0.0.0/24",
                         (int)size_min(text.len, 100), text.ptr);
    clear_hosts(&range.base, range.prefix_bits);
    /* The network's own address and, for IPv4, the broadcast address cannot be used. */
    unsigned host_bits = bits_of(&range.base) - range.prefix_bits;
    uint64_t all =
        host_bits >= HOST_BITS_MAX ? UINT64_C(1) << HOST_BITS_MAX : UINT64_C(1) << host_bits;
    uint64_t unused = range.base.is_v6 ? 1 : 2;
    range.size = all > unused ? all - unused : 0;
    if (!range.size)
        return error_set(error, ST_INVALID, "the range \"%.*s\" has no usable address",
                         (int)size_min(text.len, 100), text.ptr);
    *ret_range = range;
    return ST_OK;
}

struct kube_address kube_range_at(const struct kube_range *range, uint64_t number)
{
    assert(number < range->size);
    struct kube_address address = range->base;
    uint64_t host = number + 1;
    for (unsigned i = bits_of(&address) / 8; host; host >>= 8)
        address.bytes[--i] |= (uint8_t)host;
    return address;
}

bool kube_range_has(const struct kube_range *range, const struct kube_address *address)
{
    struct kube_address base = *address, last;
    if (address->is_v6 != range->base.is_v6)
        return false;
    clear_hosts(&base, range->prefix_bits);
    if (memcmp(base.bytes, range->base.bytes, KUBE_ADDRESS_BYTES) != 0)
        return false;
    last = kube_range_at(range, range->size - 1);
    return memcmp(address->bytes, range->base.bytes, KUBE_ADDRESS_BYTES) > 0 &&
           memcmp(address->bytes, last.bytes, KUBE_ADDRESS_BYTES) <= 0;
}
