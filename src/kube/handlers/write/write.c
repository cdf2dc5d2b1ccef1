#include "kube/handlers/write/write.h"

#include "kube/call/call.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/part.h"
#include "kube/handlers/write/subresource.h"
#include "kube/types/go_text.h"

#include <stdio.h>

/* -- Options -- */

enum { FIELD_MANAGER_BYTES_MAX = 128 }; /* as in Kubernetes */

static const char *options_kind(struct slice method)
{
    if (slice_equal(method, SLICE_LITERAL("POST")))
        return "CreateOptions";
    if (slice_equal(method, SLICE_LITERAL("PUT")))
        return "UpdateOptions";
    return slice_equal(method, SLICE_LITERAL("PATCH")) ? "PatchOptions" : "DeleteOptions";
}

static void unsupported(struct kube_call *call, const char *field, const char *open,
                        struct slice value, const char *close, const char *supported)
{
    char message[256];
    snprintf(message, sizeof(message), "Unsupported value: %s\"%.*s\"%s: supported values: %s",
             open, (int)size_min(value.len, 64), (const char *)value.ptr, close, supported);
    kube_status_cause(&call->status, "FieldValueNotSupported", field, message);
}

/* An apply must name its manager, and only an apply can be forced. */
static void check_apply(struct kube_call *call, const struct http_request *request)
{
    struct slice type = SLICE_EMPTY;
    (void)!http_request_get(request, SLICE_LITERAL("content-type"), &type);
    if (!slice_has_prefix(type, SLICE_LITERAL("application/apply-patch+yaml"))) {
        if (call->query.force_given)
            kube_status_cause(&call->status, "FieldValueForbidden", "force",
                              "Forbidden: may not be specified for non-apply patch");
        return;
    }
    if (!call->query.field_manager.len)
        kube_status_cause(&call->status, "FieldValueRequired", "fieldManager",
                          "Required value: is required for apply patch");
}

static void check_manager(struct kube_call *call)
{
    struct slice manager = call->query.field_manager;
    if (manager.len > FIELD_MANAGER_BYTES_MAX)
        kube_status_cause(&call->status, "FieldValueTooLong", "fieldManager",
                          "Too long: may not be more than 128 bytes");
    for (size_t i = 0; i < manager.len && i < FIELD_MANAGER_BYTES_MAX; i++) {
        AUTO(buf_fini) struct buf text = {0};
        if (manager.ptr[i] >= ' ' && manager.ptr[i] != 0x7f)
            continue;
        if (buf_append_text(&text, "Invalid value: ") == ST_OK &&
            go_quote(manager, &text) == ST_OK &&
            buf_append_format(&text, ": invalid character U+%04X (at position %zu)", manager.ptr[i],
                              i) == ST_OK &&
            buf_append(&text, slice_of("", 1)) == ST_OK)
            kube_status_cause(&call->status, "FieldValueInvalid", "fieldManager",
                              (const char *)text.ptr);
    }
}

static bool check_options(struct kube_call *call, const struct http_request *request)
{
    struct slice method = request->method;
    static const char *const known[] = {"", "Ignore", "Strict", "Warn"};
    const struct kube_query *query = &call->query;
    bool deletes = slice_equal(method, SLICE_LITERAL("DELETE")); /* has neither of these options */
    bool found = deletes;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        found = found || slice_equal(query->field_validation, slice_from_text(known[i]));
    if (slice_equal(method, SLICE_LITERAL("PATCH")))
        check_apply(call, request);
    if (!deletes)
        check_manager(call);
    if (query->dry_run_unknown)
        unsupported(call, "dryRun", "[", query->dry_run_text, "]", "\"All\"");
    if (!found)
        unsupported(call, "fieldValidation", "", query->field_validation, "",
                    "\"\", \"Ignore\", \"Strict\", \"Warn\"");
    if (!call->status.cause_count)
        return true;
    return kube_fail_invalid(&call->status, SLICE_LITERAL("meta.k8s.io"),
                             slice_from_text(options_kind(method)), SLICE_EMPTY);
}

/* -- Handlers -- */

typedef void handler(struct kube_call *call, const struct http_request *request);

/* NULL: the method is not for this path. */
static handler *handler_of(const struct kube_call *call, struct slice method)
{
    bool named = call->path.name.len, sub = call->path.subresource.len;
    bool everywhere = call->kind->flags & KUBE_NAMESPACED && !call->path.namespace.len;
    if (everywhere || call->kind->flags & KUBE_COMPUTED)
        return NULL;
    if (kube_is_finalize(call))
        return slice_equal(method, SLICE_LITERAL("PUT")) ? kube_update : NULL;
    if (kube_is_token(call))
        return slice_equal(method, SLICE_LITERAL("POST")) ? kube_account_request : NULL;
    if (kube_is_post_subresource(call))
        return slice_equal(method, SLICE_LITERAL("POST")) ? kube_post_subresource : NULL;
    if (!call->kind->group[0] && strcmp(call->kind->plural, "bindings") == 0)
        return slice_equal(method, SLICE_LITERAL("POST")) && !named ? kube_post_subresource : NULL;
    if (call->kind->flags & KUBE_CREATE_ONLY)
        return slice_equal(method, SLICE_LITERAL("POST")) && !named ? kube_review : NULL;
    if (slice_equal(method, SLICE_LITERAL("POST")))
        return named ? NULL : kube_create;
    if (slice_equal(method, SLICE_LITERAL("PUT")))
        return named ? kube_update : NULL;
    if (slice_equal(method, SLICE_LITERAL("PATCH")))
        return named ? kube_patch : NULL;
    if (sub)
        return NULL;
    return named ? kube_delete : kube_delete_collection;
}

bool kube_mutate(struct kube_call *call, const struct http_request *request)
{
    static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE"};
    bool known = false;
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        known = known || slice_equal(request->method, slice_from_text(methods[i]));
    if (!known)
        return false;
    handler *handle = handler_of(call, request->method);
    if (call->path.subresource.len && !kube_is_status(call) && !kube_is_scale(call) &&
        !kube_is_finalize(call) && !kube_is_post_subresource(call) && !kube_is_part(call) &&
        !kube_is_token(call)) {
        kube_no_subresource(call);
    } else if (!handle || call->path.watch) {
        kube_not_allowed(call);
    } else if (check_options(call, request)) {
        handle(call, request);
    } else {
        kube_call_fail(call);
    }
    return true;
}
