#include "kubeclient/call/call.h"

#include "base/metric/counter.h"
#include "client/connect/error.h"
#include "codec/json/scanner.h"
#include "kubeclient/data/object.h"
#include "kubeclient/data/protobuf.h"
#include "kubeclient/data/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <vigil/kube/json.h>

#define TO(state) (1u << KUBE_CALL_##state)

/* Drawn in call.h. */
static const uint8_t moves[] = {
    [KUBE_CALL_CREATED] = TO(WAITING) | TO(COMPLETED),
    [KUBE_CALL_WAITING] = TO(SENT) | TO(COMPLETED),
    [KUBE_CALL_SENT] = TO(WAITING) | TO(PAUSING) | TO(COMPLETED),
    [KUBE_CALL_PAUSING] = TO(WAITING) | TO(COMPLETED),
    [KUBE_CALL_COMPLETED] = 0,
};

/* After a connection that broke, as in client-go. */
#define BROKEN_PAUSE_S 1

void kube_call_check(const struct vigil_kube_call *call)
{
    bool waits = call->turn.in_limiter.next && !list_empty(&call->turn.in_limiter);
    assert(atomic_load(&call->operation.refs) > 0);
    assert(!waits || call->state == KUBE_CALL_WAITING);
    assert((call->exchange.state == EXCHANGE_IDLE) == (call->state != KUBE_CALL_SENT));
    assert(call->pause.set == (call->state == KUBE_CALL_PAUSING));
    assert(!call->deadline.set || call->state != KUBE_CALL_COMPLETED);
    assert(call->retries <= KUBE_CALL_RETRIES_MAX);
    assert(call->received.len <= call->kube->receive_bytes_max);
    kube_exchange_check(&call->exchange);
}

/* -- Completion -- */

static void complete(struct vigil_kube_call *call)
{
    STATE_MOVE(call->state, moves, KUBE_CALL_COMPLETED);
    rate_waiter_cancel(&call->turn);
    kube_exchange_cancel(&call->exchange);
    loop_timer_cancel(call->kube->driver.loop, &call->deadline);
    loop_timer_cancel(call->kube->driver.loop, &call->pause);
    if (call->ops->release)
        call->ops->release(call);
    counter_add(&call->kube->counters.calls_completed, 1);
    operation_complete(&call->operation);
}

/* With an error that does not come from the server. */
static void fail(struct vigil_kube_call *call, enum vigil_code code, const char *text)
{
    /* As in client-go, the failure of an earlier attempt is named, because it may be the cause. */
    enum vigil_outcome outcome = call->may_be_sent ? VIGIL_UNKNOWN : VIGIL_NOT_SENT;
    if (*call->previous && strcmp(call->previous, text) != 0)
        client_error_set(&call->operation.error, code, outcome,
                         "%.100s - error from a previous attempt: %s", text, call->previous);
    else
        client_error_set(&call->operation.error, code, outcome, "%s", text);
    buf_fini(&call->received);
    complete(call);
}

/* The answer cannot be used. */
static void fail_for(struct vigil_kube_call *call, enum status status, const struct error *error)
{
    enum vigil_code code = status == ST_NOMEM   ? VIGIL_ERROR_MEMORY
                           : status == ST_LIMIT ? VIGIL_ERROR_TOO_LARGE
                                                : VIGIL_ERROR_PROTOCOL;
    fail(call, code, error->text[0] ? error->text : status_reason(status));
}

/* In any state. */
static void stop(struct operation *operation, enum vigil_code code, const char *text)
{
    struct vigil_kube_call *call = CONTAINER_OF(operation, struct vigil_kube_call, operation);
    if (call->state == KUBE_CALL_COMPLETED)
        return;
    /* A write may have taken effect even though its answer is not awaited any more. */
    call->may_be_sent |= call->exchange.state >= EXCHANGE_SENT &&
                         call->exchange.request.reached != POOL_REQUEST_UNREACHED;
    fail(call, code, text);
}

static void on_deadline(struct timer *timer)
{
    struct vigil_kube_call *call = CONTAINER_OF(timer, struct vigil_kube_call, deadline);
    char text[64];
    snprintf(text, sizeof(text), "no answer within %" PRId64 " ms", call->timeout_ms);
    stop(&call->operation, VIGIL_ERROR_TIMEOUT, text);
}

/* -- Attempts -- */

static void set_deadline(struct vigil_kube_call *call)
{
    if (call->timeout_ms > 0)
        loop_timer_set(call->kube->driver.loop, &call->deadline,
                       clock_add(clock_mono_ns(loop_clock(call->kube->driver.loop)),
                                 driver_ns(call->timeout_ms)));
}

