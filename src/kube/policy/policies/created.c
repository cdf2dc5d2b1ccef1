#include "kube/policy/policies/created.h"

#include "cel/library/convert.h"
#include "cel/library/objects.h"
#include "cel/library/times.h"
#include "cel/value/container.h"
#include "codec/base64.h"

#include <math.h>

enum {
    DEPTH_MAX = JSON_TREE_DEPTH_MAX - 2,
    PATH_BYTES_MAX = 4096, /* the name of a type in an error */
};

/* Doubles hold all whole numbers below this one. */
#define EXACT_MAX (INT64_C(1) << 53)
#define CANNOT_MARSHAL \
    "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "

#define TOO_DEEP "the created object is nested too deeply"

const char kube_created_null[] = "0";

static struct json_node *fail(struct kube_created *c, struct cel_value why)
{
    struct slice text = cel_text(why);
    if (!c->why.len && arena_dup(c->arena, text, &text) == ST_OK)
        c->why = text;
    return NULL;
}

/* -- The names of types -- */

/* A value can contain another one many times, so that what an expression has made cheaply can be
 * arbitrarily large as a tree. False: it is too large. */
static bool goes_on(struct kube_created *c)
{
    if (c->work->steps_left-- > 0)
        return true;
    (void)fail(c, CEL_FAIL("the created object is too large"));
    return false;
}

/* "Object.spec" within the field spec of an Object: a part of a description that was put in the
 * wrong place is refused. path: the name that is expected. */
static void check_names(struct kube_created *c, struct cel_value value, struct slice path,
                        struct buf *why, int depth)
{
    struct cel_fields fields;
    struct cel_walk walk;
    struct cel_value key, item;
    if (depth > DEPTH_MAX || why->len > PATH_BYTES_MAX || path.len > PATH_BYTES_MAX || !goes_on(c))
        return;
    if (!value.is_view && (value.kind == CEL_LIST || value.kind == CEL_MAP)) {
        cel_walk_init(&walk, c->work, value);
        while (cel_walk_next(&walk, &key, &item))
            check_names(c, item, path, why, depth + 1);
    }
    if (!cel_is_object(value, &fields))
        return;
    if (!slice_is(path, fields.type->name))
        (void)!buf_append_format(
            why,
            "%sunexpected type name %s, expected %s, which matches field name path from root "
            "Object type",
            why->len ? "\n" : "", cel_quoted(c->work, slice_from_text(fields.type->name)),
            cel_quoted(c->work, path));
    for (uint32_t i = 0; i < fields.count; i++) {
        AUTO(buf_fini) struct buf below = {0};
        if (buf_append_format(&below, "%.*s.%.*s", SLICE_ARGS(path), SLICE_ARGS(fields.names[i])) ==
            ST_OK)
            check_names(c, fields.values[i], buf_slice(&below), why, depth + 1);
    }
}

static bool names_fit(struct kube_created *c, struct cel_value object)
{
    AUTO(buf_fini) struct buf why = {0};
    struct cel_fields fields;
    if (!cel_is_object(object, &fields))
        return true;
    check_names(c, object, slice_from_text(fields.type->name), &why, 0);
    if (why.len)
        (void)fail(
            c, cel_of_error_format(c->work, "type mismatch: %.*s", SLICE_ARGS(buf_slice(&why))));
    return !why.len && !c->why.len;
}

/* -- Values -- */

/* of_patch: as protobuf writes JSON, otherwise as Go has it in a tree. */
static struct json_node *to_json(struct kube_created *c, struct cel_value value, bool of_patch,
                                 int depth);

static struct json_node *no_counterpart(struct kube_created *c, struct cel_value value,
                                        bool of_patch)
{
    return fail(c, cel_of_error_format(c->work, "%sa value of type %s has no counterpart in JSON",
                                       of_patch ? CANNOT_MARSHAL : "", cel_value_type_name(value)));
}

static struct json_node *text_node(struct kube_created *c, struct cel_value text)
{
    if (text.kind != CEL_STRING)
        return fail(c, text);
    return json_node_new_text(c->arena, cel_text(text));
}

