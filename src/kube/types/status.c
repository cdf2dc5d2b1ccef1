#include "kube/types/status.h"

#include "codec/json/writer.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name;
    unsigned code;
} reasons[] = {
    [KUBE_OK] = {"", 200},
    [KUBE_BAD_REQUEST] = {"BadRequest", 400},
    [KUBE_UNAUTHORIZED] = {"Unauthorized", 401},
    [KUBE_FORBIDDEN] = {"Forbidden", 403},
    [KUBE_NOT_FOUND] = {"NotFound", 404},
    [KUBE_METHOD_NOT_ALLOWED] = {"MethodNotAllowed", 405},
    [KUBE_NOT_ACCEPTABLE] = {"NotAcceptable", 406},
    [KUBE_ALREADY_EXISTS] = {"AlreadyExists", 409},
    [KUBE_CONFLICT] = {"Conflict", 409},
    [KUBE_GONE] = {"Gone", 410},
    [KUBE_EXPIRED] = {"Expired", 410},
    [KUBE_TOO_LARGE] = {"RequestEntityTooLarge", 413},
    [KUBE_UNSUPPORTED_MEDIA_TYPE] = {"UnsupportedMediaType", 415},
    [KUBE_INVALID] = {"Invalid", 422},
    [KUBE_TOO_MANY_REQUESTS] = {"TooManyRequests", 429},
    [KUBE_INTERNAL_ERROR] = {"InternalError", 500},
    [KUBE_SERVICE_UNAVAILABLE] = {"ServiceUnavailable", 503},
    [KUBE_TIMEOUT] = {"Timeout", 504},
    [KUBE_STORAGE_READ_ERROR] = {"StorageReadError", 500},
    [KUBE_UNKNOWN] = {"", 500},
};

bool kube_code_is_no_memory(unsigned code)
{
    return code == 413 || code == 429 || code >= 500;
}

unsigned kube_status_code(const struct kube_status *status)
{
    return status->code ? status->code : reasons[status->reason].code;
}

bool kube_fail(struct kube_status *status, enum kube_reason reason, const char *format, ...)
{
    va_list args;
    *status = (struct kube_status){.reason = reason};
    va_start(args, format);
    vsnprintf(status->message, sizeof(status->message), format, args);
    va_end(args);
    return false;
}

bool kube_fail_bare(struct kube_status *status, enum kube_reason reason, const char *text)
{
    kube_fail(status, reason, "%s", text);
    status->bare = true;
    return false;
}

/* Returns "deployments.apps", or "pods" for the core group. */
static const char *qualified(struct slice group, struct slice plural, char to[256])
{
    snprintf(to, 256, "%.*s%s%.*s", SLICE_ARGS(plural), group.len ? "." : "", SLICE_ARGS(group));
    return to;
}

static bool with_details(struct kube_status *status, struct slice group, struct slice plural,
                         struct slice name)
{
    status->group = group;
    status->kind = plural;
    status->name = name;
    return false;
}

bool kube_fail_not_found(struct kube_status *status, struct slice group, struct slice plural,
                         struct slice name)
{
    char resource[256];
    kube_fail(status, KUBE_NOT_FOUND, "%s \"%.*s\" not found", qualified(group, plural, resource),
              SLICE_ARGS(name));
    return with_details(status, group, plural, name);
}

bool kube_fail_exists(struct kube_status *status, struct slice group, struct slice plural,
                      struct slice name)
{
    char resource[256];
    kube_fail(status, KUBE_ALREADY_EXISTS, "%s \"%.*s\" already exists",
              qualified(group, plural, resource), SLICE_ARGS(name));
    return with_details(status, group, plural, name);
}

bool kube_fail_conflict(struct kube_status *status, struct slice group, struct slice plural,
                        struct slice name, const char *why)
{
    char resource[256];
    kube_fail(status, KUBE_CONFLICT, "Operation cannot be fulfilled on %s \"%.*s\": %s",
              qualified(group, plural, resource), SLICE_ARGS(name),
              why ? why
                  : "the object has been modified; please apply your changes to the latest "
                    "version and try again");
    return with_details(status, group, plural, name);
}

bool kube_fail_forbidden(struct kube_status *status, struct slice group, struct slice plural,
                         struct slice name, const char *why)
{
    char resource[256];
    kube_fail(status, KUBE_FORBIDDEN, "%s \"%.*s\" is forbidden: %s",
              qualified(group, plural, resource), SLICE_ARGS(name), why);
    return with_details(status, group, plural, name);
}

