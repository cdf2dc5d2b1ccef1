/*
 * Messages are written from the end to the front, as Kubernetes' own encoder does, so that the
 * length of a message is known when its head is written.
 */
#include "kube/types/schema/protobuf.h"

#include "codec/base64.h"
#include "codec/kube_time.h"
#include "codec/pb/wire.h"

#include <stdio.h>
#include <stdlib.h>

struct protobuf_encoder {
    struct arena *arena;
    struct error *error;
    unsigned depth;
    uint8_t *ptr; /* owned; the written bytes are at its end */
    size_t capacity, len;
};

static enum status invalid(struct protobuf_encoder *e, const struct kube_field *field)
{
    return error_set(e->error, ST_INVALID, "the value of \"%.*s\" is not of its type",
                     SLICE_ARGS(kube_field_name(field)));
}

/* -- Bytes, each written before the previous ones -- */

static struct slice written(const struct protobuf_encoder *e)
{
    return e->ptr ? slice_of(e->ptr + e->capacity - e->len, e->len) : SLICE_EMPTY;
}

static enum status put(struct protobuf_encoder *e, struct slice bytes)
{
    if (bytes.len == 0)
        return ST_OK;
    if (e->capacity - e->len < bytes.len) {
        size_t capacity = 2 * (e->capacity + bytes.len) + 256;
        uint8_t *grown = malloc(capacity);
        if (!grown)
            return ST_NOMEM;
        slice_copy(grown + capacity - e->len, written(e));
        free(e->ptr);
        e->ptr = grown;
        e->capacity = capacity;
    }
    e->len += bytes.len;
    slice_copy(e->ptr + e->capacity - e->len, bytes);
    return ST_OK;
}

static enum status put_varint(struct protobuf_encoder *e, uint64_t value)
{
    uint8_t bytes[PB_VARINT_BYTES_MAX];
    return put(e, slice_of(bytes, (size_t)(pb_varint_write(bytes, value) - bytes)));
}

/* Writes the head of the bytes written since `from`. */
static enum status put_head(struct protobuf_encoder *e, uint32_t number, size_t from)
{
    TRY(put_varint(e, e->len - from));
    return put_varint(e, PB_TAG(number, PB_WIRE_LEN));
}

static enum status put_bytes(struct protobuf_encoder *e, uint32_t number, struct slice bytes)
{
    size_t from = e->len;
    TRY(put(e, bytes));
    return put_head(e, number, from);
}

static enum status put_uint(struct protobuf_encoder *e, uint32_t number, uint64_t value)
{
    TRY(put_varint(e, value));
    return put_varint(e, PB_TAG(number, PB_WIRE_VARINT));
}

/* -- Values -- */

static enum status put_message(struct protobuf_encoder *e, const struct kube_type *type,
                               const struct json_node *object);

static enum status put_text(struct protobuf_encoder *e, uint32_t number,
                            const struct json_node *node)
{
    struct slice text;
    TRY(json_node_text(node, e->arena, &text));
    return put_bytes(e, number, text);
}

static enum status put_double(struct protobuf_encoder *e, uint32_t number, struct slice digits)
{
    char text[64];
    uint8_t bytes[8];
    uint64_t bits;
    /* A longer number has more digits than a double can represent. */
    if (digits.len >= sizeof(text))
        return ST_INVALID;
    slice_copy(text, digits);
    text[digits.len] = '\0';
    double value = strtod(text, NULL);
    memcpy(&bits, &value, sizeof(bits));
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    TRY(put(e, slice_of(bytes, sizeof(bytes))));
    return put_varint(e, PB_TAG(number, PB_WIRE_I64));
}

static enum status put_number(struct protobuf_encoder *e, const struct kube_field *field,
                              uint32_t number, const struct json_node *node)
{
    int64_t value;
    if (node->type != JSON_TYPE_NUMBER)
        return invalid(e, field);
    if (field->value == KUBE_VALUE_DOUBLE)
        return put_double(e, number, node->text) == ST_OK ? ST_OK : invalid(e, field);
    if (!json_node_int(node, &value) ||
        (field->value == KUBE_VALUE_INT32 && value != (int32_t)value))
        return invalid(e, field);
    return put_uint(e, number, (uint64_t)value);
}

