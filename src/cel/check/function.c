#include "cel/check/function.h"

#define GLOBAL false
#define MEMBER true
#define COUNT_TYPES(...) (sizeof((const struct cel_type *[]){__VA_ARGS__}) / sizeof(void *))
#define CEL_OVERLOAD(id, function_name, overload_name, member, result_type, ...) \
    [CEL_OVERLOAD_##id] = {.function = (function_name),                          \
                           .name = (overload_name),                              \
                           .is_member = (member),                                \
                           .arg_count = COUNT_TYPES(__VA_ARGS__),                \
                           .result = &cel_type_##result_type,                    \
                           .args = {__VA_ARGS__}},
const struct cel_overload cel_overloads[CEL_OVERLOADS] = {
#include "cel/check/overloads.inc"
};
#undef CEL_OVERLOAD

static int compare(struct slice name, const char *with)
{
    return slice_compare(name, slice_from_text(with));
}

bool cel_function_find(struct slice name, struct cel_function *ret_function)
{
    /* The rows are sorted by the names of the functions. */
    size_t low = 0, high = CEL_OVERLOADS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare(name, cel_overloads[middle].function) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = low;
    while (end < CEL_OVERLOADS && compare(name, cel_overloads[end].function) == 0)
        end++;
    *ret_function = (struct cel_function){.first = (uint16_t)low, .end = (uint16_t)end};
    return end > low;
}

const struct cel_type *cel_constant_find(struct slice name)
{
    static const struct {
        const char *name;
        const struct cel_type *type;
    } constants[] = {
#define CEL_CONSTANT(constant_name, type) {(constant_name), &cel_type_##type},
#include "cel/check/overloads.inc"
#undef CEL_CONSTANT
    };
    for (size_t i = 0; i < COUNT_OF(constants); i++)
        if (compare(name, constants[i].name) == 0)
            return constants[i].type;
    return NULL;
}
