#include "kube/server/schema_v2.h"

#include "base/slices.h"
#include "codec/json/scanner.h"
#include "codec/json/tree.h"

#include <stdlib.h>

struct copy {
    struct json_scanner scanner;
    struct buf *to;
    const char *fields; /* fields of the outermost schema */
    unsigned depth;
};

/* Members whose fate is known only at the end of their schema. */
enum later { LATER_TYPE, LATER_ITEMS, LATER_PROPERTIES, LATER_COUNT };

/* One schema that is being copied. */
struct level {
    struct {
        size_t begin, end; /* in the output, with the comma; equal: not there */
    } later[LATER_COUNT];
    bool is_array, is_object, keeps_unknown, nullable;
    bool requires_nothing;
    struct slice required;    /* the whole array as text; written at the end */
    struct buf nullable_keys; /* struct slice: properties that may be null */
};

static enum status copy_schema(struct copy *c, const char *last, bool *ret_nullable);

static bool is_key(struct slice raw, const char *name)
{
    return raw.len == strlen(name) + 2 && memcmp(raw.ptr + 1, name, raw.len - 2) == 0;
}

/* Skips the value of a key that was just read. */
static enum status skip_value(struct copy *c, enum json_token *ret_first, struct slice *ret_value)
{
    enum json_token first = json_next(&c->scanner);
    const uint8_t *begin = c->scanner.raw.ptr;
    if (!json_skip(&c->scanner, first))
        return ST_MALFORMED;
    *ret_first = first;
    *ret_value = slice_of(begin, (size_t)(c->scanner.at - begin));
    return ST_OK;
}

static enum status copy_properties(struct copy *c, struct level *level, bool outermost)
{
    size_t count = 0;
    if (json_next(&c->scanner) != JSON_OBJECT)
        return ST_MALFORMED;
    TRY(buf_append_text(c->to, "{"));
    if (outermost)
        TRY(buf_append_text(c->to, c->fields));
    while (json_next(&c->scanner) == JSON_KEY) {
        struct slice key = c->scanner.raw, value;
        enum json_token first;
        bool nullable = false;
        if (outermost &&
            (is_key(key, "apiVersion") || is_key(key, "kind") || is_key(key, "metadata"))) {
            TRY(skip_value(c, &first, &value));
            continue;
        }
        if (outermost || count++)
            TRY(buf_append_text(c->to, ","));
        TRY(buf_append(c->to, key));
        TRY(buf_append_text(c->to, ":"));
        TRY(copy_schema(c, NULL, &nullable));
        if (nullable)
            TRY(buf_append(&level->nullable_keys, slice_of(&key, sizeof(key))));
    }
    return c->scanner.fault ? ST_MALFORMED : buf_append_text(c->to, "}");
}

/* Copies the value of a key; *ret_written false: the member is left out. */
static enum status copy_member(struct copy *c, struct level *level, struct slice key,
                               bool outermost, bool *ret_written)
{
    enum json_token first;
    struct slice value;
    bool nullable = false;
    int later = is_key(key, "type")         ? LATER_TYPE
                : is_key(key, "items")      ? LATER_ITEMS
                : is_key(key, "properties") ? LATER_PROPERTIES
                                            : LATER_COUNT;
    *ret_written = true;
    if (later < LATER_COUNT)
        level->later[later].begin = c->to->len;
    TRY(buf_append(c->to, key));
    TRY(buf_append_text(c->to, ":"));
    if (later == LATER_PROPERTIES)
        return copy_properties(c, level, outermost);
    if (later == LATER_ITEMS)
        return copy_schema(c, NULL, &nullable);

    /* additionalProperties is a schema or a boolean. */
    if (is_key(key, "additionalProperties") && c->scanner.at < c->scanner.end &&
        *c->scanner.at == '{') {
        TRY(copy_schema(c, NULL, &nullable));
        level->requires_nothing |= nullable;
        return ST_OK;
    }
    TRY(skip_value(c, &first, &value));
    level->is_array |= later == LATER_TYPE && slice_is(value, "\"array\"");
    level->is_object |= later == LATER_TYPE && slice_is(value, "\"object\"");
    if (is_key(key, "x-kubernetes-preserve-unknown-fields"))
        level->keeps_unknown = first == JSON_TRUE;
    if (is_key(key, "nullable"))
        level->nullable = first == JSON_TRUE;
    if (is_key(key, "required"))
        level->required = value;
    *ret_written = !(is_key(key, "oneOf") || is_key(key, "anyOf") || is_key(key, "allOf") ||
                     is_key(key, "not")) &&
                   !is_key(key, "nullable") && !is_key(key, "required") &&
                   !is_key(key, "default") && !is_key(key, "x-kubernetes-group-version-kind");
    return *ret_written ? buf_append(c->to, value) : ST_OK;
}

