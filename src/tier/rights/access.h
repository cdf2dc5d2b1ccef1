/* What a user wants to read, and the decision about it. */
#ifndef VIGIL_TIER_RIGHTS_ACCESS_H
#define VIGIL_TIER_RIGHTS_ACCESS_H

#include "base/slice.h"

struct tier_access {
    const char *verb; /* "get", "list", "watch" */
    struct slice group, version, resource, subresource, namespace, name;
    /* As in the query, decoded; they become requirements. Of a list or watch without a name, the
     * field selector may have one. */
    struct slice label_selector, field_selector;
};

enum tier_verdict {
    TIER_ALLOWED,
    TIER_DENIED,
    TIER_UNKNOWN, /* there is no answer: no access for now */
};

#endif
