#include "kube/call/shape.h"

#include "base/clock.h"
#include "kube/call/call.h"
#include "kube/call/table/table.h"

#include <stdio.h>

enum kube_include kube_include_of(struct slice text)
{
    if (slice_is(text, "None"))
        return KUBE_INCLUDE_NONE;
    return slice_is(text, "Object") ? KUBE_INCLUDE_OBJECT : KUBE_INCLUDE_METADATA;
}

struct kube_shaping kube_shaping_of(const struct kube_call *call)
{
    return (struct kube_shaping){
        .kind = call->kind,
        .shape = call->accept.shape,
        .v1beta1 = call->accept.v1beta1,
        .include = kube_include_of(call->query.include_object),
        .clock = call->api->clock,
    };
}

static const char *meta_version(const struct kube_shaping *s)
{
    return s->v1beta1 ? "meta.k8s.io/v1beta1" : "meta.k8s.io/v1";
}

/* The package of Go's type, which error messages name. */
static struct slice package_of(const struct kube_kind *kind)
{
    struct slice group = slice_from_text(kind->group);
    const uint8_t *dot = group.len ? memchr(group.ptr, '.', group.len) : NULL;
    if (kind->flags & KUBE_CUSTOM)
        return SLICE_LITERAL("unstructured");
    if (!group.len || strcmp(kind->group, "events.k8s.io") == 0)
        return SLICE_LITERAL("core");
    return dot ? slice_sub(group, 0, (size_t)(dot - group.ptr)) : group;
}

bool kube_shape_fits(struct kube_call *call, bool list)
{
    const struct kube_accept *accept = &call->accept;
    if (accept->shape != KUBE_PARTIAL || accept->list == list)
        return true;
    struct slice package = package_of(call->kind);
    bool custom = call->kind->flags & KUBE_CUSTOM;
    return kube_fail(&call->status, KUBE_NOT_ACCEPTABLE,
                     "you requested PartialObjectMetadata%s, but the requested object is %s list "
                     "(*%.*s.%s%s)",
                     list ? "" : "List", list ? "a" : "not a", SLICE_ARGS(package),
                     custom ? "Unstructured" : call->kind->kind, list ? "List" : "");
}

/* -- Pieces -- */

/* revision 0: the object is not stored, such as a review. */
static enum status append_metadata(const struct kube_object *object, int64_t revision,
                                   struct buf *to)
{
    if (!revision)
        return buf_append(to, object->metadata);
    TRY(buf_append_format(to, "{\"resourceVersion\":\"%lld\"%s", (long long)revision,
                          object->metadata_empty ? "" : ","));
    return buf_append(to, slice_sub(object->metadata, 1, object->metadata.len - 1));
}

static enum status append_partial(const struct kube_shaping *s, const struct kube_object *object,
                                  int64_t revision, bool item, struct buf *to)
{
    TRY(buf_append_text(to, "{"));
    if (!item)
        TRY(buf_append_format(to, "\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"%s\",",
                              meta_version(s)));
    TRY(buf_append_text(to, "\"metadata\":"));
    TRY(append_metadata(object, revision, to));
    return buf_append_text(to, "}");
}

static enum status append_whole(const struct kube_object *object, int64_t revision, struct buf *to)
{
    size_t size = kube_object_size(object, revision, false);
    TRY(buf_reserve(to, size));
    to->len += kube_object_copy(object, revision, false, 0, to->ptr + to->len, size);
    return ST_OK;
}

static enum status append_row(const struct kube_shaping *s, const struct kube_object *object,
                              int64_t revision, struct buf *to)
{
    TRY(buf_append_text(to, "{\"cells\":"));
    TRY(kube_table_cells(s->kind, object->json, clock_real_ns(s->clock) / NS_PER_S, to));
    TRY(buf_append_text(to, ",\"object\":"));
    if (s->include == KUBE_INCLUDE_NONE)
        TRY(buf_append_text(to, "null"));
    else if (s->include == KUBE_INCLUDE_OBJECT)
        TRY(append_whole(object, revision, to));
    else
        TRY(append_partial(s, object, revision, false, to));
    return buf_append_text(to, "}");
}

