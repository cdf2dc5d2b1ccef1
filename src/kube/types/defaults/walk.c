#include "kube/types/defaults/defaults.h"
#include "kube/types/defaults/quantity.h"
#include "kube/types/defaults/rows.h"
#include "kube/types/schema/zero.h"

static enum status walk(struct arena *arena, const struct kube_type *type,
                        struct json_node *object);

/* -- Values that are present -- */

/* Decoding into Go's types loses the value: a null, or a zero that is omitted when empty. */
static bool is_lost(const struct kube_field *field, const struct json_node *node)
{
    bool plain = field->shape != KUBE_SHAPE_ONE ||
                 (!(field->flags & KUBE_FIELD_POINTER) && field->value < KUBE_VALUE_MESSAGE);
    return node->type == JSON_TYPE_NULL ||
           (plain && field->flags & KUBE_FIELD_OMIT_EMPTY && kube_is_zero(node));
}

/* Resource lists are rounded to thousandths; they are the maps of quantities. */
static enum status set_quantity(struct arena *arena, const struct kube_field *field,
                                struct json_node *node)
{
    char to[QUANTITY_BYTES];
    if ((node->type != JSON_TYPE_STRING && node->type != JSON_TYPE_NUMBER) || node->escaped)
        return ST_OK;
    struct slice text = quantity_canonical(node->text, field->shape == KUBE_SHAPE_MAP, to);
    node->type = JSON_TYPE_STRING;
    if (slice_equal(text, node->text))
        return ST_OK;
    return arena_dup(arena, text, &node->text);
}

static enum status walk_value(struct arena *arena, const struct kube_field *field,
                              struct json_node *node)
{
    if (field->value == KUBE_VALUE_MESSAGE)
        return node->type == JSON_TYPE_OBJECT ? walk(arena, kube_field_type(field), node) : ST_OK;
    return field->value == KUBE_VALUE_QUANTITY ? set_quantity(arena, field, node) : ST_OK;
}

static enum status walk_field(struct arena *arena, const struct kube_field *field,
                              struct json_node *node)
{
    if (field->value != KUBE_VALUE_MESSAGE && field->value != KUBE_VALUE_QUANTITY)
        return ST_OK;
    if (field->shape == KUBE_SHAPE_ONE)
        return walk_value(arena, field, node);
    if (field->shape == KUBE_SHAPE_MAP_OF_LISTS)
        return ST_OK;
    for (struct json_node *item = json_node_first(node); item; item = json_node_next(item))
        TRY(walk_value(arena, field, item));
    return ST_OK;
}

/* An empty list or map that is written always: as null, because Kubernetes stores protobuf, which
 * does not distinguish it from an absent one. */
static void set_null(const struct kube_field *field, struct json_node *node)
{
    bool parent = node->type == JSON_TYPE_ARRAY || node->type == JSON_TYPE_OBJECT;
    if (field->shape == KUBE_SHAPE_ONE || !parent || node->first)
        return;
    node->type = JSON_TYPE_NULL;
    node->text = SLICE_EMPTY;
}

static enum status walk_member(struct arena *arena, const struct kube_field *field,
                               struct json_node *object, struct json_node *member, bool *ret_seen)
{
    *ret_seen = !is_lost(field, member);
    if (*ret_seen) {
        TRY(walk_field(arena, field, member));
        set_null(field, member);
    } else if (!slice_is(member->key, "managedFields")) {
        /* An empty member is lost, except an empty list of field owners, which is a request to
         * forget them (kube/handlers/write/apply.h). */
        json_node_remove(object, member);
    }
    return ST_OK;
}

/* *ret_seen: bits by the position of the type's own fields that are present. */
static enum status walk_members(struct arena *arena, const struct kube_type *type,
                                struct json_node *object, uint64_t *ret_seen)
{
    const struct kube_field *fields = kube_type_fields(type);
    *ret_seen = 0;
    for (struct json_node *member = json_node_first(object), *next; member; member = next) {
        next = json_node_next(member);
        const struct kube_field *field = kube_type_field(type, member->key);
        bool seen = false;
        if (field)
            TRY(walk_member(arena, field, object, member, &seen));
        if (seen && field >= fields && field < fields + type->field_count)
            *ret_seen |= UINT64_C(1) << (field - fields);
    }
    return ST_OK;
}

/* -- Values that are absent -- */

/* A new struct gets its own defaults. */
static enum status set_zero(struct arena *arena, const struct kube_field *field,
                            struct json_node *object)
{
    struct json_node *value;
    if (field->value == KUBE_VALUE_MESSAGE && field->shape == KUBE_SHAPE_ONE &&
        !(field->flags & KUBE_FIELD_POINTER)) {
        value = json_node_new(arena, JSON_TYPE_OBJECT);
        if (!value)
            return ST_NOMEM;
        TRY(walk(arena, kube_field_type(field), value));
    } else {
        value = kube_zero_value(arena, field);
    }
    return value ? json_node_set(arena, object, kube_field_name(field), value) : ST_NOMEM;
}

static struct json_node *row_value(struct arena *arena, const struct default_row *row)
{
    static const enum json_type types[] = {
        [DEFAULT_TEXT] = JSON_TYPE_STRING,
        [DEFAULT_INT] = JSON_TYPE_NUMBER,
        [DEFAULT_BOOL] = JSON_TYPE_BOOL,
        [DEFAULT_OBJECT] = JSON_TYPE_OBJECT,
    };
    struct json_node *node = json_node_new(arena, types[row->form]);
    if (node && row->form == DEFAULT_BOOL)
        node->truth = row->value[0] == 't';
    else if (node && row->form != DEFAULT_OBJECT)
        node->text = slice_from_text(row->value);
    return node;
}

