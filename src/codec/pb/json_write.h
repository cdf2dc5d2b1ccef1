/*
 * Converts the wire bytes of a message to proto3-JSON, like Go's protojson with the settings of
 * etcd's gateway: names as in the proto file, unset fields left out, 64-bit numbers as strings,
 * bytes in base64, enums by name.
 *
 * Bytes may come in pieces of any size and are converted at once: a list of any length is converted
 * with a few hundred bytes of state. They come from our own encoders (ascending fields, no
 * defaults, lists without interruption, UTF-8 strings), so that what they contain is what is set.
 * One owner, one thread.
 */
#ifndef VIGIL_CODEC_PB_JSON_WRITE_H
#define VIGIL_CODEC_PB_JSON_WRITE_H

#include "codec/pb/pb.h"

/* Messages that nest at most PB_DEPTH_MAX deep in a request are answered by ones that nest as deep.
 */
enum { PB_JSON_FRAMES_MAX = PB_DEPTH_MAX + 8 };

/* An open object. */
struct pb_json_frame {
    const struct pb_message *type;
    const struct pb_field *list; /* the field whose array is open */
    uint32_t left;               /* bytes left of the message, without those of a value under way */
    bool any;                    /* the next field needs a comma */
};

struct pb_json_writer {
    struct pb_json_frame *frames; /* owned */
    uint32_t frame_count, frame_capacity;
    const struct pb_field *field; /* the field whose value follows */
    uint64_t number;              /* the varint that is being read */
    uint32_t value_left;          /* bytes of a string, of bytes or of packed numbers */
    uint8_t shift;                /* bits of number read so far */
    uint8_t expects;              /* private */
    uint8_t carry_len;            /* bytes that wait to complete a group of three */
    uint8_t carry[3];
};

/* Frees; a zeroed writer is ready to begin, and so is a finished one. */
void pb_json_writer_fini(struct pb_json_writer *writer);

/* Begins a message of this many bytes. The previous one must have ended. */
MUST_CHECK
enum status pb_json_begin(struct pb_json_writer *writer, const struct pb_message *type,
                          uint32_t message_bytes, struct buf *out);

/* Appends to out the JSON of the next bytes of the message, which are at most those left of it; the
 * JSON ends with the message. ST_MALFORMED: the bytes are not such a message, ST_LIMIT: it nests
 * too deep, ST_NOMEM. */
MUST_CHECK
enum status pb_json_feed(struct pb_json_writer *writer, struct slice bytes, struct buf *out);

/* All bytes of the message were given. */
static inline bool pb_json_ended(const struct pb_json_writer *writer)
{
    return writer->frame_count == 0;
}

#endif
