#include "load/pod.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void pod_has_its_size_and_offsets(void **state)
{
    (void)state;
    struct buf text = {0};
    struct bench_pod_places places;
    assert_int_equal(bench_pod_append(&text, 2048, &places), ST_OK);
    assert_in_range(text.len, 2048, 2048 + 128);
    assert_memory_equal(text.ptr + places.name - 4, "pod-0000000000\"", 15);
    assert_memory_equal(text.ptr + places.node - 5, "node-0000000000\"", 16);
    assert_int_equal(text.ptr[text.len - 1], '}');
    buf_fini(&text);
}

static void config_has_its_size_and_offsets(void **state)
{
    (void)state;
    struct buf text = {0};
    struct bench_pod_places places;
    uint64_t time;
    assert_int_equal(bench_config_append(&text, 2048, &places), ST_OK);
    assert_in_range(text.len, 2048, 2048 + 128);
    assert_memory_equal(text.ptr + places.name - 7, "config-0000000000\"", 18);
    bench_digits_write(text.ptr + places.time, BENCH_POD_TIME_DIGITS, 123);
    assert_true(bench_pod_time(buf_slice(&text), &time));
    assert_true(time == 123 && !places.node);
    assert_int_equal(text.ptr[text.len - 1], '}');
    buf_fini(&text);
}

static void the_time_of_a_pod_is_read_back(void **state)
{
    (void)state;
    struct buf text = {0};
    struct bench_pod_places places;
    uint64_t time = 0;
    assert_int_equal(bench_pod_append(&text, BENCH_POD_BYTES_MIN, &places), ST_OK);
    bench_digits_write(text.ptr + places.time, BENCH_POD_TIME_DIGITS, 1234567890123456789u);
    assert_true(bench_pod_time(buf_slice(&text), &time));
    assert_true(time == 1234567890123456789u);
    assert_false(bench_pod_time(slice_of(text.ptr, places.time + 3), &time));
    text.ptr[places.time + 3] = 'x';
    assert_false(bench_pod_time(buf_slice(&text), &time));
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pod_has_its_size_and_offsets),
        cmocka_unit_test(config_has_its_size_and_offsets),
        cmocka_unit_test(the_time_of_a_pod_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
