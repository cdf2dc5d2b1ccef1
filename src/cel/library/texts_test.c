#include "cel/library/builtin.h"
#include "cel/value/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* tests/cel_oracle.py compares the results of the functions with cel-go's. These tests are about
 * texts that are too long. */

enum { TEXT_BYTES = 1 << 16, ARENA_BYTES_MAX = 1 << 20 };

static const char *const too_much = "operation cancelled: actual cost limit exceeded";
static const char *const no_memory = "not enough memory for the evaluation";

static uint8_t text_of_a[TEXT_BYTES];

static struct cel_value a_times(size_t count)
{
    assert(count <= TEXT_BYTES);
    memset(text_of_a, 'a', sizeof(text_of_a));
    return cel_of_string(slice_of(text_of_a, count));
}

static struct cel_value call(struct cel_work *work, const char *function, uint32_t count,
                             const struct cel_value *args)
{
    const struct cel_builtin *builtin = cel_builtin_find(slice_from_text(function), count);
    assert_non_null(builtin);
    return builtin->fn(work, args);
}

static void assert_fails(const char *function, int64_t steps, uint32_t count,
                         const struct cel_value *args, const char *expected)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    struct cel_work work = {.arena = &arena, .steps_left = steps};
    struct cel_value result = call(&work, function, count, args);
    assert_int_equal(result.kind, CEL_ERROR);
    assert_true(slice_is(cel_text(result), expected));
    arena_fini(&arena);
}

static void searching_similar_texts_is_limited(void **state)
{
    (void)state;
    uint8_t part[TEXT_BYTES / 2];
    memset(part, 'a', sizeof(part));
    part[sizeof(part) - 1] = 'b';
    struct cel_value args[] = {a_times(TEXT_BYTES), cel_of_string(slice_of(part, sizeof(part)))};
    assert_fails("lastIndexOf", 100000, 2, args, too_much);
}

static void a_result_beyond_the_memory_is_refused(void **state)
{
    (void)state;
    struct cel_value text = a_times(TEXT_BYTES);
    struct cel_value replaced[] = {text, cel_of_string(SLICE_EMPTY), text};
    assert_fails("replace", INT64_MAX, 3, replaced, no_memory);
    struct cel_value items[100];
    struct cel_array array = {COUNT_OF(items), COUNT_OF(items), items};
    for (size_t i = 0; i < COUNT_OF(items); i++)
        items[i] = text;
    struct cel_value list = {.kind = CEL_LIST, .count = COUNT_OF(items), .array = &array};
    assert_fails("join", INT64_MAX, 1, &list, no_memory);
    struct cel_array outer = {1, 1, &list};
    struct cel_value formatted[] = {cel_of_string(SLICE_LITERAL("%s")),
                                    {.kind = CEL_LIST, .count = 1, .array = &outer}};
    assert_fails("format", INT64_MAX, 2, formatted, no_memory);
    assert_fails("format", 100, 2, formatted, too_much);
}

static void matching_is_limited(void **state)
{
    (void)state;
    struct cel_value args[] = {a_times(TEXT_BYTES), cel_of_string(SLICE_LITERAL("(a+a+)+b"))};
    assert_fails("matches", 1000, 2, args, too_much);
    assert_fails("find", 1000, 2, args, too_much);
    /* Each of many searches goes to the end of the text. */
    args[1] = cel_of_string(SLICE_LITERAL("a*b|a"));
    assert_fails("findAll", 100000, 2, args, too_much);
}

/* A pattern in a loop would otherwise fill the memory of the evaluation. */
static void the_last_pattern_is_compiled_once(void **state)
{
    (void)state;
    struct arena arena;
    struct cel_value args[] = {a_times(10), cel_of_string(SLICE_LITERAL("^[a-z]{1,63}$"))};
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    struct cel_work work = {.arena = &arena, .steps_left = INT64_MAX};
    assert_true(cel_is_true(call(&work, "matches", 2, args)));
    size_t held = arena.held_bytes;
    for (int i = 0; i < 1000; i++)
        assert_true(cel_is_true(call(&work, "matches", 2, args)));
    assert_int_equal(arena.held_bytes, held);
    arena_fini(&arena);
}

/* An empty text may be a null pointer. */
static void an_empty_text_needs_no_bytes(void **state)
{
    static const struct {
        const char *function;
        uint32_t count;
    } calls[] = {
        {"contains", 2},    {"startsWith", 2},    {"endsWith", 2},   {"indexOf", 2},
        {"lastIndexOf", 2}, {"split", 2},         {"replace", 3},    {"find", 2},
        {"findAll", 2},     {"matches", 2},       {"lowerAscii", 1}, {"upperAscii", 1},
        {"trim", 1},        {"strings.quote", 1}, {"int", 1},        {"uint", 1},
        {"double", 1},      {"bool", 1},          {"bytes", 1},      {"string", 1},
        {"timestamp", 1},   {"duration", 1},      {"size", 1},       {"quantity", 1},
        {"isQuantity", 1},  {"semver", 1},        {"isSemver", 1},   {"ip", 1},
        {"isIP", 1},        {"cidr", 1},          {"isCIDR", 1},     {"url", 1},
        {"isURL", 1},       {"_+_", 2},           {"_<_", 2},        {"format.named", 1},
    };
    const struct cel_value empty = cel_of_string(SLICE_EMPTY), args[] = {empty, empty, empty};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct slice name = slice_from_text(calls[i].function);
        const struct cel_builtin *builtin = cel_builtin_find(name, calls[i].count);
        struct arena arena;
        arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
        struct cel_work work = {.arena = &arena, .steps_left = 100000};
        assert_non_null(builtin);
        (void)builtin->fn(&work, args);
        arena_fini(&arena);
    }
    struct cel_work work = {.steps_left = 100};
    const struct cel_value with_a[] = {empty, cel_of_string(SLICE_LITERAL("a"))};
    assert_false(cel_is_true(call(&work, "contains", 2, with_a)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(searching_similar_texts_is_limited),
        cmocka_unit_test(a_result_beyond_the_memory_is_refused),
        cmocka_unit_test(matching_is_limited),
        cmocka_unit_test(an_empty_text_needs_no_bytes),
        cmocka_unit_test(the_last_pattern_is_compiled_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
