#include "kube/request/field_selector.h"

#include "codec/json/string.h"

/*
 * Fields of built-in kinds whose path differs from their name, that have two possible paths, or
 * that have a default if they are missing.
 */
struct special {
    const char *kind, *path, *at, *or_at, *missing;
};

static const struct special specials[] = {
    {"Event", "source", "source.component", "reportingComponent", ""},
    {"Job", "status.successful", "status.succeeded", NULL, "0"},
    {"Node", "spec.unschedulable", "spec.unschedulable", NULL, "false"},
    {"Pod", "spec.host", "spec.nodeName", NULL, ""},
    {"Pod", "spec.hostNetwork", "spec.hostNetwork", NULL, "false"},
    {"Pod", "spec.restartPolicy", "spec.restartPolicy", NULL, "Always"},
    {"Pod", "spec.schedulerName", "spec.schedulerName", NULL, "default-scheduler"},
    {"ReplicationController", "status.replicas", "status.replicas", NULL, "0"},
    {"Secret", "type", "type", NULL, "Opaque"},
    {"Service", "spec.type", "spec.type", NULL, "ClusterIP"},
};

struct term {
    struct term *next;
    struct slice path;             /* path in the object */
    struct slice value;            /* without escapes */
    bool differs;                  /* != */
    struct slice needle;           /* only objects with these bytes can match; may be empty */
    const struct special *special; /* NULL: not a special field */
};

struct field_selector {
    struct term *terms;
};

/* -- Parsing -- */

struct field_parser {
    struct arena *arena;
    struct error *error;
    struct slice whole;
    const struct kube_kind *kind;
    size_t terms;
};

/* Removes the term before the next comma that is not escaped by a backslash. */
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

static enum status unescape(struct field_parser *p, struct slice *value)
{
    uint8_t *to = arena_alloc(p->arena, value->len + 1);
    size_t len = 0;
    if (!to)
        return ST_NOMEM;
    for (size_t i = 0; i < value->len; i++) {
        uint8_t c = value->ptr[i];
        if (c == '\\') {
            uint8_t next = i + 1 < value->len ? value->ptr[i + 1] : 0;
            if (!next || !strchr("\\,=", next)) {
                size_t shown = size_min(2, value->len - i);
                return error_set(p->error, ST_INVALID,
                                 "invalid field selector: invalid escape sequence: %.*s",
                                 (int)shown, (const char *)value->ptr + i);
            }
            c = next;
            i++;
        } else if (c == ',' || c == '=') {
            return error_set(p->error, ST_INVALID,
                             "invalid field selector: unescaped character in value: %d", c);
        }
        to[len++] = c;
    }
    *value = slice_of(to, len);
    return ST_OK;
}

/* Kinds whose registries check field selectors themselves, with other error texts. */
static bool has_rules(const struct kube_kind *kind)
{
    return kind->fields.count || kind->flags & KUBE_CUSTOM;
}

static bool is_allowed(const struct kube_kind *kind, struct slice path)
{
    if (slice_is(path, "metadata.name"))
        return true;
    if (slice_is(path, "metadata.namespace"))
        return kind->flags & KUBE_NAMESPACED || !has_rules(kind);
    for (size_t i = 0; i < kind->fields.count; i++) {
        if (slice_is(path, kind->fields.names[i]))
            return true;
    }
    return false;
}

static enum status refuse(struct field_parser *p, struct slice path)
{
    const struct kube_kind *kind = p->kind;
    if (!has_rules(kind))
        return error_set(p->error, ST_INVALID,
                         "\"%.*s\" is not a known field selector: only \"metadata.name\", "
                         "\"metadata.namespace\"",
                         SLICE_ARGS(path));
    if (strcmp(kind->group, "batch") == 0)
        return error_set(p->error, ST_INVALID, "field label \"%.*s\" not supported for %s",
                         SLICE_ARGS(path), kind->kind);
    if (strcmp(kind->group, "resource.k8s.io") == 0)
        return error_set(p->error, ST_INVALID, "field label not supported for %s/%s, Kind=%s: %.*s",
                         kind->group, kind->version, kind->kind, SLICE_ARGS(path));
    return error_set(p->error, ST_INVALID, "field label not supported: %.*s", SLICE_ARGS(path));
}

static const struct special *special_of(const struct kube_kind *kind, struct slice path)
{
    for (size_t i = 0; i < COUNT_OF(specials) && !(kind->flags & KUBE_CUSTOM); i++) {
        if (strcmp(specials[i].kind, kind->kind) == 0 && slice_is(path, specials[i].path))
            return &specials[i];
    }
    return NULL;
}

/* Whether JSON writes the value with escapes. */
static bool needs_escapes(struct slice value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] < ' ' || value.ptr[i] == '"' || value.ptr[i] == '\\')
            return true;
    return false;
}

