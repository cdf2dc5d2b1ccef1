/* Reads a small file at once: a certificate, a token, a configuration. */
#ifndef VIGIL_IO_WHOLE_FILE_H
#define VIGIL_IO_WHOLE_FILE_H

#include "base/buf.h"
#include "base/error.h"

enum whole_file_kinds {
    WHOLE_FILE_REGULAR, /* never waits: a pipe at this path is an error */
    WHOLE_FILE_ANY,     /* waits for the end of a pipe */
};

/*
 * Appends everything. The error names the file: ST_NOT_FOUND, ST_IO, ST_INVALID (not a regular
 * file), ST_LIMIT (longer than bytes_max), ST_NOMEM; what is in the buffer then is undefined.
 */
MUST_CHECK
enum status whole_file_read(const char *path, enum whole_file_kinds kinds, size_t bytes_max,
                            struct buf *to, struct error *error);

#endif