static void send_now(struct vigil_kube_call *call)
{
    struct exchange_request request = {
        .method = call->method,
        .target = buf_slice(&call->target),
        .accept = call->accept,
        .content_type = call->body.len ? call->content_type : NULL,
        .body = buf_slice(&call->body),
    };
    enum status status = kube_exchange_start(&call->exchange, call->kube, &request);
    if (status == ST_OK)
        STATE_MOVE(call->state, moves, KUBE_CALL_SENT);
    /* The caller's texts may contain line breaks, which would add fields to the request. */
    else if (status == ST_INVALID)
        fail(call, VIGIL_ERROR_ARGUMENT, "the request contains bytes that cannot be sent");
    else
        fail(call, status == ST_NOMEM ? VIGIL_ERROR_MEMORY : VIGIL_ERROR_SYSTEM,
             status == ST_NOMEM ? "out of memory" : status_reason(status));
}

static void on_turn(struct rate_waiter *waiter)
{
    send_now(CONTAINER_OF(waiter, struct vigil_kube_call, turn));
}

static void wait_for_turn(struct vigil_kube_call *call)
{
    STATE_MOVE(call->state, moves, KUBE_CALL_WAITING);
    call->has_next = false;
    /* What arrived of an earlier answer does not belong to this attempt. */
    buf_fini(&call->received);
    if (!call->kube->limiter || rate_limiter_take(call->kube->limiter, &call->turn))
        send_now(call);
}

static void on_pause_over(struct timer *timer)
{
    wait_for_turn(CONTAINER_OF(timer, struct vigil_kube_call, pause));
}

static void try_again(struct vigil_kube_call *call, int64_t pause_s)
{
    counter_add(&call->kube->counters.calls_retried, 1);
    call->retries++;
    STATE_MOVE(call->state, moves, KUBE_CALL_PAUSING);
    loop_timer_set(call->kube->driver.loop, &call->pause,
                   clock_add(loop_now_ns(call->kube->driver.loop), pause_s * NS_PER_S));
}

/* -- Answers -- */

static enum status collect(struct vigil_kube_call *call, struct slice bytes, struct error *error)
{
    /* The server decides how long its answer is, so the limit is checked before memory is
     * allocated. */
    if (bytes.len > call->kube->receive_bytes_max - call->received.len)
        return error_set(error, ST_LIMIT, "the answer exceeds receive_bytes_max");
    return buf_append(&call->received, bytes);
}

/* "application/json; charset=utf-8" */
static bool is_media_type(struct slice content_type, const char *type)
{
    return http_name_equal(slice_trim(slice_cut(&content_type, ';')), slice_from_text(type));
}

static void on_head(struct kube_exchange *exchange, unsigned status,
                    const struct http_field *fields, size_t count)
{
    struct vigil_kube_call *call = CONTAINER_OF(exchange, struct vigil_kube_call, exchange);
    (void)status;
    call->may_be_sent = true;
    struct slice type = exchange_find_field(fields, count, SLICE_LITERAL("content-type"));
    call->is_json = is_media_type(type, "application/json");
    call->is_protobuf = is_media_type(type, "application/vnd.kubernetes.protobuf");
    if (call->ops->begin)
        call->ops->begin(call);
}

static void on_body(struct kube_exchange *exchange, struct slice bytes)
{
    struct vigil_kube_call *call = CONTAINER_OF(exchange, struct vigil_kube_call, exchange);
    struct error error = {0};
    enum status status =
        call->ops->receive ? call->ops->receive(call, bytes, &error) : collect(call, bytes, &error);
    if (status != ST_OK)
        fail_for(call, status, &error);
}

static bool is_json_object(struct slice json)
{
    struct json_scanner s;
    json_scanner_init(&s, json);
    return json_next(&s) == JSON_OBJECT && json_skip(&s, JSON_OBJECT) && json_next(&s) == JSON_END;
}

/* An answer that is not JSON or protobuf is only bytes, for instance the log of a pod. One without
 * a name, such as a review of permissions, has no vigil_kube_object. */
static enum status take_object(struct vigil_kube_call *call, struct error *error)
{
    struct slice body = buf_slice(&call->received);
    if (body.len == 0 || (!call->is_json && !call->is_protobuf))
        return ST_OK;
    if (call->is_protobuf ? !envelope_begins(body) : !is_json_object(body))
        return error_set(error, ST_MALFORMED, "the server's answer is not a valid object");
    enum status status = object_new(body, &call->object);
    return status == ST_MALFORMED ? ST_OK : status;
}

static enum vigil_code code_of(int status)
{
    switch (status) {
    case 401:
        return VIGIL_ERROR_UNAUTHENTICATED;
    case 403:
        return VIGIL_ERROR_PERMISSION_DENIED;
    case 429:
        return VIGIL_ERROR_TOO_MANY_REQUESTS;
    default:
        return VIGIL_ERROR_SERVER;
    }
}

