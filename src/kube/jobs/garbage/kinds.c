#include "kube/jobs/garbage/kinds.h"

#include <string.h>

struct wanted {
    struct slice group, version, kind;
};

/* "apps/v1", or "v1" for the core group. */
static struct wanted split(struct slice api_version, struct slice kind)
{
    struct wanted wanted = {.version = api_version, .kind = kind};
    const uint8_t *slash = api_version.len ? memchr(api_version.ptr, '/', api_version.len) : NULL;
    if (!slash)
        return wanted;
    size_t len = (size_t)(slash - api_version.ptr);
    wanted.group = slice_sub(api_version, 0, len);
    wanted.version = slice_sub(api_version, len + 1, api_version.len - len - 1);
    return wanted;
}

static bool matches(const struct kube_kind *kind, const struct wanted *wanted, bool any)
{
    return slice_is(wanted->kind, kind->kind) && slice_is(wanted->group, kind->group) &&
           (any || slice_is(wanted->version, kind->version)) &&
           !(kind->flags & (KUBE_CREATE_ONLY | KUBE_COMPUTED));
}

static const struct kube_kind *find_custom(const struct kube_definition *d,
                                           const struct wanted *wanted, bool any)
{
    if (!d->established || !slice_is(wanted->group, d->group))
        return NULL;
    for (size_t i = 0; i < d->version_count; i++)
        if (d->versions[i].served && matches(&d->versions[i].kind, wanted, any))
            return &d->versions[i].kind;
    return NULL;
}

static const struct kube_kind *find(const struct kube_kinds *kinds, const struct wanted *wanted,
                                    bool any)
{
    size_t count;
    const struct kube_kind *builtin = kube_builtin_kinds(&count), *found = NULL;
    for (size_t i = 0; i < count; i++)
        if (matches(&builtin[i], wanted, any))
            return &builtin[i];
    struct kube_definition *const *definitions = kube_kinds_definitions(kinds, &count);
    for (size_t i = 0; !found && i < count; i++)
        found = find_custom(definitions[i], wanted, any);
    return found;
}

const struct kube_kind *garbage_kind(const struct kube_kinds *kinds, struct slice api_version,
                                     struct slice kind)
{
    struct wanted wanted = split(api_version, kind);
    return find(kinds, &wanted, false);
}

const struct kube_kind *garbage_kind_any(const struct kube_kinds *kinds, struct slice api_version,
                                         struct slice kind)
{
    struct wanted wanted = split(api_version, kind);
    const struct kube_kind *exact = find(kinds, &wanted, false);
    return exact ? exact : find(kinds, &wanted, true);
}
