#include "mirror/link/loop_guard.h"

#include "base/random.h"

#include <inttypes.h>
#include <stdio.h>

#define TITLE "vigil "

void loop_guard_make(char ret_own[LOOP_GUARD_OWN_BYTES])
{
    snprintf(ret_own, LOOP_GUARD_OWN_BYTES, TITLE "%016" PRIx64, random_seed_system());
}

static bool is_chain(struct slice text)
{
    if (!slice_has_prefix(text, SLICE_LITERAL(TITLE)))
        return false;
    for (size_t i = strlen(TITLE); i < text.len; i++)
        if (!strchr("0123456789abcdef ", text.ptr[i]) || !text.ptr[i])
            return false;
    return true;
}

enum status loop_guard_extend(struct slice passed, const char *own, struct buf *chain)
{
    const char *id = own + strlen(TITLE);
    chain->len = 0;
    if (!is_chain(passed))
        return ST_OK;
    if (passed.len > LOOP_GUARD_BYTES_MAX)
        return ST_LIMIT;
    if (memmem(passed.ptr, passed.len, id, strlen(id)))
        return ST_EXISTS;
    TRY(buf_append(chain, passed));
    TRY(buf_append_text(chain, " "));
    return buf_append_text(chain, id);
}
