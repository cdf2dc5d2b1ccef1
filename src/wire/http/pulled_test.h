/* For tests of clients: a body of a request that is pulled. */
#ifndef VIGIL_WIRE_HTTP_PULLED_TEST_H
#define VIGIL_WIRE_HTTP_PULLED_TEST_H

#include "base/buf.h"
#include "wire/http/source.h"

#include <stdlib.h>

struct pulled {
    struct http_source source;
    struct buf bytes;
    size_t given, fills;
    bool ends;    /* after its bytes; otherwise it is parked then */
    bool endless; /* it has any number of bytes */
};

static inline enum http_fill pulled_fill(struct http_source *source, uint8_t *dst, size_t room,
                                         size_t *ret_len)
{
    struct pulled *p = CONTAINER_OF(source, struct pulled, source);
    p->fills++;
    if (p->endless) {
        memset(dst, 'e', room);
        p->given += room;
        *ret_len = room;
        return HTTP_FILL_MORE;
    }
    *ret_len = size_min(room, p->bytes.len - p->given);
    slice_copy(dst, slice_sub(buf_slice(&p->bytes), p->given, *ret_len));
    p->given += *ret_len;
    if (p->given < p->bytes.len)
        return HTTP_FILL_MORE;
    return p->ends ? HTTP_FILL_DONE : HTTP_FILL_PARKED;
}

#define PULLED ((struct pulled){.source.fill = pulled_fill})

static inline void pulled_give(struct pulled *p, const char *text)
{
    if (buf_append(&p->bytes, slice_from_text(text)) != ST_OK)
        abort();
}

static inline void pulled_fini(struct pulled *p)
{
    buf_fini(&p->bytes);
}

#endif
