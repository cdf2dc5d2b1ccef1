#include "kubeclient/watch/watch_request.h"

#include "base/metric/counter.h"
#include "kubeclient/data/status.h"
#include "kubeclient/watch/watch_status.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    REASON_BYTES = 1024,
    TIMEOUT_KNOWN_MAX_S = 365 * 24 * 3600, /* a longer one is as good as none */
};

/* After a connection broke, as in client-go. */
#define BROKEN_WAIT_NS NS_PER_S

/* After the time at which the server was to end the watch. */
#define SILENCE_MAX_NS (30 * NS_PER_S)

/* What the attempts need until one is accepted. One allocation, except for the error. */
struct watch_attempts {
    int64_t started_ns;   /* the attempt under way */
    char *previous_error; /* owned; of a connection; NULL: none */
    const char *accept;
    bool after_backoff; /* it waits for the end of the server's back-off */
    size_t target_len;
    uint8_t target[];
};

/* An event that is being delivered, on the stack: the request may be gone when on_event returns. */
struct watch_delivery {
    bool canceled;
    struct buf held, rest; /* what the event may refer to; taken over when it was canceled */
};

#define TO(state) (1u << WATCH_REQUEST_##state)

/* Drawn in watch_request.h. */
static const uint8_t moves[] = {
    [WATCH_REQUEST_IDLE] = TO(WAITING) | TO(REQUESTING),
    [WATCH_REQUEST_WAITING] = TO(REQUESTING) | TO(WAITING) | TO(IDLE),
    [WATCH_REQUEST_REQUESTING] = TO(WAITING) | TO(RECEIVING) | TO(IDLE),
    [WATCH_REQUEST_RECEIVING] = TO(ENDING) | TO(IDLE),
    [WATCH_REQUEST_ENDING] = TO(IDLE),
};

static struct loop *loop_of(const struct watch_request *request)
{
    return request->kube->driver.loop;
}

static int64_t now_of(const struct watch_request *request)
{
    return loop_now_ns(loop_of(request));
}

/* -- The end -- */

static void attempts_free(struct watch_attempts *attempts)
{
    if (attempts)
        free(attempts->previous_error);
    free(attempts);
}
DEFINE_CLEANUP(struct watch_attempts *, attempts_free)

/* An event that is being delivered stays valid until its function returns. */
static void leave_delivery(struct watch_request *request)
{
    struct watch_delivery *delivery = request->delivery;
    if (!delivery)
        return;
    delivery->canceled = true;
    delivery->held = request->framer.held;
    delivery->rest = request->rest;
    request->framer.held = request->rest = (struct buf){0};
    request->delivery = NULL;
}

void watch_request_cancel(struct watch_request *request)
{
    if (request->state == WATCH_REQUEST_IDLE)
        return;
    leave_delivery(request);
    kube_exchange_cancel(&request->exchange);
    loop_timer_cancel(loop_of(request), &request->timer);
    loop_timer_cancel(loop_of(request), &request->silence);
    framer_fini(&request->framer);
    buf_fini(&request->rest);
    request->rest_used = 0;
    attempts_free(request->attempts);
    request->attempts = NULL;
    free(request->late_reason);
    request->late_reason = NULL;
    atomic_fetch_sub_explicit(&request->kube->counters.watches, 1, memory_order_relaxed);
    STATE_MOVE(request->state, moves, WATCH_REQUEST_IDLE);
}

/* The texts are not the request's. */
static void finish(struct watch_request *request, enum watch_end end, const char *reason,
                   const struct vigil_kube_status *status)
{
    struct watch_result result = {.end = end, .reason = reason, .status = status};
    watch_request_cancel(request);
    request->ops->on_end(request, &result);
}

static void finish_silently(struct watch_request *request, enum watch_end end, const char *reason)
{
    char text[REASON_BYTES];
    snprintf(text, sizeof(text), "%s", reason);
    finish(request, end, text, NULL);
}

static void finish_without_memory(struct watch_request *request)
{
    struct vigil_kube_status status;
    watch_status_set(&status, 0, "OutOfMemory", "out of memory");
    finish(request, WATCH_END_NO_MEMORY, status.message, &status);
}

