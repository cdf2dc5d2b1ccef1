#include "wire/h2/headers.h"

#include <stdlib.h>
#include <strings.h>

void h2_headers_ref(struct h2_headers *headers)
{
    headers->refs++;
}

void h2_headers_unref(struct h2_headers *headers)
{
    if (!headers)
        return;
    assert(headers->refs > 0);
    if (--headers->refs == 0)
        free(headers);
}

bool h2_headers_get(const struct h2_headers *headers, struct slice name, struct slice *ret_value)
{
    for (uint32_t i = 0; i < headers->count; i++) {
        if (slice_equal(headers->fields[i].name, name)) {
            *ret_value = headers->fields[i].value;
            return true;
        }
    }
    return false;
}

size_t h2_headers_count(const struct h2_headers *headers, struct slice name)
{
    size_t n = 0;
    for (uint32_t i = 0; i < headers->count; i++)
        n += slice_equal(headers->fields[i].name, name);
    return n;
}

/* The token characters of RFC 9110, without upper case, which HTTP/2 forbids. */
static const bool name_bytes[256] = {
    ['a' ... 'z'] = true, ['0' ... '9'] = true, ['!'] = true,  ['#'] = true, ['$'] = true,
    ['%'] = true,         ['&'] = true,         ['\''] = true, ['*'] = true, ['+'] = true,
    ['-'] = true,         ['.'] = true,         ['^'] = true,  ['_'] = true, ['`'] = true,
    ['|'] = true,         ['~'] = true,
};

static bool is_name(struct slice name)
{
    bool all = name.len > 0;
    for (size_t i = 0; i < name.len; i++)
        all &= name_bytes[name.ptr[i]];
    return all;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static bool is_value_byte(uint8_t c)
{
    return (c >= ' ' || c == '\t') && c != 0x7f;
}

/* Checks eight bytes at once: none is below a space, none is DEL. A tab is rare and takes the slow
 * path. */
static bool is_plain_word(const uint8_t *bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    uint64_t below_space = (word - ones * ' ') & ~word & highs;
    uint64_t not_del = word ^ (ones * 0x7f);
    uint64_t is_del = (not_del - ones) & ~not_del & highs;
    return (below_space | is_del) == 0;
}

static bool is_value(struct slice value)
{
    if (value.len && (is_blank(value.ptr[0]) || is_blank(value.ptr[value.len - 1])))
        return false;
    for (size_t i = 0; i < value.len;) {
        if (value.len - i >= 8 && is_plain_word(value.ptr + i)) {
            i += 8;
        } else if (!is_value_byte(value.ptr[i++])) {
            return false;
        }
    }
    return true;
}

/* The word may be written in upper case. */
static bool is_trailers(struct slice value)
{
    struct slice word = SLICE_LITERAL("trailers");
    return value.len == word.len &&
           strncasecmp((const char *)value.ptr, (const char *)word.ptr, word.len) == 0;
}

/* Fields that concern one connection have no meaning in HTTP/2 and are used for request smuggling.
 */
static bool is_forbidden(struct slice name, struct slice value)
{
    /* The length separates the names before any of them is compared, because this runs for every
     * field. */
    switch (name.len) {
    case 2:
        return slice_equal(name, SLICE_LITERAL("te")) && !is_trailers(value);
    case 7:
        return slice_equal(name, SLICE_LITERAL("upgrade"));
    case 10:
        return slice_equal(name, SLICE_LITERAL("connection")) ||
               slice_equal(name, SLICE_LITERAL("keep-alive"));
    case 16:
        return slice_equal(name, SLICE_LITERAL("proxy-connection"));
    case 17:
        return slice_equal(name, SLICE_LITERAL("transfer-encoding"));
    default:
        return false;
    }
}

static bool note_content_length(struct h2_headers *headers, struct slice value)
{
    uint64_t n;
    /* A second length is refused even if it is the same, since intermediaries differ in which one
     * they use. */
    if (headers->content_length >= 0 || !slice_decimal(value, &n))
        return false;
    headers->content_length = (int64_t)n;
    return true;
}

static bool check_regular(struct h2_headers *headers, const struct http_field *field)
{
    if (!is_name(field->name) || !is_value(field->value) || is_forbidden(field->name, field->value))
        return false;
    if (slice_equal(field->name, SLICE_LITERAL("content-length")))
        return note_content_length(headers, field->value);
    return true;
}

static struct slice *pseudo_place(struct h2_headers *headers, struct slice name)
{
    if (slice_equal(name, SLICE_LITERAL(":method")))
        return &headers->method;
    if (slice_equal(name, SLICE_LITERAL(":scheme")))
        return &headers->scheme;
    if (slice_equal(name, SLICE_LITERAL(":path")))
        return &headers->path;
    if (slice_equal(name, SLICE_LITERAL(":authority")))
        return &headers->authority;
    return NULL;
}

/* ":status" exactly once, of three digits. 101 does not exist in HTTP/2. */
static bool check_status(struct h2_headers *headers, const struct http_field *field)
{
    uint64_t status;
    if (headers->status || !slice_equal(field->name, SLICE_LITERAL(":status")) ||
        field->value.len != 3 || !slice_decimal(field->value, &status) || status < 100 ||
        status == 101)
        return false;
    headers->status = (uint32_t)status & 0x3ff;
    return true;
}

static bool check_pseudo(struct h2_headers *headers, const struct http_field *field)
{
    if (headers->kind == H2_RESPONSE)
        return check_status(headers, field);
    struct slice *place = pseudo_place(headers, field->name);
    /* An unknown pseudo-header, or one that was given twice, makes a request malformed (RFC 9113,
     * section 8.3). */
    if (!place || place->ptr || !is_value(field->value))
        return false;
    *place = field->value;
    return true;
}

static bool check_request_line(const struct h2_headers *headers)
{
    if (headers->method.len == 0)
        return false;
    /* CONNECT names only a host and port (RFC 9113, section 8.5). */
    if (slice_equal(headers->method, SLICE_LITERAL("CONNECT")))
        return !headers->scheme.ptr && !headers->path.ptr && headers->authority.len > 0;
    if (headers->scheme.len == 0 || headers->path.len == 0)
        return false;
    return headers->path.ptr[0] == '/' || (slice_equal(headers->path, SLICE_LITERAL("*")) &&
                                           slice_equal(headers->method, SLICE_LITERAL("OPTIONS")));
}

static bool check_fields(struct h2_headers *headers, bool pseudo_allowed)
{
    for (uint32_t i = 0; i < headers->count; i++) {
        const struct http_field *field = &headers->fields[i];
        if (field->name.len && field->name.ptr[0] == ':') {
            if (!pseudo_allowed || !check_pseudo(headers, field))
                return false;
            continue;
        }
        pseudo_allowed = false;
        if (!check_regular(headers, field))
            return false;
    }
    return true;
}

void h2_headers_check(struct h2_headers *headers, enum h2_headers_kind kind)
{
    headers->kind = kind & 3;
    bool trailers = kind == H2_REQUEST_TRAILERS || kind == H2_RESPONSE_TRAILERS;
    bool fine = check_fields(headers, !trailers);
    if (kind == H2_REQUEST)
        fine = fine && check_request_line(headers);
    else if (kind == H2_RESPONSE)
        fine = fine && headers->status;
    headers->malformed = !fine;
}
