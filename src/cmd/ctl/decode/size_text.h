/* A number of bytes for people. */
#ifndef VIGIL_CMD_CTL_DECODE_SIZE_TEXT_H
#define VIGIL_CMD_CTL_DECODE_SIZE_TEXT_H

#include <stdint.h>

enum { SIZE_TEXT_BYTES = 24 };

/* "3.2 MiB", "17 B"; returns `to`. */
const char *size_text(uint64_t bytes, char to[SIZE_TEXT_BYTES]);

#endif
