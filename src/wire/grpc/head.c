#include "wire/grpc/head.h"

#include "base/buf.h"
#include "base/container/hash_map.h"
#include "wire/grpc/timeout.h"
#include "wire/h2/hpack.h"
#include "wire/h2/stream.h"

#include <stdlib.h>

/* Entries of HPACK's static table. */
enum {
    STATIC_AUTHORITY = 1,
    STATIC_METHOD_POST = 3,
    STATIC_PATH = 4,
    STATIC_SCHEME_HTTP = 6,
    STATIC_SCHEME_HTTPS = 7,
    STATIC_CONTENT_TYPE = 31,
    STATIC_USER_AGENT = 58,
};

#define TIMEOUT_NAME SLICE_LITERAL("grpc-timeout")

static size_t list_bytes(size_t name_len, size_t value_len)
{
    return name_len + value_len + HPACK_ENTRY_OVERHEAD;
}

/* Fields that the call itself or its transport writes. */
static bool is_reserved(struct slice name)
{
    return name.len == 0 || name.ptr[0] == ':' || slice_has_prefix(name, SLICE_LITERAL("grpc-")) ||
           slice_equal(name, SLICE_LITERAL("content-type")) ||
           slice_equal(name, SLICE_LITERAL("content-length")) ||
           slice_equal(name, SLICE_LITERAL("te")) || slice_equal(name, SLICE_LITERAL("user-agent"));
}

static size_t block_bytes_max(const struct grpc_head_fields *fields)
{
    size_t bytes = 128 + fields->authority.len + fields->user_agent.len;
    for (size_t i = 0; i < fields->metadata_count; i++)
        bytes += hpack_literal_bytes(fields->metadata[i].name, fields->metadata[i].value);
    return bytes;
}

static uint8_t *put_fields(const struct grpc_head_fields *fields, uint8_t *to, size_t *ret_list)
{
    struct slice type = SLICE_LITERAL("application/grpc");
    /* The method and the scheme, then what is written here. */
    size_t list = list_bytes(7, 4) + list_bytes(7, fields->secure ? 5 : 4);
    to = hpack_put_named(to, STATIC_AUTHORITY, fields->authority);
    to = hpack_put_named(to, STATIC_CONTENT_TYPE, type);
    /* gRPC requires this field, because a proxy that cannot pass trailers on would lose the
     * status. */
    to = hpack_put_literal(to, SLICE_LITERAL("te"), SLICE_LITERAL("trailers"));
    list += list_bytes(10, fields->authority.len) + list_bytes(12, type.len) + list_bytes(2, 8);
    if (fields->user_agent.len) {
        to = hpack_put_named(to, STATIC_USER_AGENT, fields->user_agent);
        list += list_bytes(10, fields->user_agent.len);
    }
    for (size_t i = 0; i < fields->metadata_count; i++) {
        const struct http_field *field = &fields->metadata[i];
        to = hpack_put_literal(to, field->name, field->value);
        list += list_bytes(field->name.len, field->value.len);
    }
    *ret_list = list;
    return to;
}

/* A request with these fields is decoded as a server would. */
static enum status check(const struct grpc_head *head)
{
    static const struct hpack_limits limits = {H2_BLOCK_BYTES_MAX * 2, 128};
    AUTO(buf_fini) struct buf block = {0};
    struct slice path = SLICE_LITERAL("/");
    AUTO(h2_headers_unrefp) struct h2_headers *headers = NULL;
    TRY(buf_reserve(&block, grpc_head_bytes(head, path)));
    uint8_t *end = grpc_head_write(head, path, INT64_MAX, block.ptr);
    struct hpack_decoder decoder;
    hpack_decoder_init(&decoder);
    enum status status = hpack_decode(&decoder, slice_of(block.ptr, (size_t)(end - block.ptr)),
                                      H2_REQUEST, &limits, &headers);
    hpack_decoder_fini(&decoder);
    TRY(status);
    if (headers->too_large)
        return ST_LIMIT;
    return headers->malformed ? ST_INVALID : ST_OK;
}

enum status grpc_head_new(const struct grpc_head_fields *fields, struct grpc_head **ret_head)
{
    for (size_t i = 0; i < fields->metadata_count; i++) {
        if (is_reserved(fields->metadata[i].name))
            return ST_INVALID;
    }
    size_t most = block_bytes_max(fields);
    if (fields->authority.len == 0)
        return ST_INVALID;
    if (most > H2_BLOCK_BYTES_MAX)
        return ST_LIMIT;
    AUTO(grpc_head_unrefp) struct grpc_head *head = malloc(sizeof(*head) + most);
    if (!head)
        return ST_NOMEM;
    uint8_t *bytes = (uint8_t *)(head + 1);
    size_t list;
    uint8_t *end = put_fields(fields, bytes, &list);
    assert(end <= bytes + most);
    *head = (struct grpc_head){.refs = 1,
                               .secure = fields->secure,
                               .list_bytes = (uint32_t)list,
                               .block = slice_of(bytes, (size_t)(end - bytes))};
    TRY(check(head));
    *ret_head = TAKE(head);
    return ST_OK;
}

