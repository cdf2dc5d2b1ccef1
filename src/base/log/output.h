/*
 * One place where log lines go: a descriptor we were given, a file of our own, or the journal.
 * Used by the logger's thread alone (by the caller where there is none). For log.c.
 */
#ifndef VIGIL_BASE_LOG_OUTPUT_H
#define VIGIL_BASE_LOG_OUTPUT_H

#include "base/error.h"
#include "base/log/field.h"
#include "base/log/rotation.h"

struct log_output {
    enum { LOG_TO_DESCRIPTOR, LOG_TO_FILE, LOG_TO_JOURNAL } kind;
    int fd;
    bool stuck;    /* its reader did not read in time; not waited for again until it does */
    char *path;    /* owned; of a file */
    int64_t bytes; /* in the file so far */
    struct log_rotation rotation;
};

/* Where the journal listens; changed by tests. */
extern const char *log_journal_socket;

MUST_CHECK
enum status log_output_open(struct log_output *output, struct slice name,
                            const struct log_rotation *rotation, struct error *error);
void log_output_close(struct log_output *output);

/* One line with its newline. False: it was lost. Waits at most so long for a reader. */
bool log_output_write(struct log_output *output, enum log_level level, struct slice line,
                      int wait_ms);

/* A file that was moved away or removed is made anew. Without effect on others. */
void log_output_reopen(struct log_output *output);

#endif
