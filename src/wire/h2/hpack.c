#include "wire/h2/hpack.h"

#include "wire/h2/huffman.h"

#include <stdlib.h>

enum {
    LIST_BYTES_MAX = HPACK_LIST_BYTES_MAX,
    FEW_BYTES = 4096, /* size of an ordinary list, which is collected on the stack */
    FIELDS_MAX = HPACK_FIELDS_MAX,
    FIELD_OVERHEAD = 32,    /* RFC 7541 section 4.1 */
    MEMO_BLOCK_BYTES = 128, /* longer blocks are not remembered */
};

/* Fields collected from a block before their number and size are known. The largest list does not
 * belong on the stack: a thread would keep these pages although it may never see such a list. */
struct collected_fields {
    size_t list_bytes; /* size of all fields, as HPACK counts */
    size_t bytes_len;
    uint32_t count;
    bool too_large;
    struct {
        uint16_t name_len, value_len;
    } lengths[FIELDS_MAX];
    size_t room;    /* size of the buffer `bytes` */
    uint8_t *bytes; /* few or many */
    uint8_t *many;  /* owned: LIST_BYTES_MAX; NULL as long as few are enough */
    uint8_t few[FEW_BYTES];
};

static void forget_memo(struct hpack_decoder *decoder)
{
    for (size_t i = 0; i < HPACK_MEMO; i++) {
        h2_headers_unref(decoder->memo[i]);
        decoder->memo[i] = NULL;
    }
}

void hpack_decoder_init(struct hpack_decoder *decoder)
{
    *decoder = (struct hpack_decoder){0};
    hpack_entries_init(&decoder->entries);
}

void hpack_decoder_fini(struct hpack_decoder *decoder)
{
    forget_memo(decoder);
    hpack_entries_fini(&decoder->entries);
    *decoder = (struct hpack_decoder){0};
}

/* The arrays are left as they are. */
static void collected_init(struct collected_fields *g)
{
    g->list_bytes = g->bytes_len = g->count = 0;
    g->too_large = false;
    g->many = NULL;
    g->bytes = g->few;
    g->room = sizeof(g->few);
}

static void collected_fini(struct collected_fields *g)
{
    free(g->many);
}

static enum status make_room(struct collected_fields *g, size_t more)
{
    if (LIKELY(more <= g->room - g->bytes_len))
        return ST_OK;
    assert(!g->many);
    g->many = malloc(LIST_BYTES_MAX);
    if (!g->many)
        return ST_NOMEM;
    memcpy(g->many, g->few, g->bytes_len);
    g->bytes = g->many;
    g->room = LIST_BYTES_MAX;
    return ST_OK;
}

static enum status gather(struct collected_fields *g, struct http_field field,
                          const struct hpack_limits *limits)
{
    g->list_bytes += field.name.len + field.value.len + HPACK_ENTRY_OVERHEAD;
    if (g->list_bytes > size_min(limits->list_bytes, LIST_BYTES_MAX) ||
        g->count >= size_min(limits->fields_max, FIELDS_MAX))
        g->too_large = true;
    if (g->too_large)
        return ST_OK;
    TRY(make_room(g, field.name.len + field.value.len));
    slice_copy(g->bytes + g->bytes_len, field.name);
    slice_copy(g->bytes + g->bytes_len + field.name.len, field.value);
    g->bytes_len += field.name.len + field.value.len;
    g->lengths[g->count].name_len = (uint16_t)field.name.len;
    g->lengths[g->count].value_len = (uint16_t)field.value.len;
    g->count++;
    return ST_OK;
}

/* An integer of RFC 7541 section 5.1. False: it is incomplete or too large. */
static bool read_integer(struct slice block, size_t *at, unsigned prefix_bits, size_t *ret_value)
{
    if (*at >= block.len)
        return false;
    size_t mask = (1u << prefix_bits) - 1;
    size_t value = block.ptr[(*at)++] & mask;
    if (value == mask) {
        unsigned shift = 0;
        uint8_t byte;
        do {
            if (*at >= block.len || shift > 21)
                return false;
            byte = block.ptr[(*at)++];
            value += (size_t)(byte & 0x7f) << shift;
            shift += 7;
        } while (byte & 0x80);
    }
    *ret_value = value;
    return true;
}

/* The bytes of a string as they were sent, and whether they are Huffman-coded. */
static bool read_raw_string(struct slice block, size_t *at, struct slice *ret_raw, bool *ret_coded)
{
    size_t len;
    *ret_coded = *at < block.len && (block.ptr[*at] & 0x80);
    if (!read_integer(block, at, 7, &len) || len > block.len - *at)
        return false;
    *ret_raw = slice_sub(block, *at, len);
    *at += len;
    return true;
}

/* One block that is being decoded. */
struct block_reader {
    struct slice block;
    size_t at;
    size_t scratch_used;
    size_t scratch_room;
    uint8_t *scratch;    /* for the decoded strings of one field */
    size_t excess_bytes; /* size of strings that did not fit into it */
};

