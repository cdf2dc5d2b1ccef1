/* The kinds of a collection's objects and of their list, as its server names them. Immutable; the
 * texts are valid as long as the collection, also if the server names others later. */
#ifndef VIGIL_TIER_MIRROR_KINDS_H
#define VIGIL_TIER_MIRROR_KINDS_H

#include "base/slice.h"
#include "base/status.h"

struct tier_kinds {
    struct tier_kinds *older;                   /* owned */
    const char *kind, *list_kind, *api_version; /* "Pod", "PodList", "v1" */
    char texts[];
};

enum { TIER_KINDS_MAX = 64 }; /* a collection's definition may be made again and again */

/* Those of a chain with these texts, or new ones in front of it. ST_NOMEM; ST_LIMIT: there are
 * too many. */
MUST_CHECK
enum status tier_kinds_take(struct tier_kinds **chain, struct slice kind, struct slice list_kind,
                            struct slice api_version, const struct tier_kinds **ret_kinds);
void tier_kinds_free(struct tier_kinds *chain); /* accepts NULL */

#endif
