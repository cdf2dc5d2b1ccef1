/* A message as one line for the log, similar to protobuf's text format: key:"a" limit:5. Stored
 * data does not belong in logs: of fields named value only the size is shown, of passwords nothing.
 */
#ifndef VIGIL_CODEC_PB_TEXT_WRITE_H
#define VIGIL_CODEC_PB_TEXT_WRITE_H

#include "codec/pb/pb.h"

/* Writes at most room bytes, including a final NUL, and truncates what does not fit. Returns the
 * length of the text. */
size_t pb_text_write(const struct pb_message *type, const void *message, char *dst, size_t room);

#endif