static enum status read_string(struct block_reader *r, struct slice *ret_string)
{
    struct slice raw;
    bool coded;
    if (!read_raw_string(r->block, &r->at, &raw, &coded))
        return ST_MALFORMED;
    if (coded) {
        uint8_t *to = r->scratch + r->scratch_used;
        size_t len, room = r->scratch_room - r->scratch_used;
        enum status status = huffman_decode(raw, to, room, &len);
        /* A field of this length is too large anyway, and it empties the table of entries. */
        if (status == ST_LIMIT) {
            r->excess_bytes += len - room;
            len = room;
        } else if (status != ST_OK) {
            return status;
        }
        r->scratch_used += len;
        raw = slice_of(to, len);
    }
    *ret_string = raw;
    return ST_OK;
}

static enum status read_literal(struct block_reader *r, const struct hpack_entries *entries,
                                unsigned prefix_bits, struct http_field *ret_field)
{
    size_t index;
    if (!read_integer(r->block, &r->at, prefix_bits, &index))
        return ST_MALFORMED;
    r->scratch_used = 0;
    if (index == 0)
        TRY(read_string(r, &ret_field->name));
    else if (!hpack_entries_get(entries, index, ret_field))
        return ST_MALFORMED;
    return read_string(r, &ret_field->value);
}

/* Changes of the table size come before all fields. */
static enum status read_resizes(struct block_reader *r, struct hpack_entries *entries)
{
    while (r->at < r->block.len && (r->block.ptr[r->at] & 0xe0) == 0x20) {
        size_t bytes;
        if (!read_integer(r->block, &r->at, 5, &bytes) || bytes > HPACK_TABLE_BYTES)
            return ST_MALFORMED;
        hpack_entries_resize(entries, (uint32_t)bytes);
    }
    return ST_OK;
}

static enum status read_field(struct block_reader *r, struct hpack_entries *entries,
                              struct http_field *ret_field)
{
    uint8_t first = r->block.ptr[r->at];
    size_t index;
    if (first & 0x80) {
        if (!read_integer(r->block, &r->at, 7, &index) ||
            !hpack_entries_get(entries, index, ret_field))
            return ST_MALFORMED;
        return ST_OK;
    }
    if (first & 0x40)
        return read_literal(r, entries, 6, ret_field);
    if (first & 0x20)
        return ST_MALFORMED;
    return read_literal(r, entries, 4, ret_field);
}

static enum status read_fields(struct block_reader *r, struct hpack_entries *entries,
                               const struct hpack_limits *limits, struct collected_fields *g)
{
    TRY(read_resizes(r, entries));
    while (r->at < r->block.len) {
        bool kept = (r->block.ptr[r->at] & 0xc0) == 0x40;
        struct http_field field;
        TRY(read_field(r, entries, &field));
        g->list_bytes += r->excess_bytes;
        r->excess_bytes = 0;
        TRY(gather(g, field, limits));
        if (g->list_bytes > HPACK_EXCESS_FACTOR * (size_t)limits->list_bytes)
            return ST_LIMIT;
        if (kept)
            TRY(hpack_entries_add(entries, field));
    }
    return ST_OK;
}

/* The shortest code of Huffman's has five bits, so a string is at most 8/5 times as long as its
 * code. */
static enum status inflate(struct hpack_decoder *decoder, struct slice block,
                           const struct hpack_limits *limits, struct collected_fields *g)
{
    uint8_t few[FEW_BYTES];
    struct block_reader r = {.block = block, .scratch = few, .scratch_room = sizeof(few)};
    if (LIKELY(block.len <= FEW_BYTES / 8 * 5))
        return read_fields(&r, &decoder->entries, limits, g);
    r.scratch = malloc(LIST_BYTES_MAX);
    if (!r.scratch)
        return ST_NOMEM;
    r.scratch_room = LIST_BYTES_MAX;
    enum status status = read_fields(&r, &decoder->entries, limits, g);
    free(r.scratch);
    return status;
}

/* One allocation: the struct, its fields, their bytes, the block. */
static struct h2_headers *headers_from(const struct collected_fields *g, struct slice block)
{
    size_t fields_bytes = g->count * sizeof(struct http_field);
    size_t all_bytes = sizeof(struct h2_headers) + fields_bytes + g->bytes_len + block.len;
    struct h2_headers *h = malloc(all_bytes);
    if (!h)
        return NULL;
    uint8_t *bytes = (uint8_t *)h + sizeof(*h) + fields_bytes;
    *h = (struct h2_headers){.refs = 1,
                             .count = g->count,
                             .bytes = (uint32_t)all_bytes,
                             .too_large = g->too_large,
                             .content_length = -1,
                             .block = {bytes + g->bytes_len, block.len}};
    memcpy(bytes, g->bytes, g->bytes_len);
    slice_copy(bytes + g->bytes_len, block);
    for (uint32_t i = 0; i < g->count; i++) {
        h->fields[i].name = slice_of(bytes, g->lengths[i].name_len);
        bytes += g->lengths[i].name_len;
        h->fields[i].value = slice_of(bytes, g->lengths[i].value_len);
        bytes += g->lengths[i].value_len;
    }
    return h;
}

