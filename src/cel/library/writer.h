/*
 * A text that a function makes piece by piece, in the arena of the evaluation; its length counts as
 * work. One owner; begins with the work and is otherwise zero.
 */
#ifndef VIGIL_CEL_LIBRARY_WRITER_H
#define VIGIL_CEL_LIBRARY_WRITER_H

#include "cel/value/value.h"

struct cel_writer {
    struct cel_work *work;
    uint8_t *bytes;
    size_t length, room;
    bool failed; /* no memory or work: the rest is dropped */
};

void cel_write(struct cel_writer *to, struct slice text);
void cel_write_text(struct cel_writer *to, const char *text);
/* The same text many times. */
void cel_write_repeated(struct cel_writer *to, const char *text, size_t times);
/* In quotes, with Go's escapes. */
void cel_write_quoted(struct cel_writer *to, struct slice text);

/* A value as Go's %v shows it; is_native: it is a part of a list or map of JSON. */
void cel_write_go(struct cel_writer *to, struct cel_value value, bool is_native, int depth);

/* The text as a string, or the error. */
struct cel_value cel_written(const struct cel_writer *writer);

#endif
