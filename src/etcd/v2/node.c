#include "etcd/v2/node.h"

#include "base/clock.h"
#include "codec/json/writer.h"
#include "codec/pb/kv.pb.h"
#include "etcd/service/key_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
    ROOT_BYTES = sizeof(V2_KEYS_ROOT) - 1,
    HEAD_BYTES = 18,
    REFRESH_BIT = 0x80,
    KV_ARENA_BYTES = 1024,
};

static const char *action_name(enum v2_action action)
{
    static const char *const names[] = {
        [V2_IMPLICIT] = "create",
        [V2_SET] = "set",
        [V2_CREATE] = "create",
        [V2_UPDATE] = "update",
        [V2_COMPARE_AND_SWAP] = "compareAndSwap",
        [V2_GET] = "get",
        [V2_DELETE] = "delete",
        [V2_COMPARE_AND_DELETE] = "compareAndDelete",
        [V2_EXPIRE] = "expire",
    };
    return names[action];
}

/* -- Keys -- */

static enum status key_push(struct v2_key *key, uint8_t *bytes, struct slice part)
{
    if (key->depth == V2_DEPTH_MAX || key->key.len + 1 + part.len > ROOT_BYTES + V2_PATH_BYTES_MAX)
        return ST_LIMIT;
    if (memchr(part.ptr, 0, part.len))
        return ST_INVALID;
    bytes[key->key.len] = 0;
    slice_copy(bytes + key->key.len + 1, part);
    key->key.len += 1 + part.len;
    key->ends[++key->depth] = (uint16_t)key->key.len;
    return ST_OK;
}

static enum status key_step(struct v2_key *key, uint8_t *bytes, struct slice part)
{
    if (part.len == 0 || slice_is(part, "."))
        return ST_OK;
    if (!slice_is(part, ".."))
        return key_push(key, bytes, part);
    if (key->depth)
        key->key.len = key->ends[--key->depth];
    return ST_OK;
}

enum status v2_key_make(struct arena *arena, struct slice path, struct v2_key *ret_key)
{
    uint8_t *bytes = arena_alloc(arena, ROOT_BYTES + V2_PATH_BYTES_MAX);
    if (!bytes)
        return ST_NOMEM;
    memcpy(bytes, V2_KEYS_ROOT, ROOT_BYTES);
    *ret_key = (struct v2_key){.key = slice_of(bytes, ROOT_BYTES), .ends = {ROOT_BYTES}};
    for (size_t from = 0; from < path.len;) {
        const uint8_t *slash = memchr(path.ptr + from, '/', path.len - from);
        size_t to = slash ? (size_t)(slash - path.ptr) : path.len;
        TRY(key_step(ret_key, bytes, slice_sub(path, from, to - from)));
        from = to + 1;
    }
    return ST_OK;
}

enum status v2_key_child(struct arena *arena, const struct v2_key *parent, struct slice name,
                         struct v2_key *ret_key)
{
    uint8_t *bytes = arena_alloc(arena, ROOT_BYTES + V2_PATH_BYTES_MAX);
    if (!bytes)
        return ST_NOMEM;
    slice_copy(bytes, parent->key);
    *ret_key = *parent;
    ret_key->key.ptr = bytes;
    return key_push(ret_key, bytes, name);
}

struct slice v2_key_part(const struct v2_key *key, size_t depth)
{
    assert(depth <= key->depth);
    return slice_of(key->key.ptr, key->ends[depth]);
}

static enum status key_and_byte(struct arena *arena, struct slice key, uint8_t byte,
                                struct slice *ret_key)
{
    uint8_t *bytes = arena_alloc(arena, key.len + 1);
    if (!bytes)
        return ST_NOMEM;
    slice_copy(bytes, key);
    bytes[key.len] = byte;
    *ret_key = slice_of(bytes, key.len + 1);
    return ST_OK;
}

enum status v2_key_end(struct arena *arena, struct slice key, struct slice *ret_end)
{
    return key_and_byte(arena, key, 1, ret_end);
}

enum status v2_key_first_child(struct arena *arena, struct slice key, struct slice *ret_first)
{
    return key_and_byte(arena, key, 0, ret_first);
}

enum status v2_key_path(struct slice key, struct buf *to)
{
    assert(key.len >= ROOT_BYTES);
    if (key.len == ROOT_BYTES)
        return buf_append_text(to, "/");
    size_t from = to->len;
    TRY(buf_append(to, slice_sub(key, ROOT_BYTES, key.len - ROOT_BYTES)));
    for (size_t i = from; i < to->len; i++)
        to->ptr[i] = to->ptr[i] ? to->ptr[i] : '/';
    return ST_OK;
}

size_t v2_key_depth_below(struct slice key, size_t base_len)
{
    size_t depth = 0;
    for (size_t i = base_len; i < key.len; i++)
        depth += key.ptr[i] == 0;
    return depth;
}

bool v2_key_is_hidden(struct slice key, size_t base_len)
{
    for (size_t i = base_len; i + 1 < key.len; i++) {
        if (key.ptr[i] == 0 && key.ptr[i + 1] == '_')
            return true;
    }
    return false;
}

/* -- Values -- */

static int64_t get_i64(const uint8_t *from)
{
    uint64_t number = 0;
    for (int i = 7; i >= 0; i--)
        number = number << 8 | from[i];
    return (int64_t)number;
}

static void put_i64(uint8_t *to, int64_t number)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)((uint64_t)number >> (8 * i));
}

