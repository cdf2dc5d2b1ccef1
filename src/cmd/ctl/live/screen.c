#include "cmd/ctl/live/screen.h"

#include "cmd/ctl/decode/terminal.h"
#include "codec/utf8.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l" /* another screen, without a cursor */
#define LEAVE "\033[0m\033[?25h\033[?1049l"

static struct {
    volatile sig_atomic_t is_open;
    FILE *out;
    int out_fd;
    struct termios before;
} screen;

/* Only functions that a signal handler may call. */
static void restore(void)
{
    if (!screen.is_open)
        return;
    screen.is_open = 0;
    ssize_t written = write(screen.out_fd, LEAVE, sizeof(LEAVE) - 1);
    (void)written;
    tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

/* The handler was removed when it was called, so the signal now does what it usually does. */
static void on_fatal(int number)
{
    restore();
    raise(number);
}

/* Signals of the keyboard stay, except for the one that would stop the process within the other
 * screen. */
bool screen_open(FILE *out)
{
    int fd = fileno(out);
    if (fd < 0 || !isatty(fd) || tcgetattr(STDIN_FILENO, &screen.before) != 0)
        return false;
    struct termios raw = screen.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    screen.out = out;
    screen.out_fd = fd;
    fflush(out);
    /* A program that dies must not leave the terminal as it is now. */
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGQUIT, SIGHUP};
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        sigaction(numbers[i], &action, NULL);
    atexit(restore);
    screen.is_open = 1;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs(ENTER, out);
    fflush(out);
    return true;
}

void screen_close(void)
{
    if (screen.is_open)
        fflush(screen.out);
    restore();
}

/* How many bytes of a line fit; *ret_used: the columns they take. */
static size_t fitting(struct slice line, unsigned columns, unsigned *ret_used)
{
    size_t at = 0;
    unsigned used = 0;
    for (; at < line.len && used < columns; used++) {
        size_t len = utf8_char_len(slice_sub(line, at, line.len - at));
        at += len ? len : 1;
    }
    *ret_used = used;
    return at;
}

static void draw_line(struct slice line, unsigned columns)
{
    bool is_heading = line.len && line.ptr[0] == SCREEN_HEADING[0];
    if (is_heading)
        line = slice_sub(line, 1, line.len - 1);
    unsigned used;
    size_t len = fitting(line, columns, &used);
    fputs(is_heading ? TERMINAL_REVERSE : "", screen.out);
    fwrite(line.ptr ? (const void *)line.ptr : "", 1, len, screen.out);
    if (is_heading)
        fprintf(screen.out, "%*s" TERMINAL_PLAIN, (int)(columns - used), "");
    fputs("\033[K", screen.out); /* clears the rest of the line */
}

void screen_draw(struct slice text)
{
    unsigned columns, rows;
    terminal_size(screen.out, &columns, &rows);
    fputs("\033[H", screen.out);
    for (unsigned row = 0; row < rows && text.len; row++) {
        fputs(row ? "\r\n" : "", screen.out);
        draw_line(slice_cut(&text, '\n'), columns);
    }
    fputs("\033[J", screen.out); /* clears the rest of the screen */
    fflush(screen.out);
}

unsigned screen_rows(void)
{
    unsigned columns, rows;
    terminal_size(screen.out, &columns, &rows);
    return rows;
}

char screen_key(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char key;
    if (poll(&input, 1, 0) <= 0 || read(STDIN_FILENO, &key, 1) != 1)
        return 0;
    return key;
}
