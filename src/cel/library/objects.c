#include "cel/library/objects.h"

#include "cel/value/container.h"

enum { DEPTH_MAX = 1000 };

struct created {
    struct cel_opaque opaque;
    struct cel_fields fields;
};

static const struct created *created_of(const struct cel_opaque *opaque)
{
    return CONTAINER_OF(opaque, const struct created, opaque);
}

static const struct cel_value *find(const struct cel_fields *fields, struct slice name)
{
    for (uint32_t i = 0; i < fields->count; i++)
        if (slice_equal(fields->names[i], name))
            return &fields->values[i];
    return NULL;
}

static const struct cel_type *type_of(const struct cel_opaque *opaque)
{
    return created_of(opaque)->fields.type;
}

/* -- Objects -- */

static bool deep_equal(struct cel_work *work, struct cel_value a, struct cel_value b, int depth);

static bool fields_equal(struct cel_work *work, const struct cel_fields *a,
                         const struct cel_fields *b, int depth)
{
    if (a->count != b->count || strcmp(a->type->name, b->type->name) != 0)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct cel_value *other = find(b, a->names[i]);
        work->steps_left -= b->count;
        if (!other || !deep_equal(work, a->values[i], *other, depth + 1))
            return false;
    }
    return true;
}

static bool maps_equal(struct cel_work *work, struct cel_value a, struct cel_value b, int depth)
{
    struct cel_walk walk;
    struct cel_value key, x, y;
    cel_walk_init(&walk, work, a);
    while (cel_walk_next(&walk, &key, &x))
        if (!cel_map_find(work, b, key, &y) || !deep_equal(work, x, y, depth + 1))
            return false;
    return true;
}

/* Go's comparison of the values themselves: a number equals none of another type, and no list
 * equals another one, because each has a function. Those within JSON have none. */
static bool deep_equal(struct cel_work *work, struct cel_value a, struct cel_value b, int depth)
{
    struct cel_fields x, y;
    if (--work->steps_left < 0 || depth > DEPTH_MAX || a.kind != b.kind)
        return false;
    if (cel_is_object(a, &x))
        return cel_is_object(b, &y) && fields_equal(work, &x, &y, depth);
    if (a.kind == CEL_LIST)
        return !a.is_view && !b.is_view && a.array == b.array && a.count == b.count;
    if (a.kind == CEL_MAP && !a.is_view)
        return a.is_view == b.is_view && a.count == b.count && maps_equal(work, a, b, depth);
    return cel_is_true(cel_equal(work, a, b));
}

static bool objects_equal(struct cel_work *work, const struct cel_opaque *a,
                          const struct cel_opaque *b, bool *ret_equal)
{
    *ret_equal =
        a->ops == b->ops && fields_equal(work, &created_of(a)->fields, &created_of(b)->fields, 0);
    return true;
}

static bool is_empty(const struct cel_opaque *opaque)
{
    return !created_of(opaque)->fields.count;
}

/* -- Values of Go -- */

static bool to_plain(struct cel_work *work, struct cel_value value, struct cel_value *ret_plain,
                     int depth);

/* As a map, or an error. */
static struct cel_value object_as_map(struct cel_work *work, const struct cel_fields *fields,
                                      int depth)
{
    struct cel_value map = cel_map_new(work, fields->count), plain;
    for (uint32_t i = 0; i < fields->count && !cel_is_error(map); i++) {
        if (!to_plain(work, fields->values[i], &plain, depth + 1))
            return CEL_FAIL("an object has a map whose keys are not strings");
        map = cel_map_insert(work, map, cel_of_string(fields->names[i]), plain);
    }
    return map;
}

/* A value as Go has it: objects become maps, the names of types texts. */
static struct cel_value plain_value(struct cel_work *work, struct cel_value value, int depth)
{
    struct cel_fields fields;
    work->steps_left--;
    if (depth > DEPTH_MAX || work->steps_left < 0)
        return CEL_TOO_MUCH_WORK;
    if (cel_is_object(value, &fields))
        return object_as_map(work, &fields, depth);
    if (value.kind == CEL_TYPE_VALUE)
        return cel_of_string(slice_from_text(value.type->name));
    if (value.kind == CEL_OPTIONAL)
        return value.some ? plain_value(work, *value.some, depth + 1)
                          : (struct cel_value){.kind = CEL_NULL};
    return value;
}

/* Lists and maps of the expression are converted with their items. False: a key of a map is not a
 * string. */
static bool to_plain(struct cel_work *work, struct cel_value value, struct cel_value *ret_plain,
                     int depth)
{
    struct cel_walk walk;
    struct cel_value key, item;
    bool is_list = value.kind == CEL_LIST;
    if (value.is_view || (!is_list && value.kind != CEL_MAP)) {
        *ret_plain = plain_value(work, value, depth);
        return true;
    }
    struct cel_value plain =
        is_list ? cel_list_new(work, value.count) : cel_map_new(work, value.count);
    cel_walk_init(&walk, work, value);
    while (!cel_is_error(plain) && cel_walk_next(&walk, &key, &item)) {
        item = plain_value(work, item, depth + 1);
        if (!is_list && key.kind != CEL_STRING)
            return false;
        plain = cel_is_error(item) ? item
                : is_list          ? cel_list_append(work, plain, item)
                                   : cel_map_insert(work, plain, key, item);
    }
    *ret_plain = plain;
    return true;
}

