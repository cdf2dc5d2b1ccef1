#include "cel/library/library.h"

#include "cel/value/container.h"
#include "cel/value/shape.h"
#include "codec/go_quote.h"
#include "codec/utf8.h"

#include <stdio.h>

size_t cel_count_characters(struct slice text)
{
    size_t count = utf8_count(text);
    if (count == text.len || utf8_valid(text))
        return count;
    for (count = 0; text.len; count++) {
        size_t length = cel_first_length(text);
        text = slice_sub(text, length, text.len - length);
    }
    return count;
}

uint64_t cel_cost_size(struct cel_value value)
{
    switch ((enum cel_value_kind)value.kind) {
    case CEL_STRING:
        return cel_count_characters(cel_text(value));
    case CEL_BYTES:
        return value.length;
    case CEL_LIST:
    case CEL_MAP:
        return value.count;
    case CEL_OPTIONAL:
        return value.some ? cel_cost_size(*value.some) : 1;
    case CEL_OPAQUE:
        return value.opaque->ops->size ? value.opaque->ops->size(value.opaque) : 1;
    default:
        return 1;
    }
}

uint64_t cel_cost_size_shallow(struct cel_value value)
{
    return value.kind == CEL_OPTIONAL ? 1 : cel_cost_size(value);
}

uint64_t cel_cost_traversal(uint64_t size)
{
    return size / 10 + (size % 10 != 0);
}

uint64_t cel_cost_of_text(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    return cel_cost_traversal(cel_cost_size_shallow(call->args[0]));
}

const char *cel_value_go_type(struct cel_value value)
{
    static const char *const names[] = {
        [CEL_ERROR] = "*types.Err",        [CEL_NULL] = "types.Null",
        [CEL_BOOL] = "types.Bool",         [CEL_INT] = "types.Int",
        [CEL_UINT] = "types.Uint",         [CEL_DOUBLE] = "types.Double",
        [CEL_STRING] = "types.String",     [CEL_BYTES] = "types.Bytes",
        [CEL_DURATION] = "types.Duration", [CEL_TIMESTAMP] = "types.Timestamp",
        [CEL_LIST] = "*types.baseList",    [CEL_MAP] = "*types.baseMap",
        [CEL_TYPE_VALUE] = "*types.Type",  [CEL_OPTIONAL] = "*types.Optional",
    };
    if ((value.kind == CEL_LIST || value.kind == CEL_MAP) && value.shape)
        return cel_shape_go_type(value.shape);
    return value.kind == CEL_OPAQUE ? value.opaque->ops->go_type : names[value.kind];
}

struct cel_value cel_no_overload_for(struct cel_work *work, const struct cel_builtin *builtin,
                                     uint32_t count, const struct cel_value *args)
{
    char types[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < sizeof(types); i++)
        used += (size_t)snprintf(types + used, sizeof(types) - used, "%s%s", i ? ", " : "",
                                 cel_value_type_name(args[i]));
    return cel_of_error_format(work, "no such overload: %s(%s)", builtin->name, types);
}

void cel_panic_not_list(struct cel_work *work, struct cel_value value)
{
    /* Go names the first method that the type lacks; types with a sum have the first one. */
    bool can_add = (value.kind >= CEL_INT && value.kind <= CEL_TIMESTAMP);
    cel_end(work, cel_of_error_format(work,
                                      "internal error: interface conversion: %s is not "
                                      "traits.Lister: missing method %s",
                                      cel_value_go_type(value), can_add ? "Contains" : "Add"));
}

enum { DEPTH_MAX = 1000 };

/* A tenth of the bytes of every text, rounded down, and 1 for everything else. */
static uint64_t cost_of_all(struct cel_work *work, struct cel_value value, int depth)
{
    struct cel_walk walk;
    struct cel_value key, item;
    uint64_t cost = 0;
    if (value.kind == CEL_STRING || value.kind == CEL_BYTES)
        return value.length / 10;
    if (value.kind != CEL_LIST && value.kind != CEL_MAP)
        return 1;
    cel_walk_init(&walk, work, value);
    while (--work->steps_left >= 0 && depth < DEPTH_MAX && cel_walk_next(&walk, &key, &item)) {
        if (value.kind == CEL_MAP)
            cost += cost_of_all(work, key, depth + 1);
        cost += cost_of_all(work, item, depth + 1);
    }
    return cost;
}

uint64_t cel_cost_of_items(struct cel_work *work, const struct cel_called *call)
{
    return cost_of_all(work, call->args[0], 0);
}

size_t cel_first_length(struct slice text)
{
    size_t length = utf8_char_len(text);
    return length ? length : 1;
}

const char *cel_quoted(struct cel_work *work, struct slice text)
{
    char *quoted = arena_alloc(work->arena, go_quote_room(text.len));
    if (!quoted)
        return "";
    work->steps_left -= (int64_t)(text.len / 16);
    go_quoted(text, quoted);
    return quoted;
}
