#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void buf_fini(struct buf *buf)
{
    free(buf->ptr);
    *buf = (struct buf){0};
}

size_t buf_grown_capacity(const struct buf *buf, size_t more)
{
    if (more > SIZE_MAX / 2 - buf->len)
        return 0;
    return size_max(size_max(64, buf->capacity * 2), buf->len + more);
}

enum status buf_grow(struct buf *buf, size_t more)
{
    size_t capacity = buf_grown_capacity(buf, more);
    if (capacity == 0)
        return ST_NOMEM;
    uint8_t *ptr = realloc(buf->ptr, capacity);
    if (!ptr)
        return ST_NOMEM;
    buf->ptr = ptr;
    buf->capacity = capacity;
    return ST_OK;
}

enum status buf_append(struct buf *buf, struct slice bytes)
{
    TRY(buf_reserve(buf, bytes.len));
    if (bytes.len)
        memcpy(buf->ptr + buf->len, bytes.ptr, bytes.len);
    buf->len += bytes.len;
    return ST_OK;
}

enum status buf_append_text(struct buf *buf, const char *text)
{
    return buf_append(buf, slice_from_text(text));
}

enum status buf_append_format(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int needed = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(needed >= 0);

    TRY(buf_reserve(buf, (size_t)needed + 1));
    va_start(args, format);
    vsnprintf((char *)buf->ptr + buf->len, (size_t)needed + 1, format, args);
    va_end(args);
    buf->len += (size_t)needed;
    return ST_OK;
}

void buf_consume(struct buf *buf, size_t n)
{
    assert(n <= buf->len);
    buf->len -= n;
    if (buf->len)
        memmove(buf->ptr, buf->ptr + n, buf->len);
}

void buf_reset(struct buf *buf, size_t keep_max)
{
    buf->len = 0;
    if (buf->capacity > keep_max)
        buf_fini(buf);
}
