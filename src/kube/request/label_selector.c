#include "kube/request/label_selector.h"

#include "base/slices.h"
#include "codec/json/scanner.h"
#include "codec/json/string.h"
#include "kube/types/object/name.h"

#include <errno.h>
#include <stdlib.h>

enum label_operator {
    LABEL_EXISTS,
    LABEL_MISSING,
    LABEL_IN, /* also = */
    LABEL_NOT_IN,
    LABEL_GREATER,
    LABEL_LESS,
};

struct label_value {
    struct label_value *next;
    struct slice text;
};

struct requirement {
    struct requirement *next;
    struct slice key;
    size_t key_at; /* index in the selector's keys */
    enum label_operator how;
    struct label_value *values;
    int64_t number; /* for > and < */
};

struct label_selector {
    struct requirement *requirements;
    struct slice *keys; /* keys of all requirements: sorted, without duplicates */
    size_t key_count;
};

/* -- Tokens -- */

enum label_token {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_INVALID,
    TOKEN_CLOSE,
    TOKEN_COMMA,
    TOKEN_NOT,
    TOKEN_DOUBLE_EQUALS,
    TOKEN_EQUALS,
    TOKEN_GREATER,
    TOKEN_IN,
    TOKEN_LESS,
    TOKEN_NOT_EQUALS,
    TOKEN_NOT_IN,
    TOKEN_OPEN,
};

static const char *const signs[] = {
    [TOKEN_CLOSE] = ")",       [TOKEN_COMMA] = ",",
    [TOKEN_NOT] = "!",         [TOKEN_DOUBLE_EQUALS] = "==",
    [TOKEN_EQUALS] = "=",      [TOKEN_GREATER] = ">",
    [TOKEN_IN] = "in",         [TOKEN_LESS] = "<",
    [TOKEN_NOT_EQUALS] = "!=", [TOKEN_NOT_IN] = "notin",
    [TOKEN_OPEN] = "(",
};

struct label_parser {
    struct arena *arena;
    struct error *error;
    struct slice rest;
    enum label_token token; /* the next token */
    struct slice text;
    size_t requirements, values;
};

