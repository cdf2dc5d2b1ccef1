#include "kube/jobs/namespace_conditions.h"

#include "kube/types/object/condition.h"

#include <stdlib.h>

/* -- Counting -- */

/* A name for which there is no room is omitted. */
static void tally_add(struct kube_tally *tally, struct slice name)
{
    size_t i = 0;
    while (i < tally->count && !slice_equal(name, slice_of(tally->names.ptr + tally->entries[i].at,
                                                           tally->entries[i].len)))
        i++;
    if (i == KUBE_REMAINING_NAMES_MAX || name.len > KUBE_REMAINING_NAME_BYTES_MAX)
        return;
    if (i == tally->count) {
        tally->entries[i].at = tally->names.len;
        tally->entries[i].len = name.len;
        tally->entries[i].count = 0;
        if (buf_append(&tally->names, name) != ST_OK)
            return;
        tally->count++;
    }
    tally->entries[i].count++;
}

static void tally_reset(struct kube_tally *tally)
{
    buf_reset(&tally->names, SIZE_MAX);
    tally->count = 0;
}

void kube_remaining_reset(struct kube_remaining *r)
{
    tally_reset(&r->kinds);
    tally_reset(&r->finalizers);
    tally_reset(&r->failures);
    r->undiscovered = false;
}

void kube_remaining_fini(struct kube_remaining *r)
{
    buf_fini(&r->kinds.names);
    buf_fini(&r->finalizers.names);
    buf_fini(&r->failures.names);
}

void kube_remaining_add(struct kube_remaining *r, const struct kube_kind *kind, bool failed)
{
    AUTO(buf_fini) struct buf name = {0};
    if (buf_append_format(&name, "%s.%s", kind->plural, kind->group) == ST_OK)
        tally_add(&r->kinds, buf_slice(&name));
    if (!failed)
        return;
    buf_reset(&name, SIZE_MAX);
    if (buf_append_format(&name, "%s/%s, Resource=%s", kind->group, kind->version, kind->plural) ==
        ST_OK)
        tally_add(&r->failures, buf_slice(&name));
}

void kube_remaining_add_finalizer(struct kube_remaining *r, struct slice name)
{
    tally_add(&r->finalizers, name);
}

/* -- Conditions -- */

static int compare(const void *a, const void *b)
{
    return slice_compare(buf_slice(a), buf_slice(b));
}

/* One line for each name, sorted by text as in Kubernetes. */
static enum status append_lines(const struct kube_tally *tally, const char *before,
                                const char *between, const char *after, struct buf *to)
{
    struct buf lines[KUBE_REMAINING_NAMES_MAX] = {0};
    enum status status = ST_OK;
    for (size_t i = 0; i < tally->count && status == ST_OK; i++) {
        struct slice name =
            slice_of(tally->names.ptr + tally->entries[i].at, tally->entries[i].len);
        status = buf_append_format(&lines[i], "%s%.*s%s", before, SLICE_ARGS(name), between);
        if (status == ST_OK && after)
            status =
                buf_append_format(&lines[i], "%lld%s", (long long)tally->entries[i].count, after);
    }
    /* The lines are sorted and not the names, because a name may be the beginning of another. */
    qsort(lines, tally->count, sizeof(lines[0]), compare);
    for (size_t i = 0; i < tally->count; i++) {
        if (status == ST_OK && i)
            status = buf_append_text(to, ", ");
        if (status == ST_OK)
            status = buf_append(to, buf_slice(&lines[i]));
        buf_fini(&lines[i]);
    }
    return status;
}

static enum status write_failures(const struct kube_tally *failures, struct slice name,
                                  struct buf *to)
{
    AUTO(buf_fini) struct buf before = {0};
    TRY(buf_append_format(
        &before, "unexpected items still remain in namespace: %.*s for gvr: ", SLICE_ARGS(name)));
    TRY(buf_append(&before, slice_of("", 1)));
    TRY(buf_append_format(to,
                          "Failed to delete all resource types, %zu remaining: ", failures->count));
    return append_lines(failures, (const char *)before.ptr, "", NULL, to);
}

struct condition_writer {
    const struct kube_meta *meta;
    struct json_node *status;
};

/* Sets a condition to its good case, or to the problem. */
static bool set_condition(const struct condition_writer *t, const char *type,
                          const char *good_reason, const char *good, const char *reason,
                          const struct buf *wrong)
{
    if (!wrong->len)
        return kube_condition_set(t->meta, t->status, type, false, good_reason,
                                  slice_from_text(good));
    return kube_condition_set(t->meta, t->status, type, true, reason, buf_slice(wrong));
}

static bool tell_failures(const struct condition_writer *t, const struct kube_remaining *r,
                          struct slice name)
{
    AUTO(buf_fini) struct buf undiscovered = {0};
    AUTO(buf_fini) struct buf failed = {0};
    struct buf none = {0};
    if (r->undiscovered &&
        buf_append_text(&undiscovered,
                        "unable to retrieve the complete list of server APIs: there "
                        "is not enough memory for a CustomResourceDefinition") != ST_OK)
        return kube_fail_engine(t->meta->status, ST_NOMEM);
    if (r->failures.count && write_failures(&r->failures, name, &failed) != ST_OK)
        return kube_fail_engine(t->meta->status, ST_NOMEM);
    return set_condition(t, "NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
                         "All resources successfully discovered", "DiscoveryFailed",
                         &undiscovered) &&
           set_condition(t, "NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
                         "All legacy kube types successfully parsed", "", &none) &&
           set_condition(t, "NamespaceDeletionContentFailure", "ContentDeleted",
                         "All content successfully deleted, may be waiting on finalization",
                         "ContentDeletionFailed", &failed);
}

static bool tell_rest(const struct condition_writer *t, const struct kube_remaining *r)
{
    AUTO(buf_fini) struct buf kinds = {0};
    AUTO(buf_fini) struct buf finalizers = {0};
    if (r->kinds.count &&
        (buf_append_text(&kinds, "Some resources are remaining: ") != ST_OK ||
         append_lines(&r->kinds, "", " has ", " resource instances", &kinds) != ST_OK))
        return kube_fail_engine(t->meta->status, ST_NOMEM);
    if (r->finalizers.count &&
        (buf_append_text(&finalizers, "Some content in the namespace has finalizers remaining: ") !=
             ST_OK ||
         append_lines(&r->finalizers, "", " in ", " resource instances", &finalizers) != ST_OK))
        return kube_fail_engine(t->meta->status, ST_NOMEM);
    return set_condition(t, "NamespaceContentRemaining", "ContentRemoved",
                         "All content successfully removed", "SomeResourcesRemain", &kinds) &&
           set_condition(t, "NamespaceFinalizersRemaining", "ContentHasNoFinalizers",
                         "All content-preserving finalizers finished", "SomeFinalizersRemain",
                         &finalizers);
}

bool kube_remaining_set_conditions(const struct kube_remaining *r, const struct kube_meta *meta,
                                   struct json_node *object, struct slice name)
{
    struct condition_writer t = {.meta = meta};
    return kube_meta_object(meta, object, "status", &t.status) && tell_failures(&t, r, name) &&
           tell_rest(&t, r);
}