static enum status put_base64(struct protobuf_encoder *e, const struct kube_field *field,
                              uint32_t number, const struct json_node *node)
{
    struct slice text;
    size_t len;
    TRY(json_node_text(node, e->arena, &text));
    uint8_t *bytes = arena_alloc(e->arena, text.len / 4 * 3 + 3);
    if (!bytes)
        return ST_NOMEM;
    if (!base64_decode(text, bytes, &len))
        return invalid(e, field);
    return put_bytes(e, number, slice_of(bytes, len));
}

static enum status put_time(struct protobuf_encoder *e, const struct kube_field *field,
                            uint32_t number, const struct json_node *node)
{
    struct slice text;
    int64_t seconds;
    int32_t nanos;
    size_t from = e->len;
    TRY(json_node_text(node, e->arena, &text));
    if (!kube_time_read(text, &seconds, &nanos))
        return invalid(e, field);
    /* Kubernetes' encoder cuts off what is below a microsecond. */
    if (field->value == KUBE_VALUE_MICROTIME)
        TRY(put_uint(e, 2, (uint64_t)(nanos / 1000 * 1000)));
    TRY(put_uint(e, 1, (uint64_t)seconds));
    return put_head(e, number, from);
}

static enum status put_quantity(struct protobuf_encoder *e, uint32_t number,
                                const struct json_node *node)
{
    size_t from = e->len;
    if (node->type == JSON_TYPE_NUMBER)
        TRY(put_bytes(e, 1, node->text));
    else
        TRY(put_text(e, 1, node));
    return put_head(e, number, from);
}

static enum status put_int_or_string(struct protobuf_encoder *e, const struct kube_field *field,
                                     uint32_t number, const struct json_node *node)
{
    int64_t value = 0;
    size_t from = e->len;
    bool text = node->type == JSON_TYPE_STRING;
    if (!text && (!json_node_int(node, &value) || value != (int32_t)value))
        return invalid(e, field);
    if (text)
        TRY(put_text(e, 3, node));
    TRY(put_uint(e, 2, (uint64_t)value));
    TRY(put_uint(e, 1, text));
    return put_head(e, number, from);
}

static enum status put_raw(struct protobuf_encoder *e, uint32_t number,
                           const struct json_node *node)
{
    size_t from = e->len;
    AUTO(buf_fini) struct buf json = {0};
    TRY(json_tree_write(node, &json));
    TRY(put_bytes(e, 1, buf_slice(&json)));
    return put_head(e, number, from);
}

static enum status put_schema(struct protobuf_encoder *e, const struct kube_field *field,
                              uint32_t number, const struct json_node *node)
{
    size_t from = e->len;
    bool or_bool = field->value == KUBE_VALUE_SCHEMA_OR_BOOL;
    if (node->type == JSON_TYPE_BOOL && or_bool) {
        TRY(put_uint(e, 1, node->truth));
    } else if (node->type == JSON_TYPE_ARRAY && !or_bool) {
        for (const struct json_node *item = node->last; item; item = item->prev) {
            size_t item_from = e->len;
            if (field->value == KUBE_VALUE_SCHEMA_OR_STRINGS) {
                TRY(put_text(e, 2, item));
                continue;
            }
            TRY(put_message(e, kube_field_type(field), item));
            TRY(put_head(e, 2, item_from));
        }
    } else {
        TRY(put_message(e, kube_field_type(field), node));
        TRY(put_head(e, or_bool ? 2 : 1, from));
        if (or_bool)
            TRY(put_uint(e, 1, 1));
    }
    return put_head(e, number, from);
}

