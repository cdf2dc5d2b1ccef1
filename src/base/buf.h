/* Owned bytes that grow at the end. A zeroed struct is an empty buffer. One owner, one thread. */
#ifndef VIGIL_BASE_BUF_H
#define VIGIL_BASE_BUF_H

#include "base/slice.h"
#include "base/status.h"

struct buf {
    uint8_t *ptr;
    size_t len;
    size_t capacity;
};

/* Frees the bytes; the buffer is empty and usable afterwards. */
void buf_fini(struct buf *buf);

/* The capacity that buf_grow would give it; 0: larger than any buffer can be. */
size_t buf_grown_capacity(const struct buf *buf, size_t more);

/* The slow path of buf_reserve. */
MUST_CHECK
enum status buf_grow(struct buf *buf, size_t more);

/* Makes room for `more` bytes after len. */
MUST_CHECK
static inline enum status buf_reserve(struct buf *buf, size_t more)
{
    return LIKELY(more <= buf->capacity - buf->len) ? ST_OK : buf_grow(buf, more);
}

MUST_CHECK
enum status buf_append(struct buf *buf, struct slice bytes);
MUST_CHECK
enum status buf_append_text(struct buf *buf, const char *text);
MUST_CHECK
enum status buf_append_format(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);

/* Drops the first n bytes by moving the rest down. */
void buf_consume(struct buf *buf, size_t n);

/* Empties the buffer; frees the memory if it holds more than keep_max bytes. */
void buf_reset(struct buf *buf, size_t keep_max);

static inline struct slice buf_slice(const struct buf *buf)
{
    return (struct slice){buf->ptr, buf->len};
}

#endif
