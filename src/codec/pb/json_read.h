/*
 * Converts proto3-JSON to the wire bytes of a message, like Go's protojson with unknown fields
 * discarded, as in etcd's gateway:
 *
 *     names              as in the proto file or lowerCamel
 *     bytes              base64, either alphabet, padded or not
 *     64-bit numbers     a string or a number; "1e2" and 1.0 are integers
 *     enums              a name or a number; an unknown name is treated as absent
 *     null               treated as absent; not allowed in a list
 *     a repeated field, two members of a oneof: refused
 *
 * The bytes are those of an encoder (defaults left out, numbers packed), in the order of the JSON.
 * They are never longer than the JSON.
 */
#ifndef VIGIL_CODEC_PB_JSON_READ_H
#define VIGIL_CODEC_PB_JSON_READ_H

#include "codec/pb/pb.h"

enum { PB_JSON_ERROR_BYTES = 384 };

/*
 * Appends the message to out. json is one value that a scanner has checked (json_next_value).
 * ST_INVALID: it is not such a message, and error says why in protojson's words, NUL-terminated.
 * ST_LIMIT: messages nested deeper than PB_DEPTH_MAX. ST_NOMEM. After a failure out contains a part
 * of it.
 */
MUST_CHECK
enum status pb_json_read(const struct pb_message *type, struct slice json, struct buf *out,
                         char error[PB_JSON_ERROR_BYTES]);

#endif
