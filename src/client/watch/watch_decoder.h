/*
 * Decodes the responses of a watch stream, with the same result as pb_decode but several times
 * faster for ordinary ones: it knows the fields of an event, and decodes the header only when it
 * differs from the header before. Everything unusual is left to pb_decode.
 *
 * One for each stream; the loop's thread.
 */
#ifndef VIGIL_CLIENT_WATCH_WATCH_DECODER_H
#define VIGIL_CLIENT_WATCH_WATCH_DECODER_H

#include "codec/pb/rpc.pb.h"

/* Enough for four numbers of any size. */
enum { WATCH_HEADER_BYTES_MAX = 44 };

/* Zeroed at first. */
struct watch_decoder {
    struct pb_response_header header; /* the last one */
    uint8_t header_bytes[WATCH_HEADER_BYTES_MAX];
    uint8_t header_len; /* 0: there is none yet */
};

/* As pb_decode. The response may refer to the header of the decoder, so it is valid until the next
 * one is decoded. */
MUST_CHECK
enum status watch_decode(struct watch_decoder *decoder, struct slice message, struct arena *arena,
                         struct pb_watch_response *ret_response);

#endif
