#include "tier/mirror/arrived.h"

#include "codec/json/string.h"
#include "codec/utf8.h"
#include "kubeclient/data/json.h"
#include "kubeclient/data/protobuf.h"

bool arrived_read_version(struct slice text, uint64_t *ret_version)
{
    uint64_t version;
    if (!slice_decimal(text, &version) || version == 0)
        return false;
    *ret_version = version;
    return true;
}

/* -- Both forms -- */

/* The texts that make a key; what an object does not have is empty. */
struct parts {
    struct slice name_space, name, version;
};

static enum status make_key(struct buf *key, const struct parts *parts)
{
    if (!parts->name.len)
        return ST_MALFORMED;
    if (parts->name_space.len + parts->name.len >= ARRIVED_KEY_BYTES_MAX)
        return ST_LIMIT;
    key->len = 0;
    TRY(buf_append(key, parts->name_space));
    if (parts->name_space.len)
        TRY(buf_append_text(key, "/"));
    return buf_append(key, parts->name);
}

static enum status finish(struct buf *key, const struct parts *parts, struct arrived *arrived)
{
    TRY(make_key(key, parts));
    arrived->key = buf_slice(key);
    return arrived_read_version(parts->version, &arrived->version) ? ST_OK : ST_INVALID;
}

/* -- JSON -- */

enum { TEXT_BYTES_MAX = ARRIVED_KEY_BYTES_MAX };

/* Texts with escapes: a name may contain "<", which Go writes as "\u003c". */
struct decoded {
    uint8_t name_space[TEXT_BYTES_MAX], name[TEXT_BYTES_MAX], version[TEXT_BYTES_MAX];
};

/* The string that follows a key. */
static enum status take_text(struct json_scanner *s, uint8_t room[TEXT_BYTES_MAX],
                             struct slice *ret_text)
{
    enum json_token token = json_next(s);
    if (token == JSON_NULL)
        return ST_OK;
    if (token != JSON_STRING)
        return ST_MALFORMED;
    if (s->raw.len > TEXT_BYTES_MAX)
        return ST_LIMIT;
    return json_string_get(s, room, ret_text) == JSON_STRING_FINE ? ST_OK : ST_MALFORMED;
}

static enum status read_metadata(struct json_scanner *s, struct decoded *decoded,
                                 struct parts *parts)
{
    enum json_token token = json_next(s);
    if (token != JSON_OBJECT)
        return ST_MALFORMED;
    while ((token = json_next(s)) == JSON_KEY) {
        enum status status = ST_OK;
        if (!parts->name.ptr && json_token_is(s, SLICE_LITERAL("name")))
            status = take_text(s, decoded->name, &parts->name);
        else if (!parts->name_space.ptr && json_token_is(s, SLICE_LITERAL("namespace")))
            status = take_text(s, decoded->name_space, &parts->name_space);
        else if (!parts->version.ptr && json_token_is(s, SLICE_LITERAL("resourceVersion")))
            status = take_text(s, decoded->version, &parts->version);
        else if (!json_skip(s, JSON_KEY))
            status = ST_MALFORMED;
        TRY(status);
    }
    return token == JSON_OBJECT_END ? ST_OK : ST_MALFORMED;
}

/* Examines the object up to the last of the three members that it has: servers send them first. */
static enum status read_json(struct slice object, struct buf *key, struct arrived *arrived)
{
    struct json_scanner s;
    struct decoded decoded;
    struct parts parts = {0};
    bool read = false;
    enum json_token token = JSON_KEY;
    json_scanner_init(&s, object);
    *arrived = (struct arrived){.lacks_kind = true, .lacks_api_version = true};
    if (json_next(&s) != JSON_OBJECT)
        return ST_MALFORMED;
    while ((!read || arrived->lacks_kind || arrived->lacks_api_version) &&
           (token = json_next(&s)) == JSON_KEY) {
        if (!read && json_token_is(&s, SLICE_LITERAL("metadata"))) {
            TRY(read_metadata(&s, &decoded, &parts));
            read = true;
            continue;
        }
        if (json_token_is(&s, SLICE_LITERAL("kind")))
            arrived->lacks_kind = false;
        else if (json_token_is(&s, SLICE_LITERAL("apiVersion")))
            arrived->lacks_api_version = false;
        if (!json_skip(&s, JSON_KEY))
            return ST_MALFORMED;
    }
    if (!read || (token != JSON_KEY && token != JSON_OBJECT_END))
        return ST_MALFORMED;
    return finish(key, &parts, arrived);
}

/* -- Protobuf -- */

static bool read_fields(struct slice metadata, struct parts *parts)
{
    uint32_t number;
    vigil_pb_value value;
    vigil_pb_iterator iterator = vigil_pb_iterate(vigil_bytes_of(metadata.ptr, metadata.len));
    while (vigil_pb_next(&iterator, &number, &value)) {
        struct slice text = slice_of(value.bytes.data, value.bytes.size);
        if (number == OBJECT_META_NAME)
            parts->name = text;
        else if (number == OBJECT_META_NAMESPACE)
            parts->name_space = text;
        else if (number == OBJECT_META_VERSION)
            parts->version = text;
    }
    return !iterator.malformed && utf8_valid(parts->name) && utf8_valid(parts->name_space);
}

static enum status read_protobuf(struct slice object, struct buf *key, struct arrived *arrived)
{
    struct envelope envelope;
    struct parts parts = {0};
    *arrived = (struct arrived){0};
    if (!envelope_read(object, &envelope) ||
        !read_fields(protobuf_bytes(envelope.message, OBJECT_METADATA), &parts))
        return ST_MALFORMED;
    return finish(key, &parts, arrived);
}

enum status arrived_read(struct slice object, struct buf *key, struct arrived *ret_arrived)
{
    struct arrived arrived;
    TRY(envelope_begins(object) ? read_protobuf(object, key, &arrived)
                                : read_json(object, key, &arrived));
    *ret_arrived = arrived;
    return ST_OK;
}

void arrived_read_kind(struct slice object, struct slice *ret_kind, struct slice *ret_api_version)
{
    struct envelope envelope = {0};
    if (envelope_begins(object)) {
        if (!envelope_read(object, &envelope))
            envelope = (struct envelope){0};
        *ret_kind = envelope.kind;
        *ret_api_version = envelope.api_version;
        return;
    }
    vigil_bytes json = vigil_bytes_of(object.ptr, object.len);
    vigil_bytes kind = json_plain_text(json, "kind");
    vigil_bytes api_version = json_plain_text(json, "apiVersion");
    *ret_kind = slice_of(kind.data, kind.size);
    *ret_api_version = slice_of(api_version.data, api_version.size);
}
