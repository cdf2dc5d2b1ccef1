#include "kube/api/write.h"

#include "kube/custom/schema/go_text.h"

#include <stdio.h>

static bool has_subresource(const struct kube_call *call, const char *name, unsigned flag)
{
    return slice_equal(call->path.subresource, slice_from_text(name)) && call->kind->flags & flag;
}

bool kube_is_status(const struct kube_call *call)
{
    return has_subresource(call, "status", KUBE_HAS_STATUS);
}

bool kube_is_scale(const struct kube_call *call)
{
    return has_subresource(call, "scale", KUBE_HAS_SCALE);
}

bool kube_is_namespaces(const struct kube_kind *kind)
{
    return !kind->group[0] && strcmp(kind->plural, "namespaces") == 0;
}

bool kube_is_finalize(const struct kube_call *call)
{
    return kube_is_namespaces(call->kind) &&
           slice_equal(call->path.subresource, SLICE_LITERAL("finalize"));
}

/* What Kubernetes issues tokens by: its clients shall hear more than that it is not there. */
static bool is_token_request(const struct kube_call *call)
{
    return !call->kind->group[0] && strcmp(call->kind->plural, "serviceaccounts") == 0 &&
           slice_equal(call->path.subresource, SLICE_LITERAL("token"));
}

/* What a kubelet would answer for a pod that runs. */
static bool is_of_running(const struct kube_call *call)
{
    static const char *const names[] = {"log", "exec", "attach", "portforward", "proxy"};
    if (call->kind->group[0] || strcmp(call->kind->plural, "pods") != 0)
        return false;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (slice_equal(call->path.subresource, slice_from_text(names[i])))
            return true;
    return false;
}

static void not_allowed(struct kube_call *call)
{
    kube_fail_bare(&call->status, KUBE_METHOD_NOT_ALLOWED,
                   "the server does not allow this method on the requested resource");
    kube_call_fail(call);
}

void kube_no_subresource(struct kube_call *call)
{
    if (kube_is_posting(call) || kube_is_finalize(call)) {
        not_allowed(call);
        return;
    }
    if (call->kind->flags & KUBE_CUSTOM) {
        kube_fail_not_found(&call->status, slice_from_text(call->kind->group),
                            slice_from_text(call->kind->plural), call->path.name);
        kube_call_fail(call);
        return;
    }
    if (is_token_request(call))
        kube_fail_bare(&call->status, KUBE_METHOD_NOT_ALLOWED,
                       "this server issues no tokens of service accounts: clients come in with "
                       "those of --kube-token-file or with certificates");
    else if (is_of_running(call))
        kube_fail_bare(&call->status, KUBE_METHOD_NOT_ALLOWED,
                       "pods do not run here: this server keeps objects and has no kubelet to ask "
                       "for logs, commands or ports");
    else
        kube_fail_bare(&call->status, KUBE_NOT_FOUND,
                       "the server could not find the requested resource");
    kube_call_fail(call);
}

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

/* An apply must say who applies, and nothing but an apply can be forced. */
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
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        found = found || slice_equal(query->field_validation, slice_from_text(known[i]));
    if (slice_equal(method, SLICE_LITERAL("PATCH")))
        check_apply(call, request);
    check_manager(call);
    if (query->dry_run_unknown)
        unsupported(call, "dryRun", "[", query->dry_run_text, "]", "\"All\"");
    if (!found && !slice_equal(method, SLICE_LITERAL("DELETE")))
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
    if (everywhere)
        return NULL;
    if (kube_is_finalize(call))
        return slice_equal(method, SLICE_LITERAL("PUT")) ? kube_update : NULL;
    if (kube_is_posting(call))
        return slice_equal(method, SLICE_LITERAL("POST")) ? kube_post : NULL;
    if (!call->kind->group[0] && strcmp(call->kind->plural, "bindings") == 0)
        return slice_equal(method, SLICE_LITERAL("POST")) && !named ? kube_post : NULL;
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

/* What is stored and does nothing must not look as if it guarded something. */
static void warn_of_admission(struct kube_call *call, struct slice method)
{
    char text[192];
    if (strcmp(call->kind->group, "admissionregistration.k8s.io") != 0 ||
        slice_equal(method, SLICE_LITERAL("DELETE")))
        return;
    snprintf(text, sizeof(text), "this server %s: this %s is stored and has no effect",
             strstr(call->kind->kind, "Webhook") ? "calls no admission webhooks"
                                                 : "evaluates no admission policies",
             call->kind->kind);
    kube_call_warn(call, slice_from_text(text));
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
        !kube_is_finalize(call) && !kube_is_posting(call)) {
        kube_no_subresource(call);
    } else if (!handle || call->path.watch) {
        not_allowed(call);
    } else if (check_options(call, request)) {
        warn_of_admission(call, request->method);
        handle(call, request);
    } else {
        kube_call_fail(call);
    }
    return true;
}
