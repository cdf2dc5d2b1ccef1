#include "kubeclient/data/object.h"

#include "client/driver/bytes.h"
#include "codec/json/string.h"
#include "codec/utf8.h"
#include "kubeclient/data/json.h"
#include "kubeclient/data/protobuf.h"

#include <stdatomic.h>
#include <stdlib.h>

enum object_field { FIELD_NAMESPACE, FIELD_NAME, FIELD_UID, FIELD_VERSION, FIELDS };

static const struct slice field_names[FIELDS] = {
    [FIELD_NAMESPACE] = {(const uint8_t *)"namespace", 9},
    [FIELD_NAME] = {(const uint8_t *)"name", 4},
    [FIELD_UID] = {(const uint8_t *)"uid", 3},
    [FIELD_VERSION] = {(const uint8_t *)"resourceVersion", 15},
};

static const uint8_t field_numbers[FIELDS] = {
    [FIELD_NAMESPACE] = OBJECT_META_NAMESPACE,
    [FIELD_NAME] = OBJECT_META_NAME,
    [FIELD_UID] = OBJECT_META_UID,
    [FIELD_VERSION] = OBJECT_META_VERSION,
};

enum { FIELD_BYTES_MAX = UINT16_MAX }; /* limit on the length of uid and version */

struct vigil_kube_object {
    _Atomic uint32_t refs;
    uint32_t mark, indexed;
    uint32_t sent_bytes; /* the key follows */
    uint32_t key_bytes;
    uint32_t namespace_bytes : 31; /* the beginning of the key; 0: it is the name alone */
    uint32_t is_protobuf : 1;
    uint32_t uid_at, version_at; /* in bytes */
    uint16_t uid_bytes, version_bytes;
    uint8_t bytes[]; /* as they were sent, the key, and the other fields if they have escapes */
};

_Static_assert(sizeof(struct vigil_kube_object) == 36, "a program may have millions of them");

/* The texts of the fields; empty: absent. Those with escapes are JSON strings with their quotes. */
struct found_fields {
    struct slice text[FIELDS];
    bool escaped[FIELDS];
    bool beyond_ascii; /* whether any of them is beyond ASCII */
    uint8_t count;     /* JSON: those that were found */
};

/* -- Reading metadata: JSON -- */

static bool note_field(struct json_scanner *s, struct found_fields *found)
{
    size_t field = 0;
    while (field < FIELDS && !json_token_is(s, field_names[field]))
        field++;
    if (field == FIELDS || found->text[field].ptr) /* as in vigil/kube/json.h, the first counts */
        return json_skip(s, JSON_KEY);
    enum json_token token = json_next(s);
    if (token != JSON_STRING)
        return json_skip(s, token);
    found->count++;
    found->text[field] = s->escaped ? s->raw : slice_sub(s->raw, 1, s->raw.len - 2);
    found->escaped[field] = s->escaped;
    found->beyond_ascii |= s->beyond_ascii;
    return true;
}

static bool read_metadata(struct json_scanner *s, struct found_fields *found)
{
    enum json_token token = json_next(s);
    if (token != JSON_OBJECT)
        return false;
    while (found->count < FIELDS && (token = json_next(s)) == JSON_KEY) {
        if (!note_field(s, found))
            return false;
    }
    return found->count == FIELDS || token == JSON_OBJECT_END;
}

/* Examines the text only up to the last of the fields, which servers send first. */
static bool find_in_json(struct slice json, struct found_fields *found)
{
    struct json_scanner s;
    json_scanner_init(&s, json);
    if (json_next(&s) != JSON_OBJECT)
        return false;
    while (json_next(&s) == JSON_KEY) {
        if (json_token_is(&s, SLICE_LITERAL("metadata")))
            return read_metadata(&s, found);
        if (!json_skip(&s, JSON_KEY))
            return false;
    }
    return false;
}

/* -- Reading metadata: protobuf -- */

