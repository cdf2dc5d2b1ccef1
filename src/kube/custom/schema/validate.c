/*
 * Validation as in kube-openapi, with the same order of checks and the same texts, so that the
 * causes of a Status are those of Kubernetes.
 */
#include "codec/utf8.h"
#include "kube/custom/schema/correlate.h"
#include "kube/custom/schema/formats.h"
#include "kube/custom/schema/structural.h"
#include "kube/types/go_text.h"
#include "regex/regex.h"

#include <stdio.h>
#include <stdlib.h>

/* The path of a value. It is converted to text only when there is an error to report. */
struct value_path {
    const struct value_path *up;
    struct slice key;
    size_t index;
    bool is_item;
    bool is_entry; /* the value of a map: the first one of a path has a dot before it, too */
    struct correlated *pair; /* with the previous value; NULL: none */
};

struct validation {
    struct arena *arena;
    struct slice root; /* prefix of the paths in `field`, but not in messages */
    struct kube_field_errors *errors;
    /* Checks that passed: of several alternatives, the one with the most reports its errors. */
    size_t matches;
    int64_t steps;
    bool gave_up;
    struct regex_scratch scratch;
};

enum { ERROR_STEPS = 64 };

static void validate(struct validation *r, const struct schema *s, const struct json_node *value,
                     const struct value_path *at);

/* -- Reporting errors -- */

static enum status append_path(const struct value_path *at, struct buf *to)
{
    if (!at->up)
        return ST_OK;
    TRY(append_path(at->up, to));
    if (at->is_item)
        return buf_append_format(to, "[%zu]", at->index);
    return buf_append_format(to, "%s%.*s", to->len || at->is_entry ? "." : "", SLICE_ARGS(at->key));
}

/* Appends the field of a cause: "status.a", or Go's text for an empty path. */
static enum status append_field(const struct validation *r, struct slice path, struct buf *to)
{
    TRY(buf_append(to, r->root));
    if (path.len && path.ptr[0] == '.')
        path = slice_sub(path, 1, path.len - 1);
    if (path.len)
        TRY(buf_append_text(to, r->root.len ? "." : ""));
    TRY(buf_append(to, path));
    return to->len ? ST_OK : buf_append_text(to, "<nil>");
}

/*
 * Counts another error and its cost. True: the limit of reported errors is reached, so its text is
 * not needed.
 */
static bool is_beyond_limit(struct validation *r)
{
    r->steps -= ERROR_STEPS;
    return r->errors->count >= KUBE_FIELD_ERRORS_MAX;
}

/* text: follows the path in the message; NULL: the message is only about the value. */
static void report(struct validation *r, const struct value_path *at, const char *reason,
                   struct slice message, const char *text)
{
    AUTO(buf_fini) struct buf path = {0};
    AUTO(buf_fini) struct buf field = {0};
    if (is_beyond_limit(r))
        return;
    if (append_path(at, &path) != ST_OK || append_field(r, buf_slice(&path), &field) != ST_OK) {
        r->errors->no_memory = true;
        return;
    }
    if (text)
        kube_field_errors_add(r->errors, reason, buf_slice(&field), "%.*s: %.*s in body %s",
                              SLICE_ARGS(message), SLICE_ARGS(buf_slice(&path)), text);
    else
        kube_field_errors_add(r->errors, reason, buf_slice(&field), "%.*s", SLICE_ARGS(message));
}

static void report_invalid(struct validation *r, const struct value_path *at,
                           const struct json_node *value, const char *text)
{
    AUTO(buf_fini) struct buf message = {0};
    if (is_beyond_limit(r))
        return;
    if (buf_append_text(&message, "Invalid value: ") != ST_OK ||
        go_value_append(value, r->arena, &message) != ST_OK)
        r->errors->no_memory = true;
    else
        report(r, at, "FieldValueInvalid", buf_slice(&message), text);
}

static void report_count(struct validation *r, const struct value_path *at, size_t count,
                         const char *text)
{
    char message[64];
    snprintf(message, sizeof(message), "Invalid value: %zu", count);
    report(r, at, "FieldValueInvalid", slice_from_text(message), text);
}