/* A server that fails may have done something before. */
static void refuse(struct vigil_kube_call *call, const struct vigil_kube_status *status)
{
    call->refusal = malloc(sizeof(*call->refusal));
    if (!call->refusal) {
        fail(call, VIGIL_ERROR_MEMORY, "out of memory");
        return;
    }
    *call->refusal = *status;
    client_error_set(&call->operation.error, code_of(status->code),
                     status->code >= 500 ? VIGIL_UNKNOWN : VIGIL_REFUSED, "%s", status->message);
    complete(call);
}

/* As in client-go, a Status is an error unless it says otherwise. */
static bool is_failure(const struct vigil_kube_call *call, struct vigil_kube_status *status)
{
    vigil_bytes body = vigil_bytes_of(call->received.ptr, call->received.len), value;
    if (!call->is_json || !kube_status_read(buf_slice(&call->received), status))
        return false;
    return !vigil_json_find(body, "status", &value) || !vigil_json_is(value, "Success");
}

static void go_on(struct vigil_kube_call *call)
{
    if (call->has_next) {
        call->retries = 0;
        call->previous[0] = 0;
        /* Each page of a list has the full time. */
        set_deadline(call);
        wait_for_turn(call);
        return;
    }
    call->operation.error = (vigil_error){.grpc_code = -1};
    complete(call);
}

static void answered(struct vigil_kube_call *call)
{
    struct vigil_kube_status failure;
    struct error error = {0};
    if (is_failure(call, &failure)) {
        refuse(call, &failure);
        return;
    }
    enum status status = call->ops->end ? call->ops->end(call, &error) : take_object(call, &error);
    if (status == ST_OK)
        go_on(call);
    else
        fail_for(call, status, &error);
}

/* -- Ends of attempts -- */

static void refused(struct vigil_kube_call *call, const struct exchange_result *result)
{
    /* As in client-go, a call to a busy server is repeated only if the server says when. */
    bool is_busy = result->http_code == 429 || result->http_code >= 500;
    if (is_busy && result->retry_after_s >= 0 && call->retries < KUBE_CALL_RETRIES_MAX)
        try_again(call, result->retry_after_s);
    else if (call->ops->refused && call->ops->refused(call, result))
        go_on(call);
    else
        refuse(call, result->status);
}

static enum vigil_code failure_code(const struct exchange_result *result)
{
    switch (result->end) {
    case EXCHANGE_NO_MEMORY:
        return VIGIL_ERROR_MEMORY;
    case EXCHANGE_UNAUTHORIZED:
        return VIGIL_ERROR_UNAUTHENTICATED;
    case EXCHANGE_MALFORMED:
        return VIGIL_ERROR_PROTOCOL;
    case EXCHANGE_LIMIT:
        return result->may_be_sent ? VIGIL_ERROR_TOO_LARGE : VIGIL_ERROR_SYSTEM;
    default:
        return VIGIL_ERROR_UNAVAILABLE;
    }
}

static void on_end(struct kube_exchange *exchange, const struct exchange_result *result)
{
    struct vigil_kube_call *call = CONTAINER_OF(exchange, struct vigil_kube_call, exchange);
    /* One attempt that may have reached the server is enough. */
    call->may_be_sent |= result->may_be_sent;
    if (result->end == EXCHANGE_COMPLETE)
        answered(call);
    else if (result->end == EXCHANGE_REFUSED)
        refused(call, result);
    else if (result->end == EXCHANGE_BROKEN && strcmp(call->method, "GET") == 0 &&
             call->retries < KUBE_CALL_RETRIES_MAX) {
        /* A request that only reads is repeated. If the next attempt fails, too, its error names
         * this failure. */
        snprintf(call->previous, sizeof(call->previous), "%s", result->reason);
        try_again(call, BROKEN_PAUSE_S);
    } else {
        fail(call, failure_code(result), result->reason);
    }
}

static const struct exchange_ops exchange_ops = {
    .on_head = on_head, .on_body = on_body, .on_end = on_end};

/* -- Life -- */

static void begin(struct operation *operation)
{
    struct vigil_kube_call *call = CONTAINER_OF(operation, struct vigil_kube_call, operation);
    if (call->invalid) {
        complete(call);
        return;
    }
    counter_add(&call->kube->counters.calls_started, 1);
    set_deadline(call);
    wait_for_turn(call);
}

static void free_call(struct operation *operation)
{
    struct vigil_kube_call *call = CONTAINER_OF(operation, struct vigil_kube_call, operation);
    if (call->ops->release)
        call->ops->release(call);
    buf_fini(&call->target);
    buf_fini(&call->body);
    buf_fini(&call->received);
    buf_fini(&call->version);
    buf_fini(&call->next);
    vigil_kube_object_unref(call->object);
    free(call->refusal);
    free(call->texts);
    free(call);
}

