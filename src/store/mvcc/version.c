#include "store/mvcc/version.h"

static bool is_behind(log_loc loc, log_loc from)
{
    return loc >= from && loc >> LOG_OFFSET_BITS == from >> LOG_OFFSET_BITS;
}

bool version_find_damaged(const struct index_root *root, const struct log *log, log_loc from)
{
    struct index_cursor cursor;
    const struct index_item *item;
    const struct change_head *ignored;
    index_cursor_init(&cursor, root, SLICE_EMPTY);
    while ((item = index_cursor_next(&cursor))) {
        log_loc newest = item->newest.loc;
        if (is_behind(newest, from) && version_get(log, item, newest, &ignored) != ST_OK)
            return true;
        const uint64_t *older = index_item_older(item);
        for (uint32_t i = 0; i < item->older_count; i++) {
            if (is_behind(older[i], from) && version_get(log, item, older[i], &ignored) != ST_OK)
                return true;
        }
    }
    return false;
}