/* An equal value occurs in the JSON literally, unless it is written with escapes. */
static enum status set_needle(struct field_parser *p, struct term *term)
{
    bool may_be_missing = term->special && slice_is(term->value, term->special->missing);
    if (term->differs || !term->value.len || may_be_missing || needs_escapes(term->value))
        return ST_OK;
    /* Numbers, booleans and null may stand without quotes in JSON, so the text to search for has
     * none. */
    size_t quotes =
        (term->value.ptr[0] == '-' || (term->value.ptr[0] >= '0' && term->value.ptr[0] <= '9') ||
         slice_is(term->value, "true") || slice_is(term->value, "false") ||
         slice_is(term->value, "null"))
            ? 0
            : 1;
    uint8_t *text = arena_alloc(p->arena, term->value.len + 2);
    if (!text)
        return ST_NOMEM;
    text[0] = text[term->value.len + 1] = '"';
    slice_copy(text + 1, term->value);
    term->needle = slice_of(text + 1 - quotes, term->value.len + 2 * quotes);
    return ST_OK;
}

/* Runs after all terms are parsed. */
static enum status check_terms(struct field_parser *p, struct term *terms)
{
    for (struct term *term = terms; term; term = term->next) {
        if (!is_allowed(p->kind, term->path))
            return refuse(p, term->path);
        term->special = special_of(p->kind, term->path);
        if (term->special)
            term->path = slice_from_text(term->special->at);
        TRY(set_needle(p, term));
    }
    return ST_OK;
}

/* Makes terms about the same field adjacent, so that the field is read once. */
static void group_terms(struct field_selector *selector)
{
    struct term *rest = selector->terms;
    selector->terms = NULL;
    while (rest) {
        struct term *term = rest, **at = &selector->terms, **after = NULL;
        rest = rest->next;
        for (; *at; at = &(*at)->next)
            if (slice_equal((*at)->path, term->path))
                after = &(*at)->next;
        at = after ? after : at;
        term->next = *at;
        *at = term;
    }
}

/* The offset of a term's operator: the first = or !=. */
static size_t find_operator(struct slice term)
{
    size_t at = 0;
    while (at < term.len && term.ptr[at] != '=' &&
           !(term.ptr[at] == '!' && at + 1 < term.len && term.ptr[at + 1] == '='))
        at++;
    return at;
}

static enum status parse_all(struct field_parser *p, struct field_selector *selector)
{
    struct slice rest = p->whole;
    struct term **end = &selector->terms;
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
        size_t at = find_operator(text);
        if (at == text.len)
            return error_set(p->error, ST_INVALID,
                             "invalid selector: '%.*s'; can't understand '%.*s'",
                             SLICE_ARGS(p->whole), SLICE_ARGS(text));
        term->path = slice_sub(text, 0, at);
        term->differs = text.ptr[at] == '!';
        at += term->differs || (at + 1 < text.len && text.ptr[at + 1] == '=') ? 2 : 1;
        term->value = slice_sub(text, at, text.len - at);
        TRY(unescape(p, &term->value));
        *end = term;
        end = &term->next;
    }
    TRY(check_terms(p, selector->terms));
    group_terms(selector);
    return ST_OK;
}

enum status field_selector_parse(struct arena *arena, struct slice text,
                                 const struct kube_kind *kind,
                                 const struct field_selector **ret_selector, struct error *error)
{
    struct field_parser p = {.arena = arena, .error = error, .kind = kind};
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

/* Bytes that are examined without a branch, which compilers vectorize. */
enum { ESCAPE_BLOCK = 64 };

static unsigned is_needless_escape(const uint8_t *at)
{
    return (unsigned)(at[0] == '\\') & ((unsigned)(at[1] == 'u') | (unsigned)(at[1] == '/'));
}

/*
 * Whether characters may be written with unnecessary escapes: \u0061, \/. JSON texts within JSON
 * have a backslash every few bytes, so these are not examined one by one.
 */
static bool has_needless_escapes(struct slice json)
{
    const uint8_t *end = json.ptr + json.len;
    const uint8_t *at = json.len ? memchr(json.ptr, '\\', json.len) : NULL;
    unsigned found = 0;
    for (; at && !found && end - at > ESCAPE_BLOCK; at += ESCAPE_BLOCK)
        for (size_t i = 0; i < ESCAPE_BLOCK; i++)
            found |= is_needless_escape(at + i);
    for (; at && !found && end - at > 1; at++)
        found = is_needless_escape(at);
    return found;
}

bool field_selector_may_match(const struct field_selector *selector, struct slice json)
{
    for (const struct term *term = selector->terms; term; term = term->next) {
        if (term->needle.len && !memmem(json.ptr, json.len, term->needle.ptr, term->needle.len))
            return has_needless_escapes(json);
    }
    return true;
}

static struct slice value_of(const struct term *term, const struct kube_object *object)
{
    struct slice value = SLICE_EMPTY;
    if (slice_is(term->path, "metadata.name"))
        return object->name;
    if (slice_is(term->path, "metadata.namespace"))
        return object->namespace;
    if (!kube_object_field(object, term->path, &value))
        value = SLICE_EMPTY;
    const struct special *special = term->special;
    if (value.len || !special)
        return value;
    if (special->or_at && kube_object_field(object, slice_from_text(special->or_at), &value) &&
        value.len)
        return value;
    return slice_from_text(special->missing);
}

bool field_selector_matches(const struct field_selector *selector, const struct kube_object *object)
{
    const struct term *before = NULL;
    struct slice value = SLICE_EMPTY;
    for (const struct term *term = selector->terms; term; before = term, term = term->next) {
        if (!before || !(before->special == term->special && slice_equal(before->path, term->path)))
            value = value_of(term, object);
        if (json_inner_is(value, term->value) == term->differs)
            return false;
    }
    return true;
}
