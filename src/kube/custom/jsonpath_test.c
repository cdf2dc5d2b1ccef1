#include "kube/custom/jsonpath.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const char document[] =
    "{\"a\":{\"b\":[{\"t\":\"x\",\"v\":1},{\"t\":\"y\",\"v\":2}]},\"c.d\":3,\"e\":[],\"f\":true}";

/* The match as JSON; NULL: there is none. */
static char *find(const char *path)
{
    struct arena arena;
    struct error error;
    struct json_node *root;
    const struct jsonpath *parsed;
    struct buf text = {0};
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_int_equal(json_tree_read(&arena, slice_from_text(document), &root, &error), ST_OK);
    assert_int_equal(jsonpath_parse(&arena, slice_from_text(path), &parsed), ST_OK);
    const struct json_node *found = jsonpath_find(parsed, root);
    if (found) {
        assert_int_equal(json_tree_write(found, &text), ST_OK);
        assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    }
    arena_fini(&arena);
    return (char *)text.ptr;
}

static void paths_find_the_first_match(void **state)
{
    static const char *const rows[][2] = {
        {".a.b[0].v", "1"},
        {".a.b[-1].v", "2"},
        {".a.b[*].t", "\"x\""},
        {".a.b[?(@.t==\"y\")].v", "2"},
        {".a.b[?(@.t != 'x')].v", "2"},
        {".a.b[?(@.v==2)].t", "\"y\""},
        {"['c.d']", "3"},
        {".c\\.d", "3"},
        {".f", "true"},
        {".a.b[7]", NULL},
        {".a.b[-7]", NULL},
        {".e[*].x", NULL},
        {".none.more", NULL},
        {".f.more", NULL},
        {".a.b[?(@.none==\"y\")]", NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *found = find(rows[i][0]);
        if (rows[i][1])
            assert_string_equal(found ? found : "nothing", rows[i][1]);
        else
            assert_null(found);
        free(found);
    }
}

static void invalid_paths_are_refused(void **state)
{
    static const char *const rows[] = {
        "a",      "..a",          ".a[", ".a[x]", ".a[?(t==1)]", ".a[?(@.t==1]",
        ".a['b]", ".a[?(@.t<1)]", ".a.", "["};
    struct arena arena;
    const struct jsonpath *parsed;
    (void)state;
    arena_init(&arena, NULL, 0, 1 << 20);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(jsonpath_parse(&arena, slice_from_text(rows[i]), &parsed), ST_INVALID);
    arena_fini(&arena);
}

static void long_paths_are_refused(void **state)
{
    struct arena arena;
    const struct jsonpath *parsed;
    char path[2 * (JSONPATH_STEPS_MAX + 1) + 1] = "";
    (void)state;
    for (size_t i = 0; i <= JSONPATH_STEPS_MAX; i++)
        memcpy(path + 2 * i, ".a", 3);
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_int_equal(jsonpath_parse(&arena, slice_from_text(path), &parsed), ST_LIMIT);
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_find_the_first_match),
        cmocka_unit_test(invalid_paths_are_refused),
        cmocka_unit_test(long_paths_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
