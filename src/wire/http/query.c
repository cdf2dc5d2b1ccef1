#include "wire/http/query.h"

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool decode(struct slice text, bool plus_is_space, uint8_t *dst, size_t *ret_len)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex_digit(text.ptr[i + 1]) : -1;
            int low = i + 2 < text.len ? hex_digit(text.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (uint8_t)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        dst[n++] = c;
    }
    *ret_len = n;
    return true;
}

bool http_path_decode(struct slice path, uint8_t *dst, size_t *ret_len)
{
    return decode(path, false, dst, ret_len);
}

static struct slice cut_pair(struct slice *rest)
{
    const uint8_t *end = memchr(rest->ptr, '&', rest->len);
    size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
    struct slice pair = slice_sub(*rest, 0, len);
    size_t used = size_min(len + 1, rest->len);
    *rest = slice_sub(*rest, used, rest->len - used);
    return pair;
}

/* dst has room for as many bytes as the pair. */
static bool decode_pair(struct slice pair, uint8_t *dst, struct http_field *ret_pair)
{
    /* Go skips pairs with a semicolon, which some proxies take for a separator. */
    if (pair.len == 0 || memchr(pair.ptr, ';', pair.len))
        return false;
    const uint8_t *equals = memchr(pair.ptr, '=', pair.len);
    size_t name_len = equals ? (size_t)(equals - pair.ptr) : pair.len;
    struct slice value =
        equals ? slice_sub(pair, name_len + 1, pair.len - name_len - 1) : SLICE_EMPTY;
    size_t n, v;
    if (!decode(slice_sub(pair, 0, name_len), true, dst, &n) || !decode(value, true, dst + n, &v))
        return false;
    *ret_pair = (struct http_field){slice_of(dst, n), slice_of(dst + n, v)};
    return true;
}

bool http_query_next(struct slice *rest, struct buf *scratch, struct http_field *ret_pair)
{
    while (rest->len) {
        struct slice pair = cut_pair(rest);
        buf_reset(scratch, SIZE_MAX);
        assert(scratch->capacity > pair.len);
        /* A pair that cannot be decoded is skipped, as in Go. */
        if (decode_pair(pair, scratch->ptr, ret_pair))
            return true;
    }
    return false;
}

bool http_query_get(struct slice query, struct slice name, struct buf *scratch,
                    struct slice *ret_value)
{
    struct http_field pair;
    while (http_query_next(&query, scratch, &pair)) {
        if (slice_equal(pair.name, name)) {
            *ret_value = pair.value;
            return true;
        }
    }
    return false;
}

static bool is_unreserved(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

enum status http_escape_append(struct buf *to, struct slice text, const char *kept)
{
    static const char digits[] = "0123456789ABCDEF";
    TRY(buf_reserve(to, 3 * text.len));
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (is_unreserved(c) || (c && strchr(kept, c))) {
            to->ptr[to->len++] = c;
        } else {
            to->ptr[to->len++] = '%';
            to->ptr[to->len++] = (uint8_t)digits[c >> 4];
            to->ptr[to->len++] = (uint8_t)digits[c & 15];
        }
    }
    return ST_OK;
}
