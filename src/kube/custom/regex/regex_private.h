/* What a regular expression is compiled to: for regex.c, which makes it, and match.c, which
 * runs it. */
#ifndef VIGIL_KUBE_CUSTOM_REGEX_REGEX_PRIVATE_H
#define VIGIL_KUBE_CUSTOM_REGEX_REGEX_PRIVATE_H

#include "kube/custom/regex/regex.h"

enum regex_op {
    REGEX_JUMP,  /* to x */
    REGEX_SPLIT, /* to x and to y */
    REGEX_RUNE,
    REGEX_CLASS,
    REGEX_AT, /* a place: enum regex_place */
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

/* Where it goes is told relative to where it stands, so that a stretch can be copied. */
struct regex_step {
    uint8_t op;
    bool fold;    /* without regard to case */
    bool negated; /* of a class */
    int32_t x, y;
    uint32_t rune;                    /* or enum regex_place, or how many ranges */
    const struct regex_range *ranges; /* of a class */
};

struct regex {
    const struct regex_step *steps;
    uint32_t count;
};

static inline bool regex_is_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The next rune of a text, and its length; a byte that is no UTF-8 is U+FFFD, as in Go. */
uint32_t regex_rune(struct slice text, size_t at, size_t *ret_len);

#endif