/* Reports an error about the whole value, without a field. */
static void report_composite(struct validation *r, const struct value_path *at, const char *what)
{
    AUTO(buf_fini) struct buf path = {0};
    AUTO(buf_fini) struct buf field = {0};
    if (is_beyond_limit(r))
        return;
    if (append_path(at, &path) != ST_OK || append_field(r, SLICE_EMPTY, &field) != ST_OK)
        r->errors->no_memory = true;
    else
        kube_field_errors_add(r->errors, "FieldValueInvalid", buf_slice(&field),
                              "Invalid value: \"\": \"%.*s\" %s", SLICE_ARGS(buf_slice(&path)),
                              what);
}

/* -- Types -- */

static const struct {
    unsigned type;
    const char *name;
} type_names[] = {
    {SCHEMA_INTEGER, "integer"}, {SCHEMA_STRING, "string"}, {SCHEMA_NUMBER, "number"},
    {SCHEMA_BOOLEAN, "boolean"}, {SCHEMA_ARRAY, "array"},   {SCHEMA_OBJECT, "object"},
};

static void types_text(unsigned types, char text[64])
{
    text[0] = '\0';
    for (size_t i = 0; i < COUNT_OF(type_names); i++) {
        if (!(types & type_names[i].type))
            continue;
        size_t len = strlen(text);
        snprintf(text + len, 64 - len, "%s%s", len ? "," : "", type_names[i].name);
    }
}

static unsigned type_of(const struct json_node *value)
{
    int64_t whole;
    switch ((enum json_type)value->type) {
    case JSON_TYPE_STRING:
        return SCHEMA_STRING;
    case JSON_TYPE_BOOL:
        return SCHEMA_BOOLEAN;
    case JSON_TYPE_ARRAY:
        return SCHEMA_ARRAY;
    case JSON_TYPE_OBJECT:
        return SCHEMA_OBJECT;
    default:
        /* 1.0 and 1e3 are also whole numbers, but Go keeps them as floats. */
        return json_node_int(value, &whole) && !go_is_float(value->text) ? SCHEMA_INTEGER
                                                                         : SCHEMA_NUMBER;
    }
}

static void report_type(struct validation *r, const struct value_path *at, const char *expected,
                        const char *has)
{
    char text[192], message[64];
    snprintf(message, sizeof(message), "Invalid value: \"%s\"", has);
    snprintf(text, sizeof(text), "must be of type %s: \"%s\"", expected, has);
    report(r, at, "FieldValueTypeInvalid", slice_from_text(message), text);
}

static void check_type(struct validation *r, const struct schema *s, const struct json_node *value,
                       const struct value_path *at)
{
    char expected[64], has[64] = "null";
    int64_t whole;
    types_text(s->types, expected);
    if (value->type == JSON_TYPE_NULL) {
        if (s->types && !s->nullable)
            report_type(r, at, expected, has);
        else
            r->matches++;
        return;
    }
    unsigned type = type_of(value);
    bool fits =
        !s->types || s->types & type || (type == SCHEMA_INTEGER && s->types & SCHEMA_NUMBER) ||
        (type == SCHEMA_NUMBER && s->types & SCHEMA_INTEGER && json_node_int(value, &whole));
    types_text(type, has);
    if (!fits)
        report_type(r, at, expected, has);
    else
        r->matches++;
}

/* -- Several schemas for one value -- */

/*
 * Validates separately, with the errors in *ret_errors. Returns the number of checks that passed.
 */
static size_t try_schema(struct validation *r, const struct schema *s,
                         const struct json_node *value, const struct value_path *at,
                         struct kube_field_errors *ret_errors)
{
    struct kube_field_errors *outer = r->errors;
    size_t matches = r->matches;
    *ret_errors = (struct kube_field_errors){.arena = r->arena};
    r->errors = ret_errors;
    r->matches = 0;
    validate(r, s, value, at);
    size_t made = r->matches;
    r->errors = outer;
    r->matches = matches;
    outer->no_memory |= ret_errors->no_memory;
    return made;
}

static void merge(struct validation *r, struct kube_field_errors *from, size_t matches)
{
    r->matches += matches;
    if (!from->first)
        return;
    if (r->errors->last)
        r->errors->last->next = from->first;
    else
        r->errors->first = from->first;
    r->errors->last = from->last;
    r->errors->count += from->count;
}

struct best {
    struct kube_field_errors errors;
    size_t matches;
    bool set;
};