/* The object that has the field: itself, or that of the path. */
static struct json_node *holder_of(struct json_node *object, const char **field)
{
    const char *dot = strchr(*field, '.');
    if (!dot)
        return object;
    object = json_node_member(object, slice_of(*field, (size_t)(dot - *field)));
    *field = dot + 1;
    return object && object->type == JSON_TYPE_OBJECT ? object : NULL;
}

static enum status apply_rows(struct arena *arena, const struct default_plan *plan,
                              struct json_node *object, uint64_t seen)
{
    for (size_t i = 0; i < plan->row_count; i++) {
        const struct default_row *row = &plan->rows[i];
        uint8_t place = plan->places[i];
        bool lacks = !(seen >> (place & 63) & 1);
        if (place == DEFAULT_BY_PATH) {
            const char *name = row->field;
            struct json_node *holder = holder_of(object, &name);
            TRY(holder && default_lacks(holder, name)
                    ? json_node_put(arena, holder, name, row_value(arena, row))
                    : ST_OK);
            continue;
        }
        if (!lacks && place & DEFAULT_NOT_ZERO) {
            /* The object has the field, but a zero value is replaced, too. */
            const struct json_node *node = json_node_member(object, slice_from_text(row->field));
            lacks = !node || kube_is_zero(node);
        }
        if (lacks)
            TRY(json_node_put(arena, object, row->field, row_value(arena, row)));
    }
    return ST_OK;
}

static enum status fill(struct arena *arena, const struct kube_type *type, struct json_node *object,
                        uint64_t seen);

/* The members of inlined structs are rare enough to be looked for. */
static enum status fill_inlined(struct arena *arena, const struct kube_type *type,
                                struct json_node *object)
{
    const struct kube_field *field = kube_type_fields(type);
    uint64_t seen = 0;
    for (size_t i = 0; i < type->field_count; i++, field++) {
        if (json_node_member(object, kube_field_name(field)))
            seen |= UINT64_C(1) << i;
    }
    return fill(arena, type, object, seen);
}

/* Adds what this struct and those that it inlines lack. */
static enum status fill(struct arena *arena, const struct kube_type *type, struct json_node *object,
                        uint64_t seen)
{
    const struct default_plan *plan = default_plan_of(type);
    const struct kube_field *fields = kube_type_fields(type);
    for (uint64_t left = plan->inlined; left; left &= left - 1)
        TRY(fill_inlined(arena, kube_field_type(&fields[__builtin_ctzll(left)]), object));
    for (uint64_t left = plan->always & ~seen; left; left &= left - 1)
        TRY(set_zero(arena, &fields[__builtin_ctzll(left)], object));
    TRY(apply_rows(arena, plan, object, seen));
    return plan->rule ? plan->rule(arena, object) : ST_OK;
}

static enum status walk(struct arena *arena, const struct kube_type *type, struct json_node *object)
{
    uint64_t seen;
    TRY(walk_members(arena, type, object, &seen));
    return fill(arena, type, object, seen);
}

/* -- Objects -- */

/* The members of the object that equal those of `stored` are complete already. */
static enum status walk_changed(struct arena *arena, const struct kube_type *type,
                                const struct json_node *stored, struct json_node *object)
{
    const struct kube_field *fields = kube_type_fields(type);
    uint64_t seen = 0;
    for (struct json_node *member = json_node_first(object), *next; member; member = next) {
        next = json_node_next(member);
        const struct kube_field *field = kube_type_field(type, member->key);
        const struct json_node *before = json_node_member(stored, member->key);
        bool present = before && json_node_equal(before, member);
        if (field && !present)
            TRY(walk_member(arena, field, object, member, &present));
        if (present && field >= fields && field < fields + type->field_count)
            seen |= UINT64_C(1) << (field - fields);
    }
    return fill(arena, type, object, seen);
}

/* Kinds whose objects are defaulted here. */
static const struct kube_type *type_of(const struct kube_kind *kind)
{
    bool definition = strcmp(kind->group, "apiextensions.k8s.io") == 0;
    return kind->flags & KUBE_CUSTOM || definition ? NULL : kube_type_of_kind(kind);
}

enum status kube_default_tree(struct arena *arena, const struct kube_kind *kind,
                              struct json_node *object)
{
    const struct kube_type *type = type_of(kind);
    return type && object->type == JSON_TYPE_OBJECT ? walk(arena, type, object) : ST_OK;
}

bool kube_default(struct arena *arena, const struct kube_kind *kind, struct json_node *object,
                  struct kube_status *status)
{
    enum status fault = kube_default_tree(arena, kind, object);
    return fault == ST_OK || kube_fail_engine(status, fault);
}

bool kube_default_changed(struct arena *arena, const struct kube_kind *kind,
                          const struct json_node *stored, struct json_node *object,
                          struct kube_status *status)
{
    const struct kube_type *type = type_of(kind);
    if (!type || object->type != JSON_TYPE_OBJECT)
        return true;
    enum status fault = walk_changed(arena, type, stored, object);
    return fault == ST_OK || kube_fail_engine(status, fault);
}

bool kube_default_member(struct arena *arena, const struct kube_kind *kind,
                         struct json_node *object, struct slice name, struct kube_status *status)
{
    const struct kube_type *type = type_of(kind);
    const struct kube_field *field = type ? kube_type_field(type, name) : NULL;
    struct json_node *member = json_node_member(object, name);
    if (!field || !member)
        return true;
    enum status fault = walk_field(arena, field, member);
    return fault == ST_OK || kube_fail_engine(status, fault);
}
