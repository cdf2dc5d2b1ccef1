#include "kubeclient/call/exchange.h"

#include "kubeclient/call/warning.h"
#include "kubeclient/data/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <vigil/kube/json.h>

#define TO(state) (1u << EXCHANGE_##state)

/* Drawn in exchange.h. */
static const uint8_t moves[] = {
    [EXCHANGE_IDLE] = TO(AUTHORIZING) | TO(SENT),
    [EXCHANGE_AUTHORIZING] = TO(SENT) | TO(IDLE),
    [EXCHANGE_SENT] = TO(RECEIVING) | TO(REFUSING) | TO(IDLE),
    [EXCHANGE_RECEIVING] = TO(IDLE),
    [EXCHANGE_REFUSING] = TO(IDLE),
};

/* A request that waits for credentials. One allocation with its texts. */
struct exchange_copy {
    struct exchange_request request;
    uint8_t bytes[];
};

struct exchange_refusal {
    struct kube_exchange *exchange;
    unsigned code;
    int retry_after_s;
    struct buf body;
    struct timer limit;
    struct vigil_kube_status status; /* made at the end */
};

void kube_exchange_check(const struct kube_exchange *x)
{
    assert((x->state == EXCHANGE_AUTHORIZING) == (x->copy != NULL));
    assert((x->state == EXCHANGE_REFUSING) == (x->refusal != NULL));
    assert((x->state >= EXCHANGE_SENT) == (x->request.attempt != NULL));
    assert(x->state == EXCHANGE_IDLE || x->kube);
    assert(!x->refusal || x->refusal->body.len <= EXCHANGE_ERROR_BYTES_MAX);
}

/* -- Ends -- */

static void refusal_free(struct vigil_kube *kube, struct exchange_refusal *refusal)
{
    if (!refusal)
        return;
    loop_timer_cancel(kube->driver.loop, &refusal->limit);
    buf_fini(&refusal->body);
    free(refusal);
}

/* The owner may free the exchange or start it again. */
static void finish_timed(struct kube_exchange *x, enum exchange_end end, const char *reason,
                         bool timed_out)
{
    struct exchange_result result = {
        .end = end,
        .reason = reason,
        .retry_after_s = -1,
        .timed_out = timed_out,
        .may_be_sent = x->state >= EXCHANGE_SENT && x->request.reached != POOL_REQUEST_UNREACHED,
    };
    free(x->copy);
    x->copy = NULL;
    STATE_MOVE(x->state, moves, EXCHANGE_IDLE);
    x->ops->on_end(x, &result);
}

static void finish(struct kube_exchange *x, enum exchange_end end, const char *reason)
{
    finish_timed(x, end, reason, false);
}

/* The body may be a Status of an earlier success. */
static bool is_success(struct slice body)
{
    vigil_bytes value;
    return vigil_json_find(vigil_bytes_of(body.ptr, body.len), "status", &value) &&
           vigil_json_is(value, "Success");
}

/* As client-go, for an answer without a Status. */
static void guess_status(const struct exchange_refusal *r, struct slice body,
                         struct vigil_kube_status *status)
{
    kube_status_from_http((int)r->code, body, status);
    if (r->code == 409 && r->exchange->creates)
        snprintf(status->reason, sizeof(status->reason), "AlreadyExists");
}

static void read_status(struct exchange_refusal *r)
{
    struct vigil_kube_status *status = &r->status, general;
    struct slice body = buf_slice(&r->body);
    /* A proxy before the server may answer with HTML or nothing. */
    guess_status(r, (struct slice){0}, &general);
    if (!kube_status_read(body, status) || is_success(body))
        guess_status(r, body, status);
    if (!*status->message)
        memcpy(status->message, general.message, sizeof(general.message));
    if (status->code == 0)
        status->code = (int)r->code;
    if (status->retry_after_s < 0)
        status->retry_after_s = r->retry_after_s;
}

/* With what has arrived of the body. */
static void finish_refused(struct kube_exchange *x)
{
    struct vigil_kube *kube = x->kube;
    struct exchange_refusal *r = TAKE(x->refusal);
    read_status(r);
    struct exchange_result result = {
        .end = EXCHANGE_REFUSED,
        .reason = r->status.message,
        .retry_after_s =
            r->retry_after_s < KUBE_RETRY_AFTER_MAX_S ? r->retry_after_s : KUBE_RETRY_AFTER_MAX_S,
        .may_be_sent = true,
        .status = &r->status,
        .http_code = r->code,
        .body = buf_slice(&r->body),
    };
    /* The rest of the body is not wanted. */
    pool_request_cancel(&x->request);
    STATE_MOVE(x->state, moves, EXCHANGE_IDLE);
    x->ops->on_end(x, &result);
    /* The result refers to the refusal, and the exchange may be gone by now. */
    refusal_free(kube, r);
}

/* -- The head -- */

struct slice exchange_find_field(const struct http_field *fields, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (http_name_equal(fields[i].name, name))
            return fields[i].value;
    return (struct slice){0};
}

