/* Helpers for the tests in this folder: trees and sets written as JSON. */
#ifndef VIGIL_KUBE_MERGE_APPLY_FIXTURE_TEST_H
#define VIGIL_KUBE_MERGE_APPLY_FIXTURE_TEST_H

#include "kube/merge/apply/fields_v1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct arena arena;
    struct error error;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    arena_init(&f->arena, NULL, 0, 256 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    arena_fini(&f->arena);
    free(f);
    return 0;
}

static inline struct json_node *tree(struct fixture *f, const char *text)
{
    struct json_node *root;
    assert_int_equal(json_tree_read(&f->arena, slice_from_text(text), &root, &f->error), ST_OK);
    return root;
}

static inline const struct field_set *set_of(struct fixture *f, const char *text)
{
    size_t budget = FIELDS_V1_STEPS_MAX;
    const struct field_set *set;
    assert_int_equal(fields_v1_read(&f->arena, tree(f, text), &budget, &set), ST_OK);
    return set;
}

static inline void assert_tree(struct json_node *node, const char *expected)
{
    struct buf text = {0};
    if (node)
        assert_int_equal(json_tree_write(node, &text), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)text.ptr, expected);
    buf_fini(&text);
}

static inline void assert_set(struct fixture *f, const struct field_set *set, const char *expected)
{
    struct json_node *node;
    assert_int_equal(fields_v1_write(&f->arena, set, &node), ST_OK);
    assert_tree(node, expected);
}

#endif