/* -- Lists -- */

enum status kube_shape_list_head(const struct kube_shaping *s, struct buf *to)
{
    char version[KUBE_API_VERSION_BYTES];
    switch (s->shape) {
    case KUBE_TABLE:
        return buf_append_format(to, "\"kind\":\"Table\",\"apiVersion\":\"%s\",", meta_version(s));
    case KUBE_PARTIAL:
        return buf_append_format(
            to, "\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"%s\",", meta_version(s));
    default:
        return buf_append_format(to, "\"kind\":\"%s\",\"apiVersion\":\"%s\",", s->kind->list_kind,
                                 kube_kind_api_version(s->kind, version));
    }
}

enum status kube_shape_list_items(const struct kube_shaping *s, struct buf *to)
{
    if (s->shape != KUBE_TABLE)
        return buf_append_text(to, "\"items\":[");
    TRY(buf_append_text(to, "\"columnDefinitions\":"));
    TRY(kube_table_columns(s->kind, to));
    return buf_append_text(to, ",\"rows\":[");
}

enum status kube_shape_item(const struct kube_shaping *s, const struct kube_object *object,
                            int64_t revision, struct buf *to)
{
    if (s->shape == KUBE_TABLE)
        return append_row(s, object, revision, to);
    return append_partial(s, object, revision, !(s->kind->flags & KUBE_CUSTOM), to);
}

/* -- Single objects -- */

enum status kube_shape_single(const struct kube_shaping *s, const struct kube_object *object,
                              int64_t revision, bool columns, struct buf *to)
{
    if (s->shape == KUBE_WHOLE)
        return append_whole(object, revision, to);
    if (s->shape == KUBE_PARTIAL)
        return append_partial(s, object, revision, false, to);
    TRY(buf_append_text(to, "{"));
    TRY(kube_shape_list_head(s, to));
    TRY(buf_append_format(to, "\"metadata\":{\"resourceVersion\":\"%lld\"},\"columnDefinitions\":",
                          (long long)revision));
    /* In a watch only the first event has the columns. */
    if (columns)
        TRY(kube_table_columns(s->kind, to));
    else
        TRY(buf_append_text(to, "null"));
    TRY(buf_append_text(to, ",\"rows\":["));
    TRY(append_row(s, object, revision, to));
    return buf_append_text(to, "]}");
}

/* An object of the kind with only the metadata of a bookmark. */
static enum status append_empty(const char *kind, const char *api_version, const char *version,
                                bool initial_end, struct buf *to)
{
    return buf_append_format(
        to, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{%s%s%s}}", kind, api_version,
        version, *version && initial_end ? "," : "",
        initial_end ? "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
}

/* In a Table a bookmark is a row, as in Kubernetes; its metadata marks the end of the initial
 * events. */
static enum status append_table_bookmark(const struct kube_shaping *s, int64_t revision,
                                         bool initial_end, bool columns, struct buf *to)
{
    AUTO(buf_fini) struct buf json = {0};
    char version[KUBE_API_VERSION_BYTES];
    struct kube_object object;
    TRY(append_empty(s->kind->kind, kube_kind_api_version(s->kind, version), "", initial_end,
                     &json));
    TRY(kube_object_parse(buf_slice(&json), &object));
    return kube_shape_single(s, &object, revision, columns, to);
}

enum status kube_shape_bookmark(const struct kube_shaping *s, int64_t revision, bool initial_end,
                                bool columns, struct buf *to)
{
    char version[KUBE_API_VERSION_BYTES], resource_version[64];
    if (s->shape == KUBE_TABLE)
        return append_table_bookmark(s, revision, initial_end, columns, to);
    bool partial = s->shape == KUBE_PARTIAL;
    snprintf(resource_version, sizeof(resource_version), "\"resourceVersion\":\"%lld\"",
             (long long)revision);
    return append_empty(partial ? "PartialObjectMetadata" : s->kind->kind,
                        partial ? meta_version(s) : kube_kind_api_version(s->kind, version),
                        resource_version, initial_end, to);
}
