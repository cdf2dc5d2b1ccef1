#include "kube/types/schema/strict.h"

#include "codec/base64.h"
#include "codec/json/field_fault.h"
#include "kube/types/schema/go_value.h"

#include <stdio.h>

enum { STEPS_MAX = JSON_TREE_DEPTH_MAX + 1 };

/* One step of the path to a value: a member, or an item by its index. */
struct strict_step {
    struct slice key;
    size_t index;
    bool item;
    bool entry; /* member of a map, which is not named in type errors */
};

struct strict {
    struct buf *unknown;
    struct error *error;
    size_t reported;
    size_t depth;
    struct strict_step steps[STEPS_MAX];
};

static enum status walk(struct strict *s, const struct kube_type *type, struct json_node *object);

/* -- Errors -- */

static enum status write_path(struct strict *s, struct buf *to, bool items)
{
    for (size_t i = 0; i < s->depth; i++) {
        const struct strict_step *step = &s->steps[i];
        if (step->item && items)
            TRY(buf_append_format(to, "[%zu]", step->index));
        if (step->item || (step->entry && !items))
            continue;
        TRY(buf_append_text(to, i ? "." : ""));
        TRY(buf_append(to, step->key));
    }
    return ST_OK;
}

static enum status report_unknown(struct strict *s, struct slice key)
{
    /* A client decides how many unknown fields it sends, so the report has a limit. */
    if (s->reported++ >= KUBE_STRICT_UNKNOWN_MAX)
        return ST_OK;
    AUTO(buf_fini) struct buf path = {0};
    TRY(write_path(s, &path, true));
    TRY(buf_append_text(&path, s->depth ? "." : ""));
    TRY(buf_append(&path, key));
    return field_fault_append(s->unknown, "unknown field", buf_slice(&path));
}

/* Writes Go's name for the type of a field: "[]v1.Container". */
static void write_go_type(const struct kube_field *field, bool whole, char text[160])
{
    static const char *const names[] = {
        [KUBE_VALUE_STRING] = "string",   [KUBE_VALUE_BOOL] = "bool",
        [KUBE_VALUE_INT32] = "int32",     [KUBE_VALUE_INT64] = "int64",
        [KUBE_VALUE_DOUBLE] = "float64",  [KUBE_VALUE_BYTES] = "[]uint8",
        [KUBE_VALUE_TIME] = "string",     [KUBE_VALUE_MICROTIME] = "string",
        [KUBE_VALUE_QUANTITY] = "string", [KUBE_VALUE_INTORSTRING] = "string",
    };
    const struct kube_type *type = kube_field_type(field);
    const char *shape = !whole || field->shape == KUBE_SHAPE_ONE  ? ""
                        : field->shape <= KUBE_SHAPE_WRAPPED_LIST ? "[]"
                                                                  : "map[string]";
    if (!type) {
        snprintf(text, 160, "%s%s", shape,
                 field->value < COUNT_OF(names) ? names[field->value] : "struct");
        return;
    }
    const char *package = strrchr(kube_type_package(type), '.');
    snprintf(text, 160, "%s%s.%s", shape, package ? package + 1 : "", kube_type_name(type));
}

/* of: the struct that has the field. */
static enum status wrong_type(struct strict *s, const struct kube_type *of,
                              const struct kube_field *field, const struct json_node *node,
                              bool whole)
{
    AUTO(buf_fini) struct buf path = {0};
    char type[160];
    TRY(write_path(s, &path, false));
    write_go_type(field, whole, type);
    /* Go names the number only if its type is numeric and the value does not fit. */
    bool shows = node->type == JSON_TYPE_NUMBER && !whole && field->value >= KUBE_VALUE_INT32 &&
                 field->value <= KUBE_VALUE_DOUBLE;
    return error_set(s->error, ST_INVALID,
                     "json: cannot unmarshal %s%s%.*s into Go struct field %s.%.*s of type %s",
                     kube_json_type(node), shows ? " " : "",
                     shows ? (int)size_min(node->text.len, 40) : 0,
                     shows ? (const char *)node->text.ptr : "", kube_type_name(of),
                     (int)size_min(path.len, 200), (const char *)path.ptr, type);
}

/* -- Values -- */

static bool is_whole(const struct json_node *node, bool narrow)
{
    int64_t value;
    return json_node_int(node, &value) && (!narrow || value == (int32_t)value);
}

static bool fits(const struct kube_field *field, const struct json_node *node)
{
    switch ((enum kube_value)field->value) {
    case KUBE_VALUE_STRING:
    case KUBE_VALUE_BYTES:
    case KUBE_VALUE_TIME:
    case KUBE_VALUE_MICROTIME:
        return node->type == JSON_TYPE_STRING;
    case KUBE_VALUE_BOOL:
        return node->type == JSON_TYPE_BOOL;
    case KUBE_VALUE_INT32:
    case KUBE_VALUE_INT64:
        return is_whole(node, field->value == KUBE_VALUE_INT32);
    case KUBE_VALUE_DOUBLE:
        return node->type == JSON_TYPE_NUMBER;
    case KUBE_VALUE_QUANTITY:
        return node->type == JSON_TYPE_STRING || node->type == JSON_TYPE_NUMBER;
    case KUBE_VALUE_INTORSTRING:
        return node->type == JSON_TYPE_STRING || is_whole(node, true);
    case KUBE_VALUE_MESSAGE:
        return node->type == JSON_TYPE_OBJECT;
    default:
        return true; /* any JSON; schemas are checked elsewhere */
    }
}

