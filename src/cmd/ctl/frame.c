/* From the arguments of the program to the exit code of a command. */
#include "base/options/words.h"
#include "base/xalloc.h"
#include "cmd/ctl/discover.h"
#include "cmd/ctl/find.h"
#include "cmd/ctl/globals.h"
#include "cmd/ctl/help.h"
#include "cmd/ctl/session.h"
#include "cmd/ctl/suggest.h"

#include <stdlib.h>
#include <unistd.h>

/* One command line on its way to a command. */
struct frame {
    struct ctl ctl;
    struct arena arena;
    struct options options;
    struct options_table *table;
    struct option_words words;
    char **rest; /* the arguments without the name of the command */
    int rest_count;
    const char *shadowed; /* a variable whose flag was given, too; etcdctl refuses this */
};

static const char *program_of(enum ctl_style style)
{
    return style == CTL_VIGIL ? "vigil" : "etcdctl";
}

enum ctl_style ctl_etcdctl_style(void)
{
    const char *compat = getenv("ETCDCTL_COMPAT");
    return compat && strcmp(compat, "3.4") == 0 ? CTL_ETCDCTL_3_4 : CTL_ETCDCTL_3_7;
}

/* -- without a command -- */

static void write_root_help(enum ctl_style style, FILE *to)
{
    const char *program = program_of(style);
    fprintf(to, "Usage:\n  %s COMMAND [flags]\n", program);
    ctl_write_commands(style, to);
    fprintf(to,
            "\n%s COMMAND --help shows the flags of a command, %s options those of all commands.\n",
            program, program);
}

static void write_unknown(const char *word, enum ctl_style style)
{
    struct slice names[CTL_SUGGESTIONS_MAX];
    size_t count = ctl_suggest(word, style, names);
    fputs("Error: unknown command ", stderr);
    ctl_write_quoted(stderr, slice_from_text(word));
    fprintf(stderr, " for \"%s\"\n", program_of(style));
    if (count)
        fputs("\nDid you mean this?\n", stderr);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "\t%.*s\n", SLICE_ARGS(names[i]));
    if (count)
        fputc('\n', stderr);
}

static int show_help(int count, char **args, enum ctl_style style)
{
    struct ctl_found found = ctl_find(count, args, style);
    if (found.command)
        ctl_write_help(found.command, style, stdout);
    else if (found.family)
        ctl_write_family(found.family, style, stdout);
    else if (count == 0)
        write_root_help(style, stdout);
    else
        fprintf(stderr, "Unknown help topic [`%.100s`]\n", args[0]);
    return CTL_OK;
}

/* The beginning of a name is enough under the name etcdctl. */
static bool is_called(const char *word, const char *name, enum ctl_style style)
{
    size_t len = strlen(word);
    return strcmp(word, name) == 0 ||
           (style != CTL_VIGIL && len > 0 && strncmp(word, name, len) == 0);
}

static int without_command(const struct ctl_found *found, int count, char **args,
                           enum ctl_style style)
{
    const char *word = found->name_at[0] < 0 ? NULL : args[found->name_at[0]];
    if (word && !*word)
        word = NULL;
    if (found->family && style == CTL_VIGIL && found->name_at[1] >= 0) {
        fprintf(stderr, "Error: there is no command \"%s %.100s\"%s\n", found->family,
                args[found->name_at[1]],
                strcmp(found->family, "snapshot") == 0
                    ? " with flags of a connection: restore and status need no server"
                    : "");
        ctl_write_family(found->family, style, stderr);
        return CTL_ERROR;
    }
    if (found->family) {
        ctl_write_family(found->family, style, stdout);
        return CTL_OK;
    }
    if (word && style != CTL_ETCDCTL_3_4 && is_called(word, "options", style)) {
        ctl_write_options(style, stdout);
        return CTL_OK;
    }
    if (word && is_called(word, "help", style))
        return show_help(count - found->name_at[0] - 1, args + found->name_at[0] + 1, style);
    if (word) {
        /* etcdctl 3.4 says it twice. */
        write_unknown(word, style);
        fprintf(stderr, "Run '%s --help' for usage.\n", program_of(style));
        if (style == CTL_ETCDCTL_3_4)
            write_unknown(word, style);
        return CTL_ERROR;
    }

    struct ctl_globals globals;
    struct options options;
    struct error error;
    const char **words = xcalloc((size_t)count + 1, sizeof(*words));
    struct option_words result = {.words = words};
    options_init(&options, ctl_globals_table(style), &globals);
    enum status status = options_parse_words(&options, count, args, &result, &error);
    free(words);
    if (status == ST_INVALID) {
        fprintf(stderr, "Error: %s\nRun '%s --help' for usage.\n", error.text, program_of(style));
        return CTL_ERROR;
    }
    write_root_help(style, stdout);
    return CTL_OK;
}

/* -- flags and words -- */

/* Vigil says how to get help; etcdctl writes it, the older one to standard output. */
static int refuse_flags(const struct frame *frame, const char *text)
{
    const struct ctl *ctl = &frame->ctl;
    const struct ctl_command *command = ctl->command;
    if (ctl->style == CTL_VIGIL) {
        const char *flag = strstr(text, "unknown flag: --");
        const char *nearest =
            flag ? options_nearest(frame->table, slice_from_text(flag + strlen("unknown flag: --")))
                 : NULL;
        char *plain = ctl_plain_words(text);
        fprintf(stderr, "Error: %s", plain);
        free(plain);
        if (nearest)
            fprintf(stderr, " (did you mean --%s?)", nearest);
        fprintf(stderr, "\nSee vigil %s --help.\n", command->path);
        return CTL_ERROR;
    }
    fprintf(stderr, "Error: %s\n", text);
    ctl_write_help(command, ctl->style, ctl->style == CTL_ETCDCTL_3_4 ? stdout : stderr);
    if (ctl->style == CTL_ETCDCTL_3_4)
        fprintf(stderr, "\nError: %s\n", text);
    return CTL_ERROR;
}

