/* Tables, as the two versions of the library draw them that etcdctl uses. */
#include "base/xalloc.h"
#include "cmd/ctl/print/print.h"

#include <ctype.h>
#include <stdarg.h>

struct ctl_table {
    struct ctl *ctl;
    size_t columns;
    size_t *widths;
    char **cells; /* the heads first */
    size_t count, capacity;
};

/* The parts of the lines: left, between, right, and the line itself. */
struct ctl_lines {
    const char *top[3], *middle[3], *bottom[3];
    const char *across, *down;
};

static const struct ctl_lines drawn = {
    {"┌", "┬", "┐"}, {"├", "┼", "┤"}, {"└", "┴", "┘"}, "─", "│",
};
static const struct ctl_lines plain = {
    {"+", "+", "+"}, {"+", "+", "+"}, {"+", "+", "+"}, "-", "|",
};

/* Characters of UTF-8. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void add(struct ctl_table *table, const char *text)
{
    if (table->count == table->capacity) {
        table->capacity = size_max(32, table->capacity * 2);
        table->cells = xrealloc(table->cells, table->capacity * sizeof(*table->cells));
    }
    size_t column = table->count % table->columns;
    table->widths[column] = size_max(table->widths[column], width_of(text));
    size_t bytes = strlen(text) + 1;
    char *copy = xmalloc(bytes);
    memcpy(copy, text, bytes);
    table->cells[table->count++] = copy;
}

struct ctl_table *ctl_table_new(struct ctl *ctl, const char *const *heads, size_t count)
{
    assert(count);
    struct ctl_table *table = xcalloc(1, sizeof(*table));
    *table = (struct ctl_table){.ctl = ctl, .columns = count};
    table->widths = xcalloc(count, sizeof(*table->widths));
    for (size_t i = 0; i < count; i++) {
        char head[128];
        size_t len = 0;
        for (; heads[i][len] && len < sizeof(head) - 1; len++)
            head[len] = (char)(heads[i][len] == '_' ? ' ' : toupper((unsigned char)heads[i][len]));
        head[len] = 0;
        add(table, head);
    }
    return table;
}

void ctl_table_add(struct ctl_table *table, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    xalloc_check(len < 0 ? NULL : text, 1);
    add(table, text);
    free(text);
}

static void write_line(const struct ctl_table *table, const struct ctl_lines *lines,
                       const char *const ends[3])
{
    FILE *to = table->ctl->out;
    for (size_t c = 0; c < table->columns; c++) {
        fputs(ends[c ? 1 : 0], to);
        for (size_t i = 0; i < table->widths[c] + 2; i++)
            fputs(lines->across, to);
    }
    fprintf(to, "%s\n", ends[2]);
}

static void write_row(const struct ctl_table *table, const struct ctl_lines *lines, size_t row)
{
    FILE *to = table->ctl->out;
    for (size_t c = 0; c < table->columns; c++) {
        const char *text = table->cells[row * table->columns + c];
        size_t room = table->widths[c] - width_of(text);
        size_t left = row == 0 ? room / 2 : room; /* heads are centred */
        fprintf(to, "%s %*s%s%*s ", lines->down, (int)left, "", text, (int)(room - left), "");
    }
    fprintf(to, "%s\n", lines->down);
}

void ctl_table_write(struct ctl_table *table)
{
    const struct ctl_lines *lines = table->ctl->style == CTL_ETCDCTL_3_4 ? &plain : &drawn;
    assert(table->count % table->columns == 0);
    write_line(table, lines, lines->top);
    for (size_t row = 0; row * table->columns < table->count; row++) {
        write_row(table, lines, row);
        if (row == 0)
            write_line(table, lines, lines->middle);
    }
    write_line(table, lines, lines->bottom);
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table->widths);
    free(table);
}
