/* What exchanges over HTTP/1.1 and HTTP/2 have in common. */
#include "wire/http/exchange.h"

#include "base/metric/turn.h"
#include "wire/http/exchange_private.h"

#include <stdio.h>

enum { SHORT_ANSWER_BYTES = 1024, SHORT_FIELDS_BYTES = 512 };

struct status_text {
    unsigned status;
    const char *text;
};

static const struct status_text status_texts[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {207, "Multi-Status"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Request Entity Too Large"},
    {414, "Request URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Requested Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {418, "I'm a teapot"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Entity"},
    {423, "Locked"},
    {424, "Failed Dependency"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
    {508, "Loop Detected"},
    {511, "Network Authentication Required"},
};

/* The texts are those of Go's net/http, which etcd and kube-apiserver send. */
const char *http_status_text(unsigned status)
{
    for (size_t i = 0; i < COUNT_OF(status_texts); i++) {
        if (status_texts[i].status == status)
            return status_texts[i].text;
    }
    return "Unknown";
}

/* ---- requests ---- */

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

bool http_name_equal(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    }
    return true;
}

bool http_request_get(const struct http_request *request, struct slice name,
                      struct slice *ret_value)
{
    for (size_t i = 0; i < request->field_count; i++) {
        if (http_name_equal(request->fields[i].name, name)) {
            *ret_value = request->fields[i].value;
            return true;
        }
    }
    return false;
}

void http_split_target(struct slice target, struct http_request *request)
{
    const uint8_t *mark = target.len ? memchr(target.ptr, '?', target.len) : NULL;
    size_t path_len = mark ? (size_t)(mark - target.ptr) : target.len;
    request->path = slice_sub(target, 0, path_len);
    request->query =
        mark ? slice_sub(target, path_len + 1, target.len - path_len - 1) : SLICE_EMPTY;
}

void http_request_set_connection(struct http_request *request, const struct http_hooks *hooks)
{
    request->secure = hooks->secure;
    request->guarded = hooks->guarded;
    request->peer_name = hooks->peer_name;
    request->certificate = hooks->certificate;
    request->peer = hooks->peer;
}

/* ---- the handler's side ---- */

void http_exchange_set_user(struct http_exchange *x, void *user)
{
    x->user = user;
}

void *http_exchange_user(const struct http_exchange *x)
{
    return x->user;
}

const struct http_request *http_exchange_request(const struct http_exchange *x)
{
    assert(x->opening);
    return &x->opening->request;
}

struct wire_peer http_exchange_peer(const struct http_exchange *x)
{
    return x->ops->peer ? x->ops->peer(x) : (struct wire_peer){0};
}

void http_forget_request(struct http_exchange *x)
{
    assert(x->state >= HTTP_ANSWERING);
    if (x->opening && x->ops->forget)
        x->ops->forget(x);
}

struct account *http_exchange_account(const struct http_exchange *x)
{
    return x->account;
}

void http_authorized(struct http_exchange *x)
{
    if (!http_exchange_is_authorizing(x))
        return;
    http_exchange_move(x, HTTP_ADMITTED);
    if (!x->in_admit)
        x->ops->authorized(x);
}

int64_t http_exchange_now(const struct http_exchange *x)
{
    return x->ops->now(x);
}

static bool is_clean(struct slice s)
{
    /* A line break in a value could begin another field or even another response. */
    for (size_t i = 0; i < s.len; i++) {
        if ((s.ptr[i] < ' ' && s.ptr[i] != '\t') || s.ptr[i] == 0x7f)
            return false;
    }
    return true;
}

static bool is_clean_name(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] <= ' ' || s.ptr[i] >= 0x7f || s.ptr[i] == ':')
            return false;
    }
    return s.len > 0;
}

enum status http_add_field(struct http_exchange *x, struct slice name, struct slice value)
{
    if (http_exchange_complete(x))
        return ST_CLOSED;
    assert(x->state < HTTP_ANSWERING);
    if (!is_clean_name(name) || !is_clean(value))
        return ST_INVALID;
    if (x->opening->fields.len + name.len + value.len + 4 > HTTP_FIELDS_BYTES_MAX)
        return ST_LIMIT;
    size_t more = name.len + value.len + 4;
    /* The few fields of a refusal are always accepted. */
    if (x->opening->fields.len + more <= SHORT_FIELDS_BYTES)
        TRY(account_reserve_anyway(x->account, &x->opening->fields, more));
    else
        TRY(account_reserve(x->account, &x->opening->fields, more));
    struct slice parts[] = {name, SLICE_LITERAL(": "), value, SLICE_LITERAL("\r\n")};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        TRY(buf_append(&x->opening->fields, parts[i]));
    return ST_OK;
}