static struct json_node *number_node(struct kube_created *c, struct slice text)
{
    struct json_node *node = json_node_new(c->arena, JSON_TYPE_NUMBER);
    if (!node || arena_dup(c->arena, text, &text) != ST_OK)
        return NULL;
    node->text = text;
    return node;
}

/* A number that not every reader of JSON would read exactly is a text for protobuf. */
static struct json_node *whole_node(struct kube_created *c, struct cel_value value, bool of_patch)
{
    bool exact = value.kind == CEL_INT ? value.i64 <= EXACT_MAX - 1 && value.i64 >= 1 - EXACT_MAX
                                       : value.u64 < (uint64_t)EXACT_MAX;
    struct cel_value text = cel_to_string(c->work, &value);
    if (text.kind != CEL_STRING)
        return fail(c, text);
    return of_patch && !exact ? text_node(c, text) : number_node(c, cel_text(text));
}

static struct json_node *double_node(struct kube_created *c, struct cel_value value, bool of_patch)
{
    double number = value.number;
    if (isnan(number) || isinf(number))
        return no_counterpart(c, value, of_patch);
    if (trunc(number) == number && fabs(number) < (double)EXACT_MAX)
        value = cel_of_int((int64_t)number);
    struct cel_value text = cel_to_string(c->work, &value);
    return text.kind == CEL_STRING ? number_node(c, cel_text(text)) : fail(c, text);
}

static struct json_node *bytes_node(struct kube_created *c, struct slice bytes)
{
    struct slice text = {.len = base64_encoded_len(bytes.len)};
    uint8_t *room = arena_alloc(c->arena, text.len + 1);
    if (!room)
        return NULL;
    base64_encode(bytes, room);
    text.ptr = room;
    return json_node_new_text(c->arena, text);
}

/* member NULL: it could not be made. */
static bool add_member(struct kube_created *c, struct json_node *node, struct slice name,
                       struct json_node *member)
{
    enum status status = member ? json_node_set(c->arena, node, name, member) : ST_NOMEM;
    if (status == ST_LIMIT)
        (void)fail(c, CEL_FAIL(TOO_DEEP));
    return status == ST_OK;
}

static bool add_item(struct kube_created *c, struct json_node *node, struct json_node *item)
{
    enum status status = item ? json_node_insert(node, NULL, item) : ST_NOMEM;
    if (status == ST_LIMIT)
        (void)fail(c, CEL_FAIL(TOO_DEEP));
    return status == ST_OK;
}

static struct json_node *object_node(struct kube_created *c, const struct cel_fields *fields,
                                     bool of_patch, int depth)
{
    struct json_node *node = json_node_new(c->arena, JSON_TYPE_OBJECT);
    for (uint32_t i = 0; node && i < fields->count; i++)
        if (!add_member(c, node, fields->names[i],
                        to_json(c, fields->values[i], of_patch, depth + 1)))
            return NULL;
    return node;
}

/* A copy with texts of its own: those of parameters and of the request are gone when the object is
 * stored. */
static struct json_node *view_node(struct kube_created *c, const struct json_node *view)
{
    enum { STEP_BYTES = 8 };
    AUTO(buf_fini) struct buf text = {0};
    struct slice copy;
    struct json_node *node;
    struct error ignored;
    if (json_tree_write(view, &text) != ST_OK ||
        arena_dup(c->arena, buf_slice(&text), &copy) != ST_OK ||
        json_tree_read(c->arena, copy, &node, &ignored) != ST_OK)
        return NULL;
    c->work->steps_left -= (int64_t)(copy.len / STEP_BYTES);
    return node;
}

