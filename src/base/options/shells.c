/* The completion scripts of shells. */
#include "base/options/options.h"

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

/* -- fish -- */

/* Writes text between single quotes. */
static void write_quoted(const char *text, const char *escaped_quote, FILE *to)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(escaped_quote, to);
        else
            fputc(*text, to);
    }
}

static void write_fish_row(const char *command, const char *word, const struct option *row,
                           FILE *to)
{
    fprintf(to, "complete -c %s -n '__fish_seen_subcommand_from %s' -l %s -d '", command, word,
            row->name);
    write_quoted(row->help, "\\'", to);
    fputc('\'', to);
    if (row->kind == OPTION_ENUM) {
        fputs(" -xa '", to);
        for (const char *at = row->choices; *at; at++)
            fputc(*at == '|' ? ' ' : *at, to);
        fputc('\'', to);
    } else if (row->kind != OPTION_BOOL) {
        fputs(takes_path(row) ? " -rF" : " -x", to);
    }
    fputc('\n', to);
}

void options_write_fish(const char *command, const struct options_table *const *tables,
                        size_t count, FILE *to)
{
    fprintf(to, "complete -c %s -f\n", command);
    for (size_t i = 0; i < count; i++) {
        const char *word = second_word(tables[i]->program);
        const struct option *row;
        if (!word)
            continue;
        fprintf(to, "complete -c %s -n __fish_use_subcommand -a %s\n", command, word);
        for (size_t k = 0; (row = options_row(tables[i], k)); k++)
            if (row->help)
                write_fish_row(command, word, row, to);
    }
}

/* -- zsh -- */

/* Writes text for the brackets of _arguments, between single quotes. */
static void write_zsh_help(const char *text, FILE *to)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", to);
        else if (*text == '[' || *text == ']' || *text == ':')
            fprintf(to, "\\%c", *text);
        else
            fputc(*text, to);
    }
}

static void write_zsh_row(const struct option *row, FILE *to)
{
    fprintf(to, "        '--%s%s[", row->name, row->kind == OPTION_BOOL ? "" : "=");
    write_zsh_help(row->help, to);
    fputc(']', to);
    if (row->kind == OPTION_ENUM) {
        fputs(":value:(", to);
        for (const char *at = row->choices; *at; at++)
            fputc(*at == '|' ? ' ' : *at, to);
        fputc(')', to);
    } else if (row->kind != OPTION_BOOL) {
        fputs(takes_path(row) ? ":path:_files" : ":value: ", to);
    }
    fputs("' \\\n", to);
}

void options_write_zsh(const char *command, const struct options_table *const *tables, size_t count,
                       FILE *to)
{
    fprintf(to, "#compdef %s\n_%s() {\n    if (( CURRENT == 2 )); then\n        compadd --",
            command, command);
    for (size_t i = 0; i < count; i++)
        if (second_word(tables[i]->program))
            fprintf(to, " %s", second_word(tables[i]->program));
    fputs("\n        return\n    fi\n    case $words[2] in\n", to);
    for (size_t i = 0; i < count; i++) {
        const char *word = second_word(tables[i]->program);
        const struct option *row;
        if (!word)
            continue;
        fprintf(to, "    %s)\n        _arguments \\\n", word);
        for (size_t k = 0; (row = options_row(tables[i], k)); k++)
            if (row->help)
                write_zsh_row(row, to);
        fputs("        '--help[Show the flags.]' ;;\n", to);
    }
    fprintf(to, "    esac\n}\n_%s \"$@\"\n", command);
}
