#include "codec/pb/pb.h"
#include "codec/pb/wire.h"
#include "codec/utf8.h"

/* All functions here read from [p, end) and return the first byte they did not use, or NULL after
 * recording the reason in the decoder. The bytes come from a peer: nothing about them is asserted.
 */
struct pb_decoder {
    struct arena *arena;
    enum status status; /* the reason, after a function returned NULL */
};

/* Precedes the items of an array made here, so that a merge can continue to fill it. */
struct array_head {
    _Alignas(16) size_t capacity;
};

static const uint8_t *decode_fields(struct pb_decoder *d, const struct pb_message *type,
                                    const uint8_t *p, const uint8_t *end, void *base,
                                    unsigned depth);

static const uint8_t *fail(struct pb_decoder *d, enum status status)
{
    d->status = status;
    return NULL;
}

static const uint8_t *malformed(struct pb_decoder *d)
{
    return fail(d, ST_MALFORMED);
}

static void *take_memory(struct pb_decoder *d, size_t bytes)
{
    void *memory = arena_alloc(d->arena, bytes);
    if (UNLIKELY(!memory)) {
        /* The arena allocates multiples of 16. */
        bool limited = d->arena->limit_bytes - d->arena->held_bytes < align_up(bytes, 16);
        d->status = limited ? ST_LIMIT : ST_NOMEM;
    }
    return memory;
}

/* Few messages have numbers beyond the direct ones, and those have one or two. */
static const struct pb_field *find_large(const struct pb_message *type, uint64_t number)
{
    for (size_t i = type->field_count; i-- > 0;) {
        if (pb_field_number(&type->fields[i]) <= number)
            return pb_field_number(&type->fields[i]) == number ? &type->fields[i] : NULL;
    }
    return NULL;
}

static ALWAYS_INLINE const struct pb_field *find(const struct pb_message *type, uint64_t number)
{
    if (UNLIKELY(number >= PB_DIRECT_NUMBERS))
        return find_large(type, number);
    return type->direct[number] ? &type->fields[type->direct[number] - 1] : NULL;
}

const struct pb_field *pb_field_find(const struct pb_message *type, uint32_t number)
{
    return find(type, number);
}

static const uint8_t *skip_bytes(struct pb_decoder *d, const uint8_t *p, const uint8_t *end,
                                 size_t n)
{
    return n <= (size_t)(end - p) ? p + n : malformed(d);
}

static const uint8_t *skip_value(struct pb_decoder *d, uint64_t tag, const uint8_t *p,
                                 const uint8_t *end, unsigned depth);

/* A group ends with a tag of its own number; it contains unknown fields. */
static const uint8_t *skip_group(struct pb_decoder *d, uint64_t number, const uint8_t *p,
                                 const uint8_t *end, unsigned depth)
{
    if (depth > PB_DEPTH_MAX)
        return fail(d, ST_LIMIT);
    while (p) {
        uint64_t tag;
        p = pb_varint_read(p, end, &tag);
        if (!p)
            return malformed(d);
        if ((tag & 7) == PB_WIRE_GROUP_END)
            return tag >> 3 == number ? p : malformed(d);
        p = skip_value(d, tag, p, end, depth);
    }
    return NULL;
}

/* Skips the value after a tag; depth is that of the message or group that contains the field. */
static const uint8_t *skip_value(struct pb_decoder *d, uint64_t tag, const uint8_t *p,
                                 const uint8_t *end, unsigned depth)
{
    uint64_t number = tag >> 3, ignored;
    size_t len;
    if (number == 0 || number > PB_NUMBER_MAX)
        return malformed(d);
    switch (tag & 7) {
    case PB_WIRE_VARINT:
        p = pb_varint_read(p, end, &ignored);
        return p ? p : malformed(d);
    case PB_WIRE_I64:
        return skip_bytes(d, p, end, 8);
    case PB_WIRE_I32:
        return skip_bytes(d, p, end, 4);
    case PB_WIRE_LEN:
        p = pb_len_read(p, end, &len);
        return p ? p + len : malformed(d);
    case PB_WIRE_GROUP:
        return skip_group(d, number, p, end, depth + 1);
    default:
        return malformed(d); /* the end of a group that did not begin, or an invalid wire type */
    }
}

/* The number of values of this field in the rest of the message, including the one at p: the array
 * is allocated once, at its final size. Stops where decoding would fail. */
