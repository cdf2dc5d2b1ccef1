/* JSON for people: indented by two spaces, as in Go. */
#ifndef VIGIL_CODEC_JSON_PRETTY_H
#define VIGIL_CODEC_JSON_PRETTY_H

#include "base/buf.h"

/* Appends the text, which is valid JSON, and a line feed. ST_LIMIT: it would be longer than
 * JSON_PRETTY_BYTES_MAX, most of it spaces; ST_NOMEM. */
enum { JSON_PRETTY_BYTES_MAX = 16 << 20 };
MUST_CHECK
enum status json_pretty(struct slice text, struct buf *to);

#endif
