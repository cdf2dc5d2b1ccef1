/*
 * The wire bytes of a message to proto3-JSON, as Go's protojson writes it with the settings of
 * etcd's gateway: names as in the proto file, what is not set left out, 64-bit numbers as strings,
 * bytes in base64, enums by name.
 *
 * Bytes come in pieces of any size and leave as JSON at once: a list of any length is turned over
 * with a few hundred bytes of state. They are our own encoders' (ascending fields, no defaults,
 * lists in one stretch, strings of UTF-8), so what stands in them is what is set. One owner, one
 * thread.
 */
#ifndef VIGIL_CODEC_PB_JSON_WRITE_H
#define VIGIL_CODEC_PB_JSON_WRITE_H

#include "codec/pb/pb.h"

/* Of the frames below; messages that fit into PB_DEPTH_MAX in a request are answered by as many. */
enum { PB_JSON_FRAMES_MAX = PB_DEPTH_MAX + 8 };

/* An object that is open. */
struct pb_json_frame {
    const struct pb_message *type;
    const struct pb_field *list; /* whose array is open */
    uint32_t left;               /* bytes of the message, without those of a value begun */
    bool any;                    /* a comma goes before the next field */
};

struct pb_json_writer {
    struct pb_json_frame *frames; /* owned */
    uint32_t frame_count, frame_capacity;
    const struct pb_field *field; /* whose value comes */
    uint64_t number;              /* the varint that comes */
    uint32_t value_left;          /* bytes of a string, of bytes or of packed numbers */
    uint8_t shift;                /* bits of number that have come */
    uint8_t expects;              /* private */
    uint8_t carry_len;            /* bytes that wait to be three */
    uint8_t carry[3];
};

/* Frees; a zeroed writer is ready to begin, and so is a finished one. */
void pb_json_writer_fini(struct pb_json_writer *writer);

/* A message of so many bytes follows. The one before has ended. */
MUST_CHECK
enum status pb_json_begin(struct pb_json_writer *writer, const struct pb_message *type,
                          uint32_t message_bytes, struct buf *out);

/*
 * Appends to out what the next bytes of the message say; the JSON ends with the message. They are
 * no more than are left of it. ST_MALFORMED for bytes that are no such message, ST_LIMIT for one
 * nested too deep, ST_NOMEM.
 */
MUST_CHECK
enum status pb_json_feed(struct pb_json_writer *writer, struct slice bytes, struct buf *out);

/* All bytes of the message have come. */
static inline bool pb_json_ended(const struct pb_json_writer *writer)
{
    return writer->frame_count == 0;
}

#endif
