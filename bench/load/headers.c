#include "load/headers.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    HPACK_INDEXED = 0x80,
    HPACK_INSERT = 0x40, /* literal that enters the table */
    HPACK_RESIZE = 0x20,
    STATIC_AUTHORITY = 1,
    STATIC_METHOD_POST = 3,
    STATIC_PATH = 4,
    STATIC_SCHEME_HTTP = 6,
    STATIC_CONTENT_TYPE = 31,
    STATIC_AUTHORIZATION = 23,
    STATIC_USER_AGENT = 58,
    DYNAMIC_FIRST = 62,
    REQUEST_INSERTS = 5, /* fields that the first request leaves in the table */
    KEPT_BLOCK_MAX = 256,
};

/* A number below 128 more than the prefix holds, behind bits that are already in it. */
static enum status append_number(struct buf *out, uint8_t bits, uint8_t prefix_max, size_t number)
{
    uint8_t bytes[2] = {(uint8_t)(bits | number), 0};
    if (number < prefix_max)
        return buf_append(out, slice_of(bytes, 1));
    if (number >= (size_t)prefix_max + 128)
        return ST_LIMIT;
    bytes[0] = bits | prefix_max;
    bytes[1] = (uint8_t)(number - prefix_max);
    return buf_append(out, slice_of(bytes, 2));
}

/* A string of at most 254 bytes, as it is. */
static enum status append_string(struct buf *out, const char *text)
{
    TRY(append_number(out, 0, 127, strlen(text)));
    return buf_append_text(out, text);
}

static enum status append_insert(struct buf *out, unsigned name_index, const char *value)
{
    TRY(buf_append(out, slice_of(&(uint8_t){(uint8_t)(HPACK_INSERT | name_index)}, 1)));
    return append_string(out, value);
}

/* No name of the static table: 0, and the name itself. */
static enum status append_insert_named(struct buf *out, const char *name, const char *value)
{
    TRY(buf_append(out, slice_of(&(uint8_t){HPACK_INSERT}, 1)));
    TRY(append_string(out, name));
    return append_string(out, value);
}

enum status bench_headers_append_first(struct buf *out, const char *path, const char *authority,
                                       const char *token)
{
    static const uint8_t fixed[] = {HPACK_INDEXED | STATIC_METHOD_POST,
                                    HPACK_INDEXED | STATIC_SCHEME_HTTP};
    TRY(buf_append(out, slice_of(fixed, sizeof(fixed))));
    TRY(append_insert(out, STATIC_PATH, path));
    TRY(append_insert(out, STATIC_AUTHORITY, authority));
    TRY(append_insert(out, STATIC_CONTENT_TYPE, "application/grpc"));
    TRY(append_insert(out, STATIC_USER_AGENT, "vigil-bench"));
    TRY(append_insert_named(out, "te", "trailers"));
    return *token ? append_insert_named(out, "token", token) : ST_OK;
}

enum status bench_headers_append_next(struct buf *out, const char *token)
{
    uint8_t block[2 + REQUEST_INSERTS + 1] = {HPACK_INDEXED | STATIC_METHOD_POST,
                                              HPACK_INDEXED | STATIC_SCHEME_HTTP};
    unsigned inserts = REQUEST_INSERTS + (*token ? 1 : 0);
    /* The newest entry has the lowest number: count down to keep the order of the first request. */
    for (unsigned i = 0; i < inserts; i++)
        block[2 + i] = (uint8_t)(HPACK_INDEXED | (DYNAMIC_FIRST + inserts - 1 - i));
    return buf_append(out, slice_of(block, 2 + inserts));
}

static enum status append_literal(struct buf *out, unsigned name_index, const char *value)
{
    TRY(append_number(out, 0, 15, name_index));
    return append_string(out, value);
}

enum status bench_headers_append_plain(struct buf *out, const char *method, const char *path,
                                       const char *authority, const char *type, const char *token)
{
    char bearer[256];
    static const uint8_t scheme = HPACK_INDEXED | STATIC_SCHEME_HTTP;
    TRY(append_literal(out, STATIC_METHOD_POST, method));
    TRY(buf_append(out, slice_of(&scheme, 1)));
    TRY(append_literal(out, STATIC_PATH, path));
    TRY(append_literal(out, STATIC_AUTHORITY, authority));
    if (type)
        TRY(append_literal(out, STATIC_CONTENT_TYPE, type));
    TRY(append_literal(out, STATIC_USER_AGENT, "vigil-bench"));
    if (!*token)
        return ST_OK;
    if (snprintf(bearer, sizeof(bearer), "Bearer %s", token) >= (int)sizeof(bearer))
        return ST_LIMIT;
    return append_literal(out, STATIC_AUTHORIZATION, bearer);
}

struct kept_block {
    size_t len; /* 0: none kept */
    uint8_t bytes[KEPT_BLOCK_MAX];
};

struct bench_header_decoder {
    nghttp2_hd_inflater *inflater;
    bool plain;                /* not gRPC */
    struct kept_block kept[2]; /* the last good head, the last good trailer */
};

