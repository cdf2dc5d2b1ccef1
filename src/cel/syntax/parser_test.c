#include "cel/syntax/parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* tests/cel_oracle.py compares the trees of many expressions with cel-go's. */

enum { ARENA_BYTES_MAX = 16 << 20 };

static enum status parse(const char *text, size_t arena_bytes, struct buf *errors_shown)
{
    struct arena arena;
    struct cel_errors errors;
    struct cel_expr *root;
    arena_init(&arena, NULL, 0, arena_bytes);
    cel_errors_init(&errors, &arena, slice_from_text(text));
    enum status status = cel_parse(&errors, &root);
    if (errors_shown)
        assert_int_equal(cel_errors_display(&errors, errors_shown), ST_OK);
    arena_fini(&arena);
    return status;
}

static void assert_errors(const char *text, const char *expected)
{
    struct buf shown = {0};
    assert_int_equal(parse(text, ARENA_BYTES_MAX, &shown), ST_INVALID);
    assert_int_equal(buf_append(&shown, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)shown.ptr, expected);
    buf_fini(&shown);
}

static void errors_point_at_their_place(void **state)
{
    (void)state;
    assert_errors("a +\n\t'é' + as", "ERROR: <input>:2:8: reserved identifier: as\n"
                                     " |  'é' + as\n"
                                     " | ..\uff0e....^");
    assert_errors("[1, 2", "ERROR: <input>:1:6: Syntax error: mismatched input '<EOF>' expecting "
                           "{']', ','}\n | [1, 2\n | .....^");
    /* They are sorted by place, not by the order of their discovery. */
    assert_errors("has(a) + as", "ERROR: <input>:1:5: invalid argument to has() macro\n"
                                 " | has(a) + as\n | ....^\n"
                                 "ERROR: <input>:1:10: reserved identifier: as\n"
                                 " | has(a) + as\n | .........^");
}

static void many_errors_are_counted(void **state)
{
    (void)state;
    struct buf text = {0}, shown = {0};
    for (int i = 0; i < 150; i++)
        assert_int_equal(buf_append_text(&text, "as &&"), ST_OK);
    assert_int_equal(buf_append_text(&text, "a"), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_int_equal(parse((const char *)text.ptr, ARENA_BYTES_MAX, &shown), ST_INVALID);
    assert_int_equal(buf_append(&shown, slice_of("", 1)), ST_OK);
    assert_non_null(strstr((const char *)shown.ptr, "\n50 more errors were truncated"));
    buf_fini(&text);
    buf_fini(&shown);
}

/* a.optMap(x, x).optMap(x, x)… copies twice as much with each call. */
static void copies_of_macros_are_limited(void **state)
{
    (void)state;
    struct buf text = {0}, shown = {0};
    assert_int_equal(buf_append_text(&text, "a"), ST_OK);
    for (int i = 0; i < 200; i++)
        assert_int_equal(buf_append_text(&text, ".optMap(x, x)"), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_int_equal(parse((const char *)text.ptr, ARENA_BYTES_MAX, &shown), ST_INVALID);
    assert_int_equal(buf_append(&shown, slice_of("", 1)), ST_OK);
    assert_non_null(strstr((const char *)shown.ptr, "it copies more than 50000 parts"));
    buf_fini(&text);
    buf_fini(&shown);
}

static void parsing_survives_the_lack_of_memory(void **state)
{
    (void)state;
    const char *text = "[1, ?a.b, {'k': T{f: x.optMap(y, y + 1)}}].all(i, has(i.j) && i.j in l || "
                       "i.?k[0] == -1.5) ? a.sortBy(z, z) : \"\\n\" + f(1, 2, 3, 4, 5)";
    bool refused = false;
    enum status status = ST_NOMEM;
    for (size_t bytes = 64; status == ST_NOMEM; bytes += 64) {
        assert_true(bytes < ARENA_BYTES_MAX);
        status = parse(text, bytes, NULL);
        refused |= status == ST_NOMEM;
    }
    assert_int_equal(status, ST_OK);
    assert_true(refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_point_at_their_place),
        cmocka_unit_test(many_errors_are_counted),
        cmocka_unit_test(copies_of_macros_are_limited),
        cmocka_unit_test(parsing_survives_the_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