static void check_any_of(struct validation *r, const struct schema *s,
                         const struct json_node *value, const struct value_path *at)
{
    struct best best = {0};
    for (size_t i = 0; i < s->more->any_of.count; i++) {
        struct kube_field_errors errors;
        size_t matches = try_schema(r, s->more->any_of.schemas[i], value, at, &errors);
        if (!errors.count) {
            r->matches += matches;
            return;
        }
        if (!best.set || matches > best.matches)
            best = (struct best){errors, matches, true};
    }
    report_composite(r, at, "must validate at least one schema (anyOf)");
    merge(r, &best.errors, best.matches);
}

static void check_one_of(struct validation *r, const struct schema *s,
                         const struct json_node *value, const struct value_path *at)
{
    struct best best = {0};
    char text[128];
    size_t valid = 0, matches_of_first = 0;
    for (size_t i = 0; i < s->more->one_of.count; i++) {
        struct kube_field_errors errors;
        size_t matches = try_schema(r, s->more->one_of.schemas[i], value, at, &errors);
        if (!errors.count && !valid++)
            matches_of_first = matches;
        else if (!valid && (!best.set || matches > best.matches))
            best = (struct best){errors, matches, true};
    }
    if (valid == 1) {
        r->matches += matches_of_first;
        return;
    }
    snprintf(text, sizeof(text), "must validate one and only one schema (oneOf). Found ");
    size_t len = strlen(text);
    if (valid)
        snprintf(text + len, sizeof(text) - len, "%zu valid alternatives", valid);
    else
        snprintf(text + len, sizeof(text) - len, "none valid");
    report_composite(r, at, text);
    if (!valid)
        merge(r, &best.errors, best.matches);
}

static void check_all_of(struct validation *r, const struct schema *s,
                         const struct json_node *value, const struct value_path *at)
{
    size_t valid = 0;
    for (size_t i = 0; i < s->more->all_of.count; i++) {
        struct kube_field_errors errors;
        size_t matches = try_schema(r, s->more->all_of.schemas[i], value, at, &errors);
        valid += !errors.count;
        merge(r, &errors, matches);
    }
    if (valid != s->more->all_of.count)
        report_composite(r, at,
                         valid ? "must validate all the schemas (allOf)"
                               : "must validate all the schemas (allOf). None validated");
}

static void check_composites(struct validation *r, const struct schema *s,
                             const struct json_node *value, const struct value_path *at)
{
    if (s->more->any_of.count)
        check_any_of(r, s, value, at);
    if (s->more->one_of.count)
        check_one_of(r, s, value, at);
    if (s->more->all_of.count)
        check_all_of(r, s, value, at);
    if (s->more->not ) {
        struct kube_field_errors errors;
        (void)try_schema(r, s->more->not, value, at, &errors);
        if (!errors.count)
            report_composite(r, at, "must not validate the schema (not)");
    }
    r->matches++;
}

/* -- Strings -- */

static void report_pattern(struct validation *r, const struct schema *s,
                           const struct json_node *value, const struct value_path *at)
{
    AUTO(buf_fini) struct buf text = {0};
    if (buf_append_format(&text, "should match '%.*s'%c", SLICE_ARGS(s->more->pattern), 0) != ST_OK)
        r->errors->no_memory = true;
    else
        report_invalid(r, at, value, (const char *)text.ptr);
}

/* False: unknown, because the match would take too many steps. */
static bool matches_regex(struct validation *r, const struct regex *regex, struct slice text,
                          bool *ret_matches)
{
    enum regex_result result = regex_match(regex, text, &r->scratch, &r->steps);
    *ret_matches = result == REGEX_MATCH;
    r->gave_up |= result == REGEX_GAVE_UP;
    return result != REGEX_GAVE_UP;
}

static void report_too_long(struct validation *r, const struct value_path *at, int64_t max)
{
    char message[64];
    snprintf(message, sizeof(message), "Too long: may not be more than %lld byte%s", (long long)max,
             max == 1 ? "" : "s");
    report(r, at, "FieldValueTooLong", slice_from_text(message), NULL);
}

static void check_string(struct validation *r, const struct schema *s,
                         const struct json_node *value, struct slice text,
                         const struct value_path *at)
{
    char message[96];
    bool matches = true;
    int64_t length = (int64_t)utf8_count(text);
    r->steps -= (int64_t)text.len / 16;
    if (s->more->max_length >= 0 && length > s->more->max_length) {
        report_too_long(r, at, s->more->max_length);
    } else if (length < s->more->min_length) {
        snprintf(message, sizeof(message), "should be at least %lld chars long",
                 (long long)s->more->min_length);
        report_invalid(r, at, value, message);
    } else if (s->more->regex && matches_regex(r, s->more->regex, text, &matches) && !matches) {
        report_pattern(r, s, value, at);
    }
}

