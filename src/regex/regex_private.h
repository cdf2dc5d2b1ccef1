/* The compiled form of a regular expression: made by compile.c, run by match.c. */
#ifndef VIGIL_REGEX_REGEX_PRIVATE_H
#define VIGIL_REGEX_REGEX_PRIVATE_H

#include "regex/ranges.h"
#include "regex/regex.h"

enum regex_op {
    REGEX_JUMP,  /* continue at x */
    REGEX_SPLIT, /* continue at x and, with less priority, at y */
    REGEX_RUNE,
    REGEX_CLASS,
    REGEX_AT, /* an assertion: enum regex_place */
    REGEX_FOUND,
};

enum regex_place {
    REGEX_TEXT_BEGIN,
    REGEX_TEXT_END,
    REGEX_LINE_BEGIN,
    REGEX_LINE_END,
    REGEX_WORD_EDGE,
    REGEX_NO_WORD_EDGE,
};

/* Characters; those of ASCII are bits. */
struct regex_class {
    uint64_t ascii[2];
    uint32_t count;
    struct regex_range ranges[]; /* the others, sorted */
};

struct regex_step {
    uint32_t op; /* enum regex_op */
    uint32_t x;  /* a target; the character of RUNE; enum regex_place of AT */
    union {
        uint32_t y;
        const struct regex_class *class;
    };
};

struct regex {
    const struct regex_step *steps;
    uint32_t count;
    bool anchored; /* matches only at the beginning of a text */
};

static inline bool regex_is_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The next rune of a text, and its length; a byte that is not valid UTF-8 is U+FFFD, as in Go. */
uint32_t regex_rune(struct slice text, size_t at, size_t *ret_len);

#endif
