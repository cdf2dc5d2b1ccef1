#include "kubeclient/informer/fetcher.h"

#include "kubeclient/call/call.h"
#include "kubeclient/call/list_query.h"
#include "kubeclient/data/status.h"
#include "kubeclient/data/url.h"

#include <stdio.h>

#define TO(state) (1u << FETCHER_##state)

/* Drawn in fetcher.h. */
static const unsigned fetcher_moves[] = {
    [FETCHER_IDLE] = TO(STARTING),
    [FETCHER_STARTING] = TO(IDLE) | TO(WATCHING) | TO(LISTING),
    [FETCHER_WATCHING] = TO(IDLE),
    [FETCHER_LISTING] = TO(IDLE),
};

/* -- The end of a request -- */

static void stop_list(struct fetcher *f)
{
    kube_exchange_cancel(&f->exchange);
    list_reader_fini(&f->reader);
    STATE_MOVE(f->state, fetcher_moves, FETCHER_IDLE);
}

static void fail(struct fetcher *f, int code, const char *reason, const char *text)
{
    struct vigil_kube_status status = {.code = code, .retry_after_s = -1};
    snprintf(status.reason, sizeof(status.reason), "%s", reason);
    snprintf(status.message, sizeof(status.message), "%s", text);
    f->ops->failed(f->ctx, &status);
}

/* -- Watches -- */

static void on_accepted(struct watch_request *watch)
{
    struct fetcher *f = CONTAINER_OF(watch, struct fetcher, watch);
    if (f->ops->accepted)
        f->ops->accepted(f->ctx);
}

static void on_event(struct watch_request *watch, const struct received_event *event)
{
    struct fetcher *f = CONTAINER_OF(watch, struct fetcher, watch);
    f->ops->received(f->ctx, event);
}

static void on_watch_end(struct watch_request *watch, const struct watch_result *result)
{
    struct fetcher *f = CONTAINER_OF(watch, struct fetcher, watch);
    STATE_MOVE(f->state, fetcher_moves, FETCHER_IDLE);
    if (result->status)
        f->ops->failed(f->ctx, result->status);
    else
        f->ops->watch_ended(f->ctx, result->end != WATCH_END_COMPLETE);
}

static enum status start_watch(struct fetcher *f)
{
    struct error error;
    struct watch_params params = {
        .target = &f->scope->target,
        .label_selector = f->scope->label_selector,
        .field_selector = f->scope->field_selector,
        .version = f->request.version,
        .initial_events = f->request.kind == REFLECTOR_STREAMING,
        .bookmarks = true,
        .protobuf = f->scope->protobuf,
        .accept = f->scope->accept_watch,
        .timeout_s = f->request.timeout_s,
    };
    TRY(watch_request_start(&f->watch, f->kube, &params, &error));
    STATE_MOVE(f->state, fetcher_moves, FETCHER_WATCHING);
    return ST_OK;
}

/* -- Lists -- */

static void on_head(struct kube_exchange *exchange, unsigned status,
                    const struct http_field *fields, size_t field_count)
{
    struct fetcher *f = CONTAINER_OF(exchange, struct fetcher, exchange);
    (void)status, (void)fields, (void)field_count;
    if (f->withheld)
        kube_exchange_withhold(exchange, true);
}

static void list_failed(struct fetcher *f, enum status status, const struct error *error)
{
    stop_list(f);
    if (status == ST_NOMEM)
        fail(f, 0, "OutOfMemory", "there is no memory for a request");
    else
        fail(f, 500, "InternalError", error->text);
}

static void on_body(struct kube_exchange *exchange, struct slice bytes)
{
    struct fetcher *f = CONTAINER_OF(exchange, struct fetcher, exchange);
    struct slice item;
    struct error error;
    enum status status;
    if (f->reads_nothing && bytes.len) { /* an envelope of protobuf begins with "k8s" */
        list_reader_init(&f->reader, bytes.ptr[0] == 'k' ? FRAMER_PROTOBUF : FRAMER_JSON);
        f->reads_nothing = false;
    }
    list_reader_feed(&f->reader, bytes);
    while ((status = list_reader_next(&f->reader, &item, &error)) == ST_OK) {
        f->ops->listed(f->ctx, item);
        if (f->state != FETCHER_LISTING)
            return; /* canceled within the function */
    }
    if (status != ST_AGAIN)
        list_failed(f, status, &error);
}

static void page_complete(struct fetcher *f)
{
    struct error error;
    enum status status = list_reader_end(&f->reader, &error);
    if (status != ST_OK) {
        list_failed(f, status, &error);
        return;
    }
    struct list_reader reader = f->reader; /* has the texts, also when another page is requested */
    f->reader = (struct list_reader){0};
    STATE_MOVE(f->state, fetcher_moves, FETCHER_IDLE);
    struct list_info info = list_reader_info(&reader);
    f->ops->page_ended(f->ctx, &info);
    list_reader_fini(&reader);
}

