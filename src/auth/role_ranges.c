#include "auth/role_ranges.h"

#include "base/xalloc.h"

#include <stdatomic.h>
#include <stdlib.h>

/* [from, to), or everything from `from` on. */
struct key_range {
    struct slice from;
    struct slice to;
    bool endless;
};

struct ranges {
    struct key_range *items; /* sorted; at least one key is between two ranges */
    size_t count;
};

struct role_ranges {
    _Atomic uint32_t refs;
    uint64_t number;
    struct ranges ranges[AUTH_ACCESSES];
    size_t bytes;
    /* Followed by the ranges and the bytes of their keys. */
};

static bool is_open_ended(struct slice range_end)
{
    return range_end.len == 1 && range_end.ptr[0] == 0;
}

bool auth_range_is_valid(struct slice key, struct slice range_end)
{
    if (key.len == 0)
        return false;
    return range_end.len == 0 || is_open_ended(range_end) || slice_compare(key, range_end) < 0;
}

/* -- Making -- */

/* A NUL after a key makes the first key after it. */
static struct slice copy(uint8_t **at, struct slice bytes, bool successor)
{
    uint8_t *memory = *at;
    slice_copy(memory, bytes);
    if (successor)
        memory[bytes.len] = 0;
    *at += bytes.len + successor;
    return slice_of(memory, bytes.len + successor);
}

static struct key_range range_of(uint8_t **at, const struct pb_permission *permission)
{
    struct key_range range = {.from = copy(at, permission->key, false),
                              .endless = is_open_ended(permission->range_end)};
    if (permission->range_end.len == 0)
        range.to = copy(at, permission->key, true);
    else if (!range.endless)
        range.to = copy(at, permission->range_end, false);
    return range;
}

static bool gives(int32_t type, enum auth_access access)
{
    if (type == PB_PERMISSION_TYPE_READWRITE)
        return true;
    return type == (access == AUTH_READ ? PB_PERMISSION_TYPE_READ : PB_PERMISSION_TYPE_WRITE);
}

static int compare_ranges(const void *a, const void *b)
{
    return slice_compare(((const struct key_range *)a)->from, ((const struct key_range *)b)->from);
}

static bool reaches_further(const struct key_range *a, const struct key_range *b)
{
    if (a->endless || b->endless)
        return a->endless && !b->endless;
    return slice_compare(a->to, b->to) > 0;
}

/* Sorts, and joins ranges that overlap or touch. */
static void ranges_join(struct ranges *ranges)
{
    size_t kept = 0;
    if (ranges->count == 0)
        return;
    qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare_ranges);
    for (size_t i = 1; i < ranges->count; i++) {
        struct key_range *last = &ranges->items[kept];
        struct key_range *next = &ranges->items[i];
        if (last->endless || slice_compare(next->from, last->to) <= 0) {
            if (reaches_further(next, last)) {
                last->to = next->to;
                last->endless = next->endless;
            }
        } else {
            ranges->items[++kept] = *next;
        }
    }
    ranges->count = kept + 1;
}

/* The number of permissions, and the bytes of their keys. */
static size_t permissions_of(const struct pb_role *const *roles, size_t role_count,
                             size_t *ret_bytes)
{
    size_t count = 0;
    *ret_bytes = 0;
    for (size_t i = 0; i < role_count; i++) {
        count += roles[i]->key_permission_count;
        for (size_t k = 0; k < roles[i]->key_permission_count; k++) {
            const struct pb_permission *permission = &roles[i]->key_permission[k];
            *ret_bytes +=
                permission->key.len + 1 + size_max(permission->range_end.len, permission->key.len);
        }
    }
    return count;
}

static void add_role(struct role_ranges *role_ranges, const struct pb_role *role, uint8_t **at)
{
    for (size_t k = 0; k < role->key_permission_count; k++) {
        const struct pb_permission *permission = &role->key_permission[k];
        if (!auth_range_is_valid(permission->key, permission->range_end))
            continue; /* invalid; from an import */
        struct key_range range = range_of(at, permission);
        for (int access = 0; access < AUTH_ACCESSES; access++) {
            struct ranges *ranges = &role_ranges->ranges[access];
            if (gives(permission->perm_type, (enum auth_access)access))
                ranges->items[ranges->count++] = range;
        }
    }
}

struct role_ranges *role_ranges_new(const struct pb_role *const *roles, size_t role_count)
{
    size_t key_bytes;
    size_t count = permissions_of(roles, role_count, &key_bytes);
    size_t bytes =
        sizeof(struct role_ranges) + AUTH_ACCESSES * count * sizeof(struct key_range) + key_bytes;
    struct role_ranges *role_ranges = xmalloc(bytes);
    struct key_range *items = (struct key_range *)(void *)(role_ranges + 1);
    static _Atomic uint64_t numbers;
    *role_ranges = (struct role_ranges){
        .refs = 1, .number = atomic_fetch_add(&numbers, 1) + 1, .bytes = bytes};
    for (int access = 0; access < AUTH_ACCESSES; access++)
        role_ranges->ranges[access].items = items + (size_t)access * count;
    uint8_t *at = (uint8_t *)(items + AUTH_ACCESSES * count);
    for (size_t i = 0; i < role_count; i++)
        add_role(role_ranges, roles[i], &at);
    for (int access = 0; access < AUTH_ACCESSES; access++)
        ranges_join(&role_ranges->ranges[access]);
    return role_ranges;
}

struct role_ranges *role_ranges_ref(struct role_ranges *role_ranges)
{
    atomic_fetch_add_explicit(&role_ranges->refs, 1, memory_order_relaxed);
    return role_ranges;
}

void role_ranges_unref(struct role_ranges *role_ranges)
{
    if (role_ranges && atomic_fetch_sub_explicit(&role_ranges->refs, 1, memory_order_acq_rel) == 1)
        free(role_ranges);
}

/* -- Searching -- */

/* The last range that begins at or before the key; NULL if the key is before all. */
static const struct key_range *ranges_find(const struct ranges *ranges, struct slice key)
{
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(ranges->items[middle].from, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &ranges->items[low - 1] : NULL;
}

/* An empty range such as [b, a) needs the right to its first key, as in etcd. */
bool role_ranges_hold(const struct role_ranges *role_ranges, enum auth_access access,
                      struct slice key, struct slice range_end)
{
    const struct key_range *range = ranges_find(&role_ranges->ranges[access], key);
    if (!range || (!range->endless && slice_compare(key, range->to) >= 0))
        return false;
    if (range_end.len == 0)
        return true;
    if (is_open_ended(range_end))
        return range->endless;
    return range->endless || slice_compare(range_end, range->to) <= 0;
}

uint64_t role_ranges_number(const struct role_ranges *role_ranges)
{
    return role_ranges->number;
}

size_t role_ranges_bytes(const struct role_ranges *role_ranges)
{
    return role_ranges->bytes;
}

void role_ranges_check(const struct role_ranges *role_ranges)
{
    for (int access = 0; access < AUTH_ACCESSES; access++) {
        const struct ranges *ranges = &role_ranges->ranges[access];
        for (size_t i = 0; i < ranges->count; i++) {
            const struct key_range *range = &ranges->items[i];
            assert(range->endless || slice_compare(range->from, range->to) < 0);
            assert(i == 0 || (!range[-1].endless && slice_compare(range[-1].to, range->from) < 0));
        }
    }
}
