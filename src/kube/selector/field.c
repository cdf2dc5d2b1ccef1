#include "kube/selector/field.h"

struct term {
    struct term *next;
    struct slice path;
    struct slice value; /* without escapes */
    bool differs;       /* != */
};

struct field_selector {
    struct term *terms;
};

/* -- Parsing -- */

struct parser {
    struct arena *arena;
    struct error *error;
    struct slice whole;
    const struct kube_names *allowed;
    size_t terms;
};

/* The term before the next comma that no backslash stands before. */
static struct slice cut_term(struct slice *rest)
{
    size_t at = 0;
    while (at < rest->len && rest->ptr[at] != ',')
        at += rest->ptr[at] == '\\' && at + 1 < rest->len ? 2 : 1;
    struct slice term = slice_sub(*rest, 0, at);
    size_t skip = size_min(at + 1, rest->len);
    *rest = slice_sub(*rest, skip, rest->len - skip);
    return term;
}

static enum status bad_escape(struct parser *p, struct slice value, size_t at)
{
    size_t len = size_min(2, value.len - at);
    return error_set(p->error, ST_INVALID, "invalid field selector: invalid escape sequence: %.*s",
                     (int)len, (const char *)value.ptr + at);
}

static enum status unescape(struct parser *p, struct slice *value)
{
    uint8_t *to = arena_alloc(p->arena, value->len + 1);
    size_t len = 0;
    if (!to)
        return ST_NOMEM;
    for (size_t i = 0; i < value->len; i++) {
        uint8_t c = value->ptr[i];
        if (c == '\\') {
            uint8_t next = i + 1 < value->len ? value->ptr[i + 1] : 0;
            if (!next || !strchr("\\,=", next))
                return bad_escape(p, *value, i);
            c = next;
            i++;
        } else if (c == ',' || c == '=') {
            return error_set(p->error, ST_INVALID,
                             "invalid field selector: unescaped character in value: %c", c);
        }
        to[len++] = c;
    }
    *value = slice_of(to, len);
    return ST_OK;
}

static bool is_allowed(const struct kube_names *allowed, struct slice path)
{
    if (slice_equal(path, SLICE_LITERAL("metadata.name")) ||
        slice_equal(path, SLICE_LITERAL("metadata.namespace")))
        return true;
    for (size_t i = 0; i < allowed->count; i++) {
        if (slice_equal(path, slice_from_text(allowed->names[i])))
            return true;
    }
    return false;
}

/* Where the operator of a term begins: the first = or !=. */
static size_t find_operator(struct slice term)
{
    size_t at = 0;
    while (at < term.len && term.ptr[at] != '=' &&
           !(term.ptr[at] == '!' && at + 1 < term.len && term.ptr[at + 1] == '='))
        at++;
    return at;
}

static enum status parse_term(struct parser *p, struct slice text, struct term *term)
{
    size_t at = find_operator(text);
    if (at == text.len)
        return error_set(p->error, ST_INVALID, "invalid selector: '%.*s'; can't understand '%.*s'",
                         SLICE_ARGS(p->whole), SLICE_ARGS(text));
    term->path = slice_sub(text, 0, at);
    term->differs = text.ptr[at] == '!';
    at += term->differs || (at + 1 < text.len && text.ptr[at + 1] == '=') ? 2 : 1;
    term->value = slice_sub(text, at, text.len - at);
    TRY(unescape(p, &term->value));
    if (!is_allowed(p->allowed, term->path))
        return error_set(p->error, ST_INVALID,
                         "\"%.*s\" is not a known field selector: only \"metadata.name\", "
                         "\"metadata.namespace\"",
                         SLICE_ARGS(term->path));
    return ST_OK;
}

static enum status parse_all(struct parser *p, struct field_selector *selector)
{
    struct slice rest = p->whole;
    while (rest.len) {
        struct slice text = cut_term(&rest);
        if (!text.len)
            continue;
        struct term *term = arena_calloc(p->arena, 1, sizeof(*term));
        if (!term)
            return ST_NOMEM;
        if (++p->terms > FIELD_TERMS_MAX)
            return error_set(p->error, ST_LIMIT, "a field selector has at most %d terms",
                             FIELD_TERMS_MAX);
        TRY(parse_term(p, text, term));
        term->next = selector->terms;
        selector->terms = term;
    }
    return ST_OK;
}

enum status field_selector_parse(struct arena *arena, struct slice text,
                                 const struct kube_names *allowed,
                                 const struct field_selector **ret_selector, struct error *error)
{
    struct parser p = {.arena = arena, .error = error, .allowed = allowed};
    if (text.len > FIELD_SELECTOR_BYTES_MAX)
        return error_set(error, ST_LIMIT, "a field selector has at most %d bytes",
                         FIELD_SELECTOR_BYTES_MAX);
    TRY(arena_dup(arena, text, &p.whole));
    struct field_selector *selector = arena_calloc(arena, 1, sizeof(*selector));
    if (!selector)
        return ST_NOMEM;
    TRY(parse_all(&p, selector));
    *ret_selector = selector;
    return ST_OK;
}

/* -- Matching -- */

bool field_selector_is_empty(const struct field_selector *selector)
{
    return !selector->terms;
}

bool field_selector_requires(const struct field_selector *selector, struct slice path,
                             struct slice *ret_value)
{
    for (const struct term *term = selector->terms; term; term = term->next) {
        if (!term->differs && slice_equal(term->path, path)) {
            *ret_value = term->value;
            return true;
        }
    }
    return false;
}

static bool term_matches(const struct term *term, const struct kube_object *object)
{
    struct slice value = SLICE_EMPTY;
    if (slice_equal(term->path, SLICE_LITERAL("metadata.name")))
        value = object->name;
    else if (slice_equal(term->path, SLICE_LITERAL("metadata.namespace")))
        value = object->namespace;
    else if (!kube_object_field(object, term->path, &value))
        value = SLICE_EMPTY;
    return slice_equal(value, term->value) != term->differs;
}

bool field_selector_matches(const struct field_selector *selector, const struct kube_object *object)
{
    const struct term *term = selector->terms;
    while (term && term_matches(term, object))
        term = term->next;
    return !term;
}
