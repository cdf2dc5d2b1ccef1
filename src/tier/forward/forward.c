#include "tier/forward/forward.h"

#include "base/clock.h"
#include "base/memory/arena.h"
#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "kube/policy/access/identity.h"
#include "kube/request/life.h"

#include <stdio.h>

enum { ARENA_BYTES_MAX = 1 << 20, PIPE_BYTES = 64 * 1024 };
/* A client that reads nothing of an answer for this long is given up, unless the answer lasts. */
#define STALL_NS (60 * NS_PER_S)

/* Bytes in one direction, charged to the exchange's account. */
struct pipe {
    struct buf buf;
    size_t at;  /* bytes before this were taken */
    bool ended; /* no more will come */
};

struct forward {
    struct kube_life life; /* owner of the exchange */
    struct http_exchange *x;
    struct tier_forwards *forwards;
    struct tier_share *share;
    struct tier_forward_listener *listener; /* may be NULL */
    struct pool_request request;
    struct http_source up_source, down_source;
    struct pipe up;   /* from the client */
    struct pipe down; /* to the client */
    bool begun;       /* the answer has begun */
    unsigned held; /* status of an answer that waits until the listener knows its body; 0: none */
    int64_t bytes; /* length of the answer's body, or TIER_BYTES_UNKNOWN */
    bool over;     /* nothing more is passed on: it was refused, cut off or answered */
    bool broken;   /* the answer is cut off when `down` is empty */
    bool lasts;    /* the answer may last for ever, and its client may be slow */
    bool timed;    /* on_stall will be called */
    bool moved;    /* the client has read something since on_stall was set */
};

/* -- Pipes -- */

static size_t pipe_left(const struct pipe *p)
{
    return p->buf.len - p->at;
}

static enum status pipe_put(struct forward *f, struct pipe *p, struct slice bytes)
{
    if (p->at > p->buf.len / 2) { /* reuse the space of what was taken first */
        buf_consume(&p->buf, p->at);
        p->at = 0;
    }
    return account_append(http_exchange_account(f->x), &p->buf, bytes);
}

static enum http_fill pipe_take(struct forward *f, struct pipe *p, uint8_t *dst, size_t room,
                                size_t *ret_len)
{
    size_t n = size_min(room, pipe_left(p));
    slice_copy(dst, slice_sub(buf_slice(&p->buf), p->at, n));
    p->at += n;
    *ret_len = n;
    if (pipe_left(p))
        return HTTP_FILL_MORE;
    account_buf_reset(http_exchange_account(f->x), &p->buf, 0);
    p->at = 0;
    return p->ended ? HTTP_FILL_DONE : HTTP_FILL_PARKED;
}

/* -- Failures -- */

static void refuse(struct forward *f, const struct kube_status *status)
{
    f->over = true;
    f->held = 0;
    pool_request_cancel(&f->request);
    http_drop_fields(f->x);
    kube_refuse(f->x, status);
}

static void fail(struct forward *f, enum kube_reason reason, unsigned code, const char *text)
{
    struct kube_status status = {0};
    (void)!kube_fail(&status, reason, "%s", text);
    status.code = code;
    /* Nothing was done, so any request may be repeated. */
    status.retry_after_s = code == 503 ? 1 : 0;
    refuse(f, &status);
}

static void cut_off(struct forward *f)
{
    f->over = true;
    pool_request_cancel(&f->request);
    http_abort(f->x);
}

static void fail_without_memory(struct forward *f)
{
    if (f->begun)
        cut_off(f);
    else
        fail(f, KUBE_SERVICE_UNAVAILABLE, 503,
             "clients hold too much memory of the watch tier, see --max-client-bytes");
}

/* -- From the client to the kube-apiserver -- */

/* The kube-apiserver takes bytes. */
static enum http_fill fill_up(struct http_source *source, uint8_t *dst, size_t room,
                              size_t *ret_len)
{
    struct forward *f = CONTAINER_OF(source, struct forward, up_source);
    enum http_fill more = pipe_take(f, &f->up, dst, room, ret_len);
    if (more == HTTP_FILL_PARKED)
        http_withhold(f->x, false);
    return more;
}

static void send_up(struct forward *f, struct slice bytes)
{
    if (f->over || f->broken)
        return;
    f->up.ended |= bytes.len == 0;
    if (pipe_put(f, &f->up, bytes) != ST_OK) {
        fail_without_memory(f);
        return;
    }
    if (pipe_left(&f->up) > PIPE_BYTES)
        http_withhold(f->x, true);
    pool_request_wake(&f->request);
}

