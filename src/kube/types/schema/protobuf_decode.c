#include "kube/types/schema/protobuf.h"

#include "codec/base64.h"
#include "codec/kube_time.h"
#include "codec/pb/wire.h"
#include "kube/types/schema/go_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct slice magic = {(const uint8_t *)"k8s\0", 4};

struct protobuf_decoder {
    struct arena *arena;
    struct error *error;
    unsigned depth;
};

/* One field as it is encoded. */
struct wire_field {
    uint64_t number;
    enum pb_wire wire;
    uint64_t varint;    /* also of fixed-width fields */
    struct slice bytes; /* PB_WIRE_LEN */
};

static enum status malformed(struct protobuf_decoder *d, const char *what)
{
    return error_set(d->error, ST_MALFORMED, "proto: %s", what);
}

static enum status no_memory(struct protobuf_decoder *d)
{
    return error_set(d->error, ST_NOMEM, "too large to be decoded");
}

/* -- The wire format -- */

/* A number of up to ten bytes, of which Kubernetes' decoders drop the bits beyond 64. NULL: it does
 * not end. */
static const uint8_t *read_varint(const uint8_t *p, const uint8_t *end, uint64_t *ret_value)
{
    const uint8_t *after = pb_varint_read(p, end, ret_value);
    if (LIKELY(after))
        return after;
    *ret_value = 0;
    for (unsigned i = 0; i < PB_VARINT_BYTES_MAX && p < end; i++, p++) {
        *ret_value |= (uint64_t)(*p & 0x7f) << (7 * i);
        if (*p < 0x80)
            return p + 1;
    }
    return NULL;
}

/* The value of a field that is not a group. NULL: it exceeds the end. */
static const uint8_t *read_value(const uint8_t *p, const uint8_t *end, struct wire_field *field)
{
    size_t width = field->wire == PB_WIRE_I64 ? 8 : field->wire == PB_WIRE_I32 ? 4 : 0;
    uint64_t len;
    if (field->wire == PB_WIRE_VARINT)
        return read_varint(p, end, &field->varint);
    if (field->wire == PB_WIRE_LEN) {
        p = read_varint(p, end, &len);
        if (!p || len > (uint64_t)(end - p))
            return NULL;
        field->bytes = slice_of(p, (size_t)len);
        return p + len;
    }
    if ((size_t)(end - p) < width)
        return NULL;
    for (size_t i = width; i-- > 0;)
        field->varint = field->varint << 8 | p[i];
    return p + width;
}

static bool is_wire(enum pb_wire wire)
{
    return wire <= PB_WIRE_LEN || wire == PB_WIRE_I32;
}

/* The rest of a group, in which only the ends of groups are counted. Only unknown fields may be
 * groups. NULL: it does not end, or has something else. */
static const uint8_t *skip_group(const uint8_t *p, const uint8_t *end)
{
    for (size_t depth = 1; depth > 0;) {
        uint64_t tag;
        struct wire_field field = {0};
        p = read_varint(p, end, &tag);
        if (!p)
            return NULL;
        field.wire = (enum pb_wire)(tag & 7);
        if (field.wire == PB_WIRE_GROUP)
            depth++;
        else if (field.wire == PB_WIRE_GROUP_END)
            depth--;
        else
            p = is_wire(field.wire) ? read_value(p, end, &field) : NULL;
        if (!p)
            return NULL;
    }
    return p;
}

