#include "cel/library/address.h"

#include "cel/check/function.h"
#include "codec/go_address.h"

#include <stdio.h>

struct ip {
    struct cel_opaque opaque;
    struct go_address address;
};

struct cidr {
    struct cel_opaque opaque;
    struct go_address address;
    int bits;
};

static bool addresses_equal(const struct go_address *a, const struct go_address *b)
{
    return a->is_v6 == b->is_v6 && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static int bits_of(const struct go_address *address)
{
    return address->is_v6 ? 128 : 32;
}

static struct cel_value of_text(struct cel_work *work, const char *text, size_t length)
{
    struct slice copy;
    if (arena_dup(work->arena, slice_of(text, length), &copy) != ST_OK)
        return CEL_NO_MEMORY;
    return cel_of_string(copy);
}

/* -- The types -- */

static bool ips_equal(struct cel_work *work, const struct cel_opaque *a, const struct cel_opaque *b,
                      bool *ret_equal)
{
    (void)work;
    if (a->ops != b->ops)
        return false;
    *ret_equal =
        addresses_equal(&((const struct ip *)a)->address, &((const struct ip *)b)->address);
    return true;
}

static uint64_t ip_size(const struct cel_opaque *opaque)
{
    return (uint64_t)bits_of(&((const struct ip *)opaque)->address) / 8;
}

static struct cel_value ip_to_string(struct cel_work *work, const struct cel_opaque *opaque)
{
    char text[GO_ADDRESS_BYTES];
    return of_text(work, text, go_address_write(&((const struct ip *)opaque)->address, text));
}

static const struct cel_opaque_ops ip_ops = {.type = &cel_type_NET_IP,
                                             .go_type = "cel.IP",
                                             .equal = ips_equal,
                                             .to_string = ip_to_string,
                                             .size = ip_size};

static bool cidrs_equal(struct cel_work *work, const struct cel_opaque *a,
                        const struct cel_opaque *b, bool *ret_equal)
{
    const struct cidr *x = (const struct cidr *)a, *y = (const struct cidr *)b;
    (void)work;
    if (a->ops != b->ops)
        return false;
    *ret_equal = x->bits == y->bits && addresses_equal(&x->address, &y->address);
    return true;
}

static uint64_t cidr_size(const struct cel_opaque *opaque)
{
    return ((uint64_t)((const struct cidr *)opaque)->bits + 7) / 8;
}

static struct cel_value cidr_to_string(struct cel_work *work, const struct cel_opaque *opaque)
{
    const struct cidr *cidr = (const struct cidr *)opaque;
    char text[GO_ADDRESS_BYTES + 8];
    size_t length = go_address_write(&cidr->address, text);
    length += (size_t)snprintf(text + length, sizeof(text) - length, "/%d", cidr->bits);
    return of_text(work, text, length);
}

static const struct cel_opaque_ops cidr_ops = {.type = &cel_type_NET_CIDR,
                                               .go_type = "cel.CIDR",
                                               .equal = cidrs_equal,
                                               .to_string = cidr_to_string,
                                               .size = cidr_size};

static const struct go_address *as_ip(struct cel_value value)
{
    return cel_is_opaque(value, &ip_ops) ? &((const struct ip *)value.opaque)->address : NULL;
}

static const struct cidr *as_cidr(struct cel_value value)
{
    return cel_is_opaque(value, &cidr_ops) ? (const struct cidr *)value.opaque : NULL;
}

static struct cel_value of_ip(struct cel_work *work, const struct go_address *address)
{
    struct ip *ip = arena_alloc(work->arena, sizeof(*ip));
    if (!ip)
        return CEL_NO_MEMORY;
    *ip = (struct ip){{&ip_ops}, *address};
    return cel_of_opaque(&ip->opaque);
}

static struct cel_value of_cidr(struct cel_work *work, const struct go_address *address, int bits)
{
    struct cidr *cidr = arena_alloc(work->arena, sizeof(*cidr));
    if (!cidr)
        return CEL_NO_MEMORY;
    *cidr = (struct cidr){{&cidr_ops}, *address, bits};
    return cel_of_opaque(&cidr->opaque);
}

/* -- Reading -- */

/* "ParseAddr(\"1.2.3\"): IPv4 address too short" */
static struct cel_value explain(struct cel_work *work, struct slice text,
                                const struct go_address_fault *fault)
{
    const char *quoted = cel_quoted(work, text);
    if (!fault->at.len)
        return cel_of_error_format(work, "ParseAddr(%s): %s", quoted, fault->why);
    return cel_of_error_format(work, "ParseAddr(%s): %s (at %s)", quoted, fault->why,
                               cel_quoted(work, fault->at));
}

static struct cel_value read_ip(struct cel_work *work, struct slice text)
{
    struct go_address address;
    struct go_address_fault fault;
    work->steps_left -= (int64_t)(text.len / 64);
    if (!go_address_read(text, &address, &fault)) {
        struct cel_value why = explain(work, text, &fault);
        return cel_of_error_format(work,
                                   "IP Address %s parse error during conversion from string: %.*s",
                                   cel_quoted(work, text), SLICE_ARGS(cel_text(why)));
    }
    if (address.has_zone)
        return cel_of_error_format(work, "IP address %s with zone value is not allowed",
                                   cel_quoted(work, text));
    if (go_address_is_mapped(&address))
        return cel_of_error_format(work, "IPv4-mapped IPv6 address %s is not allowed",
                                   cel_quoted(work, text));
    return of_ip(work, &address);
}

/* The number behind the slash, without sign and leading zeros; -1: it is not one. */
static int read_bits(struct slice text)
{
    int bits = 0;
    if (!text.len || (text.len > 1 && text.ptr[0] == '0'))
        return -1;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return -1;
        bits = bits > 1000 ? bits : bits * 10 + (text.ptr[i] - '0');
    }
    /* A Go int has at most 64 bits. */
    return text.len > 19 ||
                   (text.len == 19 && slice_compare(text, SLICE_LITERAL("9223372036854775807")) > 0)
               ? -1
               : bits;
}

