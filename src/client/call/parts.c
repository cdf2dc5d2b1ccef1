#include "client/call/parts.h"

#include "client/call/messages.h"
#include "client/connect/error.h"

#include <stdlib.h>

enum { SCRATCH_BYTES = 1024 }; /* a part with a few keys needs no memory from the heap */

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
    if (answer == VIGIL_PART_PAUSE) {
        /* The server stops sending when its window is full, and the time that the program takes
         * does not count. */
        parts->paused = true;
        client_call_stop_clock(&parts->call);
        grpc_client_call_withhold(&parts->call.grpc, true);
    }
}

/* Decodes one message and delivers it. Its memory is needed only until the callback returns. */
static enum status deliver_message(struct parts_call *parts, struct slice message)
{
    _Alignas(ARENA_ALIGN) uint8_t scratch[SCRATCH_BYTES];
    struct vigil_call *call = &parts->call;
    const struct pb_message *type = call->method->response;
    struct arena arena;
    const void *part = NULL;
    arena_init(&arena, scratch, sizeof(scratch), client_decode_bytes_max(call->client));
    void *response = arena_alloc(&arena, type->struct_bytes);
    enum status status = response ? pb_decode(type, message, &arena, response) : ST_NOMEM;
    if (status == ST_OK) {
        if (call->client->prefix.len && call->method->strip)
            call->method->strip(response, call->client->prefix.len);
        call->response = &parts->result;
        part = parts->hooks->open(parts, response);
    }
    if (part) {
        /* The program has seen this part, so the call cannot begin again unless its parts may
         * repeat. */
        call->delivered = !parts->hooks->repeatable;
        parts_note_header(parts, part);
        parts_deliver(parts, part);
    }
    arena_fini(&arena);
    return status;
}

/* -- Streams -- */

static void count_held(struct parts_call *parts, int64_t bytes)
{
    parts->held_bytes = (size_t)((int64_t)parts->held_bytes + bytes);
    counter_add(&parts->call.client->counters.queued_bytes, (uint64_t)bytes);
}

static enum status stream_receive(struct vigil_call *call, struct slice message)
{
    struct parts_call *parts = CONTAINER_OF(call, struct parts_call, call);
    client_call_progressed(call);
    if (parts->paused) {
        TRY(client_messages_push(&parts->held, message));
        count_held(parts, (int64_t)message.len);
        /* Again, because the call may have been repeated while it was paused. */
        grpc_client_call_withhold(&parts->call.grpc, true);
        return ST_OK;
    }
    TRY(deliver_message(parts, message));
    if (!parts->paused)
        client_call_restart_clock(call);
    return ST_OK;
}

/* What is held is older than what the repeated call begins with. */
static void stream_repeat(struct vigil_call *call)
{
    struct parts_call *parts = CONTAINER_OF(call, struct parts_call, call);
    client_messages_free(&parts->held);
    count_held(parts, -(int64_t)parts->held_bytes);
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
    struct parts_call *parts = CONTAINER_OF(call, struct parts_call, call);
    /* The completion waits, too: it must not overtake parts that the program has not received. */
    if (parts->paused)
        client_call_hold(call);
    else
        finish(parts);
}

void parts_release(struct vigil_call *call)
{
    struct parts_call *parts = CONTAINER_OF(call, struct parts_call, call);
    client_messages_free(&parts->held);
    count_held(parts, -(int64_t)parts->held_bytes);
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

static void stream_resumed(struct parts_call *parts)
{
    struct vigil_call *call = &parts->call;
    enum status status = ST_OK;
    while (parts->held && !parts->paused && status == ST_OK) {
        struct client_message *message = client_messages_pop(&parts->held);
        count_held(parts, -(int64_t)message->len);
        status = deliver_message(parts, slice_of(message->bytes, message->len));
        free(message);
    }
    if (status != ST_OK) {
        client_call_stop_for(call, status);
    } else if (parts->paused) {
        return; /* by the callback of one of the held parts */
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
    struct parts_call *parts = CONTAINER_OF(call, struct parts_call, call);
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
    struct parts_call *parts = CONTAINER_OF(call, struct parts_call, call);
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
