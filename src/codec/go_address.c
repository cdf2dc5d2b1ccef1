#include "codec/go_address.h"

#include <stdio.h>

enum { V4_BYTES = 4, V6_BYTES = 16, GROUPS = 8 };

static bool fail(struct go_address_fault *ret_fault, const char *why, struct slice at)
{
    *ret_fault = (struct go_address_fault){why, at};
    return false;
}

static struct slice behind(struct slice text, size_t count)
{
    return slice_sub(text, count, text.len - count);
}

/* -- Reading -- */

static bool read_v4(struct slice text, uint8_t bytes[V4_BYTES], struct go_address_fault *ret_fault)
{
    unsigned value = 0;
    size_t field = 0, digits = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c >= '0' && c <= '9') {
            if (digits == 1 && value == 0)
                return fail(ret_fault, "IPv4 field has octet with leading zero", SLICE_EMPTY);
            value = value * 10 + (unsigned)(c - '0');
            digits++;
            if (value > 255)
                return fail(ret_fault, "IPv4 field has value >255", SLICE_EMPTY);
        } else if (c != '.') {
            return fail(ret_fault, "unexpected character", behind(text, i));
        } else if (i == 0 || i + 1 == text.len || text.ptr[i - 1] == '.') {
            return fail(ret_fault, "IPv4 field must have at least one digit", behind(text, i));
        } else if (field == V4_BYTES - 1) {
            return fail(ret_fault, "IPv4 address too long", SLICE_EMPTY);
        } else {
            bytes[field++] = (uint8_t)value;
            value = 0;
            digits = 0;
        }
    }
    if (field < V4_BYTES - 1)
        return fail(ret_fault, "IPv4 address too short", SLICE_EMPTY);
    bytes[field] = (uint8_t)value;
    return true;
}

