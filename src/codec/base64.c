#include "codec/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct slice bytes, uint8_t *dst)
{
    const uint8_t *p = bytes.ptr;
    size_t left = bytes.len;
    for (; left >= 3; left -= 3, p += 3, dst += 4) {
        uint32_t n = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
        dst[0] = (uint8_t)digits[n >> 18];
        dst[1] = (uint8_t)digits[n >> 12 & 63];
        dst[2] = (uint8_t)digits[n >> 6 & 63];
        dst[3] = (uint8_t)digits[n & 63];
    }
    if (left == 0)
        return;
    uint32_t n = (uint32_t)p[0] << 16 | (left == 2 ? (uint32_t)p[1] << 8 : 0);
    dst[0] = (uint8_t)digits[n >> 18];
    dst[1] = (uint8_t)digits[n >> 12 & 63];
    dst[2] = left == 2 ? (uint8_t)digits[n >> 6 & 63] : '=';
    dst[3] = '=';
}

/* The digit's value plus one; 0 for other characters. The last two digits differ by alphabet. */
static const uint8_t values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
    ['-'] = 63, ['_'] = 64,
};

static bool has_any(struct slice text, char a, char b)
{
    return text.len && (memchr(text.ptr, a, text.len) || memchr(text.ptr, b, text.len));
}

/* Removes one or two '=' from the end, and the line ends among them. */
static bool take_padding(struct slice *text, size_t *ret_pads)
{
    *ret_pads = 0;
    while (text->len) {
        uint8_t last = text->ptr[text->len - 1];
        if (last == '=')
            ++*ret_pads;
        else if (last != '\n' && last != '\r')
            break;
        text->len--;
    }
    return *ret_pads <= 2;
}

bool base64_decode(struct slice text, uint8_t *dst, size_t *ret_len)
{
    size_t pads, count = 0;
    bool padded = text.len % 4 == 0;
    /* A text must not mix both alphabets. */
    if (has_any(text, '-', '_') && has_any(text, '+', '/'))
        return false;
    if (!take_padding(&text, &pads) || (!padded && pads))
        return false;
    uint32_t bits = 0;
    uint8_t *to = dst;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (values[c] == 0) {
            if (c == '\n' || c == '\r')
                continue;
            return false;
        }
        bits = bits << 6 | (values[c] - 1u);
        if (++count % 4 == 0) {
            *to++ = (uint8_t)(bits >> 16);
            *to++ = (uint8_t)(bits >> 8);
            *to++ = (uint8_t)bits;
        }
    }
    size_t rest = count % 4;
    if (rest == 1 || (padded && (rest + pads) % 4 != 0) || (rest == 0 && pads))
        return false;
    if (rest >= 2)
        *to++ = (uint8_t)(bits >> (rest == 2 ? 4 : 10));
    if (rest == 3)
        *to++ = (uint8_t)(bits >> 2);
    *ret_len = (size_t)(to - dst);
    return true;
}

static bool is_digit(uint8_t c)
{
    return values[c] && c != '-' && c != '_';
}

static size_t skip_line_ends(struct slice text, size_t at)
{
    while (at < text.len && (text.ptr[at] == '\r' || text.ptr[at] == '\n'))
        at++;
    return at;
}

ssize_t base64_fault(struct slice text)
{
    size_t at = 0, count = 0;
    while ((at = skip_line_ends(text, at)) < text.len && is_digit(text.ptr[at])) {
        at++;
        count++;
    }
    size_t of_four = count % 4;
    if (at == text.len)
        return of_four ? (ssize_t)(text.len - of_four) : -1;
    if (text.ptr[at] != '=' || of_four < 2)
        return (ssize_t)at;
    at = skip_line_ends(text, at + 1);
    /* Two digits are followed by two signs of padding, three by one. */
    if (of_four == 2) {
        if (at == text.len || text.ptr[at] != '=')
            return (ssize_t)(at == text.len ? at : at - 1);
        at = skip_line_ends(text, at + 1);
    }
    return at < text.len ? (ssize_t)at : -1;
}
