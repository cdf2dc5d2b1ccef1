#include "cel/library/objects.h"

#include "cel/eval/program.h"
#include "cel/syntax/parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* tests/cel_oracle.py compares many expressions that create objects with Kubernetes' library. */

enum { ARENA_BYTES_MAX = 16 << 20 };

static const struct cel_env env = {.objects = &cel_mutation_objects, .has_patches = true};

struct fixture {
    struct arena arena;
    struct cel_errors errors;
    struct cel_value value;
};

static enum status evaluate(struct fixture *f, const struct cel_env *with, const char *text,
                            size_t bytes_max)
{
    struct cel_expr *root;
    const struct cel_program *program;
    struct cel_budget budget = {.cost_max = 100000};
    arena_init(&f->arena, NULL, 0, bytes_max);
    cel_errors_init(&f->errors, &f->arena, slice_from_text(text));
    enum status status = cel_parse(&f->errors, &root);
    if (status == ST_OK)
        status = cel_check(with, &f->errors, root);
    if (status == ST_OK)
        status = cel_program_new(with, &f->errors, root, &program);
    if (status == ST_OK)
        f->value = cel_eval(program, NULL, &f->arena, &budget);
    return status;
}

static void the_last_of_two_fields_counts(void **state)
{
    (void)state;
    struct fixture f;
    struct cel_fields fields;
    assert_int_equal(evaluate(&f, &env,
                              "Object.spec{a: 1, b: 2, a: 3, ?c: optional.none(), "
                              "?b: optional.none()}",
                              ARENA_BYTES_MAX),
                     ST_OK);
    assert_true(cel_is_object(f.value, &fields));
    assert_false(cel_is_patch(f.value, &fields));
    assert_string_equal(fields.type->name, "Object.spec");
    assert_int_equal(fields.count, 1);
    assert_true(slice_is(fields.names[0], "a"));
    assert_int_equal(fields.values[0].i64, 3);
    arena_fini(&f.arena);
}

static void a_patch_has_four_fields(void **state)
{
    (void)state;
    struct fixture f;
    struct cel_fields fields;
    assert_int_equal(evaluate(&f, &env,
                              "JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('a/~')}",
                              ARENA_BYTES_MAX),
                     ST_OK);
    assert_true(cel_is_patch(f.value, &fields));
    assert_int_equal(fields.count, 2);
    assert_true(slice_is(cel_text(fields.values[1]), "/a~1~0"));
    arena_fini(&f.arena);
    assert_int_equal(evaluate(&f, &env, "JSONPatch{zzz: dyn(1)}", ARENA_BYTES_MAX), ST_OK);
    assert_true(cel_is_error(f.value));
    arena_fini(&f.arena);
}

static void the_environment_decides_which_objects_there_are(void **state)
{
    (void)state;
    static const char *const texts[] = {"Object{}", "JSONPatch{}", "jsonpatch.escapeKey('a')"};
    const struct cel_env none = {0};
    struct fixture f;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_int_equal(evaluate(&f, &none, texts[i], ARENA_BYTES_MAX), ST_INVALID);
        assert_true(slice_has_prefix(f.errors.list[0].text, SLICE_LITERAL("undeclared")));
        arena_fini(&f.arena);
    }
}

static void an_object_has_at_most_1000_fields(void **state)
{
    (void)state;
    struct fixture f;
    for (int count = CEL_FIELDS_MAX; count <= CEL_FIELDS_MAX + 1; count++) {
        struct buf text = {0};
        assert_int_equal(buf_append_text(&text, "Object{"), ST_OK);
        for (int i = 0; i < count; i++)
            assert_int_equal(buf_append_format(&text, "f%d: %d,", i, i), ST_OK);
        assert_int_equal(buf_append(&text, slice_of("}", 2)), ST_OK);
        enum status status = evaluate(&f, &env, (const char *)text.ptr, ARENA_BYTES_MAX);
        assert_int_equal(status, count == CEL_FIELDS_MAX ? ST_OK : ST_INVALID);
        arena_fini(&f.arena);
        buf_fini(&text);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct fixture f;
    enum status status = ST_NOMEM;
    for (size_t bytes = 0; status != ST_OK || cel_is_error(f.value); bytes += 64) {
        assert_true(bytes < 1 << 20);
        status =
            evaluate(&f, &env,
                     "[Object{a: [Object.a{b: {'k': 'v'}}], ?c: optional.of(1)}].map(o, "
                     "[o.a, dyn(o == Object{a: 1}), dyn(JSONPatch{op: jsonpatch.escapeKey('/'), "
                     "value: o})])",
                     bytes);
        assert_true(status == ST_OK || status == ST_NOMEM);
        if (status == ST_OK && cel_is_error(f.value))
            assert_true(arena_ran_out(&f.arena));
        arena_fini(&f.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_of_two_fields_counts),
        cmocka_unit_test(a_patch_has_four_fields),
        cmocka_unit_test(the_environment_decides_which_objects_there_are),
        cmocka_unit_test(an_object_has_at_most_1000_fields),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
