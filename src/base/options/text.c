/* The help text, the man page and the documentation of the flags. */
#include "base/options/options.h"

enum { HELP_COLUMNS = 80, HELP_INDENT = 6 };

/* A row with neither text is hidden. */
static const char *text_of(const struct option *row)
{
    return row->ignored ? row->ignored : row->help;
}

/* What happens with a row that has no effect. */
static const char *fate(const struct option *row)
{
    return row->refused ? "Refused" : "Ignored";
}

static bool shows_any(const struct option_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (text_of(&group->rows[i]))
            return true;
    return false;
}

static void write_wrapped(const char *text, FILE *to)
{
    size_t column = 0;
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, " ");
        if (column == 0)
            column = (size_t)fprintf(to, "%*s%.*s", HELP_INDENT, "", (int)len, at);
        else if (column + 1 + len > HELP_COLUMNS)
            column = (size_t)fprintf(to, "\n%*s%.*s", HELP_INDENT, "", (int)len, at) - 1;
        else
            column += (size_t)fprintf(to, " %.*s", (int)len, at);
        at += len + strspn(at + len, " ");
    }
    fputc('\n', to);
}

/* The number of consecutive rows that are ignored for the same reason. */
static size_t same_reason(const struct option_group *group, size_t first)
{
    size_t n = 0;
    for (size_t i = first; i < group->count; i++, n++) {
        const struct option *row = &group->rows[i];
        if (row->help || !row->ignored || strcmp(row->ignored, group->rows[first].ignored) != 0 ||
            row->refused != group->rows[first].refused)
            break;
    }
    return n;
}

static bool only_ignored(const struct option *row)
{
    return !row->help && row->ignored;
}

static void write_help_ignored(const struct option *rows, size_t count, FILE *to)
{
    size_t column = 0;
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(rows[i].name) + strlen("--,");
        if (column && column + 1 + len > HELP_COLUMNS) {
            fputc('\n', to);
            column = 0;
        }
        column += (size_t)fprintf(to, "%s--%s%s", column ? " " : "  ", rows[i].name,
                                  i + 1 < count ? "," : "");
    }
    fprintf(to, "\n%*s%s: %s.\n", HELP_INDENT, "", fate(rows), rows->ignored);
}

static void write_help_row(const struct option *row, FILE *to)
{
    if (!text_of(row))
        return;
    fprintf(to, "  --%s '%s'%s%s%s\n", row->name, row->fallback, row->choices ? " (" : "",
            row->choices ? row->choices : "", row->choices ? ")" : "");
    if (row->help)
        write_wrapped(row->help, to);
    if (row->ignored)
        fprintf(to, "%*s%s: %s.\n", HELP_INDENT, "", fate(row), row->ignored);
}

void options_write_help(const struct options_table *table, FILE *to)
{
    fprintf(to, "%s\n\nUsage:\n  %s [flags]%s%s\n", table->summary, table->program,
            table->words ? " " : "", table->words ? table->words : "");
    for (size_t g = 0; g < table->group_count; g++) {
        const struct option_group *group = table->groups[g];
        if (shows_any(group))
            fprintf(to, "\n%s:\n", group->title);
        for (size_t i = 0; i < group->count;) {
            size_t together = only_ignored(&group->rows[i]) ? same_reason(group, i) : 0;
            if (together)
                write_help_ignored(&group->rows[i], together, to);
            else
                write_help_row(&group->rows[i], to);
            i += together ? together : 1;
        }
    }
    if (!table->flags_only)
        fprintf(to, "\nA flag that is not given is taken from the environment: --foo-bar from"
                    "\nVIGIL_FOO_BAR, or else from ETCD_FOO_BAR.\n");
}

/* roff interprets a dot or quote at the start of a line, backslashes and dashes. */
static void write_roff(const char *text, FILE *to)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", to);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '"')
            fputs("\\(dq", to);
        else if (*text == '-')
            fputs("\\-", to);
        else
            fputc(*text, to);
    }
}

static void write_page_name(const char *program, FILE *to)
{
    for (; *program; program++)
        fputc(*program == ' ' ? '-' : *program, to);
}

