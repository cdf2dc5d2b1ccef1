#include "kubeclient/data/object.h"

#include "codec/json/string.h"

#include <stdatomic.h>
#include <stdlib.h>

enum object_field { FIELD_NAMESPACE, FIELD_NAME, FIELD_UID, FIELD_VERSION, FIELDS };

static const struct slice field_names[FIELDS] = {
    [FIELD_NAMESPACE] = {(const uint8_t *)"namespace", 9},
    [FIELD_NAME] = {(const uint8_t *)"name", 4},
    [FIELD_UID] = {(const uint8_t *)"uid", 3},
    [FIELD_VERSION] = {(const uint8_t *)"resourceVersion", 15},
};

/* Where the text of a field is in the bytes of its object. */
struct object_part {
    uint32_t at, len;
};

struct vigil_kube_object {
    _Atomic uint32_t refs;
    uint32_t json_bytes;
    uint32_t mark;
    struct object_part fields[FIELDS]; /* name and namespace are parts of the key */
    struct object_part key;
    uint8_t bytes[]; /* the JSON, the key, and what of the other fields has escapes */
};

/* -- Reading metadata -- */

/* The strings of the fields as they are written, with their quotes; empty: absent. */
struct found_fields {
    struct slice raw[FIELDS];
    bool escaped[FIELDS];
};

static bool note_field(struct json_scanner *s, struct found_fields *found)
{
    size_t field = 0;
    while (field < FIELDS && !json_token_is(s, field_names[field]))
        field++;
    if (field == FIELDS || found->raw[field].len) /* as in vigil/kube/json.h, the first counts */
        return json_skip(s, JSON_KEY);
    enum json_token token = json_next(s);
    if (token != JSON_STRING)
        return json_skip(s, token);
    found->raw[field] = s->raw;
    found->escaped[field] = s->escaped;
    return true;
}

static bool read_metadata(struct json_scanner *s, struct found_fields *found)
{
    enum json_token token = json_next(s);
    if (token != JSON_OBJECT)
        return false;
    while ((token = json_next(s)) == JSON_KEY) {
        if (!note_field(s, found))
            return false;
    }
    return token == JSON_OBJECT_END;
}

/* Examines the text only up to the end of the metadata, which servers send first. */
static bool find_fields(struct slice json, struct found_fields *found)
{
    struct json_scanner s;
    json_scanner_init(&s, json);
    if (json_next(&s) != JSON_OBJECT)
        return false;
    while (json_next(&s) == JSON_KEY) {
        if (json_token_is(&s, SLICE_LITERAL("metadata")))
            return read_metadata(&s, found) && found->raw[FIELD_NAME].len > 2;
        if (!json_skip(&s, JSON_KEY))
            return false;
    }
    return false;
}

/* -- Making -- */

/* Appends the decoded text of a field. False: it is not UTF-8. */
static bool append_field(struct vigil_kube_object *object, const struct found_fields *found,
                         enum object_field field, size_t *end)
{
    size_t len = 0;
    struct slice raw = found->raw[field];
    if (raw.len && json_string_decode(raw, object->bytes + *end, &len) != JSON_STRING_FINE)
        return false;
    object->fields[field] = (struct object_part){(uint32_t)*end, (uint32_t)len};
    *end += len;
    return true;
}

/* A field without escapes is where it is in the JSON. */
static bool place_field(struct vigil_kube_object *object, const struct found_fields *found,
                        const uint8_t *json, enum object_field field, size_t *end)
{
    struct slice raw = found->raw[field];
    if (!raw.len || found->escaped[field])
        return append_field(object, found, field, end);
    object->fields[field] =
        (struct object_part){(uint32_t)(raw.ptr + 1 - json), (uint32_t)(raw.len - 2)};
    return true;
}

static bool place_key(struct vigil_kube_object *object, const struct found_fields *found,
                      size_t *end)
{
    size_t from = *end;
    if (!append_field(object, found, FIELD_NAMESPACE, end))
        return false;
    if (*end > from)
        object->bytes[(*end)++] = '/';
    if (!append_field(object, found, FIELD_NAME, end))
        return false;
    object->key = (struct object_part){(uint32_t)from, (uint32_t)(*end - from)};
    return true;
}

static bool place(struct vigil_kube_object *object, const struct found_fields *found,
                  struct slice json)
{
    size_t end = json.len;
    slice_copy(object->bytes, json);
    return place_key(object, found, &end) &&
           place_field(object, found, json.ptr, FIELD_UID, &end) &&
           place_field(object, found, json.ptr, FIELD_VERSION, &end);
}

/* An upper bound of the bytes after the JSON. */
static size_t extra_bytes(const struct found_fields *found)
{
    size_t bytes = 1;
    for (size_t i = 0; i < FIELDS; i++)
        bytes += found->raw[i].len;
    return bytes;
}

enum status object_new(struct slice json, struct vigil_kube_object **ret_object)
{
    struct found_fields found = {0};
    if (!find_fields(json, &found))
        return ST_MALFORMED;
    size_t bytes = json.len + extra_bytes(&found);
    if (bytes > UINT32_MAX)
        return ST_LIMIT;
    struct vigil_kube_object *object = calloc(1, sizeof(*object) + bytes);
    if (!object)
        return ST_NOMEM;
    atomic_init(&object->refs, 1);
    object->json_bytes = (uint32_t)json.len;
    if (!place(object, &found, json)) {
        free(object);
        return ST_MALFORMED;
    }
    *ret_object = object;
    return ST_OK;
}

int vigil_kube_object_new(vigil_bytes json, vigil_kube_object **ret_object)
{
    enum status status = object_new(slice_of(json.data, json.size), ret_object);
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

static struct slice part(const struct vigil_kube_object *object, struct object_part part)
{
    return slice_of(object->bytes + part.at, part.len);
}

static vigil_bytes part_bytes(const struct vigil_kube_object *object, struct object_part p)
{
    return vigil_bytes_of(object->bytes + p.at, p.len);
}

struct slice object_json(const struct vigil_kube_object *object)
{
    return slice_of(object->bytes, object->json_bytes);
}

struct slice object_key(const struct vigil_kube_object *object)
{
    return part(object, object->key);
}

struct slice object_version(const struct vigil_kube_object *object)
{
    return part(object, object->fields[FIELD_VERSION]);
}

uint32_t object_mark(const struct vigil_kube_object *object)
{
    return object->mark;
}

void object_set_mark(struct vigil_kube_object *object, uint32_t mark)
{
    object->mark = mark;
}

vigil_bytes vigil_kube_object_json(const vigil_kube_object *object)
{
    return vigil_bytes_of(object->bytes, object->json_bytes);
}

vigil_bytes vigil_kube_object_key(const vigil_kube_object *object)
{
    return part_bytes(object, object->key);
}

vigil_bytes vigil_kube_object_name(const vigil_kube_object *object)
{
    return part_bytes(object, object->fields[FIELD_NAME]);
}

vigil_bytes vigil_kube_object_namespace(const vigil_kube_object *object)
{
    return part_bytes(object, object->fields[FIELD_NAMESPACE]);
}

vigil_bytes vigil_kube_object_uid(const vigil_kube_object *object)
{
    return part_bytes(object, object->fields[FIELD_UID]);
}

vigil_bytes vigil_kube_object_version(const vigil_kube_object *object)
{
    return part_bytes(object, object->fields[FIELD_VERSION]);
}