#define CIDR_ERROR                                                \
    "network address parse error during conversion from string: " \
    "network address parse error during conversion from string: netip.ParsePrefix(%s): "

static struct cel_value read_cidr(struct cel_work *work, struct slice text)
{
    struct go_address address;
    struct go_address_fault fault;
    const uint8_t *slash = text.len ? memrchr(text.ptr, '/', text.len) : NULL;
    work->steps_left -= (int64_t)(text.len / 64);
    if (!slash)
        return cel_of_error_format(work, CIDR_ERROR "no '/'", cel_quoted(work, text));
    struct slice before = slice_sub(text, 0, (size_t)(slash - text.ptr));
    struct slice behind = slice_sub(text, before.len + 1, text.len - before.len - 1);
    if (!go_address_read(before, &address, &fault)) {
        struct cel_value why = explain(work, before, &fault);
        return cel_of_error_format(work, CIDR_ERROR "%.*s", cel_quoted(work, text),
                                   SLICE_ARGS(cel_text(why)));
    }
    if (address.has_zone)
        return cel_of_error_format(work, CIDR_ERROR "IPv6 zones cannot be present in a prefix",
                                   cel_quoted(work, text));
    int bits = read_bits(behind);
    if (bits < 0)
        return cel_of_error_format(work, CIDR_ERROR "bad bits after slash: %s",
                                   cel_quoted(work, text), cel_quoted(work, behind));
    if (bits > bits_of(&address))
        return cel_of_error_format(work, CIDR_ERROR "prefix length out of range",
                                   cel_quoted(work, text));
    if (go_address_is_mapped(&address))
        return cel_of_error_format(work,
                                   "network address parse error during conversion from string: "
                                   "IPv4-mapped IPv6 address %s is not allowed",
                                   cel_quoted(work, text));
    return of_cidr(work, &address, bits);
}

/* ip("10.0.0.1"), or cidr("10.0.0.0/8").ip() */
static struct cel_value to_ip(struct cel_work *work, const struct cel_value *args)
{
    const struct cidr *cidr = as_cidr(args[0]);
    if (cidr)
        return of_ip(work, &cidr->address);
    return args[0].kind == CEL_STRING ? read_ip(work, cel_text(args[0])) : CEL_NO_OVERLOAD;
}

