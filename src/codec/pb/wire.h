/*
 * The primitives of the protobuf wire format, inline: for the table-driven coder and for the few
 * messages that are hot enough to be encoded by hand (KeyValue, the head of a RangeResponse).
 *
 *     field   = tag value          tag = varint(number << 3 | wire type)
 *     value   = varint | 8 bytes | varint(len) len bytes | group | 4 bytes
 *
 * The _size functions count what the _write functions write; both leave out a default value, as
 * proto3 does. Writers return the first byte behind what they wrote; the caller has made room.
 */
#ifndef VIGIL_CODEC_PB_WIRE_H
#define VIGIL_CODEC_PB_WIRE_H

#include "codec/pb/varint.h"

enum pb_wire {
    PB_WIRE_VARINT = 0,
    PB_WIRE_I64 = 1,
    PB_WIRE_LEN = 2,
    PB_WIRE_GROUP = 3,
    PB_WIRE_GROUP_END = 4,
    PB_WIRE_I32 = 5,
};

enum { PB_NUMBER_MAX = (1 << 29) - 1 };

#define PB_TAG(number, wire) ((uint32_t)(number) << 3 | (uint32_t)(wire))

/* Reads the length of a LEN value. Returns its first byte; all of its bytes are before end. */
static ALWAYS_INLINE const uint8_t *pb_len_read(const uint8_t *p, const uint8_t *end,
                                                size_t *ret_len)
{
    uint64_t len;
    p = pb_varint_read(p, end, &len);
    if (UNLIKELY(!p || len > (uint64_t)(end - p)))
        return NULL;
    *ret_len = (size_t)len;
    return p;
}

static inline size_t pb_tag_size(uint32_t number)
{
    return pb_varint_size((uint64_t)number << 3);
}

static inline uint8_t *pb_tag_write(uint8_t *dst, uint32_t number, enum pb_wire wire)
{
    return pb_varint_write(dst, PB_TAG(number, wire));
}

/* A bool, integer or enum field. Negative int32 and enum values are widened first. */
static inline size_t pb_uint_size(uint32_t number, uint64_t value)
{
    return value ? pb_tag_size(number) + pb_varint_size(value) : 0;
}

static inline uint8_t *pb_uint_write(uint8_t *dst, uint32_t number, uint64_t value)
{
    if (!value)
        return dst;
    return pb_varint_write(pb_tag_write(dst, number, PB_WIRE_VARINT), value);
}

/* A bytes or string field. */
static inline size_t pb_bytes_size(uint32_t number, size_t len)
{
    return len ? pb_tag_size(number) + pb_varint_size(len) + len : 0;
}

static inline uint8_t *pb_bytes_write(uint8_t *dst, uint32_t number, struct slice bytes)
{
    if (!bytes.len)
        return dst;
    dst = pb_varint_write(pb_tag_write(dst, number, PB_WIRE_LEN), bytes.len);
    slice_copy(dst, bytes);
    return dst + bytes.len;
}

/* The head of a present sub-message, whose len bytes the caller writes next. */
static inline size_t pb_message_head_size(uint32_t number, size_t len)
{
    return pb_tag_size(number) + pb_varint_size(len);
}

static inline uint8_t *pb_message_head_write(uint8_t *dst, uint32_t number, size_t len)
{
    return pb_varint_write(pb_tag_write(dst, number, PB_WIRE_LEN), len);
}

#endif
