/*
 * Bytes of a server, written so that they can be shown to a person: valid UTF-8 stays as it is, and
 * everything that could control a terminal or change how a line is read is written as an escape:
 *
 *     control characters, bytes that are not UTF-8      \x1b
 *     C1 controls, bidirectional overrides, separators  \u202e
 *
 * A backslash stays as it is: the result is for reading and cannot be converted back. Any thread.
 */
#ifndef VIGIL_CMD_CTL_DECODE_SAFE_TEXT_H
#define VIGIL_CMD_CTL_DECODE_SAFE_TEXT_H

#include "base/buf.h"

#include <stdio.h>

enum safe_lines {
    SAFE_ONE_LINE, /* line feeds and tabs are escaped too: \n, \t */
    SAFE_LINES,    /* line feeds and tabs stay */
};

/* Whether the text would be written without an escape. */
bool safe_text_is(struct slice text, enum safe_lines lines);

/* ST_NOMEM. */
MUST_CHECK
enum status safe_text_append(struct buf *to, struct slice text, enum safe_lines lines);

/* Without memory of its own. */
void safe_text_put(FILE *to, struct slice text, enum safe_lines lines);

/* One line of at most `columns` characters, the last of which is "…" if the text is longer. Columns
 * are counted as characters: wide ones are not known. */
void safe_text_put_short(FILE *to, struct slice text, size_t columns);
/* The same, appended. ST_NOMEM. */
MUST_CHECK
enum status safe_text_append_short(struct buf *to, struct slice text, size_t columns);

#endif