static void report_format(struct validation *r, const struct schema *s, struct slice value,
                          const struct value_path *at)
{
    AUTO(buf_fini) struct buf message = {0};
    AUTO(buf_fini) struct buf text = {0};
    if (buf_append_text(&message, "Invalid value: ") != ST_OK ||
        go_quote(value, &message) != ST_OK ||
        buf_append_format(&text, "must be of type %.*s: ", SLICE_ARGS(s->more->format)) != ST_OK ||
        go_quote(value, &text) != ST_OK || buf_append(&text, slice_of("", 1)) != ST_OK)
        r->errors->no_memory = true;
    else
        report(r, at, "FieldValueTypeInvalid", buf_slice(&message), (const char *)text.ptr);
}

static void check_format(struct validation *r, const struct schema *s, struct slice text,
                         const struct value_path *at)
{
    bool fits = true;
    if (s->more->shape && !matches_regex(r, s->more->shape, text, &fits))
        return;
    if (fits && s->more->checks && s->more->checks->check)
        fits = s->more->checks->check(text);
    if (!fits)
        report_format(r, s, text, at);
}

/* -- Numbers -- */

static double number_of(const struct json_node *value)
{
    char digits[64];
    size_t len = size_min(value->text.len, sizeof(digits) - 1);
    slice_copy(digits, slice_sub(value->text, 0, len));
    digits[len] = '\0';
    return strtod(digits, NULL);
}

static void report_bound(struct validation *r, const struct json_node *value,
                         const struct value_path *at, const char *what, double bound)
{
    char text[128], number[GO_FLOAT_BYTES];
    if (type_of(value) == SCHEMA_INTEGER && bound < 9e15 && bound > -9e15)
        bound = (double)(int64_t)bound;
    snprintf(text, sizeof(text), "should be %s %s", what, go_float(bound, number));
    report_invalid(r, at, value, text);
}

static bool is_multiple(const struct json_node *value, double of)
{
    if (of <= 0)
        return false;
    double times = of < 1 ? 1 / of * number_of(value) : number_of(value) / of;
    if (times > 9e15 || times < -9e15)
        return true; /* a remainder would be beyond the precision of a double */
    double off = times - (double)(int64_t)(times < 0 ? times - 0.5 : times + 0.5);
    return off < 1e-9 && off > -1e-9;
}

static void report_range(struct validation *r, const struct schema *s, const struct value_path *at)
{
    AUTO(buf_fini) struct buf path = {0};
    AUTO(buf_fini) struct buf field = {0};
    char type[64];
    types_text(s->types, type);
    if (append_path(at, &path) != ST_OK || append_field(r, SLICE_EMPTY, &field) != ST_OK)
        r->errors->no_memory = true;
    else
        kube_field_errors_add(
            r->errors, "FieldValueInvalid", buf_slice(&field),
            "Invalid value: \"\": Checked value must be of type %s %s%.*s in %.*s", type,
            s->more->format.len ? "with format " : "(default format)", SLICE_ARGS(s->more->format),
            SLICE_ARGS(buf_slice(&path)));
}

static void check_number(struct validation *r, const struct schema *s,
                         const struct json_node *value, const struct value_path *at)
{
    double number = number_of(value);
    bool small = slice_equal(s->more->format, SLICE_LITERAL("int32"));
    int64_t whole;
    if (s->types == SCHEMA_INTEGER &&
        (!json_node_int(value, &whole) || (small && (whole > INT32_MAX || whole < INT32_MIN))))
        report_range(r, s, at);
    if (s->more->has_multiple && !is_multiple(value, s->more->multiple_of))
        report_bound(r, value, at, "a multiple of", s->more->multiple_of);
    if (s->more->has_minimum &&
        (number < s->more->minimum || (s->more->exclusive_minimum && number == s->more->minimum)))
        report_bound(r, value, at,
                     s->more->exclusive_minimum ? "greater than" : "greater than or equal to",
                     s->more->minimum);
    if (s->more->has_maximum &&
        (number > s->more->maximum || (s->more->exclusive_maximum && number == s->more->maximum)))
        report_bound(r, value, at,
                     s->more->exclusive_maximum ? "less than" : "less than or equal to",
                     s->more->maximum);
    r->matches++;
}

/* -- Arrays, objects, enums -- */