/* The block neither adds to the table nor changes its size, so decoding it has no side effect. */
static bool is_pure(struct slice block)
{
    size_t at = 0, index;
    struct slice raw;
    bool coded;
    while (at < block.len) {
        uint8_t first = block.ptr[at];
        if (first & 0x80) { /* an indexed field */
            if (!read_integer(block, &at, 7, &index))
                return false;
        } else if ((first & 0xe0) == 0) { /* a literal that is not added to the table */
            if (!read_integer(block, &at, 4, &index) ||
                (index == 0 && !read_raw_string(block, &at, &raw, &coded)) ||
                !read_raw_string(block, &at, &raw, &coded))
                return false;
        } else {
            return false;
        }
    }
    return true;
}

static struct h2_headers *memo_find(struct hpack_decoder *decoder, struct slice block)
{
    for (size_t i = 0; i < HPACK_MEMO; i++) {
        struct h2_headers *h = decoder->memo[i];
        if (h && slice_equal(h->block, block))
            return h;
    }
    return NULL;
}

static void memo_add(struct hpack_decoder *decoder, struct h2_headers *headers)
{
    struct h2_headers **place = &decoder->memo[decoder->memo_next++ % HPACK_MEMO];
    h2_headers_unref(*place);
    h2_headers_ref(headers);
    *place = headers;
}

static enum status decode_anew(struct hpack_decoder *decoder, struct slice block,
                               enum h2_headers_kind kind, const struct hpack_limits *limits,
                               struct h2_headers **ret_headers)
{
    AUTO(collected_fini) struct collected_fields g;
    collected_init(&g);
    bool pure = is_pure(block);
    if (!pure)
        forget_memo(decoder);
    TRY(inflate(decoder, block, limits, &g));
    bool remember = pure && kind != H2_REQUEST_TRAILERS && block.len <= MEMO_BLOCK_BYTES;
    struct h2_headers *h = headers_from(&g, remember ? block : SLICE_EMPTY);
    if (!h)
        return ST_NOMEM;
    h2_headers_check(h, kind);
    if (remember && !h->malformed && !h->too_large)
        memo_add(decoder, h);
    *ret_headers = h;
    return ST_OK;
}

enum status hpack_decode(struct hpack_decoder *decoder, struct slice block,
                         enum h2_headers_kind kind, const struct hpack_limits *limits,
                         struct h2_headers **ret_headers)
{
    struct h2_headers *known =
        kind == H2_REQUEST_TRAILERS || !block.len ? NULL : memo_find(decoder, block);
    if (LIKELY(known != NULL)) {
        h2_headers_ref(known);
        *ret_headers = known;
        return ST_OK;
    }
    return decode_anew(decoder, block, kind, limits, ret_headers);
}

/* RFC 7541 section 5.1 with a seven-bit prefix: the length of a string without Huffman coding. */
static uint8_t *put_length(uint8_t *dst, size_t len)
{
    if (len < 0x7f) {
        *dst++ = (uint8_t)len;
        return dst;
    }
    *dst++ = 0x7f;
    for (len -= 0x7f; len >= 0x80; len >>= 7)
        *dst++ = (uint8_t)(0x80 | (len & 0x7f));
    *dst++ = (uint8_t)len;
    return dst;
}

uint8_t *hpack_put_literal(uint8_t *dst, struct slice name, struct slice value)
{
    *dst++ = 0x00; /* literal without indexing, new name */
    dst = put_length(dst, name.len);
    slice_copy(dst, name);
    dst = put_length(dst + name.len, value.len);
    slice_copy(dst, value);
    return dst + value.len;
}

uint8_t *hpack_put_lower(uint8_t *dst, struct slice name, struct slice value)
{
    *dst++ = 0x00;
    dst = put_length(dst, name.len);
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        *dst++ = c >= 'A' && c <= 'Z' ? (uint8_t)(c + 'a' - 'A') : c;
    }
    dst = put_length(dst, value.len);
    slice_copy(dst, value);
    return dst + value.len;
}

uint8_t *hpack_put_named(uint8_t *dst, unsigned entry, struct slice value)
{
    assert(entry > 0 && entry <= 61);
    if (entry < 15) { /* literal without indexing, a four-bit prefix */
        *dst++ = (uint8_t)entry;
    } else {
        *dst++ = 15;
        *dst++ = (uint8_t)(entry - 15);
    }
    dst = put_length(dst, value.len);
    slice_copy(dst, value);
    return dst + value.len;
}

uint8_t *hpack_put_status(uint8_t *dst, unsigned status)
{
    assert(status >= 100 && status <= 999);
    if (status == 200) {
        *dst++ = 0x80 | 8;
        return dst;
    }
    *dst++ = 8; /* literal without indexing, name of static entry 8 */
    *dst++ = 3;
    *dst++ = (uint8_t)('0' + status / 100);
    *dst++ = (uint8_t)('0' + status / 10 % 10);
    *dst++ = (uint8_t)('0' + status % 10);
    return dst;
}
