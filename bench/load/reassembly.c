#include "load/reassembly.h"

#include "load/frame.h"
#include "load/request.h"

/* The bytes of the first message with its prefix; 0: the prefix is not complete. */
static enum status whole_bytes(struct slice bytes, size_t *ret_whole)
{
    *ret_whole = 0;
    if (bytes.len < BENCH_GRPC_PREFIX_BYTES)
        return ST_OK;
    size_t len = bench_u32_read(bytes.ptr + 1);
    if (bytes.ptr[0] != 0 || len > BENCH_MESSAGE_BYTES_MAX)
        return ST_MALFORMED;
    *ret_whole = BENCH_GRPC_PREFIX_BYTES + len;
    return ST_OK;
}

/* Takes whole messages off the front; leaves what is incomplete. */
static enum status take_whole(struct slice *bytes, bench_message_fn fn, void *argument)
{
    for (;;) {
        size_t whole, prefix = BENCH_GRPC_PREFIX_BYTES;
        TRY(whole_bytes(*bytes, &whole));
        if (!whole || whole > bytes->len)
            return ST_OK;
        TRY(fn(argument, slice_sub(*bytes, prefix, whole - prefix)));
        *bytes = slice_sub(*bytes, whole, bytes->len - whole);
    }
}

/* Moves bytes from the front of the input behind the kept ones, until these are `wanted`. */
static enum status keep_up_to(struct buf *partial, size_t wanted, struct slice *bytes)
{
    size_t len = size_min(wanted - partial->len, bytes->len);
    TRY(buf_append(partial, slice_sub(*bytes, 0, len)));
    *bytes = slice_sub(*bytes, len, bytes->len - len);
    return ST_OK;
}

/* Completes the message whose start was kept, and keeps nothing behind it. */
static enum status complete(struct buf *partial, struct slice *bytes, bench_message_fn fn,
                            void *argument)
{
    if (partial->len < BENCH_GRPC_PREFIX_BYTES)
        TRY(keep_up_to(partial, BENCH_GRPC_PREFIX_BYTES, bytes));
    size_t whole;
    TRY(whole_bytes(buf_slice(partial), &whole));
    if (!whole)
        return ST_OK;
    TRY(keep_up_to(partial, whole, bytes));
    struct slice kept = buf_slice(partial);
    TRY(take_whole(&kept, fn, argument));
    if (!kept.len)
        partial->len = 0;
    return ST_OK;
}

enum status bench_reassembly_take(struct bench_reassembly *reassembly, struct slice bytes,
                                  bench_message_fn fn, void *argument)
{
    if (reassembly->partial.len)
        TRY(complete(&reassembly->partial, &bytes, fn, argument));
    if (reassembly->partial.len)
        return ST_OK;
    TRY(take_whole(&bytes, fn, argument));
    return buf_append(&reassembly->partial, bytes);
}

void bench_reassembly_fini(struct bench_reassembly *reassembly)
{
    buf_fini(&reassembly->partial);
}
