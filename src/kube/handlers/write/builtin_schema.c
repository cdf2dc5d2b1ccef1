#include "kube/handlers/write/builtin_schema.h"

#include "kube/merge/patch/patch.h"
#include "kube/types/schema/protobuf.h"
#include "kube/types/schema/strict.h"
#include "kube/types/schema/zero.h"

static bool too_large(struct kube_status *status)
{
    return kube_fail(status, KUBE_TOO_LARGE,
                     "Request entity too large: it takes more memory than a request may");
}

static bool cannot_be_handled(const struct kube_kind *kind, const struct error *error,
                              struct kube_status *status)
{
    return kube_fail(status, KUBE_BAD_REQUEST, "%s in version \"%s\" cannot be handled as a %s: %s",
                     kind->kind, kind->version, kind->kind, error->text);
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
        return too_large(status);
    }
}

bool kube_schema_patch(struct arena *arena, const struct kube_kind *kind, struct json_node *object,
                       const struct json_node *change, struct json_node **ret_object,
                       struct kube_status *status)
{
    struct error error = {0};
    const struct kube_type *type = kube_type_of_kind(kind);
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
        return too_large(status);
    return cannot_be_handled(kind, &error, status);
}

/* Whether it names something else; an empty text names nothing. */
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
    bool named = json_node_has_text(version) && json_node_has_text(name);
    char text[KUBE_API_VERSION_BYTES];
    const struct kube_type *type = NULL;
    if (named)
        type = kube_type_find(version->text, name->text);
    else if (own && !differs(version, slice_from_text(kube_kind_api_version(kind, text))) &&
             !differs(name, slice_from_text(kind->kind)))
        type = kube_type_of_kind(kind);
    if (!type)
        return true;
    switch (kube_strict(type, object, unknown, &error)) {
    case ST_OK:
        return true;
    case ST_INVALID:
        return cannot_be_handled(kind, &error, status);
    default:
        return kube_fail_engine(status, ST_NOMEM);
    }
}

enum status kube_schema_zero_status(struct arena *arena, const struct kube_kind *kind,
                                    struct json_node **ret_status)
{
    const struct kube_type *type = kube_type_of_kind(kind);
    *ret_status = NULL;
    return type ? kube_zero_member(arena, type, SLICE_LITERAL("status"), ret_status) : ST_OK;
}