static bool find_in_protobuf(struct slice bytes, struct found_fields *found)
{
    uint32_t number;
    vigil_pb_value value;
    struct envelope envelope;
    if (!envelope_read(bytes, &envelope))
        return false;
    struct slice metadata = protobuf_bytes(envelope.message, OBJECT_METADATA);
    vigil_pb_iterator iterator = vigil_pb_iterate(vigil_bytes_of(metadata.ptr, metadata.len));
    while (vigil_pb_next(&iterator, &number, &value)) {
        for (size_t field = 0; field < FIELDS; field++) {
            if (field_numbers[field] == number && !found->text[field].ptr)
                found->text[field] = slice_of(value.bytes.data, value.bytes.size);
        }
    }
    found->beyond_ascii = true; /* unknown */
    return !iterator.malformed;
}

/* -- Making -- */

/* Appends the decoded text of a field. False: it is not UTF-8. */
static bool append_field(struct vigil_kube_object *object, const struct found_fields *found,
                         enum object_field field, size_t *end)
{
    size_t len = found->text[field].len;
    uint8_t *to = object->bytes + *end;
    if (found->escaped[field]) {
        if (json_string_decode(found->text[field], to, &len) != JSON_STRING_FINE)
            return false;
    } else {
        slice_copy(to, found->text[field]);
        if (found->beyond_ascii && !utf8_valid(slice_of(to, len)))
            return false;
    }
    *end += len;
    return true;
}

/* A field without escapes is where it was sent. */
static bool place_field(struct vigil_kube_object *object, const struct found_fields *found,
                        const uint8_t *sent, enum object_field field, size_t *end, uint32_t *ret_at,
                        uint16_t *ret_bytes)
{
    size_t from = *end;
    struct slice text = found->text[field];
    if (text.len && !found->escaped[field]) {
        *ret_at = (uint32_t)(text.ptr - sent);
        *ret_bytes = (uint16_t)text.len;
        return true;
    }
    if (!append_field(object, found, field, end))
        return false;
    *ret_at = (uint32_t)from;
    *ret_bytes = (uint16_t)(*end - from);
    return true;
}

static bool place_key(struct vigil_kube_object *object, const struct found_fields *found,
                      size_t *end)
{
    size_t from = *end;
    if (!append_field(object, found, FIELD_NAMESPACE, end))
        return false;
    object->namespace_bytes = (uint32_t)(*end - from) & INT32_MAX;
    if (*end > from)
        object->bytes[(*end)++] = '/';
    size_t name = *end;
    if (!append_field(object, found, FIELD_NAME, end) || *end == name)
        return false;
    object->key_bytes = (uint32_t)(*end - from);
    return true;
}

/* An upper bound of the bytes after those that were sent. */
static size_t extra_bytes(const struct found_fields *found)
{
    size_t bytes = 1 + found->text[FIELD_NAMESPACE].len + found->text[FIELD_NAME].len;
    for (size_t i = FIELD_UID; i < FIELDS; i++)
        bytes += found->escaped[i] ? found->text[i].len : 0;
    return bytes;
}

enum status object_new(struct slice sent, struct vigil_kube_object **ret_object)
{
    struct found_fields found = {0};
    bool is_protobuf = envelope_begins(sent);
    if (!(is_protobuf ? find_in_protobuf(sent, &found) : find_in_json(sent, &found)))
        return ST_MALFORMED;
    size_t bytes = sent.len + extra_bytes(&found);
    if (bytes > INT32_MAX || found.text[FIELD_UID].len > FIELD_BYTES_MAX ||
        found.text[FIELD_VERSION].len > FIELD_BYTES_MAX)
        return ST_LIMIT;
    struct vigil_kube_object *object = malloc(sizeof(*object) + bytes);
    if (!object)
        return ST_NOMEM;
    *object = (struct vigil_kube_object){
        .sent_bytes = (uint32_t)sent.len,
        .is_protobuf = is_protobuf,
    };
    atomic_init(&object->refs, 1);
    /* The key and the fields that contain escapes are placed behind the bytes that were sent. */
    size_t end = sent.len;
    slice_copy(object->bytes, sent);
    if (!place_key(object, &found, &end) ||
        !place_field(object, &found, sent.ptr, FIELD_UID, &end, &object->uid_at,
                     &object->uid_bytes) ||
        !place_field(object, &found, sent.ptr, FIELD_VERSION, &end, &object->version_at,
                     &object->version_bytes)) {
        free(object);
        return ST_MALFORMED;
    }
    *ret_object = object;
    return ST_OK;
}

