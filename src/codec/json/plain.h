/*
 * Finds the end of plain text in JSON: a control byte, a quote or a backslash. It examines eight
 * bytes at a time, because all JSON that is read or written passes through here, most of it strings
 * of a dozen bytes.
 */
#ifndef VIGIL_CODEC_JSON_PLAIN_H
#define VIGIL_CODEC_JSON_PLAIN_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define JSON_PLAIN_ONES UINT64_C(0x0101010101010101)
#define JSON_PLAIN_HIGHS (JSON_PLAIN_ONES * 0x80)

/* The first byte of the text is the lowest byte of the word. */
static inline uint64_t json_plain_word(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The high bit of each byte that is not plain; exact up to the lowest one set, above which a borrow
 * may set more. */
static inline uint64_t json_plain_marks(uint64_t word)
{
    uint64_t control = (word - JSON_PLAIN_ONES * ' ') & ~word;
    uint64_t quote = word ^ (JSON_PLAIN_ONES * '"'), backslash = word ^ (JSON_PLAIN_ONES * '\\');
    uint64_t found = control | ((quote - JSON_PLAIN_ONES) & ~quote) |
                     ((backslash - JSON_PLAIN_ONES) & ~backslash);
    return found & JSON_PLAIN_HIGHS;
}

#ifdef __SSE2__
/* A bit for each of sixteen bytes that is not plain, and for each beyond ASCII. */
static inline unsigned json_plain_marks16(const uint8_t *p, unsigned *ret_high)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(' ' - 1)), bytes);
    __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    *ret_high = (unsigned)_mm_movemask_epi8(bytes);
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(quote, backslash)));
}
#endif

/* The first byte from p on that is not plain, or end. *beyond_ascii is set if a byte before it has
 * its high bit, and is unchanged otherwise. */
static inline const uint8_t *json_plain_end(const uint8_t *p, const uint8_t *end,
                                            bool *beyond_ascii)
{
    uint64_t seen = 0;
#ifdef __SSE2__
    /* The same with sixteen bytes at a time, of which a string has one or two; the rest follows
     * below. */
    for (; end - p >= 16; p += 16) {
        unsigned high, marks = json_plain_marks16(p, &high);
        if (marks) {
            *beyond_ascii |= (high & ((marks & -marks) - 1)) != 0;
            return p + (unsigned)__builtin_ctz(marks);
        }
        *beyond_ascii |= high != 0;
    }
#endif
    for (; end - p >= 8; p += 8) {
        uint64_t word = json_plain_word(p), marks = json_plain_marks(word);
        if (marks) {
            /* The bytes below the mark: one less than its own lowest bit. */
            seen |= word & (((marks & -marks) >> 7) - 1);
            *beyond_ascii |= (seen & JSON_PLAIN_HIGHS) != 0;
            return p + (unsigned)__builtin_ctzll(marks) / 8;
        }
        seen |= word;
    }
    for (; p < end && *p >= ' ' && *p != '"' && *p != '\\'; p++)
        seen |= *p;
    *beyond_ascii |= (seen & JSON_PLAIN_HIGHS) != 0;
    return p;
}

/* Escapes of one letter or sign. */
static const bool json_short_escapes[256] = {
    ['"'] = true, ['\\'] = true, ['/'] = true, ['b'] = true,
    ['f'] = true, ['n'] = true,  ['r'] = true, ['t'] = true};

static NEVER_INLINE const uint8_t *json_plain_string_rest(const uint8_t *p, const uint8_t *end)
{
    bool ignored = false;
    for (;;) {
        p = json_plain_end(p, end, &ignored);
        if (end - p < 4)
            return NULL;
        if (*p == '"')
            return p + 1;
        if (*p != '\\' || !json_short_escapes[p[1]])
            return NULL;
        p += 2;
    }
}

/* The position behind the quote that ends a string, of which p is the first byte. NULL: it does not
 * end, has bytes that are not plain or other escapes, or less than three bytes follow it. This is
 * for loops over texts of which most are short: whole blocks are examined inline. */
static ALWAYS_INLINE const uint8_t *json_plain_string_end(const uint8_t *p, const uint8_t *end)
{
#ifdef __SSE2__
    while (end - p >= 20) {
        unsigned high, marks = json_plain_marks16(p, &high), passed = 16;
        while (marks) {
            unsigned i = (unsigned)__builtin_ctz(marks);
            if (LIKELY(p[i] == '"'))
                return p + i + 1;
            if (p[i] != '\\' || !json_short_escapes[p[i + 1]])
                return NULL;
            marks &= ~(3u << i);
            passed += i == 15; /* the second byte of the escape is in the next block */
        }
        p += passed;
    }
#endif
    return json_plain_string_rest(p, end);
}

#endif
