/* watch_decode gives the same result as pb_decode for every message: ordinary ones, ones with
 * fields in any order and number, and wrong ones. */
#include "client/watch/watch_decoder.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROUNDS = 20000 };

static uint64_t some_number(struct random *random)
{
    return random_u64(random) >> random_below(random, 64);
}

static struct slice some_bytes(struct random *random)
{
    static const uint8_t bytes[300] = "some bytes";
    return slice_of(bytes, (size_t)random_below(random, random_chance(random, 1, 4) ? 300 : 20));
}

static struct pb_key_value some_kv(struct random *random)
{
    return (struct pb_key_value){
        .key = some_bytes(random),
        .create_revision = (int64_t)some_number(random),
        .mod_revision = (int64_t)some_number(random),
        .version = (int64_t)some_number(random),
        .value = some_bytes(random),
        .lease = random_chance(random, 1, 2) ? (int64_t)some_number(random) : 0,
    };
}

static void append_some_response(struct random *random, struct buf *out)
{
    enum { EVENTS_MAX = 4 };
    static struct pb_response_header header = {.cluster_id = 1};
    struct pb_key_value kvs[EVENTS_MAX], before[EVENTS_MAX];
    struct pb_event events[EVENTS_MAX] = {0};
    if (random_chance(random, 1, 2)) /* otherwise the same again */
        header = (struct pb_response_header){some_number(random), some_number(random),
                                             (int64_t)some_number(random), some_number(random)};
    struct pb_watch_response response = {
        .header = random_chance(random, 9, 10) ? &header : NULL,
        .watch_id = (int64_t)some_number(random) - 1,
        .created = random_chance(random, 1, 10),
        .canceled = random_chance(random, 1, 10),
        .compact_revision = random_chance(random, 1, 10),
        .cancel_reason = random_chance(random, 1, 10) ? SLICE_LITERAL("reason") : SLICE_EMPTY,
        .fragment = random_chance(random, 1, 5),
        .events = events,
        .events_count = (size_t)random_below(random, EVENTS_MAX + 1),
    };
    for (size_t i = 0; i < response.events_count; i++) {
        kvs[i] = some_kv(random);
        before[i] = some_kv(random);
        events[i].type = random_chance(random, 1, 2);
        events[i].kv = random_chance(random, 9, 10) ? &kvs[i] : NULL;
        events[i].prev_kv = random_chance(random, 1, 5) ? &before[i] : NULL;
    }
    assert_int_equal(pb_append(&pb_watch_response_table, &response, out), ST_OK);
}

/* Both decoders succeed with the same response, or fail for the same reason. */
static void compare(struct watch_decoder *decoder, struct slice message)
{
    struct pb_watch_response fast, general;
    struct arena fast_arena, general_arena;
    AUTO(buf_fini) struct buf fast_bytes = {0}, general_bytes = {0};
    arena_init(&fast_arena, NULL, 0, SIZE_MAX);
    arena_init(&general_arena, NULL, 0, SIZE_MAX);
    enum status expected = pb_decode(&pb_watch_response_table, message, &general_arena, &general);
    assert_int_equal(watch_decode(decoder, message, &fast_arena, &fast), expected);
    if (expected == ST_OK) {
        assert_int_equal(pb_append(&pb_watch_response_table, &fast, &fast_bytes), ST_OK);
        assert_int_equal(pb_append(&pb_watch_response_table, &general, &general_bytes), ST_OK);
        assert_true(slice_equal(buf_slice(&fast_bytes), buf_slice(&general_bytes)));
    }
    arena_fini(&fast_arena);
    arena_fini(&general_arena);
}

static void responses_are_decoded_alike(void **state)
{
    (void)state;
    struct random random;
    struct watch_decoder decoder = {0};
    random_init(&random, 1);
    for (int i = 0; i < ROUNDS; i++) {
        AUTO(buf_fini) struct buf message = {0};
        append_some_response(&random, &message);
        if (random_chance(&random, 1, 4)) /* concatenated messages are merged */
            append_some_response(&random, &message);
        compare(&decoder, buf_slice(&message));
    }
}

static void cut_responses_are_decoded_alike(void **state)
{
    (void)state;
    struct random random;
    struct watch_decoder decoder = {0};
    random_init(&random, 2);
    for (int i = 0; i < 100; i++) {
        AUTO(buf_fini) struct buf message = {0};
        append_some_response(&random, &message);
        for (size_t len = 0; len < message.len; len++) {
            compare(&decoder, slice_of(message.ptr, len));
            compare(&decoder, slice_of(message.ptr + len, message.len - len));
        }
    }
}

static void damaged_responses_are_decoded_alike(void **state)
{
    (void)state;
    struct random random;
    struct watch_decoder decoder = {0};
    random_init(&random, 3);
    for (int i = 0; i < ROUNDS; i++) {
        AUTO(buf_fini) struct buf message = {0};
        append_some_response(&random, &message);
        for (uint64_t n = random_below(&random, 4) + 1; n > 0 && message.len; n--) {
            size_t at = (size_t)random_below(
                &random, random_chance(&random, 1, 2) ? message.len : size_min(message.len, 64));
            message.ptr[at] = (uint8_t)random_u64(&random);
        }
        compare(&decoder, buf_slice(&message));
    }
}

/* The header of one response must not appear in the next one. */
static void headers_are_not_mixed_up(void **state)
{
    (void)state;
    struct watch_decoder decoder = {0};
    for (int64_t revision = 1; revision < 1000; revision++) {
        AUTO(buf_fini) struct buf message = {0};
        struct arena arena;
        struct pb_response_header header = {.revision = revision / 3};
        struct pb_watch_response response = {.header = revision % 5 ? &header : NULL}, got;
        assert_int_equal(pb_append(&pb_watch_response_table, &response, &message), ST_OK);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        assert_int_equal(watch_decode(&decoder, buf_slice(&message), &arena, &got), ST_OK);
        if (response.header)
            assert_int_equal(got.header->revision, revision / 3);
        else
            assert_null(got.header);
        arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(responses_are_decoded_alike),
        cmocka_unit_test(cut_responses_are_decoded_alike),
        cmocka_unit_test(damaged_responses_are_decoded_alike),
        cmocka_unit_test(headers_are_not_mixed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
