#include "kube/policy/access/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct json_node *object(struct arena *arena, const char *owners)
{
    struct json_node *root;
    struct error error;
    AUTO(buf_fini) struct buf text = {0};
    struct slice copy;
    assert_int_equal(buf_append_format(&text, "{\"metadata\":{\"ownerReferences\":%s}}", owners),
                     ST_OK);
    assert_int_equal(arena_dup(arena, buf_slice(&text), &copy), ST_OK);
    assert_int_equal(json_tree_read(arena, copy, &root, &error), ST_OK);
    return root;
}

static void owners_differ_by_what_go_compares(void **state)
{
    static const struct {
        const char *was, *is;
        bool change;
    } rows[] = {
        {"null", "[]", false},
        {"null", "[{\"uid\":\"a\"}]", true},
        {"[{\"uid\":\"a\"}]", "[]", true},
        {"[{\"uid\":\"a\",\"name\":\"\"}]", "[{\"controller\":null,\"uid\":\"a\"}]", false},
        {"[{\"uid\":\"a\"}]", "[{\"uid\":\"a\",\"blockOwnerDeletion\":false}]", true},
        {"[{\"uid\":\"a\"}]", "[{\"uid\":\"a\",\"controller\":true}]", true},
        {"[{\"uid\":\"a\"}]", "[{\"uid\":\"a\",\"unknown\":true}]", false},
        {"[{\"uid\":\"a\"},{\"uid\":\"b\"}]", "[{\"uid\":\"b\"},{\"uid\":\"a\"}]", true},
    };
    (void)state;
    AUTO(arena_fini) struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct json_node *was = object(&arena, rows[i].was), *is = object(&arena, rows[i].is);
        assert_int_equal(kube_owners_change(is, was), rows[i].change);
    }
    assert_true(kube_owners_change(object(&arena, "[{\"uid\":\"a\"}]"), NULL));
    assert_false(kube_owners_change(object(&arena, "[]"), NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_differ_by_what_go_compares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
