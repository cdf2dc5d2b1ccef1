#include "cmd/ctl/help.h"

#include "cmd/ctl/find.h"
#include "cmd/ctl/globals.h"

static const char *program_of(enum ctl_style style)
{
    return style == CTL_VIGIL ? "vigil" : "etcdctl";
}

void ctl_write_commands(enum ctl_style style, FILE *to)
{
    const struct ctl_group *group;
    for (size_t g = 0; (group = ctl_group_at(g)); g++) {
        bool titled = false;
        for (size_t i = 0; i < group->count; i++) {
            if (!ctl_exists(&group->commands[i], style))
                continue;
            if (!titled)
                fprintf(to, "\n%s:\n", group->title);
            titled = true;
            fprintf(to, "  %-23s %s\n", group->commands[i].path, group->commands[i].summary);
        }
    }
}

void ctl_write_family(const char *family, enum ctl_style style, FILE *to)
{
    fprintf(to, "Usage:\n  %s %s COMMAND [flags]\n\nCommands:\n", program_of(style), family);
    const struct ctl_command *command;
    for (size_t i = 0; (command = ctl_command_at(i)); i++)
        if (ctl_is_of(command, family) && ctl_exists(command, style))
            fprintf(to, "  %-23s %s\n", command->path + strlen(family) + 1, command->summary);
    fprintf(to, "\n%s %s COMMAND --help shows the flags of a command.\n", program_of(style),
            family);
}

static const char *kind_of(const struct option *row)
{
    switch (row->kind) {
    case OPTION_INT:
    case OPTION_SIZE:
        return " NUMBER";
    case OPTION_DURATION:
        return " DURATION";
    case OPTION_TEXT:
        return " TEXT";
    case OPTION_LIST:
        return " LIST";
    case OPTION_ENUM:
        return " WORD";
    default:
        return "";
    }
}

static bool shows_default(const struct option *row)
{
    return *row->fallback && strcmp(row->fallback, "0") != 0 && strcmp(row->fallback, "false") != 0;
}

static void write_flag(const struct option *row, FILE *to)
{
    /* A flag without a description is accepted, but not shown. */
    if (!row->help)
        return;
    char name[96], letter[8] = "    ";
    if (row->letter)
        snprintf(letter, sizeof(letter), "-%c, ", row->letter);
    snprintf(name, sizeof(name), "--%s%s", row->name, kind_of(row));
    fprintf(to, "  %s%-30s %s", letter, name, row->help);
    if (row->choices)
        fprintf(to, " One of %s.", row->choices);
    if (shows_default(row))
        fprintf(to, " (default %s)", row->fallback);
    fputc('\n', to);
}

void ctl_write_options(enum ctl_style style, FILE *to)
{
    const struct options_table *table = ctl_globals_table(style);
    for (size_t g = 0; g < table->group_count; g++) {
        fprintf(to, "%s%s:\n", g ? "\n" : "", table->groups[g]->title);
        for (size_t i = 0; i < table->groups[g]->count; i++)
            write_flag(&table->groups[g]->rows[i], to);
    }
}

static void write_examples(const char *examples, enum ctl_style style, FILE *to)
{
    fputs("\nExamples:\n", to);
    for (const char *at = examples; *at;) {
        size_t len = strcspn(at, "\n");
        bool renamed = style != CTL_VIGIL && strncmp(at, "vigil ", 6) == 0;
        size_t skipped = renamed ? strlen("vigil") : 0;
        fprintf(to, "  %s%.*s\n", renamed ? "etcdctl" : "", (int)(len - skipped), at + skipped);
        at += len + (at[len] == '\n');
    }
}

void ctl_write_help(const struct ctl_command *command, enum ctl_style style, FILE *to)
{
    const char *program = program_of(style);
    fprintf(to, "%s.\n\nUsage:\n  %s %s [flags]%s%s\n", command->summary, program, command->path,
            *command->words ? " " : "", command->words);
    if (command->flag_count)
        fputs("\nFlags:\n", to);
    for (size_t i = 0; i < command->flag_count; i++)
        if (ctl_flag_exists(command, command->flags[i].name, style))
            write_flag(&command->flags[i], to);
    if (command->examples)
        write_examples(command->examples, style, to);
    fprintf(to, "\n%s options shows the flags of all commands, such as --endpoints and -w.\n",
            program);
}

/* -- manual pages -- */

static void write_roff(const char *text, FILE *to)
{
    for (bool line_start = true; *text; line_start = *text++ == '\n') {
        /* At the beginning of a line these two are a request to roff. */
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", to);
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else
            fputc(*text, to);
    }
}

static void write_man_flags(const struct option *rows, size_t count, FILE *to)
{
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].help)
            continue;
        fputs(".TP\n.B ", to);
        if (rows[i].letter)
            fprintf(to, "\\-%c, ", rows[i].letter);
        fputs("\\-\\-", to);
        write_roff(rows[i].name, to);
        fprintf(to, "%s\n", kind_of(&rows[i]));
        write_roff(rows[i].help, to);
        if (rows[i].choices) {
            fputs(" One of ", to);
            write_roff(rows[i].choices, to);
            fputc('.', to);
        }
        if (shows_default(&rows[i])) {
            fputs(" The default is ", to);
            write_roff(rows[i].fallback, to);
            fputc('.', to);
        }
        fputc('\n', to);
    }
}

