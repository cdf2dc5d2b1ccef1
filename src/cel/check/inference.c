#include "cel/check/inference.h"

/* A value that `bound` had before the assignment under way. */
struct cel_binding {
    uint32_t variable;
    const struct cel_type *type;
};

void cel_inference_init(struct cel_inference *inference, struct arena *arena)
{
    *inference = (struct cel_inference){.arena = arena, .steps = CEL_INFERENCE_STEPS_MAX};
}

/* A larger copy of an array. NULL without memory. */
static void *grow(struct cel_inference *in, const void *old, uint32_t *room, size_t bytes_each)
{
    uint32_t more = *room ? 2 * *room : 16;
    void *made = arena_calloc(in->arena, more, bytes_each);
    if (!made) {
        in->failed = true;
        return NULL;
    }
    if (*room)
        memcpy(made, old, *room * bytes_each);
    *room = more;
    return made;
}

const struct cel_type *cel_infer_new(struct cel_inference *in)
{
    if (in->count == in->room) {
        const struct cel_type **bound = grow(in, in->bound, &in->room, sizeof(*bound));
        if (!bound)
            return NULL;
        in->bound = bound;
    }
    struct cel_type *type = arena_calloc(in->arena, 1, sizeof(*type));
    if (!type) {
        in->failed = true;
        return NULL;
    }
    type->kind = CEL_TYPE_PARAM;
    type->variable = ++in->count;
    in->bound[type->variable - 1] = NULL;
    return type;
}

static const struct cel_type *find(const struct cel_inference *in, const struct cel_type *type)
{
    return type->variable ? in->bound[type->variable - 1] : NULL;
}

static void set(struct cel_inference *in, const struct cel_type *variable,
                const struct cel_type *type)
{
    if (in->trail_count == in->trail_room) {
        struct cel_binding *trail = grow(in, in->trail, &in->trail_room, sizeof(*trail));
        if (!trail)
            return;
        in->trail = trail;
    }
    in->trail[in->trail_count++] =
        (struct cel_binding){variable->variable, in->bound[variable->variable - 1]};
    in->bound[variable->variable - 1] = type;
}

/* Counts a type that is visited. False: there were too many. */
static bool visit(struct cel_inference *in)
{
    in->failed |= in->steps == 0;
    in->steps -= in->steps > 0;
    return !in->failed;
}

static bool is_wild(const struct cel_type *type)
{
    return type->kind == CEL_TYPE_DYN || type->kind == CEL_TYPE_ERROR;
}

/* -- Comparing -- */

/* Whether a type is equal to another one, or becomes so where it has dyn or an unknown type. */
static bool is_as_general(const struct cel_type *a, const struct cel_type *b)
{
    if (a->kind == CEL_TYPE_DYN || a->kind == CEL_TYPE_PARAM)
        return true;
    if (b->kind == CEL_TYPE_DYN || b->kind == CEL_TYPE_PARAM || a->kind != b->kind)
        return false;
    switch (a->kind) {
    case CEL_TYPE_TYPE:
        return true;
    case CEL_TYPE_OPAQUE:
        if (strcmp(a->name, b->name) != 0)
            return false;
        return !a->params[0] == !b->params[0] &&
               (!a->params[0] || is_as_general(a->params[0], b->params[0]));
    case CEL_TYPE_LIST:
        return is_as_general(a->params[0], b->params[0]);
    case CEL_TYPE_MAP:
        return is_as_general(a->params[0], b->params[0]) &&
               is_as_general(a->params[1], b->params[1]);
    default:
        return cel_type_equal(a, b);
    }
}

const struct cel_type *cel_more_general(const struct cel_type *a, const struct cel_type *b)
{
    return is_as_general(a, b) ? a : b;
}

/* Whether a variable is not a part of a type. Otherwise the type would contain itself. */
static bool is_absent(struct cel_inference *in, const struct cel_type *variable,
                      const struct cel_type *within)
{
    if (!visit(in) || cel_type_equal(variable, within))
        return false;
    if (within->kind == CEL_TYPE_PARAM) {
        const struct cel_type *known = find(in, within);
        return !known || is_absent(in, variable, known);
    }
    return (!within->params[0] || is_absent(in, variable, within->params[0])) &&
           (!within->params[1] || is_absent(in, variable, within->params[1]));
}

static bool is_assignable(struct cel_inference *in, const struct cel_type *from,
                          const struct cel_type *to);

/* Lets a variable stand for a type, or finds that it does. *ret_known: it stood for one before. */
static bool bind(struct cel_inference *in, const struct cel_type *type,
                 const struct cel_type *variable, bool *ret_known)
{
    *ret_known = true;
    if (cel_type_equal(type, variable))
        return true;
    const struct cel_type *known = find(in, variable);
    if (!known) {
        *ret_known = false;
        if (!is_absent(in, variable, type))
            return false;
        set(in, variable, type);
        return true;
    }
    if (cel_type_equal(type, known))
        return true;
    if (!is_assignable(in, type, known))
        return false;
    const struct cel_type *general = cel_more_general(type, known);
    if (is_absent(in, variable, general))
        set(in, variable, general);
    return true;
}

