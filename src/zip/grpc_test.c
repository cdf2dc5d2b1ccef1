/* Compressed messages of gRPC calls: which are accepted, and what they are charged with. */
#include "wire/grpc/fixture_test.h"
#include "zip/gunzip.h"
#include "zip/gzip.h"

static void messages_that_do_not_decompress_are_refused_as_by_grpc_go(void **state)
{
    struct fixture *f = *state;
    grpc_services_set_gunzip(f->services, gunzip);
    test_call_with(&f->in, 1, "/t.T/Echo", 0, EXTRA("grpc-encoding", "gzip"));
    packed_message(&f->in, 1, H2_FLAG_END_STREAM, SLICE_LITERAL("a"));
    test_call_with(&f->in, 3, "/t.T/Chat", 0, EXTRA("grpc-encoding", "gzip"));
    packed_message(&f->in, 3, H2_FLAG_END_STREAM, SLICE_LITERAL("ab"));
    exchange(f);
    assert_ended(f, 1, GRPC_INTERNAL, "grpc: failed to decompress the message: unexpected EOF");
    assert_ended(f, 3, GRPC_INTERNAL,
                 "grpc: failed to decompress the message: gzip: invalid header");
}

/* The messages are not valid gzip, so decompressing them first would give another error. */
static void caller_is_admitted_before_its_message_is_decompressed(void **state)
{
    struct fixture *f = *state;
    struct guard_test g = {0};
    struct grpc_guard guard = {.admit = guard_admit, .ctx = &g};
    const char *paths[] = {"/t.T/Echo", "/t.T/List", "/t.T/Chat"};
    grpc_services_set_gunzip(f->services, gunzip);
    grpc_services_guard(f->services, &guard);
    for (uint32_t i = 0; i < COUNT_OF(paths); i++) {
        uint32_t id = 2 * i + 1;
        g.asked = 0;
        test_call_with(&f->in, id, paths[i], 0, EXTRA("grpc-encoding", "gzip"));
        packed_message(&f->in, id, H2_FLAG_END_STREAM, SLICE_LITERAL("no gzip"));
        exchange(f);
        assert_int_equal(g.asked, 1);
        assert_ended(f, id, GRPC_PERMISSION_DENIED, "etcdserver: permission denied");
    }
}

/* The window limits compressed bytes; the account is charged with the decompressed ones. */
static void requests_are_charged_for_their_decompressed_size(void **state)
{
    struct fixture *f = *state;
    static const uint8_t zeros[40000];
    AUTO(buf_fini) struct buf packed = {0};
    size_t open;
    assert_int_equal(gzip(slice_of(zeros, sizeof(zeros)), &packed), ST_OK);
    grpc_services_set_gunzip(f->services, gunzip);
    test_memory_init(&f->memory, LIMIT);
    for (uint32_t id = 1; id <= 99; id += 2) {
        test_call_with(&f->in, id, "/t.T/Wait", 0, EXTRA("grpc-encoding", "gzip"));
        packed_message(&f->in, id, H2_FLAG_END_STREAM, buf_slice(&packed));
    }
    exchange(f);
    assert_true(refused(f, 99, &open) > 0);
    assert_in_range(open, 5, LIMIT / 16 * 7 / sizeof(zeros));
    assert_int_equal(f->service.messages, open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(messages_that_do_not_decompress_are_refused_as_by_grpc_go),
        TEST(caller_is_admitted_before_its_message_is_decompressed),
        TEST(requests_are_charged_for_their_decompressed_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
