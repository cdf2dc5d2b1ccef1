#include "regex/ranges.h"

#include "regex/fold.h"

#include <stdlib.h>

enum {
    ROOM_MIN = 8,
    FOLD_DEPTH_MAX = 3, /* at most four characters differ only in case */
};

static int compare_ranges(const void *a, const void *b)
{
    const struct regex_range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

void regex_ranges_merge(struct regex_ranges *ranges)
{
    if (!ranges->count)
        return;
    qsort(ranges->at, ranges->count, sizeof(*ranges->at), compare_ranges);
    size_t kept = 1;
    for (size_t i = 1; i < ranges->count; i++) {
        struct regex_range *last = &ranges->at[kept - 1], next = ranges->at[i];
        if (next.low > last->high + 1)
            ranges->at[kept++] = next;
        else if (next.high > last->high)
            last->high = next.high;
    }
    ranges->count = kept;
}

/* Classes repeat the same ranges, so they are merged before they get more memory. */
static enum status make_room(struct regex_ranges *ranges)
{
    if (ranges->count < ranges->room)
        return ST_OK;
    regex_ranges_merge(ranges);
    if (ranges->room && ranges->count <= ranges->room / 2)
        return ST_OK;
    size_t room = size_max(2 * ranges->room, ROOM_MIN);
    struct regex_range *at = arena_alloc(ranges->arena, room * sizeof(*at));
    if (!at)
        return ST_NOMEM;
    if (ranges->count)
        memcpy(at, ranges->at, ranges->count * sizeof(*at));
    ranges->at = at;
    ranges->room = room;
    return ST_OK;
}

enum status regex_ranges_add(struct regex_ranges *ranges, uint32_t low, uint32_t high)
{
    struct regex_range *last = ranges->count ? &ranges->at[ranges->count - 1] : NULL;
    assert(low <= high && high <= REGEX_RUNE_MAX);
    ranges->work++;
    if (last && low <= last->high + 1 && last->low <= high + 1) {
        last->low = low < last->low ? low : last->low;
        last->high = high > last->high ? high : last->high;
        return ST_OK;
    }
    TRY(make_room(ranges));
    ranges->at[ranges->count++] = (struct regex_range){low, high};
    return ST_OK;
}

/* Follows the cycles of characters that differ only in case, one step at each level. */
static enum status add_folded(struct regex_ranges *ranges, uint32_t low, uint32_t high, int depth)
{
    uint32_t to_low, to_high;
    TRY(regex_ranges_add(ranges, low, high));
    for (size_t i = regex_fold_find(low); depth && regex_fold_at(i, low, high, &to_low, &to_high);
         i++)
        TRY(add_folded(ranges, to_low, to_high, depth - 1));
    return ST_OK;
}

enum status regex_ranges_add_folded(struct regex_ranges *ranges, uint32_t low, uint32_t high)
{
    /* What contains all letters with two cases does not grow. */
    bool is_full = low <= REGEX_FOLD_MIN && high >= REGEX_FOLD_MAX;
    return add_folded(ranges, low, high, is_full ? 0 : FOLD_DEPTH_MAX);
}

enum status regex_ranges_add_all(struct regex_ranges *ranges, const struct regex_range *other,
                                 size_t count, bool negated)
{
    uint32_t from = 0;
    for (size_t i = 0; i < count; i++) {
        if (!negated)
            TRY(regex_ranges_add(ranges, other[i].low, other[i].high));
        else if (other[i].low > from)
            TRY(regex_ranges_add(ranges, from, other[i].low - 1));
        from = other[i].high + 1;
    }
    return negated && from <= REGEX_RUNE_MAX ? regex_ranges_add(ranges, from, REGEX_RUNE_MAX)
                                             : ST_OK;
}

enum status regex_ranges_negate(struct regex_ranges *ranges)
{
    struct regex_ranges between = {.arena = ranges->arena, .work = ranges->work};
    TRY(regex_ranges_add_all(&between, ranges->at, ranges->count, true));
    *ranges = between;
    return ST_OK;
}
