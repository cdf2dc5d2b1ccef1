#include "wire/http/http1/parser.h"

#include "wire/http/exchange_private.h"

static const struct slice crlf = {(const uint8_t *)"\r\n", 2};

size_t http1_head_length(struct slice bytes, size_t *from)
{
    /* The end may have begun in the last three bytes of what was searched before. */
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

bool http1_is_token(struct slice s)
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

bool http1_is_target(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] <= ' ' || s.ptr[i] >= 0x7f)
            return false;
    }
    return s.len > 0;
}

bool http1_is_field_value(struct slice s)
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
    if (!cut(&line, SLICE_LITERAL(" "), &r->method) || !http1_is_token(r->method) ||
        !cut(&line, SLICE_LITERAL(" "), &r->target) || !http1_is_target(r->target))
        return 400;
    /* The form is right, but the version may still be one that we do not speak. */
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

/* What the fields of a message say about its framing, and how often they do. */
struct framing {
    unsigned lengths, encodings, hosts;
    size_t content_length;
    bool chunked;
    bool keep_alive;
    bool upgrades; /* the connection, to the protocol of another field */
};

/* 0, or the status to refuse the message with. minor: of its version. */
static unsigned note_framing(const struct http_field *field, uint8_t minor, struct framing *f)
{
    if (http_name_equal(field->name, SLICE_LITERAL("content-length"))) {
        f->lengths++;
        return slice_decimal(field->value, &f->content_length) ? 0 : 400;
    }
    if (http_name_equal(field->name, SLICE_LITERAL("transfer-encoding"))) {
        f->encodings++;
        f->chunked = http_name_equal(field->value, SLICE_LITERAL("chunked"));
        return f->chunked ? 0 : 501;
    }
    if (http_name_equal(field->name, SLICE_LITERAL("connection"))) {
        /* "close" wins if both are given (RFC 9112, section 9.3). */
        if (list_holds(field->value, SLICE_LITERAL("close")))
            f->keep_alive = false;
        else if (minor == 0 && list_holds(field->value, SLICE_LITERAL("keep-alive")))
            f->keep_alive = true;
        f->upgrades = f->upgrades || list_holds(field->value, SLICE_LITERAL("upgrade"));
    }
    return 0;
}

static unsigned note_request_field(struct http1_head *head, const struct http_field *field,
                                   struct framing *f)
{
    struct http_request *r = &head->request;
    if (http_name_equal(field->name, SLICE_LITERAL("host"))) {
        f->hosts++;
        r->host = field->value;
    } else if (r->minor == 1 && http_name_equal(field->name, SLICE_LITERAL("expect"))) {
        /* HTTP/1.0 has no interim responses, so the field is ignored there (RFC 9110, section
         * 10.1.1). */
        head->expects_continue = http_name_equal(field->value, SLICE_LITERAL("100-continue"));
        return head->expects_continue ? 0 : 417;
    } else if (http_name_equal(field->name, SLICE_LITERAL("upgrade"))) {
        r->upgrade = field->value.len > 0;
    }
    return note_framing(field, r->minor, f);
}

/* Two lengths, or a length of chunks, would let two parties see different messages. */
static bool is_ambiguous(const struct framing *f, uint8_t minor)
{
    return f->lengths > 1 || f->encodings > 1 || (f->lengths && f->encodings) ||
           (minor == 0 && f->encodings);
}

static unsigned check_request(const struct http1_head *head, const struct framing *f)
{
    if (is_ambiguous(f, head->request.minor))
        return 400;
    /* HTTP/1.1 requires exactly one (RFC 9112, section 3.2). */
    if (head->request.minor == 1 ? f->hosts != 1 : f->hosts > 1)
        return 400;
    return 0;
}

static bool parse_field(struct slice line, struct http_field *field)
{
    /* A space before the colon and a folded line are refused here, since neither is a token (RFC
     * 9112, sections 5.1 and 5.2). */
    if (!cut(&line, SLICE_LITERAL(":"), &field->name) || !http1_is_token(field->name))
        return false;
    field->value = slice_trim(line);
    return http1_is_field_value(field->value);
}

