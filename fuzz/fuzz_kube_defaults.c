/*
 * Input: a byte that selects a built-in kind, then a JSON text. The object gets its defaults, also
 * as a change of itself, although its values may be of any type.
 */
#include "cost.h"

#include "kube/types/defaults/defaults.h"

#include <stdlib.h>

enum { ARENA_BYTES_MAX = 64 << 20 };

static void run(struct arena *arena, const struct kube_kind *kind, struct slice text)
{
    struct error error;
    struct kube_status status = {0};
    struct json_node *object, *stored;
    struct buf written = {0};
    if (json_tree_read(arena, text, &object, &error) != ST_OK ||
        json_tree_read(arena, text, &stored, &error) != ST_OK)
        return;
    if (kube_default(arena, kind, object, &status) && json_tree_write(object, &written) == ST_OK)
        (void)!kube_default_changed(arena, kind, stored, object, &status);
    buf_fini(&written);
}

FUZZ_INPUT()
{
    struct arena arena;
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    if (!size)
        return 0;
    /* A copy of exactly this size, so that sanitizers detect a read past its end. */
    uint8_t *copy = malloc(size - 1 ? size - 1 : 1);
    assert(copy);
    memcpy(copy, data + 1, size - 1);
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    run(&arena, &kinds[data[0] % count], slice_of(copy, size - 1));
    arena_fini(&arena);
    free(copy);
    return 0;
}