/* The text of an error, and of one before it that may explain more. */
static void wrap_previous(const struct watch_request *request, const char *reason,
                          char text[static REASON_BYTES])
{
    const char *previous = request->attempts ? request->attempts->previous_error : NULL;
    if (previous && strcmp(previous, reason) != 0)
        snprintf(text, REASON_BYTES, "%s - error from a previous attempt: %s", reason, previous);
    else
        snprintf(text, REASON_BYTES, "%s", reason);
}

/* code is 0 if the server was not reached, otherwise 500. */
static void finish_failed(struct watch_request *request, int code, const char *reason)
{
    struct vigil_kube_status status;
    char text[REASON_BYTES];
    wrap_previous(request, reason, text);
    watch_status_set(&status, code, code ? "InternalError" : "", text);
    finish(request, WATCH_END_FAILED, text, &status);
}

static void finish_undecodable(struct watch_request *request, const char *fault)
{
    struct vigil_kube_status status;
    watch_status_undecodable(&status, fault);
    finish(request, WATCH_END_UNDECODABLE, status.causes[0].message, &status);
}

/* -- Events -- */

static void fail_delivery(struct watch_request *request, enum status status, const char *text)
{
    if (status == ST_NOMEM)
        finish_without_memory(request);
    else if (status == ST_LIMIT)
        finish_undecodable(request, "an event is longer than 16 MiB");
    else
        finish_undecodable(request, text);
}

/* Delivers until the events are withheld. False: the request has been canceled, or is over. */
static bool deliver(struct watch_request *request, struct slice bytes)
{
    struct watch_delivery delivery = {0};
    struct vigil_kube *kube = request->kube;
    struct received_event event;
    struct error error;
    enum status status = ST_OK;
    uint64_t events = 0;
    framer_feed(&request->framer, bytes);
    /* It is forgotten before the function returns, unless the request is canceled and gone. */
    /* cppcheck-suppress autoVariables */
    request->delivery = &delivery;
    while (!request->withheld &&
           (status = received_event_next(&request->framer, &event, &error)) == ST_OK) {
        events++;
        request->ops->on_event(request, &event);
        if (delivery.canceled)
            break;
    }
    counter_add(&kube->counters.watch_events, events);
    buf_fini(&delivery.held);
    buf_fini(&delivery.rest);
    if (delivery.canceled)
        return false;
    request->delivery = NULL;
    if (status == ST_OK || status == ST_AGAIN)
        return true;
    fail_delivery(request, status, error.text);
    return false;
}

/* -- What is withheld -- */

/* False: the request is over. */
static bool keep(struct watch_request *request, struct slice bytes)
{
    if (bytes.len > WATCH_WITHHELD_BYTES_MAX - (request->rest.len - request->rest_used)) {
        finish_undecodable(request, "the server sends although it was stopped");
        return false;
    }
    if (buf_append(&request->rest, bytes) == ST_OK)
        return true;
    finish_without_memory(request);
    return false;
}

static void finish_received(struct watch_request *request, enum watch_end end, const char *reason)
{
    if (end == WATCH_END_UNDECODABLE)
        finish_undecodable(request, reason);
    else if (end == WATCH_END_NO_MEMORY)
        finish_without_memory(request);
    else if (framer_is_cut_off(&request->framer) && end == WATCH_END_COMPLETE)
        finish_silently(request, WATCH_END_CUT_OFF, "the server ended the watch within an event");
    else
        finish_silently(request, end, reason);
}

static void deliver_rest(struct watch_request *request)
{
    struct slice rest = buf_slice(&request->rest);
    rest = slice_sub(rest, request->rest_used, rest.len - request->rest_used);
    if (!deliver(request, rest))
        return;
    rest = framer_take_rest(&request->framer);
    request->rest_used = request->rest.len - rest.len;
    if (request->withheld)
        return;
    buf_reset(&request->rest, 0);
    request->rest_used = 0;
    if (request->state != WATCH_REQUEST_ENDING) {
        kube_exchange_withhold(&request->exchange, false);
        return;
    }
    /* The request ended while its events were withheld. The reason is copied, since it belongs to
     * the request, which may be gone when it is reported. */
    char reason[REASON_BYTES];
    snprintf(reason, sizeof(reason), "%s", request->late_reason ? request->late_reason : "");
    finish_received(request, request->late_end, reason);
}

