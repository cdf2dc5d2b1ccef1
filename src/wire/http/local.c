#include "wire/http/local.h"

#include "wire/http/exchange_private.h"

#include <stdlib.h>

enum { PIECE_BYTES = 4096 };

struct http_local {
    struct http_exchange x;
    struct http_opening opening;
    struct http_local_owner owner;
    struct http_field field;
    struct buf text; /* the strings of the request */
    struct buf answer;
    unsigned code;
};

static struct http_local *local_of(struct http_exchange *x)
{
    return CONTAINER_OF(x, struct http_local, x);
}

/* -- The transport -- */

static enum status on_begin(struct http_exchange *x, unsigned status, struct slice content_type,
                            const size_t *length)
{
    (void)content_type;
    (void)length;
    local_of(x)->code = status;
    return ST_OK;
}

static enum status on_reserve(struct http_exchange *x, size_t bytes)
{
    (void)x;
    (void)bytes;
    return ST_OK;
}

static enum status on_write(struct http_exchange *x, struct slice bytes)
{
    struct http_local *local = local_of(x);
    /* A longer answer is cut off: its owner reads only a Status, which is short. */
    size_t room = HTTP_LOCAL_ANSWER_BYTES - local->answer.len;
    return buf_append(&local->answer, slice_sub(bytes, 0, size_min(bytes.len, room)));
}

static void on_end(struct http_exchange *x)
{
    struct http_local *local = local_of(x);
    local->owner.on_answer(local->owner.ctx);
}

static void on_abort(struct http_exchange *x)
{
    local_of(x)->code = 0;
    on_end(x);
}

/* An answer that is pulled: nothing here makes it wait. */
static void on_wake(struct http_exchange *x)
{
    uint8_t piece[PIECE_BYTES];
    while (http_exchange_flows(x)) {
        size_t len = http_exchange_fill(x, piece, sizeof(piece));
        if (len && on_write(x, slice_of(piece, len)) != ST_OK)
            return;
    }
}

static int64_t on_now(const struct http_exchange *x)
{
    const struct http_local *local = CONTAINER_OF(x, const struct http_local, x);
    return local->owner.now_ns(local->owner.ctx);
}

static const struct http_exchange_ops ops = {
    .begin = on_begin,
    .reserve = on_reserve,
    .write = on_write,
    .end = on_end,
    .abort = on_abort,
    .wake = on_wake,
    .now = on_now,
};

/* -- The owner -- */

/* The buffer has room for all strings of the request. */
static struct slice keep(struct http_local *local, struct slice text)
{
    uint8_t *at = local->text.ptr + local->text.len;
    slice_copy(at, text);
    local->text.len += text.len;
    return slice_of(at, text.len);
}

static enum status set_request(struct http_local *local, const struct http_local_request *from)
{
    TRY(buf_reserve(&local->text, from->method.len + from->path.len + from->query.len +
                                      from->content_type.len + from->body.len + 1));
    local->field =
        (struct http_field){SLICE_LITERAL("content-type"), keep(local, from->content_type)};
    local->x.opening->request = (struct http_request){
        .method = keep(local, from->method),
        .path = keep(local, from->path),
        .query = keep(local, from->query),
        .body = keep(local, from->body),
        .fields = &local->field,
        .field_count = 1,
        .major = 1,
        .minor = 1,
        .own = true,
        .own_account = from->account,
    };
    local->x.opening->request.target = local->x.opening->request.path;
    return ST_OK;
}

enum status http_local_send(const struct http_route *route, void *service,
                            const struct http_local_request *request,
                            const struct http_local_owner *owner, struct http_local **ret_local)
{
    AUTO(http_local_closep) struct http_local *local = calloc(1, sizeof(*local));
    if (!local)
        return ST_NOMEM;
    assert(!route->on_body);
    local->owner = *owner;
    local->x.ops = &ops;
    local->x.opening = &local->opening;
    local->x.route = route;
    local->x.service = service;
    TRY(set_request(local, request));
    /* The owner names the route itself, so the request needs no gate. */
    http_exchange_move(&local->x, HTTP_ADMITTED);
    http_exchange_move(&local->x, HTTP_HANDLED);
    struct http_exchange *x = &local->x;
    *ret_local = TAKE(local);
    route->on_request(x, service, &x->opening->request);
    return ST_OK;
}

unsigned http_local_code(const struct http_local *local)
{
    return local->code;
}

struct slice http_local_body(const struct http_local *local)
{
    return buf_slice(&local->answer);
}

void http_local_close(struct http_local *local)
{
    if (!local)
        return;
    http_exchange_end(&local->x);
    http_exchange_fini(&local->x);
    buf_fini(&local->text);
    buf_fini(&local->answer);
    free(local);
}