static void write_man_row(const struct option *row, FILE *to)
{
    if (!text_of(row))
        return;
    fputs(".TP\n.BI \\-\\-", to);
    write_roff(row->name, to);
    fputs(" \" \\(aq", to);
    write_roff(row->fallback, to);
    fputs("\\(aq\"\n", to);
    if (row->help) {
        write_roff(row->help, to);
        fputc('\n', to);
    }
    if (row->choices) {
        fputs("One of: ", to);
        write_roff(row->choices, to);
        fputs(".\n", to);
    }
    if (row->ignored) {
        fprintf(to, "%s: ", fate(row));
        write_roff(row->ignored, to);
        fputs(".\n", to);
    }
}

static void write_man_ignored(const struct option *rows, size_t count, FILE *to)
{
    fputs(".TP\n.B ", to);
    for (size_t i = 0; i < count; i++) {
        fputs("\\-\\-", to);
        write_roff(rows[i].name, to);
        fputs(i + 1 < count ? ", " : "\n", to);
    }
    fprintf(to, "%s: ", fate(rows));
    write_roff(rows->ignored, to);
    fputs(".\n", to);
}

void options_write_man(const struct options_table *table, const char *version, const char *date,
                       FILE *to)
{
    fputs(".TH \"", to);
    write_page_name(table->program, to);
    fprintf(to, "\" 8 \"%s\" \"%s\"\n.SH NAME\n", date, version);
    write_page_name(table->program, to);
    fputs(" \\- ", to);
    write_roff(table->summary, to);
    fprintf(to, "\n.SH SYNOPSIS\n.B %s\n[\\fIflags\\fR]%s%s\n.SH OPTIONS\n", table->program,
            table->words ? " " : "", table->words ? table->words : "");
    for (size_t g = 0; g < table->group_count; g++) {
        const struct option_group *group = table->groups[g];
        if (shows_any(group))
            fprintf(to, ".SS %s\n", group->title);
        for (size_t i = 0; i < group->count;) {
            size_t together = only_ignored(&group->rows[i]) ? same_reason(group, i) : 0;
            if (together)
                write_man_ignored(&group->rows[i], together, to);
            else
                write_man_row(&group->rows[i], to);
            i += together ? together : 1;
        }
    }
    if (!table->flags_only)
        fputs(".SH ENVIRONMENT\nA flag that is not given is taken from the environment: "
              "\\-\\-foo\\-bar from VIGIL_FOO_BAR, or else from ETCD_FOO_BAR.\n",
              to);
    if (table->man_more)
        fputs(table->man_more, to);
}

/* -- markdown -- */

/* A vertical bar would end the cell. */
static void write_cell(const char *text, FILE *to)
{
    for (; *text; text++)
        fputs(*text == '|' ? "\\|" : (char[]){*text, 0}, to);
}

static void write_code(const char *text, FILE *to)
{
    if (!*text)
        return;
    fputc('`', to);
    write_cell(text, to);
    fputc('`', to);
}

static void write_markdown_row(const struct option *row, FILE *to)
{
    if (!text_of(row) && !row->alias_of)
        return;
    fprintf(to, "| `--%s` | ", row->name);
    write_code(row->alias_of ? "" : row->fallback, to);
    fputs(" | ", to);
    if (row->alias_of)
        fprintf(to, "another name for `--%s`", row->alias_of);
    if (row->help && !row->alias_of)
        write_cell(row->help, to);
    if (row->choices) {
        fputs(" One of ", to);
        write_code(row->choices, to);
        fputc('.', to);
    }
    if (row->ignored)
        fprintf(to, "%s%s: %s.", row->help ? " " : "", fate(row), row->ignored);
    fputs(" |\n", to);
}

void options_write_markdown(const struct options_table *table, FILE *to)
{
    for (size_t g = 0; g < table->group_count; g++) {
        const struct option_group *group = table->groups[g];
        fprintf(to, "\n## %s\n\n| flag | default | |\n| --- | --- | --- |\n", group->title);
        for (size_t i = 0; i < group->count; i++)
            write_markdown_row(&group->rows[i], to);
    }
}