/* The server may only send more when nothing is kept: otherwise every pause could add to that. */
void watch_request_withhold(struct watch_request *request, bool withhold)
{
    if (request->withheld == withhold)
        return;
    request->withheld = withhold;
    if (!withhold && (request->rest.len || request->state == WATCH_REQUEST_ENDING))
        loop_timer_set(loop_of(request), &request->timer, now_of(request));
    else if (request->state == WATCH_REQUEST_RECEIVING)
        kube_exchange_withhold(&request->exchange, withhold);
}

/* -- Attempts -- */

static enum status send_request(struct watch_request *request)
{
    struct watch_attempts *attempts = request->attempts;
    struct exchange_request exchange = {
        .method = "GET",
        .target = slice_of(attempts->target, attempts->target_len),
        .accept = attempts->accept,
        .waits = true,
    };
    attempts->started_ns = now_of(request);
    attempts->after_backoff = false;
    TRY(kube_exchange_start(&request->exchange, request->kube, &exchange));
    STATE_MOVE(request->state, moves, WATCH_REQUEST_REQUESTING);
    counter_add(&request->sent, 1);
    if (request->timeout_ns)
        loop_timer_set(loop_of(request), &request->silence,
                       clock_add(clock_add(now_of(request), request->timeout_ns), SILENCE_MAX_NS));
    return ST_OK;
}

/* At least this long, and until the server's back-off is over. */
static void wait_for(struct watch_request *request, int64_t delay_ns)
{
    struct vigil_kube *kube = request->kube;
    int64_t now = now_of(request);
    int64_t backoff_ns = server_backoff_delay_ns(&kube->backoff, now, &kube->random);
    request->attempts->after_backoff = backoff_ns > 0;
    STATE_MOVE(request->state, moves, WATCH_REQUEST_WAITING);
    loop_timer_cancel(loop_of(request), &request->silence);
    loop_timer_set(loop_of(request), &request->timer,
                   now + (delay_ns > backoff_ns ? delay_ns : backoff_ns));
}

static bool is_backing_off(struct watch_request *request)
{
    struct vigil_kube *kube = request->kube;
    return server_backoff_delay_ns(&kube->backoff, now_of(request), &kube->random) > 0;
}

/* If the server is still not reachable after a wait, the owner learns that instead of waiting
 * again. */
static void try_again(struct watch_request *request)
{
    if (!is_backing_off(request)) {
        enum status status = send_request(request);
        if (status == ST_NOMEM)
            finish_without_memory(request);
        else if (status != ST_OK)
            finish_failed(request, 0, "the credentials cannot be sent");
    } else if (request->attempts->after_backoff) {
        finish_failed(request, 0, "the server could not be reached a moment ago");
    } else {
        wait_for(request, 0);
    }
}

static void on_timer(struct timer *timer)
{
    struct watch_request *request = CONTAINER_OF(timer, struct watch_request, timer);
    if (request->state == WATCH_REQUEST_WAITING)
        try_again(request);
    else
        deliver_rest(request);
}

static void retry(struct watch_request *request, int64_t delay_ns)
{
    request->retries++;
    counter_add(&request->retried, 1);
    counter_add(&request->kube->counters.watch_retries, 1);
    wait_for(request, delay_ns);
}

static void broken(struct watch_request *request, const char *reason)
{
    struct watch_attempts *attempts = request->attempts;
    if (request->retries >= WATCH_RETRIES_MAX) {
        finish_silently(request, WATCH_END_RETRIES, reason);
        return;
    }
    free(attempts->previous_error);
    attempts->previous_error = strdup(reason); /* without memory, the text says less */
    retry(request, BROKEN_WAIT_NS);
}

static void refused(struct watch_request *request, const struct exchange_result *result)
{
    int code = result->status->code, after_s = result->retry_after_s;
    if ((code == 429 || code >= 500) && after_s >= 0 && request->retries < WATCH_RETRIES_MAX) {
        retry(request, after_s * NS_PER_S);
        return;
    }
    char text[REASON_BYTES];
    wrap_previous(request, result->reason, text);
    finish(request, WATCH_END_REFUSED, text, result->status);
}