/* As in client-go, a date is not understood. */
static int retry_after(const struct http_field *fields, size_t count)
{
    uint64_t seconds;
    struct slice value = exchange_find_field(fields, count, SLICE_LITERAL("retry-after"));
    if (!slice_decimal(slice_trim(value), &seconds))
        return -1;
    return seconds > INT32_MAX ? INT32_MAX : (int)seconds;
}

static void warn(struct vigil_kube *kube, const char *text)
{
    static const struct driver_object nobody;
    if (!driver_callback_begin(&kube->driver, &nobody))
        return;
    kube->warning(kube->driver.log_user, text);
    driver_callback_end(&kube->driver);
}

static void pass_on_warnings(struct vigil_kube *kube, const struct http_field *fields, size_t count)
{
    AUTO(buf_fini) struct buf text = {0};
    for (size_t i = 0; i < count && kube->warning; i++) {
        struct slice rest = fields[i].value;
        if (!http_name_equal(fields[i].name, SLICE_LITERAL("warning")))
            continue;
        while (warning_next(&rest, &text)) {
            warn(kube, (const char *)text.ptr);
            text.len = 0;
        }
        text.len = 0;
    }
}

static void on_refusal_limit(struct timer *timer)
{
    finish_refused(CONTAINER_OF(timer, struct exchange_refusal, limit)->exchange);
}

static void begin_refusal(struct kube_exchange *x, unsigned code, int retry_after_s)
{
    struct loop *loop = x->kube->driver.loop;
    struct exchange_refusal *r = calloc(1, sizeof(*r));
    if (!r) {
        pool_request_cancel(&x->request);
        finish(x, EXCHANGE_NO_MEMORY, "out of memory");
        return;
    }
    r->exchange = x;
    r->code = code;
    r->retry_after_s = retry_after_s;
    r->limit.fn = on_refusal_limit;
    /* The status alone is worth reporting. A server that is slow with its explanation must not
     * delay it. */
    loop_timer_set(loop, &r->limit, clock_add(loop_now_ns(loop), EXCHANGE_ERROR_NS));
    x->refusal = r;
    STATE_MOVE(x->state, moves, EXCHANGE_REFUSING);
}

static void on_head(struct pool_request *request, unsigned status, const struct http_field *fields,
                    size_t count)
{
    struct kube_exchange *x = CONTAINER_OF(request, struct kube_exchange, request);
    pass_on_warnings(x->kube, fields, count);
    /* client-go takes these codes as success. */
    if (status >= 200 && status <= 206) {
        STATE_MOVE(x->state, moves, EXCHANGE_RECEIVING);
        x->ops->on_head(x, status, fields, count);
        return;
    }
    /* A token may have expired: the next request asks the plugin or the file for another one. */
    if (status == 401)
        (void)credentials_refused(x->kube->credentials, x->generation);
    begin_refusal(x, status, retry_after(fields, count));
}

/* -- The body -- */

static void on_body(struct pool_request *request, struct slice bytes)
{
    struct kube_exchange *x = CONTAINER_OF(request, struct kube_exchange, request);
    if (x->state == EXCHANGE_RECEIVING) {
        x->ops->on_body(x, bytes);
        return;
    }
    struct exchange_refusal *r = x->refusal;
    size_t room = EXCHANGE_ERROR_BYTES_MAX - r->body.len;
    if (buf_append(&r->body, slice_sub(bytes, 0, size_min(bytes.len, room))) != ST_OK ||
        bytes.len >= room)
        finish_refused(x);
}

static enum exchange_end end_of(const struct kube_exchange *x, enum status status)
{
    switch (status) {
    case ST_OK:
        return EXCHANGE_COMPLETE;
    case ST_NOMEM:
        return EXCHANGE_NO_MEMORY;
    case ST_LIMIT:
        return EXCHANGE_LIMIT;
    case ST_MALFORMED:
        return EXCHANGE_MALFORMED;
    default:
        if (x->request.reached == POOL_REQUEST_UNREACHED)
            return EXCHANGE_UNREACHED;
        return x->state == EXCHANGE_RECEIVING ? EXCHANGE_CUT_OFF : EXCHANGE_BROKEN;
    }
}

static void on_end(struct pool_request *request, enum status status, const char *reason)
{
    struct kube_exchange *x = CONTAINER_OF(request, struct kube_exchange, request);
    /* Even if the connection broke within the body of a refusal, it is known that the request was
     * refused. */
    if (x->state == EXCHANGE_REFUSING)
        finish_refused(x);
    else
        finish_timed(x, end_of(x, status), reason, status == ST_TIMEOUT);
}

static const struct pool_request_ops request_ops = {
    .on_head = on_head,
    .on_body = on_body,
    .on_end = on_end,
};

/* -- Sending -- */

static void add_field(struct vigil_kube *kube, size_t *count, const char *name, struct slice value)
{
    if (value.len)
        kube->fields[(*count)++] = (struct http_field){slice_from_text(name), value};
}

