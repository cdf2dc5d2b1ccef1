#include "watch/stream/sending.h"

#include "base/xalloc.h"
#include "watch/hub/hub_read.h"

uint8_t *output_begin(struct watch_stream *stream, struct watch_output *out, size_t len)
{
    assert(len <= WATCH_PIECE_BYTES_MAX);
    return (size_t)(out->end - out->at) >= len ? out->at : stream->hub->piece;
}

void output_end(struct watch_stream *stream, struct watch_output *out, const uint8_t *from,
                size_t len)
{
    stream->hub->stats.responses_sent++;
    assert(len > 0);
    if (LIKELY(from == out->at)) {
        assert(len <= (size_t)(out->end - out->at));
        out->at += len;
        return;
    }
    /* It was written elsewhere: as much as fits is copied, and the stream keeps the rest. */
    assert(!sending(stream)->rest);
    size_t now = size_min(len, (size_t)(out->end - out->at));
    memcpy(out->at, from, now);
    out->at += now;
    if (now == len)
        return;
    sending(stream)->rest = xmalloc(len - now);
    memcpy(sending(stream)->rest, from + now, len - now);
    sending(stream)->rest_len = (uint32_t)(len - now);
    sending(stream)->rest_at = 0;
    struct watch_stats *stats = &stream->hub->stats;
    stats->held_bytes += sending(stream)->rest_len;
    watch_stats_raise(&stats->held_bytes_peak, stats->held_bytes);
    if (sending(stream)->rest_len > sending(stream)->held_peak)
        sending(stream)->held_peak = sending(stream)->rest_len;
}

void output_message(struct watch_stream *stream, struct watch_output *out,
                    const struct message *message, int64_t revision)
{
    uint8_t bytes[MESSAGE_HEAD_BYTES_MAX];
    size_t len = message_head_write(bytes, message, hub_header(stream->hub, revision), 0);
    assert(len <= sizeof(bytes));
    output_end(stream, out, bytes, len);
}
