/* Borrowed bytes: a pointer and a length. Never freed through a slice; the lender says how long it
 * is valid. */
#ifndef VIGIL_BASE_SLICE_H
#define VIGIL_BASE_SLICE_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const uint8_t *ptr; /* may be NULL when len is 0 */
    size_t len;
};

#define SLICE_EMPTY ((struct slice){NULL, 0})
#define SLICE_LITERAL(text) ((struct slice){(const uint8_t *)("" text), sizeof(text) - 1})
/* For printf: "%.*s". */
#define SLICE_ARGS(s) (int)(s).len, (const char *)(s).ptr

static inline struct slice slice_of(const void *ptr, size_t len)
{
    return (struct slice){ptr, len};
}

static inline struct slice slice_from_text(const char *text)
{
    return (struct slice){(const uint8_t *)text, strlen(text)};
}

/* Bytes [from, from + len) of s, which must contain them. */
static inline struct slice slice_sub(struct slice s, size_t from, size_t len)
{
    assert(from <= s.len);
    assert(len <= s.len - from);
    return (struct slice){s.ptr ? s.ptr + from : NULL, len};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool slice_is(struct slice s, const char *text)
{
    return slice_equal(s, slice_from_text(text));
}

/* Byte order, as etcd sorts keys: negative, zero or positive. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t common = size_min(a.len, b.len);
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;
    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

static inline bool slice_has_prefix(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && slice_equal(slice_sub(s, 0, prefix.len), prefix);
}

static inline bool slice_has_suffix(struct slice s, struct slice suffix)
{
    return s.len >= suffix.len && slice_equal(slice_sub(s, s.len - suffix.len, suffix.len), suffix);
}

/* Without spaces and tabs at both ends. */
static inline struct slice slice_trim(struct slice s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s = slice_sub(s, 1, s.len - 1);
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* The part before the separator, or all; *rest becomes the part behind it. */
static inline struct slice slice_cut(struct slice *rest, char separator)
{
    const uint8_t *at = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    size_t len = at ? (size_t)(at - rest->ptr) : rest->len;
    struct slice part = slice_sub(*rest, 0, len);
    size_t skip = at ? len + 1 : len;
    *rest = slice_sub(*rest, skip, rest->len - skip);
    return part;
}

/* True: s consists of 1 to 18 digits. */
static inline bool slice_decimal(struct slice s, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (s.len == 0 || s.len > 18)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(s.ptr[i] - '0');
    }
    *ret_number = number;
    return true;
}

static inline void slice_copy(void *to, struct slice from)
{
    if (from.len)
        memcpy(to, from.ptr, from.len);
}

#endif
