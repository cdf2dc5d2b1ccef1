#include "mirror/link/options.h"

/* Whether [key, end) is within the prefix. */
static bool prefix_covers(struct slice prefix, struct slice key, struct slice range_end)
{
    if (prefix.len == 0)
        return true;
    if (!slice_has_prefix(key, prefix))
        return false;
    if (range_end.len == 0 || slice_has_prefix(range_end, prefix))
        return range_end.len != 1 || range_end.ptr[0] != 0;
    /* Everything with the prefix: its last byte is one higher. */
    size_t len = prefix.len;
    while (len && prefix.ptr[len - 1] == 0xff)
        len--;
    return len && range_end.len == len && memcmp(range_end.ptr, prefix.ptr, len - 1) == 0 &&
           range_end.ptr[len - 1] == prefix.ptr[len - 1] + 1;
}

bool mirror_covers(const struct mirror_options *options, struct slice key, struct slice range_end)
{
    for (size_t i = 0; i < options->prefix_count; i++)
        if (prefix_covers(options->prefixes[i], key, range_end))
            return true;
    return options->prefix_count == 0;
}
