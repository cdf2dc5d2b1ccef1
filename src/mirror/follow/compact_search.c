#include "mirror/follow/compact_search.h"

#include <assert.h>

void compact_search_init(struct compact_search *search, int64_t known, int64_t newest)
{
    assert(known >= 0 && newest >= known);
    *search = (struct compact_search){.known = known, .low = known, .high = newest};
}

int64_t compact_search_next(const struct compact_search *search)
{
    if (!search->asked) {
        /* The search begins where the last one ended, or at the oldest revision there is. */
        int64_t first = search->known ? search->known : 1;
        return search->high > 0 ? first : 0;
    }
    return search->high - search->low > 1 ? search->low + (search->high - search->low) / 2 : 0;
}

void compact_search_answer(struct compact_search *search, bool readable)
{
    int64_t revision = compact_search_next(search);
    assert(revision);
    if (readable)
        search->high = revision;
    else
        search->low = revision;
    if (!search->asked && readable)
        search->low = search->high = search->known;
    search->asked = true;
}

int64_t compact_search_result(const struct compact_search *search)
{
    assert(compact_search_next(search) == 0);
    return search->asked ? search->high : search->known;
}
