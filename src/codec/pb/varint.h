/*
 * The numbers of the protobuf wire format: seven bits in each byte, the lowest first; the top bit
 * of all bytes but the last is set.
 */
#ifndef VIGIL_CODEC_PB_VARINT_H
#define VIGIL_CODEC_PB_VARINT_H

#include "base/slice.h"

#include <endian.h>

enum { PB_VARINT_BYTES_MAX = 10 };

static inline size_t pb_varint_size(uint64_t value)
{
    /* One byte for every seven bits begun; 9/64 is close enough to 1/7 for up to 64 bits. */
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    return (bits * 9 + 64) / 64;
}

static inline uint8_t *pb_varint_write(uint8_t *dst, uint64_t value)
{
    while (value >= 0x80) {
        *dst++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *dst++ = (uint8_t)value;
    return dst;
}

/* Joins the lower seven bits of each byte; the others are zero. */
static ALWAYS_INLINE uint64_t pb_varint_squeeze(uint64_t word)
{
    word = (word & 0x7f007f007f007f00) >> 1 | (word & 0x007f007f007f007f);
    word = (word & 0x3fff00003fff0000) >> 2 | (word & 0x00003fff00003fff);
    return (word & 0x0fffffff00000000) >> 4 | (word & 0x000000000fffffff);
}

/* pb_varint_read for a varint of more than one byte, where ten bytes can be read whatever its
 * length is: most of it at once. */
static inline const uint8_t *pb_varint_read_ten(const uint8_t *p, uint64_t *ret_value)
{
    const uint64_t tops = 0x8080808080808080;
    uint64_t word;
    if (LIKELY(p[1] < 0x80)) { /* most lengths of messages */
        *ret_value = (p[0] & 0x7f) | (uint64_t)p[1] << 7;
        return p + 2;
    }
    memcpy(&word, p, sizeof(word));
    word = le64toh(word);
    uint64_t last = ~word & tops; /* the lowest bit that is set belongs to the last byte */
    if (LIKELY(last)) {
        *ret_value = pb_varint_squeeze(word & ~tops & (last ^ (last - 1)));
        return p + __builtin_ctzll(last) / 8 + 1;
    }
    *ret_value = pb_varint_squeeze(word & ~tops) | (uint64_t)p[8] << 56;
    if (p[8] < 0x80)
        return p + 9;
    *ret_value = (*ret_value & ~((uint64_t)1 << 63)) | (uint64_t)p[9] << 63;
    return p[9] <= 1 ? p + 10 : NULL; /* otherwise it has more than 64 bits */
}

/* The general case of pb_varint_read. */
static inline const uint8_t *pb_varint_read_long(const uint8_t *p, const uint8_t *end,
                                                 uint64_t *ret_value)
{
    if (LIKELY(end - p >= PB_VARINT_BYTES_MAX))
        return pb_varint_read_ten(p, ret_value);
    uint64_t value = 0;
    for (unsigned shift = 0; p < end; shift += 7) { /* at most 63 bits */
        uint64_t byte = *p++;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return p;
        }
    }
    return NULL;
}

/* Reads one varint of [p, end). Returns the position behind it, or NULL if it is truncated or too
 * long. */
static ALWAYS_INLINE const uint8_t *pb_varint_read(const uint8_t *p, const uint8_t *end,
                                                   uint64_t *ret_value)
{
    if (LIKELY(p < end && *p < 0x80)) {
        *ret_value = *p;
        return p + 1;
    }
    return pb_varint_read_long(p, end, ret_value);
}

#endif
