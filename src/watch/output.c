#include "watch/output.h"

#include "base/xalloc.h"
#include "watch/hub_read.h"

uint8_t *output_begin(struct watch_stream *stream, struct watch_output *out, size_t len)
{
    assert(len <= WATCH_PIECE_BYTES_MAX);
    return (size_t)(out->end - out->at) >= len ? out->at : stream->hub->piece;
}

void output_end(struct watch_stream *stream, struct watch_output *out, const uint8_t *from,
                size_t len)
{
    stream->hub->stats.responses_sent++;
    if (LIKELY(from == out->at)) {
        out->at += len;
        return;
    }
    assert(!stream->rest);
    size_t now = size_min(len, (size_t)(out->end - out->at));
    memcpy(out->at, from, now);
    out->at += now;
    if (now == len)
        return;
    stream->rest = xmalloc(len - now);
    memcpy(stream->rest, from + now, len - now);
    stream->rest_len = (uint32_t)(len - now);
    stream->rest_at = 0;
    struct watch_stats *stats = &stream->hub->stats;
    stats->held_bytes += stream->rest_len;
    watch_stats_raise(&stats->held_bytes_peak, stats->held_bytes);
    if (stream->rest_len > stream->held_peak)
        stream->held_peak = stream->rest_len;
}

void output_message(struct watch_stream *stream, struct watch_output *out,
                    const struct message *message, int64_t revision)
{
    uint8_t bytes[MESSAGE_HEAD_BYTES_MAX];
    size_t len = message_head_write(bytes, message, hub_header(stream->hub, revision), 0);
    output_end(stream, out, bytes, len);
}