static void write_man_command(const struct ctl_command *command, FILE *to)
{
    fputs(".SS ", to);
    fprintf(to, "\"vigil %s ", command->path);
    write_roff(command->words, to);
    fputs("\"\n", to);
    write_roff(command->summary, to);
    fputs(".\n", to);
    for (size_t i = 0; i < command->flag_count; i++)
        if (ctl_flag_exists(command, command->flags[i].name, CTL_VIGIL))
            write_man_flags(&command->flags[i], 1, to);
    if (!command->examples)
        return;
    fputs(".PP\n.nf\n", to);
    write_roff(command->examples, to);
    fputs("\n.fi\n", to);
}

static void write_man_globals(FILE *to)
{
    const struct options_table *table = ctl_globals_table(CTL_VIGIL);
    fputs(".SH \"FLAGS OF ALL COMMANDS\"\n", to);
    for (size_t g = 0; g < table->group_count; g++)
        write_man_flags(table->groups[g]->rows, table->groups[g]->count, to);
    fputs(".SH ENVIRONMENT\nA flag of all commands that is not given is taken from the "
          "environment: \\-\\-foo\\-bar from VIGIL_FOO_BAR or else ETCDCTL_FOO_BAR.\n"
          ".SH \"EXIT STATUS\"\n0 if the command succeeded, 128 for wrong arguments, 1 if it "
          "failed, and the other codes of etcdctl.\n.SH SEE ALSO\nvigil(1), vigil\\-serve(8)\n",
          to);
}

static bool is_of_same_family(const struct ctl_command *a, const struct ctl_command *b)
{
    size_t len = strcspn(a->path, " ");
    return ctl_exists(b, CTL_VIGIL) && strncmp(a->path, b->path, len) == 0 &&
           (b->path[len] == ' ' || b->path[len] == 0);
}

/* "lease" for all of a family, "snapshot-save" for the only one of it. */
static void page_of(const struct ctl_command *command, char *ret_name, size_t bytes)
{
    const struct ctl_command *other;
    unsigned count = 0;
    for (size_t i = 0; (other = ctl_command_at(i)); i++)
        count += is_of_same_family(command, other);
    snprintf(ret_name, bytes, "%.*s", count > 1 ? (int)strcspn(command->path, " ") : 255,
             command->path);
    char *space = strchr(ret_name, ' ');
    if (space)
        *space = '-';
}

static bool is_on_page(const struct ctl_command *command, const char *page)
{
    char name[64];
    page_of(command, name, sizeof(name));
    return ctl_exists(command, CTL_VIGIL) && strcmp(name, page) == 0;
}

static void write_man_head(const char *page, const struct ctl_command *first, const char *version,
                           const char *date, FILE *to)
{
    bool is_family = strcmp(first->path, page) != 0 && !strchr(page, '-');
    fputs(".TH \"vigil-", to);
    fprintf(to, "%s\" 1 \"%s\" \"%s\"\n.SH NAME\nvigil-%s \\- ", page, date, version, page);
    if (is_family)
        fprintf(to, "commands of a client of Vigil or etcd");
    else
        write_roff(first->summary, to);
    fprintf(to, "\n.SH SYNOPSIS\n.B vigil %s\n%s[\\fIflags\\fR] [\\fIwords\\fR]\n.SH DESCRIPTION\n",
            is_family ? page : first->path, is_family ? "\\fIcommand\\fR " : "");
}

bool ctl_write_man(const char *page, const char *version, const char *date, FILE *to)
{
    const struct ctl_command *command;
    bool any = false;
    for (size_t i = 0; (command = ctl_command_at(i)); i++) {
        if (!is_on_page(command, page))
            continue;
        if (!any)
            write_man_head(page, command, version, date, to);
        any = true;
        write_man_command(command, to);
    }
    if (any)
        write_man_globals(to);
    return any;
}

void ctl_man_page(size_t place, char *ret_name, size_t bytes)
{
    const struct ctl_command *command;
    char before[64] = "";
    for (size_t i = 0; (command = ctl_command_at(i)); i++) {
        if (!ctl_exists(command, CTL_VIGIL))
            continue;
        page_of(command, ret_name, bytes);
        /* All commands of a family are on one page, and follow each other in the table. */
        if (strcmp(ret_name, before) != 0 && place-- == 0)
            return;
        snprintf(before, sizeof(before), "%s", ret_name);
    }
    *ret_name = 0;
}

void ctl_write_man_commands(FILE *to)
{
    const struct ctl_group *group;
    for (size_t g = 0; (group = ctl_group_at(g)); g++) {
        fprintf(to, ".SS %s\n", group->title);
        for (size_t i = 0; i < group->count; i++) {
            if (!ctl_exists(&group->commands[i], CTL_VIGIL))
                continue;
            fputs(".TP\n.B ", to);
            write_roff(group->commands[i].path, to);
            fputc('\n', to);
            write_roff(group->commands[i].summary, to);
            fputc('\n', to);
        }
    }
}
