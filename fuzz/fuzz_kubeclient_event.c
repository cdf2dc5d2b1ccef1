/* Any bytes as the body of a watch. The first byte chooses the format and is the seed for how the
 * rest is cut into pieces: the frames and events are the same as those of one piece. */
#include "cost.h"

#include "kubeclient/data/framer.h"
#include "kubeclient/data/object.h"
#include "kubeclient/data/received_event.h"
#include "kubeclient/data/status.h"

#include <assert.h>

/* The bytes of a long message of protobuf are skipped without a look at each, so that short ones
 * after it would look like work that grows faster than the input. */
enum { FRAME_BYTES_MAX = 1024, PROTOBUF_BYTES_MAX = 4096 };

/* What a framer has returned. */
struct frames {
    uint64_t digest; /* digest of all frames, and of where they end */
    size_t count, too_long;
    enum status end;
    bool cut_off;
};

static uint64_t digest_of(uint64_t digest, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        digest = (digest ^ bytes.ptr[i]) * 0x100000001b3u;
    return (digest ^ bytes.len) * 0x100000001b3u;
}

static bool is_within(struct slice part, struct slice whole)
{
    return !part.len || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

static void check_object(struct slice json)
{
    struct vigil_kube_object *object;
    enum status status = object_new(json, &object);
    assert(status == ST_OK || status == ST_MALFORMED);
    if (status != ST_OK)
        return;
    vigil_bytes name = vigil_kube_object_name(object), space = vigil_kube_object_namespace(object);
    assert(slice_equal(object_sent(object), json) && name.size > 0);
    assert(object_key(object).len == name.size + space.size + (space.size > 0));
    assert(vigil_kube_object_uid(object).size + object_version(object).len <= json.len);
    vigil_kube_object_unref(object);
}

static void check_event(struct slice frame, enum framer_format format)
{
    struct error error = {0};
    struct received_event event;
    struct vigil_kube_status status;
    enum status read = format == FRAMER_JSON ? received_event_read(frame, &event, &error)
                                             : received_event_read_protobuf(frame, &event, &error);
    if (read != ST_OK) {
        assert(error.text[0]);
        return;
    }
    assert(is_within(event.object, frame) && is_within(event.version, event.object));
    assert(event.type != RECEIVED_ERROR || !event.version.len);
    if (event.type == RECEIVED_ERROR && kube_status_read(event.object, &status))
        assert(status.cause_count <= VIGIL_KUBE_CAUSES_MAX && status.retry_after_s != 0);
    check_object(event.object);
}

static void take_events(struct framer *framer, struct frames *frames)
{
    struct error error;
    struct received_event event;
    while ((frames->end = received_event_next(framer, &event, &error)) == ST_OK ||
           frames->end == ST_LIMIT) {
        framer_check(framer);
        if (frames->end == ST_LIMIT) {
            frames->too_long++;
            continue;
        }
        frames->count++;
        frames->digest = digest_of(frames->digest ^ event.type, event.object);
    }
    framer_check(framer);
}

static void take_frames(struct framer *framer, struct frames *frames, bool decodes)
{
    struct slice frame;
    while ((frames->end = framer_next(framer, &frame)) == ST_OK || frames->end == ST_LIMIT) {
        framer_check(framer);
        if (frames->end == ST_LIMIT) {
            frames->too_long++;
            continue;
        }
        assert(frame.len <= FRAME_BYTES_MAX);
        frames->count++;
        frames->digest = digest_of(frames->digest, frame);
        if (decodes)
            check_event(frame, framer->format);
    }
    framer_check(framer);
}

/* seed 0: in one piece. */
static struct frames read_body(struct slice body, enum framer_format format, uint32_t seed,
                               bool as_events)
{
    struct framer framer;
    struct frames frames = {.end = ST_AGAIN};
    framer_init(&framer, format);
    framer.bytes_max = FRAME_BYTES_MAX;
    for (size_t at = 0; at < body.len && frames.end == ST_AGAIN;) {
        bool whole = seed == 0;
        seed = seed * 1664525u + 1013904223u;
        size_t n = whole ? body.len : 1 + (seed >> 8) % (seed >> 30 ? 20 : 2000);
        n = size_min(n, body.len - at);
        framer_feed(&framer, slice_sub(body, at, n));
        if (as_events)
            take_events(&framer, &frames);
        else
            take_frames(&framer, &frames, whole);
        at += n;
    }
    frames.cut_off = framer_is_cut_off(&framer);
    framer_fini(&framer);
    return frames;
}

static void check_pieces(struct slice body, enum framer_format format, uint32_t seed,
                         bool as_events)
{
    struct frames whole = read_body(body, format, 0, as_events);
    struct frames pieces = read_body(body, format, seed, as_events);
    assert(whole.end != ST_NOMEM);
    assert(whole.digest == pieces.digest && whole.count == pieces.count);
    assert(whole.too_long == pieces.too_long && whole.end == pieces.end);
    assert(whole.cut_off == pieces.cut_off || whole.end == ST_MALFORMED);
}

FUZZ_INPUT()
{
    if (size == 0)
        return 0;
    struct slice body = slice_of(data + 1, size - 1);
    enum framer_format format = data[0] & 1 ? FRAMER_PROTOBUF : FRAMER_JSON;
    if (format == FRAMER_PROTOBUF)
        body.len = size_min(body.len, PROTOBUF_BYTES_MAX);
    check_pieces(body, format, 1 + data[0], false);
    check_pieces(body, format, 1 + data[0], true);
    return 0;
}
