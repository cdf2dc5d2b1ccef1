#include "base/progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_CELLS = 30, COLUMNS_DEFAULT = 80 };
#define DRAW_EVERY_NS (100 * NS_PER_MS)
/* Before this time the rate says nothing. */
#define RATE_AFTER_NS (500 * NS_PER_MS)

void progress_init(struct progress *progress, FILE *to, const char *what, const char *unit)
{
    *progress = (struct progress){
        .to = to,
        .what = what,
        .unit = unit,
        .is_terminal = isatty(fileno(to)) == 1,
    };
}

void progress_bytes_text(uint64_t bytes, char ret_text[32])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1000 && unit + 1 < COUNT_OF(units)) {
        value /= 1000;
        unit++;
    }
    value = (double)(uint64_t)(value * 10 + 0.5) / 10;
    bool is_short = value < 10 && bytes >= 10;
    snprintf(ret_text, 32, "%.*f %s", is_short ? 1 : 0, value, units[unit]);
}

/* "12 s", "3 min 20 s", "2 h 5 min" */
static void time_text(double seconds, char ret_text[32])
{
    uint64_t whole = seconds < 1e9 ? (uint64_t)(seconds + 0.5) : 999999999;
    if (whole < 60)
        snprintf(ret_text, 32, "%" PRIu64 " s", whole);
    else if (whole < 3600)
        snprintf(ret_text, 32, "%" PRIu64 " min %" PRIu64 " s", whole / 60, whole % 60);
    else
        snprintf(ret_text, 32, "%" PRIu64 " h %" PRIu64 " min", whole / 3600, whole % 3600 / 60);
}

static void bar_text(uint64_t done, uint64_t all, char *dst, size_t room)
{
    char cells[BAR_CELLS + 1];
    double part = done < all ? (double)done / (double)all : 1;
    for (unsigned i = 0; i < BAR_CELLS; i++)
        cells[i] = i < (unsigned)(part * BAR_CELLS) ? '#' : '.';
    cells[BAR_CELLS] = '\0';
    snprintf(dst, room, "[%s] %3.0f %%", cells, 100 * part);
}

static void count_text(const struct progress *progress, uint64_t done, char *dst, size_t room)
{
    char bytes[32];
    if (progress->unit) {
        snprintf(dst, room, "%" PRIu64 " %s", done, progress->unit);
        return;
    }
    progress_bytes_text(done, bytes);
    snprintf(dst, room, "%s", bytes);
}

static void rate_text(const struct progress *progress, double per_second, char *dst, size_t room)
{
    char bytes[32];
    if (progress->unit) {
        if (*progress->unit)
            snprintf(dst, room, "  %.0f/s", per_second);
        return;
    }
    progress_bytes_text((uint64_t)per_second, bytes);
    snprintf(dst, room, "  %s/s", bytes);
}

size_t progress_text(const struct progress *progress, uint64_t done, uint64_t all, int64_t now_ns,
                     size_t columns, char ret_text[PROGRESS_TEXT_BYTES])
{
    char amount[64], rate[48] = "", left[48] = "", remaining[32];
    if (all)
        bar_text(done, all, amount, sizeof(amount));
    else
        count_text(progress, done, amount, sizeof(amount));
    int64_t passed_ns = now_ns - progress->begun_ns;
    uint64_t made = done > progress->begun_at ? done - progress->begun_at : 0;
    if (passed_ns > RATE_AFTER_NS && made) {
        double per_second = (double)made / ((double)passed_ns / (double)NS_PER_S);
        rate_text(progress, per_second, rate, sizeof(rate));
        time_text(all > done ? (double)(all - done) / per_second : 0, remaining);
        if (all)
            snprintf(left, sizeof(left), "%s%s left", *rate ? ", " : "  ", remaining);
    }
    size_t room = size_min(columns ? columns : COLUMNS_DEFAULT, PROGRESS_TEXT_BYTES);
    int len = snprintf(ret_text, room, "%-16s %s%s%s", progress->what, amount, rate, left);
    return size_min((size_t)len, room - 1);
}

static size_t columns_of(FILE *to)
{
    struct winsize size;
    return ioctl(fileno(to), TIOCGWINSZ, &size) == 0 ? size.ws_col : COLUMNS_DEFAULT;
}

void progress_show(struct progress *progress, uint64_t done, uint64_t all)
{
    if (!progress->is_terminal)
        return;
    int64_t now_ns = clock_mono_ns(clock_system());
    if (!progress->begun) {
        progress->begun = true;
        progress->begun_at = done;
        progress->begun_ns = now_ns;
    } else if (now_ns - progress->shown_ns < DRAW_EVERY_NS) {
        return;
    }
    char text[PROGRESS_TEXT_BYTES];
    progress_text(progress, done, all, now_ns, columns_of(progress->to), text);
    fprintf(progress->to, "\r%s\033[K", text);
    fflush(progress->to);
    progress->shown_ns = now_ns;
    progress->drawn = true;
}

void progress_next(struct progress *progress, const char *what)
{
    progress->what = what;
    progress->begun = false;
}

void progress_end(struct progress *progress)
{
    if (progress->drawn) {
        fputs("\r\033[K", progress->to);
        fflush(progress->to);
    }
    progress->drawn = false;
}