/* Types whose values can be null. */
static bool is_nullable(const struct cel_type *type)
{
    switch (type->kind) {
    case CEL_TYPE_NULL:
    case CEL_TYPE_OPAQUE:
    case CEL_TYPE_OBJECT:
    case CEL_TYPE_DURATION:
    case CEL_TYPE_TIMESTAMP:
        return true;
    default:
        return false;
    }
}

static bool is_assignable(struct cel_inference *in, const struct cel_type *from,
                          const struct cel_type *to)
{
    bool known;
    if (!visit(in))
        return false;
    if (to->kind == CEL_TYPE_PARAM) {
        if (bind(in, from, to, &known))
            return true;
        if (known)
            return false;
    }
    if (from->kind == CEL_TYPE_PARAM)
        return bind(in, to, from, &known);
    if (is_wild(from) || is_wild(to))
        return true;
    if (from->kind == CEL_TYPE_NULL)
        return is_nullable(to);
    if (to->kind == CEL_TYPE_NULL)
        return is_nullable(from);
    if (from->kind != to->kind)
        return false;
    switch (from->kind) {
    case CEL_TYPE_TYPE:
        return true;
    case CEL_TYPE_LIST:
    case CEL_TYPE_MAP:
    case CEL_TYPE_OPAQUE:
        if (strcmp(from->name, to->name) != 0 || !from->params[0] != !to->params[0])
            return false;
        return (!from->params[0] || is_assignable(in, from->params[0], to->params[0])) &&
               (!from->params[1] || is_assignable(in, from->params[1], to->params[1]));
    default:
        return strcmp(from->name, to->name) == 0;
    }
}

bool cel_infer_assignable_all(struct cel_inference *in, const struct cel_type *const *from,
                              const struct cel_type *const *to, uint32_t count)
{
    in->trail_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_assignable(in, from[i], to[i]) && !in->failed)
            continue;
        while (in->trail_count) {
            const struct cel_binding *before = &in->trail[--in->trail_count];
            in->bound[before->variable - 1] = before->type;
        }
        return false;
    }
    return true;
}

bool cel_infer_assignable(struct cel_inference *in, const struct cel_type *from,
                          const struct cel_type *to)
{
    return cel_infer_assignable_all(in, &from, &to, 1);
}

/* -- Replacing -- */

/* A copy of a type whose parameters are the results for them; the type itself if they are equal. */
static const struct cel_type *with_params(struct cel_inference *in, const struct cel_type *type,
                                          const struct cel_type *first,
                                          const struct cel_type *second)
{
    if ((type->params[0] && !first) || (type->params[1] && !second))
        return NULL;
    if (first == type->params[0] && second == type->params[1])
        return type;
    const struct cel_type *made =
        cel_type_with_params(in->arena, type, (const struct cel_type *[]){first, second});
    in->failed |= !made;
    return made;
}

const struct cel_type *cel_infer_substitute(struct cel_inference *in, const struct cel_type *type,
                                            bool final)
{
    if (!visit(in))
        return NULL;
    const struct cel_type *known = find(in, type);
    if (known)
        return cel_infer_substitute(in, known, final);
    if (type->kind == CEL_TYPE_PARAM)
        return final ? &cel_type_DYN : type;
    const struct cel_type *params[2] = {0};
    for (unsigned i = 0; i < COUNT_OF(params); i++)
        if (type->params[i])
            params[i] = cel_infer_substitute(in, type->params[i], final);
    return with_params(in, type, params[0], params[1]);
}

/* The parameters of an overload, such as A and B, and what replaces them. */
struct instance {
    struct cel_inference *in;
    const char *names[3];
    const struct cel_type *types[3];
};

static const struct cel_type *instantiate(struct instance *instance, const struct cel_type *type)
{
    if (type->kind == CEL_TYPE_PARAM) {
        unsigned i = 0;
        while (i < COUNT_OF(instance->names) && instance->names[i] &&
               strcmp(instance->names[i], type->name) != 0)
            i++;
        assert(i < COUNT_OF(instance->names));
        if (!instance->names[i]) {
            instance->names[i] = type->name;
            instance->types[i] = cel_infer_new(instance->in);
        }
        return instance->types[i];
    }
    const struct cel_type *params[2] = {0};
    for (unsigned i = 0; i < COUNT_OF(params); i++)
        if (type->params[i])
            params[i] = instantiate(instance, type->params[i]);
    return with_params(instance->in, type, params[0], params[1]);
}

bool cel_infer_instance(struct cel_inference *in, const struct cel_overload *overload,
                        const struct cel_type *ret_args[CEL_ARGS_MAX],
                        const struct cel_type **ret_result)
{
    struct instance instance = {.in = in};
    for (unsigned i = 0; i < overload->arg_count; i++)
        ret_args[i] = instantiate(&instance, overload->args[i]);
    *ret_result = instantiate(&instance, overload->result);
    return !in->failed;
}