void http_drop_fields(struct http_exchange *x)
{
    x->opening->fields.len = 0;
}

bool http_fields_next(struct slice *rest, struct http_field *ret_field)
{
    if (rest->len == 0)
        return false;
    const uint8_t *colon = memchr(rest->ptr, ':', rest->len);
    const uint8_t *end = memchr(rest->ptr, '\n', rest->len);
    assert(colon && end && colon + 2 < end);
    size_t name_len = (size_t)(colon - rest->ptr), line_len = (size_t)(end - rest->ptr) + 1;
    ret_field->name = slice_sub(*rest, 0, name_len);
    ret_field->value = slice_sub(*rest, name_len + 2, line_len - name_len - 4);
    *rest = slice_sub(*rest, line_len, rest->len - line_len);
    return true;
}

static bool has_no_body(unsigned status)
{
    return status == 204 || status == 304;
}

static bool begin(struct http_exchange *x, unsigned status, struct slice type, const size_t *length)
{
    if (http_exchange_complete(x))
        return false;
    assert(is_clean(type));
    http_exchange_move(x, HTTP_ANSWERING);
    /* HEAD makes an answer bodiless, too. */
    x->bodiless = x->bodiless || has_no_body(status);
    return x->ops->begin(x, status, type, length) == ST_OK;
}

static void cut_off(struct http_exchange *x)
{
    if (http_exchange_complete(x))
        return;
    http_exchange_stop(x);
    x->ops->abort(x);
}

/* A read may be repeated. A request of another kind may have taken effect, so the answer must not
 * invite the client to repeat it. */
static void respond_without_room(struct http_exchange *x)
{
    struct slice method = x->opening->request.method; /* the answer has not begun */
    bool reads =
        slice_equal(method, SLICE_LITERAL("GET")) || slice_equal(method, SLICE_LITERAL("HEAD"));
    http_drop_fields(x);
    http_answer_plain(x, reads ? 429 : 500);
}

void http_abort(struct http_exchange *x)
{
    if (!http_exchange_complete(x) && x->state < HTTP_ANSWERING)
        respond_without_room(x);
    else
        cut_off(x);
}

void http_respond(struct http_exchange *x, unsigned status, struct slice content_type,
                  struct slice body)
{
    /* Memory is reserved before the head is written. Afterwards a failure could only break the
     * answer off. */
    if (!http_exchange_complete(x) && !x->bodiless && body.len > SHORT_ANSWER_BYTES &&
        x->ops->reserve(x, body.len) != ST_OK) {
        respond_without_room(x);
        return;
    }
    if (!begin(x, status, content_type, has_no_body(status) ? NULL : &body.len))
        return;
    if (body.len && !x->bodiless && x->ops->write(x, body) != ST_OK)
        return;
    http_end(x);
}

void http_begin(struct http_exchange *x, unsigned status, struct slice content_type)
{
    (void)!begin(x, status, content_type, NULL);
}

void http_begin_sized(struct http_exchange *x, unsigned status, struct slice content_type,
                      size_t length)
{
    (void)!begin(x, status, content_type, has_no_body(status) ? NULL : &length);
}

void http_upgrade(struct http_exchange *x)
{
    if (http_exchange_complete(x))
        return;
    assert(x->opening->request.upgrade && x->route->on_body && x->ops->upgrade);
    http_exchange_move(x, HTTP_ANSWERING);
    x->upgraded = true;
    (void)!x->ops->upgrade(x);
}

enum status http_write(struct http_exchange *x, struct slice bytes)
{
    if (http_exchange_complete(x) || x->output_ended)
        return ST_CLOSED;
    assert(x->state == HTTP_ANSWERING && !x->source);
    if (bytes.len == 0 || x->bodiless)
        return ST_OK;
    return x->ops->write(x, bytes);
}

