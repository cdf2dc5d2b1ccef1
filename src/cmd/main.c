/* `vigil COMMAND`; started under the name etcd, the program is the server itself. */
#include "cmd/bench/bench.h"
#include "cmd/import.h"
#include "cmd/kube/kube.h"
#include "cmd/repair.h"
#include "cmd/serve/options.h"
#include "cmd/serve/serve.h"
#include "cmd/version.h"

enum { EXIT_OK = 0, EXIT_USAGE = 2 };

struct command {
    const char *name;
    const char *help;
    int (*run)(int count, char **args); /* args[0] is the name of the command */
    const char *usage; /* its arguments; NULL: it has flags, and shows them itself */
};

#define MAN_USAGE "[vigil|serve|etcd|import|snapshot|repair|kube-watch|markdown]"
#define COMPLETION_USAGE "bash|zsh|fish"

static int run_serve(int count, char **args)
{
    return serve_main(count - 1, args + 1, false);
}

static int run_bench(int count, char **args)
{
    args[0] = "vigil bench";
    return bench_main(count, args);
}

static int run_version(int count, char **args)
{
    (void)count;
    (void)args;
    printf("vigil %s\n", VIGIL_VERSION);
    return EXIT_OK;
}

/* docs/flags.md. */
static void write_flags_page(void)
{
    printf("# Flags\n\n`make docs` writes this page from the table of flags; do not edit it. Every "
           "flag "
           "can also be set as an environment variable\n(`--foo-bar` as `VIGIL_FOO_BAR` or "
           "`ETCD_FOO_BAR`) and as a key of the file that `--config-file` names. Defaults and\n"
           "meanings that differ from etcd are listed in "
           "[compatibility-etcd.md](compatibility-etcd.md#flags-files-and-the-log).\n");
    options_write_markdown(&serve_table, stdout);
}

static void write_overview(void); /* vigil(1) */

static int run_man(int count, char **args)
{
    static const struct {
        const char *name;
        const struct options_table *table;
    } pages[] = {
        {"serve", &serve_table},   {"etcd", &serve_etcd_table},
        {"import", &import_table}, {"snapshot", &snapshot_table},
        {"repair", &repair_table}, {"kube-watch", &kube_watch_table},
    };
    const char *page = count < 2 ? "serve" : args[1];
    if (count == 2 && strcmp(page, "markdown") == 0) {
        write_flags_page();
        return EXIT_OK;
    }
    if (count == 2 && strcmp(page, "vigil") == 0) {
        write_overview();
        return EXIT_OK;
    }
    for (size_t i = 0; count <= 2 && i < COUNT_OF(pages); i++) {
        if (strcmp(page, pages[i].name) == 0) {
            options_write_man(pages[i].table, "vigil " VIGIL_VERSION, VIGIL_DATE, stdout);
            return EXIT_OK;
        }
    }
    fprintf(stderr, "usage: vigil man " MAN_USAGE "\n");
    return EXIT_USAGE;
}

static int run_completion(int count, char **args);
static int run_help(int count, char **args);

static const struct command commands[] = {
    {"serve", "serve etcd's and Kubernetes' API from a data directory", run_serve, NULL},
    {"import", "make a data directory from one of etcd, or from a snapshot", import_main, NULL},
    {"snapshot", "restore a snapshot, or show what it contains", snapshot_main, NULL},
    {"repair", "show what a damaged data directory has lost, and accept the loss", repair_main,
     NULL},
    {"kube", "watch a Kubernetes API server: vigil kube watch RESOURCE", kube_main, NULL},
    {"bench", "put load on a server and measure it", run_bench, NULL},
    {"version", "print the version", run_version, ""},
    {"man",
     "write a manual page: vigil, serve, etcd, import, snapshot, repair or kube-watch (roff)",
     run_man, MAN_USAGE},
    {"completion", "write a completion script: bash, zsh or fish", run_completion,
     COMPLETION_USAGE},
    {"help", "show this, or the flags of a command", run_help, "[COMMAND]"},
};

