#include "cmd/ctl/decode/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_DEFAULT = 80, ROWS_DEFAULT = 24, COLUMNS_MIN = 20, ROWS_MIN = 5 };

bool terminal_is(FILE *to)
{
    int fd = fileno(to);
    return fd >= 0 && isatty(fd);
}

bool terminal_has_colours(FILE *to, int choice)
{
    const char *none = getenv("NO_COLOR"), *kind = getenv("TERM");
    if (choice != TERMINAL_COLOUR_AUTO)
        return choice == TERMINAL_COLOUR_ALWAYS;
    return terminal_is(to) && !(none && *none) && !(kind && strcmp(kind, "dumb") == 0);
}

void terminal_size(FILE *to, unsigned *ret_columns, unsigned *ret_rows)
{
    struct winsize size = {0};
    int fd = fileno(to);
    *ret_columns = COLUMNS_DEFAULT;
    *ret_rows = ROWS_DEFAULT;
    if (fd < 0 || ioctl(fd, TIOCGWINSZ, &size) != 0)
        return;
    if (size.ws_col >= COLUMNS_MIN)
        *ret_columns = size.ws_col;
    if (size.ws_row >= ROWS_MIN)
        *ret_rows = size.ws_row;
}