static size_t count_rest(struct pb_decoder *d, const struct pb_field *field, const uint8_t *p,
                         const uint8_t *end, unsigned depth)
{
    size_t count = 1;
    uint64_t tag = field->tag;
    while ((p = skip_value(d, tag, p, end, depth)) && p < end) {
        p = pb_varint_read(p, end, &tag);
        if (!p)
            break;
        count += tag == field->tag;
    }
    return count;
}

static size_t array_capacity(const struct pb_array *array)
{
    return array->items ? ((const struct array_head *)array->items - 1)->capacity : 0;
}

/* Makes room for more items at the end of the array. Growing at least doubles it, so that a message
 * merged from a thousand pieces does not leave a thousand arrays in the arena. */
static bool array_reserve(struct pb_decoder *d, const struct pb_field *field,
                          struct pb_array *array, size_t more)
{
    size_t capacity = array_capacity(array), each = field->item_bytes, bytes;
    if (LIKELY(more <= capacity - array->count))
        return true;
    size_t larger = size_max(array->count + more, capacity * 2);
    if (__builtin_mul_overflow(larger, each, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(struct array_head), &bytes)) {
        d->status = ST_LIMIT;
        return false;
    }
    struct array_head *head = take_memory(d, bytes);
    if (!head)
        return false;
    head->capacity = larger;
    if (array->count)
        memcpy(head + 1, array->items, array->count * each);
    array->items = head + 1;
    return true;
}

static ALWAYS_INLINE void store_number(enum pb_kind kind, void *at, uint64_t value)
{
    if (kind == PB_KIND_BOOL)
        *(bool *)at = value != 0;
    else if (kind == PB_KIND_INT64 || kind == PB_KIND_UINT64)
        *(uint64_t *)at = value;
    else
        *(uint32_t *)at = (uint32_t)value;
}

static ALWAYS_INLINE const uint8_t *decode_number(struct pb_decoder *d, enum pb_kind kind,
                                                  const uint8_t *p, const uint8_t *end, void *at)
{
    uint64_t value;
    p = pb_varint_read(p, end, &value);
    if (UNLIKELY(!p))
        return malformed(d);
    store_number(kind, at, value);
    return p;
}

static ALWAYS_INLINE const uint8_t *decode_bytes(struct pb_decoder *d, enum pb_kind kind,
                                                 const uint8_t *p, const uint8_t *end, void *at)
{
    size_t len;
    p = pb_len_read(p, end, &len);
    if (UNLIKELY(!p))
        return malformed(d);
    struct slice bytes = slice_of(p, len);
    if (kind == PB_KIND_STRING && UNLIKELY(!utf8_valid(bytes)))
        return malformed(d);
    *(struct slice *)at = bytes;
    return p + len;
}

static const uint8_t *decode_message(struct pb_decoder *d, const struct pb_message *type,
                                     const uint8_t *p, const uint8_t *end, void *into,
                                     unsigned depth)
{
    size_t len;
    p = pb_len_read(p, end, &len);
    if (UNLIKELY(!p))
        return malformed(d);
    if (UNLIKELY(depth >= PB_DEPTH_MAX))
        return fail(d, ST_LIMIT);
    return decode_fields(d, type, p, p + len, into, depth + 1);
}

/* A sub-message that occurred before is merged into. */
static const uint8_t *decode_pointer(struct pb_decoder *d, const struct pb_message *type,
                                     const uint8_t *p, const uint8_t *end, void **at,
                                     unsigned depth)
{
    if (!*at) {
        void *made = take_memory(d, type->struct_bytes);
        if (!made)
            return NULL;
        memset(made, 0, type->struct_bytes);
        *at = made;
    }
    return decode_message(d, type, p, end, *at, depth);
}

static ALWAYS_INLINE const uint8_t *decode_value(struct pb_decoder *d, const struct pb_field *field,
                                                 const uint8_t *p, const uint8_t *end, void *at,
                                                 unsigned depth)
{
    switch ((enum pb_kind)field->kind) {
    case PB_KIND_BYTES:
        return decode_bytes(d, PB_KIND_BYTES, p, end, at);
    case PB_KIND_STRING:
        return decode_bytes(d, PB_KIND_STRING, p, end, at);
    case PB_KIND_MESSAGE:
        return decode_pointer(d, field->message, p, end, at, depth);
    case PB_KIND_INT64:
    case PB_KIND_UINT64:
        return decode_number(d, PB_KIND_INT64, p, end, at);
    default:
        return decode_number(d, field->kind, p, end, at);
    }
}