void http_end(struct http_exchange *x)
{
    if (http_exchange_complete(x))
        return;
    assert(x->state == HTTP_ANSWERING);
    if (x->output_ended)
        return;
    if (x->upgraded) {
        x->source = NULL;
        x->output_ended = true;
    } else {
        http_exchange_stop(x);
    }
    x->ops->end(x);
}

void http_set_source(struct http_exchange *x, struct http_source *source)
{
    if (http_exchange_complete(x))
        return;
    assert(x->state == HTTP_ANSWERING && !x->source && !x->output_ended);
    if (x->bodiless) { /* the answer has no body */
        http_end(x);
        return;
    }
    x->source = source;
    x->ops->wake(x);
}

void http_wake(struct http_exchange *x)
{
    if (!x->source || !x->source_parked)
        return;
    x->source_parked = false;
    x->ops->wake(x);
}

void http_wake_soon(const struct http_exchange *x)
{
    const uint8_t *at = (const uint8_t *)x - HTTP_TRANSPORT_BYTES;
    __builtin_prefetch(at, 1);
    __builtin_prefetch(at + 64, 1);
    __builtin_prefetch(x, 1);
    __builtin_prefetch(&x->user, 1);
}

void http_withhold(struct http_exchange *x, bool withhold)
{
    if (http_exchange_complete(x) || x->withheld == withhold)
        return;
    assert(http_exchange_streams(x));
    x->withheld = withhold;
    x->ops->withhold(x);
}

void http_park(struct http_exchange *x, void (*on_leave)(struct http_exchange *x))
{
    x->parks = true;
    x->on_leave = on_leave;
    /* The shutdown has already visited all exchanges. */
    if (x->leaving)
        http_exchange_leave(x);
}

void http_need_peer(struct http_exchange *x, bool needed)
{
    x->needs_peer = needed;
    if (needed && x->ops->needs_peer)
        x->ops->needs_peer(x);
}

void http_set_deadline(struct http_exchange *x, int64_t at_ns,
                       void (*on_deadline)(struct http_exchange *x))
{
    assert(!x->on_deadline);
    x->on_deadline = on_deadline;
    x->deadline_ns = at_ns;
    if (x->ops->timed)
        x->ops->timed(x);
}

void http_make_bulk(struct http_exchange *x)
{
    if (http_exchange_complete(x))
        return;
    assert(x->state < HTTP_ANSWERING);
    if (x->ops->make_bulk)
        x->ops->make_bulk(x);
}

/* ---- the transport's side ---- */

#define TO(state) (1u << HTTP_##state)

/* Drawn in exchange_private.h. */
static const uint8_t exchange_moves[] = {
    [HTTP_RECEIVING] = TO(AUTHORIZING) | TO(ADMITTED) | TO(ANSWERING) | TO(COMPLETE) | TO(ENDED),
    [HTTP_AUTHORIZING] = TO(ADMITTED) | TO(ANSWERING) | TO(COMPLETE) | TO(ENDED),
    [HTTP_ADMITTED] = TO(HANDLED) | TO(ANSWERING) | TO(COMPLETE) | TO(ENDED),
    [HTTP_HANDLED] = TO(ANSWERING) | TO(COMPLETE) | TO(ENDED),
    [HTTP_ANSWERING] = TO(COMPLETE) | TO(ENDED),
    [HTTP_COMPLETE] = TO(ENDED),
    [HTTP_ENDED] = 0,
};

void http_exchange_check(const struct http_exchange *x)
{
    assert(x->state <= HTTP_ENDED);
    assert(!x->source || x->state == HTTP_ANSWERING);
    assert(!x->called || x->route);
    assert((x->state != HTTP_HANDLED && x->state != HTTP_AUTHORIZING) || x->called);
    assert(!x->upgraded || x->state >= HTTP_ANSWERING);
    assert(!x->output_ended || (x->upgraded && !x->source));
}

void http_exchange_move(struct http_exchange *x, enum http_exchange_state next)
{
    assert(exchange_moves[x->state] & (1u << next));
    x->state = (uint8_t)next;
    x->called = x->called || next == HTTP_HANDLED || next == HTTP_AUTHORIZING;
    http_exchange_check(x);
}

void http_exchange_stop(struct http_exchange *x)
{
    x->source = NULL;
    if (!http_exchange_complete(x))
        http_exchange_move(x, HTTP_COMPLETE);
}

void http_exchange_pass(struct http_exchange *x, struct slice bytes)
{
    if (http_exchange_streams(x))
        x->route->on_body(x, x->service, bytes);
}

