/* How the answers of several endpoints are written: one line, one block or one row for each. */
#ifndef VIGIL_CMD_CTL_ADMIN_ENDPOINT_H
#define VIGIL_CMD_CTL_ADMIN_ENDPOINT_H

#include "cmd/ctl/admin/ask.h"

enum { ENDPOINT_CELLS_MAX = 16, ENDPOINT_CELL_BYTES = 160 };

/* The cells of a line or a row. */
struct endpoint_row {
    char cells[ENDPOINT_CELLS_MAX][ENDPOINT_CELL_BYTES];
    size_t count;
};

/* Replaces control characters, with which a server could command a terminal. */
void endpoint_tame(char *text);
/* Adds a cell without control characters; one that is too long is cut off. */
void endpoint_cell(struct endpoint_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct endpoint_shape {
    const char *const *heads; /* head row of the table */
    size_t head_count;
    void (*row)(const struct asked *asked, struct endpoint_row *row);
    void (*line)(const struct asked *asked); /* NULL: the row with commas */
    void (*fields)(const struct asked *asked);
    void (*json)(const struct asked *asked); /* one object */
    bool shows_errors;                       /* endpoints with an error are in the list, too */
};

/* Returns the exit code of the output alone. */
int endpoint_print(struct ctl *ctl, const struct endpoint_shape *shape,
                   const struct asked_list *list);

#endif
