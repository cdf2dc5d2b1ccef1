#include "kube/call/conversion.h"

#include "kube/call/call.h"
#include "kube/types/object/conversion.h"

/* Memory for the tree of one object. */
enum { CONVERT_BYTES_MAX = 64 << 20 };

bool kube_conversion_custom_has_webhook(const struct kube_kind *kind)
{
    const struct kube_custom *custom = kube_custom_of(kind);
    return custom && custom->definition->webhook.converts;
}

bool kube_conversion_custom_by_webhook(const struct kube_kind *kind)
{
    const struct kube_custom *custom = kube_custom_of(kind);
    const struct kube_definition *definition = custom ? custom->definition : NULL;
    return definition && definition->webhook.converts &&
           (custom != definition->storage || definition->webhook.mixed);
}

bool kube_conversion_custom_awaits(const struct kube_kind *kind, struct slice json)
{
    struct kube_object object;
    char version[KUBE_API_VERSION_BYTES];
    return kube_conversion_has_webhook(kind) && kube_object_parse_head(json, &object) == ST_OK &&
           slice_is(object.kind, kind->kind) &&
           !slice_is(object.api_version, kube_kind_api_version(kind, version));
}

bool kube_conversion_distrust(const struct kube_kind *kind, struct kube_status *status)
{
    kube_custom_of(kind)->definition->webhook.mixed = true;
    return kube_fail_later(status, SLICE_LITERAL("there are objects in another version than "
                                                 "status.storedVersions of the definition says, "
                                                 "please try again"));
}

bool kube_conversion_is_foreign(const struct kube_kind *kind, struct json_node *object)
{
    const struct json_node *says = json_node_named(object, "kind");
    return says && !json_node_is_text(says, kind->kind);
}

bool kube_conversion_to_stored(struct kube_call *call, struct arena *arena,
                               struct json_node *object)
{
    struct kube_custom *custom = kube_custom_of(call->kind);
    if (call->kind->flags & KUBE_STORED_CONVERTED)
        return kube_convert_to_stored(call->kind, arena, object) == ST_OK ||
               kube_fail_engine(&call->status, ST_NOMEM);
    if (!custom || kube_conversion_is_foreign(call->kind, object) ||
        custom->definition->webhook.converts)
        return true;
    return json_node_put(arena, object, "apiVersion",
                         json_node_new_text(
                             arena, slice_from_text(custom->definition->api_version))) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

/* -- Reading -- */

/* It was written before the current specification of the definition. */
static bool is_old(const struct kube_custom *custom, int64_t revision)
{
    return revision && revision < custom->definition->spec_revision;
}

bool kube_conversion_is_plain_at(const struct kube_kind *kind, int64_t revision)
{
    struct kube_custom *custom = kube_custom_of(kind);
    char version[KUBE_API_VERSION_BYTES];
    if (kind->flags & KUBE_STORED_CONVERTED)
        return false;
    return !custom ||
           (!is_old(custom, revision) && !kube_conversion_by_webhook(kind) &&
            strcmp(kube_kind_api_version(kind, version), custom->definition->api_version) == 0);
}

static enum status show(const struct kube_kind *kind, struct arena *arena, struct json_node *object,
                        int64_t revision)
{
    struct kube_custom *custom = kube_custom_of(kind);
    char version[KUBE_API_VERSION_BYTES];
    if (kind->flags & KUBE_STORED_CONVERTED)
        return kube_convert_from_stored(kind, arena, object);
    if (!custom)
        return ST_OK;
    if (object->type != JSON_TYPE_OBJECT)
        return ST_MALFORMED;
    struct slice shown = slice_from_text(kube_kind_api_version(&custom->kind, version));
    if (custom->definition->webhook.converts &&
        !json_node_is_text(json_node_named(object, "apiVersion"), version))
        return ST_MALFORMED; /* it has not been converted */
    if (json_node_put(arena, object, "apiVersion", json_node_new_text(arena, shown)) != ST_OK)
        return ST_NOMEM;
    const struct schema *schema = is_old(custom, revision) ? kube_custom_schema(custom) : NULL;
    if (!schema)
        return ST_OK;
    TRY(schema_prune(schema, object, true, NULL));
    return schema_default(arena, schema, object);
}

bool kube_conversion_to_served(struct kube_call *call, struct arena *arena,
                               struct json_node *object, int64_t revision)
{
    enum status status = show(call->kind, arena, object, revision);
    if (status == ST_MALFORMED)
        return kube_fail_stored(&call->status);
    return status == ST_OK || kube_fail_engine(&call->status, ST_NOMEM);
}

static enum status convert_tree(const struct kube_kind *kind, struct slice json, int64_t revision,
                                struct buf *to)
{
    struct arena arena;
    struct json_node *object;
    struct error error;
    arena_init(&arena, NULL, 0, CONVERT_BYTES_MAX);
    enum status status = json_tree_read(&arena, json, &object, &error);
    if (status == ST_OK)
        status = show(kind, &arena, object, revision);
    if (status == ST_OK)
        status = json_tree_write(object, to);
    arena_fini(&arena);
    return status;
}

enum status kube_conversion_json(const struct kube_kind *kind, struct slice json, int64_t revision,
                                 struct buf *to, struct slice *ret_json)
{
    struct kube_custom *custom = kube_custom_of(kind);
    struct kube_object object;
    char version[KUBE_API_VERSION_BYTES];
    *ret_json = json;
    if (!custom && !(kind->flags & KUBE_STORED_CONVERTED))
        return ST_OK;
    buf_reset(to, SIZE_MAX);
    if (!custom || is_old(custom, revision)) {
        TRY(convert_tree(kind, json, revision, to));
        *ret_json = buf_slice(to);
        return ST_OK;
    }
    TRY(kube_object_parse_head(json, &object));
    kube_kind_api_version(kind, version);
    if (!object.api_version.ptr || slice_is(object.api_version, version))
        return ST_OK;
    if (custom->definition->webhook.converts)
        return ST_MALFORMED; /* it has not been converted */
    /* Only apiVersion differs, so the rest of the bytes is copied as it is. */
    struct slice stored = object.json;
    size_t from = (size_t)(object.api_version.ptr - stored.ptr);
    size_t behind = from + object.api_version.len;
    TRY(buf_append(to, slice_sub(stored, 0, from)));
    TRY(buf_append_text(to, version));
    TRY(buf_append(to, slice_sub(stored, behind, stored.len - behind)));
    *ret_json = buf_slice(to);
    return ST_OK;
}

bool kube_conversion_bytes(struct kube_call *call, struct slice json, int64_t revision,
                           struct slice *ret_json)
{
    AUTO(buf_fini) struct buf to = {0};
    struct slice made;
    *ret_json = json;
    enum status status = kube_conversion_json(call->kind, json, revision, &to, &made);
    if (status == ST_OK && to.len)
        status = arena_dup(&call->arena, made, ret_json);
    if (status == ST_MALFORMED)
        return true; /* the caller parses it and reports that */
    return status == ST_OK || kube_fail_engine(&call->status, status);
}
