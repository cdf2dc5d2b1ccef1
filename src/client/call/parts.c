#include "client/call/parts.h"

#include "client/call/messages.h"
#include "client/connect/error.h"

#include <stdlib.h>

enum { SCRATCH_BYTES = 1024 }; /* a part with a few keys needs no memory from the heap */

static struct parts_call *parts_of(struct vigil_call *call)
{
    return CONTAINER_OF(call, struct parts_call, call);
}

void parts_check(const struct parts_call *parts)
{
    const struct vigil_call *call = &parts->call;
    client_call_check(call);
    assert(client_messages_bytes(parts->held) == parts->held_bytes);
    assert(!parts->held || parts->paused);
    assert(!parts->paused || !call->deadline.set);
    assert(call->state != CALL_HOLDING || parts->paused);
    assert(call->state != CALL_COMPLETED || !parts->held);
}

/* -- Delivering -- */

void parts_note_header(struct parts_call *parts, const void *part)
{
    const vigil_header *header = *(const vigil_header *const *)part;
    if (!header)
        return;
    parts->header = *header;
    parts->result.header = &parts->header;
}

static void pause_call(struct parts_call *parts)
{
    parts->paused = true;
    client_call_stop_clock(&parts->call);
    grpc_client_call_withhold(&parts->call.grpc, true);
}

/* The call may be cancelled or freed by the user inside, but our reference keeps it. */
void parts_deliver(struct parts_call *parts, const void *part)
{
    struct vigil_call *call = &parts->call;
    struct vigil_client *client = call->client;
    if (atomic_load(&call->operation.canceled) ||
        !driver_callback_begin(&client->driver, &call->operation.object))
        return;
    int answer = parts->hooks->call_back(parts, part);
    driver_callback_end(&client->driver);
    if (answer == VIGIL_PART_PAUSE)
        pause_call(parts);
}

static void deliver_response(struct parts_call *parts, void *response)
{
    struct vigil_call *call = &parts->call;
    if (call->client->prefix.len && call->method->strip)
        call->method->strip(response, call->client->prefix.len);
    call->response = &parts->result;
    const void *part = parts->hooks->open(parts, response);
    if (!part)
        return;
    call->delivered = !parts->hooks->repeatable;
    parts_note_header(parts, part);
    parts_deliver(parts, part);
}

static enum status deliver_message(struct parts_call *parts, struct slice message)
{
    _Alignas(ARENA_ALIGN) uint8_t scratch[SCRATCH_BYTES];
    const struct pb_message *type = parts->call.method->response;
    struct arena arena;
    arena_init(&arena, scratch, sizeof(scratch), client_decode_bytes_max(parts->call.client));
    void *response = arena_alloc(&arena, type->struct_bytes);
    enum status status = response ? pb_decode(type, message, &arena, response) : ST_NOMEM;
    if (status == ST_OK)
        deliver_response(parts, response);
    arena_fini(&arena);
    return status;
}

/* -- Streams -- */

static void count_held(struct parts_call *parts, int64_t bytes)
{
    parts->held_bytes = (size_t)((int64_t)parts->held_bytes + bytes);
    atomic_fetch_add_explicit(&parts->call.client->counters.queued_bytes, (uint64_t)bytes,
                              memory_order_relaxed);
}

static enum status hold(struct parts_call *parts, struct slice message)
{
    TRY(client_messages_push(&parts->held, message));
    count_held(parts, (int64_t)message.len);
    /* Again, because the call may have been repeated while it was paused. */
    grpc_client_call_withhold(&parts->call.grpc, true);
    return ST_OK;
}

static void drop_held(struct parts_call *parts)
{
    client_messages_free(&parts->held);
    count_held(parts, -(int64_t)parts->held_bytes);
}

static enum status stream_receive(struct vigil_call *call, struct slice message)
{
    struct parts_call *parts = parts_of(call);
    client_call_progressed(call);
    if (parts->paused)
        return hold(parts, message);
    TRY(deliver_message(parts, message));
    if (!parts->paused)
        client_call_restart_clock(call);
    return ST_OK;
}

/* What is held is older than what the repeated call begins with. */
static void stream_repeat(struct vigil_call *call)
{
    drop_held(parts_of(call));
}

static void finish(struct parts_call *parts)
{
    vigil_error *error = &parts->call.operation.error;
    const char *wrong = NULL;
    if (error->code == VIGIL_OK && parts->hooks->check)
        wrong = parts->hooks->check(parts);
    if (wrong)
        client_error_set(error, VIGIL_ERROR_PROTOCOL, VIGIL_UNKNOWN, "%s", wrong);
    client_call_complete(&parts->call);
}

static void stream_end(struct vigil_call *call)
{
    struct parts_call *parts = parts_of(call);
    if (parts->paused)
        client_call_hold(call);
    else
        finish(parts);
}

void parts_release(struct vigil_call *call)
{
    struct parts_call *parts = parts_of(call);
    drop_held(parts);
    if (parts->hooks->release)
        parts->hooks->release(parts);
}

const struct client_part_ops parts_stream_ops = {
    .receive = stream_receive,
    .repeat = stream_repeat,
    .end = stream_end,
    .release = parts_release,
};

/* -- Resuming -- */

static enum status deliver_held(struct parts_call *parts)
{
    enum status status = ST_OK;
    while (parts->held && !parts->paused && status == ST_OK) {
        struct client_message *message = client_messages_pop(&parts->held);
        count_held(parts, -(int64_t)message->len);
        status = deliver_message(parts, slice_of(message->bytes, message->len));
        free(message);
    }
    return status;
}

static void stream_resumed(struct parts_call *parts)
{
    struct vigil_call *call = &parts->call;
    enum status status = deliver_held(parts);
    if (status != ST_OK) {
        client_call_stop_for(call, status);
    } else if (parts->paused) {
        return;
    } else if (call->state == CALL_HOLDING) {
        finish(parts);
    } else {
        grpc_client_call_withhold(&call->grpc, false);
        client_call_restart_clock(call);
    }
}

static void run_resume(struct driver_command *command)
{
    struct parts_call *parts = CONTAINER_OF(command, struct parts_call, resume);
    atomic_store(&parts->resume_posted, false);
    if (parts->paused && parts->call.state != CALL_COMPLETED) {
        parts->paused = false;
        if (parts->hooks->resumed)
            parts->hooks->resumed(parts);
        else
            stream_resumed(parts);
    }
    operation_unref(&parts->call.operation);
}

void vigil_call_resume(vigil_call *call)
{
    if (!call || !call->method->parts)
        return;
    struct parts_call *parts = parts_of(call);
    if (atomic_exchange(&parts->resume_posted, true))
        return;
    operation_ref(&call->operation);
    driver_post(&call->client->driver, &parts->resume);
}

/* -- Creating -- */

struct parts_call *parts_call_new(struct vigil_client *client, const struct client_method *method,
                                  const struct parts_hooks *hooks, size_t bytes, void *user)
{
    struct vigil_call *call = client_call_new_sized(client, method, bytes);
    if (!call)
        return NULL;
    struct parts_call *parts = parts_of(call);
    parts->hooks = hooks;
    parts->user = user;
    parts->resume.run = run_resume;
    return parts;
}

struct vigil_call *parts_call_with(struct parts_call *parts, const void *message)
{
    if (!parts)
        return NULL;
    if (!parts->fn.range)
        parts->call.invalid = "no function receives the parts";
    return client_call_with(&parts->call, message);
}
