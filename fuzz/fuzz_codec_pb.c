/*
 * Any bytes as any message: the first byte picks the table, the rest is decoded. What is accepted
 * must encode, decode again, and encode to the same bytes.
 */
#include "cost.h"

#include "codec/pb/pb.h"

#include <stdlib.h>

enum { ARENA_BYTES_MAX = 64 << 20 };

static void decode_again(const struct pb_message *type, struct slice bytes)
{
    void *message = malloc(type->struct_bytes);
    struct arena arena;
    assert(message);
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    enum status status = pb_decode(type, bytes, &arena, message);
    assert(status == ST_OK);

    AUTO(buf_fini) struct buf again = {0};
    status = pb_append(type, message, &again);
    assert(status == ST_OK);
    assert(slice_equal(buf_slice(&again), bytes));
    arena_fini(&arena);
    free(message);
}

FUZZ_INPUT()
{
    if (size == 0)
        return 0;
    const struct pb_message *type = pb_messages[data[0] % pb_message_count];
    void *message = malloc(type->struct_bytes);
    struct arena arena;
    assert(message);
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    if (pb_decode(type, slice_of(data + 1, size - 1), &arena, message) == ST_OK) {
        AUTO(buf_fini) struct buf encoded = {0};
        enum status status = pb_append(type, message, &encoded);
        assert(status == ST_OK);
        decode_again(type, buf_slice(&encoded));
    }
    arena_fini(&arena);
    free(message);
    return 0;
}
