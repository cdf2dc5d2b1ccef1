#include "cel/estimate/path.h"

#include "cel/syntax/parser.h"

struct cel_step {
    enum cel_step_kind kind;
    struct slice name;           /* if it is a field */
    const struct cel_type *from; /* where the step was last followed; NULL: nowhere yet */
    const struct cel_type *to;   /* where it led; NULL: nowhere */
};

bool cel_path_append(struct arena *arena, struct cel_path path, enum cel_step_kind kind,
                     struct slice name, struct cel_path *ret_path)
{
    if (path.count == path.room) {
        uint32_t room = path.room ? 2 * path.room : 1;
        struct cel_step *steps = arena_alloc(arena, room * sizeof(*steps));
        if (!steps)
            return false;
        slice_copy(steps, slice_of(path.steps, path.count * sizeof(*steps)));
        path.steps = steps;
        path.room = room;
    }
    path.steps[path.count++] = (struct cel_step){.kind = kind, .name = name};
    *ret_path = path;
    return true;
}

/* NULL: there is no such part, or its type is not known. */
static const struct cel_type *follow(struct arena *arena, const struct cel_type *from,
                                     enum cel_step_kind kind, struct slice name)
{
    const struct cel_type *to = NULL;
    switch (kind) {
    case CEL_STEP_ITEMS:
        return from->kind == CEL_TYPE_LIST  ? cel_type_param(from, 0)
               : from->kind == CEL_TYPE_MAP ? cel_type_param(from, 1)
                                            : NULL;
    case CEL_STEP_KEYS:
        return from->kind == CEL_TYPE_MAP ? cel_type_param(from, 0) : NULL;
    case CEL_STEP_FIELD:
        /* Kubernetes escapes reserved words, and looks here for the word as it is written. */
        if (!from->object || cel_is_reserved(name) ||
            from->object->field(from->object, name, arena, &to) != ST_OK)
            return NULL;
        return to;
    case CEL_STEP_INDICES:
        break;
    }
    return NULL;
}

static const struct cel_type *find(struct arena *arena, struct cel_path path,
                                   const struct cel_type *root)
{
    const struct cel_type *at = root;
    /* The first step is the variable. */
    for (uint32_t i = 1; i < path.count && at; i++) {
        struct cel_step *step = &path.steps[i];
        if (step->from != at) {
            step->to = follow(arena, at, step->kind, step->name);
            step->from = at;
        }
        at = step->to;
    }
    return path.count ? at : NULL;
}

bool cel_path_size(struct arena *arena, struct cel_path path, const struct cel_type *root,
                   struct cel_range *ret_size)
{
    const struct cel_type *type = find(arena, path, root);
    if (type)
        *ret_size = (struct cel_range){0, type->size_max};
    return type;
}

bool cel_path_item_size(struct arena *arena, struct cel_path path, const struct cel_type *root,
                        struct cel_range *ret_size)
{
    const struct cel_type *list = find(arena, path, root);
    const struct cel_type *item = list ? follow(arena, list, CEL_STEP_ITEMS, SLICE_EMPTY) : NULL;
    if (item)
        *ret_size = (struct cel_range){0, item->size_max};
    return item;
}
