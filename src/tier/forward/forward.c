#include "tier/forward/forward.h"

#include "base/memory/arena.h"
#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "kube/policy/access/identity.h"
#include "kube/request/life.h"

enum { ARENA_BYTES_MAX = 1 << 20, QUEUED_BYTES = 64 * 1024 };

struct forward {
    struct kube_life life; /* owner of the exchange */
    struct http_exchange *x;
    struct http_source source;
    struct http_pool *pool;
    struct pool_request request;
    struct arena arena; /* the target and the fields */
    struct slice target;
    struct http_field *fields;
    size_t field_count;
    struct buf body;   /* what the client has sent */
    struct buf queued; /* what the client has not read of the answer */
    size_t queued_at, charged_body, charged_queued;
    bool begun, complete, broken, refused;
};

static void charge(struct forward *f, struct buf *buf, size_t *charged)
{
    if (account_follow(http_exchange_account(f->x), buf, charged) == ST_OK)
        return;
    f->broken = true;
    http_abort(f->x);
}

static void fail(struct forward *f, enum kube_reason reason, unsigned code, const char *text)
{
    struct kube_status status = {0};
    (void)!kube_fail(&status, reason, "%s", text);
    status.code = code;
    f->refused = true;
    kube_refuse(f->x, &status);
}

/* -- The answer -- */

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct forward *f = CONTAINER_OF(source, struct forward, source);
    size_t n = size_min(room, f->queued.len - f->queued_at);
    slice_copy(dst, slice_of(f->queued.ptr + f->queued_at, n));
    f->queued_at += n;
    *ret_len = n;
    if (f->queued_at < f->queued.len)
        return HTTP_FILL_MORE;
    f->queued.len = f->queued_at = 0;
    if (f->broken)
        http_abort(f->x);
    if (f->broken || f->complete)
        return HTTP_FILL_DONE;
    pool_request_withhold(&f->request, false);
    return HTTP_FILL_PARKED;
}

static bool is_one_of(struct slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (http_name_equal(name, slice_from_text(names[i])))
            return true;
    return false;
}

/* The server sets these itself. */
static bool is_passed_back(struct slice name)
{
    static const char *const left_out[] = {"connection", "keep-alive",  "transfer-encoding",
                                           "upgrade",    "trailer",     "content-length",
                                           "date",       "content-type"};
    return !is_one_of(name, left_out, COUNT_OF(left_out));
}

static void on_head(struct pool_request *request, unsigned status, const struct http_field *fields,
                    size_t field_count)
{
    struct forward *f = CONTAINER_OF(request, struct forward, request);
    struct slice type = SLICE_EMPTY;
    for (size_t i = 0; i < field_count; i++) {
        if (http_name_equal(fields[i].name, SLICE_LITERAL("content-type")))
            type = fields[i].value;
        if (is_passed_back(fields[i].name) &&
            http_add_field(f->x, fields[i].name, fields[i].value) != ST_OK) {
            fail(f, KUBE_INTERNAL_ERROR, 502,
                 "the head of the kube-apiserver's answer is too long");
            pool_request_cancel(&f->request);
            return;
        }
    }
    f->begun = true;
    f->source.fill = fill;
    http_begin(f->x, status, type);
    http_set_source(f->x, &f->source);
    http_park(f->x, NULL);
}

static void on_body(struct pool_request *request, struct slice bytes)
{
    struct forward *f = CONTAINER_OF(request, struct forward, request);
    if (f->broken || buf_append(&f->queued, bytes) != ST_OK) {
        f->broken = true;
        http_abort(f->x);
        return;
    }
    charge(f, &f->queued, &f->charged_queued);
    if (f->queued.len > QUEUED_BYTES)
        pool_request_withhold(&f->request, true);
    http_wake(f->x);
}

static void on_answered(struct pool_request *request, enum status status, const char *reason)
{
    struct forward *f = CONTAINER_OF(request, struct forward, request);
    char text[512];
    f->complete = true;
    f->broken |= status != ST_OK;
    if (f->begun) {
        http_wake(f->x);
        return;
    }
    bool sent = request->reached != POOL_REQUEST_UNREACHED;
    snprintf(text, sizeof(text), "the kube-apiserver %s: %s",
             sent ? "has not answered" : "cannot be reached", reason);
    if (sent && status == ST_TIMEOUT)
        fail(f, KUBE_TIMEOUT, 504, text);
    else
        fail(f, KUBE_SERVICE_UNAVAILABLE, 503, text);
}

