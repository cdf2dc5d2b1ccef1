#include "cel/library/library.h"

#include "cel/value/container.h"
#include "codec/go_quote.h"
#include "codec/utf8.h"

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

uint64_t cel_cost_traversal(uint64_t size)
{
    return size / 10 + (size % 10 != 0);
}

uint64_t cel_cost_of_text(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    /* Kubernetes does not look into optionals. */
    bool has_size = call->args[0].kind != CEL_OPTIONAL;
    return cel_cost_traversal(has_size ? cel_cost_size(call->args[0]) : 1);
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