unsigned http1_head_parse(struct slice bytes, size_t fields_max, struct http1_head *head)
{
    struct slice line;
    struct framing framing = {0};
    struct http_request *r = &head->request;
    *r = (struct http_request){.fields = head->fields, .major = 1};
    head->content_length = 0;
    head->chunked = head->expects_continue = false;
    if (!cut(&bytes, crlf, &line))
        return 400;
    unsigned fault = parse_request_line(line, r);
    framing.keep_alive = r->minor == 1;
    while (!fault && cut(&bytes, crlf, &line) && line.len) {
        if (r->field_count >= size_min(fields_max, HTTP1_FIELDS_MAX))
            return 431;
        struct http_field *field = &head->fields[r->field_count++];
        fault = parse_field(line, field) ? note_request_field(head, field, &framing) : 400;
    }
    r->keep_alive = framing.keep_alive;
    head->content_length = framing.content_length;
    head->chunked = framing.chunked;
    /* HTTP/1.0 has no upgrade (RFC 9110, section 7.8). With a body, which would have to be read
     * before, the request is answered without one. */
    r->upgrade = r->upgrade && framing.upgrades && r->minor == 1 && !framing.chunked &&
                 !framing.content_length && !slice_equal(r->method, SLICE_LITERAL("HEAD"));
    /* An empty line was found before the end of the head. */
    if (!fault && bytes.len)
        fault = 400;
    return fault ? fault : check_request(head, &framing);
}

/* -- Responses -- */

/* "HTTP/1.1 200 OK"; as in Go, the reason may be absent. */
static bool parse_status_line(struct slice line, struct http1_response *r)
{
    uint64_t status;
    if (line.len < 12 || !slice_has_prefix(line, SLICE_LITERAL("HTTP/1.")) ||
        (line.ptr[7] != '0' && line.ptr[7] != '1') || line.ptr[8] != ' ' ||
        (line.len > 12 && line.ptr[12] != ' '))
        return false;
    r->minor = line.ptr[7] - '0';
    if (!slice_decimal(slice_sub(line, 9, 3), &status) || status < 100)
        return false;
    r->status = (unsigned)status;
    return http1_is_field_value(line);
}

static const char *frame_response(struct http1_response *r, const struct framing *f)
{
    if (is_ambiguous(f, r->minor))
        return "a response with ambiguous framing";
    r->keep_alive = f->keep_alive;
    r->chunked = f->chunked;
    r->has_length = f->lengths > 0;
    r->content_length = f->content_length;
    return NULL;
}

const char *http1_response_parse(struct slice bytes, size_t fields_max, struct http1_response *r)
{
    struct slice line;
    struct framing framing = {0};
    r->field_count = 0;
    if (!cut(&bytes, crlf, &line) || !parse_status_line(line, r))
        return "a malformed status line";
    framing.keep_alive = r->minor == 1;
    while (cut(&bytes, crlf, &line) && line.len) {
        if (r->field_count >= size_min(fields_max, HTTP1_FIELDS_MAX))
            return "too many header fields";
        struct http_field *field = &r->fields[r->field_count++];
        if (!parse_field(line, field))
            return "a malformed header field";
        if (note_framing(field, r->minor, &framing))
            return "an unknown length or transfer encoding";
    }
    return frame_response(r, &framing);
}

bool http1_response_get(const struct http1_response *r, struct slice name, struct slice *ret_value)
{
    for (size_t i = 0; i < r->field_count; i++) {
        if (http_name_equal(r->fields[i].name, name)) {
            *ret_value = r->fields[i].value;
            return true;
        }
    }
    return false;
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
        /* Eight digits are 4 GiB, more than any limit of a body; more digits could overflow. */
        if (i >= 8)
            return false;
        size = size * 16 + (size_t)hex_digit(line.ptr[i]);
    }
    /* Extensions after a semicolon are ignored, as RFC 9112, section 7.1.1, demands for unknown
     * ones. */
    if (i == 0 || (i < line.len && line.ptr[i] != ';') || !http1_is_field_value(line))
        return false;
    *ret_size = size;
    return true;
}