static void attempt_ended(struct watch_request *request, const struct exchange_result *result)
{
    switch (result->end) {
    case EXCHANGE_REFUSED:
        refused(request, result);
        break;
    case EXCHANGE_BROKEN:
    case EXCHANGE_CUT_OFF: /* within a refusal */
        broken(request, result->reason);
        break;
    case EXCHANGE_NO_MEMORY:
        finish_without_memory(request);
        break;
    case EXCHANGE_MALFORMED:
    case EXCHANGE_COMPLETE:
        finish_failed(request, 500, result->reason);
        break;
    default:
        if (result->timed_out)
            broken(request, result->reason);
        else
            finish_failed(request, 0, result->reason);
    }
}

/* -- The response -- */

static void note_reachability(struct watch_request *request, enum exchange_end end)
{
    struct vigil_kube *kube = request->kube;
    if (end == EXCHANGE_UNREACHED || end == EXCHANGE_BROKEN)
        server_backoff_failed(&kube->backoff, request->attempts->started_ns, now_of(request),
                              &kube->random);
    else if (end == EXCHANGE_REFUSED)
        server_backoff_succeeded(&kube->backoff);
}

/* The server was to end the watch half a minute ago. */
static void on_silence(struct timer *timer)
{
    static const char reason[] = "the server did not end the watch at its time, and was silent";
    struct watch_request *request = CONTAINER_OF(timer, struct watch_request, silence);
    struct vigil_kube *kube = request->kube;
    uint64_t bytes = atomic_load_explicit(&request->bytes, memory_order_relaxed);
    if (request->withheld || request->rest.len || bytes != request->bytes_before) {
        /* The rest of it is still being read, or is not read because the owner has stopped it. */
        request->bytes_before = bytes;
        loop_timer_set(loop_of(request), &request->silence, now_of(request) + SILENCE_MAX_NS);
    } else if (request->state == WATCH_REQUEST_RECEIVING) {
        finish_silently(request, WATCH_END_TIMEOUT, reason);
    } else {
        server_backoff_failed(&kube->backoff, request->attempts->started_ns, now_of(request),
                              &kube->random);
        finish_failed(request, 0, reason);
    }
}

static void on_head(struct kube_exchange *exchange, unsigned status,
                    const struct http_field *fields, size_t field_count)
{
    struct watch_request *request = CONTAINER_OF(exchange, struct watch_request, exchange);
    enum framer_format format;
    struct error error = {.text = ""};
    struct slice type = exchange_find_field(fields, field_count, SLICE_LITERAL("content-type"));
    server_backoff_succeeded(&request->kube->backoff);
    if (status != 200)
        (void)error_set(&error, ST_INVALID, "the server answered a watch with status %u", status);
    else if (watch_format_read(type, &format, &error) == ST_OK)
        framer_init(&request->framer, format);
    if (error.text[0]) {
        finish_failed(request, 500, error.text);
        return;
    }
    attempts_free(request->attempts);
    request->attempts = NULL;
    STATE_MOVE(request->state, moves, WATCH_REQUEST_RECEIVING);
    if (request->withheld)
        kube_exchange_withhold(&request->exchange, true);
    if (request->ops->on_accepted)
        request->ops->on_accepted(request);
}

static void on_body(struct kube_exchange *exchange, struct slice bytes)
{
    struct watch_request *request = CONTAINER_OF(exchange, struct watch_request, exchange);
    assert(!request->delivery);
    counter_add(&request->bytes, bytes.len);
    if (request->withheld || request->rest.len)
        (void)keep(request, bytes);
    else if (deliver(request, bytes))
        (void)keep(request, framer_take_rest(&request->framer));
}

static enum watch_end end_of(const struct exchange_result *result)
{
    switch (result->end) {
    case EXCHANGE_COMPLETE:
        return WATCH_END_COMPLETE;
    case EXCHANGE_NO_MEMORY:
        return WATCH_END_NO_MEMORY;
    case EXCHANGE_MALFORMED:
    case EXCHANGE_LIMIT:
        return WATCH_END_UNDECODABLE;
    default:
        return result->timed_out ? WATCH_END_TIMEOUT : WATCH_END_CUT_OFF;
    }
}