void grpc_head_ref(struct grpc_head *head)
{
    head->refs++;
}

void grpc_head_unref(struct grpc_head *head)
{
    if (!head)
        return;
    assert(head->refs > 0);
    if (--head->refs == 0)
        free(head);
}

size_t grpc_head_bytes(const struct grpc_head *head, struct slice path)
{
    return 2 + hpack_literal_bytes(SLICE_EMPTY, path) + head->block.len +
           hpack_literal_bytes(TIMEOUT_NAME, slice_of(NULL, GRPC_TIMEOUT_BYTES));
}

size_t grpc_head_list_bytes(const struct grpc_head *head, struct slice path)
{
    /* The limit of the peer's SETTINGS counts each field with 32 bytes of overhead (RFC 9113,
     * section 6.5.2). */
    return head->list_bytes + list_bytes(5, path.len) +
           list_bytes(TIMEOUT_NAME.len, GRPC_TIMEOUT_BYTES);
}

uint8_t *grpc_head_write(const struct grpc_head *head, struct slice path, int64_t timeout_ns,
                         uint8_t *dst)
{
    *dst++ = 0x80 | STATIC_METHOD_POST;
    *dst++ = (uint8_t)(0x80 | (head->secure ? STATIC_SCHEME_HTTPS : STATIC_SCHEME_HTTP));
    dst = hpack_put_named(dst, STATIC_PATH, path);
    slice_copy(dst, head->block);
    dst += head->block.len;
    if (timeout_ns != INT64_MAX) {
        uint8_t text[GRPC_TIMEOUT_BYTES];
        size_t len = grpc_timeout_write(timeout_ns, text);
        dst = hpack_put_literal(dst, TIMEOUT_NAME, slice_of(text, len));
    }
    return dst;
}

/* ---- recent callers ---- */

struct cached_head {
    struct grpc_head *head; /* a reference; NULL: the slot is empty */
    uint8_t *token;         /* owned */
    size_t token_len;
    unsigned kind;
};

struct grpc_head_cache {
    struct hash_map hashing; /* stays empty; clients choose their tokens, so its hash is secret */
    struct cached_head slots[GRPC_HEAD_CACHE_SLOTS];
};

static void cached_head_fini(struct cached_head *slot)
{
    grpc_head_unref(slot->head);
    free(slot->token);
    *slot = (struct cached_head){0};
}

struct grpc_head_cache *grpc_head_cache_new(uint64_t seed)
{
    struct grpc_head_cache *cache = calloc(1, sizeof(*cache));
    if (cache)
        hash_map_init(&cache->hashing, NULL, seed);
    return cache;
}

void grpc_head_cache_free(struct grpc_head_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < GRPC_HEAD_CACHE_SLOTS; i++)
        cached_head_fini(&cache->slots[i]);
    hash_map_fini(&cache->hashing);
    free(cache);
}

static size_t slot_of(const struct grpc_head_cache *cache, struct slice token, unsigned kind)
{
    return (hash_map_hash(&cache->hashing, token) + kind) % GRPC_HEAD_CACHE_SLOTS;
}

bool grpc_head_cache_get(const struct grpc_head_cache *cache, struct slice token, unsigned kind,
                         struct grpc_head **ret_head)
{
    const struct cached_head *slot = &cache->slots[slot_of(cache, token, kind)];
    /* Equal hashes do not suffice: the head of another caller would carry that caller's token. */
    if (!slot->head || slot->kind != kind ||
        !slice_equal(slice_of(slot->token, slot->token_len), token))
        return false;
    grpc_head_ref(slot->head);
    *ret_head = slot->head;
    return true;
}

void grpc_head_cache_put(struct grpc_head_cache *cache, struct slice token, unsigned kind,
                         struct grpc_head *head)
{
    struct cached_head *slot = &cache->slots[slot_of(cache, token, kind)];
    uint8_t *copy = malloc(size_max(token.len, 1));
    if (!copy)
        return;
    slice_copy(copy, token);
    grpc_head_ref(head);
    cached_head_fini(slot);
    *slot = (struct cached_head){head, copy, token.len, kind};
}
