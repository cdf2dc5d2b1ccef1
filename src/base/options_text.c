/* What people and shells read about the flags. */
#include "base/options.h"

enum { HELP_COLUMNS = 80, HELP_INDENT = 6 };

/* A row with neither text is hidden. */
static const char *text_of(const struct option *row)
{
    return row->ignored ? row->ignored : row->help;
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

static void write_help_row(const struct option *row, FILE *to)
{
    if (!text_of(row))
        return;
    fprintf(to, "  --%s '%s'%s%s%s\n", row->name, row->fallback, row->choices ? " (" : "",
            row->choices ? row->choices : "", row->choices ? ")" : "");
    if (row->help)
        write_wrapped(row->help, to);
    if (row->ignored)
        fprintf(to, "%*sIgnored: %s.\n", HELP_INDENT, "", row->ignored);
}

void options_write_help(const struct options_table *table, FILE *to)
{
    fprintf(to, "%s\n\nUsage:\n  %s [flags]\n", table->summary, table->program);
    for (size_t g = 0; g < table->group_count; g++) {
        const struct option_group *group = table->groups[g];
        if (shows_any(group))
            fprintf(to, "\n%s:\n", group->title);
        for (size_t i = 0; i < group->count; i++)
            write_help_row(&group->rows[i], to);
    }
    fprintf(to, "\nA flag that is not given is taken from the environment: --foo-bar from"
                "\nVIGIL_FOO_BAR, or else from ETCD_FOO_BAR.\n");
}

/* roff takes a dot or quote at the start of a line, backslashes and dashes for its own. */
static void write_roff(const char *text, FILE *to)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", to);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", to);
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
        fputs("Ignored: ", to);
        write_roff(row->ignored, to);
        fputs(".\n", to);
    }
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
    fprintf(to, "\n.SH SYNOPSIS\n.B %s\n[\\fIflags\\fR]\n.SH OPTIONS\n", table->program);
    for (size_t g = 0; g < table->group_count; g++) {
        const struct option_group *group = table->groups[g];
        if (shows_any(group))
            fprintf(to, ".SS %s\n", group->title);
        for (size_t i = 0; i < group->count; i++)
            write_man_row(&group->rows[i], to);
    }
    fputs(".SH ENVIRONMENT\nA flag that is not given is taken from the environment: "
          "\\-\\-foo\\-bar from VIGIL_FOO_BAR, or else from ETCD_FOO_BAR.\n",
          to);
}

static bool takes_path(const struct option *row)
{
    size_t len = strlen(row->name);
    return len > 4 && (strcmp(row->name + len - 4, "-dir") == 0 ||
                       (len > 5 && strcmp(row->name + len - 5, "-file") == 0));
}

static void write_bash_values(const struct option *row, FILE *to)
{
    if (row->kind == OPTION_ENUM) {
        fprintf(to, "    --%s)\n        COMPREPLY=($(compgen -W '", row->name);
        for (const char *at = row->choices; *at; at++)
            fputc(*at == '|' ? ' ' : *at, to);
        fputs("' -- \"$cur\"))\n        return ;;\n", to);
    } else if (takes_path(row)) {
        fprintf(to, "    --%s)\n        COMPREPLY=($(compgen -f -- \"$cur\"))\n        return ;;\n",
                row->name);
    } else if (row->kind != OPTION_BOOL) {
        fprintf(to, "    --%s)\n        return ;;\n", row->name);
    }
}

static void write_bash_name(const char *program, FILE *to)
{
    fputc('_', to);
    for (; *program; program++)
        fputc(*program == ' ' || *program == '-' ? '_' : *program, to);
    fputs("_flags", to);
}

static void write_bash_function(const struct options_table *table, FILE *to)
{
    write_bash_name(table->program, to);
    fputs("() {\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    case $prev in\n",
          to);
    const struct option *row;
    for (size_t i = 0; (row = options_row(table, i)); i++)
        if (row->help)
            write_bash_values(row, to);
    fputs("    esac\n    COMPREPLY=($(compgen -W '", to);
    for (size_t i = 0; (row = options_row(table, i)); i++)
        if (row->help)
            fprintf(to, "--%s ", row->name);
    fputs("--help' -- \"$cur\"))\n}\n", to);
}

/* "serve" of "vigil serve"; NULL when the program is the command itself. */
static const char *second_word(const char *program)
{
    const char *space = strchr(program, ' ');
    return space ? space + 1 : NULL;
}

void options_write_bash(const char *command, const struct options_table *const *tables,
                        size_t count, FILE *to)
{
    for (size_t i = 0; i < count; i++)
        write_bash_function(tables[i], to);
    fprintf(to, "_%s() {\n    if [ \"$COMP_CWORD\" = 1 ]; then\n        COMPREPLY=($(compgen -W '",
            command);
    for (size_t i = 0; i < count; i++)
        if (second_word(tables[i]->program))
            fprintf(to, "%s ", second_word(tables[i]->program));
    fputs("--help' -- \"${COMP_WORDS[1]}\"))\n    fi\n    case ${COMP_WORDS[1]} in\n", to);
    for (size_t i = 0; i < count; i++) {
        const char *word = second_word(tables[i]->program);
        fprintf(to, "    %s) ", word ? word : "-*");
        write_bash_name(tables[i]->program, to);
        fputs(" ;;\n", to);
    }
    fprintf(to, "    esac\n}\ncomplete -o default -F _%s %s\n", command, command);
}
