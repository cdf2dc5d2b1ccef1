#include "base/sha1.h"

enum { BLOCK_BYTES = 64, LENGTH_BYTES = 8 };

static uint32_t rotate_left(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

static uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be32(uint8_t *p, uint32_t x)
{
    p[0] = (uint8_t)(x >> 24);
    p[1] = (uint8_t)(x >> 16);
    p[2] = (uint8_t)(x >> 8);
    p[3] = (uint8_t)x;
}

/* The function and constant of round t; there are four kinds of twenty rounds. */
static uint32_t mix(unsigned t, uint32_t b, uint32_t c, uint32_t d)
{
    static const uint32_t constants[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t constant = constants[t / 20];
    switch (t / 20) {
    case 0:
        return ((b & c) | (~b & d)) + constant;
    case 2:
        return ((b & c) | (b & d) | (c & d)) + constant;
    default:
        return (b ^ c ^ d) + constant;
    }
}

static void add_block(uint32_t state[5], const uint8_t *block)
{
    uint32_t w[80];
    for (unsigned t = 0; t < 16; t++)
        w[t] = load_be32(block + 4 * t);
    for (unsigned t = 16; t < 80; t++)
        w[t] = rotate_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);

    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (unsigned t = 0; t < 80; t++) {
        uint32_t next = rotate_left(a, 5) + mix(t, b, c, d) + e + w[t];
        e = d;
        d = c;
        c = rotate_left(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

/* The remaining bytes, a one bit, zeros, and the length in bits: one block or two. */
static void add_last(uint32_t state[5], struct slice rest, size_t total_bytes)
{
    uint8_t last[2 * BLOCK_BYTES] = {0};
    slice_copy(last, rest);
    last[rest.len] = 0x80;
    size_t len = rest.len + 1 + LENGTH_BYTES <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
    uint64_t bits = (uint64_t)total_bytes * 8;
    store_be32(last + len - 8, (uint32_t)(bits >> 32));
    store_be32(last + len - 4, (uint32_t)bits);
    for (size_t at = 0; at < len; at += BLOCK_BYTES)
        add_block(state, last + at);
}

void sha1(struct slice bytes, uint8_t ret_digest[SHA1_BYTES])
{
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t at = 0;
    for (; bytes.len - at >= BLOCK_BYTES; at += BLOCK_BYTES)
        add_block(state, bytes.ptr + at);
    add_last(state, slice_sub(bytes, at, bytes.len - at), bytes.len);
    for (unsigned i = 0; i < 5; i++)
        store_be32(ret_digest + 4 * i, state[i]);
}
