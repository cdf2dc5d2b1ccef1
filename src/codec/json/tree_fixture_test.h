/* For tests: trees in an arena, read from text and compared with it. */
#ifndef VIGIL_CODEC_JSON_TREE_FIXTURE_TEST_H
#define VIGIL_CODEC_JSON_TREE_FIXTURE_TEST_H

#include "codec/json/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct arena arena;
    struct error error;
};

static inline struct fixture *fixture_new(size_t arena_bytes_max)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    arena_init(&f->arena, NULL, 0, arena_bytes_max);
    return f;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    arena_fini(&f->arena);
    free(f);
    return 0;
}

static inline struct json_node *read_json(struct fixture *f, const char *text)
{
    struct json_node *root;
    assert_int_equal(json_tree_read(&f->arena, slice_from_text(text), &root, &f->error), ST_OK);
    return root;
}

static inline void assert_written(const struct json_node *root, const char *expected)
{
    struct buf text = {0};
    assert_int_equal(json_tree_write(root, &text), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)text.ptr, expected);
    buf_fini(&text);
}

#endif