static void on_end(struct kube_exchange *exchange, const struct exchange_result *result)
{
    struct watch_request *request = CONTAINER_OF(exchange, struct watch_request, exchange);
    if (request->state != WATCH_REQUEST_RECEIVING) {
        note_reachability(request, result->end);
        attempt_ended(request, result);
    } else if (request->withheld || request->rest.len) {
        request->late_end = end_of(result);
        request->late_reason = strdup(result->reason);
        loop_timer_cancel(loop_of(request), &request->silence);
        STATE_MOVE(request->state, moves, WATCH_REQUEST_ENDING);
    } else {
        finish_received(request, end_of(result), result->reason);
    }
}

/* -- The beginning -- */

static enum status attempts_new(const struct watch_params *params, struct error *error,
                                struct watch_attempts **ret_attempts)
{
    AUTO(buf_fini) struct buf target = {0};
    TRY(watch_query_append(&target, params, error));
    struct watch_attempts *attempts = malloc(sizeof(*attempts) + target.len);
    if (!attempts)
        return error_no_memory(error);
    *attempts = (struct watch_attempts){
        .accept = params->accept ? params->accept : watch_query_accept(params->protobuf),
        .target_len = target.len,
    };
    slice_copy(attempts->target, buf_slice(&target));
    *ret_attempts = attempts;
    return ST_OK;
}

enum status watch_request_start(struct watch_request *request, struct vigil_kube *kube,
                                const struct watch_params *params, struct error *error)
{
    static const struct exchange_ops ops = {on_head, on_body, on_end};
    AUTO(attempts_freep) struct watch_attempts *attempts = NULL;
    assert(request->state == WATCH_REQUEST_IDLE);
    TRY(attempts_new(params, error, &attempts));
    request->kube = kube;
    request->retries = 0;
    request->exchange.ops = &ops;
    request->timer.fn = on_timer;
    request->silence.fn = on_silence;
    request->timeout_ns =
        params->timeout_s < TIMEOUT_KNOWN_MAX_S ? params->timeout_s * NS_PER_S : 0;
    request->bytes_before = 0;
    request->attempts = attempts;
    if (is_backing_off(request)) {
        wait_for(request, 0);
    } else {
        enum status status = send_request(request);
        if (status != ST_OK) {
            request->attempts = NULL;
            return error_set(error, status, "%s",
                             status == ST_NOMEM    ? "out of memory"
                             : status == ST_CLOSED ? "the client is being freed"
                                                   : "a text cannot be sent");
        }
    }
    (void)TAKE(attempts);
    counter_add(&kube->counters.watches, 1);
    return ST_OK;
}

/* -- Checks -- */

void watch_request_check(const struct watch_request *request)
{
    enum watch_request_state state = request->state;
    bool attempts = state == WATCH_REQUEST_WAITING || state == WATCH_REQUEST_REQUESTING;
    assert(state <= WATCH_REQUEST_ENDING);
    assert(attempts == (request->attempts != NULL));
    assert(request->retries <= WATCH_RETRIES_MAX);
    assert(request->rest_used <= request->rest.len);
    assert(request->rest.len - request->rest_used <= WATCH_WITHHELD_BYTES_MAX);
    assert(!request->rest.len || state == WATCH_REQUEST_RECEIVING || state == WATCH_REQUEST_ENDING);
    assert(!request->rest.len || request->withheld || request->timer.set);
    assert(state == WATCH_REQUEST_WAITING ? request->timer.set : true);
    assert(request->silence.set ==
           (request->timeout_ns && request->exchange.state != EXCHANGE_IDLE));
    assert(state != WATCH_REQUEST_IDLE || (!request->timer.set && !request->delivery));
    assert((request->exchange.state == EXCHANGE_IDLE) ==
           (state != WATCH_REQUEST_REQUESTING && state != WATCH_REQUEST_RECEIVING));
    assert(!request->late_reason || state == WATCH_REQUEST_ENDING);
}
