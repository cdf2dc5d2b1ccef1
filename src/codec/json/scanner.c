#include "codec/json/scanner.h"

#include "codec/json/plain.h"

enum scanner_expects {
    EXPECTS_VALUE,
    EXPECTS_FIRST_ITEM, /* or the end of the array */
    EXPECTS_FIRST_KEY,  /* or the end of the object */
    EXPECTS_KEY,
    EXPECTS_COMMA, /* or the end of the open object or array; from here on no string */
    EXPECTS_END,
};

void json_scanner_init(struct json_scanner *scanner, struct slice text)
{
    /* The bits of nesting are written before they are read. */
    scanner->start = scanner->at = text.ptr;
    scanner->end = text.len ? text.ptr + text.len : text.ptr;
    scanner->raw = slice_of(text.ptr, 0);
    scanner->depth = 0;
    scanner->expects = EXPECTS_VALUE;
    scanner->fault = JSON_FINE;
    scanner->escaped = scanner->beyond_ascii = false;
}

static enum json_token fail(struct json_scanner *s, enum json_fault fault)
{
    if (s->fault == JSON_FINE)
        s->fault = (uint8_t)(s->at == s->end && fault != JSON_TOO_DEEP ? JSON_CUT_OFF : fault);
    return JSON_FAULT;
}

/* -- Nesting -- */

static bool in_object(const struct json_scanner *s)
{
    uint32_t level = s->depth - 1;
    return s->nesting[level / 64] >> (level % 64) & 1;
}

static enum json_token open(struct json_scanner *s, bool object)
{
    if (s->depth == JSON_DEPTH_MAX)
        return fail(s, JSON_TOO_DEEP);
    uint64_t bit = UINT64_C(1) << (s->depth % 64);
    uint64_t *word = &s->nesting[s->depth / 64];
    if (s->depth % 64 == 0)
        *word = 0;
    *word = object ? *word | bit : *word & ~bit;
    s->depth++;
    s->at++;
    s->expects = object ? EXPECTS_FIRST_KEY : EXPECTS_FIRST_ITEM;
    return object ? JSON_OBJECT : JSON_ARRAY;
}

static void value_ended(struct json_scanner *s)
{
    s->expects = s->depth ? EXPECTS_COMMA : EXPECTS_END;
}

