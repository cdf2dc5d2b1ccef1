/* Trees for tests of admission, in one arena for each test. */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_TREES_TEST_H
#define VIGIL_KUBE_POLICY_ADMISSION_TREES_TEST_H

#include "codec/json/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ARENA_BYTES = 64 << 20 };

static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 0, ARENA_BYTES);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

/* A JSON text with ' in place of "; NULL: none. */
static struct json_node *tree(const char *text)
{
    struct json_node *root;
    struct error error;
    struct slice copy;
    if (!text)
        return NULL;
    assert_int_equal(arena_dup(&arena, slice_from_text(text), &copy), ST_OK);
    char *at = (char *)(uintptr_t)copy.ptr;
    for (size_t i = 0; i < copy.len; i++)
        at[i] = at[i] == '\'' ? '"' : at[i];
    assert_int_equal(json_tree_read(&arena, copy, &root, &error), ST_OK);
    return root;
}

#endif