static struct cel_value to_cidr(struct cel_work *work, const struct cel_value *args)
{
    return args[0].kind == CEL_STRING ? read_cidr(work, cel_text(args[0])) : CEL_NO_OVERLOAD;
}

static struct cel_value is_ip(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    return cel_of_bool(!cel_is_error(read_ip(work, cel_text(args[0]))));
}

static struct cel_value is_cidr(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    return cel_of_bool(!cel_is_error(read_cidr(work, cel_text(args[0]))));
}

static struct cel_value is_canonical(struct cel_work *work, const struct cel_value *args)
{
    char text[GO_ADDRESS_BYTES];
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    struct cel_value ip = read_ip(work, cel_text(args[0]));
    if (cel_is_error(ip))
        return ip;
    go_address_write(as_ip(ip), text);
    return cel_of_bool(slice_equal(slice_from_text(text), cel_text(args[0])));
}

/* -- Addresses -- */

static bool is_filled_with(const struct go_address *address, uint8_t byte)
{
    for (int i = 0; i < bits_of(address) / 8; i++)
        if (address->bytes[i] != byte)
            return false;
    return true;
}

static bool ip_is_loopback(const struct go_address *address)
{
    static const uint8_t loopback[16] = {[15] = 1};
    return address->is_v6 ? memcmp(address->bytes, loopback, sizeof(loopback)) == 0
                          : address->bytes[0] == 127;
}

static bool ip_is_link_local_unicast(const struct go_address *address)
{
    const uint8_t *b = address->bytes;
    return address->is_v6 ? b[0] == 0xfe && (b[1] & 0xc0) == 0x80 : b[0] == 169 && b[1] == 254;
}

static bool ip_is_link_local_multicast(const struct go_address *address)
{
    const uint8_t *b = address->bytes;
    return address->is_v6 ? b[0] == 0xff && (b[1] & 0x0f) == 2
                          : b[0] == 224 && b[1] == 0 && b[2] == 0;
}

static bool ip_is_unspecified(const struct go_address *address)
{
    return is_filled_with(address, 0);
}

static bool ip_is_global_unicast(const struct go_address *address)
{
    bool is_multicast =
        address->is_v6 ? address->bytes[0] == 0xff : (address->bytes[0] & 0xf0) == 0xe0;
    bool is_broadcast = !address->is_v6 && is_filled_with(address, 0xff);
    return !is_filled_with(address, 0) && !is_broadcast && !is_multicast &&
           !ip_is_loopback(address) && !ip_is_link_local_unicast(address);
}

static struct cel_value family(struct cel_work *work, const struct cel_value *args)
{
    const struct go_address *address = as_ip(args[0]);
    (void)work;
    return address ? cel_of_int(address->is_v6 ? 6 : 4) : CEL_NO_OVERLOAD;
}

