#include "wire/grpc/local.h"

#include "base/buf.h"
#include "wire/grpc/call.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Services that answer now or later, and what the test observed. */
struct bed {
    struct grpc_services *services;
    struct grpc_limits limits;
    struct grpc_server server;
    struct grpc_local *local;
    struct grpc_call *call; /* the latest */
    struct grpc_source source;
    size_t outputs, messages, ends, half_closes;
    size_t source_left; /* bytes of one message that are still to be made */
    char seen[64];
};

static void on_output(void *owner)
{
    ((struct bed *)owner)->outputs++;
}

static void note(struct grpc_call *call, struct bed *bed, struct slice message)
{
    bed->call = call;
    bed->messages++;
    assert_true(message.len < sizeof(bed->seen));
    slice_copy(bed->seen, message);
    bed->seen[message.len] = '\0';
}

static void test_send(struct grpc_call *call, struct slice message)
{
    uint8_t *to = grpc_call_message(call, message.len);
    assert_non_null(to);
    slice_copy(to, message);
}

static void echo(struct grpc_call *call, void *service, struct slice message)
{
    note(call, service, message);
    test_send(call, message);
    grpc_call_finish(call);
}

static void later(struct grpc_call *call, void *service, struct slice message)
{
    note(call, service, message);
}

static void echo_each(struct grpc_call *call, void *service, struct slice message)
{
    note(call, service, message);
    test_send(call, message);
    grpc_call_pause(call, ((struct bed *)service)->messages == 2);
}

static enum grpc_fill fill(struct grpc_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct bed *bed = CONTAINER_OF(source, struct bed, source);
    size_t n = size_min(room, bed->source_left);
    memset(dst, 'x', n);
    bed->source_left -= n;
    *ret_len = n;
    return bed->source_left ? GRPC_FILL_MORE : GRPC_FILL_DONE;
}

static void pulled(struct grpc_call *call, void *service, struct slice message)
{
    struct bed *bed = service;
    note(call, bed, message);
    bed->source.fill = fill;
    grpc_call_set_source(call, &bed->source);
}

static void on_half_close(struct grpc_call *call, void *service)
{
    struct bed *bed = service;
    bed->call = call;
    bed->half_closes++;
}

static void on_end(struct grpc_call *call, void *service)
{
    struct bed *bed = service;
    (void)call;
    bed->ends++;
}

static const struct grpc_method methods[] = {
    {.path = "/t.T/Echo", .on_message = echo, .on_end = on_end},
    {.path = "/t.T/Later", .on_message = later, .on_end = on_end},
    {.path = "/t.T/Pulled", .on_message = pulled, .on_end = on_end},
    {.path = "/t.T/Each",
     .client_streams = true,
     .server_streams = true,
     .parks = true,
     .on_message = echo_each,
     .on_half_close = on_half_close,
     .on_end = on_end},
    {.path = "/t.T/Listed", .server_streams = true, .on_message = later, .on_end = on_end},
};

static void bed_init(struct bed *bed)
{
    *bed = (struct bed){.limits = GRPC_LIMITS_DEFAULT};
    bed->limits.receive_bytes_max = 32;
    assert_int_equal(grpc_services_new(&bed->services), ST_OK);
    assert_int_equal(grpc_services_add(bed->services, methods, COUNT_OF(methods), bed), ST_OK);
    grpc_server_init(&bed->server, bed->services, &bed->limits);
}

static void bed_fini(struct bed *bed)
{
    grpc_local_close(TAKE(bed->local));
    grpc_server_fini(&bed->server);
    grpc_services_free(bed->services);
}

static struct grpc_local_hooks hooks_of(struct bed *bed)
{
    return (struct grpc_local_hooks){.on_output = on_output, .owner = bed};
}

static void open(struct bed *bed, const char *path)
{
    static const struct http_field fields[] = {
        {SLICE_LITERAL("authorization"), SLICE_LITERAL("me")},
        {SLICE_LITERAL("empty"), SLICE_LITERAL("")},
    };
    grpc_local_close(TAKE(bed->local));
    bed->outputs = bed->messages = bed->ends = 0;
    assert_int_equal(grpc_local_open(&bed->server, slice_from_text(path), fields, COUNT_OF(fields),
                                     hooks_of(bed), 1, &bed->local),
                     ST_OK);
}

static void assert_filled(struct bed *bed, enum grpc_local_fill expected, const char *bytes,
                          size_t len)
{
    uint8_t got[64];
    size_t n = 0;
    assert_int_equal(grpc_local_fill(bed->local, got, sizeof(got), 2, &n), expected);
    assert_int_equal(n, len);
    assert_memory_equal(got, bytes, len);
}

static void assert_over(struct bed *bed, enum grpc_code code, const char *text)
{
    struct slice got;
    assert_int_equal(grpc_local_phase(bed->local), GRPC_LOCAL_OVER);
    assert_int_equal(grpc_local_status(bed->local, &got), code);
    assert_true(slice_equal(got, slice_from_text(text)));
}

static void unary_call_is_answered_at_once(void **state)
{
    (void)state;
    struct bed bed;
    struct slice value;
    bed_init(&bed);
    open(&bed, "/t.T/Echo");
    assert_int_equal(grpc_local_phase(bed.local), GRPC_LOCAL_SILENT);
    grpc_local_deliver(bed.local, SLICE_LITERAL("hi"), 1);
    assert_string_equal(bed.seen, "hi");
    assert_true(grpc_call_metadata(bed.call, SLICE_LITERAL("authorization"), &value));
    assert_true(slice_equal(value, SLICE_LITERAL("me")));
    assert_false(grpc_call_metadata(bed.call, SLICE_LITERAL("token"), &value));
    grpc_local_half_close(bed.local, 1);
    assert_true(bed.outputs > 0);
    assert_int_equal(grpc_local_queued(bed.local), GRPC_PREFIX_BYTES + 2);
    assert_over(&bed, GRPC_OK, "");
    assert_filled(&bed, GRPC_LOCAL_END, "\0\0\0\0\2hi", 7);
    assert_int_equal(bed.ends, 0);
    grpc_local_close(TAKE(bed.local));
    assert_int_equal(bed.ends, 1);
    bed_fini(&bed);
}