/* -- From the kube-apiserver to the client -- */

static enum http_fill fill_down(struct http_source *source, uint8_t *dst, size_t room,
                                size_t *ret_len)
{
    struct forward *f = CONTAINER_OF(source, struct forward, down_source);
    enum http_fill more = pipe_take(f, &f->down, dst, room, ret_len);
    f->moved |= *ret_len > 0;
    if (more == HTTP_FILL_MORE)
        return more;
    if (f->broken) {
        f->over = true;
        http_abort(f->x);
    } else if (more == HTTP_FILL_PARKED) {
        pool_request_withhold(&f->request, false);
    }
    return more;
}

static void on_stall(struct http_exchange *x);

static void watch_progress(struct forward *f)
{
    if (f->timed || f->lasts)
        return;
    f->timed = true;
    f->moved = false;
    http_set_deadline(f->x, http_exchange_now(f->x) + STALL_NS, on_stall);
}

static struct forward *forward_of(struct http_exchange *x)
{
    return CONTAINER_OF((struct kube_life *)http_exchange_user(x), struct forward, life);
}

static void on_stall(struct http_exchange *x)
{
    struct forward *f = forward_of(x);
    f->timed = false;
    if (!pipe_left(&f->down))
        return;
    if (f->moved)
        watch_progress(f);
    else
        cut_off(f);
}

static void begin_answer(struct forward *f, unsigned code)
{
    f->begun = true;
    if (code == 101)
        http_upgrade(f->x);
    else if (f->bytes == TIER_BYTES_UNKNOWN)
        http_begin(f->x, code, SLICE_EMPTY);
    else
        http_begin_sized(f->x, code, SLICE_EMPTY, (size_t)f->bytes);
    http_set_source(f->x, &f->down_source);
}

static void on_head(struct pool_request *request, unsigned code, const struct http_field *fields,
                    size_t field_count)
{
    struct forward *f = CONTAINER_OF(request, struct forward, request);
    bool upgraded = code == 101, is_refusal = code == 401 || code == 403;
    enum status status = tier_head_answer(f->x, upgraded, fields, field_count, &f->bytes);
    if (status != ST_OK) {
        fail(f, KUBE_UNKNOWN, 502,
             status == ST_NOMEM ? "there is no memory for the kube-apiserver's answer"
                                : "the head of the kube-apiserver's answer is too long");
        return;
    }
    f->lasts |= upgraded;
    if (is_refusal && f->listener && f->listener->refused)
        f->held = code;
    else
        begin_answer(f, code);
}

/* The body of an answer that waits is there. False: it was refused instead. */
static bool settle(struct forward *f)
{
    struct kube_status status = {0};
    unsigned code = f->held;
    struct slice body = slice_sub(buf_slice(&f->down.buf), f->down.at, pipe_left(&f->down));
    f->held = 0;
    if (f->listener->refused(f->listener, code, body, &status)) {
        refuse(f, &status);
        return false;
    }
    begin_answer(f, code);
    return true;
}

static void on_body(struct pool_request *request, struct slice bytes)
{
    struct forward *f = CONTAINER_OF(request, struct forward, request);
    f->down.ended |= bytes.len == 0;
    if (pipe_put(f, &f->down, bytes) != ST_OK) {
        cut_off(f);
        return;
    }
    if (f->held && !f->down.ended && pipe_left(&f->down) < TIER_REFUSAL_BYTES)
        return;
    if (f->held && !settle(f))
        return;
    if (pipe_left(&f->down) > PIPE_BYTES)
        pool_request_withhold(request, true);
    if (pipe_left(&f->down))
        watch_progress(f);
    http_wake(f->x);
}

static void on_answered(struct pool_request *request, enum status status, const char *reason)
{
    struct forward *f = CONTAINER_OF(request, struct forward, request);
    char text[KUBE_MESSAGE_BYTES];
    if (f->held && !settle(f))
        return;
    bool ended = f->down.ended && !pipe_left(&f->down);
    f->down.ended = true;
    f->over = status == ST_OK;
    f->broken = status != ST_OK;
    if (f->begun && f->broken && ended) {
        cut_off(f); /* an upgraded connection, whose other direction was still open */
    } else if (f->begun) {
        http_wake(f->x);
    } else if (request->reached == POOL_REQUEST_UNREACHED) {
        snprintf(text, sizeof(text), "the kube-apiserver cannot be reached: %s", reason);
        fail(f, KUBE_SERVICE_UNAVAILABLE, 503, text);
    } else {
        snprintf(text, sizeof(text),
                 "the kube-apiserver has not answered, and may have executed the request: %s",
                 reason);
        fail(f, status == ST_TIMEOUT ? KUBE_TIMEOUT : KUBE_UNKNOWN,
             status == ST_TIMEOUT ? 504 : 502, text);
    }
}