static enum status put_value(struct protobuf_encoder *e, const struct kube_field *field,
                             uint32_t number, const struct json_node *node)
{
    size_t from = e->len;
    switch ((enum kube_value)field->value) {
    case KUBE_VALUE_STRING:
        return node->type == JSON_TYPE_STRING ? put_text(e, number, node) : invalid(e, field);
    case KUBE_VALUE_BOOL:
        return node->type == JSON_TYPE_BOOL ? put_uint(e, number, node->truth) : invalid(e, field);
    case KUBE_VALUE_INT32:
    case KUBE_VALUE_INT64:
    case KUBE_VALUE_DOUBLE:
        return put_number(e, field, number, node);
    case KUBE_VALUE_BYTES:
        return put_base64(e, field, number, node);
    case KUBE_VALUE_MESSAGE:
        TRY(put_message(e, kube_field_type(field), node));
        return put_head(e, number, from);
    case KUBE_VALUE_TIME:
    case KUBE_VALUE_MICROTIME:
        return put_time(e, field, number, node);
    case KUBE_VALUE_QUANTITY:
        return put_quantity(e, number, node);
    case KUBE_VALUE_INTORSTRING:
        return put_int_or_string(e, field, number, node);
    case KUBE_VALUE_RAW:
        return put_raw(e, number, node);
    case KUBE_VALUE_SCHEMA_OR_BOOL:
    case KUBE_VALUE_SCHEMA_OR_ARRAY:
    case KUBE_VALUE_SCHEMA_OR_STRINGS:
        return put_schema(e, field, number, node);
    }
    return ST_INTERNAL;
}

/* -- Lists and maps, last item first -- */

/* A null in a list is Go's zero value: an empty message for anything but a number. */
static enum status put_item(struct protobuf_encoder *e, const struct kube_field *field,
                            uint32_t number, const struct json_node *item)
{
    if (item->type != JSON_TYPE_NULL)
        return put_value(e, field, number, item);
    if (field->value == KUBE_VALUE_RAW)
        return put_raw(e, number, item);
    return put_bytes(e, number, SLICE_EMPTY);
}

static enum status put_list(struct protobuf_encoder *e, const struct kube_field *field,
                            uint32_t number, const struct json_node *list)
{
    if (list->type != JSON_TYPE_ARRAY)
        return invalid(e, field);
    for (const struct json_node *item = list->last; item; item = item->prev)
        TRY(put_item(e, field, number, item));
    return ST_OK;
}

static enum status put_map(struct protobuf_encoder *e, const struct kube_field *field,
                           const struct json_node *map)
{
    if (map->type != JSON_TYPE_OBJECT)
        return invalid(e, field);
    for (const struct json_node *member = map->last; member; member = member->prev) {
        size_t from = e->len;
        if (field->shape == KUBE_SHAPE_MAP_OF_LISTS) {
            TRY(put_list(e, field, 1, member));
            TRY(put_head(e, 2, from));
        } else {
            TRY(put_item(e, field, 2, member));
        }
        TRY(put_bytes(e, 1, member->key));
        TRY(put_head(e, field->number, from));
    }
    return ST_OK;
}

/* -- Messages -- */

static enum status put_field(struct protobuf_encoder *e, const struct kube_field *field,
                             const struct json_node *object)
{
    size_t from = e->len;
    /* The field exists only in JSON. */
    if (!field->number)
        return ST_OK;
    if (field->flags & KUBE_FIELD_INLINE) {
        TRY(put_message(e, kube_field_type(field), object));
        return e->len == from ? ST_OK : put_head(e, field->number, from);
    }
    const struct json_node *node = json_node_member(object, kube_field_name(field));
    if (!node || node->type == JSON_TYPE_NULL)
        return ST_OK;
    if (field->shape == KUBE_SHAPE_ONE)
        return put_value(e, field, field->number, node);
    if (field->shape == KUBE_SHAPE_WRAPPED_LIST) {
        TRY(put_list(e, field, 1, node));
        return put_head(e, field->number, from);
    }
    return field->shape == KUBE_SHAPE_LIST ? put_list(e, field, field->number, node)
                                           : put_map(e, field, node);
}

