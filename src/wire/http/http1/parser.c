#include "wire/http/http1/parser.h"

#include "wire/http/exchange_private.h"

static const struct slice crlf = {(const uint8_t *)"\r\n", 2};

size_t http1_head_length(struct slice bytes, size_t *from)
{
    size_t at = *from > 3 ? *from - 3 : 0;
    const uint8_t *found =
        bytes.len > at ? memmem(bytes.ptr + at, bytes.len - at, "\r\n\r\n", 4) : NULL;
    *from = bytes.len;
    return found ? (size_t)(found - bytes.ptr) + 4 : 0;
}

static bool is_token_byte(uint8_t c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return true;
    return c != 0 && strchr("!#$%&'*+-.^_`|~", c);
}

static bool is_token(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_token_byte(s.ptr[i]))
            return false;
    }
    return s.len > 0;
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

/* Removes the bytes before the separator, and the separator, from the front. */
static bool cut(struct slice *bytes, struct slice separator, struct slice *ret_part)
{
    const uint8_t *at =
        bytes->len ? memmem(bytes->ptr, bytes->len, separator.ptr, separator.len) : NULL;
    if (!at)
        return false;
    size_t n = (size_t)(at - bytes->ptr);
    *ret_part = slice_sub(*bytes, 0, n);
    *bytes = slice_sub(*bytes, n + separator.len, bytes->len - n - separator.len);
    return true;
}

static bool is_visible(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] <= ' ' || s.ptr[i] >= 0x7f)
            return false;
    }
    return s.len > 0;
}

static bool is_field_value(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((s.ptr[i] < ' ' && s.ptr[i] != '\t') || s.ptr[i] == 0x7f)
            return false;
    }
    return true;
}

/* Origin form, "*" for OPTIONS, or an absolute http URL as for a proxy. */
static bool split_target(struct http_request *r)
{
    struct slice rest = r->target, scheme;
    if (slice_equal(rest, SLICE_LITERAL("*"))) {
        r->path = rest;
        return slice_equal(r->method, SLICE_LITERAL("OPTIONS"));
    }
    if (rest.ptr[0] != '/') {
        if (!cut(&rest, SLICE_LITERAL("://"), &scheme) ||
            !(http_name_equal(scheme, SLICE_LITERAL("http")) ||
              http_name_equal(scheme, SLICE_LITERAL("https"))))
            return false;
        const uint8_t *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
        rest = slash ? slice_of(slash, rest.len - (size_t)(slash - rest.ptr)) : SLICE_LITERAL("/");
    }
    http_split_target(rest, r);
    return true;
}

static unsigned parse_request_line(struct slice line, struct http_request *r)
{
    if (!cut(&line, SLICE_LITERAL(" "), &r->method) || !is_token(r->method) ||
        !cut(&line, SLICE_LITERAL(" "), &r->target) || !is_visible(r->target))
        return 400;
    if (line.len != 8 || !slice_has_prefix(line, SLICE_LITERAL("HTTP/")))
        return 400;
    if (slice_equal(line, SLICE_LITERAL("HTTP/1.1")))
        r->minor = 1;
    else if (slice_equal(line, SLICE_LITERAL("HTTP/1.0")))
        r->minor = 0;
    else
        return 505;
    return split_target(r) ? 0 : 400;
}

/* Whether a comma-separated list contains the word. */
static bool list_holds(struct slice list, struct slice word)
{
    struct slice item;
    while (cut(&list, SLICE_LITERAL(","), &item)) {
        if (http_name_equal(slice_trim(item), word))
            return true;
    }
    return http_name_equal(slice_trim(list), word);
}

/* How often each of the fields that frame the message occurs. */
struct framing {
    unsigned lengths, encodings, hosts;
};

static unsigned note_field(struct http1_head *head, const struct http_field *field,
                           struct framing *seen)
{
    struct http_request *r = &head->request;
    if (http_name_equal(field->name, SLICE_LITERAL("content-length"))) {
        seen->lengths++;
        return slice_decimal(field->value, &head->content_length) ? 0 : 400;
    }
    if (http_name_equal(field->name, SLICE_LITERAL("transfer-encoding"))) {
        seen->encodings++;
        head->chunked = http_name_equal(field->value, SLICE_LITERAL("chunked"));
        return head->chunked ? 0 : 501;
    }
    if (http_name_equal(field->name, SLICE_LITERAL("host"))) {
        seen->hosts++;
        r->host = field->value;
    } else if (http_name_equal(field->name, SLICE_LITERAL("connection"))) {
        if (list_holds(field->value, SLICE_LITERAL("close")))
            r->keep_alive = false;
        else if (r->minor == 0 && list_holds(field->value, SLICE_LITERAL("keep-alive")))
            r->keep_alive = true;
    } else if (r->minor == 1 && http_name_equal(field->name, SLICE_LITERAL("expect"))) {
        head->expects_continue = http_name_equal(field->value, SLICE_LITERAL("100-continue"));
        return head->expects_continue ? 0 : 417;
    }
    return 0;
}

static unsigned check_framing(const struct http1_head *head, const struct framing *seen)
{
    if (seen->lengths > 1 || seen->encodings > 1 || (seen->lengths && seen->encodings))
        return 400;
    if (head->request.minor == 1 ? seen->hosts != 1 : seen->hosts > 1)
        return 400;
    if (head->request.minor == 0 && seen->encodings)
        return 400;
    return 0;
}

static bool parse_field(struct slice line, struct http_field *field)
{
    if (!cut(&line, SLICE_LITERAL(":"), &field->name) || !is_token(field->name))
        return false;
    field->value = slice_trim(line);
    return is_field_value(field->value);
}

unsigned http1_head_parse(struct slice bytes, size_t fields_max, struct http1_head *head)
{
    struct slice line;
    struct framing seen = {0};
    struct http_request *r = &head->request;
    *r = (struct http_request){.fields = head->fields, .major = 1};
    head->content_length = 0;
    head->chunked = head->expects_continue = false;
    if (!cut(&bytes, crlf, &line))
        return 400;
    unsigned fault = parse_request_line(line, r);
    r->keep_alive = r->minor == 1;
    while (!fault && cut(&bytes, crlf, &line) && line.len) {
        if (r->field_count >= size_min(fields_max, HTTP1_FIELDS_MAX))
            return 431;
        struct http_field *field = &head->fields[r->field_count++];
        fault = parse_field(line, field) ? note_field(head, field, &seen) : 400;
    }
    if (!fault && bytes.len)
        fault = 400;
    return fault ? fault : check_framing(head, &seen);
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool http1_chunk_size(struct slice line, size_t *ret_size)
{
    size_t size = 0, i = 0;
    for (; i < line.len && hex_digit(line.ptr[i]) >= 0; i++) {
        if (i >= 8)
            return false;
        size = size * 16 + (size_t)hex_digit(line.ptr[i]);
    }
    if (i == 0 || (i < line.len && line.ptr[i] != ';') || !is_field_value(line))
        return false;
    *ret_size = size;
    return true;
}