static void report_too_many(struct validation *r, const struct value_path *at, size_t has,
                            int64_t max)
{
    char message[96];
    snprintf(message, sizeof(message), "Too many: %zu: must have at most %lld item%s", has,
             (long long)max, max == 1 ? "" : "s");
    report(r, at, "FieldValueTooMany", slice_from_text(message), NULL);
}

/* The pair of a child, if its parent has one. Schemas of allOf and the like do not correlate. */
static struct correlated *pair_of(const struct value_path *up, const struct schema *schema,
                                  const struct json_node *value, const struct json_node *old,
                                  struct correlated *pair)
{
    if (!up->pair || !schema || !old)
        return NULL;
    *pair = (struct correlated){.schema = schema, .value = value, .old = old};
    return pair;
}

static void check_items(struct validation *r, const struct schema *s, const struct json_node *value,
                        const struct value_path *at)
{
    const struct schema *list = at->pair ? at->pair->schema : NULL;
    struct old_items olds = {0};
    size_t index = 0;
    if (list)
        old_items_init(&olds, r->arena, list, at->pair->old);
    r->steps -= (int64_t)olds.count;
    for (const struct json_node *item = value->first; item && !r->gave_up;
         item = item->next, index++) {
        const struct json_node *old = olds.count ? old_items_find(&olds, item) : NULL;
        struct correlated pair;
        struct value_path path = {.up = at, .index = index, .is_item = true};
        path.pair = pair_of(at, list ? list->items : NULL, item, old, &pair);
        validate(r, s->items, item, &path);
    }
}

static void check_array(struct validation *r, const struct schema *s, const struct json_node *value,
                        const struct value_path *at)
{
    char text[96];
    if (s->items)
        check_items(r, s, value, at);
    if ((int64_t)value->count < s->more->min_items) {
        snprintf(text, sizeof(text), "should have at least %lld items",
                 (long long)s->more->min_items);
        report_count(r, at, value->count, text);
    }
    if (s->more->max_items >= 0 && (int64_t)value->count > s->more->max_items)
        report_too_many(r, at, value->count, s->more->max_items);
    r->matches++;
}

static void check_required(struct validation *r, const struct schema *s,
                           const struct json_node *object, const struct value_path *at)
{
    r->steps -= (int64_t)s->required.count;
    for (size_t i = 0; i < s->required.count && r->steps > 0; i++) {
        struct value_path path = {.up = at, .key = s->required.names[i]};
        if (!json_node_member(object, s->required.names[i]))
            report(r, &path, "FieldValueRequired", SLICE_LITERAL("Required value"), NULL);
    }
}

static void report_forbidden(struct validation *r, const struct json_node *member,
                             const struct value_path *at)
{
    AUTO(buf_fini) struct buf path = {0};
    AUTO(buf_fini) struct buf field = {0};
    AUTO(buf_fini) struct buf key = {0};
    if (is_beyond_limit(r))
        return;
    if (append_path(at, &path) != ST_OK || append_field(r, buf_slice(&path), &field) != ST_OK ||
        go_quote(member->key, &key) != ST_OK)
        r->errors->no_memory = true;
    else
        kube_field_errors_add(r->errors, "FieldValueInvalid", buf_slice(&field),
                              "Invalid value: %.*s: %.*s.%.*s in body is a forbidden property",
                              SLICE_ARGS(buf_slice(&key)), SLICE_ARGS(buf_slice(&path)),
                              SLICE_ARGS(member->key));
}

static void check_members(struct validation *r, const struct schema *s,
                          const struct json_node *object, const struct value_path *at)
{
    for (const struct json_node *member = object->first; member && !r->gave_up;
         member = member->next) {
        struct value_path path = {.up = at, .key = member->key};
        const struct schema *property = schema_property(s, member->key);
        struct correlated pair;
        if (at->pair)
            path.pair = pair_of(at, schema_member(at->pair->schema, member->key), member,
                                json_node_member(at->pair->old, member->key), &pair);
        r->steps--;
        path.is_entry = !property;
        if (property)
            validate(r, property, member, &path);
        else if (s->additional)
            validate(r, s->additional, member, &path);
        else if (s->additional_given && !s->additional_allowed)
            report_forbidden(r, member, at);
    }
}

