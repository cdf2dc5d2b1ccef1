#include "tier/object/object.h"

#include "codec/json/writer.h"
#include "codec/pb/wire.h"
#include "kube/types/schema/schema.h"
#include "kubeclient/data/json.h"
#include "kubeclient/data/protobuf.h"

#include <stdio.h>

enum { OBJECT_META_LABELS = 11, ENTRY_KEY = 1, ENTRY_VALUE = 2, VIEW_DEPTH = 2 };

static vigil_bytes bytes_of(struct slice slice)
{
    return (vigil_bytes){.data = slice.ptr, .size = slice.len};
}

static struct slice slice_from(vigil_bytes bytes)
{
    return slice_of(bytes.data, bytes.size);
}

/* -- What selectors see -- */

static void view_labels(struct json_writer *w, struct slice metadata)
{
    uint32_t field;
    vigil_pb_value value;
    vigil_pb_iterator iterator = vigil_pb_iterate(bytes_of(metadata));
    json_key(w, "labels");
    json_begin_object(w);
    while (vigil_pb_next(&iterator, &field, &value)) {
        struct slice entry = slice_from(value.bytes);
        if (field != OBJECT_META_LABELS || value.type != VIGIL_PB_BYTES)
            continue;
        json_key_of(w, protobuf_bytes(entry, ENTRY_KEY));
        json_string(w, protobuf_bytes(entry, ENTRY_VALUE));
    }
    json_end_object(w);
}

static void view_metadata(struct json_writer *w, struct slice metadata)
{
    json_key(w, "metadata");
    json_begin_object(w);
    json_member_string(w, "name", protobuf_bytes(metadata, OBJECT_META_NAME));
    json_member_string(w, "namespace", protobuf_bytes(metadata, OBJECT_META_NAMESPACE));
    view_labels(w, metadata);
    json_end_object(w);
}

static void view_fields(struct json_writer *w, const struct kube_type *type, struct slice message,
                        unsigned depth);

static void view_field(struct json_writer *w, const struct kube_field *field, vigil_pb_value value,
                       unsigned depth)
{
    struct slice bytes = slice_from(value.bytes);
    const struct kube_type *type = kube_field_type(field);
    if (field->shape != KUBE_SHAPE_ONE || field->flags & KUBE_FIELD_INLINE)
        return;
    bool is_text = value.type == VIGIL_PB_BYTES;
    switch (field->value) {
    case KUBE_VALUE_STRING:
        if (is_text && bytes.len) {
            json_key_of(w, kube_field_name(field));
            json_string(w, bytes);
        }
        break;
    case KUBE_VALUE_BOOL:
        json_key_of(w, kube_field_name(field));
        json_bool(w, value.number);
        break;
    case KUBE_VALUE_INT32:
    case KUBE_VALUE_INT64:
        json_key_of(w, kube_field_name(field));
        json_i64(w, (int64_t)value.number);
        break;
    case KUBE_VALUE_MESSAGE:
        if (is_text && type && depth > 1) {
            json_key_of(w, kube_field_name(field));
            json_begin_object(w);
            view_fields(w, type, bytes, depth - 1);
            json_end_object(w);
        }
        break;
    default:
        break;
    }
}

static void view_fields(struct json_writer *w, const struct kube_type *type, struct slice message,
                        unsigned depth)
{
    uint32_t number;
    vigil_pb_value value;
    vigil_pb_iterator iterator = vigil_pb_iterate(bytes_of(message));
    while (vigil_pb_next(&iterator, &number, &value)) {
        const struct kube_field *field = kube_type_number(type, number);
        bool is_metadata = depth == VIEW_DEPTH && number == OBJECT_METADATA;
        if (field && !is_metadata)
            view_field(w, field, value, depth);
    }
}

static enum status view_protobuf(const struct kube_kind *kind, struct slice bytes, struct buf *to)
{
    struct envelope envelope;
    struct json_writer w;
    if (!envelope_read(bytes, &envelope))
        return ST_MALFORMED;
    const struct kube_type *type = kind && kind->fields.count ? kube_type_of_kind(kind) : NULL;
    to->len = 0;
    json_writer_init(&w, to);
    json_begin_object(&w);
    view_metadata(&w, protobuf_bytes(envelope.message, OBJECT_METADATA));
    if (type)
        view_fields(&w, type, envelope.message, VIEW_DEPTH);
    json_end_object(&w);
    return json_writer_finish(&w);
}

