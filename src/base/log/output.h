/* One destination of log lines: an inherited descriptor, a file, or the journal. Used by the
 * logger's thread alone (by the caller while it does not run). For log.c. */
#ifndef VIGIL_BASE_LOG_OUTPUT_H
#define VIGIL_BASE_LOG_OUTPUT_H

#include "base/error.h"
#include "base/log/field.h"
#include "base/log/rotation.h"

struct log_output {
    enum { LOG_TO_DESCRIPTOR, LOG_TO_FILE, LOG_TO_JOURNAL } kind;
    int fd;
    bool stuck;    /* its reader did not read in time; no more waiting until it does */
    char *path;    /* owned; of a file */
    int64_t bytes; /* size of the file */
    struct log_rotation rotation;
};

/* The path of the journal's socket; changed by tests. */
extern const char *log_journal_socket;

MUST_CHECK
enum status log_output_open(struct log_output *output, struct slice name,
                            const struct log_rotation *rotation, struct error *error);
void log_output_close(struct log_output *output);

/* Writes one line with its newline. False: it was lost. Waits at most wait_ms for a reader. */
bool log_output_write(struct log_output *output, enum log_level level, struct slice line,
                      int wait_ms);

/* A file that was moved away or removed is created again. No effect on other outputs. */
void log_output_reopen(struct log_output *output);

#endif
