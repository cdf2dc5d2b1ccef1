#include "client/call/prefix.h"

#include <stdlib.h>

/* As the end of a range, one zero byte means that the range has no end. */
#define NO_END slice_of("", 1)

struct slice prefix_end(struct slice prefix, uint8_t *buffer)
{
    size_t len = prefix.len;
    /* The first key behind all keys with the prefix: the last byte that can be increased is, and
     * what follows it is cut off. */
    while (len && prefix.ptr[len - 1] == 0xff)
        len--;
    if (len == 0)
        return NO_END;
    slice_copy(buffer, slice_sub(prefix, 0, len));
    buffer[len - 1]++;
    return slice_of(buffer, len);
}

void prefixed_range_fini(struct prefixed_range *range)
{
    free(range->memory);
    *range = (struct prefixed_range){0};
}

static struct slice join(uint8_t *to, struct slice a, struct slice b)
{
    slice_copy(to, a);
    slice_copy(to + a.len, b);
    return slice_of(to, a.len + b.len);
}

enum status prefix_range(struct slice prefix, struct slice key, struct slice end,
                         struct prefixed_range *ret_range)
{
    *ret_range = (struct prefixed_range){.key = key, .end = end};
    if (prefix.len == 0)
        return ST_OK;
    uint8_t *memory = malloc(2 * prefix.len + key.len + end.len);
    if (!memory)
        return ST_NOMEM;
    uint8_t *second = memory + prefix.len + key.len;
    ret_range->memory = memory;
    ret_range->key = join(memory, prefix, key);
    /* A range without an end must still not reach beyond the keys of this client. */
    if (slice_equal(end, NO_END))
        ret_range->end = prefix_end(prefix, second);
    else if (end.len)
        ret_range->end = join(second, prefix, end);
    return ST_OK;
}

enum status prefix_all(struct slice prefix, struct slice of, struct prefixed_range *ret_range)
{
    size_t len = prefix.len + of.len;
    uint8_t *memory = malloc(2 * len + 1);
    if (!memory)
        return ST_NOMEM;
    struct slice whole = join(memory, prefix, of);
    /* "\0" is the first key: an empty key would not be a range. */
    *ret_range = (struct prefixed_range){
        .key = len ? whole : slice_of("", 1),
        .end = prefix_end(whole, memory + len),
        .memory = memory,
    };
    return ST_OK;
}
