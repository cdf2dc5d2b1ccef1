#include "tier/mirror/kinds.h"

#include <stdlib.h>

static const char *put(char **at, struct slice text)
{
    char *copy = *at;
    slice_copy(copy, text);
    copy[text.len] = 0;
    *at += text.len + 1;
    return copy;
}

enum status tier_kinds_take(struct tier_kinds **chain, struct slice kind, struct slice list_kind,
                            struct slice api_version, const struct tier_kinds **ret_kinds)
{
    unsigned count = 0;
    for (struct tier_kinds *one = *chain; one; one = one->older, count++) {
        if (!slice_is(kind, one->kind) || !slice_is(list_kind, one->list_kind) ||
            !slice_is(api_version, one->api_version))
            continue;
        *ret_kinds = one;
        return ST_OK;
    }
    if (count == TIER_KINDS_MAX)
        return ST_LIMIT;
    struct tier_kinds *made =
        malloc(sizeof(*made) + kind.len + list_kind.len + api_version.len + 3);
    if (!made)
        return ST_NOMEM;
    char *at = made->texts;
    made->kind = put(&at, kind);
    made->list_kind = put(&at, list_kind);
    made->api_version = put(&at, api_version);
    made->older = *chain;
    *ret_kinds = *chain = made;
    return ST_OK;
}

void tier_kinds_free(struct tier_kinds *chain)
{
    while (chain) {
        struct tier_kinds *older = chain->older;
        free(chain);
        chain = older;
    }
}