bool kube_fail_not_allowed(struct kube_status *status)
{
    return kube_fail_bare(status, KUBE_METHOD_NOT_ALLOWED,
                          "the server does not allow this method on the requested resource");
}

bool kube_fail_future(struct kube_status *status, int64_t requested, int64_t current)
{
    kube_fail(status, KUBE_TIMEOUT, "Timeout: Too large resource version: %lld, current: %lld",
              (long long)requested, (long long)current);
    kube_status_cause(status, "ResourceVersionTooLarge", "", "Too large resource version");
    /* Clients of Kubernetes' Go library repeat the request after this time. */
    status->retry_after_s = 1;
    return false;
}

bool kube_fail_expired(struct kube_status *status, int64_t requested, int64_t oldest)
{
    return kube_fail(status, KUBE_EXPIRED, "too old resource version: %lld (%lld)",
                     (long long)requested, (long long)oldest);
}

bool kube_fail_too_long(struct kube_status *status, int limit)
{
    return kube_fail(status, KUBE_TOO_LARGE, "Request entity too large: limit is %d", limit);
}

bool kube_fail_stored(struct kube_status *status)
{
    return kube_fail(status, KUBE_STORAGE_READ_ERROR,
                     "Internal error occurred: the stored value is not a JSON object");
}

bool kube_fail_invalid(struct kube_status *status, struct slice group, struct slice kind,
                       struct slice name)
{
    char resource[256];
    char *text = status->message;
    size_t room = sizeof(status->message);
    /* Go's aggregate of errors has brackets around more than one. */
    bool many = status->cause_count > 1;
    int len = snprintf(text, room, "%s \"%.*s\" is invalid: %s", qualified(group, kind, resource),
                       SLICE_ARGS(name), many ? "[" : "");
    for (size_t i = 0; i < status->cause_count && (size_t)len < room; i++) {
        const struct kube_cause *cause = &status->causes[i];
        bool last = i + 1 == status->cause_count;
        len +=
            snprintf(text + len, room - (size_t)len, "%s%s%s%s", cause->field,
                     cause->field[0] ? ": " : "", cause->message, last ? (many ? "]" : "") : ", ");
    }
    status->reason = KUBE_INVALID;
    return with_details(status, group, kind, name);
}

bool kube_fail_later(struct kube_status *status, struct slice text)
{
    kube_fail(status, KUBE_TOO_MANY_REQUESTS, "%.*s", SLICE_ARGS(text));
    status->retry_after_s = 1;
    return false;
}

bool kube_fail_engine(struct kube_status *status, enum status engine)
{
    switch (engine) {
    case ST_REQUEST_TOO_LARGE:
        return kube_fail(status, KUBE_TOO_LARGE, "Request entity too large: %s",
                         status_text(engine));
    /* JSON that is nested more deeply than a tree may be. */
    case ST_LIMIT:
        return kube_fail(status, KUBE_BAD_REQUEST, "exceeded max depth");
    case ST_NOMEM:
        return kube_fail_later(status, slice_from_text(status_text(engine)));
    case ST_REQUEST_TOO_MANY_REQUESTS:
        return kube_fail_later(status, slice_from_text(status_text(engine)));
    case ST_NOT_SYNCED: /* as the watch cache of a kube-apiserver that has not read its storage */
        return kube_fail_later(status, SLICE_LITERAL("storage is (re)initializing"));
    case ST_NO_SPACE:
        return kube_fail(status, KUBE_UNKNOWN, "%s", status_text(engine));
    case ST_COMPACTED:
        return kube_fail(status, KUBE_EXPIRED,
                         "The resourceVersion for the provided watch is too old.");
    case ST_TIMEOUT: /* the outcome of all these is unknown, so there is no Retry-After */
    case ST_TIMEOUT_DUE_TO_LEADER_FAIL:
    case ST_TIMEOUT_DUE_TO_CONNECTION_LOST:
    case ST_TIMEOUT_WAIT_APPLIED_INDEX:
    case ST_DEADLINE_EXCEEDED:
    case ST_LEADER_CHANGED:
        return kube_fail(status, KUBE_TIMEOUT, "Timeout: %s", status_text(engine));
    case ST_USER_EMPTY:
    case ST_PERMISSION_DENIED:
        return kube_fail(status, KUBE_UNAUTHORIZED, "Unauthorized");
    case ST_NO_LEADER:
    case ST_UNHEALTHY:
    case ST_AGAIN:
    case ST_STOPPED:
        return kube_fail(status, KUBE_SERVICE_UNAVAILABLE, "%s", status_text(engine));
    default:
        return kube_fail(status, KUBE_INTERNAL_ERROR, "Internal error occurred: %s",
                         status_text(engine));
    }
}