/* Kubernetes converts the whole object before it looks at a field, so that another field may be the
 * one that fails. */
static struct cel_value object_field(struct cel_work *work, const struct cel_opaque *opaque,
                                     struct slice name, bool *ret_present)
{
    struct cel_value map = object_as_map(work, &created_of(opaque)->fields, 0), value;
    *ret_present = false;
    if (cel_is_error(map))
        return cel_of_error_format(work, "cannot get field %s", cel_quoted(work, name));
    *ret_present = cel_map_find(work, map, cel_of_string(name), &value);
    return *ret_present ? value : (struct cel_value){.kind = CEL_NULL};
}

static const struct cel_opaque_ops object_ops = {
    .type = &cel_type_mutation_object,
    .type_of = type_of,
    .go_type = "*dynamic.ObjectVal",
    .equal = objects_equal,
    .differs = true,
    .is_zero = is_empty,
    .declared_field = object_field,
};

/* -- Patches -- */

static bool is_text_field(struct slice name)
{
    return slice_is(name, "op") || slice_is(name, "path") || slice_is(name, "from");
}

static struct cel_value patch_field(struct cel_work *work, const struct cel_opaque *opaque,
                                    struct slice name, bool *ret_present)
{
    const struct cel_value *value = find(&created_of(opaque)->fields, name);
    bool is_text = is_text_field(name);
    *ret_present = value && (!is_text || value->length);
    if (value)
        return *value;
    if (is_text)
        return cel_of_string(SLICE_EMPTY);
    if (slice_is(name, "value"))
        return (struct cel_value){.kind = CEL_NULL};
    *ret_present = true;
    return cel_of_error_format(work, "unsupported indexer: %.*s", SLICE_ARGS(name));
}

/* False: their values cannot be compared. */
static bool patches_equal(struct cel_work *work, const struct cel_opaque *a,
                          const struct cel_opaque *b, bool *ret_equal)
{
    static const char *const names[] = {"op", "path", "from"};
    struct slice last = SLICE_LITERAL("value");
    bool present;
    *ret_equal = a->ops == b->ops;
    for (size_t i = 0; i < COUNT_OF(names) && *ret_equal; i++) {
        struct slice name = slice_from_text(names[i]);
        *ret_equal = slice_equal(cel_text(patch_field(work, a, name, &present)),
                                 cel_text(patch_field(work, b, name, &present)));
    }
    if (!*ret_equal)
        return true;
    const struct cel_value *x = find(&created_of(a)->fields, last);
    const struct cel_value *y = find(&created_of(b)->fields, last);
    struct cel_value same = x && y ? cel_equal(work, *x, *y) : cel_of_bool(!x && !y);
    *ret_equal = cel_is_true(same);
    return !cel_is_error(same);
}

static const struct cel_opaque_ops patch_ops = {
    .type = &cel_type_mutation_patch,
    .type_of = type_of,
    .go_type = "*mutation.JSONPatchVal",
    .equal = patches_equal,
    .differs = true,
    .field = patch_field,
};

/* How Go's errors call the type of what a value holds. */
static const char *native_type(struct cel_value value)
{
    static const char *const names[] = {
        [CEL_NULL] = "structpb.NullValue",
        [CEL_BOOL] = "bool",
        [CEL_INT] = "int64",
        [CEL_UINT] = "uint64",
        [CEL_DOUBLE] = "float64",
        [CEL_STRING] = "string",
        [CEL_BYTES] = "[]uint8",
        [CEL_DURATION] = "time.Duration",
        [CEL_TIMESTAMP] = "time.Time",
        [CEL_LIST] = "[]ref.Val",
        [CEL_MAP] = "map[ref.Val]ref.Val",
    };
    struct cel_fields fields;
    if (cel_is_object(value, &fields))
        return "map[string]interface {}";
    if (value.is_view)
        return value.kind == CEL_LIST ? "[]interface {}" : "map[string]interface {}";
    bool known = value.kind < COUNT_OF(names) && names[value.kind];
    return known ? names[value.kind] : cel_value_go_type(value);
}

/* The values of a new patch: texts are texts. An error, or true. */
static struct cel_value check_patch(struct cel_work *work, const struct slice *names,
                                    struct cel_value *values, uint32_t count)
{
    struct cel_fields ignored;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_text_field(names[i]) && !slice_is(names[i], "value"))
            return cel_of_error_format(work, "unexpected JSONPatchType field: %.*s",
                                       SLICE_ARGS(names[i]));
        if (!is_text_field(names[i]))
            continue;
        struct cel_value plain = plain_value(work, values[i], 0);
        if (plain.kind != CEL_STRING)
            return cel_of_error_format(
                work, "unexpected type %s for JSONPatchType '%.*s' field",
                native_type(cel_is_object(values[i], &ignored) ? values[i] : plain),
                SLICE_ARGS(names[i]));
        values[i] = plain;
    }
    return cel_of_bool(true);
}

