/*
 * Input: a byte that selects the kind of patch, then an object and a patch, two JSON texts
 * separated by a zero byte. A patch is unchanged after its use, so that it can be tried again; its
 * result can be read again, so that it is not too deep; merging twice gives the same as merging
 * once.
 */
#include "cost.h"

#include "kube/merge/patch/patch.h"

enum { ARENA_BYTES_MAX = 32 << 20, KINDS = 3 };

static void write_json(const struct json_node *tree, struct buf *text)
{
    enum status status = json_tree_write(tree, text);
    assert(status == ST_OK);
}

static enum status apply(struct arena *arena, unsigned kind, struct json_node *object,
                         const struct json_node *patch, struct json_node **ret_object)
{
    struct error error;
    switch (kind % KINDS) {
    case 0:
        return patch_json(arena, object, patch, ret_object, &error);
    case 1:
        return patch_merge(arena, object, patch, ret_object);
    default:
        return patch_strategic(arena, kube_type_find(SLICE_LITERAL("v1"), SLICE_LITERAL("Pod")),
                               object, patch, ret_object, &error);
    }
}

static void check_result(struct arena *arena, unsigned kind, struct json_node *made,
                         const struct json_node *patch)
{
    AUTO(buf_fini) struct buf text = {0}, twice = {0};
    struct json_node *again;
    struct error error;
    write_json(made, &text);
    enum status status = json_tree_read(arena, buf_slice(&text), &again, &error);
    assert(status == ST_OK || status == ST_NOMEM);
    if (kind % KINDS != 1 || status != ST_OK || apply(arena, kind, again, patch, &again) != ST_OK)
        return;
    write_json(again, &twice);
    assert(slice_equal(buf_slice(&text), buf_slice(&twice)));
}

static void run(struct arena *arena, unsigned kind, struct json_node *object,
                struct json_node *patch)
{
    AUTO(buf_fini) struct buf before = {0}, after = {0};
    struct json_node *made;
    write_json(patch, &before);
    enum status status = apply(arena, kind, object, patch, &made);
    write_json(patch, &after);
    assert(slice_equal(buf_slice(&before), buf_slice(&after)));
    if (status == ST_OK)
        check_result(arena, kind, made, patch);
}

FUZZ_INPUT(.memory_bytes = 3 * ARENA_BYTES_MAX)
{
    const uint8_t *zero = size ? memchr(data, 0, size - 1) : NULL;
    struct arena arena;
    struct error error;
    struct json_node *object, *patch;
    if (size && data[0] == 0)
        zero = memchr(data + 1, 0, size - 1);
    if (!zero)
        return 0;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    struct slice first = slice_of(data + 1, (size_t)(zero - data) - 1);
    struct slice second = slice_of(zero + 1, size - (size_t)(zero + 1 - data));
    if (json_tree_read(&arena, first, &object, &error) == ST_OK &&
        json_tree_read(&arena, second, &patch, &error) == ST_OK)
        run(&arena, data[0], object, patch);
    arena_fini(&arena);
    return 0;
}
