/*
 * The whole terminal, for a command that draws it again and again, and keys that are read without a
 * line feed. The terminal is as it was before after screen_close, at exit, and after a signal that
 * ends the process, also if that is a crash.
 *
 * One screen per process; the main thread.
 */
#ifndef VIGIL_CMD_CTL_LIVE_SCREEN_H
#define VIGIL_CMD_CTL_LIVE_SCREEN_H

#include "base/slice.h"

#include <stdio.h>

#define SCREEN_HEADING "\001" /* at the beginning of a line: it is drawn as a bar */

/* False: standard input or output is not a terminal. */
bool screen_open(FILE *out);
void screen_close(void);

/* Draws these lines, cut at the size of the terminal. */
void screen_draw(struct slice text);
/* The rows of the terminal. */
unsigned screen_rows(void);
/* The next key that was pressed; 0: none. */
char screen_key(void);

#endif
