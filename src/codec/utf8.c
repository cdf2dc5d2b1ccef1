#include "codec/utf8.h"

static bool is_tail(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t utf8_count(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += !is_tail(text.ptr[i]);
    return count;
}

size_t utf8_encode(uint32_t character, uint8_t dst[4])
{
    assert(character <= 0x10ffff);
    uint8_t *p = dst;
    if (character < 0x80) {
        *p++ = (uint8_t)character;
        return 1;
    }
    if (character < 0x800) {
        *p++ = (uint8_t)(0xc0 | character >> 6);
    } else if (character < 0x10000) {
        *p++ = (uint8_t)(0xe0 | character >> 12);
        *p++ = (uint8_t)(0x80 | (character >> 6 & 0x3f));
    } else {
        *p++ = (uint8_t)(0xf0 | character >> 18);
        *p++ = (uint8_t)(0x80 | (character >> 12 & 0x3f));
        *p++ = (uint8_t)(0x80 | (character >> 6 & 0x3f));
    }
    *p++ = (uint8_t)(0x80 | (character & 0x3f));
    return (size_t)(p - dst);
}

size_t utf8_char_len(struct slice text)
{
    assert(text.len > 0);
    const uint8_t *p = text.ptr;
    uint8_t first = p[0];
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0; /* a continuation byte, an overlong form of two bytes, or beyond U+13FFFF */
    size_t len = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (text.len < len)
        return 0;

    /* The second byte rules out the overlong forms, the surrogates and everything beyond U+10FFFF.
     */
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high)
        return 0;
    if (len > 2 && !is_tail(p[2]))
        return 0;
    if (len > 3 && !is_tail(p[3]))
        return 0;
    return len;
}

/* The number of ASCII bytes at the beginning, examined eight at a time. */
static size_t ascii_run(struct slice text)
{
    size_t at = 0;
    while (text.len - at >= 8) {
        uint64_t eight;
        memcpy(&eight, text.ptr + at, sizeof(eight));
        if (eight & 0x8080808080808080ull)
            break;
        at += 8;
    }
    return at;
}

bool utf8_valid(struct slice text)
{
    size_t at = ascii_run(text);
    while (at < text.len) {
        if (text.ptr[at] < 0x80) {
            at++;
            continue;
        }
        size_t len = utf8_char_len(slice_sub(text, at, text.len - at));
        if (len == 0)
            return false;
        at += len;
    }
    return true;
}
