/*
 * JSON read token by token from bytes that lie in memory: RFC 8259, nothing more, nothing less.
 *
 *     struct json_scanner s;
 *     json_scanner_init(&s, text);
 *     while ((token = json_next(&s)) == JSON_KEY) ...
 *
 * Nothing is allocated or copied: a token is a slice of the text (s.raw), a string still in its
 * quotes and escapes (codec/json/string.h takes them off), a number still in its digits
 * (codec/json/number.h). The scanner checks syntax and nesting; whether a string is UTF-8 is found
 * out by whoever decodes it, and a key that comes twice is its reader's business.
 *
 * Bounds: nesting at JSON_DEPTH_MAX; length by the text, of which every byte is looked at once.
 * One owner, one thread; the text is borrowed.
 */
#ifndef VIGIL_CODEC_JSON_SCANNER_H
#define VIGIL_CODEC_JSON_SCANNER_H

#include "base/slice.h"

/* As deep as Go's decoder goes, which etcd's gateway and Kubernetes use. */
enum { JSON_DEPTH_MAX = 10000 };

enum json_token {
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY, /* its colon is behind us */
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_END,   /* of the text, after one whole value */
    JSON_FAULT, /* and again for ever: see json_scanner.fault */
};

/* What is wrong with the byte at `at`, in the order of Go's texts for it (json_fault_text). */
enum json_fault {
    JSON_FINE,
    JSON_EMPTY,      /* nothing but white space */
    JSON_CUT_OFF,    /* ends within a value */
    JSON_TOO_DEEP,   /* past JSON_DEPTH_MAX */
    JSON_NO_VALUE,   /* no value begins so */
    JSON_NO_KEY,     /* no key begins so */
    JSON_NO_COLON,   /* after a key */
    JSON_NO_COMMA,   /* after an item of an object */
    JSON_NO_COMMA_A, /* after an item of an array */
    JSON_TRAILING,   /* after the value */
    JSON_CONTROL,    /* a control byte in a string */
    JSON_ESCAPE,
    JSON_ESCAPE_HEX,
    JSON_DIGITS, /* of a number: none */
    JSON_FRACTION,
    JSON_EXPONENT,
    JSON_LITERAL, /* true, false or null gone wrong */
};

struct json_scanner {
    const uint8_t *start, *at, *end;
    struct slice raw;  /* the token just returned */
    uint32_t depth;    /* objects and arrays open */
    uint8_t expects;   /* private */
    uint8_t fault;     /* enum json_fault */
    char wanted;       /* JSON_LITERAL: the byte that should stand at `at` */
    const char *word;  /* JSON_LITERAL: of which it is a part */
    bool escaped;      /* the string or key just returned has escapes */
    bool beyond_ascii; /* or bytes that have to be checked for UTF-8 */
    uint64_t nesting[JSON_DEPTH_MAX / 64 + 1]; /* a bit for each that is open: an object's is set */
};

void json_scanner_init(struct json_scanner *scanner, struct slice text);

enum json_token json_next(struct json_scanner *scanner);

/*
 * Passes over the rest of the value whose first token was just returned, or of the key and its
 * value. False: there was a fault.
 */
MUST_CHECK
bool json_skip(struct json_scanner *scanner, enum json_token first);

/*
 * Cuts the next whole value off a text that may hold several, one after the other, with or without
 * white space between: checks it and leaves it in *ret_value, without white space around it.
 * False: scanner->fault says why; JSON_EMPTY: there is no further value.
 */
MUST_CHECK
bool json_next_value(struct json_scanner *scanner, struct slice *ret_value);

/* Where the latest token begins in the text. */
static inline size_t json_position(const struct json_scanner *scanner)
{
    return (size_t)(scanner->raw.ptr - scanner->start);
}

/* The fault in Go's words, which etcd's clients may know: "invalid character 'b' looking for …". */
enum { JSON_FAULT_TEXT_BYTES = 96 };
const char *json_fault_text(const struct json_scanner *scanner, char text[JSON_FAULT_TEXT_BYTES]);

#endif
