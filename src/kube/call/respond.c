#include "kube/call/respond.h"

#include "codec/json/pretty.h"
#include "kube/call/call.h"
#include "kube/call/conversion.h"
#include "kube/call/format.h"
#include "kube/call/shape.h"
#include "kube/call/warning.h"
#include "zip/gzip.h"

#include <stdio.h>

/* -- Bodies -- */

/* Clients that people use by hand get indented JSON unless the query says otherwise. */
static bool wants_pretty(const struct kube_call *call)
{
    static const char *const agents[] = {"curl", "Wget", "Mozilla/5.0"};
    struct slice agent = SLICE_EMPTY;
    if (call->accept.pretty)
        return true;
    if (call->query.pretty_given)
        return call->query.pretty;
    (void)http_request_get(call->request, SLICE_LITERAL("user-agent"), &agent);
    for (size_t i = 0; i < COUNT_OF(agents); i++) {
        struct slice name = slice_from_text(agents[i]);
        if (agent.len >= name.len && slice_equal(slice_sub(agent, 0, name.len), name))
            return true;
    }
    return false;
}

/* Shorter bodies are not compressed, as in Kubernetes. */
enum { GZIP_BYTES_MIN = 128 * 1024 };

/* In the requested format, or in JSON if the object cannot be represented in it. */
static enum status make_body(struct kube_call *call, struct slice json, enum kube_format *format,
                             struct buf *to)
{
    *format = call->accept.format;
    enum status status = ST_NOT_FOUND;
    if (*format != KUBE_JSON)
        status = kube_format_write(*format, json, to);
    if (status == ST_OK || status == ST_NOMEM)
        return status;
    *format = KUBE_JSON;
    to->len = 0;
    /* A text that would become too large with indentation is sent as it is. */
    status = wants_pretty(call) ? json_pretty(json, to) : ST_LIMIT;
    if (status != ST_LIMIT)
        return status;
    buf_reset(to, 0);
    return buf_append(to, json);
}

static enum status make_answer(struct kube_call *call, struct slice json,
                               struct kube_answer *answer)
{
    answer->body = json;
    if (call->accept.format != KUBE_JSON || wants_pretty(call)) {
        TRY(make_body(call, json, &answer->format, &answer->made));
        answer->body = buf_slice(&answer->made);
    }
    if (answer->body.len > GZIP_BYTES_MIN && http_accepts_gzip(call->request)) {
        AUTO(buf_fini) struct buf packed = {0};
        TRY(gzip(answer->body, &packed));
        buf_fini(&answer->made);
        answer->made = packed;
        packed = (struct buf){0};
        answer->body = buf_slice(&answer->made);
        answer->packed = true;
        return ST_OK;
    }
    return ST_OK;
}

size_t kube_call_format_work(const struct kube_call *call, size_t bytes)
{
    bool plain = call->accept.format == KUBE_JSON && !wants_pretty(call) &&
                 (bytes <= GZIP_BYTES_MIN || !http_accepts_gzip(call->request));
    return plain ? 0 : bytes;
}

size_t kube_call_answer_work(const struct kube_call *call, size_t bytes, int64_t revision)
{
    bool plain = bytes <= KUBE_WORK_BYTES_MAX || (call->accept.shape == KUBE_WHOLE &&
                                                  kube_conversion_is_plain(call->kind, revision) &&
                                                  !kube_call_format_work(call, bytes));
    return plain ? 0 : bytes;
}

/* -- Answers -- */

static bool add_field(struct kube_call *call, const char *name, const char *value)
{
    if (http_add_field(call->exchange, slice_from_text(name), slice_from_text(value)) == ST_OK)
        return true;
    /* There is no memory for the field, and an answer without it might be misunderstood. */
    http_abort(call->exchange);
    return false;
}

/* A warning for which there is no room is omitted. */
static void add_warning(void *ctx, struct slice value)
{
    struct kube_call *call = ctx;
    (void)!http_add_field(call->exchange, SLICE_LITERAL("Warning"), value);
}

/* After all other fields. */
static void add_warnings(struct kube_call *call)
{
    if (call->warnings.len)
        kube_warning_fields(buf_slice(&call->warnings), add_warning, call);
}

static void send_answer(struct kube_call *call)
{
    struct kube_answer *answer = &call->work.answer;
    call->code = answer->code;
    kube_write_queue_leave(&call->ticket);
    kube_write_queue_leave(&call->quota_ticket);
    if (!add_field(call, "Cache-Control", "no-cache, private") ||
        (answer->packed && !add_field(call, "Content-Encoding", "gzip")))
        return;
    add_warnings(call);
    /* http_respond copies the body, and the call may be gone when it returns. */
    struct buf made = answer->made;
    answer->made = (struct buf){0};
    http_respond(call->exchange, answer->code, kube_format_type(answer->format), answer->body);
    buf_fini(&made);
}

/* The text of the cluster for this error of the last operation; empty: there is none. */
static struct slice cluster_text(const struct kube_call *call, enum status status)
{
    const struct engine_op *read = &call->range.op, *write = &call->write.engine.op;
    if (write->status == status && write->text.len)
        return write->text;
    return read->status == status ? read->text : SLICE_EMPTY;
}