static void write_usage(FILE *to)
{
    fprintf(
        to,
        "Vigil keeps versioned keys on disk and serves etcd's and Kubernetes' API from them.\n\n"
        "Usage:\n  vigil COMMAND [flags]\n\nCommands:\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].help);
    fprintf(to, "\nvigil help COMMAND shows the flags of a command. Begin with: vigil serve\n");
}

static void write_overview(void)
{
    printf(
        ".TH \"VIGIL\" 1 \"%s\" \"vigil %s\"\n"
        ".SH NAME\nvigil \\- a server that speaks the APIs of etcd and Kubernetes\n"
        ".SH SYNOPSIS\n.B vigil\nCOMMAND [\\fIflags\\fR]\n"
        ".SH DESCRIPTION\nVigil keeps versioned keys on disk and serves the v3 API of etcd and "
        "the list\\-watch API of Kubernetes from them. Started under the name etcd, it takes the "
        "flags of etcd and serves at once.\n.SH COMMANDS\n",
        VIGIL_DATE, VIGIL_VERSION);
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        printf(".TP\n.B %s\n%s\n", commands[i].name, commands[i].help);
    printf(".SH EXIT STATUS\n"
           ".TP\n0\nThe command succeeded.\n"
           ".TP\n1\nIt failed; the last line says why.\n"
           ".TP\n2\nThe command or a flag is unknown.\n"
           ".SH EXAMPLES\n.nf\n"
           "vigil serve \\-\\-data\\-dir /var/lib/vigil\n"
           "vigil import \\-\\-data\\-dir /var/lib/vigil /var/lib/etcd/default\n.fi\n"
           ".SH SEE ALSO\n"
           "vigil\\-serve(8), vigil\\-import(8), vigil\\-snapshot(8), vigil\\-repair(8), "
           "vigil\\-kube\\-watch(8)\n");
}

static const struct command *find_command(const char *name);

static int refuse_command(const char *name)
{
    fprintf(stderr, "vigil: there is no command '%.100s'. See vigil --help.\n", name);
    return EXIT_USAGE;
}

/* vigil help COMMAND is vigil COMMAND --help. */
static int run_help(int count, char **args)
{
    const struct command *command = find_command(count > 1 ? args[1] : "help");
    if (!command)
        return refuse_command(args[1]);
    if (!command->usage) {
        char *help[] = {args[1], "--help", NULL};
        return command->run(2, help);
    }
    if (command->run == run_help)
        write_usage(stdout);
    else
        printf("vigil %s: %s\n\nusage: vigil %s %s\n", command->name, command->help, command->name,
               command->usage);
    return EXIT_OK;
}

static int run_completion(int count, char **args)
{
    static const struct options_table others[] = {
        {.program = "vigil bench"},      {.program = "vigil version"}, {.program = "vigil man"},
        {.program = "vigil completion"}, {.program = "vigil help"},
    };
    struct options_table kube = kube_watch_table;
    kube.program = "vigil kube"; /* whose only word is "watch" */
    const struct options_table *const tables[] = {
        &serve_table, &import_table, &snapshot_table, &repair_table, &kube,
        &others[0],   &others[1],    &others[2],      &others[3],    &others[4],
    };
    static const struct {
        const char *shell;
        void (*write)(const char *command, const struct options_table *const *tables, size_t count,
                      FILE *to);
    } shells[] = {
        {"bash", options_write_bash}, {"zsh", options_write_zsh}, {"fish", options_write_fish}};
    for (size_t i = 0; count == 2 && i < COUNT_OF(shells); i++) {
        if (strcmp(args[1], shells[i].shell) == 0) {
            shells[i].write("vigil", tables, COUNT_OF(tables), stdout);
            return EXIT_OK;
        }
    }
    fprintf(stderr, "usage: vigil completion " COMPLETION_USAGE "\n");
    return EXIT_USAGE;
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "-help") == 0;
}

static const struct command *find_command(const char *name)
{
    if (asks_for_help(name))
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static bool is_named_etcd(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, "etcd") == 0;
}

int main(int argc, char **argv)
{
    if (argc > 0 && is_named_etcd(argv[0]))
        return serve_main(argc - 1, argv + 1, true);
    if (argc < 2) {
        write_usage(stderr);
        return EXIT_USAGE;
    }
    const struct command *command = find_command(argv[1]);
    if (!command)
        return refuse_command(argv[1]);
    if (command->usage && argc > 2 && asks_for_help(argv[2]))
        return run_help(2, argv);
    return command->run(argc - 1, argv + 1);
}