static enum status send_request(struct kube_exchange *x, const struct exchange_request *request,
                                struct slice authorization)
{
    struct vigil_kube *kube = x->kube;
    AUTO(buf_fini) struct buf target = {0};
    size_t count = 0, more;
    TRY(buf_append(&target, kube->constants->url.prefix));
    TRY(buf_append(&target, request->target));
    /* All requests of the client share the array of fields, which the pool copies. */
    const struct http_field *fields = credentials_fields(kube->credentials, &more);
    add_field(kube, &count, "user-agent", slice_from_text(kube->constants->user_agent));
    add_field(kube, &count, "accept", slice_from_text(request->accept));
    add_field(kube, &count, "authorization", authorization);
    if (request->content_type)
        add_field(kube, &count, "content-type", slice_from_text(request->content_type));
    assert(count <= KUBE_OWN_FIELDS);
    for (size_t i = 0; i < more; i++)
        kube->fields[count++] = fields[i];
    struct pool_request_params params = {
        .method = slice_from_text(request->method),
        .target = buf_slice(&target),
        .fields = kube->fields,
        .field_count = count,
        .body = request->body,
        .waits = request->waits,
    };
    TRY(http_pool_start(kube->pool, &x->request, &params));
    x->creates = strcmp(request->method, "POST") == 0;
    x->generation = credentials_generation(kube->credentials);
    free(x->copy);
    x->copy = NULL;
    STATE_MOVE(x->state, moves, EXCHANGE_SENT);
    return ST_OK;
}

static void on_credentials(struct credentials_waiter *waiter, enum status status,
                           struct slice authorization, const struct error *error)
{
    struct kube_exchange *x = CONTAINER_OF(waiter, struct kube_exchange, waiter);
    if (status == ST_OK) {
        switch (send_request(x, &x->copy->request, authorization)) {
        case ST_OK:
            break;
        case ST_NOMEM:
            finish(x, EXCHANGE_NO_MEMORY, "out of memory");
            break;
        default:
            finish(x, EXCHANGE_UNAUTHORIZED, "the request or its credentials cannot be sent");
        }
    } else {
        finish(x, status == ST_NOMEM ? EXCHANGE_NO_MEMORY : EXCHANGE_UNAUTHORIZED, error->text);
    }
}

/* -- Waiting for credentials -- */

static void *put(uint8_t **at, const void *bytes, size_t len)
{
    void *copy = *at;
    slice_copy(*at, slice_of(bytes, len));
    *at += len;
    return copy;
}

static const char *put_text(uint8_t **at, const char *text)
{
    return text ? put(at, text, strlen(text) + 1) : NULL;
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static enum status copy_request(struct kube_exchange *x, const struct exchange_request *r)
{
    size_t bytes = text_bytes(r->method) + text_bytes(r->accept) + text_bytes(r->content_type) +
                   r->target.len + r->body.len;
    struct exchange_copy *copy = malloc(sizeof(*copy) + bytes);
    if (!copy)
        return ST_NOMEM;
    uint8_t *at = copy->bytes;
    copy->request = (struct exchange_request){
        .method = put_text(&at, r->method),
        .accept = put_text(&at, r->accept),
        .content_type = put_text(&at, r->content_type),
        .target = slice_of(put(&at, r->target.ptr, r->target.len), r->target.len),
        .body = slice_of(put(&at, r->body.ptr, r->body.len), r->body.len),
        .waits = r->waits,
    };
    x->copy = copy;
    return ST_OK;
}

enum status kube_exchange_start(struct kube_exchange *x, struct vigil_kube *kube,
                                const struct exchange_request *request)
{
    struct slice authorization;
    struct error error;
    assert(x->state == EXCHANGE_IDLE);
    x->kube = kube;
    x->request.ops = &request_ops;
    x->waiter.ready = on_credentials;
    enum status status = credentials_get(kube->credentials, &x->waiter, &authorization, &error);
    if (status != ST_AGAIN)
        return status == ST_OK ? send_request(x, request, authorization) : status;
    /* A plugin looks for credentials, and the caller's request is only valid until we return. */
    status = copy_request(x, request);
    if (status == ST_OK)
        STATE_MOVE(x->state, moves, EXCHANGE_AUTHORIZING);
    else
        credentials_waiter_cancel(&x->waiter);
    return status;
}

void kube_exchange_cancel(struct kube_exchange *x)
{
    if (x->state == EXCHANGE_IDLE)
        return;
    credentials_waiter_cancel(&x->waiter);
    pool_request_cancel(&x->request);
    refusal_free(x->kube, TAKE(x->refusal));
    free(x->copy);
    x->copy = NULL;
    STATE_MOVE(x->state, moves, EXCHANGE_IDLE);
}

void kube_exchange_withhold(struct kube_exchange *x, bool withhold)
{
    pool_request_withhold(&x->request, withhold);
}
