/* Any bytes as a response of the v2 keys API: as a tree of nodes, a change, an error. */
#include "cost.h"

#include "client/v2/v2_response.h"

#include <assert.h>

static void check_node(const struct v2_node *node, size_t size)
{
    if (!node->present)
        return;
    assert(node->key.len <= size && node->value.len <= size);
    assert(node->modified >= 0 && node->created >= 0);
}

FUZZ_INPUT()
{
    struct slice body = slice_of(data, size);
    struct v2_tree_reader reader;
    struct v2_event event;
    struct v2_error error;
    struct v2_node node;
    struct arena arena;
    size_t nodes = 0;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    v2_tree_begin(&reader, body);
    while (v2_tree_next(&reader, &arena, &node) == ST_OK) {
        assert(node.present && !node.dir);
        check_node(&node, size);
        nodes++;
    }
    assert(nodes <= size);
    if (v2_event_read(body, &arena, &event) == ST_OK) {
        check_node(&event.node, size);
        check_node(&event.prev, size);
    }
    if (v2_error_read(body, &arena, &error) == ST_OK)
        assert(error.code >= 0 && error.index >= 0);
    arena_fini(&arena);
    return 0;
}