static enum status put_message(struct protobuf_encoder *e, const struct kube_type *type,
                               const struct json_node *object)
{
    const struct kube_field *fields = kube_type_fields(type);
    if (object->type != JSON_TYPE_OBJECT)
        return error_set(e->error, ST_INVALID, "a %s is not an object", kube_type_name(type));
    if (e->depth == KUBE_PROTOBUF_DEPTH_MAX)
        return error_set(e->error, ST_LIMIT, "nested deeper than %d messages",
                         KUBE_PROTOBUF_DEPTH_MAX);
    e->depth++;
    for (size_t i = type->field_count; i-- > 0;)
        TRY(put_field(e, &fields[i], object));
    e->depth--;
    return ST_OK;
}

/* -- The envelope -- */

static enum status put_types(struct protobuf_encoder *e, struct slice version, struct slice kind)
{
    size_t from = e->len;
    TRY(put_bytes(e, 2, kind));
    TRY(put_bytes(e, 1, version));
    TRY(put_head(e, 1, from));
    /* The magic number, which distinguishes protobuf from JSON. */
    return put(e, slice_of("k8s\0", 4));
}

static enum status put_object(struct protobuf_encoder *e, const struct json_node *object)
{
    struct slice version, kind;
    TRY(json_node_text(json_node_named(object, "apiVersion"), e->arena, &version));
    TRY(json_node_text(json_node_named(object, "kind"), e->arena, &kind));
    const struct kube_type *type = kube_type_find(version, kind);
    if (!type)
        return error_set(e->error, ST_NOT_FOUND, "no such kind in protobuf");
    TRY(put(e, kube_protobuf_tail()));
    size_t from = e->len;
    TRY(put_message(e, type, object));
    TRY(put_head(e, 2, from));
    return put_types(e, version, kind);
}

static enum status put_event(struct protobuf_encoder *e, const char *type,
                             const struct json_node *object)
{
    TRY(put_object(e, object));
    /* The object is wrapped twice: in a RawExtension, and in field 2 of the WatchEvent. */
    TRY(put_head(e, 1, 0));
    TRY(put_head(e, 2, 0));
    TRY(put_bytes(e, 1, slice_from_text(type)));
    if (e->len > UINT32_MAX)
        return ST_LIMIT;
    /* In a stream each event has its length before it, in four bytes with the highest first. */
    uint8_t length[] = {(uint8_t)(e->len >> 24), (uint8_t)(e->len >> 16), (uint8_t)(e->len >> 8),
                        (uint8_t)e->len};
    return put(e, slice_of(length, sizeof(length)));
}

static enum status finish(struct protobuf_encoder *e, enum status status, struct buf *out)
{
    if (status == ST_OK)
        status = buf_append(out, written(e));
    free(e->ptr);
    return status;
}

enum status kube_protobuf_encode(struct arena *arena, const struct json_node *object,
                                 struct buf *out, struct error *error)
{
    struct protobuf_encoder e = {.arena = arena, .error = error};
    return finish(&e, put_object(&e, object), out);
}

enum status kube_protobuf_encode_event(struct arena *arena, const char *type,
                                       const struct json_node *object, struct buf *out,
                                       struct error *error)
{
    struct protobuf_encoder e = {.arena = arena, .error = error};
    return finish(&e, put_event(&e, type, object), out);
}

enum status kube_protobuf_encode_field(struct arena *arena, const struct kube_field *field,
                                       const struct json_node *value, struct buf *out,
                                       struct error *error)
{
    struct protobuf_encoder e = {.arena = arena, .error = error};
    return finish(&e, put_value(&e, field, field->number, value), out);
}

enum status kube_protobuf_encode_head(struct slice api_version, struct slice kind,
                                      size_t message_bytes, struct buf *out)
{
    struct protobuf_encoder e = {0};
    enum status status = put_varint(&e, message_bytes);
    if (status == ST_OK)
        status = put_varint(&e, PB_TAG(2, PB_WIRE_LEN));
    if (status == ST_OK)
        status = put_types(&e, api_version, kind);
    return finish(&e, status, out);
}

/* Content encoding and content type, both empty. */
struct slice kube_protobuf_tail(void)
{
    return SLICE_LITERAL("\x1a\0\x22\0");
}