/* The names of required properties, without those that may be null. */
static enum status append_required(struct copy *c, struct level *level)
{
    struct slice *nullable = (struct slice *)(void *)level->nullable_keys.ptr;
    size_t nullable_count = level->nullable_keys.len / sizeof(*nullable), count = 0;
    struct json_scanner names;
    if (!level->required.len || level->requires_nothing)
        return ST_OK;
    slices_sort(nullable, nullable_count);
    json_scanner_init(&names, level->required);
    if (json_next(&names) != JSON_ARRAY)
        return ST_MALFORMED;
    while (json_next(&names) == JSON_STRING) {
        if (slices_have(nullable, nullable_count, names.raw))
            continue;
        TRY(buf_append_text(c->to, count++ ? "," : "\"required\":["));
        TRY(buf_append(c->to, names.raw));
    }
    return count ? buf_append_text(c->to, "],") : ST_OK;
}

static void cut(struct copy *c, struct level *level, enum later later)
{
    size_t begin = level->later[later].begin, len = level->later[later].end - begin;
    if (!len)
        return;
    memmove(c->to->ptr + begin, c->to->ptr + begin + len, c->to->len - begin - len);
    c->to->len -= len;
    for (size_t i = 0; i < LATER_COUNT; i++) {
        if (level->later[i].begin > begin) {
            level->later[i].begin -= len;
            level->later[i].end -= len;
        }
    }
    level->later[later].end = begin;
}

static enum status copy_level(struct copy *c, struct level *level, const char *last)
{
    bool outermost = last;
    while (json_next(&c->scanner) == JSON_KEY) {
        size_t begin = c->to->len;
        bool written;
        struct slice key = c->scanner.raw;
        TRY(copy_member(c, level, key, outermost, &written));
        if (!written) {
            c->to->len = begin;
            continue;
        }
        TRY(buf_append_text(c->to, ","));
        for (size_t i = 0; i < LATER_COUNT; i++)
            if (level->later[i].begin == begin)
                level->later[i].end = c->to->len;
    }
    if (c->scanner.fault)
        return ST_MALFORMED;

    /* kubectl takes a value without a type, but not one whose properties or items are known too. */
    if (level->nullable || level->keeps_unknown) {
        cut(c, level, LATER_PROPERTIES);
        cut(c, level, LATER_ITEMS);
    }
    bool has_items = level->later[LATER_ITEMS].end > level->later[LATER_ITEMS].begin;
    if (level->nullable || (level->is_array && !has_items) ||
        (level->keeps_unknown && level->is_object))
        cut(c, level, LATER_TYPE);
    return append_required(c, level);
}

static enum status copy_schema(struct copy *c, const char *last, bool *ret_nullable)
{
    struct level level = {0};
    size_t begin = c->to->len;
    if (++c->depth > JSON_TREE_DEPTH_MAX || json_next(&c->scanner) != JSON_OBJECT)
        return ST_MALFORMED;
    enum status status = buf_append_text(c->to, "{");
    if (status == ST_OK)
        status = copy_level(c, &level, last);
    buf_fini(&level.nullable_keys);
    TRY(status);
    c->depth--;
    if (last) {
        /* The outermost schema has the fields of every object. */
        if (level.keeps_unknown) {
            /* Any properties would make kubectl refuse all others. */
            c->to->len = begin;
            TRY(buf_append_text(c->to, "{\"type\":\"object\","));
        } else if (level.later[LATER_PROPERTIES].begin == level.later[LATER_PROPERTIES].end) {
            TRY(buf_append_text(c->to, "\"properties\":{"));
            TRY(buf_append_text(c->to, c->fields));
            TRY(buf_append_text(c->to, "},"));
        }
        TRY(buf_append_text(c->to, last));
    } else if (c->to->ptr[c->to->len - 1] == ',') {
        c->to->len--;
    }
    *ret_nullable = level.nullable;
    return buf_append_text(c->to, "}");
}

enum status schema_v2_append(struct slice schema, const char *fields, const char *last,
                             struct buf *to)
{
    struct copy c = {.to = to, .fields = fields};
    bool nullable;
    json_scanner_init(&c.scanner, schema);
    return copy_schema(&c, last, &nullable);
}