static void call_closed_before_its_answer_is_held(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    open(&bed, "/t.T/Later");
    grpc_local_deliver(bed.local, SLICE_LITERAL("x"), 1);
    grpc_call_hold(bed.call);
    grpc_local_close(TAKE(bed.local));
    assert_true(grpc_call_ended(bed.call));
    assert_null(grpc_call_message(bed.call, 3)); /* the call has ended */
    grpc_call_finish(bed.call);
    assert_int_equal(bed.server.calls, 1);
    grpc_call_release(bed.call);
    assert_int_equal(bed.server.calls, 0);
    bed_fini(&bed);
}

static void source_is_pulled_to_its_end(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    open(&bed, "/t.T/Pulled");
    bed.source_left = 100;
    grpc_local_deliver(bed.local, SLICE_LITERAL("x"), 1);
    assert_int_equal(grpc_local_phase(bed.local), GRPC_LOCAL_SOURCE);
    size_t n, total = 0;
    enum grpc_local_fill more;
    do {
        uint8_t piece[7];
        more = grpc_local_fill(bed.local, piece, sizeof(piece), 2, &n);
        total += n;
    } while (more == GRPC_LOCAL_MORE);
    assert_int_equal(more, GRPC_LOCAL_END);
    assert_int_equal(total, 100);
    assert_over(&bed, GRPC_OK, "");
    bed_fini(&bed);
}

static void streams_accept_many_messages_and_can_pause(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    open(&bed, "/t.T/Each");
    grpc_local_deliver(bed.local, SLICE_LITERAL("a"), 1);
    assert_false(grpc_local_paused(bed.local));
    assert_int_equal(grpc_local_phase(bed.local), GRPC_LOCAL_MESSAGE);
    grpc_local_deliver(bed.local, SLICE_LITERAL("b"), 1);
    assert_true(grpc_local_paused(bed.local));
    assert_filled(&bed, GRPC_LOCAL_PARKED, "\0\0\0\0\1a\0\0\0\0\1b", 12);
    grpc_call_pause(bed.call, false);
    assert_false(grpc_local_paused(bed.local));
    grpc_local_half_close(bed.local, 1);
    assert_int_equal(bed.half_closes, 1);
    grpc_local_leave(bed.local);
    assert_over(&bed, GRPC_UNAVAILABLE, status_text(ST_STOPPED));
    assert_filled(&bed, GRPC_LOCAL_END, "", 0);
    bed_fini(&bed);
}

static void second_request_of_a_unary_call_is_refused(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    open(&bed, "/t.T/Listed");
    grpc_local_deliver(bed.local, SLICE_LITERAL("a"), 1);
    assert_int_equal(bed.messages, 0); /* until the half-close, as in grpc-go */
    grpc_local_half_close(bed.local, 1);
    assert_int_equal(bed.messages, 1);
    open(&bed, "/t.T/Later");
    grpc_local_half_close(bed.local, 1);
    assert_over(&bed, GRPC_UNKNOWN, "EOF");
    bed_fini(&bed);
}

static void message_that_is_too_long_is_refused(void **state)
{
    (void)state;
    struct bed bed;
    uint8_t message[33] = {0};
    bed_init(&bed);
    open(&bed, "/t.T/Later");
    grpc_local_deliver(bed.local, slice_of(message, sizeof(message)), 1);
    assert_int_equal(bed.messages, 0);
    assert_over(&bed, GRPC_RESOURCE_EXHAUSTED,
                "grpc: received message larger than max (33 vs. 32)");
    open(&bed, "/t.T/Later");
    grpc_local_deliver(bed.local, slice_of(message, 32), 1);
    assert_int_equal(bed.messages, 1);
    bed_fini(&bed);
}

static void deadline_ends_a_call_and_drops_its_output(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    open(&bed, "/t.T/Each");
    grpc_local_deliver(bed.local, SLICE_LITERAL("a"), 1);
    grpc_local_expire(bed.local);
    assert_int_equal(bed.ends, 1);
    assert_int_equal(grpc_local_queued(bed.local), 0);
    assert_over(&bed, GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
    grpc_local_expire(bed.local);
    bed_fini(&bed);
    assert_int_equal(bed.ends, 1);
}

static void unknown_method_has_no_call(void **state)
{
    (void)state;
    struct bed bed;
    bed_init(&bed);
    assert_int_equal(grpc_local_open(&bed.server, SLICE_LITERAL("/t.T/None"), NULL, 0,
                                     hooks_of(&bed), 1, &bed.local),
                     ST_UNIMPLEMENTED);
    assert_null(bed.local);
    bed_fini(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_call_is_answered_at_once),
        cmocka_unit_test(call_closed_before_its_answer_is_held),
        cmocka_unit_test(source_is_pulled_to_its_end),
        cmocka_unit_test(streams_accept_many_messages_and_can_pause),
        cmocka_unit_test(second_request_of_a_unary_call_is_refused),
        cmocka_unit_test(message_that_is_too_long_is_refused),
        cmocka_unit_test(deadline_ends_a_call_and_drops_its_output),
        cmocka_unit_test(unknown_method_has_no_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
