/*
 * Reads JSON token by token from bytes in memory: exactly RFC 8259.
 *
 *     struct json_scanner s;
 *     json_scanner_init(&s, text);
 *     while ((token = json_next(&s)) == JSON_KEY) ...
 *
 * Nothing is allocated or copied: a token is a slice of the text (s.raw), a string with its quotes
 * and escapes (decoded by codec/json/string.h), a number as its digits (codec/json/number.h). The
 * scanner checks syntax and nesting; UTF-8 is checked when a string is decoded, and repeated keys
 * are the caller's concern.
 *
 * Bounds: nesting is at most JSON_DEPTH_MAX; the text bounds the length, and every byte is examined
 * once. One owner, one thread; the text is borrowed.
 */
#ifndef VIGIL_CODEC_JSON_SCANNER_H
#define VIGIL_CODEC_JSON_SCANNER_H

#include "base/slice.h"

/* The depth of Go's decoder, which etcd's gateway and Kubernetes use. */
enum { JSON_DEPTH_MAX = 10000 };

enum json_token {
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY, /* the colon was consumed */
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_END,   /* end of the text, after one whole value */
    JSON_FAULT, /* returned again by every further call; see json_scanner.fault */
};

/* What is wrong with the byte at `at`, in the order of Go's texts for it (json_fault_text). */
enum json_fault {
    JSON_FINE,
    JSON_EMPTY,      /* nothing but white space */
    JSON_CUT_OFF,    /* ends within a value */
    JSON_TOO_DEEP,   /* deeper than JSON_DEPTH_MAX */
    JSON_NO_VALUE,   /* no value begins with this byte */
    JSON_NO_KEY,     /* no key begins with this byte */
    JSON_NO_COLON,   /* after a key */
    JSON_NO_COMMA,   /* after an item of an object */
    JSON_NO_COMMA_A, /* after an item of an array */
    JSON_TRAILING,   /* after the value */
    JSON_CONTROL,    /* a control byte in a string */
    JSON_ESCAPE,
    JSON_ESCAPE_HEX,
    JSON_DIGITS, /* a number without digits */
    JSON_FRACTION,
    JSON_EXPONENT,
    JSON_LITERAL, /* a misspelled true, false or null */
};

struct json_scanner {
    const uint8_t *start, *at, *end;
    struct slice raw;                          /* the token just returned */
    uint32_t depth;                            /* open objects and arrays */
    uint8_t expects;                           /* private */
    uint8_t fault;                             /* enum json_fault */
    char wanted;                               /* JSON_LITERAL: the byte expected at `at` */
    const char *word;                          /* JSON_LITERAL: the word it is a part of */
    bool escaped;                              /* the string or key just returned has escapes */
    bool beyond_ascii;                         /* or bytes that must be checked for UTF-8 */
    uint64_t nesting[JSON_DEPTH_MAX / 64 + 1]; /* a bit for each open level: set for an object */
};

void json_scanner_init(struct json_scanner *scanner, struct slice text);

enum json_token json_next(struct json_scanner *scanner);

/* Skips the rest of the value whose first token was just returned, or of the key and its value.
 * False: there was an error. */
MUST_CHECK
bool json_skip(struct json_scanner *scanner, enum json_token first);

/* Cuts the next complete value off a text that may contain several, with or without white space
 * between them: checks it and gives it in *ret_value, without white space around it. False:
 * scanner->fault says why; JSON_EMPTY: there is no further value. */
MUST_CHECK
bool json_next_value(struct json_scanner *scanner, struct slice *ret_value);

/* Where the latest token begins in the text. */
static inline size_t json_position(const struct json_scanner *scanner)
{
    return (size_t)(scanner->raw.ptr - scanner->start);
}

/* The error in Go's words, which etcd's clients may know: "invalid character 'b' looking for …". */
enum { JSON_FAULT_TEXT_BYTES = 96 };
const char *json_fault_text(const struct json_scanner *scanner, char text[JSON_FAULT_TEXT_BYTES]);

#endif