/* Reads the next field. As in Kubernetes' decoders only 32 bits of its number count. */
static enum status read_field(struct protobuf_decoder *d, struct slice *bytes,
                              struct wire_field *ret_field)
{
    const uint8_t *p = bytes->ptr, *end = p + bytes->len;
    uint64_t tag;
    *ret_field = (struct wire_field){0};
    p = read_varint(p, end, &tag);
    if (!p)
        return malformed(d, "unexpected EOF");
    int32_t number = (int32_t)(uint32_t)(tag >> 3);
    ret_field->wire = (enum pb_wire)(tag & 7);
    if (ret_field->wire == PB_WIRE_GROUP_END)
        return malformed(d, "wiretype end group for non-group");
    if (number <= 0)
        return malformed(d, "illegal tag");
    if (ret_field->wire != PB_WIRE_GROUP && !is_wire(ret_field->wire))
        return malformed(d, "illegal wireType");
    ret_field->number = (uint32_t)number;
    p = ret_field->wire == PB_WIRE_GROUP ? skip_group(p, end) : read_value(p, end, ret_field);
    if (!p)
        return malformed(d, "unexpected EOF");
    *bytes = slice_of(p, (size_t)(end - p));
    return ST_OK;
}

static enum status check_wire(struct protobuf_decoder *d, const struct wire_field *field,
                              enum pb_wire wanted, struct slice name)
{
    if (field->wire == wanted)
        return ST_OK;
    return error_set(d->error, ST_MALFORMED, "proto: wrong wireType = %d for field %.*s",
                     (int)field->wire, SLICE_ARGS(name));
}

static enum pb_wire wire_of(enum kube_value value)
{
    switch (value) {
    case KUBE_VALUE_BOOL:
    case KUBE_VALUE_INT32:
    case KUBE_VALUE_INT64:
        return PB_WIRE_VARINT;
    case KUBE_VALUE_DOUBLE:
        return PB_WIRE_I64;
    default:
        return PB_WIRE_LEN;
    }
}

/* -- Values -- */

static enum status message(struct protobuf_decoder *d, const struct kube_type *type,
                           struct slice bytes, struct json_node **ret_node);

static enum status made(struct protobuf_decoder *d, struct json_node *node,
                        struct json_node **ret_node)
{
    *ret_node = node;
    return node ? ST_OK : no_memory(d);
}

/* The text is not copied. */
static enum status text_node(struct protobuf_decoder *d, struct slice text,
                             struct json_node **ret_node)
{
    struct json_node *node = json_node_new(d->arena, JSON_TYPE_STRING);
    if (node)
        node->text = text;
    return made(d, node, ret_node);
}

static enum status null_node(struct protobuf_decoder *d, struct json_node **ret_node)
{
    return made(d, json_node_new(d->arena, JSON_TYPE_NULL), ret_node);
}

static enum status bool_node(struct protobuf_decoder *d, bool truth, struct json_node **ret_node)
{
    struct json_node *node = json_node_new(d->arena, JSON_TYPE_BOOL);
    if (node)
        node->truth = truth;
    return made(d, node, ret_node);
}

