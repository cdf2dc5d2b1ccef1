/*
 * Whether output goes to a terminal, its size, and colours: only on a terminal unless --color says
 * otherwise, and never by default if NO_COLOR is set.
 */
#ifndef VIGIL_CMD_CTL_DECODE_TERMINAL_H
#define VIGIL_CMD_CTL_DECODE_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

enum terminal_colour { TERMINAL_COLOUR_AUTO, TERMINAL_COLOUR_ALWAYS, TERMINAL_COLOUR_NEVER };
#define TERMINAL_COLOUR_CHOICES "auto|always|never" /* for the flag */

#define TERMINAL_RED "\033[31m"
#define TERMINAL_GREEN "\033[32m"
#define TERMINAL_YELLOW "\033[33m"
#define TERMINAL_CYAN "\033[36m"
#define TERMINAL_BOLD "\033[1m"
#define TERMINAL_DIM "\033[2m"
#define TERMINAL_REVERSE "\033[7m"
#define TERMINAL_PLAIN "\033[0m"

/* False also for a stream without a descriptor. */
bool terminal_is(FILE *to);
/* choice: enum terminal_colour. */
bool terminal_has_colours(FILE *to, int choice);
/* 80 and 24 if it is not a terminal. */
void terminal_size(FILE *to, unsigned *ret_columns, unsigned *ret_rows);

#endif