static void on_list_end(struct kube_exchange *exchange, const struct exchange_result *result)
{
    struct fetcher *f = CONTAINER_OF(exchange, struct fetcher, exchange);
    if (result->end == EXCHANGE_COMPLETE) {
        page_complete(f);
        return;
    }
    stop_list(f);
    if (result->status)
        f->ops->failed(f->ctx, result->status);
    else
        fail(f, 0, "", result->reason);
}

static enum status start_list(struct fetcher *f)
{
    struct error error;
    AUTO(buf_fini) struct buf target = {0};
    struct vigil_kube_list_options options = {
        .size = sizeof(options),
        .label_selector = f->scope->label_selector,
        .field_selector = f->scope->field_selector,
        .limit = f->request.limit,
        .continue_token = f->token.len ? (const char *)f->token.ptr : NULL,
        .version = f->version,
    };
    TRY(url_append_target(&target, &f->scope->target, &error));
    TRY(list_query_append(&target, &options));
    const char *accept = f->scope->accept_list;
    struct exchange_request request = {
        .method = "GET",
        .target = buf_slice(&target),
        .accept = accept ? accept : watch_query_accept(f->scope->protobuf),
    };
    TRY(kube_exchange_start(&f->exchange, f->kube, &request));
    list_reader_init(&f->reader, FRAMER_JSON);
    f->reads_nothing = true;
    STATE_MOVE(f->state, fetcher_moves, FETCHER_LISTING);
    return ST_OK;
}

/* -- Requests -- */

void fetcher_admitted(struct fetcher *f)
{
    enum status status = ST_NOMEM;
    assert(f->state == FETCHER_STARTING);
    if (!f->no_memory)
        status = f->request.kind == REFLECTOR_LISTING ? start_list(f) : start_watch(f);
    buf_reset(&f->token, 0);
    if (status == ST_OK)
        return;
    STATE_MOVE(f->state, fetcher_moves, FETCHER_IDLE);
    if (status == ST_NOMEM)
        fail(f, 0, "OutOfMemory", "there is no memory for a request");
    else
        fail(f, 400, "BadRequest", "the request cannot be sent"); /* the scope was checked */
}

static void start(struct deferred *deferred)
{
    struct fetcher *f = CONTAINER_OF(deferred, struct fetcher, start);
    if (!f->ops->admit || f->ops->admit(f->ctx))
        fetcher_admitted(f);
}

void fetcher_request(struct fetcher *f, const struct reflector_request *request)
{
    STATE_MOVE(f->state, fetcher_moves, FETCHER_STARTING);
    f->request = *request;
    snprintf(f->version, sizeof(f->version), "%s", request->version);
    f->request.version = f->version;
    f->request.continue_token = SLICE_EMPTY;
    f->no_memory = request->continue_token.len &&
                   kube_call_copy_text(&f->token, request->continue_token) != ST_OK;
    loop_defer(f->kube->driver.loop, &f->start);
}

void fetcher_cancel(struct fetcher *f)
{
    if (f->state == FETCHER_LISTING) {
        stop_list(f);
    } else if (f->state != FETCHER_IDLE) {
        loop_defer_cancel(&f->start);
        buf_reset(&f->token, 0);
        watch_request_cancel(&f->watch);
        STATE_MOVE(f->state, fetcher_moves, FETCHER_IDLE);
    }
}

void fetcher_withhold(struct fetcher *f, bool withhold)
{
    f->withheld = withhold;
    watch_request_withhold(&f->watch, withhold);
    if (f->state == FETCHER_LISTING && f->exchange.state == EXCHANGE_RECEIVING)
        kube_exchange_withhold(&f->exchange, withhold);
}

struct list_info fetcher_list_info(const struct fetcher *f)
{
    return list_reader_info(&f->reader);
}

/* -- Life -- */

enum status fetcher_check_scope(const struct fetcher_scope *scope, struct error *error)
{
    AUTO(buf_fini) struct buf target = {0};
    const struct vigil_kube_target *about = &scope->target;
    if ((about->name && *about->name) || (about->subresource && *about->subresource))
        return error_set(error, ST_INVALID, "an informer is about a collection, without a name");
    return url_append_target(&target, about, error);
}

void fetcher_init(struct fetcher *f, struct vigil_kube *kube, const struct fetcher_scope *scope,
                  const struct fetcher_ops *ops, void *ctx)
{
    static const struct watch_request_ops watch_ops = {
        .on_accepted = on_accepted, .on_event = on_event, .on_end = on_watch_end};
    static const struct exchange_ops list_ops = {
        .on_head = on_head, .on_body = on_body, .on_end = on_list_end};
    *f = (struct fetcher){
        .ops = ops,
        .ctx = ctx,
        .kube = kube,
        .scope = scope,
        .start.fn = start,
        .watch.ops = &watch_ops,
        .exchange.ops = &list_ops,
    };
}

void fetcher_fini(struct fetcher *f)
{
    assert(f->state == FETCHER_IDLE);
    buf_fini(&f->token);
}
