/* Input: YAML. What can be read is written as YAML, and reading that gives the same JSON. */
#include "cost.h"

#include "yaml/yaml.h"

enum { ARENA_BYTES_MAX = 6 << 20 };

FUZZ_INPUT(.memory_bytes = 8 * ARENA_BYTES_MAX)
{
    struct arena arena, second;
    struct error error;
    struct json_node *root, *again;
    AUTO(buf_fini) struct buf yaml = {0}, repeats = {0};
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    arena_init(&second, NULL, 0, 2 * ARENA_BYTES_MAX);
    if (yaml_tree_read_strict(&arena, slice_of(data, size), &root, &repeats, &error) == ST_OK &&
        yaml_tree_write(&second, root, &yaml) == ST_OK) {
        enum status status = yaml_tree_read(&second, buf_slice(&yaml), &again, &error);
        assert(status == ST_OK || status == ST_NOMEM || status == ST_LIMIT);
        assert(status != ST_OK || json_node_equal(root, again));
    }
    arena_fini(&second);
    arena_fini(&arena);
    return 0;
}
