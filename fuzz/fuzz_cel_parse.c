/*
 * Input: an expression, which is parsed. It may be nested 250 times, and each level is a call for
 * every operator that there could be. Each of up to 100 errors shows its line.
 */
#include "cost.h"

#include "cel/syntax/parser.h"
#include "codec/utf8.h"

enum { ARENA_BYTES_MAX = 32 << 20 };

FUZZ_INPUT(.steps_per_byte = 2000, .stack_bytes = 1 << 20, .memory_bytes = 2 * ARENA_BYTES_MAX)
{
    struct arena arena;
    struct cel_errors errors;
    struct cel_expr *root;
    AUTO(buf_fini) struct buf shown = {0};
    struct slice source = slice_of(data, size);
    if (!utf8_valid(source))
        return 0;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    cel_errors_init(&errors, &arena, source);
    enum status status = cel_parse(&errors, &root);
    assert((status == ST_INVALID) == cel_errors_any(&errors) || status == ST_NOMEM);
    if (status == ST_OK)
        assert(root->height <= CEL_EXPR_HEIGHT_MAX);
    else
        assert(cel_errors_display(&errors, &shown) == ST_OK);
    arena_fini(&arena);
    return 0;
}