/* -- Types -- */

static enum status any_field(const struct cel_object *object, struct slice name,
                             struct arena *arena, const struct cel_type **ret_type)
{
    (void)object;
    (void)name;
    (void)arena;
    *ret_type = &cel_type_DYN;
    return ST_OK;
}

/* Kubernetes knows every name, but other fields have no type: only dyn fits them. */
static enum status find_patch_field(const struct cel_object *object, struct slice name,
                                    struct arena *arena, const struct cel_type **ret_type)
{
    static const struct cel_type untyped = {.kind = CEL_TYPE_OPAQUE, .name = "", .parts = 1};
    (void)object;
    (void)arena;
    *ret_type = is_text_field(name)       ? &cel_type_STRING
                : slice_is(name, "value") ? &cel_type_DYN
                                          : &untyped;
    return ST_OK;
}

static const struct cel_object any_fields = {.field = any_field};
static const struct cel_object patch_fields = {.field = find_patch_field};
const struct cel_type cel_type_mutation_object = {
    .kind = CEL_TYPE_OBJECT, .name = "Object", .object = &any_fields, .parts = 1};
const struct cel_type cel_type_mutation_patch = {
    .kind = CEL_TYPE_OBJECT, .name = "JSONPatch", .object = &patch_fields, .parts = 1};

static enum status find_type(const struct cel_objects *objects, struct slice name,
                             struct arena *arena, const struct cel_type **ret_type)
{
    (void)objects;
    *ret_type = NULL;
    if (slice_is(name, "JSONPatch"))
        *ret_type = &cel_type_mutation_patch;
    else if (slice_is(name, "Object"))
        *ret_type = &cel_type_mutation_object;
    if (*ret_type || !slice_has_prefix(name, SLICE_LITERAL("Object.")))
        return ST_OK;
    struct cel_type *type = arena_alloc(arena, sizeof(*type));
    char *text = arena_alloc(arena, name.len + 1);
    if (!type || !text)
        return ST_NOMEM;
    slice_copy(text, name);
    text[name.len] = '\0';
    *type = cel_type_mutation_object;
    type->name = text;
    *ret_type = type;
    return ST_OK;
}

static struct cel_value make(struct cel_work *work, const struct cel_type *type,
                             const struct slice *names, const struct cel_value *values,
                             uint32_t count)
{
    struct created *created = arena_alloc(work->arena, sizeof(*created));
    struct cel_value *copy = arena_calloc(work->arena, count + 1, sizeof(*copy));
    struct cel_value checked = cel_of_bool(true);
    bool is_patch = type == &cel_type_mutation_patch;
    if (!created || !copy)
        return CEL_NO_MEMORY;
    if (count)
        memcpy(copy, values, count * sizeof(*copy));
    if (is_patch)
        checked = check_patch(work, names, copy, count);
    *created = (struct created){.opaque = {is_patch ? &patch_ops : &object_ops},
                                .fields = {type, names, copy, count}};
    return cel_is_error(checked) ? checked : cel_of_opaque(&created->opaque);
}

const struct cel_objects cel_mutation_objects = {.find = find_type, .make = make};

bool cel_is_object(struct cel_value value, struct cel_fields *ret_fields)
{
    if (!cel_is_opaque(value, &object_ops))
        return false;
    *ret_fields = created_of(value.opaque)->fields;
    return true;
}

bool cel_is_patch(struct cel_value value, struct cel_fields *ret_fields)
{
    if (!cel_is_opaque(value, &patch_ops))
        return false;
    *ret_fields = created_of(value.opaque)->fields;
    return true;
}

/* -- Functions -- */

/* ~ and / of a name within a path. */
static struct cel_value escape_key(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_STRING)
        return CEL_NO_OVERLOAD;
    struct slice text = cel_text(args[0]);
    uint8_t *escaped = arena_alloc(work->arena, 2 * text.len + 1);
    size_t length = 0;
    if (!escaped)
        return CEL_NO_MEMORY;
    work->steps_left -= (int64_t)(text.len / 16);
    for (size_t i = 0; i < text.len; i++) {
        bool special = text.ptr[i] == '~' || text.ptr[i] == '/';
        escaped[length++] = special ? '~' : text.ptr[i];
        if (special)
            escaped[length++] = text.ptr[i] == '~' ? '0' : '1';
    }
    return cel_of_string(slice_of(escaped, length));
}

static const struct cel_builtin rows[] = {
    {"jsonpatch.escapeKey", 1, escape_key, true, 0, cel_cost_of_text},
};

const struct cel_library cel_patches = CEL_LIBRARY(rows);
