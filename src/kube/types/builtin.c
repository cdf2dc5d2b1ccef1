#include "kube/types/kind.h"

#include "base/macros.h"

#include <stdio.h>
#include <stdlib.h>

#define NAMES(...)                                                      \
    {                                                                   \
        (const char *const[]){__VA_ARGS__},                             \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *) \
    }
#define NO_NAMES \
    {            \
        NULL, 0  \
    }

static const struct kube_kind kinds[] = {
#include "kube/types/builtin_rows.inc"
};

const struct kube_kind *kube_builtin_kinds(size_t *ret_count)
{
    *ret_count = COUNT_OF(kinds);
    return kinds;
}

struct kind_query {
    struct slice group, version, plural;
};

static int compare(const void *key, const void *row)
{
    const struct kind_query *wanted = key;
    const struct kube_kind *kind = row;
    int order = slice_compare(wanted->group, slice_from_text(kind->group));
    if (!order)
        order = slice_compare(wanted->version, slice_from_text(kind->version));
    return order ? order : slice_compare(wanted->plural, slice_from_text(kind->plural));
}

const struct kube_kind *kube_builtin_find(struct slice group, struct slice version,
                                          struct slice plural)
{
    struct kind_query wanted = {group, version, plural};
    return bsearch(&wanted, kinds, COUNT_OF(kinds), sizeof(kinds[0]), compare);
}

const char *kube_kind_api_version(const struct kube_kind *kind, char text[KUBE_API_VERSION_BYTES])
{
    /* Every write needs it several times. */
    char *end = &text[KUBE_API_VERSION_BYTES - 1];
    char *at = mempcpy(text, kind->group, size_min(strlen(kind->group), (size_t)(end - text)));
    if (at > text && at < end)
        *at++ = '/';
    at = mempcpy(at, kind->version, size_min(strlen(kind->version), (size_t)(end - at)));
    *at = '\0';
    return text;
}