static struct json_node *container_node(struct kube_created *c, struct cel_value value,
                                        bool of_patch, int depth)
{
    bool is_list = value.kind == CEL_LIST;
    struct json_node *node = json_node_new(c->arena, is_list ? JSON_TYPE_ARRAY : JSON_TYPE_OBJECT);
    struct cel_walk walk;
    struct cel_value key, item;
    if (value.is_view)
        return view_node(c, value.node);
    cel_walk_init(&walk, c->work, value);
    while (node && cel_walk_next(&walk, &key, &item)) {
        if (!is_list && key.kind != CEL_STRING)
            return of_patch ? no_counterpart(c, key, true)
                            : fail(c, CEL_FAIL("invalid return type: *dynamic.ObjectVal"));
        struct json_node *made = to_json(c, item, of_patch, depth + 1);
        if (!(is_list ? add_item(c, node, made) : add_member(c, node, cel_text(key), made)))
            return NULL;
    }
    return node;
}

static struct json_node *to_json(struct kube_created *c, struct cel_value value, bool of_patch,
                                 int depth)
{
    struct json_node *node;
    struct cel_fields fields;
    if (depth > DEPTH_MAX)
        return fail(c, CEL_FAIL(TOO_DEEP));
    if (!goes_on(c))
        return NULL;
    switch ((enum cel_value_kind)value.kind) {
    case CEL_NULL:
        node = json_node_new(c->arena, of_patch ? JSON_TYPE_NULL : JSON_TYPE_NUMBER);
        if (node && !of_patch)
            node->text = slice_from_text(kube_created_null);
        return node;
    case CEL_BOOL:
        node = json_node_new(c->arena, JSON_TYPE_BOOL);
        if (node)
            node->truth = value.truth;
        return node;
    case CEL_INT:
    case CEL_UINT:
        return whole_node(c, value, of_patch);
    case CEL_DOUBLE:
        return double_node(c, value, of_patch);
    case CEL_STRING:
        return text_node(c, value);
    case CEL_BYTES:
        return of_patch ? bytes_node(c, cel_text(value)) : no_counterpart(c, value, false);
    case CEL_DURATION:
    case CEL_TIMESTAMP:
        return of_patch ? text_node(c, cel_time_to_string(c->work, value))
                        : no_counterpart(c, value, false);
    case CEL_LIST:
    case CEL_MAP:
        return container_node(c, value, of_patch, depth);
    case CEL_OPTIONAL:
        return value.some && !of_patch ? to_json(c, *value.some, of_patch, depth + 1)
                                       : no_counterpart(c, value, of_patch);
    case CEL_OPAQUE:
        if (cel_is_object(value, &fields))
            return object_node(c, &fields, of_patch, depth);
        return no_counterpart(c, value, of_patch);
    case CEL_ERROR:
    case CEL_TYPE_VALUE:
        break;
    }
    return no_counterpart(c, value, of_patch);
}

struct json_node *kube_created_object(struct kube_created *c, struct cel_value object)
{
    struct cel_fields fields;
    if (!cel_is_object(object, &fields))
        return no_counterpart(c, object, false);
    return names_fit(c, object) ? to_json(c, object, false, 0) : NULL;
}

/* -- Patches -- */

/* An absent text is empty, but "from" is then absent from the operation as well. */
static struct json_node *operation_node(struct kube_created *c, const struct cel_fields *fields)
{
    struct json_node *node = json_node_new(c->arena, JSON_TYPE_OBJECT);
    for (uint32_t i = 0; node && i < fields->count; i++) {
        struct cel_value value = fields->values[i];
        bool is_value = slice_is(fields->names[i], "value");
        if (!is_value && !value.length)
            continue;
        if (is_value && !names_fit(c, value))
            return NULL;
        if (!add_member(c, node, fields->names[i], to_json(c, value, true, 0)))
            return NULL;
    }
    return node;
}

struct json_node *kube_created_patch(struct kube_created *c, struct cel_value list)
{
    struct json_node *node = json_node_new(c->arena, JSON_TYPE_ARRAY);
    struct cel_fields fields;
    struct cel_walk walk;
    struct cel_value key, item;
    if (list.kind != CEL_LIST)
        return no_counterpart(c, list, true);
    cel_walk_init(&walk, c->work, list);
    while (node && cel_walk_next(&walk, &key, &item)) {
        if (!cel_is_patch(item, &fields))
            return no_counterpart(c, item, true);
        if (!add_item(c, node, operation_node(c, &fields)))
            return NULL;
    }
    return node;
}
