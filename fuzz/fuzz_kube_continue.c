/* Input: a continue token. One that can be read is written, and reading it again gives the same. */
#include "cost.h"

#include "kube/request/continue.h"

enum { ARENA_BYTES_MAX = 1 << 20 };

FUZZ_INPUT()
{
    struct kube_continue from, again;
    struct kube_status status = {0};
    struct arena arena;
    struct slice token;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    if (kube_continue_read(&arena, slice_of(data, size), &from, &status)) {
        assert(size <= KUBE_TOKEN_BYTES_MAX && from.suffix.len);
        /* A control byte that was sent unescaped takes more room when it is written. */
        assert(kube_continue_write(&arena, from.revision, from.suffix, &token) == ST_OK);
        if (token.len <= KUBE_TOKEN_BYTES_MAX) {
            assert(kube_continue_read(&arena, token, &again, &status));
            assert(again.revision == from.revision && slice_equal(again.suffix, from.suffix));
        }
    } else {
        AUTO(buf_fini) struct buf text = {0};
        assert(kube_status_code(&status) == 400);
        assert(kube_status_write(&status, &text) == ST_OK);
    }
    arena_fini(&arena);
    return 0;
}