bool kube_call_set_engine(struct kube_call *call, enum status status)
{
    struct slice text = cluster_text(call, status);
    struct kube_status *answer = &call->status;
    kube_fail_engine(answer, status);
    if (!text.len)
        return false;
    /* What the cluster denies to the server's own user is not the fault of the client. */
    if (call->principal.is_server && status_code(status) == GRPC_PERMISSION_DENIED)
        kube_fail(answer, KUBE_INTERNAL_ERROR,
                  "Internal error occurred: the cluster denies it to the user of this server, see "
                  "--upstream-user: %.*s",
                  SLICE_ARGS(text));
    else if (status == ST_LIMIT) /* a range that is longer than what is forwarded */
        kube_fail_later(answer, text);
    /* The cluster's text says more than the text of the code. */
    else if (answer->reason == KUBE_INTERNAL_ERROR)
        kube_fail(answer, KUBE_INTERNAL_ERROR, "Internal error occurred: %.*s", SLICE_ARGS(text));
    else if (answer->reason == KUBE_SERVICE_UNAVAILABLE)
        kube_fail(answer, KUBE_SERVICE_UNAVAILABLE, "%.*s", SLICE_ARGS(text));
    return false;
}

void kube_call_fail_engine(struct kube_call *call, enum status status)
{
    (void)kube_call_set_engine(call, status);
    kube_call_fail(call);
}

bool kube_call_succeeded(struct kube_call *call, enum status status)
{
    if (!kube_call_done(call))
        return false;
    if (status != ST_OK)
        kube_call_fail_engine(call, status);
    return status == ST_OK;
}

bool kube_call_not_found(struct kube_call *call)
{
    return kube_fail_not_found(&call->status, slice_from_text(call->kind->group),
                               slice_from_text(call->kind->plural), call->path.name);
}

static void break_off(struct kube_call *call)
{
    http_abort(call->exchange);
}

void kube_call_respond(struct kube_call *call, unsigned code, struct slice json)
{
    /* An answer made after an allocation has failed may be wrong, unless it reports that failure.
     */
    if (UNLIKELY(arena_ran_out(&call->arena)) && !kube_code_is_no_memory(code)) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    struct kube_answer *answer = &call->work.answer;
    *answer = (struct kube_answer){.code = code};
    enum status status = make_answer(call, json, answer);
    /* The JSON is only borrowed and may be freed before the call is back. */
    if (status == ST_OK && call->work.away && answer->body.ptr == json.ptr)
        status = arena_dup(&call->arena, json, &answer->body);
    void (*end)(struct kube_call * call) = status == ST_OK ? send_answer : break_off;
    if (!kube_call_defers(call, end))
        end(call);
}

void kube_call_begin(struct kube_call *call, unsigned code, struct slice content_type)
{
    call->code = code;
    if (!add_field(call, "Cache-Control", "no-cache, private"))
        return;
    add_warnings(call);
    http_begin(call->exchange, code, content_type);
}

void kube_call_fail(struct kube_call *call)
{
    struct buf text = {0};
    char seconds[16];
    if (kube_call_defers(call, kube_call_fail))
        return;
    kube_call_use_set_aside(call);
    /* An error found after an allocation has failed may be wrong. After a write the status must not
     * ask the client to try again: it would write twice. */
    if (arena_ran_out(&call->arena) && !kube_code_is_no_memory(kube_status_code(&call->status)))
        kube_fail_engine(&call->status, ST_NOMEM);
    if (call->written && call->status.reason == KUBE_TOO_MANY_REQUESTS) {
        const struct kube_status refused = call->status;
        kube_fail(&call->status, KUBE_INTERNAL_ERROR,
                  "Internal error occurred: the change was made, but it cannot be answered: %s",
                  refused.message);
    }
    /* A Status has no Table, so an error is sent in the format but not in the shape that the client
     * asked for. */
    call->accept = call->accept_fail;
    snprintf(seconds, sizeof(seconds), "%u", call->status.retry_after_s);
    if (kube_status_write(&call->status, &text) != ST_OK)
        http_abort(call->exchange);
    else if (!call->status.retry_after_s || add_field(call, "Retry-After", seconds))
        kube_call_respond(call, kube_status_code(&call->status), buf_slice(&text));
    buf_fini(&text);
}

bool kube_call_object(struct kube_call *call, struct slice json, int64_t revision,
                      struct slice *ret_json)
{
    struct kube_object object = {0};
    struct slice seen = json;
    kube_call_use_set_aside(call);
    if (kube_conversion_concerns(call->kind) && !call->converted &&
        !kube_conversion_bytes(call, json, revision, &seen))
        return false;
    bool whole = call->accept.shape == KUBE_WHOLE;
    if ((whole ? kube_object_parse_head : kube_object_parse)(seen, &object) != ST_OK)
        return kube_fail_stored(&call->status);
    if (!whole) {
        AUTO(buf_fini) struct buf text = {0};
        struct kube_shaping shaping = kube_shaping_of(call);
        if (!kube_shape_fits(call, false))
            return false;
        enum status status = kube_shape_single(&shaping, &object, revision, true, &text);
        if (status == ST_OK)
            status = arena_dup(&call->arena, buf_slice(&text), ret_json);
        return status == ST_OK || kube_fail_engine(&call->status, status);
    }
    /* The stored bytes are copied with the revision inserted, without parsing the object into a
     * tree. */
    size_t size = kube_object_size(&object, revision, false);
    uint8_t *bytes = arena_alloc(&call->arena, size);
    if (!bytes)
        return kube_fail_engine(&call->status, ST_NOMEM);
    kube_object_copy(&object, revision, false, 0, bytes, size);
    *ret_json = slice_of(bytes, size);
    return true;
}
