#include "kube/handlers/read/scope.h"

#include "codec/json/string.h"
#include "kube/call/call.h"
#include "kube/call/conversion.h"
#include "kube/call/operation.h"
#include "watch/cursor.h"

#include <stdio.h>

/* -- Options -- */

static void forbid(struct kube_status *status, bool wrong, const char *field, const char *why)
{
    char message[256];
    if (!wrong)
        return;
    snprintf(message, sizeof(message), "Forbidden: %s", why);
    kube_status_cause(status, "FieldValueForbidden", field, message);
}

static void check_supported(struct kube_status *status, bool wrong, struct slice given,
                            const char *supported)
{
    char message[256];
    if (!wrong)
        return;
    snprintf(message, sizeof(message), "Unsupported value: \"%.*s\": supported values: %s",
             (int)size_min(given.len, 100), (const char *)given.ptr, supported);
    kube_status_cause(status, "FieldValueNotSupported", "resourceVersionMatch", message);
}

static const char match_field[] = "resourceVersionMatch";

static void check_list(const struct kube_query *query, struct kube_status *status)
{
    bool matches = query->match != KUBE_MATCH_UNSET;
    forbid(status, matches && !query->resource_version.len, match_field,
           "resourceVersionMatch is forbidden unless resourceVersion is provided");
    forbid(status, matches && query->continue_token.len, match_field,
           "resourceVersionMatch is forbidden when continue is provided");
    check_supported(status, query->match == KUBE_MATCH_OTHER, query->match_text,
                    "\"Exact\", \"NotOlderThan\", \"\"");
    forbid(status, query->match == KUBE_MATCH_EXACT && slice_is(query->resource_version, "0"),
           match_field, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    forbid(status, query->send_initial_events_given, "sendInitialEvents",
           "sendInitialEvents is forbidden for list");
}

/* As in Kubernetes, a watch from "" or "0" implies initial events if nothing else is given. */
static void check_watch(const struct kube_query *query, struct kube_status *status)
{
    bool initial = query->send_initial_events_given, matches = query->match != KUBE_MATCH_UNSET;
    bool from_all = !query->resource_version.len || slice_is(query->resource_version, "0");
    bool filled_in = !initial && !matches && from_all;
    forbid(status, initial && query->match != KUBE_MATCH_NOT_OLDER, match_field,
           "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    forbid(status, matches && !initial, match_field,
           "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    check_supported(status, matches && query->match != KUBE_MATCH_NOT_OLDER, query->match_text,
                    "\"NotOlderThan\"");
    forbid(status, (matches || filled_in) && query->continue_token.len, match_field,
           "resourceVersionMatch is forbidden when continue is provided");
}

static bool check_options(struct kube_call *call, bool watch)
{
    call->status = (struct kube_status){0};
    (watch ? check_watch : check_list)(&call->query, &call->status);
    return !call->status.cause_count ||
           kube_fail_invalid(&call->status, SLICE_LITERAL("meta.k8s.io"),
                             SLICE_LITERAL("ListOptions"), SLICE_EMPTY);
}

static bool set_revision(struct kube_scope *scope, struct kube_call *call, bool watch)
{
    struct slice text = call->query.resource_version;
    const char *wrong = kube_revision_parse(text, &scope->revision);
    scope->revision_given = text.len > 0;
    if (!wrong)
        return true;
    return kube_fail(&call->status, watch ? KUBE_UNKNOWN : KUBE_BAD_REQUEST,
                     "%sresourceVersion: Invalid value: \"%.*s\": strconv.ParseUint: parsing "
                     "\"%.*s\": %s",
                     watch ? "" : "invalid resource version: ", SLICE_ARGS(text), SLICE_ARGS(text),
                     wrong);
}

/* -- Selectors -- */

bool kube_selectors_get(struct kube_call *call, struct kube_selection **ret_selection)
{
    struct error error;
    enum status status =
        kube_selection_get(&call->api->selections, call->query.label_selector,
                           call->query.field_selector, call->kind, ret_selection, &error);
    if (status == ST_NOMEM)
        return kube_fail_engine(&call->status, status);
    return status == ST_OK || kube_fail(&call->status, KUBE_BAD_REQUEST, "%s", error.text);
}

static bool set_selectors(struct kube_scope *scope, struct kube_call *call)
{
    if (!kube_selectors_get(call, &scope->selection))
        return false;
    struct slice name = call->path.name;
    return !name.len || !scope->selection->fields ||
           (kube_selection_requires(scope->selection, SLICE_LITERAL("metadata.name"), &name) &&
            slice_equal(name, call->path.name)) ||
           kube_fail(&call->status, KUBE_BAD_REQUEST,
                     "fieldSelector metadata.name doesn't match requested name");
}

void kube_scope_fini(struct kube_scope *scope)
{
    kube_selection_unref(scope->selection);
    scope->selection = NULL;
    for (size_t i = 0; i < COUNT_OF(scope->converted); i++)
        buf_fini(&scope->converted[i]);
}

/* An object that cannot match, or that is only sent, is not parsed in full. */
enum status kube_scope_look(struct kube_scope *scope, enum kube_shape shape, struct kube_kv kv,
                            struct kube_object *ret_object, bool *ret_selected)
{
    const struct kube_selection *selection = scope->selection;
    struct slice json = kv.value;
    if (scope->kind->flags & (KUBE_CUSTOM | KUBE_STORED_CONVERTED)) {
        struct buf *to = &scope->converted[scope->convert_at++ % 2];
        TRY(kube_conversion_json(scope->kind, json, kv.mod_revision, to, &json));
    }
    bool may_match = kube_selection_may_match(selection, json);
    bool peek = !may_match || (!selection->selects && shape == KUBE_WHOLE);
    scope->looked += json.len;
    TRY((peek ? kube_object_parse_head : kube_object_parse)(json, ret_object));
    *ret_selected = may_match && kube_selection_matches(selection, ret_object);
    return ST_OK;
}

/* -- Keys -- */

/* The name or namespace of the path, or else the one that the field selector requires. */
static struct slice required(const struct kube_scope *scope, struct slice given, const char *field)
{
    struct slice value = SLICE_EMPTY;
    if (!given.len)
        (void)kube_selection_requires(scope->selection, slice_from_text(field), &value);
    return given.len ? given : value;
}

static enum status set_range(struct kube_scope *scope, struct kube_call *call)
{
    const char *prefix = call->kind->storage_prefix;
    bool namespaced = call->kind->flags & KUBE_NAMESPACED;
    struct slice namespace =
        namespaced ? required(scope, call->path.namespace, "metadata.namespace") : SLICE_EMPTY;
    struct slice name = required(scope, call->path.name, "metadata.name");
    if (namespaced && !namespace.len)
        name = SLICE_EMPTY;
    TRY(kube_key_make(&call->arena, prefix, namespace, SLICE_EMPTY, &scope->prefix));
    scope->key = scope->prefix;
    if (name.len)
        return kube_key_make(&call->arena, prefix, namespace, name, &scope->key);
    return kube_prefix_end(&call->arena, scope->prefix, &scope->range_end);
}

/* -- Indexed fields -- */

enum { TAG_BYTES_MAX = 512 };

/* "\0/registry/pods/\0spec.nodeName\0value"; empty when the value is too long to be one. */
static struct slice make_tag(const struct kube_kind *kind, struct slice value,
                             uint8_t tag[TAG_BYTES_MAX])
{
    size_t prefix_len = strlen(kind->storage_prefix) + 1,
           field_len = strlen(kind->indexed_field) + 1;
    size_t len = 1 + prefix_len + field_len + value.len;
    if (len > TAG_BYTES_MAX)
        return SLICE_EMPTY;
    tag[0] = 0;
    slice_copy(tag + 1, slice_of(kind->storage_prefix, prefix_len));
    slice_copy(tag + 1 + prefix_len, slice_of(kind->indexed_field, field_len));
    slice_copy(tag + 1 + prefix_len + field_len, value);
    return slice_of(tag, len);
}

static enum status set_tag(struct kube_scope *scope, struct kube_call *call)
{
    struct slice value;
    uint8_t tag[TAG_BYTES_MAX];
    if (!call->kind->indexed_field ||
        !kube_selection_requires(scope->selection, slice_from_text(call->kind->indexed_field),
                                 &value))
        return ST_OK;
    struct slice made = make_tag(call->kind, value, tag);
    scope->tag_within = slice_is(scope->key, call->kind->storage_prefix);
    return made.len ? arena_dup(&call->arena, made, &scope->tag) : ST_OK;
}

static const struct kube_kind *indexed_kind(struct slice key)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        if (!kinds[i].indexed_field)
            continue;
        struct slice prefix = slice_from_text(kinds[i].storage_prefix);
        if (key.len > prefix.len && slice_equal(slice_sub(key, 0, prefix.len), prefix))
            return &kinds[i];
    }
    return NULL;
}