#define PREDICATE(name)                                                               \
    static struct cel_value name(struct cel_work *work, const struct cel_value *args) \
    {                                                                                 \
        const struct go_address *address = as_ip(args[0]);                            \
        (void)work;                                                                   \
        return address ? cel_of_bool(ip_##name(address)) : CEL_NO_OVERLOAD;           \
    }

PREDICATE(is_unspecified)
PREDICATE(is_loopback)
PREDICATE(is_link_local_multicast)
PREDICATE(is_link_local_unicast)
PREDICATE(is_global_unicast)

/* -- Networks -- */

/* Whether two addresses of one family begin with the same bits. */
static bool have_prefix(const struct go_address *a, const struct go_address *b, int bits)
{
    int bytes = bits / 8, rest = bits % 8;
    return memcmp(a->bytes, b->bytes, (size_t)bytes) == 0 &&
           (!rest || ((a->bytes[bytes] ^ b->bytes[bytes]) >> (8 - rest)) == 0);
}

static struct cel_value contains_ip(struct cel_work *work, const struct cel_value *args)
{
    const struct cidr *cidr = as_cidr(args[0]);
    struct cel_value other = args[1];
    if (!cidr || (other.kind != CEL_STRING && !as_ip(other)))
        return CEL_NO_OVERLOAD;
    if (other.kind == CEL_STRING)
        other = read_ip(work, cel_text(other));
    /* Kubernetes loses the reason why the text is not an address. */
    const struct go_address *ip = as_ip(other);
    if (!ip)
        return CEL_FAIL("no such overload");
    return cel_of_bool(ip->is_v6 == cidr->address.is_v6 &&
                       have_prefix(&cidr->address, ip, cidr->bits));
}

static struct cel_value contains_cidr(struct cel_work *work, const struct cel_value *args)
{
    const struct cidr *cidr = as_cidr(args[0]);
    struct cel_value other = args[1];
    if (!cidr || (other.kind != CEL_STRING && !as_cidr(other)))
        return CEL_NO_OVERLOAD;
    if (other.kind == CEL_STRING)
        other = read_cidr(work, cel_text(other));
    if (cel_is_error(other))
        return other;
    const struct cidr *inner = as_cidr(other);
    return cel_of_bool(inner->address.is_v6 == cidr->address.is_v6 && cidr->bits <= inner->bits &&
                       have_prefix(&cidr->address, &inner->address, cidr->bits));
}

static struct cel_value prefix_length(struct cel_work *work, const struct cel_value *args)
{
    const struct cidr *cidr = as_cidr(args[0]);
    (void)work;
    return cidr ? cel_of_int(cidr->bits) : CEL_NO_OVERLOAD;
}

static struct cel_value masked(struct cel_work *work, const struct cel_value *args)
{
    const struct cidr *cidr = as_cidr(args[0]);
    if (!cidr)
        return CEL_NO_OVERLOAD;
    struct go_address address = cidr->address;
    for (int i = cidr->bits; i < bits_of(&address); i++)
        address.bytes[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
    return of_cidr(work, &address, cidr->bits);
}

/* -- Cost -- */

static uint64_t cost_of_ip(struct cel_work *work, const struct cel_called *call)
{
    return call->overload == CEL_OVERLOAD_CIDR_IP ? 1 : cel_cost_of_text(work, call);
}

static uint64_t cost_twice(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    bool has_size = call->args[0].kind != CEL_OPTIONAL;
    return cel_cost_traversal(2 * (has_size ? cel_cost_size(call->args[0]) : 1));
}

static uint64_t cost_of_contains(struct cel_work *work, const struct cel_called *call)
{
    uint64_t cost = cost_twice(work, call);
    bool reads = call->overload == CEL_OVERLOAD_CIDR_CONTAINS_IP_STRING ||
                 call->overload == CEL_OVERLOAD_CIDR_CONTAINS_CIDR_STRING;
    return reads ? cost + cel_cost_traversal(cel_cost_size(call->args[1])) : cost;
}

static uint64_t cost_of_contains_cidr(struct cel_work *work, const struct cel_called *call)
{
    return cost_of_contains(work, call) + cel_cost_of_text(work, call) + 1;
}

static const struct cel_builtin rows[] = {
    {"ip", 1, to_ip, true, 0, cost_of_ip},
    {"cidr", 1, to_cidr, true, 0, cel_cost_of_text},
    {"isIP", 1, is_ip, true, 0, cel_cost_of_text},
    {"isCIDR", 1, is_cidr, true, 0, cel_cost_of_text},
    {"ip.isCanonical", 1, is_canonical, true, 0, cost_twice},
    {"family", 1, family, true, 0, NULL},
    {"isUnspecified", 1, is_unspecified, true, 0, NULL},
    {"isLoopback", 1, is_loopback, true, 0, NULL},
    {"isLinkLocalMulticast", 1, is_link_local_multicast, true, 0, NULL},
    {"isLinkLocalUnicast", 1, is_link_local_unicast, true, 0, NULL},
    {"isGlobalUnicast", 1, is_global_unicast, true, 0, NULL},
    {"containsIP", 2, contains_ip, true, 0, cost_of_contains},
    {"containsCIDR", 2, contains_cidr, true, 0, cost_of_contains_cidr},
    {"prefixLength", 1, prefix_length, true, 0, NULL},
    {"masked", 1, masked, true, 0, NULL},
};

const struct cel_library cel_addresses = CEL_LIBRARY(rows);
