/* The compiled form of a regular expression: made by regex.c, run by match.c. */
#ifndef VIGIL_REGEX_REGEX_PRIVATE_H
#define VIGIL_REGEX_REGEX_PRIVATE_H

#include "regex/regex.h"

enum regex_op {
    REGEX_JUMP,  /* continue at x */
    REGEX_SPLIT, /* continue at x and at y */
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

struct regex_range {
    uint32_t low, high;
};

/* Targets are relative to the step itself, so that a block of steps can be copied. */
struct regex_step {
    uint8_t op;
    bool fold;    /* ignore case */
    bool negated; /* for a class */
    int32_t x, y;
    uint32_t rune;                    /* or enum regex_place, or the number of ranges */
    const struct regex_range *ranges; /* ranges of a class */
};

struct regex {
    const struct regex_step *steps;
    uint32_t count;
};

static inline bool regex_is_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The next rune of a text, and its length; a byte that is not valid UTF-8 is U+FFFD, as in Go. */
uint32_t regex_rune(struct slice text, size_t at, size_t *ret_len);

#endif
