#include "wire/grpc/local.h"

#include "wire/grpc/call_private.h"

#include <stdlib.h>

struct grpc_local {
    struct grpc_endpoint endpoint; /* without a session; has only this call */
    struct grpc_call *call;
};

/* One allocation, as for the header fields of a connection. */
static struct h2_headers *headers_new(const struct grpc_row *row, const struct http_field *fields,
                                      size_t count)
{
    size_t bytes = sizeof(struct h2_headers) + count * sizeof(*fields);
    size_t at = bytes;
    for (size_t i = 0; i < count; i++)
        bytes += fields[i].name.len + fields[i].value.len;
    struct h2_headers *headers = malloc(bytes);
    if (!headers)
        return NULL;
    *headers = (struct h2_headers){
        .refs = 1, .count = (uint32_t)count, .content_length = -1, .path = row->path, .note = row};
    for (size_t i = 0; i < count; i++) {
        uint8_t *to = (uint8_t *)headers + at;
        slice_copy(to, fields[i].name);
        slice_copy(to + fields[i].name.len, fields[i].value);
        headers->fields[i].name = slice_of(to, fields[i].name.len);
        headers->fields[i].value = slice_of(to + fields[i].name.len, fields[i].value.len);
        at += fields[i].name.len + fields[i].value.len;
    }
    return headers;
}

enum status grpc_local_open(struct grpc_server *server, struct slice path,
                            const struct http_field *fields, size_t field_count,
                            struct grpc_local_hooks hooks, int64_t now_ns,
                            struct grpc_local **ret_local)
{
    const struct grpc_row *row = grpc_services_find(server->services, path);
    if (!row)
        return ST_UNIMPLEMENTED;
    AUTO(h2_headers_unrefp) struct h2_headers *headers = headers_new(row, fields, field_count);
    struct grpc_local *local = calloc(1, sizeof(*local));
    if (!headers || !local) {
        free(local);
        return ST_NOMEM;
    }
    local->endpoint = (struct grpc_endpoint){.server = server,
                                             .on_output = hooks.on_output,
                                             .owner = hooks.owner,
                                             .peer = hooks.peer,
                                             .account = hooks.account,
                                             .now_ns = now_ns,
                                             .check_at_ns = INT64_MAX};
    list_init(&local->endpoint.timed);
    local->call = grpc_call_new(&local->endpoint, headers);
    if (!local->call) {
        free(local);
        return ST_NOMEM;
    }
    grpc_call_route(local->call);
    *ret_local = local;
    return ST_OK;
}

void grpc_local_close(struct grpc_local *local)
{
    if (!local)
        return;
    grpc_call_closed(local->call);
    assert(local->endpoint.queued_bytes == 0);
    assert(local->endpoint.held_bytes == 0);
    free(local);
}

const struct grpc_method *grpc_local_method(const struct grpc_local *local)
{
    return local->call->method;
}

void grpc_local_deliver(struct grpc_local *local, struct slice message, int64_t now_ns)
{
    local->endpoint.now_ns = now_ns;
    grpc_call_deliver(local->call, message);
}

void grpc_local_half_close(struct grpc_local *local, int64_t now_ns)
{
    local->endpoint.now_ns = now_ns;
    grpc_call_on_half_close(&local->call->stream);
}

bool grpc_local_paused(const struct grpc_local *local)
{
    return local->call->paused;
}

enum grpc_local_phase grpc_local_phase(const struct grpc_local *local)
{
    const struct grpc_call *call = local->call;
    if (call->finished)
        return GRPC_LOCAL_OVER;
    if (call->source)
        return GRPC_LOCAL_SOURCE;
    return call->first_chunk ? GRPC_LOCAL_MESSAGE : GRPC_LOCAL_SILENT;
}

size_t grpc_local_queued(const struct grpc_local *local)
{
    return local->endpoint.queued_bytes;
}

enum grpc_local_fill grpc_local_fill(struct grpc_local *local, uint8_t *dst, size_t room,
                                     int64_t now_ns, size_t *ret_len)
{
    local->endpoint.now_ns = now_ns;
    switch (grpc_call_data(&local->call->stream, dst, room, ret_len)) {
    case H2_FILL_END:
        return GRPC_LOCAL_END;
    case H2_FILL_PARKED:
        return GRPC_LOCAL_PARKED;
    default:
        return GRPC_LOCAL_MORE;
    }
}

enum grpc_code grpc_local_status(const struct grpc_local *local, struct slice *ret_text)
{
    assert(local->call->finished);
    *ret_text = local->call->text;
    return local->call->code;
}

void grpc_local_leave(struct grpc_local *local)
{
    /* A call that may stay open for ever has to be ended; any other has its answer soon. */
    if (local->call->method->parks)
        grpc_call_fail(local->call, ST_STOPPED);
}

void grpc_local_expire(struct grpc_local *local)
{
    if (!local->call->finished)
        grpc_call_expire(local->call);
}