static const struct pool_request_ops ops = {
    .on_head = on_head, .on_body = on_body, .on_end = on_answered};

/* -- The request -- */

static bool has_prefix(struct slice name, const char *prefix)
{
    struct slice start = slice_from_text(prefix);
    return name.len >= start.len && http_name_equal(slice_sub(name, 0, start.len), start);
}

/* What belongs to the connection, what the pool sets itself, and what only a trusted proxy may say.
 */
static bool is_passed_on(struct slice name, bool drop_credentials)
{
    static const char *const left_out[] = {
        "host",    "connection",     "keep-alive",          "proxy-connection",  "te",    "trailer",
        "upgrade", "content-length", "proxy-authorization", "transfer-encoding", "expect"};
    if (!name.len || name.ptr[0] == ':' || has_prefix(name, "x-remote-"))
        return false;
    if (drop_credentials &&
        (http_name_equal(name, SLICE_LITERAL("authorization")) || has_prefix(name, "impersonate-")))
        return false;
    return !is_one_of(name, left_out, COUNT_OF(left_out));
}

static enum status copy_fields(struct forward *f, const struct tier_forward_options *options)
{
    const struct http_request *request = http_exchange_request(f->x);
    f->fields =
        arena_calloc(&f->arena, request->field_count + options->add_count + 1, sizeof(*f->fields));
    if (!f->fields)
        return ST_NOMEM;
    for (size_t i = 0; i < request->field_count; i++)
        if (is_passed_on(request->fields[i].name, options->drop_credentials))
            f->fields[f->field_count++] = request->fields[i];
    for (size_t i = 0; i < options->add_count; i++) {
        struct http_field *field = &f->fields[f->field_count++];
        TRY(arena_dup(&f->arena, options->add[i].name, &field->name));
        TRY(arena_dup(&f->arena, options->add[i].value, &field->value));
    }
    uint8_t *target = arena_alloc(&f->arena, options->path_prefix.len + request->target.len + 1);
    if (!target)
        return ST_NOMEM;
    slice_copy(target, options->path_prefix);
    slice_copy(target + options->path_prefix.len, request->target);
    f->target = slice_of(target, options->path_prefix.len + request->target.len);
    return ST_OK;
}

static void start(struct forward *f)
{
    struct pool_request_params params = {
        .method = http_exchange_request(f->x)->method,
        .target = f->target,
        .fields = f->fields,
        .field_count = f->field_count,
        .body = buf_slice(&f->body),
        .waits = true, /* it may be a watch, or a log that is followed */
    };
    if (http_pool_start(f->pool, &f->request, &params) != ST_OK)
        fail(f, KUBE_BAD_REQUEST, 400, "the request cannot be passed on");
}

void tier_forward_body(struct http_exchange *x, struct slice bytes)
{
    struct forward *f =
        CONTAINER_OF((struct kube_life *)http_exchange_user(x), struct forward, life);
    if (f->refused || f->broken)
        return;
    if (!bytes.len) {
        start(f);
        return;
    }
    if (f->body.len + bytes.len > TIER_FORWARD_BODY_BYTES_MAX)
        fail(f, KUBE_TOO_LARGE, 413, "the body of the request is too long for the watch tier");
    else if (buf_append(&f->body, bytes) == ST_OK)
        charge(f, &f->body, &f->charged_body);
    else
        http_abort(x);
}

static void on_end(struct kube_life *life)
{
    struct forward *f = CONTAINER_OF(life, struct forward, life);
    pool_request_cancel(&f->request);
    account_release(http_exchange_account(f->x), f->charged_body + f->charged_queued);
    buf_fini(&f->body);
    buf_fini(&f->queued);
    arena_fini(&f->arena);
    free(f);
}

void tier_forward(struct http_exchange *x, const struct tier_forward_options *options)
{
    const struct http_request *request = http_exchange_request(x);
    struct forward *f = xcalloc(1, sizeof(*f));
    f->life.end = on_end;
    f->x = x;
    f->pool = options->pool;
    f->request.ops = &ops;
    arena_init(&f->arena, NULL, 0, ARENA_BYTES_MAX);
    http_exchange_set_user(x, &f->life);
    if (copy_fields(f, options) != ST_OK)
        http_abort(x);
    else if (request->upgrade)
        fail(f, KUBE_UNKNOWN, 501, "the watch tier does not pass upgraded connections on yet");
    else if (!request->has_body)
        start(f);
}
