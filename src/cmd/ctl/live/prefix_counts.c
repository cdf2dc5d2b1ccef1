#include "cmd/ctl/live/prefix_counts.h"

#include "base/random.h"
#include "base/xalloc.h"

static struct slice name_of(const void *value)
{
    const struct prefix_count *count = value;
    return slice_of(count->name, count->name_len);
}

void prefix_counts_init(struct prefix_counts *counts, struct slice separator, unsigned depth)
{
    assert(separator.len > 0);
    *counts = (struct prefix_counts){.separator = separator, .depth = depth};
    hash_map_init(&counts->map, name_of, random_seed_system());
}

void prefix_counts_fini(struct prefix_counts *counts)
{
    struct prefix_count *count;
    MAP_FOREACH (count, &counts->map)
        free(count);
    hash_map_fini(&counts->map);
}

/* -- Adding -- */

static struct slice prefix_of(const struct prefix_counts *counts, struct slice key)
{
    struct slice separator = counts->separator;
    size_t end = slice_has_prefix(key, separator) ? separator.len : 0;
    for (unsigned i = 0; i < counts->depth; i++) {
        const uint8_t *at = memmem(key.ptr + end, key.len - end, separator.ptr, separator.len);
        if (!at)
            break;
        end = (size_t)(at - key.ptr) + separator.len;
    }
    return slice_sub(key, 0, size_min(end, PREFIX_NAME_BYTES_MAX));
}

static struct prefix_count *count_for(struct prefix_counts *counts, struct slice prefix)
{
    struct prefix_count *count = hash_map_get(&counts->map, prefix);
    void *replaced;
    if (count || counts->map.count >= PREFIX_COUNTS_MAX)
        return count ? count : &counts->others;
    count = xcalloc(1, sizeof(*count));
    count->name_len = prefix.len;
    slice_copy(count->name, prefix);
    xalloc_check(hash_map_put(&counts->map, count, &replaced) == ST_OK ? count : NULL,
                 sizeof(*count));
    return count;
}

void prefix_counts_add(struct prefix_counts *counts, struct slice key, size_t bytes)
{
    struct prefix_count *count = count_for(counts, prefix_of(counts, key));
    count->changes++;
    count->total++;
    count->bytes += bytes;
    counts->changes++;
    counts->total++;
    counts->bytes += bytes;
}

/* -- The largest -- */

static uint64_t rank_of(const struct prefix_count *count, enum prefix_order order)
{
    return order == PREFIX_BY_CHANGES ? count->changes
           : order == PREFIX_BY_BYTES ? count->bytes
                                      : count->total;
}

/* Equal ones are ordered by their names, so that they do not jump. */
static bool comes_before(const struct prefix_count *a, const struct prefix_count *b,
                         enum prefix_order order)
{
    uint64_t rank_a = rank_of(a, order), rank_b = rank_of(b, order);
    if (rank_a != rank_b)
        return rank_a > rank_b;
    if (a->total != b->total)
        return a->total > b->total;
    return slice_compare(name_of(a), name_of(b)) < 0;
}

static size_t insert(const struct prefix_count **largest, size_t count, size_t max,
                     const struct prefix_count *one, enum prefix_order order)
{
    size_t at = count;
    while (at > 0 && comes_before(one, largest[at - 1], order))
        at--;
    if (at == max)
        return count;
    size_t kept = size_min(count, max - 1);
    memmove(largest + at + 1, largest + at, (kept - at) * sizeof(*largest));
    largest[at] = one;
    return kept + 1;
}

size_t prefix_counts_largest(const struct prefix_counts *counts, enum prefix_order order,
                             const struct prefix_count **ret_largest, size_t max)
{
    size_t found = 0;
    const struct prefix_count *count;
    if (max == 0)
        return 0;
    MAP_FOREACH (count, &counts->map)
        found = insert(ret_largest, found, max, count, order);
    if (counts->others.total > 0)
        found = insert(ret_largest, found, max, &counts->others, order);
    return found;
}

/* Removing one moves others within the map, so the search begins again. */
static void forget_idle(struct prefix_counts *counts)
{
    size_t at = 0;
    struct prefix_count *count;
    struct prefix_count **idle = xcalloc(counts->map.count, sizeof(struct prefix_count *));
    size_t idle_count = 0;
    while ((count = hash_map_each(&counts->map, &at)))
        if (count->changes == 0)
            idle[idle_count++] = count;
    for (size_t i = 0; i < idle_count; i++) {
        (void)hash_map_remove(&counts->map, name_of(idle[i]));
        counts->others.total += idle[i]->total;
        free(idle[i]);
    }
    free(idle);
}

void prefix_counts_next(struct prefix_counts *counts)
{
    struct prefix_count *count;
    if (counts->map.count > PREFIX_COUNTS_MAX / 2)
        forget_idle(counts);
    MAP_FOREACH (count, &counts->map)
        count->changes = count->bytes = 0;
    counts->others.changes = counts->others.bytes = 0;
    counts->changes = counts->bytes = 0;
}
