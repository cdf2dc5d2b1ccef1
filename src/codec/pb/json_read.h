/*
 * proto3-JSON to the wire bytes of a message, as Go's protojson reads it with unknown fields
 * discarded, which is how etcd's gateway is set:
 *
 *     names              as in the proto file or lowerCamel
 *     bytes              base64, either alphabet, padded or not
 *     64-bit numbers     a string or a number; "1e2" and 1.0 are integers
 *     enums              a name or a number; a name that is not known is as if not sent
 *     null               as if not sent; not in a list
 *     a field twice, two of a oneof: refused
 *
 * The bytes are what encoders give (defaults left out, numbers packed), in the order of the JSON.
 * They never are more than the JSON's.
 */
#ifndef VIGIL_CODEC_PB_JSON_READ_H
#define VIGIL_CODEC_PB_JSON_READ_H

#include "codec/pb/pb.h"

enum { PB_JSON_ERROR_BYTES = 384 };

/*
 * Appends the message to out. json is one value that a scanner has found well-formed
 * (json_next_value). ST_INVALID: it is no such message, and error says why in protojson's words,
 * ended by a NUL. ST_LIMIT: messages nested deeper than PB_DEPTH_MAX. ST_NOMEM. After a failure out
 * holds some of it.
 */
MUST_CHECK
enum status pb_json_read(const struct pb_message *type, struct slice json, struct buf *out,
                         char error[PB_JSON_ERROR_BYTES]);

#endif