static const struct operation_ops operation_ops = {.begin = begin, .stop = stop, .free = free_call};

struct vigil_kube_call *kube_call_create(struct vigil_kube *kube, const char *method, size_t bytes)
{
    static const struct kube_call_ops plain;
    struct vigil_kube_call *call = calloc(1, bytes);
    if (!call)
        return NULL;
    operation_init(&call->operation, &kube->driver, &operation_ops);
    call->kube = kube;
    call->ops = &plain;
    call->method = method;
    /* As in client-go. */
    call->accept = "application/json, */*";
    call->content_type = "application/json";
    call->timeout_ms = kube->call_timeout_ms;
    call->exchange.ops = &exchange_ops;
    call->turn.ready = on_turn;
    call->deadline.fn = on_deadline;
    call->pause.fn = on_pause_over;
    return call;
}

struct vigil_kube_call *kube_call_finish(struct vigil_kube_call *call, enum status status,
                                         const struct error *error)
{
    if (status == ST_OK)
        return call;
    if (status == ST_NOMEM) {
        vigil_kube_call_free(call);
        return NULL;
    }
    call->invalid = true;
    client_error_set(&call->operation.error, VIGIL_ERROR_ARGUMENT, VIGIL_NOT_SENT, "%s",
                     error->text);
    return call;
}

enum status kube_call_set_target(struct vigil_kube_call *call, struct slice target)
{
    call->target.len = 0;
    call->has_next = true;
    return buf_append(&call->target, target);
}

enum status kube_call_copy_text(struct buf *to, struct slice text)
{
    to->len = 0;
    TRY(buf_reserve(to, text.len + 1));
    slice_copy(to->ptr, text);
    to->ptr[text.len] = 0;
    to->len = text.len + 1;
    return ST_OK;
}

bool kube_call_is_wanted(const struct vigil_kube_call *call)
{
    return !atomic_load(&call->operation.canceled);
}

/* -- Public functions -- */

void vigil_kube_call_set_timeout(vigil_kube_call *call, int64_t timeout_ms)
{
    if (call && !atomic_load(&call->operation.started))
        call->timeout_ms = timeout_ms;
}

void vigil_kube_call_want_protobuf(vigil_kube_call *call)
{
    if (call && !atomic_load(&call->operation.started))
        call->accept = "application/vnd.kubernetes.protobuf,application/json";
}

static void make_callback(struct operation *operation)
{
    struct vigil_kube_call *call = CONTAINER_OF(operation, struct vigil_kube_call, operation);
    call->done(call, call->user);
}

int vigil_kube_call_start(vigil_kube_call *call, vigil_kube_done done, void *user)
{
    int code = operation_claim(call ? &call->operation : NULL);
    if (code != VIGIL_OK)
        return code;
    call->done = done;
    call->user = user;
    call->operation.done = done ? make_callback : NULL;
    return operation_post(&call->operation);
}

int vigil_kube_call_run(vigil_kube_call *call)
{
    return operation_run(call ? &call->operation : NULL);
}

void vigil_kube_call_cancel(vigil_kube_call *call)
{
    operation_cancel(call ? &call->operation : NULL);
}

void vigil_kube_call_free(vigil_kube_call *call)
{
    operation_free(call ? &call->operation : NULL);
}

const vigil_error *vigil_kube_call_error(const vigil_kube_call *call)
{
    return operation_error(call ? &call->operation : NULL);
}

const vigil_kube_status *vigil_kube_call_status(const vigil_kube_call *call)
{
    static const vigil_kube_status none = {.retry_after_s = -1};
    return call && operation_has_completed(&call->operation) && call->refusal ? call->refusal
                                                                              : &none;
}

static bool has_succeeded(const struct vigil_kube_call *call)
{
    return call && operation_has_completed(&call->operation) &&
           call->operation.error.code == VIGIL_OK;
}

vigil_bytes vigil_kube_call_body(const vigil_kube_call *call)
{
    if (!has_succeeded(call))
        return vigil_bytes_of(NULL, 0);
    return vigil_bytes_of(call->received.ptr, call->received.len);
}

const vigil_kube_object *vigil_kube_call_object(const vigil_kube_call *call)
{
    return has_succeeded(call) ? call->object : NULL;
}

static const char *text_of(const struct vigil_kube_call *call, const struct buf *text)
{
    return has_succeeded(call) && text->len ? (const char *)text->ptr : "";
}

const char *vigil_kube_call_version(const vigil_kube_call *call)
{
    return call ? text_of(call, &call->version) : "";
}

const char *vigil_kube_call_continue(const vigil_kube_call *call)
{
    return call ? text_of(call, &call->next) : "";
}

void *vigil_kube_call_user(const vigil_kube_call *call)
{
    return call ? call->user : NULL;
}