enum status bench_header_decoder_new(bool plain, struct bench_header_decoder **ret_decoder)
{
    AUTO(bench_header_decoder_freep)
    struct bench_header_decoder *decoder = calloc(1, sizeof(*decoder));
    if (!decoder || nghttp2_hd_inflate_new(&decoder->inflater) != 0)
        return ST_NOMEM;
    decoder->plain = plain;
    *ret_decoder = TAKE(decoder);
    return ST_OK;
}

void bench_header_decoder_free(struct bench_header_decoder *decoder)
{
    if (!decoder)
        return;
    if (decoder->inflater)
        nghttp2_hd_inflate_del(decoder->inflater);
    free(decoder);
}

/* Moves past an HPACK integer with a prefix of `bits`; false past the end or over 32 bits. */
static bool skip_integer(struct slice *block, unsigned bits, size_t *ret_value)
{
    if (block->len == 0)
        return false;
    size_t mask = (1u << bits) - 1;
    size_t value = block->ptr[0] & mask;
    *block = slice_sub(*block, 1, block->len - 1);
    if (value == mask) {
        uint8_t byte = HPACK_INDEXED;
        for (unsigned shift = 0; byte & 0x80; shift += 7) {
            if (block->len == 0 || shift > 21)
                return false;
            byte = block->ptr[0];
            value += (size_t)(byte & 0x7f) << shift;
            *block = slice_sub(*block, 1, block->len - 1);
        }
    }
    *ret_value = value;
    return true;
}

static bool skip_string(struct slice *block)
{
    size_t len;
    if (!skip_integer(block, 7, &len) || len > block->len)
        return false;
    *block = slice_sub(*block, len, block->len - len);
    return true;
}

bool bench_header_block_is_stateless(struct slice block)
{
    while (block.len) {
        size_t index;
        uint8_t first = block.ptr[0];
        if (first & HPACK_INDEXED) {
            if (!skip_integer(&block, 7, &index))
                return false;
            continue;
        }
        if (first & (HPACK_INSERT | HPACK_RESIZE))
            return false;
        if (!skip_integer(&block, 4, &index))
            return false;
        if (index == 0 && !skip_string(&block))
            return false;
        if (!skip_string(&block))
            return false;
    }
    return true;
}

static bool name_is(const nghttp2_nv *field, const char *name)
{
    return slice_equal(slice_of(field->name, field->namelen), slice_from_text(name));
}

/* The value of a field as a number; -2 when it is not a number. */
static int number_of(const nghttp2_nv *field)
{
    uint64_t value;
    struct slice text = slice_of(field->value, field->valuelen);
    return slice_decimal(text, &value) && value < 10000 ? (int)value : -2;
}

static void take_field(const nghttp2_nv *field, struct bench_verdict *verdict)
{
    if (name_is(field, ":status"))
        verdict->http_status = number_of(field);
    else if (name_is(field, "grpc-status"))
        verdict->grpc_status = number_of(field);
    else if (name_is(field, "retry-after"))
        verdict->retry_after_s = number_of(field);
    else if (name_is(field, "grpc-message"))
        snprintf(verdict->message, sizeof(verdict->message), "%.*s",
                 (int)size_min(field->valuelen, sizeof(verdict->message) - 1),
                 (const char *)field->value);
}

static enum status inflate(nghttp2_hd_inflater *inflater, struct slice block,
                           struct bench_verdict *verdict)
{
    *verdict = (struct bench_verdict){.http_status = -1, .grpc_status = -1};
    for (;;) {
        nghttp2_nv field;
        int flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater, &field, &flags, block.ptr, block.len, 1);
        if (used < 0)
            return ST_MALFORMED;
        block = slice_sub(block, (size_t)used, block.len - (size_t)used);
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            take_field(&field, verdict);
        if (flags & NGHTTP2_HD_INFLATE_FINAL)
            break;
    }
    nghttp2_hd_inflate_end_headers(inflater);
    return ST_OK;
}

static void keep(struct bench_header_decoder *decoder, struct slice block, bool end_stream)
{
    struct kept_block *kept = &decoder->kept[end_stream];
    if (block.len > KEPT_BLOCK_MAX)
        return;
    slice_copy(kept->bytes, block);
    kept->len = block.len;
}

static bool is_good(const struct bench_header_decoder *decoder, const struct bench_verdict *verdict,
                    bool end_stream)
{
    if (decoder->plain)
        return verdict->http_status / 100 == 2;
    return end_stream ? verdict->grpc_status == 0 : verdict->http_status == 200;
}

enum status bench_header_decode(struct bench_header_decoder *decoder, struct slice block,
                                bool end_stream, bool *ret_good, struct bench_verdict *ret_verdict)
{
    const struct kept_block *kept = &decoder->kept[end_stream];
    if (LIKELY(kept->len && slice_equal(slice_of(kept->bytes, kept->len), block))) {
        *ret_good = true;
        return ST_OK;
    }
    TRY(inflate(decoder->inflater, block, ret_verdict));
    bool good = is_good(decoder, ret_verdict, end_stream);
    if (!bench_header_block_is_stateless(block))
        decoder->kept[0].len = decoder->kept[1].len = 0;
    else if (good)
        keep(decoder, block, end_stream);
    *ret_good = good;
    return ST_OK;
}