int vigil_kube_object_new(vigil_bytes sent, vigil_kube_object **ret_object)
{
    enum status status = object_new(slice_of(sent.data, sent.size), ret_object);
    if (status == ST_NOMEM)
        return VIGIL_ERROR_MEMORY;
    return status == ST_OK ? VIGIL_OK : VIGIL_ERROR_PROTOCOL;
}

vigil_kube_object *vigil_kube_object_ref(const vigil_kube_object *object)
{
    vigil_kube_object *own = (vigil_kube_object *)(uintptr_t)object;
    atomic_fetch_add_explicit(&own->refs, 1, memory_order_relaxed);
    return own;
}

void vigil_kube_object_unref(vigil_kube_object *object)
{
    if (!object)
        return;
    uint32_t before = atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1)
        free(object);
}

/* -- Reading -- */

struct slice object_sent(const struct vigil_kube_object *object)
{
    return slice_of(object->bytes, object->sent_bytes);
}

struct slice object_key(const struct vigil_kube_object *object)
{
    return slice_of(object->bytes + object->sent_bytes, object->key_bytes);
}

struct slice object_version(const struct vigil_kube_object *object)
{
    return slice_of(object->bytes + object->version_at, object->version_bytes);
}

uint32_t object_mark(const struct vigil_kube_object *object)
{
    return object->mark;
}

void object_set_mark(struct vigil_kube_object *object, uint32_t mark)
{
    object->mark = mark;
}

uint32_t object_indexed(const struct vigil_kube_object *object)
{
    return object->indexed;
}

void object_set_indexed(struct vigil_kube_object *object, uint32_t indexed)
{
    object->indexed = indexed;
}

/* Nothing, if the object is JSON. */
static struct envelope envelope_of(const struct vigil_kube_object *object)
{
    struct envelope envelope = {0};
    bool read = object->is_protobuf && envelope_read(object_sent(object), &envelope);
    assert(read == object->is_protobuf); /* it was read when the object was made */
    return envelope;
}

vigil_bytes vigil_kube_object_json(const vigil_kube_object *object)
{
    return bytes_of_slice(object->is_protobuf ? SLICE_EMPTY : object_sent(object));
}

vigil_bytes vigil_kube_object_protobuf(const vigil_kube_object *object)
{
    return bytes_of_slice(envelope_of(object).message);
}

vigil_bytes vigil_kube_object_kind(const vigil_kube_object *object)
{
    return object->is_protobuf ? bytes_of_slice(envelope_of(object).kind)
                               : json_plain_text(vigil_kube_object_json(object), "kind");
}

vigil_bytes vigil_kube_object_api_version(const vigil_kube_object *object)
{
    return object->is_protobuf ? bytes_of_slice(envelope_of(object).api_version)
                               : json_plain_text(vigil_kube_object_json(object), "apiVersion");
}

vigil_bytes vigil_kube_object_key(const vigil_kube_object *object)
{
    return bytes_of_slice(object_key(object));
}

vigil_bytes vigil_kube_object_name(const vigil_kube_object *object)
{
    struct slice key = object_key(object);
    size_t before = object->namespace_bytes ? object->namespace_bytes + 1 : 0;
    return bytes_of_slice(slice_sub(key, before, key.len - before));
}

vigil_bytes vigil_kube_object_namespace(const vigil_kube_object *object)
{
    return bytes_of_slice(slice_sub(object_key(object), 0, object->namespace_bytes));
}

vigil_bytes vigil_kube_object_uid(const vigil_kube_object *object)
{
    return vigil_bytes_of(object->bytes + object->uid_at, object->uid_bytes);
}

vigil_bytes vigil_kube_object_version(const vigil_kube_object *object)
{
    return bytes_of_slice(object_version(object));
}
