/*
 * Input: a byte that selects the test, then an object in protobuf, or an object and a strategic
 * merge patch. An object that can be decoded is encoded and decoded again, and gives the same JSON.
 */
#include "cost.h"

#include "kube/merge/patch/patch.h"
#include "kube/types/schema/protobuf.h"
#include "kube/types/schema/strict.h"

#include <stdlib.h>

enum { ARENA_BYTES_MAX = 64 << 20 };

static void fuzz_protobuf(struct arena *arena, struct slice bytes)
{
    struct error error;
    struct json_node *object, *again;
    struct buf wire = {0};
    if (kube_protobuf_decode(arena, bytes, &object, &error) != ST_OK)
        return;
    enum status status = kube_protobuf_encode(arena, object, &wire, &error);
    assert(status == ST_OK || status == ST_NOMEM || status == ST_LIMIT);
    if (status == ST_OK) {
        status = kube_protobuf_decode(arena, buf_slice(&wire), &again, &error);
        assert(status == ST_OK || status == ST_NOMEM);
    }
    buf_fini(&wire);
}

/* The bytes are two JSON texts separated by a zero byte. */
static void fuzz_patch(struct arena *arena, struct slice bytes)
{
    const uint8_t *zero = bytes.len ? memchr(bytes.ptr, 0, bytes.len) : NULL;
    const struct kube_type *pod = kube_type_find(SLICE_LITERAL("v1"), SLICE_LITERAL("Pod"));
    struct error error;
    struct json_node *object, *patch, *merged;
    struct buf text = {0};
    if (!zero)
        return;
    size_t len = (size_t)(zero - bytes.ptr);
    if (json_tree_read(arena, slice_sub(bytes, 0, len), &object, &error) != ST_OK ||
        json_tree_read(arena, slice_sub(bytes, len + 1, bytes.len - len - 1), &patch, &error) !=
            ST_OK)
        return;
    if (patch_strategic(arena, pod, object, patch, &merged, &error) != ST_OK)
        return;
    if (kube_strict(pod, merged, &text, &error) == ST_OK)
        (void)!json_tree_write(merged, &text);
    buf_fini(&text);
}

FUZZ_INPUT()
{
    struct arena arena;
    if (!size)
        return 0;
    /* A copy of exactly this size, so that sanitizers detect a read past its end. */
    uint8_t *copy = malloc(size - 1 ? size - 1 : 1);
    assert(copy);
    memcpy(copy, data + 1, size - 1);
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    if (data[0] & 1)
        fuzz_patch(&arena, slice_of(copy, size - 1));
    else
        fuzz_protobuf(&arena, slice_of(copy, size - 1));
    arena_fini(&arena);
    free(copy);
    return 0;
}
