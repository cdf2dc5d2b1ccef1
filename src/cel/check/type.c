#include "cel/check/type.h"

#define CEL_TYPE(id, type_kind, type_name, ...) \
    const struct cel_type cel_type_##id = {     \
        .kind = CEL_TYPE_##type_kind, .name = (type_name), .params = {__VA_ARGS__}};
#include "cel/check/overloads.inc"
#undef CEL_TYPE

const struct cel_type cel_type_ERROR = {.kind = CEL_TYPE_ERROR, .name = "!error!"};

const struct cel_type *cel_type_with_params(struct arena *arena, const struct cel_type *type,
                                            const struct cel_type *const params[2])
{
    if (!params[0])
        return NULL;
    uint32_t parts = 1 + params[0]->parts + (params[1] ? 1 + params[1]->parts : 0);
    struct cel_type *made = parts <= CEL_TYPE_PARTS_MAX ? arena_alloc(arena, sizeof(*made)) : NULL;
    if (!made)
        return NULL;
    *made = *type;
    made->parts = parts;
    made->params[0] = params[0];
    made->params[1] = params[1];
    return made;
}

const struct cel_type *cel_type_new_list(struct arena *arena, const struct cel_type *item)
{
    return cel_type_with_params(arena, &cel_type_LIST_A, (const struct cel_type *[]){item, NULL});
}

const struct cel_type *cel_type_new_map(struct arena *arena, const struct cel_type *key,
                                        const struct cel_type *value)
{
    if (!value)
        return NULL;
    return cel_type_with_params(arena, &cel_type_MAP_A_B, (const struct cel_type *[]){key, value});
}

const struct cel_type *cel_type_new_optional(struct arena *arena, const struct cel_type *value)
{
    return cel_type_with_params(arena, &cel_type_OPTIONAL_TYPE_V,
                                (const struct cel_type *[]){value, NULL});
}

const struct cel_type *cel_type_with_size(struct arena *arena, const struct cel_type *type,
                                          uint64_t size_max)
{
    struct cel_type *made = type ? arena_alloc(arena, sizeof(*made)) : NULL;
    if (!made)
        return NULL;
    *made = *type;
    made->size_max = size_max;
    return made;
}

bool cel_type_equal(const struct cel_type *a, const struct cel_type *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->kind != b->kind || a->variable != b->variable)
        return false;
    if (!a->variable && strcmp(a->name, b->name) != 0)
        return false;
    return cel_type_equal(a->params[0], b->params[0]) && cel_type_equal(a->params[1], b->params[1]);
}

enum status cel_type_write(const struct cel_type *type, struct buf *to)
{
    if (type->variable)
        return buf_append_format(to, "_var%u", type->variable - 1);
    const char *name = type->kind == CEL_TYPE_DURATION    ? "duration"
                       : type->kind == CEL_TYPE_TIMESTAMP ? "timestamp"
                       : type->kind == CEL_TYPE_NULL      ? "null"
                                                          : type->name;
    TRY(buf_append_text(to, name));
    if (!type->params[0])
        return ST_OK;
    TRY(buf_append_text(to, "("));
    TRY(cel_type_write(type->params[0], to));
    if (type->params[1]) {
        TRY(buf_append_text(to, ", "));
        TRY(cel_type_write(type->params[1], to));
    }
    return buf_append_text(to, ")");
}