static enum status check_text(struct strict *s, const struct kube_field *field, struct slice text)
{
    ssize_t at;
    switch ((enum kube_value)field->value) {
    case KUBE_VALUE_BYTES:
        at = base64_fault(text);
        return at < 0
                   ? ST_OK
                   : error_set(s->error, ST_INVALID, "illegal base64 data at input byte %zd", at);
    case KUBE_VALUE_TIME:
    case KUBE_VALUE_MICROTIME:
        return go_time_check(text, field->value == KUBE_VALUE_MICROTIME, s->error);
    case KUBE_VALUE_QUANTITY:
        return go_quantity_check(text, s->error);
    default:
        return ST_OK;
    }
}

/* Checks the text of types that Go parses itself: bytes, times and quantities. */
static enum status check_own(struct strict *s, const struct kube_field *field,
                             const struct json_node *node)
{
    struct arena arena;
    struct slice text = node->text;
    if (node->type == JSON_TYPE_NUMBER || !node->escaped)
        return check_text(s, field, text);
    arena_init(&arena, NULL, 0, 2 * text.len + 8192);
    enum status status = json_node_text(node, &arena, &text);
    if (status == ST_OK)
        status = check_text(s, field, text);
    arena_fini(&arena);
    return status;
}

static enum status check_value(struct strict *s, const struct kube_type *of,
                               const struct kube_field *field, struct json_node *node)
{
    if (node->type == JSON_TYPE_NULL)
        return ST_OK;
    if (!fits(field, node))
        return wrong_type(s, of, field, node, false);
    if (field->value == KUBE_VALUE_MESSAGE)
        return walk(s, kube_field_type(field), node);
    return node->type == JSON_TYPE_STRING || node->type == JSON_TYPE_NUMBER
               ? check_own(s, field, node)
               : ST_OK;
}

static enum status check_items(struct strict *s, const struct kube_type *of,
                               const struct kube_field *field, struct json_node *list)
{
    if (list->type != JSON_TYPE_ARRAY)
        return wrong_type(s, of, field, list, true);
    struct strict_step *step = &s->steps[s->depth++];
    *step = (struct strict_step){.item = true};
    for (struct json_node *item = json_node_first(list); item; item = json_node_next(item)) {
        TRY(check_value(s, of, field, item));
        step->index++;
    }
    s->depth--;
    return ST_OK;
}

/* Go's maps keep the key of a null, with the zero value. */
static void zero_null(const struct kube_field *field, struct json_node *member)
{
    if (member->type != JSON_TYPE_NULL || field->shape != KUBE_SHAPE_MAP ||
        (field->value != KUBE_VALUE_STRING && field->value != KUBE_VALUE_BYTES))
        return;
    member->type = JSON_TYPE_STRING;
    member->text = SLICE_EMPTY;
    member->escaped = false;
}

static enum status check_map(struct strict *s, const struct kube_type *of,
                             const struct kube_field *field, struct json_node *map)
{
    if (map->type != JSON_TYPE_OBJECT)
        return wrong_type(s, of, field, map, true);
    for (struct json_node *member = json_node_first(map); member; member = json_node_next(member)) {
        s->steps[s->depth++] = (struct strict_step){.key = member->key, .entry = true};
        zero_null(field, member);
        if (field->shape == KUBE_SHAPE_MAP)
            TRY(check_value(s, of, field, member));
        else if (member->type != JSON_TYPE_NULL)
            TRY(check_items(s, of, field, member));
        s->depth--;
    }
    return ST_OK;
}

static enum status check_field(struct strict *s, const struct kube_type *of,
                               const struct kube_field *field, struct json_node *node)
{
    if (node->type == JSON_TYPE_NULL)
        return ST_OK;
    if (field->shape == KUBE_SHAPE_ONE)
        return check_value(s, of, field, node);
    return field->shape <= KUBE_SHAPE_WRAPPED_LIST ? check_items(s, of, field, node)
                                                   : check_map(s, of, field, node);
}

static enum status walk(struct strict *s, const struct kube_type *type, struct json_node *object)
{
    assert(s->depth < JSON_TREE_DEPTH_MAX); /* trees are not deeper */
    for (struct json_node *member = json_node_first(object), *next; member; member = next) {
        next = json_node_next(member);
        const struct kube_field *field = kube_type_field(type, member->key);
        if (!field) {
            TRY(report_unknown(s, member->key));
            /* As in Go, where the struct has no place for it. */
            json_node_remove(object, member);
            continue;
        }
        s->steps[s->depth++] = (struct strict_step){.key = member->key};
        TRY(check_field(s, type, field, member));
        s->depth--;
    }
    return ST_OK;
}

enum status kube_strict(const struct kube_type *type, struct json_node *object, struct buf *unknown,
                        struct error *error)
{
    struct strict s; /* not initialized: it is large, and steps are written before they are read */
    s.unknown = unknown;
    s.error = error;
    s.reported = s.depth = 0;
    if (object->type != JSON_TYPE_OBJECT)
        return error_set(error, ST_INVALID, "json: cannot unmarshal %s into Go value of type %s",
                         kube_json_type(object), kube_type_name(type));
    return walk(&s, type, object);
}
