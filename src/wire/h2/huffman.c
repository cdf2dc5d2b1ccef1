#include "wire/h2/huffman.h"

/*
 * The code is canonical: codes of one length are consecutive in the order of their symbols, and
 * shorter ones come first. So the length of a left-aligned code is found by comparing it with the
 * first code of each length.
 */
struct code_length {
    uint8_t bits;
    uint16_t symbol; /* index in symbols of the first one with this length */
    uint32_t first;  /* its code */
    uint32_t end;    /* one past the last code, left-aligned in 32 bits; 0: larger than any code */
};

#define ROW(bits, first, count, symbol)                                                       \
    {                                                                                         \
        (bits), (symbol), (first), (uint32_t)((uint64_t)((first) + (count)) << (32 - (bits))) \
    }

static const struct code_length lengths[] = {
    ROW(5, 0x0, 10, 0),          ROW(6, 0x14, 26, 10),        ROW(7, 0x5c, 32, 36),
    ROW(8, 0xf8, 6, 68),         ROW(10, 0x3f8, 5, 74),       ROW(11, 0x7fa, 3, 79),
    ROW(12, 0xffa, 2, 82),       ROW(13, 0x1ff8, 6, 84),      ROW(14, 0x3ffc, 2, 90),
    ROW(15, 0x7ffc, 3, 92),      ROW(19, 0x7fff0, 3, 95),     ROW(20, 0xfffe6, 8, 98),
    ROW(21, 0x1fffdc, 13, 106),  ROW(22, 0x3fffd2, 26, 119),  ROW(23, 0x7fffd8, 29, 145),
    ROW(24, 0xffffea, 12, 174),  ROW(25, 0x1ffffec, 4, 186),  ROW(26, 0x3ffffe0, 15, 190),
    ROW(27, 0x7ffffde, 19, 205), ROW(28, 0xfffffe2, 29, 224), ROW(30, 0x3ffffffc, 4, 253),
};

enum { SYMBOL_END = 256, SYMBOLS = 257 };

static const uint16_t symbols[SYMBOLS] = {
    48,  49,  50,  97,  99,  101, 105, 111, 115, 116, 32,  37,  45,  46,  47,  51,  52,  53,  54,
    55,  56,  57,  61,  65,  95,  98,  100, 102, 103, 104, 108, 109, 110, 112, 114, 117, 58,  66,
    67,  68,  69,  70,  71,  72,  73,  74,  75,  76,  77,  78,  79,  80,  81,  82,  83,  84,  85,
    86,  87,  89,  106, 107, 113, 118, 119, 120, 121, 122, 38,  42,  44,  59,  88,  90,  33,  34,
    40,  41,  63,  39,  43,  124, 35,  62,  0,   36,  64,  91,  93,  126, 94,  125, 60,  96,  123,
    92,  195, 208, 128, 130, 131, 162, 184, 194, 224, 226, 153, 161, 167, 172, 176, 177, 179, 209,
    216, 217, 227, 229, 230, 129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173,
    178, 181, 185, 186, 187, 189, 190, 196, 198, 228, 232, 233, 1,   135, 137, 138, 139, 140, 141,
    143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174, 175, 180, 182, 183, 188, 191,
    197, 231, 239, 9,   142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237, 199, 207, 234, 235,
    192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255, 203, 204, 211, 212,
    214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252, 253, 254, 2,   3,   4,   5,
    6,   7,   8,   11,  12,  14,  15,  16,  17,  18,  19,  20,  21,  23,  24,  25,  26,  27,  28,
    29,  30,  31,  127, 220, 249, 10,  13,  22,  256,
};

static const struct code_length *length_of(uint32_t bits)
{
    const struct code_length *row = lengths;
    while (row->end && bits >= row->end)
        row++;
    return row;
}

enum status huffman_decode(struct slice code, uint8_t *dst, size_t room, size_t *ret_len)
{
    uint64_t window = 0; /* unread bits, left-aligned */
    unsigned held = 0;
    size_t at = 0, len = 0;
    for (;;) {
        for (; held <= 56 && at < code.len; held += 8)
            window |= (uint64_t)code.ptr[at++] << (56 - held);
        const struct code_length *row = length_of((uint32_t)(window >> 32));
        if (row->bits > held)
            break;
        uint32_t index = (uint32_t)(window >> (64 - row->bits)) - row->first;
        uint16_t symbol = symbols[row->symbol + index];
        if (symbol == SYMBOL_END)
            return ST_MALFORMED;
        if (len < room)
            dst[len] = (uint8_t)symbol;
        len++;
        window <<= row->bits;
        held -= row->bits;
    }
    /* The padding is shorter than eight bits and all ones: a prefix of the end symbol. */
    if (held >= 8 || (held && window >> (64 - held) != (UINT64_C(1) << held) - 1))
        return ST_MALFORMED;
    *ret_len = len;
    return len > room ? ST_LIMIT : ST_OK;
}