bool v2_node_read(struct slice field, struct v2_node *ret_node)
{
    uint8_t first[KV_ARENA_BYTES];
    struct arena arena;
    struct pb_key_value kv;
    arena_init(&arena, first, sizeof(first), KV_ARENA_BYTES);
    enum status status = key_value_decode(field, &arena, &kv);
    arena_fini(&arena);
    if (status != ST_OK || kv.key.len < ROOT_BYTES || kv.key.len > ROOT_BYTES + V2_PATH_BYTES_MAX)
        return false;
    *ret_node = (struct v2_node){
        .key = kv.key,
        .revision = kv.mod_revision,
        .modified = kv.mod_revision,
        .lease = kv.lease,
    };
    if (kv.version == 0) /* a tombstone */
        return true;
    if (kv.value.len < HEAD_BYTES || (kv.value.ptr[0] != 'd' && kv.value.ptr[0] != 'f'))
        return false;
    ret_node->dir = kv.value.ptr[0] == 'd';
    ret_node->action = kv.value.ptr[1] & (uint8_t)~REFRESH_BIT;
    ret_node->refresh = kv.value.ptr[1] & REFRESH_BIT;
    ret_node->expires_ns = get_i64(kv.value.ptr + 2);
    ret_node->created = get_i64(kv.value.ptr + 10);
    if (ret_node->created == 0)
        ret_node->created = kv.mod_revision;
    ret_node->value = slice_sub(kv.value, HEAD_BYTES, kv.value.len - HEAD_BYTES);
    if (ret_node->dir && ret_node->value.len == sizeof(int64_t))
        ret_node->modified = get_i64(ret_node->value.ptr);
    return ret_node->action <= V2_COMPARE_AND_SWAP;
}

enum status v2_node_write(struct arena *arena, const struct v2_node *node, struct slice *ret_value)
{
    bool keeps_modified = node->dir && node->modified;
    size_t value_bytes = keeps_modified ? sizeof(int64_t) : node->value.len;
    uint8_t *bytes = arena_alloc(arena, HEAD_BYTES + value_bytes);
    if (!bytes)
        return ST_NOMEM;
    bytes[0] = node->dir ? 'd' : 'f';
    bytes[1] = (uint8_t)(node->action | (node->refresh ? REFRESH_BIT : 0));
    put_i64(bytes + 2, node->expires_ns);
    put_i64(bytes + 10, node->created);
    if (keeps_modified)
        put_i64(bytes + HEAD_BYTES, node->modified);
    else
        slice_copy(bytes + HEAD_BYTES, node->value);
    *ret_value = slice_of(bytes, HEAD_BYTES + value_bytes);
    return ST_OK;
}

/* -- JSON -- */

static enum status append_string(struct buf *to, struct slice text)
{
    struct json_writer w;
    json_writer_init(&w, to);
    json_string(&w, text);
    return json_writer_finish(&w);
}

/* In Go's format of times, without zeros at the end of the fraction. */
static enum status append_expiry(struct buf *to, int64_t expires_ns, int64_t real_ns)
{
    /* What is stored may be any number. */
    int rest_ns = (int)(expires_ns % NS_PER_S + (expires_ns % NS_PER_S < 0 ? NS_PER_S : 0));
    time_t seconds = (time_t)(expires_ns / NS_PER_S - (expires_ns % NS_PER_S < 0));
    struct tm tm;
    char text[64], fraction[16] = "";
    if (!gmtime_r(&seconds, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
        return ST_OK;
    if (rest_ns) {
        int n = snprintf(fraction, sizeof(fraction), ".%09d", rest_ns);
        while (fraction[n - 1] == '0')
            fraction[--n] = '\0';
    }
    int64_t left_ns = expires_ns > real_ns ? expires_ns - real_ns : 0;
    int64_t ttl = left_ns / NS_PER_S + (left_ns % NS_PER_S != 0);
    TRY(buf_append_format(to, ",\"expiration\":\"%s%sZ\"", text, fraction));
    return ttl ? buf_append_format(to, ",\"ttl\":%" PRId64, ttl) : ST_OK;
}

enum status v2_node_json_open(struct buf *to, const struct v2_node *node, bool gone,
                              int64_t real_ns)
{
    if (node->key.len == ROOT_BYTES)
        return buf_append_text(to, "{\"dir\":true");
    AUTO(buf_fini) struct buf path = {0};
    TRY(v2_key_path(node->key, &path));
    TRY(buf_append_text(to, "{\"key\":"));
    TRY(append_string(to, buf_slice(&path)));
    if (node->dir) {
        TRY(buf_append_text(to, ",\"dir\":true"));
    } else if (!gone) {
        TRY(buf_append_text(to, ",\"value\":"));
        TRY(append_string(to, node->value));
    }
    return node->expires_ns && !gone ? append_expiry(to, node->expires_ns, real_ns) : ST_OK;
}

enum status v2_node_json_close(struct buf *to, const struct v2_node *node)
{
    if (node->key.len == ROOT_BYTES)
        return buf_append_text(to, "}");
    return buf_append_format(to, ",\"modifiedIndex\":%" PRId64 ",\"createdIndex\":%" PRId64 "}",
                             node->modified, node->created);
}

enum status v2_event_json(struct buf *to, enum v2_action action, const struct v2_node *node,
                          const struct v2_node *prev, int64_t real_ns)
{
    bool gone = action == V2_DELETE || action == V2_COMPARE_AND_DELETE || action == V2_EXPIRE;
    TRY(buf_append_format(to, "{\"action\":\"%s\"", action_name(action)));
    if (node) {
        TRY(buf_append_text(to, ",\"node\":"));
        TRY(v2_node_json_open(to, node, gone, real_ns));
        TRY(v2_node_json_close(to, node));
    }
    if (prev) {
        TRY(buf_append_text(to, ",\"prevNode\":"));
        TRY(v2_node_json_open(to, prev, false, real_ns));
        TRY(v2_node_json_close(to, prev));
    }
    return buf_append_text(to, "}\n");
}