static int hex_of(uint8_t c)
{
    uint8_t lower = c | 0x20;
    if (c >= '0' && c <= '9')
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The digits of one group; *ret_length is how many there are. */
static bool read_group(struct slice text, unsigned *ret_value, size_t *ret_length,
                       struct go_address_fault *ret_fault)
{
    unsigned value = 0;
    size_t length = 0;
    for (; length < text.len && hex_of(text.ptr[length]) >= 0; length++) {
        value = value << 4 | (unsigned)hex_of(text.ptr[length]);
        if (length > 3)
            return fail(ret_fault, "each group must have 4 or less digits", text);
    }
    if (!length)
        return fail(ret_fault, "each colon-separated field must have at least one digit", text);
    *ret_value = value;
    *ret_length = length;
    return true;
}

/* Where an address is read, and what has been read of it. */
struct reader {
    struct slice rest;
    uint8_t bytes[V6_BYTES];
    size_t count;
    size_t gap; /* where the :: is; SIZE_MAX: there is none */
};

/* The separator behind a group. */
static bool read_colon(struct reader *r, struct go_address_fault *ret_fault)
{
    if (r->rest.ptr[0] != ':')
        return fail(ret_fault, "unexpected character, want colon", r->rest);
    if (r->rest.len == 1)
        return fail(ret_fault, "colon must be followed by more characters", r->rest);
    r->rest = behind(r->rest, 1);
    if (r->rest.ptr[0] != ':')
        return true;
    if (r->gap != SIZE_MAX)
        return fail(ret_fault, "multiple :: in address", r->rest);
    r->gap = r->count;
    r->rest = behind(r->rest, 1);
    return true;
}

/* An IPv4 address at the end of an IPv6 address. */
static bool read_embedded(struct reader *r, struct go_address_fault *ret_fault)
{
    if (r->gap == SIZE_MAX && r->count != V6_BYTES - V4_BYTES)
        return fail(ret_fault,
                    "embedded IPv4 address must replace the final 2 fields of the address",
                    r->rest);
    if (r->count + V4_BYTES > V6_BYTES)
        return fail(ret_fault,
                    "too many hex fields to fit an embedded IPv4 at the end of the address",
                    r->rest);
    if (!read_v4(r->rest, r->bytes + r->count, ret_fault))
        return false;
    r->rest = SLICE_EMPTY;
    r->count += V4_BYTES;
    return true;
}

static bool read_groups(struct reader *r, struct go_address_fault *ret_fault)
{
    unsigned value;
    size_t length;
    while (r->count < V6_BYTES) {
        if (!read_group(r->rest, &value, &length, ret_fault))
            return false;
        if (length < r->rest.len && r->rest.ptr[length] == '.')
            return read_embedded(r, ret_fault);
        r->bytes[r->count++] = (uint8_t)(value >> 8);
        r->bytes[r->count++] = (uint8_t)value;
        r->rest = behind(r->rest, length);
        if (!r->rest.len)
            return true;
        if (!read_colon(r, ret_fault))
            return false;
        if (!r->rest.len) /* the :: is at the end */
            return true;
    }
    return true;
}

static bool read_v6(struct slice text, struct go_address *address,
                    struct go_address_fault *ret_fault)
{
    const uint8_t *percent = memchr(text.ptr, '%', text.len);
    struct reader r = {.rest = text, .gap = SIZE_MAX};
    if (percent) {
        r.rest = slice_sub(text, 0, (size_t)(percent - text.ptr));
        address->has_zone = true;
        if (r.rest.len + 1 == text.len)
            return fail(ret_fault, "zone must be a non-empty string", SLICE_EMPTY);
    }
    if (slice_has_prefix(r.rest, SLICE_LITERAL("::"))) {
        r.gap = 0;
        r.rest = behind(r.rest, 2);
        if (!r.rest.len)
            return true;
    }
    if (!read_groups(&r, ret_fault))
        return false;
    if (r.rest.len)
        return fail(ret_fault, "trailing garbage after address", r.rest);
    if (r.count < V6_BYTES && r.gap == SIZE_MAX)
        return fail(ret_fault, "address string too short", SLICE_EMPTY);
    if (r.count == V6_BYTES && r.gap != SIZE_MAX)
        return fail(ret_fault, "the :: must expand to at least one field of zeros", SLICE_EMPTY);
    size_t head = size_min(r.gap, r.count), tail = r.count - head;
    memcpy(address->bytes, r.bytes, head);
    memcpy(address->bytes + V6_BYTES - tail, r.bytes + head, tail);
    return true;
}

bool go_address_read(struct slice text, struct go_address *ret_address,
                     struct go_address_fault *ret_fault)
{
    struct go_address address = {0};
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '%')
            return fail(ret_fault, "missing IPv6 address", SLICE_EMPTY);
        if (text.ptr[i] != '.' && text.ptr[i] != ':')
            continue;
        address.is_v6 = text.ptr[i] == ':';
        bool valid = address.is_v6 ? read_v6(text, &address, ret_fault)
                                   : read_v4(text, address.bytes, ret_fault);
        if (valid)
            *ret_address = address;
        return valid;
    }
    return fail(ret_fault, "unable to parse IP", SLICE_EMPTY);
}

/* -- Writing -- */

bool go_address_is_mapped(const struct go_address *address)
{
    static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return address->is_v6 && memcmp(address->bytes, mapped, sizeof(mapped)) == 0;
}

static unsigned group_of(const struct go_address *address, size_t i)
{
    return (unsigned)address->bytes[2 * i] << 8 | address->bytes[2 * i + 1];
}

size_t go_address_write(const struct go_address *address, char to[GO_ADDRESS_BYTES])
{
    const uint8_t *b = address->bytes;
    size_t zeros = GROUPS, zero_count = 1, at = 0;
    if (!address->is_v6)
        return (size_t)snprintf(to, GO_ADDRESS_BYTES, "%d.%d.%d.%d", b[0], b[1], b[2], b[3]);
    /* The first of the longest runs of zeros is left out. */
    for (size_t i = 0; i < GROUPS; i++) {
        size_t end = i;
        while (end < GROUPS && !group_of(address, end))
            end++;
        if (end - i > zero_count) {
            zeros = i;
            zero_count = end - i;
        }
    }
    for (size_t i = 0; i < GROUPS; i++) {
        if (i == zeros) {
            at += (size_t)snprintf(to + at, GO_ADDRESS_BYTES - at, "::");
            i += zero_count - 1;
            continue;
        }
        const char *colon = at && to[at - 1] != ':' ? ":" : "";
        at += (size_t)snprintf(to + at, GO_ADDRESS_BYTES - at, "%s%x", colon, group_of(address, i));
    }
    return at;
}