enum status tier_object_view(enum tier_encoding encoding, const struct kube_kind *kind,
                             struct slice bytes, struct buf *scratch,
                             struct kube_object *ret_object)
{
    if (!tier_encoding_is_protobuf(encoding))
        return kube_object_parse(bytes, ret_object);
    TRY(view_protobuf(tier_encoding_is_metadata(encoding) ? NULL : kind, bytes, scratch));
    return kube_object_parse(buf_slice(scratch), ret_object);
}

/* -- Items of lists -- */

struct slice tier_object_item(struct slice json, struct slice *ret_head)
{
    struct kube_object object;
    *ret_head = SLICE_EMPTY;
    if (kube_object_parse_head(json, &object) != ST_OK || !object.leading)
        return json;
    *ret_head = SLICE_LITERAL("{");
    return slice_sub(json, object.at_rest, json.len - object.at_rest);
}

struct slice tier_object_message(struct slice bytes)
{
    struct envelope envelope;
    return envelope_read(bytes, &envelope) ? envelope.message : SLICE_EMPTY;
}

/* -- Another version -- */

static enum status append_json_at(struct slice json, struct slice version, struct buf *to)
{
    vigil_bytes value;
    if (!vigil_json_find(bytes_of(json), "metadata.resourceVersion", &value))
        return ST_MALFORMED;
    size_t at = (size_t)((const uint8_t *)value.data - json.ptr), end = at + value.size;
    TRY(buf_append(to, slice_sub(json, 0, at)));
    TRY(buf_append_format(to, "\"%.*s\"", SLICE_ARGS(version)));
    return buf_append(to, slice_sub(json, end, json.len - end));
}

static enum status append_length(struct buf *to, uint64_t tag, size_t bytes)
{
    TRY(buf_reserve(to, 20));
    uint8_t *end = pb_varint_write(to->ptr + to->len, tag << 3 | PB_WIRE_LEN);
    end = pb_varint_write(end, bytes);
    to->len = (size_t)(end - to->ptr);
    return ST_OK;
}

static size_t length_of(uint64_t tag, size_t bytes)
{
    return pb_varint_size(tag << 3 | PB_WIRE_LEN) + pb_varint_size(bytes) + bytes;
}

/* A field of a message, and the bytes before and after it with its tag and length. */
struct place {
    struct slice before, value, after;
};

static bool find_place(struct slice message, uint32_t wanted, struct place *ret_place)
{
    uint32_t field;
    vigil_pb_value value;
    vigil_pb_iterator iterator = vigil_pb_iterate(bytes_of(message));
    const uint8_t *start = iterator.at;
    for (; vigil_pb_next(&iterator, &field, &value); start = iterator.at) {
        if (field != wanted || value.type != VIGIL_PB_BYTES)
            continue;
        size_t at = (size_t)(start - message.ptr), end = (size_t)(iterator.at - message.ptr);
        *ret_place = (struct place){slice_sub(message, 0, at), slice_from(value.bytes),
                                    slice_sub(message, end, message.len - end)};
        return true;
    }
    return false;
}

/* envelope ► raw ► metadata ► resourceVersion: the lengths of all three may change. */
static enum status append_protobuf_at(struct slice bytes, struct slice version, struct buf *to)
{
    struct place raw, metadata, at;
    struct slice magic = SLICE_LITERAL("k8s\0");
    if (!envelope_begins(bytes) ||
        !find_place(slice_sub(bytes, magic.len, bytes.len - magic.len), UNKNOWN_RAW, &raw) ||
        !find_place(raw.value, OBJECT_METADATA, &metadata) ||
        !find_place(metadata.value, OBJECT_META_VERSION, &at))
        return ST_MALFORMED;
    size_t metadata_bytes =
        at.before.len + length_of(OBJECT_META_VERSION, version.len) + at.after.len;
    size_t raw_bytes =
        metadata.before.len + length_of(OBJECT_METADATA, metadata_bytes) + metadata.after.len;
    TRY(buf_append(to, magic));
    TRY(buf_append(to, raw.before));
    TRY(append_length(to, UNKNOWN_RAW, raw_bytes));
    TRY(buf_append(to, metadata.before));
    TRY(append_length(to, OBJECT_METADATA, metadata_bytes));
    TRY(buf_append(to, at.before));
    TRY(append_length(to, OBJECT_META_VERSION, version.len));
    TRY(buf_append(to, version));
    TRY(buf_append(to, at.after));
    TRY(buf_append(to, metadata.after));
    return buf_append(to, raw.after);
}

enum status tier_object_append_at(enum tier_encoding encoding, struct slice bytes, uint64_t version,
                                  struct buf *to)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)version);
    struct slice digits = slice_of(text, (size_t)len);
    return tier_encoding_is_protobuf(encoding) ? append_protobuf_at(bytes, digits, to)
                                               : append_json_at(bytes, digits, to);
}
