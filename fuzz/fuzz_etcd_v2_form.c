/*
 * Fuzzes requests of the v2 API. The input has a byte that chooses the method, then path, query and
 * form, separated by zero bytes. A refused form must have a code and a text; a key must survive the
 * conversion to a path and back; and a node with the form's value must be read as it was written.
 * The form's bytes are also parsed as a stored value, which may be anything.
 */
#include "cost.h"

#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "etcd/v2/form.h"
#include "etcd/v2/node.h"

#include <stdlib.h>

enum { ARENA_BYTES_MAX = 16 << 20, REAL_NS = 1000 };

static const struct slice methods[] = {SLICE_LITERAL("GET"), SLICE_LITERAL("PUT"),
                                       SLICE_LITERAL("POST"), SLICE_LITERAL("DELETE")};

/* Removes and returns the bytes up to the next zero byte. */
static struct slice cut(struct slice *rest)
{
    const uint8_t *zero = rest->len ? memchr(rest->ptr, 0, rest->len) : NULL;
    size_t len = zero ? (size_t)(zero - rest->ptr) : rest->len;
    struct slice part = slice_sub(*rest, 0, len);
    size_t used = len + (zero != NULL);
    *rest = slice_sub(*rest, used, rest->len - used);
    return part;
}

static bool check_key(struct arena *arena, struct slice path, struct v2_key *ret_key)
{
    enum status status = v2_key_make(arena, path, ret_key);
    assert(status == ST_OK || status == ST_LIMIT || status == ST_INVALID);
    if (status != ST_OK)
        return false;
    assert(ret_key->depth <= V2_DEPTH_MAX);
    assert(v2_key_depth_below(ret_key->key, strlen(V2_KEYS_ROOT)) == ret_key->depth);
    AUTO(buf_fini) struct buf shown = {0};
    struct v2_key again;
    if (v2_key_path(ret_key->key, &shown) != ST_OK ||
        v2_key_make(arena, buf_slice(&shown), &again) != ST_OK)
        abort();
    assert(slice_equal(again.key, ret_key->key) && again.depth == ret_key->depth);
    return true;
}

static void show(const struct v2_node *node)
{
    AUTO(buf_fini) struct buf json = {0};
    if (v2_event_json(&json, V2_SET, node, node, REAL_NS) != ST_OK)
        abort();
    assert(json.len > 2 && json.ptr[0] == '{' && json.ptr[json.len - 1] == '\n');
}

/* Encodes the stored form, 12 len KeyValue, into field and parses it; the node refers to field. */
static bool read_back(struct slice key, struct slice value, struct buf *field,
                      struct v2_node *ret_node)
{
    struct pb_key_value kv = {.key = key, .value = value, .version = 1, .mod_revision = 7};
    struct pb_range_response response = {.kvs = &kv, .kvs_count = 1};
    size_t bytes = pb_size(&pb_range_response_table, &response);
    if (buf_reserve(field, bytes) != ST_OK)
        abort();
    pb_encode(&pb_range_response_table, &response, field->ptr, bytes);
    field->len = bytes;
    return v2_node_read(buf_slice(field), ret_node);
}

static void check_node(struct arena *arena, const struct v2_key *key, const struct v2_form *form)
{
    struct v2_node node = {
        .key = key->key,
        .value = form->dir ? SLICE_EMPTY : form->value,
        .dir = form->dir,
        .refresh = form->refresh,
        .action = V2_SET,
        .expires_ns = form->has_ttl ? (int64_t)(form->ttl_s & INT64_MAX) : 0,
        .created = (int64_t)(form->prev_index & INT64_MAX),
        .modified = form->dir ? 3 : 0,
    };
    AUTO(buf_fini) struct buf field = {0};
    struct slice value;
    struct v2_node read;
    if (v2_node_write(arena, &node, &value) != ST_OK)
        return;
    bool is_node = read_back(key->key, value, &field, &read);
    assert(is_node && read.dir == node.dir && read.refresh == node.refresh);
    assert(read.expires_ns == node.expires_ns && read.revision == 7);
    assert(read.created == (node.created ? node.created : 7));
    assert(read.modified == (node.dir ? 3 : 7));
    assert(node.dir || slice_equal(read.value, node.value));
    show(&read);
}

FUZZ_INPUT()
{
    if (size == 0)
        return 0;
    struct arena arena;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    struct slice rest = slice_of(data + 1, size - 1);
    struct slice path = cut(&rest), query = cut(&rest);
    struct http_field type = {SLICE_LITERAL("content-type"),
                              SLICE_LITERAL("application/x-www-form-urlencoded")};
    struct http_request request = {
        .method = methods[data[0] % COUNT_OF(methods)],
        .path = path,
        .query = query,
        .body = rest,
        .fields = &type,
        .field_count = 1,
    };
    struct v2_form form;
    struct v2_key key;
    struct v2_fault fault = v2_form_read(&request, &arena, &form);
    assert((fault.code != 0) == (fault.cause != NULL));
    if (check_key(&arena, path, &key) && !fault.code)
        check_node(&arena, &key, &form);
    AUTO(buf_fini) struct buf field = {0};
    struct v2_node stored;
    if (read_back(SLICE_LITERAL(V2_KEYS_ROOT "\0x"), rest, &field, &stored))
        show(&stored);
    arena_fini(&arena);
    return 0;
}
