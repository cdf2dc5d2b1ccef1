#include "cel/check/checker.h"

#include "cel/syntax/parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* tests/cel_oracle.py compares the types of many expressions with cel-go's. */

enum { ARENA_BYTES_MAX = 64 << 20 };

static const struct cel_variable variables[] = {
    {SLICE_LITERAL("x"), &cel_type_INT},
    {SLICE_LITERAL("a"), &cel_type_LIST_INT},
    {SLICE_LITERAL("d"), &cel_type_DYN},
};

/* ret_type: the type of the expression, or its errors; as text. */
static enum status check(const char *text, size_t arena_bytes, struct buf *ret_type)
{
    struct cel_env env = {.variables = variables, .variable_count = COUNT_OF(variables)};
    struct arena arena;
    struct cel_errors errors;
    struct cel_expr *root;
    arena_init(&arena, NULL, 0, arena_bytes);
    cel_errors_init(&errors, &arena, slice_from_text(text));
    enum status status = cel_parse(&errors, &root);
    if (status == ST_OK)
        status = cel_check(&env, &errors, root);
    if (status == ST_OK)
        assert_int_equal(cel_type_write(root->type, ret_type), ST_OK);
    else
        assert_int_equal(cel_errors_display(&errors, ret_type), ST_OK);
    assert_int_equal(buf_append(ret_type, slice_of("", 1)), ST_OK);
    arena_fini(&arena);
    return status;
}

static void assert_type(const char *text, const char *expected)
{
    struct buf type = {0};
    assert_int_equal(check(text, ARENA_BYTES_MAX, &type), ST_OK);
    assert_string_equal((const char *)type.ptr, expected);
    buf_fini(&type);
}

static void types_are_inferred(void **state)
{
    (void)state;
    assert_type("a.map(i, {string(i): [i]})", "list(map(string, list(int)))");
    assert_type("[]", "list(dyn)");
    assert_type("[[], [1]]", "list(list(int))");
    assert_type("d.e + x", "int");
    assert_type("d.e + d.f", "dyn");
}

/* Every level doubles the type, so that comparing two of them would never end. */
static void types_of_exponential_size_are_refused(void **state)
{
    (void)state;
    static const char *const steps[] = {".map(z, {z: z})", ".map(z, {z: [z]})",
                                        ".filter(z, [z] == [z]).map(z, {z: z})"};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct buf text = {0}, type = {0};
        assert_int_equal(buf_append_text(&text, "[[]]"), ST_OK);
        for (int n = 0; n < 100; n++)
            assert_int_equal(buf_append_text(&text, steps[i]), ST_OK);
        assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
        assert_int_equal(check((const char *)text.ptr, ARENA_BYTES_MAX, &type), ST_INVALID);
        assert_non_null(strstr((const char *)type.ptr, "the types of the expression are too "
                                                       "complex"));
        buf_fini(&text);
        buf_fini(&type);
    }
}

static void assert_errors(const char *text, const char *expected)
{
    struct buf errors = {0};
    assert_int_equal(check(text, ARENA_BYTES_MAX, &errors), ST_INVALID);
    assert_string_equal((const char *)errors.ptr, expected);
    buf_fini(&errors);
}

static void constant_arguments_that_cannot_work_are_refused(void **state)
{
    (void)state;
    assert_errors("duration('1x') > duration('1s')",
                  "ERROR: <input>:1:10: invalid duration argument\n"
                  " | duration('1x') > duration('1s')\n"
                  " | .........^");
    assert_errors("'a'.matches('[') && timestamp(253402300800) == timestamp(0)",
                  "ERROR: <input>:1:13: invalid matches argument\n"
                  " | 'a'.matches('[') && timestamp(253402300800) == timestamp(0)\n"
                  " | ............^\n"
                  "ERROR: <input>:1:31: invalid timestamp argument\n"
                  " | 'a'.matches('[') && timestamp(253402300800) == timestamp(0)\n"
                  " | ..............................^");
}

/* Repeats are expanded, so that short patterns can be large. */
static void constant_patterns_are_limited_together(void **state)
{
    (void)state;
    struct buf text = {0}, errors = {0};
    assert_int_equal(buf_append_text(&text, "true"), ST_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf_append_text(&text, " || 'a'.matches('((ab?){30}){30}')"), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_int_equal(check((const char *)text.ptr, ARENA_BYTES_MAX, &errors), ST_INVALID);
    assert_non_null(strstr((const char *)errors.ptr, "the regular expressions are too large"));
    buf_fini(&text);
    buf_fini(&errors);
}

static void checking_survives_the_lack_of_memory(void **state)
{
    (void)state;
    const char *text = "[[], a.map(i, i + x)].all(l, l.all(e, e in a && optional.of(e).value() > "
                       "0)) ? d.?e[0].f : {'k': [d, ?d.g]}['k'][d.h.matches('a+') ? 0 : 1]";
    enum status status = ST_NOMEM;
    bool refused = false;
    for (size_t bytes = 512; status == ST_NOMEM; bytes += 128) {
        struct buf type = {0};
        assert_true(bytes < ARENA_BYTES_MAX);
        status = check(text, bytes, &type);
        refused |= status == ST_NOMEM;
        buf_fini(&type);
    }
    assert_int_equal(status, ST_OK);
    assert_true(refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_inferred),
        cmocka_unit_test(types_of_exponential_size_are_refused),
        cmocka_unit_test(constant_arguments_that_cannot_work_are_refused),
        cmocka_unit_test(constant_patterns_are_limited_together),
        cmocka_unit_test(checking_survives_the_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