/* -- The exchange -- */

/* The server shuts down. What ends by itself is finished. */
static void on_leave(struct http_exchange *x)
{
    struct forward *f = forward_of(x);
    if (!f->lasts || f->over)
        return;
    if (!f->begun) {
        fail(f, KUBE_SERVICE_UNAVAILABLE, 503, "the watch tier is shutting down");
        return;
    }
    pool_request_cancel(&f->request);
    f->down.ended = true;
    http_wake(x);
}

void tier_forward_body(struct http_exchange *x, struct slice bytes)
{
    send_up(forward_of(x), bytes);
}

void tier_forward_stop(struct http_exchange *x, const struct kube_status *status)
{
    struct forward *f = forward_of(x);
    if (f->over)
        return;
    if (f->begun)
        cut_off(f);
    else
        refuse(f, status);
}

static void on_end(struct kube_life *life)
{
    struct forward *f = CONTAINER_OF(life, struct forward, life);
    struct account *account = http_exchange_account(f->x);
    pool_request_cancel(&f->request);
    tier_forwards_leave(f->forwards, f->share);
    account_buf_fini(account, &f->up.buf);
    account_buf_fini(account, &f->down.buf);
    if (f->listener)
        f->listener->ended(f->listener);
    free(f);
}

/* False: it was refused. */
static bool start(struct forward *f, const struct tier_forward_options *options,
                  struct arena *arena)
{
    const struct http_request *request = http_exchange_request(f->x);
    struct tier_head head;
    enum status status = tier_head_make(arena, request, &options->head, &head);
    if (status == ST_OK) {
        f->lasts = head.lasts;
        struct pool_request_params params = {
            .method = request->method,
            .target = head.target,
            .fields = head.fields,
            .field_count = head.field_count,
            .waits = true, /* its client waits, too */
            .source = head.has_body || head.upgrade.len ? &f->up_source : NULL,
            .source_bytes =
                head.body_bytes == TIER_BYTES_UNKNOWN ? POOL_BYTES_UNKNOWN : head.body_bytes,
            .upgrade = head.upgrade,
        };
        status = http_pool_start(options->pool, &f->request, &params);
    }
    if (status == ST_OK)
        return true;
    if (status == ST_NOMEM)
        fail_without_memory(f);
    else if (status == ST_INVALID)
        fail(f, KUBE_BAD_REQUEST, 400, "the request cannot be passed on to the kube-apiserver");
    else
        fail(f, KUBE_SERVICE_UNAVAILABLE, 503, "the watch tier is shutting down");
    return false;
}

static void refuse_another(struct http_exchange *x, enum status why)
{
    struct kube_status status = {0};
    if (why == ST_NOMEM)
        (void)kube_fail_engine(&status, why);
    else
        (void)kube_fail_later(
            &status, why == ST_LIMIT
                         ? SLICE_LITERAL("the watch tier passes on too many requests at a time")
                         : SLICE_LITERAL("the watch tier passes on too many requests of this "
                                         "client at a time"));
    http_exchange_set_user(x, NULL);
    kube_refuse(x, &status);
}

bool tier_forward(struct http_exchange *x, const struct tier_forward_options *options)
{
    static const struct pool_request_ops ops = {
        .on_head = on_head, .on_body = on_body, .on_end = on_answered};
    struct tier_share *share;
    enum status status = tier_forwards_join(options->forwards, http_exchange_request(x), &share);
    if (status != ST_OK) {
        refuse_another(x, status);
        return false;
    }
    struct forward *f = xcalloc(1, sizeof(*f));
    f->life.end = on_end;
    f->x = x;
    f->forwards = options->forwards;
    f->share = share;
    f->listener = options->listener;
    f->request.ops = &ops;
    f->up_source.fill = fill_up;
    f->down_source.fill = fill_down;
    http_exchange_set_user(x, &f->life);
    /* A client that expects "100 Continue" gets it when the kube-apiserver takes the body. */
    if (http_exchange_request(x)->has_body)
        http_withhold(x, true);
    struct arena arena;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    arena_charge(&arena, http_exchange_account(x));
    /* The client's end cancels the request, and an answer that waits is not a stall. */
    if (start(f, options, &arena))
        http_park(x, on_leave);
    arena_fini(&arena);
    return true;
}