static void check_object(struct validation *r, const struct schema *s,
                         const struct json_node *value, const struct value_path *at)
{
    char text[96];
    if ((int64_t)value->count < s->more->min_properties) {
        snprintf(text, sizeof(text), "should have at least %lld properties",
                 (long long)s->more->min_properties);
        report_count(r, at, value->count, text);
    }
    if (s->more->max_properties >= 0 && (int64_t)value->count > s->more->max_properties)
        report_too_many(r, at, value->count, s->more->max_properties);
    check_members(r, s, value, at);
    check_required(r, s, value, at);
}

static enum status append_supported(struct validation *r, const struct schema *s,
                                    const struct json_node *value, struct buf *to)
{
    TRY(buf_append_text(to, "Unsupported value: "));
    TRY(go_value_append(value, r->arena, to));
    TRY(buf_append_text(to, ": supported values: "));
    for (const struct json_node *item = s->more->values->first; item; item = item->next) {
        AUTO(buf_fini) struct buf text = {0};
        struct slice plain;
        TRY(buf_append_text(to, item->prev ? ", " : ""));
        TRY(json_node_text(item, r->arena, &plain));
        if (item->type != JSON_TYPE_STRING) {
            TRY(json_tree_write(item, &text));
            plain = buf_slice(&text);
        }
        TRY(go_quote(plain, to));
    }
    return ST_OK;
}

static void check_enum(struct validation *r, const struct schema *s, const struct json_node *value,
                       const struct value_path *at)
{
    AUTO(buf_fini) struct buf message = {0};
    r->steps -= (int64_t)s->more->values->count;
    if (r->steps <= 0)
        return; /* reported at the end */
    /* In kube-openapi, null never equals one of the values, even if it is among them. */
    for (const struct json_node *item = s->more->values->first; item; item = item->next)
        if (item->type != JSON_TYPE_NULL && json_node_equal(item, value))
            return;
    if (is_beyond_limit(r))
        return;
    if (append_supported(r, s, value, &message) != ST_OK)
        r->errors->no_memory = true;
    else
        report(r, at, "FieldValueNotSupported", buf_slice(&message), NULL);
}

/* -- Any value -- */

static void check_text(struct validation *r, const struct schema *s, const struct json_node *value,
                       const struct value_path *at)
{
    struct slice text;
    if (json_node_text(value, r->arena, &text) != ST_OK) {
        r->errors->no_memory = true;
        return;
    }
    check_string(r, s, value, text, at);
    if (s->more->format.len)
        check_format(r, s, text, at);
}

static void validate(struct validation *r, const struct schema *s, const struct json_node *value,
                     const struct value_path *at)
{
    if (--r->steps <= 0)
        r->gave_up = true;
    if (r->gave_up)
        return;
    if (at->pair && correlated_is_same(at->pair, r->arena)) {
        r->matches++;
        return;
    }
    if (s->types || s->more->format.len)
        check_type(r, s, value, at);
    if (value->type != JSON_TYPE_NULL) {
        check_composites(r, s, value, at);
        if (value->type == JSON_TYPE_STRING)
            check_text(r, s, value, at);
        else if (value->type == JSON_TYPE_NUMBER)
            check_number(r, s, value, at);
        else if (value->type == JSON_TYPE_ARRAY)
            check_array(r, s, value, at);
    }
    if (s->more->values)
        check_enum(r, s, value, at);
    if (value->type == JSON_TYPE_OBJECT)
        check_object(r, s, value, at);
    r->matches++;
}

void schema_validate_within(const struct schema *schema, const struct json_node *value,
                            const struct json_node *old, struct slice path, struct arena *arena,
                            int64_t *steps, struct kube_field_errors *errors)
{
    struct validation r = {.arena = arena, .root = path, .errors = errors, .steps = *steps};
    r.scratch.arena = arena;
    struct correlated pair = {.schema = schema, .value = value, .old = old};
    const struct value_path root = {.pair = old ? &pair : NULL};
    validate(&r, schema, value, &root);
    *steps = r.steps;
    if (r.gave_up || r.steps <= 0) /* the last check may be incomplete */
        kube_field_errors_add(
            errors, "FieldValueInvalid", path.len ? path : SLICE_LITERAL("<nil>"),
            "Invalid value: \"\": it takes too long to check against the schema of "
            "its definition");
}

void schema_validate(const struct schema *schema, const struct json_node *value,
                     const struct json_node *old, struct slice path, struct arena *arena,
                     struct kube_field_errors *errors)
{
    int64_t steps = SCHEMA_STEPS_MAX;
    schema_validate_within(schema, value, old, path, arena, &steps, errors);
}