static enum status double_node(struct protobuf_decoder *d, uint64_t bits,
                               struct json_node **ret_node)
{
    double number;
    char digits[32];
    memcpy(&number, &bits, sizeof(number));
    if (!isfinite(number))
        return malformed(d, "a number that JSON cannot represent");
    int len = 0;
    /* Find the shortest text with the same value. */
    for (int precision = 15; precision <= 17; precision++) {
        len = snprintf(digits, sizeof(digits), "%.*g", precision, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    struct json_node *node = json_node_new_text(d->arena, slice_of(digits, (size_t)len));
    if (node)
        node->type = JSON_TYPE_NUMBER;
    return made(d, node, ret_node);
}

/* A small message of numbers and texts: the fields 1, 2, … with their names and wire types. */
enum { SMALL_FIELDS = 4 };
struct small {
    struct {
        const char *name; /* NULL: there is no such field */
        enum pb_wire wire;
    } fields[SMALL_FIELDS];
};

static const struct small
    timestamp = {.fields = {[1] = {"Seconds", PB_WIRE_VARINT}, [2] = {"Nanos", PB_WIRE_VARINT}}},
    int_or_string = {.fields = {[1] = {"Type", PB_WIRE_VARINT},
                                [2] = {"IntVal", PB_WIRE_VARINT},
                                [3] = {"StrVal", PB_WIRE_LEN}}},
    raw_extension = {.fields = {[1] = {"Raw", PB_WIRE_LEN}}},
    type_meta = {.fields = {[1] = {"APIVersion", PB_WIRE_LEN}, [2] = {"Kind", PB_WIRE_LEN}}};

/* If a field is repeated, the last one counts. */
static enum status merge_small(struct protobuf_decoder *d, const struct small *type,
                               struct slice bytes, struct wire_field fields[SMALL_FIELDS])
{
    while (bytes.len) {
        struct wire_field field;
        TRY(read_field(d, &bytes, &field));
        if (field.number >= SMALL_FIELDS || !type->fields[field.number].name)
            continue;
        TRY(check_wire(d, &field, type->fields[field.number].wire,
                       slice_from_text(type->fields[field.number].name)));
        fields[field.number] = field;
    }
    return ST_OK;
}

static enum status read_small(struct protobuf_decoder *d, const struct small *type,
                              struct slice bytes, struct wire_field fields[SMALL_FIELDS])
{
    memset(fields, 0, SMALL_FIELDS * sizeof(fields[0]));
    return merge_small(d, type, bytes, fields);
}

/* Microseconds of less than a second, as Go makes them of any number of nanoseconds. */
static bool normal_time(int64_t *seconds, int32_t *nanos)
{
    int64_t left = *nanos - *nanos % 1000;
    int64_t whole = left / 1000000000 - (left % 1000000000 < 0);
    *nanos = (int32_t)(left - whole * 1000000000);
    return !__builtin_add_overflow(*seconds, whole, seconds);
}

static enum status time_node(struct protobuf_decoder *d, struct slice bytes, bool micro,
                             struct json_node **ret_node)
{
    struct wire_field fields[SMALL_FIELDS];
    char text[KUBE_TIME_BYTES];
    TRY(read_small(d, &timestamp, bytes, fields));
    int64_t seconds = (int64_t)fields[1].varint;
    int32_t nanos = micro ? (int32_t)fields[2].varint : 0; /* a Time ignores its nanoseconds */
    if (!normal_time(&seconds, &nanos))
        return malformed(d, "a time outside of the years 1 to 9999");
    if (!bytes.len || (seconds == KUBE_TIME_NONE && nanos == 0))
        return null_node(d, ret_node);
    if (!kube_time_write(seconds, nanos, micro, text))
        return malformed(d, "a time outside of the years 1 to 9999");
    return made(d, json_node_new_text(d->arena, slice_from_text(text)), ret_node);
}

static enum status quantity_node(struct protobuf_decoder *d, struct slice bytes,
                                 struct json_node **ret_node)
{
    struct slice text = SLICE_LITERAL("0");
    while (bytes.len) {
        struct wire_field field;
        TRY(read_field(d, &bytes, &field));
        if (field.number != 1)
            continue;
        TRY(check_wire(d, &field, PB_WIRE_LEN, SLICE_LITERAL("String_")));
        text = field.bytes;
        if (go_quantity_check(text, d->error) != ST_OK)
            return ST_MALFORMED;
    }
    return text_node(d, text, ret_node);
}

static enum status raw_node(struct protobuf_decoder *d, struct slice bytes,
                            struct json_node **ret_node)
{
    struct wire_field fields[SMALL_FIELDS];
    TRY(read_small(d, &raw_extension, bytes, fields));
    if (!fields[1].bytes.len)
        return null_node(d, ret_node);
    if (kube_protobuf_is(fields[1].bytes))
        return malformed(d, "protobuf where JSON is required");
    return json_tree_read(d->arena, fields[1].bytes, ret_node, d->error);
}

/* The encoded pieces of a message that is repeated: together they are one message. */
struct piece {
    struct slice bytes;
    const struct piece *before;
    size_t total; /* bytes of this one and of all before */
};

static enum status add_piece(struct protobuf_decoder *d, struct slice bytes,
                             const struct piece **last)
{
    struct piece *piece = arena_alloc(d->arena, sizeof(*piece));
    if (!piece)
        return no_memory(d);
    *piece = (struct piece){bytes, *last, bytes.len + (*last ? (*last)->total : 0)};
    *last = piece;
    return ST_OK;
}

static enum status join_pieces(struct protobuf_decoder *d, const struct piece *last,
                               struct slice *ret_bytes)
{
    *ret_bytes = last->bytes;
    if (!last->before)
        return ST_OK;
    uint8_t *joined = arena_alloc(d->arena, last->total + 1);
    if (!joined)
        return no_memory(d);
    *ret_bytes = slice_of(joined, last->total);
    for (; last; last = last->before)
        slice_copy(joined + last->total - last->bytes.len, last->bytes);
    return ST_OK;
}

/* JSONSchemaPropsOrArray, OrBool, OrStringArray: one of two alternatives. */
static enum status schema_node(struct protobuf_decoder *d, const struct kube_field *of,
                               struct slice bytes, struct json_node **ret_node)
{
    bool or_bool = of->value == KUBE_VALUE_SCHEMA_OR_BOOL;
    struct json_node *schema = NULL, *item, *list = json_node_new(d->arena, JSON_TYPE_ARRAY);
    const struct piece *pieces = NULL;
    bool allows = false;
    if (!list)
        return no_memory(d);
    while (bytes.len) {
        struct wire_field field;
        TRY(read_field(d, &bytes, &field));
        if (field.number > 2)
            continue;
        bool truth = or_bool && field.number == 1;
        TRY(check_wire(d, &field, truth ? PB_WIRE_VARINT : PB_WIRE_LEN, kube_field_name(of)));
        if (truth) {
            allows = field.varint != 0;
        } else if (field.number == (or_bool ? 2u : 1u)) {
            TRY(add_piece(d, field.bytes, &pieces));
        } else {
            TRY(of->value == KUBE_VALUE_SCHEMA_OR_STRINGS
                    ? text_node(d, field.bytes, &item)
                    : message(d, kube_field_type(of), field.bytes, &item));
            TRY(json_node_insert(list, NULL, item));
        }
    }
    if (pieces) {
        TRY(join_pieces(d, pieces, &bytes));
        TRY(message(d, kube_field_type(of), bytes, &schema));
    }
    *ret_node = list->count ? list : schema;
    if (*ret_node)
        return ST_OK;
    return or_bool ? bool_node(d, allows, ret_node) : null_node(d, ret_node);
}

static enum status value_node(struct protobuf_decoder *d, const struct kube_field *of,
                              const struct wire_field *field, struct json_node **ret_node)
{
    TRY(check_wire(d, field, wire_of((enum kube_value)of->value), kube_field_name(of)));
    switch ((enum kube_value)of->value) {
    case KUBE_VALUE_STRING:
        return text_node(d, field->bytes, ret_node);
    case KUBE_VALUE_BOOL:
        return bool_node(d, field->varint != 0, ret_node);
    case KUBE_VALUE_INT32:
        return made(d, json_node_new_int(d->arena, (int32_t)field->varint), ret_node);
    case KUBE_VALUE_INT64:
        return made(d, json_node_new_int(d->arena, (int64_t)field->varint), ret_node);
    case KUBE_VALUE_DOUBLE:
        return double_node(d, field->varint, ret_node);
    case KUBE_VALUE_BYTES: {
        size_t len = base64_encoded_len(field->bytes.len);
        uint8_t *text = arena_alloc(d->arena, len + 1);
        if (!text)
            return no_memory(d);
        base64_encode(field->bytes, text);
        return text_node(d, slice_of(text, len), ret_node);
    }
    case KUBE_VALUE_MESSAGE:
        return message(d, kube_field_type(of), field->bytes, ret_node);
    case KUBE_VALUE_TIME:
    case KUBE_VALUE_MICROTIME:
        return time_node(d, field->bytes, of->value == KUBE_VALUE_MICROTIME, ret_node);
    case KUBE_VALUE_QUANTITY:
        return quantity_node(d, field->bytes, ret_node);
    case KUBE_VALUE_INTORSTRING: {
        struct wire_field fields[SMALL_FIELDS];
        TRY(read_small(d, &int_or_string, field->bytes, fields));
        if (fields[1].varint > 1)
            return malformed(d, "impossible IntOrString.Type");
        if (fields[1].varint == 1)
            return text_node(d, fields[3].bytes, ret_node);
        return made(d, json_node_new_int(d->arena, (int32_t)fields[2].varint), ret_node);
    }
    case KUBE_VALUE_RAW:
        return raw_node(d, field->bytes, ret_node);
    case KUBE_VALUE_SCHEMA_OR_BOOL:
    case KUBE_VALUE_SCHEMA_OR_ARRAY:
    case KUBE_VALUE_SCHEMA_OR_STRINGS:
        return schema_node(d, of, field->bytes, ret_node);
    }
    return ST_INTERNAL;
}

/* A list in a message of its own, whose items are field 1. */
static enum status wrapped_list(struct protobuf_decoder *d, const struct kube_field *of,
                                struct slice bytes, struct json_node **ret_node)
{
    TRY(made(d, json_node_new(d->arena, JSON_TYPE_ARRAY), ret_node));
    while (bytes.len) {
        struct wire_field field;
        struct json_node *item;
        TRY(read_field(d, &bytes, &field));
        if (field.number != 1)
            continue;
        TRY(value_node(d, of, &field, &item));
        TRY(json_node_insert(*ret_node, NULL, item));
    }
    return ST_OK;
}

/* Kubernetes' decoders ignore the wire types in an entry and read beyond its end. No encoder writes
 * such entries, and we refuse them. */
static enum status read_entry(struct protobuf_decoder *d, struct slice bytes, enum pb_wire wire,
                              struct wire_field *ret_key, struct wire_field *ret_value)
{
    struct wire_field field;
    while (bytes.len) {
        if (read_field(d, &bytes, &field) != ST_OK ||
            (field.number == 1 && field.wire != PB_WIRE_LEN) ||
            (field.number == 2 && field.wire != wire))
            return malformed(d, "an entry of a map is malformed");
        if (field.number == 1)
            *ret_key = field;
        else if (field.number == 2)
            *ret_value = field;
    }
    return ST_OK;
}

static enum status map_entry(struct protobuf_decoder *d, const struct kube_field *of,
                             struct slice bytes, struct json_node *map)
{
    bool lists = of->shape == KUBE_SHAPE_MAP_OF_LISTS;
    enum pb_wire wire = lists ? PB_WIRE_LEN : wire_of((enum kube_value)of->value);
    struct wire_field key = {0}, value = {.wire = wire};
    struct json_node *node;
    TRY(read_entry(d, bytes, wire, &key, &value));
    if (lists)
        TRY(wrapped_list(d, of, value.bytes, &node));
    else
        TRY(value_node(d, of, &value, &node));
    return json_node_set(d->arena, map, key.bytes, node) == ST_OK ? ST_OK : no_memory(d);
}

/* -- Messages -- */

/* If a text, number or time is repeated, the last one counts. */
static enum status add_value(struct protobuf_decoder *d, const struct kube_field *of,
                             const struct wire_field *field, struct json_node **node)
{
    struct json_node *item;
    if (of->shape == KUBE_SHAPE_ONE)
        return value_node(d, of, field, node);
    bool list = of->shape == KUBE_SHAPE_LIST;
    if (!*node)
        TRY(made(d, json_node_new(d->arena, list ? JSON_TYPE_ARRAY : JSON_TYPE_OBJECT), node));
    if (!list) {
        TRY(check_wire(d, field, PB_WIRE_LEN, kube_field_name(of)));
        return map_entry(d, of, field->bytes, *node);
    }
    TRY(value_node(d, of, field, &item));
    return json_node_insert(*node, NULL, item);
}

static bool is_struct(const struct kube_field *field)
{
    return field->shape == KUBE_SHAPE_ONE && field->value >= KUBE_VALUE_MESSAGE;
}

/* Go's zero value of a field that was not sent. */
static enum status zero_node(struct protobuf_decoder *d, const struct kube_field *of,
                             struct json_node **ret_node)
{
    struct wire_field zero = {.wire = wire_of((enum kube_value)of->value)};
    if (of->flags & KUBE_FIELD_POINTER || of->shape != KUBE_SHAPE_ONE ||
        of->value == KUBE_VALUE_BYTES)
        return null_node(d, ret_node);
    return value_node(d, of, &zero, ret_node);
}

/* Whether Go's omitempty omits a value that was sent. */
static bool is_empty(const struct kube_field *of, const struct json_node *node)
{
    if (of->flags & KUBE_FIELD_POINTER)
        return false;
    switch ((enum json_type)node->type) {
    case JSON_TYPE_NULL:
        return of->flags & KUBE_FIELD_OMIT_ZERO;
    case JSON_TYPE_BOOL:
        return !is_struct(of) && !node->truth;
    case JSON_TYPE_NUMBER:
        return !is_struct(of) && slice_is(node->text, "0");
    case JSON_TYPE_STRING:
        return !is_struct(of) && !node->text.len;
    default:
        return false;
    }
}

static enum status move_members(struct protobuf_decoder *d, struct json_node *from,
                                struct json_node *to)
{
    while (from->first) {
        struct json_node *member = json_node_first(from);
        struct slice key = member->key;
        json_node_remove(from, member);
        if (json_node_set(d->arena, to, key, member) != ST_OK)
            return no_memory(d);
    }
    return ST_OK;
}

/* Sets the value of a field in the object as Go would. */
static enum status put_field(struct protobuf_decoder *d, const struct kube_field *of,
                             struct json_node *value, struct json_node *object)
{
    bool omits = of->flags & (KUBE_FIELD_OMIT_EMPTY | KUBE_FIELD_OMIT_ZERO);
    if (!of->number)
        return ST_OK; /* TypeMeta is in the envelope */
    if (!value) {
        bool stays = is_struct(of) && !(of->flags & (KUBE_FIELD_POINTER | KUBE_FIELD_OMIT_ZERO));
        if (omits && !stays)
            return ST_OK;
        TRY(zero_node(d, of, &value));
    }
    if (of->flags & KUBE_FIELD_INLINE)
        return value->type == JSON_TYPE_OBJECT ? move_members(d, value, object) : ST_OK;
    if (omits && is_empty(of, value))
        return ST_OK;
    return json_node_set(d->arena, object, kube_field_name(of), value) == ST_OK ? ST_OK
                                                                                : no_memory(d);
}

/* Whether a message that is repeated is merged with the one before. A time replaces it. */
static bool is_merged(const struct kube_field *of)
{
    return of->shape == KUBE_SHAPE_WRAPPED_LIST ||
           (is_struct(of) && of->value != KUBE_VALUE_TIME && of->value != KUBE_VALUE_MICROTIME);
}

/* The value of a field while its message is read. */
union value {
    struct json_node *node;
    const struct piece *pieces; /* is_merged */
};

static enum status read_fields(struct protobuf_decoder *d, const struct kube_type *type,
                               struct slice bytes, union value values[KUBE_TYPE_FIELDS_MAX])
{
    const struct kube_field *first = kube_type_fields(type);
    while (bytes.len) {
        struct wire_field field;
        TRY(read_field(d, &bytes, &field));
        const struct kube_field *of = kube_type_number(type, field.number);
        if (!of)
            continue;
        if (is_merged(of)) {
            TRY(check_wire(d, &field, PB_WIRE_LEN, kube_field_name(of)));
            TRY(add_piece(d, field.bytes, &values[of - first].pieces));
        } else {
            TRY(add_value(d, of, &field, &values[of - first].node));
        }
    }
    return ST_OK;
}

static enum status merged_node(struct protobuf_decoder *d, const struct kube_field *of,
                               const struct piece *pieces, struct json_node **ret_node)
{
    struct wire_field field = {.wire = PB_WIRE_LEN};
    *ret_node = NULL;
    if (!pieces)
        return ST_OK;
    TRY(join_pieces(d, pieces, &field.bytes));
    if (of->shape == KUBE_SHAPE_WRAPPED_LIST)
        return wrapped_list(d, of, field.bytes, ret_node);
    return value_node(d, of, &field, ret_node);
}

static enum status message(struct protobuf_decoder *d, const struct kube_type *type,
                           struct slice bytes, struct json_node **ret_node)
{
    union value values[KUBE_TYPE_FIELDS_MAX] = {0};
    struct json_node *object;
    assert(type->field_count <= KUBE_TYPE_FIELDS_MAX);
    if (d->depth == KUBE_PROTOBUF_DEPTH_MAX)
        return error_set(d->error, ST_LIMIT, "nested deeper than %d messages",
                         KUBE_PROTOBUF_DEPTH_MAX);
    d->depth++;
    TRY(made(d, json_node_new(d->arena, JSON_TYPE_OBJECT), &object));
    TRY(read_fields(d, type, bytes, values));
    const struct kube_field *field = kube_type_fields(type);
    for (size_t i = 0; i < type->field_count; i++) {
        if (is_merged(&field[i]))
            TRY(merged_node(d, &field[i], values[i].pieces, &values[i].node));
        TRY(put_field(d, &field[i], values[i].node, object));
    }
    d->depth--;
    *ret_node = object;
    return ST_OK;
}

/* -- The envelope -- */

bool kube_protobuf_is(struct slice bytes)
{
    return slice_has_prefix(bytes, magic);
}

static enum status put_type(struct protobuf_decoder *d, struct slice key, struct slice text,
                            struct json_node *object)
{
    struct json_node *node;
    TRY(text_node(d, text, &node));
    return json_node_set_first(d->arena, object, key, node) == ST_OK ? ST_OK : no_memory(d);
}

/* The object's bytes, and its version and kind. Like any message, a TypeMeta that is repeated is
 * merged with the one before. */
static enum status read_envelope(struct protobuf_decoder *d, struct slice bytes,
                                 struct wire_field meta[SMALL_FIELDS], struct slice *ret_object)
{
    memset(meta, 0, SMALL_FIELDS * sizeof(meta[0]));
    *ret_object = SLICE_EMPTY;
    while (bytes.len) {
        struct wire_field field;
        TRY(read_field(d, &bytes, &field));
        if (field.number >= 1 && field.number <= 4 && field.wire != PB_WIRE_LEN)
            return malformed(d, "wrong wireType for a field of Unknown");
        if (field.number == 1)
            TRY(merge_small(d, &type_meta, field.bytes, meta));
        else if (field.number == 2)
            *ret_object = field.bytes;
    }
    return ST_OK;
}

enum status kube_protobuf_decode(struct arena *arena, struct slice bytes,
                                 struct json_node **ret_object, struct error *error)
{
    struct protobuf_decoder d = {.arena = arena, .error = error};
    struct wire_field meta[SMALL_FIELDS];
    struct slice raw;
    if (!kube_protobuf_is(bytes))
        return error_set(error, ST_MALFORMED,
                         "provided data does not appear to be a protobuf message, expected prefix "
                         "[107 56 115 0]");
    TRY(read_envelope(&d, slice_sub(bytes, magic.len, bytes.len - magic.len), meta, &raw));
    const struct kube_type *type = kube_type_find(meta[1].bytes, meta[2].bytes);
    if (!type)
        return error_set(error, ST_NOT_FOUND,
                         "no kind \"%.*s\" is registered for version \"%.*s\" in scheme",
                         (int)size_min(meta[2].bytes.len, 128), (const char *)meta[2].bytes.ptr,
                         (int)size_min(meta[1].bytes.len, 128), (const char *)meta[1].bytes.ptr);
    struct json_node *object;
    TRY(message(&d, type, raw, &object));
    TRY(put_type(&d, SLICE_LITERAL("apiVersion"), meta[1].bytes, object));
    TRY(put_type(&d, SLICE_LITERAL("kind"), meta[2].bytes, object));
    *ret_object = object;
    return ST_OK;
}
