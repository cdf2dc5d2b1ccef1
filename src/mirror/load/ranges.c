#include "mirror/load/ranges.h"

#include "base/slices.h"
#include "base/xalloc.h"

#include <vigil/kv.h>

struct range range_all(void)
{
    return (struct range){slice_of("", 1), slice_of("", 1)};
}

/* Sorted, a prefix directly follows those that contain it. */
static size_t keep_outermost(struct slice *prefixes, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !slice_has_prefix(prefixes[i], prefixes[kept - 1]))
            prefixes[kept++] = prefixes[i];
    return kept;
}

static struct range range_of_prefix(struct slice prefix)
{
    uint8_t *end = xmalloc(prefix.len);
    vigil_bytes bytes = vigil_prefix_end(vigil_bytes_of(prefix.ptr, prefix.len), end);
    if (bytes.data != end) { /* every key from the prefix on */
        slice_copy(end, slice_of(bytes.data, bytes.size));
        bytes.data = end;
    }
    return (struct range){prefix, slice_of(bytes.data, bytes.size)};
}

void ranges_init(struct ranges *ranges, const struct slice *prefixes, size_t count)
{
    *ranges = (struct ranges){.count = 1};
    ranges->prefixes = xcalloc(count + 1, sizeof(*ranges->prefixes));
    for (size_t i = 0; i < count; i++)
        ranges->prefixes[i] = prefixes[i];
    slices_sort(ranges->prefixes, count);
    count = keep_outermost(ranges->prefixes, count);
    if (count && ranges->prefixes[0].len == 0)
        count = 0;
    ranges->prefix_count = count;
    ranges->items = xcalloc(count + 1, sizeof(*ranges->items));
    ranges->items[0] = range_all();
    for (size_t i = 0; i < count; i++)
        ranges->items[i] = range_of_prefix(ranges->prefixes[i]);
    if (count)
        ranges->count = count;
}

void ranges_fini(struct ranges *ranges)
{
    for (size_t i = 0; i < ranges->prefix_count; i++)
        free((void *)ranges->items[i].range_end.ptr);
    free(ranges->items);
    free(ranges->prefixes);
    *ranges = (struct ranges){0};
}
