/* The text of one log line, built in a fixed buffer: what does not fit is omitted, whole fields at
 * a time. For log.c. */
#ifndef VIGIL_BASE_LOG_LINE_H
#define VIGIL_BASE_LOG_LINE_H

#include "base/log/field.h"

struct log_line {
    size_t len;
    bool full; /* something did not fit */
    char text[LOG_LINE_BYTES];
};

struct log_event {
    enum log_level level;
    const char *file; /* as __FILE__ gives it */
    int line;
    const char *message;
    const struct log_field *fields;
    size_t count;
    int64_t real_ns;
    uint64_t dropped; /* lines lost before this one */
};

/* Both end with a newline. */
void log_line_json(struct log_line *line, const struct log_event *event);
void log_line_console(struct log_line *line, const struct log_event *event, bool colour);

#endif