static enum json_token close(struct json_scanner *s)
{
    bool object = in_object(s);
    s->depth--;
    s->at++;
    value_ended(s);
    return object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

/* -- Strings -- */

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool pass_escape(struct json_scanner *s)
{
    s->escaped = true;
    s->at++;
    if (s->at == s->end || !*s->at || !strchr("\"\\/bfnrtu", *s->at)) {
        fail(s, JSON_ESCAPE);
        return false;
    }
    if (*s->at++ != 'u')
        return true;
    for (int i = 0; i < 4; i++, s->at++) {
        if (s->at == s->end || !is_hex(*s->at)) {
            fail(s, JSON_ESCAPE_HEX);
            return false;
        }
    }
    return true;
}

/* Stops where the string ends, has an escape, or is invalid. */
static bool pass_rest_of_string(struct json_scanner *s)
{
    while (s->at == s->end || *s->at != '"') {
        if (s->at == s->end || *s->at != '\\') {
            fail(s, JSON_CONTROL);
            return false;
        }
        if (!pass_escape(s))
            return false;
        s->at = json_plain_end(s->at, s->end, &s->beyond_ascii);
    }
    s->at++;
    return true;
}

static bool pass_string(struct json_scanner *s)
{
    s->escaped = s->beyond_ascii = false;
    s->at = json_plain_end(s->at + 1, s->end, &s->beyond_ascii);
    return pass_rest_of_string(s);
}

/* -- Numbers and words -- */

static bool is_digit(const struct json_scanner *s)
{
    return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

static bool pass_digits(struct json_scanner *s, enum json_fault fault)
{
    if (!is_digit(s)) {
        fail(s, fault);
        return false;
    }
    while (is_digit(s))
        s->at++;
    return true;
}

static bool pass_number(struct json_scanner *s)
{
    if (*s->at == '-')
        s->at++;
    if (s->at < s->end && *s->at == '0')
        s->at++;
    else if (!pass_digits(s, JSON_DIGITS))
        return false;
    if (s->at < s->end && *s->at == '.') {
        s->at++;
        if (!pass_digits(s, JSON_FRACTION))
            return false;
    }
    if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
        s->at++;
        if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
            s->at++;
        return pass_digits(s, JSON_EXPONENT);
    }
    return true;
}

static bool pass_word(struct json_scanner *s, const char *word)
{
    for (const char *w = word; *w; w++, s->at++) {
        if (s->at == s->end || *s->at != (uint8_t)*w) {
            s->word = word;
            s->wanted = *w;
            fail(s, JSON_LITERAL);
            return false;
        }
    }
    return true;
}

/* -- Tokens -- */

static enum json_token scalar(struct json_scanner *s, bool passed, enum json_token token)
{
    if (!passed)
        return JSON_FAULT;
    value_ended(s);
    return token;
}

static enum json_token value(struct json_scanner *s)
{
    switch (*s->at) {
    case '{':
        return open(s, true);
    case '[':
        return open(s, false);
    case '"':
        return scalar(s, pass_string(s), JSON_STRING);
    case 't':
        return scalar(s, pass_word(s, "true"), JSON_TRUE);
    case 'f':
        return scalar(s, pass_word(s, "false"), JSON_FALSE);
    case 'n':
        return scalar(s, pass_word(s, "null"), JSON_NULL);
    case '-':
    case '0' ... '9':
        return scalar(s, pass_number(s), JSON_NUMBER);
    default:
        return fail(s, JSON_NO_VALUE);
    }
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* JSON written by programs has none. */
static inline void pass_space(struct json_scanner *s)
{
    if (LIKELY(s->at == s->end || *s->at > ' '))
        return;
    while (s->at < s->end && is_space(*s->at))
        s->at++;
}

static enum json_token key(struct json_scanner *s)
{
    if (*s->at != '"')
        return fail(s, JSON_NO_KEY);
    if (!pass_string(s))
        return JSON_FAULT;
    const uint8_t *end = s->at;
    pass_space(s);
    if (s->at == s->end || *s->at != ':')
        return fail(s, JSON_NO_COLON);
    s->at++;
    s->expects = EXPECTS_VALUE;
    s->raw.len = (size_t)(end - s->raw.ptr);
    return JSON_KEY;
}

/* The token that begins with the byte at `at`. */
static enum json_token begin(struct json_scanner *s)
{
    uint8_t c = *s->at;
    switch (s->expects) {
    case EXPECTS_FIRST_ITEM:
        return c == ']' ? close(s) : value(s);
    case EXPECTS_FIRST_KEY:
        return c == '}' ? close(s) : key(s);
    case EXPECTS_KEY:
        return key(s);
    case EXPECTS_COMMA:
        if (c == (in_object(s) ? '}' : ']'))
            return close(s);
        return fail(s, in_object(s) ? JSON_NO_COMMA : JSON_NO_COMMA_A);
    case EXPECTS_END:
        return fail(s, JSON_TRAILING);
    default:
        return value(s);
    }
}

/* Most tokens are valid keys and strings without escapes: those are handled here. False: nothing
 * has changed, and `begin` examines the token. */
static inline bool take_plain(struct json_scanner *s, enum json_token *ret_token)
{
    const uint8_t *from = s->at, *end = s->end;
    bool is_key = s->expects == EXPECTS_KEY || s->expects == EXPECTS_FIRST_KEY;
    bool beyond_ascii = false;
    if (*from != '"' || s->expects >= EXPECTS_COMMA)
        return false;
    const uint8_t *quote = json_plain_end(from + 1, end, &beyond_ascii);
    if (end - quote < 2 || *quote != '"' || (is_key && quote[1] != ':'))
        return false;
    s->raw.len = (size_t)(quote + 1 - from);
    s->at = quote + 1 + is_key;
    s->escaped = false;
    s->beyond_ascii = beyond_ascii;
    s->expects = is_key ? EXPECTS_VALUE : s->depth ? EXPECTS_COMMA : EXPECTS_END;
    *ret_token = is_key ? JSON_KEY : JSON_STRING;
    return true;
}

enum json_token json_next(struct json_scanner *s)
{
    enum json_token token;
    if (s->fault != JSON_FINE)
        return JSON_FAULT;
    pass_space(s);
    if (s->expects == EXPECTS_COMMA && s->at < s->end && *s->at == ',') {
        s->at++;
        s->expects = in_object(s) ? EXPECTS_KEY : EXPECTS_VALUE;
        pass_space(s);
    }
    s->raw.ptr = s->at;
    s->raw.len = 0;
    if (s->at == s->end) {
        if (s->expects == EXPECTS_END)
            return JSON_END;
        bool begun = s->depth > 0;
        s->fault = begun ? JSON_CUT_OFF : JSON_EMPTY;
        return JSON_FAULT;
    }
    if (LIKELY(take_plain(s, &token)))
        return token;
    token = begin(s);
    if (token != JSON_KEY)
        s->raw.len = (size_t)(s->at - s->raw.ptr);
    return token;
}

/* -- Skipping -- */

/* A whole number without a sign, or a word; at least six bytes follow. Returns the position behind
 * it, or NULL. */
static const uint8_t *pass_plain_scalar(const uint8_t *at, const uint8_t *end)
{
    if (*at >= '1' && *at <= '9') {
        while (++at < end && *at >= '0' && *at <= '9')
            ;
        return at < end && *at != '.' && *at != 'e' && *at != 'E' ? at : NULL;
    }
    if (memcmp(at, "true", 4) == 0 || memcmp(at, "null", 4) == 0)
        return at + 4;
    return memcmp(at, "false", 5) == 0 ? at + 5 : NULL;
}

/*
 * Passes tokens as programs write them, without white space and long escapes: most of the tokens of
 * most texts, so that this has its own copy of the state, in registers. It stops before any other
 * token, which json_next examines, and behind the bracket that leads to the depth outside.
 */
struct plain_pass {
    const uint8_t *at, *end;
    uint64_t nesting; /* kinds of the first levels */
    uint32_t depth;
    uint8_t expects;
    bool object;           /* the innermost one is an object, and not an array */
    const uint8_t *opened; /* the latest { or [, if nothing that it contains was opened */
    struct slice passed;   /* the latest value with members or items of which none has any */
};

enum { PLAIN_DEPTH_MAX = 64 };

static ALWAYS_INLINE void plain_open(struct plain_pass *p, bool object)
{
    uint64_t bit = UINT64_C(1) << p->depth++;
    p->nesting = object ? p->nesting | bit : p->nesting & ~bit;
    p->object = object;
    p->opened = p->at;
    p->expects = object ? EXPECTS_FIRST_KEY : EXPECTS_FIRST_ITEM;
    p->at++;
}

static ALWAYS_INLINE void plain_close(struct plain_pass *p)
{
    if (p->opened)
        p->passed = slice_of(p->opened, (size_t)(p->at + 1 - p->opened));
    p->opened = NULL;
    p->depth--;
    p->object = p->depth && p->nesting >> (p->depth - 1) & 1;
    p->expects = p->depth ? EXPECTS_COMMA : EXPECTS_END;
    p->at++;
}

/* The comma before an item, and its key. False: they are something else. */
static ALWAYS_INLINE bool plain_begin_item(struct plain_pass *p)
{
    if (p->expects == EXPECTS_COMMA) {
        if (*p->at != ',')
            return false;
        p->at++;
        p->expects = p->object ? EXPECTS_KEY : EXPECTS_VALUE;
    }
    if (!p->object || p->expects == EXPECTS_VALUE)
        return true;
    const uint8_t *next = *p->at == '"' ? json_plain_string_end(p->at + 1, p->end) : NULL;
    if (!next || *next != ':')
        return false;
    p->at = next + 1;
    p->expects = EXPECTS_VALUE;
    return true;
}

/* Whether the next value has the same bytes as the one that was passed. In fieldsV1 many have:
 * {".":{},"f:name":{},"f:value":{}}. */
static ALWAYS_INLINE bool is_passed_again(const struct plain_pass *p)
{
    size_t len = p->passed.len;
    return len && (size_t)(p->end - p->at) >= len && p->at[len - 1] == '}' &&
           memcmp(p->at, p->passed.ptr, len) == 0;
}

/* A value, or the beginning of an object or an array. */
static ALWAYS_INLINE bool plain_begin_value(struct plain_pass *p)
{
    const uint8_t *next;
    if (*p->at == '"') {
        next = json_plain_string_end(p->at + 1, p->end);
    } else if (*p->at == '{' && p->end - p->at >= 8 && p->at[1] == '}') {
        next = p->at + 2; /* most values in fieldsV1 */
    } else if (*p->at == '{' && is_passed_again(p)) {
        next = p->at + p->passed.len;
    } else if (*p->at == '{' || *p->at == '[') {
        if (p->depth == PLAIN_DEPTH_MAX)
            return false;
        plain_open(p, *p->at == '{');
        return true;
    } else {
        next = p->end - p->at >= 6 ? pass_plain_scalar(p->at, p->end) : NULL;
    }
    if (!next)
        return false;
    p->at = next;
    p->expects = EXPECTS_COMMA;
    return true;
}

static void pass_plain_tokens(struct json_scanner *s, uint32_t outside)
{
    if (s->depth > PLAIN_DEPTH_MAX)
        return;
    struct plain_pass p = {s->at,      s->end,       s->nesting[0], s->depth,
                           s->expects, in_object(s), NULL,          SLICE_EMPTY};
    while (p.depth > outside && p.end - p.at >= 8) {
        bool may_end = p.expects != EXPECTS_KEY && p.expects != EXPECTS_VALUE;
        if (may_end && *p.at == (p.object ? '}' : ']'))
            plain_close(&p);
        else if (!plain_begin_item(&p) || !plain_begin_value(&p))
            break;
    }
    s->at = p.at;
    s->nesting[0] = p.nesting;
    s->depth = p.depth;
    s->expects = p.expects;
}

static bool skip_rest(struct json_scanner *s)
{
    for (uint32_t outside = s->depth - 1; s->depth > outside;) {
        pass_plain_tokens(s, outside);
        if (s->depth > outside && json_next(s) == JSON_FAULT)
            return false;
    }
    s->raw = slice_of(s->at - 1, 1); /* the last token: the bracket that closes the value */
    return true;
}

bool json_skip(struct json_scanner *s, enum json_token first)
{
    enum json_token token = first == JSON_KEY ? json_next(s) : first;
    if (token == JSON_FAULT)
        return false;
    return (token != JSON_OBJECT && token != JSON_ARRAY) || skip_rest(s);
}

bool json_next_value(struct json_scanner *s, struct slice *ret_value)
{
    assert(s->depth == 0);
    s->expects = EXPECTS_VALUE;
    enum json_token token = json_next(s);
    const uint8_t *from = s->raw.ptr;
    if (!json_skip(s, token))
        return false;
    *ret_value = slice_of(from, (size_t)(s->at - from));
    return true;
}
