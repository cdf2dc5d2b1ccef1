/* What parse.c and class.c share: the text that is read, and the errors. */
#ifndef VIGIL_REGEX_PARSE_PRIVATE_H
#define VIGIL_REGEX_PARSE_PRIVATE_H

#include "regex/tree.h"

/* The flags of (?imsU). They end with their group. */
enum regex_flag { FLAG_FOLD = 1, FLAG_LINES = 2, FLAG_DOT_ALL = 4, FLAG_LAZY = 8 };

/* A pattern while it is read. */
struct regex_reader {
    struct regex_parser *parser;
    struct slice pattern;
    size_t at;
    size_t names_end; /* there is no ":]" from here on */
    unsigned flags;
};

static inline bool regex_more(const struct regex_reader *r)
{
    return r->at < r->pattern.len;
}

/* The next byte, or 0 at the end. */
static inline uint8_t regex_peek(const struct regex_reader *r)
{
    return regex_more(r) ? r->pattern.ptr[r->at] : 0;
}

static inline bool regex_accept(struct regex_reader *r, char c)
{
    if (!regex_more(r) || regex_peek(r) != (uint8_t)c)
        return false;
    r->at++;
    return true;
}

static inline bool regex_ahead(const struct regex_reader *r, const char *text)
{
    return slice_has_prefix(slice_sub(r->pattern, r->at, r->pattern.len - r->at),
                            slice_from_text(text));
}

/* ST_INVALID, with an error about a part of the pattern. */
enum status regex_fail(struct regex_reader *r, const char *what, size_t from, size_t to);

/* The next character; 0xfffd, without consuming anything, at the end. */
MUST_CHECK
enum status regex_take_rune(struct regex_reader *r, uint32_t *ret_rune);
/* A part of the pattern must be valid UTF-8. */
MUST_CHECK
enum status regex_check_utf8(struct regex_reader *r, size_t from, size_t to);
/* An escape for one character, at the backslash. */
MUST_CHECK
enum status regex_take_escape(struct regex_reader *r, uint32_t *ret_rune);

/* A class in brackets, at the bracket. */
MUST_CHECK
enum status regex_take_class(struct regex_reader *r, const struct regex_class **ret_class);
/* An escape for a class, such as \d or \pL, at the backslash. NULL: it is for one character. */
MUST_CHECK
enum status regex_take_class_escape(struct regex_reader *r, const struct regex_class **ret_class);
/* The characters that differ from this one only in case, as a class. */
MUST_CHECK
enum status regex_folded_rune(struct regex_reader *r, uint32_t rune,
                              const struct regex_class **ret_class);
/* Any character; newline: also this one. */
MUST_CHECK
enum status regex_any(struct regex_reader *r, bool newline, const struct regex_class **ret_class);

#endif