/* Setting one member of a oneof clears the others; the union holds one value of any kind. */
static void select_member(const struct pb_field *field, void *base)
{
    uint32_t *which = (uint32_t *)(void *)((uint8_t *)base + field->case_offset);
    if (*which == pb_field_number(field))
        return;
    *which = pb_field_number(field);
    memset((uint8_t *)base + field->offset, 0, field->item_bytes);
}

static const uint8_t *decode_packed(struct pb_decoder *d, const struct pb_field *field,
                                    const uint8_t *p, const uint8_t *end, struct pb_array *array)
{
    size_t len, count = 0, each = field->item_bytes;
    p = pb_len_read(p, end, &len);
    if (!p)
        return malformed(d);
    end = p + len;
    for (const uint8_t *at = p; at < end; at++)
        count += *at < 0x80; /* the last byte of a number */
    if (count && !array_reserve(d, field, array, count))
        return NULL;
    while (p < end) {
        uint64_t value;
        p = pb_varint_read(p, end, &value);
        if (!p)
            return malformed(d);
        store_number(field->kind, (uint8_t *)array->items + array->count * each, value);
        array->count++;
    }
    return p;
}

/* Adds one item whose tag says that it is not packed. */
static const uint8_t *decode_item(struct pb_decoder *d, const struct pb_field *field,
                                  const uint8_t *p, const uint8_t *end, struct pb_array *array,
                                  unsigned depth)
{
    size_t each = field->item_bytes;
    if (array_capacity(array) == array->count) {
        size_t more = count_rest(d, field, p, end, depth);
        if (!array_reserve(d, field, array, more))
            return NULL;
    }
    void *item = (uint8_t *)array->items + array->count++ * each;
    if (field->kind != PB_KIND_MESSAGE)
        return decode_bytes(d, field->kind, p, end, item);
    memset(item, 0, each);
    return decode_message(d, field->message, p, end, item, depth);
}

static const uint8_t *decode_repeated(struct pb_decoder *d, const struct pb_field *field,
                                      const uint8_t *p, const uint8_t *end, void *at,
                                      unsigned depth)
{
    if (field->kind < PB_KIND_STRING)
        return decode_packed(d, field, p, end, at);
    return decode_item(d, field, p, end, at, depth);
}

/* A field that the table does not have, or has with another wire type. */
static const uint8_t *decode_other(struct pb_decoder *d, const struct pb_field *field, uint64_t tag,
                                   const uint8_t *p, const uint8_t *end, void *base, unsigned depth)
{
    bool unpacked = field && field->label == PB_REPEATED && field->kind < PB_KIND_STRING &&
                    (tag & 7) == PB_WIRE_VARINT;
    if (!unpacked)
        return skip_value(d, tag, p, end, depth);
    struct pb_array *array = (struct pb_array *)(void *)((uint8_t *)base + field->offset);
    if (!array_reserve(d, field, array, 1))
        return NULL;
    void *item = (uint8_t *)array->items + array->count++ * field->item_bytes;
    return decode_number(d, field->kind, p, end, item);
}

static const uint8_t *decode_fields(struct pb_decoder *d, const struct pb_message *type,
                                    const uint8_t *p, const uint8_t *end, void *base,
                                    unsigned depth)
{
    while (p && p < end) {
        uint64_t tag;
        p = pb_varint_read(p, end, &tag);
        if (UNLIKELY(!p))
            return malformed(d);
        const struct pb_field *field = find(type, tag >> 3);
        if (UNLIKELY(!field || field->tag != tag)) {
            p = decode_other(d, field, tag, p, end, base, depth);
            continue;
        }
        void *at = (uint8_t *)base + field->offset;
        if (field->label == PB_REPEATED) {
            p = decode_repeated(d, field, p, end, at, depth);
            continue;
        }
        if (field->label == PB_ONEOF)
            select_member(field, base);
        p = decode_value(d, field, p, end, at, depth);
    }
    return p;
}

enum status pb_decode(const struct pb_message *type, struct slice bytes, struct arena *arena,
                      void *ret_struct)
{
    assert(type);
    assert(arena);
    assert(ret_struct);

    struct pb_decoder d = {.arena = arena, .status = ST_OK};
    memset(ret_struct, 0, type->struct_bytes);
    if (bytes.len == 0)
        return ST_OK;
    if (!decode_fields(&d, type, bytes.ptr, bytes.ptr + bytes.len, ret_struct, 0))
        return d.status;
    return ST_OK;
}
