#include "store/record/change.h"

#include "base/memory/arena.h"
#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct change_kv sample = {
    .key = {(const uint8_t *)"/registry/pods/a", 16},
    .create_revision = 7,
    .mod_revision = 123456789,
    .version = 300,
    .value = {(const uint8_t *)"some value", 10},
    .lease = 0x7fffffffffffffff,
};

static void field_is_a_key_value_of_a_range_response(void **state)
{
    (void)state;
    _Alignas(8) uint8_t bytes[256];
    struct change_head head = {.revision = sample.mod_revision, .sub = 3};
    size_t taken = change_write(bytes, &head, &sample);
    assert_int_equal(taken % 8, 0);
    assert_true(taken <= change_bytes_max(sample.key.len, sample.value.len));

    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct pb_range_response response;
    struct slice field = change_field(change_at(bytes));
    assert_int_equal(pb_decode(&pb_range_response_table, field, &arena, &response), ST_OK);
    assert_int_equal(response.kvs_count, 1);
    assert_true(slice_equal(response.kvs[0].key, sample.key));
    assert_true(slice_equal(response.kvs[0].value, sample.value));
    assert_int_equal(response.kvs[0].create_revision, sample.create_revision);
    assert_int_equal(response.kvs[0].mod_revision, sample.mod_revision);
    assert_int_equal(response.kvs[0].version, sample.version);
    assert_int_equal(response.kvs[0].lease, sample.lease);
    arena_fini(&arena);
}

static void what_was_written_reads_back(void **state)
{
    (void)state;
    _Alignas(8) uint8_t bytes[256];
    struct change_head head = {.revision = sample.mod_revision};
    change_write(bytes, &head, &sample);
    struct change_kv kv;
    change_read_kv(change_at(bytes), &kv);
    assert_true(slice_equal(kv.key, sample.key));
    assert_true(slice_equal(kv.value, sample.value));
    assert_int_equal(kv.version, sample.version);
    assert_int_equal(kv.lease, sample.lease);
}

static void upper_bound_holds_for_the_largest_numbers(void **state)
{
    (void)state;
    struct change_kv kv = {
        .key = SLICE_LITERAL("k"),
        .create_revision = INT64_MAX,
        .mod_revision = INT64_MAX,
        .version = INT64_MAX,
        .lease = INT64_MIN,
    };
    _Alignas(8) uint8_t bytes[256];
    struct change_head head = {0};
    assert_true(change_write(bytes, &head, &kv) <= change_bytes_max(1, 0));
}

static void truncated_or_inconsistent_bodies_are_damage(void **state)
{
    (void)state;
    _Alignas(8) uint8_t body[512] = {1};
    struct change_head head = {.revision = 2};
    size_t len = 8 + change_write(body + 8, &head, &sample);
    for (size_t cut = 0; cut < len; cut++) {
        struct change_walk walk;
        const struct change_head *change;
        size_t offset;
        enum status status = change_walk_init(&walk, slice_of(body, cut));
        if (status == ST_OK)
            status = change_walk_next(&walk, &change, &offset);
        assert_int_equal(status, ST_DAMAGED);
    }
    body[0] = 2; /* one more than exist */
    struct change_walk walk;
    const struct change_head *change;
    size_t offset;
    assert_int_equal(change_walk_init(&walk, slice_of(body, len)), ST_OK);
    assert_int_equal(change_walk_next(&walk, &change, &offset), ST_OK);
    assert_int_equal(change_walk_next(&walk, &change, &offset), ST_DAMAGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_is_a_key_value_of_a_range_response),
        cmocka_unit_test(what_was_written_reads_back),
        cmocka_unit_test(upper_bound_holds_for_the_largest_numbers),
        cmocka_unit_test(truncated_or_inconsistent_bodies_are_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