static bool is_sign(uint8_t c)
{
    return c && strchr("=!(),><", c) != NULL;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static enum label_token sign_token(struct slice text)
{
    for (enum label_token token = TOKEN_CLOSE; token <= TOKEN_OPEN; token++) {
        if (slice_is(text, signs[token]))
            return token;
    }
    return TOKEN_INVALID;
}

static void lex_word(struct label_parser *p)
{
    size_t len = 0;
    while (len < p->rest.len && p->rest.ptr[len] && !is_sign(p->rest.ptr[len]) &&
           !is_blank(p->rest.ptr[len]))
        len++;
    p->text = slice_sub(p->rest, 0, len);
    p->token = sign_token(p->text);
    if (p->token == TOKEN_INVALID)
        p->token = TOKEN_WORD;
}

static void advance(struct label_parser *p)
{
    while (p->rest.len && is_blank(p->rest.ptr[0]))
        p->rest = slice_sub(p->rest, 1, p->rest.len - 1);
    p->text = SLICE_EMPTY;
    p->token = TOKEN_END;
    /* As in Kubernetes' lexer, a zero byte ends the text. */
    if (!p->rest.len || !p->rest.ptr[0])
        return;
    if (is_sign(p->rest.ptr[0])) {
        /* Reads the longest operator. */
        size_t len = 2;
        while (len > 1 && (p->rest.len < len || !is_sign(p->rest.ptr[len - 1]) ||
                           sign_token(slice_sub(p->rest, 0, len)) == TOKEN_INVALID))
            len--;
        p->text = slice_sub(p->rest, 0, len);
        p->token = sign_token(p->text);
    } else {
        lex_word(p);
    }
    p->rest = slice_sub(p->rest, p->text.len, p->rest.len - p->text.len);
}

/* "in" and "notin" are ordinary words where no operator is expected. */
static bool is_word(const struct label_parser *p)
{
    return p->token == TOKEN_WORD || p->token == TOKEN_IN || p->token == TOKEN_NOT_IN;
}

static enum status expected(struct label_parser *p, const char *what)
{
    return error_set(p->error, ST_INVALID,
                     "unable to parse requirement: found '%.*s', expected: %s", SLICE_ARGS(p->text),
                     what);
}

/* -- Requirements -- */

static enum status add_value(struct label_parser *p, struct requirement *r, struct slice text)
{
    if (++p->values > LABEL_VALUES_MAX)
        return error_set(p->error, ST_LIMIT, "a label selector has at most %d values",
                         LABEL_VALUES_MAX);
    struct label_value *value = arena_alloc(p->arena, sizeof(*value));
    if (!value)
        return ST_NOMEM;
    *value = (struct label_value){r->values, text};
    r->values = value;
    return ST_OK;
}

/* Parses "(a,b)", "()" and "(,a,)"; an omitted value is empty. */
static enum status parse_list(struct label_parser *p, struct requirement *r)
{
    if (p->token != TOKEN_OPEN)
        return error_set(p->error, ST_INVALID,
                         "unable to parse requirement: found '%.*s' expected: '('",
                         SLICE_ARGS(p->text));
    advance(p);
    if (!is_word(p) && p->token != TOKEN_COMMA && p->token != TOKEN_CLOSE)
        return expected(p, "',', ')' or identifier");
    for (;;) {
        if (is_word(p)) {
            TRY(add_value(p, r, p->text));
            advance(p);
            if (p->token != TOKEN_COMMA && p->token != TOKEN_CLOSE)
                return expected(p, "',' or ')'");
        } else if (p->token == TOKEN_COMMA || p->token == TOKEN_CLOSE) {
            TRY(add_value(p, r, SLICE_EMPTY));
        } else {
            return expected(p, "',', or identifier");
        }
        bool last = p->token == TOKEN_CLOSE;
        advance(p);
        if (last)
            return ST_OK;
    }
}

static enum status parse_value(struct label_parser *p, struct requirement *r)
{
    /* "key=" compares with the empty text. */
    if (p->token == TOKEN_END || p->token == TOKEN_COMMA)
        return add_value(p, r, SLICE_EMPTY);
    if (!is_word(p))
        return expected(p, "identifier");
    TRY(add_value(p, r, p->text));
    advance(p);
    return ST_OK;
}

static bool parse_integer(struct slice text, int64_t *ret_number)
{
    char digits[24];
    if (!text.len || text.len >= sizeof(digits))
        return false;
    slice_copy((uint8_t *)digits, text);
    digits[text.len] = '\0';
    char *end;
    bool starts = digits[0] == '-' || digits[0] == '+' || (digits[0] >= '0' && digits[0] <= '9');
    errno = 0;
    *ret_number = strtoll(digits, &end, 10);
    return starts && !*end && !errno;
}

static enum status parse_operator(struct label_parser *p, struct requirement *r)
{
    static const uint8_t operators[] = {
        [TOKEN_DOUBLE_EQUALS] = LABEL_IN,
        [TOKEN_EQUALS] = LABEL_IN,
        [TOKEN_IN] = LABEL_IN,
        [TOKEN_NOT_EQUALS] = LABEL_NOT_IN,
        [TOKEN_NOT_IN] = LABEL_NOT_IN,
        [TOKEN_GREATER] = LABEL_GREATER,
        [TOKEN_LESS] = LABEL_LESS,
    };
    enum label_token token = p->token;
    if (token < TOKEN_DOUBLE_EQUALS || token > TOKEN_NOT_IN)
        return expected(p, "in, notin, =, ==, !=, gt, lt");
    r->how = (enum label_operator)operators[token];
    advance(p);
    if (token == TOKEN_IN || token == TOKEN_NOT_IN)
        TRY(parse_list(p, r));
    else
        TRY(parse_value(p, r));
    bool ordered = r->how == LABEL_GREATER || r->how == LABEL_LESS;
    if (ordered && !parse_integer(r->values->text, &r->number))
        return error_set(p->error, ST_INVALID,
                         "unable to parse requirement: values[0]: Invalid value: \"%.*s\": for "
                         "'Gt', 'Lt' operators, the value must be an integer",
                         SLICE_ARGS(r->values->text));
    return ST_OK;
}

static enum status check_values(struct label_parser *p, const struct requirement *r)
{
    char why[NAME_ERROR_BYTES];
    for (const struct label_value *value = r->values; value; value = value->next) {
        if (!label_value_valid(value->text, why))
            return error_set(p->error, ST_INVALID,
                             "unable to parse requirement: values[0][%.*s]: Invalid value: "
                             "\"%.*s\": %s",
                             SLICE_ARGS(r->key), SLICE_ARGS(value->text), why);
    }
    return ST_OK;
}

static enum status parse_requirement(struct label_parser *p, struct requirement *r)
{
    char why[NAME_ERROR_BYTES];
    bool negated = p->token == TOKEN_NOT;
    if (negated)
        advance(p);
    if (!is_word(p))
        return expected(p, "identifier");
    r->key = p->text;
    if (!label_key_valid(r->key, why))
        return error_set(p->error, ST_INVALID,
                         "unable to parse requirement: <nil>: Invalid value: \"%.*s\": %s",
                         SLICE_ARGS(r->key), why);
    advance(p);
    r->how = negated ? LABEL_MISSING : LABEL_EXISTS;
    if (negated || p->token == TOKEN_END || p->token == TOKEN_COMMA)
        return ST_OK;
    TRY(parse_operator(p, r));
    return check_values(p, r);
}

static enum status parse_all(struct label_parser *p, struct label_selector *selector)
{
    advance(p);
    if (p->token == TOKEN_END)
        return ST_OK;
    if (!is_word(p) && p->token != TOKEN_NOT)
        return error_set(p->error, ST_INVALID,
                         "found '%.*s', expected: !, identifier, or 'end of string'",
                         SLICE_ARGS(p->text));
    for (;;) {
        struct requirement *r = arena_calloc(p->arena, 1, sizeof(*r));
        if (!r)
            return ST_NOMEM;
        if (++p->requirements > LABEL_REQUIREMENTS_MAX)
            return error_set(p->error, ST_LIMIT, "a label selector has at most %d requirements",
                             LABEL_REQUIREMENTS_MAX);
        TRY(parse_requirement(p, r));
        r->next = selector->requirements;
        selector->requirements = r;
        if (p->token == TOKEN_END)
            return ST_OK;
        if (p->token != TOKEN_COMMA)
            return error_set(p->error, ST_INVALID, "found '%.*s', expected: ',' or 'end of string'",
                             SLICE_ARGS(p->text));
        advance(p);
        if (!is_word(p) && p->token != TOKEN_NOT)
            return error_set(p->error, ST_INVALID, "found '%.*s', expected: identifier after ','",
                             SLICE_ARGS(p->text));
    }
}

/* The index of a key, or the index at which it would be inserted. */
static size_t find_key(const struct label_selector *selector, struct slice key)
{
    size_t from = 0, to = selector->key_count;
    while (from < to) {
        size_t at = from + (to - from) / 2;
        if (slice_compare(selector->keys[at], key) < 0)
            from = at + 1;
        else
            to = at;
    }
    return from;
}

/*
 * With an index of keys, the labels of an object are scanned once for any number of requirements.
 */
static enum status index_keys(struct label_parser *p, struct label_selector *selector)
{
    size_t count = 0, unique = 0;
    if (!p->requirements)
        return ST_OK;
    selector->keys = arena_calloc(p->arena, p->requirements, sizeof(*selector->keys));
    if (!selector->keys)
        return ST_NOMEM;
    for (const struct requirement *r = selector->requirements; r; r = r->next)
        selector->keys[count++] = r->key;
    slices_sort(selector->keys, count);
    for (size_t i = 0; i < count; i++)
        if (!unique || !slice_equal(selector->keys[unique - 1], selector->keys[i]))
            selector->keys[unique++] = selector->keys[i];
    selector->key_count = unique;
    for (struct requirement *r = selector->requirements; r; r = r->next)
        r->key_at = find_key(selector, r->key);
    return ST_OK;
}

enum status label_selector_parse(struct arena *arena, struct slice text,
                                 const struct label_selector **ret_selector, struct error *error)
{
    struct label_parser p = {.arena = arena, .error = error};
    if (text.len > LABEL_SELECTOR_BYTES_MAX)
        return error_set(error, ST_LIMIT, "a label selector has at most %d bytes",
                         LABEL_SELECTOR_BYTES_MAX);
    TRY(arena_dup(arena, text, &p.rest));
    struct label_selector *selector = arena_calloc(arena, 1, sizeof(*selector));
    if (!selector)
        return ST_NOMEM;
    TRY(parse_all(&p, selector));
    TRY(index_keys(&p, selector));
    *ret_selector = selector;
    return ST_OK;
}

bool label_selector_is_empty(const struct label_selector *selector)
{
    return !selector->requirements;
}

/* -- Requirements for others -- */

static enum status list_values(const struct requirement *r, struct arena *arena,
                               struct label_requirement *to)
{
    size_t count = 0, unique = 0;
    for (const struct label_value *value = r->values; value; value = value->next)
        count++;
    if (!count)
        return ST_OK;
    struct slice *values = arena_calloc(arena, count, sizeof(*values));
    if (!values)
        return ST_NOMEM;
    count = 0;
    for (const struct label_value *value = r->values; value; value = value->next)
        values[count++] = value->text;
    slices_sort(values, count);
    for (size_t i = 0; i < count; i++)
        if (!unique || !slice_equal(values[unique - 1], values[i]))
            values[unique++] = values[i];
    to->values = values;
    to->value_count = unique;
    return ST_OK;
}

enum status label_selector_requirements(const struct label_selector *selector, struct arena *arena,
                                        const struct label_requirement **ret_requirements,
                                        size_t *ret_count)
{
    static const char *const operators[] = {
        [LABEL_EXISTS] = "Exists", [LABEL_MISSING] = "DoesNotExist", [LABEL_IN] = "In",
        [LABEL_NOT_IN] = "NotIn",  [LABEL_GREATER] = "Gt",           [LABEL_LESS] = "Lt",
    };
    size_t count = 0;
    for (const struct requirement *r = selector->requirements; r; r = r->next)
        count++;
    size_t at = count;
    struct label_requirement *list = count ? arena_calloc(arena, count, sizeof(*list)) : NULL;
    if (count && !list)
        return ST_NOMEM;
    /* There are at most LABEL_REQUIREMENTS_MAX, the last one first. */
    for (size_t key = selector->key_count; key--;) {
        for (const struct requirement *r = selector->requirements; r; r = r->next) {
            if (r->key_at != key)
                continue;
            list[--at] = (struct label_requirement){.key = r->key, .op = operators[r->how]};
            TRY(list_values(r, arena, &list[at]));
        }
    }
    assert(at == 0);
    *ret_requirements = list;
    *ret_count = count;
    return ST_OK;
}

/* -- Matching -- */

enum { LABEL_KEY_BYTES_MAX = 512 }; /* longer keys are invalid */

/* The text of the key just returned; empty if no label can have it. */
static struct slice key_text(const struct json_scanner *s, uint8_t decoded[LABEL_KEY_BYTES_MAX])
{
    struct slice key = slice_sub(s->raw, 1, s->raw.len - 2);
    size_t len;
    if (LIKELY(!s->escaped))
        return key;
    if (json_string_decode(s->raw, NULL, &len) != JSON_STRING_FINE || len > LABEL_KEY_BYTES_MAX ||
        json_string_decode(s->raw, decoded, &len) != JSON_STRING_FINE)
        return SLICE_EMPTY;
    return slice_of(decoded, len);
}

enum { FEW_KEYS = 8 }; /* up to this many are compared one by one: most differ in length */

/* The index of a key; key_count if it is not in the selector. */
static size_t find_required(const struct label_selector *selector, struct slice key)
{
    size_t at = selector->key_count > FEW_KEYS ? find_key(selector, key) : 0;
    size_t end = selector->key_count > FEW_KEYS ? size_min(at + 1, selector->key_count)
                                                : selector->key_count;
    while (at < end && !slice_equal(selector->keys[at], key))
        at++;
    return at < end ? at : selector->key_count;
}

/*
 * Finds the values of the selector's keys, as written in JSON between the quotes; ptr is NULL if
 * the object lacks the label. Of a repeated key the last one counts. False: the labels are not a
 * JSON object, and count as empty.
 */
static bool find_values(const struct label_selector *selector, struct slice labels,
                        struct slice values[LABEL_REQUIREMENTS_MAX])
{
    uint8_t decoded[LABEL_KEY_BYTES_MAX];
    struct json_scanner s;
    for (size_t i = 0; i < selector->key_count; i++)
        values[i] = (struct slice){0};
    if (!labels.len)
        return true;
    json_scanner_init(&s, labels);
    if (json_next(&s) != JSON_OBJECT)
        return false;
    while (json_next(&s) == JSON_KEY) {
        size_t at = find_required(selector, key_text(&s, decoded));
        enum json_token token = json_next(&s);
        if (at < selector->key_count && token == JSON_STRING)
            values[at] = slice_sub(s.raw, 1, s.raw.len - 2);
        if (!json_skip(&s, token))
            return false;
    }
    return true;
}

static bool has_value(const struct requirement *r, struct slice inner)
{
    const struct label_value *value = r->values;
    while (value && !json_inner_is(inner, value->text))
        value = value->next;
    return value != NULL;
}

/* The value of a label as a number. A longer text than `decoded` is not a number. */
static bool value_integer(struct slice inner, int64_t *ret_number)
{
    uint8_t decoded[32];
    struct slice raw = slice_of(inner.ptr - 1, inner.len + 2);
    size_t len;
    if (!memchr(inner.ptr, '\\', inner.len))
        return parse_integer(inner, ret_number);
    return json_string_decode(raw, NULL, &len) == JSON_STRING_FINE && len <= sizeof(decoded) &&
           json_string_decode(raw, decoded, &len) == JSON_STRING_FINE &&
           parse_integer(slice_of(decoded, len), ret_number);
}

static bool requirement_matches(const struct requirement *r, struct slice value)
{
    bool found = value.ptr;
    int64_t number;
    switch (r->how) {
    case LABEL_EXISTS:
        return found;
    case LABEL_MISSING:
        return !found;
    case LABEL_IN:
        return found && has_value(r, value);
    case LABEL_NOT_IN:
        /* In Kubernetes "!=" and "notin" also match objects that lack the label. */
        return !found || !has_value(r, value);
    case LABEL_GREATER:
        return found && value_integer(value, &number) && number > r->number;
    case LABEL_LESS:
        return found && value_integer(value, &number) && number < r->number;
    }
    return false;
}

bool label_selector_matches(const struct label_selector *selector, struct slice labels)
{
    struct slice values[LABEL_REQUIREMENTS_MAX];
    const struct requirement *r = selector->requirements;
    if (!r)
        return true;
    if (!find_values(selector, labels, values))
        (void)!find_values(selector, SLICE_EMPTY, values);
    while (r && requirement_matches(r, values[r->key_at]))
        r = r->next;
    return !r;
}
