/*
 * What etcd's own code says while it rebuilds a v2 store, for the standard output of `etcdctl
 * migrate`: one JSON object per line, with a level, a message and fields.
 */
#ifndef VIGIL_IMPORT_V2_NOTES_H
#define VIGIL_IMPORT_V2_NOTES_H

#include "base/slice.h"

#include <stdio.h>

enum { V2_NOTE_FIELDS_MAX = 6 };

struct v2_note_field {
    const char *name; /* NULL: no more fields */
    const char *text;
    const struct slice *texts; /* instead of the text: a list */
    size_t text_count;
    const char *number; /* instead of the text: written without quotes */
};

struct v2_note {
    const char *level, *message;
    struct v2_note_field fields[V2_NOTE_FIELDS_MAX];
};

/* Nothing is written if `to` is NULL. */
void v2_note_write(FILE *to, const struct v2_note *note);

#endif
