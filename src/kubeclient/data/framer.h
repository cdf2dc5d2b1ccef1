/*
 * Cuts the body of a watch into frames, of which each is one event.
 *
 *     JSON       values one after the other, with or without white space between them
 *     protobuf   a length of four bytes, most significant byte first, and that many bytes
 *
 * The body arrives in pieces that may be cut anywhere:
 *
 *     framer_feed(&framer, bytes);
 *     while ((status = framer_next(&framer, &frame)) == ST_OK)
 *         …
 *
 * A frame that is complete in its piece is not copied; the beginning of an incomplete one is kept.
 * A frame of JSON is only known to have an end: decoding it decides whether it is valid. Every byte
 * is examined once, however small the pieces are. A frame that is too long is reported and skipped,
 * as in client-go. One owner, one thread.
 */
#ifndef VIGIL_KUBECLIENT_DATA_FRAMER_H
#define VIGIL_KUBECLIENT_DATA_FRAMER_H

#include "base/buf.h"

enum { FRAMER_BYTES_MAX = 16 << 20 }; /* as in client-go */

enum framer_format { FRAMER_JSON, FRAMER_PROTOBUF };

struct framer {
    enum framer_format format;
    size_t bytes_max;
    struct slice piece; /* the rest of what was fed, borrowed */
    struct buf held;    /* part of an incomplete frame that earlier pieces contained */
    bool given;         /* held was returned as a frame */
    size_t length;      /* bytes of the frame so far; for protobuf without what is before it */
    bool skips;         /* the frame is too long, and its bytes are dropped */
    /* JSON: */
    uint8_t value; /* enum framer_value */
    bool in_string, escapes;
    size_t depth;
    /* Protobuf: */
    uint8_t head[4];
    uint8_t head_length;
};

void framer_init(struct framer *framer, enum framer_format format);
void framer_fini(struct framer *framer);

/* The bytes are borrowed until framer_next has returned ST_AGAIN. */
void framer_feed(struct framer *framer, struct slice bytes);

/*
 * Returns the next frame, valid until the next call.
 *
 * ST_AGAIN       the piece is used up
 * ST_LIMIT       a frame was longer than bytes_max and is dropped; the next call continues after it
 * ST_MALFORMED   no value begins here; returned again by every further call, also for later pieces
 * ST_NOMEM       the frame cannot be kept; the framer can only be finished
 */
MUST_CHECK
enum status framer_next(struct framer *framer, struct slice *ret_frame);

/*
 * JSON: what was fed and has not been examined, without white space before it; empty within a
 * frame. A reader of values that finds a whole one there takes it, so that its bytes are examined
 * once.
 */
struct slice framer_peek(struct framer *framer);
void framer_take(struct framer *framer, size_t frame_bytes);

/* What was fed and has not been examined. The framer forgets it: it is fed again later. */
struct slice framer_take_rest(struct framer *framer);

/* Protobuf, between frames: the next frame is `before` and this many bytes, which have no head. */
MUST_CHECK
enum status framer_expect(struct framer *framer, struct slice before, uint32_t bytes);

/* After the last byte: whether the body ended within a frame. */
bool framer_is_cut_off(const struct framer *framer);

/* Asserts every invariant; for tests. */
void framer_check(const struct framer *framer);

#endif
