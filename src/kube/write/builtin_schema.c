#include "kube/write/builtin_schema.h"
#include "kube/apply/apply_type.h"
#include "kube/patch/patch.h"
#include "kube/schema/protobuf.h"
#include "kube/schema/strict.h"

#include <stdio.h>

static struct slice api_version(const struct kube_kind *kind, char text[256])
{
    int len = snprintf(text, 256, "%s%s%s", kind->group, kind->group[0] ? "/" : "", kind->version);
    return slice_of(text, (size_t)len);
}

/* The status that the API server gives for each error of apimachinery. */
static bool patch_fails(enum status fault, const struct error *error, struct kube_status *status)
{
    switch (fault) {
    case ST_MALFORMED:
        return kube_fail(status, KUBE_BAD_REQUEST, "%s", error->text);
    case ST_INVALID:
        return kube_fail(status, KUBE_INVALID, "%s", error->text);
    case ST_WRONG_FORMAT:
        return kube_fail(status, KUBE_INTERNAL_ERROR, "%s", error->text);
    default:
        return kube_fail(status, KUBE_TOO_LARGE,
                         "Request entity too large: it takes more memory than a request may");
    }
}

bool kube_schema_patch(struct arena *arena, const struct kube_kind *kind, struct json_node *object,
                       const struct json_node *change, struct json_node **ret_object,
                       struct kube_status *status)
{
    char text[256];
    struct error error = {0};
    const struct kube_type *type =
        kube_type_find(api_version(kind, text), slice_from_text(kind->kind));
    if (!type)
        return kube_fail(status, KUBE_UNSUPPORTED_MEDIA_TYPE,
                         "strategic merge patch format is not supported");
    enum status fault = patch_strategic(arena, type, object, change, ret_object, &error);
    return fault == ST_OK || patch_fails(fault, &error, status);
}

bool kube_schema_read_protobuf(struct arena *arena, const struct kube_kind *kind,
                               struct slice bytes, struct json_node **ret_object,
                               struct kube_status *status)
{
    struct error error = {0};
    enum status fault = kube_protobuf_decode(arena, bytes, ret_object, &error);
    if (fault == ST_OK)
        return true;
    if (fault == ST_NOMEM || fault == ST_LIMIT)
        return kube_fail(status, KUBE_TOO_LARGE,
                         "Request entity too large: it takes more memory than a request may");
    return kube_fail(status, KUBE_BAD_REQUEST, "%s in version \"%s\" cannot be handled as a %s: %s",
                     kind->kind, kind->version, kind->kind, error.text);
}

static bool says(const struct json_node *node)
{
    return node && node->type == JSON_TYPE_STRING && node->text.len;
}

static bool differs(const struct json_node *node, struct slice text)
{
    return node &&
           !(node->type == JSON_TYPE_STRING && (!node->text.len || slice_equal(node->text, text)));
}

/* An object that names no kind, or only half of it, is of the kind of the path; one of another kind
 * is refused later. */
bool kube_schema_prune(const struct kube_kind *kind, bool own, struct json_node *object,
                       struct buf *unknown, struct kube_status *status)
{
    struct error error = {0};
    const struct json_node *version = json_node_named(object, "apiVersion");
    const struct json_node *name = json_node_named(object, "kind");
    bool named = says(version) && says(name);
    char text[256];
    const struct kube_type *type = NULL;
    if (named)
        type = kube_type_find(version->text, name->text);
    else if (own && !differs(version, api_version(kind, text)) &&
             !differs(name, slice_from_text(kind->kind)))
        type = kube_type_find(api_version(kind, text), slice_from_text(kind->kind));
    if (!type)
        return true;
    switch (kube_strict(type, object, unknown, &error)) {
    case ST_OK:
        return true;
    case ST_INVALID:
        return kube_fail(status, KUBE_BAD_REQUEST,
                         "%s in version \"%s\" cannot be handled as a %s: %s", kind->kind,
                         kind->version, kind->kind, error.text);
    default:
        return kube_fail_engine(status, ST_NOMEM);
    }
}

enum status kube_schema_zero_status(struct arena *arena, const struct kube_kind *kind,
                                    struct json_node **ret_status)
{
    char text[256];
    const struct kube_type *type =
        kube_type_find(api_version(kind, text), slice_from_text(kind->kind));
    *ret_status = NULL;
    return type ? apply_type_zero_member(arena, type, SLICE_LITERAL("status"), ret_status) : ST_OK;
}
