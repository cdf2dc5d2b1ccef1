/* JSON for people: indented by two blanks, as Go does it. */
#ifndef VIGIL_CODEC_JSON_PRETTY_H
#define VIGIL_CODEC_JSON_PRETTY_H

#include "base/buf.h"

/* Appends the text, which is valid JSON, and a line feed. ST_NOMEM. */
MUST_CHECK
enum status json_pretty(struct slice text, struct buf *to);

#endif