static struct slice tag_of(const struct kube_kind *kind, struct slice field, uint8_t *tag)
{
    struct kube_object object;
    struct slice value = SLICE_EMPTY;
    if (!field.len || kube_object_parse_head(kube_kv_of(field).value, &object) != ST_OK)
        return SLICE_EMPTY;
    (void)!kube_object_field(&object, slice_from_text(kind->indexed_field), &value);
    uint8_t decoded[TAG_BYTES_MAX];
    size_t len;
    if (LIKELY(!value.len || !memchr(value.ptr, '\\', value.len)))
        return make_tag(kind, value, tag);
    struct slice raw = slice_of(value.ptr - 1, value.len + 2);
    if (json_string_decode(raw, NULL, &len) != JSON_STRING_FINE || len > sizeof(decoded) ||
        json_string_decode(raw, decoded, &len) != JSON_STRING_FINE)
        return SLICE_EMPTY;
    return make_tag(kind, slice_of(decoded, len), tag);
}

/* The tags of the object before and after: a watch is notified of objects that come into its
 * selection and of those that leave it. */
size_t kube_scope_tags(void *ctx, struct watch_history *history, const struct watch_event *event,
                       struct slice ret_tags[])
{
    static _Thread_local uint8_t before[TAG_BYTES_MAX], after[TAG_BYTES_MAX];
    (void)ctx;
    const struct kube_kind *kind = indexed_kind(event->key);
    size_t count = 0;
    if (!kind)
        return 0;
    if (!event->tombstone)
        ret_tags[count] = tag_of(kind, event->field, after);
    count += !event->tombstone && ret_tags[count].len;
    if (event->created)
        return count;
    struct slice prev = history->ops->prev(history, event);
    if (UNLIKELY(!prev.len)) /* it is damaged or compacted: every watch of a tag must report that */
        return WATCH_TAGS_UNKNOWN;
    ret_tags[count] = tag_of(kind, prev, before);
    bool another = ret_tags[count].len && (!count || !slice_equal(ret_tags[0], ret_tags[1]));
    return count + another;
}

bool kube_scope_init(struct kube_scope *scope, struct kube_call *call, bool watch)
{
    *scope = (struct kube_scope){.kind = call->kind};
    if (!check_options(call, watch) || !set_selectors(scope, call) ||
        !set_revision(scope, call, watch))
        return false;
    enum status status = set_range(scope, call);
    if (status == ST_OK && watch)
        status = set_tag(scope, call);
    return status == ST_OK || kube_fail_engine(&call->status, status);
}
