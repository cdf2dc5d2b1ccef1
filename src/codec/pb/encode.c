#include "codec/pb/pb.h"
#include "codec/pb/wire.h"

/* Messages are written from their last byte to their first: when the length of a sub-message is
 * written, its bytes are complete, so nothing is measured twice however deep it nests. */
struct pb_encoder {
    uint8_t *start;
    uint8_t *at; /* the first byte written so far */
};

static ALWAYS_INLINE bool is_number(const struct pb_field *field)
{
    return field->kind < PB_KIND_STRING;
}

static ALWAYS_INLINE uint64_t load_number(const struct pb_field *field, const void *at)
{
    if (field->kind >= PB_KIND_INT64)
        return *(const uint64_t *)at;
    if (field->kind == PB_KIND_BOOL)
        return *(const bool *)at;
    if (field->kind == PB_KIND_UINT32)
        return *(const uint32_t *)at;
    return (uint64_t)(int64_t)(*(const int32_t *)at); /* a negative one takes ten bytes */
}

/* The message that `at` refers to: the struct itself in an array, a pointer to it otherwise. */
static ALWAYS_INLINE const void *sub_message(const struct pb_field *field, const void *at)
{
    return field->label == PB_REPEATED ? at : *(const void *const *)at;
}

static const void *item_at(const struct pb_field *field, const struct pb_array *array, size_t i)
{
    return (const uint8_t *)array->items + i * field->item_bytes;
}

/* Whether a field that is not repeated is encoded. */
static ALWAYS_INLINE bool is_present(const struct pb_field *field, const void *base, const void *at)
{
    if (field->label == PB_ONEOF) {
        const void *which = (const uint8_t *)base + field->case_offset;
        return *(const uint32_t *)which == pb_field_number(field);
    }
    if (is_number(field))
        return load_number(field, at) != 0;
    if (field->kind == PB_KIND_MESSAGE)
        return *(const void *const *)at != NULL;
    return ((const struct slice *)at)->len != 0;
}

/* The size of the value without its tag. */
static ALWAYS_INLINE size_t value_size(const struct pb_field *field, const void *at)
{
    if (is_number(field))
        return pb_varint_size(load_number(field, at));
    size_t len;
    if (field->kind == PB_KIND_MESSAGE) {
        const void *message = sub_message(field, at);
        len = message ? pb_size(field->message, message) : 0; /* NULL in a oneof: an empty one */
    } else {
        len = ((const struct slice *)at)->len;
    }
    return pb_varint_size(len) + len;
}

static size_t repeated_size(const struct pb_field *field, const struct pb_array *array)
{
    size_t size = 0;
    for (size_t i = 0; i < array->count; i++)
        size += value_size(field, item_at(field, array, i));
    if (!is_number(field))
        return size + array->count * pb_varint_size(field->tag);
    return size ? pb_varint_size(field->tag) + pb_varint_size(size) + size : 0;
}

size_t pb_size(const struct pb_message *type, const void *message)
{
    size_t size = 0;
    for (size_t i = 0; i < type->field_count; i++) {
        const struct pb_field *field = &type->fields[i];
        const void *at = (const uint8_t *)message + field->offset;
        if (field->label == PB_REPEATED)
            size += repeated_size(field, at);
        else if (is_present(field, message, at))
            size += pb_varint_size(field->tag) + value_size(field, at);
    }
    return size;
}

static ALWAYS_INLINE void put_bytes(struct pb_encoder *e, struct slice bytes)
{
    assert(bytes.len <= (size_t)(e->at - e->start));
    e->at -= bytes.len;
    slice_copy(e->at, bytes);
}

static ALWAYS_INLINE void put_varint(struct pb_encoder *e, uint64_t value)
{
    size_t size = pb_varint_size(value);
    assert(size <= (size_t)(e->at - e->start));
    e->at -= size;
    pb_varint_write(e->at, value);
}

static void put_message(struct pb_encoder *e, const struct pb_message *type, const void *message);

static ALWAYS_INLINE void put_value(struct pb_encoder *e, const struct pb_field *field,
                                    const void *at)
{
    if (is_number(field)) {
        put_varint(e, load_number(field, at));
        return;
    }
    const uint8_t *end = e->at;
    if (field->kind != PB_KIND_MESSAGE)
        put_bytes(e, *(const struct slice *)at);
    else if (sub_message(field, at))
        put_message(e, field->message, sub_message(field, at));
    put_varint(e, (uint64_t)(end - e->at));
}

static void put_repeated(struct pb_encoder *e, const struct pb_field *field,
                         const struct pb_array *array)
{
    const uint8_t *end = e->at;
    for (size_t i = array->count; i-- > 0;) {
        put_value(e, field, item_at(field, array, i));
        if (!is_number(field))
            put_varint(e, field->tag);
    }
    if (is_number(field) && array->count > 0) {
        put_varint(e, (uint64_t)(end - e->at));
        put_varint(e, field->tag);
    }
}

static void put_message(struct pb_encoder *e, const struct pb_message *type, const void *message)
{
    for (size_t i = type->field_count; i-- > 0;) {
        const struct pb_field *field = &type->fields[i];
        const void *at = (const uint8_t *)message + field->offset;
        if (field->label == PB_REPEATED) {
            put_repeated(e, field, at);
        } else if (is_present(field, message, at)) {
            put_value(e, field, at);
            put_varint(e, field->tag);
        }
    }
}

void pb_encode(const struct pb_message *type, const void *message, uint8_t *dst, size_t size)
{
    assert(type);
    assert(message);
    assert(dst || size == 0);

    if (size == 0)
        return;
    struct pb_encoder e;
    e.start = dst;
    e.at = dst + size;
    put_message(&e, type, message);
    assert(e.at == dst);
}

enum status pb_append(const struct pb_message *type, const void *message, struct buf *out)
{
    size_t size = pb_size(type, message);
    if (size == 0)
        return ST_OK; /* an empty buffer may have no memory */
    TRY(buf_reserve(out, size));
    pb_encode(type, message, out->ptr + out->len, size);
    out->len += size;
    return ST_OK;
}
