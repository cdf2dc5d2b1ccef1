/* What a service does with a call. */
#include "wire/grpc/call.h"

#include "wire/grpc/endpoint_private.h"

#include <stdarg.h>
#include <stdio.h>

struct arena *grpc_call_arena(struct grpc_call *call)
{
    return &call->arena;
}

void grpc_call_peer_address(const struct grpc_call *call, char text[GRPC_ADDRESS_BYTES])
{
    text[0] = 0;
    if (call->endpoint && call->endpoint->peer_address)
        call->endpoint->peer_address(call->endpoint->peer_owner, text);
}

struct wire_peer grpc_call_peer(const struct grpc_call *call)
{
    const struct grpc_endpoint *endpoint = call->endpoint;
    return endpoint ? (struct wire_peer){endpoint->peer_address, endpoint->peer_owner}
                    : (struct wire_peer){0};
}

struct slice grpc_call_path(const struct grpc_call *call)
{
    return call->row ? call->row->path : SLICE_EMPTY;
}

struct slice grpc_call_request(const struct grpc_call *call)
{
    return call->request;
}

bool grpc_call_response(const struct grpc_call *call, struct slice *ret_message)
{
    const struct grpc_chunk *chunk = call->first_chunk;
    if (!chunk || chunk->next || chunk->len < GRPC_PREFIX_BYTES)
        return false;
    *ret_message = slice_of(chunk->bytes + GRPC_PREFIX_BYTES, chunk->len - GRPC_PREFIX_BYTES);
    return true;
}

const char *grpc_call_peer_name(const struct grpc_call *call)
{
    return call->endpoint ? call->endpoint->peer_name : NULL;
}

int64_t grpc_call_now(const struct grpc_call *call)
{
    return call->endpoint ? call->endpoint->now_ns : 0;
}

void grpc_call_set_user(struct grpc_call *call, void *user)
{
    call->user = user;
}

void *grpc_call_user(const struct grpc_call *call)
{
    return call->user;
}

void grpc_call_set_caller(struct grpc_call *call, void *caller)
{
    call->caller = caller;
}

void *grpc_call_caller(const struct grpc_call *call)
{
    return call->caller;
}

bool grpc_call_metadata(const struct grpc_call *call, struct slice name, struct slice *ret_value)
{
    return h2_headers_get(call->headers, name, ret_value);
}

bool grpc_call_ended(const struct grpc_call *call)
{
    return call->ended;
}

/* The clock starts when the next turn sees output waiting: ours may stand since the last one. */
static void output_changed(struct grpc_call *call)
{
    call->progress_ns = 0;
    grpc_call_drop_held(call);
    if (LIKELY(call->endpoint->session))
        h2_stream_ready(&call->stream);
    else
        call->endpoint->ops->on_output(call->endpoint->owner);
}

static struct grpc_chunk *chunk_new(struct grpc_call *call, size_t len)
{
    size_t bytes = sizeof(struct grpc_chunk) + len;
    struct grpc_chunk *chunk = NULL;
    if (!call->method->server_streams) {
        chunk = arena_alloc(&call->arena, bytes);
    } else if (account_charge(call->arena.account, bytes)) {
        chunk = malloc(bytes);
        if (!chunk)
            account_release(call->arena.account, bytes);
    }
    if (chunk)
        *chunk = (struct grpc_chunk){.len = len};
    return chunk;
}

uint8_t *grpc_call_message(struct grpc_call *call, size_t len)
{
    if (call->finished || call->ended || len > UINT32_MAX - GRPC_PREFIX_BYTES)
        return NULL;
    struct grpc_endpoint *endpoint = call->endpoint;
    size_t bytes = GRPC_PREFIX_BYTES + len;
    struct grpc_chunk *chunk = chunk_new(call, bytes);
    if (!chunk)
        return NULL;
    if (call->last_chunk)
        call->last_chunk->next = chunk;
    else
        call->first_chunk = chunk;
    call->last_chunk = chunk;
    endpoint->queued_bytes += bytes;
    grpc_prefix_write(chunk->bytes, (uint32_t)len);
    grpc_call_count(call, GRPC_COUNT_SENT, 1);
    output_changed(call);
    return chunk->bytes + GRPC_PREFIX_BYTES;
}

void grpc_call_set_source(struct grpc_call *call, struct grpc_source *source)
{
    if (call->finished || call->ended)
        return;
    assert(!call->source);
    call->source = source;
    call->source_parked = false;
    grpc_call_answer_begins(call);
    output_changed(call);
}

void grpc_call_sent(struct grpc_call *call, uint64_t messages)
{
    grpc_call_count(call, GRPC_COUNT_SENT, messages);
}

void grpc_call_wake(struct grpc_call *call)
{
    if (!call->source || !call->source_parked)
        return;
    call->source_parked = false;
    output_changed(call);
}

void grpc_call_pause(struct grpc_call *call, bool paused)
{
    if (call->paused == paused || call->ended)
        return;
    call->paused = paused;
    if (paused || !call->endpoint || !call->endpoint->session)
        return;
    size_t withheld = call->withheld;
    call->withheld = 0;
    h2_stream_consumed(&call->stream, withheld);
}

static void finish(struct grpc_call *call, enum grpc_code code, struct slice text)
{
    if (call->finished || call->ended)
        return;
    call->finished = true;
    call->source = NULL;
    if (!call->delivered) /* nobody will see what came of its message */
        account_buf_fini(call->arena.account, &call->message);
    call->code = (uint8_t)code;
    call->text = text;
    grpc_call_count_handled(call, code);
    output_changed(call);
}

void grpc_call_finish(struct grpc_call *call)
{
    finish(call, GRPC_OK, SLICE_EMPTY);
}

void grpc_call_fail(struct grpc_call *call, enum status status)
{
    finish(call, status_code(status), slice_from_text(status_text(status)));
}

void grpc_call_fail_text(struct grpc_call *call, enum grpc_code code, struct slice text)
{
    struct slice copy = SLICE_EMPTY;
    if (call->finished || call->ended)
        return;
    text.len = size_min(text.len, GRPC_TEXT_BYTES_MAX);
    if (arena_dup(&call->arena, text, &copy) != ST_OK)
        copy = SLICE_EMPTY; /* the code alone must do */
    finish(call, code, copy);
}

void grpc_call_fail_format(struct grpc_call *call, enum grpc_code code, const char *format, ...)
{
    char text[768];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert(len >= 0);
    grpc_call_fail_text(call, code, slice_of(text, size_min((size_t)len, sizeof(text) - 1)));
}
