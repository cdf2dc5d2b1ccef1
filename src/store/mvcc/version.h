/*
 * Reads a version of a key that is found through the index. The difference to change_get is that
 * damage is noted with the key, so that the error of the request names it.
 */
#ifndef VIGIL_STORE_MVCC_VERSION_H
#define VIGIL_STORE_MVCC_VERSION_H

#include "store/index/index.h"
#include "store/log/damage.h"
#include "store/record/change.h"

/* For a version that could not be read, which log_note_damage knows. */
static inline void version_name_damage(const struct index_item *item, log_loc loc)
{
    log_name_damage(index_item_key(item), loc == item->newest.loc ? item->newest.mod_revision : 0);
}

/* The version of the item at this location, which is one of the item's. ST_DAMAGED. */
MUST_CHECK
static inline enum status version_get(const struct log *log, const struct index_item *item,
                                      log_loc loc, const struct change_head **ret_head)
{
    enum status status = change_get(log, loc, ret_head);
    if (UNLIKELY(status != ST_OK))
        version_name_damage(item, loc);
    return status;
}

/*
 * Finds a version that cannot be read and is stored in this segment, there or behind it, and notes
 * it with its key. False: no key needs what is damaged. Walks the whole index.
 */
bool version_find_damaged(const struct index_root *root, const struct log *log, log_loc from);

#endif