void kube_status_cause(struct kube_status *status, const char *reason, const char *field,
                       const char *message)
{
    /* Further causes are dropped: the client learns of them when it has corrected these. */
    if (status->cause_count == KUBE_CAUSES_MAX)
        return;
    struct kube_cause *cause = &status->causes[status->cause_count++];
    cause->reason = reason;
    snprintf(cause->field, sizeof(cause->field), "%s", field);
    snprintf(cause->message, sizeof(cause->message), "%s", message);
}

/* -- Writing -- */

static void member(struct json_writer *w, const char *key, struct slice value)
{
    if (!value.len)
        return;
    json_member_string(w, key, value);
}

static void write_cause(struct json_writer *w, const char *reason, struct slice message,
                        struct slice field)
{
    json_begin_object(w);
    member(w, "reason", slice_from_text(reason));
    member(w, "message", message);
    member(w, "field", field);
    json_end_object(w);
}

/* Kubernetes repeats the text of an internal error as a cause. */
static struct slice inner_error(const struct kube_status *status)
{
    static const char prefix[] = "Internal error occurred: ";
    size_t len = strlen(prefix);
    bool internal =
        status->reason == KUBE_INTERNAL_ERROR && strncmp(status->message, prefix, len) == 0;
    return slice_from_text(internal ? status->message + len : "");
}

static bool has_causes(const struct kube_status *status)
{
    return status->cause_count || status->errors || inner_error(status).len;
}

static void write_causes(const struct kube_status *status, struct json_writer *w)
{
    if (!has_causes(status))
        return;
    json_member_array(w, "causes");
    if (inner_error(status).len)
        write_cause(w, "", inner_error(status), SLICE_EMPTY);
    for (size_t i = 0; i < status->cause_count; i++) {
        const struct kube_cause *cause = &status->causes[i];
        write_cause(w, cause->reason, slice_from_text(cause->message),
                    slice_from_text(cause->field));
    }
    for (const struct kube_field_error *fault = status->errors; fault; fault = fault->next)
        write_cause(w, fault->reason, fault->message, fault->field);
    json_end_array(w);
}

static void write_details(const struct kube_status *status, struct json_writer *w)
{
    if (!status->name.len && !status->group.len && !status->kind.len && !status->uid.len &&
        !has_causes(status) && !status->retry_after_s && !status->bare)
        return;
    json_member_object(w, "details");
    member(w, "name", status->name);
    member(w, "group", status->group);
    member(w, "kind", status->kind);
    member(w, "uid", status->uid);
    write_causes(status, w);
    if (status->retry_after_s) {
        json_member_i64(w, "retryAfterSeconds", status->retry_after_s);
    }
    json_end_object(w);
}

static void write_object(const struct kube_status *status, struct json_writer *w)
{
    bool success = status->reason == KUBE_OK;
    if (status->whole.len) {
        json_raw(w, status->whole);
        return;
    }
    json_begin_object(w);
    member(w, "kind", SLICE_LITERAL("Status"));
    member(w, "apiVersion", SLICE_LITERAL("v1"));
    json_member_object(w, "metadata");
    member(w, "continue", status->continue_token);
    json_end_object(w);
    member(w, "status", success ? SLICE_LITERAL("Success") : SLICE_LITERAL("Failure"));
    member(w, "message",
           status->long_message.len ? status->long_message : slice_from_text(status->message));
    member(w, "reason", slice_from_text(reasons[status->reason].name));
    write_details(status, w);
    if (!success) {
        json_member_i64(w, "code", kube_status_code(status));
    }
    json_end_object(w);
}

enum status kube_status_write(const struct kube_status *status, struct buf *to)
{
    struct json_writer w;
    json_writer_init(&w, to);
    write_object(status, &w);
    return json_writer_finish(&w);
}

enum status kube_status_write_event(const struct kube_status *status, struct buf *to)
{
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    member(&w, "type", SLICE_LITERAL("ERROR"));
    json_key(&w, "object");
    write_object(status, &w);
    json_end_object(&w);
    TRY(json_writer_finish(&w));
    return buf_append_text(to, "\n");
}