static void note_variable(void *ctx, enum option_notice notice, const char *variable,
                          const char *value)
{
    (void)value;
    struct frame *frame = ctx;
    if (notice == OPTION_ENV_SHADOWED && strncmp(variable, "ETCDCTL_", 8) == 0)
        frame->shadowed = "a variable";
}

/* etcdctl ignores a variable with an invalid value, and refuses one whose flag was given. */
static int read_etcdctl_environment(struct frame *frame)
{
    struct error error;
    for (char **variable = environ; *variable; variable++) {
        char *one[] = {*variable, NULL};
        struct option_listener listener = {note_variable, frame};
        if (options_parse_environment(&frame->options, one, listener, &error) != ST_OK)
            continue;
        if (frame->shadowed) {
            fprintf(stderr,
                    "Error: conflicting environment variable \"%.*s\" is shadowed by corresponding "
                    "command-line flag (either unset environment variable or disable flag)\n",
                    (int)strcspn(*variable, "="), *variable);
            return CTL_ERROR;
        }
    }
    return CTL_OK;
}

static int read_environment(struct frame *frame)
{
    if (frame->ctl.style != CTL_VIGIL)
        return read_etcdctl_environment(frame);
    struct error error;
    struct option_listener nobody = {0};
    if (options_parse_environment(&frame->options, environ, nobody, &error) != ST_OK)
        return refuse_flags(frame, error.text);
    return ctl_use_profile(&frame->ctl, &frame->options);
}

static int check_words(struct frame *frame)
{
    struct ctl *ctl = &frame->ctl;
    const struct ctl_command *command = ctl->command;
    if (ctl->word_count >= command->words_min && ctl->word_count <= command->words_max)
        return CTL_OK;
    if (ctl->style != CTL_VIGIL && command->words_error)
        return ctl_refuse(ctl, "%s", command->words_error);
    return ctl_refuse(ctl, "%s: too %s arguments; expected: vigil %s %s", command->path,
                      ctl->word_count < command->words_min ? "few" : "many", command->path,
                      command->words);
}

static int read_arguments(struct frame *frame)
{
    struct ctl *ctl = &frame->ctl;
    struct error error;
    enum status status =
        options_parse_words(&frame->options, frame->rest_count, frame->rest, &frame->words, &error);
    if (status == ST_INVALID)
        return refuse_flags(frame, error.text);
    if (status == ST_END) {
        ctl_write_help(ctl->command, ctl->style, stdout);
        return -1;
    }
    ctl->words = frame->words.words;
    ctl->word_count = frame->words.count;
    ctl->words_before_dash = frame->words.dash;
    return check_words(frame);
}

static int run(struct frame *frame, void *config)
{
    struct ctl *ctl = &frame->ctl;
    int code = read_arguments(frame);
    if (code == -1)
        return CTL_OK;
    if (code == CTL_OK)
        code = read_environment(frame);
    if (code != CTL_OK)
        return code;
    memcpy(&ctl->globals, config, sizeof(ctl->globals));
    ctl->globals.format = ctl_format_of(ctl->globals.write_out, ctl->style);
    ctl->flags = (char *)config + ctl_flags_offset();
    ctl->given = &frame->options;
    code = ctl_discover(ctl);
    if (code != CTL_OK)
        return code;
    code = ctl->command->run(ctl);
    if (fflush(ctl->out) != 0 && code == CTL_OK)
        code = ctl_fail(ctl, CTL_IO, "standard output cannot be written");
    return code;
}

static void frame_fini(struct frame *frame)
{
    ctl_end(&frame->ctl);
    free(frame->rest);
    free(frame->words.words);
    arena_fini(&frame->arena);
}

int ctl_main(int count, char **args, enum ctl_style style)
{
    struct ctl_found found = ctl_find(count, args, style);
    if (!found.command)
        return without_command(&found, count, args, style);
    return ctl_run(&found, count, args, style);
}

int ctl_run(const struct ctl_found *found, int count, char **args, enum ctl_style style)
{
    AUTO(frame_fini) struct frame frame = {0};
    arena_init(&frame.arena, NULL, 0, SIZE_MAX);
    frame.ctl = (struct ctl){
        .style = style, .command = found->command, .out = stdout, .arena = &frame.arena};
    frame.rest = xcalloc((size_t)count + 1, sizeof(*frame.rest));
    for (int i = 0; i < count; i++)
        if (i != found->name_at[0] && i != found->name_at[1])
            frame.rest[frame.rest_count++] = args[i];
    frame.words.words = xcalloc((size_t)count + 1, sizeof(*frame.words.words));
    frame.table = ctl_command_table(found->command, style, &frame.arena);
    void *config = xalloc_check(
        arena_calloc(&frame.arena, 1, ctl_flags_offset() + found->command->flags_bytes), 1);
    /* The defaults of flags that this style does not have. */
    options_init(&frame.options, ctl_command_table(found->command, CTL_ETCDCTL_3_7, &frame.arena),
                 config);
    options_init(&frame.options, frame.table, config);
    return run(&frame, config);
}