size_t http_exchange_body_max(const struct http_exchange *x, size_t limit)
{
    if (x->route && x->route->on_body)
        return SIZE_MAX;
    size_t own = x->route ? x->route->body_bytes_max : 0;
    return own ? size_min(own, limit) : limit;
}

void http_answer_too_long(struct http_exchange *x)
{
    if (x->route && x->route->too_long)
        x->route->too_long(x);
    else
        http_answer_plain(x, 413);
}

void http_exchange_tick(struct http_exchange *x, int64_t now_ns)
{
    if (now_ns < http_exchange_deadline(x))
        return;
    /* The callback may set the next deadline. */
    void (*on_deadline)(struct http_exchange *) = x->on_deadline;
    x->on_deadline = NULL;
    on_deadline(x);
}

/* Consecutive watches are one piece of work without a path: naming each of them would cost a tenth
 * of its event, mostly because its request is in no cache. */
static void name_work(const struct http_exchange *x)
{
    if (LIKELY(x->parks || !x->opening))
        turn_work("making the answers of watches", SLICE_EMPTY);
    else
        turn_work_copy("making the answer of", x->opening->request.method,
                       x->opening->request.path);
}

size_t http_exchange_fill(struct http_exchange *x, uint8_t *dst, size_t room)
{
    size_t len = 0;
    if (http_exchange_flows(x))
        name_work(x);
    while (http_exchange_flows(x) && len < room) {
        size_t n = 0;
        enum http_fill more = x->source->fill(x->source, dst + len, room - len, &n);
        assert(n <= room - len);
        assert(n > 0 || more != HTTP_FILL_MORE || http_exchange_complete(x));
        len += n;
        if (more == HTTP_FILL_PARKED)
            x->source_parked = true;
        else if (more == HTTP_FILL_DONE)
            http_end(x);
    }
    return len;
}

enum status http_exchange_append(struct http_exchange *x, struct buf *queue, struct slice bytes)
{
    /* A short answer, such as a refusal for lack of memory, must be possible without memory left in
     * the account. */
    if (queue->len + bytes.len <= SHORT_ANSWER_BYTES)
        TRY(account_reserve_anyway(x->account, queue, bytes.len));
    return account_append(x->account, queue, bytes);
}

void http_exchange_leave(struct http_exchange *x)
{
    x->leaving = true;
    if (!x->parks || http_exchange_complete(x))
        return;
    x->parks = false;
    if (x->on_leave)
        x->on_leave(x);
    else if (x->state == HTTP_ANSWERING)
        http_end(x);
    else
        http_answer_plain(x, 503);
}

void http_exchange_end(struct http_exchange *x)
{
    if (x->state == HTTP_ENDED)
        return;
    x->source = NULL;
    http_exchange_move(x, HTTP_ENDED);
    /* A handler that was never called has nothing to clean up. */
    if (x->called && x->route->on_end)
        x->route->on_end(x, x->service);
}

void http_exchange_fini(struct http_exchange *x)
{
    if (!x->opening)
        return;
    account_buf_fini(x->account, &x->opening->body);
    account_buf_fini(x->account, &x->opening->path);
    account_buf_fini(x->account, &x->opening->fields);
}

static const char no_memory[] = ": clients hold too much memory, see --max-client-bytes\n";
static const char no_answer[] = ": there is no memory for the answer, see --max-client-bytes\n";

void http_answer_plain(struct http_exchange *x, unsigned status)
{
    char text[160];
    const char *more = status == 429 ? no_memory : status == 500 ? no_answer : "";
    int n = status == 404
                ? snprintf(text, sizeof(text), "404 page not found\n")
                : snprintf(text, sizeof(text), "%u %s%s", status, http_status_text(status), more);
    enum status added = ST_OK;
    if (status == 404)
        added =
            http_add_field(x, SLICE_LITERAL("X-Content-Type-Options"), SLICE_LITERAL("nosniff"));
    else if (status == 429)
        added = http_add_field(x, SLICE_LITERAL("Retry-After"), SLICE_LITERAL("1"));
    if (added != ST_OK) {
        cut_off(x);
        return;
    }
    http_respond(x, status, SLICE_LITERAL("text/plain; charset=utf-8"), slice_of(text, (size_t)n));
}
