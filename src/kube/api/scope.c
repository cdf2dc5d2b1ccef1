#include "kube/api/scope.h"

#include "watch/cursor.h"

#include <stdio.h>
#include <stdlib.h>

/* -- Options -- */

/* As errors.NewInvalid of apimachinery says it. */
static bool forbid(struct kube_status *status, const char *field, const char *why)
{
    char message[256];
    kube_fail(status, KUBE_INVALID, "ListOptions.meta.k8s.io \"\" is invalid: %s: Forbidden: %s",
              field, why);
    status->group = SLICE_LITERAL("meta.k8s.io");
    status->kind = SLICE_LITERAL("ListOptions");
    snprintf(message, sizeof(message), "Forbidden: %s", why);
    kube_status_cause(status, "FieldValueForbidden", field, message);
    return false;
}

static bool check_list(const struct kube_query *query, struct kube_status *status)
{
    static const char match[] = "resourceVersionMatch";
    if (query->match != KUBE_MATCH_UNSET && !query->resource_version.len)
        return forbid(status, match,
                      "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (query->match != KUBE_MATCH_UNSET && query->continue_token.len)
        return forbid(status, match, "resourceVersionMatch is forbidden when continue is provided");
    if (query->match == KUBE_MATCH_EXACT &&
        slice_equal(query->resource_version, SLICE_LITERAL("0")))
        return forbid(status, match,
                      "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    if (query->send_initial_events_given)
        return forbid(status, "sendInitialEvents", "sendInitialEvents is forbidden for list");
    return true;
}

static bool check_watch(const struct kube_query *query, struct kube_status *status)
{
    static const char match[] = "resourceVersionMatch";
    if (query->send_initial_events_given && query->match != KUBE_MATCH_NOT_OLDER)
        return forbid(status, match,
                      "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (query->match != KUBE_MATCH_UNSET && !query->send_initial_events_given)
        return forbid(
            status, match,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    if (query->match != KUBE_MATCH_UNSET && query->continue_token.len)
        return forbid(status, match, "resourceVersionMatch is forbidden when continue is provided");
    return true;
}

/* Digits only, as Go's ParseUint; false for what is none. */
static bool parse_revision(struct slice text, int64_t *ret_revision)
{
    char copy[24];
    if (!text.len || text.len >= sizeof(copy))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    slice_copy(copy, text);
    copy[text.len] = '\0';
    uint64_t value = strtoull(copy, NULL, 10);
    *ret_revision = (int64_t)value;
    return value <= INT64_MAX;
}

static bool set_revision(struct kube_scope *scope, struct kube_call *call, bool watch)
{
    struct slice text = call->query.resource_version;
    scope->revision_given = text.len > 0;
    if (!text.len || parse_revision(text, &scope->revision))
        return true;
    return kube_fail(&call->status, watch ? KUBE_INTERNAL_ERROR : KUBE_BAD_REQUEST,
                     "resourceVersion: Invalid value: \"%.*s\": strconv.ParseUint: parsing "
                     "\"%.*s\": invalid syntax",
                     SLICE_ARGS(text), SLICE_ARGS(text));
}

/* -- Selectors -- */

static bool set_selectors(struct kube_scope *scope, struct kube_call *call)
{
    struct error error;
    enum status status =
        label_selector_parse(&call->arena, call->query.label_selector, &scope->labels, &error);
    if (status == ST_OK)
        status = field_selector_parse(&call->arena, call->query.field_selector, &call->kind->fields,
                                      &scope->fields, &error);
    if (status == ST_NOMEM)
        return kube_fail_engine(&call->status, status);
    if (status != ST_OK)
        return kube_fail(&call->status, KUBE_BAD_REQUEST, "%s", error.text);
    scope->selects =
        !label_selector_is_empty(scope->labels) || !field_selector_is_empty(scope->fields);
    return true;
}

enum status kube_scope_look(const struct kube_scope *scope, enum kube_shape shape,
                            struct slice json, struct kube_object *ret_object)
{
    bool peek = !scope->selects && shape == KUBE_WHOLE;
    return (peek ? kube_object_peek : kube_object_look)(json, ret_object);
}

bool kube_scope_matches(const struct kube_scope *scope, const struct kube_object *object)
{
    return !scope->selects || (label_selector_matches(scope->labels, object->labels) &&
                               field_selector_matches(scope->fields, object));
}

/* -- Keys -- */

/* What a path does not name a selector may require. */
static struct slice required(const struct kube_scope *scope, struct slice given, const char *field)
{
    struct slice value = SLICE_EMPTY;
    if (!given.len)
        (void)field_selector_requires(scope->fields, slice_from_text(field), &value);
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
        !field_selector_requires(scope->fields, slice_from_text(call->kind->indexed_field), &value))
        return ST_OK;
    struct slice made = make_tag(call->kind, value, tag);
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
    if (!field.len || kube_object_look(kube_kv_of(field).value, &object) != ST_OK)
        return SLICE_EMPTY;
    (void)!kube_object_field(&object, slice_from_text(kind->indexed_field), &value);
    return make_tag(kind, value, tag);
}

/* Of the object before and after: a watch must hear of what comes to it and of what goes. */
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
    ret_tags[count] = tag_of(kind, history->ops->prev(history, event), before);
    bool another = ret_tags[count].len && (!count || !slice_equal(ret_tags[0], ret_tags[1]));
    return count + another;
}

bool kube_scope_init(struct kube_scope *scope, struct kube_call *call, bool watch)
{
    const struct kube_query *query = &call->query;
    *scope = (struct kube_scope){0};
    if (!(watch ? check_watch : check_list)(query, &call->status) || !set_selectors(scope, call) ||
        !set_revision(scope, call, watch))
        return false;
    enum status status = set_range(scope, call);
    if (status == ST_OK && watch)
        status = set_tag(scope, call);
    return status == ST_OK || kube_fail_engine(&call->status, status);
}
